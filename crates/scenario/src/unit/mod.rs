//! Codecs of single values: one per kind of quantity, for reading and showing.

mod amount;
mod date;
mod habit;
mod measure;
mod number;
mod physical;
mod room;
mod size;
mod word;

pub(crate) use amount::{AMOUNT, Amount};
pub(crate) use date::{Date, since_1970};
pub(crate) use measure::{RATE, SEGMENTS, SEGMENTS_FROM_ZERO, TIME, TIME_ABOVE_ZERO};
pub(crate) use number::{
    AT_LEAST_ONE, CORRELATION, COUNT, Count, FACTOR, FEW, FLAG, FRAME_RATE, MEMBERS, PART, PHASING,
    PROBABILITY, SHAPE,
};
pub(crate) use physical::{
    ANGLE, Angles, DECIBEL, DECIBEL_FROM_ZERO, DEGREES, DISTANCE, GIGAHERTZ, KILOMETRES, RAIN_RATE,
    SYMBOL_RATE, number_length,
};
pub(crate) use room::{Level, LevelIn, ROOM};
pub(crate) use size::{Bytes, MOST_PACKET_BYTES, Segments};
pub(crate) use word::{FlagOrWord, Initial, Names, OrWord, TEXT, Words};

use crate::tree::Value;

/// Reads a value, and shows it in the same form.
pub(crate) trait Codec<T> {
    /// Returns the typed value, or the reason for refusing it.
    fn read(&self, value: &Value) -> Result<T, Refused>;
    /// Returns a value that reads back as `typed`.
    fn show(&self, typed: &T) -> Value;
    /// Returns the accepted form, for the error message.
    fn accepted(&self) -> String;
}

/// A value that the codec does not accept.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Value that was probably meant, quoted as in the file.
    pub suggestion: Option<String>,
    /// Limit that the value exceeds, if the value has the right kind.
    pub limit: Option<String>,
}

impl Refused {
    /// Refuses a value of the right kind above `limit`.
    pub fn beyond(limit: impl std::fmt::Display) -> Self {
        Self { suggestion: None, limit: Some(format!("at most {limit}")) }
    }

    /// Refuses a value that was probably meant as `text`, with the same meaning.
    pub fn meant(text: Option<impl std::fmt::Display>) -> Self {
        Self { suggestion: text.map(|text| format!("\"{text}\"")), limit: None }
    }
}

/// Reads a number of bytes such as `"4 GB"` or `"512 MiB"`, at least one byte.
///
/// # Errors
/// A message with what was found and what is accepted.
pub fn read_bytes(text: &str) -> Result<u64, String> {
    Codec::<u64>::read(&Bytes::ANY, &Value::Text(text.to_owned())).map_err(|refused| {
        let accepted = refused.limit.unwrap_or_else(|| Codec::<u64>::accepted(&Bytes::ANY));
        let hint = refused.suggestion.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        format!("found \"{text}\", accepted: {accepted}{hint}")
    })
}
