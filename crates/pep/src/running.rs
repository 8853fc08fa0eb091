//! Proxies that run in this network namespace, as another process finds them.

use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::net::sockopt::socket_peercred;

use crate::error::Error;
use crate::slot::Slot;

/// Interval between two checks whether a proxy has ended (chosen).
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// A proxy that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Running {
    slot: Slot,
    /// Number of its process; 0 if that is in a namespace of processes that is not visible from here.
    pub process: i32,
}

/// Proxies that run in this network namespace: at most one that takes new connections, and one that finishes its own.
pub fn running() -> Vec<Running> {
    let of_slot = |slot: Slot| {
        let process = socket_peercred(slot.holder()?).map_or(0, |peer| peer.pid.as_raw_nonzero().get());
        Some(Running { slot, process })
    };
    Slot::all().filter_map(of_slot).collect()
}

impl Running {
    /// Name of its table of the packet filter.
    pub fn table(&self) -> &'static str {
        self.slot.table()
    }

    /// Requests that the proxy takes no new connections, and ends with the last one or after its `drain`. A second request ends it at
    /// once.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] without the right.
    pub fn tell_to_end(&self) -> Result<(), Error> {
        match kill(Pid::from_raw(self.process), Signal::SIGTERM) {
            _ if self.process == 0 => Err(Error::Missing(
                "the proxy is in another namespace of processes: stop it from there".to_owned(),
            )),
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(error) => Err(Error::at(format!("process {}", self.process))(error.into())),
        }
    }

    /// Waits until the proxy has ended.
    pub fn wait(&self) {
        while running().contains(self) {
            thread::sleep(LOOK_INTERVAL);
        }
    }
}
