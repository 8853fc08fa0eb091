//! Namespaces that decide what a command sees: that of mounts, which holds the pins, and those of networks, which have defaults.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

use nix::sched::{CloneFlags, setns};

use crate::error::Error;

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const MOUNTS: &str = "/proc/self/ns/mnt";
/// The number of the first namespace of processes (`PROC_PID_INIT_INO` of the kernel).
const FIRST_PROCESSES: u64 = 0xEFFF_FFFC;

fn number(path: &str) -> Option<u64> {
    fs::metadata(path).ok().map(|namespace| namespace.ino())
}

/// True if the first process is that of a container.
pub(crate) fn is_container() -> bool {
    number("/proc/self/ns/pid").is_some_and(|number| number != FIRST_PROCESSES)
}

/// The mounts of the machine: those of the oldest ancestor of this process that may be looked at.
fn mounts_of_machine() -> Option<PathBuf> {
    let parent = |process: &u32| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let number = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
        (number > 0).then_some(number)
    };
    let ancestors = std::iter::successors(Some(std::process::id()), parent);
    let mounts = ancestors.map(|process| PathBuf::from(format!("/proc/{process}/ns/mnt")));
    mounts.filter(|mounts| fs::metadata(mounts).is_ok()).last()
}

/// Enters the mounts of the machine, if this command has mounts of its own that end with it, as `ip netns exec` makes them: pins there would end
/// too. The network namespace stays. To be called before there are other threads.
///
/// # Errors
/// [`Error::Missing`] if that is not permitted.
pub fn enter_mounts_of_machine() -> Result<(), Error> {
    let Some(mounts) = mounts_of_machine() else { return Ok(()) };
    if number(MOUNTS) == fs::metadata(&mounts).ok().map(|namespace| namespace.ino()) {
        return Ok(());
    }
    let folder = std::env::current_dir();
    let entered = File::open(mounts).and_then(|mounts| Ok(setns(mounts, CloneFlags::CLONE_NEWNS)?));
    entered.map_err(|error| {
        Error::Missing(format!(
            "this command has mounts of its own, as `ip netns exec` makes them, and what it pins would end with them; those of the machine \
             cannot be entered ({error}): run nsenter --net=/run/netns/NAME bentpipe kernel ..."
        ))
    })?;
    // A relative path of the command line still means the same file, if the machine has that folder.
    if let Ok(folder) = folder {
        let _ = std::env::set_current_dir(folder);
    }
    Ok(())
}

/// A network namespace whose default is this control, other than our own: a name, or a process in it.
pub(crate) fn user_of_default(kernel_name: &str) -> Option<String> {
    let named = fs::read_dir("/run/netns").into_iter().flatten().flatten().map(|entry| {
        let name = format!("\"{}\"", entry.file_name().to_string_lossy());
        (entry.path(), name)
    });
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let process: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((entry.path().join("ns/net"), format!("of process {process}")))
    });
    let mut seen: HashSet<u64> = number("/proc/thread-self/ns/net").into_iter().collect();
    let mut others = named
        .chain(processes)
        .filter(|(path, _)| fs::metadata(path).is_ok_and(|namespace| seen.insert(namespace.ino())));
    others.find_map(|(path, name)| (default_of(&path)? == kernel_name).then_some(name))
}

/// The default of another network namespace.
fn default_of(namespace: &PathBuf) -> Option<String> {
    let namespace = File::open(namespace as &Path).ok()?;
    let look = || {
        setns(namespace, CloneFlags::CLONE_NEWNET).ok()?;
        Some(fs::read_to_string(DEFAULT).ok()?.trim().to_owned())
    };
    // Only the thread changes its namespace.
    thread::scope(|scope| scope.spawn(look).join().ok().flatten())
}
