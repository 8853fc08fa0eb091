use std::fmt;

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::Algorithm;
use serde::ser::{self, Impossible, Serialize, SerializeStruct, Serializer};

use crate::tree::{Node, Table, Value};

/// Returns the parameters of `algorithm` as a table; empty for a user's own algorithm, whose
/// parameters are unknown.
pub(crate) fn show(algorithm: &Algorithm) -> Table {
    algorithm.parameters(Parameters).expect("an algorithm's parameters are scalars")
}

/// Error for a parameter that is not a scalar, a mistake of the algorithm's author.
#[derive(Debug)]
pub(crate) struct NoScalar(String);

impl fmt::Display for NoScalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoScalar {}

impl ser::Error for NoScalar {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

fn no_scalar<T>(what: &str) -> Result<T, NoScalar> {
    Err(NoScalar(format!("{what} is no scalar")))
}

macro_rules! refuse_scalars {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, _: $type) -> Result<Table, NoScalar> { no_scalar("the configuration") })*
    };
}

/// Methods that a serializer of scalars, or of one struct of scalars, does not support.
macro_rules! refuse_compounds {
    () => {
        type SerializeSeq = Impossible<Self::Ok, NoScalar>;
        type SerializeTuple = Impossible<Self::Ok, NoScalar>;
        type SerializeTupleStruct = Impossible<Self::Ok, NoScalar>;
        type SerializeTupleVariant = Impossible<Self::Ok, NoScalar>;
        type SerializeMap = Impossible<Self::Ok, NoScalar>;
        type SerializeStructVariant = Impossible<Self::Ok, NoScalar>;

        fn serialize_bytes(self, _: &[u8]) -> Result<Self::Ok, NoScalar> {
            no_scalar("a byte string")
        }
        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            variant: &'static str,
            _: &T,
        ) -> Result<Self::Ok, NoScalar> {
            no_scalar(variant)
        }
        fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, NoScalar> {
            no_scalar("a sequence")
        }
        fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, NoScalar> {
            no_scalar("a tuple")
        }
        fn serialize_tuple_struct(
            self,
            name: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleStruct, NoScalar> {
            no_scalar(name)
        }
        fn serialize_tuple_variant(
            self,
            _: &'static str,
            _: u32,
            variant: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleVariant, NoScalar> {
            no_scalar(variant)
        }
        fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, NoScalar> {
            no_scalar("a map")
        }
        fn serialize_struct_variant(
            self,
            _: &'static str,
            _: u32,
            variant: &'static str,
            _: usize,
        ) -> Result<Self::SerializeStructVariant, NoScalar> {
            no_scalar(variant)
        }
    };
}

/// Serializer of an algorithm's configuration: one struct, or nothing.
struct Parameters;

impl Serializer for Parameters {
    type Ok = Table;
    type Error = NoScalar;
    type SerializeStruct = Fields;

    refuse_compounds!();
    refuse_scalars!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_f32: f32,
        serialize_f64: f64, serialize_char: char, serialize_str: &str
    );

    fn serialize_none(self) -> Result<Table, NoScalar> {
        Ok(Table::default())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Table, NoScalar> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<Table, NoScalar> {
        Ok(Table::default())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<Table, NoScalar> {
        Ok(Table::default())
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Table, NoScalar> {
        no_scalar(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Table, NoScalar> {
        value.serialize(self)
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields, NoScalar> {
        Ok(Fields(Table::default()))
    }
}

/// Fields serialized so far.
struct Fields(Table);

impl SerializeStruct for Fields {
    type Ok = Table;
    type Error = NoScalar;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), NoScalar> {
        self.0.put(&key.replace('_', "-"), Node::computed(value.serialize(Parameter)?));
        Ok(())
    }

    fn end(self) -> Result<Table, NoScalar> {
        Ok(self.0)
    }
}

/// Serializer of one scalar.
struct Parameter;

macro_rules! show_scalars {
    ($($method:ident: $type:ty => $variant:ident),*) => {
        $(fn $method(self, value: $type) -> Result<Value, NoScalar> { Ok(Value::$variant(value.into())) })*
    };
}

impl Serializer for Parameter {
    type Ok = Value;
    type Error = NoScalar;
    type SerializeStruct = Impossible<Value, NoScalar>;

    refuse_compounds!();
    show_scalars!(
        serialize_bool: bool => Flag, serialize_i8: i8 => Whole, serialize_i16: i16 => Whole,
        serialize_i32: i32 => Whole, serialize_i64: i64 => Whole, serialize_u8: u8 => Whole,
        serialize_u16: u16 => Whole, serialize_u32: u32 => Whole, serialize_f32: f32 => Real,
        serialize_f64: f64 => Real, serialize_char: char => Text, serialize_str: &str => Text
    );

    fn serialize_u64(self, value: u64) -> Result<Value, NoScalar> {
        i64::try_from(value).map(Value::Whole).map_err(ser::Error::custom)
    }
    fn serialize_none(self) -> Result<Value, NoScalar> {
        Ok(Value::Text("off".to_owned()))
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, NoScalar> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<Value, NoScalar> {
        no_scalar("a unit")
    }
    fn serialize_unit_struct(self, name: &'static str) -> Result<Value, NoScalar> {
        no_scalar(name)
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, NoScalar> {
        Ok(Value::Text(variant.to_owned()))
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Value, NoScalar> {
        let bare = value.serialize(Self)?;
        Ok(match (name, bare) {
            ("Duration", Value::Whole(nanos)) => {
                Value::Text(Duration::from_nanos(nanos.unsigned_abs()).to_string())
            }
            ("Rate", Value::Whole(bps)) => Value::Text(Rate::from_bps(bps.unsigned_abs()).to_string()),
            (_, bare) => bare,
        })
    }
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Self::SerializeStruct, NoScalar> {
        no_scalar(name)
    }
}
