//! Drains: for a round trip the flow lets the queue run empty, which shows the path without it. All flows see the same lowest round trip,
//! and drain T after it together.

use bentpipe_base::Instant;

use super::state::{Crowd, HALF, Mode, Round, SMALLEST, Tide, Zenith};
use crate::Path;

/// Share of the path that stays full in a drain. A queue that keeps more than this share of itself in one is no queue.
const DEPTH: f64 = 0.95;
/// Round trips with too long a queue that ask for a drain, and drains in a row that leave a queue to others.
const DOUBTS: u32 = 3;

impl Zenith {
    /// Begins and ends drains.
    pub(super) fn drains(&mut self, path: &Path) {
        match self.tide {
            Tide::None if self.is_due(path.now) => {
                let window = (DEPTH * self.rate() * (self.rtt_s - self.queue_s)).max(1.0);
                self.tide = Tide::Drain { window, until: path.now + path.srtt };
                (self.crowd.queue_s, self.crowd.rounds) = (self.queue_s, 0);
                self.delay.begin_drain(path.now);
            }
            Tide::Drain { until, .. } if path.now >= until => {
                self.tide = Tide::Refill;
                self.round = Round::new(path.now, true);
            }
            _ => {}
        }
    }

    /// T after the lowest round trip, or when the queue stays too long.
    fn is_due(&self, now: Instant) -> bool {
        let doubtful = matches!(self.mode, Mode::Follow) && self.crowd.rounds >= DOUBTS;
        let late = now.since(self.delay.lowest_at).as_secs_f64() >= self.config.memory_s;
        (doubtful || late) && !matches!(self.mode, Mode::Grow(_))
    }

    /// Once per round trip between drains.
    pub(super) fn watch_queue(&mut self, overflowed: bool) {
        let too_long = HALF * self.queue_s > self.own_s();
        self.crowd.rounds = if too_long { self.crowd.rounds + 1 } else { 0 };
        if !overflowed {
            self.grow_if_calm();
        }
    }

    /// Evaluates a drain. A queue that did not move is part of the path, which has become longer. If most of it stays, others fill it.
    pub(super) fn judge_drain(&mut self, now: Instant) {
        self.tide = Tide::None;
        let (before_s, left_s) = (self.crowd.queue_s, self.delay.left().as_secs_f64());
        let overflowed = core::mem::take(&mut self.crowd.overflowed);
        let contests = matches!(self.mode, Mode::Contest(_));
        if left_s < self.own_s() || (!contests && left_s < HALF * before_s) {
            if contests {
                // The queue is gone, and its part of the window with it.
                self.window = (self.rate() * (self.rtt_s - self.queue_s)).max(SMALLEST);
                self.mode = Mode::Follow;
            }
            self.crowd = Crowd { window: self.window, ..Crowd::default() };
            return;
        }
        let has_yielded = self.window < HALF * self.crowd.window;
        let before_yield = self.window.max(self.crowd.window);
        self.crowd.drains += 1;
        if contests {
            return;
        }
        if !overflowed && !has_yielded && (DEPTH * before_s..before_s / DEPTH).contains(&left_s) {
            self.window = before_yield * self.delay.rebase(now);
            self.crowd = Crowd { window: self.window, ..Crowd::default() };
        } else if self.crowd.drains >= DOUBTS {
            self.begin_contest(before_yield, now);
        }
    }
}
