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

/// A frequency.
pub(crate) const GIGAHERTZ: Physical = Physical {
    units: &[("GHz", 1.0), ("MHz", 1e-3)],
    least: 0.0,
    most: 1000.0,
    accepted: "a frequency such as \"20 GHz\" (MHz, GHz)",
};
/// An angle.
pub(crate) const DEGREES: Physical =
    Physical { units: &[("deg", 1.0)], least: -180.0, most: 180.0, accepted: "degrees such as \"35 deg\"" };
/// A height.
pub(crate) const KILOMETRES: Physical = Physical {
    units: &[("km", 1.0), ("m", 1e-3)],
    least: 0.0,
    most: 1e6,
    accepted: "a height such as \"3 km\" (m, km)",
};
/// How hard it rains.
pub(crate) const RAIN_RATE: Physical = Physical {
    units: &[("mm/h", 1.0)],
    least: 0.0,
    most: 1000.0,
    accepted: "a rain rate of 0 or more such as \"20 mm/h\"",
};

/// Symbols a second.
pub(crate) struct SymbolRate;

/// Symbols a second.
pub(crate) const SYMBOL_RATE: SymbolRate = SymbolRate;

const BAUD: Physical = Physical {
    units: &[("MBd", 1.0), ("kBd", 1e-3), ("Bd", 1e-6)],
    least: 1e-6,
    most: 1e6,
    accepted: "a symbol rate such as \"5 MBd\" (Bd, kBd, MBd)",
};

impl Codec<u64> for SymbolRate {
    fn read(&self, value: &Value) -> Result<u64, Refused> {
        BAUD.read(value).map(|mega| (mega * 1e6).round() as u64)
    }
    fn show(&self, typed: &u64) -> Value {
        BAUD.show(&(*typed as f64 / 1e6))
    }
    fn accepted(&self) -> String {
        BAUD.accepted()
    }
}

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
