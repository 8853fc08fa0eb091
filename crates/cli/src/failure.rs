//! Failures of commands, with their exit codes.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use bentpipe_lab::RunError;

/// Reason why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The work failed, for example a write to a file: exit code 1.
    Work(String),
    /// The request was wrong, for example an argument or a key of a scenario: exit code 2.
    Request(String),
    /// Something on this machine is missing, for example a program, a kernel feature or a privilege: exit code 3.
    Missing(String),
}

impl Failure {
    /// Returns the failure of a file that cannot be written.
    pub fn unwritable(path: &Path, error: &io::Error) -> Self {
        let why = match error.kind() {
            io::ErrorKind::NotFound => "there is no such directory".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            io::ErrorKind::IsADirectory => "that is a directory".to_owned(),
            _ => error.to_string(),
        };
        Self::Request(format!("cannot write {}: {why}", path.display()))
    }

    /// Returns the exit code.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Work(_) => 1,
            Self::Request(_) => 2,
            Self::Missing(_) => 3,
        }
    }

    /// Prints the failure and returns its exit code.
    pub fn report(self) -> ExitCode {
        eprintln!("bentpipe: {self}");
        ExitCode::from(self.code())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Work(message) | Self::Request(message) | Self::Missing(message)) = self;
        f.write_str(message)
    }
}

impl From<bentpipe_scenario::Error> for Failure {
    fn from(error: bentpipe_scenario::Error) -> Self {
        Self::Request(error.to_string())
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Impossible(why) => Self::Request(why),
            RunError::Stopped => Self::Work("stopped before the end; no result was written".into()),
            RunError::Unwritten(error) => Self::Work(format!("cannot write {error}")),
        }
    }
}

#[cfg(feature = "emulate")]
impl From<bentpipe_emu::Error> for Failure {
    fn from(error: bentpipe_emu::Error) -> Self {
        match error {
            bentpipe_emu::Error::Missing(what) => Self::Missing(what),
            bentpipe_emu::Error::Request(what) => Self::Request(what),
            error @ bentpipe_emu::Error::Io { .. } => Self::Work(error.to_string()),
        }
    }
}

#[cfg(feature = "pep")]
impl From<bentpipe_pep::Error> for Failure {
    fn from(error: bentpipe_pep::Error) -> Self {
        match error {
            bentpipe_pep::Error::Missing(what) => Self::Missing(what),
            bentpipe_pep::Error::Request(what) => Self::Request(what),
            error @ bentpipe_pep::Error::Io { .. } => Self::Work(error.to_string()),
        }
    }
}
