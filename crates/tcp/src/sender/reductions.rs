//! Past window reductions, and the present one.

use super::watch::Watch;

/// State of past window reductions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reductions {
    /// Sequence number before whose acknowledgement there is no fast retransmit (RFC 6582 section 3.2 step 1).
    pub recover_point: u64,
    /// Sequence number up to which marks belong to the past reduction.
    pub ecn_recover: u64,
    /// Sequence number below which a mark has already reduced the window.
    pub marked_until: u64,
    /// Outstanding segments sent by limited transmit beyond the congestion window (RFC 3042).
    pub limited: u32,
    pub prr: Prr,
    /// Evidence about the last reduction, while it may prove spurious.
    pub undo: Option<Watch>,
}

impl Reductions {
    /// Records a loss detected with `nxt` as the next new sequence number.
    pub fn lose(&mut self, nxt: u64) {
        self.recover_point = nxt;
        self.ecn_recover = nxt;
    }

    /// Handles an undo: losses and marks count again from `una` on.
    pub fn undone(&mut self, una: u64) {
        self.lose(una.saturating_sub(1));
        self.undo = None;
    }
}

/// Proportional rate reduction (RFC 9937) in segments. It spreads a reduction over a round trip. Once the flight is below
/// ssthresh, it repairs no faster than segments leave the network.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// In-flight segments just before the detection of the loss (`RecoverFS`).
    flight: u32,
    /// Segments delivered since then (`prr_delivered`).
    delivered: u32,
    /// Segments sent since then (`prr_out`).
    out: u32,
    /// Segments that may leave now (`sndcnt`).
    pub budget: u32,
}

/// Properties of an ACK for PRR.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrrAck {
    /// Segments newly delivered.
    pub delivered: u32,
    /// True if it advanced and showed no further loss.
    pub safe: bool,
}

impl Prr {
    pub fn begin(flight: u32) -> Self {
        Self { flight: flight.max(1), ..Self::default() }
    }

    /// Handles an ACK, after which `in_flight` segments are in flight.
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
