//! What the emulator and other threads share: its state, changes of links, and the request to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bentpipe_net::LinkStats;
use nix::sys::eventfd::{EfdFlags, EventFd};
use serde::Serialize;

use crate::meter::Fidelity;
use crate::path::Path;

/// How long a change may take (chosen).
const PATIENCE: Duration = Duration::from_secs(1);

/// State of an emulation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Snapshot {
    /// Seconds since the start.
    pub at_s: f64,
    /// The links from the command to the host beyond.
    pub up: Vec<LinkState>,
    /// The links from the host beyond to the command.
    pub down: Vec<LinkState>,
    /// Parts of the scenario that are not emulated.
    pub left_out: Vec<String>,
    /// How exact the emulation is.
    pub fidelity: Option<Fidelity>,
}

/// State of one direction of a link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkState {
    /// Name of the link.
    pub name: String,
    /// `forward` or `reverse`, as the scenario has it.
    pub direction: &'static str,
    /// Rate in bits per second.
    pub rate_bps: u64,
    /// Propagation delay in milliseconds.
    pub delay_one_way_ms: f64,
    /// Packets that wait for transmission.
    pub waiting_packets: u32,
    /// Everything that was counted.
    pub stats: LinkStats,
}

/// Shared by the emulator and the threads that observe and control it.
#[derive(Debug)]
pub(crate) struct Shared {
    stop: AtomicBool,
    wake_fd: EventFd,
    snapshot: Mutex<Snapshot>,
    change: Mutex<Option<Change>>,
}

/// Other properties for the links.
#[derive(Debug)]
pub(crate) struct Change {
    /// The same links as before.
    pub path: Path,
    /// Is told when the change is made.
    pub done: Sender<()>,
}

impl Shared {
    pub fn new() -> nix::Result<Self> {
        let wake_fd = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        let (stop, snapshot, change) = (AtomicBool::new(false), Mutex::default(), Mutex::default());
        Ok(Self { stop, wake_fd, snapshot, change })
    }

    /// Tells the emulator to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Gives the links other properties. False if the emulator does not answer.
    pub fn change(&self, path: Path) -> bool {
        let (done, answer) = channel();
        *self.change.lock().unwrap_or_else(PoisonError::into_inner) = Some(Change { path, done });
        self.wake();
        answer.recv_timeout(PATIENCE).is_ok()
    }

    /// The state as it was at most a tenth of a second ago.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True once the emulator is to end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Readable when the emulator is to end or to change links.
    pub fn wake_fd(&self) -> &EventFd {
        &self.wake_fd
    }

    /// The change that somebody waits for, if the emulator was woken.
    pub fn take_change(&self) -> Option<Change> {
        self.wake_fd.read().ok()?;
        self.change.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Publishes the state.
    pub fn show(&self, snapshot: Snapshot) {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    fn wake(&self) {
        // It fails only if the counter of the descriptor overflows.
        let _ = self.wake_fd.write(1);
    }
}
