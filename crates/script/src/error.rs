//! Errors of a script and of a stack under test.

/// Error in a script.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: found {found}, accepted: {accepted}")]
pub struct Mistake {
    /// Name of the file.
    pub file: String,
    /// Line number, from one.
    pub line: u32,
    /// What was found.
    pub found: String,
    /// What is accepted.
    pub accepted: String,
}

/// Failed expectation: the stack does not do what the script requires.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct Failure {
    /// Name of the file.
    pub file: String,
    /// Line number of the event, from one.
    pub line: u32,
    /// Expected and actual behaviour.
    pub what: String,
}
