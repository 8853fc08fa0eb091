//! Transports that are not TCP, beside TCP in the same worlds.

mod common;

use bentpipe_base::{Duration, Rate};
use bentpipe_scenario::{Scenario, Streaming, Traffic, Transport};
use bentpipe_sim::{Outcome, RunOptions, run};
use common::{Dumbbell, flows, paper_tcp};

/// One flow over a GEO link of 10 Mbit/s and 550 ms that loses packets with this probability, data or not.
fn geo(transport: Transport, traffic: Traffic, loss: f64) -> Scenario {
    let mut link = Dumbbell::geo(1, (Rate::from_mbps(100), Rate::from_mbps(10)), 200).with_loss(loss);
    link.satellite.loss.data_only = false;
    let mut flow = flows("flow", 1, traffic, paper_tcp(500));
    flow.transport = transport;
    link.scenario(Duration::from_secs(120), vec![flow])
}

fn outcome(scenario: &Scenario) -> Outcome {
    let result = run(scenario, &RunOptions { verify: true, ..RunOptions::default() }).unwrap();
    assert_eq!(result.violations, [""; 0]);
    result.outcome
}

/// Packets that came back over the satellite, and the share of the time that they took.
fn way_back(outcome: &Outcome) -> (u64, f64) {
    let link =
        outcome.links.iter().find(|link| (link.name.as_str(), link.direction) == ("satellite", "reverse"));
    link.map(|link| (link.delivered_packets, link.utilisation)).unwrap()
}

const FILE: Traffic = Traffic::File { bytes: 5_000_000 };

#[test]
fn stp_needs_a_fraction_of_the_way_back() {
    let [tcp, stp] = [Transport::Tcp, Transport::Stp].map(|transport| outcome(&geo(transport, FILE, 1e-3)));
    for outcome in [&tcp, &stp] {
        assert_eq!(outcome.flows[0].delivered_bytes, 5_000_000);
        assert!(outcome.flows[0].retransmitted_segments > 0);
    }
    let ((tcp_packets, tcp_busy), (stp_packets, stp_busy)) = (way_back(&tcp), way_back(&stp));
    assert!(tcp_packets > 5_000, "{tcp_packets}");
    assert!(
        stp_packets * 10 < tcp_packets && stp_busy * 10.0 < tcp_busy,
        "{stp_packets} {stp_busy} {tcp_busy}"
    );
    // As fast as TCP with SACK, which it should be: the window law is the same.
    let [tcp, stp] = [&tcp, &stp].map(|outcome| outcome.flows[0].completion_s.unwrap());
    assert!((0.4 * tcp..1.6 * tcp).contains(&stp), "{stp} s, TCP {tcp} s");
}

#[test]
fn stp_delivers_under_heavy_loss_and_reports_a_dead_path() {
    let lossy = outcome(&geo(Transport::Stp, Traffic::File { bytes: 300_000 }, 0.05));
    assert_eq!((lossy.flows[0].delivered_bytes, lossy.flows[0].aborted), (300_000, None));
    let dead = outcome(&geo(Transport::Stp, FILE, 1.0));
    assert_eq!((dead.flows[0].delivered_bytes, dead.flows[0].aborted), (0, Some("no answer")));
}

#[test]
fn stp_carries_video_and_bulk() {
    let video = Traffic::Video { video: Default::default(), stream: Streaming::default() };
    let flow = outcome(&geo(Transport::Stp, video, 1e-4)).flows.swap_remove(0);
    let stream = flow.stream.unwrap();
    assert!(stream.real_time_index > 0.9 && stream.frames_missed < 0.05, "{stream:?}");
    let bulk = outcome(&geo(Transport::Stp, Traffic::Bulk, 0.0)).flows.swap_remove(0);
    // 500 packets of 960 bytes in 550 ms, less the start.
    let most = 500.0 * 960.0 * 8.0 / 0.55;
    assert!((0.5 * most..most).contains(&bulk.goodput_bps), "{bulk:?}");
    assert_eq!(bulk.completion_s, None);
}
