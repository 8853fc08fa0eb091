//! Low-priority probes sent by the engine.

mod common;

use bentpipe_base::{Duration, Probe, Rng};
use bentpipe_cc::Algorithm;
use bentpipe_cc::peach_plus::{self, NilOrder};
use bentpipe_tcp::{Config, DelayedAck, ReceiveWindow, Recovery};
use common::Pair;

fn config(nil_order: NilOrder) -> Config {
    let cc = Algorithm::PeachPlus(peach_plus::Config { nil_order, ..Default::default() });
    Config::default().with(|config| {
        config.sender.cc = cc;
        config.sender.recovery = Recovery::Sack;
        config.receiver.delayed_ack = DelayedAck::Off;
        config.receiver.receive_window = ReceiveWindow::Fixed(64_000);
        config.mss = 1000;
    })
}

/// Loses two segments of one window at their first transmission. Returns the sequence numbers of the probes in the recovery.
fn probes_after_two_losses(nil_order: NilOrder) -> (Pair, Vec<u64>) {
    let mut pair = Pair::symmetric(config(nil_order));
    let mut lost = vec![200_001, 210_001];
    pair.fate[0] = Box::new(move |_, segment| {
        let first = lost.iter().position(|seq| *seq == segment.seq);
        first.map(|at| lost.remove(at)).is_none()
    });
    pair.write(0, 500_000);
    pair.close(0);
    pair.run(Duration::from_secs(20));
    let probes = pair.log.iter().filter(|(_, end, segment)| *end == 0 && segment.probe != Probe::No);
    let seqs = probes.map(|(_, _, segment)| segment.seq).filter(|seq| *seq > 100_000).collect();
    (pair, seqs)
}

#[test]
fn a_probe_that_asks_for_a_hole_copies_what_is_missing() {
    let (pair, probes) = probes_after_two_losses(NilOrder::HolesFirst);
    assert_eq!(pair.delivered(1), 500_000);
    let of = |hole| probes.iter().filter(|seq| **seq == hole).count();
    assert_eq!(
        (of(200_001), of(210_001)),
        (0, 1),
        "the first was sent again already, the second is copied once"
    );
    assert!(probes.iter().all(|seq| *seq >= 210_001), "otherwise the newest: {probes:?}");
    assert_eq!(pair.ends[0].stats().timeouts, 0);
}

/// A sender with a low pacing rate repairs after its pacing interval, and the timer starts then. Only a lost retransmission
/// may cause a timeout.
#[test]
fn a_paced_retransmission_restarts_the_timer() {
    let cc = Algorithm::from_name("rcs").expect("it is registered");
    let mut pair = Pair::symmetric(config(NilOrder::Random).with(|config| config.sender.cc = cc));
    pair.delay_one_way = Duration::from_millis(275);
    let mut rng = Rng::stream(1, "loss");
    pair.fate[0] = Box::new(move |_, _| !rng.chance(0.02));
    pair.write(0, 1_000_000);
    pair.run(Duration::from_secs(200));
    let stats = pair.ends[0].stats();
    assert_eq!(pair.delivered(1), 1_000_000);
    assert!(stats.recoveries >= 8 && stats.timeouts <= 2, "{} {}", stats.recoveries, stats.timeouts);
}
