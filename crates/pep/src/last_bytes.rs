//! The bytes before a reset: the receiving half is reset when its far end has acknowledged them, or when there is no progress.

use std::time::{Duration, Instant};

/// Interval between two reads of the number of bytes (chosen).
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Progress with the last bytes of a half.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastBytes {
    acknowledged: u64,
    /// Time of the peer's last acknowledgement of new bytes.
    progress_at: Instant,
    patience: Duration,
}

/// State of the bytes for a half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Delivery {
    /// Bytes that the far end has acknowledged.
    pub acknowledged: u64,
    /// Bytes that are unacknowledged or unsent; at least 1 while the other half may send more.
    pub left: u64,
}

impl LastBytes {
    /// `patience` is the longest time without progress.
    pub fn new(now: Instant, patience: Duration) -> Self {
        Self { acknowledged: 0, progress_at: now, patience }
    }

    /// Notes the progress of the delivery. Returns true if the half is to be reset now.
    pub fn are_over(&mut self, delivery: Delivery, now: Instant) -> bool {
        if delivery.acknowledged > self.acknowledged {
            self.acknowledged = delivery.acknowledged;
            self.progress_at = now;
        }
        delivery.left == 0 || now.duration_since(self.progress_at) >= self.patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_waits_for_progress_and_otherwise_no_longer_than_its_patience() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let of = |acknowledged, left| Delivery { acknowledged, left };
        let mut bytes = LastBytes::new(begin, Duration::from_secs(60));
        assert!(!bytes.are_over(of(0, 1000), at(59)));
        assert!(!bytes.are_over(of(1, 1000), at(59)), "more has come from the other half");
        assert!(!bytes.are_over(of(1, 1000), at(118)), "59 s after the last progress");
        assert!(bytes.are_over(of(1, 1000), at(119)));
        assert!(bytes.are_over(of(1001, 0), at(119)));
        assert!(LastBytes::new(begin, Duration::from_secs(60)).are_over(of(0, 0), begin));
    }
}
