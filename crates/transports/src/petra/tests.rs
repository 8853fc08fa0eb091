use std::collections::BTreeMap;

use bentpipe_base::Instant;

use super::upper::{Destination, Source};
use super::*;
use crate::outbox::{Fragment, Message};

/// Source, two relay entities and destination, with a packet's delay on each hop.
struct Chain {
    nodes: Vec<Node>,
    delays: [Duration; 3],
    now: Instant,
    /// Packets in flight by arrival time and number, with receiver and port.
    flying: BTreeMap<(Instant, u64), (usize, u8, Pdu)>,
    sent: u64,
    delivered: Vec<Fragment>,
    /// Loss model: true for the packets of this node with these numbers.
    lost: fn(usize, u64) -> bool,
}

const RATE: Rate = Rate::from_bps(6_000_000);
const ROUND_TRIP: Duration = Duration::from_millis(550);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

impl Chain {
    fn new(options: Options, relays: [RelayConfig; 2]) -> Self {
        let config = bentpipe_tcp::Config { mss: 1012, ..bentpipe_tcp::Config::default() };
        let tcp = Layer::Tcp(Arc::new(config), 40);
        let buffer = relays[0].buffer_bytes(RATE, ROUND_TRIP);
        let stp = Layer::Stp { rate: RATE, packet_bytes: 1012, window: (buffer / 1012) as u32 };
        let round_trip = Duration::from_millis(630);
        let nodes = vec![
            Node::new(Place::Source(1012, 4 * buffer, round_trip), &options, [None, Some(tcp.clone())]),
            Node::new(Place::Relay(relays[0], buffer), &options, [Some(tcp.clone()), Some(stp.clone())]),
            Node::new(Place::Relay(relays[1], buffer), &options, [Some(stp), Some(tcp.clone())]),
            Node::new(Place::Destination, &options, [Some(tcp), None]),
        ];
        let delays = [30, 275, 10].map(Duration::from_millis);
        let (flying, delivered) = (BTreeMap::new(), Vec::new());
        Self { nodes, delays, now: Instant::ZERO, flying, sent: 0, delivered, lost: |_, _| false }
    }

    fn write(&mut self, bytes: u64) {
        self.nodes[0].write(self.now, Message { number: 0, stream: 0, bytes });
        self.nodes[0].finish(self.now);
        self.serve();
    }

    fn serve(&mut self) {
        for index in 0..self.nodes.len() {
            while let Some((port, pdu)) = self.nodes[index].poll_transmit(self.now) {
                let (hop, to) = if port == 1 { (index, index + 1) } else { (index - 1, index - 1) };
                self.sent += 1;
                if !(self.lost)(index, self.sent) {
                    let arrival = (self.now + self.delays[hop], self.sent);
                    self.flying.insert(arrival, (to, 1 - port, pdu));
                }
            }
        }
        self.delivered.extend(std::iter::from_fn(|| self.nodes[3].poll_delivery()));
    }

    fn run(&mut self, until: Instant) {
        loop {
            let timers = self.nodes.iter().map(Node::next_timeout).min().unwrap();
            let packet = self.flying.first_key_value().map_or(Instant::FAR_FUTURE, |((at, _), _)| *at);
            if timers.min(packet) > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(timers.min(packet));
            if packet <= timers {
                let (_, (to, port, pdu)) = self.flying.pop_first().unwrap();
                self.nodes[to].handle(self.now, port, &pdu);
            } else {
                let due = self.nodes.iter_mut().filter(|node| node.next_timeout() <= self.now);
                due.for_each(|node| node.handle_timeout(self.now));
            }
            self.serve();
        }
    }

    fn delivered_bytes(&self) -> u64 {
        self.delivered.iter().map(|fragment| u64::from(fragment.bytes)).sum()
    }
}

#[test]
fn a_relay_entity_keeps_twice_the_bandwidth_delay_product() {
    assert_eq!(RelayConfig::default().buffer_bytes(RATE, ROUND_TRIP), 825_000);
    let told = RelayConfig { buffer: Some(5_000), ..RelayConfig::default() };
    assert_eq!(told.buffer_bytes(RATE, ROUND_TRIP), 5_000);
}

#[test]
fn the_neighbours_acknowledgement_frees_nothing_at_the_source() {
    let mut chain = Chain::new(Options::default(), [RelayConfig::default(); 2]);
    chain.write(100_000);
    // Handshake and windows of 10, 20, 40 and 80 units: the relay entity has all data after five round trips of 60 ms.
    chain.run(at(310));
    let source = chain.nodes[0].counters();
    assert_eq!((source.most_kept_bytes, chain.nodes[0].progress().all_acknowledged), (100_000, false));
    assert_eq!(chain.nodes[1].counters().relayed_units, 101);
    assert_eq!(chain.delivered_bytes(), 0);
    // Open at 580 ms. 100 units at 6 Mbit/s take 139 ms and 275 ms of propagation, their confirmations 315 ms.
    chain.run(at(2_000));
    assert_eq!(chain.delivered_bytes(), 100_000);
    assert!(chain.nodes[0].progress().all_acknowledged);
    assert_eq!((chain.nodes[0].counters().resent_bytes, chain.nodes[3].counters().duplicate_bytes), (0, 0));
}

#[test]
fn after_a_crash_everything_unconfirmed_is_sent_again_and_dropped_where_it_is_known() {
    let options = Options::default();
    let mut source = Source::new(&options, 1012, 1_000_000, ROUND_TRIP);
    let mut destination = Destination::new(&options);
    source.write(Message { number: 0, stream: 0, bytes: 100_000 });
    let units = |source: &mut Source| -> Vec<_> { std::iter::from_fn(|| source.next_unit(at(0))).collect() };
    let first = units(&mut source);
    assert_eq!(first.len(), 100);
    // The relay entity crashes and loses all but the first 40 kB, which are not confirmed yet.
    first[..40].iter().for_each(|unit| destination.take(at(300), *unit));
    assert_eq!(destination.poll_confirmation(at(300)), None);
    source.begin_again(at(500));
    for unit in units(&mut source) {
        destination.take(at(900), unit);
    }
    assert_eq!((source.resent_bytes, destination.duplicate_bytes), (100_000, 40_000));
    assert_eq!(destination.delivered.len(), 100);
    let confirmation = destination.poll_confirmation(at(900));
    assert_eq!(confirmation, Some(Unit::Confirm { next: 100_000, fin: false }));
    assert!(source.confirm(at(1_200), 100_000, false) && source.is_settled());
}

#[test]
fn the_destination_confirms_after_64_kb_or_a_second() {
    let mut destination = Destination::new(&Options::default());
    let unit =
        |n: u64| Unit::Data { seq: n * 1_000, fragment: Fragment { message: 0, stream: 0, bytes: 1_000 } };
    (0..63).for_each(|n| destination.take(at(0), unit(n)));
    assert_eq!((destination.poll_confirmation(at(999)), destination.next_timeout()), (None, at(1_000)));
    destination.take(at(10), unit(63));
    assert_eq!(destination.poll_confirmation(at(10)), Some(Unit::Confirm { next: 64_000, fin: false }));
    destination.take(at(20), unit(64));
    assert_eq!(destination.next_timeout(), at(1_020));
    // The FIN is confirmed at once.
    destination.take(at(30), Unit::Fin { seq: 65_000 });
    assert_eq!(destination.poll_confirmation(at(30)), Some(Unit::Confirm { next: 65_000, fin: true }));
}

#[test]
fn a_relay_entity_that_comes_back_loses_nothing() {
    for (dead, ms) in [(0, 200), (0, 900), (1, 900), (1, 1_200)] {
        let mut relays = [RelayConfig::default(); 2];
        let (dies_at, back_after) = (Some(Duration::from_millis(ms)), Some(Duration::from_secs(1)));
        relays[dead] = RelayConfig { dies_at, back_after, ..relays[dead] };
        let mut chain = Chain::new(Options::default(), relays);
        chain.write(1_000_000);
        chain.run(at(60_000));
        assert_eq!(chain.delivered_bytes(), 1_000_000, "relay {dead} at {ms} ms");
        assert!(chain.nodes[0].progress().all_acknowledged, "relay {dead} at {ms} ms");
        assert!(chain.nodes[0].counters().resent_bytes > 0, "relay {dead} at {ms} ms");
    }
}

#[test]
fn who_finds_no_relay_entity_any_more_says_so() {
    let dead = RelayConfig { dies_at: Some(Duration::from_millis(900)), ..RelayConfig::default() };
    let mut chain = Chain::new(Options::default(), [RelayConfig::default(), dead]);
    chain.write(1_000_000);
    chain.run(at(3_600_000));
    assert_eq!(chain.nodes[0].progress().failed, Some("relay lost"));
    assert!(chain.delivered_bytes() < 1_000_000);
}

#[test]
fn a_slow_satellite_closes_the_window_of_the_first_hop() {
    let relay = RelayConfig { buffer: Some(100_000), ..RelayConfig::default() };
    let mut chain = Chain::new(Options::default(), [relay; 2]);
    chain.write(3_000_000);
    chain.run(at(2_000));
    let kept = chain.nodes[1].counters();
    assert!(kept.stops > 0 && kept.most_kept_bytes <= 90_000 + 1_012, "{kept:?}");
    chain.run(at(60_000));
    assert_eq!(chain.delivered_bytes(), 3_000_000);
    assert!(chain.nodes[0].progress().all_acknowledged);
}

#[test]
fn losses_on_every_hop_lose_nothing() {
    let mut chain = Chain::new(Options::default(), [RelayConfig::default(); 2]);
    chain.lost = |_, number| number % 17 == 3;
    chain.write(500_000);
    chain.run(at(300_000));
    assert_eq!(chain.delivered_bytes(), 500_000);
    assert!(chain.nodes[0].progress().all_acknowledged);
    assert_eq!(chain.nodes[3].counters().duplicate_bytes, 0);
}
