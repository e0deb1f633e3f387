//! Bindings of prefixes, and the errors in them that repair can't correct.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::escapes::Escapes;
use super::lexis::has_scheme;
use super::reference::{self, Reference};
use super::tag::Attribute;
use crate::ladder::scan::{declared_prefix, split_prefix};
use crate::vocab::{XmlLimits, ns};

/// The namespace declarations of the open elements.
#[derive(Debug, Default)]
pub(super) struct Namespaces<'t> {
    /// The namespace names that each prefix is bound to, innermost last.
    bound: HashMap<&'t str, Vec<Uri>>,
    /// Prefixes in the order of their declarations.
    declared: Vec<&'t str>,
    /// Prefixes that are bound now.
    in_scope: usize,
    uris: HashMap<String, Uri>,
    /// The expanded names of the attributes of one tag, with the values of the first of each.
    seen: HashMap<(Uri, &'t str), &'t str>,
    /// True if an attribute of the last tag has the prefix `xsi`, which nothing binds.
    lacks_xsi: bool,
}

/// A namespace name by number; distinct names have distinct numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Uri(u32);

impl Uri {
    /// No namespace: the empty name.
    const NONE: Self = Self(0);
    const XML: Self = Self(1);
    /// The namespace of declarations, which makes them differ from all attributes.
    const XMLNS: Self = Self(2);
    /// The namespace of `xsi:nil` and `xsi:type`.
    const XSI: Self = Self(3);
    const FIRST: u32 = 4;
}

/// An error in the namespaces of a tag.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem<'t> {
    Unbound {
        prefix: &'t str,
    },
    Empty {
        prefix: &'t str,
    },
    Reserved,
    Relative {
        name: String,
    },
    TooLong {
        bytes: usize,
    },
    TooMany,
    /// An attribute that the tag has already, with another value.
    Twice {
        name: &'t str,
    },
}

impl<'t> Namespaces<'t> {
    /// Adds the declarations of a tag, marks its duplicate attributes, and resolves its
    /// prefixes. Returns the number of declarations that [`Namespaces::leave`] has to remove.
    ///
    /// # Errors
    /// The problem, and the offset of the attribute that has it, or of the tag's name.
    pub(super) fn enter(
        &mut self,
        text: &'t str,
        name: &'t str,
        name_start: usize,
        attributes: &mut [Attribute<'t>],
        limits: &XmlLimits,
    ) -> Result<usize, (Problem<'t>, usize)> {
        self.seen.clear();
        self.lacks_xsi = false;
        let before = self.declared.len();
        for attribute in attributes.iter_mut() {
            let Some(prefix) = declared_prefix(attribute.name) else { continue };
            self.see(text, attribute, (Uri::XMLNS, prefix))?;
            if !attribute.duplicate {
                let value = decode(&text[attribute.value_start..attribute.value_end]);
                self.declare(prefix, &value, limits).map_err(|problem| (problem, attribute.start))?;
            }
        }
        self.resolve(split_prefix(name).0).map_err(|problem| (problem, name_start))?;
        for attribute in attributes {
            if declared_prefix(attribute.name).is_none() {
                let (prefix, local) = split_prefix(attribute.name);
                let uri = match self.resolve(prefix) {
                    // The prefix of XML Schema's own attributes has one meaning wherever it is used, and a prompt that
                    // speaks of `xsi:nil` need not teach declarations.
                    Err(Problem::Unbound { prefix: "xsi" }) => {
                        self.lacks_xsi = true;
                        Uri::XSI
                    }
                    found => found.map_err(|problem| (problem, attribute.start))?,
                };
                self.see(text, attribute, (uri, local))?;
            }
        }
        Ok(self.declared.len() - before)
    }

    /// Marks an attribute whose expanded name the tag has already.
    ///
    /// # Errors
    /// [`Problem::Twice`] if the values differ: only one can be meant.
    fn see(
        &mut self,
        text: &'t str,
        attribute: &mut Attribute<'t>,
        name: (Uri, &'t str),
    ) -> Result<(), (Problem<'t>, usize)> {
        let value = &text[attribute.value_start..attribute.value_end];
        match self.seen.entry(name) {
            Entry::Vacant(entry) => drop(entry.insert(value)),
            Entry::Occupied(first) => {
                if *first.get() != value && decode(first.get()) != decode(value) {
                    return Err((Problem::Twice { name: attribute.name }, attribute.start));
                }
                attribute.duplicate = true;
            }
        }
        Ok(())
    }

    /// Returns whether the last tag needs a declaration of `xsi`.
    pub(super) fn lacks_xsi(&self) -> bool {
        self.lacks_xsi
    }

    /// Removes the last declarations.
    pub(super) fn leave(&mut self, declarations: usize) {
        for prefix in self.declared.drain(self.declared.len() - declarations..) {
            let stack = self.bound.get_mut(prefix).expect("declared");
            let was = stack.pop();
            let is = stack.last().copied();
            self.in_scope = self.in_scope + counts(is) - counts(was);
        }
    }

    fn declare(&mut self, prefix: &'t str, name: &str, limits: &XmlLimits) -> Result<(), Problem<'t>> {
        if name.len() > limits.name_bytes {
            return Err(Problem::TooLong { bytes: name.len() });
        }
        if prefix == "xmlns" || name == ns::XMLNS || (prefix == "xml") != (name == ns::XML) {
            return Err(Problem::Reserved);
        }
        if name.is_empty() && !prefix.is_empty() {
            return Err(Problem::Empty { prefix });
        }
        if !name.is_empty() && !has_scheme(name.as_bytes()) {
            return Err(Problem::Relative { name: name.to_owned() });
        }
        let uri = self.uri(name);
        let stack = self.bound.entry(prefix).or_default();
        self.in_scope = self.in_scope + counts(Some(uri)) - counts(stack.last().copied());
        stack.push(uri);
        self.declared.push(prefix);
        if self.in_scope > limits.namespaces { Err(Problem::TooMany) } else { Ok(()) }
    }

    fn uri(&mut self, name: &str) -> Uri {
        match name {
            "" => Uri::NONE,
            ns::XML => Uri::XML,
            ns::XSI => Uri::XSI,
            _ => match self.uris.get(name) {
                Some(&uri) => uri,
                None => {
                    let uri = Uri(Uri::FIRST + u32::try_from(self.uris.len()).expect("longer inputs are refused"));
                    self.uris.insert(name.to_owned(), uri);
                    uri
                }
            },
        }
    }

    /// The namespace of an attribute. For an element, only the error of an unbound prefix counts.
    fn resolve(&self, prefix: &'t str) -> Result<Uri, Problem<'t>> {
        match prefix {
            "" => Ok(Uri::NONE),
            "xml" => Ok(Uri::XML),
            "xmlns" => Err(Problem::Reserved),
            _ => self.bound.get(prefix).and_then(|stack| stack.last()).copied().ok_or(Problem::Unbound { prefix }),
        }
    }
}

/// 1 for a binding that counts among those in scope, else 0.
fn counts(uri: Option<Uri>) -> usize {
    usize::from(uri.is_some_and(|uri| uri != Uri::NONE && uri != Uri::XML))
}

/// An attribute value normalized by XML 1.0, section 3.3.3, after the repair of its references.
fn decode(value: &str) -> Cow<'_, str> {
    if !value.bytes().any(|byte| matches!(byte, b'&' | b'\t' | b'\n' | b'\r')) {
        return Cow::Borrowed(value);
    }
    let is_raw = Escapes::of_value(value).is_raw();
    let mut decoded = String::with_capacity(value.len());
    let mut at = 0;
    while let Some(c) = value[at..].chars().next() {
        let rest = &value[at..];
        let mut len = c.len_utf8();
        match c {
            '&' if is_raw => decoded.push('&'),
            '&' => match reference::read(value, at, value.len()) {
                Reference::Keep(kept) => {
                    decoded.extend(reference::character(&rest[..kept]));
                    len = kept;
                }
                Reference::Expand { len: replaced, c, .. } => {
                    decoded.push(c);
                    len = replaced;
                }
                Reference::Escape { .. } => decoded.push('&'),
            },
            '\r' if rest.starts_with("\r\n") => {}
            '\t' | '\n' | '\r' => decoded.push(' '),
            _ => decoded.push(c),
        }
        at += len;
    }
    Cow::Owned(decoded)
}

#[cfg(test)]
mod tests {
    use super::super::tag::{Reading, TagReader};
    use super::*;

    fn enter<'t>(spaces: &mut Namespaces<'t>, text: &'t str) -> Result<Vec<&'t str>, (Problem<'t>, usize)> {
        let limits = XmlLimits { namespaces: 3, ..XmlLimits::default() };
        let mut reader = TagReader::new(text, 100);
        let Reading::Tag(tag) = reader.read(0) else { panic!("{text} is a tag") };
        spaces.enter(text, tag.name, 1, &mut reader.attributes, &limits)?;
        Ok(reader.attributes.iter().filter(|attribute| attribute.duplicate).map(|attribute| attribute.name).collect())
    }

    #[test]
    fn duplicates_are_found_by_expanded_name() {
        for (text, duplicates) in [
            ("<a b='1' b='1' c='3'>", vec!["b"]),
            ("<a xmlns:p='urn:x' xmlns:q='urn:&#120;' p:b='1' b='2' q:b='&#49;'>", vec!["q:b"]),
            ("<a xmlns='urn:x' xmlns='urn:x' xmlns:p='urn:x' b='' p:b=''>", vec!["xmlns"]),
            ("<a xmlns:p='urn:x' xmlns:p='urn:&#x78;' xml:lang='a' xml:lang='a'>", vec!["xmlns:p", "xml:lang"]),
        ] {
            assert_eq!(enter(&mut Namespaces::default(), text), Ok(duplicates), "{text}");
        }
    }

    #[test]
    fn what_namespaces_forbid_is_refused() {
        for (text, problem, at) in [
            ("<p:a>", Problem::Unbound { prefix: "p" }, 1),
            ("<a p:b=''>", Problem::Unbound { prefix: "p" }, 3),
            ("<xsi:a>", Problem::Unbound { prefix: "xsi" }, 1),
            ("<a xsi:b='1' xsi:b='2'>", Problem::Twice { name: "xsi:b" }, 13),
            ("<a xmlns:p=''>", Problem::Empty { prefix: "p" }, 3),
            ("<a xmlns:p>", Problem::Empty { prefix: "p" }, 3),
            ("<a xmlns:xml='urn:x'>", Problem::Reserved, 3),
            ("<a xmlns:xmlns='urn:x'>", Problem::Reserved, 3),
            ("<a xmlns='http://www.w3.org/2000/xmlns/'>", Problem::Reserved, 3),
            ("<a xmlns:p='http://www.w3.org/XML/1998/namespace'>", Problem::Reserved, 3),
            ("<xmlns:a>", Problem::Reserved, 1),
            ("<a xmlns='x'>", Problem::Relative { name: "x".into() }, 3),
            ("<a b='1' c='3' b='2'>", Problem::Twice { name: "b" }, 15),
            ("<a xmlns='urn:x' xmlns='urn:y'>", Problem::Twice { name: "xmlns" }, 17),
            ("<a xmlns:p='urn:x' xmlns:q='urn:x' p:b='1' q:b=''>", Problem::Twice { name: "q:b" }, 43),
            ("<a xmlns='a b:c'>", Problem::Relative { name: "a b:c".into() }, 3),
            ("<a xmlns:p='u:1' xmlns:q='u:2' xmlns:r='u:3' xmlns:s='u:4'>", Problem::TooMany, 45),
        ] {
            assert_eq!(enter(&mut Namespaces::default(), text), Err((problem, at)), "{text}");
        }
    }

    #[test]
    fn declarations_end_with_their_element() {
        let mut spaces = Namespaces::default();
        enter(&mut spaces, "<a xmlns:p='u:1' xmlns=''>").unwrap();
        assert_eq!(spaces.in_scope, 1);
        enter(&mut spaces, "<p:a xmlns:p='u:2' xmlns='u:3'>").unwrap();
        assert_eq!(spaces.in_scope, 2);
        spaces.leave(2);
        assert_eq!(spaces.in_scope, 1);
        spaces.leave(2);
        assert_eq!(spaces.in_scope, 0);
        assert!(enter(&mut spaces, "<p:a>").is_err());
    }
}
