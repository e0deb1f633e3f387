//! Answers by rules, without a model and without a network: for tests, demos and templates.

use std::sync::Arc;

use systole_core::core::Usage;
use tokio::time::sleep;

use super::prompt::BYTES_A_TOKEN;
use super::{Again, Completion, Finish, Prompt, Provider, Setback};
use crate::outbound::readable;
use crate::runtime::LocalBoxFuture;
use crate::settings::{Rule, Script};

/// The model that answers of a script name.
const MODEL: &str = "scripted";

impl Provider for Arc<Script> {
    fn ask(&self, prompt: &Prompt) -> LocalBoxFuture<Result<Completion, Setback>> {
        let Some(rule) = self.rules.iter().find(|rule| rule.fits(prompt)).cloned() else {
            let detail = format!("no rule of the script fits: {}: {}", prompt.listener, readable(prompt.last()));
            let message = "no rule of the script fits".to_owned();
            return Box::pin(async move { Err(Setback { message, detail, again: Again::Never }) });
        };
        let input = prompt.bytes().div_ceil(BYTES_A_TOKEN);
        Box::pin(async move {
            if !rule.after.is_zero() {
                sleep(rule.after).await;
            }
            let output = (rule.answer.len() as u64).div_ceil(BYTES_A_TOKEN);
            Ok(Completion {
                text: rule.answer,
                finish: if rule.cut { Finish::Cut } else { Finish::Whole },
                model: MODEL.to_owned(),
                usage: Usage { input, output, ..Usage::default() },
            })
        })
    }
}

impl Rule {
    fn fits(&self, prompt: &Prompt) -> bool {
        let last = prompt.last();
        self.listener.as_ref().is_none_or(|listener| *listener == prompt.listener)
            && self.when.iter().all(|text| last.contains(text.as_str()))
    }
}
