//! Numbers with a unit: `"10 Mbit/s"`, `"275 ms"`, `"64 KiB"`, `"50 packets"`.

use bentpipe_base::{Duration, Rate};

use super::size::counted;
use super::{Codec, Refused};
use crate::suggest::did_you_mean;
use crate::tree::Value;

/// A unit and how many of the smallest it is.
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

/// A whole number of the smallest unit, written in any of the units.
pub(crate) struct Measure {
    units: &'static [Unit],
    least: u64,
    accepted: &'static str,
}

/// A span of time.
pub(crate) const TIME: Measure = Measure {
    units: TIME_UNITS,
    least: 0,
    accepted: "a time of 0 or more such as \"275 ms\" (ns, us, ms, s, min, h)",
};
/// A span of time that is not empty.
pub(crate) const TIME_ABOVE_ZERO: Measure = Measure {
    units: TIME_UNITS,
    least: 1,
    accepted: "a time above 0 such as \"275 ms\" (ns, us, ms, s, min, h)",
};
/// A transmission rate.
pub(crate) const RATE: Measure = Measure {
    units: RATE_UNITS,
    least: 1,
    accepted: "a rate above 0 such as \"10 Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s)",
};
/// A whole number of segments, at least one.
pub(crate) const SEGMENTS: Measure =
    Measure { units: SEGMENT_UNITS, least: 1, accepted: "at least 1 segment, such as \"10 segments\"" };

/// A whole number of segments, none included.
pub(crate) const SEGMENTS_FROM_ZERO: Measure =
    Measure { units: SEGMENT_UNITS, least: 0, accepted: "a number of segments such as \"16 segments\"" };

impl Measure {
    fn amount(&self, value: &Value) -> Result<u64, Refused> {
        match value {
            Value::Text(text) => measure(text, self.units).and_then(|amount| at_least(self.least, amount)),
            _ => Err(Refused::default()),
        }
    }
}

/// `amount` unless it is too small.
pub(super) fn at_least(least: u64, amount: u64) -> Result<u64, Refused> {
    if amount < least { Err(Refused::default()) } else { Ok(amount) }
}

/// `text` in the smallest of `units`.
pub(super) fn measure(text: &str, units: &[Unit]) -> Result<u64, Refused> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    if number.is_empty() {
        return Err(Refused::default());
    }
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(Refused {
            suggestion: meant_unit(unit, units).map(|unit| format!("\"{number} {unit}\"")),
        });
    };
    scaled(number, *factor).ok_or_else(Refused::default)
}

/// `number * factor` rounded to a whole number: exact for whole numbers, `None` if it does not fit.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let product = (number.parse::<f64>().ok()? * factor as f64).round();
    (product < u64::MAX as f64).then_some(product as u64)
}

/// The unit that other spellings stand for.
fn meant_unit(unit: &str, units: &[Unit]) -> Option<&'static str> {
    const HABITS: &[(&str, &str)] = &[
        ("bps", "bit/s"),
        ("kbps", "kbit/s"),
        ("Mbps", "Mbit/s"),
        ("Gbps", "Gbit/s"),
        ("sec", "s"),
        ("seconds", "s"),
        ("msec", "ms"),
        ("minutes", "min"),
        ("hours", "h"),
    ];
    let names: Vec<_> = units.iter().map(|(name, _)| *name).collect();
    let habit = HABITS.iter().find(|(habit, name)| habit.eq_ignore_ascii_case(unit) && names.contains(name));
    let meant = habit.map(|(_, name)| *name).or_else(|| did_you_mean(unit, &names))?;
    units.iter().map(|(name, _)| *name).find(|name| *name == meant)
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
