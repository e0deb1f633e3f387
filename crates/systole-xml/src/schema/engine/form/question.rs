//! The questions of a form: their texts, and the answers that they take.

use std::fmt::Write;
use std::sync::Arc;

use super::filling::Open;
use crate::schema::engine::grammar::{
    AttributeUse, Content, Edge, Element, ElementId, Grammar, NameId, ProcessContents, StateId, UNBOUNDED, WildcardEdge,
};
use crate::schema::engine::judge::shown_name;
use crate::schema::engine::namespace::Namespace;
use crate::schema::simple::{NoPrefixes, SimpleType};

/// A question of a form.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// The key, which the same question has in each pass through the form.
    pub(super) key: String,
    /// The path of the element that the question is about.
    pub(super) element: String,
    pub(super) prompt: String,
    pub(super) kind: Kind,
}

/// The kinds of answers.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// Asks for `xsi:nil`.
    Nil,
    /// Asks for an optional attribute, by its index in the type. With `default`, an empty line says no.
    Attribute { place: usize, default: bool },
    /// Asks for attributes that only a wildcard allows.
    Others,
    /// Asks for the value of an attribute, by its index, or for the text of the element.
    Value { ty: SimpleType, attribute: Option<usize>, default: Option<String>, choices: Vec<String> },
    /// Asks for the next child element or, if the element may `end`, for none. `names` are those of the steps, as the
    /// question lists them.
    Next { steps: Vec<Step>, names: Arc<[String]>, end: bool },
    /// An element as XML.
    Xml(Wanted),
}

/// A child element that a content model allows at some place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) child: Child,
    pub(super) to: StateId,
    /// Set if the state counts the child and doesn't change.
    pub(super) counted: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Child {
    Element(ElementId),
    /// A wildcard, by its index in the model.
    Wildcard(u32),
}

/// The element that is to be written as XML.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    Declared(ElementId),
    /// Any element that a wildcard of this type allows.
    Wild {
        ty: crate::schema::engine::grammar::TypeId,
        wildcard: u32,
    },
}

/// The greatest number of values that are listed with numbers. Longer enumerations are described, and the person types
/// the value.
const MOST_NUMBERED: usize = 200;

impl Question {
    pub(super) fn nil(open: &Open) -> Self {
        let prompt = format!("{} may be nil, without content. Is it nil? (y or n): ", open.path);
        Self { key: format!("{} nil", open.path), element: open.path.clone(), prompt, kind: Kind::Nil }
    }

    pub(super) fn attribute(grammar: &Grammar, open: &Open, place: usize, used: &AttributeUse) -> Self {
        let path = attribute_path(grammar, open, used);
        let default = used.attribute.value.as_ref();
        let prompt = match default {
            Some(value) if value.fixed => {
                format!("{path} may be left out; if written, it is '{}'. Write it? (y or n): ", value.text)
            }
            Some(value) => {
                format!("{path} may be left out, which means '{}'. Write it? (y or n, Enter for n): ", value.text)
            }
            None => format!("{path} may be left out. Write it? (y or n): "),
        };
        let default = default.is_some_and(|value| !value.fixed);
        let kind = Kind::Attribute { place, default };
        Self { key: format!("{path}?"), element: open.path.clone(), prompt, kind }
    }

    pub(super) fn others(open: &Open) -> Self {
        let prompt =
            format!("{} may have other attributes. Write the whole element as XML for them? (y or n): ", open.path);
        Self { key: format!("{} others", open.path), element: open.path.clone(), prompt, kind: Kind::Others }
    }

    pub(super) fn attribute_value(grammar: &Grammar, open: &Open, place: usize, used: &AttributeUse) -> Self {
        let path = attribute_path(grammar, open, used);
        Self::value(path, open.path.clone(), used.attribute.ty.clone(), Some(place), None)
    }

    pub(super) fn text(open: &Open, ty: SimpleType, element: &Element) -> Self {
        let default = element.value.as_ref().map(|value| value.text.to_string());
        Self::value(open.path.clone(), open.path.clone(), ty, None, default)
    }

    fn value(path: String, element: String, ty: SimpleType, attribute: Option<usize>, default: Option<String>) -> Self {
        let values = ty.enumerated(&NoPrefixes);
        // A value that looks like a number of the list would be ambiguous.
        let is_numbered = (1..=MOST_NUMBERED).contains(&values.len())
            && values.iter().all(|value| value.trim().parse::<u64>().is_err());
        let choices: Vec<String> =
            if is_numbered { values.iter().map(ToString::to_string).collect() } else { Vec::new() };
        let enter = default.as_ref().map_or_else(String::new, |value| format!(" (Enter takes '{value}')"));
        let prompt = if choices.is_empty() {
            format!("{path}, {}{enter}: ", ty.words())
        } else {
            format!("{path}, one of\n{}{path}, its number{enter}: ", numbered(&choices, |value| format!("'{value}'")))
        };
        Self { key: format!("{path}="), element, prompt, kind: Kind::Value { ty, attribute, default, choices } }
    }

    /// Asks for the next child; `None` if there is no choice, because one must come or none may.
    pub(super) fn next(grammar: &Grammar, own: Namespace, open: &Open, steps: Vec<Step>, end: bool) -> Option<Self> {
        let path = &open.path;
        let names: Vec<String> = steps.iter().map(|step| step_name(grammar, own, open, *step)).collect();
        let prompt = match (names.as_slice(), steps.as_slice(), end) {
            ([], _, _) | ([_], _, false) => return None,
            ([name], [step], true) => {
                let again = matches!(step.child, Child::Element(element)
                    if open.last == Some(grammar.elements[element.index()].name));
                let most = counted(grammar, open, *step);
                let another = if again { "another " } else { "" };
                format!("{path} may have {another}{name} here{most}. Write it? (y or n): ")
            }
            (_, _, end) => {
                let none = if end { "  0  nothing more\n" } else { "" };
                let order = if passes_over(grammar, open, &steps) {
                    "  (the entries above your choice in this list can't follow it)\n"
                } else {
                    ""
                };
                let list = numbered(&names, Clone::clone);
                format!("{path}, what comes next?\n{list}{none}{order}{path}, its number or name: ")
            }
        };
        let key = format!("{path} {}", open.children);
        Some(Self { key, element: path.clone(), prompt, kind: Kind::Next { steps, names: names.into(), end } })
    }

    pub(super) fn xml(path: String, element: String, wanted: Wanted, because: &str) -> Self {
        let prompt = format!("{path} as XML, {because}; an empty line ends it:\n");
        Self { key: format!("{path} xml"), element, prompt, kind: Kind::Xml(wanted) }
    }
}

/// Reports whether the steps have an order: after a later one, an earlier one is no longer possible.
fn passes_over(grammar: &Grammar, open: &Open, steps: &[Step]) -> bool {
    let Content::Sequence { model, .. } = &grammar.types[grammar.elements[open.element.index()].ty.index()].content
    else {
        return false;
    };
    let follows = |one: &Step, other: &Step| {
        let Child::Element(wanted) = other.child else { return false };
        let mut seen = vec![false; model.states.len()];
        let mut open = vec![one.to];
        while let Some(state) = open.pop() {
            if std::mem::replace(&mut seen[state.index()], true) {
                continue;
            }
            let state = &model.states[state.index()];
            let counted = state.counter.iter();
            let lists = || std::iter::once(&state.edges).chain(counted.clone().map(|counter| &counter.edges));
            let edges = || lists().flat_map(|list| model.edges(list));
            if edges().any(|edge| edge.element == wanted) {
                return true;
            }
            let wildcards = lists().flat_map(|list| model.wildcard_edges(list));
            open.extend(edges().map(|edge| edge.to).chain(wildcards.map(|edge| edge.to)));
        }
        false
    };
    steps.windows(2).any(|pair| follows(&pair[0], &pair[1]) && !follows(&pair[1], &pair[0]))
}

fn numbered(items: &[String], shown: impl Fn(&String) -> String) -> String {
    let mut out = String::new();
    for (number, item) in (1..).zip(items) {
        let _ = writeln!(out, "  {number}  {}", shown(item));
    }
    out
}

fn attribute_path(grammar: &Grammar, open: &Open, used: &AttributeUse) -> String {
    let uri = grammar.namespaces.name(used.name.namespace);
    match used.name.namespace {
        Namespace::XML => format!("{}/@xml:{}", open.path, used.name.local),
        namespace => format!("{}/@{}", open.path, shown_name(Namespace::NONE, namespace, uri, &used.name.local)),
    }
}

fn step_name(grammar: &Grammar, own: Namespace, open: &Open, step: Step) -> String {
    match step.child {
        Child::Element(element) => format!("<{}>", element_name(grammar, own, grammar.elements[element.index()].name)),
        Child::Wildcard(wildcard) => match wildcard_of(grammar, open, wildcard) {
            Some((words, ProcessContents::Strict)) => format!("{words}, of those that the schema declares"),
            Some((words, _)) => words,
            None => "any element".to_owned(),
        },
    }
}

fn wildcard_of(grammar: &Grammar, open: &Open, wildcard: u32) -> Option<(String, ProcessContents)> {
    let Content::Sequence { model, .. } = &grammar.types[grammar.elements[open.element.index()].ty.index()].content
    else {
        return None;
    };
    let wildcard = model.wildcards.get(wildcard as usize)?;
    Some((wildcard.namespaces.words(&grammar.namespaces, "element"), wildcard.process))
}

/// The name of an element for messages.
pub(super) fn element_name(grammar: &Grammar, own: Namespace, name: NameId) -> String {
    let name = grammar.name(name);
    shown_name(own, name.namespace, grammar.namespaces.name(name.namespace), &name.local)
}

/// The text ` (2 of at most 3)`, if the model counts and has a bound.
fn counted(grammar: &Grammar, open: &Open, step: Step) -> String {
    let Content::Sequence { model, .. } = &grammar.types[grammar.elements[open.element.index()].ty.index()].content
    else {
        return String::new();
    };
    let counter = model.states[open.state.index()].counter.as_ref();
    match counter.filter(|counter| step.counted && counter.max != UNBOUNDED) {
        Some(counter) => format!(" ({} of at most {})", open.count + 1, counter.max),
        None => String::new(),
    }
}

/// The children that may come next in an open element; `true` if it may end.
pub(super) fn steps(grammar: &Grammar, open: &Open) -> (Vec<Step>, bool) {
    let mut steps = Vec::new();
    let mut edges = |edges: &[Edge], wildcards: &[WildcardEdge], counted: bool| {
        for edge in edges.iter().filter(|edge| !grammar.elements[edge.element.index()].is_abstract) {
            steps.push(Step { child: Child::Element(edge.element), to: edge.to, counted });
        }
        for edge in wildcards {
            steps.push(Step { child: Child::Wildcard(edge.wildcard), to: edge.to, counted });
        }
    };
    match &grammar.types[grammar.elements[open.element.index()].ty.index()].content {
        Content::Sequence { model, .. } => {
            let state = &model.states[open.state.index()];
            let counter = state.counter.as_deref();
            if let Some(counter) = counter.filter(|counter| open.count < counter.max) {
                edges(model.edges(&counter.edges), model.wildcard_edges(&counter.edges), true);
            }
            let may_leave = counter.is_none_or(|counter| open.count >= counter.min);
            if may_leave {
                edges(model.edges(&state.edges), model.wildcard_edges(&state.edges), false);
            }
            (steps, state.accepts && may_leave)
        }
        Content::All { members, .. } => {
            let free: Vec<Edge> = members.edges.iter().copied().filter(|edge| !open.seen.contains(&edge.to)).collect();
            edges(&free, &[], false);
            let is_there = |member: usize| open.seen.contains(&StateId::new(member));
            let all = (0..members.required.len()).all(|member| !members.required[member] || is_there(member));
            (steps, members.optional && open.seen.is_empty() || all)
        }
        Content::Empty | Content::Simple(_) => (steps, true),
    }
}
