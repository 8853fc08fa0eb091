//! Queue limits and queue levels in packets or bytes.

use bentpipe_net::{Limit, RedUnit};

use super::physical::number_length;
use super::{Bytes, Codec, Refused, habit};
use crate::tree::Value;

/// Codec of `"50 packets"` or `"64 KiB"`, at least one.
pub(crate) struct Room;

/// Codec of `"50 packets"` or `"64 KiB"`, at least one.
pub(crate) const ROOM: Room = Room;

impl Codec<Limit> for Room {
    fn read(&self, value: &Value) -> Result<Limit, Refused> {
        match number_of(value, &["packets", "packet"]) {
            Some(number) => whole(number).map(Limit::Packets),
            None => {
                Bytes::ANY.read(value).map(Limit::Bytes).map_err(|refused| meant(value).unwrap_or(refused))
            }
        }
    }
    fn show(&self, typed: &Limit) -> Value {
        match typed {
            Limit::Packets(packets) => Self.show(packets),
            Limit::Bytes(bytes) => Bytes::ANY.show(bytes),
        }
    }
    fn accepted(&self) -> String {
        "at least 1 packet or byte, such as \"50 packets\" or \"64 KiB\"".to_owned()
    }
}

/// Packets only.
impl Codec<u32> for Room {
    fn read(&self, value: &Value) -> Result<u32, Refused> {
        number_of(value, &["packets", "packet"]).map_or_else(|| Err(Refused::default()), whole)
    }
    fn show(&self, typed: &u32) -> Value {
        Value::Text(if *typed == 1 { "1 packet".to_owned() } else { format!("{typed} packets") })
    }
    fn accepted(&self) -> String {
        "at least 1 packet, such as \"50 packets\"".to_owned()
    }
}

/// Codec of an average queue length with its unit.
pub(crate) struct Level;

impl Codec<(f64, RedUnit)> for Level {
    fn read(&self, value: &Value) -> Result<(f64, RedUnit), Refused> {
        let in_unit = |unit| LevelIn(unit).read(value).map(|level| (level, unit));
        in_unit(RedUnit::Packets).or_else(|_| in_unit(RedUnit::Bytes))
    }
    fn show(&self, typed: &(f64, RedUnit)) -> Value {
        LevelIn(typed.1).show(&typed.0)
    }
    fn accepted(&self) -> String {
        "a queue length such as \"5 packets\" or \"5000 bytes\"".to_owned()
    }
}

/// Codec of an average queue length in a known unit.
pub(crate) struct LevelIn(pub RedUnit);

impl LevelIn {
    fn unit(&self) -> &'static str {
        match self.0 {
            RedUnit::Packets => "packets",
            RedUnit::Bytes => "bytes",
        }
    }
}

impl Codec<f64> for LevelIn {
    fn read(&self, value: &Value) -> Result<f64, Refused> {
        let number = number_of(value, &[self.unit()]).and_then(|number| number.parse().ok());
        number.filter(|level: &f64| *level >= 0.0 && level.is_finite()).ok_or_else(Refused::default)
    }
    fn show(&self, typed: &f64) -> Value {
        Value::Text(format!("{typed} {}", self.unit()))
    }
    fn accepted(&self) -> String {
        let unit = self.unit();
        format!("a queue length such as \"15 {unit}\", in the unit of min-threshold")
    }
}

/// Returns the number before one of `units`.
fn number_of<'a>(value: &'a Value, units: &[&str]) -> Option<&'a str> {
    let Value::Text(text) = value else { return None };
    units.iter().find_map(|unit| text.strip_suffix(unit)).map(str::trim)
}

/// Maximum number of packets in a queue.
const MOST_PACKETS: u32 = 10_000_000;

fn whole(number: &str) -> Result<u32, Refused> {
    match number.parse::<f64>() {
        Ok(packets) if packets > f64::from(MOST_PACKETS) => {
            Err(Refused::beyond(format!("\"{MOST_PACKETS} packets\"")))
        }
        _ => number.parse().ok().filter(|number| *number > 0).ok_or_else(Refused::default),
    }
}

/// Returns the meaning of another spelling of packets.
fn meant(value: &Value) -> Option<Refused> {
    let Value::Text(text) = value else { return None };
    let (number, unit) = text.trim().split_at(number_length(text.trim()));
    let meant = habit::meant(number.trim().parse().ok()?, unit.trim(), ["packets"].into_iter())?;
    Some(Refused::meant(Some(meant)))
}
