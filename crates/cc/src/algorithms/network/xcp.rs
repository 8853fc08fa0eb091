//! XCP: routers set the rate change of each sender.
//!
//! D. Katabi, M. Handley, C. Rohrs, "Congestion Control for High Bandwidth-Delay Product Networks", ACM SIGCOMM 2002. The header
//! holds throughputs instead of windows, as in draft-falk-xcp-spec and ns-2 (`xcp-end-sys.cc`).
//!
//! | paper, draft       | here                            | unit      |
//! |--------------------|---------------------------------|-----------|
//! | `cwnd`             | `Windows::cwnd`                 | segments  |
//! | `s`                | [`Path::mss`]                   | bytes     |
//! | `H_rtt`, RTT       | `Extension::Xcp::rtt_s`         | s         |
//! | X                  | `Extension::Xcp::spacing_s`     | s         |
//! | `H_feedback`, Delta_Throughput, Reverse_Feedback | `Extension::Xcp::delta_bytes_per_s` | bytes / s |
//! | `rev_fb`           | `Receiver::sum`                 | bytes / s |
//!
//! The routers are implemented with the simulated network. `papers/xcp.md` lists the deviations.

use alloc::boxed::Box;

use bentpipe_base::{Extension, Instant, Segment};
use serde::{Deserialize, Serialize};

use crate::parts::exchange::{Exchange, Exchanging};
use crate::{
    CongestionControl, Entry, Family, Path, ReceiverHalf, Reflector, Rule, SENDER_ONLY, Sent, Start, Windows,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "xcp",
    title: "routers tell each sender how much faster or slower to send",
    paper: "Katabi, Handley, Rohrs, ACM SIGCOMM",
    year: 2002,
    needs_receiver: true,
    receiver: Some(RECEIVER),
    needs_routers: true,
    family: Family::Network,
    advice: "For paths with an XCP router at every queue. Elsewhere, as here, it equals Reno with SACK.",
    ..SENDER_ONLY
};

/// Parameters of XCP.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Behaviour if no router answers the request.
    pub unrouted: Unrouted,
}

/// Meaning of a request that returns unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unrouted {
    /// No router on the path knows XCP: behave like Reno.
    #[default]
    Reno,
    /// Every router allows everything: use the whole receive window.
    Obey,
}

impl Config {
    /// An XCP sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Exchanging::new(windows, Xcp { header: Header { unrouted: self.unrouted, told: false } }))
    }
}

/// The receiver half of XCP and P-XCP.
pub const RECEIVER: ReceiverHalf = ReceiverHalf { number: 2, build: || Box::new(Receiver::default()) };

/// A request for unlimited throughput, in bytes per second.
const REQUEST: f32 = 1e24;

/// Threshold in bytes per second: no router reduced a grant above it.
const UNTOUCHED: f32 = 0.5 * REQUEST;

/// The sender's side of the congestion header, which P-XCP shares.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Header {
    pub unrouted: Unrouted,
    /// True after a router has answered: routers then set the window.
    pub told: bool,
}

impl Header {
    /// Returns the header of a departing segment: RTT, X and the request for unlimited throughput.
    pub fn request(windows: &Windows, limited: bool, path: &Path) -> Extension {
        let window = windows.cwnd.min(f64::from(path.receive_window)).max(1.0);
        let rtt_s = path.srtt_s();
        let spacing_s = (rtt_s / window) as f32;
        // Before the first sample, routers must ignore the header. The draft subtracts the present throughput, which is below the
        // precision of such a large number.
        let delta_bytes_per_s = if path.srtt.is_zero() { 0.0 } else { REQUEST };
        Extension::Xcp { rtt_s: rtt_s as f32, spacing_s, delta_bytes_per_s, limited }
    }

    /// Returns the granted change in segments of window: `cwnd = max(cwnd + H_feedback, s)` (section 3.2).
    pub fn grant(&mut self, fields: &Extension, path: &Path) -> Option<f64> {
        let Extension::Xcp { delta_bytes_per_s, .. } = *fields else { return None };
        let untouched = delta_bytes_per_s >= UNTOUCHED;
        if delta_bytes_per_s.is_nan() || untouched && self.unrouted == Unrouted::Reno {
            return None;
        }
        self.told = true;
        Some(f64::from(delta_bytes_per_s) * path.srtt_s() / f64::from(path.mss.max(1)))
    }
}

/// Changes the window by the grant: at least one segment, and no growth beyond the receive window.
pub(crate) fn change(windows: &mut Windows, segments: f64, path: &Path) {
    let limit = f64::from(path.receive_window).max(windows.cwnd);
    windows.cwnd = (windows.cwnd + segments).clamp(1.0, limit);
}

/// XCP's own window law: Reno's before the first router answers, then none.
#[derive(Clone, Debug)]
struct Xcp {
    header: Header,
}

impl Rule for Xcp {
    fn grows(&self) -> bool {
        !self.header.told
    }

    fn phase(&self, windows: &Windows) -> &'static str {
        if self.header.told { "told-by-routers" } else { windows.phase() }
    }
}

impl Exchange for Xcp {
    const RECEIVER: ReceiverHalf = RECEIVER;

    fn stamp(&mut self, windows: &Windows, _sent: &Sent, path: &Path) -> Extension {
        Header::request(windows, false, path)
    }

    fn on_fields(&mut self, windows: &mut Windows, fields: &Extension, path: &Path) {
        if let Some(segments) = self.header.grant(fields, path) {
            change(windows, segments, path);
        }
    }
}

/// The receiver. It sums the granted requests since the last ACK and returns them, so that delayed ACKs lose nothing.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Receiver {
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
        Extension::Xcp { rtt_s: 0.0, spacing_s: 0.0, delta_bytes_per_s, limited: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Feedback, Timeout, fixture};

    fn told(cwnd: f64) -> Exchanging<Xcp> {
        let header = Header { unrouted: Unrouted::Reno, told: true };
        Exchanging::new(Windows { cwnd, ssthresh: f64::INFINITY }, Xcp { header })
    }

    fn fields(delta_bytes_per_s: f32) -> Extension {
        Extension::Xcp { rtt_s: 0.0, spacing_s: 0.0, delta_bytes_per_s, limited: false }
    }

    fn wide() -> Path {
        Path { receive_window: 1000, ..fixture::path() }
    }

    /// Packets of 1000 bytes over 0.55 s on a link of 1.25 MB/s. Columns: the router's feedback per packet in three situations,
    /// and the resulting throughput change of each flow.
    #[test]
    fn what_routers_give_per_packet_adds_up_to_a_rate() {
        for (packets, share, change) in [
            (330, 151.515, 50_000.0), // spare capacity: equal gain for both
            (220, 227.273, 50_000.0),
            (385, -19.4805, -7_500.0), // no spare capacity: moved from the large flow to the small
            (302, 24.793, 7_487.6),    // half a packet short of 7500
            (385, -85.124, -32_772.7), // a queue: both lose, the larger flow more
            (357, -77.686, -27_733.9), // half a packet less than -27,772.7
        ] {
            let mut receiver = Receiver::default();
            let mut sender = told(f64::from(packets));
            let segment = Segment { len: 1000, extension: fields(share), ..Segment::default() };
            for i in 1..=packets {
                receiver.on_data(Instant::ZERO, &segment, false);
                if i % 2 == 0 || i == packets {
                    sender.on_feedback(&receiver.reply(Instant::ZERO), &wide());
                    sender.on_ack(&fixture::ack(2), &wide());
                }
            }
            let rate = (sender.window() - f64::from(packets)) * 1000.0 / 0.55;
            assert!((rate - change).abs() < 0.001 * change.abs(), "{rate} for {change}");
        }
    }

    #[test]
    fn the_header_carries_rtt_and_spacing() {
        let mut sender = told(110.0);
        let sent = Sent { seq: 1, len: 1000, retransmission: false };
        let expected =
            Extension::Xcp { rtt_s: 0.55, spacing_s: 0.005, delta_bytes_per_s: REQUEST, limited: false };
        assert_eq!(sender.stamp(&sent, &wide()), expected);
        let narrow = Path { receive_window: 55, ..fixture::path() };
        let Extension::Xcp { spacing_s, .. } = sender.stamp(&sent, &narrow) else { panic!() };
        assert_eq!(spacing_s, 0.01, "the receive window is the smaller one");
        let unknown = Path { srtt: bentpipe_base::Duration::ZERO, ..wide() };
        let Extension::Xcp { rtt_s, delta_bytes_per_s, .. } = sender.stamp(&sent, &unknown) else { panic!() };
        assert_eq!((rtt_s, delta_bytes_per_s), (0.0, 0.0));
    }

    #[test]
    fn the_window_stays_between_one_segment_and_the_receive_window() {
        let mut sender = told(30.0);
        sender.on_feedback(&fields(-1e9), &fixture::path());
        assert_eq!(sender.window(), 1.0);
        sender.on_feedback(&fields(1e9), &fixture::path());
        assert_eq!(sender.window(), 64.0);
        sender.on_feedback(&fields(f32::NAN), &fixture::path());
        assert_eq!(sender.window(), 64.0);
    }

    #[test]
    fn a_loss_still_halves_and_feedback_goes_on() {
        let mut sender = told(40.0);
        sender.on_loss(&fixture::loss(40), &fixture::path());
        sender.on_feedback(&fields(10_000.0), &fixture::path());
        assert_eq!(sender.window(), 25.5);
        sender.on_rto(&Timeout { consecutive: 1, outstanding: 25, answered: false }, &fixture::path());
        assert_eq!(sender.window(), 1.0);
        sender.on_ack(&fixture::ack(1), &fixture::path());
        assert_eq!(sender.window(), 1.0, "only routers open it");
    }

    #[test]
    fn a_request_that_comes_back_untouched_met_no_router() {
        for (unrouted, window) in [(Unrouted::Reno, 3.0), (Unrouted::Obey, 64.0)] {
            let header = Header { unrouted, told: false };
            let windows = Windows { cwnd: 2.0, ssthresh: f64::INFINITY };
            let mut sender = Exchanging::new(windows, Xcp { header });
            sender.on_feedback(&fields(REQUEST), &fixture::path());
            sender.on_ack(&fixture::ack(1), &fixture::path());
            assert_eq!(sender.window(), window, "{unrouted:?}");
        }
    }
}
