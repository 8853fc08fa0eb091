//! Fidelity meter: accuracy of the emulator's timing.

use std::collections::BTreeMap;

use bentpipe_base::{Duration, Instant, Rate};
use hdrhistogram::Histogram;
use serde::Serialize;

/// Lateness in ns from which a packet is late (chosen: 0.1 % of a geostationary round trip, and less than the jitter
/// of real links).
pub const TOLERANCE: Duration = Duration::from_micros(500);

/// Maximum measured lateness. Later packets count as this late.
const LATEST: Duration = Duration::from_secs(60);

/// Length of the windows over which the rate is measured (chosen).
const WINDOW: Duration = Duration::from_millis(100);

/// Accepted percentage of late packets (chosen).
const LATE_PER_CENT: u64 = 1;

/// A packet that the emulator loses counts as this number of late ones (chosen).
const LOSS_WEIGHS: u64 = 100;

/// Minimum number of packets for a verdict: among fewer, one late packet is compatible with 10 % and with 0.1 %.
const LEAST_PACKETS: u64 = 100;

/// Windows whose rates differ by less than 1/8 octave are judged together (chosen).
const BUCKETS_PER_OCTAVE: f64 = 8.0;

/// Measures the lateness and the losses that the emulator causes.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Nanoseconds between a packet's due time and its departure.
    lateness: Histogram<u64>,
    window: Window,
    /// For each bucket of rates: number of packets, and of late or lost ones.
    judged: BTreeMap<i32, [u64; 2]>,
    lost: u64,
    max_backlog: u32,
}

#[derive(Debug, Default)]
struct Window {
    begin: Instant,
    packets: u64,
    bytes: u64,
    late: u64,
    lost: u64,
}

/// Result of the meter.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Fidelity {
    /// Packets measured.
    pub packets: u64,
    /// Lateness in microseconds: median, 99th and 99.9th percentile, and maximum.
    pub late_us: [f64; 4],
    /// Packets that the emulator lost because it, or the kernel before it, was too slow.
    pub lost: u64,
    /// Maximum number of packets that were overdue at one time.
    pub max_backlog: u32,
    /// Validity of the measurements.
    pub verdict: Verdict,
}

/// Validity of measurements over the emulated path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No packet passed, so nothing is known.
    Unknown,
    /// Too few packets passed for a verdict.
    TooFew,
    /// The measurements are valid.
    Valid,
    /// Measurements below this rate in bits per second are valid. Above it this machine is too slow.
    InvalidAbove(u64),
    /// No measurement is valid: this machine was too slow at any rate.
    Invalid,
}

impl Meter {
    pub fn new() -> Self {
        Self {
            lateness: Histogram::new_with_max(LATEST.as_nanos(), 3)
                .expect("three digits of a minute are possible"),
            window: Window::default(),
            judged: BTreeMap::new(),
            lost: 0,
            max_backlog: 0,
        }
    }

    /// Records that a packet of `bytes` bytes, due at `due`, leaves at `now`.
    pub fn note_departure(&mut self, due: Instant, now: Instant, bytes: u32) {
        let late = now.since(due);
        self.lateness.saturating_record(late.as_nanos());
        self.window.packets += 1;
        self.window.bytes += u64::from(bytes);
        self.window.late += u64::from(late > TOLERANCE);
    }

    /// Records that `packets` packets were overdue at once.
    pub fn note_backlog(&mut self, packets: u32) {
        self.max_backlog = self.max_backlog.max(packets);
    }

    /// Records packets that were lost, but not by a link.
    pub fn note_lost(&mut self, packets: u64) {
        self.lost += packets;
        self.window.lost += packets;
    }

    /// Returns the end of the current window.
    pub fn window_end(&self) -> Instant {
        self.window.begin + WINDOW
    }

    /// Judges the window that has ended, and begins another.
    pub fn close_window(&mut self, now: Instant) {
        let window = std::mem::replace(&mut self.window, Window { begin: now, ..Window::default() });
        if window.packets == 0 && window.lost == 0 {
            return;
        }
        let bps = window.bytes as f64 * 8.0 / now.since(window.begin).as_secs_f64();
        let judged = self.judged.entry(bucket(bps)).or_default();
        judged[0] += window.packets;
        judged[1] += window.late + LOSS_WEIGHS * window.lost;
    }

    /// Returns the result so far.
    pub fn fidelity(&self) -> Fidelity {
        let late_us = [0.5, 0.99, 0.999, 1.0].map(|q| self.lateness.value_at_quantile(q) as f64 / 1e3);
        let all = self.judged.values().fold([0, 0], |sum, judged| [sum[0] + judged[0], sum[1] + judged[1]]);
        Fidelity {
            packets: self.lateness.len(),
            late_us,
            lost: self.lost,
            max_backlog: self.max_backlog,
            verdict: self.verdict(all),
        }
    }

    fn verdict(&self, all: [u64; 2]) -> Verdict {
        match all {
            [0, 0] => return Verdict::Unknown,
            [few, bad] if few + bad / LOSS_WEIGHS < LEAST_PACKETS => return Verdict::TooFew,
            all if good(all) => return Verdict::Valid,
            _ => {}
        }
        let (mut below, mut highest) = ([0, 0], None);
        for (bucket, judged) in &self.judged {
            below = [below[0] + judged[0], below[1] + judged[1]];
            // A limit is known if enough packets passed on either side of it, and those below it were on time.
            let enough = below[0].min(all[0] - below[0]) >= LEAST_PACKETS;
            if enough && good(below) {
                highest = Some(*bucket);
            }
        }
        highest.map_or(Verdict::Invalid, |bucket| Verdict::InvalidAbove(upper_bps(bucket)))
    }
}

/// True if the share of late or lost packets is acceptable.
fn good([all, bad]: [u64; 2]) -> bool {
    bad * 100 <= all * LATE_PER_CENT
}

fn bucket(bps: f64) -> i32 {
    (bps.max(1.0).log2() * BUCKETS_PER_OCTAVE).floor() as i32
}

fn upper_bps(bucket: i32) -> u64 {
    (f64::from(bucket + 1) / BUCKETS_PER_OCTAVE).exp2() as u64
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown: nothing passed"),
            Self::TooFew => write!(f, "unknown: fewer than {LEAST_PACKETS} packets passed"),
            Self::Valid => f.write_str("valid"),
            Self::InvalidAbove(bps) => {
                let mbps = Rate::from_bps(*bps).bps() as f64 / 1e6;
                write!(f, "invalid above {mbps:.3} Mbit/s on this machine")
            }
            Self::Invalid => f.write_str("invalid: this machine was too slow or too busy"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of `packets` packets of 1250 bytes, of which `late` are late.
    fn windows(meter: &mut Meter, count: u64, (packets, late): (u64, u64)) {
        for _ in 0..count {
            let begin = meter.window.begin;
            for n in 0..packets {
                let lateness = if n < late { TOLERANCE * 2 } else { Duration::from_micros(30) };
                meter.note_departure(begin, begin + lateness, 1250);
            }
            meter.close_window(begin + WINDOW);
        }
    }

    #[test]
    fn few_late_packets_are_forgiven() {
        let mut meter = Meter::new();
        windows(&mut meter, 50, (1000, 10));
        let fidelity = meter.fidelity();
        assert_eq!((fidelity.verdict, fidelity.packets), (Verdict::Valid, 50_000));
        assert!((fidelity.late_us[0] - 30.0).abs() < 0.1 && fidelity.late_us[3] >= 999.0);
    }

    #[test]
    fn a_machine_that_is_too_slow_for_fast_traffic_is_told_from_where() {
        let mut meter = Meter::new();
        windows(&mut meter, 100, (100, 0));
        windows(&mut meter, 100, (10_000, 500));
        // 100 packets of 1250 bytes in 100 ms are 10 Mbit/s.
        let Verdict::InvalidAbove(bps) = meter.fidelity().verdict else { panic!("{:?}", meter.fidelity()) };
        assert!((10_000_000..12_000_000).contains(&bps), "{bps}");
    }

    /// Ten packets in windows of different rates, one of them late; later enough packets.
    #[test]
    fn few_packets_prove_nothing() {
        let mut meter = Meter::new();
        windows(&mut meter, 1, (4, 0));
        windows(&mut meter, 1, (6, 1));
        assert_eq!(meter.fidelity().verdict, Verdict::TooFew);
        windows(&mut meter, 200, (5, 0));
        assert_eq!(meter.fidelity().verdict, Verdict::Valid);
    }

    /// A short stop that delays slow and fast traffic alike shows nothing about rates.
    #[test]
    fn a_limit_needs_enough_on_both_of_its_sides() {
        let mut meter = Meter::new();
        windows(&mut meter, 5, (2, 0));
        windows(&mut meter, 100, (100, 5));
        assert_eq!(meter.fidelity().verdict, Verdict::Invalid);
    }

    #[test]
    fn a_loss_of_our_own_spoils_a_window() {
        let mut meter = Meter::new();
        for _ in 0..10 {
            meter.note_lost(1);
            windows(&mut meter, 1, (100, 0));
        }
        assert_eq!(meter.fidelity().verdict, Verdict::Invalid);
        assert_eq!(meter.fidelity().lost, 10);
    }

    #[test]
    fn without_traffic_nothing_is_said() {
        let mut meter = Meter::new();
        windows(&mut meter, 5, (0, 0));
        assert_eq!(meter.fidelity().verdict, Verdict::Unknown);
    }
}
