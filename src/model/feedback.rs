//! Refusals of answers in words for the model that gave them, and for the caller when there are no tries left.

use systole_core::core::Failure;
use systole_core::vocab::{BrokenRule, Fault, FaultCode};

use super::{Completion, Finish};
use crate::runtime::terminal::shorten;

/// Characters of a rule that a fault carries to the caller.
const RULE: usize = 1000;

/// The reason to refuse an answer regardless of its text: the answer is incomplete.
pub(super) fn unfinished(finish: &Finish, max_tokens: u32) -> Option<Fault> {
    let fault = |message: String| Fault::new(FaultCode::Failed, message);
    match finish {
        Finish::Whole => None,
        Finish::Cut => Some(fault(format!("an answer was cut off by a limit of tokens (max_tokens: {max_tokens})"))),
        Finish::Withheld(why) => {
            Some(fault(format!("an answer is not whole: its provider ended it with the reason {why}")))
        }
    }
}

/// The refusal of an answer without a payload, where one is owed.
pub(super) fn nothing_said() -> Fault {
    Fault::new(FaultCode::Silent, "an answer has no XML element in it")
}

/// The refusal of an answer that may be meant by any of several replies.
pub(super) fn several_replies(replies: usize) -> Fault {
    let message =
        format!("an answer has {replies} replies in it: write the one that is meant alone, and no example or draft");
    Fault::new(FaultCode::Failed, message)
}

/// The refusal of an answer with a reply and other elements.
pub(super) fn beside_a_reply(others: usize) -> Fault {
    let message = format!(
        "an answer has a reply in it, which ends the task, and {others} other elements: write the reply alone, or the \
         calls alone and wait for their answers"
    );
    Fault::new(FaultCode::Failed, message)
}

/// The text that tells a model why its answer was refused.
pub(super) fn feedback(fault: &Fault, is_cut: bool) -> String {
    let mut text = format!("Your answer was refused: {}.", fault.message);
    if let Some(BrokenRule { rule, at, example }) = fault.rule.as_deref() {
        text.push_str("\nRule: ");
        if let Some(at) = at {
            text.push_str(&format!("line {}, column {}: ", at.line, at.column));
        }
        text.push_str(rule);
        if let Some(example) = example {
            text.push_str("\nA valid example:\n");
            text.push_str(example);
        }
    }
    text.push_str(match is_cut {
        true => "\nAnswer again, and shorter: nothing of that answer was used.",
        false => "\nAnswer again: nothing of that answer was used.",
    });
    text
}

/// The failure of a message whose model gave no valid answer.
pub(super) fn gave_up(tries: u32, last: &Fault) -> Failure {
    let mut message = format!("a model gave no valid answer in {tries} tries; the last was refused: {}", last.message);
    if let Some(BrokenRule { rule, at, .. }) = last.rule.as_deref() {
        let at = at.map_or_else(String::new, |at| format!("{}:{}: ", at.line, at.column));
        message.push_str(&format!(": {at}{}", shorten(rule, RULE)));
    }
    let fault = Fault { retryable: true, ..Fault::new(FaultCode::Failed, message) };
    Failure::passing(fault)
}

/// The text of an answer as a turn, which may not be empty.
pub(super) fn said(completion: &Completion) -> &str {
    if completion.text.trim().is_empty() { "(nothing)" } else { &completion.text }
}
