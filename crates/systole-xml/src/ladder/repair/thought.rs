//! Thoughts of language models (`<think>` and the like), and the tokens that they leak.

use super::lexis::excerpt;
use super::meant::is_amid_text;
use super::outside::Root;
use super::pairs::key;
use super::scan::Scanner;
use super::tag::StartTag;
use super::{RepairError, RepairKind, Shape};
use crate::ladder::scan::split_prefix;

/// Elements that language models think in.
const THOUGHTS: &[&str] = &["think", "thinking", "thought", "thoughts", "reasoning", "reflection", "scratchpad"];

/// Tests a local name, in any case of letters, for one of the elements in which models think.
pub(in crate::ladder) fn is_thought(local: &str) -> bool {
    THOUGHTS.iter().any(|thought| thought.eq_ignore_ascii_case(local))
}

/// Tokens of language models that look like start tags.
const TOKENS: &[&str] = &["s", "bos", "eos", "pad", "unk"];

/// Tests a name for a token of a language model.
pub(super) fn is_token(name: &str) -> bool {
    TOKENS.contains(&name)
}

impl<'t> Scanner<'t> {
    /// Returns whether a tag begins thoughts that have no end tag, or is a token of a model: not the payload.
    pub(super) fn is_thought(&mut self, tag: &StartTag<'t>) -> bool {
        self.outside.skipping
            && !tag.empty
            && tag.count == 0
            && (is_thought(&key(tag.name)) || is_token(tag.name) || self.is_unknown(tag.name))
            && !self.pairs.is_closed(tag.start)
    }

    /// Tests the name of a tag for thoughts in the output of an emitter whose contract declares no such element.
    /// An end tag alone ends thoughts whose start tag stands in the prompt of the model.
    pub(super) fn is_undeclared_thought(&self, name: &str) -> bool {
        self.shape == Shape::Fragment && is_thought(split_prefix(name).1) && self.is_unknown(name)
    }

    /// Drops all before the end of thoughts that began in the prompt of the model.
    pub(super) fn drop_thought_before(&mut self, end: usize) {
        if self.roots > 0 {
            self.outside.dropped = Some((self.outside.root.start, self.outside.root.name));
        }
        self.out.clear();
        self.marks.clear();
        self.roots = 0;
        (self.outside.root, self.outside.in_prose) = (Root::default(), false);
        (self.outside.in_words, self.outside.mentioned) = (false, None);
        self.mark(0, end, RepairKind::Thought);
        self.outside.prose = None;
        self.pos = end;
        self.outside.gap = end;
    }

    /// Refuses an output whose only elements stand before the end of thoughts: that end tag may be a stray one.
    pub(super) fn check_dropped(&self) -> Result<(), RepairError> {
        match self.outside.dropped {
            Some((start, name)) if self.roots == 0 => {
                self.refuse(start, |at| RepairError::Draft { at, name: excerpt(name) })
            }
            _ => Ok(()),
        }
    }

    /// Drops thoughts with all that they hold: markup in them is none. Those without an end are prose.
    pub(super) fn thought(&mut self, tag: &StartTag<'t>) {
        let end_tag = self.pairs.end_of(tag.start).or_else(|| self.pairs.reopened(tag.start));
        let close = end_tag.and_then(|at| Some(at + memchr::memchr(b'>', &self.text.as_bytes()[at..])? + 1));
        let Some(end) = close.or(tag.empty.then_some(tag.end)) else {
            self.outside.in_thought = true;
            return self.skip(tag.end);
        };
        self.flush(tag.start);
        self.mark(tag.start, end, RepairKind::Thought);
        self.pos = end;
        self.outside.gap = end;
    }

    /// Returns whether a tag inside of an element begins thoughts that have no end tag: where they end, nothing tells, and
    /// as an element they would hold what follows them.
    pub(super) fn is_open_thought(&mut self, tag: &StartTag<'t>) -> bool {
        let local = split_prefix(tag.name).1;
        !tag.empty
            && is_thought(local)
            && !self.vocabulary.knows(local)
            && !is_amid_text(&self.text[..tag.start])
            && !self.pairs.is_closed(tag.start)
    }
}
