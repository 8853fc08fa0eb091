use super::*;
use crate::fixture::{self, MSS};
use crate::{Ack, ConnectionEvent, Path, Phase, RateSample};

const RTT_S: f64 = 0.55;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-4 * b.abs()
}

fn tfrc() -> Tfrc {
    let mut tfrc = Tfrc::new(Config::default(), MSS);
    tfrc.on_event(ConnectionEvent::Established, &fixture::path_at(RTT_S));
    tfrc
}

fn feed(tfrc: &mut Tfrc, seconds: f64, loss_event_rate: f32, received: f32) {
    let path = Path { unsent: 1 << 20, outstanding: 10, ..fixture::path_at(seconds) };
    tfrc.on_ack(&Ack { rtt: Some(Duration::from_secs_f64(RTT_S)), ..fixture::ack(1) }, &path);
    tfrc.on_feedback(&Extension::Value(Report { loss_event_rate, received }.to_value()), &path);
}

#[test]
fn the_throughput_equation() {
    for (rtt_s, p, expected) in [
        (0.1, 0.01, 112_332.2),
        (0.55, 1e-4, 222_480.7),
        (0.55, 1e-3, 69_789.8),
        (0.55, 1e-2, 20_424.0),
        (0.55, 0.1, 3_218.4),
    ] {
        assert!(close(throughput(1000.0, rtt_s, p), expected));
    }
}

#[test]
fn it_begins_with_an_initial_window_per_round_trip() {
    assert!(close(tfrc().allowed, 4000.0 / RTT_S));
    let large = Tfrc::new(Config::default(), 1460);
    assert_eq!(large.initial_window(), 4380.0);
}

#[test]
fn without_losses_the_rate_doubles_once_a_round_trip_up_to_twice_what_arrives() {
    let mut tfrc = tfrc();
    let start = tfrc.allowed;
    feed(&mut tfrc, 1.2, 0.0, 7000.0);
    assert!(close(tfrc.allowed, 14_000.0), "{}", tfrc.allowed);
    feed(&mut tfrc, 1.3, 0.0, 50_000.0);
    assert!(close(tfrc.allowed, 14_000.0), "not twice in a round trip");
    feed(&mut tfrc, 1.8, 0.0, 50_001.0);
    assert!(close(tfrc.allowed, 28_000.0) && tfrc.allowed > start);
}

#[test]
fn with_losses_the_equation_rules_below_twice_what_arrives() {
    let mut tfrc = tfrc();
    feed(&mut tfrc, 1.2, 1e-2, 100_000.0);
    assert!(close(tfrc.allowed, 20_424.0), "{}", tfrc.allowed);
    feed(&mut tfrc, 5.0, 1e-2, 5_000.0);
    assert!(close(tfrc.allowed, 10_000.0), "{}", tfrc.allowed);
}

#[test]
fn silence_halves_the_rate() {
    let mut tfrc = tfrc();
    feed(&mut tfrc, 1.2, 0.0, 50_000.0);
    let before = tfrc.allowed;
    let due = tfrc.wake_at();
    assert!(close(due.as_secs_f64(), 1.2 + 4.0 * RTT_S));
    tfrc.on_wake(&Path { now: due, outstanding: 10, ..fixture::path() });
    assert!(close(tfrc.allowed, before / 2.0));
    feed(&mut tfrc, 4.0, 1e-3, 60_000.0);
    let before = tfrc.allowed;
    tfrc.on_wake(&Path { now: tfrc.wake_at(), outstanding: 10, ..fixture::path() });
    assert!(tfrc.allowed <= 0.87 * before, "{} of {before}", tfrc.allowed);
}

#[test]
fn a_longer_round_trip_slows_down_at_once() {
    let mut tfrc = tfrc();
    let before = tfrc.spacing().rate().unwrap().bytes_per_s();
    tfrc.on_ack(&Ack { rtt: Some(Duration::from_secs(1)), ..fixture::ack(1) }, &fixture::path_at(2.0));
    let after = tfrc.spacing().rate().unwrap().bytes_per_s();
    assert!((0.7..0.85).contains(&(after / before)), "{}", after / before);
}

#[test]
fn reports_and_stamps_survive_their_values() {
    let report = Report { loss_event_rate: 0.012, received: 62_500.0 };
    assert_eq!(Report::from_value(report.to_value()), Some(report));
    assert_eq!(Report::from_value(0), None, "nothing measured yet");
    assert_eq!(Report::from_value(u64::MAX), None);
    let stamp = Stamp { number: 77, rtt_us: 550_000 };
    assert_eq!(Stamp::from_value(stamp.to_value()), stamp);
}

#[test]
fn with_a_plain_receiver_it_measures_itself() {
    let mut tfrc = tfrc();
    for i in 1..40_u32 {
        let path =
            Path { unsent: 1 << 20, outstanding: 10, ..fixture::path_at(RTT_S * (1.0 + f64::from(i) * 0.2)) };
        if i == 20 {
            tfrc.on_loss(&fixture::loss(10), &path);
        }
        let rate = RateSample {
            delivered: 55_000,
            interval: Duration::from_secs_f64(RTT_S),
            prior_delivered: 0,
            app_limited: false,
            tx_in_flight: 10,
            lost: 0,
        };
        let rtt = Some(Duration::from_secs_f64(RTT_S));
        tfrc.on_ack(&Ack { rtt, rate: Some(rate), phase: Phase::Open, ..fixture::ack(1) }, &path);
    }
    assert_eq!(tfrc.snapshot().phase, "equation");
    assert!(tfrc.allowed > 20_000.0 && tfrc.allowed < 250_000.0, "{}", tfrc.allowed);
}
