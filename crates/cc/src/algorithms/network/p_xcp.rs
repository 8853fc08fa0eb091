//! P-XCP: XCP for satellites. Routers report congestion, so a loss does not reduce the window. A sender that cannot use its
//! window reports it.
//!
//! K. Zhou, K. L. Yeung, V. O. K. Li, "P-XCP: A Transport Layer Protocol for Satellite IP Networks", IEEE GLOBECOM 2004.
//!
//! | XCP, abstract        | here                          | unit     |
//! |----------------------|-------------------------------|----------|
//! | `cwnd`               | `Windows::cwnd`               | segments |
//! | "rate-limited connection" | `Use::limited`, `Extension::Xcp::limited` | - |
//! | "ratio of rate-limited connections" | the routers' business | -   |
//!
//! Header and receiver half are those of [`crate::xcp`]. Only the abstract was available: `papers/p-xcp.md` lists the
//! reconstructed parts.

use alloc::boxed::Box;

use bentpipe_base::Extension;
use serde::{Deserialize, Serialize};

use super::xcp::{Header, change};
pub use super::xcp::{RECEIVER, Unrouted};
use crate::parameters::fraction;
use crate::parts::exchange::{Exchange, Exchanging};
use crate::rounds::Round;
use crate::{
    Ack, Cause, CongestionControl, Entry, Family, Loss, Path, ReceiverHalf, Rule, SENDER_ONLY, Sent, Start,
    Windows,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "p-xcp",
    title: "XCP that keeps its rate over losses, and says when it could not use more",
    paper: "Zhou, Yeung, Li, IEEE GLOBECOM",
    year: 2004,
    needs_receiver: true,
    receiver: Some(RECEIVER),
    needs_routers: true,
    family: Family::Network,
    advice: "For paths with an XCP router at every queue and links with errors. Elsewhere, as here, it equals Reno with SACK.",
    ..SENDER_ONLY
};

/// Parameters of P-XCP.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Behaviour if no router answers the request.
    pub unrouted: Unrouted,
    /// Minimum fraction of the window used in the last round trip; a sender below it counts as rate-limited.
    #[serde(deserialize_with = "fraction")]
    pub limited_below: f64,
    /// A rate-limited sender ignores window increases, which are meant for the other flows.
    pub limited_ignores_gains: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { unrouted: Unrouted::Reno, limited_below: 0.9, limited_ignores_gains: true }
    }
}

impl Config {
    /// A P-XCP sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Exchanging::new(windows, PXcp::new(*self)))
    }
}

/// Fraction of the window that the sender used.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Use {
    /// Largest fraction used in this round trip.
    now: f64,
    /// Largest fraction used in the previous round trip.
    last: f64,
}

impl Use {
    /// True if the application or the receiver limits the sender.
    fn limited(&self, windows: &Windows, below: f64, path: &Path) -> bool {
        self.now.max(self.last) < below || f64::from(path.receive_window) < windows.cwnd
    }
}

/// Differences between P-XCP's sender and XCP's.
#[derive(Clone, Debug)]
struct PXcp {
    config: Config,
    header: Header,
    round: Round,
    used: Use,
}

impl PXcp {
    fn new(config: Config) -> Self {
        let header = Header { unrouted: config.unrouted, told: false };
        // A window counts as fully used until a round trip shows otherwise.
        Self { config, header, round: Round::default(), used: Use { now: 1.0, last: 1.0 } }
    }

    fn limited(&self, windows: &Windows, path: &Path) -> bool {
        self.used.limited(windows, self.config.limited_below, path)
    }
}

impl Rule for PXcp {
    fn observe(&mut self, _windows: &mut Windows, _ack: &Ack, path: &Path) {
        if self.round.ends(path) {
            self.used = Use { now: 0.0, last: self.used.now };
        }
    }

    fn grows(&self) -> bool {
        !self.header.told
    }

    /// "Maintain the transmission rate of an XCP sender when triple duplicate ACK is detected." A timeout is believed.
    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, _path: &Path) {
        if !self.header.told || loss.cause == Cause::Timeout {
            windows.halve(loss);
        }
    }

    fn phase(&self, windows: &Windows) -> &'static str {
        if self.header.told { "told-by-routers" } else { windows.phase() }
    }
}

impl Exchange for PXcp {
    const RECEIVER: ReceiverHalf = RECEIVER;

    fn stamp(&mut self, windows: &Windows, _sent: &Sent, path: &Path) -> Extension {
        let usable = windows.cwnd.min(f64::from(path.receive_window)).max(1.0);
        self.used.now = self.used.now.max(f64::from(path.outstanding) / usable);
        Header::request(windows, self.limited(windows, path), path)
    }

    fn on_fields(&mut self, windows: &mut Windows, fields: &Extension, path: &Path) {
        let Some(segments) = self.header.grant(fields, path) else { return };
        if segments < 0.0 || !self.config.limited_ignores_gains || !self.limited(windows, path) {
            change(windows, segments, path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Feedback, Timeout, fixture};

    fn told(cwnd: f64) -> Exchanging<PXcp> {
        let mut rule = PXcp::new(Config::default());
        rule.header.told = true;
        Exchanging::new(Windows { cwnd, ssthresh: f64::INFINITY }, rule)
    }

    fn fields(delta_bytes_per_s: f32) -> Extension {
        Extension::Xcp { rtt_s: 0.0, spacing_s: 0.0, delta_bytes_per_s, limited: false }
    }

    /// Runs a round trip with at most `outstanding` segments outstanding.
    fn round(sender: &mut Exchanging<PXcp>, outstanding: u32, from: u64) -> bool {
        let path =
            Path { snd_una: from, snd_nxt: from + 999, outstanding, receive_window: 1000, ..fixture::path() };
        sender.on_ack(&fixture::ack(1), &path);
        let sent = Sent { seq: from, len: 1000, retransmission: false };
        let Extension::Xcp { limited, .. } = sender.stamp(&sent, &path) else { panic!("no header") };
        limited
    }

    /// One packet in ten is lost: XCP would halve its window every round trip.
    #[test]
    fn losses_leave_the_window_alone() {
        let mut sender = told(100.0);
        for _ in 0..10 {
            sender.on_loss(&fixture::loss(100), &fixture::path());
            sender.on_ack(&fixture::ack(1), &fixture::path());
        }
        assert_eq!(sender.window(), 100.0);
        sender.on_feedback(&fields(-10_000.0), &fixture::path());
        assert_eq!(sender.window(), 94.5, "routers may lower it");
    }

    #[test]
    fn a_timeout_is_believed() {
        let mut sender = told(100.0);
        sender.on_rto(&Timeout { consecutive: 1, outstanding: 100, answered: false }, &fixture::path());
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (1.0, 50.0));
    }

    #[test]
    fn without_routers_it_is_reno() {
        let rule = PXcp::new(Config::default());
        let mut sender = Exchanging::new(Windows { cwnd: 20.0, ssthresh: f64::INFINITY }, rule);
        sender.on_loss(&fixture::loss(20), &fixture::path());
        assert_eq!(sender.window(), 10.0);
    }

    #[test]
    fn a_sender_that_fills_nine_tenths_is_not_limited() {
        for (outstanding, limited) in [(90, false), (89, true)] {
            let mut sender = told(100.0);
            round(&mut sender, outstanding, 1000);
            round(&mut sender, outstanding, 2000);
            assert_eq!(round(&mut sender, outstanding, 3000), limited);
        }
    }

    #[test]
    fn a_small_receive_window_limits() {
        let mut sender = told(100.0);
        let sent = Sent { seq: 1, len: 1000, retransmission: false };
        let Extension::Xcp { limited, .. } = sender.stamp(&sent, &fixture::path()) else { panic!() };
        assert!(limited, "64 segments");
    }

    /// Two of five flows are unlimited. Each flow is offered 50 kB/s of the surplus of 250 kB/s, and only those two accept.
    #[test]
    fn a_limited_sender_leaves_its_share_to_the_others() {
        let mut gains = 0.0;
        for outstanding in [100, 100, 10, 10, 10] {
            let mut sender = told(100.0);
            for i in 1..4 {
                round(&mut sender, outstanding, i * 1000);
            }
            sender.on_feedback(&fields(50_000.0), &Path { receive_window: 1000, ..fixture::path() });
            gains += (sender.window() - 100.0) * 1000.0 / 0.55;
        }
        assert!((gains - 100_000.0).abs() < 1.0, "{gains}");
    }
}
