//! Packets from when islands send them until islands take them in: each stays in one place meanwhile, whether it waits in front of a junction
//! or, once it is through, in the line of a lane.
//!
//! What an island sends lies together and is through in much the same order, so whoever takes it in reads memory from front to back. The
//! places are on pages from one pool; a page that has been read is written next, while a cache still holds it.

use bentpipe_base::{Instant, prefetch};

use crate::paging::{Cursor, Pages};
use crate::ticket::Ticket;

/// Number of a place.
pub(crate) type Place = u32;

/// Places on a page: many times as many as an island fills in a turn, so that few of them go over from one page to the next.
const PAGE: usize = 256;

/// As many packets, with their contents, fit into the caches close to a processor.
const FEW: usize = 16 * PAGE;

/// A packet that comes to a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mail {
    pub at: Instant,
    pub ticket: Ticket,
}

/// A packet in front of a junction, without the time of its arrival there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// Since when it is the next on its link.
    pub since: Instant,
    pub ticket: Ticket,
    /// What its link draws lots with.
    pub salt: u32,
    /// The lane behind the junction; [`NO_LANE`] if it goes elsewhere.
    pub lane: u32,
}

impl Waiting {
    /// The lane behind the junction, if it goes to one.
    #[inline(always)]
    pub fn lane(&self) -> Option<u32> {
        (self.lane != NO_LANE).then_some(self.lane)
    }
}

/// No lane.
pub(crate) const NO_LANE: u32 = u32::MAX;

/// A packet in its place. Two of them fill a line of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Item {
    /// Of one that waits at a junction since when it is the next on its link, of one in line when it comes to its lane.
    time: Instant,
    ticket: Ticket,
    /// Of one that waits at a junction what its link draws lots with, of one in line the place of the one behind it.
    salt_or_next: u32,
    lane: u32,
}

const _: () = assert!(size_of::<Item>() == 32);

/// The packets that are on their way to one lane, in order. Without packets only the length says anything.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
struct Line {
    first: Place,
    last: Place,
    len: u32,
}

/// How many of the first in a line have been told ahead, and where the last of them is.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    count: u32,
    last: Place,
}

/// All places and all lines.
#[derive(Debug, Default)]
pub(crate) struct Mailroom {
    lines: Vec<Line>,
    /// Of each line; apart, because whoever joins a line does not look at it.
    told: Vec<Told>,
    items: Pages<Item, PAGE>,
    /// For packets that come to lanes without a place.
    cursor: Cursor,
}

impl Mailroom {
    /// With so many lines, all empty.
    pub fn new(lines: usize) -> Self {
        let (lines, told) = (vec![Line::default(); lines], vec![Told::default(); lines]);
        Self { lines, told, ..Self::default() }
    }

    /// Packets in a line.
    pub fn len(&self, line: u32) -> usize {
        self.lines[line as usize].len as usize
    }

    /// Puts a packet that comes to a junction into a place.
    #[inline(always)]
    pub fn put(&mut self, cursor: &mut Cursor, waiting: Waiting) -> Place {
        let Waiting { since, ticket, salt, lane } = waiting;
        self.items.put(cursor, Item { time: since, ticket, salt_or_next: salt, lane })
    }

    /// The packet in a place, which waits at a junction.
    #[inline(always)]
    pub fn waiting(&self, place: Place) -> Waiting {
        let Item { time: since, ticket, salt_or_next: salt, lane } = self.items[place];
        Waiting { since, ticket, salt, lane }
    }

    /// A packet that waited at a junction leaves its place.
    #[inline(always)]
    pub fn release(&mut self, place: Place) {
        self.items.release(place);
    }

    /// A packet that waited in a place joins a line. True if it is the first.
    #[inline(always)]
    pub fn join(&mut self, line: u32, place: Place, mail: Mail) -> bool {
        let Self { lines, items, .. } = self;
        let line = &mut lines[line as usize];
        let is_first = line.len == 0;
        if is_first {
            line.first = place;
        } else if place != line.last + 1 {
            items[line.last].salt_or_next = place;
        }
        line.last = place;
        line.len += 1;
        let item = &mut items[place];
        // The next in line will most likely lie in the next place.
        (item.time, item.ticket, item.salt_or_next) = (mail.at, mail.ticket, place + 1);
        is_first
    }

    /// Puts a packet that has no place yet into one, for a line that it joins at once.
    pub fn put_to_join(&mut self, ticket: Ticket) -> Place {
        let item = Item { time: Instant::ZERO, ticket, salt_or_next: 0, lane: NO_LANE };
        self.items.put(&mut self.cursor, item)
    }

    /// The first of a line leaves it.
    #[inline(always)]
    pub fn pop(&mut self, line: u32) -> Option<Mail> {
        let index = line as usize;
        let line = &mut self.lines[index];
        line.len = line.len.checked_sub(1)?;
        let place = line.first;
        let Item { time: at, ticket, salt_or_next: next, .. } = self.items[place];
        line.first = next;
        let told = &mut self.told[index].count;
        *told = told.saturating_sub(1);
        self.release(place);
        Some(Mail { at, ticket })
    }

    /// True if a cache does not hold all of it, so that it pays to ask for memory ahead.
    #[inline(always)]
    pub fn is_large(&self) -> bool {
        self.items.places().len() > FEW
    }

    /// Of the first so many packets of a line, tells the next that has not been told yet, and asks for the memory of the one behind it.
    #[inline(always)]
    pub fn tell_ahead(&mut self, line: u32, limit: u32) -> Option<Ticket> {
        let Line { first, len, .. } = self.lines[line as usize];
        let told = &mut self.told[line as usize];
        if told.count == limit.min(len) {
            return None;
        }
        let place = if told.count == 0 { first } else { self.items[told.last].salt_or_next };
        *told = Told { count: told.count + 1, last: place };
        let Item { ticket, salt_or_next: next, .. } = self.items[place];
        if let Some(next) = self.items.places().get(next as usize) {
            prefetch(next);
        }
        Some(ticket)
    }

    /// Asks for the memory of a line.
    #[inline(always)]
    pub fn prefetch(&self, line: u32) {
        prefetch(&self.lines[line as usize]);
    }

    /// Asks for the memory of a packet.
    #[inline(always)]
    pub fn prefetch_place(&self, place: Place) {
        prefetch(&self.items[place]);
    }

    /// Asks for the memory of the first so many packets of a line, as far as they lie in a row.
    #[inline(always)]
    pub fn prefetch_first(&self, line: u32, count: u32) {
        let Line { first, len, .. } = self.lines[line as usize];
        if let Some(items) = self.items.places().get(first as usize..(first + count.min(len)) as usize) {
            prefetch(items);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticket::Marks;
    use bentpipe_base::Rng;
    use std::collections::VecDeque;

    fn slot(mail: Option<Mail>) -> Option<u32> {
        mail.map(|mail| mail.ticket.slot())
    }

    /// Packets join in another order than they were put down, get lost, or come without having waited: each line keeps its order, tells its
    /// first packets once each, and no place is lost.
    #[test]
    fn every_line_keeps_its_order() {
        let mut rng = Rng::stream(1, "mailroom");
        let mut room = Mailroom::new(5);
        let mut cursors = [Cursor::default(), Cursor::default()];
        let mut waiting: Vec<(Place, u32)> = Vec::new();
        let mut models: [VecDeque<u32>; 5] = Default::default();
        let (mut told, mut longest) = ([0; 5], 0);
        for number in 0..60_000 {
            let line = rng.below(5) as u32;
            let at = Instant::from_nanos(u64::from(number));
            let ticket = Ticket::new((number, 0), 0, 0, Marks::empty());
            let (model, told) = (&mut models[line as usize], &mut told[line as usize]);
            // Lines grow at times, and shrink at others.
            match rng.below(10) + 2 * u64::from(number / 5_000 % 2) {
                0..3 => {
                    let cursor = &mut cursors[rng.below(2) as usize];
                    let packet = Waiting { since: at, ticket, salt: number, lane: NO_LANE };
                    waiting.push((room.put(cursor, packet), number));
                }
                3..6 if !waiting.is_empty() => {
                    // Most of them leave as they came.
                    let choice = rng.below(waiting.len().min(3) as u64) as usize;
                    let (place, number) = waiting.remove(choice);
                    let packet = room.waiting(place);
                    assert_eq!((packet.ticket.slot(), packet.salt), (number, number));
                    if rng.below(20) == 0 {
                        room.release(place);
                        continue;
                    }
                    assert_eq!(room.join(line, place, Mail { at, ticket: packet.ticket }), model.is_empty());
                    model.push_back(number);
                }
                6 => {
                    let place = room.put_to_join(ticket);
                    assert_eq!(room.join(line, place, Mail { at, ticket }), model.is_empty());
                    model.push_back(number);
                }
                7 => {
                    let expected = model.get(*told).filter(|_| *told < 4).copied();
                    assert_eq!(room.tell_ahead(line, 4).map(Ticket::slot), expected);
                    *told += usize::from(expected.is_some());
                }
                _ => {
                    assert_eq!(slot(room.pop(line)), model.pop_front());
                    *told = told.saturating_sub(1);
                }
            }
            assert_eq!(room.len(line), models[line as usize].len());
            longest = longest.max(room.len(line));
        }
        assert!(longest > 2 * PAGE / 5);
        for (line, model) in (0..).zip(models) {
            let rest: VecDeque<_> = std::iter::from_fn(|| slot(room.pop(line))).collect();
            assert_eq!(rest, model);
        }
        waiting.into_iter().for_each(|(place, _)| room.release(place));
        assert_eq!(room.items.used(&[cursors[0], cursors[1], room.cursor]), 0);
    }
}
