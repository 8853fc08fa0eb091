use core::fmt;

/// Error of an invalid link configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// Path to the invalid field from the [`LinkConfig`](crate::LinkConfig), such as `queue.limit`.
    pub field: String,
    /// Value found.
    pub found: String,
    /// Accepted values.
    pub accepted: &'static str,
}

impl ConfigError {
    /// Makes an error: `field` has the value `found` instead of `accepted`.
    pub fn new(field: &str, found: impl fmt::Display, accepted: &'static str) -> Self {
        Self { field: field.to_owned(), found: found.to_string(), accepted }
    }

    /// Returns the error relative to the structure that holds the invalid one in its field `outer`.
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

/// Checks that `p` is a probability; `field` is its name.
///
/// # Errors
/// If `p` is not a probability.
pub fn check_probability(field: &str, p: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    Err(ConfigError::new(field, p, "a probability from 0 to 1"))
}
