//! Violations of the checked rules.

use bentpipe_base::Instant;

/// Maximum number of reported violations; one mistake often causes many.
const MOST_VIOLATIONS: usize = 20;

/// Collects violations.
#[derive(Debug, Default)]
pub struct Violations(Vec<String>);

impl Violations {
    /// Records a violation unless `holds`.
    pub fn unless(&mut self, holds: bool, at: Instant, what: impl FnOnce() -> String) {
        if !holds && self.0.len() < MOST_VIOLATIONS {
            self.0.push(format!("{at:?}: {}", what()));
        }
    }

    /// Returns all recorded violations.
    pub fn into_vec(self) -> Vec<String> {
        self.0
    }
}
