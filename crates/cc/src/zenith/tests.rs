use super::*;
use crate::fixture;

const BASE_MS: u64 = 550;

fn at(millis: u64) -> Path {
    Path { in_flight: 10_000, outstanding: 10_000, ..fixture::path_at(millis as f64 / 1000.0) }
}

fn established(window: f64) -> Zenith {
    let mut zenith = Zenith::new(Config::default(), &fixture::start(window));
    zenith.on_event(ConnectionEvent::Established, &at(0));
    zenith
}

/// A flow whose start has ended.
fn following(window: f64) -> Zenith {
    let mut zenith = established(window);
    hear(&mut zenith, 600, BASE_MS);
    zenith.window = window;
    zenith.end_growth();
    zenith
}

/// An ACK of one segment.
fn hear(zenith: &mut Zenith, millis: u64, rtt_ms: u64) {
    lose(zenith, millis, rtt_ms, 0);
}

fn lose(zenith: &mut Zenith, millis: u64, rtt_ms: u64, lost: u32) {
    zenith.on_ack(&Ack { rtt: Some(Duration::from_millis(rtt_ms)), lost, ..fixture::ack(1) }, &at(millis));
}

/// A round trip of so many segments, of which some were lost and that saw a queue or none.
fn round(delivered: f64, lost: f64, longest_s: f64) -> Round {
    Round { delivered, lost, longest_s, ..Round::new(Instant::ZERO, true) }
}

#[test]
fn one_flow_on_ten_megabits_aims_at_six_milliseconds_and_twenty_at_twenty() {
    for (window, target_s) in [(1250.0 * 0.55, 0.005_96), (62.5 * 0.55, 0.019_71)] {
        assert!((following(window).own_s() - target_s).abs() < 1e-5, "{window}");
    }
}

#[test]
fn the_window_doubles_at_twice_the_pace_until_a_queue_shows() {
    let mut zenith = established(100.0);
    (0..100).for_each(|n| hear(&mut zenith, 600 + 5 * n, BASE_MS));
    assert_eq!(zenith.window, 200.0);
    let rate = zenith.spacing().rate().expect("it is spaced").bps() as f64;
    assert!((rate / (2.0 * 200.0 / 0.55 * 8000.0) - 1.0).abs() < 1e-3, "{rate}");
    [1150, 1155].into_iter().for_each(|millis| hear(&mut zenith, millis, BASE_MS + 40));
    assert!(matches!(zenith.mode, Mode::Follow), "two segments in a row saw 40 ms");
    assert_eq!(zenith.mean_s, zenith.own_s(), "Q begins with the flow's own target");
}

#[test]
fn growth_ends_at_what_the_last_round_trip_carried() {
    for (share, carried, window) in [(0.25, 80.0, 80.0), (1.0, 40.0, 80.0), (0.25, 20.0, 50.0)] {
        let mut zenith = following(100.0);
        (zenith.mode, zenith.delivered_before) = (Mode::Grow(share), carried);
        zenith.notice_queue(Instant::ZERO);
        let target = 1.0 + zenith.config.price / libm::sqrt(100.0 / 0.55) / 0.55 + 0.002 / 0.55;
        let fits = if window == 50.0 { 50.0 } else { window * target };
        assert!((zenith.window - fits).abs() < 1e-9, "{share}: {} for {fits}", zenith.window);
    }
}

#[test]
fn a_queue_longer_than_wanted_shrinks_the_window_and_a_shorter_one_widens_it() {
    for (rtt_ms, grows) in [(BASE_MS + 3, true), (BASE_MS + 40, false)] {
        let mut zenith = following(690.0);
        (0..100).for_each(|n| hear(&mut zenith, 700 + 5 * n, rtt_ms));
        assert_eq!(zenith.window > 690.0, grows, "{rtt_ms} ms: {}", zenith.window);
    }
}

#[test]
fn a_window_of_which_less_than_half_is_used_does_not_grow() {
    let mut zenith = following(690.0);
    for n in 0..100 {
        let path = Path { in_flight: 300, ..at(1300 + 5 * n) };
        zenith.round.in_flight = 0.0;
        zenith.in_flight_before = 0.0;
        let rtt = Some(Duration::from_millis(BASE_MS + 3));
        zenith.on_ack(&Ack { rtt, ..fixture::ack(1) }, &path);
    }
    assert!(zenith.window <= 690.0, "{}", zenith.window);
}

#[test]
fn round_trips_without_a_queue_let_the_window_grow_faster_and_faster() {
    let mut zenith = following(690.0);
    let shares = [0; 6].map(|_| {
        zenith.round.in_flight = 690.0;
        zenith.watch_queue(false);
        if let Mode::Grow(share) = zenith.mode { share } else { 0.0 }
    });
    assert_eq!(shares, [0.25 / 16.0, 0.25 / 8.0, 0.25 / 4.0, 0.125, 0.25, 0.25]);
}

#[test]
fn segments_further_apart_than_a_receiver_waits_leave_in_pairs() {
    for (window, paired) in [(22.0, true), (28.0, false)] {
        assert_eq!(matches!(following(window).spacing(), Spacing::Pairs { .. }), paired, "{window}");
    }
}

/// 10 of 1000 segments are lost where a hundredth is noise, with and without a queue, and 300 where no queue was seen.
#[test]
fn only_losses_beyond_the_noise_that_saw_a_queue_count_in_q() {
    for (lost, longest_s, window, counts) in
        [(10.0, 0.02, 1000.0, false), (40.0, 0.02, 985.0, true), (40.0, 0.0, 1000.0, false), (300.0, 0.0, 912.5, false)]
    {
        let mut zenith = following(1000.0);
        (zenith.noise, zenith.saved) = (0.01, 0.0);
        let queue = zenith.judge_losses(&round(1000.0 - lost, lost, longest_s), Instant::ZERO);
        assert_eq!((queue, zenith.loss_s > 0.0), (counts, counts), "{lost} and {longest_s} s");
        assert!((zenith.window - window).abs() < 1e-9, "{lost} and {longest_s} s: {}", zenith.window);
    }
}

#[test]
fn what_is_lost_without_a_queue_is_learned_as_noise() {
    let mut zenith = following(690.0);
    (0..20).for_each(|_| assert!(!zenith.judge_losses(&round(490.0, 10.0, 0.0), Instant::ZERO)));
    assert!((zenith.noise - 0.02).abs() < 1e-3, "{}", zenith.noise);
    (0..20).for_each(|_| assert!(!zenith.judge_losses(&round(250.0, 250.0, 0.0), Instant::ZERO)));
    assert_eq!(zenith.noise, 0.125, "no path is believed to lose more");
}

#[test]
fn ten_seconds_after_the_lowest_round_trip_the_queue_is_drained_for_one() {
    let mut zenith = following(690.0);
    zenith.delay.lowest_at = Instant::ZERO;
    (0..46).for_each(|n| hear(&mut zenith, 800 + 200 * n, BASE_MS + 6));
    hear(&mut zenith, 10_000, BASE_MS + 6);
    assert_eq!(zenith.snapshot().phase, "drain");
    assert!(zenith.window() < 0.951 * zenith.window, "{} of {}", zenith.window(), zenith.window);
    hear(&mut zenith, 10_551, BASE_MS);
    assert_eq!((zenith.tide, zenith.window()), (Tide::Refill, zenith.window));
}

/// Ends a drain that began with so much queue, and whose lowest round trip was this.
fn drained(zenith: &mut Zenith, before_s: f64, lowest_ms: u64) {
    zenith.delay.begin_drain(at(1000).now);
    zenith.delay.sample(at(1000).now, Duration::from_millis(lowest_ms), None, true);
    zenith.crowd.queue_s = before_s;
    zenith.judge_drain(at(1000).now);
}

#[test]
fn a_queue_that_a_drain_does_not_move_belongs_to_a_longer_path() {
    let mut zenith = following(690.0);
    drained(&mut zenith, 0.1, BASE_MS + 100);
    assert_eq!(zenith.delay.base(), Duration::from_millis(BASE_MS + 100));
    assert!((zenith.window - 690.0 * 650.0 / 550.0).abs() < 1e-6, "{}", zenith.window);
}

#[test]
fn neither_what_overflows_nor_a_flow_that_has_yielded_finds_a_longer_path() {
    for (overflowed, window) in [(true, 690.0), (false, 300.0)] {
        let mut zenith = following(690.0);
        (zenith.crowd.overflowed, zenith.window) = (overflowed, window);
        drained(&mut zenith, 0.1, BASE_MS + 100);
        assert_eq!(zenith.delay.base(), Duration::from_millis(BASE_MS));
    }
}

#[test]
fn three_drains_that_leave_a_queue_begin_a_contest_until_one_leaves_none() {
    let mut zenith = following(690.0);
    zenith.window = 100.0;
    let contests = |zenith: &Zenith| matches!(zenith.mode, Mode::Contest(_));
    for number in 1..=3 {
        drained(&mut zenith, 0.2, BASE_MS + 150);
        assert_eq!(contests(&zenith), number == 3, "drain {number}");
    }
    assert_eq!(zenith.window, 690.0, "what it had before it yielded");
    zenith.judge_losses(&round(600.0, 90.0, 0.2), Instant::ZERO);
    assert!((zenith.window - 483.0).abs() < 1e-9, "a loss in a contest: {}", zenith.window);
    drained(&mut zenith, 0.2, BASE_MS + 60);
    assert!(contests(&zenith), "60 ms are left");
    drained(&mut zenith, 0.2, BASE_MS);
    assert!(!contests(&zenith));
}

#[test]
fn a_timeout_backs_off_and_leaves_one_segment_and_then_half_of_the_window() {
    let mut zenith = following(690.0);
    for consecutive in 1..=3 {
        let timeout = Timeout { consecutive, outstanding: 690, answered: false };
        assert_eq!(zenith.on_rto(&timeout, &at(2000)), BackOff::Double);
        assert_eq!((zenith.window(), zenith.snapshot().phase), (1.0, "timeout"));
    }
    let mut undone = zenith.clone();
    zenith.on_ack(&fixture::ack(1), &at(3000));
    assert!((345.0..347.0).contains(&zenith.window()), "{}", zenith.window());
    undone.on_undo(Undo::Reduction, &at(3000));
    assert_eq!(undone.window(), 690.0);
}

#[test]
fn a_mark_counts_as_it_does_for_cubic() {
    let mut zenith = following(690.0);
    zenith.on_loss(&Loss { cause: Cause::Mark, ..fixture::loss(690) }, &at(700));
    assert!((zenith.window - 483.0).abs() < 1e-9);
}

#[test]
fn an_idle_flow_begins_with_half_of_its_window_and_after_a_lost_syn_with_one_segment() {
    let mut zenith = following(690.0);
    zenith.on_event(ConnectionEvent::Idle { restart: 10.0 }, &at(5000));
    assert_eq!(zenith.window(), 345.0);
    let mut lost_syn = established(10.0);
    lost_syn.on_event(ConnectionEvent::Idle { restart: 1.0 }, &at(1000));
    assert_eq!(lost_syn.window(), 1.0);
}

/// The transmitter pauses for two seconds: the packets that it kept arrive late, but there was no queue.
#[test]
fn what_left_before_a_silence_is_not_measured() {
    let mut zenith = following(690.0);
    hear(&mut zenith, 700, BASE_MS);
    hear(&mut zenith, 3000, BASE_MS + 2000);
    assert_eq!(zenith.delay.base(), Duration::from_millis(BASE_MS));
    assert_eq!(zenith.round.longest_s, 0.0);
}

/// The queue after a second of 550 ms and one of 570, with a clock that runs `ticks` a millisecond and that the ACK left `back_ms` before it arrived.
fn queue_ms(ticks: u32, back_ms: u32) -> f64 {
    let mut delay = Delay::new(10.0);
    let mut queue = Duration::ZERO;
    for millis in (1000..3000_u32).step_by(10) {
        let (rtt, back) = if millis < 2000 { (550, 275) } else { (570, back_ms) };
        let clock = Some((millis - back) * ticks);
        queue = delay.sample(at(u64::from(millis)).now, Duration::from_millis(rtt), clock, false);
    }
    queue.as_secs_f64() * 1000.0
}

#[test]
fn a_queue_on_the_way_back_does_not_count_unless_the_clock_is_wrong() {
    assert!((queue_ms(1, 275) - 20.0).abs() < 1e-6, "out: {}", queue_ms(1, 275));
    assert!((queue_ms(1, 295) - 1.0).abs() < 1e-6, "back: {}", queue_ms(1, 295));
    assert!((queue_ms(10, 295) - 20.0).abs() < 1e-6, "no milliseconds: {}", queue_ms(10, 295));
}
