//! A form as a page: a field for each question that can be asked, filled with what a person has written so far.
//!
//! Unlike lines, a page shows what comes behind an open question. A value leaves the rest of the form as it is, so the page
//! goes on behind one that is missing or wrong. An optional part is left out until the person asks for it. A choice that has to be made
//! ends the page, since the rest depends on it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::filling::{Filling, Rules, Taken};
use super::judged;
use super::question::{Kind, Question};
use crate::schema::engine::grammar::{ElementId, Grammar};
use crate::schema::engine::judge::Judge;
use crate::vocab::XmlLimits;

/// Most fields of a page.
const MOST: usize = 1_000;

/// The fields of a form, filled as far as there are answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormPage {
    /// The fields, in the order of the payload.
    pub fields: Vec<FormField>,
    /// The payload as canonical XML, or the rule that it breaks as a whole; `None` as long as a field lacks a right answer.
    pub payload: Option<Result<String, String>>,
}

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormField {
    /// The key of the question, by which its answer is kept. It begins with the path of what is asked for.
    pub key: String,
    /// The question, in a line.
    pub question: String,
    /// The kind of its answers.
    pub kind: FieldKind,
    /// The answer; `None` if there is none yet.
    pub answer: Option<String>,
    /// The rule that the answer breaks.
    pub error: Option<String>,
    /// True if the questions behind it depend on the answer.
    pub decides: bool,
}

/// The kinds of answers of a [`FormField`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldKind {
    /// `y` or `n`.
    YesOrNo,
    /// One of these answers, each with its text.
    Choice(Vec<(String, String)>),
    /// A text; the empty one means the default, if there is one.
    Text(Option<String>),
    /// An element as XML.
    Xml,
}

impl FieldKind {
    fn of(kind: &Kind) -> Self {
        match kind {
            Kind::Nil | Kind::Attribute { .. } | Kind::Others => Self::YesOrNo,
            Kind::Next { steps, end: true, .. } if steps.len() == 1 => Self::YesOrNo,
            Kind::Next { names, end, .. } => {
                let none = end.then(|| ("0".to_owned(), "nothing more".to_owned()));
                let names = names.iter().enumerate().map(|(place, name)| ((place + 1).to_string(), name.clone()));
                Self::Choice(none.into_iter().chain(names).collect())
            }
            Kind::Value { choices, .. } if !choices.is_empty() => {
                Self::Choice(choices.iter().map(|choice| (choice.clone(), choice.clone())).collect())
            }
            Kind::Value { ty, default: None, .. } if ty.is_boolean() => {
                Self::Choice(["true", "false"].map(|value| (value.to_owned(), value.to_owned())).into())
            }
            Kind::Value { default, .. } => Self::Text(default.clone()),
            Kind::Xml(_) => Self::Xml,
        }
    }
}

/// The answer that leaves an optional part out.
fn without(kind: &Kind) -> Option<&'static str> {
    match kind {
        Kind::Nil | Kind::Attribute { .. } | Kind::Others => Some("n"),
        Kind::Next { steps, end: true, .. } => Some(if steps.len() == 1 { "n" } else { "0" }),
        Kind::Next { end: false, .. } | Kind::Value { .. } | Kind::Xml(_) => None,
    }
}

/// Makes the page of a form with these answers, by the keys of their questions.
pub(in crate::schema) fn page(
    (grammar, root): (&Arc<Grammar>, ElementId),
    is_qualified: bool,
    limits: &XmlLimits,
    answers: &HashMap<String, String>,
) -> FormPage {
    let mut as_xml = BTreeSet::new();
    loop {
        let rules = Rules { grammar, limits, as_xml: &as_xml };
        match pass(&rules, (root, is_qualified), answers) {
            Ok(page) => return page,
            // An element is to be written as XML: the questions about its parts go. Each pass finds another one.
            Err(path) => drop(as_xml.insert(path)),
        }
    }
}

/// Goes through the form once; an error is the path of an element that has to be written as XML.
fn pass(
    rules: &Rules<'_>,
    (root, is_qualified): (ElementId, bool),
    answers: &HashMap<String, String>,
) -> Result<FormPage, String> {
    let (mut filling, mut judge) = (Filling::new(root, !is_qualified), Judge::default());
    let (mut fields, mut is_whole): (Vec<FormField>, _) = (Vec::new(), true);
    loop {
        match filling.advance(rules) {
            Ok(true) if fields.len() < MOST => {}
            Ok(true) => {
                let why = format!("a form has at most {MOST} questions: write the payload as XML");
                return Ok(FormPage { fields, payload: Some(Err(why)) });
            }
            Ok(false) => break,
            Err(why) => return Ok(FormPage { fields, payload: Some(Err(why)) }),
        }
        let Some(Question { key, prompt, kind, .. }) = filling.asked.clone() else { break };
        let may_be_empty = matches!(FieldKind::of(&kind), FieldKind::Text(_));
        let answer = answers.get(&key).map(String::as_str).filter(|answer| may_be_empty || !answer.is_empty());
        let answer = answer.or_else(|| without(&kind));
        let (error, is_answered) = match answer.map(|answer| filling.answer(rules, &mut judge, answer)) {
            None => (None, false),
            Some(Ok(Taken::Written)) => (None, true),
            Some(Ok(Taken::AsXml(path))) => return Err(path),
            Some(Ok(Taken::TooMuch(why)) | Err(why)) => (Some(why), false),
        };
        // The hints of the form by lines are about its keyboard.
        let line = prompt.lines().next().unwrap_or_default();
        let hint =
            [" (y or n", " (Enter takes", "; an empty line ends it"].iter().filter_map(|hint| line.find(hint)).min();
        let question = line[..hint.unwrap_or(line.len())].trim_end_matches([':', ' ']).to_owned();
        let decides = !matches!(kind, Kind::Value { .. } | Kind::Xml(_));
        let ends = decides && !is_answered;
        let (kind, answer) = (FieldKind::of(&kind), answer.map(str::to_owned));
        fields.push(FormField { key, question, kind, answer, error, decides });
        if ends {
            is_whole = false;
            break;
        }
        if !is_answered {
            // What is missing is no part of the payload, which is not made then.
            is_whole = false;
            filling.asked = None;
        }
    }
    let payload = is_whole.then(|| judged(rules.grammar, root, &mut judge, rules.limits, filling.finish()).1);
    Ok(FormPage { fields, payload })
}
