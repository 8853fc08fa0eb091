//! From the first SYN to the last FIN, as packet traces.

mod common;
#[path = "common/script.rs"]
mod script;

use bentpipe_base::{Flags, Segment, SynOptions};
use bentpipe_cc::{Algorithm, REGISTRY};
use bentpipe_tcp::{Config, EcnMode, Events, InitialWindow, KeepAlive, Recovery, State};
use common::Pair;
use script::{Script, ms, plain};

const SYN_ACK: Flags = Flags::SYN.union(Flags::ACK);
const FIN_ACK: Flags = Flags::FIN.union(Flags::ACK);
const RST_ACK: Flags = Flags::RST.union(Flags::ACK);

fn offer() -> SynOptions {
    SynOptions { mss: Some(1000), window_scale: Some(7), sack_permitted: true, ..SynOptions::default() }
}

#[test]
fn opening_actively() {
    let mut end = Script::connecting(plain());
    assert_eq!(end.trace(), ["SYN"]);
    end.wait(100);
    end.flags(SYN_ACK, 0, 1);
    assert_eq!(end.trace(), ["ack 1"]);
    assert_eq!((end.end.state(), end.events), (State::Established, Events::ESTABLISHED));
    assert_eq!(end.end.srtt(), Some(ms(100)));
}

#[test]
fn opening_passively() {
    let mut end = Script::listening(plain());
    end.syn(offer());
    assert_eq!((end.trace(), end.end.state()), (vec!["SYN-ACK".into()], State::SynReceived));
    end.wait(100);
    end.ack(1);
    assert_eq!((end.trace(), end.end.state()), (vec![], State::Established));
    assert_eq!(end.end.srtt(), Some(ms(100)));
}

#[test]
fn a_lost_syn_is_repeated_with_doubled_timeouts() {
    let mut end = Script::connecting(plain().with(|config| config.lifetime.syn_retries = 3));
    let start = end.now;
    end.wait(60_000);
    assert_eq!(end.timed(start), ["0 SYN", "1000 SYN", "3000 SYN", "7000 SYN"]);
    assert_eq!((end.end.state(), end.events), (State::Closed, Events::TIMED_OUT));
    assert_eq!(end.end.stats().timeouts, 3, "each repetition follows an expiry");
}

/// RFC 5681 section 3.1 and RFC 6298 section 5.7: window and timeout after a lost SYN.
#[test]
fn after_a_lost_syn_the_window_is_one_and_the_timeout_three_seconds() {
    let mut end = Script::connecting(plain());
    end.wait(1100);
    end.flags(SYN_ACK, 0, 1);
    end.trace();
    let start = end.now;
    end.write(5000);
    end.wait(5000);
    assert_eq!(end.timed(start), ["0 1+1000", "3300 1+1000"]);
}

/// The same holds for every algorithm, and its window then grows from one segment.
#[test]
fn after_a_lost_syn_every_algorithm_begins_with_one_segment() {
    for entry in REGISTRY {
        let cc = Algorithm::from_name(entry.name).unwrap();
        let initial_window = InitialWindow::Segments(10);
        let mut end = Script::connecting(plain().with(|config| {
            config.sender.cc = cc;
            config.sender.initial_window = initial_window;
        }));
        end.wait(1100);
        end.flags(SYN_ACK, 0, 1);
        end.trace();
        end.write(50_000);
        end.wait(100);
        assert_eq!(end.end.next_to_send(), 1001, "{}", entry.name);
        end.ack(1001);
        end.wait(1000);
        assert!(end.end.next_to_send() > 1001, "{} goes on", entry.name);
    }
}

/// RFC 3522: the answer takes longer than the first timeout, and echoes the timestamp of the first or of the second SYN.
#[test]
fn a_syn_whose_answer_was_only_late_was_not_lost() {
    for (echoes_first, leaves, rtt_ms, timeout_ms) in [(true, 5, 1100, 3300), (false, 1, 100, 3000)] {
        let mut end = Script::connecting(Config { timestamps: true, ..plain() });
        let first = end.clock();
        end.wait(1100);
        let echo = if echoes_first { first } else { first + 1000 };
        let syn_options = Some(SynOptions { mss: Some(1000), ..SynOptions::default() });
        let window = end.window;
        end.give(Segment {
            flags: SYN_ACK,
            ack: 1,
            window,
            timestamps: Some((7, echo)),
            syn_options,
            ..Segment::default()
        });
        end.trace();
        end.write(5000);
        assert_eq!((end.trace().len(), end.end.srtt()), (leaves, Some(ms(rtt_ms))), "first: {echoes_first}");
        let timeout = end.end.next_timeout().since(end.now);
        assert_eq!(timeout, ms(timeout_ms), "RFC 6298 section 5.7; first: {echoes_first}");
    }
}

#[test]
fn a_lost_syn_ack_is_repeated_by_timeout_and_on_a_repeated_syn() {
    let mut end = Script::listening(plain());
    end.syn(offer());
    let start = end.now;
    end.wait(1500);
    end.syn(offer());
    assert_eq!(end.timed(start), ["0 SYN-ACK", "1000 SYN-ACK", "1500 SYN-ACK"]);
    end.ack(1);
    assert_eq!(end.end.state(), State::Established);
}

#[test]
fn the_ack_of_a_handshake_may_be_lost_if_data_follows() {
    let mut end = Script::listening(plain());
    end.syn(offer());
    end.trace();
    end.data(1, 1000, 1);
    assert_eq!((end.trace(), end.end.state()), (vec!["ack 1001".into()], State::Established));
}

#[test]
fn a_repeated_syn_ack_is_acknowledged_again() {
    let mut end = Script::established(plain());
    end.flags(SYN_ACK, 0, 1);
    assert_eq!((end.trace(), end.end.state()), (vec!["ack 1".into()], State::Established));
}

#[test]
fn opening_simultaneously() {
    let mut end = Script::connecting(plain().with(|config| {
        config.receiver.dsack = true;
        config.ecn = EcnMode::Classic;
    }));
    end.trace();
    end.wait(100);
    let syn = Flags::SYN | Flags::ECE | Flags::CWR;
    let theirs = Segment { flags: syn, window: 10_000, syn_options: Some(offer()), ..Segment::default() };
    end.give(theirs);
    assert_eq!((end.trace(), end.end.state()), (vec!["SYN-ACK".into()], State::SynReceived));
    end.wait(50);
    end.give(Segment { flags: SYN_ACK | Flags::ECE, ack: 1, ..theirs });
    assert_eq!(
        (end.trace(), end.end.state()),
        (vec!["ack 1".into()], State::Established),
        "a SYN is no data"
    );
    assert_eq!(end.end.stats().ecn_reductions, 0, "its ECE agrees on ECN and echoes nothing");
}

#[test]
fn a_refused_connection() {
    let mut end = Script::connecting(plain());
    end.flags(RST_ACK, 0, 0);
    end.flags(Flags::RST, 0, 0);
    assert_eq!(end.end.state(), State::SynSent, "these acknowledge nothing of ours");
    end.flags(RST_ACK, 0, 1);
    assert_eq!((end.end.state(), end.events), (State::Closed, Events::RESET));
}

#[test]
fn a_half_open_peer_is_reset_and_the_syn_goes_on() {
    let mut end = Script::connecting(plain());
    end.trace();
    end.flags(Flags::ACK, 300, 777);
    assert_eq!((end.trace(), end.end.state()), (vec!["RST 777".into()], State::SynSent));
    end.wait(1000);
    assert_eq!(end.trace(), ["SYN"]);
}

#[test]
fn nobody_listens() {
    let mut end = Script::connecting(plain());
    end.trace();
    end.close();
    assert_eq!((end.end.state(), end.events), (State::Closed, Events::CLOSED));
    end.flags(Flags::ACK, 5, 900);
    end.flags(Flags::SYN, 0, 0);
    end.flags(Flags::RST, 0, 0);
    assert_eq!(end.trace(), ["RST 900", "RST 0"]);
}

#[test]
fn closing_actively() {
    let mut end = Script::established(plain());
    end.close();
    assert_eq!((end.trace(), end.end.state()), (vec!["FIN 1".into()], State::FinWait1));
    end.ack(2);
    assert_eq!(end.end.state(), State::FinWait2);
    end.fin(2);
    assert_eq!((end.trace(), end.end.state()), (vec!["ack 2".into()], State::TimeWait));
    assert!(end.events.contains(Events::PEER_CLOSED) && !end.events.contains(Events::CLOSED));
    end.wait(59_000);
    end.flags(FIN_ACK, 1, 2);
    assert_eq!((end.trace(), end.end.state()), (vec!["ack 2".into()], State::TimeWait), "the FIN again");
    end.wait(59_999);
    assert_eq!(end.end.state(), State::TimeWait, "which began it anew");
    end.wait(1);
    assert_eq!(end.end.state(), State::Closed);
    assert!(end.events.contains(Events::CLOSED));
}

#[test]
fn closing_passively() {
    let mut end = Script::established(plain());
    end.fin(1);
    assert_eq!((end.trace(), end.end.state()), (vec!["ack 2".into()], State::CloseWait));
    end.write(500);
    assert_eq!(end.trace(), ["1+500"], "the other half is still open");
    end.close();
    assert_eq!((end.trace(), end.end.state()), (vec!["FIN 501".into()], State::LastAck));
    end.ack(502);
    assert_eq!(end.end.state(), State::Closed);
    assert!(end.events.contains(Events::CLOSED | Events::PEER_CLOSED));
}

#[test]
fn closing_simultaneously() {
    let mut end = Script::established(plain());
    end.close();
    end.fin(1);
    assert_eq!((end.trace(), end.end.state()), (vec!["FIN 1".into(), "ack 2".into()], State::Closing));
    end.ack(2);
    assert_eq!(end.end.state(), State::TimeWait);
}

#[test]
fn a_fin_that_acknowledges_ours() {
    let mut end = Script::established(plain());
    end.close();
    end.fin(2);
    assert_eq!(end.end.state(), State::TimeWait);
}

#[test]
fn a_lost_fin_is_repeated() {
    let mut end = Script::established(plain().with(|config| config.sender.recovery = Recovery::Sack));
    let start = end.now;
    end.close();
    end.wait(1000);
    assert_eq!(end.timed(start), ["0 FIN 1", "300 FIN 1", "900 FIN 1"]);
}

#[test]
fn a_fin_before_its_data_waits_for_it() {
    let mut end = Script::established(plain());
    end.ack_with(1, |segment| {
        segment.seq = 1001;
        segment.flags |= Flags::FIN;
    });
    assert_eq!((end.trace(), end.end.state()), (vec!["ack 1 1001-1002".into()], State::Established));
    end.data(1, 1000, 1);
    assert_eq!((end.trace(), end.end.state()), (vec!["ack 1002".into()], State::CloseWait));
    assert_eq!(end.end.readable(), 1000);
}

#[test]
fn data_after_half_a_close_is_still_read() {
    let mut end = Script::established(plain());
    end.close();
    end.ack(2);
    end.trace();
    end.data(1, 1000, 2);
    assert_eq!((end.trace(), end.end.readable()), (vec!["ack 1001".into()], 1000));
    assert_eq!(end.end.write(end.now, 10), 0, "ours is over");
}

#[test]
fn what_is_queued_leaves_before_the_fin() {
    let mut end = Script::connecting(plain());
    end.write(2500);
    end.close();
    end.trace();
    end.flags(SYN_ACK, 0, 1);
    let mut trace = end.trace();
    assert_eq!(trace.pop().as_deref(), Some("2001+500 FIN"));
    assert_eq!(end.end.state(), State::FinWait1);
}

/// RFC 5961 section 3.2: RST handling.
#[test]
fn only_the_very_next_number_resets() {
    let mut end = Script::established(plain());
    end.flags(Flags::RST, 2, 0);
    assert_eq!(end.trace(), ["ack 1"], "challenged");
    end.flags(Flags::RST, 0, 0);
    end.flags(Flags::RST, 500_000_000, 0);
    assert_eq!((end.trace(), end.end.state()), (vec![], State::Established), "not worth an answer");
    end.flags(Flags::RST, 1, 0);
    assert_eq!((end.end.state(), end.events.contains(Events::RESET)), (State::Closed, true));
}

#[test]
fn a_reset_in_time_wait_is_no_failure() {
    let mut end = Script::established(plain());
    end.close();
    end.fin(2);
    end.flags(Flags::RST, 2, 0);
    assert_eq!((end.end.state(), end.events.contains(Events::RESET)), (State::Closed, false));
}

/// RFC 5961 section 4.2: SYN handling.
#[test]
fn a_syn_in_the_window_is_challenged() {
    let mut end = Script::established(plain());
    end.flags(Flags::SYN, 1, 0);
    assert_eq!((end.trace(), end.end.state()), (vec!["ack 1".into()], State::Established));
}

/// RFC 5961 section 5.2: acknowledgement check.
#[test]
fn data_with_an_impossible_acknowledgement_is_not_taken() {
    let mut end = Script::established(plain());
    end.data(1, 1000, 9999);
    assert_eq!((end.trace(), end.end.readable()), (vec!["ack 1".into()], 0));
}

#[test]
fn keep_alives_are_answered_and_asked() {
    let keep_alive = Some(KeepAlive { idle: ms(10_000), interval: ms(2000), probes: 2 });
    let mut end = Script::established(plain().with(|config| config.lifetime.keep_alive = keep_alive));
    end.ack_with(1, |segment| segment.seq = 0);
    assert_eq!(end.trace(), ["ack 1"]);
    let start = end.now;
    end.wait(10_100);
    end.ack(1);
    end.wait(14_900);
    assert_eq!(end.timed(start), ["10000 ack 1", "20100 ack 1", "22100 ack 1", "24100 RST 1"]);
    assert!(end.events.contains(Events::TIMED_OUT));
}

#[test]
fn keep_alives_count_only_what_stays_unanswered() {
    let keep_alive = Some(KeepAlive { idle: ms(1000), interval: ms(5000), probes: 2 });
    let mut pair = Pair::symmetric(plain().with(|config| config.lifetime.keep_alive = keep_alive));
    pair.run(ms(500));
    pair.close(0);
    pair.run(ms(1_000_000));
    assert_eq!(
        [pair.ends[0].state(), pair.ends[1].state()],
        [State::FinWait2, State::CloseWait],
        "half closed and alive"
    );
}

#[test]
fn the_user_timeout_gives_up_before_the_retries() {
    let mut end = Script::established(plain().with(|config| config.lifetime.user_timeout = Some(ms(3000))));
    let start = end.now;
    end.write(1000);
    end.wait(60_000);
    let trace = end.timed(start);
    assert_eq!(trace.last().map(String::as_str), Some("3000 RST 1001"), "{trace:?}");
    assert!(end.events.contains(Events::TIMED_OUT));
}

#[test]
fn retries_are_counted() {
    let config = plain().with(|config| {
        config.lifetime.retries = 2;
        config.sender.recovery = Recovery::NewReno;
    });
    let mut end = Script::established(config);
    let start = end.now;
    end.write(1000);
    end.wait(60_000);
    assert_eq!(end.timed(start), ["0 1+1000", "300 1+1000", "900 1+1000", "2100 RST 1001"]);
}

/// A peer that does not even answer with a closed window is gone.
#[test]
fn a_silent_peer_behind_a_closed_window_is_given_up() {
    let mut end = Script::established(plain().with(|config| config.lifetime.retries = 3));
    end.window = 0;
    end.ack(1);
    let start = end.now;
    end.write(1000);
    end.wait(100_000);
    assert_eq!(end.timed(start), ["300 ack 1", "900 ack 1", "2100 ack 1", "4500 RST 1"]);
    assert!(end.events.contains(Events::TIMED_OUT));
}

#[test]
fn an_abort_tells_the_peer() {
    let mut end = Script::established(plain());
    end.write(5000);
    end.trace();
    end.end.abort(end.now);
    end.drain();
    assert_eq!((end.trace(), end.end.state()), (vec!["RST 5001".into()], State::Closed));
    end.end.abort(end.now);
    end.drain();
    assert_eq!(end.trace(), [""; 0], "once");
}

#[test]
fn everything_written_is_acknowledged_even_where_a_fin_goes_with_it() {
    let mut end = Script::established(plain().with(|config| config.sender.send_buffer = 1500));
    assert_eq!(end.end.write(end.now, 2000), 1500);
    end.close();
    end.ack(1502);
    assert!(end.events.contains(Events::ALL_ACKED));
    assert_eq!((end.end.state(), end.end.acknowledged_bytes()), (State::FinWait2, 1500));
}
