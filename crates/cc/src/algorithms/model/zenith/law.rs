//! The law: between drains, a flow moves its window towards the queue that its rate aims at.

use core::f64::consts::E;

use bentpipe_base::{Duration, Instant};

use super::state::{Before, CALM, LONGEST, Mode, Phase, Round, SMALLEST, Zenith};
use crate::Path;

/// Most steps of the law in a smoothed round trip. A step of this length delays the loop of 1.25 round trips by 2.5 percent.
const STEPS: u64 = 16;
/// Largest change of the window for a delivered segment.
const STEP: f64 = 0.5;
/// Largest growth, as a multiple of what the law gives: a quarter of the window in a round trip.
const FASTEST: f64 = 32.0;

impl Zenith {
    /// x, in segments a second.
    pub(super) fn rate(&self) -> f64 {
        let standing_s = self.delay.standing_s();
        if standing_s > 0.0 { self.window / standing_s } else { 0.0 }
    }

    /// q* of this flow.
    pub(super) fn own_target_s(&self) -> f64 {
        self.config.target_s(self.rate())
    }

    /// True if the window was used in this round trip or in the one before, but for a quarter and a segment: only then may it grow.
    /// Where ACKs come many at once, it is full only at the first of them. Whole segments leave, and those of a slow flow in pairs.
    pub(super) fn is_used(&self) -> bool {
        self.round.in_flight.max(self.in_flight_before) + 1.0 >= 0.75 * self.window
    }

    /// Changes the window by `g x (q_t - q)` segments a round trip, spread over its steps.
    pub(super) fn steer(&mut self, segments: f64, since: Duration, path: &Path) {
        self.pending = (self.pending.0 + segments, self.pending.1 + since);
        if self.pending.1 * STEPS < path.srtt {
            return;
        }
        let (segments, since) = core::mem::take(&mut self.pending);
        if let Mode::Contest(contest) = self.mode {
            self.compete(&contest, segments, path.now);
            return;
        }
        let (queue_s, own_s) = (self.delay.queue_s(), self.own_target_s());
        let weight = (since.as_secs_f64() / self.config.memory_s).min(1.0);
        self.overflow_s -= self.overflow_s * weight;
        self.mean_s += (queue_s.min(LONGEST * own_s) - self.mean_s) * weight;
        self.mean_s = self.mean_s.min(LONGEST * own_s);
        if self.speed > 1.0 && queue_s > CALM * own_s {
            // The window was about to outgrow the path. Where ACKs come many at once, the larger of two rates is that of the path.
            self.fit(path.now, self.delivery_rate.max(self.delivery_rate_before));
            return;
        }
        // Differences between flows decay without oscillation up to g m Q / s = 1 / e.
        let mean_s = self.mean_s.max(1e-6);
        let urge = self.config.sharing.min(self.delay.standing_s() / (E * self.config.gain * mean_s));
        let apart = (2.0 * (own_s - mean_s) / mean_s).clamp(-1.0, 1.0);
        let wanted_s = mean_s * (1.0 + urge * apart);
        let mut step = self.config.gain * (wanted_s - queue_s) / self.loss_worth_s();
        // Two round trips without a queue say that there is room, even if Q remembers one.
        if self.speed > 1.0 {
            step = (self.speed * step).max(self.speed / 128.0);
        }
        if step <= 0.0 || self.is_used() {
            self.window = (self.window + segments * step.clamp(-STEP, STEP)).max(SMALLEST);
        }
    }

    /// Counts round trips without a queue: from the second on the growth doubles.
    pub(super) fn count_calm(&mut self, before: Before, queue_s: f64, now: Instant) {
        let is_empty = queue_s < CALM * self.own_target_s();
        if is_empty {
            self.drains.empty_at = now;
        }
        // After a silence the path fills first.
        if !is_empty || !self.is_used() || before == Before::Cut {
            self.calm_rounds = 0;
            return;
        }
        self.calm_rounds += 1;
        if self.calm_rounds >= 2 && matches!(self.mode, Mode::Follow) {
            self.speed = (2.0 * self.speed).min(FASTEST);
        }
    }

    /// Ends fast growth until two more round trips show no queue.
    pub(super) fn end_speed(&mut self) {
        (self.speed, self.calm_rounds) = (1.0, 0);
    }

    /// Reduces the window to the measured rate times the round trip with a queue at its target. A second call changes nothing.
    /// The rate belongs to the mean delay of its round trip (Little's law). The minimum delay is far below the mean if ACKs wait on the way back.
    pub(super) fn fit(&mut self, now: Instant, rate: f64) {
        let path_s = (self.rtt_s - self.delay.queue_s()).max(0.0);
        self.window = self.window.min(rate * (path_s + self.own_target_s())).max(SMALLEST);
        if matches!(self.mode, Mode::Measure(_) | Mode::Double { .. }) {
            self.settle();
        }
        self.end_speed();
        self.cut_round(now);
    }

    /// Discards the rate, the losses and the drain of segments sent before now.
    pub(super) fn cut_round(&mut self, now: Instant) {
        self.phase = Phase::None;
        self.round = Round::new(now, Before::Cut, self.delay.clock);
    }
}
