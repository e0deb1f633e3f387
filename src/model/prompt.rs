//! A request to a model, in no provider's form.

use std::sync::Arc;

use serde_json::Value;
use systole_core::core::{Millionths, Usage};
use systole_core::vocab::{Name, Traceparent};

use super::{Billed, Completion};

/// A request to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelPrompt {
    /// The listener that asks.
    pub listener: Name,
    /// The system prompt.
    pub system: String,
    /// The conversation so far, oldest first; the last turn is not the model's, nor is the first.
    pub turns: Vec<Turn>,
    /// Randomness of the answer, as the provider understands it.
    pub temperature: Option<Millionths>,
    /// Tokens of the answer, at most.
    pub max_tokens: u32,
    /// The JSON Schema of the answer, for providers that hold a model to one.
    pub answer_schema: Option<Arc<Value>>,
    /// Whether a summary of the conversation is asked for, rather than the listener's next words.
    pub is_summary: bool,
    /// The place in a trace that the request names as its caller.
    pub traceparent: Option<Traceparent>,
}

/// A turn of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The speaker.
    pub role: Role,
    /// The text; never empty.
    pub text: String,
}

/// A speaker in a conversation with a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// The model.
    Model,
    /// The other side: the pump, in the name of a sender.
    User,
}

impl Role {
    /// Name in the wire forms of all providers.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "assistant",
            Self::User => "user",
        }
    }
}

impl ModelPrompt {
    /// The last turn.
    pub fn last(&self) -> &str {
        self.turns.last().map_or("", |turn| &turn.text)
    }

    /// A hash of everything that the model gets: the same key is the same request.
    pub(super) fn key(&self) -> String {
        let mut hash = blake3::Hasher::new();
        let mut add = |part: &str| {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        };
        add(&self.system);
        add(&self.temperature.map(|temperature| temperature.to_string()).unwrap_or_default());
        add(&self.max_tokens.to_string());
        for turn in &self.turns {
            add(turn.role.as_str());
            add(&turn.text);
        }
        if let Some(schema) = &self.answer_schema {
            add(&schema.to_string());
        }
        hash.finalize().to_hex().to_string()
    }

    /// An estimate of the tokens of the request with its answer: English and XML have four bytes a token on average.
    pub(super) fn estimate(&self) -> u64 {
        self.input() + u64::from(self.max_tokens)
    }

    /// A guess of the tokens that it takes without its answer.
    pub(super) fn input(&self) -> u64 {
        self.bytes().div_ceil(BYTES_A_TOKEN)
    }

    /// The tokens that it used with its answer. What the provider left out is taken to be all that was reserved for it.
    pub(super) fn used(&self, answer: &Completion) -> Usage {
        let Usage { input, output, .. } = answer.usage;
        let is_unknown = output == 0 && (input == 0 || !answer.text.is_empty());
        let output = if is_unknown { self.max_tokens.into() } else { output };
        let input = if input == 0 { self.input() } else { input };
        Usage { input, output, ..answer.usage }
    }

    /// The tokens of an attempt without an answer, as far as it is billed.
    pub(super) fn billed(&self, billed: Billed) -> Usage {
        let most = Usage { input: self.input(), output: self.max_tokens.into(), ..Usage::default() };
        match billed {
            Billed::Nothing => Usage::default(),
            Billed::Used(usage) => Usage {
                input: if usage.input == 0 { most.input } else { usage.input },
                output: if usage.output == 0 { most.output } else { usage.output },
                ..usage
            },
            Billed::Unknown => most,
        }
    }

    /// Bytes of all texts.
    pub(super) fn bytes(&self) -> u64 {
        self.turns.iter().map(|turn| turn.text.len() as u64).sum::<u64>() + self.system.len() as u64
    }
}

/// Bytes that a token stands for on average.
pub(super) const BYTES_A_TOKEN: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_that_of_all_that_is_sent() {
        let turn = |role, text: &str| Turn { role, text: text.to_owned() };
        let prompt = ModelPrompt {
            listener: Name::parse("planner").unwrap(),
            system: "s".to_owned(),
            turns: vec![turn(Role::User, "ab"), turn(Role::Model, "c"), turn(Role::User, "d")],
            temperature: None,
            max_tokens: 10,
            answer_schema: None,
            is_summary: false,
            traceparent: None,
        };
        let others = [
            ModelPrompt { system: "t".to_owned(), ..prompt.clone() },
            ModelPrompt {
                turns: vec![turn(Role::User, "a"), turn(Role::Model, "bc"), turn(Role::User, "d")],
                ..prompt.clone()
            },
            ModelPrompt {
                turns: vec![turn(Role::User, "ab"), turn(Role::User, "c"), turn(Role::User, "d")],
                ..prompt.clone()
            },
            ModelPrompt { temperature: Some(Millionths(0)), ..prompt.clone() },
            ModelPrompt { max_tokens: 11, ..prompt.clone() },
            ModelPrompt { answer_schema: Some(Arc::new(Value::Null)), ..prompt.clone() },
        ];
        assert_eq!(prompt.clone().key(), prompt.key());
        for other in others {
            assert_ne!(other.key(), prompt.key(), "{other:?}");
        }
        assert_eq!(prompt.estimate(), 12);
    }
}
