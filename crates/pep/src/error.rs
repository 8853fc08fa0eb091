//! What can go wrong.

use std::io;

/// Why the proxy does not run.
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
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
    },
}

impl Error {
    /// Names what was tried.
    pub(crate) fn at(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Missing(format!(
                "{what}: not permitted; run it as root (sudo bentpipe pep ...) or with the capabilities CAP_NET_ADMIN and CAP_NET_RAW"
            )),
            _ => Self::Io { what, source },
        }
    }
}
