//! Values of `$value` fields.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, SeqAccess, VariantAccess, Visitor};

use super::element::ElementValue;
use super::forward::{listed, refused, wrapped};
use super::reader::Reader;
use super::{DecodeError, Undecodable, Within};

/// The value of a `$value` field: an enum whose variant is the name of the next element.
pub(super) struct VariantValue<'r, 'de> {
    pub(super) reader: &'r mut Reader<'de>,
    /// The names that belong to other fields of the struct.
    pub(super) fields: &'static [&'static str],
}

impl<'de> Deserializer<'de> for VariantValue<'_, 'de> {
    type Error = DecodeError;

    refused! {
        deserialize_any(): Untyped,
        deserialize_bool(): DataEnum,
        deserialize_i8(): DataEnum,
        deserialize_i16(): DataEnum,
        deserialize_i32(): DataEnum,
        deserialize_i64(): DataEnum,
        deserialize_u8(): DataEnum,
        deserialize_u16(): DataEnum,
        deserialize_u32(): DataEnum,
        deserialize_u64(): DataEnum,
        deserialize_f32(): DataEnum,
        deserialize_f64(): DataEnum,
        deserialize_char(): DataEnum,
        deserialize_str(): DataEnum,
        deserialize_string(): DataEnum,
        deserialize_bytes(): DataEnum,
        deserialize_byte_buf(): DataEnum,
        deserialize_unit(): DataEnum,
        deserialize_unit_struct(&'static str): DataEnum,
        deserialize_tuple_struct(&'static str, usize): DataEnum,
        deserialize_map(): Map,
        deserialize_struct(&'static str, &'static [&'static str]): DataEnum,
        deserialize_identifier(): DataEnum,
    }

    wrapped!();

    listed! { deserialize_seq() deserialize_tuple(usize) }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_enum(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.reader.element()?.deserialize_ignored_any(visitor)
    }
}

impl<'de> SeqAccess<'de> for VariantValue<'_, 'de> {
    type Error = DecodeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, DecodeError> {
        match self.reader.peek_child() {
            Some(tag) if !self.fields.contains(&tag.local()) => {
                self.reader.within = Within::Wrapper;
                seed.deserialize(VariantValue { reader: self.reader, fields: self.fields }).map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl<'r, 'de> EnumAccess<'de> for VariantValue<'r, 'de> {
    type Error = DecodeError;
    type Variant = ElementVariant<'r, 'de>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), DecodeError> {
        self.reader.within = Within::Field;
        let element = self.reader.element()?;
        let variant = seed.deserialize(BorrowedStrDeserializer::<DecodeError>::new(element.tag.local()))?;
        Ok((variant, ElementVariant(element)))
    }
}

/// The data of a variant: the content of the element that it names.
pub(super) struct ElementVariant<'r, 'de>(ElementValue<'r, 'de>);

impl<'de> VariantAccess<'de> for ElementVariant<'_, 'de> {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        self.0.reader.skip();
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, DecodeError> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, DecodeError> {
        Err(Undecodable::List.into())
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.0.fields(fields, visitor)
    }
}
