//! Packets on their way to lanes: in bags from one pool, so that a bag that is empty is filled again while a cache still holds it.
//!
//! A ring for each lane would hold as much as the lane ever held, and walk through all of it.

use bentpipe_base::{Instant, prefetch};

use crate::ticket::Ticket;

/// A packet that comes to a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mail {
    pub at: Instant,
    pub ticket: Ticket,
}

/// As many packets as fit into two lines of the cache.
const BAG: u8 = 5;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Bag {
    mail: [Mail; BAG as usize],
    /// The bag behind it, if it is not the last of its line.
    next: u32,
}

const _: () = assert!(size_of::<Bag>() == 128);

impl Bag {
    const EMPTY: Self =
        Self { mail: [Mail { at: Instant::ZERO, ticket: Ticket::NOTHING }; BAG as usize], next: 0 };
}

/// The packets that wait for one lane, in order. Without packets only the length says anything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line {
    len: u32,
    /// The first and the last bag.
    first: u32,
    last: u32,
    /// Where in the first bag the first packet lies, and how many packets the last bag has been given.
    begin: u8,
    end: u8,
}

impl Line {
    pub fn len(&self) -> usize {
        self.len as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// All lines. The bag released last is used first.
#[derive(Debug, Default)]
pub(crate) struct Mailroom {
    bags: Vec<Bag>,
    free: Vec<u32>,
}

impl Mailroom {
    /// A packet joins a line.
    #[inline(always)]
    pub fn push(&mut self, line: &mut Line, mail: Mail) {
        if line.is_empty() || line.end == BAG {
            self.add_bag(line);
        }
        self.bags[line.last as usize].mail[line.end as usize] = mail;
        line.end += 1;
        line.len += 1;
    }

    fn add_bag(&mut self, line: &mut Line) {
        let new = self.free.pop().unwrap_or_else(|| {
            self.bags.push(Bag::EMPTY);
            self.bags.len() as u32 - 1
        });
        if line.is_empty() {
            (line.first, line.begin) = (new, 0);
        } else {
            self.bags[line.last as usize].next = new;
        }
        (line.last, line.end) = (new, 0);
    }

    /// The first of a line leaves it.
    #[inline(always)]
    pub fn pop(&mut self, line: &mut Line) -> Option<Mail> {
        if line.is_empty() {
            return None;
        }
        let Bag { mail, next } = &self.bags[line.first as usize];
        let mail = mail[line.begin as usize];
        line.begin += 1;
        line.len -= 1;
        if line.is_empty() || line.begin == BAG {
            self.free.push(line.first);
            (line.first, line.begin) = (*next, 0);
        }
        Some(mail)
    }

    /// The ticket of the packet so many places behind the first of a line.
    #[inline(always)]
    pub fn ahead(&self, line: &Line, places: u32) -> Option<Ticket> {
        if places >= line.len {
            return None;
        }
        let (mut bag, mut place) = (&self.bags[line.first as usize], u32::from(line.begin) + places);
        while place >= u32::from(BAG) {
            (bag, place) = (&self.bags[bag.next as usize], place - u32::from(BAG));
        }
        Some(bag.mail[place as usize].ticket)
    }

    /// Asks for the memory of the first bag of a line.
    #[inline(always)]
    pub fn prefetch_first(&self, line: &Line) {
        if !line.is_empty() {
            prefetch(&self.bags[line.first as usize]);
        }
    }

    /// Asks for the memory of the second bag of a line.
    #[inline(always)]
    pub fn prefetch_second(&self, line: &Line) {
        if u32::from(line.begin) + line.len > u32::from(BAG) {
            prefetch(&self.bags[self.bags[line.first as usize].next as usize]);
        }
    }

    /// Asks for the memory of the place that the next packet of a line will take.
    #[inline(always)]
    pub fn prefetch_place(&self, line: &Line) {
        if !line.is_empty() && line.end < BAG {
            prefetch(&self.bags[line.last as usize].mail[line.end as usize]);
        } else if let Some(&bag) = self.free.last() {
            prefetch(&self.bags[bag as usize].mail[0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticket::Marks;
    use bentpipe_base::Rng;
    use std::collections::VecDeque;

    /// Many lines in one pool: each in its order, none of another's, and no bag is lost.
    #[test]
    fn every_line_keeps_its_order() {
        let mut rng = Rng::stream(1, "mailroom");
        let mut room = Mailroom::default();
        let mut lines = [Line::default(); 5];
        let mut models: [VecDeque<u32>; 5] = Default::default();
        for number in 0..30_000 {
            let which = rng.below(5) as usize;
            let (line, model) = (&mut lines[which], &mut models[which]);
            // Lines grow at times, and shrink at others.
            if rng.below(10) < 4 + u64::from(number / 5_000 % 2 == 0) * 2 {
                let ticket = Ticket::new((number, 0), 0, 0, Marks::empty());
                room.push(line, Mail { at: Instant::from_nanos(u64::from(number)), ticket });
                model.push_back(number);
            } else {
                assert_eq!(room.pop(line).map(|mail| mail.ticket.slot()), model.pop_front());
            }
            let places = rng.below(30) as u32;
            let ahead = room.ahead(line, places).map(Ticket::slot);
            assert_eq!((line.len(), ahead), (model.len(), model.get(places as usize).copied()));
        }
        for (line, model) in lines.iter_mut().zip(models) {
            let rest: VecDeque<_> =
                std::iter::from_fn(|| room.pop(line)).map(|mail| mail.ticket.slot()).collect();
            assert!(!rest.is_empty());
            assert_eq!(rest, model);
        }
        assert_eq!(room.free.len(), room.bags.len());
    }
}
