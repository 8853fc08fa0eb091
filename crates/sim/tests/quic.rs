//! QUIC flows: bounds that physics gives, reproducible runs, and the algorithms that run.

mod common;

use std::num::NonZeroUsize;
use std::sync::Arc;

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::packets::supported;
use bentpipe_cc::{Algorithm, REGISTRY};
use bentpipe_outcome::Outcome;
use bentpipe_scenario::{Scenario, Traffic, Transport};
use bentpipe_sim::{BuildError, RunOptions, run};
use bentpipe_tcp::{Config, InitialWindow, ReceiveWindow};
use bentpipe_traffic::browser;
use common::{Dumbbell, flows, ms, paper_tcp};

/// Round trip of the path, without queueing and transmission.
const RTT_S: f64 = 0.55;
/// Rate of the satellite link in bits per second.
const RATE_BPS: f64 = 10e6;

/// One QUIC flow over a GEO link of 10 Mbit/s that loses packets with probability `loss`.
fn geo(cc: &str, traffic: Traffic, loss: f64) -> Scenario {
    let mut link = Dumbbell::geo(1, (Rate::from_mbps(100), Rate::from_mbps(10)), 500).with_loss(loss);
    link.satellite.loss.data_only = false;
    let config = paper_tcp(500).with(|config| {
        config.mss = 1448;
        config.sender.cc = Algorithm::from_name(cc).unwrap_or(Config::default().sender.cc);
        config.sender.initial_window = InitialWindow::Segments(10);
        config.receiver.receive_window = ReceiveWindow::Fixed(8 << 20);
    });
    let mut flow = flows("flow", 1, traffic, config);
    (flow.transport, flow.cc, flow.header_bytes) = (Transport::Quic, cc.to_owned(), 52);
    link.scenario(Duration::from_secs(60), vec![flow])
}

fn with_zero_rtt(mut scenario: Scenario) -> Scenario {
    scenario.flows[0].options.quic.resumes = true;
    scenario
}

fn outcome(scenario: &Scenario) -> Outcome {
    let result = run(scenario, &RunOptions { verify: true, ..RunOptions::default() }).unwrap();
    assert_eq!(result.violations, [""; 0]);
    result.outcome
}

#[test]
fn a_bulk_flow_fills_the_link_and_not_more() {
    for cc in ["quic:cubic", "quic:newreno", "cubic", "bbr3", "hybla"] {
        let flow = outcome(&geo(cc, Traffic::Bulk, 0.0)).flows.swap_remove(0);
        // Payload and headers of a full packet: 1472 bytes of UDP payload in 1500.
        let most = RATE_BPS * 1472.0 / 1500.0;
        assert!((0.75 * most..most).contains(&flow.goodput_bps), "{cc}: {}", flow.goodput_bps);
        assert_eq!((flow.cc.as_str(), flow.aborted), (cc, None));
        assert!(flow.srtt_ms.unwrap() >= RTT_S * 1e3, "{cc}: {:?}", flow.srtt_ms);
    }
}

#[test]
fn a_handshake_takes_one_round_trip_and_none_with_0_rtt() {
    let file = Traffic::File { bytes: 1_000 };
    let first = geo("quic:cubic", file.clone(), 0.0);
    let [new, resumed] = [first.clone(), with_zero_rtt(first)].map(|scenario| {
        let flow = outcome(&scenario).flows.swap_remove(0);
        assert_eq!(flow.delivered_bytes, 1_000);
        flow.completion_s.unwrap()
    });
    let least = |round_trips: f64| round_trips * RTT_S + 1_000.0 * 8.0 / RATE_BPS;
    // The stack paces: packets of a handshake, which has no round-trip sample yet, leave each 27 ms. The server's flight has four. The
    // last acknowledgement may be delayed by 25 ms.
    assert!((least(2.0)..least(2.0) + 0.15).contains(&new), "{new}");
    assert!((least(1.0)..least(1.0) + 0.15).contains(&resumed), "{resumed}");
}

#[test]
fn a_large_file_takes_at_least_its_transmission_and_two_round_trips() {
    let bytes = 5_000_000;
    let flow = outcome(&geo("quic:cubic", Traffic::File { bytes }, 0.0)).flows.swap_remove(0);
    let (took, least) = (flow.completion_s.unwrap(), bytes as f64 * 8.0 / RATE_BPS + 2.0 * RTT_S);
    assert!((least..2.5 * least).contains(&took), "{took} s of at least {least} s");
}

#[test]
fn each_supported_algorithm_carries_a_file_through_losses() {
    for cc in supported().map(|entry| entry.name).chain(["quic:cubic", "quic:newreno"]) {
        let scenario = geo(cc, Traffic::File { bytes: 300_000 }, 0.01);
        let outcome = outcome(&scenario);
        let flow = &outcome.flows[0];
        assert_eq!((flow.delivered_bytes, flow.aborted, flow.cc.as_str()), (300_000, None, cc));
        assert!(flow.completion_s.is_some_and(|took| took > 2.0 * RTT_S), "{cc}");
        let errors = outcome.links.iter().map(|link| link.dropped_by_error).sum::<u64>();
        assert!(
            flow.retransmitted_segments <= errors + 10,
            "{cc}: {} of {errors}",
            flow.retransmitted_segments
        );
    }
}

#[test]
fn an_algorithm_that_quic_cannot_serve_is_refused_by_name() {
    let serves = |name: &str| supported().any(|entry| entry.name == name);
    let refused: Vec<_> = REGISTRY.iter().filter(|entry| !serves(entry.name)).collect();
    assert!(!refused.is_empty());
    for entry in refused {
        let error = run(&geo(entry.name, Traffic::Bulk, 0.0), &RunOptions::default()).unwrap_err();
        assert!(matches!(error, BuildError::Algorithm { .. }), "{error}");
        assert!(error.to_string().contains(entry.name), "{error}");
    }
}

#[test]
fn a_path_with_small_packets_is_refused() {
    let mut scenario = geo("quic:cubic", Traffic::Bulk, 0.0);
    Arc::make_mut(&mut scenario.flows[0].sender).mss = 1_100;
    let error = run(&scenario, &RunOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "flow.flow: QUIC needs room for packets of 1228 bytes");
}

#[test]
fn the_same_seed_gives_the_same_result_with_any_number_of_threads() {
    let result = |seed, threads| {
        let scenario = geo("quic:cubic", Traffic::File { bytes: 1_000_000 }, 0.02);
        let threads = NonZeroUsize::new(threads);
        let options = RunOptions { seed: Some(seed), threads, record: true, ..RunOptions::default() };
        let result = run(&scenario, &options).unwrap();
        format!("{:?}", (result.outcome, result.series))
    };
    let first = result(1, 1);
    assert_eq!(first, result(1, 1));
    assert_eq!(first, result(1, 2));
    assert_ne!(first, result(2, 1));
}

#[test]
fn windows_and_round_trips_are_recorded() {
    let options = RunOptions { record: true, ..RunOptions::default() };
    for cc in ["quic:cubic", "bbr3"] {
        let result = run(&geo(cc, Traffic::Bulk, 0.0), &options).unwrap();
        let series = &result.series.unwrap().flows[0];
        assert!(series.cwnd.len() > 10 && series.srtt_ms.len() > 10, "{cc}");
        let largest = series.cwnd.iter().map(|(_, segments)| *segments).fold(0.0, f64::max);
        // The window grows to the bandwidth-delay product of 475 segments.
        assert!(largest > 400.0, "{cc}: {largest}");
        let delays = &result.outcome.groups[0].delays;
        assert!(delays.rtt.as_ref().is_some_and(|rtt| rtt.min_ms >= RTT_S * 1e3), "{cc}: {delays:?}");
    }
}

#[test]
fn a_page_has_one_connection_and_a_stream_per_object() {
    let web = |connections| {
        Traffic::Web(browser::Config {
            connections,
            persistent: true,
            view_scale: 0.01,
            ..Default::default()
        })
    };
    let mean = |connections, resumes| {
        let scenario = geo("quic:cubic", web(connections), 0.0);
        let scenario = if resumes { with_zero_rtt(scenario) } else { scenario };
        let flow = outcome(&scenario).flows.swap_remove(0);
        let transfers = flow.transfers.unwrap();
        assert_eq!((transfers.failed_connections, flow.aborted), (0, None));
        assert!(transfers.completed > 5, "{transfers:?}");
        assert!(flow.delivered_bytes > 0);
        transfers.mean_s.unwrap()
    };
    let (serial, parallel) = (mean(1, false), mean(50, false));
    assert!(parallel < serial, "{parallel} s, one object after another {serial} s");
    // A request and its reply take one round trip.
    assert!(mean(50, true) >= RTT_S);
}

#[test]
fn a_silent_path_ends_a_connection_after_the_idle_timeout() {
    let mut scenario = geo("quic:cubic", Traffic::File { bytes: 1_000 }, 1.0);
    scenario.flows[0].options.quic.idle_timeout = Some(ms(5_000));
    assert_eq!(outcome(&scenario).flows[0].aborted, Some("timed out"));
}
