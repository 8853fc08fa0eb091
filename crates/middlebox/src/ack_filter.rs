//! ACK filtering: only the latest bare ACK of a connection waits in a queue (RFC 3449 section 5.2.1).
//!
//! The RFC removes older ACKs from the queue itself. Here the latest ACK waits until the packets queued at its arrival have left,
//! which works with any queue. The same ACKs pass, each delayed by at most that queueing time.

use std::collections::BTreeMap;

use bentpipe_base::{Instant, Segment};

use crate::ack::is_bare;
use crate::table::Table;
use crate::{Connection, Direction, Emission, Passing, Verdict};

/// ACK filter of a node.
#[derive(Clone, Debug, Default)]
pub struct AckFilter {
    /// State by direction of the ACKs. Those of a receiver are `Reverse`, but a sender acknowledges too.
    connections: [Table<Acks>; 2],
    /// Waiting ACKs, by the time at which they leave.
    waiting: BTreeMap<(Instant, Connection, bool), Segment>,
    absorbed: u64,
}

/// ACKs of one direction of a connection.
#[derive(Clone, Debug, Default)]
struct Acks {
    highest: u64,
    /// Time at which the waiting ACK leaves.
    leaves_at: Option<Instant>,
}

impl AckFilter {
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        passing: &mut Passing<'_>,
        out: &mut Vec<Emission>,
    ) -> Verdict {
        let Some(connection) = passing.connection else { return Verdict::Forward };
        let (direction, port) = (passing.direction, passing.port);
        let reverse = direction == Direction::Reverse;
        let acks = self.connections[usize::from(reverse)].heard(connection, now);
        let bare = is_bare(passing.segment) && passing.segment.ack > acks.highest;
        acks.highest = acks.highest.max(passing.segment.ack);
        if !bare {
            // The waiting ACK leaves first: a duplicate that overtook it would no longer be a duplicate.
            let before = acks.leaves_at.take().and_then(|at| self.waiting.remove(&(at, connection, reverse)));
            out.extend(before.map(|segment| Emission { connection, direction, segment }));
            return Verdict::Forward;
        }
        if let Some(at) = acks.leaves_at {
            self.waiting.insert((at, connection, reverse), *passing.segment);
            self.absorbed += 1;
            return Verdict::Absorb;
        }
        if port.waiting_packets == 0 {
            return Verdict::Forward;
        }
        let at = now + port.rate.time_for(port.waiting_bytes);
        acks.leaves_at = Some(at);
        self.waiting.insert((at, connection, reverse), *passing.segment);
        Verdict::Absorb
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        self.waiting.keys().next().map_or(Instant::FAR_FUTURE, |(at, ..)| *at)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant, out: &mut Vec<Emission>) {
        while let Some(entry) = self.waiting.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((_, connection, reverse), segment) = entry.remove_entry();
            if let Some(acks) = self.connections[usize::from(reverse)].get_mut(connection) {
                acks.leaves_at = None;
            }
            let direction = if reverse { Direction::Reverse } else { Direction::Forward };
            out.push(Emission { connection, direction, segment });
        }
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("acks_absorbed", self.absorbed)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::bare;
    use crate::fixture::{at_ms, pass};

    fn handle(filter: &mut AckFilter, ack: u64, waiting: u32) -> (Verdict, Vec<u64>) {
        let mut out = Vec::new();
        let mut segment = bare(ack);
        let verdict = filter.handle(at_ms(1), &mut pass(&mut segment, Direction::Reverse, waiting), &mut out);
        (verdict, out.iter().map(|emission| emission.segment.ack).collect())
    }

    #[test]
    fn an_empty_queue_lets_every_ack_pass() {
        let mut filter = AckFilter::default();
        for n in 1..5 {
            assert_eq!(handle(&mut filter, 1000 * n, 0), (Verdict::Forward, vec![]));
        }
        assert_eq!(filter.next_timeout(), Instant::FAR_FUTURE);
    }

    #[test]
    fn only_the_latest_of_those_that_wait_leaves_when_what_was_before_it_has_left() {
        let mut filter = AckFilter::default();
        for n in 1..=5 {
            assert_eq!(handle(&mut filter, 1000 * n, 2).0, Verdict::Absorb);
        }
        // The queue holds two packets of 1000 bytes at 1 Mbit/s.
        assert_eq!(filter.next_timeout(), at_ms(17));
        let mut out = Vec::new();
        filter.handle_timeout(at_ms(17), &mut out);
        assert_eq!(out.iter().map(|late| late.segment.ack).collect::<Vec<_>>(), [5000]);
        assert_eq!(
            (filter.next_timeout(), filter.counters()),
            (Instant::FAR_FUTURE, vec![("acks_absorbed", 4)])
        );
    }

    #[test]
    fn a_duplicate_does_not_overtake_what_it_repeats() {
        let mut filter = AckFilter::default();
        assert_eq!(handle(&mut filter, 1000, 2).0, Verdict::Absorb);
        assert_eq!(handle(&mut filter, 1000, 2), (Verdict::Forward, vec![1000]));
        assert_eq!(filter.next_timeout(), Instant::FAR_FUTURE);
    }
}
