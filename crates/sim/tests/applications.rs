//! Applications over links: results on an empty path, and the effect of losses and delays.

mod common;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::Outage;
use bentpipe_outcome::{FlowOutcome, Outcome};
use bentpipe_scenario::{Scenario, Streaming, Traffic, Transport, builtin};
use bentpipe_sim::{RunOptions, run};
use bentpipe_tcp::KeepAlive;
use bentpipe_traffic::{adaptive, browser, fetch, on_off, voice};
use common::{Dumbbell, flows, ms, paper_tcp};

/// One flow over a GEO link of 550 ms there and back.
fn geo(traffic: Traffic, rate: Rate, seconds: u64) -> Scenario {
    let flow = flows("flow", 1, traffic, paper_tcp(1000));
    Dumbbell::geo(1, (Rate::from_mbps(100), rate), 1000).scenario(Duration::from_secs(seconds), vec![flow])
}

/// The outcome of a run in which the checkers found nothing.
fn outcome(scenario: &Scenario) -> Outcome {
    let result = run(scenario, &RunOptions { verify: true, ..RunOptions::default() }).unwrap();
    assert_eq!(result.violations, [""; 0]);
    result.outcome
}

fn flow(scenario: &Scenario) -> FlowOutcome {
    outcome(scenario).flows.swap_remove(0)
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn video() -> Traffic {
    Traffic::Video { video: Default::default(), stream: Streaming::default() }
}

#[test]
fn a_video_with_room_arrives_in_time_over_either_transport() {
    for transport in [Transport::Tcp, Transport::Udp, Transport::Tfrc] {
        let mut scenario = geo(video(), Rate::from_mbps(5), 100);
        scenario.flows[0].transport = transport;
        let flow = flow(&scenario);
        let stream = flow.stream.unwrap();
        // The first at 0 s, the last at 100 s.
        assert_eq!(stream.frames_sent, 2501);
        assert_eq!(stream.packet_drop_rate, 0.0);
        // TCP begins with a window of two segments, so some of the first frames are late. TFRC begins with one packet until the round
        // trip is known, then four per round trip, so the backlog of the start is late.
        let late = if transport == Transport::Tfrc { 0.12 } else { 0.01 };
        assert!(stream.frames_missed < late, "{transport:?}: {stream:?}");
        // Packets in flight at the end of 100 s have not arrived.
        assert!(stream.real_time_index > 0.985, "{transport:?}: {stream:?}");
        assert!((180e3..220e3).contains(&flow.goodput_bps), "{transport:?}: {flow:?}");
    }
}

#[test]
fn losses_make_tcp_late_and_udp_leaky() {
    let lossy = |transport| {
        let link = Dumbbell::geo(1, (Rate::from_mbps(100), Rate::from_mbps(5)), 1000).with_loss(0.005);
        let mut group = flows("flow", 1, video(), paper_tcp(1000));
        group.transport = transport;
        flow(&link.scenario(Duration::from_secs(200), vec![group]))
    };
    let (tcp, udp) = (lossy(Transport::Tcp), lossy(Transport::Udp));
    let [of_tcp, of_udp] = [&tcp, &udp].map(|flow| flow.stream.unwrap());
    // Frames of 1 to 4 packets, each lost with probability 0.005.
    assert!((0.005..0.015).contains(&of_udp.frames_missed), "{of_udp:?}");
    assert!((0.003..0.007).contains(&of_udp.packet_drop_rate), "{of_udp:?}");
    assert_eq!((udp.retransmitted_segments, tcp.retransmitted_segments > 20), (0, true));
    // A repair takes a round trip and blocks what follows: more is late than was lost.
    assert!(of_tcp.delayed_packets_rate > of_udp.delayed_packets_rate, "{of_tcp:?} {of_udp:?}");
}

#[test]
fn a_call_sounds_as_the_e_model_says_of_its_delay() {
    let codec = voice::Codec::G711;
    let call = Traffic::Voice { codec, suppress_silence: true, jitter_buffer: ms(40) };
    let flow = flow(&geo(call, Rate::from_mbps(1), 100));
    let call = flow.call.unwrap();
    // A packet of 200 bytes on links of 1 ms, 273 ms, 1 ms; 20 ms to fill it, 40 ms in the jitter buffer.
    let network = Rate::from_mbps(100).time_for(200) * 2 + Rate::from_mbps(1).time_for(200) + ms(275);
    let expected = voice::rating(codec, network + ms(60), 0.0);
    assert_eq!(call.lost, 0.0);
    assert!((call.rating - expected).abs() < 1e-9, "{call:?} instead of {expected}");
    assert!((3.0..4.0).contains(&call.mos), "{call:?}");
}

#[test]
fn a_page_takes_a_handshake_and_a_round_trip() {
    let config =
        browser::Config { model: bentpipe_traffic::web::Model::Ns2Web, ..browser::Config::default() };
    let fresh = flow(&geo(Traffic::Web(config), Rate::from_mbps(50), 400));
    let kept = browser::Config { persistent: true, connections: 1, ..config };
    let kept = flow(&geo(Traffic::Web(kept), Rate::from_mbps(50), 400));
    let [fresh_pages, kept_pages] = [&fresh, &kept].map(|flow| flow.transfers.unwrap());
    assert!(fresh_pages.completed > 100 && kept_pages.completed > fresh_pages.completed);
    let median = |transfers: bentpipe_outcome::TransferOutcome| transfers.median_s.unwrap();
    // Half of the pages are less than 2 kB: two segments, the initial window.
    assert!((1.10..1.20).contains(&median(fresh_pages)), "{fresh_pages:?}");
    assert!((0.55..0.60).contains(&median(kept_pages)), "{kept_pages:?}");
    assert_eq!(fresh.completion_s, fresh_pages.mean_s);
    assert_eq!((fresh_pages.failed_connections, fresh.aborted), (0, None));
}

#[test]
fn connections_at_once_make_a_page_of_many_objects_faster() {
    let pages = |connections| {
        let config = browser::Config { connections, ..browser::Config::default() };
        flow(&geo(Traffic::Web(config), Rate::from_mbps(10), 1000)).transfers.unwrap()
    };
    let (single, parallel) = (pages(1), pages(6));
    assert!(parallel.completed >= single.completed && single.completed > 10);
    assert!(parallel.mean_s < single.mean_s, "{parallel:?} {single:?}");
}

#[test]
fn a_player_chooses_what_the_link_carries() {
    let watch = |config: adaptive::Config| flow(&geo(Traffic::Adaptive(config), Rate::from_mbps(3), 300));
    let by_throughput =
        adaptive::Config { logic: adaptive::Logic::THROUGHPUT, ..adaptive::Config::default() };
    for config in [by_throughput, adaptive::Config::default()] {
        let flow = watch(config);
        let player = flow.player.unwrap();
        assert_eq!(player.stalls, 0, "{player:?}");
        // A handshake, a round trip, and the slow start of 150 kB.
        assert!((1.1..6.0).contains(&player.startup_s.unwrap()), "{player:?}");
        let rate = player.mean_rate_bps.unwrap();
        assert!((1.0e6..2.9e6).contains(&rate), "{player:?}");
        assert!(flow.goodput_bps < 2.9e6);
    }
}

#[test]
fn an_outage_longer_than_the_buffer_stops_the_picture() {
    let watch = |seconds: u64| {
        let mut scenario = geo(Traffic::Adaptive(adaptive::Config::default()), Rate::from_mbps(8), 300);
        let outage = Outage { from: at(150), to: at(150 + seconds) };
        scenario.links[1].forward.outages.intervals = vec![outage];
        flow(&scenario).player.unwrap()
    };
    assert_eq!(watch(30).stalls, 0);
    let long = watch(90);
    assert!(long.stalls >= 1 && (20.0..60.0).contains(&long.stalled_s), "{long:?}");
}

#[test]
fn files_come_one_after_the_other() {
    let config = fetch::Config {
        mean_bytes: 500_000,
        deviation_bytes: 0,
        largest_bytes: 500_000,
        reading: Duration::from_secs(5),
    };
    let flow = flow(&geo(Traffic::Ftp(config), Rate::from_mbps(10), 300));
    let transfers = flow.transfers.unwrap();
    assert!(transfers.completed > 20);
    assert_eq!(flow.delivered_bytes / 500_000, transfers.completed);
    // All alike: two round trips at least, and slow start from 2 to 521 segments in nine more at most.
    let (median, p95) = (transfers.median_s.unwrap(), transfers.p95_s.unwrap());
    assert!(median > 1.1 && median < 6.0 && p95 - median < 1e-6, "{transfers:?}");
}

#[test]
fn constant_bit_rate_is_constant_over_either_transport() {
    let traffic = [
        Traffic::Cbr { rate: Rate::from_bps(400_000), packet_bytes: 1000, spacing: Default::default() },
        Traffic::OnOff(on_off::Config {
            rate: Rate::from_bps(800_000),
            packet_bytes: 1000,
            ..on_off::Config::default()
        }),
    ];
    for traffic in traffic {
        for transport in [Transport::Udp, Transport::Tcp] {
            let mut scenario = geo(traffic.clone(), Rate::from_mbps(5), 200);
            scenario.flows[0].transport = transport;
            let flow = flow(&scenario);
            // Half of the time on, at twice the rate.
            assert!((350e3..420e3).contains(&flow.goodput_bps), "{traffic:?} {transport:?}: {flow:?}");
            assert_eq!((flow.stream, flow.completion_s), (None, None));
        }
    }
}

#[test]
fn twenty_videos_fill_the_asymmetric_link_and_some_are_late() {
    let mut scenario = builtin("geo-video").unwrap();
    scenario.duration = Duration::from_secs(60);
    let outcome = outcome(&scenario);
    // Packets of 1056 bytes carry 1000.
    let most = 5e6 * 1000.0 / 1056.0;
    assert!((0.5 * most..most).contains(&outcome.totals.goodput_bps), "{:?}", outcome.totals);
    for flow in &outcome.flows {
        let stream = flow.stream.unwrap();
        let seen = stream.real_time_index + stream.delayed_packets_rate;
        assert!((0.3..=1.0).contains(&seen), "{flow:?}");
    }
    let delayed = outcome.flows.iter().map(|flow| flow.stream.unwrap().delayed_packets_rate);
    assert!(delayed.sum::<f64>() > 0.02 * 20.0);
}

#[test]
fn bulk_downloads_ruin_calls_that_share_their_queue() {
    let mut scenario = builtin("geo-voip").unwrap();
    scenario.duration = Duration::from_secs(60);
    let mos = |scenario: &Scenario| {
        let calls: Vec<_> = outcome(scenario).flows.iter().filter_map(|flow| flow.call).collect();
        assert_eq!(calls.len(), 8);
        calls.iter().map(|call| call.mos).sum::<f64>() / 8.0
    };
    let shared = mos(&scenario);
    scenario.flows.retain(|flow| flow.name == "voice");
    let alone = mos(&scenario);
    assert!((2.5..3.5).contains(&alone), "{alone}");
    assert!(shared < alone - 0.2, "{shared} beside {alone}");
}

/// Connections that nobody asks anything of end by their keep-alive while the path is cut, and their places are each given away once.
#[test]
fn connections_that_time_out_while_the_reader_reads_leave_one_place_each() {
    let keep_alive = KeepAlive { idle: ms(2000), interval: ms(1000), probes: 3 };
    let tcp = paper_tcp(1000).with(|config| config.lifetime.keep_alive = Some(keep_alive));
    let config = browser::Config { persistent: true, connections: 4, ..browser::Config::default() };
    let flow = flows("flow", 1, Traffic::Web(config), tcp);
    let mut scenario = Dumbbell::geo(1, (Rate::from_mbps(100), Rate::from_mbps(10)), 1000)
        .scenario(Duration::from_secs(400), vec![flow]);
    let cut = |from| Outage { from: at(from), to: at(from + 20) };
    scenario.links[1].forward.outages.intervals = (1..10).map(|n| cut(40 * n)).collect();
    let transfers = outcome(&scenario).flows[0].transfers.unwrap();
    assert!(transfers.failed_connections > 10, "{transfers:?}");
}

#[test]
fn pages_load_beside_a_download() {
    let mut scenario = builtin("geo-web").unwrap();
    scenario.duration = Duration::from_secs(120);
    let outcome = outcome(&scenario);
    let pages: u64 = outcome.flows.iter().filter_map(|flow| flow.transfers).map(|t| t.completed).sum();
    assert!(pages > 20, "{pages}");
    for transfers in outcome.flows.iter().filter_map(|flow| flow.transfers) {
        assert!(transfers.median_s.is_none_or(|median| median > 0.542), "{transfers:?}");
    }
}

#[test]
fn applications_are_deterministic() {
    for name in ["geo-video", "geo-web"] {
        let mut scenario = builtin(name).unwrap();
        scenario.duration = Duration::from_secs(20);
        let json = || {
            let result = run(&scenario, &RunOptions::default()).unwrap();
            serde_json::to_string(&Outcome { wall_s: 0.0, ..result.outcome }).unwrap()
        };
        assert_eq!(json(), json());
    }
}
