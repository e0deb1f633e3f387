//! A writer of XML for examples.

use std::sync::Arc;

use crate::ladder::escape::{EscapeContext, escape_lossy};
use crate::vocab::ns;

/// Writes namespace-well-formed XML; the strict pass makes it canonical.
#[derive(Debug)]
pub(in crate::schema) struct Writer {
    out: String,
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
        Self { out: String::new(), open: Vec::new(), prefixed }
    }

    pub(in crate::schema) fn start(&mut self, namespace: &Arc<str>, local: &str) {
        self.finish_tag();
        let outer = self.open.last().map_or_else(|| "".into(), |open| open.default.clone());
        let prefixed = self.prefixed && !namespace.is_empty();
        let name = if prefixed { format!("p:{local}") } else { local.to_owned() };
        self.out.push('<');
        self.out.push_str(&name);
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

    /// Binds a prefix to a namespace at the start tag, for a value. Returns it with its colon; without a namespace it is
    /// empty.
    pub(in crate::schema) fn bind(&mut self, namespace: &str) -> String {
        let Some(open) = self.open.last_mut().filter(|_| !namespace.is_empty()) else { return String::new() };
        open.prefixes += 1;
        let prefix = format!("n{}", open.prefixes);
        self.declare(&format!("xmlns:{prefix}"), namespace);
        prefix + ":"
    }

    pub(in crate::schema) fn text(&mut self, text: &str) {
        self.finish_tag();
        escape_lossy(&mut self.out, text, EscapeContext::Text);
    }

    pub(in crate::schema) fn end(&mut self) {
        self.finish_tag();
        if let Some(open) = self.open.pop() {
            self.out.push_str("</");
            self.out.push_str(&open.name);
            self.out.push('>');
        }
    }

    /// Writes an element in canonical form, which has the same meaning here as on its own.
    pub(in crate::schema) fn element(&mut self, canonical: &str) {
        self.finish_tag();
        let name = canonical.find([' ', '>']).unwrap_or(canonical.len());
        let (name, behind) = canonical.split_at(name);
        self.out.push_str(name);
        let outer = self.open.last().is_some_and(|open| !open.default.is_empty());
        if outer && !behind.starts_with(" xmlns=\"") {
            self.declare("xmlns", "");
        }
        self.out.push_str(behind);
    }

    /// The bytes that were written so far.
    pub(in crate::schema) fn len(&self) -> usize {
        self.out.len()
    }

    pub(in crate::schema) fn finish(self) -> String {
        self.out
    }

    fn declare(&mut self, name: &str, value: &str) {
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        escape_lossy(&mut self.out, value, EscapeContext::Attribute);
        self.out.push('"');
    }

    fn finish_tag(&mut self) {
        if let Some(open) = self.open.last_mut().filter(|open| open.unfinished) {
            open.unfinished = false;
            self.out.push('>');
        }
    }
}
