//! Packets that gather in no order and leave many at a time, in the order of their arrival.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_base::{Duration, Instant};

use crate::arena::{Arena, Slot, Way};
use crate::procession::Arrival;
use crate::wheel::tie_break;

/// From so many on, sorting by digits is quicker than by comparisons. Measured.
const MANY: usize = 300;

/// Sorts things by their numbers, which are the first that two of them are compared by. What has the same number stays in any order.
pub(crate) fn sort<T: Ord + Copy>(things: &mut [T], number: impl Fn(&T) -> u32) {
    if things.len() < MANY {
        things.sort_unstable();
    } else {
        radsort::sort_by_key(things, number);
    }
}

/// Packets in front of a junction, sent by hosts that are ahead of the clock: each host's in order, one host after the other.
///
/// What comes soon is sorted when it leaves, as machine words. What comes later than that waits apart, so that nothing is looked at again
/// and again: a packet takes time that grows with the logarithm of those that leave together.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// Of each packet that comes soon: how long after `base` in the high half, its slot in the low one.
    order: Vec<u64>,
    base: Instant,
    /// Who comes from this time on waits apart.
    until: Instant,
    late: BinaryHeap<Reverse<Arrival>>,
    /// No packet comes before this.
    first_at: Instant,
}

impl Gathering {
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
    pub fn push(&mut self, arrival: Arrival, arena: &mut Arena) {
        self.first_at = self.first_at.min(arrival.at);
        if arrival.at < self.until {
            let Arrival { at, salt, lane, ticket } = arrival;
            arena.set_way(Way { time: at, ticket, salt_or_next: salt, lane });
            self.order.push(at.since(self.base).as_nanos() << 32 | u64::from(ticket.slot()));
        } else {
            self.late.push(Reverse(arrival));
        }
    }

    /// Time of the first, [`Instant::FAR_FUTURE`] if there is none.
    pub fn first_at(&self) -> Instant {
        self.first_at
    }

    pub fn len(&self) -> usize {
        self.order.len() + self.late.len()
    }

    /// Who comes by `limit`, in order.
    pub fn leave(&mut self, limit: Instant, arena: &mut Arena) -> Leaving {
        while self.late.peek().is_some_and(|first| first.0.at < self.until) {
            let Some(Reverse(first)) = self.late.pop() else { break };
            self.push(first, arena);
        }
        sort(&mut self.order, |key| (key >> 32) as u32);
        let (order, base) = (std::mem::take(&mut self.order), self.base);
        let count = order.partition_point(|key| time(base, *key) <= limit);
        Leaving { order, base, count }
    }

    /// Those who came by `limit` have left. From now on who comes within `reach` of that comes soon.
    pub fn forget(&mut self, left: Leaving, limit: Instant, reach: Duration) {
        debug_assert!(self.order.is_empty(), "nobody who leaves comes back");
        self.order = left.order;
        self.order.drain(..left.count);
        let first_late = self.late.peek().map_or(Instant::FAR_FUTURE, |first| first.0.at);
        let base = limit.min(first_late);
        let later = base.since(self.base).as_nanos() << 32;
        self.order.iter_mut().for_each(|key| *key -= later);
        self.base = base;
        self.until = self.base + reach.min(Duration::from_nanos(u64::from(u32::MAX)));
        self.first_at = self.order.first().map_or(first_late, |first| time(base, *first));
    }
}

fn time(base: Instant, key: u64) -> Instant {
    base + Duration::from_nanos(key >> 32)
}

/// Packets that leave together.
#[derive(Debug)]
pub(crate) struct Leaving {
    /// As in the gathering: these, and then who stays.
    order: Vec<u64>,
    base: Instant,
    count: usize,
}

impl Leaving {
    /// How many they are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// When the one comes at a position of the order, and its slot. To be asked for one position after the other: who comes together is put
    /// in order only now, when a cache holds what that takes.
    #[inline(always)]
    pub fn get(&mut self, position: usize, arena: &Arena) -> (Instant, Slot) {
        let key = self.order[position];
        let comes_with = |other: &u64| key >> 32 == *other >> 32;
        let comes_with_last = position > 0 && comes_with(&self.order[position - 1]);
        if self.order.get(position + 1).is_some_and(comes_with) && !comes_with_last {
            self.sort_together(position, arena);
        }
        (time(self.base, key), self.order[position] as Slot)
    }

    /// Puts in order who comes together with the one at a position.
    #[inline(never)]
    fn sort_together(&mut self, position: usize, arena: &Arena) {
        let first = self.order[position];
        let at = time(self.base, first);
        let together = self.order[position..].iter().take_while(|key| **key >> 32 == first >> 32).count();
        self.order[position..position + together]
            .sort_unstable_by_key(|key| tie_break(at, arena.way(*key as Slot).salt_or_next));
    }

    /// The slot of the one at a position, if there is one.
    #[inline(always)]
    pub fn slot(&self, position: usize) -> Option<Slot> {
        self.order.get(position).map(|key| *key as Slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{NO_LANE, Parcel};
    use crate::ticket::{Marks, Ticket};
    use bentpipe_base::Rng;

    /// Whoever comes soon or late, within machine words of the base or far beyond, all leave by time and origin, each once.
    #[test]
    fn packets_leave_in_the_order_of_their_arrival() {
        let mut rng = Rng::stream(1, "gathering");
        for (spread, reach) in [(1, 10), (50, 10), (5_000, 1_000), (1 << 40, 1 << 36)] {
            let (mut gathering, mut arena) = (Gathering::new(), Arena::default());
            let (mut model, mut limit) = (Vec::new(), 0);
            for _ in 0..60 {
                for _ in 0..rng.below(40) {
                    let at = Instant::from_nanos(limit + 1 + rng.below(spread));
                    let (slot, salt) = (arena.put(&Parcel::default()), rng.bits() as u32);
                    let ticket = Ticket::new((slot, 0), 0, 0, Marks::empty());
                    let arrival = Arrival { at, salt, lane: NO_LANE, ticket };
                    gathering.push(arrival, &mut arena);
                    model.push(arrival);
                }
                limit += 1 + rng.below(spread / 2 + 2);
                model.sort();
                let leaving = model.partition_point(|arrival| arrival.at.as_nanos() <= limit);
                let expected: Vec<_> =
                    model.drain(..leaving).map(|arrival| (arrival.at, arrival.ticket)).collect();
                let mut left = Vec::new();
                let limit = Instant::from_nanos(limit);
                while gathering.first_at() <= limit {
                    let mut leaving = gathering.leave(limit, &mut arena);
                    for position in 0..leaving.len() {
                        let (at, slot) = leaving.get(position, &arena);
                        left.push((at, arena.way(slot).ticket));
                        arena.release(slot);
                    }
                    gathering.forget(leaving, limit, Duration::from_nanos(reach));
                }
                assert_eq!(left, expected);
                assert_eq!(gathering.len(), model.len());
            }
        }
    }
}
