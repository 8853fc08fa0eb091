//! Whole transfers over a small path: every recovery repairs losses, closes and counts correctly.

mod common;

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::{Algorithm, REGISTRY};
use bentpipe_tcp::{Config, DelayedAck, Events, Recovery, State};
use common::{Pair, ms};

const RECOVERIES: [Recovery; 4] = [Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Rack];

fn config(recovery: Recovery) -> Config {
    Config::default().with(|config| {
        config.sender.recovery = recovery;
        config.receiver.delayed_ack = DelayedAck::Off;
        config.mss = 1000;
    })
}

#[test]
fn a_file_arrives_and_both_ends_close() {
    for recovery in RECOVERIES {
        let mut pair = Pair::symmetric(config(recovery));
        pair.write(0, 1_000_000);
        pair.close(0);
        pair.run(Duration::from_secs(10));
        assert_eq!(pair.delivered(1), 1_000_000, "{recovery:?}");
        assert!(pair.events[1].contains(Events::PEER_CLOSED));
        pair.close(1);
        pair.run(Duration::from_secs(100));
        assert_eq!([pair.ends[0].state(), pair.ends[1].state()], [State::Closed; 2]);
        assert_eq!(pair.ends[0].stats().retransmitted_segments, 0, "{recovery:?}");
        assert_eq!(pair.ends[0].stats().timeouts, 0);
    }
}

#[test]
fn one_loss_costs_one_retransmission() {
    for recovery in RECOVERIES {
        let mut pair = Pair::symmetric(config(recovery));
        pair.fate[0] = Box::new(|n, _| n != 40);
        pair.write(0, 300_000);
        pair.close(0);
        pair.run(Duration::from_secs(10));
        let stats = pair.ends[0].stats();
        assert_eq!(pair.delivered(1), 300_000, "{recovery:?}");
        assert_eq!(
            (stats.retransmitted_segments, stats.timeouts, stats.recoveries),
            (1, 0, 1),
            "{recovery:?}"
        );
    }
}

#[test]
fn ten_percent_loss_both_ways() {
    for recovery in RECOVERIES {
        for seed in 1..10_u64 {
            let mut pair = Pair::symmetric(config(recovery));
            let lossy = |salt: u64| {
                let mut rng = bentpipe_base::Rng::stream(seed, &format!("loss{salt}"));
                Box::new(move |_, _: &_| !rng.chance(0.1))
            };
            pair.fate = [lossy(0), lossy(1)];
            pair.write(0, 300_000);
            pair.close(0);
            pair.run(Duration::from_secs(600));
            assert_eq!(pair.delivered(1), 300_000, "{recovery:?} seed {seed}");
            pair.close(1);
            pair.run(Duration::from_secs(600));
            assert_eq!(
                [pair.ends[0].state(), pair.ends[1].state()],
                [State::Closed; 2],
                "{recovery:?} seed {seed}"
            );
        }
    }
}

#[test]
fn data_flows_both_ways_at_once() {
    let mut pair = Pair::symmetric(config(Recovery::Rack));
    pair.write(0, 200_000);
    pair.write(1, 100_000);
    pair.run(Duration::from_secs(10));
    assert_eq!((pair.delivered(0), pair.delivered(1)), (100_000, 200_000));
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let mut pair = Pair::symmetric(
        config(Recovery::Rack)
            .with(|config| config.receiver.receive_window = bentpipe_tcp::ReceiveWindow::Fixed(10_000)),
    );
    pair.reads = false;
    pair.write(0, 50_000);
    pair.run(Duration::from_secs(60));
    assert_eq!(pair.ends[1].readable(), 10_000);
    pair.reads = true;
    let now = pair.now;
    pair.ends[1].read(now, u64::MAX);
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.delivered(1), 50_000);
}

#[test]
fn a_vanished_peer_is_given_up() {
    let mut pair = Pair::symmetric(config(Recovery::Rack).with(|config| config.lifetime.retries = 4));
    pair.run(ms(500));
    pair.fate = [Box::new(|_, _| false), Box::new(|_, _| false)];
    pair.write(0, 5000);
    pair.run(Duration::from_secs(300));
    assert!(pair.events[0].contains(Events::TIMED_OUT));
    assert_eq!(pair.ends[0].state(), State::Closed);
}

#[test]
fn simultaneous_open() {
    let config = std::sync::Arc::new(config(Recovery::Rack));
    let mut pair = Pair::symmetric((*config).clone());
    pair.ends[1] = bentpipe_tcp::Connection::connect(config, 3, pair.now);
    pair.write(0, 3000);
    pair.write(1, 4000);
    pair.run(Duration::from_secs(5));
    assert_eq!([pair.ends[0].state(), pair.ends[1].state()], [State::Established; 2]);
    assert_eq!((pair.delivered(0), pair.delivered(1)), (4000, 3000));
}

/// In every interval from the first segment on, whatever the algorithm's window and rate.
#[test]
fn no_algorithm_sends_faster_than_the_limit() {
    let limit = Rate::from_bps(2_000_000);
    for entry in REGISTRY {
        let cc = Algorithm::from_name(entry.name).unwrap();
        let mut pair = Pair::symmetric(Config::default().with(|config| {
            config.sender.cc = cc;
            config.sender.rate_limit = Some(limit);
        }));
        pair.write(0, 1_000_000);
        pair.close(0);
        pair.run(Duration::from_secs(60));
        assert_eq!(pair.delivered(1), 1_000_000, "{}", entry.name);
        let data = pair.log.iter().filter(|(_, end, segment)| *end == 0 && segment.len > 0);
        let data: Vec<_> = data.map(|(at, _, segment)| (*at, u64::from(segment.len))).collect();
        let mut sent = 0;
        for (at, len) in &data {
            sent += len;
            let allowed = at.since(data[0].0).as_secs_f64() * 250_000.0 + 20_000.0;
            assert!(sent as f64 <= allowed, "{}: {sent} bytes by {at:?}", entry.name);
        }
    }
}

/// At 40 s per segment a retransmission waits longer than all timeouts together: none of them is a sign of the peer's
/// silence.
#[test]
fn a_retransmission_that_the_pace_holds_back_is_no_silence_of_the_peer() {
    let sender = Config::default().with(|config| {
        config.sender.rate_limit = Some(Rate::from_bps(200));
        config.lifetime.retries = 3;
        config.mss = 1000;
    });
    let mut pair = Pair::new(sender, Config::default());
    let mut lost = 0;
    pair.fate[0] = Box::new(move |_, segment| {
        let loses = segment.len > 0 && lost < 2;
        lost += u32::from(loses);
        !loses
    });
    pair.write(0, 2000);
    pair.close(0);
    pair.run(Duration::from_secs(1000));
    assert_eq!(pair.delivered(1), 2000);
    assert!(!pair.events[0].contains(Events::TIMED_OUT));
    assert!((1..=2).contains(&pair.ends[0].stats().timeouts), "{}", pair.ends[0].stats().timeouts);
}
