//! Segments that leave out of order.

use super::scoreboard::Index;

/// Segments that leave out of order: before earlier ones, or with full windows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra {
    /// Number of retransmissions that leave regardless of the window.
    pub(super) forced: u32,
    /// Number of new segments that leave instead of retransmissions (F-RTO).
    pub(super) prefer_new: u32,
    /// Number of new segments that leave despite a full congestion window (tail loss probe).
    pub(super) beyond_window: u32,
    /// Segment to send again regardless of the window: a tail loss probe or an RTO probe.
    pub(super) again: Option<Index>,
    /// True if an empty segment below the first unacknowledged byte is due, which the peer must acknowledge.
    pub ask: bool,
    /// True if the next new segment may be smaller than silly window avoidance requires, because no larger one has fitted the
    /// peer's window for a long time (RFC 9293 section 3.8.6.2.1).
    pub(super) may_be_small: bool,
}

impl Extra {
    /// Records that new data has left.
    #[inline]
    pub(super) fn new_data_left(&mut self) {
        self.prefer_new = self.prefer_new.saturating_sub(1);
        self.beyond_window = 0;
        self.may_be_small = false;
    }

    /// Ends an episode of loss.
    pub(super) fn end_episode(&mut self) {
        (self.forced, self.prefer_new) = (0, 0);
    }

    /// True if no segment leaves out of order.
    pub(super) fn is_none(&self) -> bool {
        self.forced | self.prefer_new | self.beyond_window == 0
            && self.again.is_none()
            && !self.ask
            && !self.may_be_small
    }
}
