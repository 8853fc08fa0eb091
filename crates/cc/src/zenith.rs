//! Zenith: every flow aims at the same small queueing delay as a function of its rate.
//!
//! A scheme of our own; its law, why each term is there, and what it is worse at stand in `papers/zenith.md`.
//!
//! | note                       | here                       | unit         |
//! |----------------------------|----------------------------|--------------|
//! | w                          | `Zenith::window`           | segments     |
//! | base, s, q                 | `Delay`                    | s            |
//! | x = w / s                  | `Zenith::rate`             | segments / s |
//! | q*(x) = a + p / sqrt(x)    | `Config::target_s`         | s            |
//! | Q                          | `Zenith::mean_s`           | s            |
//! | T                          | `Zenith::memory_s`         | s            |
//! | K, O                       | `Config::loss_s2`, `Zenith::overflow_s` | s², s |
//! | g, m                       | [`Config::gain`], [`Config::sharing`] | -  |
//! | v                          | `Zenith::speed`            | -            |

mod delay;
mod start;

use alloc::boxed::Box;
use core::f64::consts::E;

use bentpipe_base::{Duration, Instant, Rate};
use serde::{Deserialize, Serialize};

use crate::cubic::{self, Curve};
use crate::parameters::{at_least_zero, fraction, positive};
use crate::parts::windowed::WindowedMax;
use crate::{
    Accounting, Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path, Priority,
    SENDER_ONLY, Sent, Spacing, Start, Timeout, Wants, WindowState, state,
};
use delay::{Delay, Smallest};
use start::{Chirp, FLIGHT_RATE, Finding, Groups, LEAST_FLIGHT};

/// What `bentpipe list cc` says of it.
pub const ENTRY: Entry = Entry {
    name: "zenith",
    title: "aims at the same small queueing delay for every flow of a rate, and takes only losses with a queue for congestion",
    paper: "our own (papers/zenith.md)",
    year: 2026,
    in_kernel: true,
    family: Family::Model,
    advice: "For any number of its own flows on a satellite link, with or without errors: a full link and a short queue. In a queue of less than ten milliseconds many flows lose more than CUBIC's.",
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
    /// m: how much faster shares converge than the law alone would make them; 0 for the law alone.
    #[serde(deserialize_with = "at_least_zero")]
    pub sharing: f64,
    /// K: queue in seconds that Zenith infers from one loss per second, where losses and not delays show a queue, in s².
    #[serde(deserialize_with = "at_least_zero")]
    pub loss_s2: f64,
    /// T: round trips over which the mean queue is taken, and between drains.
    #[serde(deserialize_with = "positive")]
    pub memory_rtts: f64,
    /// The least of T, in seconds.
    #[serde(deserialize_with = "positive")]
    pub memory_least_s: f64,
    /// The most of T, in seconds, unless it is less than the least.
    #[serde(deserialize_with = "positive")]
    pub memory_most_s: f64,
    /// Share of losses in a round trip that is never taken for congestion, and what the path is believed to lose as far as drains have not shown it.
    #[serde(deserialize_with = "fraction")]
    pub noise: f64,
    /// The first two flights measure the path; otherwise the window doubles from the first.
    pub measured_start: bool,
    /// The peer's clock tells the queue on the way out from that on the way back.
    pub outward: bool,
    /// What overflows the queue counts as a queue.
    pub overflow: bool,
    /// Once in T the queue runs empty.
    pub drains: bool,
    /// Beside flows that do not drain, the window follows CUBIC's.
    pub contest: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            floor_s: 0.002,
            price: 0.14,
            gain: 0.5,
            sharing: 4.0,
            loss_s2: 0.02,
            memory_rtts: 20.0,
            memory_least_s: 5.0,
            memory_most_s: 10.0,
            noise: 0.008,
            measured_start: true,
            outward: true,
            overflow: true,
            drains: true,
            contest: true,
        }
    }
}

impl Config {
    /// A Zenith sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(Zenith::new(*self, start))
    }

    /// q*: the queue that a flow of this rate aims at.
    fn target_s(&self, rate: f64) -> f64 {
        self.floor_s + self.price / libm::sqrt(rate)
    }

    /// ln(x_t / x), held within -1 and 1, where flows aim at the first queue and this one at the second. Rates are as the inverse squares of
    /// what these queues have above a, so it is 2 ln(a / b) = 4 artanh((a - b) / (a + b)); four terms of that are exact to 1e-5.
    fn apart(&self, fair_s: f64, own_s: f64) -> f64 {
        let (fair, own) = ((fair_s - self.floor_s).max(1e-6), own_s - self.floor_s);
        let z = (own - fair) / (own + fair);
        let square = z * z;
        (4.0 * z * (1.0 + square * (1.0 / 3.0 + square * (0.2 + square / 7.0)))).clamp(-1.0, 1.0)
    }
}

/// Smallest window, in segments: what a timeout leaves.
const SMALLEST: f64 = 2.0;
/// Pacing rate in windows per round trip: a little more than one, so that the window and not the pacing limits the rate.
const PACE: f64 = 1.02;
/// Seconds between segments at most: a receiver holds the ACK of a lone segment back, Linux for 40 ms at least. Slower flows send in pairs with this gap.
const PAIR_S: f64 = 0.02;
/// Steps of the law in a smoothed round trip at most. The standing queue, which it follows, is the smallest of a quarter of a round trip, kept in
/// quarters of that; a step of this length delays the loop of 1.25 round trips by a thirty-second of one.
const STEPS: u64 = 16;
/// Largest change of the window for a delivered segment.
const STEP: f64 = 0.5;
/// Largest growth, as a multiple of what the law gives. With 32 a window grows by a quarter in a round trip, less than it does while it doubles.
const FASTEST: f64 = 32.0;
/// A queue that is smaller than this share of the target counts as no queue.
const CALM: f64 = 0.25;
/// Losses stand for a queue where the longest queue of the last seconds is shorter than so many targets.
const DEEP: f64 = 1.5;
/// A segment saw a long queue if it is at least this share of the longest one of the last seconds.
const LONG: f64 = 0.5;
/// If a drain changes the measured queue by less than this share of it, and by less than so many seconds, there was no
/// queue, and the path has become longer.
const FLAT: f64 = 0.05;
const STILL_S: f64 = 0.0005;
/// In a contest a round trip that so many drains in a row have found is that of the path: the queue of flows that fill it falls when they
/// notice their losses.
const SAME: u32 = 2;
/// If packets are lost to an overflow so soon after the path was found to be longer, that finding was wrong and there is a queue.
const REGRET: Duration = Duration::from_secs(10);
/// The longest queue that the law takes into account, as a multiple of the target.
const LONGEST: f64 = 3.0;
/// If a drain leaves more than so many targets, others do not drain. The queue that N equal flows aim at is the root of N times that of one
/// with all of their rate: one that has nearly all of it, and drains alone, leaves this to 16 that have just begun.
const FOREIGN: f64 = 4.0;
/// Nor is there a flow of our kind that aims at a longer queue than one of the smallest window does: more than so many of its targets are others'.
const LONGEST_OWN: f64 = 2.0;
/// A flow yields to others who do not drain if it has less than this share of the window that it had when a drain last left no queue, and so many
/// drains in a row have left at least this share of the queue before them. Flows of our kind drain together soon, and those that are not
/// yet in step see half of the queue go.
const YIELDED: f64 = 0.5;
const FILLS: f64 = 0.75;
const FILLED_DRAINS: u32 = 3;
/// For the first contest of a connection, the queue that a drain leaves must have been there for so many T: a flow of our kind that has begun meanwhile
/// drains T after the lowest round trip that it has seen, and the drains of others show it lower ones. With 2 one flow beside one of CUBIC
/// had less than a third of its share in a run of fifty.
const FIRST_DRAINS: f64 = 1.5;
/// A contest in which more than this share is lost is one of flows of our kind with each other, which lose a tenth and more; beside one and four of CUBIC in
/// a queue of a bandwidth-delay product 1.4 and 3.1 % are lost.
const FUTILE: f64 = 0.05;
/// So many silences in a row, without a round trip between them that is measured, are congestion.
const MOST_SILENCES: u32 = 3;
/// What the path is believed to lose before a drain shows it weighs as much as so many segments in drains, and is never forgotten: of a slow flow few
/// segments leave in drains, and a flow that takes the path's losses for those of a queue becomes slower still.
const BELIEF: f64 = 100.0;
/// Losses that a path could have had and did not have are saved up for later round trips, up to so many standard deviations of those of one.
const SAVED: f64 = 9.0;
/// Rounds between two drains at least.
const DRAIN_ROUNDS: u32 = 8;
/// For how long the longest queue is remembered.
const LONGEST_WINDOW: Duration = Duration::from_secs(10);
/// The factor by which the weight of a drain falls at the next one, and the largest share of losses that a path is believed to have without a queue:
/// a binary fraction, so that the losses it explains are exact in the integers of the kernel, too.
const NOISE_MEMORY: f64 = 0.875;
const MOST_NOISE: f64 = 0.125;
/// Share of the path that stays full in a drain, and its length in round trips.
const DRAIN_DEPTH: f64 = 0.95;
const DRAIN_RTTS: f64 = 1.1;

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
    /// Longest queue that a single segment saw.
    longest: Duration,
    /// The peer's clock when the round began, in milliseconds.
    clock: Option<u32>,
}

impl Round {
    fn new(since: Instant, before: Before, clock: Option<u32>) -> Self {
        Self { since, before, delivered: 0.0, lost: 0.0, in_flight: 0.0, longest: Duration::ZERO, clock }
    }
}

/// The states of draining.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Tide {
    /// Between drains: the law sets the window.
    Usual,
    /// In a drain: until this time the window is so small that the queue runs empty.
    Ebb { window: f64, until: Instant },
    /// The window is restored, and the segments that left while it was small are still on their way.
    Flood,
}

/// Drains: for a round trip the flow lets the queue run empty, which shows the path without it. All flows see the same lowest round trip,
/// and those of one round trip drain T after it together.
#[derive(Clone, Copy, Debug)]
struct Drain {
    tide: Tide,
    /// The lowest round trip since the last drain began, and when it was.
    lowest: Duration,
    lowest_at: Instant,
    /// Standing and smallest round trip before it, in seconds.
    standing_s: f64,
    base_s: f64,
    /// The lowest round trip between the two drains before, and how many drains in a row have found the same.
    before: Duration,
    same: u32,
    /// The window when a drain last left no queue, or when the start ended, at least half of that before; and how many drains in a row have left most
    /// of the queue since.
    emptied_window: f64,
    filled: u32,
}

/// Beside flows that do not drain: the window grows and shrinks as CUBIC's does (RFC 9438), since the last loss.
#[derive(Clone, Copy, Debug)]
struct Contest {
    since: Instant,
    curve: Curve,
}

/// The state of the connection.
#[derive(Clone, Debug)]
enum Stage {
    Chirp(Box<Chirp>),
    Groups(Groups),
    Doubling,
    Steady,
}

/// A Zenith sender.
#[derive(Clone, Debug)]
pub struct Zenith {
    config: Config,
    window: f64,
    stage: Stage,
    delay: Delay,
    mean_s: f64,
    speed: f64,
    /// O: the part of Q that losses stand for.
    overflow_s: f64,
    calm_rounds: u32,
    crowded_rounds: u32,
    /// Segments sent and lost in those rounds.
    crowded: (f64, f64),
    /// The window when they began; 0 while there are none.
    crowded_window: f64,
    /// When a round trip last ended without a queue, or when the start ended.
    empty_at: Instant,
    contest: Option<Contest>,
    /// Whether there has been a contest.
    met_others: bool,
    /// Losses that the path's own share still explains.
    allowance: f64,
    /// The smallest delays before the path was found to be longer, and when that was.
    rebased: Option<(Smallest, Instant)>,
    rounds_since_drain: u32,
    round: Round,
    /// Segments a second in the last round trip, and in the one before.
    delivery_rate: f64,
    delivery_rate_before: f64,
    /// Most segments in flight in the round trip before.
    in_flight_before: f64,
    drain: Drain,
    /// Longest queue that two ACKs in a row showed in the last seconds: a receiver that holds an ACK back (RFC 9293, section 3.8.6.3) does so once.
    longest: WindowedMax<Duration>,
    /// What the ACK before showed.
    previous_queue: Duration,
    /// Segments sent and lost in drains, when the queue is empty, so that no congestion explains these losses. Recent drains weigh most; what is believed
    /// before them is among these.
    drained: (f64, f64),
    /// Segments that left before this one are not measured.
    trusted_from: Instant,
    last_ack: Instant,
    /// Segments delivered since the law's last step, and the time that passed.
    pending: (f64, Duration),
    /// If no ACK arrives until this time, ACKs have paused, and the next one is not measured.
    expected_by: Instant,
    /// The window before a timeout.
    before_timeout: Option<f64>,
    /// Silences since a round trip was measured.
    silences: u32,
    sent: u32,
    rtt_s: f64,
    mss: f64,
}

impl Zenith {
    /// A sender before its handshake.
    pub fn new(config: Config, start: &Start) -> Self {
        // A first flight of one segment, as after a lost SYN, measures nothing. Others that began at the same time may repair
        // their first flights: a path that would look idle is not.
        let stage = if config.measured_start && start.initial_window > 1.0 {
            Stage::Chirp(Box::new(Chirp::new(start.initial_window)))
        } else {
            Stage::Doubling
        };
        Self {
            config,
            window: start.initial_window.max(1.0),
            stage,
            delay: Delay::new(config.outward),
            mean_s: 0.0,
            speed: 1.0,
            overflow_s: 0.0,
            calm_rounds: 0,
            crowded_rounds: 0,
            crowded: (0.0, 0.0),
            crowded_window: 0.0,
            empty_at: Instant::ZERO,
            contest: None,
            met_others: false,
            allowance: 0.0,
            rebased: None,
            rounds_since_drain: 0,
            round: Round::new(Instant::ZERO, Before::Ordinary, None),
            delivery_rate: 0.0,
            delivery_rate_before: 0.0,
            in_flight_before: 0.0,
            drain: Drain {
                tide: Tide::Usual,
                lowest: Duration::MAX,
                lowest_at: Instant::ZERO,
                standing_s: 0.0,
                base_s: 0.0,
                before: Duration::MAX,
                same: 0,
                emptied_window: 0.0,
                filled: 0,
            },
            longest: WindowedMax::new(LONGEST_WINDOW.as_nanos()),
            previous_queue: Duration::ZERO,
            drained: (BELIEF, BELIEF * config.noise),
            trusted_from: Instant::ZERO,
            last_ack: Instant::ZERO,
            pending: (0.0, Duration::ZERO),
            expected_by: Instant::FAR_FUTURE,
            before_timeout: None,
            silences: 0,
            sent: 0,
            rtt_s: 0.0,
            mss: f64::from(start.mss),
        }
    }

    /// x.
    fn rate(&self) -> f64 {
        let standing = self.delay.standing();
        if standing.is_zero() { 0.0 } else { self.window * 1e9 / standing.as_nanos() as f64 }
    }

    /// q* of this flow, as that of a segment a second where it is slower.
    fn own_target_s(&self) -> f64 {
        self.config.target_s(self.rate().max(1.0))
    }

    /// An ACK after a pause of the ACKs: the delay of what was in flight meanwhile is not that of a queue.
    fn hear(&mut self, path: &Path) {
        if path.now > self.expected_by {
            self.silences += 1;
            if self.silences >= MOST_SILENCES {
                self.give_way();
            }
            self.trusted_from = path.now;
            self.cut_round(path.now);
        }
        self.last_ack = path.now;
        self.expected_by = path.now + Self::patience(path);
    }

    /// Silence after silence, and no round trip between them that could be measured: that is no outage, it is a queue that overflows.
    fn give_way(&mut self) {
        if matches!(self.stage, Stage::Doubling) {
            self.settle();
            return;
        }
        let window = self.before_timeout.as_mut().unwrap_or(&mut self.window);
        *window = (0.5 * *window).max(SMALLEST);
    }

    /// What left before now is no longer measured: neither its rate nor its losses, nor the drain that it belongs to.
    fn cut_round(&mut self, now: Instant) {
        self.drain.tide = Tide::Usual;
        self.round = Round::new(now, Before::Cut, self.delay.clock);
    }

    /// How long ACKs may pause: those of a flow that sends once in a round trip do so for a round trip.
    fn patience(path: &Path) -> Duration {
        path.srtt + Duration::from_millis(100)
    }

    fn sample(&mut self, rtt: Duration, ack: &Ack, path: &Path) {
        // A quarter of a round trip, or more of it where that brings less than six ACKs. Most flows need no division to know it.
        let span = match u64::from(path.in_flight) {
            24.. => rtt / 4,
            few => (rtt * 6 / few.max(1)).clamp(rtt / 4, rtt),
        };
        self.delay.sample(path.now, rtt, ack.peer_clock, span);
        let latest = self.delay.latest_queue();
        self.longest.update(path.now.as_nanos(), latest.min(self.previous_queue));
        self.previous_queue = latest;
        self.round.longest = self.round.longest.max(latest);
        // A path that shows itself without a queue needs no drain, but a contest is judged by drains alone.
        if rtt < self.drain.lowest || (rtt == self.drain.lowest && self.contest.is_none()) {
            (self.drain.lowest, self.drain.lowest_at) = (rtt, path.now);
        }
    }

    /// One of the first ACKs. True as long as the start, and not the law, sets the window.
    fn begin(&mut self, rtt: Option<Duration>, segments: f64, path: &Path) -> bool {
        if matches!(self.stage, Stage::Steady) {
            return false;
        }
        let base_s = self.delay.base_s();
        let overflowed = self.is_excessive(&self.round);
        match &mut self.stage {
            Stage::Steady => {}
            // The first flight leaves at once. Several of them overflow a queue that could carry the same segments in a round trip,
            // so what is lost of it says nothing of the rate.
            Stage::Chirp(_) if overflowed => self.double(path.now),
            Stage::Chirp(chirp) => {
                let Some(rtt) = rtt else { return true };
                match chirp.on_ack(path.now, rtt, segments) {
                    Finding::Waiting => {}
                    Finding::Idle(capacity) if FLIGHT_RATE * capacity * base_s >= LEAST_FLIGHT => {
                        self.stage = Stage::Groups(Groups::new(capacity, chirp.flight as u32, path.now));
                        self.window = self.window.max(FLIGHT_RATE * capacity * base_s);
                    }
                    _ => self.double(path.now),
                }
            }
            // Others have begun at the same time.
            Stage::Groups(groups) if overflowed => {
                self.window = f64::from(groups.first);
                self.double(path.now);
            }
            Stage::Groups(groups) => {
                let capacity = groups.capacity;
                if let Some(used) = rtt.and_then(|rtt| groups.on_ack(path.now, rtt)) {
                    let share = if used < 0.1 { 1.0 } else { 0.8 * (1.0 - used) };
                    self.window = (share * capacity * base_s).max(f64::from(groups.first));
                    self.settle();
                }
            }
            Stage::Doubling => {
                let target_s = self.own_target_s();
                if self.delay.queue_s() > 0.5 * target_s + 0.001 {
                    self.settle();
                } else if self.is_used() {
                    self.window += segments;
                }
            }
        }
        true
    }

    /// Leaves the first flight, whose losses may still be found in the round trip that begins.
    fn double(&mut self, now: Instant) {
        self.stage = Stage::Doubling;
        self.cut_round(now);
    }

    fn settle(&mut self) {
        self.stage = Stage::Steady;
        self.drain.emptied_window = self.window;
        self.empty_at = self.last_ack;
        self.calm_rounds = 0;
        self.mean_s = self.own_target_s();
    }

    /// T.
    fn memory_s(&self) -> f64 {
        let Config { memory_rtts, memory_least_s, memory_most_s, .. } = self.config;
        (memory_rtts * self.delay.base_s()).min(memory_most_s).max(memory_least_s)
    }

    /// Whether the window was used in this round trip or in the one before, but for a quarter and a segment: only then may it grow. Where ACKs come many
    /// at once, it is full only at the first of them. Whole segments leave, and those of a slow flow in pairs, so that of a small window a segment and
    /// its fraction stay free.
    fn is_used(&self) -> bool {
        self.round.in_flight.max(self.in_flight_before) + 1.0 >= 0.75 * self.window
    }

    /// The law: `g x (q_t - q)` segments a round trip, spread over its steps.
    fn steer(&mut self, segments: f64, since: Duration, path: &Path) {
        self.pending = (self.pending.0 + segments, self.pending.1 + since);
        if self.pending.1 * STEPS < path.srtt {
            return;
        }
        let (segments, since) = core::mem::take(&mut self.pending);
        let rate = self.rate();
        if rate <= 0.0 {
            return;
        }
        if let Some(contest) = &self.contest {
            if self.is_used() {
                let after_s = path.now.since(contest.since).as_secs_f64() + self.rtt_s;
                let wanted = contest.curve.window(after_s).clamp(self.window, 1.5 * self.window);
                self.window += segments * (wanted / self.window - 1.0);
            }
            return;
        }
        let config = self.config;
        let (queue_s, own_s) = (self.delay.queue_s(), config.target_s(rate));
        let weight = (since.as_secs_f64() / self.memory_s()).min(1.0);
        self.overflow_s -= self.overflow_s * weight;
        self.mean_s += (queue_s.min(LONGEST * own_s) - self.mean_s) * weight;
        self.mean_s = self.mean_s.min(LONGEST * own_s);
        // Differences between flows decay without oscillation up to g m' Q / s = 1 / e, on short paths with a smaller m' than m.
        let urge = (config.sharing * ((own_s - config.floor_s) / (2.0 * config.floor_s)).min(1.0))
            .min(self.delay.standing_s() / (E * config.gain * self.mean_s));
        let apart = config.apart(self.mean_s, own_s);
        let target_s = if config.sharing > 0.0 { self.mean_s * (1.0 + urge * apart) } else { own_s };
        let mut step = config.gain * (target_s - queue_s) / self.loss_worth_s();
        if queue_s > CALM * own_s && self.speed > 1.0 {
            // The window was about to outgrow the path: where much arrives in one round trip and little in the next, the path carries the larger rate.
            self.fit(path.now, self.delivery_rate.max(self.delivery_rate_before));
            return;
        }
        // Two round trips without a queue say that there is room, even if Q remembers one.
        if self.speed > 1.0 {
            step = (self.speed * step).max(self.speed / 128.0);
        }
        if step > 0.0 && !self.is_used() {
            return;
        }
        self.window = (self.window + segments * step.clamp(-STEP, STEP)).max(SMALLEST);
    }

    /// The queue that the loss of every segment stands for: a round trip and, as far as losses and not delays make up Q, K for each segment
    /// a second. A full queue drops as many segments of a slow flow as of a fast one, so their number and not their share tells both the same.
    fn loss_worth_s(&self) -> f64 {
        self.delay.standing_s() + self.config.loss_s2 * self.rate() * self.loss_share()
    }

    /// O / Q: the share of Q that losses stand for.
    fn loss_share(&self) -> f64 {
        (self.overflow_s / self.mean_s.max(1e-6)).min(1.0)
    }

    /// Once per round trip: speed, losses, and whether the path is still the same.
    fn end_round(&mut self, path: &Path) {
        let next = Round::new(path.now, Before::Ordinary, self.delay.clock);
        let round = core::mem::replace(&mut self.round, next);
        let took_s = path.now.since(round.since).as_secs_f64();
        self.in_flight_before = round.in_flight;
        if took_s > 0.0 {
            // By the peer's clock, with the millisecond that it hides, where ACKs are held up on their way back.
            let peer_s = round
                .clock
                .zip(self.delay.clock)
                .map_or(f64::INFINITY, |(from, to)| (f64::from(to.wrapping_sub(from)) + 1.0) / 1000.0);
            self.delivery_rate_before = self.delivery_rate;
            self.delivery_rate = round.delivered / took_s.min(peer_s);
        }
        let queue_s = self.delay.queue_s();
        let target_s = self.own_target_s();
        let is_empty = queue_s < CALM * target_s;
        if is_empty {
            self.empty_at = path.now;
        }
        // After a silence the path fills first.
        if is_empty && self.is_used() && self.silences == 0 {
            self.calm_rounds += 1;
            if self.calm_rounds >= 2 && matches!(self.stage, Stage::Steady) {
                self.speed = (2.0 * self.speed).min(FASTEST);
            }
        } else {
            self.calm_rounds = 0;
        }
        if round.before != Before::Cut {
            self.silences = 0;
        }
        if self.contest.is_some() {
            self.contend(&round, path.now);
        } else if round.before != Before::Cut && self.config.overflow {
            self.charge(&round, took_s);
        }
        self.crowded.0 += round.delivered + round.lost;
        self.crowded.1 += round.lost;
        match round.before {
            Before::Ordinary if self.contest.is_none() && self.is_excessive(&round) => {
                if let Some((before, at)) = self.rebased.take()
                    && path.now.since(at) < REGRET
                {
                    // A path that had only become longer would not overflow: there was a queue.
                    self.delay.restore(path.now, before);
                }
                if self.saw_queue(&round) {
                    self.fit(path.now, self.delivery_rate);
                }
                return;
            }
            Before::Drained if self.judge_drain(path.now) => self.learn_noise(&round),
            _ => {}
        }
        if queue_s > 1.5 * target_s + 0.001 {
            if self.crowded_rounds == 0 {
                self.crowded_window = self.crowded_window.max(self.window);
            }
            self.crowded_rounds += 1;
        } else {
            self.leave_crowd();
        }
        self.rounds_since_drain += 1;
    }

    fn leave_crowd(&mut self) {
        (self.crowded_rounds, self.crowded, self.crowded_window) = (0, (0.0, 0.0), 0.0);
    }

    /// Sets the window to what a measured rate fills when the queue is at its target. Calling it twice changes nothing more.
    /// A rate over a round trip goes with the mean of its delays (Little's law): where ACKs wait on their way back, the smallest is far from it.
    /// While the queue grows fast the smoothed delay is behind it, and the window falls below what fills the path.
    fn fit(&mut self, now: Instant, rate: f64) {
        let target_s = self.own_target_s();
        let path_s = (self.rtt_s - self.delay.queue_s()).max(0.0);
        let fits = rate * (path_s + target_s);
        self.window = self.window.min(fits).max(SMALLEST);
        if !matches!(self.stage, Stage::Steady) {
            self.settle();
        }
        self.end_speed();
        self.cut_round(now);
    }

    /// The window grows as the law gives it again, until two more round trips show no queue.
    fn end_speed(&mut self) {
        self.speed = 1.0;
        self.calm_rounds = 0;
    }

    /// The share of segments that is lost although there is no queue.
    fn noise(&self) -> f64 {
        self.noise_without(0.0)
    }

    /// The same without so much of what is believed before drains show it.
    fn noise_without(&self, share: f64) -> f64 {
        let (sent, lost) = self.drained;
        let doubted = share * BELIEF;
        ((lost - doubted * self.config.noise) / (sent - doubted).max(1.0)).clamp(0.0, MOST_NOISE)
    }

    /// What was lost in a drain tells the path's own losses if no segment saw a queue. If one did, others overflow it, and losses
    /// are the less likely to be the path's.
    fn learn_noise(&mut self, round: &Round) {
        let (saw_queue, noise) = (self.saw_queue(round), self.config.noise);
        let belief = (1.0 - NOISE_MEMORY) * BELIEF;
        let (sent, lost) = &mut self.drained;
        *lost *= NOISE_MEMORY;
        if !saw_queue {
            *sent = NOISE_MEMORY * *sent + belief + round.delivered + round.lost;
            *lost += belief * noise + round.lost;
        }
    }

    /// A segment that overflows a queue is the rest of that queue: where one was seen, a share of losses beyond the path's own counts as
    /// that share of what the loss of everything stands for. Then `q` in the law and in Q is the queue that a larger buffer would hold.
    /// Where none was seen, or a buffer holds more than flows aim at and shows them by its delay that it is full, losses are the path's as far as a
    /// path may lose. More than that is an overflow: a buffer may be too short to show a queue; many flows that overflow a longer one hide it from
    /// those that begin, which take it for a part of the path; and the queue of a fast flow that overflows it in each round trip stands shorter than it aims at.
    fn charge(&mut self, round: &Round, took_s: f64) {
        let own_s = self.own_target_s();
        let losses_tell = round.longest.as_secs_f64() >= CALM * own_s && self.longest_s() < DEEP * own_s;
        // Where losses stand for the queue, nothing but drains tells what the path loses.
        let noise = if losses_tell { self.noise_without(self.loss_share()) } else { MOST_NOISE };
        let most = SAVED * libm::sqrt(self.window * noise);
        let sent = round.delivered + round.lost;
        let allowance = self.allowance.min(most) + noise * sent;
        let beyond = round.lost - allowance;
        self.allowance = (-beyond).max(0.0);
        if beyond <= 0.0 || !matches!(self.stage, Stage::Steady) {
            return;
        }
        if losses_tell {
            // Like the queue that they are the rest of, they end fast growth.
            self.end_speed();
        }
        let overflow_s = (beyond / sent * self.loss_worth_s()).min(LONGEST * own_s);
        self.window = (self.window - self.config.gain * beyond.min(0.5 * self.window)).max(SMALLEST);
        let weight = (took_s / self.memory_s()).min(1.0);
        self.mean_s = (self.mean_s + overflow_s * weight).min(LONGEST * own_s);
        self.overflow_s = (self.overflow_s + overflow_s * weight).min(self.mean_s);
    }

    /// Whether a segment of this round trip saw a queue, one of those that are long here.
    fn saw_queue(&self, round: &Round) -> bool {
        let target_s = self.own_target_s();
        round.longest.as_secs_f64() >= (LONG * self.longest_s()).max(CALM * target_s)
    }

    /// The longest queue of the last seconds.
    fn longest_s(&self) -> f64 {
        self.longest.get().map_or(0.0, Duration::as_secs_f64)
    }

    /// Losses in a contest end CUBIC's growth, where noise on the link does not explain them.
    fn contend(&mut self, round: &Round, now: Instant) {
        if round.before == Before::Cut || !self.is_excessive(round) {
            return;
        }
        if let Some(contest) = &mut self.contest {
            let w_max = cubic::next_w_max(self.window, contest.curve.w_max, cubic::BETA);
            self.window = (cubic::BETA * self.window).max(SMALLEST);
            *contest = Contest { since: now, curve: Curve::new(self.window, w_max, cubic::C) };
            self.round.before = Before::Cut;
        }
    }

    /// Whether more was lost of so many than the path loses, as far as drains can tell: half as much again as in drains, and more than
    /// three standard deviations, to which the smaller of both samples contributes most.
    fn overflows(&self, sent: f64, lost: f64) -> bool {
        let (drained, drained_lost) = self.drained;
        // The variance of sent x (the share of both samples together), and of the part of it that the other sample contributes.
        let variance = (lost + drained_lost) * sent / drained;
        lost > 1.5 * sent * self.noise() + 3.0 * libm::sqrt(variance)
    }

    /// Whether more was lost than noise on the link explains.
    fn is_excessive(&self, round: &Round) -> bool {
        let sent = (round.delivered + round.lost).max(self.window);
        let noise = self.noise();
        let chance = 3.0 * libm::sqrt(sent * noise.max(0.01));
        round.lost > sent * (self.config.noise + 1.5 * noise) + chance
    }

    /// A drain is due so long after the lowest round trip, or when the queue is longer than it should be.
    fn is_due(&self, now: Instant) -> bool {
        let doubtful =
            self.contest.is_none() && self.crowded_rounds >= 2 && self.rounds_since_drain >= DRAIN_ROUNDS;
        let elapsed_s = now.since(self.drain.lowest_at).as_secs_f64();
        // Before the least of T, which is most of the time, T itself need not be known.
        let due = doubtful || (elapsed_s >= self.config.memory_least_s && elapsed_s >= self.memory_s());
        self.config.drains && due && matches!(self.stage, Stage::Steady)
    }

    /// Begins and ends drains. True in a drain, when the law does not change the window.
    fn drains(&mut self, path: &Path) -> bool {
        match self.drain.tide {
            // What a timeout leaves of the window is not what fills the path.
            Tide::Usual if self.is_due(path.now) && self.before_timeout.is_none() => {
                let (standing_s, base_s) = (self.delay.standing_s(), self.delay.base_s());
                // Where much is lost, less arrives than leaves, and what leaves would keep the queue full.
                let rate = self.rate().min(self.delivery_rate);
                let window = (DRAIN_DEPTH * self.delay.empty_s() * rate).max(1.0);
                let until = path.now + Duration::from_secs_f64(DRAIN_RTTS * standing_s);
                let tide = Tide::Ebb { window, until };
                let (before, lowest, lowest_at) = (self.drain.lowest, Duration::MAX, path.now);
                self.drain = Drain { tide, lowest, lowest_at, standing_s, base_s, before, ..self.drain };
                self.rounds_since_drain = 0;
            }
            Tide::Ebb { until, .. } if path.now >= until => {
                self.drain.tide = Tide::Flood;
                self.round = Round::new(path.now, Before::Drained, self.delay.clock);
            }
            _ => {}
        }
        self.drain.tide != Tide::Usual
    }

    /// Evaluates a drain. True if the queue was empty. If the round trip did not become shorter, it contains no queue: the path
    /// has become longer. Losses speak against that, as the queue of other flows that overflows does not become shorter in a drain either;
    /// but it does so sooner or later, when these flows have noticed.
    // Inlined where every ACK passes, it costs each 2.7 ns.
    #[cold]
    fn judge_drain(&mut self, now: Instant) -> bool {
        self.drain.tide = Tide::Usual;
        let Drain { standing_s, base_s, lowest, before, .. } = self.drain;
        let (sent, lost) = self.crowded;
        let overflows = self.overflows(sent, lost);
        let is_futile = self.contest.is_some() && lost > FUTILE * sent;
        let queue_s = standing_s - base_s;
        let target_s = self.own_target_s();
        let lowest_s = lowest.as_secs_f64();
        let fell_s = standing_s - lowest_s;
        let before_yield = self.window.max(self.crowded_window);
        self.leave_crowd();
        let still_s = FLAT * queue_s + STILL_S;
        let is_same = (lowest_s - before.as_secs_f64()).abs() < still_s;
        self.drain.same = if is_same { self.drain.same + 1 } else { 0 };
        let is_path = !overflows || (self.contest.is_some() && self.drain.same >= SAME);
        let flat = queue_s > target_s && fell_s.abs() < still_s && is_path;
        let left_s = self.delay.queue_s().min(lowest_s - base_s);
        let empties = left_s < CALM * target_s;
        let fills = !empties && left_s >= FILLS * queue_s;
        self.drain.filled = if fills { self.drain.filled.saturating_add(1) } else { 0 };
        let longest_own_s = LONGEST_OWN * self.config.target_s((SMALLEST / base_s).max(1.0));
        let foreign = !flat && !is_futile && left_s > (FOREIGN * target_s).min(longest_own_s);
        // The drain of a slow flow shortens no queue: it may look like a longer path, and that of Reno, which grows slowly, like one of our kind.
        let stays = self.drain.filled >= FILLED_DRAINS;
        let yielded = self.contest.is_none()
            && before_yield < YIELDED * self.drain.emptied_window
            && (stays || left_s > longest_own_s);
        if (foreign || yielded) && self.config.contest {
            let is_old = now.since(self.empty_at).as_secs_f64() >= FIRST_DRAINS * self.memory_s();
            if is_old || stays || self.met_others {
                self.compete(now, before_yield);
            } else {
                self.crowded_window = before_yield;
            }
            return false;
        }
        if self.contest.take().is_some() {
            self.delay.hold(false);
            self.fit(now, self.delivery_rate);
            if is_futile {
                // As at the end of the start: nothing is known of others.
                self.settle();
                (self.met_others, self.drain.filled) = (false, 0);
            }
        }
        if flat {
            self.rebased = Some((self.delay.rebase(now, lowest), now));
            self.window = before_yield * lowest_s / base_s;
            return true;
        }
        if empties {
            self.empty_at = now;
            // A drain of a flow that has yielded may find the queue of others empty once.
            self.drain.emptied_window = self.window.max(0.5 * self.drain.emptied_window);
        }
        empties
    }

    /// A drain has left a queue that flows of our kind would not leave: whoever fills it does not drain. The window is as large again as
    /// before it yielded to that queue, and follows CUBIC's. What the path is like without a queue is remembered all the while.
    fn compete(&mut self, now: Instant, window: f64) {
        if self.contest.is_none() {
            self.met_others = true;
            self.delay.hold(true);
            self.speed = 1.0;
            self.window = window;
            self.contest =
                Some(Contest { since: now, curve: Curve::new(self.window, self.window, cubic::C) });
        }
    }
}

impl CongestionControl for Zenith {
    fn window(&self) -> f64 {
        match (&self.drain.tide, &self.stage) {
            (Tide::Ebb { window, .. }, _) => window.min(self.window),
            _ => self.window,
        }
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.mss = f64::from(path.mss);
        self.rtt_s = path.srtt_s();
        let since = path.now.since(self.last_ack);
        self.hear(path);
        if ack.acked > 0
            && let Some(window) = self.before_timeout.take()
        {
            self.window = window;
            self.trusted_from = path.now;
        }
        let segments = ack.delivered_bytes as f64 / self.mss;
        self.round.delivered += segments;
        let in_flight = f64::from(path.in_flight) + segments;
        // `max`, which asks for NaN as well, costs each ACK 2 ns.
        if in_flight > self.round.in_flight {
            self.round.in_flight = in_flight;
        }
        let rtt = ack.rtt.filter(|rtt| !rtt.is_zero());
        let sent_at = rtt.map_or(Instant::ZERO, |rtt| path.now - rtt);
        let trusted = sent_at >= self.trusted_from;
        if let Some(rtt) = rtt.filter(|_| trusted) {
            self.sample(rtt, ack, path);
        }
        if ack.lost > 0 {
            self.round.lost += f64::from(ack.lost);
        }
        let drains = self.drains(path);
        let begins = self.begin(rtt, segments, path);
        if rtt.is_some() && trusted {
            if sent_at >= self.round.since && !matches!(self.drain.tide, Tide::Ebb { .. }) {
                self.end_round(path);
            }
            if !begins && matches!(self.stage, Stage::Steady) && !drains {
                self.steer(segments, since, path);
            }
        }
    }

    /// Losses are counted one by one, so the beginning of a loss episode changes nothing. A congestion mark is taken for a queue.
    fn on_loss(&mut self, loss: &Loss, path: &Path) {
        if loss.cause == Cause::Mark && self.delivery_rate > 0.0 {
            self.fit(path.now, self.delivery_rate);
        }
    }

    fn on_rto(&mut self, _timeout: &Timeout, _path: &Path) -> BackOff {
        self.before_timeout.get_or_insert(self.window);
        self.window = SMALLEST;
        BackOff::Keep
    }

    fn spacing(&self) -> Spacing {
        let rate = self.rate();
        let per_s = match &self.stage {
            Stage::Chirp(_) if self.rtt_s > 0.0 => 1.0 / Chirp::gap_s(self.sent, self.rtt_s),
            Stage::Groups(groups) => 1.0 / groups.gap_s(self.sent),
            // By the path's own round trip: a smoothed one holds what waited on the way back, too.
            Stage::Doubling if self.rtt_s > 0.0 => {
                2.0 * self.window / self.delay.base().map_or(self.rtt_s, Duration::as_secs_f64)
            }
            _ => PACE * rate,
        };
        if per_s <= 0.0 {
            return Spacing::None;
        }
        let pace = Rate::from_bytes_per_s(per_s * self.mss);
        match self.stage {
            Stage::Doubling | Stage::Steady if per_s * PAIR_S < 1.0 => {
                Spacing::Pairs { rate: pace, gap: Duration::from_secs_f64(PAIR_S) }
            }
            _ => Spacing::at(Some(pace)),
        }
    }

    fn on_sent(&mut self, _sent: &Sent, path: &Path) -> Priority {
        if let Stage::Chirp(chirp) = &mut self.stage {
            chirp.on_sent(path.now, self.sent);
        }
        self.sent = self.sent.saturating_add(1);
        if path.outstanding <= 1 {
            self.expected_by = path.now + path.srtt + Self::patience(path);
        }
        Priority::Normal
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        if event == ConnectionEvent::Established {
            self.mss = f64::from(path.mss);
            self.rtt_s = path.srtt_s();
            self.round = Round::new(path.now, Before::Ordinary, None);
        }
    }

    fn snapshot(&self) -> WindowState {
        let phase = match (&self.stage, &self.drain.tide) {
            _ if self.before_timeout.is_some() => "timeout",
            (Stage::Chirp(_), _) => "first-flight",
            (Stage::Groups(_), _) => "second-flight",
            (Stage::Doubling, _) => "doubling",
            (Stage::Steady, Tide::Ebb { .. }) => "drain",
            (Stage::Steady, _) if self.contest.is_some() => "contest",
            (Stage::Steady, _) => "steady",
        };
        state(self, f64::INFINITY, phase)
    }

    fn wants(&self) -> Wants {
        Wants { accounting: Accounting::Own, sent: true, pacing: true, ..Wants::default() }
    }
}

#[cfg(test)]
mod tests;
