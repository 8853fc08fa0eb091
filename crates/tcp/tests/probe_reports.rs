//! Algorithms with probes, and receivers without probe support that report duplicates (RFC 2883).

mod common;

use bentpipe_base::{Duration, Instant, Probe, Rate, Rng};
use bentpipe_cc::{Algorithm, TimeoutProbe};
use bentpipe_tcp::{Config, DelayedAck, ReceiveWindow, RtoBounds, SpuriousTimeout};
use common::Pair;

const BYTES: u64 = 3_000_000;

fn config(cc: &str) -> Config {
    Config::default().with(|config| {
        config.sender.cc = Algorithm::from_name(cc).expect("it is registered");
        config.mss = 1000;
        config.receiver.receive_window = ReceiveWindow::Fixed(64_000);
    })
}

/// Returns a default host with delayed ACKs, with or without D-SACK.
fn plain_host(dsack: bool) -> Config {
    let delayed_ack =
        DelayedAck::On { every: 2, timer: Duration::from_millis(40), quick: 16, after_duplicate: 16 };
    config("cubic").with(|config| {
        config.receiver.probe_replies = false;
        config.receiver.dsack = dsack;
        config.receiver.delayed_ack = delayed_ack;
    })
}

/// Runs a transfer over a satellite with random loss. Returns the pair, and the time when all data had arrived.
fn transfer(cc: &str, receiver: Config, loss: f64) -> (Pair, f64) {
    let mut pair = Pair::new(config(cc), receiver);
    pair.delay_one_way = Duration::from_millis(275);
    let mut rng = Rng::stream(1, "loss");
    pair.fate[0] = Box::new(move |_, segment| segment.len == 0 || !rng.chance(loss));
    pair.write(0, BYTES);
    pair.close(0);
    pair.run(Duration::from_secs(400));
    assert_eq!(pair.delivered(1), BYTES, "{cc}");
    let all = pair.log.iter().find(|(_, end, segment)| *end == 1 && segment.ack > BYTES);
    let took = all.expect("it arrives").0.since(Instant::ZERO).as_secs_f64();
    (pair, took)
}

const PROBERS: [&str; 4] = ["peach", "peach-plus", "swift", "pbs"];

#[test]
fn reports_of_duplicates_are_replies() {
    for cc in PROBERS {
        let (pair, reported) = transfer(cc, plain_host(true), 0.0);
        let stats = pair.ends[0].stats();
        assert!(stats.probes_sent >= 40, "{cc}: {}", stats.probes_sent);
        assert_eq!(stats.probes_acked, stats.probes_sent, "{cc}");
        assert_eq!((stats.recoveries, stats.retransmitted_segments, stats.undone), (0, 0, 0), "{cc}");
        let (pair, silent) = transfer(cc, plain_host(false), 0.0);
        assert_eq!(pair.ends[0].stats().probes_acked, 0, "{cc}");
        let (_, agreed) = transfer(cc, config("cubic"), 0.0);
        assert!(reported < silent - 0.5, "{cc}: {reported} s with reports, {silent} s without");
        assert!(reported < agreed + 0.3, "{cc}: {reported} s with reports, {agreed} s with replies");
    }
}

#[test]
fn losses_are_repaired_and_probes_prove_none() {
    for cc in PROBERS {
        let (pair, reported) = transfer(cc, plain_host(true), 0.003);
        let stats = pair.ends[0].stats();
        assert!(stats.recoveries >= 3, "{cc}: {}", stats.recoveries);
        assert_eq!(stats.timeouts, 0, "{cc}");
        let lost = 0.003 * (BYTES / 1000) as f64;
        assert!((stats.retransmitted_segments as f64) < 3.0 * lost, "{cc}: {}", stats.retransmitted_segments);
        let (_, silent) = transfer(cc, plain_host(false), 0.003);
        assert!(reported < silent, "{cc}: {reported} s with reports, {silent} s without");
    }
}

/// A receiver may silently drop copies of data beyond a hole; it always reports copies of acknowledged data.
#[test]
fn dummies_repeat_what_was_acknowledged() {
    let (pair, _) = transfer("peach", plain_host(true), 0.003);
    let mut acknowledged = 0;
    let mut probes = 0;
    for (_, end, segment) in &pair.log {
        match segment.probe {
            _ if *end == 1 => acknowledged = acknowledged.max(segment.ack),
            Probe::Probe(_) if acknowledged > 1 => {
                probes += 1;
                assert!(segment.seq + u64::from(segment.len) <= acknowledged);
            }
            _ => {}
        }
    }
    assert!(probes > 100, "{probes}");
}

/// Receivers report only the last of fast copies beyond a hole (Linux: SACK compression).
#[test]
fn copies_beyond_a_hole_leave_a_millisecond_apart() {
    for cc in ["swift", "peach-plus"] {
        let (pair, _) = transfer(cc, plain_host(true), 0.01);
        let (mut highest_sack, mut acknowledged, mut copies) = (0, 0, Vec::new());
        for (at, end, segment) in &pair.log {
            if *end == 1 {
                acknowledged = acknowledged.max(segment.ack);
                highest_sack =
                    segment.sack.as_slice().iter().map(|block| block.end).fold(highest_sack, u64::max);
            } else if matches!(segment.probe, Probe::Probe(_)) && segment.seq > acknowledged {
                copies.push(*at);
            }
        }
        assert!(copies.len() > 20 && highest_sack > 0, "{cc}: {}", copies.len());
        // The log records an ACK half a round trip before its arrival, so it also counts copies that were sent without a hole.
        let close = copies.windows(2).filter(|pair| pair[1].since(pair[0]) < Duration::from_micros(1100));
        assert!(close.count() * 20 <= copies.len(), "{cc}: {copies:?}");
        let rtt = pair.ends[0].probe_srtt().unwrap();
        assert!((550.0..600.0).contains(&rtt.as_millis_f64()), "{cc}: {rtt}");
    }
}

/// A copy of data beyond a hole waits while an RTO probe is outstanding, and while the rate limit blocks it. In either case no
/// timer expires repeatedly at the same instant.
#[test]
fn a_waiting_copy_wakes_nobody_before_it_may_leave() {
    let aen = SpuriousTimeout::Aen { probe: TimeoutProbe::Newest, max_probes: 3, paced: false };
    let quick =
        RtoBounds { floor: Duration::from_millis(5), margin: Duration::ZERO, ..Config::default().sender.rto };
    for (cc, spurious_timeout, rate_limit) in [
        ("swift", aen, None),
        ("peach-plus", aen, None),
        ("swift", SpuriousTimeout::Off, Some(Rate::from_mbps(10))),
        ("peach-plus", SpuriousTimeout::Off, Some(Rate::from_mbps(10))),
    ] {
        for seed in 0..100 {
            let sender = config(cc).with(|config| {
                config.sender.spurious_timeout = spurious_timeout;
                config.sender.rate_limit = rate_limit;
                config.sender.rto = quick;
            });
            let mut pair = Pair::new(sender, plain_host(true));
            pair.delay_one_way = Duration::from_millis(2);
            let mut rng = Rng::stream(seed, "loss");
            pair.fate[0] = Box::new(move |_, segment| segment.len == 0 || !rng.chance(0.1));
            pair.write(0, 100_000);
            pair.close(0);
            pair.run(Duration::from_secs(100));
            assert_eq!(pair.delivered(1), 100_000, "{cc}");
        }
    }
}
