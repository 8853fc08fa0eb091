//! Pins in the BPF file system, which keep an algorithm loaded after the command has ended.

use std::fs;
use std::path::{Path, PathBuf};

use crate::catalogue::{CONTROLS, Control};
use crate::error::Error;

/// Mount point of the kernel's BPF file system.
pub(crate) const BPF_FS: &str = "/sys/fs/bpf";
/// Bentpipe's folder there.
pub(crate) const FOLDER: &str = "/sys/fs/bpf/bentpipe";

/// Controls that the kernel offers, loaded by any program.
#[cfg(feature = "bpf")]
pub(crate) const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Suffix of the folder of a control's probes, and prefix of that of a control group's rules.
pub(crate) const COPIES: &str = "-copies";
#[cfg(feature = "bpf")]
pub(crate) const RULES_OF: &str = "use-";
/// Pin of rules that is set last and removed first.
#[cfg(feature = "bpf")]
pub(crate) const RULES_LINK: &str = "link";

pub(crate) fn pin_of(control: &Control) -> PathBuf {
    Path::new(FOLDER).join(control.name)
}

/// Returns the folder of pins of a control's probing program: the program, and a link for each interface.
pub(crate) fn copies_of(control: &Control) -> PathBuf {
    Path::new(FOLDER).join(format!("{}{COPIES}", control.name))
}

/// Returns the interfaces of a control's probing program: network namespace and interface number.
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

/// Returns the loaded controls.
///
/// # Errors
/// [`Error::Missing`] without the privilege.
pub fn loaded() -> Result<Vec<&'static Control>, Error> {
    let there = CONTROLS.iter().map(|control| {
        let there = pin_of(control).try_exists();
        there.map(|there| there.then_some(control)).map_err(|error| Error::file(Path::new(FOLDER), &error))
    });
    Ok(there.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}
