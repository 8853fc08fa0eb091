//! TCP-Probing: a loss stops all data until two probes without payload are answered.

mod common;

use bentpipe_base::{Duration, Probe};
use bentpipe_cc::{Algorithm, probing};
use bentpipe_tcp::{Config, DelayedAck, ReceiveWindow, Recovery};
use common::Pair;

const LOST: u64 = 200_001;

#[test]
fn two_probes_are_answered_before_the_repair_leaves() {
    let mut pair = Pair::symmetric(Config::default().with(|config| {
        config.sender.cc = Algorithm::Probing(probing::Config::default());
        config.sender.recovery = Recovery::Sack;
        config.receiver.delayed_ack = DelayedAck::Off;
        config.receiver.receive_window = ReceiveWindow::Fixed(64_000);
        config.mss = 1000;
    }));
    let mut lost = false;
    pair.fate[0] = Box::new(move |_, segment| segment.seq != LOST || std::mem::replace(&mut lost, true));
    pair.write(0, 500_000);
    pair.close(0);
    pair.run(Duration::from_secs(30));
    assert_eq!(pair.delivered(1), 500_000);
    let sent: Vec<_> = pair.log.iter().filter(|(_, end, _)| *end == 0).collect();
    let is_probe = |entry: &&&(_, _, bentpipe_base::Segment)| entry.2.probe != Probe::No;
    let probes: Vec<_> = sent.iter().filter(is_probe).collect();
    assert_eq!(probes.len(), 2, "one cycle");
    assert!(probes.iter().all(|(_, _, segment)| segment.len == 0));
    let answers = pair.log.iter().filter(|(_, end, segment)| *end == 1 && segment.probe != Probe::No);
    let answered_at = answers.map(|(at, _, _)| *at).max().expect("both are answered");
    let asked_at = probes[0].0;
    let between =
        sent.iter().filter(|(at, _, segment)| segment.len > 0 && *at > asked_at && *at < answered_at);
    assert_eq!(between.count(), 0, "data while the cycle runs");
    assert_eq!(sent.iter().filter(|(_, _, segment)| segment.seq == LOST && segment.len > 0).count(), 2);
    assert_eq!(pair.ends[0].stats().timeouts, 0);
}
