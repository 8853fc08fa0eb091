//! Congestion window and slow-start threshold.

/// The two numbers of every window-based sender, in segments.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Windows {
    /// Congestion window, at least one.
    pub cwnd: f64,
    /// Slow-start threshold; infinite until the first loss unless configured.
    pub ssthresh: f64,
}

impl Windows {
    /// True below the threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The name of the phase.
    pub fn phase(&self) -> &'static str {
        if self.in_slow_start() { "slow-start" } else { "congestion-avoidance" }
    }

    /// The threshold that lets slow start come back to what these windows were: that of congestion avoidance is the window itself.
    pub fn threshold_to_restore(&self) -> f64 {
        if self.in_slow_start() { self.ssthresh } else { self.ssthresh.max(self.cwnd) }
    }
}
