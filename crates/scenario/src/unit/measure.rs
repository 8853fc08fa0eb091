//! Numbers with a unit: `"10 Mbit/s"`, `"275 ms"`, `"64 KiB"`, `"50 packets"`.

use bentpipe_base::{Duration, Rate};

use super::physical::number_length;
use super::{Codec, Refused, habit};
use crate::tree::Value;

/// Unit with its size in the smallest unit.
pub(super) type Unit = (&'static str, u64);

const TIME_UNITS: &[Unit] = &[
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const RATE_UNITS: &[Unit] =
    &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];
pub(super) const SEGMENT_UNITS: &[Unit] = &[("segments", 1), ("segment", 1)];

/// Codec of a whole number of the smallest unit, written in any unit.
pub(crate) struct Measure {
    units: &'static [Unit],
    least: u64,
    /// Maximum, with its text.
    most: (u64, &'static str),
    accepted: &'static str,
}

const HOUR_NS: u64 = 3_600_000_000_000;
/// Maximum duration: ten years.
const MOST_TIME: (u64, &str) = (87_600 * HOUR_NS, "\"87600 h\"");
/// Maximum number of segments, above any window.
const MOST_SEGMENTS: (u64, &str) = (10_000_000, "\"10000000 segments\"");

/// Codec of a duration.
pub(crate) const TIME: Measure = Measure {
    units: TIME_UNITS,
    least: 0,
    most: MOST_TIME,
    accepted: "a time of 0 or more such as \"275 ms\" (ns, us, ms, s, min, h)",
};
/// Codec of a duration above zero.
pub(crate) const TIME_ABOVE_ZERO: Measure = Measure {
    units: TIME_UNITS,
    least: 1,
    most: MOST_TIME,
    accepted: "a time above 0 such as \"275 ms\" (ns, us, ms, s, min, h)",
};
/// Codec of a data rate.
pub(crate) const RATE: Measure = Measure {
    units: RATE_UNITS,
    least: 1,
    most: (10_000_000_000_000, "\"10000 Gbit/s\""),
    accepted: "a rate above 0 such as \"10 Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s)",
};
/// Codec of a whole number of segments, at least one.
pub(crate) const SEGMENTS: Measure = Measure {
    units: SEGMENT_UNITS,
    least: 1,
    most: MOST_SEGMENTS,
    accepted: "at least 1 segment, such as \"10 segments\"",
};

/// Codec of a whole number of segments, zero included.
pub(crate) const SEGMENTS_FROM_ZERO: Measure = Measure {
    units: SEGMENT_UNITS,
    least: 0,
    most: MOST_SEGMENTS,
    accepted: "a number of segments such as \"16 segments\"",
};

impl Measure {
    fn amount(&self, value: &Value) -> Result<u64, Refused> {
        let Value::Text(text) = value else { return Err(Refused::default()) };
        match measure(text, self.units)? {
            amount if amount > self.most.0 => Err(Refused::beyond(self.most.1)),
            amount => at_least(self.least, amount),
        }
    }
}

/// Returns `1 segment`, `2 segments`.
pub(super) fn counted(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Returns `amount` if it is at least `least`.
pub(super) fn at_least(least: u64, amount: u64) -> Result<u64, Refused> {
    if amount < least { Err(Refused::default()) } else { Ok(amount) }
}

/// Converts `text` to the smallest of `units`. A value that does not fit becomes `u64::MAX`, which
/// exceeds every limit.
pub(super) fn measure(text: &str, units: &[Unit]) -> Result<u64, Refused> {
    let text = text.trim();
    let (number, unit) = text.split_at(number_length(text));
    let (number, unit) = (number.trim(), unit.trim());
    let value: f64 = number.parse().map_err(|_| Refused::default())?;
    if value.is_nan() || value.is_sign_negative() {
        return Err(Refused::default());
    }
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(Refused::meant(habit::meant(value, unit, units.iter().map(|unit| unit.0))));
    };
    Ok(scaled(number, value, *factor))
}

/// Returns `number * factor` rounded to a whole number, `u64::MAX` on overflow. It is exact for whole numbers, and for decimals
/// with a whole result.
fn scaled(number: &str, value: f64, factor: u64) -> u64 {
    let exact = |number: &str| {
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let parts = 10_u64.checked_pow(decimals.len() as u32)?;
        let part = if decimals.is_empty() { 0 } else { decimals.parse::<u64>().ok()?.checked_mul(factor)? };
        let whole = whole.parse::<u64>().ok()?.saturating_mul(factor);
        part.is_multiple_of(parts).then(|| whole.saturating_add(part / parts))
    };
    exact(number).unwrap_or_else(|| (value * factor as f64).round() as u64)
}

impl Codec<Duration> for Measure {
    fn read(&self, value: &Value) -> Result<Duration, Refused> {
        self.amount(value).map(Duration::from_nanos)
    }
    fn show(&self, typed: &Duration) -> Value {
        Value::Text(typed.to_string())
    }
    fn accepted(&self) -> String {
        self.accepted.to_owned()
    }
}

impl Codec<Rate> for Measure {
    fn read(&self, value: &Value) -> Result<Rate, Refused> {
        self.amount(value).map(Rate::from_bps)
    }
    fn show(&self, typed: &Rate) -> Value {
        Value::Text(typed.to_string())
    }
    fn accepted(&self) -> String {
        self.accepted.to_owned()
    }
}

impl Codec<u32> for Measure {
    fn read(&self, value: &Value) -> Result<u32, Refused> {
        u32::try_from(self.amount(value)?).map_err(|_| Refused::default())
    }
    fn show(&self, typed: &u32) -> Value {
        Value::Text(counted(u64::from(*typed), "segment"))
    }
    fn accepted(&self) -> String {
        self.accepted.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly() {
        let nanos = |text: &str| measure(text, TIME_UNITS).unwrap();
        assert_eq!(nanos("8.59375 ms"), 8_593_750);
        assert_eq!(nanos("12.450171 ms"), 12_450_171);
        assert_eq!(nanos("31536000.123456789 s"), 31_536_000_123_456_789);
        assert_eq!(nanos("1e-3 s"), 1_000_000);
        assert_eq!(nanos("0.3 ns"), 0);
        assert_eq!(nanos(".5 s"), 500_000_000);
        assert_eq!(nanos("1e300 s"), u64::MAX);
    }
}
