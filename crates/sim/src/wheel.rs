//! The event queue: a hierarchical timing wheel of owners, each of which has at most one pending event.
//!
//! Events come out in the order of time, at equal times in that in which they were scheduled, and of those scheduled at the same time in
//! the order of their owners: a rule by which others can tell the order as well. Whoever schedules an event at another time than others
//! would says since when it counts as known ([`Wheel::schedule_since`]). Among links, lots decide instead ([`lot`]). Every operation takes
//! constant time: an owner's event is a node of a doubly linked list that hangs in a slot, found by the bits of its time; bitmaps name the
//! slots that hold something.
//!
//! Deadlines are lazy. An owner that is scheduled earlier than its pending event moves there; one that wants to be woken
//! later keeps the event it has, is woken too early, and schedules itself again. So a retransmission timer that moves with
//! every ACK costs one event for each timeout interval and nothing for each ACK.

use bentpipe_base::{Instant, prefetch};
use bentpipe_scenario::LinkId;

/// Nanoseconds in a slot of the lowest level, as a power of two: 16 us. Wide enough that a busy world sees several events ahead.
const SLOT_BITS: u32 = 14;
/// Slots in a level, as a power of two.
const LEVEL_BITS: u32 = 12;
const SLOTS: usize = 1 << LEVEL_BITS;
const WORDS: usize = SLOTS / 64;
/// No node.
const NIL: u32 = u32::MAX;
/// Time of an owner without a pending event.
const NEVER: u64 = u64::MAX;

/// Number of an owner of events.
pub(crate) type Owner = u32;

/// Which of the links whose packets come at the same time goes first: the one with the smaller lot. `salt` is the link's own.
///
/// Senders whose links are as fast as the one behind them keep step with it, so that their packets meet at a full queue again and
/// again. Any fixed order would let the same one in each time; wires are never so exact.
#[inline]
pub(crate) fn lot(time: Instant, salt: u32) -> u32 {
    let draw = (time.as_nanos().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32;
    let mixed = (salt ^ draw).wrapping_mul(0x85EB_CA6B);
    (mixed ^ mixed >> 15).wrapping_mul(0xC2B2_AE35)
}

/// An event of the open slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Upcoming {
    time: u64,
    /// Since when it is known: mostly the time of scheduling.
    since: u64,
    /// Decides between events that agree in both.
    turn: u64,
    owner: Owner,
}

/// The pending event of one owner.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// [`NEVER`] if there is none.
    time: u64,
    /// When it was scheduled.
    since: u64,
    /// Neighbours in the slot; the list is a ring, so the head's predecessor is the tail.
    next: u32,
    previous: u32,
}

/// The slots of one level.
#[derive(Debug)]
struct Level {
    heads: Box<[u32; SLOTS]>,
    /// One bit for each slot that is not empty.
    words: [u64; WORDS],
    /// One bit for each word that is not zero.
    summary: u64,
}

impl Level {
    fn new() -> Self {
        Self { heads: Box::new([NIL; SLOTS]), words: [0; WORDS], summary: 0 }
    }

    #[inline(always)]
    fn mark(&mut self, slot: usize) {
        let slot = slot % SLOTS;
        self.words[slot / 64] |= 1 << (slot % 64);
        self.summary |= 1 << (slot / 64);
    }

    #[inline(always)]
    fn clear(&mut self, slot: usize) {
        let slot = slot % SLOTS;
        self.heads[slot] = NIL;
        let word = &mut self.words[slot / 64];
        *word &= !(1 << (slot % 64));
        self.summary &= !(u64::from(*word == 0) << (slot / 64));
    }

    /// The first slot after `slot` that is not empty.
    #[inline(always)]
    fn next_after(&self, slot: usize) -> Option<usize> {
        let slot = slot % SLOTS;
        let word = slot / 64;
        // Two shifts, because a shift by 64 does not exist.
        let rest = self.words[word] & (!0 << (slot % 64) << 1);
        if rest != 0 {
            return Some(word * 64 + rest.trailing_zeros() as usize);
        }
        let summary = self.summary & (!0 << word << 1);
        if summary == 0 {
            return None;
        }
        let word = summary.trailing_zeros() as usize;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }
}

/// A timing wheel.
#[derive(Debug)]
pub(crate) struct Wheel {
    nodes: Vec<Node>,
    /// The lowest level, where nearly everything happens.
    near: Level,
    /// Those above it.
    far: Vec<Level>,
    /// The slot of the lowest level that is open, counted from time zero.
    tick: u64,
    /// The first of those who draw lots, and what distinguishes them.
    first_link: Owner,
    salts: Vec<u32>,
    /// Events of the open slot in the order in which they happen. Those before `done` have happened.
    open: Vec<Upcoming>,
    done: usize,
    /// Time of the latest event.
    now: u64,
    /// Nothing after this will ever happen.
    end: u64,
}

impl Wheel {
    /// A wheel for events up to and including `end`; what is scheduled later never happens.
    pub fn new(end: Instant) -> Self {
        let end = end.as_nanos().min(NEVER - 1);
        let bits = 64 - (end >> SLOT_BITS).leading_zeros();
        let far = bits.div_ceil(LEVEL_BITS).max(1) - 1;
        Self {
            nodes: Vec::new(),
            near: Level::new(),
            far: (0..far).map(|_| Level::new()).collect(),
            tick: 0,
            first_link: 0,
            salts: Vec::new(),
            open: Vec::new(),
            done: 0,
            now: 0,
            end,
        }
    }

    /// Makes room for `count` more owners, with consecutive numbers; returns the first.
    pub fn add_owners(&mut self, count: usize) -> Owner {
        let first = self.nodes.len() as Owner;
        self.nodes.resize(self.nodes.len() + count, Node { time: NEVER, since: 0, next: NIL, previous: NIL });
        first
    }

    /// Provides memory for so many more owners.
    pub fn reserve(&mut self, count: usize) {
        self.nodes.reserve_exact(count);
    }

    /// Makes room for links, once, as [`Wheel::add_owners`] does for others.
    pub fn add_links(&mut self, salts: Vec<u32>) -> Owner {
        self.first_link = self.add_owners(salts.len());
        self.salts = salts;
        self.first_link
    }

    /// What a link draws its lots with.
    #[inline]
    pub fn salt(&self, link: LinkId) -> u32 {
        self.salts[link as usize]
    }

    /// What decides between an event of `owner` and others of the same time that are known since the same time.
    #[inline]
    pub fn turn(&self, owner: Owner, at: Instant) -> u64 {
        let (owner, lot) = match self.salts.get(owner.wrapping_sub(self.first_link) as usize) {
            Some(&salt) => (self.first_link, lot(at, salt)),
            None => (owner, 0),
        };
        u64::from(owner) << 32 | u64::from(lot)
    }

    fn upcoming_event(&self, time: u64, since: u64, owner: Owner) -> Upcoming {
        Upcoming { time, since, turn: self.turn(owner, Instant::from_nanos(time)), owner }
    }

    /// Sees to it that `owner` is woken at `at` or earlier.
    #[inline(always)]
    pub fn schedule(&mut self, owner: Owner, at: Instant) {
        self.schedule_since(owner, (at, Instant::from_nanos(self.now)));
    }

    /// The same for an event that counts as known since another time than now: it comes before those of its own time that are known since
    /// later.
    #[inline(always)]
    pub fn schedule_since(&mut self, owner: Owner, (at, since): (Instant, Instant)) {
        let (time, since) = (at.as_nanos(), since.as_nanos());
        let pending = self.nodes[owner as usize].time;
        if time >= pending || time > self.end {
            return;
        }
        let tick = time >> SLOT_BITS;
        // Nearly always there is no other event, and this one lies in a slot of the lowest level that is not open.
        if pending == NEVER && tick > self.tick && tick ^ self.tick < SLOTS as u64 {
            append(&mut self.near, &mut self.nodes, (owner, time, since), tick as usize);
        } else {
            self.reschedule(owner, time, since);
        }
    }

    #[inline(never)]
    fn reschedule(&mut self, owner: Owner, time: u64, since: u64) {
        if self.nodes[owner as usize].time != NEVER {
            self.cancel(owner);
        }
        if time >> SLOT_BITS > self.tick {
            self.push(owner, time, since);
        } else {
            self.insert_open(owner, time, since);
        }
    }

    fn level(&mut self, level: usize) -> &mut Level {
        if level == 0 { &mut self.near } else { &mut self.far[level - 1] }
    }

    /// Forgets the pending event of `owner`, if there is one.
    pub fn cancel(&mut self, owner: Owner) {
        let node = self.nodes[owner as usize];
        if node.time == NEVER {
            return;
        }
        self.nodes[owner as usize].time = NEVER;
        if node.time >> SLOT_BITS == self.tick {
            let position = self.open[self.done..].iter().position(|event| event.owner == owner);
            let position = position.expect("a pending event of the open slot is in its list");
            self.open.remove(self.done + position);
            return;
        }
        let (level, slot) = self.place(node.time >> SLOT_BITS);
        if node.next == owner {
            self.level(level).clear(slot);
            return;
        }
        self.nodes[node.previous as usize].next = node.next;
        self.nodes[node.next as usize].previous = node.previous;
        let head = &mut self.level(level).heads[slot];
        if *head == owner {
            *head = node.next;
        }
    }

    /// The next event: its time and its owner, whose event is then no longer pending.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(Instant, Owner)> {
        if self.done == self.open.len() {
            if let Some(only) = self.pop_only() {
                return Some(only);
            }
            if !self.open_next() {
                return None;
            }
        }
        let Upcoming { time, owner, .. } = self.open[self.done];
        self.done += 1;
        self.now = time;
        self.nodes[owner as usize].time = NEVER;
        Some((Instant::from_nanos(time), owner))
    }

    /// Takes the next event past the open slot if it is alone in its slot of the lowest level: quiet worlds rarely see another case.
    #[inline(always)]
    fn pop_only(&mut self) -> Option<(Instant, Owner)> {
        let slot = self.near.next_after(self.tick as usize)?;
        let owner = self.near.heads[slot % SLOTS];
        let node = &mut self.nodes[owner as usize];
        if node.next != owner {
            return None;
        }
        let time = std::mem::replace(&mut node.time, NEVER);
        self.near.clear(slot);
        self.tick = time >> SLOT_BITS;
        self.now = time;
        Some((Instant::from_nanos(time), owner))
    }

    /// Asks for the memory of what a link draws its lots with.
    #[inline(always)]
    pub fn prefetch_salt(&self, link: LinkId) {
        prefetch(&self.salts[link as usize]);
    }

    /// Asks for the memory of what an owner is scheduled by.
    #[inline(always)]
    pub fn prefetch(&self, owner: Owner) {
        prefetch(&self.nodes[owner as usize]);
    }

    /// True if nothing will ever happen.
    pub fn is_empty(&self) -> bool {
        self.done == self.open.len()
            && self.near.summary == 0
            && self.far.iter().all(|level| level.summary == 0)
    }

    /// Whether the open slot holds more than a few events: only then is it known what will happen next.
    #[inline(always)]
    pub fn is_crowded(&self) -> bool {
        self.open.len() > self.done + 3
    }

    /// The owner of the event `ahead` places after the one returned next, if it is in the open slot: a hint.
    #[inline]
    pub fn upcoming(&self, ahead: usize) -> Option<Owner> {
        self.open.get(self.done + ahead).map(|event| event.owner)
    }

    /// Puts an event into the open slot, in its place among those that have not happened.
    fn insert_open(&mut self, owner: Owner, time: u64, since: u64) {
        let event = self.upcoming_event(time, since, owner);
        let node = &mut self.nodes[owner as usize];
        (node.time, node.since) = (time, since);
        if self.done == self.open.len() {
            self.open.clear();
            self.done = 0;
        }
        let position = self.open[self.done..].partition_point(|&other| other < event);
        self.open.insert(self.done + position, event);
    }

    /// Appends an event to the list of its slot, which is not the open one.
    fn push(&mut self, owner: Owner, time: u64, since: u64) {
        let (level, slot) = self.place(time >> SLOT_BITS);
        let level = if level == 0 { &mut self.near } else { &mut self.far[level - 1] };
        append(level, &mut self.nodes, (owner, time, since), slot);
    }

    /// Level and slot of a tick after the open one: the highest digit in which they differ, and its value.
    #[inline]
    fn place(&self, tick: u64) -> (usize, usize) {
        let digit = (63 - (tick ^ self.tick).leading_zeros()) / LEVEL_BITS;
        (digit as usize, (tick >> (digit * LEVEL_BITS)) as usize & (SLOTS - 1))
    }

    /// Opens the next slot that holds something; false if there is none.
    #[inline(never)]
    fn open_next(&mut self) -> bool {
        self.open.clear();
        self.done = 0;
        while self.open.is_empty() {
            let found = (0..=self.far.len()).find_map(|level| {
                let current = (self.tick >> (level as u32 * LEVEL_BITS)) as usize;
                self.level(level).next_after(current).map(|slot| (level, slot))
            });
            let Some((level, slot)) = found else { return false };
            self.enter(level, slot);
        }
        true
    }

    /// Advances to the beginning of a slot and spreads its events over the levels below, or into the open slot.
    fn enter(&mut self, level: usize, slot: usize) {
        let shift = level as u32 * LEVEL_BITS;
        self.tick = (self.tick >> shift & !(SLOTS as u64 - 1) | slot as u64) << shift;
        let head = self.level(level).heads[slot];
        self.level(level).clear(slot);
        let mut owner = head;
        loop {
            let Node { time, since, next, .. } = self.nodes[owner as usize];
            if time >> SLOT_BITS == self.tick {
                self.open.push(self.upcoming_event(time, since, owner));
            } else {
                self.push(owner, time, since);
            }
            owner = next;
            if owner == head {
                break;
            }
        }
        if self.open.len() > 1 {
            self.open.sort_unstable();
        }
    }
}

/// Appends an event to the list of a slot, whose number counts modulo those of the level.
#[inline(always)]
fn append(level: &mut Level, nodes: &mut [Node], (owner, time, since): (Owner, u64, u64), slot: usize) {
    let head = level.heads[slot % SLOTS];
    if head == NIL {
        level.heads[slot % SLOTS] = owner;
        level.mark(slot);
        nodes[owner as usize] = Node { time, since, next: owner, previous: owner };
    } else {
        let tail = nodes[head as usize].previous;
        nodes[head as usize].previous = owner;
        nodes[tail as usize].next = owner;
        nodes[owner as usize] = Node { time, since, next: head, previous: tail };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Rng;
    use std::collections::BTreeSet;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn drain(wheel: &mut Wheel) -> Vec<(u64, Owner)> {
        std::iter::from_fn(|| wheel.pop()).map(|(time, owner)| (time.as_nanos(), owner)).collect()
    }

    #[test]
    fn equal_times_come_in_the_order_of_scheduling_and_then_of_their_owners() {
        let mut wheel = Wheel::new(at(NEVER));
        wheel.add_owners(6);
        for (owner, time) in [(3, 5_000_000_000), (5, 7), (4, 5_000_000_000), (0, 5_000_000_000), (1, 7)] {
            wheel.schedule(owner, at(time));
        }
        assert_eq!(wheel.pop(), Some((at(7), 1)));
        wheel.schedule(2, at(7));
        wheel.schedule(1, at(5_000_000_000));
        let far = 5_000_000_000;
        let rest = [(7, 5), (7, 2), (far, 0), (far, 3), (far, 4), (far, 1)];
        assert_eq!(drain(&mut wheel), rest);
    }

    #[test]
    fn equal_times_come_in_the_order_in_which_they_count_as_known() {
        let far = 5_000_000_000;
        let mut wheel = Wheel::new(at(NEVER));
        wheel.add_owners(4);
        wheel.schedule(3, at(10));
        assert_eq!(wheel.pop(), Some((at(10), 3)));
        // In the open slot, and in one that will be opened.
        for (now, time) in [(10, 20), (20, far)] {
            wheel.schedule(0, at(time));
            wheel.schedule_since(1, (at(time), at(now - 1)));
            wheel.schedule_since(2, (at(time), at(now + 1)));
            assert_eq!(drain(&mut wheel), [(time, 1), (time, 0), (time, 2)]);
        }
    }

    #[test]
    fn an_earlier_deadline_moves_the_event_and_a_later_one_leaves_it() {
        let mut wheel = Wheel::new(at(NEVER));
        wheel.add_owners(2);
        wheel.schedule(0, at(10_000));
        wheel.schedule(1, at(10_000));
        wheel.schedule(0, at(20_000));
        wheel.schedule(1, at(500));
        wheel.schedule(0, at(400));
        assert_eq!(drain(&mut wheel), [(400, 0), (500, 1)]);
    }

    #[test]
    fn nothing_happens_after_the_end() {
        let mut wheel = Wheel::new(at(1_000_000));
        wheel.add_owners(2);
        wheel.schedule(0, at(1_000_001));
        wheel.schedule(1, at(1_000_000));
        assert_eq!(drain(&mut wheel), [(1_000_000, 1)]);
    }

    /// A sorted map is the model: random schedules, cancellations and pops over all levels agree with it.
    #[test]
    fn agrees_with_a_sorted_map() {
        for seed in 0..20 {
            let mut rng = Rng::stream(seed, "wheel");
            let mut wheel = Wheel::new(at(NEVER));
            let mut model: BTreeSet<(u64, u64, Owner)> = BTreeSet::new();
            let mut key_of = [None; 50];
            let mut now = 0;
            wheel.add_owners(50);
            for _ in 0..20_000 {
                let owner = rng.below(50) as Owner;
                match rng.below(5) {
                    0 => {
                        wheel.cancel(owner);
                        if let Some(key) = key_of[owner as usize].take() {
                            model.remove(&key);
                        }
                    }
                    1 | 2 => {
                        let spread = rng.below(45);
                        let time = now + rng.below(1 << spread);
                        wheel.schedule(owner, at(time));
                        let pending = key_of[owner as usize];
                        if pending.is_none_or(|(pending, ..)| time < pending) {
                            if let Some(pending) = pending {
                                model.remove(&pending);
                            }
                            key_of[owner as usize] = Some((time, now, owner));
                            model.insert((time, now, owner));
                        }
                    }
                    _ => {
                        let expected = model.pop_first().map(|(time, _, owner)| (at(time), owner));
                        let popped = wheel.pop();
                        assert_eq!(popped, expected, "seed {seed}");
                        if let Some((time, owner)) = popped {
                            now = time.as_nanos();
                            key_of[owner as usize] = None;
                        }
                    }
                }
            }
        }
    }
}
