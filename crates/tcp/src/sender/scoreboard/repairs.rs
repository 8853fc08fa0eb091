//! Lost segments and retransmissions, and the latest SACK blocks.

use std::collections::VecDeque;

use bentpipe_base::SackRange;
use bentpipe_cc::delivery_rate::Index;

/// Segments that wait for retransmission, and retransmissions in flight. Outdated indices are
/// skipped.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// Lost segments waiting for their first retransmission, in sequence order.
    pub lost: VecDeque<Index>,
    /// Segments whose retransmission was lost; they are retransmitted first.
    pub lost_again: VecDeque<Index>,
    /// Retransmissions in flight by the number of their transmission, in that order.
    pub in_flight: VecDeque<(Index, u32)>,
    /// The latest SACK blocks.
    pub reports: [Report; 4],
    /// Number of replaced reports.
    replaced: usize,
}

impl Repairs {
    /// Returns the position of the report to replace next.
    pub fn oldest_report(&mut self) -> usize {
        self.replaced += 1;
        self.replaced % self.reports.len()
    }
}

/// A processed SACK block. ACKs repeat blocks, most of them unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    pub range: SackRange,
    /// Index of the first segment that does not end in it.
    pub next: Index,
}
