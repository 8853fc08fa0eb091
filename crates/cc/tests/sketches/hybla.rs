//! Hybla: grow as a connection of 25 ms would (Caini, Firrincieli, 2004).

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::{Ack, Classic, CongestionControl as _, Path, Rule, Windows};

use crate::{close, fixture, live};

const RTT0_S: f64 = 0.025;

#[derive(Clone)]
struct Hybla {
    rho: f64,
    bytes_per_window_s: f64,
}

impl Rule for Hybla {
    fn established(&mut self, windows: &mut Windows, path: &Path) {
        self.rho = (path.srtt_s() / RTT0_S).max(1.0);
        windows.cwnd *= self.rho;
    }

    fn observe(&mut self, _windows: &mut Windows, _ack: &Ack, path: &Path) {
        self.rho = (path.min_rtt.as_secs_f64() / RTT0_S).max(1.0);
        self.bytes_per_window_s = f64::from(path.mss) / path.srtt_s();
    }

    fn slow_start(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        let growth = f64::from(ack.acked) * (libm::exp2(self.rho.min(16.0)) - 1.0);
        windows.cwnd = (windows.cwnd + growth).min(windows.ssthresh);
    }

    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        windows.cwnd += f64::from(ack.acked) * self.rho * self.rho / windows.cwnd;
    }

    fn pacing_rate(&self, windows: &Windows) -> Option<Rate> {
        Some(Rate::from_bytes_per_s(windows.cwnd * self.bytes_per_window_s))
    }
}

fn hybla(cwnd: f64, ssthresh: f64) -> Classic<Hybla> {
    Classic::new(Windows { cwnd, ssthresh }, Hybla { rho: 1.0, bytes_per_window_s: 0.0 })
}

#[test]
fn at_50_ms_rho_is_two() {
    let path = Path { min_rtt: Duration::from_millis(50), ..fixture::path() };
    let mut start = hybla(2.0, 1000.0);
    start.on_ack(&fixture::ack(1), &path);
    assert_eq!(start.window(), 5.0);
    let mut later = hybla(10.0, 2.0);
    for _ in 0..10 {
        later.on_ack(&fixture::ack(1), &path);
    }
    assert!(close(later.window(), 13.4613));
    live(&mut hybla(1.0, 64.0));
}
