//! The scheduler: the clock of a world and its event queue.

pub(crate) mod key;
pub(crate) mod target;
pub(crate) mod timer;
mod wheel;

use bentpipe_base::Instant;

use crate::ids::EndId;
use crate::scheduler::key::{Class, EventKey, Tie};
use crate::scheduler::target::{Salts, Target, Targets};
use crate::scheduler::wheel::Wheel;

/// The clock of a world and its event queue. Each target has at most one pending event.
#[derive(Debug)]
pub(crate) struct Scheduler {
    wheel: Wheel,
    targets: Targets,
    /// Time of the event that is being executed.
    pub now: Instant,
    /// The event that is being executed, if there is a monitor.
    pub key: EventKey,
    /// End of the run. Later events never happen.
    pub until: Instant,
    /// Arrivals at the far ends of links, deadlines, and other events of the network.
    pub events: u64,
    /// Iterations of the event loop.
    pub turns: u64,
}

impl Scheduler {
    /// A clock at zero, and an empty queue for the targets of a world.
    pub fn new(until: Instant, salts: &Salts) -> Self {
        let mut wheel = Wheel::new(until);
        let targets = Targets::add(&mut wheel, salts);
        let (now, key) = (Instant::ZERO, EventKey::NEVER);
        Self { wheel, targets, now, key, until, events: 0, turns: 0 }
    }

    /// Adds the next two connection ends, with these salts.
    pub fn add_ends(&mut self, salts: [u32; 2]) {
        self.wheel.add_targets(Class::Timer, salts);
    }

    /// Reserves memory for `count` connection ends.
    pub fn reserve_ends(&mut self, count: usize) {
        self.wheel.reserve(count);
    }

    /// Gives the place of a former connection end to another, with this salt.
    pub fn replace_end(&mut self, id: EndId, salt: u32) {
        self.wheel.set_tie(self.targets.number(Target::End(id)), Tie { class: Class::Timer, salt });
    }

    /// Schedules a target for `at` or earlier.
    #[inline(always)]
    pub fn schedule(&mut self, target: Target, at: Instant) {
        self.wheel.schedule(self.targets.number(target), at);
    }

    /// Forgets the pending event of a target, if there is one.
    pub fn cancel(&mut self, target: Target) {
        self.wheel.cancel(self.targets.number(target));
    }

    /// Advances the clock to the next event, and returns whom it concerns.
    #[inline(always)]
    pub fn advance(&mut self) -> Option<Target> {
        let (now, number) = self.wheel.pop()?;
        self.now = now;
        self.turns += 1;
        Some(self.targets.target(number))
    }

    /// The next event, [`EventKey::NEVER`] if there is none.
    pub fn first(&mut self) -> EventKey {
        self.wheel.first()
    }

    /// The place in the order of events of an event of a target.
    #[inline(always)]
    pub fn key(&self, time: Instant, target: Target) -> EventKey {
        self.wheel.key(time, self.targets.number(target))
    }

    /// The place in the order of events of the timer of a target with this salt, which may be in no queue.
    #[inline(always)]
    pub fn timer_key(&self, time: Instant, target: Target, salt: u32) -> EventKey {
        Tie { class: Class::Timer, salt }.key(time, self.targets.number(target))
    }

    /// The salt of a target.
    #[inline(always)]
    pub fn salt(&self, target: Target) -> u32 {
        self.wheel.tie(self.targets.number(target)).salt
    }

    /// Whom an event concerns.
    pub fn target(&self, key: EventKey) -> Target {
        self.targets.target(key.target)
    }

    /// True if nothing will ever happen.
    pub fn is_empty(&self) -> bool {
        self.wheel.is_empty()
    }

    /// Prefetches the event of a target.
    #[inline(always)]
    pub fn prefetch(&self, target: Target) {
        self.wheel.prefetch(self.targets.number(target));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A world with one target of each kind, and connection ends that are added later.
    fn scheduler() -> Scheduler {
        let salts = Salts {
            flows: vec![1, 2],
            middleboxes: vec![3],
            proxies: vec![4],
            media: vec![5],
            links: vec![6, 7],
            has_routes: true,
            processes: 2,
        };
        let mut scheduler = Scheduler::new(Instant::from_nanos(1_000), &salts);
        scheduler.add_ends([8, 9]);
        scheduler
    }

    const ALL: [Target; 14] = [
        Target::Flow(0),
        Target::Flow(1),
        Target::Middlebox(0),
        Target::Proxy(0),
        Target::Routes,
        Target::Sampler,
        Target::Medium(0),
        Target::Window,
        Target::Process(0),
        Target::Process(1),
        Target::Link(0),
        Target::Link(1),
        Target::End(0),
        Target::End(1),
    ];

    #[test]
    fn every_target_is_told_what_was_scheduled_for_it() {
        let mut scheduler = scheduler();
        for (at, target) in (10..).step_by(10).zip(ALL).collect::<Vec<_>>().into_iter().rev() {
            scheduler.schedule(target, Instant::from_nanos(at));
        }
        for (at, target) in (10..).step_by(10).zip(ALL) {
            let first = scheduler.first();
            assert_eq!((first.time.as_nanos(), scheduler.target(first)), (at, target));
            assert_eq!((scheduler.advance(), scheduler.now.as_nanos()), (Some(target), at));
        }
        assert_eq!((scheduler.advance(), scheduler.turns), (None, ALL.len() as u64));
        assert!(scheduler.is_empty());
    }

    /// A measurement sees the network before it changes, the network changes before packets arrive, and packets arrive before timers
    /// expire.
    #[test]
    fn simultaneous_events_are_in_the_order_of_their_classes() {
        let mut scheduler = scheduler();
        let classes = [Target::End(1), Target::Link(1), Target::Routes, Target::Sampler, Target::Flow(0)];
        classes.into_iter().for_each(|target| scheduler.schedule(target, Instant::from_nanos(500)));
        let order: Vec<_> = std::iter::from_fn(|| scheduler.advance()).collect();
        assert_eq!(order[..3], [Target::Sampler, Target::Routes, Target::Link(1)]);
        assert_eq!(order.len(), 5);
    }

    #[test]
    fn a_target_has_one_event_and_nothing_happens_after_the_end() {
        let mut scheduler = scheduler();
        for at in [700, 300, 900] {
            scheduler.schedule(Target::Link(0), Instant::from_nanos(at));
        }
        scheduler.schedule(Target::Link(1), Instant::from_nanos(1_001));
        scheduler.schedule(Target::Flow(1), Instant::from_nanos(200));
        scheduler.cancel(Target::Flow(1));
        assert_eq!((scheduler.advance(), scheduler.now.as_nanos()), (Some(Target::Link(0)), 300));
        assert_eq!(scheduler.advance(), None);
    }
}
