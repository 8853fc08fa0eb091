//! Packets that gather in no order and leave many at a time, in the order of their arrival.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_base::{Duration, Instant};

use crate::mailroom::{Mailroom, Place, Waiting};
use crate::paging::Cursor;
use crate::procession::Arrival;
use crate::wheel::lot;

/// From so many on, sorting by digits is quicker than by comparisons. Measured.
const MANY: usize = 1000;

/// Packets in front of a junction, sent by hosts that are ahead of the clock: each host's in order, one host after the other.
///
/// What comes soon is sorted when it leaves, as machine words. What comes later than that waits apart, so that nothing is looked at again
/// and again: a packet takes time that grows with the logarithm of those that leave together.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// Of each packet that comes soon: how long after `base` in the high half, its place in the mailroom in the low one.
    order: Vec<u64>,
    cursor: Cursor,
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
            cursor: Cursor::default(),
            base: Instant::ZERO,
            until: Instant::ZERO,
            late: BinaryHeap::new(),
            first_at: Instant::FAR_FUTURE,
        }
    }

    #[inline(always)]
    pub fn push(&mut self, arrival: Arrival, mailroom: &mut Mailroom) {
        self.first_at = self.first_at.min(arrival.at);
        if arrival.at < self.until {
            let Arrival { at, since, salt, lane, ticket } = arrival;
            let place = mailroom.put(&mut self.cursor, Waiting { since, ticket, salt, lane });
            self.order.push(at.since(self.base).as_nanos() << 32 | u64::from(place));
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
    pub fn sort(&mut self, limit: Instant, mailroom: &mut Mailroom) -> usize {
        while self.late.peek().is_some_and(|first| first.0.at < self.until) {
            let Some(Reverse(first)) = self.late.pop() else { break };
            self.push(first, mailroom);
        }
        if self.order.len() < MANY {
            self.order.sort_unstable();
        } else {
            radsort::sort_by_key(&mut self.order, |key| (key >> 32) as u32);
        }
        self.order.partition_point(|key| self.time(*key) <= limit)
    }

    /// Puts in order who comes together with the one at a position.
    #[inline(never)]
    fn sort_together(&mut self, position: usize, mailroom: &Mailroom) {
        let first = self.order[position];
        let at = self.time(first);
        let together = self.order[position..].iter().take_while(|key| **key >> 32 == first >> 32).count();
        self.order[position..position + together].sort_unstable_by_key(|key| {
            let Waiting { since, salt, .. } = mailroom.waiting(*key as Place);
            (since, lot(at, salt))
        });
    }

    fn time(&self, key: u64) -> Instant {
        self.base + Duration::from_nanos(key >> 32)
    }

    /// When the one comes at a position of the order, and its place. To be asked for one position after the other.
    #[inline]
    pub fn get(&mut self, position: usize, mailroom: &Mailroom) -> (Instant, Place) {
        let key = self.order[position];
        let comes_with = |other: &u64| key >> 32 == *other >> 32;
        let comes_with_last = position > 0 && comes_with(&self.order[position - 1]);
        if self.order.get(position + 1).is_some_and(comes_with) && !comes_with_last {
            self.sort_together(position, mailroom);
        }
        (self.time(key), self.order[position] as Place)
    }

    /// The place of the one at a position, if there is one.
    #[inline]
    pub fn place(&self, position: usize) -> Option<Place> {
        self.order.get(position).map(|key| *key as Place)
    }

    /// Forgets the first `left`, who came by `limit`. From now on who comes within `reach` of that comes soon.
    pub fn forget(&mut self, left: usize, limit: Instant, reach: Duration) {
        self.order.drain(..left);
        let first_late = self.late.peek().map_or(Instant::FAR_FUTURE, |first| first.0.at);
        let base = limit.min(first_late);
        let later = base.since(self.base).as_nanos() << 32;
        self.order.iter_mut().for_each(|key| *key -= later);
        self.base = base;
        self.until = self.base + reach.min(Duration::from_nanos(u64::from(u32::MAX)));
        self.first_at = self.order.first().map_or(first_late, |first| self.time(*first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailroom::NO_LANE;
    use crate::ticket::{Marks, Ticket};
    use bentpipe_base::Rng;

    /// Whoever comes soon or late, within machine words of the base or far beyond, all leave by time and origin, each once.
    #[test]
    fn packets_leave_in_the_order_of_their_arrival() {
        let mut rng = Rng::stream(1, "gathering");
        for (spread, reach) in [(1, 10), (50, 10), (5_000, 1_000), (1 << 40, 1 << 36)] {
            let (mut gathering, mut mailroom) = (Gathering::new(), Mailroom::new(0));
            let (mut model, mut limit) = (Vec::new(), 0);
            for round in 0..60 {
                for _ in 0..rng.below(40) {
                    let at = Instant::from_nanos(limit + 1 + rng.below(spread));
                    let (slot, salt) = (model.len() as u32 + 1000 * round, rng.bits() as u32);
                    let since = Instant::from_nanos(rng.below(2));
                    let ticket = Ticket::new((slot, 0), 0, 0, Marks::empty());
                    let arrival = Arrival { at, since, salt, lane: NO_LANE, ticket };
                    gathering.push(arrival, &mut mailroom);
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
                    let count = gathering.sort(limit, &mut mailroom);
                    for position in 0..count {
                        let (at, place) = gathering.get(position, &mailroom);
                        left.push((at, mailroom.waiting(place).ticket));
                        mailroom.release(place);
                    }
                    gathering.forget(count, limit, Duration::from_nanos(reach));
                }
                assert_eq!(left, expected);
                assert_eq!(gathering.len(), model.len());
            }
        }
    }
}
