//! The canonical form of start tags: Exclusive XML Canonicalization 1.0, section 3.

use std::cmp::Ordering;

use super::error::StrictErrorKind;
use super::pass::{Check, Pass};
use super::scope::{Prefix, Scope};
use super::tag::{Attribute, Name};
use crate::ladder::chars::excerpt;
use crate::ladder::tape::Uri;

impl<'a> Pass<'a> {
    /// The prefix of an element, which must be bound.
    pub(super) fn element_prefix(&mut self, name: &Name) -> Check<Prefix> {
        if name.local == name.start { Ok(Prefix::DEFAULT) } else { self.bound_prefix(name) }
    }

    /// Resolves the namespaces of all attributes, and refuses two of the same name.
    ///
    /// Sorts them into canonical order: by namespace name, then by local name (Canonical
    /// XML 1.0, section 2.3), so that equal names are neighbours.
    pub(super) fn resolve_attributes(&mut self) -> Check {
        for index in 0..self.attributes.len() {
            let name = self.attributes[index].name;
            if name.local != name.start {
                let prefix = self.bound_prefix(&name)?;
                self.attributes[index].prefix = prefix;
                self.attributes[index].namespace = self.scope.binding(prefix).uri;
            }
        }
        let (src, scope) = (self.src, &*self.scope);
        if self.attributes.is_sorted_by(|a, b| order(src, scope, a, b) == Ordering::Less) {
            return Ok(());
        }
        self.attributes.sort_unstable_by(|a, b| order(src, scope, a, b));
        self.check_unique()
    }

    fn check_unique(&self) -> Check {
        let local = |attribute: &Attribute| &self.src[attribute.name.local..attribute.name.end];
        let same = |pair: &&[Attribute]| pair[0].namespace == pair[1].namespace && local(&pair[0]) == local(&pair[1]);
        let Some(pair) = self.attributes.windows(2).find(same) else { return Ok(()) };
        let second = if pair[0].name.start < pair[1].name.start { &pair[1] } else { &pair[0] };
        let name = excerpt(&self.text[second.name.start..second.name.end]);
        let kind = if pair[0].prefix == pair[1].prefix {
            StrictErrorKind::DuplicateAttribute { name }
        } else {
            StrictErrorKind::DuplicateExpandedName { name }
        };
        Err(self.error(kind, second.name.start))
    }

    fn bound_prefix(&mut self, name: &Name) -> Check<Prefix> {
        let text = &self.text[name.start..name.local - 1];
        let prefix = self.scope.prefix(text);
        if self.scope.binding(prefix).uri != Uri::NONE {
            return Ok(prefix);
        }
        let kind = if text == "xmlns" {
            StrictErrorKind::ReservedName
        } else {
            StrictErrorKind::UndeclaredPrefix { prefix: excerpt(text) }
        };
        Err(self.error(kind, name.start))
    }

    /// Writes the tag that starts at `at`, but for its end. Uses up the attributes.
    pub(super) fn write_start_tag(&mut self, at: usize, name: &Name, prefix: Prefix) -> Check {
        self.writer.source(at, name.end);
        let limit = self.limits.attributes;
        let has_prefixes = prefix != Prefix::DEFAULT || self.attributes.iter().any(|a| a.prefix != Prefix::DEFAULT);
        let is_settled = !has_prefixes && self.scope.is_settled();
        let declared = if is_settled { 0 } else { self.write_namespaces(prefix) };
        if declared + self.attributes.len() > limit {
            return Err(self.error(StrictErrorKind::TooManyAttributes { limit }, at));
        }
        let mut attributes = std::mem::take(self.attributes);
        for attribute in &attributes {
            let place = self.place() + 1;
            self.write_attribute(attribute)?;
            let Name { start, end, .. } = attribute.name;
            let behind = self.place() - 1;
            self.tape.attribute(place, end - start, behind, attribute.namespace);
            self.note_colons(attribute.value.start, attribute.value.end);
        }
        attributes.clear();
        *self.attributes = attributes;
        Ok(())
    }

    fn write_attribute(&mut self, attribute: &Attribute) -> Check {
        let Attribute { name, value, .. } = *attribute;
        if self.is_verbatim(&value) {
            self.writer.source(name.start - 1, value.end + 1);
            return Ok(());
        }
        if value.tight {
            self.writer.source(name.start - 1, value.start - 1);
            self.writer.literal("\"");
        } else {
            self.writer.literal(" ");
            self.writer.source(name.start, name.end);
            self.writer.literal("=\"");
        }
        let before = self.writer.len();
        match (value.canonical, value.literal) {
            (true, _) => self.writer.source(value.start, value.end),
            (false, true) => self.writer.escaped(&self.text[value.start..value.end]),
            (false, false) => self.write_value(value.start, value.end)?,
        }
        self.check_value(name, self.writer.len() - before)?;
        self.writer.literal("\"");
        Ok(())
    }

    /// Renders the namespaces that the names of this tag use, or the prefix list asks for, and no output ancestor has
    /// rendered, sorted by prefix. Returns the number of declarations.
    #[inline(never)]
    fn write_namespaces(&mut self, element: Prefix) -> usize {
        let mut first = None;
        let mut others = Vec::new();
        let mut add = |prefix| match first {
            None => first = Some(prefix),
            Some(_) => others.push(prefix),
        };
        let of_attributes = self.attributes.iter().map(|a| a.prefix).filter(|&prefix| prefix != Prefix::DEFAULT);
        for prefix in std::iter::once(element).chain(of_attributes) {
            if self.scope.render(prefix) {
                add(prefix);
            }
        }
        self.scope.render_listed(add);
        if !others.is_empty() {
            others.extend(first.take());
            others.sort_unstable_by(|&a, &b| self.scope.prefix_name(a).cmp(self.scope.prefix_name(b)));
        }
        let count = others.len() + usize::from(first.is_some());
        for prefix in first.into_iter().chain(others) {
            self.write_namespace(prefix);
        }
        count
    }

    fn write_namespace(&mut self, prefix: Prefix) {
        let binding = self.scope.binding(prefix);
        let name = self.scope.prefix_name(prefix);
        let xmlns = if name.is_empty() { "xmlns" } else { "xmlns:" };
        let length = xmlns.len() + name.len();
        let place = self.place() + 1;
        if let Some((start, end)) = binding.verbatim {
            self.writer.source(start, end);
        } else {
            self.writer.literal(" ");
            self.writer.literal(xmlns);
            self.writer.literal(name);
            self.writer.literal("=\"");
            self.writer.escaped(self.scope.uri_name(binding.uri));
            self.writer.literal("\"");
        }
        let behind = self.place() - 1;
        self.tape.declaration(place, length, behind, binding.uri);
    }
}

/// The canonical order of two attributes.
#[inline]
fn order(src: &[u8], scope: &Scope, a: &Attribute, b: &Attribute) -> Ordering {
    let local = |attribute: &Attribute| &src[attribute.name.local..attribute.name.end];
    let by_local = || local(a).cmp(local(b));
    if a.namespace == b.namespace {
        return by_local();
    }
    scope.uri_name(a.namespace).cmp(scope.uri_name(b.namespace)).then_with(by_local)
}
