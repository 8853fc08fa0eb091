//! Segments that leave out of turn.

use super::scoreboard::Index;

/// Segments that leave out of turn: before others in sequence, or although the windows are full.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra {
    /// Retransmissions that leave whatever the window says.
    pub(super) forced: u32,
    /// New segments that leave instead of retransmissions (F-RTO).
    pub(super) prefer_new: u32,
    /// New segments that leave though the congestion window is full (tail loss probe).
    pub(super) beyond_window: u32,
    /// A segment to send once more, whatever the window says: a tail loss probe or an RTO probe.
    pub(super) again: Option<Index>,
    /// An empty segment below the first unacknowledged byte is due, which the peer must acknowledge.
    pub ask: bool,
    /// The next new segment may be smaller than silly window avoidance wants, because no larger one has fitted the peer's window for long (RFC
    /// 9293 section 3.8.6.2.1).
    pub(super) may_be_small: bool,
}

impl Extra {
    /// New data have left.
    #[inline]
    pub(super) fn new_data_left(&mut self) {
        self.prefer_new = self.prefer_new.saturating_sub(1);
        self.beyond_window = 0;
        self.may_be_small = false;
    }

    /// An episode of loss is over.
    pub(super) fn end_episode(&mut self) {
        (self.forced, self.prefer_new) = (0, 0);
    }

    /// Nothing leaves out of turn.
    pub(super) fn is_none(&self) -> bool {
        self.forced | self.prefer_new | self.beyond_window == 0
            && self.again.is_none()
            && !self.ask
            && !self.may_be_small
    }
}
