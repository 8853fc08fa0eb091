//! Drains: for a round trip the flow lets the queue run empty, which shows the path without it. All flows see the same lowest round trip,
//! and drain T after it together.

use bentpipe_base::{Duration, Instant};

use super::state::{Before, CALM, Crowd, Drains, Mode, Phase, Round, SMALLEST, Zenith};
use crate::Path;

/// Share of the path that stays full in a drain, and its length in round trips.
const DEPTH: f64 = 0.95;
const RTTS: f64 = 1.1;
/// Least number of round trips between two drains.
const LEAST_ROUNDS: u32 = 8;
/// A round trip that moves by less than this share of the queue contains none: the path has become longer.
const FLAT: f64 = 0.05;
/// A drain that leaves more targets than this meets others that do not drain.
const FOREIGN: f64 = 4.0;
/// No Zenith flow aims at a longer queue than one of the smallest window: more than this number of its targets is foreign, too.
const LONGEST_OWN: f64 = 2.0;
/// A flow that has yielded half of its window meets others if three drains in a row leave this share of the queue.
const FILLS: f64 = 0.75;
const FILLED_DRAINS: u32 = 3;
/// A queue is foreign once it has been there for this number of T: flows that have just begun drain within T.
const FIRST_DRAINS: f64 = 1.5;

impl Zenith {
    /// Begins and ends drains.
    pub(super) fn drain(&mut self, path: &Path) {
        match self.phase {
            Phase::None if self.is_due(path.now) => {
                let (standing_s, base_s) = (self.delay.standing_s(), self.delay.base_s());
                // Where much is lost, less arrives than leaves, and what leaves would keep the queue full.
                let rate = self.rate().min(self.delivery_rate);
                let window = (DEPTH * (standing_s - self.delay.queue_s()) * rate).max(1.0);
                self.phase =
                    Phase::Drain { window, until: path.now + Duration::from_secs_f64(RTTS * standing_s) };
                let (lowest, lowest_at, rounds) = (Duration::MAX, path.now, 0);
                self.drains = Drains { lowest, lowest_at, standing_s, base_s, rounds, ..self.drains };
            }
            Phase::Drain { until, .. } if path.now >= until => {
                self.phase = Phase::Refill;
                self.round = Round::new(path.now, Before::Drained, self.delay.clock);
            }
            _ => {}
        }
    }

    /// A drain is due T after the lowest round trip, or when the queue stays too long.
    fn is_due(&self, now: Instant) -> bool {
        let contests = match self.mode {
            Mode::Measure(_) | Mode::Double { .. } => return false,
            Mode::Follow => false,
            Mode::Contest(_) => true,
        };
        let doubtful = !contests && self.crowd.rounds >= 2 && self.drains.rounds >= LEAST_ROUNDS;
        doubtful || now.since(self.drains.lowest_at).as_secs_f64() >= self.config.memory_s
    }

    /// Counts round trips with too long a queue.
    pub(super) fn watch_queue(&mut self, queue_s: f64) {
        if queue_s <= 1.5 * self.own_target_s() + 0.001 {
            self.crowd = Crowd::default();
        } else {
            if self.crowd.rounds == 0 {
                self.crowd.window = self.crowd.window.max(self.window);
            }
            self.crowd.rounds += 1;
        }
        self.drains.rounds += 1;
    }

    /// Evaluates a drain. A queue that did not move is part of the path, which has become longer, unless it overflows.
    pub(super) fn judge_drain(&mut self, now: Instant) {
        self.phase = Phase::None;
        let contests = matches!(self.mode, Mode::Contest(_));
        let crowd = self.crowd;
        self.crowd = Crowd { overflowed: crowd.overflowed && !contests, ..Crowd::default() };
        let Drains { standing_s, base_s, lowest, emptied, empty_at, .. } = self.drains;
        let (own_s, queue_s, lowest_s) = (self.own_target_s(), standing_s - base_s, lowest.as_secs_f64());
        let before_yield = self.window.max(crowd.window);
        // The drain of a flow with the smallest window moves no queue.
        let tells = self.window > SMALLEST && !crowd.overflowed;
        let flat = queue_s > own_s && tells && (standing_s - lowest_s).abs() < FLAT * queue_s;
        let left_s = self.delay.queue_s().min(lowest_s - base_s);
        let empties = left_s < CALM * own_s;
        self.drains.filled = if !empties && left_s >= FILLS * queue_s { self.drains.filled + 1 } else { 0 };
        let stays = self.drains.filled >= FILLED_DRAINS;
        let longest_own_s = LONGEST_OWN * self.config.target_s(SMALLEST / base_s);
        let yielded = !contests && (stays || left_s > longest_own_s) && before_yield < 0.5 * emptied;
        if (!flat && left_s > longest_own_s.min(FOREIGN * own_s)) || yielded {
            if contests {
                return;
            }
            if stays
                || self.drains.met_others
                || now.since(empty_at).as_secs_f64() >= FIRST_DRAINS * self.config.memory_s
            {
                self.drains.met_others = true;
                self.begin_contest(before_yield, now);
            } else {
                self.crowd.window = before_yield;
            }
            return;
        }
        if contests {
            self.mode = Mode::Follow;
            self.delay.hold(false);
            self.fit(now, self.delivery_rate);
        }
        if flat {
            self.delay.rebase(now, lowest);
            self.window = before_yield * lowest_s / base_s;
        } else if empties {
            (self.drains.empty_at, self.drains.emptied) = (now, self.window);
        }
    }
}
