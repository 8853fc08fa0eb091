use std::io;

use bentpipe_net::ConfigError;

/// Why there is no emulation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something on this machine is missing: a privilege, a program, a feature of the kernel.
    #[error("{0}")]
    Missing(String),
    /// What was asked for cannot be.
    #[error("{0}")]
    Request(String),
    /// It did not work.
    #[error("{what}: {source}")]
    Io {
        /// What did not work.
        what: String,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    /// Gives an error of the system its place: for `map_err`.
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

impl From<crate::PathError> for Error {
    fn from(error: crate::PathError) -> Self {
        Self::Request(error.to_string())
    }
}
