//! SCPS-TP: the sender distinguishes the causes of loss by signals or by a default. Only congestion reduces its window.
//!
//! CCSDS 714.0-B-2, "Space Communications Protocol Specification (SCPS): Transport Protocol (SCPS-TP)", 2006.
//!
//! | CCSDS 714.0           | here                              | unit     |
//! |-----------------------|-----------------------------------|----------|
//! | default cause of loss of a route | [`Config::default_cause`] | -     |
//! | congestion control: Vegas, Van Jacobson, none | [`Config::congestion`] | - |
//! | rate of the route     | [`Config::rate_bps`]              | bits / s |
//! | corruption experienced | [`Notice::Corruption`], [`Notice::Spoilt`], `corrupted_until` | time |
//! | link outage, link restored | [`Notice::Outage`], [`Notice::Restored`], `Route` | - |
//! | persist probe in an outage | [`Config::ask_every_s`]          | s        |
//!
//! This file holds the window law and its reactions to signals. SNACK and the acknowledgement frequency are engine features for
//! all algorithms: see `papers/scps-tp.md`.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Extension, Instant, Notice, Rate};
use serde::{Deserialize, Serialize};

use crate::algorithms::delay::vegas::{self, Vegas};
use crate::parameters::{not_negative, positive};
use crate::parts::notices::Notices;
use crate::{
    Accounting, Ack, BackOff, Cause, Classic, CongestionControl, ConnectionEvent, Detector, EarlyRetransmit,
    Entry, Family, Feedback, Loss, Path, Priority, ReceiverHalf, Requirements, Rule, SENDER_ONLY, Sent,
    Sleeper, Spacing, Start, Timeout, Wake, Windows, forward,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "scps-tp",
    title: "Vegas, Van Jacobson or a rate, where only congestion slows down: the link says what is corruption or outage",
    paper: "CCSDS 714.0-B-2",
    year: 2006,
    needs_receiver: true,
    receiver: Some(RECEIVER),
    in_kernel: true,
    family: Family::Network,
    advice: "For space links that report corruption and outages, and for narrow reverse paths, with SNACK and two ACKs per round trip. Its window is that of Vegas.",
    ..SENDER_ONLY
};

/// Parameters of SCPS-TP.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Assumed cause of a loss without a signal: corruption on a private link, congestion elsewhere.
    pub default_cause: DefaultCause,
    /// Congestion control: Vegas, Van Jacobson's or none.
    pub congestion: Congestion,
    /// Rate of the route in bits per second; 0 for none.
    #[serde(deserialize_with = "not_negative")]
    pub rate_bps: f64,
    /// Consecutive timeouts that may be corruption before the timer backs off.
    pub patience: u32,
    /// Seconds between two requests for an ACK during an outage.
    #[serde(deserialize_with = "positive")]
    pub ask_every_s: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            default_cause: DefaultCause::Congestion,
            congestion: Congestion::Vegas,
            rate_bps: 0.0,
            patience: 3,
            ask_every_s: 5.0,
        }
    }
}

/// Assumed cause of a loss without a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DefaultCause {
    /// Corruption: the window is kept.
    Corruption,
    /// Congestion: the window shrinks.
    Congestion,
}

/// Congestion control of SCPS-TP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// Congestion control of TCP Vegas.
    Vegas,
    /// Van Jacobson's, RFC 5681.
    VanJacobson,
    /// None: only the receive window and the route's rate limit the sender.
    RateOnly,
}

impl Config {
    /// An SCPS-TP sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        match self.congestion {
            Congestion::Vegas => {
                let vegas = Vegas::new(vegas::Config::default());
                Box::new(Sender::new(windows, Scps::new(*self, vegas)))
            }
            Congestion::VanJacobson => Box::new(Sender::new(windows, Scps::new(*self, VanJacobson))),
            Congestion::RateOnly => Box::new(Sender::new(windows, Scps::new(*self, RateOnly))),
        }
    }
}

/// The receiver half of SCPS-TP, which relays the link's notices.
pub const RECEIVER: ReceiverHalf = ReceiverHalf { number: 6, build: || Box::new(Notices::default()) };

/// A window law for SCPS-TP.
trait Law: Rule {
    /// False if only the receiver limits the window: timeouts and idle times then do not change it.
    const HAS_WINDOW: bool = true;

    /// True if the law detects losses by its own rules, and needs to know what is sent.
    const DETECTS: bool = false;

    fn on_sent(&mut self, sent: &Sent) {
        let _ = sent;
    }

    /// See [`Detector::early_retransmit`].
    fn early_retransmit(
        &mut self,
        windows: &mut Windows,
        oldest_sent: Instant,
        path: &Path,
    ) -> EarlyRetransmit {
        let _ = (windows, oldest_sent, path);
        EarlyRetransmit::None
    }
}

impl Law for Vegas {
    const DETECTS: bool = true;

    fn on_sent(&mut self, sent: &Sent) {
        self.on_sent(sent);
    }

    fn early_retransmit(
        &mut self,
        windows: &mut Windows,
        oldest_sent: Instant,
        path: &Path,
    ) -> EarlyRetransmit {
        self.early_retransmit(windows, oldest_sent, path)
    }
}

/// RFC 5681: a rule with all defaults.
#[derive(Clone, Copy, Debug)]
struct VanJacobson;

impl Rule for VanJacobson {}

impl Law for VanJacobson {}

/// The receiver alone limits the window.
#[derive(Clone, Copy, Debug)]
struct RateOnly;

impl Rule for RateOnly {
    fn on_event(&mut self, windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        if event == ConnectionEvent::Established {
            self.observe_window(windows, path);
        }
    }

    fn observe(&mut self, windows: &mut Windows, _ack: &Ack, path: &Path) {
        self.observe_window(windows, path);
    }

    fn slow_start(&mut self, _windows: &mut Windows, _ack: &Ack, _path: &Path) {}

    fn avoid(&mut self, _windows: &mut Windows, _ack: &Ack, _path: &Path) {}

    fn reduce(&mut self, _windows: &mut Windows, _loss: &Loss, _path: &Path) {}

    fn phase(&self, _windows: &Windows) -> &'static str {
        "rate-only"
    }
}

impl Law for RateOnly {
    const HAS_WINDOW: bool = false;
}

impl RateOnly {
    fn observe_window(self, windows: &mut Windows, path: &Path) {
        windows.cwnd = f64::from(path.receive_window.max(1));
    }
}

/// State of the link.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Route {
    /// The link works.
    Open,
    /// The link is out: only requests for an ACK leave.
    Out { ask_at: Instant, asked: bool },
    /// The link is restored. Data sent before `sent_before` may be lost; the window is paced until it is acknowledged.
    Back { sent_before: u64, pace: Rate },
}

/// SCPS-TP's additions to a window law.
#[derive(Clone, Debug)]
struct Scps<R> {
    config: Config,
    law: R,
    corrupted_until: Instant,
    route: Route,
}

impl<R: Law> Scps<R> {
    fn new(config: Config, law: R) -> Self {
        Self { config, law, corrupted_until: Instant::ZERO, route: Route::Open }
    }

    /// True if a loss at this time counts as corruption.
    fn is_corruption(&self, path: &Path) -> bool {
        self.route != Route::Open
            || path.now < self.corrupted_until
            || self.config.default_cause == DefaultCause::Corruption
    }

    fn go_out(&mut self, path: &Path) {
        if !matches!(self.route, Route::Out { .. }) {
            let ask_at = path.now + self.ask_every();
            self.route = Route::Out { ask_at, asked: false };
        }
    }

    /// Restores sending after an outage. The whole window may leave at once, so it is paced over a round trip.
    fn come_back(&mut self, windows: &Windows, path: &Path) {
        if matches!(self.route, Route::Out { .. }) {
            let srtt_s = path.srtt.max(Duration::from_micros(1)).as_secs_f64();
            let pace = Rate::from_bytes_per_s(windows.cwnd * f64::from(path.mss) / srtt_s);
            self.route = Route::Back { sent_before: path.snd_nxt, pace };
        }
    }

    fn ask_every(&self) -> Duration {
        Duration::from_secs_f64(self.config.ask_every_s)
    }
}

impl<R: Law> Rule for Scps<R> {
    fn on_event(&mut self, windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        self.law.on_event(windows, event, path);
    }

    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        match self.route {
            // ACKs of data received before the outage may still arrive; an ACK after a request answers it.
            Route::Out { asked: true, .. } => self.come_back(windows, path),
            Route::Back { sent_before, .. } if path.snd_una >= sent_before => self.route = Route::Open,
            _ => {}
        }
        self.law.observe(windows, ack, path);
    }

    fn slow_start(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.law.slow_start(windows, ack, path);
    }

    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.law.avoid(windows, ack, path);
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        // A router's mark is always congestion.
        if loss.cause == Cause::Mark || !self.is_corruption(path) {
            self.law.reduce(windows, loss, path);
        }
    }

    /// Keeps the law's measurements and the link's state, which losses do not invalidate.
    fn undo(&mut self, before: Self) {
        self.law.undo(before.law);
    }

    fn phase(&self, windows: &Windows) -> &'static str {
        if self.is_out() { "outage" } else { self.law.phase(windows) }
    }
}

impl<R: Law> Scps<R> {
    fn is_out(&self) -> bool {
        matches!(self.route, Route::Out { .. })
    }

    /// Handles a notice of the link.
    fn hear(&mut self, windows: &mut Windows, fields: &Extension, path: &Path) {
        let Extension::Notice(notice) = *fields else { return };
        match notice {
            Notice::Corruption | Notice::Spoilt(_) => self.corrupted_until = path.now + path.srtt * 2,
            Notice::Outage => self.go_out(path),
            Notice::Restored => self.come_back(windows, path),
        }
    }
}

/// A window law that sees only congestion, at the rate of the route.
#[derive(Clone, Debug)]
struct Sender<R> {
    classic: Classic<Scps<R>>,
}

impl<R: Law> Sender<R> {
    fn new(windows: Windows, rule: Scps<R>) -> Self {
        Self { classic: Classic::new(windows, rule) }
    }
}

impl<R: Law> CongestionControl for Sender<R> {
    forward!(classic: window, on_ack, on_loss, on_undo, adopt, snapshot);

    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> BackOff {
        if self.classic.rule.is_corruption(path) {
            let patience = self.classic.rule.config.patience;
            return self.classic.time_out(timeout, |_, _| BackOff::if_true(timeout.consecutive > patience));
        }
        if R::HAS_WINDOW {
            self.classic.on_rto(timeout, path)
        } else {
            self.classic.time_out(timeout, |_, _| BackOff::Double)
        }
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        if R::HAS_WINDOW || !matches!(event, ConnectionEvent::Idle { .. }) {
            self.classic.on_event(event, path);
        }
    }

    fn spacing(&self) -> Spacing {
        let Scps { config, route, .. } = &self.classic.rule;
        match (config.rate_bps, route) {
            (_, Route::Out { .. }) => Spacing::Withheld,
            (0.0, Route::Back { pace, .. }) => Spacing::at(Some(*pace)),
            (0.0, Route::Open) => Spacing::None,
            (rate, _) => Spacing::at(Some(Rate::from_bytes_per_s(rate / 8.0))),
        }
    }

    fn on_sent(&mut self, sent: &Sent, _path: &Path) -> Priority {
        self.classic.rule.law.on_sent(sent);
        Priority::Normal
    }

    fn requirements(&self) -> Requirements {
        Requirements {
            accounting: Accounting::Own,
            sent: R::DETECTS,
            withholds: true,
            ..Requirements::default()
        }
    }

    fn feedback(&mut self) -> Option<&mut dyn Feedback> {
        Some(self)
    }

    fn detector(&mut self) -> Option<&mut dyn Detector> {
        if R::DETECTS { Some(self) } else { None }
    }

    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        Some(self)
    }
}

impl<R: Law> Feedback for Sender<R> {
    fn receiver(&self) -> u8 {
        RECEIVER.number
    }

    fn on_feedback(&mut self, fields: &Extension, path: &Path) {
        self.classic.rule.hear(&mut self.classic.windows, fields, path);
    }
}

impl<R: Law> Detector for Sender<R> {
    /// Losses by corruption do not reduce the window.
    fn early_retransmit(&mut self, oldest_sent: Instant, path: &Path) -> EarlyRetransmit {
        let Classic { windows, rule, .. } = &mut self.classic;
        if rule.is_out() {
            return EarlyRetransmit::None;
        }
        let before = *windows;
        let doubt = rule.law.early_retransmit(windows, oldest_sent, path);
        if rule.is_corruption(path) {
            *windows = before;
        }
        doubt
    }
}

impl<R: Law> Sleeper for Sender<R> {
    fn wake_at(&self) -> Instant {
        match self.classic.rule.route {
            Route::Out { ask_at, .. } => ask_at,
            Route::Open | Route::Back { .. } => Instant::FAR_FUTURE,
        }
    }

    fn on_wake(&mut self, path: &Path) -> Wake {
        let every = self.classic.rule.ask_every();
        match &mut self.classic.rule.route {
            Route::Out { ask_at, asked } => {
                *ask_at = path.now + every;
                *asked = true;
                Wake::AskForAck
            }
            Route::Open | Route::Back { .. } => Wake::Quiet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Phase, fixture};

    const TIMEOUT: Timeout = Timeout { consecutive: 1, outstanding: 40, answered: false };

    fn sender(config: Config) -> Sender<VanJacobson> {
        Sender::new(Windows { cwnd: 40.0, ssthresh: 20.0 }, Scps::new(config, VanJacobson))
    }

    fn corruption() -> Config {
        Config { default_cause: DefaultCause::Corruption, ..Config::default() }
    }

    fn told(notice: Notice) -> Extension {
        Extension::Notice(notice)
    }

    #[test]
    fn corruption_leaves_window_and_timer_alone() {
        let mut sender = sender(corruption());
        sender.on_loss(&fixture::loss(40), &fixture::path());
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (40.0, 20.0));
        for (consecutive, back_off) in [(1, false), (2, false), (3, false), (4, true)] {
            let action = sender.on_rto(&Timeout { consecutive, ..TIMEOUT }, &fixture::path());
            assert_eq!(action, BackOff::if_true(back_off), "timeout {consecutive}");
        }
        assert_eq!(sender.window(), 40.0);
    }

    #[test]
    fn congestion_is_the_law_s_business() {
        let mut sender = sender(Config::default());
        sender.on_loss(&fixture::loss(40), &fixture::path());
        assert_eq!(sender.window(), 20.0);
        assert_eq!(sender.on_rto(&TIMEOUT, &fixture::path()), BackOff::Double);
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

    /// In an outage only a request for an ACK leaves, every five seconds; the window is kept.
    fn out() -> Sender<VanJacobson> {
        let mut sender = sender(Config::default());
        sender.on_feedback(&told(Notice::Outage), &fixture::path());
        assert_eq!(
            (sender.window(), sender.snapshot().phase, (sender.spacing() == Spacing::Withheld)),
            (40.0, "outage", true)
        );
        sender
    }

    #[test]
    fn an_outage_is_waited_for_and_asked_about() {
        let mut sender = out();
        for at in [5.0, 10.0, 15.0] {
            let path = fixture::path_at(at);
            assert_eq!(sender.wake_at(), path.now);
            assert_eq!(sender.on_wake(&path), Wake::AskForAck);
        }
        assert!((sender.spacing() == Spacing::Withheld));
    }

    #[test]
    fn the_word_of_the_link_or_an_answer_ends_an_outage() {
        let mut by_word = out();
        by_word.on_feedback(&told(Notice::Restored), &fixture::path_at(2.0));
        let mut by_answer = out();
        by_answer.on_ack(&fixture::ack(1), &fixture::path_at(0.5));
        assert!((by_answer.spacing() == Spacing::Withheld), "an ACK of what arrived before");
        by_answer.on_wake(&fixture::path_at(5.0));
        by_answer.on_ack(&fixture::ack(0), &fixture::path_at(5.6));
        for sender in [&mut by_word, &mut by_answer] {
            assert!(!(sender.spacing() == Spacing::Withheld));
            assert!(sender.window() >= 40.0);
            // The window over 550 ms: 40 segments of 1000 bytes, and the growth by the ACK.
            let segments = sender.spacing().rate().map_or(0.0, Rate::bytes_per_s) * 0.55 / 1000.0;
            assert!((39.99..40.03).contains(&segments), "{segments}");
        }
    }

    #[test]
    fn what_was_sent_before_an_outage_is_not_lost_to_congestion() {
        let mut sender = out();
        sender.on_feedback(&told(Notice::Restored), &fixture::path_at(2.0));
        let sent = fixture::path().snd_nxt;
        let at = |snd_una| Path { snd_una, ..fixture::path_at(9.0) };
        sender.on_loss(&fixture::loss(40), &at(sent - 1));
        let action = sender.on_rto(&TIMEOUT, &at(sent - 1));
        assert_eq!((sender.window(), action), (40.0, BackOff::Keep));
        sender.on_ack(&Ack { phase: Phase::Recovery, ..fixture::ack(1) }, &at(sent));
        sender.on_loss(&fixture::loss(40), &at(sent));
        assert_eq!((sender.window(), sender.spacing().rate()), (20.0, None));
    }

    #[test]
    fn without_a_law_the_receiver_and_the_rate_decide() {
        let config = Config { congestion: Congestion::RateOnly, rate_bps: 5e6, ..Config::default() };
        let mut sender = config.build(&fixture::start(2.0));
        sender.on_event(ConnectionEvent::Established, &fixture::path());
        sender.on_loss(&fixture::loss(40), &fixture::path());
        sender.on_rto(&TIMEOUT, &fixture::path());
        assert_eq!((sender.window(), sender.spacing().rate()), (64.0, Some(Rate::from_mbps(5))));
    }

    #[test]
    fn vegas_is_the_law_by_default() {
        let law = Vegas::new(vegas::Config::default());
        let mut sender =
            Sender::new(Windows { cwnd: 40.0, ssthresh: 20.0 }, Scps::new(Config::default(), law));
        assert_eq!(sender.receiver(), RECEIVER.number);
        assert!(sender.detector().is_some(), "Vegas's fine-grained timeout");
        sender.on_loss(&fixture::loss(40), &fixture::path());
        assert!(sender.window() < 40.0);
    }
}
