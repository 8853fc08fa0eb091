//! Transports that are not TCP, beside TCP in the same worlds.

mod common;

use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::{LossConfig, LossModel, Outage};
use bentpipe_outcome::Outcome;
use bentpipe_scenario::{Draft, NodeKind, Scenario, Streaming, Traffic, Transport, builtin};
use bentpipe_sim::{RunOptions, run};
use bentpipe_tcp::InitialWindow;
use bentpipe_transports::dtn::{Convergence, RouterConfig};
use bentpipe_transports::petra::RelayConfig;
use common::{Dumbbell, flows, paper_tcp};

/// One flow over a GEO link of 10 Mbit/s and 550 ms that loses packets with probability `loss`, data or not.
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

/// Returns the number of packets in the reverse direction of the satellite, and their share of the time.
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

#[test]
fn streams_of_an_association_do_not_wait_for_each_other() {
    let missed = |transport| {
        // The windows are large enough even after four losses, so late packets were blocked by a hole.
        let video = bentpipe_traffic::mpeg::Config { rate_factor: 0.75, ..Default::default() };
        let stream = Streaming { playout_delay: Duration::from_millis(100), ..Streaming::default() };
        let mut scenario = geo(transport, Traffic::Video { video, stream }, 0.0);
        let numbers = vec![500, 1001, 1502, 2003];
        scenario.links[1].forward.loss = LossConfig::data(LossModel::List { numbers });
        let config =
            paper_tcp(500).with(|config| config.sender.initial_window = InitialWindow::Segments(200));
        scenario.flows[0].sender = Arc::new(config);
        outcome(&scenario).flows[0].stream.unwrap().frames_missed
    };
    let (tcp, sctp) = (missed(Transport::Tcp), missed(Transport::Sctp));
    // After a loss TCP blocks all later data for a round trip, SCTP only data of the same stream.
    assert!(sctp > 0.0 && sctp < 0.8 * tcp, "SCTP {sctp}, TCP {tcp}");
}

#[test]
fn an_association_moves_to_its_second_path_in_an_outage_and_back() {
    let world = |transport, second_path: Option<&str>| {
        let mut scenario = geo(transport, Traffic::Bulk, 0.0);
        let mut other = scenario.links[1].clone();
        scenario.nodes.push(common::router("relay"));
        (other.name, other.to) = ("west-relay".into(), "relay".into());
        let mut onward = other.clone();
        (onward.name, onward.from, onward.to) = ("relay-east".into(), "relay".into(), "east".into());
        scenario.links.extend([other, onward]);
        let from = Instant::ZERO + Duration::from_secs(30);
        let outage = Outage { from, to: from + Duration::from_secs(60) };
        scenario.links[1].forward.outages.intervals = vec![outage];
        scenario.flows[0].second_path = second_path.map(str::to_owned);
        outcome(&scenario)
    };
    let delivered = |outcome: &Outcome| outcome.flows[0].delivered_bytes;
    let busy = |outcome: &Outcome, name: &str| {
        outcome
            .links
            .iter()
            .find(|link| link.name == name && link.direction == "forward")
            .unwrap()
            .utilisation
    };
    let alone = world(Transport::Sctp, None);
    let both = world(Transport::Sctp, Some("relay"));
    let tcp = world(Transport::Tcp, None);
    // Half of the two minutes are an outage of the first path.
    assert!(delivered(&both) as f64 > 1.3 * delivered(&alone) as f64, "{both:?} {alone:?}");
    assert!(delivered(&both) as f64 > 1.3 * delivered(&tcp) as f64, "{both:?} {tcp:?}");
    assert_eq!((busy(&alone, "west-relay"), both.flows[0].aborted), (0.0, None));
    assert!(busy(&both, "west-relay") > 0.1 && busy(&both, "satellite") > 0.15, "{:?}", both.links);
}

#[test]
fn an_association_delivers_every_byte_of_a_file() {
    for loss in [0.0, 1e-3, 0.05] {
        let bytes = if loss > 0.01 { 300_000 } else { 5_000_000 };
        let flow = outcome(&geo(Transport::Sctp, Traffic::File { bytes }, loss)).flows.swap_remove(0);
        assert_eq!((flow.delivered_bytes, flow.aborted), (bytes, None), "{loss}");
        assert!(flow.completion_s.is_some() && (loss > 0.0) == (flow.retransmitted_segments > 0), "{flow:?}");
    }
}

/// The way back carries 125 ACKs a second; with 200 of them in its queue they take 1.6 s, and a window of 400 packets in 2.15 s is a rate of
/// 1.43 Mbit/s. STP has the link: 10 MB of payload in packets of 988 bytes take 20.6 s at 4 Mbit/s.
#[test]
fn geo_stp_is_bound_by_its_way_and_tcp_by_its_way_back() {
    let outcome = outcome(&builtin("geo-stp").unwrap());
    let [tcp, stp] = [0, 1].map(|flow| outcome.flows[flow].completion_s.unwrap());
    let bound = 10e6 * 8.0 / (400.0 * 960.0 * 8.0 / 2.15);
    assert!((0.8 * bound..1.2 * bound).contains(&tcp), "{tcp} s, by the formula {bound}");
    let least = 10e6 / 960.0 * 988.0 * 8.0 / 4e6;
    assert!((least..least + 10.0).contains(&stp), "{stp} s, at least {least}");
}

/// The second path of 4 Mbit/s carries 60 s of outage, minus the timeout that detects it and a slow start; TCP carries nothing then.
#[test]
fn geo_sctp_carries_on_where_tcp_waits() {
    let world = builtin("geo-sctp").unwrap();
    let until = |secs| outcome(&Scenario { duration: Duration::from_secs(secs), ..world.clone() });
    let (before, after) = (until(31), until(90));
    let gained = |flow: usize| after.flows[flow].delivered_bytes - before.flows[flow].delivered_bytes;
    let possible = 59.0 * 4e6 / 8.0 * 960.0 / 988.0;
    assert_eq!(gained(0), 0);
    let part = gained(1) as f64 / possible;
    assert!((0.75..1.0).contains(&part), "{part}");
    let whole = outcome(&world);
    assert!(whole.flows.iter().all(|flow| flow.aborted.is_none()), "{:?}", whole.flows);
}

/// A built-in scenario with changes.
fn changed(name: &str, changes: &[&str]) -> Outcome {
    let mut draft = Draft::load(name).expect("it is built in");
    for change in changes {
        draft.set(change).expect("a well-formed change");
    }
    outcome(&draft.scenario().unwrap_or_else(|error| panic!("{error}")))
}

/// A TCP that halves for each of the errors stays below the square-root law, 1.31 / sqrt(p) segments in a round trip, and STP with TCP's window law
/// not far above. STP at the rate of its link stays below that by its headers, what is sent again, and the start.
#[test]
fn stp_at_its_rate_fills_a_link_that_loses() {
    let goodput = |transport, rate| {
        let mut scenario = geo(transport, Traffic::Bulk, 1e-3);
        scenario.links[1].forward.loss.data_only = true;
        let config = Arc::new(paper_tcp(5000));
        (scenario.flows[0].sender, scenario.flows[0].receiver) = (config.clone(), config);
        scenario.flows[0].options.stp.rate = rate;
        outcome(&scenario).flows[0].goodput_bps
    };
    let law = 960.0 * 8.0 * 1.31 / libm::sqrt(1e-3) / 0.55;
    assert!(goodput(Transport::Tcp, None) < 1.1 * law && goodput(Transport::Stp, None) < 1.5 * law);
    let most = 10e6 * 960.0 / 988.0;
    let at_rate = goodput(Transport::Stp, Some(Rate::from_mbps(10)));
    assert!((0.95 * most..most).contains(&at_rate), "{at_rate} of {most}");
}

/// Never a path from end to end: 20 MB take two contacts of eight minutes at 256 kbit/s, and come down with the second contact of the station.
#[test]
fn bundles_cross_contacts_that_never_overlap() {
    let outcome = changed("leo-dtn", &[]);
    let (dtn, tcp) = (&outcome.flows[0], &outcome.flows[1]);
    assert_eq!((tcp.delivered_bytes, tcp.aborted), (0, Some("timed out")));
    assert_eq!((dtn.delivered_bytes, dtn.aborted), (20_000_000, None));
    // The reports of the second contact return with the third pass over the buoy.
    let done = dtn.completion_s.unwrap();
    assert!((190.0 * 60.0..190.5 * 60.0).contains(&done), "{done} s");
    let bundles = dtn.bundles.unwrap();
    assert_eq!((bundles.made, bundles.delivered, bundles.confirmed), (306, 306, 306));
    let transfer = bundles.mean_transfer_s.unwrap();
    assert!(
        (32.0 * 60.0..135.0 * 60.0).contains(&transfer) && transfer < bundles.mean_confirmation_s.unwrap()
    );
    let kept = outcome.nodes[0].counters["most_stored_bytes"] as f64;
    assert!((14e6..256e3 / 8.0 * 480.0).contains(&kept), "a contact's worth: {kept}");
    // A satellite with a small store accepts the bundles that fit; the buoy keeps the others and offers them again.
    let small = changed("leo-dtn", &["node.satellite.store=4 MB", "flow.dtn.transport.custody-timer=1 min"]);
    assert!(
        small.nodes[0].counters["custody_refused"] > 0
            && small.nodes[0].counters["most_stored_bytes"] <= 4_000_000
    );
    assert!((4_000_000..=12_000_000).contains(&small.flows[0].delivered_bytes), "{:?}", small.flows[0]);
}

/// Bundles over a link that loses: LTP and TCP repair packets, custody repairs bundles, bare datagrams without custody repair nothing.
#[test]
fn bundles_survive_losses_by_ltp_or_by_custody() {
    let world = |convergence, custody| {
        let mut scenario = geo(Transport::Dtn, Traffic::File { bytes: 2_000_000 }, 0.01);
        scenario.nodes[1].kind = NodeKind::BundleRouter(RouterConfig::default());
        let dtn = &mut scenario.flows[0].options.dtn;
        (dtn.convergence, dtn.custody, dtn.bundle_bytes) = (convergence, custody, 20_000);
        outcome(&scenario)
    };
    for (convergence, custody) in [
        (Convergence::Ltp, true),
        (Convergence::Ltp, false),
        (Convergence::Tcp, true),
        (Convergence::Tcp, false),
        (Convergence::Udp, true),
    ] {
        let flow = world(convergence, custody).flows.swap_remove(0);
        assert_eq!((flow.delivered_bytes, flow.aborted), (2_000_000, None), "{convergence:?} {custody}");
        // Reports of delivery have no custodian: over datagrams some are lost.
        assert_eq!(flow.completion_s.is_some(), convergence != Convergence::Udp, "{flow:?}");
    }
    let flow = world(Convergence::Udp, false).flows.swap_remove(0);
    // A bundle of 21 packets arrives with probability 0.99^21.
    let share = flow.delivered_bytes as f64 / 2e6;
    assert!((share - 0.81).abs() < 0.12 && flow.completion_s.is_none(), "{share}");
}

/// A flow that starts while there is no contact opens the connection under its bundles when there is one again.
#[test]
fn bundles_over_a_connection_wait_for_the_next_contact() {
    let mut scenario = geo(Transport::Dtn, Traffic::File { bytes: 100_000 }, 0.0);
    scenario.nodes[1].kind = NodeKind::BundleRouter(RouterConfig::default());
    scenario.flows[0].options.dtn.convergence = Convergence::Tcp;
    let at_once = outcome(&scenario).flows[0].completion_s.expect("it arrives");
    let at = |secs| Instant::ZERO + Duration::from_secs(secs);
    scenario.links[1].forward.outages.intervals = vec![Outage { from: at(2), to: at(7) }];
    scenario.flows[0].start = Duration::from_secs(3);
    let after_4_s = outcome(&scenario).flows[0].completion_s.expect("it arrives");
    assert!((after_4_s - 4.0 - at_once).abs() < 1.0, "{after_4_s} s instead of {at_once} s");
}

#[test]
fn a_connection_of_stp_outlasts_an_outage_if_it_may() {
    let world = |tolerant: bool| {
        let mut scenario = geo(Transport::Stp, FILE, 0.0);
        let from = Instant::ZERO + Duration::from_secs(3);
        let outage = Outage { from, to: from + Duration::from_secs(40) };
        scenario.links[1].forward.outages.intervals = vec![outage];
        scenario.flows[0].options.stp.outage_tolerant = tolerant;
        outcome(&scenario).flows.swap_remove(0)
    };
    assert_eq!(world(false).aborted, Some("no response"));
    let flow = world(true);
    assert_eq!((flow.aborted, flow.delivered_bytes), (None, 5_000_000));
    assert!(flow.completion_s.unwrap() > 43.0, "{flow:?}");
}

/// PETRA over a GEO satellite: its source keeps what the destination has not confirmed, and a crash in between costs what is sent again.
#[test]
fn petra_fills_a_lossy_satellite_and_survives_the_crash_of_a_relay_entity() {
    let outcome = outcome(&builtin("geo-petra").unwrap());
    let [tcp, petra] = [&outcome.flows[0], &outcome.flows[1]];
    assert_eq!((petra.delivered_bytes, petra.aborted), (10_000_000, None));
    let relayed = petra.relayed.unwrap();
    // At 6 Mbit/s, with headers; besides, the second without the teleport, a timeout that finds it back, and twice a handshake over the satellite and a slow start.
    let again = relayed.resent_bytes as f64;
    let least = (10e6 + again) * 1.04 * 8.0 / 6e6;
    let done = petra.completion_s.unwrap();
    assert!((least..least + 7.0).contains(&done), "{done} s, at least {least} s");
    assert!(tcp.completion_s.is_none_or(|tcp| tcp > 2.0 * done), "{:?}", tcp.completion_s);
    assert_eq!(relayed.reconnections, 1);
    // At most the retained data is sent again, and data that arrived unconfirmed arrives twice.
    assert!(relayed.resent_bytes <= relayed.most_kept_bytes && relayed.most_kept_bytes <= 4 * 412_500);
    assert!(relayed.duplicate_bytes <= relayed.resent_bytes);
    let teleport = |name: &str| {
        let node = outcome.nodes.iter().find(|node| node.name == name).unwrap();
        (node.counters["crashes"], node.counters["most_kept_bytes"])
    };
    assert_eq!((teleport("teleport-1").0, teleport("teleport-2").0), (1, 0));
    // Back-pressure: high water of twice the bandwidth-delay product, and a unit.
    assert!(teleport("teleport-1").1 <= 825_000 * 9 / 10 + 1_000, "{}", teleport("teleport-1").1);
}

#[test]
fn flows_of_petra_share_the_satellite_equally() {
    let mut scenario = geo(Transport::Petra, Traffic::Bulk, 1e-3);
    scenario.flows[0].count = 4;
    scenario.nodes[1].kind = NodeKind::RelayEntity(RelayConfig::default());
    scenario.nodes[2].kind = NodeKind::RelayEntity(RelayConfig::default());
    let outcome = outcome(&scenario);
    // Of 10 Mbit/s 99 %, in units of 1000 bytes with 28 of STP and 12 of the upper layer within, and the start of a few round trips.
    let most = 10e6 * 0.99 * 988.0 / 1028.0;
    assert!((0.9 * most..=most).contains(&outcome.totals.goodput_bps), "{}", outcome.totals.goodput_bps);
    assert!(outcome.totals.jain_index > 0.999, "{}", outcome.totals.jain_index);
}

/// Sixteen streams of 250 kbit/s ask for room on 2 Mbit/s one after the other: as many as fit are admitted, and what they send arrives. Without the asking half of
/// everything is lost.
#[test]
fn streams_that_ask_in_low_priority_are_admitted_as_long_as_there_is_room() {
    let world = |transport: &str| {
        let asks = format!("flow.video.transport={transport}");
        let changes = [
            "duration=120 s",
            "node.sender.count=16",
            "node.viewer.count=16",
            "flow.video.count=16",
            "flow.video.stagger=60 s",
            "flow.video.traffic={ kind = 'cbr', rate = '250 kbit/s', packet = '1056 bytes' }",
            "link.satellite.rate=2 Mbit/s",
            "link.satellite.loss=none",
            "link.satellite.queue={ kind = 'strict', limit = '50 packets' }",
            asks.as_str(),
        ];
        changed("geo-video", &changes)
    };
    let [admission, udp] = ["admission", "udp"].map(world);
    let served = |outcome: &Outcome| outcome.flows.iter().filter(|flow| flow.sent_segments > 0).count();
    assert!((6..=8).contains(&served(&admission)), "{}", served(&admission));
    assert!(admission.flows.iter().filter(|flow| flow.aborted == Some("not admitted")).count() >= 8);
    let arrives = |outcome: &Outcome| {
        let sent: u64 = outcome.flows.iter().map(|flow| flow.sent_segments).sum();
        outcome.flows.iter().map(|flow| flow.delivered_bytes).sum::<u64>() as f64 / (1000.0 * sent as f64)
    };
    assert!(arrives(&admission) > 0.98, "{}", arrives(&admission));
    assert!(arrives(&udp) < 0.7, "{}", arrives(&udp));
}
