//! Episodes of loss and marks: one reduction per window of data.

use crate::Phase;
use crate::prr::{Prr, PrrAck};

/// Losses that have not yet opened an episode.
#[derive(Clone, Copy, Debug)]
struct Losses {
    bytes: u64,
    /// Highest number of a lost packet.
    newest: u64,
}

/// State of the present and the past episode. A packet with a number below [`since`](Self::since) belongs to the past.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Episodes {
    phase: Phase,
    /// First number sent after the last episode began. Losses below it do not open another one.
    since: u64,
    /// First number sent after the last reduction of any cause. Marks reported before its acknowledgement reduce no more.
    marks_since: u64,
    /// One above the highest number acknowledged.
    acked_to: u64,
    losses: Option<Losses>,
    prr: Prr,
    /// True if the last reduction may still prove spurious.
    undoable: bool,
}

impl Episodes {
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the bytes that PRR permits to send now; `None` outside of recovery.
    pub fn budget(&self) -> Option<u64> {
        (self.phase == Phase::Recovery).then(|| self.prr.budget())
    }

    pub fn sent(&mut self, bytes: u32) {
        if self.phase == Phase::Recovery {
            self.prr.sent(bytes.into());
        }
    }

    pub fn acked(&mut self, number: u64) {
        self.acked_to = self.acked_to.max(number + 1);
    }

    pub fn lost(&mut self, number: u64, bytes: u32) {
        let losses = self.losses.get_or_insert(Losses { bytes: 0, newest: number });
        losses.bytes += u64::from(bytes);
        losses.newest = losses.newest.max(number);
    }

    /// Returns the bytes of the losses that open an episode now. During an episode its losses wait for the end.
    pub fn take_losses(&mut self) -> Option<u64> {
        if self.phase != Phase::Open {
            return None;
        }
        self.losses.take().filter(|losses| losses.newest >= self.since).map(|losses| losses.bytes)
    }

    /// Opens a recovery with `flight` bytes in flight before the loss; one datagram may leave at once.
    pub fn begin(&mut self, next_number: u64, (flight, datagram): (u64, u32), undoable: bool) {
        self.phase = Phase::Recovery;
        (self.since, self.marks_since) = (next_number, next_number);
        self.prr = Prr::begin(flight, datagram.into());
        self.undoable = undoable;
    }

    /// Opens the episode of a timeout. Returns the bytes of the losses that it contains.
    pub fn time_out(&mut self, next_number: u64) -> u64 {
        // A timeout in recovery counts as real; of several consecutive ones the first may be undone.
        self.undoable = match self.phase {
            Phase::Open => true,
            Phase::Recovery => false,
            Phase::Loss => self.undoable,
        };
        self.phase = Phase::Loss;
        (self.since, self.marks_since) = (next_number, next_number);
        self.losses.take().map_or(0, |losses| losses.bytes)
    }

    pub fn spread(&mut self, ack: PrrAck, in_flight: u64, target: u64) {
        if self.phase == Phase::Recovery {
            self.prr.on_ack(ack, in_flight, target);
        }
    }

    /// Ends the episode if a packet sent during it was acknowledged, or none sent before it is in flight. `oldest` is the lowest
    /// number in flight. Returns true if an episode ended.
    pub fn end(&mut self, oldest: u64) -> bool {
        let over = self.phase != Phase::Open && (self.acked_to > self.since || oldest >= self.since);
        if over {
            self.phase = Phase::Open;
        }
        over
    }

    /// True if a mark reduces the window: no episode lasts, and data sent since the last reduction was acknowledged.
    pub fn mark_reduces(&self) -> bool {
        self.phase == Phase::Open && self.acked_to > self.marks_since
    }

    /// Handles a reduction by marks. If it made the window smaller, losses in the same window of data reduce it no more.
    pub fn mark(&mut self, next_number: u64, reduced: bool) {
        self.marks_since = next_number;
        self.undoable = false;
        if reduced {
            self.since = next_number;
        }
    }

    /// Ends the last episode as spurious; `oldest` is the lowest number in flight. Returns false if there is none to undo.
    pub fn undo(&mut self, oldest: u64) -> bool {
        if !core::mem::take(&mut self.undoable) {
            return false;
        }
        self.phase = Phase::Open;
        (self.since, self.marks_since) = (oldest, oldest);
        true
    }
}
