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
