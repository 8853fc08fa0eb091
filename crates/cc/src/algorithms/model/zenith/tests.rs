use super::*;
use crate::fixture;

const BASE_MS: u64 = 550;

/// A flow with an initial window of this number of segments whose handshake ended at that time.
fn established(initial_window: f64, millis: u64) -> Zenith {
    let mut zenith = Zenith::new(Config::default(), &fixture::start(initial_window));
    zenith.on_event(ConnectionEvent::Established, &at(millis));
    zenith
}

fn following(window: f64) -> Zenith {
    let mut zenith = established(window, 0);
    hear(&mut zenith, 600, BASE_MS);
    zenith.settle();
    zenith
}

fn at(millis: u64) -> Path {
    Path { in_flight: 10_000, outstanding: 10_000, ..fixture::path_at(millis as f64 / 1000.0) }
}

fn hear(zenith: &mut Zenith, millis: u64, rtt_ms: u64) {
    zenith.on_ack(&Ack { rtt: Some(Duration::from_millis(rtt_ms)), ..fixture::ack(1) }, &at(millis));
}

fn timeout(consecutive: u32) -> Timeout {
    Timeout { consecutive, outstanding: 690, answered: false }
}

fn round(sent: f64, lost: f64, longest_s: f64) -> Round {
    Round { delivered: sent - lost, lost, longest_s, ..Round::new(Instant::ZERO, Before::Ordinary, None) }
}

#[test]
fn one_flow_on_ten_megabits_aims_at_six_milliseconds_and_twenty_at_twenty() {
    let config = Config::default();
    assert!((config.target_s(1250.0) - 0.00596).abs() < 1e-5, "{}", config.target_s(1250.0));
    assert!((config.target_s(62.5) - 0.01971).abs() < 1e-5, "{}", config.target_s(62.5));
}

#[test]
fn a_queue_longer_than_wanted_shrinks_the_window_and_a_shorter_one_widens_it() {
    for (rtt_ms, grows) in [(BASE_MS + 1, true), (BASE_MS + 40, false)] {
        let mut zenith = following(690.0);
        (0..100).for_each(|n| hear(&mut zenith, 700 + 10 * n, rtt_ms));
        assert_eq!(zenith.window() > 690.0, grows, "{rtt_ms} ms: {}", zenith.window());
    }
}

/// Segments of a flow of 40 a second would arrive 25 ms apart, and every second one would wait for the receiver's timer.
#[test]
fn segments_further_apart_than_a_receiver_waits_leave_in_pairs() {
    let gap = Duration::from_millis(20);
    for (window, paired) in [(22.0, true), (28.0, false)] {
        let spacing = following(window).spacing();
        assert_eq!(matches!(spacing, Spacing::Pairs { gap: found, .. } if found == gap), paired, "{window}");
        let rate = spacing.rate().expect("it is spaced").bps() as f64;
        let expected = PACE * window / 0.55 * f64::from(fixture::MSS) * 8.0;
        assert!((rate / expected - 1.0).abs() < 1e-3, "{rate}, not {expected}");
    }
}

/// Half of the ACKs wait for a second on their way back. A threshold limits the pace.
#[test]
fn a_window_doubles_at_the_pace_of_the_path() {
    for (window, threshold, paced) in [(10.0, f64::INFINITY, 20.0), (400.0, 690.0, 690.0)] {
        let mut zenith = established(window, 0);
        hear(&mut zenith, 600, BASE_MS);
        zenith.mode = Mode::Double { threshold };
        zenith.rtt_s = 1.05;
        let rate = zenith.spacing().rate().expect("it is spaced").bps() as f64;
        let expected = paced / 0.55 * f64::from(fixture::MSS) * 8.0;
        assert!((rate / expected - 1.0).abs() < 1e-3, "{rate}, not {expected}");
    }
}

/// The first flight of ten segments leaves an idle bottleneck of 1250 a second; of a lost last segment nothing is heard for a round trip.
#[test]
fn the_second_flight_fills_half_of_an_idle_path() {
    for (heard, expected) in [(10, 343.75), (9, 10.0)] {
        let mut zenith = established(10.0, 1000);
        let (mut sent_s, mut free_s) = (0.0, 0.0_f64);
        let mut acks = [0.0; 10];
        for (index, ack_s) in (0..).zip(&mut acks) {
            free_s = free_s.max(sent_s) + 1.0 / 1250.0;
            *ack_s = free_s - sent_s + 0.5492;
            zenith.on_sent(
                &Sent { seq: 1, len: fixture::MSS, retransmission: false },
                &fixture::path_at(1.0 + sent_s),
            );
            sent_s += Chirp::gap_s(index, 0.55);
        }
        sent_s = 0.0;
        for (index, rtt_s) in (0..heard).zip(acks) {
            let path = Path { in_flight: 10, ..fixture::path_at(1.0 + sent_s + rtt_s) };
            zenith.on_ack(&Ack { rtt: Some(Duration::from_secs_f64(rtt_s)), ..fixture::ack(1) }, &path);
            sent_s += Chirp::gap_s(index, 0.55);
        }
        assert!((zenith.window() - expected).abs() < 10.0, "{heard} ACKs: {}", zenith.window());
    }
}

/// Three segments of a first flight of ten arrive, and seven are lost before any queue is seen.
#[test]
fn an_overflow_of_the_first_flight_ends_the_measurement_but_not_the_doubling() {
    let mut zenith = established(10.0, 600);
    for millis in [1150, 1151] {
        hear(&mut zenith, millis, BASE_MS);
    }
    assert_eq!(zenith.snapshot().phase, "measure");
    let rtt = Some(Duration::from_millis(BASE_MS));
    zenith.on_ack(&Ack { rtt, lost: 7, ..fixture::ack(1) }, &at(1152));
    assert_eq!((zenith.snapshot().phase, zenith.window()), ("double", 10.0));
    (1710..1720).for_each(|millis| hear(&mut zenith, millis, BASE_MS));
    assert_eq!((zenith.snapshot().phase, zenith.window()), ("double", 20.0));
}

#[test]
fn after_a_lost_syn_the_window_doubles_from_one_segment_and_after_an_idle_time_it_is_as_before() {
    let mut zenith = established(1.0, 1600);
    assert_eq!((zenith.snapshot().phase, zenith.window()), ("double", 1.0));
    zenith.on_sent(&Sent { seq: 1, len: fixture::MSS, retransmission: false }, &at(1600));
    hear(&mut zenith, 1600 + BASE_MS, BASE_MS);
    assert_eq!((zenith.snapshot().phase, zenith.window()), ("double", 2.0));
    zenith.on_event(ConnectionEvent::Idle { restart: 1.0 }, &at(9000));
    assert_eq!(zenith.window(), 2.0);
    zenith.window = 690.0;
    zenith.on_event(ConnectionEvent::Unvalidated { floor: 10.0 }, &at(9000));
    assert_eq!(zenith.window(), 345.0);
}

/// Of ACKs that come four hundred at a time only the first finds the window full.
#[test]
fn a_window_that_was_full_in_the_round_trip_before_is_used() {
    let mut zenith = following(690.0);
    let ack = Ack { rtt: Some(Duration::from_millis(BASE_MS + 1)), ..fixture::ack(1) };
    zenith.on_ack(&ack, &Path { in_flight: 520, ..at(700) });
    let emptied = |millis| Path { in_flight: 100, ..at(millis) };
    (1..12).for_each(|tenth| zenith.on_ack(&ack, &emptied(700 + 100 * tenth)));
    let grown = zenith.window;
    assert!(grown > 690.0, "{grown}");
    (12..40).for_each(|tenth| zenith.on_ack(&ack, &emptied(700 + 100 * tenth)));
    let later = zenith.window;
    (40..60).for_each(|tenth| zenith.on_ack(&ack, &emptied(700 + 100 * tenth)));
    assert_eq!(zenith.window, later);
}

/// A receive window that has not opened lets a thousand segments arrive in one round trip and a hundred in the next.
#[test]
fn the_end_of_speed_fits_the_window_to_the_larger_of_two_rates() {
    let mut zenith = following(690.0);
    (zenith.speed, zenith.delivery_rate_before, zenith.delivery_rate) = (4.0, 1250.0, 175.0);
    zenith.round.since = at(1000).now;
    hear(&mut zenith, 1152, BASE_MS + 2);
    assert_eq!((zenith.speed, zenith.window()), (1.0, 690.0));
}

/// All ACKs wait for 300 ms on their way back, which the window fills, too.
#[test]
fn a_window_is_fitted_to_the_path_without_its_queue_on_the_way_out_alone() {
    let mut zenith = following(1200.0);
    for number in 0..100 {
        let (now, back_ms) = (700 + 10 * number, if number < 50 { 0 } else { 300 });
        let peer_clock = Some((now - back_ms) as u32);
        let rtt = Some(Duration::from_millis(BASE_MS + back_ms));
        zenith.on_ack(&Ack { rtt, peer_clock, ..fixture::ack(1) }, &at(now));
    }
    zenith.rtt_s = 0.85;
    zenith.fit(at(1700).now, 1250.0);
    assert!((zenith.window() - 1250.0 * (0.849 + 0.006)).abs() < 5.0, "{}", zenith.window());
}

#[test]
fn an_ack_that_waited_at_the_receiver_shows_no_queue() {
    let mut zenith = following(690.0);
    for (number, queue_ms) in (0..).zip([5, 5, 45, 5]) {
        hear(&mut zenith, 700 + 10 * number, BASE_MS + queue_ms);
    }
    assert!((zenith.longest.get().expect("queues were seen") - 0.005).abs() < 1e-9);
}

#[test]
fn shares_meet_without_oscillation_on_a_short_path() {
    let [mut more, mut less] = [9.0, 3.0].map(|window| {
        let mut zenith = established(10.0, 0);
        hear(&mut zenith, 600, 4);
        zenith.settle();
        zenith.window = window;
        zenith
    });
    for round in 1..1500 {
        for flow in [&mut more, &mut less] {
            let rtt = Some(Duration::from_millis(14));
            let segments = flow.window() as u32;
            // The queue here never changes, which a drain would take for a longer path.
            flow.drains.lowest_at = at(600 + 14 * round).now;
            flow.on_ack(&Ack { rtt, ..fixture::ack(segments) }, &at(600 + 14 * round));
        }
        let (more, less) = (more.window, less.window);
        assert!(more > 0.98 * less, "round {round}: {more} and {less}");
    }
    assert!(more.window < 1.3 * less.window, "{} and {}", more.window, less.window);
}

/// Seven ACKs of a segment within a step, and one of seven at its end.
#[test]
fn acks_between_two_steps_count_in_the_next() {
    let (mut each, mut once) = (following(690.0), following(690.0));
    let step_ms = at(0).srtt.as_nanos().div_ceil(16 * 1_000_000);
    (1..7).for_each(|ack| hear(&mut each, 600 + ack * step_ms / 7, BASE_MS + 1));
    assert_eq!(each.window(), 690.0);
    hear(&mut each, 600 + step_ms, BASE_MS + 1);
    let rtt = Some(Duration::from_millis(BASE_MS + 1));
    once.on_ack(&Ack { rtt, ..fixture::ack(7) }, &at(600 + step_ms));
    assert!(each.window() > 690.0);
    assert_eq!((each.window(), each.mean_s), (once.window(), once.mean_s));
}

#[test]
fn two_round_trips_without_a_queue_end_the_yielding() {
    let mut zenith = following(10.0);
    zenith.mean_s = 0.1;
    (0..8).for_each(|number| hear(&mut zenith, 700 + 600 * number, BASE_MS));
    assert!(zenith.speed > 1.0 && zenith.window > 10.0, "{} {}", zenith.speed, zenith.window);
}

/// A path that loses 2 % by itself, beside a queue of 3 ms; one whose buffer is so short that no segment sees a queue; and one whose buffer
/// holds 12 ms, where six are wanted.
#[test]
fn what_a_path_loses_by_itself_costs_nothing_and_half_of_the_rest_is_taken_from_the_window() {
    for (longest_s, lost, taken) in [
        (0.003, 20.0, 0.0),
        (0.003, 40.0, 10.0),
        (0.0, 125.0, 0.0),
        (0.0, 165.0, 20.0),
        (0.012, 125.0, 0.0),
        (0.012, 165.0, 20.0),
    ] {
        let mut zenith = following(690.0);
        (zenith.noise, zenith.allowance) = (0.02, 0.0);
        zenith.longest.update(at(600).now.as_nanos(), longest_s);
        (zenith.speed, zenith.calm_rounds) = (8.0, 4);
        zenith.charge(&round(1000.0, lost, longest_s), 0.55);
        assert!((690.0 - taken - zenith.window).abs() < 1e-6, "{lost} at {longest_s}: {}", zenith.window);
        let slow = (zenith.speed, zenith.calm_rounds) == (1.0, 0);
        assert_eq!(slow, longest_s == 0.003 && taken > 0.0, "{lost} at {longest_s}: {}", zenith.speed);
    }
}

/// Nine round trips without a loss, in each of which eight are expected.
#[test]
fn of_losses_that_did_not_happen_nine_standard_deviations_are_saved_up() {
    let mut zenith = following(690.0);
    zenith.noise = 0.008;
    (0..9).for_each(|_| zenith.charge(&round(1000.0, 0.0, 0.003), 0.55));
    zenith.charge(&round(1100.0, 100.0, 0.003), 0.55);
    let allowed = 9.0 * libm::sqrt(690.0 * 0.008) + 0.008 * 1100.0;
    assert!((690.0 - 0.5 * (100.0 - allowed) - zenith.window).abs() < 1e-6, "{}", zenith.window);
}

#[test]
fn losses_are_noise_where_no_queue_was_seen() {
    let mut zenith = following(690.0);
    zenith.noise = 0.008;
    zenith.learn_noise(&round(1000.0, 30.0, 0.003));
    assert_eq!(zenith.noise, 0.008, "3 ms are a queue");
    zenith.learn_noise(&round(1000.0, 30.0, 0.001));
    assert!((zenith.noise - 0.019).abs() < 1e-9, "{}", zenith.noise);
    (0..100).for_each(|_| zenith.learn_noise(&round(1000.0, 500.0, 0.001)));
    assert_eq!(zenith.noise, 0.125, "no path is believed to lose more");
}

/// Most packets are lost, and no segment sees a queue: the window falls to two segments (RFC 8085).
#[test]
fn a_persistent_loss_of_most_packets_reduces_the_rate() {
    let mut zenith = following(690.0);
    for number in 0..400 {
        let rtt = Some(Duration::from_millis(BASE_MS));
        let arrived = (zenith.window() / 44.0) as u32 + 1;
        zenith.on_ack(&Ack { rtt, lost: 3 * arrived, ..fixture::ack(arrived) }, &at(700 + 50 * number));
    }
    assert!(zenith.window < 20.0, "{}", zenith.window);
}

/// One loss in two round trips of 550 ms is 0.91 losses per second. Each loss per second adds 20 ms to Q, and the share of losses adds its part of the round trip.
#[test]
fn where_losses_stand_for_the_queue_their_number_tells_a_slow_flow_what_it_tells_a_fast_one() {
    for segments in [100.0, 200.0] {
        let mut zenith = following(segments);
        (zenith.mean_s, zenith.overflow_s, zenith.noise) = (0.02, 0.02, 0.0);
        zenith.charge(&round(segments, 0.5, 0.008), 0.55);
        let stands_for_s = 0.02 * 0.5 / 0.55 + 0.5 / segments * 0.55;
        let found_s = zenith.overflow_s - 0.02;
        assert!((found_s - stands_for_s * 0.55 / 10.0).abs() < 1e-9, "{segments}: {found_s}");
    }
}

#[test]
fn ten_seconds_after_the_lowest_round_trip_the_queue_is_drained() {
    let mut zenith = following(690.0);
    for tenth in 0..=101 {
        hear(&mut zenith, 700 + 100 * tenth, BASE_MS + 5);
    }
    assert_eq!(zenith.snapshot().phase, "drain");
    assert!(zenith.window() < 0.96 * zenith.window, "{} of {}", zenith.window(), zenith.window);
}

/// A queue on the way back, which the peer's clock shows not to be on the way out, is part of what a drain keeps full.
#[test]
fn a_drain_does_not_drain_the_way_back() {
    let mut zenith = following(690.0);
    for tenth in 0..=20 {
        let (now, held) = (700 + 100 * tenth, if tenth < 10 { 0 } else { 400 });
        let (rtt, peer_clock) =
            (Some(Duration::from_millis(BASE_MS + held)), Some((now - 275 - held) as u32));
        zenith.on_ack(&Ack { rtt, peer_clock, ..fixture::ack(1) }, &at(now));
    }
    zenith.delivery_rate = 1e6;
    zenith.drain(&at(12_000));
    let kept = zenith.window() / zenith.window;
    assert!((0.9..0.96).contains(&kept), "{kept}");
}

#[test]
fn a_drain_keeps_no_more_on_the_path_than_arrives() {
    let mut zenith = following(690.0);
    hear(&mut zenith, 700, BASE_MS + 5);
    zenith.delivery_rate = 0.5 * zenith.rate();
    zenith.drain(&at(11_000));
    let expected = 0.95 * zenith.delay.base_s() * zenith.delivery_rate;
    assert!((zenith.window() / expected - 1.0).abs() < 1e-9, "{} of {expected}", zenith.window());
}

#[test]
fn a_round_trip_that_does_not_fall_in_a_drain_belongs_to_a_longer_path() {
    for overflowed in [false, true] {
        let mut zenith = following(690.0);
        for tenth in 0..90 {
            zenith.crowd.overflowed |= overflowed;
            hear(&mut zenith, 700 + 100 * tenth, BASE_MS + 100);
        }
        assert_eq!((zenith.delay.base_s() - 0.65).abs() < 1e-9, !overflowed, "{}", zenith.delay.base_s());
        assert!(zenith.window() > 690.0 || overflowed, "{}", zenith.window());
    }
}

/// Two segments beside a foreign queue of 300 ms that does not change.
#[test]
fn the_drain_of_a_flow_with_the_smallest_window_does_not_show_a_longer_path() {
    let mut zenith = following(SMALLEST);
    (0..90).for_each(|tenth| hear(&mut zenith, 700 + 100 * tenth, BASE_MS + 300));
    assert_eq!(zenith.window, SMALLEST);
    assert_eq!(zenith.delay.base_s(), 0.55);
}

/// Ends a drain that began with a round trip of `standing_ms` and whose lowest was `lowest_ms`. True if a contest follows.
fn contests(zenith: &mut Zenith, standing_ms: u64, lowest_ms: u64) -> bool {
    [1000, 1500].into_iter().for_each(|millis| hear(zenith, millis, standing_ms));
    zenith.phase = Phase::None;
    zenith.drains.lowest_at = Instant::ZERO;
    zenith.drain(&at(11_000));
    [11_600, 12_200].into_iter().for_each(|millis| hear(zenith, millis, lowest_ms));
    zenith.phase = Phase::Refill;
    zenith.drains.lowest = Duration::from_millis(lowest_ms);
    zenith.judge_drain(at(12_200).now);
    matches!(zenith.mode, Mode::Contest(_))
}

/// One flow has nearly all of 10 Mbit/s and drains while many that have just begun do not; it aims at 6 ms alone.
#[test]
fn a_queue_of_many_zenith_flows_is_not_contested() {
    for (left_ms, contested) in [(20, false), (30, true)] {
        let mut zenith = following(690.0);
        zenith.drains.met_others = true;
        assert_eq!(
            contests(&mut zenith, BASE_MS + left_ms + 10, BASE_MS + left_ms),
            contested,
            "{left_ms} ms"
        );
    }
}

/// Beside Reno, whose queue grows by a segment a round trip, each drain leaves less than four targets and most of the queue.
#[test]
fn a_flow_that_yields_drain_after_drain_contests() {
    for (emptied, drains, contested) in [(690.0, 2, false), (690.0, 3, true), (150.0, 3, false)] {
        let mut zenith = following(100.0);
        (zenith.drains.emptied, zenith.drains.filled) = (emptied, drains - 1);
        assert_eq!(contests(&mut zenith, 575, 570), contested, "{drains} after {emptied}");
    }
}

/// Zenith flows that have just begun drain within one and a half times ten seconds. A flow that has met others knows them at once.
#[test]
fn those_that_have_just_begun_are_not_contested_before_they_drain() {
    for (age_s, met, contested) in [(14, false, false), (16, false, true), (0, true, true)] {
        let mut zenith = following(100.0);
        hear(&mut zenith, 1000, BASE_MS + 200);
        hear(&mut zenith, 1600, BASE_MS + 100);
        zenith.drains.lowest = Duration::from_millis(BASE_MS + 100);
        zenith.drains.met_others = met;
        (zenith.drains.standing_s, zenith.drains.base_s) = (0.75, 0.55);
        zenith.drains.empty_at = at(2000).now;
        (zenith.crowd.window, zenith.crowd.overflowed) = (690.0, true);
        zenith.judge_drain(at(2000 + 1000 * age_s).now);
        assert_eq!(matches!(zenith.mode, Mode::Contest(_)), contested, "after {age_s} s");
        assert_eq!(zenith.window == 690.0, contested, "what it had before it yielded");
        assert_eq!(zenith.crowd.window == 690.0, !contested, "is remembered");
        assert!(
            zenith.crowd.overflowed,
            "a queue that has overflowed since it became long is no longer path"
        );
        zenith.watch_queue(0.0);
        assert!(!zenith.crowd.overflowed);
    }
}

/// Others keep 200 ms of queue, to which the window adds its own; after a minute they have gone.
#[test]
fn a_queue_that_a_drain_leaves_is_contested_until_it_is_gone() {
    let mut zenith = following(690.0);
    let mut contested = false;
    for tenth in 0..600 {
        let own_ms = (0.3 * zenith.window()) as u64;
        hear(&mut zenith, 700 + 100 * tenth, BASE_MS + 200 + own_ms);
        contested |= zenith.snapshot().phase == "contest";
    }
    assert!(contested);
    assert!(zenith.window > 690.0, "{}", zenith.window);
    (600..900).for_each(|tenth| hear(&mut zenith, 700 + 100 * tenth, BASE_MS + 5 * u64::from(tenth > 600)));
    assert!(!matches!(zenith.mode, Mode::Contest(_)), "{:?}", zenith.mode);
}

#[test]
fn losses_in_a_contest_and_marks_reduce_the_window_as_cubic_does() {
    let mark = Loss { cause: Cause::Mark, ..fixture::loss(690) };
    let mut zenith = following(690.0);
    zenith.on_loss(&mark, &at(700));
    assert!((zenith.window - 483.0).abs() < 1e-9, "{}", zenith.window);
    let mut contest = following(690.0);
    contest.begin_contest(690.0, at(700).now);
    contest.round = round(690.0, 60.0, 0.1);
    contest.end_round(&at(1300));
    assert!((contest.window - 483.0).abs() < 1e-9, "{}", contest.window);
}

/// The law ignores losses and rate of an outage of five seconds.
#[test]
fn what_left_before_a_silence_is_not_measured() {
    let mut zenith = following(690.0);
    (0..2000).for_each(|millis| hear(&mut zenith, 700 + millis, BASE_MS + 5));
    let (before, longest_s) = (zenith.window, zenith.longest.get());
    let rtt = Some(Duration::from_millis(BASE_MS + 5000));
    zenith.on_ack(&Ack { rtt, lost: 600, ..fixture::ack(1) }, &at(7700));
    (0..10).for_each(|tenth| hear(&mut zenith, 7800 + 100 * tenth, BASE_MS));
    assert!(zenith.window > 0.9 * before, "{} of {before}", zenith.window);
    assert_eq!(zenith.longest.get(), longest_s);
}

/// A round trip grows from 550 to 1000 ms while the smoothed one stays. Two segments leave in each: the first pause is taken for a silence.
#[test]
fn acks_that_pause_for_a_round_trip_are_no_silence_however_slowly_the_smoothed_one_follows() {
    let mut zenith = following(2.0);
    (1..4).for_each(|number| hear(&mut zenith, 600 + 1050 * number, 1000));
    assert_eq!(zenith.trusted_from, at(1650).now);
    assert_eq!(zenith.delay.latest_s(), 0.45);
}

#[test]
fn a_timeout_backs_off_and_leaves_one_segment_and_then_seven_tenths_of_the_window() {
    let mut zenith = following(690.0);
    for consecutive in 1..=3 {
        assert_eq!(zenith.on_rto(&timeout(consecutive), &at(2000)), BackOff::Double);
        assert_eq!((zenith.window(), zenith.snapshot().phase), (1.0, "timeout"));
    }
    let mut undone = zenith.clone();
    hear(&mut zenith, 3000, BASE_MS);
    assert!((zenith.window() - 483.0).abs() < 1e-9, "{}", zenith.window());
    undone.on_undo(Undo::Reduction, &at(3000));
    hear(&mut undone, 3000, BASE_MS);
    assert_eq!((undone.window(), undone.snapshot().phase), (690.0, "follow"));
    assert_eq!(undone.trusted_from, at(3000).now, "what the timeout interrupted is not measured");
}

/// In an outage the timer expires, a drain becomes due, and ACKs that were under way arrive before the first of new data.
#[test]
fn a_timeout_does_not_set_the_window_of_a_drain() {
    let mut zenith = following(690.0);
    (0..99).for_each(|tenth| hear(&mut zenith, 700 + 100 * tenth, BASE_MS + 5));
    zenith.on_rto(&timeout(1), &at(10_550));
    let duplicate = Ack { acked: 0, rtt: Some(Duration::from_millis(BASE_MS + 5)), ..fixture::ack(1) };
    (0..4).for_each(|tenth| zenith.on_ack(&duplicate, &at(10_600 + 100 * tenth)));
    assert_eq!(zenith.phase, Phase::None);
}

/// The queue after a second of round trips of 550 ms and one of 570, with a clock that runs `ticks` a millisecond and that the
/// ACK left `back_ms` before it arrived.
fn queue_ms(ticks: u32, back_ms: u32) -> f64 {
    let mut delay = Delay::new();
    for millis in (1000..3000_u32).step_by(10) {
        let (rtt, back) = if millis < 2000 { (550, 275) } else { (570, back_ms) };
        let clock = Some((millis - back) * ticks);
        delay.sample(at(millis.into()).now, Duration::from_millis(rtt), clock, Duration::from_millis(100));
    }
    delay.queue_s() * 1000.0
}

#[test]
fn a_queue_on_the_way_back_does_not_count_unless_the_clock_is_wrong() {
    assert!((queue_ms(1, 275) - 20.0).abs() < 1e-6, "out: {}", queue_ms(1, 275));
    assert!((queue_ms(1, 295) - 1.0).abs() < 1e-6, "back: {}", queue_ms(1, 295));
    assert!((queue_ms(10, 295) - 20.0).abs() < 1e-6, "no milliseconds: {}", queue_ms(10, 295));
}

/// ACKs wait for a second on a way back that is assigned on demand.
#[test]
fn a_clock_whose_acks_are_late_is_believed() {
    let mut delay = Delay::new();
    for millis in (1000..9000_u32).step_by(10) {
        let held = if millis < 8000 { 0 } else { 1000 };
        let (rtt, clock) = (Duration::from_millis(u64::from(550 + held)), Some(millis - 275 - held));
        delay.sample(at(millis.into()).now, rtt, clock, Duration::from_millis(100));
    }
    assert!(delay.queue_s() < 0.0015, "{}", delay.queue_s());
}
