//! What can be wrong with a script, and with a stack.

/// A script that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: found {found}, accepted: {accepted}")]
pub struct Mistake {
    /// File as it was named.
    pub file: String,
    /// Line, counted from one.
    pub line: u32,
    /// What stands there.
    pub found: String,
    /// What could.
    pub accepted: String,
}

/// A stack that does not do what the script says.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct Failure {
    /// File as it was named.
    pub file: String,
    /// Line of the event, counted from one.
    pub line: u32,
    /// What was wanted and what happened.
    pub what: String,
}
