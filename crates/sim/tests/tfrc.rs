//! Streams of TFRC (RFC 5348) over links, alone and beside TCP.

use bentpipe_base::Instant;
use bentpipe_outcome::{LinkEvent, Observer, Outcome, Passing};
use bentpipe_scenario::{Draft, Scenario};
use bentpipe_sim::{RunOptions, run, run_observed};
use bentpipe_trace::Event;

/// Five streams, and five flows of TCP with SACK that keep their algorithm, over 10 Mbit/s and 100 ms.
fn world(changes: &[&str]) -> Scenario {
    let common = [
        "flow.bulk.transport=tfrc",
        "flow.newreno.cc=sack",
        "link.satellite.delay-one-way=50 ms",
        "link.satellite.queue={ kind = 'red', limit = '100 packets', min-threshold = '10 packets', \
         max-threshold = '60 packets', max-probability = 0.1, weight = 0.01 }",
        "link.satellite.loss=none",
        "tcp.receive-window=1000 segments",
        "tcp.limited-transmit=true",
    ];
    let mut draft = Draft::load("geo-fairness").expect("it is built in");
    for change in common.iter().chain(changes) {
        draft.set(change).expect("a well-formed change");
    }
    draft.scenario().unwrap_or_else(|error| panic!("{error}"))
}

fn outcome(scenario: &Scenario) -> Outcome {
    let result = run(scenario, &RunOptions { verify: true, ..RunOptions::default() }).expect("a world");
    assert_eq!(result.violations, [""; 0]);
    result.outcome
}

/// Seconds that are not counted: the flows find their shares.
const WARM_UP_S: usize = 60;

/// Bytes that arrived over one link for each receiver in each second.
struct Rates {
    link: u32,
    bytes: Vec<Vec<f64>>,
}

impl Observer for Rates {
    fn on_link(&mut self, at: Instant, event: LinkEvent, passing: &Passing<'_>) {
        if event != LinkEvent::Delivered || passing.link != self.link || passing.to_end.is_multiple_of(2) {
            return;
        }
        let flow = &mut self.bytes[(passing.to_end / 2) as usize];
        let second = (at.as_nanos() / 1_000_000_000) as usize;
        if let Some(bytes) = flow.get_mut(second) {
            *bytes += f64::from(passing.bytes);
        }
    }
}

/// Mean in bytes a second, and coefficient of variation.
fn mean_and_variation(bytes: &[f64]) -> (f64, f64) {
    let counted = &bytes[WARM_UP_S..];
    let mean = counted.iter().sum::<f64>() / counted.len() as f64;
    let variance = counted.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / counted.len() as f64;
    (mean, variance.sqrt() / mean)
}

/// Packets that each end sent and received.
#[derive(Default)]
struct AtEnds([[u32; 2]; 2]);

impl Observer for AtEnds {
    fn on_end(&mut self, _: Instant, end: u32, event: &Event) {
        match event {
            Event::Sent(_) => self.0[end as usize % 2][0] += 1,
            Event::Received(_) => self.0[end as usize % 2][1] += 1,
            _ => {}
        }
    }
}

#[test]
fn packets_without_tcp_are_observed_at_both_ends() {
    for transport in ["udp", "tfrc", "stp", "sctp"] {
        let mut draft = Draft::load("geo-single").expect("it is built in");
        let transport = format!("flow.bulk.transport={transport}");
        let traffic = "flow.bulk.traffic={ kind = 'cbr', rate = '100 kbit/s' }";
        for change in ["duration=20 s", "link.satellite.loss=none", traffic, &transport] {
            draft.set(change).expect("a well-formed change");
        }
        let scenario = draft.scenario().unwrap_or_else(|error| panic!("{error}"));
        let mut ends = AtEnds::default();
        run_observed(&scenario, &RunOptions::default(), &mut ends).expect("a world");
        let [[sent, heard], [answered, received]] = ends.0;
        assert!(
            sent > 100 && received > sent * 9 / 10 && received <= sent,
            "{transport}: {ends:?}",
            ends = ends.0
        );
        assert!(
            heard <= answered && (answered > 0) == (transport != "flow.bulk.transport=udp"),
            "{transport}"
        );
    }
}

/// RFC 5348 section 1: a fair share beside TCP, generally within a factor of two, and much less variation over time.
#[test]
fn a_stream_is_fair_to_tcp_and_smoother() {
    let scenario = world(&["duration=260 s"]);
    let plain = outcome(&scenario);
    let link = plain.links.iter().position(|link| link.name == "satellite").expect("it is there") as u32;
    let mut rates = Rates { link, bytes: vec![vec![0.0; 260]; 10] };
    run_observed(&scenario, &RunOptions::default(), &mut rates).expect("a world");
    let of = |flows: std::ops::Range<usize>| {
        let each: Vec<_> = rates.bytes[flows].iter().map(|bytes| mean_and_variation(bytes)).collect();
        let count = each.len() as f64;
        (each.iter().map(|one| one.0).sum::<f64>() / count, each.iter().map(|one| one.1).sum::<f64>() / count)
    };
    let (streams, tcp) = (of(0..5), of(5..10));
    let ratio = streams.0 / tcp.0;
    assert!((0.5..=2.0).contains(&ratio), "{streams:?} against {tcp:?}");
    assert!(streams.1 < 0.7 * tcp.1, "variation {} against {}", streams.1, tcp.1);
    assert!(plain.flows.iter().all(|flow| flow.retransmitted_segments == 0 || flow.group == "newreno"));
}

/// Section 3.1 at a loss rate of 1 %, which is that of the loss events where losses are rare in a round trip.
#[test]
fn a_stream_obeys_the_equation() {
    let changes = [
        "flow.newreno.count=1",
        "flow.newreno.start=900 s",
        "flow.bulk.count=1",
        "link.satellite.queue=1000 packets",
        "link.satellite.loss={ kind = 'packet', rate = 0.01, data-only = true }",
        "duration=300 s",
    ];
    let outcome = outcome(&world(&changes));
    let flow = &outcome.flows[0];
    let (rtt, p): (f64, f64) = (0.1, 0.01);
    let timeouts = 12.0 * rtt * libm::sqrt(3.0 * p / 8.0) * p * (1.0 + 32.0 * p * p);
    let expected = 1448.0 / (rtt * libm::sqrt(2.0 * p / 3.0) + timeouts);
    let sent = flow.sent_segments as f64 * 1448.0 / 300.0;
    assert!((sent / expected - 1.0).abs() < 0.2, "{sent} against {expected} bytes a second");
    assert!((flow.srtt_ms.expect("reports came") - 101.0).abs() < 3.0, "{:?}", flow.srtt_ms);
}

/// Slow start doubles until the queue overflows; then the stream fills the link with few losses.
#[test]
fn a_stream_alone_fills_the_link() {
    let outcome = outcome(&world(&[
        "flow.newreno.count=1",
        "flow.newreno.start=900 s",
        "flow.bulk.count=1",
        "link.satellite.queue=100 packets",
        "duration=200 s",
    ]));
    assert!(outcome.flows[0].goodput_bps > 0.85 * 10e6 * 1448.0 / 1500.0, "{}", outcome.flows[0].goodput_bps);
    let link = outcome.links.iter().find(|link| link.name == "satellite").expect("it is there");
    assert!(link.dropped_by_queue * 100 < link.delivered_packets, "{link:?}");
}
