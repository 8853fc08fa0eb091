//! TFRC: the receiver measures the loss-event rate, and the sender uses the rate of a TCP at that loss.
//!
//! S. Floyd, M. Handley, J. Padhye, J. Widmer, "TCP Friendly Rate Control (TFRC): Protocol Specification", RFC 5348, 2008.
//!
//! | RFC 5348          | here                          | unit          |
//! |-------------------|-------------------------------|---------------|
//! | `s`               | `Tfrc::segment`               | bytes         |
//! | `X`, `X_inst`     | `Tfrc::allowed`, [`CongestionControl::spacing`] | bytes / s |
//! | `X_Bps`           | [`throughput`]                | bytes / s     |
//! | `R`, `R_sqmean`   | `Tfrc::rtt_s`, `sqmean`       | s, √s         |
//! | `X_recv_set`      | `ReceivedRates`               | bytes / s     |
//! | `p`               | `Report::loss_event_rate`     | -             |
//! | `tld`             | `Tfrc::doubled_at`            | time          |
//! | nofeedback timer  | `Tfrc::no_feedback_at`        | time          |
//! | `I_0` ... `I_n`   | `Intervals`                   | segments      |
//! | `T_loss`          | `Arrivals::note`              | time          |
//!
//! Here it is the rate law of an otherwise ordinary TCP sender: it retransmits segments and respects the receive window. A
//! large window of its own prevents flooding of a dead path.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Extension, Instant, Rate};
use serde::{Deserialize, Serialize};

use crate::parameters::positive;
use crate::{
    Accounting, Ack, BackOff, CongestionControl, ConnectionEvent, Entry, Family, Feedback, Loss, Path,
    ReceiverHalf, Requirements, SENDER_ONLY, Sent, Sleeper, Spacing, Start, Timeout, Wake, WindowState,
    state,
};

mod intervals;
mod messages;
mod receiver;
mod stream;

pub use intervals::throughput;
use intervals::{Intervals, inverse};
use messages::{Report, Stamp};
use receiver::Receiver;
pub use stream::{StreamReceiver, StreamSender};

/// The receiver half, which measures loss-event rate and receive rate.
pub const RECEIVER: ReceiverHalf = ReceiverHalf { number: 3, build: || Box::new(Receiver::default()) };

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "tfrc",
    title: "the rate that TCP would get at the loss-event rate that the receiver measures",
    paper: "RFC 5348 (Floyd, Handley, Padhye, Widmer)",
    year: 2008,
    needs_receiver: true,
    receiver: Some(RECEIVER),
    family: Family::Receiver,
    advice: "For streams that need a smooth rate. It follows the throughput equation of TCP, so errors limit it as they limit Reno.",
    ..SENDER_ONLY
};

/// Parameters of TFRC's sender.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Maximum time between two segments in seconds (`t_mbi`, section 4.2).
    #[serde(deserialize_with = "positive")]
    pub longest_gap_s: f64,
    /// Damp the effect of round-trip time changes (section 4.5).
    pub damping: bool,
    /// Window in multiples of rate times round-trip time: limit of the outstanding data.
    #[serde(deserialize_with = "positive")]
    pub window_gain: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { longest_gap_s: 64.0, damping: true, window_gain: 2.0 }
    }
}

impl Config {
    /// A TFRC sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(Tfrc::new(*self, start.mss))
    }
}

/// Section 4.3: weight of the old smoothed round-trip time.
const Q: f64 = 0.9;
/// Minimum window in segments.
const SMALLEST: f64 = 4.0;

/// `X_recv_set`: the rates received in the last two round trips (section 4.3).
#[derive(Clone, Copy, PartialEq, Debug)]
struct ReceivedRates {
    /// Receive rates in bytes per second with their times; infinite at the start.
    rates: [(f64, Instant); 3],
}

impl ReceivedRates {
    fn of(rate: f64, at: Instant) -> Self {
        Self { rates: [(rate, at), (0.0, at), (0.0, at)] }
    }

    fn max(&self) -> f64 {
        self.rates.iter().fold(0.0, |max, (rate, _)| rate.max(max))
    }

    /// `Update`: drops entries older than two round trips.
    fn update(&mut self, rate: f64, now: Instant, rtt_s: f64) {
        let horizon = Duration::from_secs_f64(2.0 * rtt_s);
        let [first, second, _] = self.rates;
        self.rates = [(rate, now), first, second];
        for slot in &mut self.rates {
            if slot.0.is_infinite() || now.since(slot.1) > horizon {
                slot.0 = 0.0;
            }
        }
    }

    /// `Maximize`: keeps only the maximum, as of now.
    fn maximize(&mut self, rate: f64, now: Instant) {
        let finite = self.rates.iter().map(|(rate, _)| *rate).filter(|rate| rate.is_finite());
        *self = Self::of(finite.fold(rate, f64::max), now);
    }

    fn halve(&mut self) {
        for (rate, _) in &mut self.rates {
            *rate /= 2.0;
        }
    }
}

/// A TFRC sender.
#[derive(Clone, Debug)]
pub struct Tfrc {
    config: Config,
    segment: f64,
    /// Smoothed round-trip time in seconds; 0 before the first sample.
    rtt_s: f64,
    sqmean: f64,
    last_rtt_s: f64,
    allowed: f64,
    rates: ReceivedRates,
    p: f64,
    doubled_at: Instant,
    no_feedback_at: Instant,
    last: Option<(Report, Instant)>,
    /// True if window or rate limited the sender since the last report, not the application.
    limited: bool,
    /// Sequence number of the next transmission.
    number: u32,
    /// True after the receiver's first report: the sender's own measurements are then ignored.
    hears: bool,
    own: OwnMeasurement,
}

/// Measurements of the sender, if the receiver makes none.
#[derive(Clone, Copy, Debug)]
struct OwnMeasurement {
    intervals: Intervals,
    loss_event_at: Option<Instant>,
}

impl Tfrc {
    /// Makes a sender before its handshake.
    pub fn new(config: Config, mss: u32) -> Self {
        let segment = f64::from(mss.max(1));
        Self {
            config,
            segment,
            rtt_s: 0.0,
            sqmean: 0.0,
            last_rtt_s: 0.0,
            allowed: segment, // section 4.2: one segment a second
            rates: ReceivedRates::of(f64::INFINITY, Instant::ZERO),
            p: 0.0,
            doubled_at: Instant::ZERO,
            no_feedback_at: Instant::FAR_FUTURE,
            last: None,
            limited: false,
            number: 0,
            hears: false,
            own: OwnMeasurement { intervals: Intervals::default(), loss_event_at: None },
        }
    }

    /// `W_init` of section 4.2 in bytes.
    fn initial_window(&self) -> f64 {
        (4.0 * self.segment).min((2.0 * self.segment).max(4380.0))
    }

    /// `s / t_mbi`.
    fn least(&self) -> f64 {
        self.segment / self.config.longest_gap_s
    }

    /// Section 4.3 step 2, and the average of section 4.5.
    fn sample(&mut self, rtt: Duration) {
        let sample = rtt.as_secs_f64();
        if self.rtt_s > 0.0 {
            self.rtt_s = Q * self.rtt_s + (1.0 - Q) * sample;
            self.sqmean = Q * self.sqmean + (1.0 - Q) * libm::sqrt(sample);
        } else {
            self.rtt_s = sample;
            self.sqmean = libm::sqrt(sample);
        }
        self.last_rtt_s = sample;
    }

    /// Section 4.3: handles a report. `limited` is true if data did not limit the interval that it covers.
    fn on_report(&mut self, report: Report, now: Instant) {
        let received = f64::from(report.received);
        let p = f64::from(report.loss_event_rate);
        let limit = if self.limited {
            self.rates.update(received, now, self.rtt_s);
            2.0 * self.rates.max()
        } else if p > self.p {
            self.rates.halve();
            self.rates.maximize(0.85 * received, now);
            self.rates.max()
        } else {
            self.rates.maximize(received, now);
            2.0 * self.rates.max()
        };
        self.p = p;
        self.recompute(limit, now);
        self.last = Some((report, now));
        self.limited = false;
        self.restart_timer(now);
    }

    /// Section 4.3 step 5.
    fn recompute(&mut self, limit: f64, now: Instant) {
        if self.rtt_s <= 0.0 {
            return;
        }
        if self.p > 0.0 {
            let friendly = throughput(self.segment, self.rtt_s, self.p);
            self.allowed = friendly.min(limit).max(self.least());
        } else if now.since(self.doubled_at).as_secs_f64() >= self.rtt_s {
            self.allowed = (2.0 * self.allowed).min(limit).max(self.initial_window() / self.rtt_s);
            self.doubled_at = now;
        }
    }

    /// `RTO = max(4 R, 2 s / X)`.
    fn restart_timer(&mut self, now: Instant) {
        let timeout = (4.0 * self.rtt_s).max(2.0 * self.segment / self.allowed.max(self.least()));
        self.no_feedback_at = now + Duration::from_secs_f64(timeout);
    }

    /// Section 4.2, without a round-trip time: one segment per second, and two seconds for the first report.
    fn begin(&mut self, now: Instant) {
        self.doubled_at = now;
        self.no_feedback_at = now + Duration::from_secs(2);
    }

    /// Section 4.2: after the first round-trip sample, one initial window per round trip.
    fn open(&mut self, now: Instant) {
        self.allowed = self.initial_window() / self.rtt_s;
        self.doubled_at = now;
    }

    /// Section 4.5: a round trip above average lowers the rate at once, whatever the smoothed value.
    fn instantaneous(&self) -> f64 {
        let damp = self.config.damping && self.last_rtt_s > 0.0;
        let factor = if damp { self.sqmean / libm::sqrt(self.last_rtt_s) } else { 1.0 };
        (self.allowed * factor).max(self.least())
    }

    /// Section 4.4. `idle` is true if nothing was sent since the timer was set.
    fn on_no_feedback(&mut self, now: Instant, idle: bool) {
        let received = self.rates.max();
        let start = if self.rtt_s > 0.0 { self.initial_window() / self.rtt_s } else { self.segment };
        let harmless = if self.p > 0.0 { received < start } else { self.allowed < 2.0 * start };
        if self.p > 0.0 && !(idle && harmless) {
            let friendly = throughput(self.segment, self.rtt_s, self.p);
            let halved = if friendly > 2.0 * received { received } else { friendly / 2.0 };
            self.rates = ReceivedRates::of(halved.max(self.least()) / 2.0, now);
            self.recompute(2.0 * self.rates.max(), now);
        } else if !(idle && harmless) {
            self.allowed = (self.allowed / 2.0).max(self.least());
        }
        self.restart_timer(now);
    }

    /// Makes reports if the receiver sends none: the engine's rate, and the loss events of recoveries.
    fn report_to_itself(&mut self, ack: &Ack, path: &Path) {
        self.own.intervals.grow(f64::from(ack.acked));
        let due = self.last.is_none_or(|(_, at)| path.now.since(at) >= path.srtt);
        if let Some(sample) = ack.rate.filter(|_| due) {
            let report = Report {
                loss_event_rate: self.own.intervals.loss_event_rate() as f32,
                received: sample.rate().bytes_per_s() as f32,
            };
            self.on_report(report, path.now);
        }
    }

    /// Section 5.2: losses within one round trip are one event.
    fn note_own_loss(&mut self, path: &Path) {
        if self.own.loss_event_at.is_some_and(|at| path.now.since(at) <= path.srtt) {
            return;
        }
        self.own.loss_event_at = Some(path.now);
        if self.own.intervals.is_empty() && self.rtt_s > 0.0 {
            let rate = self.rates.max().min(self.allowed).max(self.least());
            self.own.intervals.begin_with(1.0 / inverse(self.segment, self.rtt_s, rate));
        } else {
            self.own.intervals.close();
        }
    }
}

impl CongestionControl for Tfrc {
    /// A large window: the rate limits the sender.
    fn window(&self) -> f64 {
        (self.config.window_gain * self.allowed * self.rtt_s / self.segment).max(SMALLEST)
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            self.sample(rtt);
        }
        self.limited |= path.unsent > 0 || ack.window_limited;
        if ack.acked > 0 && !self.hears {
            self.report_to_itself(ack, path);
        }
    }

    fn on_loss(&mut self, _loss: &Loss, path: &Path) {
        if !self.hears {
            self.note_own_loss(path);
        }
    }

    /// The nofeedback timer has already lowered the rate; the retransmission leaves at that rate.
    fn on_rto(&mut self, _timeout: &Timeout, path: &Path) -> BackOff {
        if !self.hears {
            self.note_own_loss(path);
        }
        BackOff::Double
    }

    fn spacing(&self) -> Spacing {
        Spacing::at(Some(Rate::from_bytes_per_s(self.instantaneous())))
    }

    /// Section 4.2: with the handshake's round trip, one initial window per round trip.
    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        if event != ConnectionEvent::Established {
            return;
        }
        self.segment = f64::from(path.mss.max(1));
        if !path.srtt.is_zero() {
            self.sample(path.srtt);
            self.open(path.now);
        }
        self.begin(path.now);
    }

    fn snapshot(&self) -> WindowState {
        let phase = if self.p > 0.0 { "equation" } else { "slow-start" };
        state(self, f64::INFINITY, phase)
    }

    fn requirements(&self) -> Requirements {
        Requirements { accounting: Accounting::Own, pacing: true, ..Requirements::default() }
    }

    fn feedback(&mut self) -> Option<&mut dyn Feedback> {
        Some(self)
    }

    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        Some(self)
    }
}

impl Feedback for Tfrc {
    fn receiver(&self) -> u8 {
        RECEIVER.number
    }

    fn stamp(&mut self, _sent: &Sent, path: &Path) -> Extension {
        let stamp = Stamp { number: self.number, rtt_us: (path.srtt.as_nanos() / 1000) as u32 };
        self.number = self.number.wrapping_add(1);
        Extension::Value(stamp.to_value())
    }

    fn on_feedback(&mut self, fields: &Extension, path: &Path) {
        let Extension::Value(value) = fields else { return };
        let Some(report) = Report::from_value(*value) else { return };
        self.hears = true;
        if self.last.is_none_or(|(last, _)| last != report) {
            self.on_report(report, path.now);
        }
    }
}

impl Sleeper for Tfrc {
    fn wake_at(&self) -> Instant {
        self.no_feedback_at
    }

    fn on_wake(&mut self, path: &Path) -> Wake {
        if path.now >= self.no_feedback_at {
            self.on_no_feedback(path.now, path.outstanding == 0);
        }
        Wake::Quiet
    }
}

#[cfg(test)]
mod tests;
