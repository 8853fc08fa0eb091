//! The queueing delay on the way out, from round trips and the peer's clock.

use core::cmp::Reverse;

use bentpipe_base::{Duration, Instant};

use crate::parts::windowed::WindowedMax;

/// Time for which a smallest delay counts: three intervals between drains.
const BASE_WINDOW: Duration = Duration::from_secs(30);
/// Resolution of the peer's clock (RFC 7323 recommends a millisecond), in nanoseconds. The clock hides that much delay.
const TICK: i64 = 1_000_000;
/// A clock that is further from ours than this does not count milliseconds.
const CLOCK_SLACK: Duration = Duration::from_millis(500);

/// One delay in nanoseconds: the newest, the smallest of the last quarter of a round trip, and the smallest of the path.
#[derive(Clone, Copy, Debug)]
struct Track {
    latest: i64,
    standing: WindowedMax<Reverse<i64>>,
    base: WindowedMax<Reverse<i64>>,
}

impl Track {
    fn new() -> Self {
        Self { latest: 0, standing: WindowedMax::new(0), base: WindowedMax::new(BASE_WINDOW.as_nanos()) }
    }

    fn update(&mut self, at: u64, delay: i64, span: Duration) {
        self.latest = delay;
        self.base.update(at, Reverse(delay));
        self.standing.set_window(span.as_nanos());
        self.standing.update(at, Reverse(delay));
    }

    fn base(&self) -> i64 {
        self.base.get().map_or(0, |Reverse(delay)| delay)
    }

    fn standing(&self) -> i64 {
        self.standing.get().map_or(0, |Reverse(delay)| delay)
    }
}

/// Estimates of the path's delay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    rtt: Track,
    /// Delay to the peer but for a constant, the peer's clock and ours at the first timestamp.
    out: Option<(Track, u32, Instant)>,
    /// False once the clock turned out to count something else than milliseconds.
    believes_clock: bool,
    /// The peer's clock at the newest round trip, in milliseconds, if it is believed.
    pub clock: Option<u32>,
}

impl Delay {
    pub fn new() -> Self {
        Self { rtt: Track::new(), out: None, believes_clock: true, clock: None }
    }

    /// A round trip ended at `now`; the standing delay is the smallest of the last `span`.
    pub fn sample(&mut self, now: Instant, rtt: Duration, clock: Option<u32>, span: Duration) {
        let (at, rtt_ns) = (now.as_nanos(), rtt.as_nanos() as i64);
        self.rtt.update(at, rtt_ns, span);
        let Some(clock) = clock.filter(|_| self.believes_clock) else { return };
        let (track, first, since) = self.out.get_or_insert_with(|| (Track::new(), clock, now));
        let peer = i64::from(clock.wrapping_sub(*first).cast_signed()) * 1_000_000;
        let elapsed = now.since(*since);
        let arrived = elapsed.as_nanos() as i64;
        let sent = arrived.saturating_sub(rtt_ns);
        // The ACK left the peer between our sending of the segment and now.
        let slack = (CLOCK_SLACK + elapsed / 50).as_nanos() as i64;
        if (sent - slack..=arrived + slack).contains(&peer) {
            track.update(at, peer.saturating_sub(sent), span);
            self.clock = Some(clock);
        } else {
            (self.believes_clock, self.out, self.clock) = (false, None, None);
        }
    }

    /// Smallest round trip of the path in seconds; zero before the first sample.
    pub fn base_s(&self) -> f64 {
        seconds(self.rtt.base())
    }

    /// Smallest round trip of the last quarter of one, in seconds; zero before the first sample.
    pub fn standing_s(&self) -> f64 {
        seconds(self.rtt.standing())
    }

    /// Standing queueing delay on the way out, in seconds.
    pub fn queue_s(&self) -> f64 {
        self.above_base(Track::standing)
    }

    /// Queueing delay on the way out of the newest segment, in seconds.
    pub fn latest_s(&self) -> f64 {
        self.above_base(|track| track.latest)
    }

    /// Growth of the round trip over the smallest one, or of the delay to the peer if that is less.
    fn above_base(&self, delay: fn(&Track) -> i64) -> f64 {
        let growth = |track: &Track| (delay(track) - track.base()).max(0);
        let out = self.out.as_ref().map_or(i64::MAX, |(track, ..)| growth(track) + TICK);
        seconds(growth(&self.rtt).min(out))
    }

    /// Keeps the smallest delays for good, or for their usual time.
    pub fn hold(&mut self, held: bool) {
        let window = if held { u64::MAX } else { BASE_WINDOW.as_nanos() };
        self.rtt.base.set_window(window);
        if let Some((track, ..)) = &mut self.out {
            track.base.set_window(window);
        }
    }

    /// The path has become longer: its smallest round trip is this.
    pub fn rebase(&mut self, now: Instant, rtt: Duration) {
        self.rtt.base.reset(now.as_nanos(), Reverse(rtt.as_nanos() as i64));
        if let Some((track, ..)) = &mut self.out {
            track.base.reset(now.as_nanos(), Reverse(track.standing()));
        }
    }
}

fn seconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 * 1e-9
}
