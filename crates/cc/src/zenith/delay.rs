//! The queueing delay on the way out, from round trips and the peer's clock.

use core::cmp::Reverse;

use bentpipe_base::{Duration, Instant};

use crate::parts::windowed::WindowedMax;

/// For how long a smallest delay counts: three intervals between drains.
const BASE_WINDOW: Duration = Duration::from_secs(30);
/// Error of the delay that follows from the resolution of the peer's clock, which is a millisecond.
const TICK: Duration = Duration::from_millis(1);
/// A clock that is further from our own than this after a while does not count milliseconds.
const CLOCK_SLACK: Duration = Duration::from_millis(500);

/// The delay from here to the peer, but for an unknown constant, by the peer's clock.
#[derive(Clone, Copy, Debug)]
struct Outward {
    /// The peer's clock and ours at the first sample.
    origin: (u32, Instant),
    base: WindowedMax<Reverse<i64>>,
    standing: WindowedMax<Reverse<i64>>,
    latest: i64,
}

impl Outward {
    fn new(clock: u32, now: Instant) -> Self {
        let base = WindowedMax::new(BASE_WINDOW.as_nanos());
        Self { origin: (clock, now), base, standing: WindowedMax::new(0), latest: 0 }
    }

    /// Nanoseconds that passed at the peer since the first sample.
    fn peer_elapsed(&self, clock: u32) -> i64 {
        i64::from(clock.wrapping_sub(self.origin.0).cast_signed()) * 1_000_000
    }

    /// True while the peer's clock counts milliseconds: the ACK left it between our sending of the segment and now.
    fn is_credible(&self, clock: u32, now: Instant, rtt: Duration) -> bool {
        let elapsed = now.since(self.origin.1);
        let slack = (CLOCK_SLACK + elapsed / 50).as_nanos() as i64;
        let latest = elapsed.as_nanos() as i64;
        let earliest = latest.saturating_sub(rtt.as_nanos() as i64);
        (earliest - slack..=latest + slack).contains(&self.peer_elapsed(clock))
    }

    /// The queue behind such a delay.
    fn queue(&self, delay: i64) -> Option<Duration> {
        let Reverse(base) = self.base.get()?;
        Some(Duration::from_nanos(u64::try_from(delay - base).unwrap_or(0)) + TICK)
    }
}

/// The smallest delays of a path: of a round trip, and on the way out by the peer's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Smallest {
    rtt: Duration,
    outward: Option<Reverse<i64>>,
}

/// What is known of the path's delay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    base: WindowedMax<Reverse<Duration>>,
    standing: WindowedMax<Reverse<Duration>>,
    /// None before the first timestamp. A clock that does not count milliseconds is not used again.
    outward: Option<Outward>,
    believes_clock: bool,
    /// Newest round trip.
    latest: Duration,
    /// The peer's clock at the newest round trip, in milliseconds, if it is believed.
    pub clock: Option<u32>,
}

impl Delay {
    pub fn new(believes_clock: bool) -> Self {
        Self {
            base: WindowedMax::new(BASE_WINDOW.as_nanos()),
            standing: WindowedMax::new(0),
            outward: None,
            believes_clock,
            latest: Duration::ZERO,
            clock: None,
        }
    }

    /// A round trip ended at `now`; the standing delay is the smallest of the last `span`.
    pub fn sample(&mut self, now: Instant, rtt: Duration, clock: Option<u32>, span: Duration) {
        let (at, span) = (now.as_nanos(), span.as_nanos());
        self.latest = rtt;
        self.base.update(at, Reverse(rtt));
        self.standing.set_window(span);
        self.standing.update(at, Reverse(rtt));
        let Some(clock) = clock.filter(|_| self.believes_clock) else { return };
        let outward = self.outward.get_or_insert_with(|| Outward::new(clock, now));
        if !outward.is_credible(clock, now, rtt) {
            self.believes_clock = false;
            self.outward = None;
            self.clock = None;
            return;
        }
        self.clock = Some(clock);
        let sent = (now.since(outward.origin.1).as_nanos() as i64).saturating_sub(rtt.as_nanos() as i64);
        let delay = outward.peer_elapsed(clock).saturating_sub(sent);
        outward.latest = delay;
        outward.base.update(at, Reverse(delay));
        outward.standing.set_window(span);
        outward.standing.update(at, Reverse(delay));
    }

    /// Smallest round trip of the path; None before the first sample.
    pub fn base(&self) -> Option<Duration> {
        self.base.get().map(|Reverse(rtt)| rtt)
    }

    /// The same in seconds; zero before the first sample.
    pub fn base_s(&self) -> f64 {
        self.base().map_or(0.0, Duration::as_secs_f64)
    }

    /// Smallest recent round trip; zero before the first sample.
    pub fn standing(&self) -> Duration {
        self.standing.get().map_or(Duration::ZERO, |Reverse(rtt)| rtt)
    }

    /// The same in seconds.
    pub fn standing_s(&self) -> f64 {
        self.standing().as_secs_f64()
    }

    /// Queueing delay on the way out, in seconds.
    pub fn queue_s(&self) -> f64 {
        let Some(Reverse(standing)) = self.standing.get() else { return 0.0 };
        let out = self.outward.as_ref().and_then(|outward| {
            let Reverse(delay) = outward.standing.get()?;
            outward.queue(delay)
        });
        self.bounded(standing, out).as_secs_f64()
    }

    /// The recent round trip without the queue on the way out, in seconds: where there is none on the way back either, the smallest one.
    pub fn empty_s(&self) -> f64 {
        self.standing_s() - self.queue_s()
    }

    /// The queueing delay on the way out of the newest segment.
    pub fn latest_queue(&self) -> Duration {
        self.bounded(self.latest, self.outward.as_ref().and_then(|outward| outward.queue(outward.latest)))
    }

    /// What this round trip is longer than the smallest, or less on the way out.
    fn bounded(&self, rtt: Duration, out: Option<Duration>) -> Duration {
        let there_and_back = self.base.get().map_or(Duration::ZERO, |Reverse(base)| rtt.saturating_sub(base));
        out.map_or(there_and_back, |out| out.min(there_and_back))
    }

    /// Whether the smallest delay is remembered for good.
    pub fn hold(&mut self, held: bool) {
        let window = if held { u64::MAX } else { BASE_WINDOW.as_nanos() };
        self.base.set_window(window);
        if let Some(outward) = &mut self.outward {
            outward.base.set_window(window);
        }
    }

    /// The path has changed, and its delay is this. Returns what was known before.
    pub fn rebase(&mut self, now: Instant, rtt: Duration) -> Smallest {
        let outward = self.outward.as_ref();
        let before = Smallest {
            rtt: self.base().unwrap_or(rtt),
            outward: outward.and_then(|outward| outward.base.get()),
        };
        let standing = outward.and_then(|outward| outward.standing.get());
        self.restore(now, Smallest { rtt, outward: standing });
        before
    }

    /// The smallest delays are these again.
    pub fn restore(&mut self, now: Instant, smallest: Smallest) {
        let at = now.as_nanos();
        self.base.reset(at, Reverse(smallest.rtt));
        if let Some((outward, base)) = self.outward.as_mut().zip(smallest.outward) {
            outward.base.reset(at, base);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::path_at;

    /// The queue after a second of round trips of 550 ms and one of 570, with a clock that runs `ticks` a millisecond and that the
    /// ACK left `back_ms` before it arrived.
    fn queue_ms(ticks: u32, back_ms: u32) -> f64 {
        let mut delay = Delay::new(true);
        for millis in (1000..3000_u32).step_by(10) {
            let (rtt, back) = if millis < 2000 { (550, 275) } else { (570, back_ms) };
            let now = path_at(f64::from(millis) / 1000.0).now;
            let clock = (millis - back) * ticks;
            delay.sample(now, Duration::from_millis(rtt), Some(clock), Duration::from_millis(100));
        }
        delay.queue_s() * 1000.0
    }

    #[test]
    fn a_queue_on_the_way_back_does_not_count() {
        assert!((queue_ms(1, 275) - 20.0).abs() < 1e-6, "out: {}", queue_ms(1, 275));
        assert!((queue_ms(1, 295) - 1.0).abs() < 1e-6, "back: {}", queue_ms(1, 295));
    }

    /// ACKs wait for a second on a way back that is assigned on demand.
    #[test]
    fn a_clock_whose_acks_are_late_is_believed() {
        let mut delay = Delay::new(true);
        for millis in (1000..9000_u32).step_by(10) {
            let held = if millis < 8000 { 0 } else { 1000 };
            let now = path_at(f64::from(millis) / 1000.0).now;
            let rtt = Duration::from_millis(u64::from(550 + held));
            delay.sample(now, rtt, Some(millis - 275 - held), Duration::from_millis(100));
        }
        assert!(delay.queue_s() < 0.0015, "{}", delay.queue_s());
    }

    #[test]
    fn a_path_that_is_not_longer_after_all_shows_its_queue_again() {
        let mut delay = Delay::new(true);
        let sample = |delay: &mut Delay, millis: u32, rtt_ms: u64| {
            let now = path_at(f64::from(millis) / 1000.0).now;
            delay.sample(now, Duration::from_millis(rtt_ms), Some(millis - 275), Duration::from_millis(100));
            now
        };
        sample(&mut delay, 1000, 550);
        let now = sample(&mut delay, 2000, 600);
        let before = delay.rebase(now, Duration::from_millis(600));
        assert!(delay.queue_s() < 0.0015, "{}", delay.queue_s());
        delay.restore(now, before);
        assert!((delay.queue_s() - 0.05).abs() < 1e-6, "{}", delay.queue_s());
    }

    #[test]
    fn a_clock_that_counts_something_else_is_not_believed() {
        assert!((queue_ms(10, 295) - 20.0).abs() < 1e-6, "{}", queue_ms(10, 295));
    }
}
