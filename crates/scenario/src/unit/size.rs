//! Sizes: real numbers of segments, bytes, and bytes written as segments.

use super::measure::{SEGMENT_UNITS, SEGMENTS, Unit, at_least, counted, measure};
use super::physical::number_length;
use super::{Codec, Refused};
use crate::tree::Value;

const BYTE_UNITS: &[Unit] = &[
    ("bytes", 1),
    ("byte", 1),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Codec of a real number of segments.
pub(crate) struct Segments;

impl Codec<f64> for Segments {
    fn read(&self, value: &Value) -> Result<f64, Refused> {
        let Value::Text(text) = value else { return Err(Refused::default()) };
        measure(text, SEGMENT_UNITS)?;
        let number = &text.trim()[..number_length(text.trim())];
        match number.trim().parse() {
            Ok(segments) if segments > MOST_SEGMENTS => {
                Err(Refused::beyond(format!("\"{MOST_SEGMENTS} segments\"")))
            }
            Ok(segments) if segments >= 1.0 => Ok(segments),
            _ => Err(Refused::default()),
        }
    }
    fn show(&self, typed: &f64) -> Value {
        let unit = if *typed == 1.0 { "segment" } else { "segments" };
        Value::Text(format!("{typed} {unit}"))
    }
    fn accepted(&self) -> String {
        Codec::<u32>::accepted(&SEGMENTS)
    }
}

/// Codec of a number of bytes, at least `least`; also in segments if their size is known.
#[derive(Clone, Copy)]
pub(crate) struct Bytes {
    least: u64,
    most: u64,
    segment: Option<u32>,
}

/// Maximum size of an IP packet.
pub(crate) const MOST_PACKET_BYTES: u64 = 65_535;
/// Maximum size: 1 PB.
const MOST_BYTES: u64 = 1_000_000_000_000_000;
/// Maximum real number of segments.
const MOST_SEGMENTS: f64 = 1e7;

impl Bytes {
    /// At least one byte.
    pub const ANY: Self = Self { least: 1, most: MOST_BYTES, segment: None };
    /// A size that fits one packet.
    pub const PACKET: Self = Self { least: 1, most: MOST_PACKET_BYTES, segment: None };

    /// Accepts at least `least` bytes.
    pub const fn at_least(least: u64) -> Self {
        Self { least, most: MOST_BYTES, segment: None }
    }

    /// Accepts at least one segment of `mss` bytes, written in bytes or segments.
    pub const fn or_segments(mss: u32) -> Self {
        Self { least: mss as u64, most: MOST_BYTES, segment: Some(mss) }
    }

    /// Accepts down to one byte.
    pub const fn down_to_one(self) -> Self {
        Self { least: 1, ..self }
    }

    /// Returns the maximum in its usual notation.
    fn limit(self) -> String {
        let gigabytes = self.most / 1_000_000_000;
        if gigabytes > 0 { format!("\"{gigabytes} GB\"") } else { format!("\"{} bytes\"", self.most) }
    }

    fn amount(self, text: &str) -> Result<u64, Refused> {
        let bytes = measure(text, BYTE_UNITS);
        let Some(segment) = self.segment else { return bytes };
        match measure(text, SEGMENT_UNITS) {
            Ok(segments) => Ok(segments.saturating_mul(u64::from(segment))),
            Err(refused) => bytes.or(Err(refused)),
        }
    }
}

impl Codec<u64> for Bytes {
    fn read(&self, value: &Value) -> Result<u64, Refused> {
        match value {
            Value::Text(text) => match self.amount(text)? {
                amount if amount > self.most => Err(Refused::beyond(self.limit())),
                amount => at_least(self.least, amount),
            },
            _ => Err(Refused::default()),
        }
    }

    fn show(&self, typed: &u64) -> Value {
        Value::Text(match self.segment.map(u64::from) {
            Some(mss) if *typed > 0 && typed.is_multiple_of(mss) => counted(typed / mss, "segment"),
            _ if *typed > 0 && typed.is_multiple_of(1 << 20) => format!("{} MiB", typed >> 20),
            _ if *typed > 0 && typed.is_multiple_of(1 << 10) => format!("{} KiB", typed >> 10),
            _ => counted(*typed, "byte"),
        })
    }

    fn accepted(&self) -> String {
        let units = "bytes, kB, MB, GB, KiB, MiB, GiB";
        match self.segment {
            Some(_) if self.least > 1 => {
                format!(
                    "at least 1 segment, which is {} bytes, such as \"64 segments\" (segments, {units})",
                    self.least
                )
            }
            Some(_) => format!("a size such as \"64 segments\" or \"64 KiB\" (segments, {units})"),
            None => {
                format!("a size of {} or more such as \"1000 bytes\" ({units})", counted(self.least, "byte"))
            }
        }
    }
}

impl Codec<u32> for Bytes {
    fn read(&self, value: &Value) -> Result<u32, Refused> {
        let amount: u64 = self.read(value)?;
        u32::try_from(amount).map_err(|_| Refused::beyond(Self { most: u32::MAX.into(), ..*self }.limit()))
    }
    fn show(&self, typed: &u32) -> Value {
        // Packet sizes are always shown in bytes.
        Value::Text(counted(u64::from(*typed), "byte"))
    }
    fn accepted(&self) -> String {
        Codec::<u64>::accepted(self)
    }
}
