//! Tests of Vegas.

use bentpipe_base::Duration;

use super::*;
use crate::fixture::{self, MSS};
use crate::{BackOff, Timeout};

const BASE_MS: u64 = 500;

fn vegas(cwnd: f64, ssthresh: f64) -> Sender {
    Sender::new(Windows { cwnd, ssthresh }, Vegas::new(Config::default()))
}

fn bytes(segments: u64) -> u64 {
    segments * u64::from(MSS)
}

fn ack_after(rtt_ms: u64) -> Ack {
    Ack { rtt: Some(Duration::from_millis(rtt_ms)), ..fixture::ack(1) }
}

/// The path at the ACK of segment `number`, with `outstanding` more in flight.
fn path(number: u64, outstanding: u32) -> Path {
    let snd_una = 1 + bytes(number);
    Path { snd_una, snd_nxt: snd_una + bytes(u64::from(outstanding)), outstanding, ..fixture::path() }
}

/// Runs an epoch with a window of 100 and a round trip of `rtt_ms`, after an epoch without a queue.
fn epoch_of(sender: &mut Sender, rtt_ms: u64) {
    sender.on_ack(&ack_after(BASE_MS), &path(1, 99));
    for number in 2..101 {
        sender.on_ack(&Ack { window_limited: false, ..ack_after(rtt_ms) }, &path(number, 99));
    }
    sender.on_ack(&ack_after(rtt_ms), &path(101, 99));
}

#[test]
fn an_epoch_compares_expected_and_actual_rate() {
    // (Expected - Actual) BaseRTT: 0, 0.596 -> 1, 1.961 -> 2, 3.846 -> 4. The epoch's first sample (500 ms) lowers them
    // by 1 %.
    for (rtt_ms, growth, window) in [
        (500, Growth::PerSegment(0.01), 100.01),
        (504, Growth::None, 100.0),
        (510, Growth::None, 100.0),
        (520, Growth::None, 99.0),
    ] {
        let mut sender = vegas(100.0, 2.0);
        epoch_of(&mut sender, rtt_ms);
        assert_eq!(sender.classic.rule.growth, growth, "{rtt_ms} ms");
        assert!((sender.window() - window).abs() < 0.02, "{rtt_ms} ms: {}", sender.window());
    }
}

#[test]
fn slow_start_doubles_every_other_epoch() {
    let mut sender = vegas(2.0, f64::INFINITY);
    let (mut number, mut ends) = (0, Vec::new());
    for _ in 0..100 {
        number += 1;
        let epoch = sender.classic.rule.epoch.begin;
        let before = sender.window();
        let path = Path { now: fixture::path_at(0.5).now, ..path(number, sender.window() as u32 - 1) };
        sender.on_ack(&ack_after(BASE_MS), &path);
        if sender.classic.rule.epoch.begin != epoch {
            ends.push(before);
        }
    }
    assert_eq!(ends[..6], [2.0, 2.0, 4.0, 4.0, 8.0, 8.0]);
}

#[test]
fn a_queue_ends_slow_start_with_seven_eighths() {
    let rtt = Duration::from_millis(BASE_MS);
    let measured = Measured { base: rtt, rtt, min_rtt: rtt, samples: 3, delta: 2.0 };
    let mut rule = Vegas::new(Config::default());
    let mut windows = Windows { cwnd: 100.0, ssthresh: f64::INFINITY };
    rule.decide(&mut windows, &measured);
    assert_eq!(windows.cwnd, 100.0, "decided every other epoch");
    rule.decide(&mut windows, &measured);
    assert_eq!((windows.cwnd, windows.ssthresh), (87.5, 2.0));
}

#[test]
fn the_first_loss_takes_a_quarter_the_second_of_the_same_segment_a_half() {
    let at = |seconds| Path { now: fixture::path_at(seconds).now, ..path(1, 40) };
    let mut sender = vegas(40.0, 2.0);
    sender.on_loss(&fixture::loss(40), &at(1.0));
    assert_eq!(sender.window(), 30.0);

    let mut sender = vegas(40.0, 2.0);
    let again = Sent { seq: at(1.0).snd_una, len: MSS, retransmission: true };
    sender.on_sent(&again, &at(1.0));
    sender.on_loss(&fixture::loss(40), &at(2.0));
    assert_eq!(sender.window(), 20.0);
}

#[test]
fn what_was_sent_before_a_cut_is_paid_for() {
    let mut sender = vegas(40.0, 2.0);
    sender.on_loss(&fixture::loss(40), &path(1, 40));
    sender.on_loss(&fixture::loss(40), &path(20, 21));
    assert_eq!(sender.window(), 30.0);
    sender.on_loss(&fixture::loss(30), &path(60, 30));
    assert_eq!(sender.window(), 22.5);
}

#[test]
fn the_fine_timeout_retransmits_before_the_third_duplicate() {
    let fine = Path {
        srtt: Duration::from_millis(500),
        rttvar: Duration::from_millis(20),
        now: fixture::path_at(1.0).now,
        ..path(1, 39)
    };
    let mut sender = vegas(40.0, 2.0);
    sender.on_ack(&ack_after(500), &fine);
    assert_eq!(sender.classic.rule.fine_timeout.timeout, Duration::from_micros(573_750));
    sender.on_ack(&fixture::ack(0), &fine);
    assert_eq!(sender.early_retransmit(fine.now - Duration::from_millis(573), &fine), EarlyRetransmit::None);
    let window = sender.window();
    assert_eq!(
        sender.early_retransmit(fine.now - Duration::from_millis(574), &fine),
        EarlyRetransmit::Oldest
    );
    assert_eq!(sender.window(), window * 0.75);
    assert_eq!(sender.classic.rule.fine_timeout.timeout, Duration::from_micros(573_750).mul_f64(1.125));
    sender.on_ack(&fixture::ack(1), &fine);
    assert_eq!(
        sender.early_retransmit(fine.now - Duration::from_secs(1), &fine),
        EarlyRetransmit::Oldest,
        "worried"
    );
    assert_eq!(sender.window(), window * 0.75, "and the window was cut already");
}

#[test]
fn a_timeout_leaves_two_segments() {
    let mut sender = vegas(40.0, 2.0);
    let timeout = Timeout { consecutive: 1, outstanding: 40, answered: false };
    assert_eq!(sender.on_rto(&timeout, &path(1, 40)), BackOff::Double);
    assert_eq!((sender.window(), sender.snapshot().ssthresh), (2.0, 20.0));
}

#[test]
fn linux_counts_by_the_smallest_delay_of_an_epoch() {
    let config = Config { mode: Mode::Linux, alpha: 2.0, beta: 4.0, ..Config::default() };
    for (rtt_ms, window) in [(505, 101.0), (515, 100.0), (525, 99.0)] {
        let mut rule = Vegas::new(config);
        rule.epoch = Epoch::having(Duration::from_millis(500), bytes(3));
        let mut sender = Sender::new(Windows { cwnd: 100.0, ssthresh: 2.0 }, rule);
        for number in 1..=3 {
            sender.on_ack(&ack_after(rtt_ms), &path(number, 99));
        }
        assert_eq!(sender.window(), window, "{rtt_ms} ms: queue {}", 100 * (rtt_ms - 500) / 500);
    }
    let mut sender = Sender::new(Windows { cwnd: 40.0, ssthresh: 2.0 }, Vegas::new(config));
    sender.on_loss(&fixture::loss(40), &path(1, 40));
    assert_eq!(sender.window(), 20.0);
}
