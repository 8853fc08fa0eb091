//! ACK decimation: one of every `every` bare ACKs of a connection passes (RFC 3449 section 5.2.2).
//!
//! The last ACKs of a window must pass, or the sender waits for its timer. The latest held ACK therefore leaves after a
//! timeout if no other follows.

use std::collections::BTreeSet;

use bentpipe_base::{Instant, Segment};

use crate::ack::is_bare;
use crate::table::Table;
use crate::{AckDecimatorConfig, Connection, Direction, Emission, Passing, Verdict};

/// ACK decimator of a node.
#[derive(Clone, Debug)]
pub struct AckDecimator {
    config: AckDecimatorConfig,
    /// State by direction of the ACKs. Those of a receiver are `Reverse`, but a sender acknowledges too.
    connections: [Table<Thinned>; 2],
    /// Times at which held ACKs leave.
    due: BTreeSet<(Instant, Connection, bool)>,
    absorbed: u64,
    late: u64,
}

/// ACKs of one direction of a connection.
#[derive(Clone, Debug, Default)]
struct Thinned {
    /// Bare ACKs since the last one that passed.
    skipped: u32,
    highest: u64,
    kept: Option<(Instant, Segment)>,
}

impl AckDecimator {
    /// Makes a decimator without state.
    pub(crate) fn new(config: AckDecimatorConfig) -> Self {
        Self { config, connections: Default::default(), due: BTreeSet::new(), absorbed: 0, late: 0 }
    }

    pub(crate) fn handle(
        &mut self,
        now: Instant,
        passing: &mut Passing<'_>,
        out: &mut Vec<Emission>,
    ) -> Verdict {
        let Some(connection) = passing.connection else { return Verdict::Forward };
        let reverse = passing.direction == Direction::Reverse;
        let thinned = self.connections[usize::from(reverse)].heard(connection, now);
        let kept = thinned.kept.take();
        if let Some((at, _)) = kept {
            self.due.remove(&(at, connection, reverse));
        }
        // Duplicate ACKs count arrivals at the sender: all of them pass.
        let bare = is_bare(passing.segment) && passing.segment.ack > thinned.highest;
        thinned.highest = thinned.highest.max(passing.segment.ack);
        if !bare {
            // The next segment may be a duplicate of the held one, so the held one leaves first.
            let direction = passing.direction;
            self.absorbed -= u64::from(kept.is_some());
            out.extend(kept.map(|(_, segment)| Emission { connection, direction, segment }));
            thinned.skipped = 0;
            return Verdict::Forward;
        }
        thinned.skipped += 1;
        if thinned.skipped >= self.config.every {
            thinned.skipped = 0;
            return Verdict::Forward;
        }
        let at = now + self.config.patience;
        thinned.kept = Some((at, *passing.segment));
        self.due.insert((at, connection, reverse));
        self.absorbed += 1;
        Verdict::Absorb
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        self.due.first().map_or(Instant::FAR_FUTURE, |(at, ..)| *at)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant, out: &mut Vec<Emission>) {
        while let Some((at, connection, reverse)) = self.due.first().copied().filter(|(at, ..)| *at <= now) {
            self.due.remove(&(at, connection, reverse));
            let thinned = self.connections[usize::from(reverse)].get_mut(connection);
            let Some((_, segment)) = thinned.and_then(|thinned| thinned.kept.take()) else { continue };
            let direction = if reverse { Direction::Reverse } else { Direction::Forward };
            out.push(Emission { connection, direction, segment });
            self.absorbed -= 1;
            self.late += 1;
        }
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("acks_absorbed", self.absorbed), ("acks_delayed", self.late)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::bare;
    use crate::fixture::{at_ms, pass};
    use bentpipe_base::Duration;

    const EVERY_THIRD: AckDecimatorConfig =
        AckDecimatorConfig { every: 3, patience: Duration::from_millis(100) };

    #[test]
    fn one_of_three_passes_and_the_last_is_late() {
        let mut decimator = AckDecimator::new(EVERY_THIRD);
        let mut out = Vec::new();
        let passed: Vec<_> = (1..=8)
            .filter(|n| {
                let mut ack = bare(1000 * n);
                let verdict =
                    decimator.handle(at_ms(*n), &mut pass(&mut ack, Direction::Reverse, 0), &mut out);
                verdict == Verdict::Forward
            })
            .collect();
        assert_eq!((passed, out.len()), (vec![3, 6], 0));
        assert_eq!(decimator.next_timeout(), at_ms(108));
        decimator.handle_timeout(at_ms(108), &mut out);
        assert_eq!(out.iter().map(|late| late.segment.ack).collect::<Vec<_>>(), [8000]);
        assert_eq!(decimator.next_timeout(), Instant::FAR_FUTURE);
        assert_eq!(decimator.counters(), [("acks_absorbed", 5), ("acks_delayed", 1)]);
    }

    #[test]
    fn duplicates_pass_behind_the_ack_that_they_repeat() {
        let mut decimator = AckDecimator::new(EVERY_THIRD);
        let mut out = Vec::new();
        let mut handle = |at, out: &mut Vec<Emission>| {
            decimator.handle(at_ms(at), &mut pass(&mut bare(1000), Direction::Reverse, 0), out)
        };
        assert_eq!(handle(1, &mut out), Verdict::Absorb);
        assert_eq!(handle(2, &mut out), Verdict::Forward);
        assert_eq!(out.len(), 1);
        out.clear();
        assert_eq!((handle(3, &mut out), out.len()), (Verdict::Forward, 0));
        assert_eq!(decimator.next_timeout(), Instant::FAR_FUTURE);
    }
}
