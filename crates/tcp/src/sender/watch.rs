//! Evidence that the last window reduction was spurious.

use bentpipe_base::{SackRange, precedes};

/// Retransmissions since a reduction, and their reports as duplicates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    /// First unacknowledged sequence number at the reduction. Duplicates of data below it are no evidence.
    from: u64,
    /// Sequence number above which an acknowledgement ends the watch, because all duplicate reports have then arrived.
    pub until: u64,
    /// First repair, until it is acknowledged.
    first: Option<FirstRepair>,
    /// Segments retransmitted since the reduction and not reported as duplicates.
    unreported: u32,
}

/// First segment retransmitted after a reduction.
#[derive(Clone, Copy, Debug)]
struct FirstRepair {
    /// Sequence number after its last byte.
    end: u64,
    /// Send time of the segment, in milliseconds of the timestamps option.
    left_ms: u32,
}

impl Watch {
    /// Starts a watch at a reduction; `una` is the first unacknowledged sequence number.
    pub fn begin(una: u64) -> Self {
        Self { from: una, until: u64::MAX, first: None, unreported: 0 }
    }

    /// Records the retransmission at `left_ms` of a segment that ends at `end`.
    pub fn note_repair(&mut self, end: u64, left_ms: u32) {
        self.unreported += 1;
        if self.unreported == 1 && self.first.is_none() {
            self.first = Some(FirstRepair { end, left_ms });
        }
    }

    /// Handles a D-SACK. Returns true if every repair has now been reported as a duplicate.
    pub fn report(&mut self, range: SackRange, mss: u64) -> bool {
        if range.end <= self.from || range.end <= range.start {
            return false;
        }
        let before = self.unreported;
        let segments = (range.end - range.start).div_ceil(mss).min(u64::from(before)) as u32;
        self.unreported -= segments;
        before > 0 && self.unreported == 0
    }

    /// Handles an ACK of everything below `una` with its echoed timestamp. Returns true if it covers the first repair and answers
    /// the original segment.
    pub fn answers_original(&mut self, una: u64, echo: Option<u32>) -> bool {
        let Some(first) = self.first.take_if(|first| una >= first.end) else { return false };
        echo.is_some_and(|echo| precedes(echo, first.left_ms))
    }
}
