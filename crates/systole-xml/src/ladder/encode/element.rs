//! Elements.

use serde::Serialize;
use serde::ser::{Impossible, SerializeSeq, SerializeTuple, SerializeTupleStruct, Serializer};

use super::fields::Fields;
use super::text::{Text, refused};
use super::{EncodeError, MAX_DEPTH, Unencodable};
use crate::ladder::escape::{EscapeContext, escape_lossy};

/// Writes one value as an element of a name, or as none, or as several of that name.
pub(super) struct Element<'a> {
    pub(super) out: &'a mut String,
    pub(super) name: &'static str,
    pub(super) role: Role,
    pub(super) depth: usize,
}

/// The place of the element.
#[derive(Clone, Copy)]
pub(super) enum Role {
    /// The document element, with the namespace that it declares.
    Root(&'static str),
    /// A field of a struct, or the data of a variant.
    Field,
    /// The value within an Option in a field.
    Held,
    /// An item of a list.
    Item,
}

impl<'a> Element<'a> {
    pub(super) fn root(out: &'a mut String, name: &'static str, namespace: &'static str) -> Self {
        Self { out, name, role: Role::Root(namespace), depth: 1 }
    }

    /// Writes the start tag up to the place of its attributes.
    fn begin(&mut self) -> Result<(), EncodeError> {
        if self.depth > MAX_DEPTH {
            return Err(EncodeError::depth());
        }
        self.out.push('<');
        self.out.push_str(self.name);
        if let Role::Root(namespace) = self.role
            && !namespace.is_empty()
        {
            self.out.push_str(" xmlns=\"");
            escape_lossy(self.out, namespace, EscapeContext::Attribute);
            self.out.push('"');
        }
        Ok(())
    }

    fn simple<T: Serialize + ?Sized>(mut self, value: &T) -> Result<(), EncodeError> {
        self.begin()?;
        self.out.push('>');
        value.serialize(Text { out: self.out, place: EscapeContext::Text, held: false })?;
        end(self.out, self.name);
        Ok(())
    }

    fn list(self) -> Result<List<'a>, EncodeError> {
        match self.role {
            Role::Field | Role::Held => Ok(List { out: self.out, name: self.name, depth: self.depth }),
            Role::Item => Err(EncodeError::shape(Unencodable::NestedList)),
            Role::Root(_) => Err(EncodeError::shape(Unencodable::List)),
        }
    }

    fn fields(mut self) -> Result<Fields<'a>, EncodeError> {
        self.begin()?;
        Ok(Fields::new(self.out, self.name, self.depth))
    }
}

/// Writes an end tag.
pub(super) fn end(out: &mut String, name: &str) {
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

macro_rules! simple {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method(self, value: $type) -> Result<(), EncodeError> { self.simple(&value) })*
    };
}

impl<'a> Serializer for Element<'a> {
    type Ok = ();
    type Error = EncodeError;
    type SerializeSeq = List<'a>;
    type SerializeTuple = List<'a>;
    type SerializeTupleStruct = List<'a>;
    type SerializeTupleVariant = Impossible<(), EncodeError>;
    type SerializeMap = Impossible<(), EncodeError>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = Impossible<(), EncodeError>;

    simple! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_f32: f32, serialize_f64: f64, serialize_char: char, serialize_str: &str,
    }

    refused! {
        serialize_bytes(&[u8]) -> (): Bytes,
        serialize_map(Option<usize>) -> Self::SerializeMap: Map,
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant: DataEnum,
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant: DataEnum,
    }

    fn serialize_none(self) -> Result<(), EncodeError> {
        match self.role {
            Role::Field => Ok(()),
            Role::Held => Err(EncodeError::shape(Unencodable::NestedOption)),
            Role::Item | Role::Root(_) => Err(EncodeError::shape(Unencodable::Absent)),
        }
    }

    fn serialize_some<T: Serialize + ?Sized>(mut self, value: &T) -> Result<(), EncodeError> {
        if let Role::Field = self.role {
            self.role = Role::Held;
        }
        value.serialize(self)
    }

    fn serialize_unit(mut self) -> Result<(), EncodeError> {
        self.begin()?;
        self.out.push('>');
        end(self.out, self.name);
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), EncodeError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), EncodeError> {
        self.simple(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), EncodeError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), EncodeError> {
        Err(EncodeError::shape(Unencodable::DataEnum))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<List<'a>, EncodeError> {
        self.list()
    }

    fn serialize_tuple(self, _: usize) -> Result<List<'a>, EncodeError> {
        self.list()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<List<'a>, EncodeError> {
        self.list()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields<'a>, EncodeError> {
        self.fields()
    }
}

/// Writes each value of a list as an element of the same name.
pub(super) struct List<'a> {
    out: &'a mut String,
    name: &'static str,
    depth: usize,
}

impl List<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        value.serialize(Element { out: self.out, name: self.name, role: Role::Item, depth: self.depth })
    }
}

macro_rules! list {
    ($($trait:ident::$method:ident)*) => {
        $(impl $trait for List<'_> {
            type Ok = ();
            type Error = EncodeError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
                self.item(value)
            }

            fn end(self) -> Result<(), EncodeError> {
                Ok(())
            }
        })*
    };
}

list! { SerializeSeq::serialize_element SerializeTuple::serialize_element SerializeTupleStruct::serialize_field }
