//! Vegas: between one and three segments in the queue (Brakmo, Peterson, 1995).

use bentpipe_base::{Duration, Instant};
use bentpipe_cc::{Ack, CongestionControl, Doubt, Loss, Path, RtoAction, Timeout, Wants};

use crate::{close, fixture, live};

struct Vegas {
    cwnd: f64,
    base_rtt_s: f64,
    epoch_ends: u64,
    rtt_sum_s: f64,
    rtts: u32,
    grows: bool,
    fine_timeout: Duration,
    /// ACKs after a loss that may still uncover another.
    worried: u32,
}

impl Vegas {
    fn new(cwnd: f64) -> Self {
        let fine_timeout = Duration::MAX;
        Self {
            cwnd,
            base_rtt_s: 0.5,
            epoch_ends: 0,
            rtt_sum_s: 0.0,
            rtts: 0,
            grows: false,
            fine_timeout,
            worried: 0,
        }
    }

    fn end_epoch(&mut self, path: &Path) {
        let sent = path.snd_nxt.saturating_sub(self.epoch_ends) as f64 / f64::from(path.mss);
        let rtt = self.rtt_sum_s / f64::from(self.rtts.max(1));
        self.base_rtt_s = self.base_rtt_s.min(rtt);
        let expected = f64::from(path.outstanding) / self.base_rtt_s;
        let delta = libm::floor((expected - sent / rtt) * self.base_rtt_s + 0.5);
        self.grows = delta < 1.0;
        if delta > 3.0 {
            self.cwnd = (self.cwnd - 1.0).max(2.0);
        }
        (self.epoch_ends, self.rtt_sum_s, self.rtts) = (path.snd_nxt, 0.0, 0);
    }
}

impl CongestionControl for Vegas {
    fn window(&self) -> f64 {
        self.cwnd
    }

    fn wants(&self) -> Wants {
        Wants { doubts: true, sent: true, ..Wants::default() }
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        if let Some(rtt) = ack.rtt {
            self.rtt_sum_s += rtt.as_secs_f64();
            self.rtts += 1;
        }
        self.fine_timeout = (path.srtt + path.rttvar * 2).mul_f64(17.0 / 16.0);
        if self.rtts > 0 && path.snd_una >= self.epoch_ends {
            self.end_epoch(path);
        }
        if self.grows {
            self.cwnd += f64::from(ack.acked) / self.cwnd;
        }
    }

    fn on_loss(&mut self, loss: &Loss, _path: &Path) {
        self.worried = loss.outstanding.min(2);
        self.cwnd = (self.cwnd * 0.75).max(2.0);
    }

    fn on_rto(&mut self, _timeout: &Timeout, _path: &Path) -> RtoAction {
        self.cwnd = 2.0;
        RtoAction::Retransmit { back_off: true }
    }

    fn doubt(&mut self, oldest_sent: Instant, path: &Path) -> Doubt {
        if self.worried == 0 || path.now.since(oldest_sent) < self.fine_timeout {
            return Doubt::None;
        }
        self.worried -= 1;
        Doubt::Oldest
    }
}

#[test]
fn an_epoch_compares_expected_and_actual_rate() {
    for (rtt_ms, grows, after) in
        [(500, true, 100.01), (503, false, 100.0), (510, false, 100.0), (520, false, 99.0)]
    {
        let mut vegas = Vegas::new(100.0);
        let mss = u64::from(fixture::MSS);
        vegas.epoch_ends = 1 + 100 * mss;
        let path =
            Path { snd_una: 1 + 100 * mss, snd_nxt: 1 + 200 * mss, outstanding: 100, ..fixture::path() };
        vegas.on_ack(&Ack { rtt: Some(Duration::from_millis(rtt_ms)), ..fixture::ack(1) }, &path);
        assert_eq!(vegas.grows, grows, "{rtt_ms} ms");
        assert!(close(vegas.window(), after), "{rtt_ms} ms");
    }
}

#[test]
fn the_fine_timeout_retransmits_before_the_third_duplicate() {
    let mut vegas = Vegas::new(40.0);
    let path =
        Path { srtt: Duration::from_millis(500), rttvar: Duration::from_millis(20), ..fixture::path_at(1.0) };
    vegas.on_ack(&fixture::ack(1), &path);
    assert_eq!(vegas.fine_timeout, Duration::from_micros(573_750));
    vegas.on_loss(&fixture::loss(40), &path);
    assert_eq!(vegas.window(), 30.0);
    assert_eq!(vegas.doubt(path.now - Duration::from_millis(573), &path), Doubt::None);
    assert_eq!(vegas.doubt(path.now - Duration::from_millis(574), &path), Doubt::Oldest);
    live(&mut vegas);
}
