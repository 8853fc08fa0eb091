//! Shared parts of the link tests: a packet, and a driver that checks the invariants of every link.
#![allow(dead_code)] // each test binary uses some parts

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::{
    Arrival, Backlog, Dropped, Link, LinkConfig, LossConfig, LossModel, Packet, QueueConfig, Verdict,
};

/// Packet with its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    pub id: u64,
    pub size: u32,
    pub flow: u64,
    pub hosts: [u64; 2],
    pub low_priority: bool,
    pub data: bool,
    pub ecn_capable: bool,
    pub l4s: bool,
    pub marked: bool,
    /// Number of flipped bits; `None` for a packet without bytes, which is lost instead.
    pub flipped: Option<u32>,
}

impl Packet for Probe {
    fn size(&self) -> u32 {
        self.size
    }
    fn low_priority(&self) -> bool {
        self.low_priority
    }
    fn flow(&self) -> u64 {
        self.flow
    }
    fn hosts(&self) -> [u64; 2] {
        self.hosts
    }
    fn is_data(&self) -> bool {
        self.data
    }
    fn ecn_capable(&self) -> bool {
        self.ecn_capable
    }
    fn is_l4s(&self) -> bool {
        self.l4s
    }
    fn mark_congested(&mut self) {
        assert!(self.ecn_capable, "marked a packet that is not ECN-capable");
        self.marked = true;
    }
    fn flip_bit(&mut self, _: u64) -> bool {
        self.flipped = self.flipped.map(|bits| bits + 1);
        self.flipped.is_some()
    }
}

/// Makes a data packet of 1000 bytes.
pub fn packet(id: u64) -> Probe {
    Probe {
        id,
        size: 1000,
        flow: 0,
        hosts: [0; 2],
        low_priority: false,
        data: true,
        ecn_capable: false,
        l4s: false,
        marked: false,
        flipped: None,
    }
}

/// Makes a low-priority data packet of 1000 bytes.
pub fn low(id: u64) -> Probe {
    Probe { low_priority: true, ..packet(id) }
}

/// Makes a link of 8 Mbit/s (1 ms per packet of 1000 bytes) and 100 ms with this queue.
pub fn config(queue: QueueConfig) -> LinkConfig {
    LinkConfig::new(Rate::from_mbps(8), Duration::from_millis(100), queue)
}

/// Makes that link with exactly these transmissions lost.
pub fn losing(lost: &[u64], link: LinkConfig) -> LinkConfig {
    LinkConfig { loss: LossConfig::all(LossModel::List { numbers: lost.to_vec() }), ..link }
}

/// Returns the time `millis` ms after the epoch.
pub fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A link with all its output.
pub struct Bench {
    pub link: Link<Probe>,
    pub arrived: Vec<(Instant, Arrival<Probe>)>,
    pub dropped: Vec<Dropped<Probe>>,
    /// Time of the latest event or offer.
    now: Instant,
}

impl Bench {
    pub fn new(config: &LinkConfig) -> Self {
        Self::with_seed(config, 1)
    }

    pub fn with_seed(config: &LinkConfig, seed: u64) -> Self {
        let link = Link::new(config, seed, "test").expect("a valid configuration");
        Self { link, arrived: Vec::new(), dropped: Vec::new(), now: Instant::ZERO }
    }

    /// Runs the link up to `now`, then offers a packet.
    pub fn offer(&mut self, now: Instant, packet: Probe) -> Verdict {
        self.run_until(now);
        let verdict = self.link.enqueue(now, packet);
        self.collect_dropped();
        verdict
    }

    /// Offers packets with these ids at one instant.
    pub fn offer_all(&mut self, now: Instant, ids: core::ops::Range<u64>) {
        for id in ids {
            self.offer(now, packet(id));
        }
    }

    /// Runs the link up to and including `end`.
    pub fn run_until(&mut self, end: Instant) {
        while self.link.next_event() <= end && self.link.next_event() < Instant::FAR_FUTURE {
            let event = self.link.next_event();
            assert!(event >= self.now, "an event at {event:?}, before {:?}", self.now);
            let before = (self.link.packets_inside(), self.link.next_event());
            self.touch(event);
            let after = (self.link.packets_inside(), self.link.next_event());
            assert!(before != after, "an event at {event:?} at which nothing happened");
        }
        self.now = end;
    }

    /// Calls the link at `now`, requested or not.
    pub fn touch(&mut self, now: Instant) {
        self.now = now;
        while let Some(arrival) = self.link.deliver(now) {
            self.arrived.push((now, arrival));
        }
        self.collect_dropped();
    }

    /// Runs until the link is empty.
    pub fn finish(&mut self) {
        while self.link.next_event() < Instant::FAR_FUTURE {
            self.run_until(self.link.next_event());
        }
        assert_eq!(self.link.packets_inside(), 0, "packets inside and no event");
        assert_eq!(self.link.backlog(self.now), Backlog::default(), "packets or bytes waiting and no event");
    }

    fn collect_dropped(&mut self) {
        while let Some(dropped) = self.link.poll_dropped() {
            assert!(dropped.at <= self.now, "dropped in the future");
            self.dropped.push(dropped);
        }
        self.check_conservation();
    }

    /// Checks that every offered packet is delivered, dropped or inside, and that the counters match the
    /// output.
    pub fn check_conservation(&self) {
        let stats = self.link.stats();
        let out = stats.delivered_packets + stats.dropped_packets() + self.link.packets_inside() as u64;
        assert_eq!(stats.enqueued_packets + stats.duplicated_packets, out, "{stats:?}");
        assert_eq!(stats.delivered_packets, self.arrived.len() as u64);
        assert_eq!(stats.dropped_packets(), self.dropped.len() as u64);
    }

    /// Returns the backlog after the latest event or offer.
    pub fn backlog(&mut self) -> Backlog {
        self.link.backlog(self.now)
    }

    pub fn arrived_ids(&self) -> Vec<u64> {
        self.arrived.iter().map(|(_, arrival)| arrival.packet.id).collect()
    }

    pub fn arrival_times(&self) -> Vec<Instant> {
        self.arrived.iter().map(|(at, _)| *at).collect()
    }

    /// Returns the arrival time of each packet in whole milliseconds, with its number.
    pub fn arrivals_ms(&self) -> Vec<(u64, u64)> {
        let millis = |at: &Instant| at.since(Instant::ZERO).as_nanos() / 1_000_000;
        self.arrived.iter().map(|(at, arrival)| (millis(at), arrival.packet.id)).collect()
    }

    pub fn dropped_ids(&self) -> Vec<u64> {
        self.dropped.iter().map(|dropped| dropped.packet.id).collect()
    }
}
