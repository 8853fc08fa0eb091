use bentpipe_base::{Rng, SackBlocks, precedes};

use super::steps::STEPS;
use super::*;

const MSS: u64 = 1000;

fn board(segments: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    for i in 0..segments {
        board.push(Scoreboard::record(1 + i * MSS, MSS as u32, Instant::from_nanos(i)));
    }
    board
}

fn block(first: u64, last: u64) -> SackRange {
    SackRange { start: 1 + first * MSS, end: 1 + (last + 1) * MSS }
}

#[test]
fn three_sacked_above_make_a_loss() {
    let mut board = board(10);
    let mut progress = Progress::default();
    board.sack(block(1, 2), &mut progress);
    assert_eq!(board.mark_lost_by_count(3), 0);
    board.sack(block(1, 3), &mut progress);
    assert_eq!(board.mark_lost_by_count(3), 1);
    assert_eq!((progress.sacked, board.sacked(), board.lost()), (3, 3, 1));
    assert_eq!(board.in_flight(), 6);
    assert_eq!(board.next_lost(), Some(0));
    board.retransmit(0, Instant::from_nanos(99), false);
    assert_eq!((board.in_flight(), board.next_lost()), (7, None));
    board.advance(1 + 4 * MSS, &mut progress);
    assert_eq!((board.outstanding(), board.in_flight(), board.sacked(), board.lost()), (6, 6, 0, 0));
    assert!(progress.repeated_acked);
}

#[test]
fn scattered_losses_below_the_third_highest_sack() {
    let mut board = board(20);
    let mut progress = Progress::default();
    for i in [1, 4, 7, 9] {
        board.sack(block(i, i), &mut progress);
    }
    // 7, 9 and 4 are the three highest: every unSACKed segment below 4 is lost.
    assert_eq!(board.mark_lost_by_count(3), 3);
    let mut lost = vec![];
    while let Some(index) = board.next_lost() {
        board.retransmit(index, Instant::ZERO, false);
        lost.push(index);
    }
    assert_eq!(lost, [0, 2, 3]);
    assert_eq!(board.next_unsacked_hole(4), Some(5));
}

#[test]
fn what_makes_a_board_plain() {
    let mut board = board(3);
    assert!(board.is_plain() && board.is_free_of_repairs());
    board.sack(block(2, 2), &mut Progress::default());
    assert_eq!(board.mark_range_lost(block(0, 0), |_, _| false), 1);
    assert!(!board.is_plain() && board.is_free_of_repairs(), "one SACKed and one lost");
    board.retransmit(0, Instant::from_nanos(99), false);
    assert!(!board.is_plain() && !board.is_free_of_repairs());
}

/// SNACK reports use blocks, which may begin within a segment.
#[test]
fn a_range_that_begins_within_a_segment_has_that_segment() {
    let mut board = board(4);
    let range = SackRange { start: 1501, end: 3001 };
    assert_eq!(board.mark_range_lost(range, |_, _| false), 2);
    assert_eq!((board.next_lost(), board.lost()), (Some(1), 2));
}

/// A retransmission reported lost and sent again is not judged by its first send time.
#[test]
fn only_the_newest_retransmission_is_judged_by_time() {
    let mut board = board(1);
    for at in [100, 200] {
        assert_eq!(board.mark_range_lost(block(0, 0), |_, _| false), 1);
        board.retransmit(0, Instant::from_nanos(at), false);
    }
    let judge = |record: &Record| match record.sent_at.as_nanos() {
        100 => AgeVerdict::Lost,
        _ => AgeVerdict::Unknown,
    };
    assert_eq!(board.mark_lost_by_time(judge), (0, None));
}

#[test]
fn reports_make_room_in_turn() {
    let mut repairs = Repairs::default();
    let mut places = [0; 4].map(|_| repairs.oldest_report());
    places.sort_unstable();
    assert_eq!(places, [0, 1, 2, 3]);
}

#[test]
fn a_partial_ack_trims_the_front() {
    let mut board = board(2);
    let mut progress = Progress::default();
    board.advance(501, &mut progress);
    assert_eq!((progress.acked, progress.delivered), (0, 500));
    assert_eq!(board.front().unwrap().start, 501);
    board.advance(1 + 2 * MSS, &mut progress);
    assert_eq!((progress.acked, progress.delivered), (2, 2000));
    assert!(board.is_empty());
}

#[test]
fn reneging_is_forgiven_after_a_timeout() {
    let mut board = board(4);
    let mut progress = Progress::default();
    board.sack(block(1, 1), &mut progress);
    board.advance(1 + MSS, &mut progress);
    board.mark_all_lost();
    assert_eq!((board.sacked(), board.lost(), board.in_flight()), (0, 3, 0));
    assert_eq!(board.next_lost(), Some(1));
}

/// A probe may have copied a segment and been lost: the original is still judged by time.
#[test]
fn a_copied_segment_is_still_lost_by_time() {
    let mut board = board(3);
    let mut progress = Progress::default();
    assert_eq!(board.copied(0), Some((1, 1000)));
    board.sack(block(1, 2), &mut progress);
    let (lost, _) = board
        .mark_lost_by_time(|record| if record.end() < 3001 { AgeVerdict::Lost } else { AgeVerdict::Unknown });
    assert_eq!((lost, board.next_lost()), (1, Some(0)));
    board.retransmit(0, Instant::from_nanos(9), false);
    board.advance(3001, &mut progress);
    assert!(progress.repeated_acked);
}

/// RFC 8985 section 6.3: a timeout marks the oldest segment lost, which is retransmitted first. Segments sent within the last
/// round trip are not marked.
#[test]
fn a_timeout_spares_what_left_lately() {
    let mut board = board(6);
    let mut progress = Progress::default();
    let sent = |board: &Scoreboard, index| board.get(index).map_or(Instant::ZERO, |record| record.sent_at);
    board.mark_lost(2);
    board.sack(block(1, 1), &mut progress);
    board.retransmit(2, Instant::from_nanos(90), false);
    board.retransmit(0, Instant::from_nanos(90), false);
    let by = sent(&board, 4);
    board.mark_old_lost(by);
    let waiting: Vec<Index> = std::iter::from_fn(|| {
        let index = board.next_lost()?;
        board.retransmit(index, Instant::from_nanos(100), false);
        Some(index)
    })
    .collect();
    assert_eq!(waiting, [0, 3, 4], "1 is SACKed, 2 was repaired and 5 sent lately");
    assert_eq!((board.in_flight(), board.lost()), (5, 4));
}

/// Without RACK, retransmissions are not judged by time, but are still removed.
#[test]
fn acknowledged_repairs_are_not_remembered() {
    let mut board = board(1);
    let mut progress = Progress::default();
    for at in 0..1000_u64 {
        let index = board.front_index();
        board.retransmit(index, Instant::from_nanos(at), false);
        let end = board.get(index).map_or(0, Record::end);
        board.push(Scoreboard::record(end, MSS as u32, Instant::from_nanos(at)));
        board.advance(end, &mut progress);
    }
    let remembered = board.repairs.as_ref().map_or(0, |repairs| repairs.in_flight.len());
    assert!(remembered <= 2, "{remembered}");
}

/// Rule 3 of RFC 6675 retransmits segments that may be in flight: both count until one is known to be lost.
#[test]
fn an_early_retransmission_counts_beside_the_original() {
    let mut board = board(6);
    let mut progress = Progress::default();
    board.sack(block(1, 1), &mut progress);
    board.retransmit(0, Instant::from_nanos(9), true);
    assert_eq!(board.in_flight(), 6);
    board.sack(block(1, 3), &mut progress);
    assert_eq!((board.mark_lost_by_count(3), board.in_flight()), (1, 3), "the original is gone");
    assert_eq!(board.next_lost(), None, "and its successor on the way");
    board.unmark_lost();
    assert_eq!(board.in_flight(), 3);
    board.advance(6001, &mut progress);
    assert_eq!((board.in_flight(), progress.arrived), (0, 6));
}

/// Long runs of SACKed segments are skipped, not walked again.
#[test]
fn skips_shorten() {
    let mut board = board(10_000);
    let mut progress = Progress::default();
    // More block starts than are remembered.
    for i in 1..10_000 {
        board.sack(block(1 + i % 7, i), &mut progress);
    }
    assert_eq!(board.sacked(), 9_999);
    board.next_unsacked(1);
    assert!(board.records[1].skip > 1_000);
}

/// ACKs repeat blocks, extended or not, and their starts advance with the cumulative ACK. Remembering blocks changes no result.
#[test]
fn remembered_reports_change_nothing() {
    let mut rng = Rng::stream(1, "reports");
    let (mut one, mut other) = (board(300), board(300));
    let mut blocks = [block(0, 0); 6];
    for round in 0..2000 {
        let which = rng.below(6) as usize;
        let grown = blocks[which].end + rng.below(4) * 500;
        let first = rng.below(298);
        blocks[which] = match rng.below(4) {
            0 => block(first, first + rng.below(3)),
            1 => SackRange { start: blocks[which].start + 400, end: blocks[which].end + 400 },
            _ => SackRange { end: grown, ..blocks[which] },
        };
        let mut seen = [Progress::default(), Progress::default()];
        one.sack(blocks[which], &mut seen[0]);
        if let Some(repairs) = &mut other.repairs {
            repairs.reports = Default::default();
        }
        other.sack(blocks[which], &mut seen[1]);
        if round % 50 == 49 {
            let ack = one.front().map_or(0, |front| front.start) + 700;
            one.advance(ack, &mut seen[0]);
            other.advance(ack, &mut seen[1]);
        }
        assert_eq!(format!("{:?}", seen[0]), format!("{:?}", seen[1]), "round {round}");
        assert_eq!(one.in_flight(), other.in_flight());
    }
    assert!(one.sacked() > 100);
}

/// A window of 100,000 segments: every 100th is lost, and every 10,000th is lost again. The work per ACK does not depend on the
/// window.
#[test]
fn the_work_for_an_ack_does_not_grow_with_the_window() {
    for by_time in [false, true] {
        let mut few = steps_per_ack(1000, by_time);
        let many = steps_per_ack(100_000, by_time);
        few = few.max(4.0);
        assert!(many < 2.0 * few, "by time: {by_time}; {many} steps for an ACK, {few} in a small window");
    }
}

fn steps_per_ack(window: u32, by_time: bool) -> f64 {
    use crate::receiver::Receiver;
    use crate::{Config, ReceiveWindow};
    let config =
        Config::default().with(|config| config.receiver.receive_window = ReceiveWindow::Fixed(1 << 29));
    let mut receiver = Receiver::new(&config);
    receiver.synchronise();
    receiver.acknowledged(&config);
    let mut board = Scoreboard::default();
    let mut path = VecDeque::new();
    let (mut sent, mut acks, mut tick, mut nxt) = (0_u64, 0_u64, 0_u64, 1_u64);
    STEPS.set(0);
    let segments = 3 * u64::from(window);
    while board.front().is_some() || sent < segments {
        while board.in_flight() < window {
            tick += 1;
            let now = Instant::from_nanos(tick);
            if let Some(index) = board.next_lost() {
                let again = board.get(index).is_some_and(|record| record.has(Mark::REPEATED));
                board.retransmit(index, now, false);
                path.push_back((index, !by_time || again || index % 10_000 != 50));
            } else if sent < segments {
                board.push(Scoreboard::record(1 + sent * MSS, MSS as u32, now));
                path.push_back((sent, sent % 100 != 50));
                sent += 1;
            } else {
                break;
            }
        }
        let Some((index, arrives)) = path.pop_front() else { break };
        if !arrives {
            continue;
        }
        receiver.take(1 + index * MSS, 1 + (index + 1) * MSS, false);
        receiver.read(u64::MAX, &config);
        receiver.acknowledged(&config);
        let mut blocks = SackBlocks::EMPTY;
        receiver.sack_blocks(3, false, &mut blocks);
        acks += 1;
        let mut progress = Progress::default();
        blocks.as_slice().iter().for_each(|block| board.sack(*block, &mut progress));
        if receiver.nxt > nxt {
            nxt = receiver.nxt;
            board.advance(nxt, &mut progress);
        }
        if by_time {
            board.mark_lost_by_time(|record| match progress.newest {
                Some(newest) if precedes(record.order, newest.order) => AgeVerdict::Lost,
                _ => AgeVerdict::Unknown,
            });
        } else {
            board.mark_lost_by_count(3);
        }
    }
    assert!(acks >= segments - segments / 100 - 200, "{acks} of {segments}");
    STEPS.get() as f64 / acks as f64
}
