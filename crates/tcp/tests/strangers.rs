//! Peers that fall silent, close their window, restart, or send hostile segments: RFC 9293, 5961, 7323 and 2883 as packet traces.

mod common;
#[path = "common/script.rs"]
mod script;

use bentpipe_base::{Flags, Segment, SynOptions};
use bentpipe_tcp::{Config, Connection, DelayedAck, Events, ReceiveWindow, Recovery, State};
use script::{Script, ms, plain};

const SYN_ACK: Flags = Flags::SYN.union(Flags::ACK);
const RST_ACK: Flags = Flags::RST.union(Flags::ACK);

fn offer() -> SynOptions {
    SynOptions { mss: Some(1000), window_scale: Some(7), sack_permitted: true, ..SynOptions::default() }
}

fn with_timestamps() -> Config {
    Config { timestamps: true, ..plain() }
}

/// Makes an end in FIN-WAIT-2, after the peer acknowledged its FIN.
fn half_closed() -> Script {
    let mut end = Script::established(plain());
    end.close();
    end.ack(2);
    end.trace();
    assert_eq!(end.end.state(), State::FinWait2);
    end
}

/// A peer that acknowledges the FIN and falls silent would hold the connection forever.
#[test]
fn a_silent_peer_in_fin_wait_2_is_given_up_after_a_minute() {
    let mut end = half_closed();
    let start = end.now;
    end.wait(59_999);
    assert_eq!(
        end.timed(start),
        ["45000 ack 1", "50000 ack 1", "55000 ack 1"],
        "it is asked whether it lives"
    );
    assert_eq!(end.end.state(), State::FinWait2);
    end.wait(1);
    assert_eq!((end.trace(), end.end.state()), (vec!["RST 2".into()], State::Closed));
    assert!(end.events.contains(Events::TIMED_OUT));
}

/// RFC 1122 section 4.2.2.13: an application may close its sending direction and read without time limit.
#[test]
fn a_peer_that_answers_keeps_its_half_open() {
    let mut end = half_closed();
    for _ in 0..100 {
        end.wait(46_000);
        assert_eq!(end.trace(), ["ack 1"]);
        end.ack(2);
    }
    end.data(1, 1000, 2);
    assert_eq!((end.trace(), end.read()), (vec!["ack 1001".into()], 1000));
}

#[test]
fn a_released_connection_leaves_fin_wait_2_after_a_minute_whatever_the_peer_says() {
    let mut end = half_closed();
    end.end.release(end.now);
    for _ in 0..11 {
        end.wait(5000);
        end.ack(2);
    }
    end.wait(4999);
    assert_eq!(end.end.state(), State::FinWait2);
    end.wait(1);
    assert_eq!((end.end.state(), end.events.contains(Events::CLOSED)), (State::Closed, true));
    assert_eq!(end.trace(), [""; 0]);
}

#[test]
fn a_release_closes_and_is_over_when_the_peer_has_closed_too() {
    let mut end = Script::established(plain());
    end.write(500);
    end.end.release(end.now);
    end.drain();
    assert_eq!((end.trace(), end.end.state()), (vec!["1+500".into(), "FIN 501".into()], State::FinWait1));
    end.ack(502);
    end.fin(502);
    assert_eq!((end.trace(), end.end.state()), (vec!["ack 2".into()], State::TimeWait));
    end.wait(60_000);
    assert_eq!(end.end.state(), State::Closed);
}

/// RFC 9293 section 3.6.1 (SHLD-3): the peer must learn that its data is lost.
#[test]
fn data_after_a_release_is_reset() {
    let mut end = Script::established(plain());
    end.data(1, 1000, 1);
    end.read();
    end.end.release(end.now);
    end.drain();
    end.ack(2);
    end.trace();
    end.data(1, 1000, 2);
    assert_eq!(
        (end.trace(), end.end.state()),
        (vec!["ack 1001".into()], State::FinWait2),
        "a copy is no loss"
    );
    end.data(1001, 1000, 2);
    assert_eq!((end.trace(), end.end.state()), (vec!["RST 2".into()], State::Closed));
    let mut end = Script::established(plain());
    end.data(1, 1000, 1);
    end.trace();
    end.end.release(end.now);
    end.drain();
    assert_eq!((end.trace(), end.end.state()), (vec!["RST 1".into()], State::Closed), "unread data is lost");
}

/// Answers with a closed window every second, and acknowledges nothing.
fn answer_with_closed_window(end: &mut Script, ack: u64, seconds: u64) {
    end.window = 0;
    for _ in 0..seconds {
        end.wait(1000);
        if !end.trace().is_empty() {
            end.ack(ack);
        }
    }
}

/// RFC 1122 section 4.2.3.5: at least 100 s.
#[test]
fn a_released_connection_waits_two_minutes_for_a_window_that_stays_closed() {
    let mut end = Script::established(plain());
    end.window = 0;
    end.ack(1);
    end.write(1000);
    end.end.release(end.now);
    answer_with_closed_window(&mut end, 1, 119);
    assert_eq!(end.end.state(), State::FinWait1);
    end.wait(1000);
    assert_eq!(end.end.state(), State::Closed);
    assert_eq!(end.trace().pop().as_deref(), Some("RST 1"));
}

#[test]
fn a_released_connection_that_makes_progress_lives() {
    let mut end = Script::established(plain());
    end.window = 1000;
    end.ack(1);
    end.write(10_000);
    end.end.release(end.now);
    end.drain();
    for n in 1..=10 {
        end.wait(100_000);
        end.ack(1 + 1000 * n);
    }
    assert_eq!(end.end.state(), State::FinWait1, "{:?}", end.trace());
    end.window = 2000;
    end.ack(10_001);
    end.ack(10_002);
    assert_eq!(end.end.state(), State::FinWait2);
}

/// RFC 9293 section 3.8.6.1 (MUST-37): a lone FIN also uses a sequence number of the window.
#[test]
fn a_fin_waits_for_a_closed_window_as_long_as_the_peer_answers() {
    let mut end = Script::established(plain().with(|config| config.lifetime.retries = 5));
    end.window = 0;
    end.ack(1);
    end.close();
    assert_eq!(end.trace(), [""; 0], "no FIN into a closed window");
    answer_with_closed_window(&mut end, 1, 3600);
    assert_eq!((end.end.state(), end.events.contains(Events::TIMED_OUT)), (State::FinWait1, false));
    end.window = 1;
    end.ack(1);
    assert_eq!(end.trace(), ["FIN 1"]);
}

#[test]
fn a_fin_follows_data_that_fills_the_window() {
    let mut end = Script::established(plain());
    end.window = 1000;
    end.ack(1);
    end.write(1000);
    end.close();
    assert_eq!(end.trace(), ["1+1000"]);
    end.ack(1001);
    assert_eq!(end.trace(), ["FIN 1001"]);
}

#[test]
fn a_window_that_closes_over_data_under_way_ends_nothing_while_the_peer_answers() {
    for recovery in [Recovery::NewReno, Recovery::Rack] {
        let mut end = Script::established(plain().with(|config| {
            config.lifetime.retries = 5;
            config.sender.recovery = recovery;
        }));
        end.write(3000);
        end.trace();
        end.window = 0;
        end.ack(1);
        answer_with_closed_window(&mut end, 1, 3600);
        assert_eq!(end.end.state(), State::Established, "{recovery:?}");
        end.window = 100_000;
        end.ack(3001);
        end.write(1000);
        assert!(end.trace().contains(&"3001+1000".into()), "{recovery:?}");
    }
    let mut end = Script::established(plain().with(|config| {
        config.lifetime.retries = 5;
        config.sender.recovery = Recovery::NewReno;
    }));
    end.write(3000);
    end.window = 0;
    end.ack(1);
    end.wait(600_000);
    assert!(end.events.contains(Events::TIMED_OUT), "a silent one is given up");
}

/// Attack of the class of CVE-2019-11479: each segment costs a packet and a record, however small it is.
#[test]
fn a_peer_cannot_ask_for_segments_of_one_byte() {
    for (least_mss, len) in [(48, 48), (200, 200)] {
        let mut end = Script::connecting(Config { least_mss, ..plain() });
        end.trace();
        let options = SynOptions { mss: Some(1), ..SynOptions::default() };
        let window = 60_000;
        end.give(Segment {
            flags: SYN_ACK,
            ack: 1,
            window,
            syn_options: Some(options),
            ..Segment::default()
        });
        end.write(1000);
        assert_eq!(end.trace()[1], format!("1+{len}"));
    }
}

/// RFC 7323 section 4.3: Last.ACK.sent counts the SYN-ACK.
#[test]
fn a_passive_opener_echoes_the_newest_timestamp_before_it_has_sent_data() {
    let mut end = Script::listening(with_timestamps());
    let syn = Segment {
        flags: Flags::SYN,
        window: 60_000,
        timestamps: Some((100, 0)),
        syn_options: Some(offer()),
        ..Segment::default()
    };
    end.give(syn);
    let echo = end.sent.last().unwrap().1.timestamps.unwrap().0;
    end.seq = 1;
    end.ack_with(1, |segment| segment.timestamps = Some((200, echo)));
    end.wait(10_000);
    end.ack_with(1, |segment| {
        segment.len = 1000;
        segment.timestamps = Some((10_200, echo));
    });
    assert_eq!(end.sent.last().unwrap().1.timestamps.unwrap().1, 10_200);
    assert_eq!(end.trace().last().unwrap(), "ack 1001");
}

/// RFC 7323 section 3.2: segments without timestamps are dropped.
#[test]
fn segments_without_timestamps_are_dropped_once_they_were_agreed_on() {
    let mut end = Script::established(with_timestamps());
    end.ack_with(1, |segment| segment.timestamps = Some((1200, 0)));
    end.data(1, 1000, 1);
    assert_eq!((end.trace(), end.end.readable()), (vec![], 0));
    end.flags(Flags::SYN, 1, 0);
    assert_eq!(end.trace(), ["ack 1"], "a SYN is challenged all the same (RFC 5961 section 4)");
    end.ack_with(1, |segment| {
        segment.seq = 1;
        segment.len = 1000;
        segment.timestamps = Some((1300, 0));
    });
    assert_eq!((end.trace(), end.end.readable()), (vec!["ack 1001".into()], 1000));
    end.end.abort(end.now);
    end.drain();
    let reset = end.sent.pop().unwrap().1;
    assert!(reset.flags.contains(Flags::RST));
    assert_eq!(reset.timestamps, Some((end.clock(), 1300)));
    let mut end = Script::established(with_timestamps());
    end.flags(Flags::RST, 1, 0);
    assert_eq!(end.end.state(), State::Closed, "a reset needs none");
}

/// RFC 7323 section 5.5: after 24 days the peer's clock may have wrapped around.
#[test]
fn an_old_timestamp_is_taken_after_24_days_of_silence() {
    const DAY: u64 = 24 * 3600 * 1000;
    for (days, taken) in [(23, 0), (25, 1000)] {
        let mut end = Script::established(with_timestamps());
        end.ack_with(1, |segment| segment.timestamps = Some((5000, 0)));
        end.wait(days * DAY);
        end.ack_with(1, |segment| {
            segment.len = 1000;
            segment.timestamps = Some((4000, 0));
        });
        assert_eq!(end.end.readable(), taken, "{days} days");
    }
}

/// RFC 2883 section 4: the first block is the duplicate, the second the range that contains it.
#[test]
fn parts_that_arrive_twice_are_reported() {
    let mut end = Script::established(plain().with(|config| config.receiver.dsack = true));
    end.data(1001, 2000, 1);
    assert_eq!(end.trace(), ["ack 1 1001-3001"]);
    end.data(1, 6000, 1);
    assert_eq!(end.trace(), ["ack 6001 1001-3001"]);
    end.data(5001, 2000, 1);
    assert_eq!(end.trace(), ["ack 7001 5001-6001"], "below the cumulative ACK");
    end.data(9001, 1000, 1);
    end.data(8501, 1000, 1);
    assert_eq!(end.trace(), ["ack 7001 9001-10001", "ack 7001 9001-9501 8501-10001"]);
    end.data(12_001, 1000, 1);
    end.data(9501, 3000, 1);
    let trace = end.trace();
    assert_eq!(trace[1], "ack 7001 9501-10001 8501-13001", "only the first of them");
    end.data(13_001, 1000, 1);
    assert_eq!(end.trace(), ["ack 7001 8501-14001"], "what only touches is no duplicate");
    let mut end = Script::established(plain());
    end.data(1001, 2000, 1);
    end.data(1, 6000, 1);
    assert_eq!(end.trace()[1], "ack 6001", "unless it is off");
}

/// Makes a connection whose SYN-ACK is not yet acknowledged.
fn half_open(config: Config) -> Script {
    let mut end = Script::listening(config);
    end.syn(offer());
    assert_eq!(end.trace(), ["SYN-ACK"]);
    end
}

/// RFC 9293 section 3.10.7.4 and RFC 5961 section 3.2 also apply in SYN-RECEIVED.
#[test]
fn challenge_acks_leave_in_syn_received() {
    let mut end = half_open(plain());
    end.flags(Flags::RST, 100, 0);
    assert_eq!((end.trace(), end.end.state()), (vec!["ack 1".into()], State::SynReceived), "a wrong reset");
    end.wait(500);
    end.flags(Flags::SYN, 70_000, 0);
    assert_eq!(end.trace(), ["ack 1"], "the SYN of a client that was restarted");
    end.wait(400);
    end.flags(Flags::SYN, 70_000, 0);
    assert_eq!(end.trace(), [""; 0], "not one for each");
    end.ack_with(1, |segment| (segment.seq, segment.len) = (900_000, 100));
    assert_eq!(end.trace(), ["ack 1"], "data outside the window");
    end.flags(Flags::RST, 1, 0);
    assert_eq!(end.end.state(), State::Closed);
}

#[test]
fn a_challenge_ack_in_syn_received_carries_window_and_timestamps() {
    let mut end = Script::listening(with_timestamps());
    end.give(Segment {
        flags: Flags::SYN,
        window: 60_000,
        timestamps: Some((77, 0)),
        syn_options: Some(offer()),
        ..Segment::default()
    });
    end.flags(Flags::RST, 100, 0);
    let challenge = end.sent.last().unwrap().1;
    assert_eq!((challenge.seq, challenge.ack, challenge.flags), (1, 1, Flags::ACK));
    assert_eq!(challenge.timestamps, Some((end.clock(), 77)));
    assert!(challenge.window > 60_000, "{}", challenge.window);
}

#[test]
fn syns_are_challenged_now_and_then_only() {
    let mut end = Script::established(plain());
    for _ in 0..100 {
        end.flags(Flags::SYN, 1, 0);
    }
    assert_eq!(end.trace(), ["ack 1"]);
    end.wait(500);
    end.flags(Flags::SYN, 1, 0);
    assert_eq!(end.trace(), ["ack 1"]);
}

/// RFC 9293 section 3.10.7.2: data and FIN wait until the connection is established.
#[test]
fn data_and_fin_of_a_syn_are_queued() {
    let mut end = Script::listening(plain());
    let syn = Segment {
        flags: Flags::SYN | Flags::FIN,
        len: 400,
        window: 60_000,
        syn_options: Some(offer()),
        ..Segment::default()
    };
    end.give(syn);
    assert_eq!((end.end.readable(), end.sent[0].1.ack), (0, 1));
    assert_eq!(end.trace(), ["SYN-ACK"]);
    end.seq = 1;
    end.ack(1);
    assert_eq!((end.trace(), end.end.state()), (vec!["ack 402".into()], State::CloseWait));
    assert_eq!((end.read(), end.events.contains(Events::PEER_CLOSED)), (400, true));
}

#[test]
fn data_of_a_syn_ack_is_taken() {
    let mut end = Script::connecting(plain());
    end.trace();
    let syn_ack = Segment {
        flags: SYN_ACK,
        ack: 1,
        len: 700,
        window: 60_000,
        syn_options: Some(offer()),
        ..Segment::default()
    };
    end.give(syn_ack);
    assert_eq!((end.trace(), end.end.state()), (vec!["ack 701".into()], State::Established));
    assert_eq!(end.read(), 700);
}

/// RFC 9293 (SHLD-26) and RFC 5927 section 5.2: ICMP reports.
#[test]
fn an_unreachable_peer_ends_an_attempt_and_no_connection() {
    let mut end = Script::connecting(plain());
    end.end.handle_unreachable(end.now);
    end.drain();
    assert_eq!((end.end.state(), end.events), (State::Closed, Events::RESET));
    let mut end = Script::established(plain());
    end.end.handle_unreachable(end.now);
    assert_eq!(end.end.state(), State::Established);
}

/// RFC 9293 (SHLD-25): the application is told of a report that may pass, and the attempt goes on.
#[test]
fn a_temporary_error_is_told_and_ends_nothing() {
    let mut end = Script::connecting(plain());
    end.end.handle_temporary_error();
    assert_eq!((end.end.state(), end.end.stats().path_errors), (State::SynSent, 1));
}

/// RFC 1122 section 4.2.3.2: an ACK for every second full segment of the peer's size.
#[test]
fn every_second_segment_of_a_peer_with_small_segments_is_acknowledged() {
    let delayed_ack = DelayedAck::On { every: 2, timer: ms(200), quick: 0, after_duplicate: 0 };
    let mut end = Script::established(plain().with(|config| config.receiver.delayed_ack = delayed_ack));
    let mut acks = 0;
    for n in 0..20 {
        end.data(1 + 900 * n, 900, 1);
        acks += end.trace().len();
    }
    assert_eq!(acks, 10);
    // The path MTU is smaller from now on.
    let mut from = 18_001;
    let mut lower = |end: &mut Script, len: u32| {
        end.data(from, len, 1);
        from += u64::from(len);
        end.trace().len()
    };
    assert_eq!((0..21).map(|_| lower(&mut end, 600)).sum::<usize>(), 10);
    assert_eq!((0..20).map(|_| lower(&mut end, 1000)).sum::<usize>(), 10, "and more again");
}

#[test]
fn small_writes_are_acknowledged_late() {
    let delayed_ack = DelayedAck::On { every: 2, timer: ms(200), quick: 0, after_duplicate: 0 };
    let mut end = Script::established(plain().with(|config| config.receiver.delayed_ack = delayed_ack));
    for n in 0..10 {
        end.ack_with(1, |segment| {
            (segment.seq, segment.len) = (1 + 100 * n, 100);
            segment.flags |= Flags::PSH;
        });
    }
    assert_eq!(end.trace(), [""; 0]);
    end.wait(200);
    assert_eq!(end.trace(), ["ack 1001"]);
}

/// RFC 1191 section 6.3: a report of a too large packet is no congestion signal.
#[test]
fn what_was_too_big_leaves_again_at_once_and_the_window_stays() {
    let mut end = Script::established(plain());
    end.write(4500);
    assert_eq!(end.trace(), ["1+1000", "1001+1000", "2001+1000", "3001+1000", "4001+500"]);
    let window = end.window();
    end.wait(10);
    end.end.handle_packet_too_big(end.now, 576);
    end.drain();
    assert_eq!(end.trace(), ["1+1000", "1001+1000", "2001+1000", "3001+1000"]);
    assert_eq!(end.window(), window);
    end.ack(4501);
    assert_eq!((end.end.acknowledged_bytes(), end.end.stats().timeouts), (4500, 0));
}

/// Each range costs memory and a search, however small it is.
#[test]
fn a_byte_in_two_does_not_make_a_range_each() {
    let mut end = Script::established(plain());
    end.data(1, 1, 1);
    end.read();
    let before = end.end.memory_bytes();
    for n in 0..50_000 {
        end.data(3 + 2 * n, 1, 1);
    }
    let grown = end.end.memory_bytes() - before;
    assert!(grown < 8192, "{grown} bytes");
    // All data arrives in the end.
    end.data(2, 100_000, 1);
    assert_eq!(end.read(), 100_000);
}

#[test]
fn a_restarted_peer_is_told_where_the_connection_stands() {
    let mut end = Script::established(plain());
    end.write(500);
    end.trace();
    end.flags(RST_ACK, 500, 1);
    assert_eq!((end.trace(), end.end.state()), (vec!["ack 1".into()], State::Established));
}

/// A FIN uses a sequence number, but is not data.
#[test]
fn a_fin_alone_is_no_data_segment() {
    let mut end = Script::established(plain());
    end.fin(1);
    end.close();
    assert_eq!(end.trace(), ["ack 2", "FIN 1"]);
    let stats = end.end.stats();
    assert_eq!((stats.received_segments, stats.sent_segments, stats.sent_bytes), (0, 0, 0));
    end.wait(400);
    assert_eq!(end.end.stats().sent_bytes, 0);
}

/// RFC 9293 section 3.10.5: no reset before a SYN was answered, or after both streams are complete.
#[test]
fn an_abort_resets_a_peer_that_may_still_send() {
    let abort = |mut end: Script| {
        end.trace();
        end.end.abort(end.now);
        end.drain();
        assert_eq!(end.end.state(), State::Closed);
        end.trace()
    };
    assert_eq!(abort(Script::connecting(plain())), [""; 0]);
    assert_eq!(abort(half_open(plain())), ["RST 1"]);
    assert_eq!(abort(half_closed()), ["RST 2"]);
    let mut end = half_closed();
    end.fin(2);
    assert_eq!(end.end.state(), State::TimeWait);
    assert_eq!(abort(end), [""; 0]);
}

/// Data outside the window is acknowledged at once, however long ACKs are delayed; in-order data is not.
#[test]
fn data_outside_the_window_is_answered_at_once() {
    let delayed_ack = DelayedAck::On { every: 2, timer: ms(200), quick: 0, after_duplicate: 0 };
    let receive_window = ReceiveWindow::Fixed(1000);
    let mut end = Script::established(plain().with(|config| {
        config.receiver.delayed_ack = delayed_ack;
        config.receiver.receive_window = receive_window;
    }));
    end.data(1, 500, 1);
    assert_eq!(end.trace(), [""; 0]);
    end.data(1001, 100, 1);
    assert_eq!(end.trace(), ["ack 501"]);
    end.data(1, 500, 1);
    assert_eq!(end.trace(), ["ack 501"], "a duplicate, too");
}

#[test]
fn memory_counts_all_parts_of_a_connection() {
    let structure = size_of::<Connection>();
    let mut end = Script::listening(plain());
    let handshaking = end.end.memory_bytes();
    assert!((structure + 100..structure + 2000).contains(&handshaking), "{structure} {handshaking}");
    end.syn(offer());
    end.ack(1);
    let idle = end.end.memory_bytes();
    assert!((structure..handshaking).contains(&idle), "the handshake is over: {idle}");
    end.flags(Flags::SYN, 1, 0);
    let challenged = end.end.memory_bytes();
    assert!((idle + 16..idle + 200).contains(&challenged), "{challenged}");
    end.write(10_000);
    let sent = end.end.memory_bytes();
    assert!((challenged + 10 * 32..challenged + 2000).contains(&sent), "{sent}");
    end.data(1001, 1000, 1);
    let held = end.end.memory_bytes();
    assert!((sent + 100..sent + 1000).contains(&held), "{held}");
}
