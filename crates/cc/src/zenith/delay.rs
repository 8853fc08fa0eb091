//! The queueing delay on the way out, from round trips and the peer's clock.

use core::cmp::Reverse;

use bentpipe_base::{Duration, Instant};

use crate::parts::windowed::WindowedMax;

/// Resolution of the peer's clock (RFC 7323 recommends a millisecond), which its delay may hide.
pub(super) const TICK: Duration = Duration::from_millis(1);
/// A clock that is further from ours than this does not count milliseconds.
const CLOCK_SLACK: Duration = Duration::from_millis(500);

/// What is known of the path's delay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    base: WindowedMax<Reverse<Duration>>,
    out_base: WindowedMax<Reverse<i64>>,
    /// The peer's clock and ours at the first sample.
    origin: Option<(u32, Instant)>,
    /// False once the clock turned out to count something else than milliseconds.
    believes_clock: bool,
    /// Smallest round trip since the last drain began, when it was, and smallest delay to the peer.
    lowest: Duration,
    pub lowest_at: Instant,
    lowest_out: i64,
}

impl Delay {
    /// A smallest delay counts for three intervals between drains.
    pub fn new(memory_s: f64) -> Self {
        let window = Duration::from_secs_f64(3.0 * memory_s).as_nanos();
        Self {
            base: WindowedMax::new(window),
            out_base: WindowedMax::new(window),
            origin: None,
            believes_clock: true,
            lowest: Duration::MAX,
            lowest_at: Instant::ZERO,
            lowest_out: i64::MAX,
        }
    }

    /// A round trip ended now: the queue that it saw on the way out. While the smallest delays are held, only smaller ones replace them.
    pub fn sample(&mut self, now: Instant, rtt: Duration, clock: Option<u32>, held: bool) -> Duration {
        let out = self.outward(now, rtt, clock);
        let at = now.as_nanos();
        if held {
            self.base.reset(at, Reverse(rtt.min(self.base())));
        } else {
            self.base.update(at, Reverse(rtt));
        }
        match self.out_base.get() {
            _ if out == i64::MAX => {}
            Some(Reverse(base)) if held => self.out_base.reset(at, Reverse(out.min(base))),
            _ => self.out_base.update(at, Reverse(out)),
        }
        if rtt < self.lowest {
            (self.lowest, self.lowest_at) = (rtt, now);
        }
        self.lowest_out = self.lowest_out.min(out);
        self.queue(rtt, out)
    }

    /// The delay to the peer by its clock; the largest number without a clock that counts milliseconds.
    fn outward(&mut self, now: Instant, rtt: Duration, clock: Option<u32>) -> i64 {
        let Some(clock) = clock.filter(|_| self.believes_clock) else { return i64::MAX };
        let (first, since) = *self.origin.get_or_insert((clock, now));
        let elapsed = now.since(since);
        let peer = i64::from(clock.wrapping_sub(first).cast_signed()) * 1_000_000;
        let arrived = elapsed.as_nanos() as i64;
        let sent = arrived.saturating_sub(rtt.as_nanos() as i64);
        // The ACK left the peer between our sending of the segment and now.
        let slack = (CLOCK_SLACK + elapsed / 50).as_nanos() as i64;
        self.believes_clock = (sent - slack..=arrived + slack).contains(&peer);
        if self.believes_clock { peer.saturating_sub(sent) } else { i64::MAX }
    }

    /// What a round trip is longer than the smallest, or less if the peer's clock says that it is less on the way out.
    fn queue(&self, rtt: Duration, out: i64) -> Duration {
        let there_and_back = rtt.saturating_sub(self.base());
        match self.out_base.get() {
            Some(Reverse(base)) if self.believes_clock && out != i64::MAX => {
                let out = u64::try_from(out - base).unwrap_or(0);
                there_and_back.min(Duration::from_nanos(out) + TICK)
            }
            _ => there_and_back,
        }
    }

    /// Smallest round trip of the path; the largest duration before the first sample.
    pub fn base(&self) -> Duration {
        self.base.get().map_or(Duration::MAX, |Reverse(rtt)| rtt)
    }

    /// A drain begins.
    pub fn begin_drain(&mut self, now: Instant) {
        (self.lowest, self.lowest_at, self.lowest_out) = (Duration::MAX, now, i64::MAX);
    }

    /// The queue that the drain has left.
    pub fn left(&self) -> Duration {
        self.queue(self.lowest, self.lowest_out)
    }

    /// The path has become longer: its smallest delays are those since the drain began. Returns by which factor.
    pub fn rebase(&mut self, now: Instant) -> f64 {
        let factor = self.lowest.as_secs_f64() / self.base().as_secs_f64();
        self.base.reset(now.as_nanos(), Reverse(self.lowest));
        if self.lowest_out != i64::MAX {
            self.out_base.reset(now.as_nanos(), Reverse(self.lowest_out));
        }
        factor
    }
}
