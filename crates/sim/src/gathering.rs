//! Packets that gather in no order and leave many at a time, in the order of their arrival.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_base::{Duration, Instant, prefetch};

use crate::procession::{Arrival, NO_LANE};
use crate::ticket::Ticket;
use crate::wheel::lot;

/// From so many on, sorting by digits is quicker than by comparisons. Measured.
const MANY: usize = 1000;

/// Packets in front of a junction, sent by hosts that are ahead of the clock: each host's in order, one host after the other.
///
/// What comes soon is sorted when it leaves, as machine words. What comes later than that waits apart, so that nothing is looked at again
/// and again: a packet takes time that grows with the logarithm of those that leave together.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// Of each packet that comes soon: how long after `base` in the high half, its place among the others in the low one.
    order: Vec<u64>,
    soon: Vec<Gathered>,
    base: Instant,
    /// Who comes from this time on waits apart.
    until: Instant,
    late: BinaryHeap<Reverse<Arrival>>,
    /// No packet comes before this.
    first_at: Instant,
    /// Empty; kept for its memory.
    rest: Vec<Arrival>,
}

/// A packet that comes soon, without the time.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Gathered {
    since: Instant,
    ticket: Ticket,
    salt: u32,
    lane: u32,
}

impl Gathered {
    /// The lane that it goes to, if it goes to one.
    #[inline]
    fn lane(&self) -> Option<u32> {
        (self.lane != NO_LANE).then_some(self.lane)
    }
}

impl Gathering {
    pub fn new() -> Self {
        Self {
            order: Vec::new(),
            soon: Vec::new(),
            base: Instant::ZERO,
            until: Instant::ZERO,
            late: BinaryHeap::new(),
            first_at: Instant::FAR_FUTURE,
            rest: Vec::new(),
        }
    }

    #[inline(always)]
    pub fn push(&mut self, arrival: Arrival) {
        self.first_at = self.first_at.min(arrival.at);
        if arrival.at < self.until {
            let Arrival { at, since, salt, lane, ticket } = arrival;
            self.order.push(at.since(self.base).as_nanos() << 32 | self.soon.len() as u64);
            self.soon.push(Gathered { since, ticket, salt, lane });
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

    /// Puts in order who comes by `limit`: so many. Who comes together is put in order by [`get`](Self::get), when a cache holds them.
    pub fn sort(&mut self, limit: Instant) -> usize {
        while self.late.peek().is_some_and(|first| first.0.at < self.until) {
            let Some(Reverse(first)) = self.late.pop() else { break };
            self.push(first);
        }
        if self.order.len() < MANY {
            self.order.sort_unstable();
        } else {
            // Of those that come at the same time, the first to be known stays in front.
            radsort::sort_by_key(&mut self.order, |key| (key >> 32) as u32);
        }
        self.order.partition_point(|key| self.time(*key) <= limit)
    }

    /// Puts in order who comes together with the one at a place.
    #[inline(never)]
    fn sort_together(&mut self, place: usize) {
        let Self { order, soon, .. } = self;
        let first = order[place];
        let at = self.base + Duration::from_nanos(first >> 32);
        let together = order[place..].iter().take_while(|key| **key >> 32 == first >> 32).count();
        order[place..place + together].sort_unstable_by_key(|key| {
            let Gathered { since, salt, .. } = soon[*key as u32 as usize];
            (since, lot(at, salt))
        });
    }

    fn time(&self, key: u64) -> Instant {
        self.base + Duration::from_nanos(key >> 32)
    }

    /// When the one comes at a place of the order, its ticket, and the lane that it goes to, if any. To be asked for one place after the
    /// other.
    #[inline]
    pub fn get(&mut self, place: usize) -> (Instant, Ticket, Option<u32>) {
        let key = self.order[place];
        let comes_with = |other: &u64| key >> 32 == *other >> 32;
        let comes_with_last = place > 0 && comes_with(&self.order[place - 1]);
        if self.order.get(place + 1).is_some_and(comes_with) && !comes_with_last {
            self.sort_together(place);
        }
        let one = &self.soon[self.order[place] as u32 as usize];
        (self.time(key), one.ticket, one.lane())
    }

    /// The lane that the one at a place goes to, if there is one.
    #[inline]
    pub fn lane(&self, place: usize) -> Option<u32> {
        self.order.get(place).and_then(|key| self.soon[*key as u32 as usize].lane())
    }

    /// Asks for the memory of the one at a place.
    #[inline]
    pub fn prefetch(&self, place: usize) {
        if let Some(key) = self.order.get(place) {
            prefetch(&self.soon[*key as u32 as usize]);
        }
    }

    /// Forgets the first `left`, who came by `limit`. From now on who comes within `reach` of that comes soon.
    pub fn forget(&mut self, left: usize, limit: Instant, reach: Duration) {
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend(self.order[left..].iter().map(|&key| {
            let Gathered { since, ticket, salt, lane } = self.soon[key as u32 as usize];
            Arrival { at: self.time(key), since, salt, lane, ticket }
        }));
        self.order.clear();
        self.soon.clear();
        let first_late = self.late.peek().map_or(Instant::FAR_FUTURE, |first| first.0.at);
        self.base = limit.min(first_late);
        self.until = self.base + reach.min(Duration::from_nanos(u64::from(u32::MAX)));
        self.first_at = first_late;
        rest.drain(..).for_each(|arrival| self.push(arrival));
        self.rest = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticket::Marks;
    use bentpipe_base::Rng;

    /// Whoever comes soon or late, within machine words of the base or far beyond, all leave by time and origin, each once.
    #[test]
    fn packets_leave_in_the_order_of_their_arrival() {
        let mut rng = Rng::stream(1, "gathering");
        for (spread, reach) in [(1, 10), (50, 10), (5_000, 1_000), (1 << 40, 1 << 36)] {
            let mut gathering = Gathering::new();
            let (mut model, mut limit) = (Vec::new(), 0);
            for round in 0..60 {
                for _ in 0..rng.below(40) {
                    let at = Instant::from_nanos(limit + 1 + rng.below(spread));
                    let (slot, salt) = (model.len() as u32 + 1000 * round, rng.bits() as u32);
                    let since = Instant::from_nanos(rng.below(2));
                    let ticket = Ticket::new((slot, 0), 0, 0, Marks::empty());
                    let arrival = Arrival { at, since, salt, lane: NO_LANE, ticket };
                    gathering.push(arrival);
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
                    let count = gathering.sort(limit);
                    left.extend(
                        (0..count).map(|place| gathering.get(place)).map(|(at, ticket, _)| (at, ticket)),
                    );
                    gathering.forget(count, limit, Duration::from_nanos(reach));
                }
                assert_eq!(left, expected);
                assert_eq!(gathering.len(), model.len());
            }
        }
    }
}
