//! Lost segments and retransmissions, and the latest SACK blocks.

use std::collections::VecDeque;

use bentpipe_base::{Instant, SackRange};
use bentpipe_cc::delivery_rate::Index;

/// Segments that wait for retransmission, and retransmissions in flight. Stale indices are skipped.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// Lost segments waiting for their first retransmission, in sequence order.
    pub lost: VecDeque<Index>,
    /// Segments whose retransmission was lost. They are retransmitted before the others.
    pub lost_again: VecDeque<Index>,
    /// Retransmissions in flight by time of transmission.
    pub in_flight: VecDeque<(Index, Instant)>,
    /// The latest SACK blocks.
    pub reports: [Report; 4],
    /// How many of them have been replaced.
    replaced: usize,
}

impl Repairs {
    /// The position of the report that is to be replaced next.
    pub fn oldest_report(&mut self) -> usize {
        self.replaced += 1;
        self.replaced % self.reports.len()
    }
}

/// A SACK block that was taken. ACKs repeat them, most of them unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    pub range: SackRange,
    /// Index of the first segment that does not end in it.
    pub next: Index,
}
