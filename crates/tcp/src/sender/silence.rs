//! How long the peer has been silent, and how many timeouts and probes it has left unanswered.

use bentpipe_base::Instant;

/// Counts of what went without an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    /// Since when the oldest data waits for an acknowledgement (user timeout).
    pub since: Instant,
    /// Consecutive retransmission timeouts.
    pub timeouts: u32,
    /// RTO probes of the engine itself in this run of timeouts: never more than `timeouts`.
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
    /// New data was acknowledged: the runs of timeouts and probes are over.
    pub fn end_runs(&mut self) {
        (self.timeouts, self.rto_probes, self.persists) = (0, 0, 0);
    }

    /// Nothing has been left unanswered.
    pub fn is_none(&self) -> bool {
        self.timeouts | self.rto_probes | self.persists | self.unanswered == 0
    }

    /// Consecutive timeouts without those after which the engine sent an RTO probe.
    pub fn believed(&self) -> u32 {
        self.timeouts - self.rto_probes
    }
}
