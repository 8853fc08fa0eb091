//! What keeps a loaded algorithm alive after the command that loaded it: a pin in the file system of BPF.

use std::fs;
use std::path::{Path, PathBuf};

use crate::catalogue::{CONTROLS, Control};
use crate::error::Error;

/// Where the kernel's BPF file system belongs.
pub(crate) const BPF_FS: &str = "/sys/fs/bpf";
/// Our folder there.
pub(crate) const FOLDER: &str = "/sys/fs/bpf/bentpipe";

/// The controls of the kernel that are there, loaded by whomever.
#[cfg(feature = "bpf")]
pub(crate) const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// How the name of the folder of a control's probes ends, and how that of the rules of a control group begins.
pub(crate) const COPIES: &str = "-copies";
#[cfg(feature = "bpf")]
pub(crate) const RULES_OF: &str = "use-";
/// The pin of rules that is set last and goes first.
#[cfg(feature = "bpf")]
pub(crate) const RULES_LINK: &str = "link";

pub(crate) fn pin_of(control: &Control) -> PathBuf {
    Path::new(FOLDER).join(control.name)
}

/// The folder of the pins of the program that sends a control's probes: the program, and a link for each interface.
pub(crate) fn copies_of(control: &Control) -> PathBuf {
    Path::new(FOLDER).join(format!("{}{COPIES}", control.name))
}

/// Where the program that sends a control's probes stands: network namespace and number of the interface there.
pub fn places(control: &Control) -> Vec<(u32, u32)> {
    let pins = fs::read_dir(copies_of(control)).into_iter().flatten().flatten();
    let mut places: Vec<(u32, u32)> = pins
        .filter_map(|pin| {
            let name = pin.file_name();
            let (namespace, number) = name.to_str()?.split_once('-')?;
            Some((namespace.parse().ok()?, number.parse().ok()?))
        })
        .collect();
    places.sort_unstable();
    places
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
