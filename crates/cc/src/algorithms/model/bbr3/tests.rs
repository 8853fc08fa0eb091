use super::*;
use crate::fixture::{self, MSS};
use crate::{Ack, ConnectionEvent, Path, Phase, RateSample, Timeout, Undo};

const RTT_S: f64 = 0.55;
/// Bottleneck rate in bytes per second: 687.5 segments per round trip.
const BOTTLENECK: f64 = 1.25e6;
const BDP: f64 = 687.5;

fn bbr() -> Bbr3 {
    let mut bbr = Bbr3::new(Config::default(), &fixture::start(10.0));
    bbr.on_event(ConnectionEvent::Established, &fixture::path_at(RTT_S));
    bbr
}

/// A path with one ACK per round trip. It delivers at most a fixed rate, and loses a fixed fraction.
struct Line {
    now: f64,
    delivered: u64,
    loss: f64,
}

impl Line {
    fn new() -> Self {
        Self { now: RTT_S, delivered: 0, loss: 0.0 }
    }

    fn round(&mut self, bbr: &mut Bbr3, limit: f64) {
        let rate = bbr.pacing.min(bbr.window() * bbr.mss / RTT_S).min(limit);
        self.now += RTT_S;
        let in_flight = rate * RTT_S / bbr.mss;
        let lost = (in_flight * self.loss) as u32;
        let bytes = (rate * RTT_S) as u64 - u64::from(lost * MSS);
        let sample = RateSample {
            delivered: bytes,
            interval: Duration::from_secs_f64(RTT_S),
            prior_delivered: self.delivered,
            app_limited: false,
            tx_in_flight: in_flight as u32,
            lost,
        };
        self.delivered += bytes;
        let path = Path {
            delivered: self.delivered,
            in_flight: (in_flight as u32).min(BDP as u32),
            ..fixture::path_at(self.now)
        };
        let ack = Ack {
            rtt: Some(Duration::from_secs_f64(RTT_S)),
            rate: Some(sample),
            delivered_bytes: bytes,
            lost,
            ..fixture::ack(1)
        };
        bbr.on_ack(&ack, &path);
    }
}

fn until(bbr: &mut Bbr3, line: &mut Line, limit: f64, reached: impl Fn(&Bbr3) -> bool) -> u32 {
    for round in 1..200 {
        line.round(bbr, limit);
        if reached(bbr) {
            return round;
        }
    }
    panic!("never reached from {:?}", bbr.state);
}

fn cruising() -> (Bbr3, Line) {
    let (mut bbr, mut line) = (bbr(), Line::new());
    until(&mut bbr, &mut line, BOTTLENECK, |bbr| matches!(bbr.state, State::Down | State::Cruise));
    (bbr, line)
}

#[test]
fn the_first_rate_is_the_initial_window_times_the_gain() {
    assert!((bbr().pacing / (2.77 * 10_000.0 / RTT_S) - 1.0).abs() < 2e-3);
}

#[test]
fn startup_finds_the_bandwidth_and_three_rounds_without_growth_end_it() {
    let (mut bbr, mut line) = (bbr(), Line::new());
    let rounds = until(&mut bbr, &mut line, BOTTLENECK, |bbr| bbr.state != State::Startup);
    assert!((bbr.max_bandwidth.max() / BOTTLENECK - 1.0).abs() < 1e-3);
    assert!(rounds <= 7 + 4, "log2(687.5 / 10), and three to notice: {rounds}");
}

#[test]
fn the_window_is_two_bandwidth_delay_products_and_the_rate_a_hundredth_below() {
    let (mut bbr, mut line) = cruising();
    until(&mut bbr, &mut line, BOTTLENECK, |bbr| bbr.state == State::Cruise);
    line.round(&mut bbr, BOTTLENECK);
    assert!(bbr.window() >= 2.0 * BDP * 0.99 && bbr.window() <= 3.0 * BDP, "{}", bbr.window());
    assert!((bbr.pacing / (0.99 * BOTTLENECK) - 1.0).abs() < 0.02, "{}", bbr.pacing);
}

#[test]
fn a_cycle_goes_through_its_four_states() {
    let (mut bbr, mut line) = cruising();
    let since = line.now;
    until(&mut bbr, &mut line, 1.5 * BOTTLENECK, |bbr| bbr.state == State::Refill);
    assert!((2.0..=3.0 + 2.0 * RTT_S).contains(&(line.now - since)), "{} s", line.now - since);
    line.round(&mut bbr, 1.5 * BOTTLENECK);
    assert_eq!((bbr.state, bbr.pacing_gain(), bbr.cwnd_gain()), (State::Up, 1.25, 2.25));
    until(&mut bbr, &mut line, 1.5 * BOTTLENECK, |bbr| matches!(bbr.state, State::Down | State::Cruise));
    assert!(bbr.max_bandwidth.max() > 1.2 * BOTTLENECK, "the probe found what was free");
}

#[test]
fn one_percent_of_losses_is_tolerated_in_a_probe() {
    let (mut bbr, mut line) = cruising();
    line.loss = 0.01;
    until(&mut bbr, &mut line, BOTTLENECK, |bbr| bbr.state == State::Up);
    line.round(&mut bbr, BOTTLENECK);
    assert_eq!(bbr.longterm, f64::INFINITY);
}

#[test]
fn five_percent_of_losses_in_a_probe_bound_what_is_in_flight() {
    let (mut bbr, mut line) = cruising();
    until(&mut bbr, &mut line, BOTTLENECK, |bbr| bbr.state == State::Up);
    line.loss = 0.05;
    line.round(&mut bbr, BOTTLENECK);
    assert!(matches!(bbr.state, State::Down | State::Cruise));
    assert!(bbr.longterm.is_finite() && bbr.longterm >= 0.7 * BDP * 0.98, "{}", bbr.longterm);
    assert!(bbr.inflight_with_headroom() <= 0.85 * bbr.longterm + 1e-9);
}

#[test]
fn the_volume_at_which_losses_crossed_the_threshold() {
    let mut bbr = bbr();
    let step = bbr.step(&fixture::ack(1), &fixture::path_at(1.0));
    // 10 of 101 segments are lost: prefix = (0.02 * 100 - 9) / 0.98.
    let step = Step { tx_in_flight: 101.0, lost: 10.0, ..step };
    assert!((bbr.inflight_at_loss(&step) - (100.0 - 7.0 / 0.98)).abs() < 1e-9);
}

#[test]
fn losses_between_probes_lower_the_short_term_bounds_by_three_tenths_at_most() {
    let (mut bbr, mut line) = cruising();
    until(&mut bbr, &mut line, BOTTLENECK, |bbr| bbr.state == State::Cruise);
    line.loss = 0.1;
    line.round(&mut bbr, BOTTLENECK / 4.0);
    line.round(&mut bbr, BOTTLENECK / 4.0);
    assert!(bbr.bounds.bandwidth >= 0.69 * BOTTLENECK && bbr.bounds.bandwidth < BOTTLENECK);
    assert!(bbr.bandwidth < bbr.max_bandwidth.max());
}

#[test]
fn an_old_round_trip_time_is_measured_anew_with_half_a_pipe() {
    let (mut bbr, line) = cruising();
    let at = |seconds, in_flight| Path { in_flight, delivered: line.delivered, ..fixture::path_at(seconds) };
    let ack = |rtt_s| Ack { rtt: Some(Duration::from_secs_f64(rtt_s)), ..fixture::ack(1) };
    let now = line.now + 5.1;
    bbr.on_ack(&ack(0.56), &at(now, 680));
    assert_eq!(bbr.snapshot().phase, "probe-rtt");
    assert!((bbr.window() - BDP / 2.0).abs() < 10.0, "{}", bbr.window());
    bbr.on_ack(&ack(0.6), &at(now + 0.6, 300));
    assert!(matches!(bbr.state, State::ProbeRtt { .. }));
    let sample = RateSample {
        delivered: 1000,
        interval: Duration::from_secs(1),
        prior_delivered: line.delivered,
        app_limited: false,
        tx_in_flight: 300,
        lost: 0,
    };
    bbr.on_ack(&Ack { rate: Some(sample), ..ack(0.6) }, &at(now + 1.2, 300));
    assert_eq!(bbr.state, State::Cruise);
    assert!(bbr.window() > BDP, "the window is back");
}

#[test]
fn a_timeout_leaves_one_segment_and_an_undo_takes_it_back() {
    let (mut bbr, line) = cruising();
    let window = bbr.window();
    let path = Path { delivered: line.delivered, ..fixture::path_at(line.now) };
    bbr.on_rto(&Timeout { consecutive: 1, outstanding: 600, answered: false }, &path);
    assert_eq!(bbr.window(), 1.0);
    bbr.on_undo(Undo::Reduction, &path);
    assert_eq!(bbr.window(), window);
}

#[test]
fn many_losses_in_a_round_end_startup() {
    let (mut bbr, mut line) = (bbr(), Line::new());
    for _ in 0..4 {
        line.round(&mut bbr, BOTTLENECK);
    }
    assert_eq!(bbr.state, State::Startup);
    bbr.latest.loss_events = 6;
    bbr.latest.round_start = true;
    let step = bbr.step(&fixture::ack(1), &fixture::path_at(line.now));
    bbr.latest.round_start = true;
    let step = Step { lost: 10.0, tx_in_flight: 100.0, ..step };
    bbr.check_startup_loss(&Ack { phase: Phase::Recovery, ..fixture::ack(0) }, &step);
    assert!(bbr.filled && bbr.longterm.is_finite());
}
