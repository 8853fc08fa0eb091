//! The start: the first flight measures the rate of the path, and the window doubles up to it.

use bentpipe_base::{Duration, Instant};

use super::state::{Mode, Zenith};

impl Zenith {
    /// An ACK of the start. True while the start, and not the law, sets the window.
    pub(super) fn begin(&mut self, rtt: Option<Duration>, segments: f64, now: Instant) -> bool {
        let overflowed = self.is_excessive(&self.round);
        match &mut self.mode {
            Mode::Measure(chirp) => {
                // Losses of the first flight say that others began at the same time, and nothing of the rate.
                let found = if overflowed {
                    Some(f64::INFINITY)
                } else {
                    rtt.and_then(|rtt| chirp.on_ack(now, rtt, segments))
                };
                if let Some(rate) = found {
                    self.double(rate, now);
                }
            }
            Mode::Double { threshold } => {
                if self.window >= *threshold || self.delay.queue_s() > 0.5 * self.own_target_s() + 0.001 {
                    self.settle();
                } else if self.is_used() {
                    self.window += segments;
                }
            }
            _ => return false,
        }
        true
    }

    /// The first flight is over. The second fills half of an idle path; where the rate is not known, the window doubles until a queue shows.
    fn double(&mut self, rate: f64, now: Instant) {
        let threshold = rate * self.delay.base_s();
        if threshold.is_finite() {
            self.window = self.window.max(0.5 * threshold);
        }
        self.mode = Mode::Double { threshold };
        self.cut_round(now);
    }

    /// From now on the law sets the window.
    pub(super) fn settle(&mut self) {
        self.mode = Mode::Follow;
        (self.drains.emptied, self.drains.empty_at) = (self.window, self.last_ack);
        self.calm_rounds = 0;
        self.mean_s = self.own_target_s();
    }
}
