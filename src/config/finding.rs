use std::fmt;
use std::sync::Arc;

use systole_core::vocab::{Position, Span};

use super::Mistake;
use crate::shell::terminal::{Escaped, defuse};

/// A mistake and the place of it in its file.
#[derive(Debug, Clone)]
pub struct Finding {
    mistake: Mistake,
    place: Option<Place>,
}

#[derive(Debug, Clone)]
struct Place {
    file: Arc<File>,
    span: Span,
    /// Another place that has to do with it, and why.
    other: Option<(Span, &'static str)>,
}

/// A text with the name that its findings call it by.
#[derive(Debug)]
pub(super) struct File {
    name: String,
    text: String,
}

impl Finding {
    pub(super) fn new(mistake: Mistake, file: &Arc<File>, span: Span) -> Self {
        Self { mistake, place: Some(Place { file: file.clone(), span, other: None }) }
    }

    /// A mistake that is in no place of any file: the file isn't there.
    pub(super) fn nowhere(mistake: Mistake) -> Self {
        Self { mistake, place: None }
    }

    pub(super) fn with_other(mut self, span: Span, why: &'static str) -> Self {
        if let Some(place) = &mut self.place {
            place.other = Some((span, why));
        }
        self
    }

    /// What is wrong.
    pub fn mistake(&self) -> &Mistake {
        &self.mistake
    }

    /// The name of the file that it is in, and where there.
    pub fn place(&self) -> Option<(&str, Position)> {
        let place = self.place.as_ref()?;
        Some((&place.file.name, Position::of(place.file.text.as_bytes(), place.span.start)))
    }

    /// The text of that file, and where in it the mistake is.
    pub fn source(&self) -> Option<(&str, Span)> {
        self.place.as_ref().map(|place| (&*place.file.text, place.span))
    }

    /// Another place of that file that has to do with the mistake, and why.
    pub fn other(&self) -> Option<(Span, &'static str)> {
        self.place.as_ref().and_then(|place| place.other)
    }

    /// Where it is, if it is in that file.
    pub(super) fn span_in(&self, file: &Arc<File>) -> Option<Span> {
        self.place.as_ref().filter(|place| Arc::ptr_eq(&place.file, file)).map(|place| place.span)
    }
}

impl File {
    pub(super) fn new(name: impl Into<String>, text: &str) -> Arc<Self> {
        Arc::new(Self { name: Escaped::line(&name.into()).to_string(), text: defuse(text) })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Escaped::line(&self.mistake.to_string()).fmt(f)
    }
}

impl std::error::Error for Finding {}
