//! Positions and heights of the points of a figure.

use serde::{Serialize, Serializer};

/// A position on a horizontal axis.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Position {
    /// On a scale.
    Number(Number),
    /// A category.
    Text(String),
}

/// A number written with seven significant digits, which is plenty for a chart and halves the file.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rounded = format!("{:.6e}", self.0).parse().unwrap_or(self.0);
        serializer.serialize_f64(rounded)
    }
}
