//! Episodes of loss and marks: one reduction per window of data.

use crate::Phase;
use crate::prr::{Prr, PrrAck};

/// State of the present and the past episode. A packet with a number below [`since`](Self::since) belongs to the past.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Episodes {
    phase: Phase,
    /// First number sent after the last episode began. Losses below it do not open another one.
    since: u64,
    /// First number sent after the last loss below `since` was found. Its acknowledgement shows that all of them are repaired, and
    /// ends the episode: as in TCP, where it ends with the cumulative ACK.
    repaired: u64,
    /// First number sent after the last reduction of any cause. Marks reported before its acknowledgement reduce no more.
    marks_since: u64,
    /// One above the highest number acknowledged.
    acked_to: u64,
    /// Bytes lost of packets sent after the last episode began: they open another one.
    losses: u64,
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

    /// Handles the loss of a packet; `next_number` is the lowest number of the packet that repairs it.
    pub fn lost(&mut self, number: u64, bytes: u32, next_number: u64) {
        if number < self.since {
            self.repaired = next_number;
        } else {
            self.losses += u64::from(bytes);
        }
    }

    /// Returns the bytes of the losses that open an episode now. During an episode they wait for its end.
    pub fn take_losses(&mut self) -> Option<u64> {
        let opens = self.phase == Phase::Open && self.losses > 0;
        opens.then(|| core::mem::take(&mut self.losses))
    }

    /// Opens a recovery with `flight` bytes in flight before the loss; one datagram may leave at once.
    pub fn begin(&mut self, next_number: u64, (flight, datagram): (u64, u32), undoable: bool) {
        self.phase = Phase::Recovery;
        self.start(next_number);
        self.prr = Prr::begin(flight, datagram.into());
        self.undoable = undoable;
    }

    /// Opens the episode of a timeout, which contains all losses so far.
    pub fn time_out(&mut self, next_number: u64) {
        // A timeout in recovery counts as real; of several consecutive ones the first may be undone.
        self.undoable = match self.phase {
            Phase::Open => true,
            Phase::Recovery => false,
            Phase::Loss => self.undoable,
        };
        self.phase = Phase::Loss;
        self.start(next_number);
        self.losses = 0;
    }

    pub fn spread(&mut self, ack: PrrAck, in_flight: u64, target: u64) {
        if self.phase == Phase::Recovery {
            self.prr.on_ack(ack, in_flight, target);
        }
    }

    /// Ends the episode if its losses are repaired, or no packet sent before the repair is in flight. `oldest` is the lowest number
    /// in flight. Returns true if an episode ended.
    pub fn end(&mut self, oldest: u64) -> bool {
        let over = self.phase != Phase::Open && (self.acked_to > self.repaired || oldest >= self.repaired);
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
        self.start(oldest);
        true
    }

    fn start(&mut self, number: u64) {
        (self.since, self.repaired, self.marks_since) = (number, number, number);
    }
}
