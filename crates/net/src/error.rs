use core::fmt;

/// A link cannot be built from this configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// Path to the offending field from the [`LinkConfig`](crate::LinkConfig), such as `queue.limit`.
    pub field: String,
    /// What stands there.
    pub found: String,
    /// What may stand there.
    pub accepted: &'static str,
}

impl ConfigError {
    /// `field` holds `found`, where `accepted` may stand.
    pub fn new(field: &str, found: impl fmt::Display, accepted: &'static str) -> Self {
        Self { field: field.to_owned(), found: found.to_string(), accepted }
    }

    /// The same error seen from the structure that holds the faulty one in its field `outer`.
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}, accepted: {}", self.field, self.found, self.accepted)
    }
}

impl core::error::Error for ConfigError {}

/// Accepts a probability, names `field` otherwise.
///
/// # Errors
/// If `p` is no probability.
pub fn check_probability(field: &str, p: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    Err(ConfigError::new(field, p, "a probability from 0 to 1"))
}
