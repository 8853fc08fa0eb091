//! Worked examples: a link of 10 Mbit/s and 500 ms, with segments of 1448 bytes, 1.2 ms each.

use super::*;
use crate::fixture::close;
use crate::{Ack, BackOff, ConnectionEvent, Path, Phase, ProbeKind, Start, Timeout, Undo, Windows, fixture};

const MSS: u32 = 1448;
const SERIALISATION_S: f64 = 0.0012;
const RTT_S: f64 = 0.5;
const RECEIVE_WINDOW: u32 = 432;

fn start() -> Start {
    Start { mss: MSS, ..fixture::start(1.0) }
}

fn path_at(seconds: f64) -> Path {
    Path {
        min_rtt: Duration::from_secs_f64(RTT_S),
        srtt: Duration::from_secs_f64(RTT_S),
        mss: MSS,
        receive_window: RECEIVE_WINDOW,
        snd_una: 1,
        snd_nxt: 1 + 432 * u64::from(MSS),
        ..fixture::path_at(seconds)
    }
}

/// Makes a sender that has measured 1 MB/s: 345.30 segments.
fn star(cwnd: f64, ssthresh: f64, config: Config) -> Star {
    let mut star = Star::new(config, &start());
    star.sizes = Sizes { cwnd, reno: Windows { cwnd: 50.0, ssthresh }, own_ssthresh: 25.0 };
    star.estimate = Estimate::Abe(Abe::new(0.9, Duration::ZERO).having(1e6));
    star
}

fn timeout(consecutive: u32, outstanding: u32, answered: bool) -> Timeout {
    Timeout { consecutive, outstanding, answered }
}

/// Expires the retransmission timer. Returns its back-off, or the probe sent before the timeout is believed.
fn expire(sender: &mut Star, timeout: &Timeout, path: &Path) -> Result<BackOff, ProbeKind> {
    let probes = sender.requirements().timeout_probes;
    match probes.then(|| sender.timeout_probe(timeout, path)).flatten() {
        Some(kind) => Err(kind),
        None => Ok(sender.on_rto(timeout, path)),
    }
}

/// An ACK that reports no delivery, so the estimate does not change.
fn answer(acked: u32) -> Ack {
    Ack { delivered_bytes: 0, ..fixture::ack(acked) }
}

/// An event at the receiver or on the reverse path.
#[derive(Clone, Copy)]
enum Coming {
    Segment,
    DelayedAckTimer { serial: u32 },
    Ack { segments: u32 },
}

/// Runs a transfer until the window is full. Records `(time, window, estimate)` after every ACK.
fn transfer(config: Config, delayed_ack: bool) -> Vec<(f64, f64, f64)> {
    let mut star = Star::new(config, &start());
    star.on_event(ConnectionEvent::Established, &path_at(0.0));
    let (mut now, mut link_free, mut outstanding, mut acked) = (0.0_f64, 0.0_f64, 0_u32, 0_u64);
    let (mut held, mut serial) = (0_u32, 0_u32);
    let mut coming: Vec<(f64, Coming)> = Vec::new();
    let mut notes = Vec::new();
    while star.window() < f64::from(RECEIVE_WINDOW) {
        while outstanding < star.window().min(f64::from(RECEIVE_WINDOW)) as u32 {
            link_free = link_free.max(now) + SERIALISATION_S;
            coming.push((link_free + RTT_S / 2.0, Coming::Segment));
            outstanding += 1;
        }
        let next = (0..coming.len()).min_by(|a, b| coming[*a].0.total_cmp(&coming[*b].0)).unwrap();
        let (at, what) = coming.remove(next);
        now = at;
        match what {
            Coming::Segment if delayed_ack && held == 0 => {
                (held, serial) = (1, serial + 1);
                coming.push((now + 0.2, Coming::DelayedAckTimer { serial }));
            }
            Coming::Segment => {
                coming.push((now + RTT_S / 2.0, Coming::Ack { segments: held + 1 }));
                held = 0;
            }
            Coming::DelayedAckTimer { serial: armed } if held == 1 && armed == serial => {
                coming.push((now + RTT_S / 2.0, Coming::Ack { segments: 1 }));
                held = 0;
            }
            Coming::DelayedAckTimer { .. } => {}
            Coming::Ack { segments } => {
                outstanding -= segments;
                acked += u64::from(segments * MSS);
                let min_rtt = Duration::from_secs_f64(RTT_S + SERIALISATION_S);
                let path = Path { min_rtt, snd_una: 1 + acked, ..path_at(now) };
                let delivered_bytes = u64::from(segments * MSS);
                star.on_ack(&Ack { delivered_bytes, ..fixture::ack(segments) }, &path);
                notes.push((now, star.window(), star.estimate.rate()));
            }
        }
    }
    notes
}

#[test]
fn the_window_is_lifted_as_soon_as_acks_show_the_bandwidth() {
    let notes = transfer(Config::default(), false);
    for (at, window, rate) in [
        (0.5012, 2.05, 144.0),
        (1.0024, 3.15, 419.0),
        (1.0036, 25.06, 60_855.0),
        (1.5036, 44.89, 115_247.0),
        (1.5048, 62.84, f64::NAN),
        (1.5060, 99.92, f64::NAN),
        (1.5072, 133.4, f64::NAN),
    ] {
        let note = notes.iter().find(|note| (note.0 - at).abs() < 1e-6).expect("an ACK arrives then");
        assert!((note.1 - window).abs() < 0.06, "window {} at {at}", note.1);
        assert!(rate.is_nan() || (note.2 - rate).abs() < 1.0, "estimate {} at {at}", note.2);
    }
    let full = notes.last().unwrap().0;
    assert!((full - 2.02).abs() < 0.01, "full at {full}");
}

#[test]
fn delayed_acks_cost_less_than_half_of_what_they_cost_reno() {
    let full = transfer(Config::default(), true).last().unwrap().0;
    assert!((full - 3.74).abs() < 0.05, "full at {full}");
    let reno = transfer(Config { lwc: false, ..Config::default() }, true).last().unwrap().0;
    assert!((reno - 7.70).abs() < 0.05, "Reno at {reno}");
    let reno_without = transfer(Config { lwc: false, ..Config::default() }, false).last().unwrap().0;
    assert!((reno_without - 4.72).abs() < 0.05, "Reno at {reno_without}");
}

#[test]
fn a_loss_sets_the_window_to_the_bandwidth_only_above_the_threshold() {
    for (cwnd, after) in [(100.0, 100.0), (432.0, 345.30)] {
        let mut sender = star(cwnd, 200.0, Config::default());
        sender.on_loss(&fixture::loss(100), &path_at(1.0));
        assert!(
            close(sender.window(), after) && close(sender.snapshot().ssthresh, 345.30),
            "{}",
            sender.window()
        );
        assert_eq!(sender.sizes.reno.cwnd, 25.0, "the Reno component halves");
    }
}

#[test]
fn before_the_first_loss_the_receive_window_is_the_threshold() {
    let mut sender = star(440.0, f64::INFINITY, Config::default());
    sender.on_loss(&fixture::loss(432), &path_at(1.0));
    assert!(close(sender.window(), 345.30));
}

#[test]
fn recovery_keeps_the_window_and_the_next_ack_lifts_it() {
    let mut sender = star(432.0, 200.0, Config::default());
    sender.on_loss(&fixture::loss(432), &path_at(1.0));
    let last = Ack { phase: Phase::Recovery, ends_episode: true, ..answer(10) };
    sender.on_ack(&last, &path_at(1.5));
    assert!(close(sender.window(), 345.30));
    sender.on_ack(&answer(1), &path_at(1.6));
    assert!(
        close(sender.window(), 26.0 + 345.30),
        "the shared threshold sends the component into slow start"
    );
    let mut own = star(432.0, 200.0, Config { reno_ssthresh: RenoSsthresh::Own, ..Config::default() });
    own.on_loss(&fixture::loss(432), &path_at(1.0));
    own.on_ack(&answer(1), &path_at(1.6));
    assert!(close(own.window(), 25.04 + 345.30));
}

#[test]
fn the_lift_stays_within_the_receive_window() {
    let mut sender = star(100.0, 200.0, Config::default());
    let small = Path { receive_window: 64, ..path_at(1.0) };
    sender.on_ack(&answer(1), &small);
    assert_eq!(sender.window(), 51.0 + 64.0);
}

#[test]
fn a_timeout_is_questioned_and_an_ack_that_advances_shows_that_it_was_none() {
    for acked in [432, 200] {
        let mut sender = star(432.0, 200.0, Config::default());
        assert_eq!(expire(&mut sender, &timeout(1, 432, false), &path_at(10.0)), Err(ProbeKind::Newest));
        sender.on_ack(&answer(acked), &path_at(10.5));
        assert_eq!((sender.window(), sender.snapshot().ssthresh), (432.0, 200.0), "{acked} acknowledged");
        let rate = sender.spacing().rate().map(|rate| rate.bps());
        assert_eq!(rate, Some(432 * 1448 * 8 * 2), "the window is not sent in one burst");
        let all = path_at(11.0).snd_nxt;
        sender.on_ack(&answer(1), &Path { snd_una: all, ..path_at(11.0) });
        assert_eq!(sender.spacing().rate(), None);
    }
}

#[test]
fn a_timeout_is_believed_when_the_answer_shows_no_progress() {
    let mut sender = star(432.0, 200.0, Config::default());
    let _ = expire(&mut sender, &timeout(1, 432, false), &path_at(10.0));
    let action = expire(&mut sender, &timeout(2, 432, true), &path_at(10.5));
    assert_eq!(action, Ok(BackOff::Double));
    assert_eq!(sender.window(), 1.0);
    assert!(close(sender.snapshot().ssthresh, 345.30));
}

#[test]
fn a_believed_timeout_is_a_slow_start_without_lift() {
    for (lwc_hold, window) in [(true, 2.0), (false, 347.30)] {
        let mut sender = star(432.0, 200.0, Config { lwc_hold, ..Config::default() });
        let _ = expire(&mut sender, &timeout(1, 432, false), &path_at(10.0));
        let _ = expire(&mut sender, &timeout(2, 432, true), &path_at(10.5));
        let ack = Ack { phase: Phase::Loss, ..answer(1) };
        sender.on_ack(&ack, &path_at(11.0));
        assert!(close(sender.window(), window), "{}", sender.window());
        let beyond = Path { snd_una: path_at(0.0).snd_nxt + 1, ..path_at(12.0) };
        sender.on_ack(&answer(1), &beyond);
        assert!(sender.window() > 345.0, "the hold ends with what was sent before the timeout");
    }
}

#[test]
fn an_unanswered_question_is_asked_again_as_often_as_configured() {
    for (aen_max_probes, questions) in [(1, 1), (3, 3), (0, 0)] {
        let mut sender = star(432.0, 200.0, Config { aen_max_probes, ..Config::default() });
        let mut asked = 0;
        while expire(&mut sender, &timeout(asked + 1, 432, false), &path_at(10.0)).is_err() {
            asked += 1;
        }
        assert_eq!((asked, sender.window()), (questions, 1.0));
        let _ = expire(&mut sender, &timeout(asked + 2, 1, false), &path_at(12.0));
        assert!(close(sender.snapshot().ssthresh, 345.30), "the threshold of the first timeout stands");
    }
}

#[test]
fn a_single_outstanding_segment_is_believed_lost_unless_it_comes_back_as_a_duplicate() {
    for (dsack, window) in [(false, 1.0), (true, 432.0)] {
        let mut sender = star(432.0, 200.0, Config::default());
        let _ = expire(&mut sender, &timeout(1, 1, false), &path_at(10.0));
        sender.on_ack(&Ack { dsack, ..answer(1) }, &path_at(10.5));
        assert_eq!(sender.window(), window);
    }
}

#[test]
fn an_idle_sender_restarts_without_lift_for_one_round_trip() {
    let mut sender = star(432.0, 200.0, Config::default());
    let idle = Path { snd_una: 1, snd_nxt: 1, ..path_at(60.0) };
    sender.on_event(ConnectionEvent::Idle { restart: 2.0 }, &idle);
    assert_eq!(sender.window(), 2.0);
    let first = Path { snd_una: 1 + u64::from(MSS), ..path_at(60.5) };
    sender.on_ack(&answer(1), &first);
    assert_eq!(sender.window(), 3.0);
    let second_round = Path { snd_una: 2 + 2 * u64::from(MSS), ..path_at(61.0) };
    sender.on_ack(&answer(1), &second_round);
    assert!(close(sender.window(), 4.0 + 345.30));
}

#[test]
fn every_estimator_finds_a_steady_rate() {
    for estimator in [Estimator::Abe, Estimator::Westwood, Estimator::WestwoodPlus, Estimator::Jersey] {
        let mut sender = Star::new(Config { estimator, ..Config::default() }, &start());
        sender.on_event(ConnectionEvent::Established, &path_at(0.0));
        for k in 1..=20_000_u32 {
            let path = path_at(0.0012 * f64::from(k));
            sender.on_ack(&Ack { delivered_bytes: u64::from(MSS), ..fixture::ack(1) }, &path);
        }
        let pipe = sender.pipe(&path_at(24.0));
        assert!((pipe / 416.67 - 1.0).abs() < 0.01, "{estimator:?}: {pipe}");
    }
}

#[test]
fn a_mistake_gives_everything_back() {
    let mut sender = star(432.0, 200.0, Config { aen: false, ..Config::default() });
    let _ = expire(&mut sender, &timeout(1, 432, false), &path_at(10.0));
    assert_eq!(sender.window(), 1.0);
    sender.on_undo(Undo::Reduction, &path_at(10.5));
    assert_eq!((sender.window(), sender.sizes.reno.cwnd), (432.0, 50.0));
}

/// A window of 432 segments with 276.24 measured: a ratio of 1.56. The maximum delay seen is 900 ms.
fn crowded(discriminator: Discriminator, high: bool) -> Star {
    let mut star = star(432.0, 200.0, Config { discriminator, ..Config::default() });
    star.estimate = Estimate::Abe(Abe::new(0.9, Duration::ZERO).having(0.8e6));
    star.spike = Spike { rtt_max: Duration::from_millis(900), high };
    star
}

#[test]
fn a_loss_that_delay_and_rate_explain_halves_if_losses_are_told_apart() {
    for (discriminator, high, window) in [
        (Discriminator::None, true, 276.24),
        (Discriminator::Both, true, 216.0),
        (Discriminator::Both, false, 276.24),
        (Discriminator::Spike, true, 216.0),
    ] {
        let mut star = crowded(discriminator, high);
        star.on_loss(&fixture::loss(432), &path_at(1.0));
        assert!(close(star.window(), window), "{discriminator:?}, {high}: {}", star.window());
    }
}

#[test]
fn a_loss_at_a_rate_that_the_path_carries_is_noise() {
    let mut star = star(432.0, 200.0, Config { discriminator: Discriminator::Both, ..Config::default() });
    star.spike = Spike { rtt_max: Duration::from_millis(900), high: true };
    star.on_loss(&fixture::loss(432), &path_at(1.0));
    assert!(close(star.window(), 345.30), "432 are less than 1.4 times 345.30");
}

#[test]
fn after_congestion_the_window_is_not_lifted_for_a_round_trip() {
    let mut star = crowded(Discriminator::Both, true);
    let at_loss = path_at(1.0);
    star.on_loss(&fixture::loss(432), &at_loss);
    star.on_ack(&answer(1), &Path { snd_una: at_loss.snd_nxt - 1, ..path_at(1.4) });
    assert!(star.window() < 217.0, "{}", star.window());
    star.on_ack(&answer(1), &Path { snd_una: at_loss.snd_nxt + 1, ..path_at(1.6) });
    assert!(star.window() > 400.0, "{}", star.window());
}
