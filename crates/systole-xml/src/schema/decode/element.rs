//! Values of elements.

use serde::de::{Deserializer, Visitor};

use super::fields::Fields;
use super::forward::{refused, wrapped};
use super::reader::Reader;
use super::text::TextValue;
use super::{DecodeError, Undecodable, Within};
use crate::ladder::tape::Tag;

/// A value from an element whose start tag was taken. Decoding the value takes the end tag.
pub(super) struct ElementValue<'r, 'de> {
    pub(super) reader: &'r mut Reader<'de>,
    pub(super) tag: Tag<'de>,
}

impl<'r, 'de> ElementValue<'r, 'de> {
    fn text(self) -> Result<TextValue<'de>, DecodeError> {
        self.reader.text().map(|text| TextValue { text, within: Within::Field })
    }

    pub(super) fn fields<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.reader.enter()?;
        let mut access = Fields::new(&mut *self.reader, self.tag, fields);
        let value = visitor.visit_map(&mut access)?;
        access.finish();
        self.reader.leave();
        Ok(value)
    }
}

macro_rules! as_text {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            self.text()?.$method(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for ElementValue<'_, 'de> {
    type Error = DecodeError;

    as_text! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_identifier
    }

    refused! {
        deserialize_bytes(): Bytes,
        deserialize_byte_buf(): Bytes,
        deserialize_seq(): List,
        deserialize_tuple(usize): List,
        deserialize_tuple_struct(&'static str, usize): List,
        deserialize_map(): Map,
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.reader.peek_text() {
            true => self.text()?.deserialize_any(visitor),
            false => Err(Undecodable::Untyped.into()),
        }
    }

    wrapped!();

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if let Within::WrappedOption = self.reader.within {
            return Err(Undecodable::OptionalUnit.into());
        }
        self.reader.skip();
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.fields(fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.text()?.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_unit(visitor)
    }
}
