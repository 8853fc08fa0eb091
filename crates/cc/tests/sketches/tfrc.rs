//! A sender that follows TCP's throughput equation (RFC 5348), with the loss-event rate taken at the sender.

use bentpipe_base::{Instant, Rate};
use bentpipe_cc::{Ack, CongestionControl, Loss, Path, RtoAction, Timeout};

use crate::{close, live};

const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// The rate rules; the window only keeps a dead path from being flooded.
const NO_WINDOW: f64 = 1e6;

struct Tfrc {
    bytes_per_s: f64,
    /// Segments between loss events, the open interval first.
    intervals: [f64; 9],
    no_feedback: Instant,
}

/// Section 3.1.
fn equation(segment: f64, rtt_s: f64, p: f64) -> f64 {
    let timeouts = 4.0 * rtt_s * 3.0 * libm::sqrt(3.0 * p / 8.0) * p * (1.0 + 32.0 * p * p);
    segment / (rtt_s * libm::sqrt(2.0 * p / 3.0) + timeouts)
}

/// Section 5.4.
fn loss_event_rate(intervals: &[f64; 9]) -> f64 {
    let mean = |intervals: &[f64]| intervals.iter().zip(WEIGHTS).map(|(i, w)| i * w).sum::<f64>();
    WEIGHTS.iter().sum::<f64>() / mean(&intervals[..8]).max(mean(&intervals[1..]))
}

impl CongestionControl for Tfrc {
    fn window(&self) -> f64 {
        NO_WINDOW
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bytes_per_s(self.bytes_per_s))
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.intervals[0] += f64::from(ack.acked);
        self.no_feedback = path.now + path.srtt * 4;
        let segment = f64::from(path.mss);
        let allowed = equation(segment, path.srtt_s(), loss_event_rate(&self.intervals));
        let received = ack.rate.map_or(self.bytes_per_s, |sample| sample.rate().bytes_per_s());
        self.bytes_per_s = allowed.min(2.0 * received).max(segment / 64.0);
    }

    fn on_loss(&mut self, _loss: &Loss, _path: &Path) {
        self.intervals.rotate_right(1);
        self.intervals[0] = 1.0;
    }

    fn on_rto(&mut self, _timeout: &Timeout, _path: &Path) -> RtoAction {
        RtoAction::Retransmit { back_off: false }
    }

    fn wake_at(&self) -> Instant {
        self.no_feedback
    }

    fn on_wake(&mut self, path: &Path) {
        self.bytes_per_s = (self.bytes_per_s / 2.0).max(f64::from(path.mss) / 64.0);
        self.no_feedback = path.now + path.srtt * 4;
    }
}

#[test]
fn the_throughput_equation() {
    for (rtt_s, p, expected) in [(0.1, 0.01, 112_332.2), (0.55, 1e-3, 69_789.8), (0.55, 0.1, 3_218.4)] {
        assert!(close(equation(1000.0, rtt_s, p), expected));
    }
}

#[test]
fn the_loss_event_rate() {
    let mut intervals = [5.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0];
    assert!(close(loss_event_rate(&intervals), 0.021_428_6));
    intervals[0] = 500.0;
    assert!(close(loss_event_rate(&intervals), 0.008_450_7));
    live(&mut Tfrc { bytes_per_s: 1e4, intervals, no_feedback: Instant::FAR_FUTURE });
}
