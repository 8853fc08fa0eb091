//! Range checks of parameters read from a scenario.

use serde::de::{Deserialize, Deserializer, Error};

/// Reads a number strictly between zero and one.
pub fn fraction<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if value > 0.0 && value < 1.0 {
        Ok(value)
    } else {
        Err(D::Error::custom(format_args!("{value} is not between 0 and 1")))
    }
}

/// Reads a finite number above zero.
pub fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(D::Error::custom(format_args!("{value} is not a positive number")))
    }
}

/// Reads a finite number that is zero or above.
pub fn not_negative<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if value >= 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(D::Error::custom(format_args!("{value} is negative or not a number")))
    }
}

/// Reads a finite number that is zero or above.
pub fn at_least_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if value >= 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(D::Error::custom(format_args!("{value} is not zero or a positive number")))
    }
}
