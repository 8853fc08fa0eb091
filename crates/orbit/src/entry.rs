//! Entries of files with mean elements.

/// Mean elements of a satellite at one epoch.
pub(crate) struct Entry {
    /// Line of the file at which they begin.
    pub line: usize,
    pub elements: sgp4::Elements,
}

/// A mistake in a file: its line and description.
pub(crate) type Broken = (usize, String);
