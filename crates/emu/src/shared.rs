//! What the thread that emulates and the others tell each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bentpipe_net::LinkStats;
use nix::sys::eventfd::{EfdFlags, EventFd};
use serde::Serialize;

use crate::meter::Fidelity;
use crate::path::Path;

/// How long a change may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// How things stand.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Snapshot {
    /// Seconds since the start.
    pub at_s: f64,
    /// The links from the command to the host beyond.
    pub up: Vec<LinkState>,
    /// The links from the host beyond to the command.
    pub down: Vec<LinkState>,
    /// What of the scenario is not emulated.
    pub left_out: Vec<String>,
    /// How good the emulation is.
    pub fidelity: Option<Fidelity>,
}

/// How one direction of a link stands.
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

/// Between the emulator and the threads that look at it.
#[derive(Debug)]
pub(crate) struct Shared {
    stop: AtomicBool,
    wake: EventFd,
    snapshot: Mutex<Snapshot>,
    change: Mutex<Option<Change>>,
}

/// Other properties for the links.
#[derive(Debug)]
pub(crate) struct Change {
    /// The same links as before.
    pub path: Path,
    /// Where to tell that it is done.
    pub done: Sender<()>,
}

impl Shared {
    pub fn new() -> nix::Result<Self> {
        let wake = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        let (stop, snapshot, change) = (AtomicBool::new(false), Mutex::default(), Mutex::default());
        Ok(Self { stop, wake, snapshot, change })
    }

    /// Tells the emulator to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.ring();
    }

    /// Gives the links other properties. False if the emulator does not answer.
    pub fn change(&self, path: Path) -> bool {
        let (done, answer) = channel();
        *self.change.lock().unwrap_or_else(PoisonError::into_inner) = Some(Change { path, done });
        self.ring();
        answer.recv_timeout(PATIENCE).is_ok()
    }

    /// How things stood at most a tenth of a second ago.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True once the emulator is to end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Readable when there is something for the emulator.
    pub fn bell(&self) -> &EventFd {
        &self.wake
    }

    /// The change that is waited for, if the bell has rung.
    pub fn take_change(&self) -> Option<Change> {
        self.wake.read().ok()?;
        self.change.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Shows how things stand.
    pub fn show(&self, snapshot: Snapshot) {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    fn ring(&self) {
        // It fails if the bell has rung 2^64 times unheard.
        let _ = self.wake.write(1);
    }
}
