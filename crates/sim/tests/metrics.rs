//! What a run measures, in worlds in which it can be worked out.

use bentpipe_scenario::{Draft, Scenario};
use bentpipe_sim::{Outcome, RunOptions, run};

/// The path of the transmission-gap model of Papadimitriou and Tsaoussidis, with a receive window that does not fill it.
fn asymmetric(seconds: u32, window: u32) -> Scenario {
    let text = format!(
        r#"
        duration = "{seconds} s"
        [node.server]
        [node.client]
        [link.satellite]
        between = ["server", "client"]
        rate = "5 Mbit/s"
        delay-one-way = "250 ms"
        queue = "500 packets"
        [link.satellite.reverse]
        rate = "256 kbit/s"
        [tcp]
        mss = "960 bytes"
        header = "40 bytes"
        receive-window = "{window} segments"
        delayed-ack = "off"
        timestamps = false
        [flow.bulk]
        from = "server"
        to = "client"
        cc = "newreno"
        "#
    );
    Draft::parse("asymmetric", &text).unwrap().scenario().unwrap()
}

fn outcome(scenario: &Scenario) -> Outcome {
    run(scenario, &RunOptions::default()).unwrap().outcome
}

#[test]
fn the_gap_of_a_round_is_what_its_window_leaves_of_the_round_trip() {
    let outcome = outcome(&asymmetric(600, 157));
    let gaps = outcome.links[0].gaps.unwrap();
    // 502.85 ms of round trip less 157 packets of 1.6 ms; the rounds of slow start, which leave more, are few.
    assert!((251.65..255.0).contains(&gaps.mean_ms), "{gaps:?}");
    assert!((1180..1200).contains(&gaps.count), "{gaps:?}");
    // The longest lies between SYN and data: there and back, and 1.25 ms in which the SYN of the other side is sent.
    assert_eq!(gaps.longest_ms, 501.25);
    assert!((gaps.share - 0.5).abs() < 0.01, "{gaps:?}");
    // A window that is twice as large and more fills the link: only slow start leaves gaps.
    let full = self::outcome(&asymmetric(600, 320)).links[0].gaps.unwrap();
    assert!(full.count < 10, "{full:?}");
}

#[test]
fn throughput_exceeds_goodput_by_what_came_twice() {
    let mut scenario = asymmetric(100, 157);
    let clean = outcome(&scenario).flows.swap_remove(0);
    assert_eq!(clean.throughput_bps, clean.goodput_bps);
    scenario.links[0].forward.duplicate_probability = 0.1;
    let doubled = outcome(&scenario).flows.swap_remove(0);
    let excess = doubled.throughput_bps / doubled.goodput_bps - 1.0;
    assert!((0.08..0.12).contains(&excess), "{excess}");
}

#[test]
fn goodput_converges_when_slow_start_is_over() {
    let outcome = outcome(&asymmetric(60, 157));
    // Ten segments double to 157 in four round trips; the second after that is the first whole one.
    let time = outcome.flows[0].convergence_s.unwrap();
    assert!((2.0..=5.0).contains(&time), "{time}");
    assert_eq!(outcome.totals.convergence_s, Some(time), "one flow is all of them");
    let short = self::outcome(&asymmetric(9, 157));
    assert_eq!(short.flows[0].convergence_s, None, "ten seconds must follow");
}
