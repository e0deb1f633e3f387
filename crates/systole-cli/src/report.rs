//! Findings as text: each underlined in its file.

use std::fmt;
use std::io::{self, IsTerminal};
use std::ops::Range;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, Severity,
    SourceCode, SourceSpan, SpanContents,
};
use systole::config::ConfigFinding;
use systole::terminal::Escaped;
use systole_core::vocab::{Position, Span};

use super::print;

/// Prints findings on standard error, each underlined in its file, and their number.
pub(super) fn print(findings: &[ConfigFinding]) {
    print::say(render(findings, colour()));
}

/// The findings as text without colours.
pub(super) fn text(findings: &[ConfigFinding]) -> String {
    render(findings, false).trim_end().to_owned()
}

/// Findings that are shown at most.
const MOST: usize = 100;

/// The findings as text; the last line counts them. Of more than [`MOST`] the first are shown, errors before warnings.
fn render(findings: &[ConfigFinding], colour: bool) -> String {
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(110).with_links(false).with_context_lines(1);
    let mut text = String::new();
    let mut shown: Vec<_> = findings.iter().collect();
    if shown.len() > MOST {
        shown.sort_by_key(|finding| finding.mistake().is_warning());
        shown.truncate(MOST);
    }
    for finding in &shown {
        // Writing to a string never fails.
        let _ = handler.render_report(&mut text, &Report::of(finding));
        text.push('\n');
    }
    if shown.len() < findings.len() {
        text.push_str(&format!("{} more are not shown: correct these first\n\n", findings.len() - shown.len()));
    }
    let warnings = findings.iter().filter(|finding| finding.mistake().is_warning()).count();
    text + &format!("{}, {}\n", count(findings.len() - warnings, "error"), count(warnings, "warning"))
}

/// Checks whether standard error shows colours.
pub(super) fn colour() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A finding as `miette` renders it.
struct Report<'a> {
    finding: &'a ConfigFinding,
    source: Option<Source<'a>>,
}

/// The file of a finding: its name and its text.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

impl<'a> Report<'a> {
    fn of(finding: &'a ConfigFinding) -> Self {
        let source = finding.place().zip(finding.source());
        Self { finding, source: source.map(|((name, _), (text, _))| Source { name, text }) }
    }
}

impl fmt::Debug for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.finding.fmt(f)
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.finding, f)
    }
}

impl std::error::Error for Report<'_> {}

impl Diagnostic for Report<'_> {
    fn severity(&self) -> Option<Severity> {
        Some(if self.finding.mistake().is_warning() { Severity::Warning } else { Severity::Error })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = self.finding.mistake().help();
        help.map(|help| Box::new(Escaped::line(&help).to_string()) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let ((_, span), other) = (self.finding.source()?, self.finding.other());
        let here = LabeledSpan::new_primary_with_span(other.map(|_| "here".into()), source_span(span));
        let other = other.map(|(span, why)| LabeledSpan::new_with_span(Some(why.into()), source_span(span)));
        Some(Box::new(std::iter::once(here).chain(other)))
    }
}

fn source_span(span: Span) -> SourceSpan {
    (span.start, span.end - span.start).into()
}

/// Bytes that are shown of a long line, before its span and from there on.
const SHOWN: usize = 400;

impl Source<'_> {
    /// The lines around a span, one more on each side than asked for: the reader of `str` looks at all before the span.
    fn near(&self, span: &SourceSpan, before: usize, after: usize) -> Range<usize> {
        let bytes = self.text.as_bytes();
        let is_end = |byte: &u8| *byte == b'\n';
        let (start, end) = (span.offset().min(bytes.len()), (span.offset() + span.len()).min(bytes.len()));
        let above = |at: usize| bytes[..at].iter().rposition(is_end).unwrap_or(0);
        let below = |at: usize| bytes[at..].iter().position(is_end).map_or(bytes.len(), |length| at + length + 1);
        (0..before + 2).fold(start, |at, _| above(at))..(0..after + 2).fold(end, |at, _| below(at))
    }
}

impl SourceCode for Source<'_> {
    /// Reads a span as `str` does, but columns count characters rather than bytes, and of long lines only the part around
    /// the span is read: the renderer takes widths up to 65,535, and a reader fewer.
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let near = self.near(span, before, after);
        let read =
            self.text[near.clone()].read_span(&(span.offset() - near.start, span.len()).into(), before, after)?;
        let mut start = near.start + read.span().offset();
        let mut end = start + read.span().len();
        let mut lines = read.line_count() + Position::of(self.text.as_bytes(), near.start).line as usize - 1;
        if self.text[start..end].lines().any(|line| line.len() > 2 * SHOWN) {
            let boundary = |at: usize| (0..=at).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(0);
            start = boundary(start.max(span.offset().saturating_sub(SHOWN)));
            end = boundary(end.min(span.offset() + SHOWN));
            lines = self.text[start..end].lines().count();
        }
        let at = Position::of(self.text.as_bytes(), start);
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.to_owned(),
            &self.text.as_bytes()[start..end],
            (start, end - start).into(),
            at.line as usize - 1,
            at.column as usize - 1,
            lines,
        )))
    }
}
