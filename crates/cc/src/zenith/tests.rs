use super::*;
use crate::fixture;

const BASE_MS: u64 = 550;

/// A flow with an initial window of so many segments whose handshake ended at that time.
fn established(initial_window: f64, millis: u64) -> Zenith {
    let mut zenith = Zenith::new(Config::default(), &fixture::start(initial_window));
    zenith.on_event(ConnectionEvent::Established, &at(millis));
    zenith
}

fn zenith(window: f64) -> Zenith {
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

/// Who begins behind the first flights of others gets its own ACKs late, and then in flights with pauses between them.
#[test]
fn a_flow_that_begins_behind_others_measures_its_delay() {
    let mut zenith = established(10.0, 0);
    zenith.settle();
    let sent = Sent { seq: 1, len: fixture::MSS, retransmission: false };
    zenith.on_sent(&sent, &Path { outstanding: 1, ..at(0) });
    hear(&mut zenith, BASE_MS + 200, BASE_MS + 200);
    assert_eq!(zenith.delay.base_s(), 0.75, "its first ACK counts, 200 ms late");
    hear(&mut zenith, 2 * BASE_MS + 150, BASE_MS);
    assert_eq!(zenith.delay.base_s(), 0.55);
}

#[test]
fn one_flow_on_ten_megabits_aims_at_six_milliseconds_and_twenty_at_twenty() {
    let config = Config::default();
    assert!((config.target_s(1250.0) - 0.00596).abs() < 1e-5, "{}", config.target_s(1250.0));
    assert!((config.target_s(62.5) - 0.01971).abs() < 1e-5, "{}", config.target_s(62.5));
}

#[test]
fn the_memory_is_twenty_round_trips_within_five_and_ten_seconds() {
    for (rtt_ms, memory_s) in [(100, 5.0), (350, 7.0), (BASE_MS, 10.0)] {
        let mut zenith = established(10.0, 0);
        hear(&mut zenith, 600, rtt_ms);
        assert!((zenith.memory_s() - memory_s).abs() < 1e-9, "{rtt_ms} ms: {}", zenith.memory_s());
    }
}

#[test]
fn the_rates_of_two_queues_are_apart_by_their_logarithm() {
    let config = Config::default();
    for (rate, expected) in
        [(62.5, 0.0), (62.5 / 1.5, 0.405_465), (150.0, -0.875_469), (500.0, -1.0), (1.0, 1.0)]
    {
        let apart = config.apart(config.target_s(62.5), config.target_s(rate));
        assert!((apart - expected).abs() < 1e-4, "{rate}: {apart}");
    }
}

#[test]
fn a_queue_longer_than_wanted_shrinks_the_window_and_a_shorter_one_widens_it() {
    for (rtt_ms, grows) in [(BASE_MS + 1, true), (BASE_MS + 40, false)] {
        let mut zenith = zenith(690.0);
        for millis in 0..100 {
            hear(&mut zenith, 700 + 10 * millis, rtt_ms);
        }
        assert_eq!(zenith.window() > 690.0, grows, "{rtt_ms} ms: {}", zenith.window());
    }
}

/// Segments of a flow of 40 a second would arrive 25 ms apart, and every second one would wait for the receiver's timer.
#[test]
fn segments_further_apart_than_a_receiver_waits_leave_in_pairs() {
    let gap = Duration::from_millis(20);
    for (window, paired) in [(22.0, true), (28.0, false)] {
        let spacing = zenith(window).spacing();
        assert_eq!(matches!(spacing, Spacing::Pairs { gap: found, .. } if found == gap), paired, "{window}");
        let rate = spacing.rate().expect("it is spaced").bps() as f64;
        let expected = PACE * window / 0.55 * f64::from(fixture::MSS) * 8.0;
        assert!((rate / expected - 1.0).abs() < 1e-3, "{rate}, not {expected}");
    }
}

/// Half of the ACKs wait for a second on their way back.
#[test]
fn a_window_doubles_at_the_pace_of_the_path_and_in_pairs() {
    for (window, paired) in [(10.0, true), (20.0, false)] {
        let mut zenith = established(window, 0);
        hear(&mut zenith, 600, BASE_MS);
        zenith.stage = Stage::Doubling;
        zenith.rtt_s = 1.05;
        let spacing = zenith.spacing();
        assert_eq!(matches!(spacing, Spacing::Pairs { .. }), paired, "{window}");
        let rate = spacing.rate().expect("it is spaced").bps() as f64;
        let expected = 2.0 * window / 0.55 * f64::from(fixture::MSS) * 8.0;
        assert!((rate / expected - 1.0).abs() < 1e-3, "{rate}, not {expected}");
    }
}

/// A sender that waited for the last of these ACKs would learn of a lost last segment by a timeout.
#[test]
fn the_acks_of_the_first_flight_let_as_much_leave_at_once() {
    let mut zenith = established(10.0, 0);
    for _ in 0..18 {
        let sent = Sent { seq: 1, len: fixture::MSS, retransmission: false };
        zenith.on_sent(&sent, &at(20));
    }
    for millis in 0..8 {
        hear(&mut zenith, BASE_MS + millis, BASE_MS);
        assert_eq!(zenith.window(), 10.0);
    }
    let rate = zenith.spacing().rate().expect("it is spaced").bps() as f64;
    assert!(rate > 1e9, "{rate}");
}

/// Others' second flights overflow the queue: what is lost ends the measurement.
#[test]
fn an_overflow_of_the_second_flight_ends_the_measurement() {
    let mut zenith = established(10.0, 600);
    zenith.stage = Stage::Groups(Groups::new(1250.0, 10, at(600).now));
    zenith.window = 275.0;
    let rtt = Some(Duration::from_millis(BASE_MS));
    zenith.on_ack(&Ack { rtt, lost: 60, ..fixture::ack(1) }, &at(1152));
    assert_eq!((zenith.snapshot().phase, zenith.window()), ("doubling", 10.0));
}

#[test]
fn after_a_lost_syn_the_window_doubles_from_one_segment_and_after_an_idle_time_it_is_as_before() {
    let mut zenith = Zenith::new(Config::default(), &fixture::start(1.0));
    zenith.on_event(ConnectionEvent::Established, &at(1600));
    assert_eq!((zenith.snapshot().phase, zenith.window()), ("doubling", 1.0));
    zenith.on_sent(&Sent { seq: 1, len: fixture::MSS, retransmission: false }, &at(1600));
    hear(&mut zenith, 1600 + BASE_MS, BASE_MS);
    assert_eq!((zenith.snapshot().phase, zenith.window()), ("doubling", 2.0));
    zenith.on_event(ConnectionEvent::Idle { restart: 1.0 }, &at(9000));
    assert_eq!(zenith.window(), 2.0);
}

/// A window of 2.7 segments lets two leave.
#[test]
fn a_small_window_grows_if_its_whole_segments_are_used() {
    let mut zenith = zenith(2.7);
    let rtt = Some(Duration::from_millis(BASE_MS + 1));
    for number in 1..5 {
        let path = Path { in_flight: 0, ..at(600 + 300 * number) };
        zenith.on_ack(&Ack { rtt, ..fixture::ack(2) }, &path);
    }
    assert!(zenith.window() > 2.7, "{}", zenith.window());
}

/// Of ACKs that come four hundred at a time only the first finds the window full.
#[test]
fn a_window_that_was_full_in_the_round_trip_before_is_used() {
    let mut zenith = zenith(690.0);
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

/// Two segments in a drain, none of them lost: the chance of that is 98 % where the path loses one in a hundred.
#[test]
fn a_slow_flow_does_not_forget_what_a_path_may_lose() {
    for (delivered, least, most) in [(2.0, 0.0064, 0.008), (700.0, 0.0, 0.0002)] {
        let mut zenith = zenith(690.0);
        let drained = Round { delivered, ..zenith.round };
        (0..100).for_each(|_| zenith.learn_noise(&drained));
        assert!((least..most).contains(&zenith.noise()), "{delivered}: {}", zenith.noise());
    }
}

/// A window of two segments leaves at once, and its ACKs come a round trip after those before.
#[test]
fn a_flow_of_one_flight_a_round_trip_is_not_silent_in_between() {
    let mut zenith = zenith(2.0);
    let rtt = Some(Duration::from_millis(BASE_MS));
    for number in 1..8 {
        let path = Path { in_flight: 0, ..at(600 + BASE_MS * number) };
        zenith.on_ack(&Ack { rtt, ..fixture::ack(2) }, &path);
    }
    assert_eq!(zenith.silences, 0);
    assert!(zenith.window() > 2.0, "{}", zenith.window());
}

/// A receive window that has not opened lets a thousand segments arrive in one round trip and a hundred in the next.
#[test]
fn the_end_of_speed_fits_the_window_to_the_larger_of_two_rates() {
    let mut zenith = zenith(690.0);
    (zenith.speed, zenith.delivery_rate_before, zenith.delivery_rate) = (4.0, 1250.0, 175.0);
    zenith.round.since = at(1000).now;
    hear(&mut zenith, 1152, BASE_MS + 2);
    assert_eq!((zenith.speed, zenith.window()), (1.0, 690.0));
}

/// All ACKs wait for 300 ms on their way back, which the window fills, too.
#[test]
fn a_window_is_fitted_to_the_path_without_its_queue_on_the_way_out_alone() {
    let mut zenith = zenith(1200.0);
    for number in 0..100 {
        let (now, back_ms) = (700 + 10 * number, if number < 50 { 0 } else { 300 });
        let peer_clock = Some((now - back_ms) as u32);
        let rtt = Some(Duration::from_millis(BASE_MS + back_ms));
        zenith.on_ack(&Ack { rtt, peer_clock, ..fixture::ack(1) }, &at(now));
    }
    zenith.rtt_s = 0.85;
    zenith.fit(at(1700).now, 1250.0);
    assert!((zenith.window() - 1250.0 * (0.849 + 0.006)).abs() < 5.0, "{}", zenith.window());
    zenith.rtt_s = 0.7;
    zenith.fit(at(1700).now, 1250.0);
    assert!((zenith.window() - 1250.0 * (0.699 + 0.006)).abs() < 5.0, "{}", zenith.window());
    // Far behind a queue that grows: less than half of base stays full, and never less than nothing.
    for (rtt_s, path_s) in [(0.1, 0.099), (0.0005, 0.0)] {
        (zenith.window, zenith.rtt_s) = (1200.0, rtt_s);
        zenith.fit(at(1700).now, 1250.0);
        let expected = 1250.0 * (path_s + zenith.config.target_s(1200.0 / 0.85));
        assert!((zenith.window() - expected).abs() < 0.3, "{} of {expected}", zenith.window());
    }
}

#[test]
fn an_ack_that_waited_at_the_receiver_shows_no_queue() {
    let mut zenith = zenith(690.0);
    for (number, queue_ms) in (0..).zip([5, 5, 45, 5]) {
        hear(&mut zenith, 700 + 10 * number, BASE_MS + queue_ms);
    }
    assert_eq!(zenith.longest_s(), 0.005);
}

#[test]
fn shares_meet_without_oscillation_on_a_short_path() {
    let [mut more, mut less] = [9.0, 3.0].map(|window| {
        let mut zenith = established(10.0, 0);
        hear(&mut zenith, 600, 4);
        zenith.settle();
        zenith.window = window;
        // The queue here never changes, which a drain would take for a longer path.
        zenith.config.drains = false;
        zenith
    });
    for round in 1..1500 {
        for flow in [&mut more, &mut less] {
            let rtt = Some(Duration::from_millis(14));
            let segments = flow.window() as u32;
            flow.on_ack(&Ack { rtt, ..fixture::ack(segments) }, &at(600 + 14 * round));
        }
        let (more, less) = (more.window, less.window);
        assert!(more > 0.98 * less, "round {round}: {more} and {less}");
    }
}

/// Seven ACKs of a segment within a step, and one of seven at its end.
#[test]
fn acks_between_two_steps_count_in_the_next() {
    let (mut each, mut once) = (zenith(690.0), zenith(690.0));
    let step_ms = at(0).srtt.as_nanos().div_ceil(STEPS * 1_000_000);
    for ack in 1..7 {
        hear(&mut each, 600 + ack * step_ms / 7, BASE_MS + 1);
    }
    assert_eq!(each.window(), 690.0);
    hear(&mut each, 600 + step_ms, BASE_MS + 1);
    let rtt = Some(Duration::from_millis(BASE_MS + 1));
    once.on_ack(&Ack { rtt, ..fixture::ack(7) }, &at(600 + step_ms));
    assert!(each.window() > 690.0);
    assert_eq!((each.window(), each.mean_s), (once.window(), once.mean_s));
}

#[test]
fn losses_without_a_queue_cost_nothing() {
    let mut zenith = zenith(690.0);
    let before = zenith.window();
    let rtt = Some(Duration::from_millis(BASE_MS));
    for millis in 0..300 {
        zenith.on_ack(&Ack { rtt, lost: u32::from(millis % 100 == 0), ..fixture::ack(1) }, &at(700 + millis));
    }
    assert!(zenith.window() >= before);
}

/// A path that loses 2 % by itself, beside a queue of 3 ms; one whose buffer is so short that no segment sees a queue; and one whose buffer holds
/// 12 ms, where six are wanted.
#[test]
fn what_a_path_loses_by_itself_costs_nothing_and_half_of_the_rest_is_taken_from_the_window() {
    for (longest_ms, lost, taken) in [
        (3, 20.0, 0.0),
        (3, 40.0, 10.0),
        (0, 125.0, 0.0),
        (0, 165.0, 20.0),
        (12, 125.0, 0.0),
        (12, 165.0, 20.0),
    ] {
        let mut zenith = zenith(690.0);
        (zenith.drained, zenith.allowance) = ((1e4, 200.0), 0.0);
        let longest = Duration::from_millis(longest_ms);
        zenith.longest.update(at(600).now.as_nanos(), longest);
        let round = Round { delivered: 1000.0 - lost, lost, longest, ..zenith.round };
        (zenith.speed, zenith.calm_rounds) = (8.0, 4);
        zenith.charge(&round, 0.55);
        assert!((690.0 - taken - zenith.window).abs() < 1e-6, "{lost} at {longest_ms} ms: {}", zenith.window);
        let slow = (zenith.speed, zenith.calm_rounds) == (1.0, 0);
        assert_eq!(slow, longest_ms == 3 && taken > 0.0, "{lost} at {longest_ms} ms: speed {}", zenith.speed);
    }
}

/// Nine round trips without a loss, in each of which eight are expected.
#[test]
fn of_losses_that_did_not_happen_a_few_are_saved_up() {
    let mut zenith = zenith(690.0);
    let mut round = Round { delivered: 1000.0, longest: Duration::from_millis(3), ..zenith.round };
    (0..9).for_each(|_| zenith.charge(&round, 0.55));
    round.lost = 100.0;
    zenith.charge(&round, 0.55);
    let allowed = SAVED * libm::sqrt(690.0 * 0.008) + 0.008 * 1100.0;
    assert!((690.0 - 0.5 * (100.0 - allowed) - zenith.window).abs() < 1e-6, "{}", zenith.window);
}

/// A mark in the round trip after a drain, whose segments are not judged then.
#[test]
fn the_law_goes_on_after_a_mark_in_a_drain() {
    let mut zenith = zenith(690.0);
    for tenth in 0..=108 {
        hear(&mut zenith, 700 + 100 * tenth, BASE_MS + 5);
    }
    assert_eq!(zenith.drain.tide, Tide::Flood);
    let mark = Loss { cause: Cause::Mark, ..fixture::loss(690) };
    zenith.on_loss(&mark, &at(11_550));
    let before = zenith.window;
    for tenth in 0..20 {
        hear(&mut zenith, 11_600 + 100 * tenth, BASE_MS + 5);
    }
    assert!(zenith.window != before, "the window stays at {before}");
}

/// What is lost in an outage of five seconds, and the rate over it, tell nothing of the path.
#[test]
fn an_outage_does_not_shrink_the_window() {
    let mut zenith = zenith(690.0);
    for millis in 0..2000 {
        hear(&mut zenith, 700 + millis, BASE_MS + 5);
    }
    let before = zenith.window;
    let rtt = Some(Duration::from_millis(BASE_MS));
    zenith.on_ack(&Ack { rtt, lost: 600, ..fixture::ack(1) }, &at(7700));
    for tenth in 0..10 {
        hear(&mut zenith, 7800 + 100 * tenth, BASE_MS);
    }
    assert!(zenith.window > 0.9 * before, "{} of {before}", zenith.window);
}

/// Three segments of a first flight of ten arrive, and seven are lost before any queue is seen.
#[test]
fn an_overflow_of_the_first_flight_ends_the_measurement_but_not_the_doubling() {
    let mut zenith = established(10.0, 600);
    for millis in [1150, 1151] {
        hear(&mut zenith, millis, BASE_MS);
    }
    assert_eq!(zenith.snapshot().phase, "first-flight");
    let rtt = Some(Duration::from_millis(BASE_MS));
    zenith.on_ack(&Ack { rtt, lost: 7, ..fixture::ack(1) }, &at(1152));
    assert_eq!((zenith.snapshot().phase, zenith.window()), ("doubling", 10.0));
    // The second flight leaves after that.
    for millis in 1710..1720 {
        hear(&mut zenith, millis, BASE_MS);
    }
    assert_eq!((zenith.snapshot().phase, zenith.window()), ("doubling", 20.0));
}

#[test]
fn a_timeout_leaves_two_segments_and_the_first_ack_brings_the_window_back() {
    let mut zenith = zenith(690.0);
    let timeout = Timeout { consecutive: 1, outstanding: 690, answered: false };
    assert_eq!(zenith.on_rto(&timeout, &at(3000)), BackOff::Keep);
    assert_eq!(zenith.window(), SMALLEST);
    zenith.on_rto(&Timeout { consecutive: 2, ..timeout }, &at(4000));
    hear(&mut zenith, 5000, BASE_MS);
    assert_eq!(zenith.window(), 690.0);
}

/// A hole keeps the timer running while SACKs arrive.
#[test]
fn a_timeout_while_acks_arrive_does_not_shrink_the_window() {
    let mut zenith = zenith(690.0);
    hear(&mut zenith, 2900, BASE_MS);
    let before = zenith.window();
    zenith.on_rto(&Timeout { consecutive: 1, outstanding: 690, answered: false }, &at(3000));
    hear(&mut zenith, 3400, BASE_MS);
    assert_eq!(zenith.window(), before);
}

/// In an outage the timer expires, a drain becomes due, and ACKs that were under way arrive before the first of new data.
#[test]
fn a_timeout_does_not_set_the_window_of_a_drain() {
    let mut zenith = zenith(690.0);
    (0..99).for_each(|tenth| hear(&mut zenith, 700 + 100 * tenth, BASE_MS + 5));
    assert_eq!(zenith.drain.tide, Tide::Usual);
    zenith.on_rto(&Timeout { consecutive: 1, outstanding: 690, answered: false }, &at(10_550));
    let duplicate = Ack { acked: 0, rtt: Some(Duration::from_millis(BASE_MS + 5)), ..fixture::ack(1) };
    (0..4).for_each(|tenth| zenith.on_ack(&duplicate, &at(10_600 + 100 * tenth)));
    assert_eq!(zenith.drain.tide, Tide::Usual);
    hear(&mut zenith, 11_000, BASE_MS + 5);
    assert!(matches!(zenith.drain.tide, Tide::Ebb { .. }));
}

/// A queue of 3 ms, where six are wanted, of which one segment in twenty is lost.
#[test]
fn losses_in_a_queue_that_stays_short_are_the_rest_of_the_queue() {
    let after = |overflow: bool| {
        let mut zenith = zenith(690.0);
        zenith.config.overflow = overflow;
        let rtt = Some(Duration::from_millis(BASE_MS + 3));
        for hundredth in 0..800 {
            let lost = u32::from(hundredth % 20 == 0);
            zenith.on_ack(&Ack { rtt, lost, ..fixture::ack(1) }, &at(700 + 10 * hundredth));
        }
        zenith.window
    };
    assert!(after(false) > 690.0, "{}", after(false));
    assert!(after(true) < 685.0, "{}", after(true));
}

/// Others keep 200 ms of queue, to which the window adds its own; after a minute they have gone.
#[test]
fn a_queue_that_a_drain_leaves_is_contested_until_it_is_gone() {
    let mut zenith = zenith(690.0);
    let mut contested = false;
    for tenth in 0..600 {
        let own_ms = (0.3 * zenith.window()) as u64;
        hear(&mut zenith, 700 + 100 * tenth, BASE_MS + 200 + own_ms);
        contested |= zenith.snapshot().phase == "contest";
    }
    assert!(contested);
    assert!(zenith.window > 690.0, "{}", zenith.window);
    (600..900).for_each(|tenth| hear(&mut zenith, 700 + 100 * tenth, BASE_MS + 5 * u64::from(tenth > 600)));
    assert!(zenith.contest.is_none(), "{:?}", zenith.contest);
}

/// One flow has nearly all of 10 Mbit/s and drains while many that have just begun do not; it aims at 6 ms alone.
#[test]
fn a_queue_of_many_of_our_kind_is_not_contested() {
    let contested = |left_ms: u64| {
        let mut zenith = zenith(690.0);
        zenith.met_others = true;
        hear(&mut zenith, 700, BASE_MS + left_ms);
        hear(&mut zenith, 1200, BASE_MS + left_ms);
        zenith.drain.lowest = Duration::from_millis(BASE_MS + left_ms);
        zenith.drain.standing_s = 0.001 * (BASE_MS + left_ms + 10) as f64;
        zenith.drain.base_s = 0.001 * BASE_MS as f64;
        zenith.judge_drain(at(1200).now);
        zenith.contest.is_some()
    };
    assert_eq!([contested(20), contested(30)], [false, true]);
}

/// A flow of 690 segments has come down to two before its drain finds 450 ms, more than any flow of our kind aims at; the same with a
/// drain that changes nothing, after which the path counts as longer.
#[test]
fn a_drain_gives_back_what_was_yielded_to_a_queue_of_others_or_to_a_longer_path() {
    for (standing_ms, contested, window) in [(1100, true, 690.0), (1000, false, 690.0 / 0.55)] {
        let mut zenith = zenith(690.0);
        (7..27).for_each(|tenth| hear(&mut zenith, 100 * tenth, 1000));
        (zenith.window, zenith.crowded_rounds, zenith.crowded_window) = (2.0, 8, 690.0);
        zenith.met_others = true;
        zenith.drain.lowest = Duration::from_millis(1000);
        (zenith.drain.standing_s, zenith.drain.base_s) = (0.001 * f64::from(standing_ms), 0.55);
        zenith.judge_drain(at(2600).now);
        assert_eq!(zenith.contest.is_some(), contested, "{standing_ms} ms");
        assert!((zenith.window - window).abs() < 1e-6, "{standing_ms} ms: {}", zenith.window);
    }
}

/// Ends a drain that began with a round trip of `standing_ms` and whose lowest was `lowest_ms`. True if a contest begins.
fn contests(zenith: &mut Zenith, standing_ms: u64, lowest_ms: u64) -> bool {
    for millis in [1000, 1500] {
        hear(zenith, millis, lowest_ms);
    }
    zenith.drain.lowest = Duration::from_millis(lowest_ms);
    (zenith.drain.standing_s, zenith.drain.base_s) = (0.001 * standing_ms as f64, 0.55);
    zenith.judge_drain(at(1500).now);
    zenith.contest.is_some()
}

/// Beside Reno, whose queue grows by a segment a round trip, each drain leaves less than four targets and most of the queue.
#[test]
fn a_flow_that_yields_drain_after_drain_contests() {
    for (emptied_window, drains, contested) in [(690.0, 2, false), (690.0, 3, true), (150.0, 3, false)] {
        let mut zenith = zenith(100.0);
        (zenith.drain.emptied_window, zenith.drain.filled) = (emptied_window, drains - 1);
        assert_eq!(contests(&mut zenith, 575, 570), contested, "{drains} after {emptied_window}");
    }
    for (standing_ms, lowest_ms, empties) in [(575, 552, true), (552, 552, true), (575, 565, false)] {
        let mut zenith = zenith(100.0);
        (zenith.drain.emptied_window, zenith.drain.filled) = (690.0, 2);
        assert!(!contests(&mut zenith, standing_ms, lowest_ms), "the third drain finds {lowest_ms} ms");
        assert_eq!(zenith.drain.filled, 0, "{lowest_ms} ms end the row");
        assert_eq!(zenith.drain.emptied_window, if empties { 345.0 } else { 690.0 }, "{lowest_ms} ms");
    }
}

/// Ten segments of what were 690 aim at 37 ms and are a small part of the 170 ms that their drain does not shorten. Two segments would aim at 75 ms.
#[test]
fn the_drain_of_a_flow_that_has_yielded_shows_no_longer_path() {
    for (emptied_window, left_ms, contested) in [(690.0, 170, true), (15.0, 170, false), (690.0, 140, false)]
    {
        let mut zenith = zenith(10.0);
        (zenith.drain.emptied_window, zenith.met_others) = (emptied_window, true);
        let found = contests(&mut zenith, BASE_MS + left_ms, BASE_MS + left_ms);
        assert_eq!(found, contested, "{left_ms} ms after {emptied_window}");
        assert_eq!(zenith.delay.base_s() > 0.55, !contested, "{left_ms} ms after {emptied_window}");
    }
}

/// Flows of our kind that have begun since the queue was last empty drain within one and a half times ten seconds: before that, their queue is
/// none of others, and what the flow had before it yielded to it is remembered. Who has met others knows them at once.
#[test]
fn those_that_have_just_begun_are_not_contested_before_they_drain() {
    for (age_ms, met, contested) in [(14_900, false, false), (15_100, false, true), (100, true, true)] {
        let mut zenith = zenith(100.0);
        zenith.empty_at = Instant::ZERO;
        zenith.settle();
        assert_eq!(zenith.empty_at, at(600).now, "the end of the start");
        [1200, 1800].into_iter().for_each(|millis| hear(&mut zenith, millis, BASE_MS));
        assert_eq!(zenith.empty_at, at(1800).now, "a round trip that ends without a queue");
        [2400, 2900].into_iter().for_each(|millis| hear(&mut zenith, millis, BASE_MS + 100));
        zenith.empty_at = at(30_000).now - Duration::from_millis(age_ms);
        (zenith.met_others, zenith.window, zenith.crowded_window) = (met, 100.0, 690.0);
        zenith.drain.lowest = Duration::from_millis(BASE_MS + 100);
        (zenith.drain.standing_s, zenith.drain.base_s) = (0.001 * (BASE_MS + 200) as f64, 0.55);
        assert!(!zenith.judge_drain(at(30_000).now));
        assert_eq!(
            (zenith.contest.is_some(), zenith.met_others),
            (contested, contested),
            "after {age_ms} ms"
        );
        assert_eq!(zenith.window == 690.0, contested, "after {age_ms} ms");
        if !contested {
            zenith.window = 100.0;
            hear(&mut zenith, 3500, BASE_MS + 100);
            assert_eq!(
                (zenith.crowded_rounds, zenith.crowded_window),
                (1, 690.0),
                "the queue is still there"
            );
            zenith.drain.lowest = Duration::from_millis(BASE_MS);
            assert!(zenith.judge_drain(at(40_000).now));
            assert_eq!(zenith.empty_at, at(40_000).now, "a drain that leaves no queue");
        }
    }
}

/// Flows of our kind that take each other for others lose a tenth and more. A contest that costs more than a twentieth ends with the next drain, whatever
/// that leaves, and everything known of others with it.
#[test]
fn a_contest_that_costs_a_twentieth_of_the_segments_ends() {
    for (lost, ends) in [(5.0, false), (6.0, true)] {
        let mut zenith = zenith(100.0);
        (zenith.drain.filled, zenith.crowded) = (2, (100.0, 6.0));
        assert!(contests(&mut zenith, 700, 690), "losses before a contest are those of its cause");
        (zenith.delivery_rate, zenith.crowded) = (100.0, (100.0, lost));
        assert_eq!(contests(&mut zenith, 700, 690), !ends, "{lost} of 100");
        assert_eq!((zenith.met_others, zenith.drain.filled), if ends { (false, 0) } else { (true, 4) });
        assert_eq!(zenith.drain.emptied_window == zenith.window, ends, "{lost} of 100");
    }
}

/// The more losses make up Q, the less counts what was believed of the path; what drains have shown always does. A hundred segments in drains, of which
/// two were lost, beside a hundred that are believed, of which 0.8 would be: 1.4 % of a hundred segments, or 2 %.
#[test]
fn where_losses_stand_for_the_queue_only_drains_tell_what_the_path_loses() {
    let charged = |overflow_s: f64, shown: (f64, f64)| {
        let mut zenith = zenith(100.0);
        (zenith.mean_s, zenith.overflow_s, zenith.allowance) = (0.02, overflow_s, 0.0);
        zenith.drained = (BELIEF + shown.0, BELIEF * zenith.config.noise + shown.1);
        let longest = Duration::from_millis(10);
        let round = Round {
            delivered: 97.0,
            lost: 3.0,
            longest,
            ..Round::new(Instant::ZERO, Before::Ordinary, None)
        };
        zenith.charge(&round, 0.55);
        2.0 * (100.0 - zenith.window)
    };
    for (overflow_s, shown, beyond) in [
        (0.0, (0.0, 0.0), 2.2),
        (0.01, (0.0, 0.0), 2.2),
        (0.02, (0.0, 0.0), 3.0),
        (0.0, (100.0, 2.0), 1.6),
        (0.02, (100.0, 2.0), 1.0),
        (0.02, (100.0, -0.5), 3.0),
    ] {
        let found = charged(overflow_s, shown);
        assert!((found - beyond).abs() < 1e-9, "O {overflow_s} s, {shown:?} in drains: {found}");
    }
}

/// Half a loss in a round trip of 550 ms: of 0.5 / 0.55 losses a second each stands for 20 ms of queue, and their share for as much of the round trip.
#[test]
fn where_losses_stand_for_the_queue_their_number_tells_a_slow_flow_what_it_tells_a_fast_one() {
    for segments in [100.0, 200.0] {
        let mut zenith = zenith(segments);
        (zenith.mean_s, zenith.overflow_s, zenith.drained) = (0.02, 0.02, (1e4, 0.0));
        let (lost, longest) = (0.5, Duration::from_millis(8));
        let unmarked = Round::new(Instant::ZERO, Before::Ordinary, None);
        zenith.charge(&Round { delivered: segments - lost, lost, longest, ..unmarked }, 0.55);
        let stands_for_s = 0.02 * lost / 0.55 + lost / segments * 0.55;
        let found_s = zenith.overflow_s - 0.02;
        assert!((found_s - stands_for_s * 0.55 / 10.0).abs() < 1e-9, "{segments}: {found_s}");
    }
}

/// Who has just lost its window to a long queue remembers it for some time.
#[test]
fn two_round_trips_without_a_queue_end_the_yielding() {
    let mut zenith = zenith(10.0);
    zenith.mean_s = 0.1;
    (0..8).for_each(|number| hear(&mut zenith, 700 + 600 * number, BASE_MS));
    assert!(zenith.speed > 1.0 && zenith.window > 10.0, "{} {}", zenith.speed, zenith.window);
}

/// What left before a fit or in a drain shows as well that there is no queue.
#[test]
fn a_round_trip_of_a_smaller_window_without_a_queue_counts() {
    for before in [Before::Ordinary, Before::Cut, Before::Drained] {
        let mut zenith = zenith(10.0);
        (0..3).for_each(|number| {
            zenith.round.before = before;
            hear(&mut zenith, 700 + 600 * number, BASE_MS);
        });
        assert_eq!((zenith.calm_rounds, zenith.speed), (2, 2.0), "{before:?}");
    }
}

/// The first round trip that is measured after a silence does not yet show what the path carries.
#[test]
fn after_a_silence_the_path_fills_before_round_trips_count() {
    let mut zenith = zenith(10.0);
    let silences = |zenith: &Zenith| (zenith.silences, zenith.calm_rounds);
    hear(&mut zenith, 3000, BASE_MS);
    assert_eq!(silences(&zenith), (1, 0));
    let found = [3600, 4200, 4800].map(|millis| {
        hear(&mut zenith, millis, BASE_MS);
        silences(&zenith)
    });
    assert_eq!(found, [(1, 0), (0, 0), (0, 1)]);
}

/// In a contest the path becomes longer and loses 2 % where it had lost a thousandth.
#[test]
fn a_contest_with_nobody_ends() {
    let mut zenith = zenith(690.0);
    zenith.drained = (2000.0, 2.0);
    (0..10).for_each(|tenth| hear(&mut zenith, 700 + 100 * tenth, BASE_MS));
    zenith.compete(at(1700).now, zenith.window);
    let rtt = Some(Duration::from_millis(BASE_MS + 200));
    for hundredth in 0..6000 {
        let lost = u32::from(hundredth % 50 == 0);
        zenith.on_ack(&Ack { rtt, lost, ..fixture::ack(1) }, &at(1700 + 10 * hundredth));
    }
    assert!(zenith.contest.is_none() && zenith.delay.base_s() == 0.75, "{}", zenith.delay.base_s());
}

/// Before 200 segments without a loss: two of 276 are chance, as are ten of 308, and 61 of 198 are not.
#[test]
fn few_losses_after_few_segments_without_any_are_no_overflow() {
    let mut zenith = zenith(690.0);
    zenith.drained = (259.0, 0.12);
    let overflows = |sent, lost| zenith.overflows(sent, lost);
    assert_eq!([overflows(276.0, 2.0), overflows(308.0, 10.0), overflows(198.0, 61.0)], [false, false, true]);
}

#[test]
fn ten_seconds_after_the_lowest_round_trip_the_queue_is_drained() {
    let mut zenith = zenith(690.0);
    for tenth in 0..=101 {
        hear(&mut zenith, 700 + 100 * tenth, BASE_MS + 5);
    }
    assert_eq!(zenith.snapshot().phase, "drain");
    assert!(zenith.window() < 0.96 * zenith.window, "{} of {}", zenith.window(), zenith.window);
}

/// A queue on the way back, which the peer's clock shows not to be on the way out, is part of what a drain keeps full.
#[test]
fn a_drain_does_not_drain_the_way_back() {
    let mut zenith = zenith(690.0);
    for tenth in 0..=20 {
        let (now, held) = (700 + 100 * tenth, if tenth < 10 { 0 } else { 400 });
        let (rtt, peer_clock) =
            (Some(Duration::from_millis(BASE_MS + held)), Some((now - 275 - held) as u32));
        zenith.on_ack(&Ack { rtt, peer_clock, ..fixture::ack(1) }, &at(now));
    }
    zenith.delivery_rate = 1e6;
    zenith.drains(&at(12_000));
    let kept = zenith.window() / zenith.window;
    assert!((0.9..0.96).contains(&kept), "{kept}");
}

#[test]
fn a_drain_keeps_no_more_on_the_path_than_arrives() {
    let mut zenith = zenith(690.0);
    hear(&mut zenith, 700, BASE_MS + 5);
    zenith.delivery_rate = 0.5 * zenith.rate();
    zenith.drains(&at(11_000));
    let expected = DRAIN_DEPTH * zenith.delay.base_s() * zenith.delivery_rate;
    assert!((zenith.window() / expected - 1.0).abs() < 1e-9, "{} of {expected}", zenith.window());
}

#[test]
fn a_round_trip_that_does_not_fall_in_a_drain_belongs_to_a_longer_path() {
    let mut zenith = zenith(690.0);
    (0..90).for_each(|tenth| hear(&mut zenith, 700 + 100 * tenth, BASE_MS + 100));
    assert!((zenith.delay.base_s() - 0.65).abs() < 1e-9, "{}", zenith.delay.base_s());
    assert!(zenith.window() > 690.0);
}
