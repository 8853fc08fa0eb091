use std::collections::BTreeMap;

use bentpipe_base::Instant;

use super::*;
use crate::{Config, Message};

const CONFIG: Config = Config { packet_bytes: 1024, initial_window: 1, window: 1 };
const FILE: Message = Message { number: 0, stream: 0, bytes: 1 << 20 };

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Returns a hop of 1 Mbit/s and 250 ms one way, with gaps in seconds.
fn hop(gaps: &[(u64, u64)]) -> Hop {
    let gaps = gaps.iter().map(|(from, to)| (at(1000 * from), at(1000 * to)));
    let contacts = Contacts::except(gaps.collect());
    Hop { contacts, rate: Rate::from_mbps(1), round_trip: Duration::from_millis(500), tcp: None }
}

/// A chain of agents, and the packets in flight between them.
struct Chain {
    nodes: Vec<Node>,
    /// Packets in flight by arrival time, with agent, port and content.
    flying: BTreeMap<(Instant, u64), (usize, u8, Pdu)>,
    sent: u64,
    now: Instant,
    delivered: Vec<(Instant, u32)>,
}

impl Chain {
    /// Makes a source, routers and a destination over these hops, with the same contacts in both directions.
    fn new(policy: Policy, router: RouterConfig, hops: &[Hop]) -> Self {
        let last = hops.len() as u8;
        let node = |place: u8| {
            let back = place.checked_sub(1).map(|hop| hops[usize::from(hop)].clone());
            let onward = hops.get(usize::from(place)).cloned();
            Node::new(CONFIG, policy, Stop { place, last, router }, [back, onward])
        };
        let nodes = (0..=last).map(node).collect();
        let (flying, delivered) = (BTreeMap::new(), Vec::new());
        Self { nodes, flying, sent: 0, now: Instant::ZERO, delivered }
    }

    /// Runs until a time. `lost` selects the lost packets by number and sender.
    fn run(&mut self, until: Instant, lost: impl Fn(u64, usize, &Pdu) -> bool) {
        loop {
            for place in 0..self.nodes.len() {
                if self.nodes[place].next_timeout() <= self.now {
                    self.nodes[place].handle_timeout(self.now);
                }
                while let Some((port, pdu)) = self.nodes[place].poll_transmit(self.now) {
                    self.sent += 1;
                    if !lost(self.sent, place, &pdu) {
                        let to = if port == 1 { place + 1 } else { place - 1 };
                        // The last bit of a packet arrives one transmission time after its first.
                        let arrives = self.now
                            + Duration::from_millis(250)
                            + Rate::from_mbps(1).time_for(u64::from(pdu.bytes()));
                        self.flying.insert((arrives, self.sent), (to, 1 - port, pdu));
                    }
                }
                while let Some(fragment) = self.nodes[place].poll_delivery() {
                    self.delivered.push((self.now, fragment.bytes));
                }
            }
            let timeout = self.nodes.iter().map(Node::next_timeout).min().unwrap();
            let arrival = self.flying.first_key_value().map_or(Instant::FAR_FUTURE, |((at, _), _)| *at);
            let next = timeout.min(arrival);
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            if arrival <= self.now
                && let Some((_, (to, port, pdu))) = self.flying.pop_first()
            {
                self.nodes[to].handle(self.now, port, &pdu);
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.delivered.iter().map(|(_, bytes)| u64::from(*bytes)).sum()
    }

    fn source(&self) -> Counters {
        self.nodes[0].counters()
    }
}

/// 1 MB in bundles of 64 KiB over 1 Mbit/s, with an outage from 2 s to 7 s. Three bundles of 0.524 s pass before it. The fourth
/// is cut, and sent again with the other twelve at 7 s. The last one arrives a propagation delay later. Headers add 5 % here.
#[test]
fn an_outage_costs_its_length_and_the_bundle_that_it_cuts() {
    let mut chain = Chain::new(Policy::default(), RouterConfig::default(), &[hop(&[(2, 7)])]);
    chain.nodes[0].write(at(0), FILE);
    chain.run(at(60_000), |_, _, _| false);
    let blocks = f64::from((1 << 16) + 60);
    let segments = (blocks / 1024.0).ceil();
    let one = (blocks + segments * 42.0 + 4.0) * 8.0 / 1e6;
    assert!((one / 0.524 - 1.0).abs() < 0.05, "{one} s a bundle");
    let before = chain.delivered.iter().filter(|(time, _)| *time < at(7000)).count();
    assert_eq!((chain.delivered.len(), before, chain.bytes()), (16, 3, 1 << 20));
    let finish = chain.delivered[15].0.as_secs_f64();
    let expected = 7.0 + 13.0 * one + 0.25;
    assert!((finish - expected).abs() < 0.01, "{finish} s instead of {expected} s");
    // Nothing is lost, and only the bundle cut by the outage is sent again.
    let progress = chain.nodes[0].progress();
    assert!(progress.all_acknowledged && progress.timeouts == 0, "{progress:?}");
    assert!(progress.repeated_packets < 65, "{progress:?}");
    assert_eq!((chain.source().confirmed, chain.source().sent_again), (16, 0));
}

/// The first hop has contact until 10 s, the second from 20 s on: there is never an end-to-end path.
#[test]
fn bundles_cross_hops_that_are_never_up_together() {
    let hops = [hop(&[(10, 60)]), hop(&[(0, 20)])];
    let mut chain = Chain::new(Policy::default(), RouterConfig::default(), &hops);
    chain.nodes[0].write(at(0), FILE);
    chain.run(at(50_000), |_, _, _| false);
    assert_eq!(chain.bytes(), 1 << 20);
    assert!(chain.delivered[0].0 > at(20_000) && chain.delivered[15].0 < at(30_000));
    let router = chain.nodes[1].counters();
    assert_eq!((router.accepted, router.released, router.most_stored_bytes), (16, 16, 16 * (65_536 + 60)));
    // The source stores nothing once the router has custody. The reports arrive with its next contact.
    assert!(chain.source().released == 16 && chain.source().confirmed == 0);
    chain.run(at(70_000), |_, _, _| false);
    assert!(chain.nodes[0].progress().all_acknowledged);
    assert!(chain.source().confirmation_sum > chain.nodes[2].counters().transfer_sum);
}

/// Returns a copy of the hop, with TCP between its ends.
fn over_tcp(hop: Hop) -> Hop {
    let config = bentpipe_tcp::Config { mss: 1024, ..bentpipe_tcp::Config::default() };
    Hop { tcp: Some(Tcp { config: Arc::new(config), header_bytes: 40 }), ..hop }
}

/// The file over TCP with an outage from 2 s to 7 s: one connection per contact; the second sends what the first did not finish.
/// From 7 s on, handshake and slow start from ten segments take at most eight round trips: 10 (2^7 - 1) segments exceed the file.
#[test]
fn over_tcp_each_contact_has_a_connection_and_what_it_cuts_is_sent_anew() {
    let mut chain = Chain::new(Policy::default(), RouterConfig::default(), &[over_tcp(hop(&[(2, 7)]))]);
    chain.nodes[0].write(at(0), FILE);
    chain.run(at(2000), |_, _, _| false);
    let before = chain.sent;
    chain.run(at(6999), |_, _, _| false);
    assert_eq!(chain.sent, before, "nothing leaves without contact");
    chain.run(at(60_000), |_, _, _| false);
    assert_eq!((chain.delivered.len(), chain.bytes()), (16, 1 << 20));
    let early = chain.delivered.iter().filter(|(time, _)| *time < at(2250)).count();
    let late = chain.delivered.iter().filter(|(time, _)| *time >= at(8000)).count();
    assert!(early >= 1 && early + late == 16, "{:?}", chain.delivered);
    assert!(chain.delivered[15].0 <= at(7000 + 8 * 520), "{:?}", chain.delivered);
    let progress = chain.nodes[0].progress();
    assert!(progress.all_acknowledged && progress.repeated_packets == 0, "{progress:?}");
    assert_eq!((chain.source().confirmed, chain.source().sent_again), (16, 0));
}

#[test]
fn over_tcp_bundles_cross_hops_that_lose_and_are_never_up_together() {
    let hops = [over_tcp(hop(&[(60, 200)])), over_tcp(hop(&[(0, 80)]))];
    let mut chain = Chain::new(Policy::default(), RouterConfig::default(), &hops);
    chain.nodes[0].write(at(0), FILE);
    chain.run(at(199_000), |sent, _, _| sent % 200 == 7);
    assert_eq!((chain.bytes(), chain.delivered.len()), (1 << 20, 16));
    assert!(chain.delivered[0].0 > at(80_000));
    assert!(chain.source().released == 16 && chain.source().confirmed == 0);
    chain.run(at(300_000), |sent, _, _| sent % 200 == 7);
    assert!(chain.nodes[0].progress().all_acknowledged, "{:?}", chain.nodes[0].progress());
    assert_eq!(chain.nodes[2].counters().delivered, 16);
}

/// The reverse path is out from 3 s to 4 s, the forward path is not. The listener has closed a connection that the other end
/// considers open.
#[test]
fn over_tcp_who_believes_in_a_connection_that_is_none_is_told() {
    let [there, back] = [hop(&[]), hop(&[(3, 4)])].map(over_tcp);
    let mut chain = Chain::new(Policy::default(), RouterConfig::default(), &[there]);
    let stop = Stop { place: 1, last: 1, router: RouterConfig::default() };
    chain.nodes[1] = Node::new(CONFIG, Policy::default(), stop, [Some(back), None]);
    chain.nodes[0].write(at(0), Message { bytes: 8 << 20, ..FILE });
    chain.run(at(60_000), |_, _, _| false);
    assert_eq!((chain.bytes(), chain.nodes[0].progress().all_acknowledged), (8 << 20, true));
    assert!(chain.delivered.iter().any(|(time, _)| *time > at(5000)), "it was over before");
}

#[test]
fn what_is_lost_of_a_block_is_sent_again_and_no_more() {
    let mut chain = Chain::new(Policy::default(), RouterConfig::default(), &[hop(&[])]);
    chain.nodes[0].write(at(0), FILE);
    // Lost are segments 10 and 20, and a checkpoint: the 65th packet of the first block.
    chain.run(at(60_000), |sent, _, _| matches!(sent, 10 | 20 | 65));
    let progress = chain.nodes[0].progress();
    assert_eq!((chain.bytes(), progress.all_acknowledged), (1 << 20, true));
    // First the checkpoint's report is overdue, then the two segments are reported missing.
    assert_eq!((progress.repeated_packets, progress.timeouts), (3, 1));
}

#[test]
fn lost_signals_and_reports_are_given_again() {
    let mut chain = Chain::new(Policy::default(), RouterConfig::default(), &[hop(&[]), hop(&[])]);
    chain.nodes[0].write(at(0), FILE);
    // Half of all packets without payload are lost.
    chain.run(at(200_000), |sent, _, pdu| !pdu.is_data() && sent.is_multiple_of(2));
    assert_eq!(chain.bytes(), 1 << 20);
    assert_eq!(chain.delivered.len(), 16, "each once");
    assert!(chain.nodes[0].progress().all_acknowledged);
}

#[test]
fn over_datagrams_only_custody_repairs() {
    let policy =
        |custody| Policy { convergence: Convergence::Udp, custody, report: false, ..Policy::default() };
    let send = |custody| {
        let mut chain = Chain::new(policy(custody), RouterConfig::default(), &[hop(&[])]);
        chain.nodes[0].write(at(0), FILE);
        chain.run(at(100_000), |sent, _, _| sent == 100);
        (chain.bytes() >> 16, chain.source().sent_again, chain.nodes[0].progress().all_acknowledged)
    };
    assert_eq!(send(false), (15, 0, true), "nobody knows");
    assert_eq!(send(true), (16, 1, true));
}

#[test]
fn a_full_router_refuses_custody_and_the_custodian_tries_again() {
    let router = RouterConfig { store_bytes: 300_000, ..RouterConfig::default() };
    let mut chain = Chain::new(Policy::default(), router, &[hop(&[]), hop(&[(0, 20)])]);
    chain.nodes[0].write(at(0), FILE);
    chain.run(at(120_000), |_, _, _| false);
    let router = chain.nodes[1].counters();
    assert!(router.refused > 0 && router.most_stored_bytes <= 300_000, "{router:?}");
    assert_eq!((chain.bytes(), chain.nodes[0].progress().all_acknowledged), (1 << 20, true));
}

#[test]
fn without_custody_a_full_router_drops_what_ends_first() {
    let policy = Policy { custody: false, ..Policy::default() };
    let router = RouterConfig { store_bytes: 300_000, custody: false };
    let mut chain = Chain::new(policy, router, &[hop(&[]), hop(&[(0, 20)])]);
    chain.nodes[0].write(at(0), FILE);
    chain.run(at(120_000), |_, _, _| false);
    // Four of sixteen find storage; all were created at the same time with equal priority.
    assert_eq!((chain.bytes() >> 16, chain.nodes[1].counters().dropped), (4, 12));
    let progress = chain.nodes[0].progress();
    assert_eq!((progress.all_acknowledged, progress.incomplete), (false, Some("expired")));
}

#[test]
fn a_router_that_takes_no_custody_passes_bundles_and_signals_on() {
    let router = RouterConfig { custody: false, ..RouterConfig::default() };
    let mut chain = Chain::new(Policy::default(), router, &[hop(&[]), hop(&[(3, 8)])]);
    chain.nodes[0].write(at(0), FILE);
    chain.run(at(100_000), |_, _, _| false);
    assert_eq!((chain.bytes(), chain.nodes[1].counters().accepted), (1 << 20, 0));
    assert!(chain.nodes[0].progress().all_acknowledged);
}

#[test]
fn what_is_too_old_is_deleted_and_its_source_told() {
    let policy = Policy { lifetime: Duration::from_secs(15), ..Policy::default() };
    let mut chain = Chain::new(policy, RouterConfig::default(), &[hop(&[]), hop(&[(0, 60)])]);
    chain.nodes[0].write(at(0), FILE);
    chain.run(at(14_000), |_, _, _| false);
    assert_eq!(chain.nodes[0].progress().incomplete, None);
    chain.run(at(20_000), |_, _, _| false);
    assert_eq!((chain.bytes(), chain.nodes[1].counters().expired), (0, 16));
    assert_eq!(chain.nodes[0].progress().incomplete, Some("expired"));
    assert_eq!(chain.nodes[0].next_timeout(), Instant::FAR_FUTURE);
}

#[test]
fn the_source_keeps_no_more_than_it_may() {
    let policy = Policy { store_bytes: 200_000, ..Policy::default() };
    let mut chain = Chain::new(policy, RouterConfig::default(), &[hop(&[])]);
    chain.nodes[0].write(at(0), FILE);
    assert_eq!(chain.source().made, 3);
    chain.run(at(60_000), |_, _, _| false);
    assert!(chain.source().most_stored_bytes <= 200_000);
    assert_eq!(chain.bytes(), 1 << 20);
}
