use std::fmt;
use std::sync::Arc;

use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteSpanContents, Severity, SourceCode, SourceSpan, SpanContents,
};

use super::Mistake;
use crate::shell::terminal::{Escaped, defuse};
use crate::vocab::{Position, Span};

/// A mistake and the place of it in its file: a diagnostic that `miette` can render.
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

impl Diagnostic for Finding {
    fn severity(&self) -> Option<Severity> {
        Some(if self.mistake.is_warning() { Severity::Warning } else { Severity::Error })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.mistake.help().map(|help| Box::new(Escaped::line(&help).to_string()) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.place.as_ref().map(|place| &*place.file as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let Place { span, other, .. } = self.place.as_ref()?;
        let here = LabeledSpan::new_primary_with_span(other.map(|_| "here".into()), source_span(*span));
        let other = other.map(|(span, why)| LabeledSpan::new_with_span(Some(why.into()), source_span(span)));
        Some(Box::new(std::iter::once(here).chain(other)))
    }
}

fn source_span(span: Span) -> SourceSpan {
    (span.start, span.end - span.start).into()
}

impl SourceCode for File {
    /// As `str` does, but columns count characters rather than bytes.
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let read = self.text.as_str().read_span(span, before, after)?;
        let column = Position::of(self.text.as_bytes(), read.span().offset()).column - 1;
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            read.data(),
            *read.span(),
            read.line(),
            column as usize,
            read.line_count(),
        )))
    }
}
