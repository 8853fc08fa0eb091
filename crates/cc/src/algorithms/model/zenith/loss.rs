//! Losses: what the path loses without a queue is noise. More than that is a queue that overflows.

use super::state::{CALM, LONGEST, Mode, Round, SMALLEST, Zenith};

/// Segments over which the noise is learned.
const NOISE_MEMORY: f64 = 1000.0;
/// No path is believed to lose more than this share without a queue. A binary fraction: the kernel's integers hold it exactly.
const MOST_NOISE: f64 = 0.125;
/// Losses that the noise could have caused and did not cause are saved up to this number of standard deviations.
const SAVED: f64 = 9.0;
/// This share of a loss decides nothing: the kernel's integers round otherwise.
const TIE: f64 = 1.0 / 1024.0;
/// Losses stand for a queue where the longest queue of the last seconds is shorter than this number of targets.
const DEEP: f64 = 1.5;
/// A segment saw a long queue if it is at least this share of the longest one of the last seconds.
const LONG: f64 = 0.5;

impl Zenith {
    /// Where a round trip saw less than a quarter of the target, its losses are noise.
    pub(super) fn learn_noise(&mut self, round: &Round) {
        if round.longest_s < CALM * self.own_target_s() {
            let sent = round.delivered + round.lost;
            self.noise = ((NOISE_MEMORY * self.noise + round.lost) / (NOISE_MEMORY + sent)).min(MOST_NOISE);
        }
    }

    /// True if more was lost in a round trip than noise explains: half as much again as is known, the parameter, and three standard deviations.
    pub(super) fn is_excessive(&self, round: &Round) -> bool {
        let sent = (round.delivered + round.lost).max(self.window);
        let chance = 3.0 * libm::sqrt(sent * self.noise.max(0.01));
        round.lost > sent * (self.config.noise + 1.5 * self.noise) + chance
    }

    /// True if a segment of this round trip saw a queue, one of those that are long here.
    pub(super) fn saw_queue(&self, round: &Round) -> bool {
        round.longest_s >= (LONG * self.longest_s()).max(CALM * self.own_target_s())
    }

    fn longest_s(&self) -> f64 {
        self.longest.get().unwrap_or(0.0)
    }

    /// A segment that overflows a queue is the rest of that queue. Half of it leaves the window, and it counts in Q as the queue that a
    /// larger buffer would hold. Where no queue was seen, or delays show a deep buffer, only losses of more than an eighth count.
    pub(super) fn charge(&mut self, round: &Round, took_s: f64) {
        let own_s = self.own_target_s();
        let losses_tell = round.longest_s >= CALM * own_s && self.longest_s() < DEEP * own_s;
        let noise = if losses_tell { self.noise } else { MOST_NOISE };
        let sent = round.delivered + round.lost;
        let explained = self.allowance.min(SAVED * libm::sqrt(self.window * noise)) + noise * sent;
        let excess = round.lost - explained;
        self.allowance = (-excess).max(0.0);
        if excess <= TIE || !matches!(self.mode, Mode::Follow) {
            return;
        }
        if losses_tell {
            self.end_speed();
        }
        let stands_for_s = (excess / sent * self.loss_worth_s()).min(LONGEST * own_s);
        self.window = (self.window - self.config.gain * excess.min(0.5 * self.window)).max(SMALLEST);
        let weight = (took_s / self.config.memory_s).min(1.0);
        self.mean_s = (self.mean_s + stands_for_s * weight).min(LONGEST * own_s);
        self.overflow_s = (self.overflow_s + stands_for_s * weight).min(self.mean_s);
    }

    /// Returns the queueing delay in seconds that corresponds to the loss of every segment: a round trip, plus K per segment per second in proportion to the share of losses in Q.
    /// A full queue drops equal numbers of segments from slow and fast flows. So the number of losses, unlike their share, has the same meaning for both.
    pub(super) fn loss_worth_s(&self) -> f64 {
        let share = (self.overflow_s / self.mean_s.max(1e-6)).min(1.0);
        self.delay.standing_s() + self.config.loss_s2 * self.rate() * share
    }
}
