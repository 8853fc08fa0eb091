//! Algorithm with a constant window, for measurements.

use bentpipe_cc::{Ack, BackOff, CongestionControl, Loss, Path, Timeout};

/// Segments of 1000 bytes that fill 1 Gbit/s for 550 ms.
pub const LARGE: u32 = 69_000;

/// Algorithm whose window, in segments, never changes.
pub struct Steady(pub u32);

impl CongestionControl for Steady {
    fn window(&self) -> f64 {
        f64::from(self.0)
    }

    fn on_ack(&mut self, _: &Ack, _: &Path) {}

    fn on_loss(&mut self, _: &Loss, _: &Path) {}

    fn on_rto(&mut self, _: &Timeout, _: &Path) -> BackOff {
        BackOff::Double
    }
}
