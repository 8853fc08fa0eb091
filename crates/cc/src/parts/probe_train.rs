//! A train of low-priority probes, spaced evenly over one round trip: Peach's Sudden Start, Swift's Speedy Start, Peach+'s
//! Jump Start and PBS's Accelerative Start.

use bentpipe_base::{Duration, Instant};

use crate::Path;

/// A train under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Train {
    /// When the next probe is due.
    pub next: Instant,
    /// Time between two probes: the papers' τ.
    pub tau: Duration,
    /// Probes still to come, the next one included.
    pub left: u32,
}

impl Train {
    /// `probes` probes from now on, one every `slots`-th part of `span`. `None` if there are none to send.
    pub fn over(span: Duration, slots: u32, probes: u32, now: Instant) -> Option<Self> {
        let tau = span / u64::from(slots.max(1));
        (probes > 0).then_some(Self { next: now + tau, tau, left: probes })
    }

    /// A probe was due; what remains of the train.
    pub fn advance(self) -> Option<Self> {
        let left = self.left - 1;
        (left > 0).then_some(Self { next: self.next + self.tau, left, ..self })
    }
}

/// Data after the segment just sent, in segments.
pub(crate) fn segments_left(path: &Path) -> u32 {
    let bytes = (path.snd_nxt - path.snd_una).saturating_add(path.unsent);
    let segments = bytes.div_ceil(u64::from(path.mss.max(1)));
    u32::try_from(segments.saturating_sub(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evenly_over_a_round_trip_without_a_probe_at_either_end() {
        let rtt = Duration::from_millis(64);
        let mut train = Train::over(rtt, 64, 63, Instant::ZERO);
        let mut times = Vec::new();
        while let Some(running) = train {
            times.push(running.next);
            train = running.advance();
        }
        let expected: Vec<_> = (1..64).map(|i| Instant::ZERO + Duration::from_millis(i)).collect();
        assert_eq!(times, expected);
    }

    #[test]
    fn no_probes_no_train() {
        assert_eq!(Train::over(Duration::from_millis(64), 0, 0, Instant::ZERO), None);
    }
}
