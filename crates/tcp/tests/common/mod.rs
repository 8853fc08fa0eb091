//! Two connection ends and a small path between them.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::collections::BTreeMap;
use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Segment};
use bentpipe_tcp::{Config, Connection, Events};

/// Fate of a segment, by its number in its direction (from 1) and content; false drops it.
pub type Fate = Box<dyn FnMut(u64, &Segment) -> bool>;

/// Two ends with a constant one-way delay and a loss model.
pub struct Pair {
    pub now: Instant,
    pub ends: [Connection; 2],
    pub events: [Events; 2],
    pub delay_one_way: Duration,
    pub fate: [Fate; 2],
    pub log: Vec<(Instant, usize, Segment)>,
    sent: [u64; 2],
    in_flight: BTreeMap<(Instant, u64), (usize, Segment)>,
    serial: u64,
    /// True if readers read all data at once.
    pub reads: bool,
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Pair {
    /// Makes a pair whose end 0 connects to end 1.
    pub fn new(client: Config, server: Config) -> Self {
        let now = Instant::ZERO + Duration::from_secs(1);
        let ends = [Connection::connect(Arc::new(client), 1, now), Connection::listen(Arc::new(server), 2)];
        Self {
            now,
            ends,
            events: [Events::empty(); 2],
            delay_one_way: ms(50),
            fate: [Box::new(|_, _| true), Box::new(|_, _| true)],
            log: vec![],
            sent: [0; 2],
            in_flight: BTreeMap::new(),
            serial: 0,
            reads: true,
        }
    }

    pub fn symmetric(config: Config) -> Self {
        Self::new(config.clone(), config)
    }

    fn drain(&mut self, end: usize) {
        while let Some(segment) = self.ends[end].poll_transmit(self.now) {
            self.sent[end] += 1;
            self.log.push((self.now, end, segment));
            if (self.fate[end])(self.sent[end], &segment) {
                self.serial += 1;
                self.in_flight.insert((self.now + self.delay_one_way, self.serial), (1 - end, segment));
            }
        }
        let events = self.ends[end].take_events();
        self.events[end] |= events;
        if self.reads && events.contains(Events::READABLE) {
            self.ends[end].read(self.now, u64::MAX);
            self.drain(end);
        }
    }

    /// Handles the next event, if it is due before `until`.
    fn step(&mut self, until: Instant) -> bool {
        for end in 0..2 {
            self.drain(end);
        }
        let arrival = self.in_flight.keys().next().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
        let timeouts = [0, 1].map(|end| self.ends[end].next_timeout().max(self.now));
        let next = arrival.min(timeouts[0]).min(timeouts[1]);
        if next > until || next == Instant::FAR_FUTURE {
            return false;
        }
        self.now = next;
        if arrival == next {
            let (_, (end, segment)) = self.in_flight.pop_first().unwrap();
            self.ends[end].handle_segment(self.now, &segment);
        } else {
            let end = usize::from(timeouts[1] == next);
            self.ends[end].handle_timeout(self.now);
        }
        true
    }

    /// Runs for `span`.
    pub fn run(&mut self, span: Duration) {
        let until = self.now + span;
        let (mut steps, mut here, mut at) = (0_u64, 0_u64, self.now);
        while self.step(until) {
            steps += 1;
            here = if at == self.now { here + 1 } else { 0 };
            at = self.now;
            assert!(
                steps < 5_000_000 && here < 10_000,
                "livelock after {:#?}",
                &self.log[self.log.len().saturating_sub(8)..]
            );
        }
        self.now = until;
    }

    pub fn write(&mut self, end: usize, bytes: u64) {
        assert_eq!(self.ends[end].write(self.now, bytes), bytes);
    }

    pub fn close(&mut self, end: usize) {
        self.ends[end].close(self.now);
    }

    pub fn delivered(&self, end: usize) -> u64 {
        self.ends[end].stats().delivered_bytes
    }
}
