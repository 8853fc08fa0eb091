//! Real numbers with a unit: angles, decibels, distances, frequencies, rain.

use super::{Codec, Refused, habit};
use crate::tree::{Node, Value};

/// Codec of a real number, read in any of the units and shown in the first.
pub(crate) struct Physical {
    /// Names of units, each with its size in the first unit.
    units: &'static [(&'static str, f64)],
    least: f64,
    most: f64,
    accepted: &'static str,
}

/// A power ratio.
pub(crate) const DECIBEL: Physical =
    Physical { units: &[("dB", 1.0)], least: -200.0, most: 200.0, accepted: "decibels such as \"-7.7 dB\"" };
/// A power ratio of at least one.
pub(crate) const DECIBEL_FROM_ZERO: Physical = Physical {
    units: &[("dB", 1.0)],
    least: 0.0,
    most: 200.0,
    accepted: "decibels of 0 or more such as \"0.5 dB\"",
};

/// A frequency in GHz.
pub(crate) const GIGAHERTZ: Physical = Physical {
    units: &[("GHz", 1.0), ("MHz", 1e-3)],
    least: 0.0,
    most: 1000.0,
    accepted: "a frequency such as \"20 GHz\" (MHz, GHz)",
};
/// An angle; callers check narrower limits.
pub(crate) const ANGLE: Physical = Physical {
    units: &[("deg", 1.0)],
    least: -360.0,
    most: 360.0,
    accepted: "an angle from -360 deg to 360 deg such as \"37.9 deg\" or \"-122.3 deg\"",
};
/// A distance; callers check narrower limits.
pub(crate) const DISTANCE: Physical = Physical {
    units: &[("km", 1.0)],
    least: 0.0,
    most: 1e6,
    accepted: "a distance of at most 1000000 km such as \"780 km\"",
};
/// An angle of at most 180 degrees.
pub(crate) const DEGREES: Physical =
    Physical { units: &[("deg", 1.0)], least: -180.0, most: 180.0, accepted: "degrees such as \"35 deg\"" };
/// A height in km.
pub(crate) const KILOMETRES: Physical = Physical {
    units: &[("km", 1.0), ("m", 1e-3)],
    least: 0.0,
    most: 1e6,
    accepted: "a height such as \"3 km\" (m, km)",
};
/// Rain rate in mm/h.
pub(crate) const RAIN_RATE: Physical = Physical {
    units: &[("mm/h", 1.0)],
    least: 0.0,
    most: 1000.0,
    accepted: "a rain rate of 0 or more such as \"20 mm/h\"",
};

/// Codec of symbols per second.
pub(crate) struct SymbolRate;

/// Codec of symbols per second.
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
        let text = match value {
            Value::Text(text) => text.trim(),
            // A bare number lacks its unit, but the intended one is obvious.
            Value::Whole(_) | Value::Real(_) => {
                return Err(Refused::meant(Some(format!("{value} {}", self.units[0].0))));
            }
            _ => return Err(Refused::default()),
        };
        let (number, unit) = text.split_at(number_length(text));
        let number: f64 = number.parse().map_err(|_| Refused::default())?;
        let unit = unit.trim();
        let Some((_, factor)) = self.units.iter().find(|(name, _)| *name == unit) else {
            let names: Vec<_> = self.units.iter().map(|(name, _)| *name).collect();
            return Err(Refused::meant(habit::meant(number, unit, names.into_iter())));
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

/// Returns the length of the number at the start of a text, including an exponent.
pub(crate) fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_exponent = |at: usize| {
        let behind =
            bytes.get(at + 1).is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+'));
        at > 0 && matches!(bytes[at], b'e' | b'E') && behind
    };
    let is_part =
        |at: usize| bytes[at].is_ascii_digit() || matches!(bytes[at], b'.' | b'-' | b'+') || is_exponent(at);
    (0..bytes.len()).find(|at| !is_part(*at)).unwrap_or(bytes.len())
}

/// Codec of a list of angles.
pub(crate) struct Angles;

impl Codec<Vec<f64>> for Angles {
    fn read(&self, value: &Value) -> Result<Vec<f64>, Refused> {
        let Value::List(items) = value else { return Err(Refused::default()) };
        items.iter().map(|item| ANGLE.read(&item.value)).collect()
    }
    fn show(&self, typed: &Vec<f64>) -> Value {
        Value::List(typed.iter().map(|angle| Node::computed(ANGLE.show(angle))).collect())
    }
    fn accepted(&self) -> String {
        "angles such as [\"-95 deg\", \"19.2 deg\"]".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(codec: &Physical, text: &str) -> Result<f64, Refused> {
        codec.read(&Value::Text(text.to_owned()))
    }

    #[test]
    fn numbers_may_have_exponents_and_any_of_the_units() {
        assert_eq!(read(&DISTANCE, "7.8e2 km"), Ok(780.0));
        assert_eq!(read(&GIGAHERTZ, "2E4MHz"), Ok(20.0));
        assert_eq!(read(&ANGLE, "-1.5e+1deg"), Ok(-15.0));
        for wrong in ["", "e3 km", "1e km", "inf km", "3", "1 2 km", "1e400 km"] {
            assert!(read(&DISTANCE, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_bare_number_is_answered_with_its_unit() {
        let suggested = |codec: &Physical, value| codec.read(&value).unwrap_err().suggestion;
        assert_eq!(suggested(&DECIBEL, Value::Whole(-7)).as_deref(), Some("\"-7 dB\""));
        assert_eq!(suggested(&ANGLE, Value::Real(37.9)).as_deref(), Some("\"37.9 deg\""));
        assert_eq!(suggested(&DISTANCE, Value::Text("780e3 m".to_owned())).as_deref(), Some("\"780 km\""));
    }
}
