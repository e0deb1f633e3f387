//! Answers by rules, without a model and without a network: for tests, demos and templates.

use std::sync::Arc;
use std::time::Duration;

use systole_core::core::Usage;
use tokio::time::sleep;

use super::prompt::BYTES_A_TOKEN;
use super::{Again, Completion, Finish, Growth, ModelPrompt, Provider, Setback};
use crate::runtime::LocalBoxFuture;
use crate::settings::{Rule, Script};
use crate::terminal::readable;

/// The model that answers of a script name.
pub(super) const MODEL: &str = "scripted";

impl Provider for Arc<Script> {
    fn ask(&self, prompt: &ModelPrompt, growth: &Growth) -> LocalBoxFuture<Result<Completion, Setback>> {
        let sought =
            Sought { asker: prompt.listener.as_str(), last: prompt.last(), is_summary: prompt.is_summary, tools: &[] };
        let Some((_, rule)) = self.rule(&sought).map(|(number, rule)| (number, rule.clone())) else {
            let script = self.name();
            let script = if prompt.is_summary { format!("{script} (summary: true)") } else { script.to_owned() };
            // A fault of a listener that was called stands there.
            let (turn, said) = (prompt.turns.len(), readable(prompt.last()));
            let message = format!("no rule of {script} fits turn {turn}, which says: {said}");
            let detail = format!("{message} (asked for {})", prompt.listener);
            let setback = Setback { detail, ..Setback::new(message, Again::Never).unbilled() };
            return Box::pin(async move { Err(setback) });
        };
        let input = prompt.bytes().div_ceil(BYTES_A_TOKEN);
        let (most, growth) = (prompt.max_tokens.into(), growth.clone());
        Box::pin(async move {
            if !rule.after.is_zero() {
                sleep(rule.after).await;
            }
            let (text, is_cut) = cut(rule.answer, most);
            if !rule.pace.is_zero() {
                for end in ends(&text, rule.pace) {
                    growth.show(&text[..end]);
                    sleep(rule.pace).await;
                }
            }
            let output = (text.len() as u64).div_ceil(BYTES_A_TOKEN);
            Ok(Completion {
                text,
                finish: if rule.cut || is_cut { Finish::Cut } else { Finish::Whole },
                model: MODEL.to_owned(),
                usage: Usage { input, output, ..Usage::default() },
            })
        })
    }
}

/// The ends of the pieces in which an answer comes: of its words, if there is a pace; none of an empty answer.
pub(super) fn ends(text: &str, pace: Duration) -> impl Iterator<Item = usize> {
    let words = text.match_indices(' ').map(|(at, _)| at).filter(move |_| !pace.is_zero());
    words.chain((!text.is_empty()).then_some(text.len()))
}

/// An answer of at most so many tokens, and whether it was longer.
pub(super) fn cut(mut answer: String, most: u64) -> (String, bool) {
    let whole = answer.len();
    let most = usize::try_from(most.saturating_mul(BYTES_A_TOKEN)).unwrap_or(usize::MAX);
    let end = (0..=most.min(whole)).rev().find(|&at| answer.is_char_boundary(at));
    answer.truncate(end.unwrap_or(0));
    let is_cut = answer.len() < whole;
    (answer, is_cut)
}

/// A request, as the rules of a script see it.
pub(super) struct Sought<'r> {
    /// The listener that asks, or the model that a client of the server asks.
    pub(super) asker: &'r str,
    /// The last turn.
    pub(super) last: &'r str,
    pub(super) is_summary: bool,
    /// The names of the tools that the model may call.
    pub(super) tools: &'r [String],
}

impl Script {
    /// The name of the script in messages.
    pub(super) fn name(&self) -> &str {
        if self.file.is_empty() { "the script" } else { &self.file }
    }

    /// The first rule that fits a request, with its number, from 1.
    pub(super) fn rule(&self, sought: &Sought<'_>) -> Option<(usize, &Rule)> {
        self.rules.iter().enumerate().map(|(at, rule)| (at + 1, rule)).find(|(_, rule)| rule.fits(sought))
    }
}

impl Rule {
    fn fits(&self, sought: &Sought<'_>) -> bool {
        self.summary == sought.is_summary
            && self.listener.as_ref().is_none_or(|listener| listener.as_str() == sought.asker)
            && self.call.as_ref().is_none_or(|call| sought.tools.contains(&call.name))
            && self.when.iter().all(|text| sought.last.contains(text.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use systole_core::vocab::Name;

    use super::*;
    use crate::model::{Role, Turn};

    #[test]
    fn an_answer_ends_at_its_limit() {
        for (most, text, is_cut) in
            [(0, "", true), (1, "aaa", true), (2, "aaaö bb", false), (u64::MAX, "aaaö bb", false)]
        {
            assert_eq!(cut("aaaö bb".to_owned(), most), (text.to_owned(), is_cut), "{most}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_rule_that_fits_answers() {
        let listener = |name: &str| Name::parse(name).unwrap();
        let rule = |when: &[&str], answer: &str| Rule {
            when: when.iter().map(|&text| text.to_owned()).collect(),
            answer: answer.to_owned(),
            ..Rule::default()
        };
        let script = Arc::new(Script {
            file: "script.yaml".to_owned(),
            rules: vec![
                Rule { listener: Some(listener("planner")), ..rule(&["one", "two"], "both") },
                Rule { cut: true, after: Duration::from_secs(5), ..rule(&["two"], "only two") },
            ],
        });
        let prompt = |name: &str, last: &str| ModelPrompt {
            listener: listener(name),
            system: "12345".to_owned(),
            turns: ["one two", last].map(|text| Turn { role: Role::User, text: text.to_owned() }).into(),
            temperature: None,
            max_tokens: 2,
            answer_schema: None,
            is_summary: false,
            traceparent: None,
        };
        let both = script.ask(&prompt("planner", "two, one"), &Growth::hidden()).await.unwrap();
        assert_eq!((&*both.text, &both.finish), ("both", &Finish::Whole));
        assert_eq!((both.usage.input, both.usage.output), (5, 1), "20 bytes, and 4");
        let began = tokio::time::Instant::now();
        let two = script.ask(&prompt("writer", "two, one"), &Growth::hidden()).await.unwrap();
        assert_eq!((&*two.text, two.finish, began.elapsed()), ("only two", Finish::Cut, Duration::from_secs(5)));
        let none = script.ask(&prompt("planner", "one\u{1b}"), &Growth::hidden()).await.unwrap_err();
        assert_eq!(none.message, "no rule of script.yaml fits turn 2, which says: one\\u{1b}");
        assert_eq!(none.detail, "no rule of script.yaml fits turn 2, which says: one\\u{1b} (asked for planner)");
        let short = script
            .ask(&ModelPrompt { max_tokens: 0, ..prompt("planner", "two, one") }, &Growth::hidden())
            .await
            .unwrap();
        assert_eq!((&*short.text, short.finish, short.usage.output), ("", Finish::Cut, 0));
        assert_eq!(none.again, Again::Never, "the last turn counts alone");
        let asked = ModelPrompt { answer_schema: None, is_summary: true, ..prompt("planner", "two, one") };
        let none = script.ask(&asked, &Growth::hidden()).await.unwrap_err();
        assert!(none.message.starts_with("no rule of script.yaml (summary: true) fits turn 2"), "{none:?}");
    }
}
