//! Leftovers of a command that died between two pins, and how to recognise them.
//!
//! Anything with several pins sets one of them last and removes it first: a control its own pin, after those of its
//! probes; rules the pin of their link. Commands that change pins take turns. Therefore anything without that pin is
//! unused while no command has the turn. The command with the turn removes it first.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use crate::catalogue::CONTROLS;
use crate::error::Error;
use crate::namespaces::is_container;
use crate::pins::{AVAILABLE, BPF_FS, COPIES, FOLDER, RULES_LINK, RULES_OF};

/// Exclusive right to change pins. It ends with its process.
pub(crate) struct Turn {
    _lock: Flock<File>,
}

impl Turn {
    /// Waits until no other command has the turn.
    pub fn take() -> Result<Self, Error> {
        let failed = |error| Error::file(Path::new(BPF_FS), &error);
        let folder = File::open(BPF_FS).map_err(failed)?;
        let lock = Flock::lock(folder, FlockArg::LockExclusive).map_err(|(_, error)| failed(error.into()))?;
        Ok(Self { _lock: lock })
    }

    /// The turn, and the folder in the kernel's BPF file system, which is mounted if necessary. Leftovers are
    /// removed.
    pub fn with_folder() -> Result<Self, Error> {
        let is_mounted = statfs(BPF_FS).is_ok_and(|there| there.filesystem_type() == BPF_FS_MAGIC);
        if !is_mounted && is_container() {
            return Err(Error::Missing(format!(
                "{BPF_FS} is not mounted in this container, and what is pinned in a mount of its own would end with it: give it that of the \
                 machine (docker run -v {BPF_FS}:{BPF_FS} ...), or run this outside"
            )));
        }
        if !is_mounted {
            mount(Some("bpffs"), BPF_FS, Some("bpf"), MsFlags::empty(), Some("mode=0700")).map_err(
                |error| {
                    Error::Missing(format!(
                        "{BPF_FS} is not mounted and cannot be ({error}); as root: mount -t bpf bpffs {BPF_FS}"
                    ))
                },
            )?;
        }
        let turn = Self::take()?;
        turn.clear()?;
        fs::create_dir_all(FOLDER).map_err(|error| Error::file(Path::new(FOLDER), &error))?;
        Ok(turn)
    }

    /// Removes the leftovers of dead commands, and returns their names.
    pub fn clear(&self) -> Result<Vec<PathBuf>, Error> {
        let found = unfinished();
        for path in &found {
            remove(path)?;
        }
        Ok(found)
    }
}

/// Removes a pin, or a folder of pins.
fn remove(path: &Path) -> Result<(), Error> {
    let failed = |error| Error::file(path, &error);
    if !path.is_dir() {
        return fs::remove_file(path).map_err(failed);
    }
    for pin in fs::read_dir(path).map_err(failed)? {
        fs::remove_file(pin.map_err(failed)?.path()).map_err(failed)?;
    }
    fs::remove_dir(path).map_err(failed)
}

/// Returns the leftovers of dead commands; empty while another command has the turn.
pub fn leftovers() -> Vec<PathBuf> {
    let look = FlockArg::LockSharedNonblock;
    let quiet = File::open(BPF_FS).is_ok_and(|folder| Flock::lock(folder, look).is_ok());
    if quiet { unfinished() } else { Vec::new() }
}

/// Removes the leftovers of dead commands, and the folder if it is then empty. Returns their names.
///
/// # Errors
/// [`Error::Missing`] without the privilege.
pub fn clear() -> Result<Vec<PathBuf>, Error> {
    if !Path::new(FOLDER).try_exists().map_err(|error| Error::file(Path::new(FOLDER), &error))? {
        return Ok(Vec::new());
    }
    let found = Turn::take()?.clear()?;
    let _ = fs::remove_dir(FOLDER);
    Ok(found)
}

fn unfinished() -> Vec<PathBuf> {
    let offered = fs::read_to_string(AVAILABLE).unwrap_or_default();
    let pins = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    pins.map(|pin| pin.path()).filter(|path| is_unfinished(path, &offered)).collect()
}

/// `offered` are the controls that the kernel knows, if they are readable.
fn is_unfinished(path: &Path, offered: &str) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    if name.starts_with(RULES_OF) {
        return !path.join(RULES_LINK).exists();
    }
    if let Some(control) = name.strip_suffix(COPIES) {
        let control = path.with_file_name(control);
        return !control.exists() || is_unfinished(&control, offered);
    }
    // A map that is pinned but not registered, as before kernel 6.4, or a control that was unloaded by other means.
    let control = CONTROLS.iter().find(|control| control.name == name);
    !offered.is_empty()
        && control
            .is_some_and(|control| offered.split_ascii_whitespace().all(|name| name != control.kernel_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outside the BPF file system, a file represents a pin.
    #[test]
    fn what_lacks_its_last_pin_is_unfinished() {
        let folder = std::env::temp_dir().join(format!("bentpipe-leftovers-{}", std::process::id()));
        let at = |name: &str| folder.join(name);
        for name in ["peach-copies", "swift-copies", "use-1", "use-2"] {
            fs::create_dir_all(at(name)).expect("a folder of ours");
        }
        for name in ["peach", "peach-copies/program", "swift-copies/program", "use-1/link", "use-2/rules"] {
            fs::write(at(name), "").expect("a file of ours");
        }
        let found = |offered: &str| {
            let names = ["peach", "peach-copies", "swift-copies", "use-1", "use-2"];
            names.into_iter().filter(|name| is_unfinished(&at(name), offered)).collect::<Vec<_>>()
        };
        assert_eq!(found("cubic bp_peach"), ["swift-copies", "use-2"]);
        assert_eq!(found("cubic"), ["peach", "peach-copies", "swift-copies", "use-2"]);
        assert_eq!(found(""), ["swift-copies", "use-2"], "what cannot be read says nothing");
        remove(&at("swift-copies")).expect("it goes with what it holds");
        assert!(!at("swift-copies").exists());
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
