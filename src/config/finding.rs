//! Mistakes with their places.

use std::fmt;
use std::sync::Arc;

use systole_core::vocab::{Position, Span};

use super::Mistake;
use crate::terminal::{Escaped, defuse};

/// A mistake with its place in a file.
#[derive(Debug, Clone)]
pub struct ConfigFinding {
    mistake: Mistake,
    place: Option<Place>,
}

#[derive(Debug, Clone)]
struct Place {
    file: Arc<File>,
    span: Span,
    /// Another place that concerns the mistake, and its reason.
    other: Option<(Span, &'static str)>,
}

/// A text with its name in findings.
#[derive(Debug)]
pub(super) struct File {
    name: String,
    text: String,
}

impl File {
    /// Checks for a scalar in quotes at a place.
    pub(super) fn is_quoted(&self, span: Span) -> bool {
        self.text.get(span.start..).is_some_and(|text| text.starts_with(['"', '\'']))
    }
}

impl ConfigFinding {
    pub(super) fn new(mistake: Mistake, file: &Arc<File>, span: Span) -> Self {
        Self { mistake, place: Some(Place { file: file.clone(), span, other: None }) }
    }

    /// Makes a finding without a place: the file is missing.
    pub(super) fn nowhere(mistake: Mistake) -> Self {
        Self { mistake, place: None }
    }

    pub(super) fn with_other(mut self, span: Span, why: &'static str) -> Self {
        if let Some(place) = &mut self.place {
            place.other = Some((span, why));
        }
        self
    }

    /// The mistake.
    pub fn mistake(&self) -> &Mistake {
        &self.mistake
    }

    /// The name of the file, and the place in it.
    pub fn place(&self) -> Option<(&str, Position)> {
        let place = self.place.as_ref()?;
        Some((&place.file.name, Position::of(place.file.text.as_bytes(), place.span.start)))
    }

    /// The text of the file, and the span of the mistake in it.
    pub fn source(&self) -> Option<(&str, Span)> {
        self.place.as_ref().map(|place| (&*place.file.text, place.span))
    }

    /// Another place of that file that concerns the mistake, and its reason.
    pub fn other(&self) -> Option<(Span, &'static str)> {
        self.place.as_ref().and_then(|place| place.other)
    }

    /// The span of the mistake, if it is in that file.
    pub(super) fn span_in(&self, file: &Arc<File>) -> Option<Span> {
        self.place.as_ref().filter(|place| Arc::ptr_eq(&place.file, file)).map(|place| place.span)
    }
}

impl File {
    pub(super) fn new(name: impl Into<String>, text: &str) -> Arc<Self> {
        Arc::new(Self { name: Escaped::line(&name.into()).to_string(), text: defuse(text) })
    }
}

impl fmt::Display for ConfigFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Escaped::line(&self.mistake.to_string()).fmt(f)
    }
}

impl std::error::Error for ConfigFinding {}
