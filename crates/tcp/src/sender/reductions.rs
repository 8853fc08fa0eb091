//! Past reductions of the window, and the one in progress.

use super::watch::Watch;

/// State of past reductions of the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reductions {
    /// No fast retransmit before this is acknowledged (RFC 6582 section 3.2 step 1).
    pub recover_point: u64,
    /// Marks up to here belong to the reduction already made.
    pub ecn_recover: u64,
    /// A mark has made the window smaller for everything sent below this.
    pub marked_until: u64,
    /// Outstanding segments that limited transmit sent beyond the congestion window (RFC 3042).
    pub limited: u32,
    pub prr: Prr,
    /// While the last reduction may turn out to be a mistake.
    pub undo: Option<Watch>,
}

impl Reductions {
    /// A loss was found with `nxt` about to be sent next.
    pub fn lose(&mut self, nxt: u64) {
        self.recover_point = nxt;
        self.ecn_recover = nxt;
    }

    /// The reduction was undone: from `una` on losses and marks count again.
    pub fn undone(&mut self, una: u64) {
        self.lose(una.saturating_sub(1));
        self.undo = None;
    }
}

/// Proportional rate reduction (RFC 9937), in segments: spreads a reduction over the round trip that it takes, and repairs no faster than
/// segments leave the network once less than the threshold is in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// In flight just before the loss was found (`RecoverFS`).
    flight: u32,
    /// Newly known to have arrived since (`prr_delivered`).
    delivered: u32,
    /// Sent since (`prr_out`).
    out: u32,
    /// Segments that may leave now (`sndcnt`).
    pub budget: u32,
}

/// What proportional rate reduction needs to know of an ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrrAck {
    /// Segments newly known to have arrived.
    pub delivered: u32,
    /// It advanced and showed no further loss.
    pub safe: bool,
}

impl Prr {
    pub fn begin(flight: u32) -> Self {
        Self { flight: flight.max(1), ..Self::default() }
    }

    /// Takes an ACK, after which `in_flight` segments are in flight.
    pub fn on_ack(&mut self, ack: PrrAck, in_flight: u32, ssthresh: u32) {
        let PrrAck { delivered, safe } = ack;
        if delivered == 0 {
            return;
        }
        self.delivered += delivered;
        let owed = self.delivered.saturating_sub(self.out);
        self.budget = if in_flight > ssthresh {
            let due = (u64::from(self.delivered) * u64::from(ssthresh)).div_ceil(u64::from(self.flight));
            (due as u32).saturating_sub(self.out)
        } else {
            (ssthresh - in_flight).min(owed.max(delivered) + u32::from(safe))
        };
        if self.out == 0 {
            self.budget = self.budget.max(1);
        }
    }

    pub fn sent(&mut self) {
        self.out += 1;
        self.budget = self.budget.saturating_sub(1);
    }
}
