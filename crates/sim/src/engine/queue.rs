//! The event queue: targets, each of which has at most one pending event.
//!
//! Events come out in the order of their [keys](EventKey). Deadlines are lazy. A target that is scheduled earlier than its pending event
//! moves there. A target that is scheduled later keeps its event, is woken too early, and schedules itself again. So a retransmission timer
//! that moves with every ACK costs one event for each timeout interval and nothing for each ACK.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_base::Instant;

use crate::engine::key::{Class, EventKey, EventTarget, Tie};

/// The tie of a target, and its pending event.
#[derive(Clone, Copy, Debug)]
struct Target {
    tie: Tie,
    /// [`EventKey::NEVER`] if there is none.
    pending: EventKey,
}

/// A priority queue of events. An event that was moved or cancelled stays in the heap, and is skipped when it comes out.
#[derive(Debug)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<EventKey>>,
    targets: Vec<Target>,
    /// No event after this is executed.
    end: Instant,
}

impl EventQueue {
    /// A queue for events up to and including `end`; later ones are ignored.
    pub fn new(end: Instant) -> Self {
        Self { heap: BinaryHeap::new(), targets: Vec::new(), end }
    }

    /// Adds targets of a class, one for each salt, with consecutive numbers; returns the first.
    pub fn add_targets(&mut self, class: Class, salts: impl IntoIterator<Item = u32>) -> EventTarget {
        let first = self.targets.len() as EventTarget;
        let target = |salt| Target { tie: Tie { class, salt }, pending: EventKey::NEVER };
        self.targets.extend(salts.into_iter().map(target));
        first
    }

    /// Gives a target without a pending event another tie.
    pub fn set_tie(&mut self, target: EventTarget, tie: Tie) {
        let state = &mut self.targets[target as usize];
        debug_assert_eq!(state.pending, EventKey::NEVER, "a pending event keeps its place");
        state.tie = tie;
    }

    /// The key of an event of a target.
    #[inline]
    pub fn key(&self, time: Instant, target: EventTarget) -> EventKey {
        self.targets[target as usize].tie.key(time, target)
    }

    /// Schedules the event of `target` at `at`, unless it has an earlier one. Events after the end are ignored.
    #[inline]
    pub fn schedule(&mut self, target: EventTarget, at: Instant) {
        let state = &mut self.targets[target as usize];
        if at < state.pending.time && at <= self.end {
            state.pending = state.tie.key(at, target);
            self.heap.push(Reverse(state.pending));
        }
    }

    /// Forgets the pending event of `target`, if there is one.
    pub fn cancel(&mut self, target: EventTarget) {
        self.targets[target as usize].pending = EventKey::NEVER;
    }

    /// Time of the next event, [`Instant::FAR_FUTURE`] if there is none.
    pub fn next_time(&mut self) -> Instant {
        while let Some(Reverse(first)) = self.heap.peek() {
            if self.targets[first.target as usize].pending == *first {
                return first.time;
            }
            self.heap.pop();
        }
        Instant::FAR_FUTURE
    }

    /// Takes out the next event that comes before `limit`.
    #[inline]
    pub fn pop_before(&mut self, limit: Instant) -> Option<EventKey> {
        if self.next_time() >= limit {
            return None;
        }
        let Reverse(key) = self.heap.pop()?;
        self.targets[key.target as usize].pending = EventKey::NEVER;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::key::tie_break;
    use bentpipe_base::Rng;
    use std::collections::BTreeSet;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn drain(queue: &mut EventQueue) -> Vec<(u64, EventTarget)> {
        let next = || queue.pop_before(Instant::FAR_FUTURE);
        std::iter::from_fn(next).map(|key| (key.time.as_nanos(), key.target)).collect()
    }

    /// The order of events of the same time is that of classes, and within a class that of the tie-breaks of the time.
    #[test]
    fn equal_times_come_in_the_order_of_their_ranks_whoever_was_scheduled_first() {
        let orders = [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1]];
        let drained = orders.map(|order| {
            let mut queue = EventQueue::new(Instant::FAR_FUTURE);
            queue.add_targets(Class::Timer, [5, 6]);
            queue.add_targets(Class::Measurement, [7]);
            queue.add_targets(Class::Arrival, [8, 9]);
            let mut drained = Vec::new();
            for time in [7, 9, 5_000_000_000] {
                order.into_iter().for_each(|target| queue.schedule(target, at(time)));
                drained.extend(drain(&mut queue));
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
        let mut queue = EventQueue::new(at(20_000));
        queue.add_targets(Class::Timer, [1, 2, 3]);
        queue.schedule(0, at(10_000));
        queue.schedule(1, at(10_000));
        queue.schedule(0, at(20_000));
        queue.schedule(1, at(500));
        queue.schedule(0, at(400));
        queue.schedule(2, at(20_001));
        assert_eq!(drain(&mut queue), [(400, 0), (500, 1)], "and nothing is executed after the end");
    }

    /// A sorted set is the model: random schedules, cancellations and pops agree with it.
    #[test]
    fn agrees_with_a_sorted_set() {
        let mut rng = Rng::stream(1, "queue");
        let mut queue = EventQueue::new(Instant::FAR_FUTURE);
        queue.add_targets(Class::Arrival, (0..50).map(|target| target / 2));
        let mut model: BTreeSet<EventKey> = BTreeSet::new();
        let mut now = Instant::ZERO;
        for _ in 0..100_000 {
            let target = rng.below(50) as EventTarget;
            let spread = 1 << rng.below(45);
            let time = now + bentpipe_base::Duration::from_nanos(rng.below(spread));
            let pending = model.iter().find(|key| key.target == target).copied();
            match rng.below(5) {
                0 => {
                    queue.cancel(target);
                    model.retain(|key| key.target != target);
                }
                1 | 2 => {
                    queue.schedule(target, time);
                    if pending.is_none_or(|pending| time < pending.time) {
                        model.retain(|key| key.target != target);
                        model.insert(queue.key(time, target));
                    }
                }
                _ => {
                    let first = model.first().filter(|key| key.time < time).copied();
                    assert_eq!(queue.pop_before(time), first);
                    if let Some(first) = first {
                        model.remove(&first);
                        now = first.time;
                    }
                }
            }
        }
    }
}
