//! Segments that fill a path without a queue, from one bandwidth sample per round trip and the minimum RTT.

use bentpipe_base::Duration;

use super::bandwidth::{AckedCount, Credit, PerRound, segments};
use super::base_rtt::BaseRtt;
use crate::{Ack, ConnectionEvent, Path};

/// `BWE RTTmin / seg_size` of Westwood+ and Astart.
#[derive(Clone, Debug)]
pub(crate) struct RoundPipe {
    count: AckedCount,
    pub rounds: PerRound,
    pub base: BaseRtt,
}

impl RoundPipe {
    /// Makes the estimator before its first sample.
    pub fn new(credit: Credit, rounds: PerRound) -> Self {
        Self { count: AckedCount::new(credit), rounds, base: BaseRtt::new() }
    }

    /// Handles a rare event of the connection.
    pub fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        match event {
            ConnectionEvent::Established => {
                self.base.sample(path.min_rtt);
                self.rounds.begin(path.now);
            }
            ConnectionEvent::Idle { .. } => self.rounds.rest(),
            _ => {}
        }
    }

    /// Handles an ACK; `round` is the minimum time of a bandwidth sample. Returns the newly delivered bytes.
    pub fn on_ack(&mut self, ack: &Ack, path: &Path, round: Duration) -> u64 {
        if let Some(rtt) = ack.rtt {
            self.base.sample(rtt);
        }
        let bytes = self.count.count(ack, path.mss);
        self.rounds.on_ack(path.now, bytes, round);
        bytes
    }

    /// Returns the estimate in segments.
    pub fn segments(&self, path: &Path) -> f64 {
        segments(self.rounds.rate(), self.base.get(), path.mss)
    }
}
