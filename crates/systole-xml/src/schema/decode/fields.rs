//! The fields of structs.

use serde::de::value::{BorrowedStrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, MapAccess};

use super::field::FieldValue;
use super::reader::Reader;
use super::text::TextValue;
use super::variant::VariantValue;
use super::{DecodeError, Undecodable, Within};
use crate::ladder::scan::unescape;
use crate::ladder::tape::{Attributes, Tag, Uri};

/// The fields of a struct, from the attributes and the content of its element.
pub(super) struct Fields<'r, 'de> {
    reader: &'r mut Reader<'de>,
    attributes: Attributes<'de>,
    names: &'static [&'static str],
    /// True if the type has a field `$text`; `value` likewise for `$value`.
    text: bool,
    value: bool,
    next: Next<'de>,
}

/// The value of the key that was just returned, or the place of the next key.
enum Next<'de> {
    /// The value of an attribute, as written.
    Attribute(&'de str),
    /// The text of the element.
    Text,
    /// The next child.
    Child(&'de str),
    /// The next child, as an enum.
    Variant,
    /// No key was returned yet, or its value was taken.
    Key,
    /// The end tag was taken.
    End,
}

impl<'r, 'de> Fields<'r, 'de> {
    pub(super) fn new(reader: &'r mut Reader<'de>, tag: Tag<'de>, names: &'static [&'static str]) -> Self {
        let (mut text, mut value) = (false, false);
        for name in names.iter().filter(|name| name.as_bytes().first() == Some(&b'$')) {
            text |= *name == "$text";
            value |= *name == "$value";
        }
        Self { reader, attributes: tag.attributes(), names, text, value, next: Next::Key }
    }

    /// Skips the content that the visitor left, end tag included.
    pub(super) fn finish(self) {
        if !matches!(self.next, Next::End) {
            self.reader.skip();
        }
    }

    #[inline]
    fn own_attribute(&mut self) -> Option<(&'de str, &'de str)> {
        // Most keys are asked for when no attribute is left.
        if self.attributes.is_empty() { None } else { self.next_own_attribute() }
    }

    fn next_own_attribute(&mut self) -> Option<(&'de str, &'de str)> {
        let own = self.attributes.find(|attribute| attribute.uri() == Some(Uri::NONE))?;
        Some((own.name(), own.written()))
    }
}

impl<'de> MapAccess<'de> for Fields<'_, 'de> {
    type Error = DecodeError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, DecodeError> {
        if matches!(self.next, Next::End) {
            return Ok(None);
        }
        if let Some((name, value)) = self.own_attribute() {
            self.next = Next::Attribute(value);
            // A key that the type has is borrowed from it: no text is built for the `@`.
            let known = self.names.iter().find(|field| field.strip_prefix('@') == Some(name));
            return match known {
                Some(field) => seed.deserialize(BorrowedStrDeserializer::<DecodeError>::new(field)),
                None => seed.deserialize(StringDeserializer::<DecodeError>::new(format!("@{name}"))),
            }
            .map(Some);
        }
        if self.text {
            self.next = Next::Text;
            return seed.deserialize(BorrowedStrDeserializer::<DecodeError>::new("$text")).map(Some);
        }
        let Some(child) = self.reader.peek_child() else {
            self.reader.skip();
            self.next = Next::End;
            return Ok(None);
        };
        let name = child.local();
        let other = self.value && !self.names.contains(&name);
        self.next = if other { Next::Variant } else { Next::Child(name) };
        let key = if other { "$value" } else { name };
        seed.deserialize(BorrowedStrDeserializer::<DecodeError>::new(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, DecodeError> {
        match std::mem::replace(&mut self.next, Next::Key) {
            Next::Attribute(written) => seed.deserialize(TextValue { text: unescape(written), within: Within::Field }),
            Next::Text => {
                let text = self.reader.text()?;
                self.next = Next::End;
                seed.deserialize(TextValue { text, within: Within::Field })
            }
            Next::Child(name) => {
                self.reader.within = Within::Field;
                seed.deserialize(FieldValue { reader: self.reader, name })
            }
            Next::Variant => {
                self.reader.within = Within::Field;
                seed.deserialize(VariantValue { reader: self.reader, fields: self.names })
            }
            Next::Key | Next::End => Err(Undecodable::End.into()),
        }
    }
}
