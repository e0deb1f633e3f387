//! A writer of the pump's own payloads.

use bytes::Bytes;
use systole_xml::ladder::Canonical;
use systole_xml::ladder::escape::{EscapeContext, escape_lossy};
use systole_xml::ladder::strict::canonicalize;

use crate::vocab::XmlLimits;

/// Writes one payload of the pump's own; the strict pass makes it canonical.
pub(super) struct Writer {
    out: String,
    open: Vec<&'static str>,
}

impl Writer {
    pub(super) fn new(namespace: &str, root: &'static str) -> Self {
        Self { out: String::with_capacity(512), open: Vec::new() }.start(root, &[("xmlns", namespace)])
    }

    /// A writer for a root with attributes.
    pub(super) fn with_attributes(namespace: &str, root: &'static str, attributes: &[(&str, &str)]) -> Self {
        let mut all = vec![("xmlns", namespace)];
        all.extend(attributes);
        Self { out: String::with_capacity(512), open: Vec::new() }.start(root, &all)
    }

    pub(super) fn start(mut self, name: &'static str, attributes: &[(&str, &str)]) -> Self {
        self.out.push('<');
        self.out.push_str(name);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            escape_lossy(&mut self.out, value, EscapeContext::Attribute);
            self.out.push('"');
        }
        self.out.push('>');
        self.open.push(name);
        self
    }

    pub(super) fn text(mut self, text: &str) -> Self {
        escape_lossy(&mut self.out, text, EscapeContext::Text);
        self
    }

    pub(super) fn end(mut self) -> Self {
        if let Some(name) = self.open.pop() {
            self.out.push_str("</");
            self.out.push_str(name);
            self.out.push('>');
        }
        self
    }

    /// An element that holds text.
    pub(super) fn element(self, name: &'static str, text: &str) -> Self {
        self.start(name, &[]).text(text).end()
    }

    /// Appends another payload, with the declarations that it needs inside of this one.
    pub(super) fn embed(mut self, payload: &Canonical) -> Self {
        self.out.push_str(&embedded(payload));
        self
    }

    pub(super) fn finish(mut self) -> Canonical {
        while !self.open.is_empty() {
            self = self.end();
        }
        canonicalize(&Bytes::from(self.out), &XmlLimits::UNLIMITED).expect("what the pump writes is well-formed")
    }
}

/// A payload as it stands inside of another one, to be canonicalized with that.
pub(crate) fn embedded(payload: &Canonical) -> String {
    let text = payload.as_str();
    let name = text.find([' ', '>']).unwrap_or(text.len());
    let (start, rest) = text.split_at(name);
    let undeclared = if rest.starts_with(" xmlns=\"") { "" } else { " xmlns=\"\"" };
    format!("{start}{undeclared}{rest}")
}
