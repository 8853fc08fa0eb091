//! BA-TCP: routers report the path's delay and free bandwidth, the receiver computes a window from them, and the sender adopts
//! it.
//!
//! M. Gerla, W. Weng, R. Lo Cigno, "BA-TCP: A Bandwidth Aware TCP for Satellite Networks", IEEE ICCCN 1999.
//!
//! | paper | here                                    | unit     |
//! |-------|-----------------------------------------|----------|
//! | RTPD, round-trip propagation delay | [`PathReport::propagation`] | time |
//! | ABW, available bandwidth | [`PathReport::available`] | bytes / s |
//! | GAW, generalised advertised window | `Receiver::gaw` | bytes   |
//! | `cwnd` | `Windows::cwnd`                        | segments |
//!
//! Routers measure and divide the bandwidth in another crate. `papers/ba-tcp.md` lists the reconstructed parts.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Extension, Instant, Rate, Segment};
use serde::{Deserialize, Serialize};

use crate::parts::exchange::{Exchange, Exchanging};
use crate::{
    Cause, CongestionControl, Entry, Family, Loss, Path, ReceiverHalf, Reflector, Rule, SENDER_ONLY, Sent,
    Start, Windows,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "ba-tcp",
    title: "routers report delay and free bandwidth, the receiver makes a window of them",
    paper: "Gerla, Weng, Lo Cigno, IEEE ICCCN",
    year: 1999,
    needs_receiver: true,
    receiver: Some(RECEIVER),
    needs_routers: true,
    family: Family::Network,
    advice: "For routers that report delay and free bandwidth. Without reports, as here, it equals Reno with SACK.",
    ..SENDER_ONLY
};

/// Parameters of BA-TCP.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Pace each window over a round trip, because a granted window can open at once.
    pub paced: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { paced: true }
    }
}

impl Config {
    /// A BA-TCP sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Exchanging::new(windows, BaTcp { config: *self, granted: None }))
    }
}

/// The receiver half of BA-TCP.
pub const RECEIVER: ReceiverHalf = ReceiverHalf { number: 7, build: || Box::new(Receiver::default()) };

/// Header field that routers write into data segments, carried in [`Extension::Value`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathReport {
    /// Routers that wrote their values.
    pub hops: u8,
    /// Round-trip propagation delay up to this router. Unit: 1 µs, at most 16.7 s.
    pub propagation: Duration,
    /// Smallest bandwidth of the routers so far for this connection. Unit: 64 bytes per second.
    pub available: Rate,
}

/// Width of the delay field in bits (unit 1 µs); the remaining bits hold the bandwidth.
const DELAY_BITS: u32 = 24;
const BANDWIDTH_BITS: u32 = 32;
/// Bits per second in one bandwidth unit of 64 bytes per second.
const BANDWIDTH_UNIT: u64 = 512;

impl PathReport {
    /// Returns the sender's initial value: no delay, unlimited bandwidth.
    pub fn blank() -> Self {
        Self::from_bits(u64::from(u32::MAX))
    }

    /// Reads the header field.
    pub fn from_bits(bits: u64) -> Self {
        let delay_us = (bits >> BANDWIDTH_BITS) & ((1 << DELAY_BITS) - 1);
        Self {
            hops: (bits >> (BANDWIDTH_BITS + DELAY_BITS)) as u8,
            propagation: Duration::from_micros(delay_us),
            available: Rate::from_bps(u64::from(bits as u32) * BANDWIDTH_UNIT),
        }
    }

    /// Writes the header field. A value too large for its field is clamped to the maximum.
    pub fn to_bits(self) -> u64 {
        let delay_us = (self.propagation.as_nanos() / 1000).min((1 << DELAY_BITS) - 1);
        let available = (self.available.bps() / BANDWIDTH_UNIT).min(u64::from(u32::MAX));
        u64::from(self.hops) << (BANDWIDTH_BITS + DELAY_BITS) | delay_us << BANDWIDTH_BITS | available
    }
}

/// BA-TCP's sender: it adopts the granted window.
#[derive(Clone, Copy, Debug)]
struct BaTcp {
    config: Config,
    /// Rate of the granted window. Without a grant the sender behaves as Reno.
    granted: Option<Rate>,
}

impl Rule for BaTcp {
    fn grows(&self) -> bool {
        self.granted.is_none()
    }

    /// Congestion shows in the bandwidth that routers report; a loss is an error. A timeout is believed.
    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, _path: &Path) {
        if self.granted.is_none() || loss.cause == Cause::Timeout {
            windows.halve(loss);
        }
    }

    fn phase(&self, windows: &Windows) -> &'static str {
        if self.granted.is_some() { "told-by-routers" } else { windows.phase() }
    }
}

impl Exchange for BaTcp {
    const RECEIVER: ReceiverHalf = RECEIVER;

    fn stamp(&mut self, _windows: &Windows, _sent: &Sent, _path: &Path) -> Extension {
        Extension::Value(PathReport::blank().to_bits())
    }

    fn on_fields(&mut self, windows: &mut Windows, fields: &Extension, path: &Path) {
        let Extension::Value(gaw) = *fields else {
            // A router no longer writes its values: continue as Reno.
            if self.granted.take().is_some() {
                windows.ssthresh = windows.cwnd;
            }
            return;
        };
        let limit = f64::from(path.receive_window.max(1));
        windows.cwnd = (gaw as f64 / f64::from(path.mss.max(1))).clamp(1.0, limit);
        let rtt = path.min_rtt.min(path.srtt).max(Duration::from_micros(1));
        let bytes = windows.cwnd * f64::from(path.mss);
        self.granted = Some(Rate::from_bytes_per_s(bytes / rtt.as_secs_f64()));
    }

    fn pacing(&self) -> Option<Rate> {
        self.granted.filter(|_| self.config.paced)
    }
}

/// Weight of the newest report if it exceeds the previous one. A smaller report counts fully.
const GAIN: f64 = 0.5;

/// Largest growth factor of the window within a round trip.
const GROWTH: f64 = 2.0;

/// Smallest window in segments.
const MIN_SEGMENTS: f64 = 2.0;

/// The receiver: GAW = ABW x RTPD.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Receiver {
    filtered: Option<Filtered>,
    /// Payload bytes of the largest segment seen.
    mss: u32,
    gaw: f64,
    /// Limit of the window in this round trip: twice its value at the start.
    limit: Limit,
}

/// Smoothed values of the routers' reports.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Filtered {
    rtpd_s: f64,
    abw_bytes_per_s: f64,
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Limit {
    since: Instant,
    gaw: f64,
}

impl Receiver {
    fn filter(&mut self, report: &PathReport) -> Filtered {
        let rtpd_s = report.propagation.as_secs_f64();
        let abw_bytes_per_s = report.available.bytes_per_s();
        let mut filtered = self.filtered.unwrap_or(Filtered { rtpd_s, abw_bytes_per_s });
        let follow = |old: f64, new: f64| if new < old { new } else { old + GAIN * (new - old) };
        filtered.rtpd_s = follow(filtered.rtpd_s, rtpd_s);
        filtered.abw_bytes_per_s = follow(filtered.abw_bytes_per_s, abw_bytes_per_s);
        self.filtered = Some(filtered);
        filtered
    }
}

impl Reflector for Receiver {
    fn on_data(&mut self, now: Instant, segment: &Segment, _duplicate: bool) {
        self.mss = self.mss.max(segment.len);
        let Extension::Value(bits) = segment.extension else { return };
        let report = PathReport::from_bits(bits);
        if report.hops == 0 {
            self.filtered = None; // no router writes its values
            return;
        }
        let first = self.filtered.is_none();
        let Filtered { rtpd_s, abw_bytes_per_s } = self.filter(&report);
        let target = (abw_bytes_per_s * rtpd_s).max(MIN_SEGMENTS * f64::from(self.mss));
        if first || now.since(self.limit.since).as_secs_f64() >= rtpd_s {
            self.limit = Limit { since: now, gaw: if first { target } else { self.gaw } };
        }
        self.gaw = target.min(GROWTH * self.limit.gaw);
    }

    fn reply(&mut self, _now: Instant) -> Extension {
        self.filtered.map_or(Extension::None, |_| Extension::Value(self.gaw as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Feedback, fixture};

    fn report(propagation_ms: u64, available: f64) -> Segment {
        let propagation = Duration::from_millis(propagation_ms);
        let report = PathReport { hops: 3, propagation, available: Rate::from_bytes_per_s(available) };
        Segment { len: 1000, extension: Extension::Value(report.to_bits()), ..Segment::default() }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn gaw(receiver: &mut Receiver) -> u64 {
        match receiver.reply(Instant::ZERO) {
            Extension::Value(gaw) => gaw,
            other => panic!("{other:?}"),
        }
    }

    fn sender(cwnd: f64) -> Exchanging<BaTcp> {
        let rule = BaTcp { config: Config::default(), granted: None };
        Exchanging::new(Windows { cwnd, ssthresh: f64::INFINITY }, rule)
    }

    fn wide() -> Path {
        Path { receive_window: 1000, ..fixture::path() }
    }

    /// Three flows share 5 Mbit/s at 95 % use; one of them needs only 50 kB/s. Each of the others gets 271,875 bytes/s, over a
    /// satellite or a wire.
    #[test]
    fn a_satellite_and_a_wire_get_the_same_rate() {
        let fair = (0.95 * 625_000.0 - 50_000.0) / 2.0;
        for (rtpd_ms, window) in [(520, 141_375.0), (20, 5_437.0)] {
            let mut receiver = Receiver::default();
            receiver.on_data(at(0), &report(rtpd_ms, fair), false);
            let gaw = gaw(&mut receiver) as f64;
            assert!((gaw - window).abs() <= 64.0 * rtpd_ms as f64 / 1000.0 + 1.0, "{gaw} for {window}");
            let mut sender = sender(10.0);
            sender.on_feedback(&Extension::Value(gaw as u64), &wide());
            assert_eq!(sender.window(), gaw / 1000.0);
        }
    }

    #[test]
    fn a_report_survives_the_wire() {
        let full = PathReport {
            hops: 7,
            propagation: Duration::from_micros(520_123),
            available: Rate::from_bps(512 * 4_247),
        };
        assert_eq!(PathReport::from_bits(full.to_bits()), full);
        assert_eq!(PathReport::blank().hops, 0);
        let large = PathReport { hops: 1, propagation: Duration::MAX, available: Rate::from_bps(u64::MAX) };
        assert_eq!(large.to_bits(), 0x01ff_ffff_ffff_ffff);
    }

    #[test]
    fn less_counts_at_once_and_more_by_halves() {
        let mut receiver = Receiver::default();
        receiver.on_data(at(0), &report(500, 64_000.0), false);
        receiver.on_data(at(1), &report(500, 32_000.0), false);
        assert_eq!(gaw(&mut receiver), 16_000);
        receiver.on_data(at(2), &report(500, 64_000.0), false);
        assert_eq!(gaw(&mut receiver), 24_000);
    }

    #[test]
    fn the_window_at_most_doubles_in_a_round_trip() {
        let mut receiver = Receiver::default();
        receiver.on_data(at(0), &report(500, 64_000.0), false);
        for ms in 1..500 {
            receiver.on_data(at(ms), &report(500, 6_400_000.0), false);
        }
        assert_eq!(gaw(&mut receiver), 64_000);
        receiver.on_data(at(500), &report(500, 6_400_000.0), false);
        assert_eq!(gaw(&mut receiver), 128_000);
    }

    #[test]
    fn the_first_window_may_be_taken_at_once_but_paced() {
        let mut sender = sender(2.0);
        sender.on_feedback(&Extension::Value(110_000), &wide());
        assert_eq!((sender.window(), sender.snapshot().phase), (110.0, "told-by-routers"));
        assert!((sender.spacing().rate().unwrap().bytes_per_s() - 200_000.0).abs() < 1.0);
        sender.on_ack(&fixture::ack(50), &wide());
        assert_eq!(sender.window(), 110.0, "it does not grow by itself");
    }

    #[test]
    fn a_loss_is_an_error_as_long_as_routers_speak() {
        let mut sender = sender(2.0);
        sender.on_feedback(&Extension::Value(100_000), &wide());
        sender.on_loss(&fixture::loss(100), &wide());
        assert_eq!(sender.window(), 100.0);
        sender.on_feedback(&Extension::None, &wide());
        sender.on_loss(&fixture::loss(100), &wide());
        assert_eq!((sender.window(), sender.spacing().rate()), (50.0, None));
    }

    #[test]
    fn without_such_routers_it_is_reno() {
        let mut receiver = Receiver::default();
        let extension = Extension::Value(PathReport::blank().to_bits());
        receiver.on_data(at(0), &Segment { len: 1000, extension, ..Segment::default() }, false);
        assert_eq!(receiver.reply(at(0)), Extension::None);
    }
}
