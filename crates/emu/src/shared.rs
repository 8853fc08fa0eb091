//! Data shared by the emulator and other threads: state, link changes, and the stop request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bentpipe_net::LinkStats;
use nix::sys::eventfd::{EfdFlags, EventFd};
use serde::Serialize;

use crate::meter::Fidelity;
use crate::path::Path;

/// Maximum duration of a change (chosen).
const PATIENCE: Duration = Duration::from_secs(1);

/// State of an emulation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Snapshot {
    /// Seconds since the start.
    pub at_s: f64,
    /// Links from the command to the far host.
    pub up: Vec<LinkState>,
    /// Links from the far host to the command.
    pub down: Vec<LinkState>,
    /// Parts of the scenario that are not emulated.
    pub left_out: Vec<String>,
    /// Accuracy of the emulation.
    pub fidelity: Option<Fidelity>,
}

/// State of one direction of a link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkState {
    /// Name of the link.
    pub name: String,
    /// Direction in the scenario: `forward` or `reverse`.
    pub direction: &'static str,
    /// Rate in bits per second.
    pub rate_bps: u64,
    /// Propagation delay in milliseconds.
    pub delay_one_way_ms: f64,
    /// Number of queued packets.
    pub waiting_packets: u32,
    /// All counters.
    pub stats: LinkStats,
}

/// Data shared by the emulator and the threads that observe and control it.
#[derive(Debug)]
pub(crate) struct Shared {
    stop: AtomicBool,
    wake_fd: EventFd,
    snapshot: Mutex<Snapshot>,
    change: Mutex<Option<Change>>,
}

/// New properties of the links.
#[derive(Debug)]
pub(crate) struct Change {
    /// The links with their new properties.
    pub path: Path,
    /// Receives a message after the change.
    pub done: Sender<()>,
}

impl Shared {
    pub fn new() -> nix::Result<Self> {
        let wake_fd = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        let (stop, snapshot, change) = (AtomicBool::new(false), Mutex::default(), Mutex::default());
        Ok(Self { stop, wake_fd, snapshot, change })
    }

    /// Asks the emulator to stop.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Gives the links new properties. Returns false if the emulator does not answer.
    pub fn change(&self, path: Path) -> bool {
        let (done, answer) = channel();
        *self.change.lock().unwrap_or_else(PoisonError::into_inner) = Some(Change { path, done });
        self.wake();
        answer.recv_timeout(PATIENCE).is_ok()
    }

    /// Returns a state that is at most 0.1 s old.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True after a stop request.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Descriptor that is readable after a stop request or for a link change.
    pub fn wake_fd(&self) -> &EventFd {
        &self.wake_fd
    }

    /// Returns the requested change, if the emulator was woken.
    pub fn take_change(&self) -> Option<Change> {
        self.wake_fd.read().ok()?;
        self.change.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Publishes the state.
    pub fn show(&self, snapshot: Snapshot) {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    fn wake(&self) {
        // This fails only if the counter of the descriptor overflows.
        let _ = self.wake_fd.write(1);
    }
}
