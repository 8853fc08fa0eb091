use bentpipe_base::{Duration, Instant};

use crate::ConfigError;

/// When a link is out, and what happens to its packets then.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Outages {
    /// The outages in ascending order, not touching each other.
    pub intervals: Vec<Outage>,
    /// What an outage does.
    pub effect: OutageEffect,
}

/// One outage: the link is out in `[from, to)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// First instant without the link.
    pub from: Instant,
    /// First instant with the link again.
    pub to: Instant,
}

/// What an outage does to the packets. None of the effects touches the queue itself: it is kept, and overflows by its
/// own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OutageEffect {
    /// The transmitter knows: it stops. A packet that is being sent when the outage begins is cut and lost, none
    /// starts until the end, and what is already on the path arrives (uplink fade, handover with a modem that waits).
    #[default]
    Pause,
    /// As [`OutageEffect::Pause`], and the path itself is gone: what is on it when the outage begins is lost as well
    /// (handover that abandons the old satellite).
    CutPath,
    /// The transmitter does not know and goes on sending: packets that would arrive during the outage are lost (a
    /// receiver in a tunnel).
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

    /// The outage that `time` lies in.
    fn covering(&self, time: Instant) -> Option<&Outage> {
        let ended = self.intervals.partition_point(|outage| outage.to <= time);
        self.intervals.get(ended).filter(|outage| outage.from <= time)
    }

    /// True if `time` lies in an outage.
    pub(crate) fn is_out(&self, time: Instant) -> bool {
        self.covering(time).is_some()
    }

    /// The first instant from `time` on at which a transmission may start.
    #[inline]
    pub(crate) fn may_start(&self, time: Instant) -> Instant {
        if self.intervals.is_empty() || self.effect == OutageEffect::Blind {
            return time;
        }
        self.covering(time).map_or(time, |outage| outage.to)
    }

    /// The first beginning of an outage after `time`, [`Instant::FAR_FUTURE`] if there is none.
    pub(crate) fn next_start(&self, time: Instant) -> Instant {
        let begun = self.intervals.partition_point(|outage| outage.from <= time);
        self.intervals.get(begun).map_or(Instant::FAR_FUTURE, |outage| outage.from)
    }

    /// Outages of `length` at the beginning of every `period` up to `until`, the first after one period.
    pub fn every(period: Duration, length: Duration, until: Instant) -> Self {
        let mut intervals = Vec::new();
        let mut from = Instant::ZERO + period;
        while !period.is_zero() && from < until {
            intervals.push(Outage { from, to: from + length });
            from += period;
        }
        Self { intervals, effect: OutageEffect::default() }
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
        let outages = Outages::every(Duration::from_secs(10), Duration::from_secs(2), at(35));
        assert_eq!(outages.intervals.len(), 3);
        assert_eq!([9, 10, 11, 12].map(|s| outages.is_out(at(s))), [false, true, true, false]);
        assert_eq!([9, 10, 11, 12].map(|s| outages.may_start(at(s))), [at(9), at(12), at(12), at(12)]);
        assert_eq!(
            [9, 10, 29, 30].map(|s| outages.next_start(at(s))),
            [at(10), at(20), at(30), Instant::FAR_FUTURE]
        );
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
