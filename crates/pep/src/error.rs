//! The errors of the proxy.

use std::io;

use bentpipe_system::{Failure, Program};

/// Reason why the proxy does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is wrong.
    #[error("{0}")]
    Request(String),
    /// Something is missing on this machine; says what, and how to get it.
    #[error("{0}")]
    Missing(String),
    /// The system refused something.
    #[error("{what}: {source}")]
    Io {
        /// The failed action.
        what: String,
        /// Error of the system.
        source: io::Error,
    },
}

impl Error {
    /// Makes an error from the failed action and the error of the system, for `map_err`.
    pub(crate) fn at(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Missing(format!(
                "{what}: not permitted; run it as root (sudo bentpipe pep ...) or with the capabilities CAP_NET_ADMIN and CAP_NET_RAW"
            )),
            io::ErrorKind::ReadOnlyFilesystem => Self::Missing(format!(
                "{what}: read-only here, as in a container; run the proxy where it may be written (docker run --privileged, or \
                 mount -o remount,rw /proc/sys)"
            )),
            _ => Self::Io { what, source },
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Missing(Program { name, package }) => Self::Missing(format!(
                "the program `{name}` is missing: install it (apt-get install {package})"
            )),
            Failure::Failed { program, source } => Self::at(program)(source),
        }
    }
}
