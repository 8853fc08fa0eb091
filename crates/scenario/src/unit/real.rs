//! Real numbers with one unit: angles and distances.

use super::{Codec, Refused};
use crate::tree::Value;

/// A real number in one unit, of either sign.
pub(crate) struct Real {
    unit: &'static str,
    accepted: &'static str,
}

/// An angle in degrees; what is accepted besides is up to those who use it.
pub(crate) const ANGLE: Real =
    Real { unit: "deg", accepted: "an angle such as \"37.9 deg\" or \"-122.3 deg\"" };
/// A distance in kilometres.
pub(crate) const DISTANCE: Real = Real { unit: "km", accepted: "a distance such as \"780 km\"" };

impl Codec<f64> for Real {
    fn read(&self, value: &Value) -> Result<f64, Refused> {
        let parse = |number: &str| number.trim().parse().ok().filter(|number: &f64| number.is_finite());
        let number = match value {
            Value::Text(text) => text.trim().strip_suffix(self.unit).and_then(parse),
            // A bare number has no unit, but it is plain which one was meant.
            Value::Whole(_) | Value::Real(_) => {
                let suggestion = Some(format!("\"{value} {}\"", self.unit));
                return Err(Refused { suggestion });
            }
            _ => None,
        };
        number.ok_or_else(Refused::default)
    }
    fn show(&self, typed: &f64) -> Value {
        Value::Text(format!("{typed} {}", self.unit))
    }
    fn accepted(&self) -> String {
        self.accepted.to_owned()
    }
}

/// A list of angles.
pub(crate) struct Angles;

impl Codec<Vec<f64>> for Angles {
    fn read(&self, value: &Value) -> Result<Vec<f64>, Refused> {
        let Value::List(items) = value else { return Err(Refused::default()) };
        items.iter().map(|item| ANGLE.read(&item.value)).collect()
    }
    fn show(&self, typed: &Vec<f64>) -> Value {
        Value::List(typed.iter().map(|angle| crate::tree::Node::computed(ANGLE.show(angle))).collect())
    }
    fn accepted(&self) -> String {
        "angles such as [\"-95 deg\", \"19.2 deg\"]".to_owned()
    }
}
