//! Losses: what a path loses without a queue is noise; more than that is a queue that overflows.

use bentpipe_base::Instant;

use super::state::{CALM, HALF, Mode, Round, SMALLEST, Zenith};

/// Segments over which the share of noise is learned, and whose noise may come in one group.
pub(super) const NOISE_MEMORY: f64 = 1000.0;
/// So many segments decide nothing: the kernel's integers round otherwise.
pub(super) const TIE: f64 = 1.0 / 1024.0;
/// No path is believed to lose more than this share without a queue.
const MOST_NOISE: f64 = 0.125;

impl Zenith {
    /// Compares the losses of a round trip with the noise. True if something else than noise was lost in a queue.
    pub(super) fn judge_losses(&mut self, round: &Round, now: Instant) -> bool {
        let (sent, lost) = (round.delivered + round.lost, round.lost);
        // A queue that overflows is as long as queues become here.
        let forgets = (self.rtt_s / self.config.memory_s).min(1.0);
        self.longest_s = round.longest_s.max(self.longest_s * (1.0 - forgets));
        let saw_queue = round.longest_s >= (HALF * self.longest_s).max(CALM * self.own_s());
        // A buffer may be too short to show a queue.
        let explained = self.saved + sent * if saw_queue { self.noise } else { MOST_NOISE };
        if round.longest_s < CALM * self.own_s() {
            self.noise = ((NOISE_MEMORY * self.noise + lost) / (NOISE_MEMORY + sent)).min(MOST_NOISE);
        }
        self.saved = (explained - lost).clamp(0.0, NOISE_MEMORY * self.noise);
        let excess = lost - explained;
        if excess <= TIE {
            return false;
        }
        self.crowd.overflowed = true;
        if let Mode::Contest(_) = self.mode {
            self.reduce_as_cubic(now);
        } else {
            // A segment that overflows a queue is the rest of that queue: half of it leaves the window, and what it stands for counts in Q.
            self.window = (self.window - self.config.gain * excess).max(SMALLEST);
            if saw_queue {
                self.loss_s += forgets * (self.config.loss_s * excess / sent).min(self.own_s() / CALM);
            }
        }
        saw_queue
    }
}
