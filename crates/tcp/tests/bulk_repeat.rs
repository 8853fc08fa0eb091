//! Westwood's Bulk Repeat: the engine retransmits everything outstanding at the algorithm's request.

mod common;

use bentpipe_base::Duration;
use bentpipe_cc::{Algorithm, westwood_br};
use bentpipe_tcp::{Config, DelayedAck};
use common::{Pair, ms};

const MSS: u32 = 1000;
const WINDOW: u64 = 64;

/// A WestwoodBR sender that fills 64 segments over 500 ms without a queue.
fn pair(paced_repeat: bool) -> Pair {
    let config = Config::default().with(|config| {
        config.sender.cc = Algorithm::WestwoodBr(westwood_br::Config { paced_repeat, ..Default::default() });
        config.receiver.delayed_ack = DelayedAck::Off;
        config.mss = MSS;
        config.sender.recovery = bentpipe_tcp::Recovery::Sack;
        config.receiver.receive_window = bentpipe_tcp::ReceiveWindow::Fixed(WINDOW * u64::from(MSS));
    });
    let mut pair = Pair::symmetric(config);
    pair.delay_one_way = ms(250);
    pair.write(0, 50_000_000);
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.ends[0].stats().retransmitted_segments, 0);
    pair
}

#[test]
fn one_loss_is_one_retransmission_and_two_repeat_the_window_once() {
    // Paced at the rate of the ACKs, a repetition ends early: ACKs show that most segments need none.
    for (lost, paced, repeated) in
        [(1, false, 1..=1), (2, false, WINDOW / 2..=WINDOW + 2), (2, true, 2..=WINDOW / 8)]
    {
        let mut pair = pair(paced);
        // The first and the eleventh segment of a flight are lost.
        let mut flight = 0;
        pair.fate[0] = Box::new(move |_, _| {
            flight += 1;
            flight % 10 != 1 || flight > 10 * lost
        });
        let before = pair.delivered(1);
        pair.run(Duration::from_secs(5));
        let stats = pair.ends[0].stats();
        assert!(
            repeated.contains(&stats.retransmitted_segments),
            "{} for {lost}",
            stats.retransmitted_segments
        );
        assert_eq!(stats.timeouts, 0);
        // Ten round trips, of which one or two are spent on the repair.
        let windows = (pair.delivered(1) - before) / (WINDOW * u64::from(MSS));
        assert!(windows >= 7, "{windows} windows after {lost} losses");
    }
}

#[test]
fn timeouts_in_a_row_come_at_equal_distances() {
    let mut pair = pair(true);
    let mark = pair.log.len();
    pair.fate[0] = Box::new(|_, _| false);
    pair.run(Duration::from_secs(4));
    let first = pair.ends[0].stats().timeouts;
    pair.run(Duration::from_secs(4));
    let second = pair.ends[0].stats().timeouts - first;
    assert!(first >= 4 && second.abs_diff(first) <= 2, "{first} and {second} timeouts in 4 s each");
    assert!(pair.log.len() - mark > 4 * WINDOW as usize, "the window is kept, and repeated each time");
}
