//! Bare numbers and booleans.

use super::{Codec, Refused};
use crate::tree::Value;

/// Codec of a whole number.
pub(crate) struct Count {
    least: u32,
    most: u64,
}

/// A count of at least one.
pub(crate) const COUNT: Count = Count { least: 1, most: 10_000_000 };
/// Number of members of a node group.
pub(crate) const MEMBERS: Count = Count { least: 1, most: 1_000_000 };
/// A count of at least one, for things that each need memory or time.
pub(crate) const FEW: Count = Count { least: 1, most: 65_536 };

impl Count {
    /// A count with zero allowed.
    pub const FROM_ZERO: Self = Self { least: 0, most: 10_000_000 };
    /// Any number that is not negative.
    pub const ANY: Self = Self { least: 0, most: i64::MAX as u64 };
}

impl Codec<u64> for Count {
    fn read(&self, value: &Value) -> Result<u64, Refused> {
        match value {
            Value::Whole(number) if *number >= i64::from(self.least) => match *number as u64 {
                number if number > self.most => Err(Refused::beyond(self.most)),
                number => Ok(number),
            },
            Value::Real(number) if *number > self.most as f64 => Err(Refused::beyond(self.most)),
            _ => Err(Refused::default()),
        }
    }
    fn show(&self, typed: &u64) -> Value {
        Value::Whole(i64::try_from(*typed).unwrap_or(i64::MAX))
    }
    fn accepted(&self) -> String {
        format!("a whole number of {} or more", self.least)
    }
}

impl Codec<u32> for Count {
    fn read(&self, value: &Value) -> Result<u32, Refused> {
        let number: u64 = self.read(value)?;
        u32::try_from(number).map_err(|_| Refused::default())
    }
    fn show(&self, typed: &u32) -> Value {
        Value::Whole(i64::from(*typed))
    }
    fn accepted(&self) -> String {
        Codec::<u64>::accepted(self)
    }
}

/// Codec of a real number between two bounds, both included.
pub(crate) struct Between {
    least: f64,
    most: f64,
    accepted: &'static str,
}

/// Maximum of a factor.
const MOST: f64 = 1e6;

/// Converts `1 %` to a bare number.
fn percent(text: &str) -> Option<String> {
    let number: f64 = text.trim().strip_suffix('%')?.trim().parse().ok()?;
    Some((number / 100.0).to_string())
}

/// A probability from 0 to 1.
pub(crate) const PROBABILITY: Between =
    Between { least: 0.0, most: 1.0, accepted: "a probability from 0 to 1 such as 1e-4" };
/// Correlation of successive random numbers.
pub(crate) const CORRELATION: Between =
    Between { least: 0.0, most: 0.999_999, accepted: "a number from 0 to 0.999999 such as 0.25" };
/// A fraction above zero.
pub(crate) const PART: Between =
    Between { least: f64::MIN_POSITIVE, most: 1.0, accepted: "a number above 0 and at most 1 such as 0.95" };
/// Phase offset between neighbouring orbital planes.
pub(crate) const PHASING: Between =
    Between { least: 0.0, most: MOST, accepted: "a number of 0 or more, below the number of planes" };
/// A factor above zero.
pub(crate) const FACTOR: Between =
    Between { least: f64::MIN_POSITIVE, most: MOST, accepted: "a number above 0 such as 1.2" };
/// A factor of one or more.
pub(crate) const AT_LEAST_ONE: Between =
    Between { least: 1.0, most: MOST, accepted: "a number of 1 or more such as 2.5" };
/// Shape of a heavy-tailed distribution with a finite mean.
pub(crate) const SHAPE: Between =
    Between { least: 1.01, most: MOST, accepted: "a number of 1.01 or more such as 1.5" };
/// Frames per second.
pub(crate) const FRAME_RATE: Between =
    Between { least: 0.1, most: 1000.0, accepted: "frames a second from 0.1 to 1000 such as 25" };

impl Codec<f64> for Between {
    fn read(&self, value: &Value) -> Result<f64, Refused> {
        let number = match value {
            Value::Whole(number) => *number as f64,
            Value::Real(number) => *number,
            Value::Text(text) => return Err(Refused { suggestion: percent(text), limit: None }),
            _ => return Err(Refused::default()),
        };
        match number {
            x if x >= self.least && x <= self.most => Ok(x),
            // Other codecs name their limits in the accepted form.
            x if x > self.most && self.most == MOST => Err(Refused::beyond(MOST)),
            _ => Err(Refused::default()),
        }
    }
    fn show(&self, typed: &f64) -> Value {
        Value::Real(*typed)
    }
    fn accepted(&self) -> String {
        self.accepted.to_owned()
    }
}

/// Codec of `true` or `false`.
pub(crate) struct Flag;

/// Codec of `true` or `false`.
pub(crate) const FLAG: Flag = Flag;

impl Codec<bool> for Flag {
    fn read(&self, value: &Value) -> Result<bool, Refused> {
        match value {
            Value::Flag(flag) => Ok(*flag),
            _ => Err(Refused::default()),
        }
    }
    fn show(&self, typed: &bool) -> Value {
        Value::Flag(*typed)
    }
    fn accepted(&self) -> String {
        "true or false".to_owned()
    }
}
