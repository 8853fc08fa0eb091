//! Real numbers with a unit: decibels, degrees, gigahertz, kilometres, rain.

use super::{Codec, Refused};
use crate::suggest::did_you_mean;
use crate::tree::Value;

/// A real number, written in any of the units and shown in the first.
pub(crate) struct Physical {
    /// Names of units and how many of the first each is.
    units: &'static [(&'static str, f64)],
    least: f64,
    most: f64,
    accepted: &'static str,
}

/// A ratio of powers.
pub(crate) const DECIBEL: Physical =
    Physical { units: &[("dB", 1.0)], least: -200.0, most: 200.0, accepted: "decibels such as \"-7.7 dB\"" };
/// A ratio of powers that is not below one.
pub(crate) const DECIBEL_FROM_ZERO: Physical = Physical {
    units: &[("dB", 1.0)],
    least: 0.0,
    most: 200.0,
    accepted: "decibels of 0 or more such as \"0.5 dB\"",
};

impl Codec<f64> for Physical {
    fn read(&self, value: &Value) -> Result<f64, Refused> {
        let Value::Text(text) = value else { return Err(Refused::default()) };
        let text = text.trim();
        let ends = |c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
        let (number, unit) = text.split_at(text.find(ends).unwrap_or(text.len()));
        let number: f64 = number.parse().map_err(|_| Refused::default())?;
        let unit = unit.trim();
        let Some((_, factor)) = self.units.iter().find(|(name, _)| *name == unit) else {
            let names: Vec<_> = self.units.iter().map(|(name, _)| *name).collect();
            return Err(Refused {
                suggestion: did_you_mean(unit, &names).map(|unit| format!("\"{number} {unit}\"")),
            });
        };
        let typed = number * factor;
        if (self.least..=self.most).contains(&typed) { Ok(typed) } else { Err(Refused::default()) }
    }
    fn show(&self, typed: &f64) -> Value {
        Value::Text(format!("{typed} {}", self.units[0].0))
    }
    fn accepted(&self) -> String {
        self.accepted.to_owned()
    }
}
