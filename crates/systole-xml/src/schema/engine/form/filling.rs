//! The payload of a form while it is written: a cursor through the content models of its open elements.

use std::collections::{BTreeSet, HashMap};

use super::question::{Child, Kind, Question, Step, Wanted, element_name, steps};
use crate::ladder::Canonical;
use crate::ladder::escape::uncarriable;
use crate::ladder::strict::canonicalize;
use crate::schema::engine::grammar::{Content, Element, ElementId, Grammar, NameId, ProcessContents, StateId, Type};
use crate::schema::engine::judge::Judge;
use crate::schema::engine::namespace::Namespace;
use crate::schema::simple::NoPrefixes;
use crate::schema::write::Writer;
use crate::vocab::{XmlLimits, ns};

/// A partly written payload, up to the open question.
#[derive(Debug)]
pub(super) struct Filling {
    writer: Writer,
    open: Vec<Open>,
    pub(super) asked: Option<Question>,
    root: ElementId,
    begun: bool,
}

/// An element between its tags.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) element: ElementId,
    /// The path of the element, such as `order/item[2]`.
    pub(super) path: String,
    stage: Stage,
    nil: bool,
    pub(super) state: StateId,
    pub(super) count: u32,
    /// The members of an `xs:all` that have occurred.
    pub(super) seen: Vec<StateId>,
    /// The number of children of each name, without those that a wildcard allowed.
    named: HashMap<NameId, usize>,
    /// The name of the last such child.
    pub(super) last: Option<NameId>,
    /// The number of children.
    pub(super) children: usize,
    wild: usize,
}

/// The part of an element that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Nil,
    Attribute(usize),
    Others,
    Content,
    Children,
    End,
}

/// The grammar of a form, its bounds, and the person's choices.
pub(super) struct Rules<'f> {
    pub(super) grammar: &'f Grammar,
    pub(super) limits: &'f XmlLimits,
    /// The paths of the elements that the person writes as XML.
    pub(super) as_xml: &'f BTreeSet<String>,
}

impl Rules<'_> {
    fn element(&self, id: ElementId) -> &Element {
        &self.grammar.elements[id.index()]
    }

    fn ty(&self, id: ElementId) -> &Type {
        &self.grammar.types[self.element(id).ty.index()]
    }
}

impl Filling {
    /// Starts a payload. With `prefixed`, the elements inside of the root are in no namespace.
    pub(super) fn new(root: ElementId, prefixed: bool) -> Self {
        Self { writer: Writer::new(prefixed), open: Vec::new(), asked: None, root, begun: false }
    }

    /// The payload, once nothing is left to ask.
    pub(super) fn finish(self) -> String {
        self.writer.finish()
    }

    /// Writes the parts that need no answer, up to the next question; `false` if there is none.
    ///
    /// # Errors
    /// The bound that the payload would exceed.
    pub(super) fn advance(&mut self, rules: &Rules) -> Result<bool, String> {
        if !std::mem::replace(&mut self.begun, true) {
            self.enter(rules, self.root)?;
        }
        while self.asked.is_none() {
            if self.writer.len() > rules.limits.message_bytes {
                return Err(too_large(rules));
            }
            let Some(open) = self.open.last_mut() else { return Ok(false) };
            let id = open.element;
            let (element, ty) = (rules.element(id), rules.ty(id));
            match open.stage {
                Stage::Nil => {
                    open.stage = Stage::Attribute(0);
                    if element.nillable && element.value.as_ref().is_none_or(|value| !value.fixed) {
                        self.asked = Some(Question::nil(open));
                    }
                }
                Stage::Attribute(place) => match ty.attributes.uses.get(place) {
                    None => open.stage = Stage::Others,
                    Some(used) => {
                        open.stage = Stage::Attribute(place + 1);
                        if used.required {
                            self.attribute(rules, place);
                        } else {
                            self.asked = Some(Question::attribute(rules.grammar, open, place, used));
                        }
                    }
                },
                Stage::Others => {
                    open.stage = Stage::Content;
                    if ty.attributes.wildcard.is_some() {
                        self.asked = Some(Question::others(open));
                    }
                }
                Stage::Content => match &ty.content {
                    _ if open.nil => open.stage = Stage::End,
                    Content::Empty => open.stage = Stage::End,
                    Content::Sequence { .. } | Content::All { .. } => open.stage = Stage::Children,
                    Content::Simple(simple) => {
                        open.stage = Stage::End;
                        match element.value.as_ref().filter(|value| value.fixed) {
                            // An empty element has that value, whose prefixes may be bound in the schema alone.
                            Some(_) if simple.has_prefixes() => {}
                            Some(fixed) => self.writer.text(&fixed.text),
                            None => self.asked = Some(Question::text(open, simple.clone(), element)),
                        }
                    }
                },
                Stage::Children => self.children(rules)?,
                Stage::End => {
                    self.writer.end();
                    self.open.pop();
                }
            }
        }
        Ok(true)
    }

    fn children(&mut self, rules: &Rules) -> Result<(), String> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        let (steps, end) = steps(rules.grammar, open);
        match (steps.as_slice(), end) {
            ([], true) => open.stage = Stage::End,
            ([], false) => {
                return Err(format!("{} can't be completed: each element that must come next is abstract", open.path));
            }
            ([only], false) => self.step(rules, *only)?,
            _ => {
                let own = rules.grammar.name(rules.element(self.root).name).namespace;
                self.asked = Question::next(rules.grammar, own, open, steps, end);
            }
        }
        Ok(())
    }

    /// Moves to a child element.
    fn step(&mut self, rules: &Rules, step: Step) -> Result<(), String> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        let is_all = matches!(rules.ty(open.element).content, Content::All { .. });
        match (is_all, step.counted) {
            (true, _) => open.seen.push(step.to),
            (false, true) => open.count += 1,
            (false, false) => (open.state, open.count) = (step.to, 1),
        }
        open.children += 1;
        match step.child {
            Child::Element(element) => self.enter(rules, element),
            Child::Wildcard(wildcard) => {
                open.wild += 1;
                let (path, ty) = (format!("{}/*[{}]", open.path, open.wild), rules.element(open.element).ty);
                let wanted = Wanted::Wild { ty, wildcard };
                let because = "because the schema leaves open which element it is";
                self.asked = Some(Question::xml(path, open.path.clone(), wanted, because));
                Ok(())
            }
        }
    }

    fn enter(&mut self, rules: &Rules, id: ElementId) -> Result<(), String> {
        let name = rules.element(id).name;
        let own = rules.grammar.name(rules.element(self.root).name).namespace;
        let mut path = element_name(rules.grammar, own, name);
        if let Some(parent) = self.open.last_mut() {
            parent.last = Some(name);
            let number = parent.named.entry(name).or_default();
            *number += 1;
            let number = *number;
            path = format!("{}/{path}", parent.path);
            if number > 1 {
                path = format!("{path}[{number}]");
            }
        }
        let because = if rules.as_xml.contains(&path) { Some("as you asked") } else { needs_xml(rules, id) };
        if let Some(because) = because {
            self.asked = Some(Question::xml(path.clone(), path, Wanted::Declared(id), because));
            return Ok(());
        }
        if self.open.len() >= rules.limits.depth {
            return Err(format!("{path} would be nested more than {} elements deep, the limit", rules.limits.depth));
        }
        let name = rules.grammar.name(name);
        self.writer.start(&rules.grammar.namespaces.name(name.namespace).into(), &name.local);
        self.open.push(Open {
            element: id,
            path,
            stage: Stage::Nil,
            nil: false,
            state: StateId::START,
            count: 0,
            seen: Vec::new(),
            named: HashMap::new(),
            last: None,
            children: 0,
            wild: 0,
        });
        Ok(())
    }

    /// Writes an attribute with a fixed value, or asks for its value.
    fn attribute(&mut self, rules: &Rules, place: usize) {
        let Some(open) = self.open.last() else { return };
        let used = &rules.ty(open.element).attributes.uses[place];
        match used.attribute.fixed() {
            Some(fixed) => {
                let uri = rules.grammar.namespaces.name(used.name.namespace);
                self.writer.attribute(uri, &used.name.local, fixed);
            }
            None => self.asked = Some(Question::attribute_value(rules.grammar, open, place, used)),
        }
    }

    /// Takes the answer to the open question. Nothing changes on an error.
    ///
    /// # Errors
    /// The mistake in the answer, and what to write instead.
    pub(super) fn answer(&mut self, rules: &Rules, judge: &mut Judge, answer: &str) -> Result<Taken, String> {
        let Some(question) = &self.asked else { return Ok(Taken::Written) };
        match question.kind.clone() {
            Kind::Nil => {
                let nil = yes(answer, None)?;
                let Some(open) = self.open.last_mut() else { return Ok(Taken::Written) };
                open.nil = nil;
                if nil {
                    self.writer.attribute(ns::XSI, "nil", "true");
                }
                self.asked = None;
            }
            Kind::Attribute { place, default } => {
                let written = yes(answer, default.then_some(false))?;
                self.asked = None;
                if written {
                    self.attribute(rules, place);
                }
            }
            Kind::Others => {
                if yes(answer, None)? {
                    return Ok(Taken::AsXml(question.element.clone()));
                }
                self.asked = None;
            }
            Kind::Value { ty, attribute, default, choices } => {
                let value = match default {
                    Some(default) if answer.is_empty() => default,
                    _ => chosen(&choices, answer)?.to_owned(),
                };
                if let Some(character) = uncarriable(&value) {
                    return Err(format!("XML can't carry the character U+{:04X}", u32::from(character)));
                }
                if self.writer.len() + value.len() > rules.limits.message_bytes {
                    return Err(too_large(rules));
                }
                ty.check(&value, &NoPrefixes).map_err(|mismatch| mismatch.to_string())?;
                self.asked = None;
                self.write(rules, attribute, &value);
            }
            Kind::Next { steps, names, end } => {
                let step = match (steps.as_slice(), end) {
                    ([only], true) => yes(answer, None)?.then_some(*only),
                    _ => match (answer.trim().parse::<usize>(), end) {
                        (Ok(0), true) => None,
                        (Ok(number), _) if (1..=steps.len()).contains(&number) => Some(steps[number - 1]),
                        (_, end) => match named(&names, answer.trim()) {
                            Some(place) => Some(steps[place]),
                            None => {
                                let (least, most) = (if end { 0 } else { 1 }, steps.len());
                                let expected = format!("a number from {least} to {most}, or a name of the list");
                                return Err(format!("found '{answer}', expected {expected}"));
                            }
                        },
                    },
                };
                self.asked = None;
                match (step, self.open.last_mut()) {
                    (Some(step), _) => {
                        if let Err(why) = self.step(rules, step) {
                            return Ok(Taken::TooMuch(why));
                        }
                    }
                    (None, Some(open)) => open.stage = Stage::End,
                    (None, None) => {}
                }
            }
            Kind::Xml(wanted) => {
                let element = xml(rules, judge, wanted, answer)?;
                if self.writer.len() + element.as_str().len() > rules.limits.message_bytes {
                    return Err(too_large(rules));
                }
                self.asked = None;
                self.writer.element(element.as_str());
            }
        }
        Ok(Taken::Written)
    }

    fn write(&mut self, rules: &Rules, attribute: Option<usize>, value: &str) {
        match (attribute, self.open.last()) {
            (Some(place), Some(open)) => {
                let name = &rules.ty(open.element).attributes.uses[place].name;
                self.writer.attribute(rules.grammar.namespaces.name(name.namespace), &name.local, value);
            }
            _ => self.writer.text(value),
        }
    }
}

/// Outcome of an answer.
pub(super) enum Taken {
    Written,
    /// The element at this path must be written as XML.
    AsXml(String),
    /// The answer would exceed a bound.
    TooMuch(String),
}

/// The reason why an element can't be asked for part by part, if there is one.
fn needs_xml(rules: &Rules, id: ElementId) -> Option<&'static str> {
    let ty = rules.ty(id);
    let uses = &ty.attributes.uses;
    if ty.is_abstract {
        return Some("because its type is abstract: name another one with xsi:type");
    }
    let is_fixed = rules.element(id).value.as_ref().is_some_and(|value| value.fixed);
    let names = |ty: &crate::schema::simple::SimpleType| ty.has_prefixes();
    match &ty.content {
        Content::Sequence { mixed: true, .. } | Content::All { mixed: true, .. } => {
            Some("because text is allowed between its elements")
        }
        Content::Simple(simple) if names(simple) && !is_fixed => Some("because its value is a name with a prefix"),
        _ if uses.iter().any(|used| names(&used.attribute.ty)) => {
            Some("because the value of an attribute is a name with a prefix")
        }
        _ => None,
    }
}

/// Parses one element and validates it by itself.
fn xml(rules: &Rules, judge: &mut Judge, wanted: Wanted, text: &str) -> Result<Canonical, String> {
    let grammar = rules.grammar;
    let read = canonicalize(&text.to_owned().into(), rules.limits).map_err(|error| error.to_string())?;
    let (element, root, process) = match wanted {
        Wanted::Declared(id) => {
            let name = grammar.name(rules.element(id).name);
            let uri = grammar.namespaces.name(name.namespace);
            let qualified = is_qualified(rules, id, name.namespace);
            let read = read.in_namespace(uri, qualified, rules.limits).map_err(|error| error.to_string())?;
            if (read.root().namespace(), read.root().local()) != (uri, &*name.local) {
                let space = if uri.is_empty() { String::new() } else { format!(" in namespace {uri}") };
                return Err(format!("found <{}>, expected <{}>{space}", read.root().local(), name.local));
            }
            (read, Some(id), ProcessContents::Strict)
        }
        Wanted::Wild { ty, wildcard } => {
            let Content::Sequence { model, .. } = &grammar.types[ty.index()].content else { return Ok(read) };
            let wildcard = &model.wildcards[wildcard as usize];
            let namespace = grammar.namespaces.find(read.root().namespace());
            if !wildcard.namespaces.contains(namespace) {
                let expected = wildcard.namespaces.words(&grammar.namespaces, "element");
                return Err(format!("found {}, expected {expected}", read.root()));
            }
            if wildcard.process == ProcessContents::Skip {
                return Ok(read);
            }
            let known = grammar.global_elements.get(namespace, read.root().local()).copied();
            (read, known, wildcard.process)
        }
    };
    match judge.judge_part(grammar, root, process, &element) {
        Some(violation) => Err(violation.rule),
        None => Ok(element),
    }
}

/// Reports whether all child elements are in the namespace of the element itself.
fn is_qualified(rules: &Rules, id: ElementId, own: Namespace) -> bool {
    match &rules.ty(id).content {
        Content::Sequence { model, .. } => {
            model.known.iter().all(|(name, _)| rules.grammar.name(*name).namespace == own)
        }
        Content::All { members, .. } => members.edges.iter().all(|edge| rules.grammar.name(edge.name).namespace == own),
        Content::Empty | Content::Simple(_) => true,
    }
}

fn yes(answer: &str, enter: Option<bool>) -> Result<bool, String> {
    match (answer.trim(), enter) {
        ("y" | "yes", _) => Ok(true),
        ("n" | "no", _) => Ok(false),
        ("", Some(enter)) => Ok(enter),
        (other, _) => Err(format!("found '{other}', expected y or n")),
    }
}

/// The index of the only `<name>` that equals the answer, with or without its brackets.
fn named(names: &[String], written: &str) -> Option<usize> {
    let is_meant = |name: &&String| name.strip_prefix('<').and_then(|name| name.strip_suffix('>')) == Some(written);
    let is_it = |name: &String| is_meant(&name) || name == written;
    let place = names.iter().position(is_it)?;
    names[place + 1..].iter().all(|name| !is_it(name)).then_some(place)
}

/// The value of a numbered list that an answer names, by its number or literally.
fn chosen<'a>(choices: &'a [String], answer: &'a str) -> Result<&'a str, String> {
    if choices.is_empty() || choices.iter().any(|choice| choice == answer) {
        return Ok(answer);
    }
    let number = answer.trim().parse::<usize>().ok().filter(|number| (1..=choices.len()).contains(number));
    match number {
        Some(number) => Ok(&choices[number - 1]),
        None => Err(format!("found '{answer}', expected a number from 1 to {}", choices.len())),
    }
}

fn too_large(rules: &Rules) -> String {
    format!("the payload would be larger than {} bytes, the limit of a message", rules.limits.message_bytes)
}
