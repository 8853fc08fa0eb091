//! Past window reductions, and the present one.

use bentpipe_cc::prr::Prr;

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
