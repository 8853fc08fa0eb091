//! Schemes that need a node on the path: Snoop, XCP, P-XCP, BA-TCP, DVegas, SCPS-TP and PBS, each with sender, receiver and router.

mod common;

use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_cc::{Algorithm, pbs, scps_tp};
use bentpipe_middlebox::{FuzzyConfig, LinkNoticesConfig, MiddleboxConfig, Tells, Told};
use bentpipe_net::{LinkConfig, LossConfig, LossModel, Outage, OutageEffect, Outages};
use bentpipe_outcome::{Outcome, Series};
use bentpipe_scenario::{Draft, NodeKind, Scenario, Traffic, builtin};
use bentpipe_sim::{RunOptions, run};
use bentpipe_tcp::{Config, EcnMode, Recovery};
use common::{Dumbbell, drop_tail, flows, ms, paper_tcp};

fn middlebox(name: &str) -> NodeKind {
    NodeKind::Middlebox(MiddleboxConfig::from_name(name).expect("a middlebox"))
}

fn verified(scenario: &Scenario) -> Outcome {
    let result = run(scenario, &RunOptions { verify: true, ..RunOptions::default() }).expect("a world");
    assert_eq!(result.violations, [""; 0]);
    result.outcome
}

#[test]
fn snoop_hides_the_losses_of_the_last_hop_from_the_sender() {
    let with = builtin("wired-snoop").expect("it is built in");
    let mut without = with.clone();
    without.nodes[1].kind = NodeKind::Router;
    let (with, without) = (verified(&with), verified(&without));
    let gain = with.totals.goodput_bps / without.totals.goodput_bps;
    assert!(gain > 1.5, "{gain}");
    // 2 Mbit/s, of which 960 of 1000 bytes are payload and two packets in a hundred are lost.
    let possible = 2e6 * 0.96 * 0.98;
    assert!(with.totals.goodput_bps > 0.9 * possible, "{}", with.totals.goodput_bps);
    let [with, without] = [&with.flows[0], &without.flows[0]];
    assert!(5 * with.retransmitted_segments < without.retransmitted_segments, "{with:?} {without:?}");
}

/// Only the agent uses its copies: when it dies, the ends continue as without it.
#[test]
fn a_transfer_outlives_its_snoop_agent() {
    let world = |dies_at: &str| {
        let mut draft = Draft::load("wired-snoop").expect("it is built in");
        draft.set(&format!("node.station.dies-at={dies_at}")).expect("a well-formed change");
        draft.scenario().expect("a world")
    };
    let goodput = |dies_at| verified(&world(dies_at)).totals.goodput_bps;
    let [lives, dies, never] = ["never", "60 s", "0 s"].map(goodput);
    let half = f64::midpoint(lives, never);
    assert!((dies / half - 1.0).abs() < 0.15, "{dies} is neither {lives} nor {never}");
}

/// WTCP fills a last hop that loses one packet in twenty, and the sender sends nothing again; without selective acknowledgements, where a hole may wait for
/// the station's timer, hardly anything.
#[test]
fn wtcp_repairs_the_last_hop_and_keeps_its_losses_from_the_sender() {
    let world = |kind: &str, cc: &str| {
        let mut draft = Draft::load("wired-snoop").expect("it is built in");
        let node = format!("node.station.kind={kind}");
        for change in [&node, "tcp.timestamps=true", "link.air.loss.rate=0.05"] {
            draft.set(change).expect("a well-formed change");
        }
        draft.set_cc(cc).expect("it is registered");
        verified(&draft.scenario().expect("a world"))
    };
    let possible = 2e6 * 0.96 * 0.95;
    for (cc, share, most_again) in [("sack", 0.9, 0), ("newreno", 0.7, 20)] {
        let [wtcp, none] = ["wtcp", "router"].map(|kind| world(kind, cc));
        assert!(wtcp.totals.goodput_bps > share * possible, "{cc}: {}", wtcp.totals.goodput_bps);
        assert!(wtcp.totals.goodput_bps > 2.0 * none.totals.goodput_bps, "{cc}: {}", none.totals.goodput_bps);
        assert!(wtcp.flows[0].retransmitted_segments <= most_again, "{cc}: {:?}", wtcp.flows[0]);
    }
}

/// With a receiver without XCP the sender is New Reno, even over XCP routers; a proxy in front of the receiver supports XCP.
#[test]
fn xcp_finds_out_in_the_handshake_whether_the_far_end_knows_it() {
    let fair = |change: fn(&mut Scenario)| {
        let mut scenario = shared(middlebox("xcp"), "xcp", 0.0);
        change(&mut scenario);
        verified(&scenario)
    };
    let told = |outcome: &Outcome| outcome.nodes.iter().flat_map(|node| node.counters.values()).sum::<u64>();
    let [known, plain] = [fair(|_| {}), fair(|scenario| scenario.flows[0].plain_receiver = true)];
    let drops = |outcome: &Outcome| outcome.links.iter().map(|link| link.dropped_by_queue).sum::<u64>();
    assert!(told(&known) > 1000 && drops(&known) == 0, "{}", told(&known));
    assert!(drops(&plain) > 100, "{}", drops(&plain));
}

/// A long queue on its way to the receiver: the mark that goes back at once keeps it from overflowing, as the one through the receiver does, and less of it
/// waits.
#[test]
fn fuzzy_marks_keep_a_queue_from_overflowing() {
    let outcome = |tells: Option<Tells>| {
        let config = tells.map(|tells| FuzzyConfig { room: 350, tells, ..FuzzyConfig::default() });
        let kind =
            config.map_or(NodeKind::Router, |config| NodeKind::Middlebox(MiddleboxConfig::Fuzzy(config)));
        let mut scenario = shared(kind, "reno", 0.0);
        let sender = Config { ecn: EcnMode::Classic, ..Config::clone(&scenario.flows[0].sender) };
        scenario.flows[0].sender = Arc::new(sender.clone());
        scenario.flows[0].receiver = Arc::new(sender);
        verified(&scenario)
    };
    let drops = |outcome: &Outcome| outcome.links.iter().map(|link| link.dropped_by_queue).sum::<u64>();
    let none = outcome(None);
    for tells in [Tells::Receiver, Tells::Sender, Tells::Graded] {
        let told = outcome(Some(tells));
        assert!(drops(&told) < drops(&none) / 2, "{tells:?}: {} and {}", drops(&told), drops(&none));
        assert!(
            told.totals.goodput_bps > 0.6 * none.totals.goodput_bps,
            "{tells:?}: {}",
            told.totals.goodput_bps
        );
    }
}

/// 10 Mbit/s over a GEO satellite behind a node of `kind`, for flows of this algorithm.
fn shared(kind: NodeKind, cc: &str, loss: f64) -> Scenario {
    let tcp =
        paper_tcp(2_000).with(|config| config.sender.cc = Algorithm::from_name(cc).expect("registered"));
    let mut bulk = flows("bulk", 4, Traffic::Bulk, tcp);
    bulk.stagger = Duration::from_secs(2);
    let dumbbell = Dumbbell::geo(4, (Rate::from_mbps(100), Rate::from_mbps(10)), 350).with_loss(loss);
    let mut scenario = dumbbell.scenario(Duration::from_secs(60), vec![bulk]);
    scenario.nodes[1].kind = kind;
    scenario
}

fn recorded(scenario: &Scenario) -> (Outcome, Series) {
    let result = run(scenario, &RunOptions { record: true, ..RunOptions::default() }).expect("a world");
    (result.outcome, result.series.expect("recorded"))
}

/// Goodput after `from` seconds, in bit/s.
fn late_goodput(scenario: &Scenario, from: u64) -> f64 {
    let early = Scenario { duration: Duration::from_secs(from), ..scenario.clone() };
    let bytes = |scenario: &Scenario| {
        let outcome = run(scenario, &RunOptions::default()).expect("a world").outcome;
        outcome.flows.iter().map(|flow| flow.delivered_bytes).sum::<u64>() as f64
    };
    (bytes(scenario) - bytes(&early)) * 8.0 / (scenario.duration.as_secs_f64() - from as f64)
}

/// The paper's claims: the link is full within a few round trips, nothing is dropped, the queue stays short, and all get the same.
#[test]
fn xcp_fills_the_link_fairly_and_without_drops() {
    let scenario = shared(middlebox("xcp"), "xcp", 0.0);
    let (outcome, series) = recorded(&scenario);
    assert_eq!(outcome.links.iter().map(|link| link.dropped_by_queue).sum::<u64>(), 0);
    assert!(outcome.totals.jain_index > 0.98, "{}", outcome.totals.jain_index);
    // Ten round trips after the last start.
    let share = late_goodput(&scenario, 8) / (10e6 * 0.96);
    assert!(share > 0.9, "{share}");
    let satellite =
        series.links.iter().find(|link| link.name == "satellite forward").expect("the bottleneck");
    let late = satellite.queue_packets.iter().filter(|(at, _)| *at > 20.0);
    let longest = late.map(|(_, packets)| *packets).fold(0.0, f64::max);
    assert!(longest < 100.0, "{longest}");
}

/// XCP halves for every loss and climbs again within round trips; P-XCP does not halve.
#[test]
fn p_xcp_does_not_take_noise_for_congestion() {
    let goodput = |kind, cc| late_goodput(&shared(middlebox(kind), cc, 0.02), 10);
    let (plain, improved) = (goodput("xcp", "xcp"), goodput("p-xcp", "p-xcp"));
    assert!(improved > 1.3 * plain, "{improved} against {plain}");
    assert!(improved > 0.65 * 10e6 * 0.96 * 0.98, "{improved}");
}

/// The receiver's window is the share times the length of the path: the link is used as much as routers give away (95 % of the rate, which
/// the receiver takes as payload), and nobody waits.
#[test]
fn ba_tcp_takes_what_routers_give_and_leaves_the_queue_empty() {
    let scenario = shared(middlebox("ba-tcp"), "ba-tcp", 0.0);
    let outcome = verified(&scenario);
    let late = late_goodput(&scenario, 15) / (10e6 * 0.96);
    assert!((0.85..=1.0).contains(&late), "{late}");
    assert!(outcome.totals.jain_index > 0.95, "{}", outcome.totals.jain_index);
    assert_eq!(outcome.links.iter().map(|link| link.dropped_by_queue).sum::<u64>(), 0);
    // Without such a router it is Reno.
    let unaided = late_goodput(&shared(NodeKind::Router, "ba-tcp", 1e-3), 15);
    let aided = late_goodput(&shared(middlebox("ba-tcp"), "ba-tcp", 1e-3), 15);
    assert!(aided > 1.5 * unaided, "{aided} against {unaided}");
}

/// The queue at the sender reports within a frame; link errors do not count as congestion.
#[test]
fn dvegas_beside_its_queue_does_not_overflow_it_and_ignores_noise() {
    let beside = |kind: &str, loss: f64| {
        let mut scenario = shared(middlebox(kind), "dvegas", loss);
        scenario.links[0].forward = LinkConfig::new(Rate::from_mbps(100), ms(0), drop_tail(1_000));
        scenario.links[0].reverse = scenario.links[0].forward.clone();
        scenario.links[1].forward.queue = drop_tail(50);
        scenario
    };
    let outcome = verified(&beside("dvegas", 1e-3));
    let mut plain = beside("dvegas", 1e-3);
    plain.nodes[1].kind = NodeKind::Router;
    let unaided = verified(&plain);
    assert!(outcome.nodes[0].counters["signals"] > 1_000, "{:?}", outcome.nodes);
    assert!(
        outcome.totals.goodput_bps > 1.3 * unaided.totals.goodput_bps,
        "{} against {}",
        outcome.totals.goodput_bps,
        unaided.totals.goodput_bps
    );
}

/// Two Mbit/s over a GEO satellite for one flow, with these kinds of nodes before and behind the satellite.
fn told(cc: Algorithm, kinds: [NodeKind; 2], satellite: impl FnOnce(&mut LinkConfig)) -> Scenario {
    let tcp = paper_tcp(300).with(|config| config.sender.cc = cc);
    let bulk = flows("bulk", 1, Traffic::Bulk, tcp);
    let dumbbell = Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(2)), 300);
    let mut scenario = dumbbell.scenario(Duration::from_secs(100), vec![bulk]);
    satellite(&mut scenario.links[1].forward);
    let [before, behind] = kinds;
    (scenario.nodes[1].kind, scenario.nodes[2].kind) = (before, behind);
    scenario
}

fn scps(config: scps_tp::Config) -> Algorithm {
    Algorithm::ScpsTp(config)
}

/// A tunnel of 20 s in which everything is lost: the sender that is told waits with its window, and is back within round trips. One
/// that is not has its timer doubled, up to 32 s, and starts again from one segment.
#[test]
fn scps_tp_keeps_its_window_through_an_outage_that_it_is_told_of() {
    let (from, to) = (Instant::ZERO + Duration::from_secs(40), Instant::ZERO + Duration::from_secs(60));
    let tunnel = |link: &mut LinkConfig| {
        link.outages = Outages { intervals: vec![Outage { from, to }], effect: OutageEffect::Blind };
    };
    let config = scps_tp::Config { congestion: scps_tp::Congestion::VanJacobson, ..Default::default() };
    let run = |before| {
        let scenario = told(scps(config), [before, NodeKind::Router], tunnel);
        let (outcome, series) = recorded(&scenario);
        let sent_after = series.flows[0].acked.iter().filter(|(at, _)| *at > 64.0).count();
        assert!(sent_after > 0);
        let window = |at: f64| series.flows[0].cwnd.iter().rfind(|point| point.0 <= at).map_or(0.0, |p| p.1);
        (outcome, window(39.9), window(64.0), late_goodput(&scenario, 64))
    };
    let (told, before, after, late_bps) = run(middlebox("link-notices"));
    assert!(told.nodes[0].counters["outages_told"] > 0, "{:?}", told.nodes);
    assert!(after > 0.9 * before, "{before} segments before, {after} after");
    // Data in flight at the start of the outage counts as lost once.
    assert!(told.flows[0].timeouts <= 1, "{:?}", told.flows[0]);
    assert!(late_bps > 0.9 * 0.96 * 2e6, "{late_bps}");
    let (plain, ..) = run(NodeKind::Router);
    assert!(plain.flows[0].timeouts >= 4, "{:?}", plain.flows[0]);
}

/// One packet in a thousand is lost to errors: Reno's law gets sqrt(3/2) / (RTT sqrt p), 70 packets a second, 28 % of the link. Who is told of
/// every error keeps the window. What is left is the receiver's: its window of 300 packets is used up 1.2 s after a hole opens, the hole is
/// filled after 2.4 s, and the queue feeds the link for 0.65 s of that, so that each of some 22 errors costs 0.55 s, and slow start with two
/// ACKs in a round trip costs 7 s: of 100 s 81 are left. PBS goes on asking about those whose notification comes late.
#[test]
fn errors_that_the_ground_station_tells_of_cost_no_window() {
    let config = scps_tp::Config { congestion: scps_tp::Congestion::VanJacobson, ..Default::default() };
    let noisy = |link: &mut LinkConfig| link.loss = LossConfig::data(LossModel::Packet { probability: 1e-3 });
    let station = |errors_to| {
        let config = LinkNoticesConfig { errors_to, ..LinkNoticesConfig::default() };
        NodeKind::Middlebox(MiddleboxConfig::LinkNotices(config))
    };
    let goodput = |cc: &Algorithm, behind| {
        verified(&told(cc.clone(), [NodeKind::Router, behind], noisy)).totals.goodput_bps
    };
    for (cc, part) in [(scps(config), 0.81), (Algorithm::Pbs(pbs::Config::default()), 0.75)] {
        let plain = goodput(&cc, NodeKind::Router);
        for errors_to in [Told::Sender, Told::Receiver] {
            let told = goodput(&cc, station(errors_to));
            let enough = told > part * 0.96 * 2e6 && told > 1.1 * plain;
            assert!(enough, "{}: {told} told, {plain} not", cc.name());
        }
    }
}

/// At half a round trip between two ACKs of 40 bytes, 1.2 kbit/s carry the acknowledgements of 5 Mbit/s; one for each of 625 packets a second would be
/// 200 kbit/s.
#[test]
fn scps_tp_fills_a_link_whose_way_back_is_a_thousandth_of_it_though_packets_are_lost() {
    let run = |recovery| {
        let law = scps_tp::Config {
            congestion: scps_tp::Congestion::RateOnly,
            rate_bps: 4.7e6,
            ..scps_tp::Config::default()
        };
        let tcp = paper_tcp(2_000).with(|config| {
            config.sender.cc = scps(law);
            config.sender.recovery = recovery;
        });
        let bulk = flows("bulk", 1, Traffic::Bulk, tcp);
        let dumbbell = Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(5)), 100).with_loss(1e-3);
        let mut scenario = dumbbell.scenario(Duration::from_secs(100), vec![bulk]);
        scenario.links[1].reverse = LinkConfig::new(Rate::from_bps(5_000), ms(273), drop_tail(20));
        verified(&scenario)
    };
    let (snack, sack) = (run(Recovery::Snack), run(Recovery::Sack));
    let possible = 4.7e6 * 0.999;
    assert!(snack.totals.goodput_bps > 0.95 * possible, "{}", snack.totals.goodput_bps);
    let acks = |outcome: &Outcome| {
        let back =
            outcome.links.iter().find(|link| (&*link.name, link.direction) == ("satellite", "reverse"));
        back.map_or(0, |link| link.delivered_packets + link.dropped_by_queue)
    };
    let lost = snack.links.iter().map(|link| link.dropped_by_error).sum::<u64>();
    // One each 275 ms, and one for each loss.
    assert!(acks(&snack) < 365 + 2 * lost, "{} for {lost} losses", acks(&snack));
    assert!(acks(&sack) > 100 * acks(&snack));
    let flow = &snack.flows[0];
    assert!(flow.timeouts == 0 && flow.retransmitted_segments < 2 * lost, "{lost} losses: {flow:?}");
}

/// A stream that shall not wait for longer than a second: of two per cent of losses those are given up whose repair is lost as well, and the checker sees every
/// other byte where it belongs.
#[test]
fn best_effort_gives_up_little_and_counts_it() {
    let run = |best_effort| {
        let law = scps_tp::Config {
            default_cause: scps_tp::DefaultCause::Corruption,
            congestion: scps_tp::Congestion::VanJacobson,
            ..scps_tp::Config::default()
        };
        let tcp = paper_tcp(300).with(|config| {
            config.sender.cc = scps(law);
            config.sender.recovery = Recovery::Snack;
            config.receiver.best_effort = best_effort;
        });
        let bulk = flows("bulk", 1, Traffic::Bulk, tcp);
        let dumbbell = Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(5)), 300).with_loss(2e-2);
        verified(&dumbbell.scenario(Duration::from_secs(60), vec![bulk])).flows.remove(0)
    };
    let (patient, hurried) = (run(None), run(Some(ms(1000))));
    assert_eq!(patient.missing_bytes, 0);
    // A repair takes a round trip of 550 ms and a pace of 275 ms at most; one that is lost as well takes longer than a second.
    let missing = hurried.missing_bytes as f64 / hurried.delivered_bytes as f64;
    assert!(missing > 0.0 && missing < 3.0 * 2e-2 * 2e-2, "{missing}");
}
