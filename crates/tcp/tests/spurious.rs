//! Spurious timeouts: Hasegawa's Enhanced TCP, and STAR's acknowledgement error notification for any algorithm. Packet traces
//! use a window of ten segments of 1000 bytes, a round trip of 100 ms and a timer of 300 ms; other tests use a GEO path.

mod common;
#[path = "common/script.rs"]
mod script;

use bentpipe_base::{Duration, Flags, SackRange};
use bentpipe_cc::{Algorithm, REGISTRY, TimeoutProbe};
use bentpipe_tcp::{Config, DelayedAck, InitialWindow, ReceiveWindow, Recovery, Restore, SpuriousTimeout};
use common::Pair;
use script::{Script, ms, plain};

/// Sends ten segments in congestion avoidance; the timeout is 300 ms after them.
fn timed_out(spurious_timeout: SpuriousTimeout, recovery: Recovery) -> Script {
    let mut end = Script::established(plain().with(|config| {
        config.sender.recovery = recovery;
        config.sender.spurious_timeout = spurious_timeout;
        config.sender.initial_window = InitialWindow::Segments(10);
        config.sender.initial_ssthresh = Some(5.0);
    }));
    end.write(100_000);
    assert_eq!(end.trace().len(), 10);
    end.wait(300);
    assert_eq!(end.end.stats().timeouts, 1);
    end
}

fn ssthresh(end: &Script) -> f64 {
    end.end.window_state().ssthresh
}

/// A delayed ACK 24 ms after the retransmission cannot answer it: with 100 ms and a fraction of 0.75 the limit is 75 ms.
#[test]
fn enhanced_tcp_gives_the_threshold_back() {
    let mut end = timed_out(SpuriousTimeout::ENHANCED, Recovery::NewReno);
    assert_eq!((end.trace(), ssthresh(&end), end.window()), (vec!["1+1000".into()], 5.0, 1.0));
    end.wait(24);
    end.ack(1001);
    assert_eq!(
        (ssthresh(&end), end.window(), end.end.stats().undone),
        (10.0, 2.0, 1),
        "slow start up to ten"
    );
}

#[test]
fn enhanced_tcp_believes_an_answer_in_time() {
    let mut end = timed_out(SpuriousTimeout::ENHANCED, Recovery::NewReno);
    end.wait(102);
    end.ack(1001);
    assert_eq!((ssthresh(&end), end.window(), end.end.stats().undone), (5.0, 2.0, 0));
}

#[test]
fn enhanced_tcp_may_give_the_window_back_as_well() {
    let both = SpuriousTimeout::Enhanced { fraction: 0.75, restore: Restore::Both };
    let mut end = timed_out(both, Recovery::NewReno);
    end.trace();
    end.wait(24);
    end.ack(1001);
    assert_eq!((ssthresh(&end), end.window() >= 10.0), (5.0, true), "as before the timeout");
    assert_eq!(end.trace(), ["10001+1000"], "new data only");
}

#[test]
fn enhanced_tcp_takes_nothing_back_on_a_mark_or_after_a_second_timeout() {
    let mut marked = timed_out(SpuriousTimeout::ENHANCED, Recovery::NewReno);
    marked.wait(24);
    marked.ack_with(1001, |segment| segment.flags |= Flags::ECE);
    let mut twice = timed_out(SpuriousTimeout::ENHANCED, Recovery::NewReno);
    twice.wait(600);
    twice.ack(1001);
    for end in [marked, twice] {
        assert_eq!((ssthresh(&end), end.end.stats().undone), (5.0, 0));
    }
}

#[test]
fn aen_keeps_the_window_when_only_acks_were_lost() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let mut end = timed_out(SpuriousTimeout::AEN, recovery);
        assert_eq!((end.trace(), ssthresh(&end), end.window()), (vec!["9001+1000".into()], 5.0, 10.0));
        end.wait(100);
        end.ack(10_001);
        end.wait(100);
        assert_eq!((ssthresh(&end), end.window() >= 10.0), (5.0, true), "{recovery:?}");
        let new: Vec<String> = (10..20).map(|i| format!("{i}001+1000")).collect();
        assert_eq!(end.trace()[..10], new, "{recovery:?}");
    }
}

/// The answer allows ten segments at once: they are paced over the round trip of 100 ms.
#[test]
fn aen_spaces_the_window_after_the_answer() {
    for (paced, at_once) in [(true, 1..=2), (false, 10..=11)] {
        let aen = SpuriousTimeout::Aen { probe: TimeoutProbe::Newest, max_probes: 3, paced };
        let mut end = Script::established(plain().with(|config| {
            config.sender.spurious_timeout = aen;
            config.sender.initial_window = InitialWindow::Segments(10);
            config.sender.initial_ssthresh = Some(5.0);
            config.sender.pacing = bentpipe_tcp::Pacing::Algorithm;
            config.sender.recovery = Recovery::Sack;
        }));
        end.write(100_000);
        end.wait(400);
        end.trace();
        end.ack(10_001);
        assert!(at_once.contains(&end.trace().len()), "paced: {paced}");
    }
}

/// The probe arrives above a hole: the first segment is missing.
#[test]
fn aen_believes_an_answer_that_does_not_advance() {
    let mut end = timed_out(SpuriousTimeout::AEN, Recovery::Sack);
    end.trace();
    // A duplicate ACK that left the peer before the probe arrived has no meaning.
    end.sack(1, &[(1001, 3001)]);
    assert_eq!((end.trace().len(), end.window()), (0, 10.0));
    end.sack(1, &[(9001, 10_001), (1001, 3001)]);
    assert_eq!((end.trace(), ssthresh(&end), end.window()), (vec!["1+1000".into()], 5.0, 1.0));
}

#[test]
fn aen_asks_three_times_before_it_believes() {
    let mut end = timed_out(SpuriousTimeout::AEN, Recovery::NewReno);
    let start = end.now;
    end.wait(600 + 1200 + 2400 + 100);
    let lines = end.timed(start);
    assert_eq!(lines, ["0 9001+1000", "600 9001+1000", "1800 9001+1000", "4200 1+1000"]);
    assert_eq!((ssthresh(&end), end.window()), (5.0, 1.0));
}

/// The probe is the only outstanding segment, so it may have repaired the loss that it tests, unless a duplicate is reported.
#[test]
fn aen_of_a_single_segment_needs_a_duplicate_report() {
    for (duplicate, window) in [(false, 1.0), (true, 11.0)] {
        let mut end = Script::established(plain().with(|config| {
            config.sender.spurious_timeout = SpuriousTimeout::AEN;
            config.sender.recovery = Recovery::Sack;
            config.receiver.dsack = true;
            config.sender.initial_window = InitialWindow::Segments(10);
        }));
        end.write(1000);
        end.wait(450);
        end.ack_with(1001, |segment| {
            if duplicate {
                segment.sack.push(SackRange { start: 1, end: 1001 });
            }
        });
        assert!(end.window() <= window && (duplicate == (end.window() >= 10.0)), "{}", end.window());
    }
}

/// Any algorithm survives an outage of the ACK path of 2 s without a reduction. Algorithms with their own RTO probes use
/// those.
#[test]
fn an_outage_of_the_ack_path_costs_no_algorithm_its_window() {
    for name in ["reno", "cubic", "westwood", "hybla", "star"] {
        assert!(REGISTRY.iter().any(|entry| entry.name == name));
        let mut pair = Pair::symmetric(Config::default().with(|config| {
            config.sender.cc = Algorithm::from_name(name).expect("registered");
            config.sender.spurious_timeout = SpuriousTimeout::AEN;
            config.receiver.delayed_ack = DelayedAck::Off;
            config.mss = 1000;
            config.receiver.receive_window = ReceiveWindow::Fixed(64_000);
        }));
        pair.delay_one_way = ms(250);
        pair.write(0, 10_000_000);
        pair.run(Duration::from_secs(8));
        let before = pair.ends[0].window_state().cwnd;
        pair.fate[1] = Box::new(|_, _| false);
        pair.run(Duration::from_secs(2));
        pair.fate[1] = Box::new(|_, _| true);
        pair.run(Duration::from_secs(4));
        let stats = pair.ends[0].stats();
        assert!((1..=3).contains(&stats.retransmitted_segments), "{name}: {stats:?}");
        let after = pair.ends[0].window_state().cwnd;
        assert!(after >= 0.9 * before, "{name}: {before} {after} {stats:?}");
    }
}
