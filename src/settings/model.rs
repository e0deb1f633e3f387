//! Settings of models, and of the listeners that they speak for.

use std::path::PathBuf;
use std::time::Duration;

use systole_core::core::{Blueprint, ListenerId, Millionths, Usage, listener_json_prompt, listener_prompt};
use systole_core::vocab::Name;
use systole_xml::schema::Catalog;

/// The backends that answer for models, and the choice among them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LlmSettings {
    /// The order in which backends are asked.
    pub strategy: Strategy,
    /// The backends with their providers; a name once.
    pub backends: Vec<(Backend, ProviderSettings)>,
}

systole_core::vocab::setters!(LlmSettings {
    strategy: Strategy,
    backends: Vec<(Backend, ProviderSettings)>,
});

/// The order in which the backends are asked that are not resting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// The one with the lowest `priority`, then the next one.
    #[default]
    Failover,
    /// Each in its turn.
    RoundRobin,
    /// The one with the fewest requests in flight.
    LeastLoaded,
}

/// A place where a model is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backend {
    /// Name in logs, events and errors.
    pub name: Name,
    /// Rank under [`Strategy::Failover`]: lower ones are asked first.
    pub priority: u32,
    /// Tokens a minute at most, of requests and answers.
    pub rate_limit_tpm: Option<u32>,
    /// Requests in flight at most.
    pub max_concurrent: Option<u32>,
    /// Prices of tokens.
    pub price: Price,
    /// Time to the first part of an answer, thoughts included: after it an attempt counts as failed. The whole time of an
    /// answer that does not grow.
    pub first_token: Duration,
    /// Time between two parts of an answer.
    pub between_tokens: Duration,
    /// Variable of the environment without which the backend is left out; an empty one counts as unset.
    pub when_env: Option<String>,
    /// Variable of the environment with which the backend is left out; an empty one counts as unset.
    pub unless_env: Option<String>,
}

systole_core::vocab::setters!(Backend {
    name: Name,
    priority: u32,
    rate_limit_tpm: Option<u32>,
    max_concurrent: Option<u32>,
    price: Price,
    first_token: Duration,
    between_tokens: Duration,
    when_env: Option<String>,
    unless_env: Option<String>,
});

/// The protocol of a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderSettings {
    /// A model behind HTTP.
    Http(Box<Endpoint>),
    /// A file of rules: no model, and no network.
    Scripted(Script),
}

/// A model behind HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint {
    /// The protocol.
    pub dialect: Dialect,
    /// The model, as the provider names it.
    pub model: String,
    /// Base of the URLs, such as `https://api.openai.com/v1`.
    pub url: String,
    /// Source of the key that the provider asks for.
    pub key: Option<KeySource>,
    /// Tokens of a request and its answer together, at most.
    pub context: Option<u32>,
    /// Headers of each request, beside those of the protocol.
    pub headers: Vec<(String, HeaderText)>,
    /// The query of the URL.
    pub query: Vec<(String, String)>,
    /// Fields of the body of each request, in place of those of the protocol; objects are merged.
    pub body: serde_json::Map<String, serde_json::Value>,
    /// Fields that the protocol has and this provider refuses.
    pub omit: Vec<String>,
    /// Fields that have another name here, with that name.
    pub rename: Vec<(String, String)>,
    /// Whether answers are streamed. An answer that is not grows in one piece.
    pub stream: bool,
    /// URL of an HTTP proxy through which the provider is reached.
    pub proxy: Option<String>,
    /// File of certificates that are trusted beside those of the system, in PEM.
    pub ca_file: Option<PathBuf>,
}

systole_core::vocab::setters!(Endpoint {
    dialect: Dialect,
    model: impl Into<String>,
    url: impl Into<String>,
    key: Option<KeySource>,
    context: Option<u32>,
    headers: Vec<(String, HeaderText)>,
    query: Vec<(String, String)>,
    body: serde_json::Map<String, serde_json::Value>,
    omit: Vec<String>,
    rename: Vec<(String, String)>,
    stream: bool,
    proxy: Option<String>,
    ca_file: Option<PathBuf>,
});

/// The protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// Chat Completions, of OpenAI and many others.
    OpenAi,
    /// Messages, of Anthropic.
    Anthropic,
    /// `/api/chat`, of Ollama.
    Ollama,
}

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderText {
    /// A text that everybody may know.
    Plain(String),
    /// A secret, which is treated as a key.
    Secret(KeySource),
}

/// Source of an API key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeySource {
    /// A variable of the environment.
    Env(String),
    /// A file; white space around the key doesn't count.
    File(PathBuf),
}

/// Answers by rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Script {
    /// The file of the rules, as messages name it; empty for a script that was made in Rust.
    pub file: String,
    /// The first rule that fits a request answers it.
    pub rules: Vec<Rule>,
}

systole_core::vocab::setters!(Script {
    file: String,
    rules: Vec<Rule>,
});

/// A call of a tool, as a model writes one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ToolCall {
    /// The name of the tool, as the client offers it.
    pub name: String,
    /// The arguments: a JSON object.
    pub arguments: String,
}

systole_core::vocab::setters!(ToolCall {
    name: impl Into<String>,
    arguments: impl Into<String>,
});

/// A rule of a script.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Rule {
    /// The listener that asks; any, if none is named.
    pub listener: Option<Name>,
    /// Texts that all stand in the last message of the request.
    pub when: Vec<String>,
    /// The answer; may be empty if there is a call.
    pub answer: String,
    /// The tool that is called behind the answer, for a client of the server of models that offers it: the rule fits no
    /// other request.
    pub call: Option<ToolCall>,
    /// Lets the answer count as cut at its limit.
    pub cut: bool,
    /// Time until the answer is there.
    pub after: Duration,
    /// Time between two words of the answer, which grows so; by default it comes as a whole.
    pub pace: Duration,
    /// Lets the rule answer requests for summaries, rather than those for answers.
    pub summary: bool,
}

systole_core::vocab::setters!(Rule {
    listener: Option<Name>,
    when: Vec<String>,
    answer: impl Into<String>,
    call: Option<ToolCall>,
    cut: bool,
    after: Duration,
    pace: Duration,
    summary: bool,
});

/// Prices of a million tokens, in any one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Price {
    /// The price of tokens of requests.
    pub input: Millionths,
    /// The price of tokens of answers.
    pub output: Millionths,
    /// The price of tokens of requests that the provider has in its cache; as `input`, if it isn't set.
    pub cached: Option<Millionths>,
    /// The price of tokens of requests that the provider writes into its cache; as `input`, if it isn't set.
    pub written: Option<Millionths>,
}

systole_core::vocab::setters!(Price {
    input: Millionths,
    output: Millionths,
    cached: Option<Millionths>,
    written: Option<Millionths>,
});

/// A listener that a model speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelSettings {
    /// The text before the contract in the system prompt.
    pub instructions: String,
    /// Randomness of answers, as the provider understands it.
    pub temperature: Option<Millionths>,
    /// Tokens of an answer, at most.
    pub max_tokens: u32,
    /// Answers that a message gets at most, until one keeps the contract; at least 1.
    pub tries: u32,
    /// The backend to ask, if not any.
    pub backend: Option<Name>,
    /// True if the model reads and writes payloads as JSON, not as XML.
    pub json: bool,
    /// Summaries of messages that the context of a thread leaves out; without it they are left out.
    pub summary: Option<SummarySettings>,
}

/// Summaries of messages that a conversation with a model leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummarySettings {
    /// The backend to ask, if not that of the listener.
    pub backend: Option<Name>,
    /// Tokens of a summary, at most.
    pub max_tokens: u32,
}

systole_core::vocab::setters!(SummarySettings {
    backend: Option<Name>,
    max_tokens: u32,
});

impl Default for SummarySettings {
    /// Makes settings for summaries of 1,000 tokens by the backend of the listener.
    fn default() -> Self {
        Self { backend: None, max_tokens: 1000 }
    }
}

systole_core::vocab::setters!(ModelSettings {
    instructions: impl Into<String>,
    temperature: Option<Millionths>,
    max_tokens: u32,
    tries: u32,
    backend: Option<Name>,
    json: bool,
    summary: Option<SummarySettings>,
});

impl Default for ModelSettings {
    /// Makes settings without instructions: the provider's temperature, 4096 tokens, 3 tries, any backend.
    fn default() -> Self {
        Self {
            instructions: String::new(),
            temperature: None,
            max_tokens: 4096,
            tries: 3,
            backend: None,
            json: false,
            summary: None,
        }
    }
}

/// Instructions, and everything else by default.
impl From<&str> for ModelSettings {
    fn from(instructions: &str) -> Self {
        Self { instructions: instructions.to_owned(), ..Self::default() }
    }
}

/// A text of the last turn, and the answer to it.
impl From<(&str, &str)> for Rule {
    fn from((when, answer): (&str, &str)) -> Self {
        Self { when: vec![when.to_owned()], answer: answer.to_owned(), ..Self::default() }
    }
}

impl ModelSettings {
    /// The system prompt of a listener: the instructions, and its contract in words.
    pub fn system_prompt(&self, listener: ListenerId, blueprint: &Blueprint, catalog: &Catalog) -> String {
        let contract = match self.json {
            true => listener_json_prompt(listener, blueprint, catalog),
            false => listener_prompt(listener, blueprint, catalog),
        };
        match self.instructions.trim() {
            "" => contract,
            instructions => format!("{instructions}\n\n{contract}"),
        }
    }
}

impl Dialect {
    /// Name in an `organism.yaml`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
        }
    }

    /// The fields of the body of a request that an operator may omit or rename.
    #[cfg(feature = "yaml")]
    pub(crate) const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["stream_options", "max_tokens", "temperature", "response_format"],
            Self::Anthropic => &["max_tokens", "temperature", "output_config"],
            Self::Ollama => &["options", "format"],
        }
    }

    /// Base of the URLs, unless another one is written.
    pub const fn url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Ollama => "http://127.0.0.1:11434",
        }
    }
}

impl Endpoint {
    /// A model at the usual address of its protocol, without a key.
    pub fn new(dialect: Dialect, model: impl Into<String>) -> Self {
        Self {
            dialect,
            model: model.into(),
            url: dialect.url().to_owned(),
            key: None,
            context: None,
            headers: Vec::new(),
            query: Vec::new(),
            body: serde_json::Map::new(),
            omit: Vec::new(),
            rename: Vec::new(),
            stream: true,
            proxy: None,
            ca_file: None,
        }
    }
}

impl Backend {
    /// A backend without limits and prices, with 300 s to the first part of an answer and 120 s between two.
    pub fn new(name: Name) -> Self {
        Self {
            name,
            priority: 1,
            rate_limit_tpm: None,
            max_concurrent: None,
            price: Price::default(),
            // A model on the machine may have to be loaded first, and others think in silence.
            first_token: Duration::from_secs(300),
            between_tokens: Duration::from_secs(120),
            when_env: None,
            unless_env: None,
        }
    }

    /// The reason for which [`when_env`](Self::when_env) or [`unless_env`](Self::unless_env) leaves the backend out, such
    /// as `A_KEY is not set`.
    pub fn left_out(&self) -> Option<String> {
        let is_set = |variable: &&String| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
        let missing = self.when_env.as_ref().filter(|variable| !is_set(variable));
        let missing = missing.map(|variable| format!("{variable} is not set"));
        missing.or_else(|| self.unless_env.as_ref().filter(is_set).map(|variable| format!("{variable} is set")))
    }
}

impl Price {
    /// The most that so many tokens of a request and of its answer cost: the provider may write the request into its
    /// cache.
    #[cfg(feature = "gateway")]
    pub(crate) fn most(&self, input: u64, output: u64) -> Usage {
        let is_dearer = self.written.is_some_and(|written| written > self.input);
        self.of(Usage { input, output, written: if is_dearer { input } else { 0 }, ..Usage::default() })
    }

    /// Usage with its cost, rounded up to a millionth.
    pub fn of(&self, usage: Usage) -> Usage {
        let cached = usage.cached.min(usage.input);
        let written = usage.written.min(usage.input - cached);
        let part = |tokens: u64, price: Millionths| u128::from(tokens) * u128::from(price.0);
        let sum = part(usage.input - cached - written, self.input)
            + part(cached, self.cached.unwrap_or(self.input))
            + part(written, self.written.unwrap_or(self.input))
            + part(usage.output, self.output);
        Usage { cost: Millionths(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)), ..usage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_that_of_each_kind_of_tokens() {
        let price = Price {
            input: Millionths(3_000_000),
            output: Millionths(15_000_000),
            cached: Some(Millionths(300_000)),
            written: None,
        };
        let usage = Usage { input: 1000, output: 100, cached: 600, ..Usage::default() };
        assert_eq!(price.of(usage).cost.to_string(), "0.00288");
        assert_eq!(Price { cached: None, ..price }.of(usage).cost.to_string(), "0.0045");
        let usage = Usage { written: 200, ..usage };
        assert_eq!(price.of(usage).cost.to_string(), "0.00288");
        let price = Price { written: Some(Millionths(3_750_000)), ..price };
        assert_eq!(price.of(usage).cost.to_string(), "0.00303");
        assert_eq!(price.most(1000, 100).cost.to_string(), "0.00525", "all of it may be written");
        assert_eq!(Price { written: Some(Millionths(0)), ..price }.most(1000, 100).cost.to_string(), "0.0045");
        let one = Usage { input: 1, ..Usage::default() };
        assert_eq!(Price { input: Millionths(1), ..Price::default() }.of(one).cost, Millionths(1), "rounded up");
        assert_eq!(Price::default().of(usage).cost, Millionths(0));
    }
}
