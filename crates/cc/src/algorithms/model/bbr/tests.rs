//! Tests of BBR version 1.

use super::*;
use crate::Phase;
use crate::fixture::{self, MSS};

const RTT_S: f64 = 0.55;
/// Bottleneck rate in bytes per second: 687.5 segments per round trip.
const BOTTLENECK: f64 = 1.25e6;

fn bbr() -> Bbr {
    let mut bbr = Bbr::new(Config::default(), &fixture::start(10.0));
    bbr.on_event(ConnectionEvent::Established, &fixture::path_at(RTT_S));
    bbr
}

/// A path with one ACK per round trip. It delivers what is sent, at most at the bottleneck's rate.
struct Line {
    now: f64,
    delivered: u64,
}

impl Line {
    fn new() -> Self {
        Self { now: RTT_S, delivered: 0 }
    }

    fn round(&mut self, bbr: &mut Bbr, limit: f64) {
        let rate = bbr.pacing.min(bbr.window() * bbr.mss / RTT_S).min(limit);
        self.now += RTT_S;
        let bytes = (rate * RTT_S) as u64;
        let sample = RateSample {
            delivered: bytes,
            interval: Duration::from_secs_f64(RTT_S),
            prior_delivered: self.delivered,
            app_limited: false,
            tx_in_flight: (bytes / u64::from(MSS)) as u32,
            lost: 0,
        };
        self.delivered += bytes;
        let in_flight = (bbr.window() as u32).min((bbr.bottleneck().max(1.0) * RTT_S / bbr.mss) as u32);
        let path = Path { delivered: self.delivered, in_flight, ..fixture::path_at(self.now) };
        let ack = Ack {
            rtt: Some(Duration::from_secs_f64(RTT_S)),
            rate: Some(sample),
            delivered_bytes: bytes,
            ..fixture::ack(1)
        };
        bbr.on_ack(&ack, &path);
    }
}

fn cruising() -> (Bbr, Line) {
    let (mut bbr, mut line) = (bbr(), Line::new());
    for _ in 0..16 {
        line.round(&mut bbr, BOTTLENECK);
    }
    (bbr, line)
}

#[test]
fn the_first_rate_is_the_initial_window_times_the_gain() {
    let expected = 2.885 * 10_000.0 / RTT_S;
    assert!((bbr().pacing / expected - 1.0).abs() < 1e-3);
}

#[test]
fn startup_doubles_until_three_rounds_bring_nothing() {
    let (mut bbr, mut line) = (bbr(), Line::new());
    let mut rounds = 0;
    while bbr.state == State::Startup {
        line.round(&mut bbr, BOTTLENECK);
        rounds += 1;
        assert!(rounds < 20);
    }
    assert!((bbr.bottleneck() / BOTTLENECK - 1.0).abs() < 1e-3);
    assert!(rounds <= 4 + 8, "log2(687.5 / 10) to fill the pipe and three to notice: {rounds}");
}

#[test]
fn two_bandwidth_delay_products_and_three_quanta() {
    let (bbr, _) = cruising();
    assert!(matches!(bbr.state, State::ProbeBandwidth { .. }));
    assert!((bbr.window() - (2.0 * 687.5 + 3.0 * 2.0)).abs() < 3.0, "{}", bbr.window());
}

#[test]
fn the_gains_cycle_through_a_probe_and_its_drain() {
    let (mut bbr, mut line) = cruising();
    let mut gains = [0; 3];
    for _ in 0..64 {
        line.round(&mut bbr, 1.25 * BOTTLENECK);
        gains[if bbr.pacing_gain() > 1.0 { 0 } else { 1 + usize::from(bbr.pacing_gain() == 1.0) }] += 1;
    }
    assert!(gains[0] >= 4 && gains[2] > 20, "{gains:?}");
}

#[test]
fn a_slower_bottleneck_is_believed_after_ten_rounds() {
    let (mut bbr, mut line) = cruising();
    for round in 1..=12 {
        line.round(&mut bbr, BOTTLENECK / 2.0);
        if round < 10 {
            assert!(bbr.bottleneck() > 0.9 * BOTTLENECK, "round {round}");
        }
    }
    assert!(bbr.bottleneck() < 0.6 * BOTTLENECK);
}

#[test]
fn a_loss_conserves_packets_for_a_round_and_gives_the_window_back() {
    let (mut bbr, line) = cruising();
    let window = bbr.window();
    let at = |delivered| Path { delivered, in_flight: 600, ..fixture::path_at(line.now) };
    bbr.on_loss(&fixture::loss(700), &at(line.delivered));
    assert_eq!(bbr.window(), 601.0);
    bbr.on_ack(&Ack { phase: Phase::Recovery, ..fixture::ack(2) }, &at(line.delivered));
    assert_eq!(bbr.window(), 602.0, "in flight and what was delivered");
    let last = Ack { phase: Phase::Recovery, ends_episode: true, ..fixture::ack(1) };
    bbr.on_ack(&last, &at(line.delivered));
    assert!((bbr.window() - window).abs() < 2.0);
}

#[test]
fn a_timeout_leaves_one_segment_and_an_undo_takes_it_back() {
    let (mut bbr, line) = cruising();
    let window = bbr.window();
    let timeout = Timeout { consecutive: 1, outstanding: 600, answered: false };
    bbr.on_rto(&timeout, &fixture::path_at(line.now));
    assert_eq!(bbr.window(), 1.0);
    bbr.on_undo(Undo::Reduction, &fixture::path_at(line.now));
    assert_eq!(bbr.window(), window);
}

#[test]
fn an_old_round_trip_time_is_measured_anew_with_four_segments() {
    let (mut bbr, line) = cruising();
    let window = bbr.window();
    let ack = |rtt_s| Ack { rtt: Some(Duration::from_secs_f64(rtt_s)), ..fixture::ack(1) };
    let at = |seconds, in_flight| Path { in_flight, delivered: line.delivered, ..fixture::path_at(seconds) };
    let now = line.now + 11.0;
    bbr.on_ack(&ack(0.7), &at(now, 600));
    assert_eq!((bbr.snapshot().phase, bbr.window()), ("probe-rtt", 4.0));
    bbr.on_ack(&ack(0.6), &at(now + 0.6, 4));
    let done = RateSample {
        delivered: 4000,
        interval: Duration::from_millis(600),
        prior_delivered: line.delivered,
        app_limited: false,
        tx_in_flight: 4,
        lost: 0,
    };
    bbr.on_ack(&Ack { rate: Some(done), ..ack(0.56) }, &at(now + 1.2, 4));
    assert_eq!(bbr.snapshot().phase, "probe-bw");
    assert!((bbr.window() - window).abs() < 2.0);
    assert_eq!(bbr.rtprop, Duration::from_millis(560));
}
