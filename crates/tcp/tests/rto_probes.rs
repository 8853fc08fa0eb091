//! RTO probes before a timeout is believed (TCP-STAR's acknowledgement error notification), over a GEO path.

mod common;

use bentpipe_base::Duration;
use bentpipe_cc::Algorithm;
use bentpipe_tcp::{Config, DelayedAck, Recovery};
use common::{Pair, ms};

const MSS: u32 = 1000;

/// Makes a STAR sender with a BDP of 64 segments over 500 ms.
fn pair() -> Pair {
    let config = Config::default().with(|config| {
        config.sender.cc = Algorithm::from_name("star").expect("registered");
        config.receiver.delayed_ack = DelayedAck::Off; // No tail loss probe precedes the RTO probe.
        config.sender.recovery = Recovery::Sack;
        config.mss = MSS;
        config.receiver.receive_window = bentpipe_tcp::ReceiveWindow::Fixed(64 * u64::from(MSS));
    });
    let mut pair = Pair::symmetric(config);
    pair.delay_one_way = ms(250);
    pair.write(0, 10_000_000);
    pair.run(Duration::from_secs(5));
    assert_eq!(pair.ends[0].stats().retransmitted_segments, 0);
    pair
}

/// Returns the data that one end has sent since `mark`, by sequence number.
fn sent_since(pair: &Pair, mark: usize, end: usize) -> Vec<u64> {
    pair.log[mark..]
        .iter()
        .filter(|(_, from, segment)| *from == end && segment.len > 0)
        .map(|(_, _, s)| s.seq)
        .collect()
}

#[test]
fn an_outage_of_the_ack_path_costs_questions_and_no_window() {
    let mut pair = pair();
    let before = pair.delivered(1);
    pair.fate[1] = Box::new(|_, _| false);
    pair.run(Duration::from_secs(2));
    pair.fate[1] = Box::new(|_, _| true);
    pair.run(Duration::from_secs(4));
    let stats = pair.ends[0].stats();
    assert!((1..=3).contains(&stats.retransmitted_segments), "{}", stats.retransmitted_segments);
    assert_eq!(stats.recoveries, 0);
    // 6 s, minus the outage and the back-off of its probes, at one window per round trip.
    let round_trips = (pair.delivered(1) - before) / u64::from(64 * MSS);
    assert!(round_trips >= 4, "{round_trips} windows delivered");
}

#[test]
fn an_outage_of_the_data_path_is_believed_and_survived() {
    let mut pair = pair();
    let mark = pair.log.len();
    pair.fate[0] = Box::new(|_, _| false);
    pair.run(Duration::from_secs(20));
    let sent = sent_since(&pair, mark, 0);
    let questions = sent.windows(2).filter(|two| two[0] == two[1]).count();
    assert!(questions >= 2, "the newest segment, again: {sent:?}");
    assert!(sent.last() < sent.iter().max().as_ref().copied(), "then the oldest");
    pair.fate[0] = Box::new(|_, _| true);
    pair.run(Duration::from_secs(120));
    assert_eq!(pair.delivered(1), 10_000_000);
}

#[test]
fn data_of_the_peer_answers_no_question() {
    let mut pair = pair();
    pair.fate[0] = Box::new(|_, _| false);
    pair.run(Duration::from_secs(1));
    let mark = pair.log.len();
    pair.write(1, 5000);
    // The first RTO probe has left, and the peer's segments acknowledge nothing.
    pair.run(Duration::from_secs(2));
    assert!(pair.ends[0].stats().timeouts > 0);
    let sent = sent_since(&pair, mark, 0);
    assert!(sent.iter().all(|seq| *seq == sent[0]), "only the newest segment leaves: {sent:?}");
}
