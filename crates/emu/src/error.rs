use std::io;

use bentpipe_net::ConfigError;
use bentpipe_system::Failure;

/// Reason why there is no emulation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something on this machine is missing: a privilege, a program, a feature of the kernel.
    #[error("{0}")]
    Missing(String),
    /// The request is invalid.
    #[error("{0}")]
    Request(String),
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// The failed operation.
        what: String,
        /// Error of the system.
        source: io::Error,
    },
}

impl Error {
    /// Makes an error for `map_err` from the failed operation and its cause.
    pub(crate) fn at(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Request(error.to_string())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Missing(_) => Self::Missing(failure.to_string()),
            Failure::Failed { program, source } => Self::at(program)(source),
        }
    }
}

impl From<crate::PathError> for Error {
    fn from(error: crate::PathError) -> Self {
        Self::Request(error.to_string())
    }
}
