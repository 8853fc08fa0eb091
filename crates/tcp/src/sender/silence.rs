//! Silence of the peer: its duration, and unanswered timeouts and probes.

use bentpipe_base::Instant;

/// Counters of unanswered transmissions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    /// Time since which the oldest data waits for an acknowledgement (user timeout).
    pub since: Instant,
    /// Consecutive retransmission timeouts.
    pub timeouts: u32,
    /// RTO probes of the engine in this series of timeouts: at most `timeouts`.
    pub rto_probes: u32,
    /// Consecutive zero-window probes.
    pub persists: u32,
    /// Timeouts and zero-window probes since the last ACK of any kind.
    pub unanswered: u32,
}

impl Default for Silence {
    fn default() -> Self {
        Self { since: Instant::FAR_FUTURE, timeouts: 0, rto_probes: 0, persists: 0, unanswered: 0 }
    }
}

impl Silence {
    /// Ends the series of timeouts and probes, after an acknowledgement of new data.
    pub fn end_runs(&mut self) {
        (self.timeouts, self.rto_probes, self.persists) = (0, 0, 0);
    }

    /// True if nothing is unanswered.
    pub fn is_none(&self) -> bool {
        self.timeouts | self.rto_probes | self.persists | self.unanswered == 0
    }

    /// Returns the consecutive timeouts without those followed by an RTO probe of the engine.
    pub fn believed(&self) -> u32 {
        self.timeouts - self.rto_probes
    }
}
