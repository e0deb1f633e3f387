//! Refusals of answers in words for the model that gave them, and for the caller when there are no tries left.

use systole_core::core::Failure;
use systole_core::vocab::{BrokenRule, Fault, FaultCode, QName};
use systole_xml::schema::Catalog;

use super::{Completion, Finish};
use crate::terminal::shorten;

/// Characters of a rule that a fault carries to the caller.
const RULE: usize = 1000;

/// The reason to refuse an answer regardless of its text: the answer is incomplete.
pub(super) fn unfinished(finish: &Finish, max_tokens: u32) -> Option<Fault> {
    let fault = |message: String| Fault::new(FaultCode::Failed, message);
    match finish {
        Finish::Whole | Finish::Unsaid => None,
        Finish::Cut => Some(fault(format!("an answer was cut off by a limit of tokens (max_tokens: {max_tokens})"))),
        Finish::Withheld(why) => {
            let fault = fault(format!("an answer is not whole: its provider ended it with the reason {why}"));
            let rule = ["tool", "function"].iter().any(|call| why.contains(call)).then(|| {
                let rule = Notation::FunctionCall.words().to_owned();
                Box::new(BrokenRule { rule, at: None, example: None })
            });
            Some(Fault { rule, ..fault })
        }
    }
}

/// The refusal of an answer without an end tag at its end, of which nobody said that it is whole.
pub(super) fn may_be_cut() -> Fault {
    let message = "an answer lacks an end tag at its end, and its provider did not say why it ended: it may be cut";
    Fault::new(FaultCode::Failed, message)
}

/// The refusal of an answer without a payload, where one is owed.
pub(super) fn nothing_said(is_json: bool) -> Fault {
    Fault::new(
        FaultCode::Silent,
        format!("an answer has no {} in it", if is_json { "JSON object" } else { "XML element" }),
    )
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

/// A way to write an answer that is no XML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    Nothing,
    Json,
    Yaml,
    FunctionCall,
    Prose,
}

impl Notation {
    /// The notation of a text without an element that is meant.
    fn of(text: &str) -> Self {
        let text = text.trim();
        // The first line of a fence names the language.
        let text =
            text.strip_prefix("```").and_then(|rest| rest.split_once('\n')).map_or(text, |(_, rest)| rest.trim());
        if text.is_empty() {
            return Self::Nothing;
        }
        let calls = ["<tool_call", "<function", "<invoke", "[TOOL_CALLS]", "<|tool", "\"tool_calls\"", "\"arguments\""];
        if calls.iter().any(|mark| text.contains(mark)) || is_applied(text) {
            return Self::FunctionCall;
        }
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("```"));
        match text.trim_start_matches(['{', '[', ' ', '\n']).chars().next() {
            Some('"' | '}' | ']') if text.starts_with(['{', '[']) => Self::Json,
            // One line alone is as well a sentence with a colon.
            _ if text.lines().count() > 1 && lines.all(is_of_yaml) => Self::Yaml,
            _ => Self::Prose,
        }
    }

    /// The mistake in it, and the remedy.
    const fn words(self) -> &'static str {
        match self {
            Self::Nothing => "the answer is empty: write an element",
            Self::Json => "the answer is JSON, and only XML is read: write an element for each object and each field",
            Self::Yaml => "the answer is YAML, and only XML is read: write an element for each key",
            Self::FunctionCall => {
                "the answer is a function call, and there are no functions: a call is an element like a reply, written as it is"
            }
            Self::Prose => "the answer is prose, and only elements are read: write what it says in an element",
        }
    }
}

/// Returns whether a text is a name with arguments in brackets.
fn is_applied(text: &str) -> bool {
    let name = text.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    name.len() < text.len() && name.starts_with('(') && name.ends_with(')') && !name.contains('\n')
}

/// Returns whether a line is one of YAML: a key, or an item of a list.
fn is_of_yaml(line: &str) -> bool {
    let key = line.strip_prefix("- ").unwrap_or(line).split_once(':').map(|(key, _)| key);
    line.starts_with("- ") || key.is_some_and(|key| !key.is_empty() && !key.contains(char::is_whitespace))
}

/// Completes a refusal with what helps to do better: the notation that was taken for XML, and an example of what may be
/// sent.
pub(super) fn explained<'a>(
    fault: Fault,
    answer: &str,
    sendable: impl Iterator<Item = &'a QName> + Clone,
    catalog: &Catalog,
) -> Fault {
    let notation = match fault.code {
        // What was found is no element at all, or one of another protocol.
        FaultCode::Malformed | FaultCode::Silent if !is_cut(&fault) => Some(Notation::of(answer)),
        FaultCode::Route => Some(Notation::of(answer)).filter(|notation| *notation == Notation::FunctionCall),
        _ => None,
    };
    // The rule that an answer with tags breaks says more.
    let has_tags = answer.match_indices('<').any(|(at, _)| answer[at + 1..].starts_with(char::is_alphabetic));
    let notation = notation.filter(|notation| !has_tags || *notation == Notation::FunctionCall);
    let BrokenRule { rule, at, example } =
        fault.rule.as_deref().cloned().unwrap_or(BrokenRule { rule: String::new(), at: None, example: None });
    let rule = match notation {
        Some(notation) => notation.words().to_owned(),
        None => rule,
    };
    let example = example.or_else(|| {
        let named = sendable.clone().find(|payload| answer.contains(payload.local()));
        let of = |payload: &QName| Some(catalog.get(payload)?.example()?.as_str().to_owned());
        named.into_iter().chain(sendable).find_map(of)
    });
    if rule.is_empty() && example.is_none() {
        return fault;
    }
    Fault { rule: Some(Box::new(BrokenRule { rule, at, example })), ..fault }
}

/// Returns whether a text could not be read because its end is missing.
fn is_cut(fault: &Fault) -> bool {
    fault.rule.as_deref().is_some_and(|broken| broken.rule.contains("truncated"))
}

/// The text that tells a model why its answer was refused.
pub(super) fn feedback(fault: &Fault, is_cut: bool) -> String {
    let mut text = format!("Your answer was refused: {}.", fault.message);
    if let Some(BrokenRule { rule, at, example }) = fault.rule.as_deref() {
        if !rule.is_empty() {
            text.push_str("\nRule: ");
            if let Some(at) = at {
                text.push_str(&format!("line {}, column {}: ", at.line, at.column));
            }
            text.push_str(rule);
        }
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
    if let Some(BrokenRule { rule, at, .. }) = last.rule.as_deref().filter(|broken| !broken.rule.is_empty()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_ends_with_a_call_of_its_provider_is_told_what_a_call_is() {
        for (why, is_told) in [("tool_calls", true), ("function_call", true), ("tool_use", true), ("SAFETY", false)] {
            let fault = unfinished(&Finish::Withheld(why.to_owned()), 100).expect("a refusal");
            assert_eq!(feedback(&fault, false).contains("Rule: the answer is a function call"), is_told, "{why}");
        }
    }

    #[test]
    fn what_is_no_xml_is_told_by_its_name() {
        for (text, notation) in [
            ("", Notation::Nothing),
            ("{\"order\": {\"pay\": \"card\"}}", Notation::Json),
            ("```json\n[\n  {\"pay\": \"card\"}]\n```", Notation::Json),
            ("{}", Notation::Json),
            ("order:\n  pay: card\n  items:\n  - one", Notation::Yaml),
            ("<tool_call>{\"name\":\"order\",\"arguments\":{}}</tool_call>", Notation::FunctionCall),
            ("<function=order><parameter=pay>card</parameter></function>", Notation::FunctionCall),
            ("{\"name\": \"order\", \"arguments\": {\"pay\": \"card\"}}", Notation::FunctionCall),
            ("order(pay=\"card\")", Notation::FunctionCall),
            ("I can't do that, Dave.", Notation::Prose),
            ("Sure: here it is", Notation::Prose),
            ("[not] a list (of anything)", Notation::Prose),
        ] {
            assert_eq!(Notation::of(text), notation, "{text}");
        }
    }
}
