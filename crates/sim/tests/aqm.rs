//! Queues with active management, with flows that react to them.

use bentpipe_outcome::Outcome;
use bentpipe_scenario::Draft;
use bentpipe_sim::{RunOptions, run};

/// Runs `geo-dumbbell` with these changes, large windows and fast uplinks, so that the satellite link has the queue.
/// Measures from 60 s to 300 s.
fn geo(changes: &[&str]) -> Outcome {
    let mut draft = Draft::load("geo-dumbbell").expect("a known scenario");
    let common = [
        "duration=300 s",
        "measure={ from = \"60 s\" }",
        "link.uplink.rate=100 Mbit/s",
        "tcp.receive-window=4000 segments",
        "flow.bulk.cc=cubic",
    ];
    for change in common.iter().chain(changes) {
        draft.set(change).expect("a known key");
    }
    let result = run(&draft.scenario().expect("a world"), &RunOptions::default()).expect("a run");
    result.outcome
}

#[test]
fn pie_holds_the_queue_of_one_and_of_twenty_cubic_flows_near_its_target() {
    for (flows, least) in [("flow.bulk.count=1", 0.0), ("flow.bulk.count=20", 50.0)] {
        let queue = "link.satellite.queue={ kind = \"pie\", limit = \"2000 packets\", target = \"100 ms\" }";
        let outcome = geo(&[flows, queue]);
        let satellite =
            outcome.links.iter().find(|link| link.name.starts_with("satellite")).expect("the link");
        let delay = satellite.queueing_delay_ms.expect("packets were sent");
        assert!((least..150.0).contains(&delay), "{flows}: {delay} ms");
        assert!(satellite.dropped_by_queue > 100, "{flows}: {satellite:?}");
        assert!(outcome.totals.goodput_segments_per_s > 1_000.0, "{flows}: {:?}", outcome.totals);
    }
}

/// Two hosts that share a link of 10 Mbit/s and 40 ms with a queue of 160 ms.
const SHARED: &str = r#"
duration = "300 s"
measure = { from = "60 s" }

[node.first]
[node.second]
[node.server]
[node.router]
kind = "router"

[link.first]
between = ["first", "router"]
rate = "100 Mbit/s"
delay-one-way = "1 ms"
queue = "100000 packets"

[link.second]
between = ["second", "router"]
rate = "100 Mbit/s"
delay-one-way = "1 ms"
queue = "100000 packets"

[link.bottleneck]
between = ["router", "server"]
rate = "10 Mbit/s"
delay-one-way = "19 ms"
queue = "200 packets"

[tcp]
mss = "948 bytes"
receive-window = "4000 segments"

[flow.one]
from = "first"
to = "server"
cc = "cubic"
traffic = "bulk"
"#;

/// Runs that world with a second flow group and these changes.
fn run_shared(second: &str, changes: &[&str]) -> Outcome {
    let mut draft = Draft::parse("shared.toml", &format!("{SHARED}\n{second}")).expect("TOML");
    for change in changes {
        draft.set(change).expect("a known key");
    }
    run(&draft.scenario().expect("a world"), &RunOptions::default()).expect("a run").outcome
}

/// Returns the goodput of both groups in Mbit/s.
fn shared(second: &str, changes: &[&str]) -> [f64; 2] {
    let outcome = run_shared(second, changes);
    let of = |group: &str| {
        let flows = outcome.flows.iter().filter(|flow| flow.group == group);
        flows.map(|flow| flow.goodput_bps / 1e6).sum()
    };
    ["one", "two"].map(of)
}

/// The draft demands both: a background flow leaves CUBIC nearly all, and uses a link that nobody else uses.
#[test]
fn ledbat_plus_plus_yields_to_cubic_and_uses_an_idle_link() {
    let background = "[flow.two]\nfrom = 'second'\nto = 'server'\ncc = 'ledbat-plus-plus'\ntraffic = 'bulk'";
    let [cubic, own] = shared(background, &[]);
    assert!(own < 0.1 * (cubic + own), "{own} beside {cubic} Mbit/s");
    let pause = "flow.one.traffic={ kind = 'file', size = '1 kB' }";
    let [_, alone] = shared(background, &[pause]);
    assert!(alone > 0.85 * 9.48, "{alone} Mbit/s");
}

/// Ten flows of one host and one flow of another: by flow ten to one, by sending host one to one. The target is half of
/// the round trip, because CoDel's default empties the queue of a single CUBIC flow, which then cannot use its share.
#[test]
fn hosts_share_a_queue_that_is_fair_to_them() {
    let crowd = "[flow.two]\nfrom = 'second'\nto = 'server'\ncount = 10\ncc = 'cubic'\ntraffic = 'bulk'";
    let ratio = |fair_by: &str| {
        let queue = format!(
            "link.bottleneck.queue={{ kind = 'fq-codel', limit = '1000 packets', target = '20 ms', fair-by = '{fair_by}' }}"
        );
        let [one, ten] = shared(crowd, &[&queue]);
        ten / one
    };
    let (by_flow, by_host) = (ratio("flow"), ratio("source"));
    assert!((9.0..11.0).contains(&by_flow), "{by_flow}");
    assert!((0.95..1.05).contains(&by_host), "{by_host}");
}

/// A second flow with Prague, and DualPI2 with 40 Mbit/s and 20 ms for both.
const PRAGUE: &str = "[flow.two]\nfrom = 'second'\nto = 'server'\ncc = 'prague'\ntraffic = 'bulk'";
const COUPLED: [&str; 4] = [
    "link.bottleneck.rate=40 Mbit/s",
    "link.bottleneck.delay-one-way=9 ms",
    "link.bottleneck.queue={ kind = 'dualpi2', limit = '1000 packets' }",
    "tcp.ecn=accurate",
];
/// Propagation and transmission of a data packet of that world, in ms: 1 + 9 + 0.08 + 0.2.
const EMPTY_MS: f64 = 10.28;

/// RFC 9332 section 2: both kinds of flows have similar rates, and L4S packets wait less.
#[test]
fn prague_and_cubic_share_dualpi2_and_prague_waits_for_a_few_ms_at_most() {
    let outcome = run_shared(PRAGUE, &COUPLED);
    let [cubic, prague] = ["one", "two"]
        .map(|name| outcome.groups.iter().find(|group| group.name == name).expect("both groups run"));
    let ratio = prague.goodput_bps / cubic.goodput_bps;
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
    assert!(prague.goodput_bps + cubic.goodput_bps > 0.9 * 0.948 * 40e6, "{prague:?} {cubic:?}");
    let [cubic, prague] = [cubic, prague].map(|group| group.delays.one_way_delay.expect("packets arrived"));
    assert!(prague.mean_ms - EMPTY_MS < 2.0 && prague.p99_ms - EMPTY_MS < 4.0, "{prague:?}");
    assert!((10.0..20.0).contains(&(cubic.mean_ms - EMPTY_MS)), "{cubic:?}");
    let link = outcome.links.iter().find(|link| link.name.starts_with("bottleneck")).expect("the link");
    assert_eq!(link.dropped_by_queue, 0, "both senders react to marks");
}

#[test]
fn prague_without_accurate_ecn_is_a_classic_sender() {
    let changes = [COUPLED[0], COUPLED[1], COUPLED[2], "tcp.ecn=true"];
    let outcome = run_shared(PRAGUE, &changes);
    let prague = outcome.groups.iter().find(|group| group.name == "two").expect("it runs");
    let waited = prague.delays.one_way_delay.expect("packets arrived").mean_ms - EMPTY_MS;
    assert!((8.0..20.0).contains(&waited), "it waits in the classic queue: {waited}");
}
