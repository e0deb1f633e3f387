//! `llm:` and `model:`: the backends of models, and the listeners that models speak for.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value as Json, json};
use systole_core::core::{Contract, Millionths};
use systole_core::vocab::{Name, Span, near};

use super::correction::{Items, Shape};
use super::document::{self, Key, Node, Value};
use super::finding::{ConfigFinding, File};
use super::keys::{
    Anything, Count, Decimal, Flag, Key as Field, Named, NonEmpty, OneOf, Renames, Singles, Text, Texts, Time, Word,
    mapping,
};
use super::listener::Written as Kind;
use super::mistake::Mistake;
use super::organism::Organism;
use super::reader::{At, Reader};
use super::short_form::Prefixes;
use super::{Config, units};
use crate::settings::{
    Backend, Dialect, Endpoint, HeaderText, KeySource, LlmSettings, ModelSettings, Price, ProviderSettings, Rule,
    Script, Strategy, SummarySettings, ToolCall, read_secret_text,
};

/// A listener that a model speaks for, as it is written.
#[derive(Debug)]
pub(super) struct Model {
    settings: ModelSettings,
    backend: Option<At<Name>>,
    /// The backend that is asked for summaries.
    summary_backend: Option<At<Name>>,
    /// The first key about summaries that is written.
    of_summary: Option<At<&'static str>>,
    place: Span,
}

impl Model {
    /// Returns whether it writes JSON.
    pub(super) fn is_json(&self) -> bool {
        self.settings.json
    }

    /// The most tokens that an answer of a backend may have; 0 if it is not asked.
    fn tokens_at(&self, name: &Name) -> u32 {
        let is_asked = |backend: Option<&At<Name>>| backend.is_none_or(|backend| backend.value == *name);
        let own = if is_asked(self.backend.as_ref()) { self.settings.max_tokens } else { 0 };
        let summary = self.settings.summary.as_ref().map_or(0, |summary| summary.max_tokens);
        own.max(if is_asked(self.summary_backend.as_ref().or(self.backend.as_ref())) { summary } else { 0 })
    }

    /// Judges the keys about summaries: the listener has them, or not.
    pub(super) fn summarizes(&mut self, reader: &mut Reader, summarizes: bool) {
        if !summarizes {
            self.settings.summary = None;
            if let Some(At { value: key, span }) = self.of_summary {
                reader.report(Mistake::NoSummaries { key }, span);
            }
        }
    }

    pub(super) fn settings(self) -> ModelSettings {
        self.settings
    }
}

/// `llm:` as it is written.
#[derive(Debug)]
pub(super) struct Llm {
    pub(super) settings: LlmSettings,
    /// The names of all backends, those with mistakes among them.
    names: Vec<Name>,
    /// The backends without a price of requests and of answers.
    unpriced: Vec<At<Name>>,
    /// The bounds of tokens of the backends, with their keys.
    bounds: Vec<(Name, &'static str, At<u32>)>,
}

/// A backend as it is written.
struct Written {
    name: Option<At<Name>>,
    /// The backend, if nothing of it is missing.
    backend: Option<(Backend, ProviderSettings)>,
    is_priced: bool,
    bounds: [Option<(&'static str, At<u32>)>; 2],
}

/// The fields of a request that no operator changes.
const OWN_FIELDS: [&str; 4] = ["model", "messages", "system", "stream"];

const MANY: u64 = u32::MAX as u64;

mapping! {
    /// Backends of models.
    LlmKeys: Llm {
        /// Order in which backends are asked.
        strategy: OneOf<Strategy> = "failover";
        /// Backends, at least one.
        backends: NonEmpty<BackendKeys<'static>>, of "llm";
    }
}

mapping! {
    /// A provider of models, with its limits and prices.
    BackendKeys: Backend {
        /// Name of the backend.
        name: Named, of "a backend";
        /// Environment variable without which the backend is left out.
        when_env: Text;
        /// Environment variable with which the backend is left out.
        unless_env: Text;
        /// Protocol; `scripted` answers from a file by rules.
        provider: OneOf<Provider>, of "a backend";
        /// Model, as the provider names it.
        model: Text;
        /// Base of the URLs, if it is not the provider's.
        url: Text;
        /// Environment variable with the key.
        api_key_env: Text;
        /// File with the key, relative to this file.
        api_key_file: Text;
        /// Tokens of a request with its answer.
        context: Count<256, MANY>;
        /// Headers of each request; a secret is in a variable or a file.
        headers: Headers;
        /// Query of the URL.
        query: Singles;
        /// Fields of the body of each request, beside those of the protocol.
        body: Anything;
        /// Fields of the protocol that this provider refuses.
        omit: Texts;
        /// Fields of the protocol that this provider calls by another name, with that name.
        rename: Renames;
        /// False: the answer comes as a whole.
        stream: Flag = true;
        /// URL of an HTTP proxy, such as http://127.0.0.1:3128.
        proxy: Text;
        /// File of certificates that are trusted beside those of the system, in PEM, relative to this file.
        ca_file: Text;
        /// File with the rules of a scripted backend.
        script: Text;
        /// Order of failover: the lowest first.
        priority: Count<0, 1000>;
        /// Tokens a minute; without it no limit.
        rate_limit_tpm: Count<1, MANY>;
        /// Requests at once; without it no limit.
        max_concurrent: Count<1, 10000>;
        /// Time to the first part of an answer.
        first_token: Time<1> = "300s";
        /// Time between two parts of an answer.
        between_tokens: Time<1> = "120s";
        /// Price of a million tokens.
        price: PriceKeys<'static>;
    }
}

mapping! {
    /// Price of a million tokens.
    PriceKeys: Price {
        /// Price of requests.
        input: Decimal<1_000_000>;
        /// Price of answers.
        output: Decimal<1_000_000>;
        /// Price of the cached part of requests.
        cached: Decimal<1_000_000>;
        /// Price of the part of requests that is written to the cache.
        written: Decimal<1_000_000>;
    }
}

mapping! {
    /// The place of the secret value of a header.
    SecretKeys: Secret {
        /// Environment variable with the secret.
        env: Text;
        /// File with the secret, relative to this file.
        file: Text;
    }
}

mapping! {
    /// A language model that speaks for a listener.
    ModelKeys: Model {
        /// Instructions, or a file of them that ends with .md or .txt.
        instructions: Text;
        /// Temperature; without it the provider's default.
        temperature: Decimal<2>;
        /// Tokens of an answer.
        max_tokens: Count<1, 10_000_000> = 4096;
        /// Answers to one message until it fails.
        tries: Count<1, 100> = 3;
        /// Tokens of a summary of its threads.
        summary_tokens: Count<64, 100_000> = 1000;
        /// Backend that is asked for summaries.
        summary_backend: Named;
        /// The one backend that is asked.
        backend: Named;
        /// The form of payloads that it reads and writes: XML, or JSON (docs/json.md).
        format: OneOf<Format> = "xml";
    }
}

/// The form of payloads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Format {
    Xml,
    Json,
}

impl Word for Format {
    const WORDS: &'static [(&'static str, Self)] = &[("xml", Self::Xml), ("json", Self::Json)];
}

/// Headers of requests: each a single value, or the place of a secret.
pub(super) struct Headers;

impl JsonSchema for Headers {
    fn schema_name() -> Cow<'static, str> {
        "Headers".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let secret = generator.subschema_for::<SecretKeys<'static>>();
        let value = json!({ "anyOf": [{ "type": ["string", "number", "boolean"] }, secret] });
        json_schema!({ "type": "object", "additionalProperties": value })
    }
}

mapping! {
    /// A rule of a script.
    RuleKeys: Rule with { "anyOf": [{ "required": ["answer"] }, { "required": ["call"] }] } {
        /// Listener whose requests it answers.
        listener: Named;
        /// Texts that the request must contain.
        when: Texts;
        /// The answer.
        answer: Text;
        /// Tool that is called behind the answer: for clients of `systole model serve` that offer it.
        call: CallKeys<'static>;
        /// True if the answer is cut off.
        cut: Flag = false;
        /// Time until the answer.
        after: Time<1>;
        /// Time between two words of the answer, which comes word by word.
        pace: Time<1>;
        /// True if it answers requests for summaries.
        summary: Flag = false;
    }
}

mapping! {
    /// A call of a tool, as a rule of a script answers with one.
    CallKeys: ToolCall {
        /// Name of the tool, as the client offers it.
        name: Text, of "a call";
        /// Arguments: a JSON object, as text.
        arguments: Text = "{}";
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    Http(Dialect),
    Scripted,
}

impl Word for Provider {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("openai", Self::Http(Dialect::OpenAi)),
        ("anthropic", Self::Http(Dialect::Anthropic)),
        ("ollama", Self::Http(Dialect::Ollama)),
        ("scripted", Self::Scripted),
    ];
}

impl Word for Strategy {
    const WORDS: &'static [(&'static str, Self)] =
        &[("failover", Self::Failover), ("round-robin", Self::RoundRobin), ("least-loaded", Self::LeastLoaded)];
}

/// Reads `llm:`.
pub(super) fn read(reader: &mut Reader, node: &Node) -> Option<Llm> {
    built(reader, "llm", node.span);
    let keys = LlmKeys::open(reader, node)?;
    let strategy = keys.strategy.read(reader).unwrap_or_default();
    let listed = keys.backends.node;
    let nodes = listed
        .and_then(|node| reader.items(node, Items::Maps { shape: Shape::Backend, lead: "name" }))
        .unwrap_or_default();
    if let Some(node) = listed.filter(|node| nodes.is_empty() && matches!(node.value, Value::List(_))) {
        reader.report(Mistake::NoBackends, node.span);
    }
    let (mut backends, mut names, mut unpriced, mut bounds) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for node in nodes {
        let Some(written) = backend(reader, node) else { continue };
        backends.extend(written.backend);
        let Some(name) = written.name else { continue };
        if names.contains(&name.value) {
            reader.report(Mistake::TwoBackends { name: name.value.clone() }, name.span);
        }
        names.push(name.value.clone());
        let found = written.bounds.into_iter().flatten();
        bounds.extend(found.map(|(key, most)| (name.value.clone(), key, most)));
        unpriced.extend((!written.is_priced).then_some(name));
    }
    Some(Llm { settings: LlmSettings { strategy, backends }, names, unpriced, bounds })
}

fn backend(reader: &mut Reader, node: &Node) -> Option<Written> {
    let keys = BackendKeys::open(reader, node)?;
    let name = keys.name.read(reader);
    let mut backend = Backend::new(name.as_ref().map_or_else(Name::root, |name| name.value.clone()));
    for (key, condition) in [(keys.when_env, &mut backend.when_env), (keys.unless_env, &mut backend.unless_env)] {
        *condition = key.node.and_then(|node| variable(reader, node)).map(str::to_owned);
    }
    let provider = keys.provider.read(reader);
    let settings = match provider {
        Some(Provider::Http(dialect)) => {
            if let Some((key, span)) = keys.script.place() {
                reader.report(Mistake::NotOfBackend { key, kind: "asked over HTTP" }, span);
            }
            endpoint(reader, &keys, dialect, backend.left_out().is_some())
                .map(|endpoint| ProviderSettings::Http(Box::new(endpoint)))
        }
        Some(Provider::Scripted) => {
            for (key, span) in of_http(&keys).into_iter().flatten() {
                reader.report(Mistake::NotOfBackend { key, kind: "scripted" }, span);
            }
            let script = keys.own.require(reader, keys.script.node, "script", "a scripted backend");
            script.and_then(|node| script_of(reader, node)).map(ProviderSettings::Scripted)
        }
        // The provider decides which of these keys are allowed.
        None => None,
    };
    keys.priority.set(reader, &mut backend.priority);
    backend.rate_limit_tpm = keys.rate_limit_tpm.read(reader).map(|most| most as u32);
    backend.max_concurrent = keys.max_concurrent.read(reader).map(|most| most as u32);
    keys.first_token.set(reader, &mut backend.first_token);
    keys.between_tokens.set(reader, &mut backend.between_tokens);
    let (price, is_priced) = keys.price.node.and_then(|node| price(reader, node)).unwrap_or_default();
    backend.price = price;
    // Its list has that price for what is kept for 5 minutes, which is what requests ask for.
    if provider == Some(Provider::Http(Dialect::Anthropic)) && backend.price.written.is_none() {
        backend.price.written = Some(Millionths(price.input.0.saturating_add(price.input.0 / 4)));
    }
    let bounds = [bound(keys.context), bound(keys.rate_limit_tpm)];
    Some(Written { name, backend: settings.map(|settings| (backend, settings)), is_priced, bounds })
}

/// The keys of a backend that is asked over HTTP, where they are there.
fn of_http(keys: &BackendKeys<'_>) -> [Option<(&'static str, Span)>; 13] {
    [
        keys.model.place(),
        keys.url.place(),
        keys.api_key_env.place(),
        keys.api_key_file.place(),
        keys.context.place(),
        keys.headers.place(),
        keys.query.place(),
        keys.body.place(),
        keys.omit.place(),
        keys.rename.place(),
        keys.stream.place(),
        keys.proxy.place(),
        keys.ca_file.place(),
    ]
}

fn endpoint(reader: &mut Reader, keys: &BackendKeys<'_>, dialect: Dialect, is_left_out: bool) -> Option<Endpoint> {
    let model = keys.own.require(reader, keys.model.node, "model", "a backend");
    let model = model.and_then(|node| reader.text(node)).map(str::to_owned);
    let url = keys.url.node.and_then(|node| {
        let url = reader.text_such(node, "a URL, such as http://127.0.0.1:8000/v1")?.to_owned();
        if let Err(problem) = judge(&url) {
            reader.report(Mistake::Url { problem, private: false }, node.span);
        }
        Some(url)
    });
    let key = match (keys.api_key_env.node, keys.api_key_file.node) {
        (Some(_), Some(node)) => {
            reader.report(Mistake::TwoKeys, node.span);
            None
        }
        (Some(node), None) => key_env(reader, node, is_left_out),
        (None, Some(node)) => key_file(reader, node, is_left_out),
        (None, None) => {
            if url.is_none() && dialect != Dialect::Ollama {
                let owner = "a backend at its provider's own address";
                reader.report(Mistake::MissingKey { owner, key: "api_key_env" }, keys.own.span);
            }
            None
        }
    };
    let context = keys.context.read(reader).map(|most| most as u32);
    let url = url.unwrap_or_else(|| dialect.url().to_owned());
    let own = own_of_endpoint(reader, keys, dialect, is_left_out);
    Some(Endpoint { dialect, model: model?, url, key, context, ..own })
}

/// The keys of an endpoint for what differs from its protocol, and the way to it.
fn own_of_endpoint(reader: &mut Reader, keys: &BackendKeys<'_>, dialect: Dialect, is_left_out: bool) -> Endpoint {
    let mut own = Endpoint::new(dialect, "");
    if let Some(node) = keys.headers.node {
        let entries = entries(reader, node, Shape::Headers).into_iter();
        own.headers = entries.filter_map(|(key, node)| header(reader, key, node, is_left_out)).collect();
    }
    if let Some(node) = keys.query.node {
        own.query = texts(reader, node, Shape::Query).into_iter().map(|(key, text)| (key.text.clone(), text)).collect();
    }
    if let Some(node) = keys.body.node {
        let entries = entries(reader, node, Shape::Body).into_iter();
        let entries = entries.filter(|(key, _)| is_operators(reader, &key.text, key.span));
        let entries: Vec<_> = entries.collect();
        own.body = entries.into_iter().map(|(key, node)| (key.text.clone(), plain(reader, node))).collect();
    }
    for node in keys.omit.read(reader).unwrap_or_default() {
        let Some(name) = reader.text(node) else { continue };
        own.omit.extend(is_operators(reader, name, node.span).then(|| name.to_owned()));
    }
    if let Some(node) = keys.rename.node {
        renamed(reader, node, &mut own);
    }
    own.stream = keys.stream.read(reader).unwrap_or(true);
    own.proxy = keys.proxy.node.and_then(|node| {
        let url = reader.text_such(node, "a URL, such as http://127.0.0.1:3128")?.to_owned();
        if let Err(problem) = judge_proxy(&url) {
            reader.report(Mistake::Proxy { problem }, node.span);
        }
        Some(url)
    });
    own.ca_file = keys.ca_file.node.and_then(|node| {
        let written = reader.text(node)?;
        let file = reader.directory.join(written);
        if let Err(why) = judge_certificates(&file) {
            reader.report(Mistake::File { what: "certificates", path: written.into(), why }, node.span);
        }
        Some(file)
    });
    own
}

/// Reads new names of fields. Each must be free: a field that is called as another one would replace it.
fn renamed(reader: &mut Reader, node: &Node, own: &mut Endpoint) {
    let entries = entries(reader, node, Shape::Rename);
    let is_moved = |own: &Endpoint, field: &str| {
        own.omit.iter().any(|name| name == field) || entries.iter().any(|(key, _)| key.text == field)
    };
    for (key, node) in &entries {
        let Some(to) = reader.text(node).map(str::to_owned) else { continue };
        let fields = [is_operators(reader, &key.text, key.span), is_operators(reader, &to, node.span)];
        if fields != [true; 2] {
            continue;
        }
        let is_ours = own.dialect.fields().contains(&to.as_str()) && !is_moved(own, &to);
        if is_ours || own.rename.iter().any(|(_, name)| *name == to) {
            reader.report(Mistake::TwoFields { field: to }, node.span);
            continue;
        }
        own.rename.push((key.text.clone(), to));
    }
}

/// The entries of a mapping whose keys are the operator's; each key once.
fn entries<'n>(reader: &mut Reader, node: &'n Node, shape: Shape) -> Vec<(&'n Key, &'n Node)> {
    reader.fields(node, shape);
    let Value::Map(map) = &node.value else { return Vec::new() };
    let is_first = |at: usize, key: &Key| map[..at].iter().all(|(other, _)| other.text != key.text);
    map.iter().enumerate().filter(|(at, (key, _))| is_first(*at, key)).map(|(_, (key, node))| (key, node)).collect()
}

fn texts<'n>(reader: &mut Reader, node: &'n Node, shape: Shape) -> Vec<(&'n Key, String)> {
    let entries = entries(reader, node, shape).into_iter();
    entries.filter_map(|(key, node)| Some((key, reader.text(node)?.to_owned()))).collect()
}

fn header(reader: &mut Reader, key: &Key, node: &Node, is_left_out: bool) -> Option<(String, HeaderText)> {
    let text = match &node.value {
        Value::Map(_) => HeaderText::Secret(secret(reader, node, is_left_out)?),
        _ => HeaderText::Plain(reader.text_such(node, "a text, or { env: NAME } for a secret")?.to_owned()),
    };
    let plain = if let HeaderText::Plain(text) = &text { Some(text.as_str()) } else { None };
    match judge_header(&key.text, plain) {
        Ok(()) => Some((key.text.clone(), text)),
        Err(problem) => {
            reader.report(Mistake::Header { name: key.text.clone(), problem }, key.span);
            None
        }
    }
}

/// The variable or the file with the secret value of a header.
fn secret(reader: &mut Reader, node: &Node, is_left_out: bool) -> Option<KeySource> {
    let keys = SecretKeys::open(reader, node)?;
    match keys.file.node {
        Some(node) => key_file(reader, node, is_left_out),
        None => keys
            .own
            .require(reader, keys.env.node, "env", "a secret")
            .and_then(|node| key_env(reader, node, is_left_out)),
    }
}

/// Reports a field that the program sets itself.
fn is_operators(reader: &mut Reader, field: &str, span: Span) -> bool {
    let is_own = OWN_FIELDS.contains(&field);
    if is_own {
        reader.report(Mistake::OwnField { field: field.to_owned() }, span);
    }
    !is_own
}

/// A value as JSON: what looks like a number or a truth value is one, unless it stands in quotes.
fn plain(reader: &Reader, node: &Node) -> Json {
    match &node.value {
        Value::Nothing => Json::Null,
        Value::Scalar(text) => {
            let typed =
                serde_json::from_str(text).ok().filter(|value| matches!(value, Json::Number(_) | Json::Bool(_)));
            let typed = typed.filter(|_| !reader.file.is_quoted(node.span));
            typed.unwrap_or_else(|| Json::String(text.clone()))
        }
        Value::List(items) => items.iter().map(|item| plain(reader, item)).collect(),
        Value::Map(map) => map.iter().map(|(key, node)| (key.text.clone(), plain(reader, node))).collect(),
    }
}

/// A bound of tokens that a key sets, if it is a number: the reader of the key reports it otherwise.
fn bound<T>(key: Field<'_, T>) -> Option<(&'static str, At<u32>)> {
    let Value::Scalar(text) = &key.node?.value else { return None };
    let most = units::saturating(text).and_then(|most| u32::try_from(most).ok())?;
    Some((key.name, At { value: most, span: key.span()? }))
}

fn key_env(reader: &mut Reader, node: &Node, is_left_out: bool) -> Option<KeySource> {
    let variable = variable(reader, node)?;
    if !is_left_out && std::env::var_os(variable).is_none_or(|key| key.is_empty()) {
        reader.report(Mistake::NoKey { why: format!("the environment variable {variable} is not set") }, node.span);
    }
    Some(KeySource::Env(variable.to_owned()))
}

/// The name of a variable of the environment.
pub(super) fn variable<'n>(reader: &mut Reader, node: &'n Node) -> Option<&'n str> {
    let variable = reader.text_such(node, "the name of a variable, such as OPENAI_API_KEY")?;
    let is_name = variable.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && variable.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        reader.report(Mistake::NoVariable, node.span);
    }
    is_name.then_some(variable)
}

fn key_file(reader: &mut Reader, node: &Node, is_left_out: bool) -> Option<KeySource> {
    let written = reader.text(node)?;
    let file: PathBuf = reader.directory.join(written);
    let why = match read_secret_text(&file) {
        Ok(key) if key.is_empty() => Some("it is empty".to_owned()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    };
    if let Some(why) = why.filter(|_| !is_left_out) {
        reader.report(Mistake::NoKey { why: format!("{written}: {why}") }, node.span);
    }
    Some(KeySource::File(file))
}

/// The price, and whether it has one of requests and one of answers.
fn price(reader: &mut Reader, node: &Node) -> Option<(Price, bool)> {
    let PriceKeys { input, output, cached, written, .. } = PriceKeys::open(reader, node)?;
    let is_priced = input.node.is_some() && output.node.is_some();
    let [input, output, cached, written] = [input, output, cached, written].map(|key| key.read(reader));
    Some((Price { input: input.unwrap_or_default(), output: output.unwrap_or_default(), cached, written }, is_priced))
}

/// Reads `model:`.
pub(super) fn model(reader: &mut Reader, node: &Node) -> Option<Model> {
    built(reader, "model", node.span);
    let keys = ModelKeys::open(reader, node)?;
    let mut settings = ModelSettings::default();
    if let Some(text) = keys.instructions.node.and_then(|node| instructions(reader, node)) {
        settings.instructions = text;
    }
    settings.temperature = keys.temperature.read(reader);
    keys.max_tokens.set(reader, &mut settings.max_tokens);
    keys.tries.set(reader, &mut settings.tries);
    let of_summary = keys.summary_backend.place().or(keys.summary_tokens.place());
    let of_summary = of_summary.map(|(key, span)| At { value: key, span });
    let mut summary = SummarySettings::default();
    keys.summary_tokens.set(reader, &mut summary.max_tokens);
    let summary_backend = keys.summary_backend.read(reader);
    summary.backend = summary_backend.as_ref().map(|backend| backend.value.clone());
    settings.summary = Some(summary);
    let backend = keys.backend.read(reader);
    settings.backend = backend.as_ref().map(|backend| backend.value.clone());
    settings.json = matches!(keys.format.read(reader), Some(Format::Json));
    Some(Model { settings, backend, summary_backend, of_summary, place: keys.own.span })
}

/// A file beside the organism's, where its name is all that is written; else the text itself.
fn instructions(reader: &mut Reader, node: &Node) -> Option<String> {
    let written = reader.text(node)?;
    if written.trim().is_empty() {
        reader.report(Mistake::NoInstructions, node.span);
        return None;
    }
    if !is_file(written) {
        return Some(written.to_owned());
    }
    let text = reader.open(written);
    let text = text.map_err(|why| {
        let path = written.into();
        reader.report(Mistake::Unreadable { what: "the instructions ", path, why }, node.span);
    });
    // A byte order mark is not part of the text.
    text.ok().map(|text| text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Distinguishes the name of a file from a text: one word that ends in a point and letters.
fn is_file(written: &str) -> bool {
    let ending = written.rsplit_once('.').map(|(_, ending)| ending);
    !written.contains(char::is_whitespace)
        && ending.is_some_and(|ending| !ending.is_empty() && ending.chars().all(char::is_alphanumeric))
}

/// Sets the defaults that differ for a listener that a model speaks for.
#[cfg(feature = "gateway")]
pub(super) fn defaults(contract: &mut Contract) {
    crate::model::ModelListener::defaults(contract);
}

/// Sets nothing without the feature: such a listener is refused.
#[cfg(not(feature = "gateway"))]
pub(super) fn defaults(_: &mut Contract) {}

/// Reads the rules of a script; mistakes in them have their places in that file.
fn script_of(reader: &mut Reader, node: &Node) -> Option<Script> {
    let written = reader.text(node)?;
    let source = match reader.open(written) {
        Ok(source) => source,
        Err(why) => {
            let path = written.into();
            reader.report(Mistake::Unreadable { what: "the script ", path, why }, node.span);
            return None;
        }
    };
    let name = reader.beside(written).display().to_string();
    let (rules, mut findings) = rules_of(&name, &source, reader.base.clone(), reader.directory.clone());
    reader.findings.append(&mut findings);
    rules.map(|rules| Script { file: written.to_owned(), rules })
}

/// Reads a script that no organism names, as a server of models does.
///
/// # Errors
/// All mistakes, in the order of the file.
pub fn load_script(path: &Path) -> Result<Script, Vec<ConfigFinding>> {
    let (name, source, directory) = Config::open(path)?;
    match rules_of(&name, &source, directory.clone(), directory) {
        (Some(rules), findings) if findings.is_empty() => Ok(Script { file: name, rules }),
        (_, findings) => Err(findings),
    }
}

/// The rules of a file, unless it is none, and the mistakes in it.
fn rules_of(name: &str, source: &str, base: PathBuf, directory: PathBuf) -> (Option<Vec<Rule>>, Vec<ConfigFinding>) {
    let file = File::new(name, source);
    let mut own =
        Reader { file, base, directory, prefixes: Prefixes::default(), findings: Vec::new(), files: Vec::new() };
    let rules = match document::parse(source) {
        Ok(root) => rules(&mut own, &root),
        Err(error) => {
            let mistake = Mistake::Yaml { message: error.message, help: error.help };
            own.findings.push(ConfigFinding::new(mistake, &own.file, error.span));
            None
        }
    };
    (rules, own.findings)
}

fn rules(reader: &mut Reader, root: &Node) -> Option<Vec<Rule>> {
    Some(
        reader
            .items(root, Items::Maps { shape: Shape::Rule, lead: "answer" })?
            .iter()
            .filter_map(|node| rule(reader, node))
            .collect(),
    )
}

fn rule(reader: &mut Reader, node: &Node) -> Option<Rule> {
    let keys = RuleKeys::open(reader, node)?;
    let listener = keys.listener.read(reader).map(|name| name.value);
    let when = keys.when.node.map_or_else(Vec::new, |node| match &node.value {
        Value::List(items) => items.iter().filter_map(|item| reader.text(item)).map(str::to_owned).collect(),
        _ => reader.text(node).map(str::to_owned).into_iter().collect(),
    });
    let call = keys.call.node.map(|node| called(reader, node));
    if call.is_none() {
        keys.own.require(reader, keys.answer.node, "answer", "a rule");
    }
    let answer = match (keys.answer.node, &call) {
        (None, Some(_)) => Some(String::new()),
        _ => keys.answer.read(reader).map(str::to_owned),
    };
    let cut = keys.cut.read(reader).unwrap_or_default();
    let after = keys.after.read(reader).unwrap_or(Duration::ZERO);
    let pace = keys.pace.read(reader).unwrap_or(Duration::ZERO);
    let summary = keys.summary.read(reader).unwrap_or_default();
    // A mistake in the call is reported, and the rule is none.
    let call = match call {
        Some(call) => Some(call?),
        None => None,
    };
    Some(Rule { listener, when, answer: answer?, call, cut, after, pace, summary })
}

fn called(reader: &mut Reader, node: &Node) -> Option<ToolCall> {
    let keys = CallKeys::open(reader, node)?;
    let name = keys.name.read(reader).map(str::to_owned);
    let Some(node) = keys.arguments.node else { return Some(ToolCall { name: name?, arguments: "{}".to_owned() }) };
    let arguments = keys.arguments.read(reader)?;
    match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments) {
        Ok(_) => Some(ToolCall { name: name?, arguments: arguments.to_owned() }),
        Err(error) => {
            reader.report(Mistake::Arguments { why: error.to_string() }, node.span);
            None
        }
    }
}

/// Reports listeners without a model to ask.
pub(super) fn check(reader: &mut Reader, organism: &Organism) {
    for listener in &organism.listeners {
        let Kind::Model(Model { backend, summary_backend, place, .. }) = &listener.kind else { continue };
        if !listener.contract.context && !listener.contract.calls.is_empty() {
            reader.report(Mistake::Forgetful, *place);
        }
        let Some(llm) = &organism.llm else {
            reader.report(Mistake::NoLlm, *place);
            continue;
        };
        let is_unknown = |named: &&At<Name>| !llm.names.contains(&named.value);
        let unknown: Vec<&At<Name>> = [backend, summary_backend].into_iter().flatten().filter(is_unknown).collect();
        for named in &unknown {
            let near = near::nearest(named.value.as_str(), llm.names.iter().map(Name::as_str)).map(str::to_owned);
            let mistake = Mistake::NoBackend { backend: named.value.clone(), near, backends: llm.names.clone() };
            reader.report(mistake, named.span);
        }
        if !unknown.is_empty() {
            continue;
        }
        let may_answer = |own: &&Backend| backend.as_ref().is_none_or(|backend| backend.value == own.name);
        let may_answer = llm.settings.backends.iter().map(|(backend, _)| backend).filter(may_answer);
        let reasons: Option<Vec<String>> = may_answer.map(Backend::left_out).collect();
        if let Some(mut reasons) = reasons.filter(|reasons| !reasons.is_empty()) {
            reasons.dedup();
            reader.report(Mistake::LeftOut { reasons }, backend.as_ref().map_or(*place, |backend| backend.span));
        }
    }
    priced(reader, organism);
    roomy(reader, organism);
}

/// Reports bounds of backends in which no request of a listener has room.
fn roomy(reader: &mut Reader, organism: &Organism) {
    let bounds = organism.llm.iter().flat_map(|llm| &llm.bounds);
    for (name, key, most) in bounds {
        let so = if *key == "context" { "no request fits" } else { "a request waits for room that never comes" };
        let tokens = organism.listeners.iter().filter_map(|listener| match &listener.kind {
            // A request has tokens, too.
            Kind::Model(model) => {
                Some((model.tokens_at(name), listener)).filter(|(tokens, _)| *tokens > 0 && *tokens >= most.value)
            }
            _ => None,
        });
        let Some((max_tokens, listener)) = tokens.into_iter().next() else { continue };
        let listener = listener.contract.name.clone();
        reader.report(Mistake::NoRoom { key, most: most.value, listener, max_tokens, so }, most.span);
    }
}

/// Reports backends without a price that may be asked where a budget bounds the cost: it would bound nothing.
fn priced(reader: &mut Reader, organism: &Organism) {
    let budgets = organism.clients.iter().map(|client| client.budget);
    let mut budgets = budgets.chain(organism.listeners.iter().map(|listener| listener.contract.budget));
    let bounds_cost = organism.budget.cost.is_some() || budgets.any(|budget| budget.cost.is_some());
    for name in organism.llm.iter().filter(|_| bounds_cost).flat_map(|llm| &llm.unpriced) {
        let may_answer = |kind: &Kind| match kind {
            Kind::Model(model) => model.tokens_at(&name.value) > 0,
            _ => false,
        };
        if organism.listeners.iter().any(|listener| may_answer(&listener.kind)) {
            reader.report(Mistake::NoPrice { backend: name.value.clone() }, name.span);
        }
    }
}

fn built(reader: &mut Reader, key: &'static str, span: Span) {
    if !cfg!(feature = "gateway") {
        reader.report(Mistake::NotBuilt { key, feature: "gateway" }, span);
    }
}

#[cfg(feature = "gateway")]
use crate::model::{judge_certificates, judge_header, judge_proxy, judge_url as judge};

/// Accepts everything: a program that was built without its gateway asks no model.
#[cfg(not(feature = "gateway"))]
mod unjudged {
    pub(super) fn judge(_: &str) -> Result<(), String> {
        Ok(())
    }

    pub(super) fn judge_proxy(_: &str) -> Result<(), String> {
        Ok(())
    }

    pub(super) fn judge_header(_: &str, _: Option<&str>) -> Result<(), String> {
        Ok(())
    }

    pub(super) fn judge_certificates(_: &std::path::Path) -> Result<(), String> {
        Ok(())
    }
}
#[cfg(not(feature = "gateway"))]
use unjudged::{judge, judge_certificates, judge_header, judge_proxy};
