use alloc::format;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::Duration;

/// A transmission rate in whole bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Rate(u64);

impl Rate {
    /// Zero rate.
    pub const ZERO: Self = Self(0);

    /// Makes a rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// Makes a rate of `mbps` million bits per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }

    /// Makes a rate of `bytes_per_s` bytes per second, rounded to the nearest bit; negative values and NaN give zero.
    pub fn from_bytes_per_s(bytes_per_s: f64) -> Self {
        Self(libm::round(bytes_per_s * 8.0) as u64)
    }

    /// Returns bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// Returns bytes per second.
    pub fn bytes_per_s(self) -> f64 {
        self.0 as f64 / 8.0
    }

    /// Returns the transmission time of `bytes`, rounded **up** to the nanosecond, so that no link exceeds its rate.
    /// At a rate of zero it is infinite.
    pub fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        match bytes.checked_mul(8_000_000_000) {
            Some(scaled) => Duration::from_nanos(scaled.div_ceil(self.0)),
            None => {
                let nanos = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.0));
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
    }

    /// Returns the whole bytes that fit into `span` at this rate, rounded down.
    pub fn bytes_in(self, span: Duration) -> u64 {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// Uses the largest unit in which the value is at least one, with all decimals needed to be exact.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name, digits) = match self.0 {
            n if n >= 1_000_000_000 => (1_000_000_000, "Gbit/s", 9),
            n if n >= 1_000_000 => (1_000_000, "Mbit/s", 6),
            n if n >= 1_000 => (1_000, "kbit/s", 3),
            n => return write!(f, "{n} bit/s"),
        };
        let (whole, rest) = (self.0 / unit, self.0 % unit);
        if rest == 0 {
            return write!(f, "{whole} {name}");
        }
        let decimals = format!("{rest:0digits$}");
        write!(f, "{whole}.{} {name}", decimals.trim_end_matches('0'))
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_bytes_at_ten_megabit_take_800_us() {
        assert_eq!(Rate::from_mbps(10).time_for(1000), Duration::from_micros(800));
    }

    #[test]
    fn rounding_never_exceeds_the_rate() {
        let rate = Rate::from_bps(7);
        assert!(rate.bytes_in(rate.time_for(1)) >= 1);
        assert!(rate.bytes_in(rate.time_for(1).saturating_sub(Duration::from_nanos(1))) < 1);
        assert_eq!(Rate::ZERO.time_for(1), Duration::MAX);
    }

    #[test]
    fn a_rate_is_written_in_the_largest_unit_that_fits_and_exactly() {
        let cases = [
            (0, "0 bit/s"),
            (999, "999 bit/s"),
            (256_000, "256 kbit/s"),
            (1_500, "1.5 kbit/s"),
            (10_000_000, "10 Mbit/s"),
            (38_100_000, "38.1 Mbit/s"),
            (1_000_001, "1.000001 Mbit/s"),
            (1_234_567_890, "1.23456789 Gbit/s"),
        ];
        for (bps, written) in cases {
            assert_eq!(Rate::from_bps(bps).to_string(), written);
        }
    }
}
