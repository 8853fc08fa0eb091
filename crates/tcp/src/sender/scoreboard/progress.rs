//! Deliveries shown by one ACK.

use bentpipe_base::{Instant, precedes};
use bentpipe_cc::delivery_rate::Index;

use super::record::{Mark, Record};

/// Deliveries newly shown by an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Segments cumulatively acknowledged.
    pub acked: u32,
    /// Segments newly SACKed.
    pub sacked: u32,
    /// Segments newly delivered, by the cumulative ACK or by SACK.
    pub arrived: u32,
    /// Sequence numbers newly delivered.
    pub delivered: u64,
    /// The newly delivered segment with the latest transmission.
    pub newest: Option<Record>,
    /// Index of the newest delivered segment.
    pub newest_index: Index,
    /// True if a cumulatively acknowledged segment had been sent more than once.
    pub repeated_acked: bool,
    /// Send time and number of the latest newly delivered transmission of a segment that was sent only once.
    pub newest_original: Option<(Instant, u32)>,
    /// True if a newly delivered segment had been sent only once.
    pub original_delivered: bool,
    /// Lowest start of the newly delivered segments that were sent only once.
    pub lowest_original: u64,
    /// Highest end among all newly delivered segments.
    pub highest: u64,
}

impl Progress {
    pub(super) fn deliver(&mut self, record: &Record, index: Index) {
        self.delivered += u64::from(record.seq_len);
        self.arrived += 1;
        if !record.marks.intersects(Mark::AMBIGUOUS) {
            let first = !self.original_delivered;
            self.lowest_original = if first { record.start } else { self.lowest_original.min(record.start) };
            self.original_delivered = true;
            if self.newest_original.is_none_or(|(_, order)| precedes(order, record.order)) {
                self.newest_original = Some((record.sent_at, record.order));
            }
        }
        self.highest = self.highest.max(record.end());
        if self.newest.is_none_or(|newest| precedes(newest.order, record.order)) {
            self.newest = Some(*record);
            self.newest_index = index;
        }
    }
}
