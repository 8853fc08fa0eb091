//! Packets in front of a shared link in a world of processes. They are added in any order and removed in batches, in the order of
//! arrival.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_base::{Duration, Instant};

use crate::ids::PacketIndex;
use crate::packet::pool::{PacketPool, Waiting};
use crate::scheduler::key::tie_break;
use crate::tuning::MANY_TO_SORT;

/// Sorts items by their number, which must be the first key of their order. The order of items with the same number is not defined.
pub(crate) fn sort<T: Ord + Copy>(things: &mut [T], number: impl Fn(&T) -> u32) {
    if things.len() < MANY_TO_SORT {
        things.sort_unstable();
    } else {
        radsort::sort_by_key(things, number);
    }
}

/// Packets in front of a shared link, added by processes in turn, each in the order of time.
///
/// Packets due soon are sorted as machine words when they leave. Later ones wait in a heap, so that no packet is sorted repeatedly. The
/// time per packet grows with the logarithm of the number of packets that leave together.
#[derive(Debug)]
pub(crate) struct Batch {
    /// For each packet due soon: nanoseconds after `base` in the high half, its index in the low half.
    order: Vec<u64>,
    base: Instant,
    /// Packets that arrive from this time on wait in the heap.
    until: Instant,
    late: BinaryHeap<Reverse<Waiting>>,
    /// No packet arrives before this time.
    first_at: Instant,
}

impl Batch {
    pub fn new() -> Self {
        Self {
            order: Vec::new(),
            base: Instant::ZERO,
            until: Instant::ZERO,
            late: BinaryHeap::new(),
            first_at: Instant::FAR_FUTURE,
        }
    }

    #[inline(always)]
    pub fn push(&mut self, packet: Waiting, pool: &mut PacketPool) {
        self.first_at = self.first_at.min(packet.at);
        if packet.at < self.until {
            pool.set_waiting(packet);
            let later = packet.at.since(self.base).as_nanos();
            self.order.push(later << 32 | u64::from(packet.handle.index()));
        } else {
            self.late.push(Reverse(packet));
        }
    }

    /// Time of the first, [`Instant::FAR_FUTURE`] if there is none.
    pub fn first_at(&self) -> Instant {
        self.first_at
    }

    pub fn len(&self) -> usize {
        self.order.len() + self.late.len()
    }

    /// Removes the packets that arrive by `limit`, in order.
    pub fn leave(&mut self, limit: Instant, pool: &mut PacketPool) -> SortedBatch {
        while self.late.peek().is_some_and(|first| first.0.at < self.until) {
            let Some(Reverse(first)) = self.late.pop() else { break };
            self.push(first, pool);
        }
        sort(&mut self.order, |key| (key >> 32) as u32);
        let (order, base) = (std::mem::take(&mut self.order), self.base);
        let count = order.partition_point(|key| time(base, *key) <= limit);
        SortedBatch { order, base, count }
    }

    /// Removes the packets that arrived by `limit`. From now on, packets due within `span` after `limit` count as due soon.
    pub fn forget(&mut self, left: SortedBatch, limit: Instant, span: Duration) {
        debug_assert!(self.order.is_empty(), "no packet that leaves comes back");
        self.order = left.order;
        self.order.drain(..left.count);
        let first_late = self.late.peek().map_or(Instant::FAR_FUTURE, |first| first.0.at);
        let base = limit.min(first_late);
        let later = base.since(self.base).as_nanos() << 32;
        self.order.iter_mut().for_each(|key| *key -= later);
        self.base = base;
        self.until = self.base + span.min(Duration::from_nanos(u64::from(u32::MAX)));
        self.first_at = self.order.first().map_or(first_late, |first| time(base, *first));
    }
}

fn time(base: Instant, key: u64) -> Instant {
    base + Duration::from_nanos(key >> 32)
}

/// Packets that leave together.
#[derive(Debug)]
pub(crate) struct SortedBatch {
    /// As in the batch: removed packets first, then the others.
    order: Vec<u64>,
    base: Instant,
    count: usize,
}

impl SortedBatch {
    /// Number of packets.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns the packet at a position of the order. Positions must be read in ascending order: packets of the same time are sorted
    /// here, while they are in the cache.
    #[inline(always)]
    pub fn get(&mut self, position: usize, pool: &PacketPool) -> Waiting {
        let key = self.order[position];
        let comes_with = |other: &u64| key >> 32 == *other >> 32;
        let comes_with_last = position > 0 && comes_with(&self.order[position - 1]);
        if self.order.get(position + 1).is_some_and(comes_with) && !comes_with_last {
            self.sort_together(position, pool);
        }
        Waiting { at: time(self.base, key), ..pool.waiting(self.order[position] as PacketIndex) }
    }

    /// Sorts the packets that arrive at the same time as the one at a position.
    #[inline(never)]
    fn sort_together(&mut self, position: usize, pool: &PacketPool) {
        let first = self.order[position];
        let at = time(self.base, first);
        let together = self.order[position..].iter().take_while(|key| **key >> 32 == first >> 32).count();
        self.order[position..position + together]
            .sort_unstable_by_key(|key| tie_break(at, pool.waiting(*key as PacketIndex).salt_or_next));
    }

    /// The index of the packet at a position, if there is one.
    #[inline(always)]
    pub fn index(&self, position: usize) -> Option<PacketIndex> {
        self.order.get(position).map(|key| *key as PacketIndex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::handle::{Label, Marks, PacketHandle};
    use crate::packet::pool::{NO_CHANNEL, PacketContents};
    use bentpipe_base::Rng;

    /// Packets due soon or late, within machine words of the base or far beyond, leave by time and origin, each once.
    #[test]
    fn packets_leave_in_the_order_of_their_arrival() {
        let mut rng = Rng::stream(1, "batch");
        for (spread, reach) in [(1, 10), (50, 10), (5_000, 1_000), (1 << 40, 1 << 36)] {
            let (mut batch, mut pool) = (Batch::new(), PacketPool::default());
            let (mut model, mut limit) = (Vec::new(), 0);
            for _ in 0..60 {
                for _ in 0..rng.below(40) {
                    let at = Instant::from_nanos(limit + 1 + rng.below(spread));
                    let (index, salt_or_next) = (pool.put(&PacketContents::default()), rng.bits() as u32);
                    let handle = PacketHandle::new((index, 0), 0, Label::default(), Marks::empty());
                    let packet = Waiting { at, handle, salt_or_next, channel: NO_CHANNEL };
                    batch.push(packet, &mut pool);
                    model.push(packet);
                }
                limit += 1 + rng.below(spread / 2 + 2);
                model.sort();
                let leaving = model.partition_point(|packet| packet.at.as_nanos() <= limit);
                let expected: Vec<_> = model.drain(..leaving).collect();
                let mut left = Vec::new();
                let limit = Instant::from_nanos(limit);
                while batch.first_at() <= limit {
                    let mut leaving = batch.leave(limit, &mut pool);
                    for position in 0..leaving.len() {
                        let packet = leaving.get(position, &pool);
                        left.push(packet);
                        pool.release(packet.handle.index());
                    }
                    batch.forget(leaving, limit, Duration::from_nanos(reach));
                }
                assert_eq!(left, expected);
                assert_eq!(batch.len(), model.len());
            }
        }
    }
}
