//! Speed of the simulator: `cargo run --profile dist -p bentpipe-sim --example throughput [NAME]...`
//!
//! Prints the data packets delivered end to end per second of CPU time, with and without the time to build the world, and the memory of
//! a flow. The worlds are like `geo-dumbbell` in several sizes, and one flow with a wide window. Memory is the maximum per flow,
//! without the memory of the program itself; it is valid for the first requested world only.
//!
//! Dumbbells differ only in the number of flows that share one: 20,000 flows run for 40 s each, all in one world or in many smaller
//! ones with a seed each. So the share of slow start is the same in all sizes.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../../tcp/benches/steady/mod.rs"]
mod steady;

use std::fs;
use std::sync::Arc;

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::{Algorithm, CongestionControl, Custom, Start};
use bentpipe_scenario::{Idle, Scenario, Traffic, Transport};
use bentpipe_sim::{RunOptions, run};
use bentpipe_tcp::{Config, InitialWindow, ReceiveWindow, Recovery};
use steady::{LARGE, Steady};

/// CPU time of this process in user mode, in seconds.
fn user_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

/// The most memory that this process has had, in KiB.
fn peak_kib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(f64::NAN)
}

/// Runs a scenario with the given number of seeds, one run at a time.
fn measure(name: &str, (scenario, seeds): (&Scenario, u32), bare_kib: f64) {
    let flows = scenario.flows.iter().map(|group| group.count).sum::<u32>();
    let idle = Scenario { duration: Duration::ZERO, ..scenario.clone() };
    let live = |scenario: &Scenario| {
        let (mut packets, mut events, mut goodput_bps) = (0.0, 0.0, 0.0);
        let before = user_s();
        for seed in 1..=u64::from(seeds) {
            let options = RunOptions { seed: Some(seed), ..RunOptions::default() };
            let outcome = run(scenario, &options).expect("the world can be built").outcome;
            packets += outcome.totals.data_packets_delivered as f64;
            events += outcome.events as f64;
            goodput_bps += outcome.totals.goodput_bps;
        }
        (user_s() - before, packets, events, goodput_bps)
    };
    let (build, ..) = live(&idle);
    let (all, packets, events, goodput_bps) = live(scenario);
    let per_packet = (all - build) * 1e9 / packets;
    println!(
        "{name:>14}: {:6.2} M packets {:5.2} events each  {all:6.2} s CPU ({build:.2} s set-up)  {per_packet:6.1} ns/packet  \
         {:6.3} M packets/s  goodput {:7.2} Mbit/s  peak {:.2} KiB/flow",
        packets / 1e6,
        events / packets,
        1e3 / per_packet,
        goodput_bps / 1e6 / f64::from(seeds),
        (peak_kib() - bare_kib) / f64::from(flows),
    );
}

/// One flow with a constant window of [`LARGE`] segments, over a link that loses data packets with probability `loss`.
fn wide(loss: f64, duration: Duration) -> Scenario {
    let gbps = Rate::from_mbps(1000);
    let build = |_: &Start| -> Box<dyn CongestionControl> { Box::new(Steady(LARGE)) };
    let config = common::paper_tcp(u64::from(LARGE) * 4).with(|config| {
        config.sender.cc = Algorithm::Custom(Custom::new("steady", build));
        config.sender.recovery = Recovery::Rack;
        config.receiver.receive_window = ReceiveWindow::Fixed(512 << 20);
    });
    let bulk = common::flows("bulk", 1, Traffic::Bulk, config);
    common::Dumbbell::geo(1, (gbps, gbps), 2 * LARGE).with_loss(loss).scenario(duration, vec![bulk])
}

/// Twenty flows in packets of 1500 bytes over a transport.
fn full_packets(transport: Transport, cc: &str) -> Scenario {
    let mut scenario = common::geo_bulk(20, Rate::from_mbps(40), Duration::from_secs(40));
    let flow = &mut scenario.flows[0];
    let receive_window = ReceiveWindow::Fixed(1 << 20);
    let cubic = Algorithm::from_name("cubic").expect("a registered algorithm");
    let config = Config::clone(&flow.sender).with(|config| {
        config.mss = 1448;
        config.sender.initial_window = InitialWindow::Segments(10);
        config.receiver.receive_window = receive_window;
    });
    let sender = config.clone().with(|config| config.sender.cc = cubic);
    (flow.sender, flow.receiver) = (Arc::new(sender), Arc::new(config));
    (flow.transport, flow.header_bytes, flow.cc) = (transport, 52, cc.to_owned());
    scenario
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    // The memory of the program itself, measured with a small world.
    let secs = Duration::from_secs;
    run(&common::geo_bulk(1, Rate::from_mbps(10), secs(1)), &RunOptions::default())
        .expect("the world can be built");
    let bare_kib = peak_kib();
    // A page of one segment each, and then nothing: what flows take that do not send.
    let mut idle = common::geo_bulk(20_000, Rate::from_mbps(10_000), secs(10));
    let rest = Idle::Fixed(secs(1000));
    idle.flows[0].traffic = Traffic::Pages { bytes: 960, idle: rest, fresh_connection: false };
    let dumbbells = |flows: u32| {
        let scenario = common::geo_bulk(flows, Rate::from_mbps(u64::from(flows / 2)), secs(40));
        (scenario, 20_000 / flows)
    };
    let worlds = [
        ("20000-idle", (idle, 1)),
        ("20", dumbbells(20)),
        ("200", dumbbells(200)),
        ("2000", dumbbells(2000)),
        ("20000", dumbbells(20_000)),
        ("69000", (wide(0.0, secs(40)), 1)),
        ("69000-loss", (wide(0.01, secs(40)), 1)),
        ("20-tcp", (full_packets(Transport::Tcp, "cubic"), 4)),
        ("20-quic", (full_packets(Transport::Quic, "quic:cubic"), 4)),
        ("20000-slow", (common::geo_bulk(20_000, Rate::from_mbps(1000), secs(55)), 1)),
    ];
    for (name, (scenario, seeds)) in worlds {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            measure(name, (&scenario, seeds), bare_kib);
        }
    }
}
