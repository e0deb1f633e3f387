//! Simple values.

use std::borrow::Cow;
use std::str::FromStr;

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, VariantAccess, Visitor};

use super::forward::refused;
use super::{DecodeError, DecodeProblem, Undecodable, Within};
use crate::ladder::chars::trimmed;

/// A simple value: the text of an element or the value of an attribute.
pub(super) struct TextValue<'de> {
    pub(super) text: Cow<'de, str>,
    pub(super) within: Within,
}

impl<'de> TextValue<'de> {
    fn parse<T: FromStr>(&self, expected: &'static str) -> Result<T, DecodeError> {
        self.trimmed().parse().map_err(|_| self.unexpected(expected))
    }

    /// Parses an unsigned number. Zero with a minus sign is a value of the unsigned types of XSD, but not of those of
    /// Rust.
    fn parse_unsigned<T: FromStr>(&self, expected: &'static str) -> Result<T, DecodeError> {
        let text = self.trimmed();
        let zero = text.strip_prefix('-').filter(|digits| digits.bytes().all(|digit| digit == b'0'));
        zero.unwrap_or(text).parse().map_err(|_| self.unexpected(expected))
    }

    /// The text without white space around it, which has no meaning except in strings (XSD 1.0 part 2, section 4.3.6:
    /// collapse).
    #[inline]
    fn trimmed(&self) -> &str {
        trimmed(&self.text)
    }

    fn unexpected(&self, expected: &'static str) -> DecodeError {
        DecodeProblem::Value { found: self.text.chars().take(64).collect(), expected }.into()
    }
}

macro_rules! numbers {
    ($parse:ident: $($deserialize:ident $visit:ident $expected:literal)*) => {
        $(fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            visitor.$visit(self.$parse($expected)?)
        })*
    };
}

macro_rules! strings {
    ($($deserialize:ident)*) => {
        $(fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            match self.text {
                Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for TextValue<'de> {
    type Error = DecodeError;

    numbers! { parse:
        deserialize_i8 visit_i8 "a whole number from -128 to 127"
        deserialize_i16 visit_i16 "a whole number from -32768 to 32767"
        deserialize_i32 visit_i32 "a whole number of 32 bits"
        deserialize_i64 visit_i64 "a whole number of 64 bits"
        deserialize_f32 visit_f32 "a number"
        deserialize_f64 visit_f64 "a number"
    }

    numbers! { parse_unsigned:
        deserialize_u8 visit_u8 "a whole number from 0 to 255"
        deserialize_u16 visit_u16 "a whole number from 0 to 65535"
        deserialize_u32 visit_u32 "a whole number from 0 to 4294967295"
        deserialize_u64 visit_u64 "a whole number from 0 to 18446744073709551615"
    }

    strings! { deserialize_any deserialize_str deserialize_string deserialize_identifier }

    refused! {
        deserialize_bytes(): Bytes,
        deserialize_byte_buf(): Bytes,
        deserialize_seq(): List,
        deserialize_tuple(usize): List,
        deserialize_tuple_struct(&'static str, usize): List,
        deserialize_map(): Map,
        deserialize_struct(&'static str, &'static [&'static str]): Element,
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.trimmed() {
            "true" | "1" => visitor.visit_bool(true),
            "false" | "0" => visitor.visit_bool(false),
            _ => Err(self.unexpected("true or false")),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.text.parse() {
            Ok(character) => visitor.visit_char(character),
            Err(_) => Err(self.unexpected("one character")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let within = self.within.option()?;
        visitor.visit_some(Self { within, ..self })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, DecodeError> {
        let within = self.within.wrapper();
        visitor.visit_newtype_struct(Self { within, ..self })
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_enum(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }
}

impl<'de> EnumAccess<'de> for TextValue<'de> {
    type Error = DecodeError;
    type Variant = NoData;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, NoData), DecodeError> {
        let variant = match &self.text {
            Cow::Borrowed(text) => seed.deserialize(BorrowedStrDeserializer::<DecodeError>::new(text))?,
            Cow::Owned(text) => seed.deserialize(StrDeserializer::<DecodeError>::new(text))?,
        };
        Ok((variant, NoData))
    }
}

/// A variant that is written as text, and so has no data.
pub(super) struct NoData;

impl<'de> VariantAccess<'de> for NoData {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, DecodeError> {
        Err(Undecodable::DataEnum.into())
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, DecodeError> {
        Err(Undecodable::DataEnum.into())
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, DecodeError> {
        Err(Undecodable::DataEnum.into())
    }
}
