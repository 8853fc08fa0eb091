//! Zenith: every flow aims at the same small queueing delay as a function of its rate.
//!
//! A scheme of our own. `papers/zenith.md` has the law, the argument for each term, and what the law is worse at. Symbols of the note:
//! w is `Zenith::window`, x `Zenith::rate`, q* `Zenith::own_target_s`, q `Delay::queue_s`, Q `Zenith::mean_s`, O `Zenith::overflow_s`.

mod coexistence;
mod delay;
mod drain;
mod law;
mod loss;
mod start;

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant, Rate};
use serde::{Deserialize, Serialize};

use crate::cubic;
use crate::parameters::{at_least_zero, fraction, positive};
use crate::parts::windowed::WindowedMax;
use crate::{
    Accounting, Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path, Priority,
    SENDER_ONLY, Sent, Spacing, Start, Timeout, Undo, Wants, WindowState, state,
};
use coexistence::Contest;
use delay::Delay;
use drain::{Crowd, Drains, Phase};
use start::Chirp;

/// What `bentpipe list cc` says of it.
pub const ENTRY: Entry = Entry {
    name: "zenith",
    title: "aims at the same small queueing delay for every flow of a rate, and takes only losses with a queue for congestion",
    paper: "our own (papers/zenith.md)",
    year: 2026,
    in_kernel: true,
    family: Family::Model,
    advice: "for one or many of itself on a satellite link, with or without noise: a full link and a short queue; in a queue shorter than ten milliseconds many flows of it lose more than CUBIC's.",
    ..SENDER_ONLY
};

/// Parameters of Zenith.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// a: seconds of queue that every flow aims at, whatever its rate.
    #[serde(deserialize_with = "positive")]
    pub floor_s: f64,
    /// p: seconds of queue times the root of the rate in segments a second.
    #[serde(deserialize_with = "positive")]
    pub price: f64,
    /// g: share of the missing queue that one round trip corrects.
    #[serde(deserialize_with = "fraction")]
    pub gain: f64,
    /// m: factor by which shares converge faster than the law alone would make them.
    #[serde(deserialize_with = "positive")]
    pub sharing: f64,
    /// K: seconds of queue that one loss a second stands for, where losses and not delays tell of it, in s².
    #[serde(deserialize_with = "at_least_zero")]
    pub loss_s2: f64,
    /// T: seconds over which the mean queue is taken, and between drains.
    #[serde(deserialize_with = "positive")]
    pub memory_s: f64,
    /// n: share of losses in a round trip that never counts as congestion, and that a path is believed to lose until it shows its own.
    #[serde(deserialize_with = "fraction")]
    pub noise: f64,
    /// True if the first flight measures the rate of the path; otherwise the window doubles from the first.
    pub measured_start: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            floor_s: 0.002,
            price: 0.14,
            gain: 0.5,
            sharing: 4.0,
            loss_s2: 0.02,
            memory_s: 10.0,
            noise: 0.008,
            measured_start: true,
        }
    }
}

impl Config {
    /// A Zenith sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(Zenith::new(*self, start))
    }

    /// q*: the queue that a flow of this rate aims at, that of a segment a second where it is slower.
    fn target_s(&self, rate: f64) -> f64 {
        self.floor_s + self.price / libm::sqrt(rate.max(1.0))
    }
}

/// Smallest window, in segments: a receiver acknowledges every second one at once (RFC 9293, section 3.8.6.3).
const SMALLEST: f64 = 2.0;
/// A queue below this share of the target counts as none.
const CALM: f64 = 0.25;
/// The longest queue that the law takes into account, as a multiple of the target.
const LONGEST: f64 = 3.0;
/// Pacing rate in windows per round trip: a little more than one, so that the window and not the pacing limits the rate.
const PACE: f64 = 1.02;
/// Largest gap between segments in seconds. A receiver holds the ACK of a lone segment back for 40 ms; slower flows send pairs with this gap.
const PAIR_S: f64 = 0.02;
/// ACKs that pause for a round trip and this are a silence: those of a flow that sends once in a round trip pause for one, and a receiver may
/// hold them back.
const SILENCE: Duration = Duration::from_millis(100);
/// Time for which the longest queue is remembered.
const LONGEST_WINDOW: Duration = Duration::from_secs(10);

/// Segments that left in the previous round trip, whose losses are detected in this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Before {
    Ordinary,
    /// More than the window allows since then.
    Cut,
    /// What filled the path but not the queue.
    Drained,
}

/// Counts of a round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    since: Instant,
    before: Before,
    delivered: f64,
    lost: f64,
    /// Most segments in flight at an ACK, what it reports included.
    in_flight: f64,
    /// Longest queue that a segment saw, in seconds.
    longest_s: f64,
    /// The peer's clock when the round began, in milliseconds.
    clock: Option<u32>,
}

impl Round {
    fn new(since: Instant, before: Before, clock: Option<u32>) -> Self {
        Self { since, before, delivered: 0.0, lost: 0.0, in_flight: 0.0, longest_s: 0.0, clock }
    }

    /// Segments a second. By the peer's clock, with the millisecond that it hides, where ACKs are held up on their way back.
    fn rate(&self, now: Instant, clock: Option<u32>) -> f64 {
        let took_s = now.since(self.since).as_secs_f64();
        let peer_s = self.clock.zip(clock).map_or(f64::INFINITY, |(from, to)| {
            (f64::from(to.wrapping_sub(from)) + 1.0) / 1000.0
        });
        self.delivered / took_s.min(peer_s)
    }
}

/// Who sets the window between drains.
#[derive(Clone, Debug)]
enum Mode {
    /// The first flight measures the path.
    Measure(Box<Chirp>),
    /// The window doubles up to this.
    Double { threshold: f64 },
    /// The law.
    Follow,
    /// CUBIC's curve, beside flows that do not drain.
    Contest(Contest),
}

/// A Zenith sender.
#[derive(Clone, Debug)]
pub struct Zenith {
    config: Config,
    window: f64,
    mode: Mode,
    phase: Phase,
    delay: Delay,
    /// Q, and the part of it that losses stand for.
    mean_s: f64,
    overflow_s: f64,
    /// Multiple of the law's growth, and round trips in a row without a queue.
    speed: f64,
    calm_rounds: u32,
    /// b: share of segments that the path loses without a queue, and losses that it still explains.
    noise: f64,
    allowance: f64,
    drains: Drains,
    crowd: Crowd,
    round: Round,
    /// Segments a second in the last round trip, and in the one before.
    delivery_rate: f64,
    delivery_rate_before: f64,
    /// Most segments in flight in the round trip before.
    in_flight_before: f64,
    /// Longest queue that two ACKs in a row showed in the last seconds: a receiver that holds an ACK back (RFC 9293, section 3.8.6.3) does so once.
    longest: WindowedMax<f64>,
    previous_s: f64,
    /// Segments delivered, and time, since the law's last step.
    pending: (f64, Duration),
    /// The window before a timeout, until the timeout proves to have been one or none.
    before_timeout: Option<f64>,
    timed_out: bool,
    /// Segments that left before this are not measured.
    trusted_from: Instant,
    last_ack: Instant,
    sent: u32,
    rtt_s: f64,
    mss: f64,
}

impl Zenith {
    /// A sender before its handshake.
    pub fn new(config: Config, start: &Start) -> Self {
        let doubles = Mode::Double { threshold: f64::INFINITY };
        let measures = || Mode::Measure(Box::new(Chirp::new(start.initial_window)));
        Self {
            config,
            window: start.initial_window.max(1.0),
            mode: if config.measured_start { measures() } else { doubles },
            phase: Phase::None,
            delay: Delay::new(),
            mean_s: 0.0,
            overflow_s: 0.0,
            speed: 1.0,
            calm_rounds: 0,
            noise: config.noise,
            allowance: 0.0,
            drains: Drains::new(),
            crowd: Crowd::default(),
            round: Round::new(Instant::ZERO, Before::Ordinary, None),
            delivery_rate: 0.0,
            delivery_rate_before: 0.0,
            in_flight_before: 0.0,
            longest: WindowedMax::new(LONGEST_WINDOW.as_nanos()),
            previous_s: 0.0,
            pending: (0.0, Duration::ZERO),
            before_timeout: None,
            timed_out: false,
            trusted_from: Instant::ZERO,
            last_ack: Instant::FAR_FUTURE,
            sent: 0,
            rtt_s: 0.0,
            mss: f64::from(start.mss),
        }
    }

    /// A round trip was measured.
    fn sample(&mut self, rtt: Duration, ack: &Ack, path: &Path) {
        // A quarter of a round trip, or more of it where that brings less than six ACKs.
        let span = (rtt * 6 / u64::from(path.in_flight.max(1))).clamp(rtt / 4, rtt);
        self.delay.sample(path.now, rtt, ack.peer_clock, span);
        let latest_s = self.delay.latest_s();
        self.longest.update(path.now.as_nanos(), latest_s.min(self.previous_s));
        self.previous_s = latest_s;
        self.round.longest_s = self.round.longest_s.max(latest_s);
        // A path that shows itself without a queue needs no drain, but a contest is judged by drains alone.
        let contests = matches!(self.mode, Mode::Contest(_));
        if rtt < self.drains.lowest || (rtt == self.drains.lowest && !contests) {
            (self.drains.lowest, self.drains.lowest_at) = (rtt, path.now);
        }
    }

    /// Once per round trip: speed, losses, and whether the path is still the same.
    fn end_round(&mut self, path: &Path) {
        let next = Round::new(path.now, Before::Ordinary, self.delay.clock);
        let round = core::mem::replace(&mut self.round, next);
        let took_s = path.now.since(round.since).as_secs_f64();
        self.in_flight_before = round.in_flight;
        if took_s > 0.0 {
            self.delivery_rate_before = self.delivery_rate;
            self.delivery_rate = round.rate(path.now, self.delay.clock);
        }
        let queue_s = self.delay.queue_s();
        self.count_calm(round.before, queue_s, path.now);
        let contests = matches!(self.mode, Mode::Contest(_));
        if round.before != Before::Cut {
            if !contests {
                self.charge(&round, took_s);
            }
            self.learn_noise(&round);
        }
        if round.before != Before::Cut && self.is_excessive(&round) {
            self.crowd.overflowed = true;
            if contests {
                self.reduce_as_cubic(path.now);
            } else if round.before == Before::Ordinary {
                if self.saw_queue(&round) {
                    self.fit(path.now, self.delivery_rate);
                }
                return;
            }
        }
        if round.before == Before::Drained {
            self.judge_drain(path.now);
        }
        self.watch_queue(queue_s);
    }

    /// What left before a silence says nothing of the path.
    fn distrust(&mut self, now: Instant) {
        self.trusted_from = now;
        self.cut_round(now);
    }

    /// An ACK after a timeout: as CUBIC after its slow start (RFC 9438, section 4.8), but at once, since segments are paced.
    fn resume(&mut self, now: Instant) {
        if !core::mem::take(&mut self.timed_out) {
            return;
        }
        self.distrust(now);
        if let Some(window) = self.before_timeout {
            self.window = (cubic::BETA * window).max(SMALLEST);
            if !matches!(self.mode, Mode::Follow | Mode::Contest(_)) {
                self.settle();
            }
        }
    }
}

impl CongestionControl for Zenith {
    fn window(&self) -> f64 {
        if let Phase::Drain { window, .. } = self.phase { window.min(self.window) } else { self.window }
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.mss = f64::from(path.mss);
        self.rtt_s = path.srtt_s();
        let since = path.now.since(self.last_ack);
        self.last_ack = path.now;
        if since > path.srtt + SILENCE {
            self.distrust(path.now);
        }
        if ack.acked > 0 {
            self.resume(path.now);
        } else if self.timed_out {
            return;
        }
        let segments = ack.delivered_bytes as f64 / self.mss;
        self.round.delivered += segments;
        self.round.lost += f64::from(ack.lost);
        self.round.in_flight = self.round.in_flight.max(f64::from(path.in_flight) + segments);
        let rtt = ack.rtt.filter(|rtt| !rtt.is_zero() && path.now - *rtt >= self.trusted_from);
        if let Some(rtt) = rtt {
            self.sample(rtt, ack, path);
        }
        self.drain(path);
        let begins = self.begin(rtt, segments, path.now);
        let Some(rtt) = rtt else { return };
        if path.now - rtt >= self.round.since && !matches!(self.phase, Phase::Drain { .. }) {
            self.end_round(path);
        }
        if !begins && self.phase == Phase::None {
            self.steer(segments, since, path);
        }
    }

    /// Losses are counted one by one, so the beginning of a loss episode changes nothing. A congestion mark counts as it does for CUBIC.
    fn on_loss(&mut self, loss: &Loss, path: &Path) {
        if !self.timed_out {
            self.before_timeout = None;
        }
        if loss.cause == Cause::Mark {
            self.reduce_as_cubic(path.now);
        }
    }

    fn on_rto(&mut self, _timeout: &Timeout, _path: &Path) -> BackOff {
        if !self.timed_out || self.before_timeout.is_none() {
            self.before_timeout = Some(self.window);
        }
        (self.window, self.timed_out) = (1.0, true);
        BackOff::Double
    }

    fn on_undo(&mut self, _undo: Undo, _path: &Path) {
        if let Some(window) = self.before_timeout.take() {
            self.window = window;
        }
    }

    fn spacing(&self) -> Spacing {
        let base_s = self.delay.base_s();
        let per_s = match &self.mode {
            Mode::Measure(_) if self.rtt_s > 0.0 => 1.0 / Chirp::gap_s(self.sent, self.rtt_s),
            // By the path's own round trip: a smoothed one holds what waited on the way back, too.
            Mode::Double { threshold } => {
                (2.0 * self.window).min(*threshold) / if base_s > 0.0 { base_s } else { self.rtt_s }
            }
            _ => PACE * self.rate(),
        };
        if !(per_s > 0.0 && per_s.is_finite()) {
            return Spacing::None;
        }
        let rate = Rate::from_bytes_per_s(per_s * self.mss);
        if per_s * PAIR_S < 1.0 && !matches!(self.mode, Mode::Measure(_)) {
            Spacing::Pairs { rate, gap: Duration::from_secs_f64(PAIR_S) }
        } else {
            Spacing::at(Some(rate))
        }
    }

    fn on_sent(&mut self, _sent: &Sent, path: &Path) -> Priority {
        if let Mode::Measure(chirp) = &mut self.mode {
            chirp.on_sent(path.now, self.sent);
        }
        self.sent = self.sent.saturating_add(1);
        if path.outstanding <= 1 {
            // ACKs that nothing was sent for are no silence.
            self.last_ack = path.now;
        }
        Priority::Normal
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        match event {
            // Before the first segment: a SYN was lost (RFC 5681, section 3.1), and others may have begun at the same time.
            ConnectionEvent::Idle { restart } if self.sent == 0 => {
                self.window = restart;
                self.mode = Mode::Double { threshold: f64::INFINITY };
            }
            ConnectionEvent::Unvalidated { floor } => {
                self.window = self.window.min(floor.max(0.5 * self.window));
            }
            ConnectionEvent::Established => {
                (self.mss, self.rtt_s, self.last_ack) = (f64::from(path.mss), path.srtt_s(), path.now);
                self.round = Round::new(path.now, Before::Ordinary, None);
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> WindowState {
        let phase = match (&self.mode, self.phase) {
            _ if self.timed_out => "timeout",
            (Mode::Measure(_), _) => "measure",
            (Mode::Double { .. }, _) => "double",
            (_, Phase::Drain { .. }) => "drain",
            (Mode::Follow, _) => "follow",
            (Mode::Contest(_), _) => "contest",
        };
        state(self, f64::INFINITY, phase)
    }

    fn wants(&self) -> Wants {
        Wants { accounting: Accounting::Own, sent: true, pacing: true, ..Wants::default() }
    }
}

#[cfg(test)]
mod tests;
