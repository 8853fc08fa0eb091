//! What can go wrong, by whose turn it is next.

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request was wrong.
    #[error("{0}")]
    Request(String),
    /// This machine lacks something; the words say what, and how to get it.
    #[error("{0}")]
    Missing(String),
    /// The kernel did not do what it should.
    #[error("{0}")]
    Work(String),
}

impl Error {
    /// A file or folder that cannot be used.
    pub(crate) fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        let what = format!("{}: {error}", path.display());
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => Self::Missing(format!("{what}; run as root")),
            _ => Self::Work(what),
        }
    }
}
