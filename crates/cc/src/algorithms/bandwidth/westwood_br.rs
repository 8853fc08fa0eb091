//! TCP Westwood with Bulk Repeat: a loss without high delay or a rate gap is a transmission error. The window is then kept,
//! everything possibly lost is retransmitted at once, and the timer does not double.
//!
//! G. Yang, R. Wang, M. Y. Sanadidi, M. Gerla, "TCPW with Bulk Repeat in Next Generation Wireless Networks", IEEE ICC 2003.
//!
//! | paper                   | here                        | unit       |
//! |-------------------------|-----------------------------|------------|
//! | `cwnd`, `ssthresh`      | `Windows`                   | segments   |
//! | `RTTmin`                | `WestwoodBr::base`          | time       |
//! | largest round-trip time | `Spike::rtt_max`            | time       |
//! | spike thresholds A, B   | [`Config::spike_begins`], [`Config::spike_ends`] | - |
//! | `RE`                    | the sample of `PerRound`    | bytes/s    |
//! | `BWE`                   | the rate of `PerRound`      | bytes/s    |
//! | rate gap threshold θ    | [`Config::rate_gap`]        | -          |
//!
//! `papers/westwood-br.md` lists the deviations from the paper.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant, Rate};
use serde::{Deserialize, Serialize};

use crate::parameters::{at_least_zero, fraction, not_negative, positive};
use crate::parts::bandwidth::{AckedCount, PerRound, segments};
pub use crate::parts::bandwidth::{Credit, RoundFilter};
use crate::parts::base_rtt::RecentRtt;
use crate::parts::spike::{Bounds, Spike};
use crate::{
    Accounting, Ack, BackOff, Cause, Classic, CongestionControl, ConnectionEvent, Detector, EarlyRetransmit,
    Entry, Family, Loss, Path, Phase, Requirements, Rule, SENDER_ONLY, Spacing, Start, Timeout, Windows,
    forward,
};

/// Combination of the two tests for congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discriminator {
    /// Either test alone suffices to conclude congestion.
    Either,
    /// Both tests must indicate congestion.
    #[default]
    Both,
    /// Only the test of the delay is used.
    Spike,
    /// Only the test of the rate is used.
    RateGap,
}

/// Window after a loss by congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnCongestion {
    /// Half the window, as in NewReno.
    #[default]
    Halve,
    /// The measured BDP, as in Westwood.
    Estimate,
}

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "westwood-br",
    title: "tells noise from congestion; noise keeps the window, the timer, and repeats everything at once",
    paper: "Yang, Wang, Sanadidi, Gerla, IEEE ICC",
    year: 2003,
    family: Family::Bandwidth,
    advice: "For errors with a queue of at least one BDP. Not for NewReno's links with a much shorter queue, where it classifies overflows as errors.",
    ..SENDER_ONLY
};

/// Parameters of WestwoodBR.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// A spike begins when the delay exceeds this fraction of the range between minimum and maximum round-trip time.
    #[serde(deserialize_with = "fraction")]
    pub spike_begins: f64,
    /// A spike ends when the delay falls below this fraction of the range.
    #[serde(deserialize_with = "fraction")]
    pub spike_ends: f64,
    /// Minimum range of round-trip times in seconds; a smaller range has no spikes.
    #[serde(deserialize_with = "at_least_zero")]
    pub least_range_s: f64,
    /// Ratio of the window's rate to the achieved rate above which a loss counts as congestion.
    #[serde(deserialize_with = "positive")]
    pub rate_gap: f64,
    /// Combination of the two tests.
    pub discriminator: Discriminator,
    /// Window after a loss by congestion.
    pub on_congestion: OnCongestion,
    /// Pace the retransmissions of Bulk Repeat over minRTT.
    pub paced_repeat: bool,
    /// Consecutive timeouts after which the timer doubles again; 0 never doubles.
    pub back_off_after: u32,
    /// Smoothing of bandwidth samples.
    pub filter: RoundFilter,
    /// Minimum interval of a bandwidth sample in seconds.
    #[serde(deserialize_with = "at_least_zero")]
    pub least_round_s: f64,
    /// Treatment of duplicate ACKs when a cumulative ACK covers their segments, without SACK.
    pub credit: Credit,
    /// Length of the minimum round-trip time filter in seconds, because routes change; 0 never forgets.
    #[serde(deserialize_with = "not_negative")]
    pub base_rtt_window_s: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            spike_begins: Bounds::WESTWOOD_BR.begins,
            spike_ends: Bounds::WESTWOOD_BR.ends,
            least_range_s: Bounds::WESTWOOD_BR.least_range_s,
            rate_gap: 1.4,
            discriminator: Discriminator::Both,
            on_congestion: OnCongestion::Halve,
            paced_repeat: true,
            back_off_after: 0,
            filter: RoundFilter::Linux,
            least_round_s: 0.05,
            credit: Credit::Whole,
            base_rtt_window_s: 0.0,
        }
    }
}

impl Config {
    /// A WestwoodBR sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Sender::new(windows, WestwoodBr::new(*self)))
    }

    fn spike_bounds(&self) -> Bounds {
        Bounds { begins: self.spike_begins, ends: self.spike_ends, least_range_s: self.least_range_s }
    }
}

/// State of Bulk Repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Repeat {
    /// Bulk Repeat is allowed.
    Armed,
    /// Several segments of a window were lost by errors. Bulk Repeat follows at the engine's next call.
    Due,
    /// Everything below this sequence number was retransmitted. Before its acknowledgement, signs of loss come from the
    /// retransmissions.
    Done(u64),
}

/// Assumed cause of the last loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Congestion,
    /// Transmission errors, not congestion.
    Noise {
        /// Segments known to be lost.
        lost: u32,
        /// Time of the ACK that counted them, until that time has passed.
        counted_at: Option<Instant>,
    },
}

/// The window law of the paper.
#[derive(Clone, Debug)]
pub struct WestwoodBr {
    config: Config,
    count: AckedCount,
    rounds: PerRound,
    base: RecentRtt,
    spike: Spike,
    repeat: Repeat,
    verdict: Verdict,
    /// Rate of one segment per minRTT, in bytes per second.
    unit_rate: f64,
}

impl WestwoodBr {
    /// Makes the congestion control in its initial state.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            count: AckedCount::new(config.credit),
            rounds: PerRound::new(config.filter, config.filter == RoundFilter::Linux),
            base: RecentRtt::new(config.base_rtt_window_s),
            spike: Spike::NONE,
            repeat: Repeat::Armed,
            verdict: Verdict::Congestion,
            unit_rate: 0.0,
        }
    }

    /// `BWE RTTmin / seg_size`.
    fn pipe(&self, path: &Path) -> f64 {
        segments(self.rounds.rate(), self.base.get(path), path.mss)
    }

    /// `(cwnd / RTTmin) / RE > θ`: the sending rate exceeds the delivery rate. Data blocked by the receive window is not counted
    /// as sent.
    fn has_rate_gap(&self, windows: &Windows, path: &Path) -> bool {
        let usable = windows.cwnd.min(f64::from(path.receive_window));
        usable > self.config.rate_gap * segments(self.rounds.sample(), self.base.get(path), path.mss)
    }

    /// The loss discrimination algorithm (LDA).
    fn is_congested(&self, windows: &Windows, path: &Path) -> bool {
        let spike = self.spike.high;
        let gap = self.has_rate_gap(windows, path);
        match self.config.discriminator {
            Discriminator::Either => spike || gap,
            Discriminator::Both => spike && gap,
            Discriminator::Spike => spike,
            Discriminator::RateGap => gap,
        }
    }

    /// Triggers Bulk Repeat if a window with errors has several losses.
    fn follow(&mut self, ack: &Ack, path: &Path) {
        let Verdict::Noise { lost, counted_at } = &mut self.verdict else { return };
        if ack.phase != Phase::Recovery {
            return;
        }
        if counted_at.take() != Some(path.now) {
            *lost = lost.saturating_add(ack.lost);
        }
        let partial = ack.acked > 0 && !ack.ends_episode;
        if self.repeat == Repeat::Armed && (partial || *lost >= 2) {
            self.repeat = Repeat::Due;
        }
    }
}

impl Rule for WestwoodBr {
    fn on_event(&mut self, _windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        match event {
            ConnectionEvent::Established => self.rounds.begin(path.now),
            ConnectionEvent::Idle { .. } => self.rounds.rest(),
            _ => {}
        }
    }

    fn observe(&mut self, _windows: &mut Windows, ack: &Ack, path: &Path) {
        self.base.observe(ack, path);
        if let Some(rtt) = ack.rtt {
            self.spike.sample(rtt, self.base.get(path), &self.config.spike_bounds());
        }
        let bytes = self.count.count(ack, path.mss);
        let round = path.srtt.max(Duration::from_secs_f64(self.config.least_round_s));
        self.rounds.on_ack(path.now, bytes, round);
        self.unit_rate = f64::from(path.mss) / self.base.get(path).as_secs_f64();
        match self.repeat {
            Repeat::Done(end) if path.snd_una >= end => self.repeat = Repeat::Armed,
            // The episode is over, and no loss is pending.
            Repeat::Due if ack.phase == Phase::Open => self.repeat = Repeat::Armed,
            _ => self.follow(ack, path),
        }
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        if matches!(self.repeat, Repeat::Done(end) if path.snd_una < end) && loss.cause == Cause::Loss {
            return;
        }
        if loss.cause == Cause::Loss && !self.is_congested(windows, path) {
            self.verdict = Verdict::Noise { lost: loss.lost, counted_at: Some(path.now) };
            return; // Intelligent Window Adjustment
        }
        self.verdict = Verdict::Congestion;
        match self.config.on_congestion {
            OnCongestion::Halve => windows.halve(loss),
            OnCongestion::Estimate => windows.reduce_to(self.pipe(path), loss.cause),
        }
    }

    fn undo(&mut self, before: Self) {
        (self.verdict, self.repeat) = (before.verdict, before.repeat);
    }

    fn phase(&self, windows: &Windows) -> &'static str {
        match self.repeat {
            Repeat::Due | Repeat::Done(_) => "bulk-repeat",
            Repeat::Armed => windows.phase(),
        }
    }
}

impl WestwoodBr {
    fn time_out(&mut self, windows: &mut Windows, timeout: &Timeout, path: &Path) -> BackOff {
        let limit = self.config.back_off_after;
        let back_off = limit > 0 && timeout.consecutive > limit;
        if timeout.consecutive == 1 {
            self.verdict = if self.is_congested(windows, path) {
                Verdict::Congestion
            } else {
                Verdict::Noise { lost: timeout.outstanding, counted_at: Some(path.now) }
            };
        }
        match self.verdict {
            Verdict::Noise { .. } => self.repeat = Repeat::Done(path.snd_nxt),
            Verdict::Congestion => {
                if timeout.consecutive == 1 {
                    windows.ssthresh = self.pipe(path).max(2.0);
                }
                windows.cwnd = 1.0;
                self.repeat = Repeat::Armed;
            }
        }
        BackOff::if_true(back_off)
    }
}

/// Westwood's window with Bulk Repeat.
#[derive(Clone, Debug)]
struct Sender {
    classic: Classic<WestwoodBr>,
}

impl Sender {
    fn new(windows: Windows, rule: WestwoodBr) -> Self {
        Self { classic: Classic::new(windows, rule) }
    }
}

impl CongestionControl for Sender {
    forward!(classic: window, on_ack, on_loss, on_undo, on_event, snapshot);

    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> BackOff {
        self.classic.time_out(timeout, |rule, windows| rule.time_out(windows, timeout, path))
    }

    fn spacing(&self) -> Spacing {
        let WestwoodBr { config, repeat, unit_rate, .. } = &self.classic.rule;
        let repeats = config.paced_repeat && matches!(repeat, Repeat::Done(_));
        Spacing::at(repeats.then(|| Rate::from_bytes_per_s(self.classic.windows.cwnd * unit_rate)))
    }

    fn requirements(&self) -> Requirements {
        Requirements { accounting: Accounting::Own, ..Requirements::default() }
    }

    fn detector(&mut self) -> Option<&mut dyn Detector> {
        Some(self)
    }
}

impl Detector for Sender {
    fn early_retransmit(&mut self, _oldest_sent: Instant, path: &Path) -> EarlyRetransmit {
        let repeat = &mut self.classic.rule.repeat;
        if *repeat != Repeat::Due {
            return EarlyRetransmit::None;
        }
        *repeat = Repeat::Done(path.snd_nxt);
        EarlyRetransmit::Everything
    }

    fn is_essential(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, path_at};

    const MSS: u32 = 1448;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn path() -> Path {
        Path {
            min_rtt: ms(500),
            srtt: ms(500),
            receive_window: 1000,
            mss: MSS,
            snd_una: 1000,
            snd_nxt: 500_000,
            ..path_at(10.0)
        }
    }

    /// Makes a sender of 432 segments over 500 ms that achieves `rate` segments per second at a high delay.
    fn sender(rate: f64, config: Config) -> Sender {
        let mut rule = WestwoodBr::new(config);
        rule.spike = Spike { rtt_max: ms(900), high: true };
        rule.rounds = rule.rounds.having(rate * f64::from(MSS));
        Sender::new(Windows { cwnd: 432.0, ssthresh: 200.0 }, rule)
    }

    fn timeout(consecutive: u32) -> Timeout {
        Timeout { consecutive, outstanding: 432, answered: false }
    }

    fn in_recovery(acked: u32) -> Ack {
        Ack { phase: Phase::Recovery, ..fixture::ack(acked) }
    }

    #[test]
    fn the_rate_gap_tells_a_full_path_from_a_noisy_one() {
        // 432 segments in 500 ms are 864 per second: 1.234 times 700, 1.44 times 600.
        for (rate, cwnd) in [(700.0, 432.0), (600.0, 216.0)] {
            let mut sender = sender(rate, Config::default());
            sender.on_loss(&fixture::loss(432), &path());
            assert_eq!(sender.window(), cwnd);
        }
    }

    #[test]
    fn a_window_that_the_receiver_holds_back_is_no_gap() {
        let mut sender = sender(600.0, Config::default());
        sender.on_loss(&fixture::loss(350), &Path { receive_window: 350, ..path() });
        assert_eq!(sender.window(), 432.0);
    }

    #[test]
    fn the_tests_can_be_combined() {
        for (discriminator, cwnd) in [
            (Discriminator::Either, 216.0),
            (Discriminator::Both, 432.0),
            (Discriminator::Spike, 216.0),
            (Discriminator::RateGap, 432.0),
        ] {
            let mut sender = sender(800.0, Config { discriminator, ..Config::default() });
            sender.on_loss(&fixture::loss(432), &path());
            assert_eq!(sender.window(), cwnd, "{discriminator:?}");
        }
    }

    #[test]
    fn noise_keeps_the_window_and_the_second_hole_repeats_everything_once() {
        let mut sender = sender(800.0, Config::default());
        sender.on_loss(&fixture::loss(432), &path());
        assert_eq!(
            sender.early_retransmit(Instant::ZERO, &path()),
            EarlyRetransmit::None,
            "one hole is an ordinary retransmission"
        );
        let partial = Path { snd_una: 50_000, ..path() };
        sender.on_ack(&in_recovery(40), &partial);
        assert_eq!(sender.early_retransmit(Instant::ZERO, &partial), EarlyRetransmit::Everything);
        assert_eq!(sender.snapshot().phase, "bulk-repeat");
        let rate = sender.spacing().rate().map(|rate| rate.bps());
        assert_eq!(rate, Some(432 * 1448 * 8 * 2), "a window per smallest round-trip time");
        sender.on_ack(&in_recovery(40), &Path { snd_una: 100_000, ..path() });
        assert_eq!(
            sender.early_retransmit(Instant::ZERO, &partial),
            EarlyRetransmit::None,
            "once per window"
        );
        sender.on_loss(&fixture::loss(432), &Path { snd_una: 400_000, ..path() });
        assert_eq!(sender.window(), 432.0, "an echo of the repetition");
        sender.on_ack(&fixture::ack(1), &Path { snd_una: 500_000, ..path() });
        assert_eq!((sender.snapshot().phase, sender.spacing().rate()), ("congestion-avoidance", None));
    }

    #[test]
    fn holes_known_from_sack_repeat_everything_without_a_partial_ack() {
        let mut sender = sender(800.0, Config::default());
        sender.on_loss(&fixture::loss(432), &path());
        let same_ack = Ack { lost: 1, sacked: 1, ..in_recovery(0) };
        sender.on_ack(&same_ack, &path());
        assert_eq!(
            sender.early_retransmit(Instant::ZERO, &path()),
            EarlyRetransmit::None,
            "the loss that began it counts once"
        );
        let later = Path { now: path_at(10.1).now, ..path() };
        sender.on_ack(&same_ack, &later);
        assert_eq!(sender.early_retransmit(Instant::ZERO, &later), EarlyRetransmit::Everything);
    }

    #[test]
    fn congestion_halves_and_repeats_nothing() {
        let mut sender = sender(600.0, Config::default());
        sender.on_loss(&fixture::loss(432), &path());
        sender.on_ack(&in_recovery(40), &path());
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (216.0, 216.0));
        assert_eq!(sender.early_retransmit(Instant::ZERO, &path()), EarlyRetransmit::None);
        let config = Config { on_congestion: OnCongestion::Estimate, ..Config::default() };
        let mut sender = self::sender(600.0, config);
        sender.on_loss(&fixture::loss(432), &path());
        assert_eq!(sender.window(), 300.0, "600 segments per second for 500 ms");
    }

    #[test]
    fn a_noisy_timeout_keeps_the_window_and_no_timeout_doubles_the_timer() {
        let mut noisy = sender(800.0, Config::default());
        let mut congested = sender(600.0, Config::default());
        for consecutive in 1..=4 {
            for sender in [&mut noisy, &mut congested] {
                let action = sender.on_rto(&timeout(consecutive), &path());
                assert_eq!(action, BackOff::Keep);
            }
        }
        assert_eq!((noisy.window(), noisy.snapshot().ssthresh), (432.0, 200.0));
        assert_eq!((congested.window(), congested.snapshot().ssthresh), (1.0, 300.0));
    }

    #[test]
    fn a_dead_path_may_double_the_timer_again() {
        let mut sender = sender(800.0, Config { back_off_after: 6, ..Config::default() });
        let actions = [6, 7].map(|consecutive| sender.on_rto(&timeout(consecutive), &path()));
        assert_eq!(actions, [false, true].map(BackOff::if_true));
    }

    #[test]
    fn a_mark_is_congestion() {
        let mut sender = sender(800.0, Config::default());
        sender.on_loss(&Loss { cause: Cause::Mark, ..fixture::loss(432) }, &path());
        assert_eq!(sender.window(), 216.0);
    }
}
