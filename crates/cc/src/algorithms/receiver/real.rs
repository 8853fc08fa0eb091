//! TCP Real: the receiver measures the arrival rate of each wave of segments, and the sender sets its window by that rate.
//!
//! C. Zhang, V. Tsaoussidis, "TCP-Real: Receiver-oriented Congestion Control", Computer Networks 40(4), 2002.
//!
//! | paper                 | here                         | unit        |
//! |-----------------------|------------------------------|-------------|
//! | wave                  | `Wave`                       | -           |
//! | data-receiving rate   | [`Extension::ReceiveRate`]   | bytes / s   |
//! | α                     | one segment per window       | segments / round trip |
//! | β                     | [`Config::beta`]             | -           |
//! | γ                     | [`Config::gamma`]            | -           |
//! | congestion, error     | `Verdict`                    | -           |
//!
//! A wave is the data sent within one round trip under a fixed window. Segments carry its size, so that losses do not bias the
//! rate. The receiver divides the span of the indices by the time, not the number of arrivals. If the rate is constant while
//! segments are lost, the losses are transmission errors.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Extension, Instant, Rate, Segment};
use serde::{Deserialize, Serialize};

use crate::parameters::fraction;
use crate::parts::exchange::{Exchange, Exchanging};
use crate::rounds::Round;
use crate::{
    Ack, BackOff, Cause, Classic, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path,
    ReceiverHalf, Reflector, Rule, SENDER_ONLY, Sent, Start, Timeout, Windows,
};

/// The receiver half, which measures waves.
pub const RECEIVER: ReceiverHalf = ReceiverHalf { number: 1, build: || Box::new(Receiver::default()) };

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "real",
    title: "the receiver measures the rate of each wave; a falling rate backs off early, a steady one calls losses errors",
    paper: "Zhang, Tsaoussidis, Computer Networks 40(4)",
    year: 2002,
    needs_receiver: true,
    receiver: Some(RECEIVER),
    family: Family::Receiver,
    advice: "For errors, if both ends can be changed. Not for flows that need equal shares.",
    ..SENDER_ONLY
};

/// Parameters of TCP Real's sender.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Fraction of the window removed by congestion.
    #[serde(deserialize_with = "fraction")]
    pub beta: f64,
    /// Fraction of the window removed by a falling rate.
    #[serde(deserialize_with = "fraction")]
    pub gamma: f64,
    /// Relative fall of the rate that has no effect.
    #[serde(deserialize_with = "fraction")]
    pub unnoticed: f64,
    /// Relative fall of the rate above which it counts as congestion.
    #[serde(deserialize_with = "fraction")]
    pub tolerated: f64,
    /// Round trips for which a measured rate is valid.
    pub believed_rounds: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { beta: 0.5, gamma: 0.125, unnoticed: 0.02, tolerated: 0.125, believed_rounds: 2 }
    }
}

impl Config {
    /// A TCP Real sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Exchanging::new(windows, Real::new(*self)))
    }
}

/// Window in segments below which a falling rate has no effect.
const SMALLEST: f64 = 2.0;

/// The wave that is being sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Wave {
    id: u16,
    /// First sequence number of the wave.
    first: u64,
    /// Size of the wave in segments.
    size: u16,
}

/// A rate that the receiver reported.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Report {
    id: u16,
    bytes_per_s: f64,
    at: Instant,
}

/// Cause of a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Congestion,
    Error,
}

/// Window law of the sender half.
#[derive(Clone, Copy, Debug)]
struct Real {
    config: Config,
    wave: Wave,
    round: Round,
    /// Receive rate at the end of the last round, in bytes per second.
    reference: Option<f64>,
    latest: Option<Report>,
    /// Number of the wave whose rate was used last.
    used: Option<u16>,
    grows: bool,
    /// True if the window limited the sender at the last ACK.
    limited: bool,
    /// Windows before a timeout, restored if the rate proves an error.
    saved: Option<Windows>,
    /// Pacing of a restored window over a round trip.
    spaced: Option<(Rate, Instant)>,
}

impl Real {
    /// Makes the congestion control in its initial state.
    fn new(config: Config) -> Self {
        Self {
            config,
            wave: Wave::default(),
            round: Round::default(),
            reference: None,
            latest: None,
            used: None,
            grows: true,
            limited: true,
            saved: None,
            spaced: None,
        }
    }

    /// Returns the relative fall of the rate since the last round; `None` without two rates.
    fn fall(&self) -> Option<f64> {
        let (reference, latest) = (self.reference?, self.latest?);
        (reference > 0.0).then(|| (reference - latest.bytes_per_s) / reference)
    }

    /// Classifies a loss: an error if the rate is constant. Without a fresh rate it is congestion, the safe choice.
    fn classify(&self, path: &Path) -> Verdict {
        let fresh = self.latest.is_some_and(|report| {
            path.now.since(report.at) <= path.srtt * u64::from(self.config.believed_rounds)
        });
        match self.fall() {
            Some(fall) if fresh && fall <= self.config.tolerated => Verdict::Error,
            _ => Verdict::Congestion,
        }
    }

    /// Ends a round: adjusts the window to the rate, and starts the next wave.
    fn end_round(&mut self, windows: &mut Windows, path: &Path) {
        if let Some(report) = self.latest.filter(|report| self.used != Some(report.id)) {
            if let Some(fall) = self.fall() {
                self.follow(fall, windows);
            }
            self.reference = Some(report.bytes_per_s);
            self.used = Some(report.id);
        }
        // A wave this small yields no rate. The window then grows as in any TCP until waves can be measured.
        self.grows |= (1..LEAST_ARRIVALS).contains(&self.wave.size);
        let usable = windows.cwnd.min(f64::from(path.receive_window));
        self.wave = Wave { id: self.wave.id.wrapping_add(1), first: path.snd_nxt, size: usable as u16 };
    }

    fn follow(&mut self, fall: f64, windows: &mut Windows) {
        self.grows = fall <= self.config.unnoticed;
        if fall > self.config.tolerated {
            let slow_start = windows.in_slow_start();
            windows.cwnd = (windows.cwnd * (1.0 - self.config.gamma)).max(SMALLEST);
            if slow_start {
                windows.ssthresh = windows.cwnd;
            }
        }
    }

    /// Restores the windows: the rate was constant over the timeout, so it was an error.
    fn restore(&mut self, windows: &mut Windows, path: &Path) {
        let Some(saved) = self.saved else { return };
        if self.latest.is_none_or(|report| self.used == Some(report.id)) {
            return;
        }
        if self.fall().is_some_and(|fall| fall <= self.config.tolerated) {
            *windows = saved;
            self.saved = None;
            if !path.srtt.is_zero() {
                let bytes_per_s = windows.cwnd * f64::from(path.mss) / path.srtt_s();
                self.spaced = Some((Rate::from_bytes_per_s(bytes_per_s), path.now + path.srtt));
            }
        }
    }
}

impl Rule for Real {
    fn on_event(&mut self, windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        if event == ConnectionEvent::Established {
            self.end_round(windows, path);
        }
    }

    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.limited = ack.window_limited;
        if self.spaced.is_some_and(|(_, until)| path.now >= until) {
            self.spaced = None;
        }
        if ack.acked > 0 {
            self.restore(windows, path);
            if self.round.ends(path) {
                self.end_round(windows, path);
            }
        }
    }

    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        if self.grows {
            windows.cwnd += f64::from(ack.acked) / windows.cwnd;
        }
    }

    /// Reacts to a loss: an error costs nothing, congestion costs β of the window.
    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        let marked = loss.cause == Cause::Mark;
        if marked || self.classify(path) == Verdict::Congestion {
            windows.ssthresh = (windows.cwnd * (1.0 - self.config.beta)).max(SMALLEST);
            windows.cwnd = windows.cwnd.min(windows.ssthresh);
        }
    }
}

impl Real {
    /// Handles a timeout. After an error the timer does not double, and the window is restored when the rate returns.
    fn time_out(&mut self, windows: &mut Windows, timeout: &Timeout, path: &Path) -> BackOff {
        let verdict = self.classify(path);
        if timeout.consecutive == 1 {
            match verdict {
                Verdict::Congestion => {
                    self.saved = None;
                    windows.ssthresh = (f64::from(timeout.outstanding) / 2.0).max(SMALLEST);
                }
                Verdict::Error => self.saved = Some(*windows),
            }
        }
        windows.cwnd = 1.0;
        BackOff::if_true(verdict == Verdict::Congestion)
    }
}

impl Exchange for Real {
    const RECEIVER: ReceiverHalf = RECEIVER;

    fn stamp(&mut self, _windows: &Windows, sent: &Sent, path: &Path) -> Extension {
        let Self { wave: Wave { id, first, size }, limited, .. } = *self;
        if sent.retransmission || sent.seq < first {
            return Extension::None;
        }
        let index = (sent.seq - first) / u64::from(path.mss.max(1));
        let index = u16::try_from(index).unwrap_or(u16::MAX);
        Extension::Wave { id, size, index, limited }
    }

    fn on_fields(&mut self, _windows: &mut Windows, fields: &Extension, path: &Path) {
        if let Extension::ReceiveRate { id, rate, valid: true } = fields
            && self.latest.is_none_or(|report| report.id != *id)
        {
            self.latest = Some(Report { id: *id, bytes_per_s: rate.bytes_per_s(), at: path.now });
        }
    }

    fn on_rto(classic: &mut Classic<Self>, timeout: &Timeout, path: &Path) -> BackOff {
        classic.time_out(timeout, |rule, windows| rule.time_out(windows, timeout, path))
    }

    fn pacing(&self) -> Option<Rate> {
        self.spaced.map(|(rate, _)| rate)
    }
}

/// Header bytes per segment on the wire: the rate is that of the line.
const HEADERS: u32 = 40;
/// Minimum number of arrivals in a measured wave.
const LEAST_ARRIVALS: u16 = 3;
/// Divisor of the wave size: the arrivals must span at least this part.
const LEAST_SPAN_DIVISOR: u32 = 2;

/// The wave that is arriving, identified by its segments' indices.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Arriving {
    id: u16,
    size: u16,
    first: (u16, Instant),
    last: (u16, Instant),
    arrivals: u16,
    wire_bytes: u32,
    limited: bool,
}

impl Arriving {
    fn span(&self) -> u16 {
        self.last.0.saturating_sub(self.first.0)
    }

    fn time(&self) -> Duration {
        self.last.1.since(self.first.1)
    }

    /// True if enough of the wave arrived. A wave that the application cut short is not valid either.
    fn is_valid(&self) -> bool {
        self.arrivals >= LEAST_ARRIVALS
            && self.span() > 0
            && (u32::from(self.span()) + 1) * LEAST_SPAN_DIVISOR >= u32::from(self.size)
            && !self.time().is_zero()
            && self.limited
    }

    fn report(&self) -> Extension {
        let bytes = f64::from(self.span()) * f64::from(self.wire_bytes);
        let valid = self.is_valid();
        let rate = if valid { Rate::from_bytes_per_s(bytes / self.time().as_secs_f64()) } else { Rate::ZERO };
        Extension::ReceiveRate { id: self.id, rate, valid }
    }
}

/// The receiver half.
#[derive(Debug, Default)]
struct Receiver {
    arriving: Option<Arriving>,
    report: Extension,
}

impl Receiver {
    /// Ends the wave, because the next one begins or its last segment arrived.
    fn conclude(&mut self) {
        if let Some(arriving) = self.arriving {
            self.report = arriving.report();
        }
    }
}

impl Reflector for Receiver {
    fn on_data(&mut self, now: Instant, segment: &Segment, duplicate: bool) {
        let Extension::Wave { id, size, index, limited } = segment.extension else { return };
        if duplicate {
            return;
        }
        if self.arriving.is_some_and(|arriving| arriving.id != id) {
            self.conclude();
            self.arriving = None;
        }
        let at = (index, now);
        let wire_bytes = segment.len + HEADERS;
        let arriving = self.arriving.get_or_insert(Arriving {
            id,
            size,
            first: at,
            last: at,
            arrivals: 0,
            wire_bytes,
            limited,
        });
        arriving.last = at;
        arriving.arrivals = arriving.arrivals.saturating_add(1);
        arriving.limited &= limited;
        if index.saturating_add(1) == size {
            self.conclude();
        }
    }

    fn reply(&mut self, _now: Instant) -> Extension {
        self.report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Feedback, fixture};

    fn real(cwnd: f64, reference: f64) -> Exchanging<Real> {
        let mut rule = Real::new(Config::default());
        rule.reference = Some(reference);
        rule.used = Some(0);
        Exchanging::new(Windows { cwnd, ssthresh: 30.0 }, rule)
    }

    fn report(sender: &mut Exchanging<Real>, id: u16, bytes_per_s: f64) {
        let rate = Rate::from_bytes_per_s(bytes_per_s);
        sender.on_feedback(&Extension::ReceiveRate { id, rate, valid: true }, &fixture::path_at(1.0));
    }

    /// Handles the ACK that ends a round.
    fn end_round(sender: &mut Exchanging<Real>) {
        let path = Path { snd_una: 50_001, snd_nxt: 90_001, ..fixture::path_at(1.0) };
        sender.on_ack(&fixture::ack(1), &path);
    }

    #[test]
    fn the_window_follows_the_rate() {
        for (bytes_per_s, after) in [(99_000.0, 40.025), (95_000.0, 40.0), (80_000.0, 35.0)] {
            let mut sender = real(40.0, 100_000.0);
            report(&mut sender, 1, bytes_per_s);
            end_round(&mut sender);
            assert_eq!(sender.window(), after, "{bytes_per_s}");
        }
    }

    #[test]
    fn a_steady_rate_lets_a_window_grow_by_one() {
        let mut sender = real(40.0, 100_000.0);
        report(&mut sender, 1, 99_000.0);
        end_round(&mut sender);
        for _ in 1..40 {
            sender.on_ack(&fixture::ack(1), &Path { snd_una: 60_001, ..fixture::path_at(1.0) });
        }
        assert!((sender.window() - 41.0).abs() < 0.02, "{}", sender.window());
    }

    /// After a fall of the rate the window is two segments. Such waves are too small to measure, so no rate would allow growth.
    #[test]
    fn a_window_too_small_to_be_measured_grows() {
        let mut sender = real(2.0, 100_000.0);
        sender.classic.windows.ssthresh = 2.0;
        report(&mut sender, 1, 20_000.0);
        for round in 1..6 {
            let path =
                Path { snd_una: 90_000 * round, snd_nxt: 90_000 * (round + 1), ..fixture::path_at(1.0) };
            sender.on_ack(&fixture::ack(2), &path);
        }
        assert!(sender.window() > 3.0, "{}", sender.window());
    }

    #[test]
    fn a_falling_rate_ends_slow_start() {
        let mut sender = real(16.0, 100_000.0);
        report(&mut sender, 1, 50_000.0);
        end_round(&mut sender);
        assert_eq!(sender.snapshot().ssthresh, 14.0);
    }

    #[test]
    fn a_loss_at_a_steady_rate_is_an_error() {
        for (bytes_per_s, after) in [(79_500.0, 35.0), (60_000.0, 17.5)] {
            let mut sender = real(35.0, 80_000.0);
            report(&mut sender, 1, bytes_per_s);
            sender.on_loss(&fixture::loss(35), &fixture::path_at(1.1));
            assert_eq!(sender.window(), after, "{bytes_per_s}");
        }
    }

    #[test]
    fn an_old_rate_proves_nothing() {
        let mut sender = real(35.0, 80_000.0);
        report(&mut sender, 1, 80_000.0);
        sender.on_loss(&fixture::loss(35), &fixture::path_at(1.0 + 3.0 * 0.55));
        assert_eq!(sender.window(), 17.5);
    }

    #[test]
    fn a_timeout_by_an_error_is_undone_when_the_rate_holds() {
        let mut sender = real(35.0, 80_000.0);
        report(&mut sender, 1, 80_000.0);
        let timeout = Timeout { consecutive: 1, outstanding: 35, answered: false };
        let action = sender.on_rto(&timeout, &fixture::path_at(1.1));
        assert_eq!((action, sender.window()), (BackOff::Keep, 1.0));
        report(&mut sender, 2, 79_000.0);
        let ack = Ack { window_limited: false, ..fixture::ack(1) };
        sender.on_ack(&ack, &Path { snd_una: 0, ..fixture::path_at(1.7) });
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (35.0, 30.0));
        assert!(sender.spacing().rate().is_some(), "what it releases is spaced");
        sender.on_ack(&ack, &Path { snd_una: 0, ..fixture::path_at(2.3) });
        assert_eq!(sender.spacing().rate(), None);
    }

    #[test]
    fn a_timeout_by_congestion_is_reno_s() {
        let mut sender = real(35.0, 80_000.0);
        let timeout = Timeout { consecutive: 1, outstanding: 35, answered: false };
        let action = sender.on_rto(&timeout, &fixture::path_at(9.0));
        assert_eq!(action, BackOff::Double);
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (1.0, 17.5));
    }

    #[test]
    fn each_segment_tells_its_place_in_the_wave() {
        let mut sender = real(40.0, 80_000.0);
        end_round(&mut sender);
        let mut stamp = |seq, retransmission| {
            sender.stamp(&Sent { seq, len: 1000, retransmission }, &fixture::path_at(1.0))
        };
        assert_eq!(stamp(93_001, false), Extension::Wave { id: 1, size: 40, index: 3, limited: true });
        assert_eq!(stamp(93_001, true), Extension::None);
        assert_eq!(stamp(80_001, false), Extension::None);
    }

    fn arrive(receiver: &mut Receiver, indices: &[u16], limited: bool) {
        for index in indices {
            let extension = Extension::Wave { id: 1, size: 8, index: *index, limited };
            let now = Instant::ZERO + Duration::from_micros(1664) * u64::from(*index);
            receiver.on_data(now, &Segment { len: 1000, extension, ..Segment::default() }, false);
        }
    }

    #[test]
    fn the_receiver_measures_the_span_of_a_wave_not_its_arrivals() {
        let mut receiver = Receiver::default();
        arrive(&mut receiver, &[0, 1, 2, 4, 5, 6, 7], true);
        let rate = Rate::from_bytes_per_s(625_000.0);
        assert_eq!(receiver.reply(Instant::ZERO), Extension::ReceiveRate { id: 1, rate, valid: true });
    }

    #[test]
    fn too_little_of_a_wave_is_no_measurement() {
        for (indices, limited) in [(&[0, 7][..], true), (&[5, 6, 7], true), (&[0, 1, 2, 3, 7], false)] {
            let mut receiver = Receiver::default();
            arrive(&mut receiver, indices, limited);
            let Extension::ReceiveRate { valid, .. } = receiver.reply(Instant::ZERO) else { panic!() };
            assert!(!valid, "{indices:?}");
        }
    }

    #[test]
    fn the_next_wave_concludes_one_whose_end_was_lost() {
        let mut receiver = Receiver::default();
        arrive(&mut receiver, &[0, 1, 2, 3, 4], true);
        assert_eq!(receiver.reply(Instant::ZERO), Extension::None);
        let extension = Extension::Wave { id: 2, size: 8, index: 0, limited: true };
        receiver.on_data(Instant::ZERO, &Segment { len: 1000, extension, ..Segment::default() }, false);
        assert!(matches!(receiver.reply(Instant::ZERO), Extension::ReceiveRate { id: 1, valid: true, .. }));
    }
}
