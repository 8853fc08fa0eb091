use bentpipe_base::SackBlocks;

use super::*;

fn receiver() -> Receiver {
    let config =
        Config::default().with(|config| config.receiver.receive_window = ReceiveWindow::Fixed(100_000));
    let mut receiver = Receiver::new(&config);
    receiver.synchronise();
    receiver.acknowledged(&config);
    receiver
}

fn blocks(receiver: &mut Receiver) -> Vec<(u64, u64)> {
    let mut blocks = SackBlocks::EMPTY;
    receiver.sack_blocks(4, true, &mut blocks);
    blocks.as_slice().iter().map(|block| (block.start, block.end)).collect()
}

/// A driver that handles several segments before it polls must know when the next ACK is full.
#[test]
fn an_ack_is_full_when_another_range_would_push_one_out() {
    let mut receiver = receiver();
    let config = Config::default();
    for (start, full) in [(1001, false), (2001, false), (4001, false), (5001, false), (7001, true)] {
        receiver.take(start, start + 1000, false);
        assert_eq!(receiver.reports_are_full(), full, "{start}");
    }
    receiver.acknowledged(&config);
    assert!(!receiver.reports_are_full());
    receiver.take(8001, 9001, false);
    receiver.take(9001, 10_001, false);
    assert!(!receiver.reports_are_full(), "one range, longer");
    receiver.take(1001, 2001, false);
    assert!(receiver.reports_are_full(), "a duplicate is told once");
}

/// RFC 2018 section 8, similar to case 2: every second segment is lost; the most recent block comes
/// first.
#[test]
fn most_recent_block_first() {
    let mut receiver = receiver();
    for start in [1001, 3001, 5001] {
        assert_eq!(receiver.take(start, start + 1000, false), Arrival::OutOfOrder);
    }
    assert_eq!(blocks(&mut receiver), [(5001, 6001), (3001, 4001), (1001, 2001)]);
    assert_eq!(receiver.take(2001, 3001, false), Arrival::OutOfOrder);
    assert_eq!(blocks(&mut receiver), [(1001, 4001), (5001, 6001)]);
    assert_eq!(receiver.take(1, 1001, false), Arrival::InOrder);
    assert_eq!(receiver.nxt, 4001);
    assert_eq!(blocks(&mut receiver), [(5001, 6001)]);
}

/// Beyond a hole the fast path has the same effect as the slow path.
#[test]
fn what_goes_on_behind_the_last_arrival_is_reported_as_any_other() {
    let (mut long, mut short) = (receiver(), receiver());
    for receiver in [&mut long, &mut short] {
        for start in [1001, 5001, 2001, 8001] {
            receiver.take(start, start + 1000, false);
            assert_eq!(receiver.continues_at(start + 1000), start != 2001, "{start}");
        }
        assert!(!receiver.continues_at(3001) && !receiver.continues_at(8001));
    }
    assert_eq!(long.take(9001, 10_001, false), Arrival::OutOfOrder);
    short.extend_last(10_001);
    assert_eq!(blocks(&mut long), [(8001, 10_001), (1001, 3001), (5001, 6001)]);
    assert_eq!(blocks(&mut short), [(8001, 10_001), (1001, 3001), (5001, 6001)]);
    for receiver in [&mut long, &mut short] {
        assert!(receiver.continues_at(10_001));
        receiver.take(1, 1001, false);
        receiver.take(3001, 5001, false);
        receiver.take(6001, 8001, false);
        assert_eq!(receiver.nxt, 10_001);
    }
}

#[test]
fn duplicates_are_reported_once() {
    let mut receiver = receiver();
    receiver.take(1, 1001, false);
    assert_eq!(receiver.take(1, 1001, false), Arrival::Duplicate);
    assert_eq!(blocks(&mut receiver), [(1, 1001)]);
    assert_eq!(blocks(&mut receiver), []);
}

#[test]
fn the_fin_is_not_data() {
    let mut receiver = receiver();
    receiver.take(1, 502, true);
    assert!(receiver.finished());
    assert_eq!(receiver.readable(), 500);
}

#[test]
fn the_right_edge_never_retreats() {
    let config = Config::default().with(|config| {
        config.receiver.receive_window = ReceiveWindow::Fixed(3000);
        config.mss = 1000;
    });
    let mut receiver = Receiver::new(&config);
    receiver.synchronise();
    assert_eq!(receiver.acknowledged(&config), 3000);
    receiver.take(1, 3001, false);
    assert_eq!(receiver.acknowledged(&config), 0);
    assert_eq!(
        receiver.take(3001, 3002, false),
        Arrival::OutsideWindow,
        "a probe of a closed window is not taken"
    );
    let (bytes, tell) = receiver.read(3001, &config);
    assert_eq!((bytes, tell), (3000, true));
    assert_eq!(receiver.acknowledged(&config), 3000);
}
