//! Flows inside IPsec ESP: its cost, and the functions of nodes on the path, with and without knowledge of which acknowledgement
//! belongs to which data.

use bentpipe_outcome::Outcome;
use bentpipe_scenario::{Draft, Scenario};
use bentpipe_sim::{RunOptions, run};

fn world(name: &str, changes: &[&str]) -> Scenario {
    let mut draft = Draft::load(name).expect("it is built in");
    changes.iter().for_each(|change| draft.set(change).expect("a well-formed change"));
    draft.scenario().unwrap_or_else(|error| panic!("{error}"))
}

fn outcome(name: &str, changes: &[&str]) -> Outcome {
    let options = RunOptions { verify: true, ..RunOptions::default() };
    let result = run(&world(name, changes), &options).expect("a world");
    assert_eq!(result.violations, [""; 0]);
    result.outcome
}

fn counted(outcome: &Outcome, what: &str) -> u64 {
    outcome.nodes.iter().filter_map(|node| node.counters.get(what)).sum()
}

fn repairs(outcome: &Outcome) -> u64 {
    counted(outcome, "local_retransmissions")
}

/// No node can answer in the server's name, so the connection runs from end to end with larger packets.
#[test]
fn a_proxy_that_cannot_read_is_a_router() {
    let encrypted = outcome("geo-vsat", &["flow.bulk.esp=opaque"]);
    assert!(encrypted.flows[0].split.is_none());
    let plain = ["node.hub.kind=router", "tcp.header=96 bytes"];
    let routed = outcome("geo-vsat", &plain);
    assert_eq!(encrypted.flows[0].delivered_bytes, routed.flows[0].delivered_bytes);
    for kind in ["spoofing", "satpep"] {
        let node = format!("node.hub.kind={kind}");
        let blinded = outcome("geo-vsat", &["flow.bulk.esp=mapping", &node]);
        assert_eq!(blinded.flows[0].delivered_bytes, routed.flows[0].delivered_bytes, "{kind}");
    }
}

#[test]
fn snoop_repairs_what_it_can_match() {
    let of = |esp: &str| outcome("wired-snoop", &[&format!("flow.bulk.esp={esp}")]);
    let [none, opaque, hashes, mapping] = ["none", "opaque", "hashes", "mapping"].map(of);
    assert_eq!(repairs(&opaque), 0);
    assert!(repairs(&hashes) > 300 && repairs(&mapping) > 300);
    let goodput = |outcome: &Outcome| outcome.totals.goodput_bps;
    // Of 1056 and of 1064 bytes 960 are payload, without ESP 960 of 1000. Without SACK, nothing must be removed from an ACK.
    let [by_hashes, by_mapping] = [&hashes, &mapping].map(|world| goodput(world) / goodput(&none));
    assert!((by_mapping * 1.056 - 1.0).abs() < 0.05, "{by_mapping}");
    assert!((by_hashes * 1.064 - 1.0).abs() < 0.05, "{by_hashes}");
    assert!(goodput(&opaque) < 0.7 * goodput(&mapping), "{} bit/s", goodput(&opaque));
}

/// The outer header of IP is everybody's (RFC 6040).
#[test]
fn a_mark_gets_through() {
    let crowded = ["flow.bulk.esp=opaque", "tcp.ecn=true", "duration=100 s"];
    let marking = ["node.earth-station.kind=fuzzy", "node.earth-station.tells=receiver"];
    let marked = outcome("geo-dumbbell", &[&crowded[..], &marking].concat());
    let dropped = outcome("geo-dumbbell", &crowded);
    assert!(counted(&marked, "marked_forward") > 50, "{:?}", marked.nodes);
    let drops = |outcome: &Outcome| outcome.links.iter().map(|link| link.dropped_by_queue).sum::<u64>();
    assert!(drops(&marked) < drops(&dropped) / 2, "{} and {}", drops(&marked), drops(&dropped));
}
