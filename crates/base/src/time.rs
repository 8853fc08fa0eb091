//! Simulated or real time in integer nanoseconds.
//!
//! Integers make runs bit-identical; `u64` nanoseconds last 584 years.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since the driver's epoch (the start of a simulation, the start of a process).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Instant(u64);

/// A span of time in nanoseconds, never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Duration(u64);

impl Instant {
    /// The driver's epoch.
    pub const ZERO: Self = Self(0);
    /// Later than any event: the value of a disabled timer.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// Makes the instant `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns seconds since the epoch.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the time elapsed since `earlier`; zero if `earlier` is in the future.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// A duration of zero.
    pub const ZERO: Self = Self(0);
    /// Longest span: infinite.
    pub const MAX: Self = Self(u64::MAX);

    /// Makes a span of whole nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Makes a span of whole microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// Makes a span of whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// Makes a span of whole seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// Makes a span of `secs` seconds, rounded to the nearest nanosecond. Negative values and NaN give zero, too large ones
    /// [`Duration::MAX`].
    pub fn from_secs_f64(secs: f64) -> Self {
        Self(libm::round(secs * 1e9) as u64)
    }

    /// Returns the nanoseconds in this span.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the seconds in this span.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the milliseconds in this span.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// True for a zero span.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns this span times a real factor, rounded to the nanosecond; a negative factor gives zero.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self(libm::round(self.0 as f64 * factor) as u64)
    }

    /// Returns `self - other`, or zero if that is negative.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns the absolute difference of two spans.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    /// Saturates at [`Instant::FAR_FUTURE`]: an infinite span leads to a time that never comes.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

/// Units of a displayed duration in nanoseconds, the largest first.
const UNITS: [(u64, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];

/// The largest unit of which the duration has a whole number below 10,000, else the largest unit of which it has at least one. A
/// precision rounds to this number of decimals.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(unit, _): &&(u64, &str)| self.0.is_multiple_of(*unit);
        let above = |(unit, _): &&(u64, &str)| self.0 >= *unit;
        let readable = |(unit, _): &&(u64, &str)| self.0 / unit < 10_000;
        let (unit, name) =
            UNITS.iter().filter(readable).find(whole).or(UNITS.iter().find(above)).unwrap_or(&UNITS[0]);
        let decimals = unit.ilog10() as usize;
        let shown = f.precision().unwrap_or(decimals).min(decimals);
        // Rounded in integers, so that without a precision the text is exact.
        let last = 10_u64.pow((decimals - shown) as u32);
        let rounded = self.0.saturating_add(last / 2) / last;
        let (number, mut part, mut digits) = (rounded / (unit / last), rounded % (unit / last), shown);
        while digits > 0 && part.is_multiple_of(10) {
            (part, digits) = (part / 10, digits - 1);
        }
        match digits {
            0 => write!(f, "{number} {name}"),
            _ => write!(f, "{number}.{part:0digits$} {name}"),
        }
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::FAR_FUTURE {
            f.write_str("never")
        } else {
            write!(f, "{:.9} s", self.as_secs_f64())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_future_stays_far() {
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(Instant::ZERO.since(Instant::FAR_FUTURE), Duration::ZERO);
    }

    #[test]
    fn display_uses_the_unit_that_a_person_reads() {
        for (nanos, exact, rounded) in [
            (275_000_000, "275 ms", "275 ms"),
            (3_000_000_000, "3 s", "3 s"),
            (1_500_000_000, "1500 ms", "1500 ms"),
            (12_345_000_000, "12.345 s", "12.35 s"),
            (8_593_750, "8.59375 ms", "8.59 ms"),
            (12_450_171, "12.450171 ms", "12.45 ms"),
            (12_450_000, "12.45 ms", "12.45 ms"),
            (250_000, "250 us", "250 us"),
            (1_234_567_891, "1.234567891 s", "1.23 s"),
            (1_999_999_999, "1.999999999 s", "2 s"),
            (10_001, "10.001 us", "10 us"),
            (1_001, "1001 ns", "1001 ns"),
            (999, "999 ns", "999 ns"),
            (0, "0 s", "0 s"),
        ] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!((duration.to_string().as_str(), format!("{duration:.2}").as_str()), (exact, rounded));
        }
    }

    #[test]
    fn real_factors_round_and_never_go_negative() {
        assert_eq!(Duration::from_secs_f64(0.55 / 64.0).as_nanos(), 8_593_750);
        assert_eq!(Duration::from_secs(1).mul_f64(-1.0), Duration::ZERO);
    }
}
