//! The budget of a thread, as a request to a model uses it: reserved before, and cut to what is left for the last one.

use systole_core::core::{Failure, Usage};
use systole_core::vocab::{Amounts, Budget, Fault, Millionths};

use super::mark::Mark;
use super::prompt::{ModelPrompt, Role};
use crate::runtime::Thread;
use crate::settings::Price;

/// Tokens without which an answer is not worth its request.
const LEAST: u32 = 64;

/// The notice of the last request, behind its last turn.
fn notice(mark: &Mark) -> String {
    format!(
        "\n\n[{mark}] Your budget ends with this answer: reply now, with what there is. You can't call anything any more."
    )
}

/// The budget of the thread of a handler, as the attempts of a request use it.
pub(super) struct Allowance<'t>(Option<(&'t Thread, Option<&'t Mark>)>);

impl<'t> Allowance<'t> {
    /// The budget of a thread, for a request in which the pump's lines have that mark.
    pub(super) fn of(thread: &'t Thread, mark: &'t Mark) -> Self {
        Self(Some((thread, Some(mark))))
    }

    /// The budget of a thread, for a request that is not sent unless there is enough for all of it.
    pub(super) fn of_whole(thread: &'t Thread) -> Self {
        Self(Some((thread, None)))
    }

    /// No bounds.
    #[cfg(test)]
    pub(super) fn unbounded() -> Self {
        Self(None)
    }

    /// Reserves what an attempt may use, at the price of its backend: it is spent from then on, unless the attempt is
    /// [charged](Self::charge) or answered. The request to send: the same one, or a shorter one that takes what is left.
    pub(super) async fn allow(&self, prompt: &ModelPrompt, price: &Price) -> Result<ModelPrompt, Failure> {
        let Some((thread, mark)) = self.0 else { return Ok(prompt.clone()) };
        let Err(short) = thread.reserve(most(prompt, price), None).await else { return Ok(prompt.clone()) };
        let last = mark.and_then(|mark| cut((prompt.clone(), mark), &short.left, price));
        let last = last.ok_or_else(|| failure(short.fault.clone()))?;
        match thread.reserve(most(&last, price), Some(short.fault)).await {
            Ok(()) => Ok(last),
            // Another thread took it meanwhile.
            Err(short) => Err(failure(short.fault)),
        }
    }

    /// Charges an attempt that got no answer.
    pub(super) fn charge(&self, usage: Usage) {
        self.0.into_iter().for_each(|(thread, _)| thread.charge(usage));
    }
}

/// The most that a request uses, if a token is what it is taken for.
fn most(prompt: &ModelPrompt, price: &Price) -> Amounts {
    price.most(prompt.input(), prompt.max_tokens.into()).into()
}

/// The request with as many tokens for its answer as are left.
fn cut((mut prompt, mark): (ModelPrompt, &Mark), left: &Budget, price: &Price) -> Option<ModelPrompt> {
    if let Some(turn) = prompt.turns.last_mut().filter(|turn| turn.role == Role::User) {
        turn.text.push_str(&notice(mark));
    }
    let tokens = left.tokens.map(|left| left.saturating_sub(prompt.input()));
    let cost = left.cost.map(|left| {
        let asked = most(&ModelPrompt { max_tokens: 0, ..prompt.clone() }, price).cost;
        affordable(Millionths(left.0.saturating_sub(asked.0)), price.output)
    });
    let most = [tokens, cost].into_iter().flatten().fold(u64::from(prompt.max_tokens), u64::min);
    prompt.max_tokens = u32::try_from(most).unwrap_or(u32::MAX);
    (prompt.max_tokens >= LEAST).then_some(prompt)
}

/// The tokens that a sum pays for.
fn affordable(sum: Millionths, price: Millionths) -> u64 {
    if price.0 == 0 {
        return u64::MAX;
    }
    u64::try_from(u128::from(sum.0) * 1_000_000 / u128::from(price.0)).unwrap_or(u64::MAX)
}

fn failure(fault: Fault) -> Failure {
    Failure::passing(Fault { rule: None, ..fault })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use systole_core::vocab::Name;

    use super::*;
    use crate::model::Turn;

    fn mark() -> Mark {
        Mark::of([7; 32], |_| false)
    }

    fn prompt(bytes: usize, max_tokens: u32) -> ModelPrompt {
        let turns = vec![Turn { role: Role::User, text: "x".repeat(bytes) }];
        let listener = Name::parse("planner").unwrap();
        ModelPrompt {
            listener,
            system: String::new(),
            turns,
            temperature: None,
            max_tokens,
            answer_schema: None,
            is_summary: false,
            traceparent: None,
        }
    }

    proptest! {
        /// A request that is cut fits into what is left, by tokens and by cost.
        #[test]
        fn what_is_cut_fits(
            bytes in 1..4000_usize,
            tokens in proptest::option::of(0..4000_u64),
            cost in proptest::option::of(0..40_000_u64),
            input in 0..9_000_000_u64,
            output in 0..20_000_000_u64,
            written in proptest::option::of(0..9_000_000_u64),
        ) {
            let written = written.map(Millionths);
            let price = Price { input: Millionths(input), output: Millionths(output), cached: None, written };
            let left = Budget::NONE.tokens(tokens).cost(cost.map(Millionths));
            if let Some(last) = cut((prompt(bytes, 2000), &mark()), &left, &price) {
                let most = most(&last, &price);
                prop_assert!(last.max_tokens >= LEAST && last.max_tokens <= 2000);
                prop_assert!(tokens.is_none_or(|left| most.tokens <= left), "{most} of {left}");
                prop_assert!(cost.is_none_or(|left| most.cost.0 <= left + 1), "{most} of {left}");
                prop_assert!(last.last().ends_with(&notice(&mark())));
            }
        }
    }

    #[test]
    fn too_little_is_nothing() {
        let left = |text: &str| text.parse::<Budget>().unwrap();
        let price = Price::default();
        let input = prompt(400 + notice(&mark()).len(), 0).input();
        let cut = |tokens: u64| cut((prompt(400, 1000), &mark()), &left(&format!("tokens={tokens}")), &price);
        assert_eq!(cut(input + 63), None);
        assert_eq!(cut(input + 64).map(|last| last.max_tokens), Some(64));
        assert_eq!(cut(input + 5000).map(|last| last.max_tokens), Some(1000));
    }
}
