//! Growth without a queue: fast at the start, more slowly into a path that has become empty later.

use bentpipe_base::Instant;

use super::state::{CALM, HALF, Mode, Round, SMALLEST, Zenith};

impl Zenith {
    /// A queue shows that the path is full: the window becomes what the last round trip carried, and the queue aimed at. Of a window that
    /// doubles, paced at twice its rate, half a round trip carried that.
    pub(super) fn notice_queue(&mut self, now: Instant) {
        let Mode::Grow(share) = self.mode else { return };
        let carried = self.delivered_before.max(self.round.delivered) * if share < 1.0 { 1.0 } else { 2.0 };
        let fits = carried * (1.0 + self.own_s() / self.rtt_s);
        self.window = self.window.min(fits.max(HALF * self.window)).max(SMALLEST);
        self.round = Round::new(now, false);
        self.end_growth();
    }

    /// From now on the law sets the window.
    pub(super) fn end_growth(&mut self) {
        self.mode = Mode::Follow;
        if self.mean_s == 0.0 {
            (self.mean_s, self.crowd.window) = (self.own_s(), self.window);
        }
    }

    /// A round trip without a queue says that there is room: growth begins with a sixteenth of its share, and doubles with the next ones.
    pub(super) fn grow_if_calm(&mut self) {
        let most = self.config.growth;
        if self.queue_s.max(HALF * self.loss_s) < CALM * self.own_s() && self.is_used() {
            self.mode = match self.mode {
                Mode::Follow => Mode::Grow(most / 16.0),
                Mode::Grow(share) if share < most => Mode::Grow((2.0 * share).min(most)),
                mode => mode,
            };
        }
    }
}
