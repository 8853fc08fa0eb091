//! Proxies that split connections: their gains, their limits, and their losses in a crash.

mod common;

use std::sync::Arc;

use bentpipe_base::{Duration, Rate};
use bentpipe_middlebox::{MiddleboxConfig, SpoofingConfig};
use bentpipe_net::LinkConfig;
use bentpipe_outcome::Outcome;
use bentpipe_scenario::{
    Connect, Idle, NodeKind, Opening, ProxyConfig, Scenario, Side, Split, Streaming, Traffic,
};
use bentpipe_sim::{RunOptions, run};
use bentpipe_tcp::{Config, InitialWindow, KeepAlive};
use bentpipe_traffic::{adaptive, browser, fetch};
use common::{Dumbbell, drop_tail, flows, hosts, links, ms, paper_tcp};

fn verified(scenario: &Scenario) -> Outcome {
    let result = run(scenario, &RunOptions { verify: true, ..RunOptions::default() }).expect("a world");
    assert_eq!(result.violations, [""; 0]);
    result.outcome
}

/// A proxy with this TCP, and this algorithm instead of the flow's.
fn proxy(tcp: Config, cc: Option<&str>) -> ProxyConfig {
    let cc = cc.unwrap_or("default").to_owned();
    let split = Split {
        satellite: Side { cc, ..Side::default() },
        buffer: Some(2_000_000),
        syn: Opening::Early,
        ..Split::default()
    };
    ProxyConfig { split, connect: Connect::Early, dies_at: None, tcp: Arc::new(tcp) }
}

fn kind(proxy: &ProxyConfig) -> NodeKind {
    NodeKind::Proxy(Box::new(proxy.clone()))
}

/// A flow over a GEO satellite that loses one packet in a thousand, behind the node `west`.
fn lossy(west: NodeKind) -> Outcome {
    let bulk = flows("bulk", 1, Traffic::Bulk, paper_tcp(800));
    let dumbbell = Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(10)), 200).with_loss(1e-3);
    let mut scenario = dumbbell.scenario(Duration::from_secs(120), vec![bulk]);
    scenario.nodes[1].kind = west;
    run(&scenario, &RunOptions::default()).expect("a world").outcome
}

/// The proxy removes two milliseconds of the round trip and not one loss: with the same algorithm it gains nothing, and with one
/// made for the path as much as that gains.
#[test]
fn a_split_is_worth_what_the_algorithm_behind_it_is_worth() {
    let end_to_end = lossy(NodeKind::Router).totals.goodput_bps;
    let same = lossy(kind(&proxy(paper_tcp(800), None)));
    let ratio = same.totals.goodput_bps / end_to_end;
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
    let hybla = lossy(kind(&proxy(paper_tcp(800), Some("hybla"))));
    let gain = hybla.totals.goodput_bps / end_to_end;
    assert!(gain > 2.0, "{gain}");
    let split = hybla.flows[0].split.as_ref().expect("a proxy is on the way");
    assert_eq!((split.legs[0].name.as_str(), split.legs[0].cc.as_str()), ("bulk.west", "hybla"));
    // Every loss is behind the proxy.
    assert_eq!(hybla.flows[0].retransmitted_segments, 0);
    assert!(split.legs[0].retransmitted_segments > 20);
}

/// 5 ms to the proxy, 255 ms from there, 50 segments.
fn short_world() -> Scenario {
    let tcp = paper_tcp(100).with(|config| {
        config.mss = 1000;
        config.sender.initial_window = InitialWindow::Segments(1);
    });
    let file = flows("file", 1, Traffic::File { bytes: 50_000 }, tcp);
    let dumbbell = Dumbbell {
        pairs: 1,
        access: LinkConfig::new(Rate::from_mbps(100), ms(5), drop_tail(100)),
        satellite: LinkConfig::new(Rate::from_mbps(10), ms(250), drop_tail(100)),
    };
    dumbbell.scenario(Duration::from_secs(20), vec![file])
}

fn short_file(proxy: Option<&ProxyConfig>) -> Outcome {
    let mut scenario = short_world();
    scenario.nodes[1].kind = proxy.map_or(NodeKind::Router, kind);
    verified(&scenario)
}

/// The client is answered when the server has answered: its first segment comes to the proxy a round trip of 10 ms after that, and not before.
/// Which half is that over the satellite is known by its delay, and that half has the algorithm of its side.
#[test]
fn server_first_costs_a_round_trip_in_front_of_the_proxy() {
    let tcp = paper_tcp(100).with(|config| config.sender.initial_window = InitialWindow::Segments(64));
    let mut early = proxy(tcp, None);
    early.split.satellite = Side { cc: "hybla".into(), ..Side::default() };
    early.split.clients = Side { cc: "vegas".into(), ..Side::default() };
    let mut first = early.clone();
    first.split.syn = Opening::ServerFirst;
    let [early, first] = [early, first].map(|config| short_file(Some(&config)));
    let completion = |outcome: &Outcome| outcome.flows[0].completion_s.expect("it ends");
    let cost = completion(&first) - completion(&early);
    assert!((0.009..0.1).contains(&cost), "{cost}");
    assert_eq!(first.flows[0].split.as_ref().expect("a proxy is on the way").legs[0].cc, "hybla");
}

/// What waits in a proxy for its first transmission is bounded by two windows, not by what it may keep; a window that nothing has limited yet is
/// larger than what the path takes.
#[test]
fn an_automatic_buffer_holds_two_windows_and_not_more() {
    let held = |buffer| {
        let mut config = proxy(paper_tcp(800), Some("newreno"));
        config.split.buffer = buffer;
        let bulk = flows("bulk", 1, Traffic::Bulk, paper_tcp(60_000));
        let dumbbell = Dumbbell::geo(1, (Rate::from_mbps(100), Rate::from_mbps(2)), 200);
        let mut scenario = dumbbell.scenario(Duration::from_secs(60), vec![bulk]);
        scenario.nodes[1].kind = kind(&config);
        let outcome = verified(&scenario);
        outcome.flows[0].split.as_ref().expect("a proxy is on the way").acked_undelivered_bytes
    };
    let [auto, large] = [None, Some(30_000_000)].map(held);
    assert!(auto < large / 4 && large > 20_000_000, "{auto} and {large} bytes");
}

/// 50 segments are six windows of 1, 2, 4 ... Over 520 ms that is 3.1 s after the handshake. A proxy that starts with as little needs
/// as long; one that knows its link sends all at once, half a round trip after its own handshake.
#[test]
fn the_proxy_must_not_slow_start_itself() {
    let seconds = |outcome: &Outcome| outcome.flows[0].completion_s.expect("it ends");
    let end_to_end = seconds(&short_file(None));
    assert!((3.6..3.8).contains(&end_to_end), "{end_to_end}");
    let window = |segments| {
        paper_tcp(100).with(|config| config.sender.initial_window = InitialWindow::Segments(segments))
    };
    let timid = seconds(&short_file(Some(&proxy(window(1), None))));
    assert!((3.2..3.6).contains(&timid), "{timid}");
    let bold = seconds(&short_file(Some(&proxy(window(64), None))));
    assert!((0.76..0.90).contains(&bold), "{bold}");
    // A proxy that waits for its client connects later by a terrestrial round trip.
    let late = ProxyConfig { connect: Connect::Late, ..proxy(window(64), None) };
    let later = seconds(&short_file(Some(&late))) - bold;
    assert!((0.009..0.012).contains(&later), "{later}");
}

/// What is not acknowledged onward must be kept: 64 kB over a round trip of 548 ms are 0.93 Mbit/s.
#[test]
fn the_buffer_bounds_the_throughput_and_presses_back() {
    let bulk = flows("bulk", 1, Traffic::Bulk, paper_tcp(800));
    let dumbbell = Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(10)), 200);
    let mut scenario = dumbbell.scenario(Duration::from_secs(60), vec![bulk]);
    let mut small = proxy(paper_tcp(800), None);
    small.split.buffer = Some(64_000);
    scenario.nodes[1].kind = kind(&small);
    let outcome = verified(&scenario);
    let expected = 64_000.0 * 8.0 / 0.548;
    let measured = outcome.totals.goodput_bps;
    assert!((0.85 * expected..expected).contains(&measured), "{measured} against {expected}");
    // Back-pressure on the client: the data at the proxy is its buffer and the window that it offers.
    let split = outcome.flows[0].split.as_ref().expect("a proxy is on the way");
    assert!(split.acked_undelivered_bytes <= 64_000 + 800 * 960, "{split:?}");
    assert!(split.acked_undelivered_bytes > 800 * 900, "{split:?}");
}

#[test]
fn what_a_dead_proxy_had_acknowledged_is_lost_and_reported() {
    let tcp = paper_tcp(100).with(|config| config.lifetime.user_timeout = Some(Duration::from_secs(10)));
    let world = |west: NodeKind, bytes| {
        let file = flows("file", 1, Traffic::File { bytes }, tcp.clone());
        let dumbbell = Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(2)), 200);
        let mut scenario = dumbbell.scenario(Duration::from_secs(60), vec![file]);
        scenario.nodes[1].kind = west;
        verified(&scenario)
    };
    let mortal = ProxyConfig { dies_at: Some(ms(2_000)), ..proxy(paper_tcp(800), None) };
    let outcome = world(kind(&mortal), 5_000_000);
    let flow = &outcome.flows[0];
    let split = flow.split.as_ref().expect("a proxy is on the way");
    assert_eq!((flow.aborted, outcome.nodes[0].counters["crashes"]), (Some("timed out"), 1));
    assert!(flow.delivered_bytes < 500_000 && split.acked_undelivered_bytes > 100_000, "{flow:?}");
    // A short file is acknowledged before the crash: its sender never learns.
    let unnoticed = world(kind(&mortal), 400_000);
    let split = unnoticed.flows[0].split.as_ref().expect("a proxy is on the way");
    assert_eq!(unnoticed.flows[0].delivered_bytes + split.acked_undelivered_bytes, 400_000);
    assert!(unnoticed.flows[0].completion_s.is_none() && split.acked_undelivered_bytes > 0);
    // End to end nothing was promised.
    assert_eq!(world(NodeKind::Router, 400_000).flows[0].delivered_bytes, 400_000);
}

/// Pages on connections of their own pass two proxies in a row; places in the chain are used again.
#[test]
fn a_chain_of_proxies_serves_page_after_page() {
    let idle = Idle::Fixed(ms(100));
    let pages = Traffic::Pages { bytes: 19_200, idle, fresh_connection: true };
    let dumbbell = Dumbbell::geo(2, (Rate::from_mbps(10), Rate::from_mbps(10)), 50).with_loss(0.01);
    let group = flows("web", 2, pages, paper_tcp(64).with(|config| config.lifetime.time_wait = ms(500)));
    let mut scenario = dumbbell.scenario(Duration::from_secs(200), vec![group]);
    let tcp = paper_tcp(64).with(|config| config.lifetime.time_wait = ms(500));
    scenario.nodes[1].kind = kind(&proxy(tcp.clone(), Some("hybla")));
    scenario.nodes[2].kind = kind(&ProxyConfig { connect: Connect::Late, ..proxy(tcp, None) });
    let outcome = verified(&scenario);
    for flow in &outcome.flows {
        let pages = flow.delivered_bytes / (20 * 960);
        assert!(pages > 60 && flow.aborted.is_none(), "{flow:?}");
        assert_eq!(flow.split.as_ref().map(|split| split.legs.len()), Some(2));
    }
    assert!(outcome.nodes.iter().all(|node| node.counters["connections"] > 120), "{:?}", outcome.nodes);
}

/// A proxy on board halves the round trip that repairs a loss, in a world of two links.
#[test]
fn a_proxy_on_board_halves_the_way_of_repairs() {
    let half = |delay| {
        let mut link = LinkConfig::new(Rate::from_mbps(5), ms(delay), drop_tail(200));
        link.loss = bentpipe_net::LossConfig::data(bentpipe_net::LossModel::Packet { probability: 1e-3 });
        link
    };
    let world = |kind| Scenario {
        nodes: vec![
            hosts("senders", 1),
            bentpipe_scenario::NodeGroup { name: "satellite".to_owned(), kind, count: 1 },
            hosts("receivers", 1),
        ],
        links: vec![
            links("up", ("senders", "satellite"), half(137)),
            links("down", ("satellite", "receivers"), half(137)),
        ],
        flows: vec![flows("bulk", 1, Traffic::Bulk, paper_tcp(800))],
        ..Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(10)), 50)
            .scenario(Duration::from_secs(200), vec![])
    };
    let goodput =
        |kind| run(&world(kind), &RunOptions::default()).expect("a world").outcome.totals.goodput_bps;
    // Reno's rate is inversely proportional to the round trip and to the square root of the losses: twice by sqrt(2), less what two
    // legs cost each other that take turns at being the slower one.
    let gain = goodput(kind(&proxy(paper_tcp(800), None))) / goodput(NodeKind::Router);
    assert!((1.7..2.83).contains(&gain), "{gain}");
}

fn spoofing(initial_window: u32, dies_at: Option<Duration>) -> NodeKind {
    let config = SpoofingConfig { initial_window, dies_at, ..SpoofingConfig::default() };
    NodeKind::Middlebox(MiddleboxConfig::Spoofing(config))
}

/// As [`short_file`], with a gateway that spoofs instead of one that splits. The handshake goes end to end and takes 0.52 s; after it the
/// source needs six of its round trips of 10 ms, and the gateway six of 510 ms with a window of one, or one way with a window of 64.
#[test]
fn spoofing_removes_the_slow_start_of_the_source_and_not_its_own() {
    let seconds = |west| {
        let mut scenario = short_world();
        scenario.nodes[1].kind = west;
        verified(&scenario).flows[0].completion_s.expect("it ends")
    };
    let timid = seconds(spoofing(1, None));
    assert!((0.52 + 5.0 * 0.51 + 0.25..0.52 + 6.0 * 0.51 + 0.1).contains(&timid), "{timid}");
    let bold = seconds(spoofing(64, None));
    assert!((0.52 + 0.31..0.52 + 0.40).contains(&bold), "{bold}");
    let end_to_end = seconds(NodeKind::Router);
    assert!(end_to_end > 3.6 && bold < timid && timid < end_to_end, "{bold} {timid} {end_to_end}");
}

/// All losses are behind the gateway: the source repeats nothing, the gateway as many as were lost, and a few more.
#[test]
fn a_spoofing_gateway_repairs_what_is_lost_behind_it() {
    let file = flows("file", 1, Traffic::File { bytes: 3_000_000 }, paper_tcp(400));
    let dumbbell = Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(10)), 2_000).with_loss(0.01);
    let mut scenario = dumbbell.scenario(Duration::from_secs(900), vec![file]);
    scenario.nodes[1].kind = spoofing(10, None);
    let outcome = verified(&scenario);
    let flow = &outcome.flows[0];
    assert_eq!((flow.delivered_bytes, flow.aborted), (3_000_000, None));
    assert!(flow.completion_s.is_some());
    assert_eq!(flow.split.as_ref().map(|split| split.acked_undelivered_bytes), Some(0));
    let lost = outcome.links[2].dropped_by_error;
    let repeated = outcome.nodes[0].counters["local_retransmissions"];
    assert!(lost > 15 && (lost..2 * lost).contains(&repeated), "{repeated} repeated, {lost} lost");
}

/// 64 kB kept over a round trip of 548 ms are 0.93 Mbit/s.
#[test]
fn the_buffer_of_a_spoofing_gateway_bounds_the_throughput() {
    let bulk = flows("bulk", 1, Traffic::Bulk, paper_tcp(800));
    let dumbbell = Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(10)), 200);
    let mut scenario = dumbbell.scenario(Duration::from_secs(60), vec![bulk]);
    let config = SpoofingConfig { buffer: 64_000, initial_window: 100, dies_at: None };
    scenario.nodes[1].kind = NodeKind::Middlebox(MiddleboxConfig::Spoofing(config));
    let outcome = verified(&scenario);
    let expected = 64_000.0 * 8.0 / 0.548;
    let measured = outcome.totals.goodput_bps;
    assert!((0.85 * expected..expected).contains(&measured), "{measured} against {expected}");
}

#[test]
fn what_a_dead_spoofing_gateway_had_acknowledged_is_lost_and_reported() {
    let tcp = paper_tcp(100).with(|config| config.lifetime.user_timeout = Some(Duration::from_secs(10)));
    let file = flows("file", 1, Traffic::File { bytes: 400_000 }, tcp);
    let dumbbell = Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(2)), 2_000);
    let mut scenario = dumbbell.scenario(Duration::from_secs(60), vec![file]);
    scenario.nodes[1].kind = spoofing(4, Some(ms(2_000)));
    let outcome = verified(&scenario);
    let (flow, node) = (&outcome.flows[0], &outcome.nodes[0].counters);
    let owed = flow.split.as_ref().expect("a gateway is on the way").acked_undelivered_bytes;
    assert_eq!((flow.delivered_bytes + owed, node["crashes"]), (400_000, 1));
    assert!(owed > 100_000 && flow.completion_s.is_none() && flow.aborted.is_some(), "{flow:?}");
}

/// A client asks for 50 segments. End to end that takes a handshake of 0.52 s, 0.26 s for the request and six windows, five of which wait
/// for ACKs: 3.64 s. The proxy beside the server has the request 5 ms before the server and the reply six short round trips later, and
/// sends it at once: 1.08 s, and 42 ms of transmission.
#[test]
fn a_client_and_its_server_are_split_in_both_directions() {
    let fetch = fetch::Config { mean_bytes: 50_000, deviation_bytes: 0, ..fetch::Config::default() };
    let world = |west| {
        let mut scenario = short_world();
        scenario.flows[0].traffic = Traffic::Ftp(fetch);
        scenario.nodes[1].kind = west;
        verified(&scenario)
    };
    let seconds = |outcome: &Outcome| {
        outcome.flows[0].transfers.and_then(|transfers| transfers.mean_s).expect("it ends")
    };
    let end_to_end = seconds(&world(NodeKind::Router));
    assert!((3.64..3.75).contains(&end_to_end), "{end_to_end}");
    let window = paper_tcp(100).with(|config| config.sender.initial_window = InitialWindow::Segments(64));
    let split = world(kind(&proxy(window.clone(), None)));
    assert!((1.08..1.18).contains(&seconds(&split)), "{}", seconds(&split));
    assert_eq!((split.flows[0].delivered_bytes, split.nodes[0].counters["connections"]), (50_000, 1));
    // The request and the reply were carried.
    assert_eq!(split.nodes[0].counters["relayed_bytes"], 50_064);
    // A proxy that waits for its client has no connection to the server before: a short round trip later.
    let late = world(kind(&ProxyConfig { connect: Connect::Late, ..proxy(window, None) }));
    let later = seconds(&late) - seconds(&split);
    assert!((0.009..0.012).contains(&later), "{later}");
}

/// Readers, players and fetchers behind two proxies in a row: places in the chains are used again, and all bytes are those that were written.
#[test]
fn a_chain_of_proxies_serves_web_video_and_files() {
    let tcp = paper_tcp(64).with(|config| config.lifetime.time_wait = ms(500));
    let web = Traffic::Web(browser::Config { view_scale: 0.05, ..browser::Config::default() });
    let adaptive = Traffic::Adaptive(adaptive::Config::default());
    let ftp = Traffic::Ftp(fetch::Config {
        mean_bytes: 100_000,
        deviation_bytes: 50_000,
        reading: ms(500),
        ..fetch::Config::default()
    });
    for (traffic, least) in [(web, 5), (adaptive, 0), (ftp, 20)] {
        let dumbbell = Dumbbell::geo(2, (Rate::from_mbps(10), Rate::from_mbps(10)), 50).with_loss(0.01);
        let group = flows("client", 2, traffic, tcp.clone());
        let mut scenario = dumbbell.scenario(Duration::from_secs(200), vec![group]);
        scenario.nodes[1].kind = kind(&proxy(tcp.clone(), Some("hybla")));
        scenario.nodes[2].kind = kind(&ProxyConfig { connect: Connect::Late, ..proxy(tcp.clone(), None) });
        let outcome = verified(&scenario);
        for flow in &outcome.flows {
            assert_eq!(flow.split.as_ref().map(|split| split.legs.len()), Some(2));
            assert!(flow.delivered_bytes > 300_000, "{flow:?}");
            if let Some(transfers) = flow.transfers {
                assert!(transfers.completed > least && transfers.failed_connections == 0, "{flow:?}");
            }
            assert!(flow.player.is_none_or(|player| player.startup_s.is_some()), "{flow:?}");
        }
        assert!(outcome.nodes.iter().all(|node| node.counters["connections"] >= 2), "{:?}", outcome.nodes);
    }
}

/// A client that waits for a reply sends nothing: only keep-alive probes tell it that the proxy is dead. Its next connections are not
/// answered.
#[test]
fn clients_of_a_dead_proxy_fail() {
    let keep_alive =
        Some(KeepAlive { idle: Duration::from_secs(5), interval: Duration::from_secs(1), probes: 3 });
    let tcp = paper_tcp(64).with(|config| {
        config.lifetime.user_timeout = Some(Duration::from_secs(5));
        config.lifetime.keep_alive = keep_alive;
        config.lifetime.syn_retries = 2;
    });
    let ftp = fetch::Config {
        mean_bytes: 100_000,
        deviation_bytes: 0,
        reading: ms(500),
        ..fetch::Config::default()
    };
    let dumbbell = Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(10)), 50);
    let group = flows("client", 1, Traffic::Ftp(ftp), tcp.clone());
    let mut scenario = dumbbell.scenario(Duration::from_secs(100), vec![group]);
    scenario.nodes[1].kind =
        kind(&ProxyConfig { dies_at: Some(Duration::from_secs(30)), ..proxy(tcp, None) });
    let transfers = verified(&scenario).flows[0].transfers.expect("a client");
    assert!(transfers.completed > 5 && transfers.failed_connections > 1, "{transfers:?}");
}

/// One packet in a hundred is lost behind the gateway. Windows that follow the use of the link fill it as far as they are told to, and share
/// it; NewReno behind the same gateway has the rate of the square-root law.
#[test]
fn satpep_fills_a_lossy_link_and_shares_it() {
    let world = |west| {
        let bulk = flows("bulk", 3, Traffic::Bulk, paper_tcp(2_000));
        let mut dumbbell = Dumbbell::geo(3, (Rate::from_mbps(100), Rate::from_mbps(10)), 700).with_loss(0.01);
        dumbbell.satellite.loss.data_only = true;
        let mut scenario = dumbbell.scenario(Duration::from_secs(60), vec![bulk]);
        scenario.nodes[1].kind = NodeKind::Middlebox(west);
        verified(&scenario)
    };
    let satpep = world(MiddleboxConfig::from_name("satpep").expect("a middlebox"));
    let plain = world(MiddleboxConfig::from_name("spoofing").expect("a middlebox"));
    // 95 % of 10 Mbit/s, of which 96 % is payload and a hundredth is sent again.
    let possible = 10e6 * 0.96 * 0.99;
    let goodput = satpep.totals.goodput_bps;
    assert!((0.85 * possible..possible).contains(&goodput), "{goodput} of {possible}");
    assert!(satpep.totals.jain_index > 0.9, "{}", satpep.totals.jain_index);
    assert!(plain.totals.goodput_bps < 0.3 * goodput, "{} {goodput}", plain.totals.goodput_bps);
}

/// A viewer behind a proxy sees what arrives at his end, not what the proxy took: over a path that carries the video all of it, and nothing from the death of the proxy on.
#[test]
fn a_video_behind_a_proxy_is_judged_where_it_is_watched() {
    let watched = |dies_at: Option<Duration>| {
        let video = Traffic::Video { video: Default::default(), stream: Streaming::default() };
        let dumbbell = Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(10)), 200);
        let group = flows("video", 1, video, paper_tcp(800));
        let mut scenario = dumbbell.scenario(Duration::from_secs(60), vec![group]);
        scenario.nodes[1].kind = kind(&ProxyConfig { dies_at, ..proxy(paper_tcp(800), None) });
        verified(&scenario).flows.swap_remove(0).stream.expect("a video has a viewer")
    };
    let whole = watched(None);
    // At most the frames are missing that are under way at the end, a second's worth of 1500.
    assert!(whole.frames_missed <= 25.0 / 1500.0 && whole.real_time_index > 0.95, "{whole:?}");
    let half = watched(Some(Duration::from_secs(30)));
    assert!((0.45..0.55).contains(&half.frames_missed), "{half:?}");
    assert!((0.45..0.55).contains(&half.real_time_index), "{half:?}");
}
