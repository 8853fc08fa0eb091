use std::ops::Range;

use bentpipe_base::{Duration, Instant};

use crate::error::ConfigError;

/// Outages of a link, and their effect on packets.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Outages {
    /// Outages in ascending order, not adjacent.
    pub intervals: Vec<Outage>,
    /// Effect of an outage.
    pub effect: OutageEffect,
}

/// One outage: the link is out in `[from, to)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// First instant of the outage.
    pub from: Instant,
    /// First instant after the outage.
    pub to: Instant,
}

/// Effect of an outage on packets. The queue is kept in all cases, and overflows by its own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OutageEffect {
    /// The transmitter knows of the outage: it pauses, even within a packet, and resumes at the end. Packets on the path arrive
    /// (a modem that waits through a fade).
    #[default]
    Pause,
    /// The transmitter knows of the outage. A packet in transmission at its start is lost, and none starts before its end.
    /// Packets on the path arrive (handover to another satellite).
    Cut,
    /// As [`OutageEffect::Cut`], and packets on the path at the start of the outage are also lost (handover that abandons the
    /// old satellite).
    CutPath,
    /// The transmitter does not know and continues to send. Packets that would arrive during the outage are lost (a receiver in
    /// a tunnel).
    Blind,
}

impl Outages {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let mut up_since = None;
        for outage in &self.intervals {
            if outage.from >= outage.to {
                let found = format!("from {:?} to {:?}", outage.from, outage.to);
                return Err(ConfigError::new("intervals", found, "outages that end after they begin"));
            }
            if up_since.is_some_and(|up| outage.from <= up) {
                let found = format!(
                    "an outage from {:?} after one to {:?}",
                    outage.from,
                    up_since.unwrap_or_default()
                );
                return Err(ConfigError::new("intervals", found, "ascending outages that do not touch"));
            }
            up_since = Some(outage.to);
        }
        Ok(())
    }

    /// Makes outages of `length` that begin `period` apart, the first at the start of `during`, the last before its end.
    pub fn every(period: Duration, length: Duration, during: Range<Instant>) -> Self {
        let mut intervals = Vec::new();
        let mut from = during.start;
        while !period.is_zero() && from < during.end {
            intervals.push(Outage { from, to: from + length });
            from += period;
        }
        Self { intervals, effect: OutageEffect::default() }
    }
}

/// Outages of a running link, with the present position among them.
#[derive(Clone, Debug)]
pub(crate) struct OutageCursor {
    outages: Outages,
    /// Number of outages that had ended at the last queried time.
    ended: usize,
}

impl OutageCursor {
    /// Makes a cursor over validated outages.
    pub fn new(outages: Outages) -> Self {
        Self { outages, ended: 0 }
    }

    pub fn effect(&self) -> OutageEffect {
        self.outages.effect
    }

    /// True if the link has no outages.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.outages.intervals.is_empty()
    }

    /// True if `time` is in an outage.
    pub fn is_out(&mut self, time: Instant) -> bool {
        self.covering(time).is_some()
    }

    /// Returns the end of the outage that contains `time`.
    pub fn ends(&mut self, time: Instant) -> Option<Instant> {
        self.covering(time).map(|outage| outage.to)
    }

    /// Returns the first instant from `time` on at which a transmission may start.
    #[inline]
    pub fn may_start(&mut self, time: Instant) -> Instant {
        if self.is_empty() || self.effect() == OutageEffect::Blind {
            return time;
        }
        self.covering(time).map_or(time, |outage| outage.to)
    }

    /// Returns the first start of an outage after `time`; [`Instant::FAR_FUTURE`] if there is none.
    pub fn next_start(&mut self, time: Instant) -> Instant {
        let mut ahead = self.ahead(time).iter();
        ahead.find(|outage| outage.from > time).map_or(Instant::FAR_FUTURE, |outage| outage.from)
    }

    /// Returns the end of a transmission of `length` from `start` that pauses during outages. `held` is called with each pause.
    pub fn hold(&mut self, start: Instant, length: Duration, mut held: impl FnMut(Outage)) -> Instant {
        let mut end = start + length;
        for outage in self.ahead(start) {
            if outage.from >= end {
                break;
            }
            let from = outage.from.max(start);
            end += outage.to.since(from);
            held(Outage { from, to: outage.to });
        }
        end
    }

    fn covering(&mut self, time: Instant) -> Option<Outage> {
        self.ahead(time).first().copied().filter(|outage| outage.from <= time)
    }

    /// Returns the outages that have not ended at `time`. For mostly ascending times this is O(1) amortised.
    fn ahead(&mut self, time: Instant) -> &[Outage] {
        let intervals = &self.outages.intervals;
        while intervals.get(self.ended).is_some_and(|outage| outage.to <= time) {
            self.ended += 1;
        }
        while self.ended > 0 && intervals[self.ended - 1].to > time {
            self.ended -= 1;
        }
        &intervals[self.ended..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn intervals_are_half_open() {
        let outages = Outages::every(Duration::from_secs(10), Duration::from_secs(2), at(10)..at(35));
        assert_eq!(outages.intervals.len(), 3);
        let mut outages = OutageCursor::new(outages);
        assert_eq!([9, 10, 11, 12].map(|s| outages.is_out(at(s))), [false, true, true, false]);
        assert_eq!([9, 10, 11, 12].map(|s| outages.may_start(at(s))), [at(9), at(12), at(12), at(12)]);
        assert_eq!(
            [9, 10, 29, 30].map(|s| outages.next_start(at(s))),
            [at(10), at(20), at(30), Instant::FAR_FUTURE]
        );
    }

    #[test]
    fn time_may_step_back() {
        let mut outages = OutageCursor::new(Outages::every(
            Duration::from_secs(10),
            Duration::from_secs(2),
            at(10)..at(1000),
        ));
        let out = [500, 11, 995, 12, 999].map(|s| outages.is_out(at(s)));
        assert_eq!(out, [true, true, false, false, false]);
    }

    #[test]
    fn touching_and_inverted_outages_are_refused() {
        let of = |pairs: &[(u64, u64)]| Outages {
            intervals: pairs.iter().map(|&(from, to)| Outage { from: at(from), to: at(to) }).collect(),
            effect: OutageEffect::Pause,
        };
        assert_eq!(of(&[(1, 2), (3, 4)]).validate(), Ok(()));
        assert!(of(&[(1, 2), (2, 4)]).validate().is_err());
        assert!(of(&[(5, 6), (1, 2)]).validate().is_err());
        assert!(of(&[(2, 2)]).validate().is_err());
    }
}
