//! The event queue: a hierarchical timing wheel (Varghese and Lauck 1987) of targets, each with at most one pending event.
//!
//! Events leave in the order of time, then of their [`rank`](Tie::rank), then of their targets. So the order depends only on the world,
//! and not on the origin of an event or the time of its scheduling. Every operation takes constant time: an event is a node of a doubly
//! linked list in a slot, which the bits of its time select. Bitmaps mark the slots that are not empty.
//!
//! Deadlines are lazy. A target scheduled earlier than its pending event moves. A target scheduled later keeps its event, is woken too
//! early, and schedules itself again. So a retransmission timer that moves with every ACK costs one event per timeout interval, and
//! nothing per ACK.

use bentpipe_base::{Instant, prefetch};

use crate::scheduler::key::{Class, EventKey, EventTarget, Tie};
use crate::tuning::{LEVEL_BITS, SLOT_BITS};

const SLOTS: usize = 1 << LEVEL_BITS;
const WORDS: usize = SLOTS / 64;
/// No node.
const NIL: u32 = u32::MAX;
/// Time of a target without a pending event.
const NEVER: u64 = u64::MAX;

/// The pending event of one target.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// [`NEVER`] if there is none.
    time: u64,
    tie: Tie,
    /// Neighbours in the slot; the list is a ring, so the head's predecessor is the tail.
    next: u32,
    previous: u32,
}

const _: () = assert!(size_of::<Node>() == 24);

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
    /// Levels above the first.
    far: Vec<Level>,
    /// The slot of the lowest level that is open, counted from time zero.
    tick: u64,
    /// Events of the open slot in order. Events before `done` have been executed.
    open: Vec<EventKey>,
    done: usize,
    /// Nothing after this will ever happen.
    end: u64,
}

impl Wheel {
    /// A wheel for events up to and including `end`; later events are never executed.
    pub fn new(end: Instant) -> Self {
        let end = end.as_nanos().min(NEVER - 1);
        let bits = 64 - (end >> SLOT_BITS).leading_zeros();
        let far = bits.div_ceil(LEVEL_BITS).max(1) - 1;
        Self {
            nodes: Vec::new(),
            near: Level::new(),
            far: (0..far).map(|_| Level::new()).collect(),
            tick: 0,
            open: Vec::new(),
            done: 0,
            end,
        }
    }

    /// Adds targets of a class, one per salt, with consecutive numbers; returns the first.
    pub fn add_targets(&mut self, class: Class, salts: impl IntoIterator<Item = u32>) -> EventTarget {
        let first = self.nodes.len() as EventTarget;
        let node = |salt| Node { time: NEVER, tie: Tie { class, salt }, next: NIL, previous: NIL };
        self.nodes.extend(salts.into_iter().map(node));
        first
    }

    /// Reserves memory for `count` more targets.
    pub fn reserve(&mut self, count: usize) {
        self.nodes.reserve_exact(count);
    }

    /// Tie of a target, which orders its events among others of the same time.
    #[inline]
    pub fn tie(&self, target: EventTarget) -> Tie {
        self.nodes[target as usize].tie
    }

    /// Sets the tie of a target without a pending event.
    pub fn set_tie(&mut self, target: EventTarget, tie: Tie) {
        debug_assert_eq!(self.nodes[target as usize].time, NEVER, "a pending event keeps its place");
        self.nodes[target as usize].tie = tie;
    }

    /// The place of an event of a target in the order of events.
    #[inline]
    pub fn key(&self, time: Instant, target: EventTarget) -> EventKey {
        self.tie(target).key(time, target)
    }

    /// Schedules `target` for `at` or earlier.
    #[inline(always)]
    pub fn schedule(&mut self, target: EventTarget, at: Instant) {
        let time = at.as_nanos();
        let pending = self.nodes[target as usize].time;
        if time >= pending || time > self.end {
            return;
        }
        let tick = time >> SLOT_BITS;
        // Usual case: no other event is pending, and this one is in a slot of the lowest level that is not open.
        if pending == NEVER && tick > self.tick && tick ^ self.tick < SLOTS as u64 {
            append(&mut self.near, &mut self.nodes, (target, time), tick as usize);
        } else {
            self.reschedule(target, time);
        }
    }

    #[inline(never)]
    fn reschedule(&mut self, target: EventTarget, time: u64) {
        if self.nodes[target as usize].time != NEVER {
            self.cancel(target);
        }
        if time >> SLOT_BITS > self.tick {
            self.push(target, time);
        } else {
            self.insert_open(target, time);
        }
    }

    fn level(&mut self, level: usize) -> &mut Level {
        if level == 0 { &mut self.near } else { &mut self.far[level - 1] }
    }

    /// Forgets the pending event of `target`, if there is one.
    pub fn cancel(&mut self, target: EventTarget) {
        let node = self.nodes[target as usize];
        if node.time == NEVER {
            return;
        }
        self.nodes[target as usize].time = NEVER;
        if node.time >> SLOT_BITS <= self.tick {
            let position = self.open[self.done..].iter().position(|event| event.target == target);
            let position = position.expect("a pending event of the open slot is in its list");
            self.open.remove(self.done + position);
            return;
        }
        let (level, slot) = self.place(node.time >> SLOT_BITS);
        if node.next == target {
            self.level(level).clear(slot);
            return;
        }
        self.nodes[node.previous as usize].next = node.next;
        self.nodes[node.next as usize].previous = node.previous;
        let head = &mut self.level(level).heads[slot];
        if *head == target {
            *head = node.next;
        }
    }

    /// The next event: its time and its target, whose event is then no longer pending.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(Instant, EventTarget)> {
        if self.done == self.open.len() {
            if let Some(only) = self.pop_only() {
                return Some(only);
            }
            if !self.open_next() {
                return None;
            }
        }
        let EventKey { time, target, .. } = self.open[self.done];
        self.done += 1;
        self.nodes[target as usize].time = NEVER;
        Some((time, target))
    }

    /// The place of the next event, [`EventKey::NEVER`] if there is none.
    pub fn first(&mut self) -> EventKey {
        if self.done == self.open.len() && !self.open_next() { EventKey::NEVER } else { self.open[self.done] }
    }

    /// Takes the next event past the open slot if it is alone in its slot of the lowest level: quiet worlds rarely see another case.
    #[inline(always)]
    fn pop_only(&mut self) -> Option<(Instant, EventTarget)> {
        let slot = self.near.next_after(self.tick as usize)?;
        let target = self.near.heads[slot % SLOTS];
        let node = &mut self.nodes[target as usize];
        if node.next != target {
            return None;
        }
        let time = std::mem::replace(&mut node.time, NEVER);
        self.near.clear(slot);
        self.tick = time >> SLOT_BITS;
        Some((Instant::from_nanos(time), target))
    }

    /// Prefetches the event node of a target, and its tie.
    #[inline(always)]
    pub fn prefetch(&self, target: EventTarget) {
        prefetch(&self.nodes[target as usize]);
    }

    /// True if nothing will ever happen.
    pub fn is_empty(&self) -> bool {
        self.done == self.open.len()
            && self.near.summary == 0
            && self.far.iter().all(|level| level.summary == 0)
    }

    /// Inserts an event into the open slot, in order among those not yet executed.
    fn insert_open(&mut self, target: EventTarget, time: u64) {
        let event = self.key(Instant::from_nanos(time), target);
        self.nodes[target as usize].time = time;
        if self.done == self.open.len() {
            self.open.clear();
            self.done = 0;
        }
        let position = self.open[self.done..].partition_point(|&other| other < event);
        self.open.insert(self.done + position, event);
    }

    /// Appends an event to the list of its slot, which is not the open one.
    fn push(&mut self, target: EventTarget, time: u64) {
        let (level, slot) = self.place(time >> SLOT_BITS);
        let level = if level == 0 { &mut self.near } else { &mut self.far[level - 1] };
        append(level, &mut self.nodes, (target, time), slot);
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
            let Some((level, slot)) = self.next_slot() else { return false };
            self.enter(level, slot);
        }
        true
    }

    /// The next slot past the open one that holds something, and its level.
    fn next_slot(&mut self) -> Option<(usize, usize)> {
        (0..=self.far.len()).find_map(|level| {
            let current = (self.tick >> (level as u32 * LEVEL_BITS)) as usize;
            self.level(level).next_after(current).map(|slot| (level, slot))
        })
    }

    /// The tick with which a slot begins that follows the open one.
    fn begin_of(&self, level: usize, slot: usize) -> u64 {
        let shift = level as u32 * LEVEL_BITS;
        (self.tick >> shift & !(SLOTS as u64 - 1) | slot as u64) << shift
    }

    /// Advances to the beginning of a slot and spreads its events over the levels below, or into the open slot.
    fn enter(&mut self, level: usize, slot: usize) {
        self.tick = self.begin_of(level, slot);
        let head = self.level(level).heads[slot];
        self.level(level).clear(slot);
        let mut target = head;
        loop {
            let Node { time, next, .. } = self.nodes[target as usize];
            if time >> SLOT_BITS == self.tick {
                self.open.push(self.key(Instant::from_nanos(time), target));
            } else {
                self.push(target, time);
            }
            target = next;
            if target == head {
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
fn append(level: &mut Level, nodes: &mut [Node], (target, time): (EventTarget, u64), slot: usize) {
    let head = level.heads[slot % SLOTS];
    let (previous, next) = if head == NIL {
        level.heads[slot % SLOTS] = target;
        level.mark(slot);
        (target, target)
    } else {
        let tail = nodes[head as usize].previous;
        nodes[head as usize].previous = target;
        nodes[tail as usize].next = target;
        (tail, head)
    };
    let node = &mut nodes[target as usize];
    (node.time, node.previous, node.next) = (time, previous, next);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::key::tie_break;
    use bentpipe_base::Rng;
    use std::collections::BTreeSet;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn drain(wheel: &mut Wheel) -> Vec<(u64, EventTarget)> {
        std::iter::from_fn(|| wheel.pop()).map(|(time, target)| (time.as_nanos(), target)).collect()
    }

    /// Simultaneous events come in the order of their classes, and within a class in the order of the tie-breaks of the time. The order of
    /// scheduling does not matter, in the open slot or in a later one.
    #[test]
    fn equal_times_come_in_the_order_of_their_ranks_whoever_was_scheduled_first() {
        let far = 5_000_000_000;
        let orders = [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1]];
        let drained = orders.map(|order| {
            let mut wheel = Wheel::new(at(NEVER));
            wheel.add_targets(Class::Timer, [5, 6]);
            wheel.add_targets(Class::Measurement, [7]);
            wheel.add_targets(Class::Arrival, [8, 9]);
            let mut drained = Vec::new();
            for time in [7, 9, far, far + 1] {
                order.into_iter().for_each(|target| wheel.schedule(target, at(time)));
                drained.extend(drain(&mut wheel));
            }
            drained
        });
        assert_eq!([&drained[1], &drained[2]], [&drained[0], &drained[0]]);
        for together in drained[0].chunks(5) {
            let time = at(together[0].0);
            let first_of = |one: u32, salts: [u32; 2]| {
                one + u32::from(tie_break(time, salts[1]) < tie_break(time, salts[0]))
            };
            let expected = [2, first_of(3, [8, 9]), first_of(0, [5, 6])];
            assert_eq!([together[0].1, together[1].1, together[3].1], expected);
        }
    }

    #[test]
    fn an_earlier_deadline_moves_the_event_and_a_later_one_leaves_it() {
        let mut wheel = Wheel::new(at(NEVER));
        wheel.add_targets(Class::Timer, [1, 2]);
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
        wheel.add_targets(Class::Timer, [1, 2]);
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
            let mut model: BTreeSet<(u64, u32, EventTarget)> = BTreeSet::new();
            let mut key_of = [None; 50];
            let mut now = 0;
            // Two targets share a salt.
            let salt = |target: EventTarget| target / 2;
            wheel.add_targets(Class::Arrival, (0..50).map(salt));
            for _ in 0..20_000 {
                let target = rng.below(50) as EventTarget;
                match rng.below(5) {
                    0 => {
                        wheel.cancel(target);
                        if let Some(key) = key_of[target as usize].take() {
                            model.remove(&key);
                        }
                    }
                    1 | 2 => {
                        let spread = rng.below(45);
                        let time = now + rng.below(1 << spread);
                        wheel.schedule(target, at(time));
                        let pending = key_of[target as usize];
                        if pending.is_none_or(|(pending, ..)| time < pending) {
                            if let Some(pending) = pending {
                                model.remove(&pending);
                            }
                            let key = (time, tie_break(at(time), salt(target)), target);
                            key_of[target as usize] = Some(key);
                            model.insert(key);
                        }
                    }
                    pops => {
                        let spread = rng.below(45);
                        let limit = if pops == 3 { NEVER } else { now + rng.below(1 << spread) };
                        let is_before = pops == 3 || wheel.first().time < at(limit);
                        let popped = if is_before { wheel.pop() } else { None };
                        let first = model.first().filter(|(time, ..)| *time < limit).copied();
                        let expected = first.map(|(time, _, target)| (at(time), target));
                        if let Some(first) = first {
                            model.remove(&first);
                        }
                        assert_eq!(popped, expected, "seed {seed}");
                        if let Some((time, target)) = popped {
                            now = time.as_nanos();
                            key_of[target as usize] = None;
                        }
                    }
                }
            }
        }
    }
}
