//! A writer of XML for examples.

use std::sync::Arc;

use crate::schema::escape::{Place, escape_lossy};
use crate::vocab::ns;

/// Writes namespace-well-formed XML; the strict pass makes it canonical.
#[derive(Debug)]
pub(in crate::schema) struct Writer {
    out: Vec<u8>,
    open: Vec<Open>,
    /// True if names get a prefix. If the root has a namespace and its descendants have none, a default
    /// namespace would have to be undeclared on every child.
    prefixed: bool,
}

#[derive(Debug)]
struct Open {
    name: String,
    /// The default namespace inside.
    default: Arc<str>,
    /// True if its start tag still lacks the `>`.
    unfinished: bool,
    /// Number of prefixes that it declares.
    prefixes: usize,
}

impl Writer {
    pub(in crate::schema) fn new(prefixed: bool) -> Self {
        Self { out: Vec::new(), open: Vec::new(), prefixed }
    }

    pub(in crate::schema) fn start(&mut self, namespace: &Arc<str>, local: &str) {
        self.finish_tag();
        let outer = self.open.last().map_or_else(|| "".into(), |open| open.default.clone());
        let prefixed = self.prefixed && !namespace.is_empty();
        let name = if prefixed { format!("p:{local}") } else { local.to_owned() };
        self.out.push(b'<');
        self.out.extend_from_slice(name.as_bytes());
        let default = if prefixed { outer.clone() } else { namespace.clone() };
        if prefixed {
            self.declare("xmlns:p", namespace);
        } else if default != outer {
            self.declare("xmlns", namespace);
        }
        self.open.push(Open { name, default, unfinished: true, prefixes: 0 });
    }

    pub(in crate::schema) fn attribute(&mut self, namespace: &str, local: &str, value: &str) {
        let prefix = match namespace {
            "" => String::new(),
            ns::XML => "xml:".to_owned(),
            ns::XSI => {
                self.declare("xmlns:xsi", ns::XSI);
                "xsi:".to_owned()
            }
            _ => {
                let Some(open) = self.open.last_mut() else { return };
                open.prefixes += 1;
                let prefix = format!("a{}", open.prefixes);
                self.declare(&format!("xmlns:{prefix}"), namespace);
                prefix + ":"
            }
        };
        self.declare(&format!("{prefix}{local}"), value);
    }

    pub(in crate::schema) fn text(&mut self, text: &str) {
        self.finish_tag();
        escape_lossy(&mut self.out, text, Place::Text);
    }

    pub(in crate::schema) fn end(&mut self) {
        self.finish_tag();
        if let Some(open) = self.open.pop() {
            self.out.extend_from_slice(b"</");
            self.out.extend_from_slice(open.name.as_bytes());
            self.out.push(b'>');
        }
    }

    /// Writes an element in canonical form, which has the same meaning here as on its own.
    pub(in crate::schema) fn element(&mut self, canonical: &str) {
        self.finish_tag();
        let name = canonical.find([' ', '>']).unwrap_or(canonical.len());
        let (name, behind) = canonical.split_at(name);
        self.out.extend_from_slice(name.as_bytes());
        let outer = self.open.last().is_some_and(|open| !open.default.is_empty());
        if outer && !behind.starts_with(" xmlns=\"") {
            self.declare("xmlns", "");
        }
        self.out.extend_from_slice(behind.as_bytes());
    }

    /// The bytes that were written so far.
    pub(in crate::schema) fn len(&self) -> usize {
        self.out.len()
    }

    pub(in crate::schema) fn finish(self) -> Vec<u8> {
        self.out
    }

    fn declare(&mut self, name: &str, value: &str) {
        self.out.push(b' ');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"=\"");
        escape_lossy(&mut self.out, value, Place::Attribute);
        self.out.push(b'"');
    }

    fn finish_tag(&mut self) {
        if let Some(open) = self.open.last_mut().filter(|open| open.unfinished) {
            open.unfinished = false;
            self.out.push(b'>');
        }
    }
}
