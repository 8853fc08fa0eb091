//! SCPS-TP: the sender knows, is told, or assumes why a segment was lost, and only congestion makes it slower.
//!
//! CCSDS 714.0-B-2, "Space Communications Protocol Specification (SCPS): Transport Protocol (SCPS-TP)", 2006.
//!
//! | CCSDS 714.0           | here                              | unit     |
//! |-----------------------|-----------------------------------|----------|
//! | default cause of loss of a route | [`Config::default_cause`] | -     |
//! | congestion control: Vegas, Van Jacobson, none | [`Config::congestion`] | - |
//! | rate of the route     | [`Config::rate_bps`]              | bits / s |
//! | corruption experienced | [`Notice::Corruption`], `corrupted_until` | time |
//! | link outage, link restored | [`Notice::Outage`], [`Notice::Restored`], `outage` | - |
//!
//! What is the law of the window and its response to signals stands here. SNACK, the acknowledgement frequency, record
//! boundaries and header compression are matters of the receiver and the wire: see `papers/scps-tp.md`.

use bentpipe_base::{Extension, Instant, Rate};
use serde::{Deserialize, Serialize};

use crate::parameters::not_negative;
use crate::parts::notices::Notices;
use crate::vegas::{self, Vegas};
use crate::{
    Ack, Cause, Classic, CongestionControl, Doubt, Loss, Path, ProbeKind, ReceiverHalf, RtoAction, Rule,
    Sent, Start, Timeout, Wants, Windows,
};

/// Parameters of SCPS-TP.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What a loss is taken for when nobody says: corruption on a link of one's own, congestion elsewhere.
    pub default_cause: DefaultCause,
    /// The law of the window.
    pub congestion: Congestion,
    /// Rate of the route in bits per second; 0 for none.
    #[serde(deserialize_with = "not_negative")]
    pub rate_bps: f64,
    /// Timeouts in a row that may be corruption before the timer backs off.
    pub patience: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            default_cause: DefaultCause::Congestion,
            congestion: Congestion::Vegas,
            rate_bps: 0.0,
            patience: 3,
        }
    }
}

/// What a loss is taken for when nobody says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DefaultCause {
    /// The window stays.
    Corruption,
    /// The window shrinks.
    Congestion,
}

/// The law of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// TCP Vegas.
    Vegas,
    /// Van Jacobson's, RFC 5681.
    VanJacobson,
    /// None: the receive window, and the rate of the route.
    RateOnly,
}

impl Config {
    /// An SCPS-TP sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        match self.congestion {
            Congestion::Vegas => {
                let vegas = Vegas::new(vegas::Config::default());
                Box::new(Classic::new(windows, Scps::new(*self, vegas)))
            }
            Congestion::VanJacobson => Box::new(Classic::new(windows, Scps::new(*self, VanJacobson))),
            Congestion::RateOnly => Box::new(Classic::new(windows, Scps::new(*self, RateOnly))),
        }
    }
}

/// The receiver half of SCPS-TP: passes on what the link says.
pub const RECEIVER: ReceiverHalf = ReceiverHalf { number: 6, build: || Box::new(Notices::default()) };

/// What the link says, in [`Extension::Value`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Segments are lost by corruption.
    Corruption,
    /// The link is down.
    Outage,
    /// The link is up again.
    Restored,
}

impl Notice {
    /// Writes the message.
    pub const fn to_bits(self) -> u64 {
        match self {
            Self::Corruption => 1,
            Self::Outage => 2,
            Self::Restored => 3,
        }
    }

    /// Reads the message.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match bits {
            1 => Some(Self::Corruption),
            2 => Some(Self::Outage),
            3 => Some(Self::Restored),
            _ => None,
        }
    }
}

/// RFC 5681, as a rule states it by stating nothing.
#[derive(Clone, Copy, Debug)]
struct VanJacobson;

impl Rule for VanJacobson {}

/// The window is the receiver's business alone.
#[derive(Clone, Copy, Debug)]
struct RateOnly;

impl Rule for RateOnly {
    fn established(&mut self, windows: &mut Windows, path: &Path) {
        self.observe_window(windows, path);
    }

    fn observe(&mut self, windows: &mut Windows, _ack: &Ack, path: &Path) {
        self.observe_window(windows, path);
    }

    fn slow_start(&mut self, _windows: &mut Windows, _ack: &Ack, _path: &Path) {}

    fn avoid(&mut self, _windows: &mut Windows, _ack: &Ack, _path: &Path) {}

    fn lose(&mut self, _windows: &mut Windows, _loss: &Loss, _path: &Path) {}

    fn time_out(&mut self, _windows: &mut Windows, _timeout: &Timeout, _path: &Path) -> RtoAction {
        RtoAction::Retransmit { back_off: true }
    }

    fn restart(&mut self, _windows: &mut Windows, _restart: f64, _path: &Path) {}

    fn phase(&self, _windows: &Windows) -> &'static str {
        "rate-only"
    }
}

impl RateOnly {
    fn observe_window(self, windows: &mut Windows, path: &Path) {
        windows.cwnd = f64::from(path.receive_window.max(1));
    }
}

/// What SCPS-TP adds to a law.
#[derive(Clone, Debug)]
struct Scps<R> {
    config: Config,
    law: R,
    corrupted_until: Instant,
    /// Windows from before the outage.
    outage: Option<Windows>,
}

impl<R: Rule> Scps<R> {
    fn new(config: Config, law: R) -> Self {
        Self { config, law, corrupted_until: Instant::ZERO, outage: None }
    }

    /// What a loss at this time is taken for.
    fn is_corruption(&self, path: &Path) -> bool {
        path.now < self.corrupted_until || self.config.default_cause == DefaultCause::Corruption
    }

    /// Something came through: the window of before, whatever the silence did to it.
    fn end_outage(&mut self, windows: &mut Windows) {
        if let Some(before) = self.outage.take() {
            *windows = before;
        }
    }
}

impl<R: Rule> Rule for Scps<R> {
    fn wants(&self) -> Wants {
        Wants { feedback: RECEIVER.number, ..self.law.wants() }
    }

    fn established(&mut self, windows: &mut Windows, path: &Path) {
        self.law.established(windows, path);
    }

    fn sent(&mut self, sent: &Sent, path: &Path) {
        self.law.sent(sent, path);
    }

    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        if ack.acked > 0 {
            self.end_outage(windows);
        }
        self.law.observe(windows, ack, path);
    }

    fn slow_start(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.law.slow_start(windows, ack, path);
    }

    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.law.avoid(windows, ack, path);
    }

    fn lose(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        // A router's mark is never corruption.
        if loss.cause == Cause::Mark || !self.is_corruption(path) {
            self.law.lose(windows, loss, path);
        }
    }

    fn time_out(&mut self, windows: &mut Windows, timeout: &Timeout, path: &Path) -> RtoAction {
        if self.outage.is_some() {
            if !timeout.answered {
                return RtoAction::ProbeFirst(ProbeKind::AckPath);
            }
            self.end_outage(windows);
            return RtoAction::Retransmit { back_off: false };
        }
        if self.is_corruption(path) {
            return RtoAction::Retransmit { back_off: timeout.consecutive > self.config.patience };
        }
        self.law.time_out(windows, timeout, path)
    }

    fn doubt(&mut self, windows: &mut Windows, oldest_sent: Instant, path: &Path) -> Doubt {
        let before = *windows;
        let doubt = self.law.doubt(windows, oldest_sent, path);
        if self.is_corruption(path) {
            *windows = before;
        }
        doubt
    }

    fn feedback(&mut self, windows: &mut Windows, fields: &Extension, path: &Path) {
        let Extension::Value(bits) = *fields else { return };
        match Notice::from_bits(bits) {
            Some(Notice::Corruption) => self.corrupted_until = path.now + path.srtt * 2,
            // One segment at a time, whatever the law says, until something comes through.
            Some(Notice::Outage) if self.outage.is_none() => {
                self.outage = Some(*windows);
                windows.cwnd = 1.0;
            }
            Some(Notice::Restored) => self.end_outage(windows),
            Some(Notice::Outage) | None => {}
        }
    }

    fn idle(&mut self, path: &Path) {
        self.law.idle(path);
    }

    fn restart(&mut self, windows: &mut Windows, restart: f64, path: &Path) {
        self.law.restart(windows, restart, path);
    }

    fn pacing_rate(&self, windows: &Windows) -> Option<Rate> {
        match self.config.rate_bps {
            0.0 => self.law.pacing_rate(windows),
            rate => Some(Rate::from_bytes_per_s(rate / 8.0)),
        }
    }

    fn phase(&self, windows: &Windows) -> &'static str {
        if self.outage.is_some() { "outage" } else { self.law.phase(windows) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    const TIMEOUT: Timeout = Timeout { consecutive: 1, outstanding: 40, answered: false };

    fn sender(config: Config) -> Classic<Scps<VanJacobson>> {
        Classic::new(Windows { cwnd: 40.0, ssthresh: 20.0 }, Scps::new(config, VanJacobson))
    }

    fn corruption() -> Config {
        Config { default_cause: DefaultCause::Corruption, ..Config::default() }
    }

    fn told(notice: Notice) -> Extension {
        Extension::Value(notice.to_bits())
    }

    #[test]
    fn corruption_leaves_window_and_timer_alone() {
        let mut sender = sender(corruption());
        sender.on_loss(&fixture::loss(40), &fixture::path());
        assert_eq!((sender.window(), sender.ssthresh()), (40.0, 20.0));
        for (consecutive, back_off) in [(1, false), (2, false), (3, false), (4, true)] {
            let action = sender.on_rto(&Timeout { consecutive, ..TIMEOUT }, &fixture::path());
            assert_eq!(action, RtoAction::Retransmit { back_off }, "timeout {consecutive}");
        }
        assert_eq!(sender.window(), 40.0);
    }

    #[test]
    fn congestion_is_the_law_s_business() {
        let mut sender = sender(Config::default());
        sender.on_loss(&fixture::loss(40), &fixture::path());
        assert_eq!(sender.window(), 20.0);
        assert_eq!(sender.on_rto(&TIMEOUT, &fixture::path()), RtoAction::Retransmit { back_off: true });
        assert_eq!(sender.window(), 1.0);
    }

    #[test]
    fn the_word_of_the_link_holds_for_two_round_trips() {
        for (seconds, window) in [(1.09, 40.0), (1.11, 20.0)] {
            let mut sender = sender(Config::default());
            sender.on_feedback(&told(Notice::Corruption), &fixture::path());
            sender.on_loss(&fixture::loss(40), &fixture::path_at(seconds));
            assert_eq!(sender.window(), window);
        }
    }

    #[test]
    fn a_mark_is_congestion() {
        let mut sender = sender(corruption());
        sender.on_loss(&Loss { cause: Cause::Mark, ..fixture::loss(40) }, &fixture::path());
        assert_eq!(sender.window(), 20.0);
    }

    #[test]
    fn an_outage_is_waited_for() {
        let mut sender = sender(Config::default());
        sender.on_feedback(&told(Notice::Outage), &fixture::path());
        assert_eq!((sender.window(), sender.phase()), (1.0, "outage"));
        for consecutive in 1..5 {
            let action = sender.on_rto(&Timeout { consecutive, ..TIMEOUT }, &fixture::path());
            assert_eq!(action, RtoAction::ProbeFirst(ProbeKind::AckPath));
        }
        let mut by_probe = sender.clone();
        let action = by_probe.on_rto(&Timeout { answered: true, ..TIMEOUT }, &fixture::path());
        assert_eq!((action, by_probe.window()), (RtoAction::Retransmit { back_off: false }, 40.0));
        let mut by_word = sender.clone();
        by_word.on_feedback(&told(Notice::Restored), &fixture::path());
        assert_eq!((by_word.window(), by_word.ssthresh()), (40.0, 20.0));
        sender.on_ack(&fixture::ack(1), &fixture::path());
        assert!(sender.window() >= 40.0);
    }

    #[test]
    fn without_a_law_the_receiver_and_the_rate_decide() {
        let config = Config { congestion: Congestion::RateOnly, rate_bps: 5e6, ..Config::default() };
        let start = Start {
            mss: 1000,
            initial_window: 2.0,
            initial_ssthresh: f64::INFINITY,
            paced: false,
            seed: 1,
            memory: None,
        };
        let mut sender = config.build(&start);
        sender.on_established(&fixture::path());
        sender.on_loss(&fixture::loss(40), &fixture::path());
        sender.on_rto(&TIMEOUT, &fixture::path());
        assert_eq!((sender.window(), sender.pacing_rate()), (64.0, Some(Rate::from_mbps(5))));
    }

    #[test]
    fn vegas_is_the_law_by_default() {
        let law = Vegas::new(vegas::Config::default());
        let mut sender =
            Classic::new(Windows { cwnd: 40.0, ssthresh: 20.0 }, Scps::new(Config::default(), law));
        assert_eq!(sender.wants().feedback, RECEIVER.number);
        assert!(sender.wants().doubts, "Vegas's fine-grained timeout");
        sender.on_loss(&fixture::loss(40), &fixture::path());
        assert!(sender.window() < 40.0);
    }
}
