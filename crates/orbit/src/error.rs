/// Error of a constellation.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum OrbitError {
    /// An impossible parameter.
    #[error("{place}: found {found}, accepted: {accepted}")]
    Impossible {
        /// Name of the quantity.
        place: String,
        /// Value of the quantity.
        found: String,
        /// Description of the accepted values.
        accepted: &'static str,
    },
    /// An invalid line of two-line elements.
    #[error("line {line}: {what}")]
    Elements {
        /// Number of the line in the text, from 1.
        line: usize,
        /// Description of the mistake.
        what: String,
    },
    /// An invalid line of a list of links.
    #[error("line {line}, column {column}: found {found}, accepted: {accepted}")]
    Link {
        /// Number of the line in the list, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// Value of the field.
        found: String,
        /// Description of the accepted values.
        accepted: String,
    },
    /// SGP4 yields no position: the orbit has decayed, or the epoch is too far away.
    #[error("satellite {satellite} has no position {seconds} s after time zero: {what}")]
    Lost {
        /// Name of the satellite.
        satellite: String,
        /// Seconds since time zero.
        seconds: f64,
        /// Message of SGP4.
        what: String,
    },
}

impl OrbitError {
    pub(crate) fn impossible(place: &str, found: impl ToString, accepted: &'static str) -> Self {
        Self::Impossible { place: place.to_owned(), found: found.to_string(), accepted }
    }
}
