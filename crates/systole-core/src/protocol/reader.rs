//! A reader of the pump's own payloads, and its errors.

use std::iter::Peekable;

use systole_xml::ladder::Canonical;
use systole_xml::ladder::scan::{ScanToken, Scanner, Tag, declared_prefix, unescape, unescape_into};

use crate::vocab::{Position, QName, QNameError};

/// The reason why a payload in the meta namespace is no request to the core, or no answer of the core.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
#[non_exhaustive]
pub struct MetaError {
    /// The problem.
    pub problem: MetaProblem,
    /// The position in the sender's document.
    pub at: Option<Position>,
}

/// The problem that a [`MetaError`] reports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetaProblem {
    /// The core has no such request. It is refused like any call that no listener accepts.
    #[error("the core doesn't know {payload}")]
    Unknown {
        /// The name of the element.
        payload: QName,
    },
    /// A required attribute is missing.
    #[error(
        "<{element}> needs an attribute payload with the name of a payload, such as {{urn:example:calculator:v1}}add"
    )]
    NoName {
        /// The element.
        element: String,
    },
    /// The attribute is no name of a payload.
    #[error("payload of <{element}>: {source}")]
    BadName {
        /// The element.
        element: String,
        /// The rule for names that the attribute breaks.
        source: QNameError,
    },
    /// The name and the payload inside differ.
    #[error("payload of <spawn-thread> is {named}, but {found} is inside")]
    OtherName {
        /// The attribute.
        named: QName,
        /// The element inside.
        found: QName,
    },
    /// A shape that `meta.xsd` doesn't have.
    #[error("{0}")]
    Shape(String),
}

/// A reason, with the number of its element in document order.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) reason: String,
    pub(super) element: usize,
}

impl Problem {
    pub(super) fn new(reason: String, element: usize) -> Self {
        Self { reason, element }
    }

    pub(super) fn into_meta(self, payload: &Canonical) -> MetaError {
        MetaError { at: payload.position(self.element), problem: MetaProblem::Shape(self.reason) }
    }
}

/// Names and values.
pub(super) type Attributes = Vec<(String, String)>;

/// Reads the children of a root, one after the other. It ignores the namespaces of children: they are checked
/// by the caller.
pub(super) struct ElementReader<'a> {
    payload: &'a Canonical,
    tokens: Peekable<Scanner<'a>>,
    root: Tag<'a>,
    elements: usize,
}

impl<'a> ElementReader<'a> {
    pub(super) fn open(payload: &'a Canonical) -> Result<Self, Problem> {
        let mut tokens = Scanner::new(payload.as_str()).peekable();
        match tokens.next() {
            Some(ScanToken::Start(root)) => Ok(Self { payload, tokens, root, elements: 1 }),
            _ => Err(Problem::new("the payload is empty".to_owned(), 0)),
        }
    }

    pub(super) fn problem(&self, reason: String) -> Problem {
        Problem::new(reason, self.elements - 1)
    }

    /// The attributes of the root without declarations and those of other namespaces.
    pub(super) fn attributes(&self) -> Attributes {
        attributes(self.root)
    }

    /// The text of the root, which holds nothing else.
    pub(super) fn root_text(&mut self) -> Result<String, Problem> {
        let name = self.root.local();
        self.rest_of_text(name)
    }

    /// The text of the next child, which must have the name.
    pub(super) fn required_text(&mut self, name: &str) -> Result<String, Problem> {
        match self.optional_text(name)? {
            Some((text, _)) => Ok(text),
            None => Err(self.problem(format!("<{name}> is missing"))),
        }
    }

    /// Text and attributes of the next child, if it has the name.
    pub(super) fn optional_text(&mut self, name: &str) -> Result<Option<(String, Attributes)>, Problem> {
        let Some(tag) = self.next_if(name)? else { return Ok(None) };
        Ok(Some((self.rest_of_text(name)?, attributes(tag))))
    }

    /// The one element inside of the next child, if that has the name.
    pub(super) fn optional_child(&mut self, name: &str) -> Result<Option<Canonical>, Problem> {
        match self.next_if(name)? {
            Some(_) => self.only_child(name).map(Some),
            None => Ok(None),
        }
    }

    /// The one element inside of the root.
    pub(super) fn child_of_root(&mut self) -> Result<Canonical, Problem> {
        let name = self.root.local();
        self.only_child(name)
    }

    /// Checks that nothing else follows.
    pub(super) fn end(&mut self) -> Result<(), Problem> {
        match self.peek()? {
            Some(tag) => Err(Problem::new(format!("<{}> is too much", tag.local()), self.elements)),
            None => Ok(()),
        }
    }

    fn next_if(&mut self, name: &str) -> Result<Option<Tag<'a>>, Problem> {
        let Some(tag) = self.peek()?.filter(|tag| tag.local() == name) else { return Ok(None) };
        self.tokens.next();
        self.elements += 1;
        Ok(Some(tag))
    }

    /// The next start tag before the end of the element that is open.
    fn peek(&mut self) -> Result<Option<Tag<'a>>, Problem> {
        loop {
            match self.tokens.peek() {
                Some(ScanToken::Start(tag)) => return Ok(Some(*tag)),
                Some(ScanToken::End) | None => return Ok(None),
                Some(ScanToken::Text(text)) if text.trim_matches([' ', '\t', '\n']).is_empty() => {
                    self.tokens.next();
                }
                Some(ScanToken::Text(text)) => {
                    let text: String = unescape(text).trim().chars().take(32).collect();
                    return Err(self.problem(format!("the text '{text}' stands where only elements may")));
                }
            }
        }
    }

    fn rest_of_text(&mut self, name: &str) -> Result<String, Problem> {
        let mut text = String::new();
        loop {
            match self.tokens.next() {
                Some(ScanToken::Text(written)) => unescape_into(&mut text, written),
                Some(ScanToken::End) | None => return Ok(text),
                Some(ScanToken::Start(_)) => {
                    return Err(self.problem(format!("<{name}> holds elements, and may only hold text")));
                }
            }
        }
    }

    fn only_child(&mut self, name: &str) -> Result<Canonical, Problem> {
        if self.peek()?.is_none() {
            return Err(self.problem(format!("<{name}> is empty, and must hold one element")));
        }
        let index = self.elements;
        let mut open = 0;
        loop {
            match self.tokens.next() {
                Some(ScanToken::Start(_)) => {
                    open += 1;
                    self.elements += 1;
                }
                Some(ScanToken::End) => open -= 1,
                Some(ScanToken::Text(_)) => {}
                None => return Err(self.problem(format!("<{name}> ends too early"))),
            }
            if open == 0 {
                break;
            }
        }
        if self.peek()?.is_some() {
            return Err(self.problem(format!("<{name}> holds several elements, and must hold one")));
        }
        self.tokens.next();
        self.payload.subtree(index).ok_or_else(|| self.problem(format!("<{name}> ends too early")))
    }
}

fn attributes(tag: Tag) -> Attributes {
    let own = tag.attributes().filter(|(name, _)| declared_prefix(name).is_none() && !name.contains(':'));
    own.map(|(name, value)| (name.to_owned(), unescape(value).into_owned())).collect()
}
