//! Packets in line for the lanes of islands, from when they are through a junction until islands take them in: each stays in its slot, which
//! names that of the one behind it.
//!
//! What an island sends lies together and is through in much the same order, so whoever takes it in reads memory from front to back.

use bentpipe_base::{Instant, prefetch_item};

use crate::arena::{Arena, Slot, Way};
use crate::ticket::Ticket;

/// A packet that comes to a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mail {
    pub at: Instant,
    pub ticket: Ticket,
}

/// The packets that are on their way to one lane, in order. Without packets only the length says anything.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
struct Line {
    first: Slot,
    last: Slot,
    len: u32,
}

/// The memory of so many packets of a line is asked for before they leave it. Measured.
const AHEAD: u32 = 12;

impl Line {
    /// Asks for the memory of the first packets, as far as they lie in a row.
    #[inline(always)]
    fn fetch_first(&self, arena: &Arena) {
        arena.prefetch_row(self.first, AHEAD.min(self.len));
    }

    /// The same while they leave, one by one: `left` was the last.
    #[inline(always)]
    fn fetch_ahead(&self, left: Slot, arena: &Arena) {
        if self.first != left + 1 {
            return self.fetch_first(arena);
        }
        if self.len >= AHEAD / 2 {
            arena.prefetch_enclosed(left + AHEAD / 2);
            if self.len >= AHEAD {
                arena.prefetch(left + AHEAD);
            }
        }
    }
}

/// All lines.
#[derive(Debug, Default)]
pub(crate) struct Mailroom {
    lines: Vec<Line>,
}

impl Mailroom {
    /// With so many lines, all empty.
    pub fn new(lines: usize) -> Self {
        Self { lines: vec![Line::default(); lines] }
    }

    /// Packets in a line.
    pub fn len(&self, line: u32) -> usize {
        self.lines[line as usize].len as usize
    }

    /// A packet joins a line. True if it is the first.
    #[inline(always)]
    pub fn join(&mut self, line: u32, Mail { at, ticket }: Mail, arena: &mut Arena) -> bool {
        let (slot, id) = (ticket.slot(), line);
        let line = &mut self.lines[line as usize];
        let is_first = line.len == 0;
        if is_first {
            line.first = slot;
        } else if slot != line.last + 1 {
            arena.set_next(line.last, slot);
        }
        line.last = slot;
        line.len += 1;
        // The next in line will most likely lie in the next slot.
        arena.set_way(Way { time: at, ticket, salt_or_next: slot + 1, lane: id });
        is_first
    }

    /// The first of a line leaves it.
    #[inline(always)]
    pub fn pop(&mut self, line: u32, arena: &Arena) -> Option<Mail> {
        let line = &mut self.lines[line as usize];
        line.len = line.len.checked_sub(1)?;
        let Way { time: at, ticket, salt_or_next: next, .. } = arena.way(line.first);
        line.first = next;
        if arena.is_large() {
            line.fetch_ahead(ticket.slot(), arena);
        }
        Some(Mail { at, ticket })
    }

    /// Asks for the memory of a line.
    #[inline(always)]
    pub fn prefetch(&self, line: u32) {
        prefetch_item(&self.lines, line as usize);
    }

    /// Asks for the memory of the first packets of a line, as far as they lie in a row.
    #[inline(always)]
    pub fn fetch_first(&self, line: u32, arena: &Arena) {
        self.lines[line as usize].fetch_first(arena);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Parcel;
    use crate::ticket::Marks;
    use bentpipe_base::Rng;
    use std::collections::VecDeque;

    /// Packets join in another order than they were put down, or get lost: each line keeps its order.
    #[test]
    fn every_line_keeps_its_order() {
        let mut rng = Rng::stream(1, "mailroom");
        let (mut room, mut arena) = (Mailroom::new(5), Arena::default());
        let mut waiting: Vec<Slot> = Vec::new();
        let mut models: [VecDeque<Slot>; 5] = Default::default();
        let mut longest = 0;
        for number in 0..60_000 {
            let line = rng.below(5) as u32;
            let at = Instant::from_nanos(number);
            let model = &mut models[line as usize];
            // Lines grow at times, and shrink at others.
            match rng.below(9) + 2 * (number / 5_000 % 2) {
                0..3 => waiting.push(arena.put(&Parcel { to: rng.below(2) as u32, ..Parcel::default() })),
                3..7 if !waiting.is_empty() => {
                    // Most of them leave as they came.
                    let slot = waiting.remove(rng.below(waiting.len().min(3) as u64) as usize);
                    if rng.below(20) == 0 {
                        arena.release(slot);
                        continue;
                    }
                    let ticket = Ticket::new((slot, 0), 0, 0, Marks::empty());
                    assert_eq!(room.join(line, Mail { at, ticket }, &mut arena), model.is_empty());
                    model.push_back(slot);
                }
                _ => {
                    let first = room.pop(line, &arena).map(|mail| mail.ticket.slot());
                    assert_eq!(first, model.pop_front());
                    first.into_iter().for_each(|slot| arena.release(slot));
                }
            }
            assert_eq!(room.len(line), models[line as usize].len());
            longest = longest.max(room.len(line));
        }
        assert!(longest > 50);
        for (line, model) in (0..).zip(models) {
            let rest: VecDeque<_> =
                std::iter::from_fn(|| room.pop(line, &arena)).map(|mail| mail.ticket.slot()).collect();
            assert_eq!(rest, model);
        }
    }
}
