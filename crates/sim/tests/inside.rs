//! Middleboxes: each has its documented effect on its flows, and no other.

mod common;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_middlebox::{AckDecimatorConfig, MiddleboxConfig};
use bentpipe_net::{LinkConfig, Outage, OutageEffect};
use bentpipe_outcome::Outcome;
use bentpipe_scenario::{NodeKind, Routing, Scenario, Traffic};
use bentpipe_sim::{RunOptions, run};
use common::{Dumbbell, drop_tail, flows, links, ms, paper_tcp, router};

fn verified(scenario: &Scenario) -> Outcome {
    let result = run(scenario, &RunOptions { verify: true, ..RunOptions::default() }).expect("a world");
    assert_eq!(result.violations, [""; 0]);
    result.outcome
}

/// A download over 4 Mbit/s with a way back of `back`, and `kind` at the node before that.
fn narrow_way_back(back: Rate, kind: NodeKind) -> Outcome {
    let dumbbell = Dumbbell::geo(1, (Rate::from_mbps(4), Rate::from_mbps(4)), 400);
    let bulk = flows("bulk", 1, Traffic::Bulk, paper_tcp(400));
    let mut scenario = dumbbell.scenario(Duration::from_secs(40), vec![bulk]);
    scenario.links[1].reverse = LinkConfig::new(back, ms(273), drop_tail(200));
    scenario.nodes[2].kind = kind;
    verified(&scenario)
}

/// An ACK of 40 bytes for each packet of 1000: a way back of 1:100 carries one for four packets. The others wait in its queue, so
/// that 200 of them make the round trip 1.6 s longer and the window too small; with a filter none waits.
#[test]
fn filtered_acks_fill_a_link_whose_way_back_is_a_hundredth_of_it() {
    let back = Rate::from_bps(40_000);
    let plain = narrow_way_back(back, NodeKind::Router);
    let filtered = narrow_way_back(back, NodeKind::Middlebox(MiddleboxConfig::AckFilter));
    let srtt = |outcome: &Outcome| outcome.flows[0].srtt_ms.expect("round trips were measured");
    assert!(srtt(&plain) > 1_600.0 && srtt(&filtered) < 900.0, "{} {}", srtt(&plain), srtt(&filtered));
    assert_eq!(filtered.links[3].dropped_by_queue, 0);
    assert!(filtered.nodes[0].counters["acks_absorbed"] > 5_000, "{:?}", filtered.nodes);
    let goodput = |outcome: &Outcome| outcome.totals.goodput_bps;
    assert!(goodput(&filtered) > 1.5 * goodput(&plain), "{} {}", goodput(&filtered), goodput(&plain));
}

#[test]
fn a_decimator_lets_one_of_so_many_acks_through() {
    let every = 5;
    let config = AckDecimatorConfig { every, patience: ms(100) };
    let plain = narrow_way_back(Rate::from_mbps(4), NodeKind::Router);
    let thinned =
        narrow_way_back(Rate::from_mbps(4), NodeKind::Middlebox(MiddleboxConfig::AckDecimator(config)));
    let acks = thinned.links[3].delivered_packets as f64 / thinned.totals.data_packets_delivered as f64;
    assert!((0.19..0.25).contains(&acks), "{acks}");
    assert!(thinned.totals.goodput_bps > 0.7 * plain.totals.goodput_bps);
}

/// Two satellites; the first has an outage, which `routing` avoids or not.
fn two_satellites(routing: Routing, effect: OutageEffect) -> Outcome {
    let dumbbell = Dumbbell::geo(2, (Rate::from_mbps(4), Rate::from_mbps(4)), 200);
    let bulk = flows("bulk", 2, Traffic::Bulk, paper_tcp(400));
    let mut scenario = dumbbell.scenario(Duration::from_secs(40), vec![bulk]);
    let at = |secs| Instant::ZERO + Duration::from_secs(secs);
    let spare = LinkConfig::new(Rate::from_mbps(2), ms(280), drop_tail(200));
    let satellite = &mut scenario.links[1];
    for direction in [&mut satellite.forward, &mut satellite.reverse] {
        direction.outages.intervals = vec![Outage { from: at(15), to: at(30) }];
        direction.outages.effect = effect;
    }
    scenario.links.push(links("spare", ("west", "east"), spare));
    verified(&Scenario { routing, ..scenario })
}

#[test]
fn routes_that_avoid_outages_go_over_the_spare_link_meanwhile() {
    let fixed = two_satellites(Routing::Fixed, OutageEffect::CutPath);
    let evading = two_satellites(Routing::AvoidOutages, OutageEffect::CutPath);
    let spare = |outcome: &Outcome| outcome.links.iter().find(|link| link.name == "spare").cloned().unwrap();
    assert_eq!(spare(&fixed).delivered_packets, 0);
    // Fifteen seconds at 2 Mbit/s, minus the cost of the change and the packets still in the queue when the satellite is back.
    let carried = spare(&evading).delivered_packets;
    assert!((1_500..=3_750 + 200).contains(&carried), "{carried}");
    assert!(evading.totals.goodput_bps > 1.15 * fixed.totals.goodput_bps);
}

#[test]
fn without_any_way_packets_are_stranded_and_counted() {
    let mut scenario = Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(10)), 50)
        .scenario(Duration::from_secs(30), vec![flows("bulk", 1, Traffic::Bulk, paper_tcp(64))]);
    let at = |secs| Instant::ZERO + Duration::from_secs(secs);
    scenario.links[1].forward.outages.intervals = vec![Outage { from: at(10), to: at(12) }];
    scenario.routing = Routing::AvoidOutages;
    let outcome = verified(&scenario);
    assert!(outcome.stranded_packets > 0);
    assert!(outcome.flows[0].delivered_bytes > 1_000_000 && outcome.flows[0].timeouts > 0);
}

/// A middlebox that two directions pass by two links is one, also where routes are looked up.
#[test]
fn a_middlebox_serves_every_packet_that_passes_its_node_whatever_the_routing() {
    for routing in [Routing::Fixed, Routing::AvoidOutages] {
        let dumbbell = Dumbbell::geo(3, (Rate::from_mbps(10), Rate::from_mbps(10)), 100);
        let files = flows("file", 6, Traffic::File { bytes: 200_000 }, paper_tcp(64));
        let mut scenario = dumbbell.scenario(Duration::from_secs(60), vec![files]);
        let config = AckDecimatorConfig { every: 2, patience: ms(50) };
        for node in [1, 2] {
            scenario.nodes[node].kind = NodeKind::Middlebox(MiddleboxConfig::AckDecimator(config));
        }
        scenario.nodes.push(router("idle"));
        let outcome = verified(&Scenario { routing, ..scenario });
        assert!(outcome.flows.iter().all(|flow| flow.delivered_bytes == 200_000), "{:?}", outcome.flows);
        let absorbed: Vec<_> = outcome.nodes.iter().map(|node| node.counters["acks_absorbed"]).collect();
        assert!(absorbed[1] > 400 && absorbed[0] > 100, "{routing:?}: {absorbed:?}");
    }
}
