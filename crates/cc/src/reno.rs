//! Reno's window law: RFC 5681, which the other rules state their differences to.
//!
//! Which recovery goes with it (Reno's own, NewReno's, SACK, RACK-TLP) is chosen beside it, in the engine.

use serde::{Deserialize, Serialize};

use crate::{Classic, CongestionControl, Rule, Start, Windows};

/// Reno has no parameters of its own.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

impl Config {
    /// A Reno sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Classic::new(windows, Reno))
    }
}

/// One segment per ACK in slow start, one per window after, half on loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reno;

impl Rule for Reno {}
