//! Test of every unit, and of the forms of a varying value.

mod common;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::{Interpolation, Limit, Outage, OutageEffect, QueueConfig, RedUnit, Schedule};
use bentpipe_scenario::{Idle, Traffic};
use bentpipe_tcp::{InitialWindow, KeepAlive, Pacing, ReceiveWindow};
use common::set;

fn duration(text: &str) -> u64 {
    set(&[&format!("duration={text}")]).unwrap().duration.as_nanos()
}

fn rate(text: &str) -> u64 {
    let scenario = set(&[&format!("link.satellite.rate={text}")]).unwrap();
    match scenario.links[0].forward.rate {
        Schedule::Constant(rate) => rate.bps(),
        _ => panic!("{text} is constant"),
    }
}

fn send_buffer(text: &str) -> u64 {
    set(&[&format!("tcp.send-buffer={text}")]).unwrap().flows[0].sender.sender.send_buffer
}

#[test]
fn times() {
    let values = ["7 ns", "7 us", "7 ms", "7 s", "7 min", "1 h", "0.5 s", "8.59375 ms", "3s"].map(duration);
    let seconds = 1_000_000_000;
    assert_eq!(
        values,
        [
            7,
            7_000,
            7_000_000,
            7 * seconds,
            420 * seconds,
            3600 * seconds,
            seconds / 2,
            8_593_750,
            3 * seconds
        ]
    );
}

#[test]
fn rates() {
    let values = ["9600 bit/s", "256 kbit/s", "1.5 Mbit/s", "1 Gbit/s"].map(rate);
    assert_eq!(values, [9_600, 256_000, 1_500_000, 1_000_000_000]);
}

#[test]
fn sizes() {
    let texts = [
        "2000 bytes",
        "2000 B",
        "2 kB",
        "2 MB",
        "1 GB",
        "2 KiB",
        "2 MiB",
        "1 GiB",
        "64 segments",
        "1 segment",
    ];
    assert_eq!(
        texts.map(send_buffer),
        [2000, 2000, 2000, 2_000_000, 1_000_000_000, 2048, 2 << 20, 1 << 30, 64_000, 1000]
    );
    let limit = |text: &str| {
        let scenario = set(&[&format!("link.satellite.queue.limit={text}")]).unwrap();
        match scenario.links[0].forward.queue {
            QueueConfig::DropTail { limit } => limit,
            _ => panic!("drop-tail by default"),
        }
    };
    assert_eq!(limit("1 packet"), Limit::Packets(1));
    assert_eq!(limit("20 packets"), Limit::Packets(20));
    assert_eq!(limit("64 KiB"), Limit::Bytes(65_536));
}

#[test]
fn numbers_too_large_are_refused() {
    for argument in
        ["duration=99999999999999999999 s", "duration=300000000000 h", "flow.bulk.count=5000000000"]
    {
        assert!(set(&[argument]).is_err(), "{argument}");
    }
}

#[test]
fn rates_over_time() {
    let of =
        |value: &str| set(&[&format!("link.satellite.rate={value}")]).unwrap().links[0].forward.rate.clone();
    let points = vec![(Duration::ZERO, Rate::from_mbps(10)), (Duration::from_secs(20), Rate::from_mbps(5))];
    let table = "[[\"0 s\", \"10 Mbit/s\"], [\"20 s\", \"5 Mbit/s\"]]";
    let step =
        Schedule::Table { points: points.clone(), interpolation: Interpolation::Step, repeat_every: None };
    assert_eq!(of(table), step);
    let repeated = format!("{{ table = {table}, interpolation = \"linear\", repeat-every = \"40 s\" }}");
    let repeat_every = Some(Duration::from_secs(40));
    assert_eq!(of(&repeated), Schedule::Table { points, interpolation: Interpolation::Linear, repeat_every });
    let sine = "{ mean = \"10 Mbit/s\", amplitude = \"1 Mbit/s\", period = \"60 s\" }";
    assert_eq!(
        of(sine),
        Schedule::Sine {
            mean: Rate::from_mbps(10),
            amplitude: Rate::from_mbps(1),
            period: Duration::from_secs(60),
            phase: Duration::ZERO
        }
    );
}

#[test]
fn outages_one_by_one_or_repeated() {
    let of = |value: &str| {
        set(&[&format!("link.satellite.outages={value}")]).unwrap().links[0].forward.outages.clone()
    };
    let at = |secs| Instant::ZERO + Duration::from_secs(secs);
    let listed = of("[[\"3 s\", \"4 s\"], [\"6 s\", \"7 s\"]]");
    let intervals = vec![Outage { from: at(3), to: at(4) }, Outage { from: at(6), to: at(7) }];
    assert_eq!(listed.intervals, intervals);
    let repeated = of("{ every = \"3 s\", length = \"1 s\", effect = \"cut-path\" }");
    assert_eq!(repeated.intervals.len(), 3, "until the scenario ends after 10 s");
    assert_eq!(repeated.effect, OutageEffect::CutPath);
}

#[test]
fn queue_levels_carry_their_unit() {
    let of = |arguments: &[&str]| match set(arguments).unwrap().links[0].forward.queue {
        QueueConfig::Red(red) => red,
        _ => panic!("red"),
    };
    let red = of(&["link.satellite.queue=red"]);
    assert_eq!((red.min_threshold, red.max_threshold, red.unit), (5.0, 15.0, RedUnit::Packets));
    let red = of(&[
        "link.satellite.queue={ limit = \"100 kB\", min-threshold = \"5000 bytes\", max-threshold = \"20000 bytes\" }",
    ]);
    assert_eq!((red.min_threshold, red.max_threshold, red.unit), (5000.0, 20_000.0, RedUnit::Bytes));
}

#[test]
fn traffic() {
    let of = |value: &str| set(&[&format!("flow.bulk.traffic={value}")]).unwrap().flows[0].traffic.clone();
    assert_eq!(of("bulk"), Traffic::Bulk);
    assert_eq!(of("{ kind = \"file\", size = \"50 segments\" }"), Traffic::File { bytes: 50_000 });
    let idle = Idle::Exponential(Duration::from_secs(5));
    assert_eq!(
        of("{ page = \"50 segments\", idle = { exponential-mean = \"5 s\" }, fresh-connection = false }"),
        Traffic::Pages { bytes: 50_000, idle, fresh_connection: false }
    );
    let idle = Idle::Fixed(Duration::ZERO);
    assert_eq!(
        of("{ kind = \"pages\", page = \"2 MiB\" }"),
        Traffic::Pages { bytes: 2 << 20, idle, fresh_connection: true }
    );
    assert_eq!(
        of("{ kind = \"cbr\", rate = \"1 Mbit/s\", packet = \"210 bytes\" }"),
        Traffic::Cbr {
            rate: Rate::from_mbps(1),
            packet_bytes: 210,
            spacing: bentpipe_traffic::on_off::Spacing::Even
        }
    );
}

#[test]
fn settings_of_a_connection() {
    let of = |argument: &str| set(&[&format!("tcp.{argument}")]).unwrap().flows[0].sender.clone();
    assert_eq!(of("initial-window=rfc3390").sender.initial_window, InitialWindow::Rfc3390);
    assert_eq!(of("initial-window=4 segments").sender.initial_window, InitialWindow::Segments(4));
    assert_eq!(of("initial-ssthresh=infinite").sender.initial_ssthresh, None);
    assert_eq!(of("initial-ssthresh=32.5 segments").sender.initial_ssthresh, Some(32.5));
    assert_eq!(of("max-burst=4 segments").sender.max_burst, Some(4));
    assert_eq!(of("user-timeout=2 min").lifetime.user_timeout, Some(Duration::from_secs(120)));
    assert_eq!(of("pacing=off").sender.pacing, Pacing::Off);
    let gains = Pacing::Window { slow_start_gain: 2.0, avoidance_gain: 1.0 };
    assert_eq!(of("pacing={ kind = \"window\", avoidance-gain = 1 }").sender.pacing, gains);
    let window = ReceiveWindow::Auto { initial: 128 << 10, limit: 16 << 20 };
    assert_eq!(of("receive-window={ kind = \"auto\", limit = \"16 MiB\" }").receiver.receive_window, window);
    let keep_alive =
        KeepAlive { idle: Duration::from_secs(60), interval: Duration::from_secs(75), probes: 9 };
    assert_eq!(of("keep-alive.idle=60 s").lifetime.keep_alive, Some(keep_alive));
    assert_eq!(of("rto.floor=1 s").sender.rto.floor, Duration::from_secs(1));
}
