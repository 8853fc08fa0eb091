//! Sequence numbers reported and accepted by a connection, and segments on the fast path.

mod common;
#[path = "common/script.rs"]
mod script;

use bentpipe_base::{Flags, Segment};
use bentpipe_cc::Algorithm;
use bentpipe_tcp::Exchange;
use script::{Script, plain};

#[test]
fn numbers_and_counts_follow_both_streams() {
    let mut peer = Script::established(plain());
    peer.write(3000);
    assert_eq!((peer.end.oldest_unacknowledged(), peer.end.next_to_send()), (1, 3001));
    assert_eq!((peer.end.next_expected(), peer.end.delivered_bytes()), (1, 0));
    peer.data(1, 500, 1001);
    assert_eq!((peer.end.oldest_unacknowledged(), peer.end.next_to_send()), (1001, 3001));
    assert_eq!((peer.end.next_expected(), peer.end.readable()), (501, 500));
    assert_eq!((peer.read(), peer.end.delivered_bytes()), (500, 500));
    assert!(!peer.end.peer_closed());
    peer.fin(3001);
    assert!(peer.end.peer_closed());
    assert_eq!((peer.end.acknowledged_bytes(), peer.end.unacknowledged_bytes()), (3000, 0));
    let stats = peer.end.stats();
    assert_eq!((stats.sent_segments, stats.sent_bytes), (3, 3000));
    assert_eq!((stats.received_segments, stats.received_bytes, stats.delivered_bytes), (1, 500, 500));
}

/// Larger than any stream; a sum with such a number would overflow.
#[test]
fn numbers_beyond_every_stream_are_ignored() {
    for (seq, ack) in [(1, u64::MAX), (u64::MAX, 1), (1, (1 << 62) + 1), ((1 << 62) + 1, 1)] {
        let mut peer = Script::established(plain());
        peer.give(Segment { seq, ack, flags: Flags::ACK, len: 10, ..Segment::default() });
        assert!(peer.sent.is_empty(), "{seq} {ack}: {:?}", peer.trace());
    }
}

fn next_data(peer: &Script) -> Segment {
    Segment { seq: 1, len: 1000, ack: 1, flags: Flags::ACK, window: peer.window, ..Segment::default() }
}

#[test]
fn the_next_data_takes_the_fast_path() {
    let mut peer = Script::established(plain());
    let mut segment = next_data(&peer);
    assert!(matches!(peer.end.exchange(peer.now, &mut segment, true), Exchange::Answered { .. }));
    assert_eq!((segment.ack, peer.end.delivered_bytes()), (1001, 1000));
}

/// The algorithm's timer must be set after each call, which the fast path of `exchange` omits.
#[test]
fn an_algorithm_with_wake_ups_takes_the_slow_path() {
    let cc = Algorithm::from_name("peach").expect("registered");
    let mut peer = Script::established(plain().with(|config| config.sender.cc = cc));
    let mut segment = next_data(&peer);
    assert_eq!(peer.end.exchange(peer.now, &mut segment, true), Exchange::Taken);
    assert_eq!(peer.end.delivered_bytes(), 0, "nothing is read on the slow path");
}

#[test]
fn what_nobody_reads_at_once_takes_the_slow_path() {
    let mut peer = Script::established(plain());
    let mut segment = next_data(&peer);
    assert_eq!(peer.end.exchange(peer.now, &mut segment, false), Exchange::Taken);
    assert_eq!((peer.end.readable(), peer.end.delivered_bytes()), (1000, 0));
}
