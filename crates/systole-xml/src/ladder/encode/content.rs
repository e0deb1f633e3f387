//! Values of `$value` fields.

use serde::Serialize;
use serde::ser::{Impossible, SerializeSeq, SerializeTuple, Serializer};

use super::element::{Element, Role};
use super::fields::Fields;
use super::text::refused;
use super::{EncodeError, Unencodable};

/// Writes the enum of a `$value` field: the variant names the element.
pub(super) struct Content<'a> {
    pub(super) out: &'a mut String,
    pub(super) depth: usize,
    /// True for an item of a list.
    pub(super) item: bool,
    /// True for the value in an Option.
    pub(super) held: bool,
}

impl<'a> Content<'a> {
    fn element(self, variant: &'static str) -> Element<'a> {
        Element { out: self.out, name: variant, role: Role::Item, depth: self.depth }
    }
}

macro_rules! no_enum {
    ($($method:ident: $type:ty,)*) => { refused! { $($method($type) -> (): Value,)* } };
}

impl<'a> Serializer for Content<'a> {
    type Ok = ();
    type Error = EncodeError;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Impossible<(), EncodeError>;
    type SerializeTupleVariant = Impossible<(), EncodeError>;
    type SerializeMap = Impossible<(), EncodeError>;
    type SerializeStruct = Impossible<(), EncodeError>;
    type SerializeStructVariant = Fields<'a>;

    no_enum! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_f32: f32,
        serialize_f64: f64, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    refused! {
        serialize_unit() -> (): Value,
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct: Value,
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant: TupleVariant,
        serialize_map(Option<usize>) -> Self::SerializeMap: Map,
        serialize_struct(&'static str, usize) -> Self::SerializeStruct: Value,
    }

    fn serialize_none(self) -> Result<(), EncodeError> {
        match (self.held, self.item) {
            (true, _) => Err(EncodeError::shape(Unencodable::NestedOption)),
            (false, true) => Err(EncodeError::shape(Unencodable::Absent)),
            (false, false) => Ok(()),
        }
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), EncodeError> {
        value.serialize(Self { held: true, ..self })
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), EncodeError> {
        self.element(variant).serialize_unit()
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), EncodeError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        value.serialize(self.element(variant)).map_err(|e| e.inside(variant))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        fields: usize,
    ) -> Result<Fields<'a>, EncodeError> {
        self.element(variant).serialize_struct(variant, fields)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, EncodeError> {
        if self.item { Err(EncodeError::shape(Unencodable::NestedList)) } else { Ok(self) }
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, EncodeError> {
        self.serialize_seq(None)
    }
}

impl SerializeSeq for Content<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        value.serialize(Content { out: self.out, depth: self.depth, item: true, held: false })
    }

    fn end(self) -> Result<(), EncodeError> {
        Ok(())
    }
}

impl SerializeTuple for Content<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<(), EncodeError> {
        Ok(())
    }
}
