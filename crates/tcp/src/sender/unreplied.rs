//! Replies to probes from receivers that do not know probes: the report of a duplicate (RFC 2883) with the range of a probe.
//!
//! The echoed timestamp tells nothing: it stays at that of the last segment in sequence. What counts are ranges, not ACKs: a receiver
//! may merge neighbouring probes into one report, but reports each repetition of one range.

use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant, ProbeTag, SackRange};

/// A probe on its way.
#[derive(Clone, Copy, Debug)]
struct Asked {
    range: SackRange,
    tag: ProbeTag,
    at: Instant,
}

/// Probes on their way, oldest first, and those of the last ACK that were answered.
#[derive(Debug, Default)]
pub(super) struct Unreplied {
    asked: VecDeque<Asked>,
    answered: Vec<ProbeTag>,
}

/// Probes remembered at one time.
const MOST: usize = 4096;

impl Unreplied {
    /// A probe with data leaves.
    pub fn ask(&mut self, range: SackRange, tag: ProbeTag, at: Instant) {
        if self.asked.len() == MOST {
            self.asked.pop_front();
        }
        self.asked.push_back(Asked { range, tag, at });
    }

    /// The peer reports that it has `range` twice. True if that answers probes: exactly that range, or several that make it up. Probes
    /// older than `patience` were lost, or filled a hole.
    pub fn report(&mut self, range: SackRange, now: Instant, patience: Duration) -> bool {
        while self.asked.front().is_some_and(|asked| now.since(asked.at) > patience) {
            self.asked.pop_front();
        }
        if let Some(at) = self.asked.iter().position(|asked| asked.range == range) {
            self.answered.extend(self.asked.remove(at).map(|asked| asked.tag));
            return true;
        }
        let mut from = range.start;
        while let Some(at) =
            self.asked.iter().position(|asked| asked.range.start == from && asked.range.end <= range.end)
        {
            let Some(asked) = self.asked.remove(at) else { break };
            from = asked.range.end;
            self.answered.push(asked.tag);
        }
        from > range.start
    }

    /// Tags of the probes that the last report answered, one after another.
    pub fn next_answered(&mut self) -> Option<ProbeTag> {
        self.answered.pop()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.asked.capacity() * size_of::<Asked>()
            + self.answered.capacity() * size_of::<ProbeTag>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(4);

    fn range(start: u64, end: u64) -> SackRange {
        SackRange { start, end }
    }

    /// How many probes a report answers.
    fn answers(unreplied: &mut Unreplied, range: SackRange, at: Instant) -> usize {
        let any = unreplied.report(range, at, PATIENCE);
        let count = std::iter::from_fn(|| unreplied.next_answered()).count();
        assert_eq!(any, count > 0);
        count
    }

    #[test]
    fn each_repetition_of_a_range_answers_one_probe() {
        let mut unreplied = Unreplied::default();
        (0..3).for_each(|_| unreplied.ask(range(1, 1001), ProbeTag(1), Instant::ZERO));
        for expected in [1, 1, 1, 0] {
            assert_eq!(answers(&mut unreplied, range(1, 1001), Instant::ZERO), expected);
        }
    }

    /// A duplicate of three segments gives one report of all three.
    #[test]
    fn a_merged_report_answers_all_that_it_covers() {
        let mut unreplied = Unreplied::default();
        for start in [2001, 1, 1001, 5001] {
            unreplied.ask(range(start, start + 1000), ProbeTag(1), Instant::ZERO);
        }
        assert_eq!(answers(&mut unreplied, range(1, 3001), Instant::ZERO), 3);
        assert_eq!(answers(&mut unreplied, range(1, 3001), Instant::ZERO), 0);
        assert_eq!(answers(&mut unreplied, range(4001, 6001), Instant::ZERO), 0, "no probe begins there");
        assert_eq!(answers(&mut unreplied, range(5001, 6001), Instant::ZERO), 1);
    }

    #[test]
    fn other_duplicates_and_old_probes_answer_nothing() {
        let mut unreplied = Unreplied::default();
        unreplied.ask(range(1, 1001), ProbeTag(1), Instant::ZERO);
        assert_eq!(answers(&mut unreplied, range(1001, 2001), Instant::ZERO), 0);
        assert_eq!(answers(&mut unreplied, range(1, 1001), Instant::ZERO + Duration::from_secs(5)), 0);
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let mut unreplied = Unreplied::default();
        for start in 0..10_000 {
            unreplied.ask(range(start, start + 1), ProbeTag(1), Instant::ZERO);
        }
        assert_eq!(answers(&mut unreplied, range(0, 10_000), Instant::ZERO), 0, "its beginning is forgotten");
        assert_eq!(answers(&mut unreplied, range(9_999, 10_000), Instant::ZERO), 1);
        assert!(unreplied.heap_bytes() < 1 << 18);
    }
}
