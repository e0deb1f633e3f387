//! Violations and their texts.

use std::fmt;

use crate::schema::engine::grammar::{Edge, Grammar, Wildcard, WildcardEdge};
use crate::schema::engine::namespace::Namespace;
use crate::schema::shorten::{LONGEST_RULE, shortened};

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::schema) struct Violation {
    /// The number of the element in document order, from 0.
    pub(in crate::schema) element: usize,
    /// The part of the element that breaks the rule.
    pub(in crate::schema) part: Part,
    /// The text: the element, the found part, the expected part.
    pub(in crate::schema) rule: String,
    /// The text for who has sent JSON, and has its place by a pointer.
    pub(in crate::schema) json: String,
}

/// A clause of an error text, in words of XML and in those of JSON, where they differ.
pub(super) struct Clause<X, J>(pub(super) X, pub(super) J);

/// A part of an element that an error can point to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::schema) enum Part {
    /// The start tag.
    Tag,
    /// The attribute with this qualified name.
    Attribute(String),
    /// The content after the start tag.
    Content,
}

/// The subject of an error text.
pub(super) enum Subject<'s> {
    Element(&'s str),
    /// The names of an attribute and of its element.
    Attribute(&'s str, &'s str),
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Element(element) => write!(f, "<{element}>"),
            Self::Attribute(attribute, element) => write!(f, "attribute '{attribute}' of <{element}>"),
        }
    }
}

impl Violation {
    pub(super) fn new(
        element: usize,
        part: Part,
        subject: &Subject,
        Clause(xml, json): Clause<impl fmt::Display, impl fmt::Display>,
    ) -> Self {
        let rule = shortened(&format!("{subject}: {xml}"), LONGEST_RULE);
        Self { element, part, rule, json: shortened(&json.to_string(), LONGEST_RULE) }
    }
}

/// The description of the elements that may come next.
#[derive(Default)]
pub(super) struct Expected {
    names: Vec<String>,
    /// The same as keys of JSON.
    keys: Vec<String>,
    more: bool,
}

impl Expected {
    /// The greatest number of names in a text.
    const MOST: usize = 12;

    /// Adds the elements of edges. An element with the local name that was found is shown with its namespace.
    pub(super) fn edges(&mut self, grammar: &Grammar, own: Namespace, edges: &[Edge], found: &str) {
        for edge in edges {
            if grammar.elements[edge.element.index()].is_abstract {
                continue;
            }
            if self.names.len() >= Self::MOST {
                self.more = true;
                return;
            }
            let name = grammar.name(edge.name);
            let uri = grammar.namespaces.name(name.namespace);
            let shown = match name.namespace {
                Namespace::NONE if &*name.local == found && own != Namespace::NONE => {
                    format!("<{}> in no namespace", name.local)
                }
                namespace if &*name.local == found && namespace != Namespace::NONE => {
                    format!("<{}> in namespace {uri}", name.local)
                }
                namespace => format!("<{}>", shown_name(own, namespace, uri, &name.local)),
            };
            if !self.names.contains(&shown) {
                self.names.push(shown);
                self.keys.push(format!("'{}'", shown_name(own, name.namespace, uri, &name.local)));
            }
        }
    }

    pub(super) fn wildcards(&mut self, grammar: &Grammar, wildcards: &[Wildcard], edges: &[WildcardEdge]) {
        let words =
            edges.iter().map(|edge| wildcards[edge.wildcard as usize].namespaces.words(&grammar.namespaces, "element"));
        self.names.extend(words);
        self.keys.extend(edges.first().map(|_| "another property".to_owned()));
    }

    /// The names of properties, for who has sent JSON; `None` if nothing more may come.
    pub(super) fn in_json(&self) -> Option<String> {
        match self.keys.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("one of {}{}", several.join(", "), if self.more { ", …" } else { "" })),
        }
    }

    /// The clause `; expected …`. Without names, it expects the end of the element `end`.
    pub(super) fn clause(&self, end: &str) -> String {
        match self.names.as_slice() {
            [] => format!("; expected the end of <{end}>"),
            [one] => format!("; expected {one}"),
            several => format!("; expected one of {}{}", several.join(", "), if self.more { ", …" } else { "" }),
        }
    }
}

/// A name for messages: without namespace if it is in the namespace of the payload or in none, else in Clark notation.
pub(in crate::schema::engine) fn shown_name(own: Namespace, namespace: Namespace, uri: &str, local: &str) -> String {
    if namespace == own || namespace == Namespace::NONE { local.to_owned() } else { format!("{{{uri}}}{local}") }
}
