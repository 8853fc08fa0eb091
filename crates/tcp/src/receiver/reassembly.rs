//! The reassembly queue.

use std::collections::VecDeque;

use bentpipe_base::{SackBlocks, SackRange};

/// Reassembly queue: ranges received out of order, and pending reports of ranges and duplicates.
#[derive(Debug, Default)]
pub(super) struct ReassemblyQueue {
    /// Ranges held above `nxt`, in order and not adjacent.
    pub ranges: VecDeque<SackRange>,
    /// Ranges as last reported, most recent first (RFC 2018 section 4).
    pub recent: [SackRange; 4],
    /// Duplicate to report once (RFC 2883).
    pub dsack: Option<SackRange>,
}

impl ReassemblyQueue {
    /// Adds the ranges reported by an ACK of everything before `nxt`, until there are `room` blocks.
    pub fn list_ranges(&self, room: usize, nxt: u64, blocks: &mut SackBlocks) {
        for &range in &self.recent {
            if range.start > nxt && blocks.len() < room {
                blocks.push(range);
            }
        }
    }
}

/// Inserts a range in `ranges`, merged with adjacent ones.
pub(super) fn merge_at(ranges: &mut VecDeque<SackRange>, at: usize, mut merged: SackRange) -> SackRange {
    while let Some(range) = ranges.get(at).copied().filter(|range| range.start <= merged.end) {
        merged = SackRange { start: merged.start.min(range.start), end: merged.end.max(range.end) };
        ranges.remove(at);
    }
    debug_assert!(at == 0 || ranges[at - 1].end < merged.start, "ranges are sorted and apart");
    ranges.insert(at, merged);
    merged
}
