//! Links with recorded transmission opportunities: the packet-delivery traces of Mahimahi.
//!
//! R. Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015; `mm-link(1)`.

use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Rate};

use crate::error::ConfigError;
use crate::queue::backlog::Backlog;
use crate::schedule::{Interpolation, Schedule};

/// Transmission opportunities of a link, instead of a rate.
///
/// Each opportunity carries a number of queued bytes: of one packet, of several small ones, or a part of a large one, which
/// continues at the next. A packet leaves the transmitter with its last byte. Unused capacity is lost: a packet that arrives
/// exactly at an opportunity waits for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// Times of the opportunities from zero on, ascending. There is at least one, and the last is above zero; equal times are
    /// separate opportunities.
    pub times: Arc<[Duration]>,
    /// True if the trace repeats forever after the time of its last opportunity. Otherwise nothing is carried afterwards.
    pub repeat: bool,
    /// Bytes per opportunity, at least 1.
    pub bytes: u32,
    /// Bytes that a packet uses in addition to its size on the wire.
    pub overhead: u32,
}

impl Opportunities {
    /// Bytes per opportunity in Mahimahi: a packet of 1500 bytes, plus the 4 bytes that its device adds.
    pub const MAHIMAHI: (u32, u32) = (1504, 4);

    /// Makes a Mahimahi trace, in whole milliseconds.
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

    /// Returns the bytes that the opportunities until `now` can carry.
    pub fn bytes_until(&self, now: Instant) -> u64 {
        let (nanos, period) = (now.as_nanos(), self.period().as_nanos().max(1));
        let count = |nanos: u64| self.times.partition_point(|time| time.as_nanos() <= nanos) as u64;
        let passed = match self.repeat {
            true => (nanos / period) * self.times.len() as u64 + count(nanos % period),
            false => count(nanos),
        };
        passed.saturating_mul(u64::from(self.bytes))
    }

    /// Returns the length of the trace: the time of its last opportunity.
    fn period(&self) -> Duration {
        self.times.last().copied().unwrap_or_default()
    }

    /// Returns the capacity of each second as a rate, without the overhead of a full packet; for display. The minimum is 1 bit/s.
    pub fn rate(&self) -> Schedule<Rate> {
        let second = Duration::from_secs(1).as_nanos();
        let (period, bits) =
            (self.period().as_nanos(), 8 * u64::from(self.bytes - self.overhead.min(self.bytes)));
        let mut points: Vec<(Duration, Rate)> = Vec::new();
        let mut from = 0;
        let mut begin = 0;
        while begin < period {
            let end = (begin + second).min(period);
            // An opportunity at the end of a second belongs to that second: it carries packets queued by then.
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

/// Opportunities of a running link, and the used part of them.
#[derive(Clone, Debug)]
pub(crate) struct OpportunityCursor {
    of: Opportunities,
    /// Start of the present repetition of the trace.
    base: u64,
    /// Number of the present opportunity; the total number if none is left.
    index: usize,
    /// Bytes that it can still carry.
    left: u32,
    /// Bytes carried, with overhead.
    taken: u64,
}

impl OpportunityCursor {
    /// Makes a cursor over validated opportunities.
    pub fn new(of: Opportunities) -> Self {
        Self { left: of.bytes, of, base: 0, index: 0, taken: 0 }
    }

    /// Returns the time of the present opportunity, which has bytes left; [`Instant::FAR_FUTURE`] if there is none.
    pub fn time(&self) -> Instant {
        let time = self.of.times.get(self.index);
        time.map_or(Instant::FAR_FUTURE, |time| {
            Instant::from_nanos(self.base.saturating_add(time.as_nanos()))
        })
    }

    /// Sends a packet of `size` from the present opportunity on; returns the time of its last byte. `next` may skip opportunities
    /// whenever one is used up.
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

    /// Moves to the first opportunity at `time` or later, all of it unused; later than `time` if `after`.
    pub fn seek(&mut self, time: Instant, after: bool) {
        self.left = self.of.bytes;
        if time == Instant::FAR_FUTURE {
            self.index = self.of.times.len();
            return;
        }
        let (nanos, period) = (time.as_nanos(), self.of.period().as_nanos());
        // The last opportunity of a repetition has the start time of the next one.
        let round = if self.of.repeat { (nanos / period).saturating_sub(1) } else { 0 };
        self.base = round.saturating_mul(period);
        loop {
            let within = nanos - self.base.min(nanos);
            let before = |at: &Duration| at.as_nanos() < within || (after && at.as_nanos() == within);
            // Within a repetition the search is binary; before its start, the index is zero.
            self.index = if nanos < self.base { 0 } else { self.of.times.partition_point(before) };
            if self.index < self.of.times.len() || !self.of.repeat {
                return;
            }
            self.base = self.base.saturating_add(period);
        }
    }

    /// Returns the used fraction of the bytes offered by opportunities until `now`, without packets that still wait.
    pub fn part_taken(&self, now: Instant, waiting: Backlog) -> f64 {
        let offered = self.of.bytes_until(now);
        let taken = self.taken.saturating_sub(self.cost(waiting));
        if offered == 0 { 0.0 } else { (taken as f64 / offered as f64).min(1.0) }
    }

    /// Removes packets that were counted as carried.
    pub fn forget(&mut self, packets: Backlog) {
        self.taken = self.taken.saturating_sub(self.cost(packets));
    }

    /// Returns the bytes used by packets, with overhead.
    fn cost(&self, of: Backlog) -> u64 {
        of.bytes + u64::from(of.packets) * u64::from(self.of.overhead)
    }
}
