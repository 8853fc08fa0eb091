//! XCP: routers say how the window is to change (Katabi, Handley, Rohrs, 2002).

use bentpipe_base::{Extension, Instant, Segment};
use bentpipe_cc::{Ack, CongestionControl, Loss, Path, Reflector, RtoAction, Sent, Timeout, Wants};

use crate::{close, fixture, live};

struct Xcp {
    cwnd: f64,
}

impl CongestionControl for Xcp {
    fn window(&self) -> f64 {
        self.cwnd
    }

    fn wants(&self) -> Wants {
        Wants { feedback: 2, ..Wants::default() }
    }

    fn stamp(&mut self, _sent: &Sent, path: &Path) -> Extension {
        let rtt_s = path.srtt_s() as f32;
        let spacing_s = rtt_s / self.cwnd as f32;
        Extension::Xcp { rtt_s, spacing_s, delta_bytes_per_s: f32::MAX }
    }

    fn on_feedback(&mut self, fields: &Extension, path: &Path) {
        if let Extension::Xcp { delta_bytes_per_s, .. } = fields {
            let segments = f64::from(*delta_bytes_per_s) * path.srtt_s() / f64::from(path.mss);
            self.cwnd = (self.cwnd + segments).min(f64::from(path.receive_window)).max(1.0);
        }
    }

    fn on_ack(&mut self, _ack: &Ack, _path: &Path) {}

    fn on_loss(&mut self, _loss: &Loss, _path: &Path) {
        self.cwnd = (self.cwnd / 2.0).max(1.0);
    }

    fn on_rto(&mut self, _timeout: &Timeout, _path: &Path) -> RtoAction {
        self.cwnd = 1.0;
        RtoAction::Retransmit { back_off: true }
    }
}

/// Sums what came since the last ACK, so that delayed ACKs lose nothing.
#[derive(Default)]
struct Receiver {
    sum: f32,
}

impl Reflector for Receiver {
    fn on_data(&mut self, _now: Instant, segment: &Segment, _duplicate: bool) {
        if let Extension::Xcp { delta_bytes_per_s, .. } = segment.extension {
            self.sum += delta_bytes_per_s;
        }
    }

    fn reply(&mut self, _now: Instant) -> Extension {
        let delta_bytes_per_s = core::mem::take(&mut self.sum);
        Extension::Xcp { rtt_s: 0.0, spacing_s: 0.0, delta_bytes_per_s }
    }
}

#[test]
fn equal_gain_for_two_flows() {
    // 600 and 400 kB/s in packets of 1000 bytes over 0.55 s: the router gives each flow 50 kB/s.
    for (packets, share) in [(330, 151.515_15), (220, 227.272_73)] {
        let mut receiver = Receiver::default();
        let extension = Extension::Xcp { rtt_s: 0.55, spacing_s: 0.0, delta_bytes_per_s: share };
        let segment = Segment { len: 1000, extension, ..Segment::default() };
        let mut xcp = Xcp { cwnd: f64::from(packets) };
        let path = Path { receive_window: 1000, ..fixture::path() };
        for i in 1..=packets {
            receiver.on_data(Instant::ZERO, &segment, false);
            if i % 2 == 0 {
                xcp.on_feedback(&receiver.reply(Instant::ZERO), &path);
            }
        }
        assert!(close(xcp.window() - f64::from(packets), 27.5), "{}", xcp.window());
        live(&mut xcp);
    }
}
