//! How single values are written: one codec for each kind of quantity, reading and showing.

mod measure;
mod number;
mod physical;
mod room;
mod size;
mod word;

pub(crate) use measure::{RATE, SEGMENTS, SEGMENTS_FROM_ZERO, TIME, TIME_ABOVE_ZERO};
pub(crate) use number::{COUNT, Count, FACTOR, FLAG, FRAME_RATE, PART, PHASING, PROBABILITY, SHAPE};
pub(crate) use physical::{
    ANGLE, Angles, DECIBEL, DECIBEL_FROM_ZERO, DEGREES, DISTANCE, GIGAHERTZ, KILOMETRES, RAIN_RATE,
    SYMBOL_RATE,
};
pub(crate) use room::{Level, LevelIn, ROOM};
pub(crate) use size::{Bytes, Segments};
pub(crate) use word::{Initial, Names, OrWord, TEXT, Words};

use crate::tree::Value;

/// Reads a value and shows it in the same way.
pub(crate) trait Codec<T> {
    /// The typed value, or why not.
    fn read(&self, value: &Value) -> Result<T, Refused>;
    /// What reads back as `typed`.
    fn show(&self, typed: &T) -> Value;
    /// What is accepted, for the error message.
    fn accepted(&self) -> String;
}

/// A value is not what the codec accepts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused {
    /// What was probably meant, quoted as in the file.
    pub suggestion: Option<String>,
}
