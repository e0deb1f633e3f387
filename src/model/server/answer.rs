//! An answer of a script, before it has the form of a protocol.

use super::request::Asked;
use crate::model::prompt::BYTES_A_TOKEN;
use crate::model::scripted::{cut, ends};
use crate::settings::{Rule, ToolCall};

/// An answer.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// The number of the answer, of which ids are made.
    pub(super) number: u64,
    /// The time of the answer, in seconds since 1970.
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) text: String,
    /// The tool that is called behind the text, if any.
    pub(super) call: Option<ToolCall>,
    /// Whether it counts as cut by its limit of tokens.
    pub(super) is_cut: bool,
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) streams: bool,
    pub(super) counts: bool,
}

impl Answer {
    pub(super) fn new(number: u64, created: u64, asked: Asked, rule: &Rule) -> Self {
        let Asked { model, most, input, streams, counts, .. } = asked;
        let (text, is_longer) = cut(rule.answer.clone(), most);
        let bytes = text.len() + rule.call.as_ref().map_or(0, |call| call.name.len() + call.arguments.len());
        Self {
            number,
            created,
            model,
            text,
            call: rule.call.clone(),
            is_cut: rule.cut || is_longer,
            input,
            output: (bytes as u64).div_ceil(BYTES_A_TOKEN),
            streams,
            counts,
        }
    }

    /// The pieces in which the text comes: by words, if the rule has a pace.
    pub(super) fn pieces(&self, rule: &Rule) -> impl Iterator<Item = &str> {
        let mut start = 0;
        ends(&self.text, rule.pace).map(move |end| &self.text[std::mem::replace(&mut start, end)..end])
    }

    /// An id of the answer, or of a part of it.
    pub(super) fn id(&self, prefix: &str) -> String {
        format!("{prefix}_{}", self.number)
    }
}
