//! Segments that leave out of turn.

use super::scoreboard::Index;

/// What leaves although the windows or the order say otherwise.
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
    /// An empty segment below the first unacknowledged byte is due, to which the peer must answer.
    pub ask: bool,
    /// The next new segment may be silly: nothing better fits the peer's window for long.
    pub(super) silly: bool,
}

impl Extra {
    /// New data left: what waited for it is done.
    #[inline]
    pub(super) fn new_data_left(&mut self) {
        self.prefer_new = self.prefer_new.saturating_sub(1);
        self.beyond_window = 0;
        self.silly = false;
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
            && !self.silly
    }
}
