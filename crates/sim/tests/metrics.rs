//! Measurements of a run, in worlds whose results can be computed by hand.

mod common;

use bentpipe_outcome::Outcome;
use bentpipe_scenario::{Draft, Scenario};
use bentpipe_sim::{RunOptions, run};
use common::rounds::{Bound, Rounds};

/// Two hosts and the link between them; further keys of the link may follow.
const PATH: &str = r#"
    [node.server]
    [node.client]
    [link.satellite]
    between = ["server", "client"]
    rate = "5 Mbit/s"
    delay-one-way = "250 ms"
"#;

/// The path of the transmission-gap model of Papadimitriou and Tsaoussidis, with a receive window that does not fill it.
fn asymmetric(seconds: u32, window: u32) -> Scenario {
    asymmetric_with(seconds, window, (960, 40))
}

/// The same with the given sizes of payload and headers.
fn asymmetric_with(seconds: u32, window: u32, (mss, header): (u32, u32)) -> Scenario {
    let text = format!(
        r#"
        duration = "{seconds} s"
        {PATH}
        queue = "500 packets"
        [link.satellite.reverse]
        rate = "256 kbit/s"
        [tcp]
        mss = "{mss} bytes"
        header = "{header} bytes"
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

/// The closed form and the simulator agree on what limits a window, and on how long it takes: by the round trip, by the way out, and by that of the ACKs.
#[test]
fn a_window_takes_as_long_as_the_closed_form_says() {
    for (window, sizes, bound) in [
        (157, (960, 40), Bound::RoundTrip),
        (240, (1000, 56), Bound::RoundTrip),
        (330, (960, 40), Bound::Data),
        (240, (984, 72), Bound::Acks),
        (320, (1000, 56), Bound::Acks),
    ] {
        let (mss, header) = sizes;
        let rounds = Rounds::papers(f64::from(mss + header), f64::from(header));
        let (takes, by) = rounds.period(f64::from(window));
        assert_eq!(by, bound, "{window} segments of {sizes:?}");
        let expected = f64::from(window * mss * 8) / takes;
        let measured = outcome(&asymmetric_with(400, window, sizes)).totals.goodput_bps;
        // Slow start takes a few seconds of 400.
        assert!((0.98..1.002).contains(&(measured / expected)), "{window}, {sizes:?}: {measured} {expected}");
    }
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

/// The table of the model for 5 Mbit/s and 256 kbit/s: the round trip, what a segment and its ACK take, the windows at which each of them limits, and 240 segments.
#[test]
fn the_closed_form_has_the_numbers_worked_out_for_it() {
    for (sizes, round_trip, (data_ms, acks_ms), (by_data, by_acks), (takes, by)) in [
        ((1000.0, 40.0), 0.502_850, (1.6, 1.25), (314.3, 402.3), (0.502_850, Bound::RoundTrip)),
        ((1040.0, 52.0), 0.503_289, (1.664, 1.625), (302.5, 309.7), (0.503_289, Bound::RoundTrip)),
        ((1056.0, 56.0), 0.503_440, (1.6896, 1.75), (298.0, 287.7), (0.503_440, Bound::RoundTrip)),
        ((1056.0, 72.0), 0.503_940, (1.6896, 2.25), (298.3, 224.0), (0.54, Bound::Acks)),
    ] {
        let rounds = Rounds::papers(sizes.0, sizes.1);
        let close = |a: f64, b: f64, within: f64| assert!((a - b).abs() <= within, "{sizes:?}: {a}, {b}");
        close(rounds.round_trip_s(), round_trip, 1e-6);
        close(rounds.data_s(1.0) * 1e3, data_ms, 1e-9);
        close(rounds.acks_s(1.0) * 1e3, acks_ms, 1e-9);
        close(rounds.round_trip_s() / rounds.data_s(1.0), by_data, 0.05);
        close(rounds.round_trip_s() / rounds.acks_s(1.0), by_acks, 0.05);
        let (period, bound) = rounds.period(240.0);
        close(period, takes, 1e-6);
        assert_eq!(bound, by, "{sizes:?}");
    }
    // An ACK for every second segment, 100 ms late: no gain where the way out is the limit, a tenth where the ACKs were.
    let delayed =
        |sizes: (f64, f64)| Rounds { delayed: Some((2.0, 0.1)), ..Rounds::papers(sizes.0, sizes.1) };
    let small = delayed((1000.0, 40.0));
    assert!((small.round_trip_s() - 0.602_850).abs() < 1e-9 && (small.acks_s(400.0) - 0.25).abs() < 1e-9);
    assert_eq!(
        (small.period(400.0), Rounds::papers(1000.0, 40.0).period(400.0)),
        ((0.64, Bound::Data), (0.64, Bound::Data))
    );
    let (before, after) = (Rounds::papers(1056.0, 72.0).period(300.0), delayed((1056.0, 72.0)).period(300.0));
    assert_eq!((before.1, after.1), (Bound::Acks, Bound::RoundTrip));
    assert!((before.0 - 0.675).abs() < 1e-9 && (after.0 - 0.603_94).abs() < 1e-6, "{before:?} {after:?}");
}

/// A window of 157 packets over the path: one queue, whose waiting times follow from the window.
#[test]
fn delays_are_those_of_the_path() {
    let run = outcome(&asymmetric(60, 157));
    let delays = &run.groups[0].delays;
    let [rtt, smoothed, one_way] =
        [delays.rtt, delays.smoothed_rtt, delays.one_way_delay].map(Option::unwrap);
    // A data packet alone: 1.6 ms of transmission and 250 ms; its ACK 1.25 ms and 250 ms.
    assert!((one_way.min_ms / 251.6 - 1.0).abs() < 0.002, "{one_way:?}");
    // The shortest is that of the handshake, whose SYN takes 64 us and whose SYN-ACK 1.25 ms.
    assert!(
        (rtt.min_ms / 501.314 - 1.0).abs() < 0.002 && (rtt.p50_ms / 502.85 - 1.0).abs() < 0.002,
        "{rtt:?}"
    );
    assert_eq!(one_way.samples, run.flows[0].delivered_bytes / 960);
    assert!(rtt.samples <= one_way.samples && rtt.samples == smoothed.samples, "{rtt:?}");
    assert!(rtt.p50_ms <= rtt.p95_ms && rtt.p95_ms <= rtt.p99_ms && rtt.p99_ms <= rtt.max_ms, "{rtt:?}");
    assert!(smoothed.max_ms <= rtt.max_ms, "{smoothed:?} {rtt:?}");
    assert_eq!(run.totals.delays.rtt, delays.rtt, "one group is all there is");
}

/// 20 kbit too fast for the link: the queue of 500 packets is full, and all but the first packets wait for it.
#[test]
fn a_full_queue_delays_every_packet_by_its_length() {
    let text = |mbps: f64| {
        format!(
            r#"
            duration = "60 s"
            {PATH}
            queue = "500 packets"
            [flow.cbr]
            from = "server"
            to = "client"
            transport = "udp"
            traffic = {{ kind = "cbr", rate = "{mbps} Mbit/s", packet = "1000 bytes" }}
            "#
        )
    };
    let run = |mbps: f64| outcome(&Draft::parse("full", &text(mbps)).unwrap().scenario().unwrap());
    let (light, full) = (run(1.0), run(10.0));
    assert_eq!(light.links[0].queueing_delay_ms, Some(0.0));
    // An accepted packet finds 499 other packets and the rest of one transmission: 1.6 ms each.
    let waited = full.links[0].queueing_delay_ms.unwrap();
    assert!((785.0..800.0).contains(&waited), "{waited}: the queue fills within a second");
    let one_way = full.groups[0].delays.one_way_delay.unwrap();
    assert!((one_way.p95_ms / (250.0 + 1.6 + 800.0) - 1.0).abs() < 0.002, "{one_way:?}");
    // Packets in the queue at the end have waited and have not arrived.
    assert!((one_way.mean_ms - waited - 251.6).abs() < 2.0, "{one_way:?} {waited}");
    // Headers of UDP over IPv4 are 28 bytes.
    assert_eq!(light.flows[0].delivered_bytes % 972, 0);
    assert!((light.totals.goodput_bps / (1e6 * 0.972) - 1.0).abs() < 0.01, "{:?}", light.totals);
}

#[test]
fn a_flow_without_results_says_why() {
    let text = format!(
        r#"
        duration = "30 s"
        {PATH}
        outages = [["0 s", "1 h"]]
        [flow.cut]
        from = "server"
        to = "client"
        [flow.late]
        from = "server"
        to = "client"
        start = "40 s"
        "#
    );
    let run = outcome(&Draft::parse("cut", &text).unwrap().scenario().unwrap());
    let [cut, late] = &run.flows[..] else { panic!("two flows") };
    // The SYN is repeated after 1, 3, 7 and 15 s.
    assert_eq!((cut.aborted, cut.timeouts), (Some("never connected"), 4));
    assert_eq!((late.aborted, late.timeouts), (Some("begins after the end of the run"), 0));
    let open = outcome(&asymmetric(5, 10));
    assert_eq!(open.flows[0].aborted, None);
}

/// Every copy counts as delivered; the packets that the link sends stay within its rate.
#[test]
fn duplicates_do_not_use_the_rate_of_the_link() {
    let mut scenario = asymmetric(60, 400);
    let once = outcome(&scenario);
    scenario.links[0].forward.duplicate_probability = 1.0;
    let twice = outcome(&scenario);
    let [once, twice] = [&once, &twice].map(|run| &run.links[0]);
    assert!(once.utilisation <= 1.0 && twice.utilisation <= 1.0, "{twice:?}");
    // 5 Mbit/s for 60 s are at most 37,500 packets of 1000 bytes.
    assert!(once.delivered_packets <= 37_500 && twice.delivered_packets <= 2 * 37_500, "{twice:?}");
    assert!(twice.delivered_packets > 37_500, "{twice:?}");
}

/// Slow start and its queue are over after ten seconds: in the window the link is full, and every RTT is that of the full queue.
#[test]
fn the_window_of_measurement_leaves_the_warm_up_out() {
    let mut scenario = asymmetric(60, 330);
    let whole = outcome(&scenario);
    scenario.measure_from = bentpipe_base::Duration::from_secs(20);
    let window = outcome(&scenario);
    scenario.duration = scenario.measure_from;
    scenario.measure_from = bentpipe_base::Duration::ZERO;
    let early = outcome(&scenario);
    assert_eq!((window.measured_from_s, whole.measured_from_s), (Some(20.0), None));
    let [w, e, p] = [&whole, &early, &window].map(|run| &run.flows[0]);
    assert_eq!(w.delivered_bytes, e.delivered_bytes + p.delivered_bytes);
    assert_eq!(p.goodput_bps, p.delivered_bytes as f64 * 8.0 / 40.0);
    // 330 packets of 1.6 ms take longer than the path: 5 Mbit/s of packets with 960 of 1000 bytes.
    assert!((p.goodput_bps / 4.8e6 - 1.0).abs() < 1e-3, "{p:?}");
    assert!(p.goodput_bps > 1.01 * w.goodput_bps, "{p:?} {w:?}");
    let [w, e, p] = [&whole, &early, &window].map(|run| &run.links[0]);
    assert_eq!(w.delivered_packets, e.delivered_packets + p.delivered_packets);
    assert!((p.utilisation - 1.0).abs() < 1e-3, "{p:?}");
    // A packet waits for the part of the window beyond the BDP: 330 · 1.6 ms minus 502.85 ms of round trip.
    assert!((p.queueing_delay_ms.unwrap() - 25.15).abs() < 0.1, "{p:?}");
    let rtt = window.groups[0].delays.rtt.unwrap();
    let samples = |run: &Outcome| run.groups[0].delays.rtt.unwrap().samples;
    assert_eq!(samples(&whole), samples(&early) + rtt.samples);
    assert!((rtt.mean_ms - 528.0).abs() < 0.1, "{rtt:?}");
    assert_eq!(
        window.totals.data_packets_delivered,
        whole.totals.data_packets_delivered - early.totals.data_packets_delivered
    );
}
