//! Shared parts of the medium tests: a packet, and a driver that checks the invariants of every medium.
#![allow(dead_code)] // each test binary uses some parts

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_mac::{Access, Medium, MediumConfig, TerminalConfig};
use bentpipe_net::{Limit, LossConfig, Packet};
use bentpipe_trace::DropCause;

/// Packet with its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    pub id: u64,
    pub size: u32,
}

impl Packet for Probe {
    fn size(&self) -> u32 {
        self.size
    }
}

/// One-way delay of the media in the tests.
pub const DELAY: Duration = Duration::from_millis(250);

pub fn us(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

pub fn medium_of(access: Access, rate: Rate) -> MediumConfig {
    MediumConfig { rate, delay_one_way: DELAY, access }
}

pub fn terminal() -> TerminalConfig {
    TerminalConfig { queue: Limit::Packets(1_000_000), loss: LossConfig::default() }
}

/// A medium with all its output.
pub struct Bench {
    pub medium: Medium<Probe>,
    pub arrived: Vec<(Instant, u32, Probe)>,
    pub dropped: Vec<(Instant, u32, Probe, DropCause)>,
    pub offered: u64,
    pub events: u64,
    now: Instant,
}

impl Bench {
    pub fn new(config: &MediumConfig, terminals: usize, seed: u64) -> Self {
        Self::with_terminals(config, &vec![terminal(); terminals], seed)
    }

    pub fn with_terminals(config: &MediumConfig, terminals: &[TerminalConfig], seed: u64) -> Self {
        let medium = Medium::new(config, terminals, (seed, "test")).expect("a valid configuration");
        let (arrived, dropped) = (Vec::new(), Vec::new());
        Self { medium, arrived, dropped, offered: 0, events: 0, now: Instant::ZERO }
    }

    /// Runs the medium up to `now`, then offers a packet of `size` bytes.
    pub fn offer(&mut self, now: Instant, terminal: u32, size: u32) {
        self.run_until(now);
        self.medium.enqueue(now, terminal, Probe { id: self.offered, size });
        self.offered += 1;
        self.collect_dropped();
        self.check();
    }

    /// Runs the medium up to and including `end`.
    pub fn run_until(&mut self, end: Instant) {
        while self.medium.next_event() <= end && self.medium.next_event() < Instant::FAR_FUTURE {
            let event = self.medium.next_event();
            assert!(event >= self.now, "an event at {event:?}, before {:?}", self.now);
            self.now = event;
            self.events += 1;
            while let Some((terminal, packet)) = self.medium.deliver(event) {
                self.arrived.push((event, terminal, packet));
            }
            self.collect_dropped();
            self.check();
            assert!(self.medium.next_event() > event, "an event at {event:?} that does not pass");
        }
        self.now = end;
    }

    /// Runs until `end`, and lets the medium decide everything up to then, for its counters.
    pub fn look(&mut self, end: Instant) {
        self.run_until(end);
        self.medium.settle(end);
    }

    /// Runs until the medium is empty.
    pub fn finish(&mut self) {
        while self.medium.next_event() < Instant::FAR_FUTURE {
            self.run_until(self.medium.next_event());
        }
        assert_eq!(self.medium.packets_inside(), 0, "packets are stuck");
    }

    fn collect_dropped(&mut self) {
        while let Some((terminal, dropped)) = self.medium.poll_dropped() {
            assert!(dropped.at <= self.now, "dropped at {:?}, told at {:?}", dropped.at, self.now);
            self.dropped.push((dropped.at, terminal, dropped.packet, dropped.cause));
        }
    }

    /// Checks that packets are conserved.
    fn check(&self) {
        let inside = self.medium.packets_inside() as u64;
        let out = (self.arrived.len() + self.dropped.len()) as u64;
        assert_eq!(self.offered, inside + out, "packets are conserved");
    }
}
