//! What keeps a loaded algorithm alive after the command that loaded it: a pin in the file system of BPF.

use std::path::{Path, PathBuf};

use crate::catalogue::{CONTROLS, Control};
use crate::error::Error;

/// Where the kernel's BPF file system belongs.
pub(crate) const BPF_FS: &str = "/sys/fs/bpf";
/// Our folder there.
pub(crate) const FOLDER: &str = "/sys/fs/bpf/bentpipe";

pub(crate) fn pin_of(control: &Control) -> PathBuf {
    Path::new(FOLDER).join(control.name)
}

/// The controls that are loaded now.
///
/// # Errors
/// [`Error::Missing`] without the right to look.
pub fn loaded() -> Result<Vec<&'static Control>, Error> {
    let there = CONTROLS.iter().map(|control| {
        let there = pin_of(control).try_exists();
        there.map(|there| there.then_some(control)).map_err(|error| Error::file(Path::new(FOLDER), &error))
    });
    Ok(there.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}
