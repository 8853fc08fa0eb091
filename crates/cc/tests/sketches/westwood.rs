//! Westwood+: after a loss, the window that was measured (Grieco, Mascolo, 2004).

use bentpipe_base::{Duration, Instant};
use bentpipe_cc::{Ack, Classic, CongestionControl as _, Loss, Path, Rule, Timeout, Windows};

use crate::{close, fixture, live};

#[derive(Clone)]
struct Westwood {
    bandwidth: f64,
    bytes: u64,
    since: Instant,
}

impl Westwood {
    fn estimate(&self, path: &Path) -> f64 {
        (self.bandwidth * path.min_rtt.as_secs_f64() / f64::from(path.mss)).max(2.0)
    }
}

impl Rule for Westwood {
    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.bytes += ack.delivered_bytes;
        let span = path.now.since(self.since);
        if span >= path.srtt {
            self.bandwidth = 0.9 * self.bandwidth + 0.1 * self.bytes as f64 / span.as_secs_f64();
            self.bytes = 0;
            self.since = path.now;
        }
        if ack.ends_episode {
            windows.cwnd = windows.cwnd.min(windows.ssthresh);
        }
    }

    fn reduce(&mut self, _windows: &Windows, _loss: &Loss, path: &Path) -> f64 {
        self.estimate(path)
    }

    fn reduce_at_timeout(&mut self, _windows: &Windows, _timeout: &Timeout, path: &Path) -> f64 {
        self.estimate(path)
    }
}

#[test]
fn a_loss_leaves_bandwidth_times_delay() {
    let path = Path { min_rtt: Duration::from_millis(500), mss: 1448, ..fixture::path() };
    for (cwnd, after) in [(432.0, 345.30), (200.0, 200.0)] {
        let rule = Westwood { bandwidth: 1e6, bytes: 0, since: Instant::ZERO };
        let mut sender = Classic::new(Windows { cwnd, ssthresh: 100.0 }, rule);
        sender.on_loss(&fixture::loss(432), &path);
        assert!(close(sender.window(), after));
        assert!(close(sender.ssthresh(), 345.30));
        live(&mut sender);
    }
}
