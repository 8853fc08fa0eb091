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
struct Line {
    len: u32,
    /// The first and the last bag.
    first: u32,
    last: u32,
    /// Where in the first bag the first packet lies, and how many packets the last bag has been given.
    begin: u8,
    end: u8,
}

impl Line {
    fn add_bag(&mut self, bags: &mut Vec<Bag>, free: &mut Vec<u32>) {
        let new = free.pop().unwrap_or_else(|| {
            bags.push(Bag::EMPTY);
            bags.len() as u32 - 1
        });
        if self.len == 0 {
            (self.first, self.begin) = (new, 0);
        } else {
            bags[self.last as usize].next = new;
        }
        (self.last, self.end) = (new, 0);
    }
}

/// All lines. The bag released last is used first.
#[derive(Debug, Default)]
pub(crate) struct Mailroom {
    lines: Vec<Line>,
    bags: Vec<Bag>,
    free: Vec<u32>,
}

impl Mailroom {
    /// With so many lines, all empty.
    pub fn new(lines: usize) -> Self {
        Self { lines: vec![Line::default(); lines], ..Self::default() }
    }

    /// Packets in a line.
    pub fn len(&self, line: u32) -> usize {
        self.lines[line as usize].len as usize
    }

    /// A packet joins a line. True if it is the first.
    #[inline(always)]
    pub fn push(&mut self, line: u32, mail: Mail) -> bool {
        let Self { lines, bags, free } = self;
        let line = &mut lines[line as usize];
        let is_first = line.len == 0;
        if is_first || line.end == BAG {
            line.add_bag(bags, free);
        }
        bags[line.last as usize].mail[line.end as usize] = mail;
        line.end += 1;
        line.len += 1;
        is_first
    }

    /// The first of a line leaves it.
    #[inline(always)]
    pub fn pop(&mut self, line: u32) -> Option<Mail> {
        let line = &mut self.lines[line as usize];
        if line.len == 0 {
            return None;
        }
        let Bag { mail, next } = &self.bags[line.first as usize];
        let mail = mail[line.begin as usize];
        line.begin += 1;
        line.len -= 1;
        if line.len == 0 || line.begin == BAG {
            self.free.push(line.first);
            (line.first, line.begin) = (*next, 0);
        }
        Some(mail)
    }

    /// The first packets of a line: what the bag at hand still holds.
    #[inline(always)]
    pub fn at_hand(&self, line: u32) -> &[Mail] {
        let &Line { len, first, begin, .. } = &self.lines[line as usize];
        if len == 0 {
            return &[];
        }
        let begin = begin as usize;
        &self.bags[first as usize].mail[begin..(begin + len as usize).min(BAG as usize)]
    }

    /// True if the bag at hand has just been opened.
    #[inline(always)]
    pub fn has_new_bag(&self, line: u32) -> bool {
        self.lines[line as usize].begin == 0
    }

    /// Asks for the memory of a line.
    #[inline(always)]
    pub fn prefetch(&self, line: u32) {
        prefetch(&self.lines[line as usize]);
    }

    /// Asks for the memory of the bag at hand.
    #[inline(always)]
    pub fn prefetch_first(&self, line: u32) {
        let Line { len, first, .. } = self.lines[line as usize];
        if len > 0 {
            prefetch(&self.bags[first as usize]);
        }
    }

    /// Asks for the memory of the bag behind the one at hand, which is in the cache.
    #[inline(always)]
    pub fn prefetch_second(&self, line: u32) {
        let Line { len, first, begin, .. } = self.lines[line as usize];
        if u32::from(begin) + len > u32::from(BAG) {
            prefetch(&self.bags[self.bags[first as usize].next as usize]);
        }
    }

    /// Asks for the memory of the place that the next packet of a line will take.
    #[inline(always)]
    pub fn prefetch_place(&self, line: u32) {
        let Line { len, last, end, .. } = self.lines[line as usize];
        if len > 0 && end < BAG {
            prefetch(&self.bags[last as usize].mail[end as usize]);
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
        let mut room = Mailroom::new(5);
        let mut models: [VecDeque<u32>; 5] = Default::default();
        for number in 0..30_000 {
            let line = rng.below(5) as u32;
            let model = &mut models[line as usize];
            // Lines grow at times, and shrink at others.
            if rng.below(10) < 4 + u64::from(number / 5_000 % 2 == 1) * 2 {
                let ticket = Ticket::new((number, 0), 0, 0, Marks::empty());
                let is_first = room.push(line, Mail { at: Instant::from_nanos(u64::from(number)), ticket });
                assert_eq!(is_first, model.is_empty());
                model.push_back(number);
            } else {
                assert_eq!(room.pop(line).map(|mail| mail.ticket.slot()), model.pop_front());
            }
            assert_eq!(room.len(line), model.len());
            let at_hand: Vec<_> = room.at_hand(line).iter().map(|mail| mail.ticket.slot()).collect();
            assert!(model.iter().take(at_hand.len()).eq(&at_hand) && at_hand.is_empty() == model.is_empty());
        }
        for (line, model) in (0..).zip(models) {
            let rest: VecDeque<_> =
                std::iter::from_fn(|| room.pop(line)).map(|mail| mail.ticket.slot()).collect();
            assert!(!rest.is_empty());
            assert_eq!(rest, model);
        }
        assert_eq!(room.free.len(), room.bags.len());
    }
}
