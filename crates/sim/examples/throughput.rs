//! How fast the simulator is: `cargo run --release -p bentpipe-sim --example throughput [NAME]...`
//!
//! Prints, for worlds like `geo-dumbbell` of several sizes and for a single flow with a wide window, the data packets delivered end to end
//! in a second of CPU time, with and without the time to build the world, and the memory that a flow takes at most, what the program takes
//! without flows left out (of the first world asked for; later ones begin with what earlier ones needed).

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../../tcp/benches/steady/mod.rs"]
mod steady;

use std::fs;

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::{Algorithm, CongestionControl, Custom, Start};
use bentpipe_scenario::{Idle, Scenario, Traffic};
use bentpipe_sim::{RunOptions, run};
use bentpipe_tcp::{Config, ReceiveWindow, Recovery};
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

fn measure(name: &str, scenario: &Scenario, bare_kib: f64) {
    let flows = scenario.flows.iter().map(|group| group.count).sum::<u32>();
    let idle = Scenario { duration: Duration::ZERO, ..scenario.clone() };
    let before = user_s();
    run(&idle, &RunOptions::default()).expect("the world can be built");
    let build = user_s() - before;
    let before = user_s();
    let outcome = run(scenario, &RunOptions::default()).expect("the world can be built").outcome;
    let all = user_s() - before;
    let packets = outcome.totals.data_packets_delivered as f64;
    let per_packet = (all - build) * 1e9 / packets;
    println!(
        "{name:>14}: {:6.2} M packets {:5.2} events each  {all:6.2} s CPU ({build:.2} s set-up)  {per_packet:6.1} ns/packet  \
         {:6.3} M packets/s  goodput {:7.2} Mbit/s  peak {:.2} KiB/flow",
        packets / 1e6,
        outcome.events as f64 / packets,
        1e3 / per_packet,
        outcome.totals.goodput_bps / 1e6,
        (peak_kib() - bare_kib) / f64::from(flows),
    );
}

/// One flow that keeps its window at [`LARGE`] segments, over a link that loses data packets with this probability.
fn wide(loss: f64, duration: Duration) -> Scenario {
    let gbps = Rate::from_mbps(1000);
    let build = |_: &Start| -> Box<dyn CongestionControl> { Box::new(Steady(LARGE)) };
    let config = Config {
        cc: Algorithm::Custom(Custom { name: "steady", build }),
        recovery: Recovery::Rack,
        receive_window: ReceiveWindow::Fixed(512 << 20),
        ..common::paper_tcp(u64::from(LARGE) * 4)
    };
    let bulk = common::flows("bulk", 1, Traffic::Bulk, config);
    common::Dumbbell::geo(1, (gbps, gbps), 2 * LARGE).with_loss(loss).scenario(duration, vec![bulk])
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    // A small world shows what the program takes.
    let secs = Duration::from_secs;
    run(&common::geo_bulk(1, Rate::from_mbps(10), secs(1)), &RunOptions::default())
        .expect("the world can be built");
    let bare_kib = peak_kib();
    // A page of one segment each, and then nothing: what flows take that do not send.
    let mut idle = common::geo_bulk(20_000, Rate::from_mbps(10_000), secs(10));
    let rest = Idle::Fixed(secs(1000));
    idle.flows[0].traffic = Traffic::Pages { segments: 1, idle: rest, fresh_connection: false };
    let worlds = [
        ("20000-idle", idle),
        ("20", common::geo_bulk(20, Rate::from_mbps(10), secs(5500))),
        ("200", common::geo_bulk(200, Rate::from_mbps(100), secs(200))),
        ("2000", common::geo_bulk(2000, Rate::from_mbps(1000), secs(55))),
        ("20000", common::geo_bulk(20_000, Rate::from_mbps(10_000), secs(40))),
        ("69000", wide(0.0, secs(40))),
        ("69000-loss", wide(0.01, secs(40))),
        ("20000-slow", common::geo_bulk(20_000, Rate::from_mbps(1000), secs(55))),
    ];
    for (name, scenario) in worlds {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            measure(name, &scenario, bare_kib);
        }
    }
}
