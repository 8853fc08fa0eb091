//! The reassembly queue.

use std::collections::VecDeque;

use bentpipe_base::{SackBlocks, SackRange};

/// The reassembly queue: which ranges arrived out of order, and what is to be reported of them and of duplicates.
#[derive(Debug, Default)]
pub(super) struct ReassemblyQueue {
    /// Ranges held above `nxt`, in order, disjoint and not touching.
    pub ranges: VecDeque<SackRange>,
    /// Ranges as last reported, most recent first (RFC 2018 section 4).
    pub recent: [SackRange; 4],
    /// Duplicate to report once (RFC 2883).
    pub dsack: Option<SackRange>,
}

impl ReassemblyQueue {
    /// Adds the ranges that an ACK of everything before `nxt` reports, until there are `room` blocks.
    pub fn list_ranges(&self, room: usize, nxt: u64, blocks: &mut SackBlocks) {
        for &range in &self.recent {
            if range.start > nxt && blocks.len() < room {
                blocks.push(range);
            }
        }
    }
}

/// Puts a range at its place among `ranges`, merged with those that it touches.
pub(super) fn merge_at(ranges: &mut VecDeque<SackRange>, at: usize, mut merged: SackRange) -> SackRange {
    while let Some(range) = ranges.get(at).copied().filter(|range| range.start <= merged.end) {
        merged = SackRange { start: merged.start.min(range.start), end: merged.end.max(range.end) };
        ranges.remove(at);
    }
    ranges.insert(at, merged);
    merged
}
