//! The fields of structs.

use serde::Serialize;
use serde::ser::{SerializeStruct, SerializeStructVariant};

use super::EncodeError;
use super::content::Content;
use super::element::{Element, Role, end};
use super::text::Text;
use crate::ladder::escape::EscapeContext;

/// Writes the fields of a struct: attributes sorted into the start tag, the rest as content.
pub(super) struct Fields<'a> {
    out: &'a mut String,
    name: &'static str,
    depth: usize,
    attributes: Vec<(&'static str, String)>,
    /// Range of the attributes in `out`, once content has begun.
    written: Option<(usize, usize)>,
}

impl<'a> Fields<'a> {
    /// A writer of fields; the start tag is written up to the place of its attributes.
    pub(super) fn new(out: &'a mut String, name: &'static str, depth: usize) -> Self {
        Self { out, name, depth, attributes: Vec::new(), written: None }
    }

    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), EncodeError> {
        if let Some(name) = key.strip_prefix('@') {
            return self.attribute(name, value).map_err(|e| e.inside(key));
        }
        self.begin_content();
        let (out, depth) = (&mut *self.out, self.depth + 1);
        match key {
            "$text" => value.serialize(Text { out, place: EscapeContext::Text, held: false }).map(drop),
            "$value" => value.serialize(Content { out, depth, item: false, held: false }),
            _ => value.serialize(Element { out, name: key, role: Role::Field, depth }),
        }
        .map_err(|e| e.inside(key))
    }

    fn attribute<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), EncodeError> {
        let mut text = String::new();
        if value.serialize(Text { out: &mut text, place: EscapeContext::Attribute, held: false })? {
            let at = self.attributes.partition_point(|(other, _)| *other < name);
            self.attributes.insert(at, (name, text));
            if let Some((start, end)) = self.written {
                let rendered = self.rendered();
                self.written = Some((start, start + rendered.len()));
                self.out.replace_range(start..end, &rendered);
            }
        }
        Ok(())
    }

    fn begin_content(&mut self) {
        if self.written.is_none() {
            let start = self.out.len();
            if !self.attributes.is_empty() {
                let rendered = self.rendered();
                self.out.push_str(&rendered);
            }
            self.written = Some((start, self.out.len()));
            self.out.push('>');
        }
    }

    fn rendered(&self) -> String {
        self.attributes.iter().flat_map(|(name, value)| [" ", name, "=\"", value, "\""]).collect()
    }

    fn finish(mut self) {
        self.begin_content();
        end(self.out, self.name);
    }
}

impl SerializeStruct for Fields<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), EncodeError> {
        self.field(key, value)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.finish();
        Ok(())
    }
}

impl SerializeStructVariant for Fields<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), EncodeError> {
        self.field(key, value)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.finish();
        Ok(())
    }
}
