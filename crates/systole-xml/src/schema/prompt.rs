//! The prompt of a payload, for a language model: its purpose, its fields with their docs and bounds, an example,
//! and how to answer.

use std::fmt::Write;

use super::model::{
    Attribute, Beside, Complex, Content, Element, Enumerator, Model, Order, Particle, Simple, Term, Type, TypeId,
    Variety,
};
use super::simple::{Identity, SimpleType, list_of, union_of};
use crate::ladder::Canonical;
use crate::vocab::ns;

/// Maximum number of lines for fields: for more, a model reads the schema itself.
const MOST_LINES: usize = 200;

/// Maximum number of bytes of a prompt.
const MOST_BYTES: usize = 1 << 16;

/// Maximum number of bytes of the example, so that there is room for the fields.
const MOST_OF_EXAMPLE: usize = 1 << 15;

/// Maximum number of bytes of the documentation of a payload.
const MOST_OF_DOC: usize = 1 << 14;

/// Maximum number of bytes of one line.
const MOST_OF_LINE: usize = 1 << 14;

/// The mark of a text that is cut.
const CUT: &str = " … (ask for the schema)";

/// Maximum number of types that are named for one value.
const MOST_MEMBERS: usize = 64;

/// The purpose of a payload in one line: the first paragraph of its docs.
pub(crate) fn description(model: &Model) -> String {
    let doc = model.doc();
    let paragraph: Vec<&str> =
        doc.lines().map(str::trim).skip_while(|l| l.is_empty()).take_while(|l| !l.is_empty()).collect();
    paragraph.join(" ")
}

/// The prompt fragment of a payload, and the length of its part before the words on how to send it.
pub(crate) fn prompt(model: &Model, example: Option<&Canonical>) -> (String, usize) {
    let root = &model.root;
    let mut out = format!("<{}>", root.local);
    if !root.namespace.is_empty() {
        let _ = write!(out, " in namespace {}", root.namespace);
    }
    out.push('\n');
    let doc = model.doc().trim();
    if !doc.is_empty() {
        push_cut(&mut out, doc, MOST_OF_DOC);
        out.push('\n');
    }
    out.push('\n');
    let example = example.map(Canonical::as_str).filter(|example| example.len() <= MOST_OF_EXAMPLE);
    let shown = example.map(|example| format!("\nExample:\n{example}\n")).unwrap_or_default();
    // The sentence behind the fields has the name, and 200 bytes.
    let taken = out.len() + shown.len() + root.local.len() + 200;
    let room = MOST_BYTES.saturating_sub(taken);
    let mut fields = Fields { model, out: String::new(), room, lines: 0, described: Vec::new() };
    fields.root();
    out.push_str(&fields.out);
    out.push_str(&shown);
    let described = out.len();
    let as_shown = if example.is_some() { ", written as in the example" } else { "" };
    let namespace = if root.namespace.is_empty() { "" } else { " in that namespace" };
    let _ = write!(
        out,
        "\nTo send it, answer with exactly one <{}> element{namespace}{as_shown}, and nothing else.\n",
        root.local
    );
    (out, described)
}

/// Appends a text, cut after `most` bytes.
fn push_cut(out: &mut String, text: &str, most: usize) {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.push_str(&text[..end]);
    if end < text.len() {
        out.push_str(CUT);
    }
}

struct Fields<'a> {
    model: &'a Model,
    out: String,
    /// Maximum number of bytes of the lines.
    room: usize,
    lines: usize,
    /// The complex types that were described, each with the element at which it was.
    described: Vec<(TypeId, &'a str)>,
}

impl<'a> Fields<'a> {
    fn root(&mut self) {
        let root = &self.model.root;
        if let Some((_, name)) = &root.as_type {
            let _ = writeln!(
                self.out,
                "Its type is abstract: write an xsi:type, such as {name}, of which the following tells."
            );
        }
        match &self.model.types[root.ty] {
            Type::Simple(simple) => {
                let words = format!("Its content: {}{}{}", self.words(simple), always(&root.fixed), nil(root));
                push_cut(&mut self.out, &words, MOST_OF_LINE);
                self.out.push_str(".\n");
            }
            Type::Complex(complex) => match undivided(complex) {
                Some((verb, words)) => {
                    let words = format!("It {verb} {words}{}{}", always(&root.fixed), nil(root));
                    push_cut(&mut self.out, &words, MOST_OF_LINE);
                    self.out.push_str(".\n");
                }
                None => {
                    let _ = writeln!(self.out, "It has, in this order{}:", nil(root));
                    if root.fixed.is_none() {
                        self.described.push((root.ty, &root.local));
                    }
                    self.complex(complex, &root.fixed, 0);
                }
            },
        }
        self.constraints(root, 0);
    }

    fn constraints(&mut self, element: &Element, depth: usize) {
        for constraint in &element.constraints {
            self.line(depth, constraint, "");
        }
    }

    fn complex(&mut self, complex: &'a Complex, fixed: &Option<String>, depth: usize) {
        for attribute in &complex.attributes {
            self.attribute(attribute, depth);
        }
        if let Some(any) = &complex.any_attributes {
            let any = match complex.attributes.is_empty() {
                true => any.to_string(),
                false => any.replacen("any", "any other", 1),
            };
            self.line(depth, &format!("{any}; any number of them"), "");
        }
        match (&complex.content, complex.beside) {
            (Content::Empty, Beside::Nothing) => {}
            (Content::Empty, _) => self.line(depth, &format!("its text: any{}", always(fixed)), ""),
            (Content::Text(ty), _) => {
                let words = self.model.simple(*ty).map(|simple| self.words(simple)).unwrap_or_default();
                self.line(depth, &format!("its text: {words}{}", always(fixed)), "");
            }
            (Content::Children(_), Beside::Text) if fixed.is_some() => {
                self.line(depth, &format!("its text: any{}; no elements", always(fixed)), "");
            }
            (Content::Children(particle), beside) => {
                if beside != Beside::Nothing {
                    self.line(depth, "text before, between and after the following; may be left out", "");
                }
                self.particle(particle, Order::Sequence, depth);
            }
        }
    }

    fn attribute(&mut self, attribute: &Attribute, depth: usize) {
        let words = self.model.simple(attribute.ty).map(|simple| self.words(simple)).unwrap_or_default();
        let optional = if attribute.required { "" } else { "; may be left out" };
        let fixed = always(&attribute.fixed);
        let name = match &*attribute.namespace {
            "" => attribute.local.clone(),
            ns::XML => format!("xml:{}", attribute.local),
            namespace => format!("{} in namespace {namespace}", attribute.local),
        };
        self.line(depth, &format!("attribute {name}: {words}{fixed}{optional}"), &attribute.doc);
    }

    /// Describes a particle of a group of that order.
    fn particle(&mut self, particle: &'a Particle, around: Order, depth: usize) {
        // Lines beyond the limit are not shown, however many or how deep they are.
        if self.lines > MOST_LINES {
            return;
        }
        match &particle.term {
            Term::Element(element) => self.element(element, particle, depth),
            Term::Any(any) => self.line(depth, &format!("{any}{}", occurs(particle)), ""),
            // A sequence that occurs once adds nothing to its parts, except where it is one of several alternatives.
            Term::Group(Order::Sequence, parts)
                if (particle.min, particle.max) == (1, Some(1)) && (around == Order::Sequence || parts.len() == 1) =>
            {
                parts.iter().for_each(|part| self.particle(part, around, depth));
            }
            Term::Group(Order::Sequence | Order::All, parts) if parts.is_empty() => self.line(depth, "nothing", ""),
            Term::Group(order, particles) => {
                let head = match (order, particle.max) {
                    (Order::Sequence, _) => "these together, in this order",
                    (Order::All, _) => "these, in any order",
                    (Order::Choice, Some(1)) => "one of these",
                    (Order::Choice, None) => "these, mixed as you like",
                    (Order::Choice, Some(_)) => "one of these each time",
                };
                self.line(depth, &format!("{head}{}:", occurs(particle)), "");
                particles.iter().for_each(|particle| self.particle(particle, *order, depth + 1));
            }
        }
    }

    fn element(&mut self, element: &'a Element, particle: &Particle, depth: usize) {
        let concrete = element.as_type.as_ref().map(|(_, name)| format!("; with an xsi:type, such as {name}"));
        let occurs = format!("{}{}{}", concrete.unwrap_or_default(), nil(element), occurs(particle));
        let name = self.element_name(element);
        match &self.model.types[element.ty] {
            Type::Simple(simple) => {
                let fixed = always(&element.fixed);
                self.line(depth, &format!("{name}: {}{fixed}{occurs}", self.words(simple)), &element.doc);
            }
            Type::Complex(complex) => {
                let doc = if element.doc.is_empty() { &complex.doc } else { &element.doc };
                // A fixed value stands among the parts, so that elements with one are described each.
                let is_known = |ty: TypeId| ty == element.ty && element.fixed.is_none();
                let before = self.described.iter().find(|(ty, _)| is_known(*ty)).map(|(_, element)| *element);
                match (before, undivided(complex)) {
                    (Some(before), _) => {
                        self.line(depth, &format!("{name}: like <{before}>{occurs}"), doc);
                    }
                    (None, Some((_, words))) => {
                        let fixed = always(&element.fixed);
                        self.line(depth, &format!("{name}: {words}{fixed}{occurs}"), doc);
                    }
                    (None, None) => {
                        self.line(depth, &format!("{name}: has the following{occurs}"), doc);
                        if element.fixed.is_none() {
                            self.described.push((element.ty, &element.local));
                        }
                        self.complex(complex, &element.fixed, depth + 1);
                    }
                }
            }
        }
        self.constraints(element, depth + 1);
    }

    /// The name of an element, with its namespace if that is not the one of the payload.
    fn element_name(&self, element: &Element) -> String {
        let place = match &*element.namespace {
            own if own == &*self.model.root.namespace => String::new(),
            "" => " in no namespace".to_owned(),
            namespace => format!(" in namespace {namespace}"),
        };
        format!("<{}>{place}", element.local)
    }

    fn line(&mut self, depth: usize, head: &str, doc: &str) {
        const MORE: &str = "- and more: ask for the schema\n";
        if self.lines > MOST_LINES {
            return;
        }
        self.lines += 1;
        let doc = flowing(doc);
        let dot = if head.ends_with(':') { "" } else { "." };
        let space = if doc.is_empty() { "" } else { " " };
        let before = self.out.len();
        let _ = write!(self.out, "{:indent$}- ", "", indent = 2 * depth);
        push_cut(&mut self.out, &format!("{head}{dot}{space}{doc}"), MOST_OF_LINE);
        self.out.push('\n');
        if self.lines > MOST_LINES || self.out.len() + MORE.len() > self.room {
            self.lines = MOST_LINES + 1;
            self.out.truncate(before);
            self.out.push_str(MORE);
        }
    }

    fn words(&self, simple: &Simple) -> String {
        let mut left = MOST_MEMBERS;
        let identity = match simple.definition.as_ref().map(SimpleType::identity).unwrap_or_default() {
            Identity::None => "",
            Identity::Id => ", an ID that no other element of the payload has",
            Identity::Idref => ", the ID of an element of the payload",
            Identity::Idrefs => ", each the ID of an element of the payload",
            Identity::Mixed => ", where no two elements have the same ID, and a reference is the ID of an element",
        };
        self.some_words(simple, &mut left) + identity
    }

    /// Names at most `left` of the types that a value may have: unions of unions have too many.
    fn some_words(&self, simple: &Simple, left: &mut usize) -> String {
        *left = left.saturating_sub(1);
        // The words for facets are those of refusals; only the documentation of enumerated values is not known there.
        let limits = simple.definition.as_ref().map(SimpleType::limits).unwrap_or_default();
        let noun = match &simple.variety {
            _ if !simple.facets.values.is_empty() => values(&simple.facets.values),
            Variety::Atomic(base) => simple.definition.as_ref().map_or(base.words(), SimpleType::noun).to_owned(),
            Variety::List(item) => {
                let item = self.model.simple(*item).map(|item| self.some_words(item, left)).unwrap_or_default();
                list_of(&item)
            }
            Variety::Union(members) => {
                let mut words: Vec<String> = Vec::new();
                for member in members.iter().filter_map(|member| self.model.simple(*member)) {
                    if *left == 0 {
                        words.push("another".to_owned());
                        break;
                    }
                    words.push(self.some_words(member, left));
                }
                union_of(&words)
            }
        };
        noun + &limits
    }
}

/// The verb and the words for an element of which the model has no parts; `None` if it has some.
fn undivided(complex: &Complex) -> Option<(&'static str, &'static str)> {
    match complex.beside {
        _ if complex.is_empty() => Some(("is", "empty")),
        Beside::Anything => Some(("has", "any content: text, elements and attributes")),
        Beside::Unknown => Some(("has", "the content that its schema tells: ask for the schema")),
        Beside::Nothing | Beside::Text => None,
    }
}

/// The words for an element that may be nil.
fn nil(element: &Element) -> &'static str {
    if element.nillable { "; or empty with xsi:nil=\"true\"" } else { "" }
}

fn always(fixed: &Option<String>) -> String {
    fixed.as_ref().map(|fixed| format!("; always \"{fixed}\"")).unwrap_or_default()
}

fn occurs(particle: &Particle) -> String {
    match (particle.min, particle.max) {
        (1, Some(1)) => String::new(),
        (0, Some(1)) => "; may be left out".to_owned(),
        (0, None) => "; any number of times".to_owned(),
        (min, None) => format!("; {min} times or more"),
        (min, Some(max)) if min == max => format!("; {min} times"),
        (min, Some(max)) => format!("; {min} to {max} times"),
    }
}

/// The values of an enumeration, those behind the end of a line left out.
fn values(values: &[Enumerator]) -> String {
    let mut out = "one of ".to_owned();
    for (at, v) in values.iter().enumerate() {
        if out.len() > MOST_OF_LINE {
            break;
        }
        let doc = flowing(&v.doc);
        let doc = doc.trim_end_matches('.');
        let comma = if at == 0 { "" } else { ", " };
        let _ = match doc.is_empty() {
            true => write!(out, "{comma}\"{}\"", v.value),
            false => write!(out, "{comma}\"{}\" ({doc})", v.value),
        };
    }
    out
}

/// The words of a text with single spaces, those behind the end of a line left out.
fn flowing(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if out.len() > MOST_OF_LINE {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}
