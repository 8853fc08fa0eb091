//! An algorithm that sends segments in pairs, since a receiver delays the ACK of a lone segment.

mod common;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_cc::{
    Ack, Algorithm, BackOff, CongestionControl, Custom, Loss, Path, Priority, Requirements, Sent, Spacing,
    Start, Timeout,
};
use bentpipe_tcp::{Config, DelayedAck};
use common::Pair;

const GAP: Duration = Duration::from_millis(20);

/// A window of three segments with a pacing rate of four per round trip.
struct Pairs {
    /// True if the first segment of a pair is the last paced one.
    stops: bool,
    sent: u32,
}

impl CongestionControl for Pairs {
    fn window(&self) -> f64 {
        3.0
    }

    fn on_ack(&mut self, _ack: &Ack, _path: &Path) {}

    fn on_loss(&mut self, _loss: &Loss, _path: &Path) {}

    fn on_rto(&mut self, _timeout: &Timeout, _path: &Path) -> BackOff {
        BackOff::Double
    }

    fn spacing(&self) -> Spacing {
        match self.stops && self.sent > 0 {
            true => Spacing::None,
            false => Spacing::Pairs { rate: Rate::from_bps(320_000), gap: GAP },
        }
    }

    fn on_sent(&mut self, _sent: &Sent, _path: &Path) -> Priority {
        self.sent += 1;
        Priority::Normal
    }

    fn requirements(&self) -> Requirements {
        Requirements { sent: true, ..Requirements::default() }
    }
}

/// Makes a connection with such an algorithm, whose receiver waits for a second segment from the start.
fn pair(stops: bool) -> Pair {
    let build = move |_: &Start| Box::new(Pairs { stops, sent: 0 }) as Box<dyn CongestionControl>;
    let cc = Algorithm::Custom(Custom::new("pairs", build));
    let delayed_ack =
        DelayedAck::On { every: 2, timer: Duration::from_millis(40), quick: 0, after_duplicate: 0 };
    Pair::symmetric(Config::default().with(|config| {
        config.sender.cc = cc;
        config.receiver.delayed_ack = delayed_ack;
        config.mss = 1000;
    }))
}

/// Returns the send times of data.
fn departures(pair: &Pair) -> Vec<Instant> {
    let data = pair.log.iter().filter(|(_, end, segment)| *end == 0 && segment.len > 0);
    data.map(|(at, ..)| *at).collect()
}

/// With a window of three, a lone segment would follow each pair, and its ACK would wait for the receiver's timer.
#[test]
fn a_pair_that_has_begun_leaves_whole() {
    let mut pair = pair(false);
    pair.write(0, 40_000);
    pair.run(Duration::from_secs(30));
    assert_eq!(pair.delivered(1), 40_000);
    let left = departures(&pair);
    assert_eq!(left.len(), 40);
    for two in left.chunks(2) {
        assert_eq!(two[1].since(two[0]), GAP);
    }
    let acks = pair.log.iter().filter(|(at, end, segment)| *end == 1 && segment.len == 0 && *at > left[0]);
    assert_eq!(acks.count(), 20, "one for each pair");
}

#[test]
fn a_pair_that_is_given_up_leaves_no_room_beyond_the_window() {
    let mut pair = pair(true);
    pair.write(0, 40_000);
    pair.run(Duration::from_millis(100));
    assert!(departures(&pair).len() <= 4, "{} segments before the first ACK", departures(&pair).len());
}
