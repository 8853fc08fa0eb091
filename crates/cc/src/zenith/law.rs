//! The law: between drains, a flow moves its window towards the queue that its rate aims at.

use core::f64::consts::E;

use bentpipe_base::Duration;

use super::state::{HALF, Mode, PACE, SMALLEST, Step, Tide, Zenith};
use crate::Path;

/// Steps of the law in a round trip. The smallest queue of a step is what stands, not what a burst makes.
const STEPS: u64 = 4;

impl Zenith {
    /// x, in segments a second.
    pub(super) fn rate(&self) -> f64 {
        if self.rtt_s > 0.0 { self.window / self.rtt_s } else { 0.0 }
    }

    /// q*: the queue that a flow of this rate aims at, that of a segment a second where it is slower.
    pub(super) fn own_s(&self) -> f64 {
        self.config.floor_s + self.config.price / libm::sqrt(self.rate().max(1.0))
    }

    /// Segments a second that leave: while the window doubles, twice what the path needs, so that a queue shows early.
    pub(super) fn pace(&self) -> f64 {
        match (self.mode, self.delay.base()) {
            (Mode::Grow(share), Duration::MAX) if share >= 1.0 => 2.0 * self.rate(),
            (Mode::Grow(share), base) if share >= 1.0 => 2.0 * self.window / base.as_secs_f64(),
            _ => PACE * self.rate(),
        }
    }

    /// A step, if it is time for one.
    pub(super) fn take_step(&mut self, path: &Path) {
        let elapsed = path.now.since(self.step.since);
        if elapsed * STEPS < path.srtt {
            return;
        }
        let step = core::mem::replace(&mut self.step, Step::new(path.now));
        self.queue_s = step.queue_s;
        if self.tide != Tide::None {
            return;
        }
        if self.mean_s > 0.0 {
            let weight = (elapsed.as_secs_f64() / self.config.memory_s).min(1.0);
            self.mean_s += (step.queue_s - self.mean_s) * weight;
            self.loss_s -= self.loss_s * weight;
        }
        match self.mode {
            Mode::Grow(_) => {}
            Mode::Follow => self.follow(step.segments),
            Mode::Contest(contest) => self.compete(&contest, step.segments, path.now),
        }
    }

    /// Follows the mean queue fast, and moves it to the target slowly.
    fn follow(&mut self, segments: f64) {
        // Q: the mean queue, and what a longer buffer would hold of the losses.
        let (own_s, common_s) = (self.own_s(), (self.mean_s + self.loss_s).max(1e-6));
        // Differences between flows decay without oscillation up to g m Q / srtt = 1 / e.
        let urge = self.config.sharing.min(self.rtt_s / (E * self.config.gain * common_s));
        let apart = (2.0 * (own_s - common_s) / common_s).clamp(-1.0, 1.0);
        let wanted_s = self.mean_s + urge * apart * common_s;
        let change = (self.config.gain * (wanted_s - self.queue_s) / self.rtt_s)
            .clamp(-HALF * self.config.growth, self.config.growth);
        if change <= 0.0 || self.is_used() {
            self.window = (self.window + segments * change).max(SMALLEST);
        }
    }
}
