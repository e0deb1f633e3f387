use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};

use super::DecodeError;
use super::element::ElementValue;
use super::reader::Reader;

/// The value of a field: the child element that comes next, or a list of all that follow under its name.
pub(super) struct FieldValue<'r, 'de> {
    pub(super) reader: &'r mut Reader<'de>,
    pub(super) name: &'de str,
}

impl<'r, 'de> FieldValue<'r, 'de> {
    fn element(self) -> Result<ElementValue<'r, 'de>, DecodeError> {
        let tag = self.reader.open()?;
        Ok(ElementValue { reader: self.reader, tag })
    }
}

macro_rules! as_element {
    ($($method:ident($($arg:ident: $type:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(self, $($arg: $type,)* visitor: V) -> Result<V::Value, DecodeError> {
            self.element()?.$method($($arg,)* visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for FieldValue<'_, 'de> {
    type Error = DecodeError;

    as_element! {
        deserialize_any() deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_f32() deserialize_f64()
        deserialize_char() deserialize_str() deserialize_string() deserialize_bytes() deserialize_byte_buf()
        deserialize_unit() deserialize_unit_struct(name: &'static str) deserialize_map()
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
        deserialize_identifier() deserialize_ignored_any()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_seq(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_seq(self)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_seq(self)
    }
}

impl<'de> SeqAccess<'de> for FieldValue<'_, 'de> {
    type Error = DecodeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, DecodeError> {
        match self.reader.peek_child() {
            Some(tag) if tag.local() == self.name => {
                let tag = self.reader.open()?;
                seed.deserialize(ElementValue { reader: self.reader, tag }).map(Some)
            }
            _ => Ok(None),
        }
    }
}
