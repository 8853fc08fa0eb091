//! Text and numbers of a page in few bytes; `assets/charts.js` and `assets/report.js` read them.

use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::{Serialize, Serializer};

use super::value::{Number, Position};

/// Text as base64 of its zlib stream.
///
/// # Errors
/// Those of the compressor.
pub fn packed(text: &str) -> io::Result<String> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    Ok(BASE64_STANDARD.encode(encoder.finish()?))
}

/// Significant digits kept of the largest number of a long column; a chart 1000 pixels high shows three.
const DIGITS: f64 = 5.0;
/// The most digits behind the decimal point.
const MOST_DECIMALS: f64 = 15.0;
/// Columns of fewer numbers are written out.
const SHORT: usize = 40;

/// A column of a trace.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Column<'a, T> {
    /// The values as they are.
    Plain(&'a [T]),
    /// Differences between neighbours, in units of `1 / scale`; `null` is a gap, which the next difference skips.
    Differences { scale: f64, by: Vec<Option<i64>> },
}

/// A value of a column: a number, a gap or text.
pub trait Value {
    /// The number; `Some(None)` for a gap, `None` for text.
    fn number(&self) -> Option<Option<f64>>;
}

impl Value for Position {
    fn number(&self) -> Option<Option<f64>> {
        match self {
            Self::Number(Number(number)) => Some(Some(*number)),
            Self::Text(_) => None,
        }
    }
}

impl Value for Option<Number> {
    fn number(&self) -> Option<Option<f64>> {
        Some(self.map(|Number(number)| number))
    }
}

impl<'a, T: Value> Column<'a, T> {
    /// The shortest form of `values`.
    pub fn of(values: &'a [T]) -> Self {
        let numbers: Option<Vec<Option<f64>>> = values.iter().map(Value::number).collect();
        let Some(numbers) = numbers.filter(|numbers| numbers.len() >= SHORT) else {
            return Self::Plain(values);
        };
        let largest = numbers.iter().flatten().fold(0.0_f64, |most, number| most.max(number.abs()));
        let behind = if largest > 0.0 { DIGITS - 1.0 - largest.log10().floor() } else { 0.0 };
        let scale = 10_f64.powi(behind.clamp(0.0, MOST_DECIMALS) as i32);
        let mut last = 0;
        let by = numbers.iter().map(|number| {
            let units = (number.as_ref()? * scale).round() as i64;
            Some(units - std::mem::replace(&mut last, units))
        });
        Self::Differences { scale, by: by.collect() }
    }
}

/// Writes a column of a trace.
pub fn column<T: Value + Serialize, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    Column::of(values).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn numbers(of: impl Iterator<Item = f64>) -> Vec<Option<Number>> {
        of.map(|number| Some(Number(number))).collect()
    }

    #[test]
    fn text_comes_back() {
        let text = "curve ".repeat(1000);
        let short = packed(&text).unwrap();
        assert!(short.len() < 100, "{short}");
        let bytes = BASE64_STANDARD.decode(short).unwrap();
        let mut back = String::new();
        flate2::read::ZlibDecoder::new(bytes.as_slice()).read_to_string(&mut back).unwrap();
        assert_eq!(back, text);
    }

    #[test]
    fn a_long_column_keeps_five_digits_of_its_largest_number() {
        for largest in [1e-6, 0.02, 5.5, 550.0, 123_456.0, 7.7e9] {
            let values = numbers((0..1000).map(|i| largest * f64::from(i * 7919 % 1000) / 999.0));
            let Column::Differences { scale, by } = Column::of(&values) else {
                panic!("1000 numbers are many")
            };
            let mut units = 0;
            for (value, by) in values.iter().zip(by) {
                units += by.unwrap();
                let (was, is) = (value.unwrap().0, units as f64 / scale);
                assert!((is - was).abs() <= 0.5e-4 * largest, "{was} became {is}");
            }
        }
    }

    #[test]
    fn gaps_stay_and_text_and_short_columns_are_written_out() {
        let mut values = numbers((0..100).map(f64::from));
        values[50] = None;
        let json = serde_json::to_value(Column::of(&values)).unwrap();
        assert_eq!(json["by"][49], 1000);
        assert!(json["by"][50].is_null());
        assert_eq!(json["by"][51], 2000);
        assert!(matches!(Column::of(&values[..39]), Column::Plain(_)));
        let names = vec![Position::Text("a".into()); 100];
        assert!(matches!(Column::of(&names), Column::Plain(_)));
    }
}
