//! Links that carry packets at recorded moments: the packet-delivery traces of Mahimahi.
//!
//! R. Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015; `mm-link(1)`.

use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Rate};

use crate::error::ConfigError;
use crate::queue::backlog::Backlog;
use crate::schedule::{Interpolation, Schedule};

/// The moments at which a link carries something, in place of a rate.
///
/// At each of them the link takes so many bytes of what waits: of one packet, of several small ones, or a part of a large one, which goes on
/// at the next. A packet leaves the transmitter at the moment that takes its last byte. Unused capacity is lost: a packet that arrives
/// at the very moment of an opportunity has to wait for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// The moments from time zero on, ascending, at least one, the last above zero; equal ones are as many opportunities.
    pub times: Arc<[Duration]>,
    /// True if the trace begins anew at the time of its last opportunity, for ever. Without, nothing is carried after that.
    pub repeat: bool,
    /// Bytes that an opportunity takes, at least 1.
    pub bytes: u32,
    /// Bytes that a packet takes beside its size on the wire.
    pub overhead: u32,
}

impl Opportunities {
    /// Bytes of an opportunity of Mahimahi: a packet of 1500 bytes, and the 4 bytes that its device adds.
    pub const MAHIMAHI: (u32, u32) = (1504, 4);

    /// A trace as Mahimahi has it, each moment a whole number of milliseconds.
    pub fn mahimahi(millis: &[u32], repeat: bool) -> Self {
        let times = millis.iter().map(|ms| Duration::from_millis(u64::from(*ms))).collect();
        let (bytes, overhead) = Self::MAHIMAHI;
        Self { times, repeat, bytes, overhead }
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.period().is_zero() {
            return Err(ConfigError::new("times", "none after 0 s", "at least one opportunity after 0 s"));
        }
        if let Some(pair) = self.times.windows(2).find(|pair| pair[0] > pair[1]) {
            let found = format!("{} after {}", pair[1], pair[0]);
            return Err(ConfigError::new("times", found, "times that do not descend"));
        }
        if self.bytes == 0 {
            return Err(ConfigError::new("bytes", self.bytes, "at least 1 byte"));
        }
        Ok(())
    }

    /// Bytes that the opportunities until `now` can carry.
    pub fn bytes_until(&self, now: Instant) -> u64 {
        let (nanos, period) = (now.as_nanos(), self.period().as_nanos().max(1));
        let count = |nanos: u64| self.times.partition_point(|time| time.as_nanos() <= nanos) as u64;
        let passed = match self.repeat {
            true => (nanos / period) * self.times.len() as u64 + count(nanos % period),
            false => count(nanos),
        };
        passed.saturating_mul(u64::from(self.bytes))
    }

    /// Length of the trace: the time of its last opportunity.
    fn period(&self) -> Duration {
        self.times.last().copied().unwrap_or_default()
    }

    /// What the opportunities of each second carry, without the overhead of a packet that fills one, as a rate: what is shown where a link is
    /// asked for its rate. The least is 1 bit/s.
    pub fn rate(&self) -> Schedule<Rate> {
        let second = Duration::from_secs(1).as_nanos();
        let (period, bits) =
            (self.period().as_nanos(), 8 * u64::from(self.bytes - self.overhead.min(self.bytes)));
        let mut points: Vec<(Duration, Rate)> = Vec::new();
        let mut from = 0;
        let mut begin = 0;
        while begin < period {
            let end = (begin + second).min(period);
            // An opportunity at the end of a second belongs to that second: it takes what waits by then.
            let behind = from + self.times[from..].partition_point(|time| time.as_nanos() <= end);
            let rate =
                u128::from(bits) * (behind - from) as u128 * u128::from(second) / u128::from(end - begin);
            let rate = Rate::from_bps((rate as u64).max(1));
            if points.last().is_none_or(|last| last.1 != rate) {
                points.push((Duration::from_nanos(begin), rate));
            }
            (from, begin) = (behind, end);
        }
        let repeat_every = self.repeat.then(|| self.period());
        if !self.repeat {
            points.push((self.period(), Rate::from_bps(1)));
        }
        Schedule::Table { points, interpolation: Interpolation::Step, repeat_every }
    }
}

/// The opportunities of a running link, and how much of them is used up.
#[derive(Clone, Debug)]
pub(crate) struct OpportunityCursor {
    of: Opportunities,
    /// When the round began in which the present opportunity lies.
    base: u64,
    /// Number of the present opportunity; that of all of them if none is left.
    index: usize,
    /// Bytes that it can still take.
    left: u32,
    /// Bytes that were taken, with the overhead.
    taken: u64,
}

impl OpportunityCursor {
    /// Of validated opportunities.
    pub fn new(of: Opportunities) -> Self {
        Self { left: of.bytes, of, base: 0, index: 0, taken: 0 }
    }

    /// When the present opportunity is, of which something is left; [`Instant::FAR_FUTURE`] if there is none any more.
    pub fn time(&self) -> Instant {
        let time = self.of.times.get(self.index);
        time.map_or(Instant::FAR_FUTURE, |time| {
            Instant::from_nanos(self.base.saturating_add(time.as_nanos()))
        })
    }

    /// Takes a packet of `size`: its first byte goes with the present opportunity, its last at the time returned. `next` may skip
    /// opportunities whenever one is used up.
    pub fn take(&mut self, size: u32, mut next: impl FnMut(&mut Self)) -> Instant {
        let mut wanted = u64::from(size) + u64::from(self.of.overhead);
        self.taken += wanted;
        loop {
            let end = self.time();
            let part = wanted.min(u64::from(self.left));
            wanted -= part;
            self.left -= part as u32;
            if end == Instant::FAR_FUTURE {
                return end;
            }
            if self.left == 0 {
                self.advance();
                next(self);
            }
            if wanted == 0 {
                return end;
            }
        }
    }

    fn advance(&mut self) {
        self.left = self.of.bytes;
        self.index += 1;
        if self.index == self.of.times.len() && self.of.repeat {
            self.base = self.base.saturating_add(self.of.period().as_nanos());
            self.index = 0;
        }
    }

    /// Moves to the first opportunity at `time` or later, or later only if `after`, all of it.
    pub fn seek(&mut self, time: Instant, after: bool) {
        self.left = self.of.bytes;
        if time == Instant::FAR_FUTURE {
            self.index = self.of.times.len();
            return;
        }
        let (nanos, period) = (time.as_nanos(), self.of.period().as_nanos());
        // The last opportunity of a round is at the time at which the next one begins.
        let round = if self.of.repeat { (nanos / period).saturating_sub(1) } else { 0 };
        self.base = round.saturating_mul(period);
        loop {
            let within = nanos - self.base.min(nanos);
            let before = |at: &Duration| at.as_nanos() < within || (after && at.as_nanos() == within);
            // Searched from the beginning of a round only where time lies in it.
            self.index = if nanos < self.base { 0 } else { self.of.times.partition_point(before) };
            if self.index < self.of.times.len() || !self.of.repeat {
                return;
            }
            self.base = self.base.saturating_add(period);
        }
    }

    /// What part of the bytes offered by the opportunities until `now` was used, without those of the packets that still wait.
    pub fn part_taken(&self, now: Instant, waiting: Backlog) -> f64 {
        let offered = self.of.bytes_until(now);
        let taken = self.taken.saturating_sub(self.cost(waiting));
        if offered == 0 { 0.0 } else { (taken as f64 / offered as f64).min(1.0) }
    }

    /// Forgets packets that were taken.
    pub fn forget(&mut self, packets: Backlog) {
        self.taken = self.taken.saturating_sub(self.cost(packets));
    }

    /// Bytes that packets take, with their overhead.
    fn cost(&self, of: Backlog) -> u64 {
        of.bytes + u64::from(of.packets) * u64::from(self.of.overhead)
    }
}
