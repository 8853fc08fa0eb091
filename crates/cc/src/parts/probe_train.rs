//! A train of low-priority probes, spaced evenly over one round trip: Peach's Sudden Start, Swift's Speedy Start, Peach+'s
//! Jump Start and PBS's Accelerative Start.

use bentpipe_base::{Duration, Instant};

use crate::Path;
use crate::parts::mode::Mode;

/// A train that is being sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Train {
    /// Send time of the next probe.
    pub next: Instant,
    /// Time between two probes: the papers' τ.
    pub tau: Duration,
    /// Remaining send times, the next one included.
    pub left: u32,
    /// Probes sent.
    pub sent: u32,
}

impl Train {
    /// Makes a train of `probes` probes from now on, one every `span / slots`. `None` if `probes` is zero.
    pub fn over(span: Duration, slots: u32, probes: u32, now: Instant) -> Option<Self> {
        let tau = span / u64::from(slots.max(1));
        (probes > 0).then_some(Self { next: now + tau, tau, left: probes, sent: 0 })
    }

    /// Handles a send time. Returns true if a probe leaves (at most `most` per train), and the rest of the train.
    pub fn advance(self, most: u32) -> (bool, Option<Self>) {
        let leaves = self.sent < most;
        let (left, sent) = (self.left - 1, self.sent + u32::from(leaves));
        (leaves, (left > 0).then_some(Self { next: self.next + self.tau, left, sent, ..self }))
    }
}

/// Maximum number of probes in a train. In safe mode it is the data after the segment that opened the train, in segments. A proxy
/// receives data during the train, so this is computed for each probe.
pub(crate) fn most_probes(mode: Mode, path: &Path) -> u32 {
    if mode == Mode::Paper {
        return u32::MAX;
    }
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
            train = running.advance(u32::MAX).1;
        }
        let expected: Vec<_> = (1..64).map(|i| Instant::ZERO + Duration::from_millis(i)).collect();
        assert_eq!(times, expected);
    }

    #[test]
    fn a_time_at_which_there_is_no_data_passes_without_a_probe() {
        let train = Train::over(Duration::from_millis(64), 64, 3, Instant::ZERO).unwrap();
        let (leaves, train) = train.advance(0);
        assert!(!leaves);
        let (leaves, train) = train.unwrap().advance(1);
        assert!(leaves);
        assert_eq!(train.unwrap().advance(1), (false, None));
    }

    #[test]
    fn no_probes_no_train() {
        assert_eq!(Train::over(Duration::from_millis(64), 0, 0, Instant::ZERO), None);
    }
}
