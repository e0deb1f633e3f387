//! Values of fields.

use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};

use super::forward::{listed, wrapped};
use super::reader::Reader;
use super::{DecodeError, Within};

/// The value of a field: the next child element, or a list of all that follow under its name.
pub(super) struct FieldValue<'r, 'de> {
    pub(super) reader: &'r mut Reader<'de>,
    pub(super) name: &'de str,
}

macro_rules! as_element {
    ($($method:ident($($arg:ident: $type:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(self, $($arg: $type,)* visitor: V) -> Result<V::Value, DecodeError> {
            self.reader.element()?.$method($($arg,)* visitor)
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

    wrapped!();

    listed! { deserialize_seq() deserialize_tuple(usize) deserialize_tuple_struct(&'static str, usize) }
}

impl<'de> SeqAccess<'de> for FieldValue<'_, 'de> {
    type Error = DecodeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, DecodeError> {
        match self.reader.peek_child() {
            Some(tag) if tag.local() == self.name => {
                self.reader.within = Within::Wrapper;
                seed.deserialize(self.reader.element()?).map(Some)
            }
            _ => Ok(None),
        }
    }
}
