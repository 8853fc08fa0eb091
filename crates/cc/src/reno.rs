//! Reno's window law: RFC 5681, which the other rules state their differences to.
//!
//! Which recovery goes with it (Reno's own, NewReno's, SACK, RACK-TLP) is chosen beside it, in the engine.

use serde::{Deserialize, Serialize};

use crate::hystart::HyStart;
use crate::{Ack, Classic, CongestionControl, Loss, Path, Rule, Start, Timeout, Windows};

/// Parameters of Reno.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Leave the first slow start by HyStart++ (RFC 9406) instead of by a loss.
    pub hystart: bool,
}

impl Config {
    /// A Reno sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Classic::new(windows, Reno { hystart: HyStart::configured(self.hystart) }))
    }
}

/// One segment per segment acknowledged in slow start, one per window after, half on loss.
#[derive(Clone, Debug)]
pub struct Reno {
    hystart: HyStart,
}

impl Rule for Reno {
    fn slow_start(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.hystart.grow(windows, ack, path);
    }

    fn reduce(&mut self, _windows: &Windows, loss: &Loss, _path: &Path) -> f64 {
        self.hystart.stop();
        f64::from(loss.outstanding) / 2.0
    }

    fn reduce_at_timeout(&mut self, _windows: &Windows, timeout: &Timeout, _path: &Path) -> f64 {
        self.hystart.stop();
        f64::from(timeout.outstanding) / 2.0
    }
}
