use std::fmt;

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::Algorithm;
use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::algorithm::own_algorithms;
use crate::suggest::did_you_mean;
use crate::tree::{Entry, Node, Value};
use crate::unit::{Codec, RATE, TIME};

/// Reason why a parameter was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The parameter as written.
    pub key: String,
    /// True if there is no such parameter; false if its value is invalid.
    pub unknown: bool,
    /// Description of the accepted values.
    pub accepted: String,
    /// Value that was probably meant.
    pub suggestion: Option<String>,
}

/// Returns the algorithm registered as `law` with the parameters in `entries`.
pub(crate) fn read(law: &str, entries: &[&Entry]) -> Result<Algorithm, Fault> {
    if let Some(own) = own_algorithms().iter().find(|custom| custom.name == law) {
        let none = |entry: &&&Entry| <Fault as de::Error>::unknown_field(&entry.key, &[]);
        return entries.first().as_ref().map_or(Ok(Algorithm::Custom(own.clone())), |entry| Err(none(entry)));
    }
    let algorithm = Algorithm::from_parameters(law, Parameters { entries, current: None })?;
    Ok(algorithm.expect("the name was resolved before"))
}

/// Returns the description of the values that the parameter `key` accepts.
pub(crate) fn accepted(law: &str, key: &str) -> String {
    // No parameter is a list.
    let node = Node::computed(Value::List(Vec::new()));
    let entry = Entry { key: key.to_owned(), place: node.place.clone(), node };
    read(law, &[&entry]).err().map(|fault| fault.accepted).unwrap_or_default()
}

impl Fault {
    fn of_value(accepted: impl fmt::Display) -> Self {
        let accepted = match accepted.to_string().as_str() {
            "f32" | "f64" => "a number".to_owned(),
            "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of 0 or more".to_owned(),
            "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
            "a boolean" => "true or false".to_owned(),
            other => other.to_owned(),
        };
        Self { key: String::new(), unknown: false, accepted, suggestion: None }
    }

    fn at(self, key: &str) -> Self {
        let key = if self.key.is_empty() { key.to_owned() } else { self.key };
        Self { key, ..self }
    }

    fn of_word(typed: &str, known: &[&str]) -> Self {
        let suggestion = did_you_mean(typed, known).map(|word| format!("\"{word}\""));
        let words: Vec<_> = known.iter().map(|word| format!("\"{word}\"")).collect();
        Self { key: String::new(), unknown: false, accepted: words.join(", "), suggestion }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: accepted: {}", self.key, self.accepted)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::of_value(format_args!("a value that fits ({message})"))
    }
    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::of_value(expected)
    }
    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::of_value(expected)
    }
    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::of_word(variant, expected)
    }
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let known: Vec<_> = expected.iter().map(|field| hyphened(field)).collect();
        let key = hyphened(field);
        let suggestion = did_you_mean(&key, &known).map(|key| format!("`{key}`"));
        let accepted = if known.is_empty() {
            "none, for this algorithm has no parameters".to_owned()
        } else {
            known.join(", ")
        };
        Self { key, unknown: true, accepted, suggestion }
    }
}

fn hyphened(field: &str) -> String {
    field.replace('_', "-")
}

/// The parameters as a serde map.
struct Parameters<'a> {
    entries: &'a [&'a Entry],
    /// Entry whose value is read next.
    current: Option<&'a Entry>,
}

impl<'de> Deserializer<'de> for Parameters<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Parameters<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((entry, rest)) = self.entries.split_first() else { return Ok(None) };
        self.entries = rest;
        self.current = Some(entry);
        // Parameters are written with hyphens, so a name with an underscore must not
        // match.
        let field = entry.key.replace('_', " ").replace('-', "_");
        let key = seed.deserialize(field.into_deserializer());
        key.map(Some).map_err(|fault: Fault| Fault { key: entry.key.clone(), ..fault })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let entry = self.current.take().expect("a key comes before its value");
        seed.deserialize(Parameter(&entry.node)).map_err(|fault| fault.at(&entry.key))
    }
}

/// A single value.
struct Parameter<'a>(&'a Node);

impl Parameter<'_> {
    /// Reads a quantity with a unit, which the configuration type holds as a bare number.
    fn quantity<T>(&self, codec: &impl Codec<T>) -> Result<T, Fault> {
        codec
            .read(&self.0.value)
            .map_err(|refused| Fault { suggestion: refused.suggestion, ..Fault::of_value(codec.accepted()) })
    }
}

impl<'de> Deserializer<'de> for Parameter<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Text(text) => visitor.visit_str(text),
            Value::Whole(number) => visitor.visit_i64(*number),
            Value::Real(number) => visitor.visit_f64(*number),
            Value::Flag(flag) => visitor.visit_bool(*flag),
            Value::List(_) | Value::Table(_) => Err(de::Error::invalid_type(Unexpected::Map, &visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Text(text) if text == "off" => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match name {
            "Duration" => {
                let time: Duration = self.quantity(&TIME)?;
                visitor.visit_newtype_struct(time.as_nanos().into_deserializer())
            }
            "Rate" => {
                let rate: Rate = self.quantity(&RATE)?;
                visitor.visit_newtype_struct(rate.bps().into_deserializer())
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Text(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            _ => Err(Fault::of_word("", variants)),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}
