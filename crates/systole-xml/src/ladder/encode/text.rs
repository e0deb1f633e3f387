//! Simple values.

use std::fmt::Write;

use serde::Serialize;
use serde::ser::{Impossible, Serializer};

use super::{EncodeError, Unencodable};
use crate::ladder::escape::{EscapeContext, escape_into};

/// Writes one simple value as character data; returns whether there was a value.
pub(super) struct Text<'a> {
    pub(super) out: &'a mut String,
    pub(super) place: EscapeContext,
    /// True for the value in an Option.
    pub(super) held: bool,
}

impl Text<'_> {
    fn plain(self, value: impl std::fmt::Display) -> Result<bool, EncodeError> {
        // Writing to a String can't fail.
        let _ = write!(self.out, "{value}");
        Ok(true)
    }
}

/// A number in the lexical space of `xs:double`, as the encoder writes it.
pub(crate) fn float_text(value: f64) -> String {
    let mut out = String::new();
    float(&mut out, value, format_args!("{value}"), format_args!("{value:E}"));
    out
}

/// Appends the shortest form of a float that is read back as the same value.
fn float(out: &mut String, value: f64, plain: std::fmt::Arguments<'_>, exponent: std::fmt::Arguments<'_>) {
    let _ = match value {
        v if v.is_nan() => out.write_str("NaN"),
        f64::INFINITY => out.write_str("INF"),
        f64::NEG_INFINITY => out.write_str("-INF"),
        v if v == 0.0 || (1e-5..1e16).contains(&v.abs()) => out.write_fmt(plain),
        _ => out.write_fmt(exponent),
    };
}

macro_rules! plain {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method(self, value: $type) -> Result<bool, EncodeError> { self.plain(value) })*
    };
}

macro_rules! refused {
    ($($method:ident($($arg:ty),*) -> $ok:ty: $shape:ident,)*) => {
        $(fn $method(self, $(_: $arg),*) -> Result<$ok, EncodeError> { Err(EncodeError::shape(Unencodable::$shape)) })*
    };
}
pub(super) use refused;

impl Serializer for Text<'_> {
    type Ok = bool;
    type Error = EncodeError;
    type SerializeSeq = Impossible<bool, EncodeError>;
    type SerializeTuple = Impossible<bool, EncodeError>;
    type SerializeTupleStruct = Impossible<bool, EncodeError>;
    type SerializeTupleVariant = Impossible<bool, EncodeError>;
    type SerializeMap = Impossible<bool, EncodeError>;
    type SerializeStruct = Impossible<bool, EncodeError>;
    type SerializeStructVariant = Impossible<bool, EncodeError>;

    plain! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
    }

    refused! {
        serialize_bytes(&[u8]) -> bool: Bytes,
        serialize_unit() -> bool: Absent,
        serialize_unit_struct(&'static str) -> bool: Absent,
        serialize_seq(Option<usize>) -> Self::SerializeSeq: List,
        serialize_tuple(usize) -> Self::SerializeTuple: List,
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct: List,
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant: TupleVariant,
        serialize_map(Option<usize>) -> Self::SerializeMap: Map,
        serialize_struct(&'static str, usize) -> Self::SerializeStruct: Struct,
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant: DataEnum,
    }

    fn serialize_f32(self, value: f32) -> Result<bool, EncodeError> {
        float(self.out, value.into(), format_args!("{value}"), format_args!("{value:E}"));
        Ok(true)
    }

    fn serialize_f64(self, value: f64) -> Result<bool, EncodeError> {
        float(self.out, value, format_args!("{value}"), format_args!("{value:E}"));
        Ok(true)
    }

    fn serialize_char(self, value: char) -> Result<bool, EncodeError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<bool, EncodeError> {
        escape_into(self.out, value, self.place).map_err(EncodeError::character)?;
        Ok(true)
    }

    fn serialize_none(self) -> Result<bool, EncodeError> {
        if self.held { Err(EncodeError::shape(Unencodable::NestedOption)) } else { Ok(false) }
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<bool, EncodeError> {
        value.serialize(Self { held: true, ..self })
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<bool, EncodeError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<bool, EncodeError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<bool, EncodeError> {
        Err(EncodeError::shape(Unencodable::DataEnum))
    }
}
