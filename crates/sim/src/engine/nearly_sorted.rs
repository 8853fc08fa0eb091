//! A priority queue of packets by their arrival, for packets that come nearly in order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use bentpipe_base::Instant;
use bentpipe_net::Passing;

use crate::engine::key::{Class, Tie, tie_break};
use crate::engine::tuning::INSERTION_REACH;
use crate::packet::handle::PacketHandle;
use crate::packet::pool::NO_CHANNEL;

/// A packet that will arrive. Ordered as the events of arrivals are: by time and by tie-break.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    pub at: Instant,
    /// That of the link that it comes from.
    pub salt: u32,
    /// The channel that it goes to behind the link where it arrives; [`NO_CHANNEL`] if it goes elsewhere.
    pub channel: u32,
    pub handle: PacketHandle,
}

impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let tie_breaks = || tie_break(self.at, self.salt).cmp(&tie_break(other.at, other.salt));
        self.at.cmp(&other.at).then_with(tie_breaks)
    }
}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Arrivals in order. Takes constant time for those that come nearly in order, and logarithmic time for the others.
#[derive(Debug, Default)]
pub(crate) struct NearlySortedQueue {
    line: VecDeque<Arrival>,
    /// Those that would have gone too far forward in the line.
    apart: BinaryHeap<Reverse<Arrival>>,
}

impl NearlySortedQueue {
    #[inline(always)]
    pub fn push(&mut self, passing: Passing<PacketHandle>, salt: u32) {
        let Passing { at, packet: handle } = passing;
        let arrival = Arrival { at, salt, channel: NO_CHANNEL, handle };
        if self.line.back().is_none_or(|last| last.at < at) {
            self.line.push_back(arrival);
        } else {
            self.put_in(arrival);
        }
    }

    #[inline(never)]
    fn put_in(&mut self, arrival: Arrival) {
        let behind =
            self.line.iter().rev().take(INSERTION_REACH).take_while(|other| **other > arrival).count();
        if behind < INSERTION_REACH {
            self.line.insert(self.line.len() - behind, arrival);
        } else {
            self.apart.push(Reverse(arrival));
        }
    }

    /// Time of the first, [`Instant::FAR_FUTURE`] if there is none.
    #[inline]
    pub fn first_at(&self) -> Instant {
        self.first().0
    }

    /// The same, and what distinguishes the first from others that arrive at the same time.
    #[inline(always)]
    pub fn first(&self) -> (Instant, Tie) {
        let apart = self.apart.peek().map(|apart| &apart.0);
        let first = match (self.line.front(), apart) {
            (Some(first), Some(apart)) => Some(first.min(apart)),
            (first, apart) => first.or(apart),
        };
        let of = |at, salt| (at, Tie { class: Class::Arrival, salt });
        first.map_or(of(Instant::FAR_FUTURE, 0), |first| of(first.at, first.salt))
    }

    /// Takes the first if it arrives at or before `limit`: when, and its handle.
    #[inline(always)]
    pub fn pop(&mut self, limit: Instant) -> Option<(Instant, PacketHandle)> {
        if !self.apart.is_empty() {
            self.bring_forward();
        }
        let first = self.line.front()?;
        if first.at > limit {
            return None;
        }
        let first = (first.at, first.handle);
        self.line.pop_front();
        Some(first)
    }

    /// Puts the first of those apart in front of the line if that is its place.
    #[inline(never)]
    fn bring_forward(&mut self) {
        let leads = |apart: &Reverse<Arrival>| self.line.front().is_none_or(|first| apart.0 < *first);
        if self.apart.peek().is_some_and(leads) {
            let Some(Reverse(first)) = self.apart.pop() else { return };
            self.line.push_front(first);
        }
    }

    /// The packet some places behind the first, as far as that is easily told: a hint for whoever fetches ahead.
    #[inline]
    pub fn upcoming(&self, ahead: usize) -> Option<PacketHandle> {
        self.line.get(ahead).map(|arrival| arrival.handle)
    }

    pub fn len(&self) -> usize {
        self.line.len() + self.apart.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::handle::Marks;
    use bentpipe_base::Rng;

    /// Pushed in disorder of every kind, arrivals come out by time and origin, and none before its time.
    #[test]
    fn arrivals_come_out_in_order() {
        let mut rng = Rng::stream(1, "queue");
        for spread in [1, 3, 50, 100_000] {
            let mut queue = NearlySortedQueue::default();
            let (mut model, mut popped) = (std::collections::BTreeSet::new(), Vec::new());
            for now in 0..3000 {
                let (at, from) = (now + rng.below(spread), rng.below(1 << 30) as u32);
                let marks = Marks::empty();
                let handle = PacketHandle::new((from, 0), 0, 0, marks);
                let at_time = Instant::from_nanos(at);
                queue.push(Passing { at: at_time, packet: handle }, from);
                model.insert((at, tie_break(at_time, from), from));
                assert_eq!(queue.first_at().as_nanos(), model.first().unwrap().0);
                while let Some((at, handle)) = queue.pop(Instant::from_nanos(now)) {
                    popped.push((at.as_nanos(), handle.index()));
                    let expected = model.pop_first().map(|(at, .., from)| (at, from));
                    assert_eq!(expected, popped.last().copied());
                }
                assert!(model.first().is_none_or(|first| first.0 > now));
                assert_eq!(queue.len(), model.len());
            }
            assert!(popped.is_sorted_by_key(|(at, _)| *at));
        }
    }
}
