//! Processes of an emulated network, found by their network namespace, whatever their group, session or parent.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};

/// Time from SIGTERM to SIGKILL, and from SIGKILL to giving up (chosen).
const GRACE: Duration = Duration::from_secs(2);
/// Time between two checks for remaining processes (chosen).
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Returns all processes of this machine.
pub(crate) fn all() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).map(Pid::from_raw)
}

/// Identity of a network namespace: the inode number of its handle, which is unique while the namespace exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NetworkId(pub u64);

impl NetworkId {
    /// Returns the network of a process; `None` if the process has ended, or belongs to another user without privileges here.
    pub fn of(process: Pid) -> Option<Self> {
        // This file does not exist after the process has ended, even before its parent has waited for it.
        let handle = fs::metadata(Path::new("/proc").join(process.to_string()).join("ns/net"));
        handle.ok().map(|handle| Self(handle.ino()))
    }

    /// Ends all processes of the network by SIGTERM; after [`GRACE`] the remaining ones by SIGKILL.
    pub fn end_processes(self) {
        send(Signal::SIGTERM, &self.processes());
        self.repeat_until_empty(|_| ());
        self.repeat_until_empty(|left| send(Signal::SIGKILL, left));
    }

    /// Calls `act` with the remaining processes until there are none, at most for [`GRACE`].
    fn repeat_until_empty(self, act: impl Fn(&[Pid])) {
        let begin = Instant::now();
        while begin.elapsed() < GRACE {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            act(&left);
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Returns the processes of the network except the calling one. Without privileges, processes of other users are
    /// invisible.
    pub fn processes(self) -> Vec<Pid> {
        all().filter(|process| *process != getpid() && Self::of(*process) == Some(self)).collect()
    }
}

/// Sends `signal` to each of `processes`.
pub(crate) fn send(signal: Signal, processes: &[Pid]) {
    for process in processes {
        // This fails if the process has already ended.
        let _ = kill(*process, signal);
    }
}
