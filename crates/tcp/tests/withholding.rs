//! An algorithm that withholds all data for a time.

mod common;

use bentpipe_base::{Duration, Instant};
use bentpipe_cc::{
    Ack, Algorithm, BackOff, CongestionControl, Custom, Loss, Path, Requirements, Sleeper, Spacing, Start,
    Timeout, Wake,
};
use bentpipe_tcp::{Config, DelayedAck};
use common::Pair;

/// Time at which data may leave again.
const RELEASE: Instant = Instant::from_nanos(5_000_000_000);

/// Algorithm with a window of ten that withholds all data from the first ACK until
/// `RELEASE`.
struct Held {
    holds: bool,
    wake_at: Instant,
}

impl CongestionControl for Held {
    fn window(&self) -> f64 {
        10.0
    }

    fn on_ack(&mut self, _ack: &Ack, path: &Path) {
        if path.now < RELEASE {
            (self.holds, self.wake_at) = (true, RELEASE);
        }
    }

    fn on_loss(&mut self, _loss: &Loss, _path: &Path) {}

    fn on_rto(&mut self, _timeout: &Timeout, _path: &Path) -> BackOff {
        BackOff::Double
    }

    fn spacing(&self) -> Spacing {
        if self.holds { Spacing::Withheld } else { Spacing::None }
    }

    fn requirements(&self) -> Requirements {
        Requirements { withholds: true, ..Requirements::default() }
    }

    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        Some(self)
    }
}

impl Sleeper for Held {
    fn wake_at(&self) -> Instant {
        self.wake_at
    }

    fn on_wake(&mut self, _path: &Path) -> Wake {
        (self.holds, self.wake_at) = (false, Instant::FAR_FUTURE);
        Wake::Quiet
    }
}

fn held(_start: &Start) -> Box<dyn CongestionControl> {
    Box::new(Held { holds: false, wake_at: Instant::FAR_FUTURE })
}

#[test]
fn what_is_withheld_leaves_after_the_release_and_arrives() {
    let cc = Algorithm::Custom(Custom::new("held", held));
    let config = Config::default().with(|config| {
        config.sender.cc = cc;
        config.receiver.delayed_ack = DelayedAck::Off;
        config.mss = 1000;
    });
    let mut pair = Pair::symmetric(config);
    pair.write(0, 50_000);
    pair.close(0);
    pair.run(Duration::from_secs(60));
    let data = |at: &Instant, len: u32| len > 0 && *at > Instant::ZERO;
    let early =
        pair.log.iter().filter(|(at, end, segment)| *end == 0 && data(at, segment.len) && *at < RELEASE);
    assert_eq!(early.count(), 10, "the first window only");
    assert_eq!(pair.delivered(1), 50_000);
}
