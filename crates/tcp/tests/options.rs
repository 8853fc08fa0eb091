//! Options, receiver timers, windows and pacing, each as a short trace.

mod common;
#[path = "common/script.rs"]
mod script;

use bentpipe_base::{EcnField, Flags, Segment, SynOptions};
use bentpipe_tcp::{
    AckCounting, Config, DelayedAck, EcnMode, Events, InitialWindow, Pacing, ReceiveWindow, Recovery,
    WindowValidation,
};
use common::Pair;
use script::{Script, describe, ms, plain};

fn last(end: &Script) -> &Segment {
    &end.sent.last().unwrap().1
}

fn fixed(bytes: u64) -> Config {
    plain().with(|config| config.receiver.receive_window = ReceiveWindow::Fixed(bytes))
}

#[test]
fn the_window_of_a_syn_is_never_scaled() {
    let end = Script::connecting(fixed(1_000_000));
    let (window, options) = (last(&end).window, last(&end).syn_options.unwrap());
    assert_eq!((window, options.window_scale), (65_535, Some(4)));
    let mut end = Script::established(fixed(1_000_000));
    end.data(1, 1000, 1);
    assert_eq!(last(&end).window, 999_008, "rounded up to the unit of 16");
}

#[test]
fn without_scaling_windows_end_at_64_kilobytes() {
    let mut end = Script::established(Config { window_scaling: false, ..fixed(1_000_000) });
    end.data(1, 1000, 1);
    assert_eq!(last(&end).window, 65_535);
}

/// Rounding by the window scale must not accumulate: a reader that sleeps holds at most its buffer.
#[test]
fn a_closed_window_closes_whatever_the_scale() {
    let auto = ReceiveWindow::Auto { initial: 20_000, limit: 64 << 20 };
    let mut end = Script::established(plain().with(|config| config.receiver.receive_window = auto));
    let mut seq = 1;
    while seq < 100_000 && (seq == 1 || last(&end).window >= 100) {
        end.data(seq, 100, 1);
        seq += 100;
    }
    assert!((20_001..21_200).contains(&seq), "{seq}");
}

#[test]
fn what_lies_beyond_the_window_is_cut_off() {
    let mut end = Script::established(fixed(5000));
    end.data(1, 9000, 1);
    assert_eq!((end.end.readable(), end.trace()), (5000, vec!["ack 5001".into()]));
    end.data(5001, 1000, 1);
    assert_eq!(end.end.readable(), 5000, "nothing goes into a closed window (RFC 9293, 3.10.7.4)");
}

/// RFC 7323 section 4.3 and section 5: echo and PAWS.
#[test]
fn timestamps_are_echoed_and_old_ones_refused() {
    let mut end = Script::established(Config { timestamps: true, ..plain() });
    let first = end.clock();
    let data = |end: &mut Script, seq, value| {
        end.ack_with(1, |segment| {
            segment.seq = seq;
            segment.len = 1000;
            segment.timestamps = Some((value, first));
        });
        last(end).timestamps.unwrap().1
    };
    assert_eq!(data(&mut end, 1, first + 10), first + 10);
    assert_eq!(data(&mut end, 2001, first + 20), first + 10, "out of order: the hole decides");
    assert_eq!(data(&mut end, 1001, first + 15), first + 15);
    assert_eq!(end.end.readable(), 3000);
    data(&mut end, 3001, first + 14);
    assert_eq!(
        (end.end.readable(), describe(last(&end))),
        (3000, "ack 3001".into()),
        "older than the newest"
    );
}

#[test]
fn duplicates_are_reported_once() {
    let mut end = Script::established(plain().with(|config| config.receiver.dsack = true));
    end.data(1, 1000, 1);
    end.data(1, 1000, 1);
    end.data(2001, 1000, 1);
    end.data(2001, 1000, 1);
    assert_eq!(
        end.trace(),
        ["ack 1001", "ack 1001 1-1001", "ack 1001 2001-3001", "ack 1001 2001-3001 2001-3001"]
    );
}

/// RFC 2883 section 4: a segment that repeats data and adds new data is acknowledged at once.
#[test]
fn a_duplicate_with_new_data_is_reported_at_once() {
    let delayed_ack = DelayedAck::On { every: 2, timer: ms(40), quick: 0, after_duplicate: 0 };
    let mut end = Script::established(plain().with(|config| {
        config.receiver.dsack = true;
        config.receiver.delayed_ack = delayed_ack;
    }));
    end.data(1, 1000, 1);
    end.data(1001, 1000, 1);
    end.trace();
    end.data(1501, 1000, 1);
    assert_eq!(end.trace(), ["ack 2501 1501-2001"]);
    end.data(2501, 1000, 1);
    assert!(end.trace().is_empty(), "later data waits again");
}

fn delayed(every: u32, quick: u32) -> Script {
    hurried(every, quick, 0)
}

fn hurried(every: u32, quick: u32, after_duplicate: u32) -> Script {
    let delayed_ack = DelayedAck::On { every, timer: ms(40), quick, after_duplicate };
    Script::established(plain().with(|config| config.receiver.delayed_ack = delayed_ack))
}

#[test]
fn every_second_segment_is_acknowledged_or_after_the_timer() {
    let mut end = delayed(2, 0);
    let start = end.now;
    end.data(1, 1000, 1);
    end.data(1001, 1000, 1);
    end.data(2001, 1000, 1);
    end.wait(100);
    assert_eq!(end.timed(start), ["0 ack 2001", "40 ack 3001"]);
}

/// A duplicate is acknowledged at once, but is no sign of a hole: later in-order data is delayed as before.
#[test]
fn a_duplicate_does_not_end_the_delay_of_acks() {
    let mut end = delayed(2, 0);
    end.data(1, 1000, 1);
    end.wait(100);
    end.data(1, 1000, 1);
    end.trace();
    let start = end.now;
    end.data(1001, 1000, 1);
    end.wait(100);
    assert_eq!(end.timed(start), ["40 ack 2001"]);
}

/// Linux treats a duplicate as a sign of missed ACKs: this many segments, itself included, are acknowledged at once.
#[test]
fn a_duplicate_hurries_the_next_acks_where_that_is_set() {
    let mut end = hurried(2, 0, 3);
    end.data(1, 1000, 1);
    end.wait(100);
    end.data(1, 1000, 1);
    assert_eq!(end.trace(), ["ack 1001", "ack 1001"]);
    let start = end.now;
    for seq in [1001, 2001, 3001] {
        end.data(seq, 1000, 1);
    }
    end.wait(100);
    assert_eq!(end.timed(start), ["0 ack 2001", "0 ack 3001", "40 ack 4001"]);
}

/// A duplicate beyond a hole is no sign of missed ACKs: each segment then causes an ACK anyway.
#[test]
fn a_duplicate_beyond_a_hole_hurries_nothing() {
    let mut end = hurried(2, 0, 10);
    end.data(1001, 1000, 1);
    end.data(1001, 1000, 1);
    end.data(1, 1000, 1);
    end.trace();
    let start = end.now;
    end.data(2001, 1000, 1);
    end.wait(100);
    assert_eq!(end.timed(start), ["40 ack 3001"]);
}

/// RFC 7323 section 5.5: the last timestamp is compared for 24 days without a segment, then no longer.
#[test]
fn a_timestamp_is_compared_for_twenty_four_days() {
    let taken = |longer: u64| {
        let mut end = Script::established(Config { timestamps: true, ..plain() });
        let first = end.clock();
        let heard = end.now;
        end.now = heard + ms(24 * 24 * 3_600_000 + longer);
        end.ack_with(1, |segment| {
            segment.len = 1000;
            segment.timestamps = Some((first - 1, first));
        });
        end.end.readable()
    };
    assert_eq!([taken(0), taken(1)], [0, 1000]);
}

/// Positions beyond 2^62 are invalid. One at 2^62 is outside the window and is answered like any other such segment.
#[test]
fn segments_beyond_any_stream_are_ignored() {
    let mut end = Script::established(plain());
    for (seq, answer) in [(1 << 62, vec!["ack 1".to_owned()]), ((1 << 62) + 1, vec![])] {
        end.wait(1000);
        end.trace();
        end.ack_with(1, |segment| (segment.seq, segment.len) = (seq, 1));
        assert_eq!(end.trace(), answer);
    }
}

#[test]
fn the_smallest_round_trip_is_kept() {
    let mut end = Script::established(plain());
    let mut next = 1;
    let mut smallest_after = |rtt| {
        end.write(1000);
        end.wait(rtt);
        next += 1000;
        end.ack(next);
        end.end.min_rtt()
    };
    assert_eq!([120, 50, 80].map(&mut smallest_after), [100, 50, 50].map(|millis| Some(ms(millis))));
    assert_eq!(Script::connecting(plain()).end.min_rtt(), None);
}

#[test]
fn what_is_written_counts_as_unacknowledged_until_it_is_acknowledged() {
    let mut end = Script::established(plain());
    end.window = 2000;
    end.ack(1);
    end.write(5000);
    assert_eq!(end.end.unacknowledged_bytes(), 5000, "sent or not");
    end.ack(1001);
    assert_eq!((end.end.acknowledged_bytes(), end.end.unacknowledged_bytes()), (1000, 4000));
}

#[test]
fn an_endless_writer_fills_the_buffer_whenever_there_is_room() {
    let config = plain().with(|config| {
        config.sender.send_buffer = 5000;
        config.sender.initial_window = InitialWindow::Segments(10);
    });
    let mut end = Script::established(config);
    end.end.write_endlessly(end.now);
    end.drain();
    assert_eq!(end.trace().len(), 5, "five segments fit the buffer");
    end.ack(2001);
    assert_eq!(end.trace(), ["5001+1000", "6001+1000"]);
    assert_eq!(end.end.send_room(), 0);
}

/// The buffer becomes four times the bytes read in the last round trip: 6000 bytes, not the 16,000 since the beginning.
#[test]
fn an_automatic_window_follows_what_is_read_in_a_round_trip() {
    let auto = ReceiveWindow::Auto { initial: 20_000, limit: 1 << 20 };
    let mut end = Script::established(plain().with(|config| config.receiver.receive_window = auto));
    (0..10).for_each(|i| end.data(1 + i * 1000, 1000, 1));
    assert_eq!(end.read(), 10_000);
    end.wait(200);
    (10..16).for_each(|i| end.data(1 + i * 1000, 1000, 1));
    assert_eq!(end.read(), 6000);
    end.data(16_001, 1000, 1);
    assert!((23_000..23_100).contains(&last(&end).window), "{}", last(&end).window);
}

#[test]
fn the_first_segments_are_acknowledged_at_once() {
    let mut end = delayed(2, 3);
    (0..5).for_each(|i| end.data(1 + i * 1000, 1000, 1));
    assert_eq!(end.trace(), ["ack 1001", "ack 2001", "ack 3001", "ack 5001"]);
}

#[test]
fn data_out_of_order_is_acknowledged_at_once_and_data_takes_the_ack_along() {
    let mut end = delayed(2, 0);
    end.data(1001, 1000, 1);
    end.data(1, 1000, 1);
    assert_eq!(end.trace(), ["ack 1 1001-2001", "ack 2001"]);
    let mut end = delayed(2, 0);
    end.data(1, 1000, 1);
    end.write(500);
    end.wait(100);
    assert_eq!(end.trace(), ["1+500"]);
}

/// Both ends limit the peer's segment size, which determines "every second segment".
#[test]
fn small_segments_of_a_small_peer_count_as_full() {
    let config = plain().with(|config| {
        config.receiver.delayed_ack =
            DelayedAck::On { every: 2, timer: ms(500), quick: 0, after_duplicate: 0 }
    });
    let mut end = Script::connecting(Config { mss: 1448, ..config });
    end.flags(Flags::SYN | Flags::ACK, 0, 1);
    end.seq = 1;
    end.trace();
    (0..4).for_each(|i| end.data(1 + i * 1000, 1000, 1));
    assert_eq!(end.trace(), ["ack 2001", "ack 4001"]);
}

/// RFC 9293 section 3.7.1 and RFC 6691: the MSS option counts fixed headers only. Options are subtracted only where they are
/// sent.
#[test]
fn segments_are_full_where_timestamps_are_not_agreed_on() {
    let largest = |ours: bool, theirs: bool, peer: u16| {
        let config = Config { timestamps: ours, timestamps_len: 12, mss: 1448, ..plain() };
        let mut end = Script::connecting(config);
        let offered = last(&end).syn_options.unwrap().mss;
        let window = end.window;
        end.give(Segment {
            flags: Flags::SYN | Flags::ACK,
            ack: 1,
            window,
            timestamps: theirs.then_some((1, 1)),
            syn_options: Some(SynOptions { mss: Some(peer), ..SynOptions::default() }),
            ..Segment::default()
        });
        end.seq = 1;
        end.trace();
        end.write(3000);
        (offered, end.sent[end.sent.len() - 2].1.len)
    };
    assert_eq!(largest(true, true, 1460), (Some(1460), 1448));
    assert_eq!(largest(true, false, 1460), (Some(1460), 1460));
    assert_eq!(largest(false, true, 1460), (Some(1460), 1460));
    assert_eq!(largest(true, true, 1000), (Some(1460), 988));
    assert_eq!(largest(true, false, 1000), (Some(1460), 1000));
    assert_eq!(largest(true, false, 9000), (Some(1460), 1460));
}

#[test]
fn nagle_holds_small_segments_while_data_is_outstanding() {
    let mut end = Script::established(plain().with(|config| config.sender.nagle = true));
    end.write(100);
    end.write(100);
    end.write(1000);
    assert_eq!(end.trace(), ["1+100", "101+1000"]);
    end.ack(1101);
    assert_eq!(end.trace(), ["1101+100"]);
}

/// RFC 9293 section 3.8.6.2.1: no small segments into a small window, except after the override timer.
#[test]
fn a_silly_window_is_not_filled_before_the_override_timer() {
    let mut end = Script::established(plain());
    end.window = 2500;
    end.ack(1);
    end.write(5000);
    assert_eq!(end.trace(), ["1+1000", "1001+1000"]);
    end.window = 400;
    end.ack(2001);
    let start = end.now;
    end.wait(1000);
    assert_eq!(end.timed(start)[0], "300 2001+400");
}

#[test]
fn a_window_worth_half_the_largest_is_filled() {
    let mut end = Script::connecting(plain());
    end.window = 800;
    end.flags(Flags::SYN | Flags::ACK, 0, 1);
    end.trace();
    end.seq = 1;
    end.write(5000);
    assert_eq!(end.trace(), ["1+800"]);
    end.window = 400;
    end.ack(801);
    assert_eq!(end.trace(), ["801+400"]);
}

#[test]
fn a_closed_window_is_probed_ever_more_rarely() {
    let mut end = Script::established(plain());
    end.window = 0;
    end.ack(1);
    end.write(3000);
    let start = end.now;
    for pause in [300, 600, 1200] {
        end.wait(pause);
        end.ack(1);
    }
    assert_eq!(end.timed(start), ["300 ack 1", "900 ack 1", "2100 ack 1"]);
    end.window = 5000;
    end.ack(1);
    assert_eq!(end.trace(), ["1+1000", "1001+1000", "2001+1000"]);
}

/// RFC 9293 section 3.10.7.4: an old segment does not change the window.
#[test]
fn a_late_ack_does_not_shrink_the_window() {
    let mut end = Script::established(plain());
    end.write(3000);
    end.data(1, 1000, 3001);
    end.trace();
    end.window = 10_000;
    end.data(1001, 1000, 3001);
    end.window = 0;
    end.ack_with(2001, |segment| {
        segment.seq = 5001;
        segment.sack.push(bentpipe_base::SackRange { start: 2001, end: 3001 });
    });
    end.trace();
    end.write(1000);
    assert_eq!(end.trace(), ["3001+1000"]);
}

fn marked(end: &mut Script, seq: u64) {
    end.ack_with(1, |segment| {
        segment.seq = seq;
        segment.len = 1000;
        segment.ecn = EcnField::Congested;
    });
}

/// RFC 3168 section 6.1: ECN echo and CWR.
#[test]
fn marks_are_echoed_until_the_sender_confirms() {
    let mut end = Script::established(Config { ecn: EcnMode::Classic, ..plain() });
    marked(&mut end, 1);
    assert!(last(&end).flags.contains(Flags::ECE));
    end.data(1001, 1000, 1);
    assert!(last(&end).flags.contains(Flags::ECE), "still");
    end.ack_with(1, |segment| {
        segment.seq = 2001;
        segment.len = 1000;
        segment.flags |= Flags::CWR;
    });
    assert!(!last(&end).flags.contains(Flags::ECE));
}

#[test]
fn one_reduction_per_window_and_one_confirmation() {
    let mut end = Script::established(plain().with(|config| {
        config.ecn = EcnMode::Classic;
        config.sender.initial_window = InitialWindow::Segments(10);
    }));
    end.write(50_000);
    assert!(end.sent.iter().all(|(_, segment)| segment.ecn == EcnField::Capable));
    end.trace();
    for ack in 1..=10 {
        end.ack_with(ack * 1000 + 1, |segment| segment.flags |= Flags::ECE);
    }
    assert_eq!(end.end.stats().ecn_reductions, 1);
    assert!((5.0..7.0).contains(&end.window()), "{}", end.window());
    let confirmations = end.sent.iter().filter(|(_, segment)| segment.flags.contains(Flags::CWR));
    assert_eq!(confirmations.count(), 1);
    let next = end.sent.last().unwrap().1.seq_end();
    end.ack_with(next, |segment| segment.flags |= Flags::ECE);
    assert_eq!(end.end.stats().ecn_reductions, 2, "the next window");
}

#[test]
fn a_loss_is_confirmed_too() {
    let mut end = Script::established(plain().with(|config| {
        config.ecn = EcnMode::Classic;
        config.sender.recovery = Recovery::Sack;
    }));
    end.write(50_000);
    for top in [2001, 3001, 4001, 10_001] {
        end.sack(1, &[(1001, top)]);
    }
    let confirmed: Vec<_> =
        end.sent.iter().filter(|(_, s)| s.flags.contains(Flags::CWR)).map(|(_, s)| describe(s)).collect();
    assert_eq!(confirmed, ["10001+1000"], "on new data only");
    let again = end.sent.iter().find(|(_, segment)| segment.seq == 1 && segment.ecn == EcnField::NotCapable);
    assert!(again.is_some(), "retransmissions are not ECN-capable");
}

#[test]
fn a_host_that_mirrors_the_flags_does_not_know_ecn() {
    let mut end = Script::connecting(Config { ecn: EcnMode::Classic, ..plain() });
    end.flags(Flags::SYN | Flags::ACK | Flags::ECE | Flags::CWR, 0, 1);
    end.write(1000);
    assert_eq!(last(&end).ecn, EcnField::NotCapable);
}

/// RFC 9768 section 3.2.2.1: only an empty ACK reflects the ECN field of the SYN-ACK; data carries the counter.
#[test]
fn with_accurate_ecn_the_first_ack_is_empty_although_data_waits() {
    let mut end = Script::connecting(Config { ecn: EcnMode::Accurate, ..plain() });
    end.write(500);
    end.sent.clear();
    end.flags(Flags::SYN | Flags::ACK | Flags::CWR, 0, 1);
    let sent: Vec<_> = end.sent.iter().map(|(_, segment)| (segment.len, segment.flags.ace())).collect();
    assert_eq!(sent, [(0, 0b010), (500, 0b101)]);
}

#[test]
fn the_smaller_segment_size_rules() {
    let mut end = Script::connecting(Config { mss: 1448, ..plain() });
    end.flags(Flags::SYN | Flags::ACK, 0, 1);
    end.trace();
    end.write(2500);
    assert_eq!(end.trace(), ["1+1000", "1001+1000", "2001+500"]);
}

#[test]
fn initial_windows() {
    for (window, segments) in [
        (InitialWindow::Segments(1), 1),
        (InitialWindow::Segments(3), 3),
        (InitialWindow::Rfc3390, 4),
        (InitialWindow::Rfc6928, 10),
    ] {
        let mut end = Script::established(plain().with(|config| config.sender.initial_window = window));
        end.write(50_000);
        assert_eq!(end.trace().len(), segments, "{window:?}");
    }
}

/// RFC 5681 section 4.1: restart window.
#[test]
fn an_idle_window_is_restarted() {
    for (validation, segments) in [(WindowValidation::Restart, 4), (WindowValidation::Off, 8)] {
        let config = plain().with(|config| {
            config.sender.window_validation = validation;
            config.sender.initial_window = InitialWindow::Segments(4);
        });
        let mut end = Script::established(config);
        end.write(10_000);
        end.wait(100);
        (1..=10).for_each(|i| end.ack(i * 1000 + 1));
        end.trace();
        end.wait(5000);
        end.write(50_000);
        assert_eq!(end.trace().len(), segments, "{validation:?}");
    }
}

/// RFC 7661: the window is kept for five minutes, then halved.
#[test]
fn an_unused_window_is_kept_for_five_minutes() {
    let config = plain().with(|config| {
        config.sender.window_validation = WindowValidation::Rfc7661;
        config.sender.initial_window = InitialWindow::Segments(4);
    });
    let mut end = Script::established(config);
    end.write(60_000);
    let mut at = 1;
    while at < 60_001 {
        end.wait(100);
        at = last(&end).seq_end();
        end.ack(at);
    }
    let window = end.window();
    assert!(window > 10.0, "{window}");
    let mut trickle = |end: &mut Script, seconds: u64| {
        for _ in 0..seconds / 10 {
            end.write(1000);
            end.wait(100);
            at += 1000;
            end.ack(at);
            end.wait(9900);
        }
    };
    trickle(&mut end, 290);
    assert_eq!(end.window(), window, "unused, it neither grows nor shrinks");
    trickle(&mut end, 40);
    assert_eq!(end.window(), (window / 2.0).max(4.0));
}

#[test]
fn the_receive_window_grows_with_the_reader() {
    let auto = ReceiveWindow::Auto { initial: 20_000, limit: 1 << 20 };
    let mut pair = Pair::symmetric(plain().with(|config| config.receiver.receive_window = auto));
    pair.write(0, 5_000_000);
    pair.run(ms(20_000));
    let widest = pair.log.iter().filter(|(_, end, _)| *end == 1).map(|(_, _, s)| s.window).max();
    assert!(widest.unwrap() >= 1_000_000, "{widest:?}");
    assert_eq!(pair.delivered(1), 5_000_000);
}

#[test]
fn pacing_spreads_a_window_over_the_round_trip() {
    let pacing = Pacing::Window { slow_start_gain: 2.0, avoidance_gain: 1.0 };
    let config = plain().with(|config| {
        config.sender.pacing = pacing;
        config.sender.initial_window = InitialWindow::Segments(10);
    });
    let mut end = Script::established(config);
    let start = end.now;
    end.write(10_000);
    end.wait(60);
    let times: Vec<_> = end.sent.iter().map(|(at, _)| at.since(start).as_millis_f64()).collect();
    assert_eq!(times.len(), 10);
    assert!((35.0..=45.0).contains(times.last().unwrap()), "nine gaps of 5 ms, less a burst: {times:?}");
}

/// In slow start an ACK of four segments adds four to the window, or one. Above ssthresh it adds 4/cwnd, or 1/cwnd.
#[test]
fn the_window_grows_by_segments_or_by_acks() {
    let grown = |ack_counting, ssthresh: Option<f64>| {
        let initial_window = InitialWindow::Segments(10);
        let mut end = Script::established(plain().with(|config| {
            config.sender.ack_counting = ack_counting;
            config.sender.initial_window = initial_window;
            config.sender.initial_ssthresh = ssthresh;
        }));
        end.write(50_000);
        end.ack(4001);
        end.window()
    };
    assert_eq!([grown(AckCounting::Segments, None), grown(AckCounting::Acks, None)], [14.0, 11.0]);
    assert_eq!([grown(AckCounting::Segments, Some(5.0)), grown(AckCounting::Acks, Some(5.0))], [10.4, 10.1]);
}

#[test]
fn a_burst_is_limited() {
    let config = plain().with(|config| {
        config.sender.max_burst = Some(3);
        config.sender.initial_window = InitialWindow::Segments(10);
    });
    let mut end = Script::established(config);
    end.write(50_000);
    assert_eq!(end.trace().len(), 3);
    end.ack(1001);
    assert_eq!(end.trace().len(), 3);
}

#[test]
fn a_writer_learns_of_room() {
    let mut end = Script::established(plain().with(|config| config.sender.send_buffer = 3000));
    assert_eq!(end.end.write(end.now, 5000), 3000);
    end.drain();
    end.ack(1001);
    assert!(end.events.contains(Events::WRITABLE));
    assert_eq!(end.end.write(end.now, 2000), 1000);
    assert_eq!(end.trace(), ["1+1000", "1001+1000", "2001+1000"]);
}
