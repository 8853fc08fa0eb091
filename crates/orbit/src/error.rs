/// A constellation that cannot be.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum OrbitError {
    /// A number with which nothing can fly.
    #[error("{place}: found {found}, accepted: {accepted}")]
    Impossible {
        /// Name of the quantity.
        place: String,
        /// Its value.
        found: String,
        /// What would do.
        accepted: &'static str,
    },
    /// A line of two-line elements that is not one.
    #[error("line {line}: {what}")]
    Elements {
        /// Number of the line in the text, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// SGP4 gives no position: the orbit has decayed, or the elements are far from their epoch.
    #[error("satellite {satellite} has no position {seconds} s after time zero: {what}")]
    Lost {
        /// Name of the satellite.
        satellite: String,
        /// Seconds since time zero.
        seconds: f64,
        /// What SGP4 says.
        what: String,
    },
}

impl OrbitError {
    pub(crate) fn impossible(place: &str, found: impl ToString, accepted: &'static str) -> Self {
        Self::Impossible { place: place.to_owned(), found: found.to_string(), accepted }
    }
}
