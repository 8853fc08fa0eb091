//! Numbers with any unit, for draws.

use std::fmt;

use super::physical::number_length;
use super::{Codec, Refused};
use crate::tree::Value;

/// Units of things that are not divided.
const COUNTED: [&str; 5] = ["packets", "packet", "segments", "segment", "bytes"];

/// A number with the unit that stands behind it, if one does.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Amount {
    pub number: f64,
    /// True for a whole number without a unit.
    pub whole: bool,
    pub unit: String,
}

impl Amount {
    /// Returns the amount as a file writes it, with six significant digits: enough for any quantity, and the same on every machine.
    pub fn value(&self) -> Value {
        if self.whole {
            return Value::Whole(self.number as i64);
        }
        if COUNTED.contains(&self.unit.as_str()) {
            return Value::Text(format!("{} {}", self.number.round(), self.unit));
        }
        let rounded: f64 = format!("{:.5e}", self.number).parse().unwrap_or(self.number);
        if self.unit.is_empty() {
            Value::Real(rounded)
        } else {
            Value::Text(format!("{rounded} {}", self.unit))
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value() {
            Value::Text(text) => f.write_str(&text),
            value => write!(f, "{value}"),
        }
    }
}

/// Codec of a number with any unit.
pub(crate) struct AnyUnit;

/// Codec of a number with any unit.
pub(crate) const AMOUNT: AnyUnit = AnyUnit;

impl Codec<Amount> for AnyUnit {
    fn read(&self, value: &Value) -> Result<Amount, Refused> {
        let amount = match value {
            Value::Whole(number) => Amount { number: *number as f64, whole: true, unit: String::new() },
            Value::Real(number) => Amount { number: *number, whole: false, unit: String::new() },
            Value::Text(text) => {
                let (number, unit) = text.trim().split_at(number_length(text.trim()));
                let number = number.parse().map_err(|_| Refused::default())?;
                Amount { number, whole: false, unit: unit.trim().to_owned() }
            }
            _ => return Err(Refused::default()),
        };
        if amount.number.is_finite() { Ok(amount) } else { Err(Refused::default()) }
    }
    fn show(&self, typed: &Amount) -> Value {
        typed.value()
    }
    fn accepted(&self) -> String {
        "a number, with the unit of the quantity if it has one, such as \"5 Mbit/s\"".to_owned()
    }
}
