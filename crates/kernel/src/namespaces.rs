//! Namespaces of a command: the mount namespace, which holds the pins, and network namespaces, which have default
//! controls.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

use nix::sched::{CloneFlags, setns};

use crate::error::Error;

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const MOUNTS: &str = "/proc/self/ns/mnt";
/// Inode number of the first PID namespace (`PROC_PID_INIT_INO` of the kernel).
const FIRST_PROCESSES: u64 = 0xEFFF_FFFC;

fn number(path: &str) -> Option<u64> {
    fs::metadata(path).ok().map(|namespace| namespace.ino())
}

/// True if process 1 belongs to a container.
pub(crate) fn is_container() -> bool {
    number("/proc/self/ns/pid").is_some_and(|number| number != FIRST_PROCESSES)
}

/// Returns the machine's mount namespace: that of the oldest accessible ancestor of this process.
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

/// Enters the machine's mount namespace if this command has a private one, as `ip netns exec` makes it; pins there
/// would end with the command. The network namespace stays. It must be called before there are other threads.
///
/// # Errors
/// [`Error::Missing`] without the privilege.
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
    // Relative paths of the command line keep their meaning, if the machine has this folder.
    if let Ok(folder) = folder {
        let _ = std::env::set_current_dir(folder);
    }
    Ok(())
}

/// Returns another network namespace with this default control: its name, or a process in it.
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

/// Returns the default control of another network namespace.
fn default_of(namespace: &Path) -> Option<String> {
    let namespace = File::open(namespace).ok()?;
    let look = || {
        setns(namespace, CloneFlags::CLONE_NEWNET).ok()?;
        Some(fs::read_to_string(DEFAULT).ok()?.trim().to_owned())
    };
    // Only this thread changes its namespace.
    thread::scope(|scope| scope.spawn(look).join().ok().flatten())
}
