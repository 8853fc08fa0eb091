//! What breaks the rules.

use bentpipe_base::Instant;

/// Violations reported at most; one mistake often causes many.
const MOST_VIOLATIONS: usize = 20;

/// Collects what breaks the rules.
#[derive(Debug, Default)]
pub(crate) struct Violations(Vec<String>);

impl Violations {
    /// Notes a violation unless `holds`.
    pub fn unless(&mut self, holds: bool, at: Instant, what: impl FnOnce() -> String) {
        if !holds && self.0.len() < MOST_VIOLATIONS {
            self.0.push(format!("{at:?}: {}", what()));
        }
    }

    /// All that were noted.
    pub fn into_vec(self) -> Vec<String> {
        self.0
    }
}
