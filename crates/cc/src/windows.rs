//! Congestion window and slow-start threshold.

/// Window and slow-start threshold of a window-based sender, in segments.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Windows {
    /// Congestion window, at least 1.
    pub cwnd: f64,
    /// Slow-start threshold; infinite before the first loss unless configured.
    pub ssthresh: f64,
}

impl Windows {
    /// Invariant: a finite window of at least one segment, and a positive ssthresh.
    pub(crate) fn are_sound(&self) -> bool {
        self.cwnd >= 1.0 && self.cwnd.is_finite() && self.ssthresh > 0.0
    }

    /// True if the window is below ssthresh.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Returns the name of the phase.
    pub fn phase(&self) -> &'static str {
        if self.in_slow_start() { "slow-start" } else { "congestion-avoidance" }
    }

    /// Returns the ssthresh with which slow start restores these windows. In congestion avoidance it is the window itself.
    pub fn threshold_to_restore(&self) -> f64 {
        if self.in_slow_start() { self.ssthresh } else { self.ssthresh.max(self.cwnd) }
    }
}
