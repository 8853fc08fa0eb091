//! SNACK (CCSDS 714.0): the receiver lists the holes, and paces its ACKs by the round-trip time.

mod common;
#[path = "common/script.rs"]
mod script;

use bentpipe_base::{Duration, SackBlocks, SackRange, Snack};
use bentpipe_tcp::{Config, InitialWindow, Recovery};
use common::Pair;
use script::{Script, ms, plain};

/// Configuration with segments of 1000 bytes and SNACK.
fn snacking() -> Config {
    plain().with(|config| {
        config.sender.recovery = Recovery::Snack;
        config.sender.initial_window = InitialWindow::Segments(20);
    })
}

fn report(end: &mut Script, ack: u64, snack: Snack) {
    end.ack_with(ack, |segment| segment.sack = SackBlocks::Missing(snack));
}

/// Example of the standard: blocks 12, 13 and 16 are missing, all others up to 19 have arrived.
#[test]
fn a_sender_repairs_the_holes_and_nothing_else_once_in_five_quarters_of_a_round_trip() {
    let mut end = Script::established(snacking());
    end.write(20_000);
    assert_eq!(end.trace().len(), 20);
    end.wait(100);
    let holes = Snack::new(2, 2, &[0b1101_1100]);
    report(&mut end, 10_001, holes);
    assert_eq!(end.trace(), ["12001+1000", "13001+1000", "16001+1000"]);
    // The smoothed RTT is 100 ms.
    end.wait(124);
    report(&mut end, 10_001, holes);
    assert_eq!(end.trace(), [""; 0], "the repairs are trusted");
    end.wait(2);
    report(&mut end, 10_001, holes);
    assert_eq!(end.trace(), ["12001+1000", "13001+1000", "16001+1000"]);
}

#[test]
fn one_report_is_one_reduction() {
    let mut end = Script::established(snacking());
    end.write(20_000);
    end.wait(100);
    report(&mut end, 1, Snack::new(0, 1, &[0b1010_1000]));
    assert_eq!(end.window(), 10.0);
    report(&mut end, 1, Snack::new(0, 1, &[0b1010_1010]));
    assert_eq!(end.window(), 10.0);
}

/// Reports about bytes that were never sent are ignored.
#[test]
fn a_report_of_what_was_never_sent_means_nothing() {
    let mut end = Script::established(snacking());
    end.write(5000);
    end.trace();
    report(&mut end, 1, Snack::new(5, 60_000, &[0xff]));
    report(&mut end, 1, Snack::new(0, 60_000, &[]));
    assert_eq!((end.trace(), end.window()), (vec![], 20.0));
}

fn holes(end: &Script, from: usize) -> Vec<(u64, u64, Vec<SackRange>)> {
    let missing = |snack: &Snack, ack| {
        snack.runs(ack, 1000).filter(|(_, held)| !held).map(|(range, _)| range).collect()
    };
    let sent = end.sent[from..].iter();
    sent.map(|(at, segment)| {
        let missing = segment.sack.snack().map_or(vec![], |snack| missing(snack, segment.ack));
        (at.as_nanos() / 1_000_000, segment.ack, missing)
    })
    .collect()
}

/// The handshake took 100 ms: in-order data is acknowledged after 50 ms, a new hole at once, and open holes every 50 ms again.
#[test]
fn a_receiver_paces_its_acks_and_reports_new_holes_at_once() {
    let mut end = Script::established(snacking());
    end.sent.clear();
    let start = end.now.as_nanos() / 1_000_000;
    for n in 0..10 {
        end.data(1 + 1000 * n, 1000, 1);
    }
    end.wait(50);
    assert_eq!(holes(&end, 0), [(start + 50, 10_001, vec![])], "ten segments, one ACK");
    end.data(11_001, 1000, 1);
    end.data(12_001, 1000, 1);
    end.data(14_001, 1000, 1);
    let hole = |start| SackRange { start, end: start + 1000 };
    let both = vec![hole(10_001), hole(13_001)];
    let reports = [(start + 50, 10_001, vec![hole(10_001)]), (start + 50, 10_001, both.clone())];
    assert_eq!(holes(&end, 1), reports);
    end.wait(100);
    assert_eq!(holes(&end, 3), [(start + 100, 10_001, both.clone()), (start + 150, 10_001, both)]);
    end.data(10_001, 1000, 1);
    end.data(13_001, 1000, 1);
    end.wait(1000);
    assert_eq!(holes(&end, 5), [(start + 200, 15_001, vec![])], "no more than there is to say");
}

/// Reports to a silent peer end.
#[test]
fn a_dead_peer_is_not_told_for_ever() {
    let mut end = Script::established(snacking());
    end.data(1001, 1000, 1);
    end.wait(100_000);
    let reported = end.sent.len();
    assert!((1000..1300).contains(&reported), "a minute's worth: {reported}");
    end.wait(100_000);
    assert_eq!(end.sent.len(), reported);
}

/// Every 30th transmission is lost, repairs included: all data arrives, with few ACKs and no timeout.
#[test]
fn a_lossy_stream_arrives_with_few_acks() {
    let mut pair = Pair::symmetric(snacking());
    pair.delay_one_way = ms(250);
    pair.fate[0] = Box::new(|number, _| number % 30 != 0);
    pair.write(0, 1_000_000);
    pair.close(0);
    pair.run(Duration::from_secs(300));
    assert_eq!(pair.delivered(1), 1_000_000);
    let acks = pair.log.iter().filter(|(_, end, segment)| *end == 1 && segment.len == 0).count();
    assert!(acks < 300, "{acks}");
    assert_eq!(pair.ends[0].stats().timeouts, 0);
}

/// After two seconds the receiver skips missing data and reports it to the application. Both ends must agree on it.
#[test]
fn best_effort_goes_on_without_what_is_missing() {
    let patient = snacking().with(|config| config.receiver.best_effort = Some(ms(2000)));
    for (client, given_up) in [(patient.clone(), true), (snacking(), false)] {
        let mut pair = Pair::new(client, patient.clone());
        // The third segment is always lost.
        pair.fate[0] = Box::new(|_, segment| segment.seq != 2001 || segment.len == 0);
        pair.write(0, 20_000);
        pair.close(0);
        pair.run(ms(1900));
        assert_eq!(pair.delivered(1), 2000);
        pair.run(ms(1000));
        let stats = pair.ends[1].stats();
        let missing = pair.ends[1].next_missing();
        if given_up {
            assert_eq!((stats.delivered_bytes, stats.missing_bytes), (19_000, 1000));
            assert_eq!(missing, Some(SackRange { start: 2001, end: 3001 }));
            assert!(pair.ends[1].peer_closed());
            assert_eq!(pair.ends[0].acknowledged_bytes(), 20_000);
        } else {
            assert_eq!((stats.delivered_bytes, stats.missing_bytes, missing), (2000, 0, None));
        }
        assert_eq!(pair.ends[1].next_missing(), None);
    }
}

/// With a peer without SNACK the recovery is RACK; without SACK, NewReno.
#[test]
fn a_peer_without_snack_gets_sack() {
    for recovery in [Recovery::Rack, Recovery::NewReno] {
        let mut pair = Pair::new(snacking(), snacking().with(|config| config.sender.recovery = recovery));
        pair.fate[0] = Box::new(|number, _| number != 8);
        pair.write(0, 100_000);
        pair.run(Duration::from_secs(30));
        assert_eq!(pair.delivered(1), 100_000);
        let acks = || pair.log.iter().filter(|(_, end, _)| *end == 1).map(|(_, _, segment)| segment);
        assert!(acks().all(|ack| ack.sack.snack().is_none()));
        assert_eq!(acks().any(|ack| !ack.sack.is_empty()), recovery == Recovery::Rack);
        assert_eq!(pair.ends[0].stats().timeouts, 0);
        assert_eq!(pair.ends[0].stats().retransmitted_segments, 1);
    }
}
