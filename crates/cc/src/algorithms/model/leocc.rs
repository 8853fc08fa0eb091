//! LeoCC: BBR that measures its path anew at each reconfiguration of a low orbit, and smooths its estimates between them.
//!
//! Z. Lai et al., "LeoCC: Making Internet Congestion Control Robust to LEO Satellite Dynamics", ACM SIGCOMM 2025.
//!
//! | source                  | here                            | unit     |
//! |-------------------------|---------------------------------|----------|
//! | `offset`                | [`Config::offset_s`]            | s        |
//! | `min_rtt_fluctuation`   | [`Config::fluctuation_s`]       | s        |
//! | `delta_thresh`          | [`Config::theta_s`]             | s        |
//! | trigger, `reset_bw`     | `Leo::trigger`, `Leo::reset_rate` | -, bytes / s |
//! | bandwidth and RTT by Kalman filters | `Leo::bandwidth`, `Leo::rtt` | bytes / s, s |
//! | `min_rtt`               | `Bbr::rtprop`                   | time     |
//!
//! The law is that of [`bbr`](super::bbr) with the profile `linux` and the additions in `bbr/reconfiguration.rs`. `papers/leocc.md` lists the
//! deviations from the source.

use alloc::boxed::Box;

use serde::{Deserialize, Serialize};

pub use super::bbr::Arithmetic;
use super::bbr::{self, Bbr, LeoConfig, Profile};
use crate::parameters::{fraction, not_negative, positive};
use crate::parts::grid::Grid;
use crate::{CongestionControl, Entry, Family, SENDER_ONLY, Start};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "leocc",
    title: "BBR that measures its path anew at each reconfiguration of a low orbit",
    paper: "Lai et al., ACM SIGCOMM",
    year: 2025,
    family: Family::Model,
    advice: "For low orbits with reconfigurations at known times. Not for GEO, where a new measurement takes a third of the period.",
    ..SENDER_ONLY
};

/// Parameters of LeoCC.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Time between reconfigurations in seconds; 0 if only notices of links report them.
    #[serde(deserialize_with = "not_negative")]
    pub period_s: f64,
    /// Time of the first reconfiguration in seconds.
    #[serde(deserialize_with = "not_negative")]
    pub offset_s: f64,
    /// RTT above minRTT, in seconds, from which the filtered bandwidth replaces the maximum. Large values favour throughput.
    #[serde(deserialize_with = "not_negative")]
    pub fluctuation_s: f64,
    /// Fall of the RTT below its estimate, in seconds, after which the bandwidth restarts from the last sample.
    #[serde(deserialize_with = "not_negative")]
    pub theta_s: f64,
    /// Length of the minRTT filter in seconds.
    #[serde(deserialize_with = "positive")]
    pub rtprop_window_s: f64,
    /// Part of the BDP that ProbeRTT keeps in flight.
    #[serde(deserialize_with = "fraction")]
    pub probe_bdp: f64,
    /// Arithmetic of the filters.
    pub arithmetic: Arithmetic,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            period_s: 15.0,
            offset_s: 12.0,
            fluctuation_s: 0.01,
            theta_s: 0.045,
            rtprop_window_s: 20.0,
            probe_bdp: 0.5,
            arithmetic: Arithmetic::Real,
        }
    }
}

impl Config {
    /// A LeoCC sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(self.sender(start))
    }

    fn sender(&self, start: &Start) -> Bbr {
        let model = bbr::Config {
            rtprop_window_s: self.rtprop_window_s,
            profile: Profile::Linux,
            ..bbr::Config::default()
        };
        let Self { fluctuation_s, theta_s, probe_bdp, arithmetic, .. } = *self;
        let grid = Grid::new(self.period_s, self.offset_s);
        Bbr::new(model, start).with_leo(LeoConfig { grid, fluctuation_s, theta_s, probe_bdp, arithmetic })
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_base::{Duration, Extension, Instant, Notice};

    use super::*;
    use crate::fixture::{self, MSS};
    use crate::{Ack, ConnectionEvent, Path, RateSample};

    /// A path with one ACK per millisecond, 10 segments of 1000 bytes at most.
    struct Line {
        now: Instant,
        delivered: u64,
        rtt_ms: u64,
        sent: Vec<u64>,
    }

    impl Line {
        fn new() -> Self {
            Self { now: Instant::ZERO, delivered: 0, rtt_ms: 30, sent: Vec::new() }
        }

        /// Runs until `until_s`; the rate of the model is at most 10 Mbyte/s.
        fn run(&mut self, sender: &mut dyn CongestionControl, until_s: f64) {
            while self.now < Instant::ZERO + Duration::from_secs_f64(until_s) {
                let rtt_s = self.rtt_ms as f64 / 1e3;
                let pace = sender.spacing().rate().map_or(f64::INFINITY, |rate| rate.bytes_per_s());
                let rate = (sender.window() * f64::from(MSS) / rtt_s).min(pace).min(10e6);
                self.now += Duration::from_millis(1);
                let bytes = (rate / 1e3) as u64;
                self.delivered += bytes;
                self.sent.push(self.delivered);
                let prior = self.sent.len().checked_sub(self.rtt_ms as usize + 1);
                let sample = RateSample {
                    delivered: bytes,
                    interval: Duration::from_millis(1),
                    prior_delivered: prior.map_or(0, |index| self.sent[index]),
                    app_limited: false,
                    tx_in_flight: 1,
                    lost: 0,
                };
                let in_flight = (rate * rtt_s / f64::from(MSS)) as u32;
                let rtt = Duration::from_millis(self.rtt_ms);
                let path = Path {
                    now: self.now,
                    srtt: rtt,
                    min_rtt: rtt,
                    delivered: self.delivered,
                    in_flight,
                    ..fixture::path()
                };
                let delivered_bytes = bytes;
                let ack = Ack {
                    rtt: Some(rtt),
                    rate: Some(sample),
                    delivered_bytes,
                    ..fixture::ack(bytes as u32 / MSS)
                };
                sender.on_ack(&ack, &path);
            }
        }
    }

    fn begun(config: Config) -> Bbr {
        let mut sender = config.sender(&fixture::start(10.0));
        let path = Path { srtt: Duration::from_millis(30), ..fixture::path_at(0.0) };
        sender.on_event(ConnectionEvent::Established, &path);
        sender
    }

    #[test]
    fn a_reconfiguration_starts_probe_rtt_with_half_a_bdp_and_then_startup() {
        let (mut sender, mut line) = (begun(Config::default()), Line::new());
        line.run(&mut sender, 11.89);
        assert_eq!(sender.snapshot().phase, "probe-bw");
        line.run(&mut sender, 11.95);
        assert_eq!(sender.snapshot().phase, "probe-rtt");
        // BDP: 10 Mbyte/s times 30 ms, 300 segments.
        assert!((145.0..=160.0).contains(&sender.window()), "{}", sender.window());
        line.run(&mut sender, 12.2);
        assert_eq!(sender.snapshot().phase, "startup");
        line.run(&mut sender, 14.0);
        assert_eq!(sender.snapshot().phase, "probe-bw");
    }

    #[test]
    fn a_longer_round_trip_is_known_half_a_second_after_the_trigger() {
        let rtprop = |period_s| {
            let (mut sender, mut line) = (begun(Config { period_s, ..Config::default() }), Line::new());
            line.run(&mut sender, 11.9);
            line.rtt_ms = 60;
            line.run(&mut sender, 12.4);
            sender.rtprop()
        };
        assert_eq!(rtprop(15.0), Duration::from_millis(60));
        assert_eq!(rtprop(0.0), Duration::from_millis(30), "without a clock");
    }

    #[test]
    fn a_notice_of_a_restored_link_triggers() {
        let (mut sender, mut line) = (begun(Config { period_s: 0.0, ..Config::default() }), Line::new());
        line.run(&mut sender, 5.0);
        let feedback = sender.feedback().unwrap();
        feedback.on_feedback(&Extension::Notice(Notice::Restored), &fixture::path_at(5.0));
        line.run(&mut sender, 5.1);
        assert_eq!(sender.snapshot().phase, "probe-rtt");
    }

    #[test]
    fn without_a_trigger_and_a_queue_the_window_is_that_of_bbr() {
        let start = fixture::start(10.0);
        let (mut leo, mut line) = (begun(Config { period_s: 0.0, ..Config::default() }), Line::new());
        let mut bbr = Bbr::new(bbr::Config { profile: Profile::Linux, ..bbr::Config::default() }, &start);
        let path = Path { srtt: Duration::from_millis(30), ..fixture::path_at(0.0) };
        bbr.on_event(ConnectionEvent::Established, &path);
        let mut other = Line::new();
        for tenth in 1..95 {
            line.run(&mut leo, f64::from(tenth) / 10.0);
            other.run(&mut bbr, f64::from(tenth) / 10.0);
            assert_eq!(leo.snapshot(), bbr.snapshot(), "{tenth}");
        }
    }
}
