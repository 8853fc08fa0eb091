//! Errors, by who can resolve them.

/// Reason for a failure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is invalid.
    #[error("{0}")]
    Request(String),
    /// Something on this machine is missing; the text contains the remedy.
    #[error("{0}")]
    Missing(String),
    /// An operation of the kernel failed.
    #[error("{0}")]
    Work(String),
}

impl Error {
    /// Returns the error for an unusable file or folder.
    pub(crate) fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        let what = format!("{}: {error}", path.display());
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => Self::Missing(format!("{what}; run as root")),
            _ => Self::Work(what),
        }
    }
}
