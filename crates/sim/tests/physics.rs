//! Bounds that physics, arithmetic and well-known models give: whatever the implementation, these hold.

mod common;

use std::sync::Arc;

use bentpipe_base::{Duration, Rate};
use bentpipe_net::{Limit, LinkConfig, LossConfig, LossModel, QueueConfig};
use bentpipe_outcome::{Outcome, Series};
use bentpipe_scenario::{FlowGroup, Idle, Scenario, Traffic};
use bentpipe_sim::{RunOptions, run};
use bentpipe_tcp::{InitialWindow, ReceiveWindow, Recovery};
use common::{Dumbbell, drop_tail, flows, hosts, links, ms, paper_tcp};

/// A packet on the wire and its payload.
const WIRE: f64 = 1000.0;
const PAYLOAD: f64 = 960.0;

fn verified(scenario: &Scenario) -> Outcome {
    let result = run(scenario, &RunOptions { verify: true, ..RunOptions::default() }).expect("a world");
    assert_eq!(result.violations, [""; 0]);
    result.outcome
}

/// Two hosts and a link.
fn pair(link: LinkConfig, duration: Duration, flows: Vec<FlowGroup>) -> Scenario {
    Scenario {
        nodes: vec![hosts("senders", 1), hosts("receivers", 1)],
        links: vec![links("satellite", ("senders", "receivers"), link)],
        flows,
        ..Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(10)), 50).scenario(duration, vec![])
    }
}

fn geo_link(buffer: u32) -> LinkConfig {
    LinkConfig::new(Rate::from_mbps(10), ms(275), drop_tail(buffer))
}

#[test]
fn a_lossless_bulk_flow_fills_the_link() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Rack] {
        // A window of twice the BDP, and queue space for all of it.
        let tcp = paper_tcp(2_000).with(|config| config.sender.recovery = recovery);
        let world = |secs| {
            pair(
                geo_link(5_000),
                Duration::from_secs(secs),
                vec![flows("bulk", 1, Traffic::Bulk, tcp.clone())],
            )
        };
        let (early, late) = (verified(&world(20)), verified(&world(40)));
        let bytes = late.flows[0].delivered_bytes - early.flows[0].delivered_bytes;
        let share = bytes as f64 * 8.0 / 20.0 / (10e6 * PAYLOAD / WIRE);
        assert!((0.99..=1.0).contains(&share), "{recovery:?}: {share}");
        assert_eq!(late.flows[0].retransmitted_segments, 0);
        // All packets but the SYN carry data.
        assert_eq!(late.links[0].delivered_packets, late.totals.data_packets_delivered + 1);
    }
}

#[test]
fn a_window_that_is_too_small_limits_to_one_window_a_round_trip() {
    let tcp = paper_tcp(64);
    let world = pair(geo_link(50), Duration::from_secs(100), vec![flows("bulk", 1, Traffic::Bulk, tcp)]);
    let outcome = verified(&world);
    // 550 ms, a data packet of 800 us and an ACK of 32 us.
    let expected = 64.0 / 0.550_832;
    let measured = outcome.totals.goodput_segments_per_s;
    assert!((0.96 * expected..=expected).contains(&measured), "{measured} against {expected}");
    let srtt = outcome.flows[0].srtt_ms.expect("round trips were measured");
    assert!((srtt - 550.832).abs() < 1.0, "{srtt}");
}

/// Mathis, Semke, Mahdavi, Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm", ACM Computer
/// Communication Review 27(3), 1997: the rate is sqrt(3/2) / (RTT sqrt p) with an ACK for each segment.
#[test]
fn reno_under_random_loss_follows_the_square_root_law() {
    for loss in [1e-4, 4e-4, 1.6e-3, 6.4e-3] {
        let mut link = LinkConfig::new(Rate::from_mbps(200), ms(50), drop_tail(100_000));
        link.loss = LossConfig::data(LossModel::Packet { probability: loss });
        let bulk = flows("bulk", 1, Traffic::Bulk, paper_tcp(20_000));
        let world = pair(link, Duration::from_secs(1_000), vec![bulk]);
        let outcome = run(&world, &RunOptions::default()).expect("a world").outcome;
        let expected = libm::sqrt(1.5 / loss) / 0.100;
        let ratio = outcome.totals.goodput_segments_per_s / expected;
        assert!((0.8..1.2).contains(&ratio), "at {loss}: {ratio} of the law");
    }
}

/// Akyildiz, Morabito, Palazzo, "TCP-Peach", IEEE/ACM Transactions on Networking 9(3), 2001, equation (1): slow start needs
/// RTT (1 + log2(B RTT / l)) to reach the bandwidth B with segments of l bits.
#[test]
fn slow_start_takes_as_long_as_the_peach_paper_says() {
    for rate_mbps in [1, 10, 50] {
        let link = LinkConfig::new(Rate::from_mbps(rate_mbps), ms(275), drop_tail(100_000));
        let tcp = paper_tcp(20_000).with(|config| config.sender.initial_window = InitialWindow::Segments(1));
        let bulk = flows("bulk", 1, Traffic::Bulk, tcp);
        let options = RunOptions { record: true, ..RunOptions::default() };
        let result = run(&pair(link, Duration::from_secs(20), vec![bulk]), &options).expect("a world");
        let path = rate_mbps as f64 * 1e6 * 0.55 / (8.0 * WIRE);
        let cwnd = &result.series.expect("it was recorded").flows[0].cwnd;
        let reached = cwnd.iter().find(|(_, cwnd)| *cwnd >= path).expect("the window reaches the path").0;
        // The handshake is a round trip of its own.
        let measured = reached - 0.55;
        let expected = 0.55 * (1.0 + libm::log2(path));
        assert!((measured - expected).abs() <= 0.56, "{rate_mbps} Mbit/s: {measured} against {expected}");
    }
}

#[test]
fn a_file_takes_no_less_than_its_bytes_and_round_trips() {
    let file = flows("file", 1, Traffic::File { bytes: 960_000 }, paper_tcp(10_000));
    let outcome = verified(&pair(geo_link(5_000), Duration::from_secs(100), vec![file]));
    let flow = &outcome.flows[0];
    assert_eq!((flow.delivered_bytes, flow.sent_segments, flow.aborted), (960_000, 1_000, None));
    let seconds = flow.completion_s.expect("it ends");
    // Windows of 2, 4 ... 512 segments and the rest: 9 full round trips and part of a tenth after the handshake.
    assert!((0.55 * 10.0..0.55 * 11.5).contains(&seconds), "{seconds}");
}

#[test]
fn pages_on_fresh_connections_open_one_for_each() {
    let page = |fresh_connection| {
        let idle = Idle::Fixed(Duration::from_secs(1));
        let traffic = Traffic::Pages { bytes: 9_600, idle, fresh_connection };
        verified(&pair(geo_link(50), Duration::from_secs(200), vec![flows("web", 2, traffic, paper_tcp(64))]))
    };
    let (fresh, same) = (page(true), page(false));
    for outcome in [&fresh, &same] {
        let flow = &outcome.flows[0];
        // A page is begun every few round trips and a second; one may be on its way at the end.
        let pages = flow.delivered_bytes as f64 / 9_600.0;
        assert!((50.0..110.0).contains(&pages), "{pages}");
        assert_eq!(flow.aborted, None);
    }
    let seconds = |outcome: &Outcome| outcome.flows[0].completion_s.expect("pages end");
    // Handshake and windows of 2, 4, 4: four round trips.
    assert!((2.2..2.3).contains(&seconds(&fresh)), "{}", seconds(&fresh));
    assert!(seconds(&same) < seconds(&fresh));
}

#[test]
fn constant_bit_rate_is_what_it_says_and_loses_what_does_not_fit() {
    let cbr =
        |mbps| Traffic::Cbr { rate: Rate::from_mbps(mbps), packet_bytes: 1000, spacing: Default::default() };
    let run_at = |mbps| {
        let flow = flows("cbr", 1, cbr(mbps), paper_tcp(64));
        verified(&pair(geo_link(50), Duration::from_secs(100), vec![flow]))
    };
    let below = run_at(5);
    assert_eq!(below.links[0].dropped_by_queue, 0);
    // Data sent in the last 275 ms is still in flight.
    let share = below.totals.goodput_bps / (5e6 * PAYLOAD / WIRE);
    assert!((0.997..=1.0).contains(&share), "{share}");
    let above = run_at(20);
    let share = above.totals.goodput_bps / (10e6 * PAYLOAD / WIRE);
    assert!((0.995..=1.0).contains(&share), "{share}");
    assert!((above.links[0].utilisation - 1.0).abs() < 1e-3);
    let sent = above.flows[0].sent_segments as f64;
    assert!((above.links[0].dropped_by_queue as f64 / sent - 0.5).abs() < 0.01);
}

fn busy_world() -> Scenario {
    let mut bulk = flows("bulk", 5, Traffic::Bulk, paper_tcp(64));
    bulk.stagger = Duration::from_secs(1);
    let idle = Idle::Exponential(Duration::from_secs(2));
    let web = flows("web", 3, Traffic::Pages { bytes: 19_200, idle, fresh_connection: true }, paper_tcp(64));
    let rates = (Rate::from_mbps(10), Rate::from_mbps(10));
    let mut scenario =
        Dumbbell::geo(5, rates, 50).with_loss(1e-3).scenario(Duration::from_secs(60), vec![bulk, web]);
    scenario.links[1].forward.queue =
        QueueConfig::Red(bentpipe_net::RedConfig { limit: Limit::Packets(50), ..Default::default() });
    scenario
}

fn json(scenario: &Scenario, options: RunOptions<'_>) -> String {
    let mut outcome = run(scenario, &options).expect("a world").outcome;
    outcome.wall_s = 0.0;
    serde_json::to_string_pretty(&outcome).expect("an outcome is plain data")
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_does_not() {
    let scenario = busy_world();
    let first = json(&scenario, RunOptions::default());
    assert_eq!(first, json(&scenario, RunOptions::default()));
    assert_ne!(first, json(&scenario, RunOptions { seed: Some(2), ..RunOptions::default() }));
}

#[test]
fn watching_changes_nothing() {
    let scenario = busy_world();
    let watched = RunOptions { record: true, verify: true, ..RunOptions::default() };
    assert_eq!(json(&scenario, RunOptions::default()), json(&scenario, watched));
}

#[test]
fn a_part_elsewhere_changes_nothing_here() {
    let alone = busy_world();
    let mut more = alone.clone();
    more.nodes.splice(0..0, [hosts("c", 2), hosts("d", 2)]);
    let mut elsewhere = links("elsewhere", ("c", "d"), geo_link(20));
    elsewhere.forward.loss = LossConfig::all(LossModel::Packet { probability: 0.01 });
    more.links.insert(0, elsewhere);
    let other = flows("other", 3, Traffic::Bulk, paper_tcp(64));
    more.flows.insert(0, FlowGroup { from: "c".to_owned(), to: "d".to_owned(), ..other });
    let outcome = |scenario| run(scenario, &RunOptions::default()).expect("a world").outcome;
    let (alone, more) = (outcome(&alone), outcome(&more));
    assert_eq!(alone.flows, more.flows[3..]);
    assert_eq!(alone.links, more.links[4..]);
}

#[test]
fn series_are_bounded_and_agree_with_the_outcome() {
    let mut scenario = busy_world();
    scenario.duration = Duration::from_secs(600);
    let options = RunOptions { record: true, ..RunOptions::default() };
    let result = run(&scenario, &options).expect("a world");
    let Series { flows, links } = result.series.expect("it was recorded");
    assert_eq!(links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>(), ["satellite forward"]);
    assert!(!links[0].drops.is_empty() && links[0].queue_packets.len() < 10_000);
    for (series, flow) in flows.iter().zip(&result.outcome.flows) {
        assert_eq!(series.name, flow.name);
        let curves = [&series.cwnd, &series.sent, &series.acked, &series.srtt_ms, &series.retransmitted];
        assert!(curves.iter().all(|curve| curve.len() < 10_000 && curve.is_sorted_by_key(|point| point.0)));
        let acked = series.acked.last().expect("something was acknowledged").1;
        let delivered = flow.delivered_bytes as f64 / PAYLOAD;
        assert!((acked - delivered).abs() < 70.0, "{}: {acked} against {delivered}", flow.name);
    }
}

#[test]
fn the_receive_window_may_be_smaller_than_a_segment() {
    let tcp = paper_tcp(64);
    let receiver = tcp.clone().with(|config| config.receiver.receive_window = ReceiveWindow::Fixed(500));
    let mut file = flows("file", 1, Traffic::File { bytes: 10_000 }, tcp);
    file.receiver = Arc::new(receiver);
    let outcome = verified(&pair(geo_link(50), Duration::from_secs(1_000), vec![file]));
    assert_eq!(outcome.flows[0].delivered_bytes, 10_000);
}
