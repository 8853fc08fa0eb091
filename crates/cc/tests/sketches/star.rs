//! TCP-STAR: add the measured bandwidth to Reno's window, and ask before believing a timeout (Obata, Ishida, Takeuchi,
//! Hanasaki, 2006).

use bentpipe_base::{Duration, Instant};
use bentpipe_cc::{Ack, CongestionControl, Loss, Path, ProbeKind, RtoAction, Timeout, Windows};

use crate::{close, fixture, live};

struct Star {
    reno: Windows,
    cwnd: f64,
    bandwidth: f64,
    last_sample: f64,
    last_ack: Instant,
    /// Acknowledgement error notification: the state to return to if the timeout was none.
    asked: Option<(Windows, f64)>,
}

impl Star {
    fn measured(&self, path: &Path) -> f64 {
        self.bandwidth * path.min_rtt.as_secs_f64() / f64::from(path.mss)
    }

    fn measure(&mut self, bytes: u64, path: &Path) {
        let span = path.now.since(self.last_ack).as_secs_f64();
        if span > 0.0 && bytes > 0 {
            let sample = bytes as f64 / span;
            self.bandwidth = 0.9 * self.bandwidth + 0.1 * (sample + self.last_sample) / 2.0;
            self.last_sample = sample;
            self.last_ack = path.now;
        }
    }
}

impl CongestionControl for Star {
    fn window(&self) -> f64 {
        self.cwnd
    }

    fn on_established(&mut self, path: &Path) {
        self.last_ack = path.now;
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.measure(ack.delivered_bytes, path);
        if ack.acked == 0 {
            return;
        }
        if let Some((reno, cwnd)) = self.asked.take() {
            (self.reno, self.cwnd) = (reno, cwnd); // ACKs were lost or late, data was not
            return;
        }
        self.reno.cwnd += if self.reno.in_slow_start() { 1.0 } else { 1.0 / self.reno.cwnd };
        self.cwnd = self.reno.cwnd + self.measured(path); // equation (4)
    }

    fn on_loss(&mut self, _loss: &Loss, path: &Path) {
        let in_slow_start = self.cwnd < self.reno.ssthresh;
        self.reno.ssthresh = self.measured(path).max(2.0);
        if !in_slow_start {
            self.cwnd = self.reno.ssthresh;
        }
        self.reno.cwnd = (self.reno.cwnd / 2.0).max(1.0);
    }

    fn on_rto(&mut self, _timeout: &Timeout, path: &Path) -> RtoAction {
        if self.asked.is_none() {
            self.asked = Some((self.reno, self.cwnd));
            return RtoAction::ProbeFirst(ProbeKind::Newest);
        }
        self.asked = None;
        self.reno = Windows { cwnd: 1.0, ssthresh: self.measured(path).max(2.0) };
        self.cwnd = 1.0;
        RtoAction::Retransmit { back_off: true }
    }
}

fn star(cwnd: f64) -> Star {
    let reno = Windows { cwnd: 100.0, ssthresh: 200.0 };
    Star { reno, cwnd, bandwidth: 1e6, last_sample: 1e6, last_ack: Instant::ZERO, asked: None }
}

fn path() -> Path {
    Path { min_rtt: Duration::from_millis(500), mss: 1448, ..fixture::path() }
}

#[test]
fn a_loss_sets_the_window_to_the_bandwidth_only_above_the_threshold() {
    for (cwnd, after) in [(100.0, 100.0), (432.0, 345.30)] {
        let mut star = star(cwnd);
        star.on_loss(&fixture::loss(100), &path());
        assert!(close(star.window(), after) && close(star.reno.ssthresh, 345.30));
        live(&mut star);
    }
}

#[test]
fn a_timeout_is_believed_when_the_question_says_so() {
    let timeout = |consecutive| Timeout { consecutive, outstanding: 432, answered: false };
    let mut late = star(432.0);
    assert_eq!(late.on_rto(&timeout(1), &path()), RtoAction::ProbeFirst(ProbeKind::Newest));
    late.on_ack(&fixture::ack(432), &path());
    assert_eq!(late.window(), 432.0);
    let mut lost = star(432.0);
    lost.on_rto(&timeout(1), &path());
    assert_eq!(lost.on_rto(&timeout(2), &path()), RtoAction::Retransmit { back_off: true });
    assert_eq!(lost.window(), 1.0);
}
