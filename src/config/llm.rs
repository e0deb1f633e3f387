//! `llm:` and `model:`: the backends of models, and the listeners that models speak for.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value as Json;
use systole_core::core::{Contract, Millionths};
use systole_core::vocab::{Name, Span, near};

use super::correction::{Items, Shape};
use super::document::{self, Key, Node, Value};
use super::finding::{ConfigFinding, File};
use super::listener::Written as Kind;
use super::mistake::Mistake;
use super::organism::Organism;
use super::reader::{At, Fields, Reader};
use super::short_form::Prefixes;
use super::units;
use crate::settings::{
    Backend, Dialect, Endpoint, HeaderText, KeySource, LlmSettings, ModelSettings, Price, ProviderSettings, Rule,
    Script, Strategy, SummarySettings, read_secret_text,
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

/// The keys of a backend that is asked over HTTP.
const OF_HTTP: [&str; 13] = [
    "model",
    "url",
    "api_key_env",
    "api_key_file",
    "context",
    "headers",
    "query",
    "body",
    "omit",
    "rename",
    "stream",
    "proxy",
    "ca_file",
];
/// The fields of a request that no operator changes.
const OWN_FIELDS: [&str; 4] = ["model", "messages", "system", "stream"];
/// Most that a price of a million tokens can be.
const MAX_PRICE: u64 = 1_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Provider {
    Http(Dialect),
    Scripted,
}

/// Reads `llm:`.
pub(super) fn read(reader: &mut Reader, node: &Node) -> Option<Llm> {
    built(reader, "llm", node.span);
    let mut fields = reader.fields(node, Shape::Llm)?;
    let strategies = [
        ("failover", Strategy::Failover),
        ("round-robin", Strategy::RoundRobin),
        ("least-loaded", Strategy::LeastLoaded),
    ];
    let strategy = fields.take("strategy").and_then(|node| reader.choice(node, &strategies)).unwrap_or_default();
    let listed = fields.require("backends", "llm", reader);
    let nodes = listed
        .and_then(|node| reader.items(node, Items::Maps { shape: Shape::Backend, lead: "name" }))
        .unwrap_or_default();
    if let Some(node) = listed.filter(|node| nodes.is_empty() && matches!(node.value, Value::List(_))) {
        reader.report(Mistake::NoBackends, node.span);
    }
    reader.finish(fields);
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
    let mut fields = reader.fields(node, Shape::Backend)?;
    let name = fields.require("name", "a backend", reader).and_then(|node| reader.name(node));
    let mut backend = Backend::new(name.as_ref().map_or_else(Name::root, |name| name.value.clone()));
    for (key, condition) in [("when_env", &mut backend.when_env), ("unless_env", &mut backend.unless_env)] {
        *condition = fields.take(key).and_then(|node| variable(reader, node)).map(str::to_owned);
    }
    let providers = [
        ("openai", Provider::Http(Dialect::OpenAi)),
        ("anthropic", Provider::Http(Dialect::Anthropic)),
        ("ollama", Provider::Http(Dialect::Ollama)),
        ("scripted", Provider::Scripted),
    ];
    let provider = fields.require("provider", "a backend", reader).and_then(|node| reader.choice(node, &providers));
    let context = bound(&fields, "context");
    let settings = match provider {
        Some(Provider::Http(dialect)) => {
            if let Some(node) = fields.take("script") {
                reader.report(Mistake::NotOfBackend { key: "script", kind: "asked over HTTP" }, node.span);
            }
            endpoint(reader, &mut fields, dialect, backend.left_out().is_some())
                .map(|endpoint| ProviderSettings::Http(Box::new(endpoint)))
        }
        Some(Provider::Scripted) => {
            for key in OF_HTTP {
                if let Some(node) = fields.take(key) {
                    reader.report(Mistake::NotOfBackend { key, kind: "scripted" }, node.span);
                }
            }
            let script = fields.require("script", "a scripted backend", reader);
            script.and_then(|node| script_of(reader, node)).map(ProviderSettings::Scripted)
        }
        None => {
            // The provider decides which of these keys are allowed.
            OF_HTTP.iter().chain(&["script"]).for_each(|key| {
                fields.take(key);
            });
            None
        }
    };
    if let Some(priority) = number(reader, &mut fields, "priority", 0, 1000) {
        backend.priority = priority;
    }
    let rate = bound(&fields, "rate_limit_tpm");
    backend.rate_limit_tpm = number(reader, &mut fields, "rate_limit_tpm", 1, u32::MAX.into());
    backend.max_concurrent = number(reader, &mut fields, "max_concurrent", 1, 10_000);
    for (key, time) in [("first_token", &mut backend.first_token), ("between_tokens", &mut backend.between_tokens)] {
        *time = fields.take(key).and_then(|node| reader.duration(node)).unwrap_or(*time);
    }
    let (price, is_priced) = fields.take("price").and_then(|node| price(reader, node)).unwrap_or_default();
    backend.price = price;
    // Its list has that price for what is kept for 5 minutes, which is what requests ask for.
    if provider == Some(Provider::Http(Dialect::Anthropic)) && backend.price.written.is_none() {
        backend.price.written = Some(Millionths(price.input.0.saturating_add(price.input.0 / 4)));
    }
    reader.finish(fields);
    let (backend, bounds) = (settings.map(|settings| (backend, settings)), [context, rate]);
    Some(Written { name, backend, is_priced, bounds })
}

fn endpoint(reader: &mut Reader, fields: &mut Fields<'_>, dialect: Dialect, is_left_out: bool) -> Option<Endpoint> {
    let model = fields.require("model", "a backend", reader).and_then(|node| reader.text(node)).map(str::to_owned);
    let url = fields.take("url").and_then(|node| {
        let url = reader.text_such(node, "a URL, such as http://127.0.0.1:8000/v1")?.to_owned();
        if let Err(problem) = judge(&url) {
            reader.report(Mistake::Url { problem, private: false }, node.span);
        }
        Some(url)
    });
    let place = fields.span;
    let (variable, file) = (fields.take("api_key_env"), fields.take("api_key_file"));
    let key = match (variable, file) {
        (Some(_), Some(node)) => {
            reader.report(Mistake::TwoKeys, node.span);
            None
        }
        (Some(node), None) => key_env(reader, node, is_left_out),
        (None, Some(node)) => key_file(reader, node, is_left_out),
        (None, None) => {
            if url.is_none() && dialect != Dialect::Ollama {
                let owner = "a backend at its provider's own address";
                reader.report(Mistake::MissingKey { owner, key: "api_key_env" }, place);
            }
            None
        }
    };
    let context = number(reader, fields, "context", 256, u32::MAX.into());
    let url = url.unwrap_or_else(|| dialect.url().to_owned());
    let own = own_of_endpoint(reader, fields, dialect, is_left_out);
    Some(Endpoint { dialect, model: model?, url, key, context, ..own })
}

/// The keys of an endpoint for what differs from its protocol, and the way to it.
fn own_of_endpoint(reader: &mut Reader, fields: &mut Fields<'_>, dialect: Dialect, is_left_out: bool) -> Endpoint {
    let mut own = Endpoint::new(dialect, "");
    let [headers, query, body, omit, rename] =
        ["headers", "query", "body", "omit", "rename"].map(|key| fields.take(key));
    if let Some(node) = headers {
        let entries = entries(reader, node, Shape::Headers).into_iter();
        own.headers = entries.filter_map(|(key, node)| header(reader, key, node, is_left_out)).collect();
    }
    if let Some(node) = query {
        own.query = texts(reader, node, Shape::Query).into_iter().map(|(key, text)| (key.text.clone(), text)).collect();
    }
    if let Some(node) = body {
        let entries = entries(reader, node, Shape::Body).into_iter();
        let entries = entries.filter(|(key, _)| is_operators(reader, &key.text, key.span));
        let entries: Vec<_> = entries.collect();
        own.body = entries.into_iter().map(|(key, node)| (key.text.clone(), json(reader, node))).collect();
    }
    for node in omit.and_then(|node| reader.list(node)).unwrap_or_default() {
        let Some(name) = reader.text(node) else { continue };
        own.omit.extend(is_operators(reader, name, node.span).then(|| name.to_owned()));
    }
    if let Some(node) = rename {
        renamed(reader, node, &mut own);
    }
    own.stream = fields.take("stream").and_then(|node| reader.flag(node)).unwrap_or(true);
    own.proxy = fields.take("proxy").and_then(|node| {
        let url = reader.text_such(node, "a URL, such as http://127.0.0.1:3128")?.to_owned();
        if let Err(problem) = judge_proxy(&url) {
            reader.report(Mistake::Proxy { problem }, node.span);
        }
        Some(url)
    });
    own.ca_file = fields.take("ca_file").and_then(|node| {
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
    let mut fields = reader.fields(node, Shape::Secret)?;
    let source = match fields.take("file") {
        Some(node) => key_file(reader, node, is_left_out),
        None => fields.require("env", "a secret", reader).and_then(|node| key_env(reader, node, is_left_out)),
    };
    reader.finish(fields);
    source
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
fn json(reader: &Reader, node: &Node) -> Json {
    match &node.value {
        Value::Nothing => Json::Null,
        Value::Scalar(text) => {
            let typed =
                serde_json::from_str(text).ok().filter(|value| matches!(value, Json::Number(_) | Json::Bool(_)));
            let typed = typed.filter(|_| !reader.file.is_quoted(node.span));
            typed.unwrap_or_else(|| Json::String(text.clone()))
        }
        Value::List(items) => items.iter().map(|item| json(reader, item)).collect(),
        Value::Map(map) => map.iter().map(|(key, node)| (key.text.clone(), json(reader, node))).collect(),
    }
}

/// A bound of tokens that a key sets, if it is a number: the reader of the key reports it otherwise.
fn bound(fields: &Fields<'_>, key: &'static str) -> Option<(&'static str, At<u32>)> {
    let node = fields.look(key)?;
    let Value::Scalar(text) = &node.value else { return None };
    let most = units::saturating(text).and_then(|most| u32::try_from(most).ok())?;
    Some((key, At { value: most, span: node.span }))
}

fn key_env(reader: &mut Reader, node: &Node, is_left_out: bool) -> Option<KeySource> {
    let variable = variable(reader, node)?;
    if !is_left_out && std::env::var_os(variable).is_none_or(|key| key.is_empty()) {
        reader.report(Mistake::NoKey { why: format!("the environment variable {variable} is not set") }, node.span);
    }
    Some(KeySource::Env(variable.to_owned()))
}

/// The name of a variable of the environment.
fn variable<'n>(reader: &mut Reader, node: &'n Node) -> Option<&'n str> {
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
    let mut fields = reader.fields(node, Shape::Price)?;
    let [input, output, cached, written] = ["input", "output", "cached", "written"].map(|key| (key, fields.take(key)));
    reader.finish(fields);
    let mut read = |(key, node): (_, Option<&Node>)| node.and_then(|node| decimal(reader, key, node, MAX_PRICE));
    let is_priced = input.1.is_some() && output.1.is_some();
    let (input, output) = (read(input).unwrap_or_default(), read(output).unwrap_or_default());
    Some((Price { input, output, cached: read(cached), written: read(written) }, is_priced))
}

/// Reads `model:`.
pub(super) fn model(reader: &mut Reader, node: &Node) -> Option<Model> {
    built(reader, "model", node.span);
    let mut fields = reader.fields(node, Shape::Model)?;
    let mut settings = ModelSettings::default();
    if let Some(text) = fields.take("instructions").and_then(|node| instructions(reader, node)) {
        settings.instructions = text;
    }
    settings.temperature = fields.take("temperature").and_then(|node| decimal(reader, "temperature", node, 2));
    if let Some(most) = number(reader, &mut fields, "max_tokens", 1, 10_000_000) {
        settings.max_tokens = most;
    }
    if let Some(tries) = number(reader, &mut fields, "tries", 1, 100) {
        settings.tries = tries;
    }
    let of_summary = ["summary_backend", "summary_tokens"].into_iter();
    let of_summary = of_summary.filter_map(|key| Some(At { value: key, span: fields.look(key)?.span })).next();
    let mut summary = SummarySettings::default();
    if let Some(most) = number(reader, &mut fields, "summary_tokens", 64, 100_000) {
        summary.max_tokens = most;
    }
    let summary_backend = fields.take("summary_backend").and_then(|node| reader.name(node));
    summary.backend = summary_backend.as_ref().map(|backend| backend.value.clone());
    settings.summary = Some(summary);
    let backend = fields.take("backend").and_then(|node| reader.name(node));
    settings.backend = backend.as_ref().map(|backend| backend.value.clone());
    let place = fields.span;
    reader.finish(fields);
    Some(Model { settings, backend, summary_backend, of_summary, place })
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
    let file = File::new(&name, &source);
    let (base, directory) = (reader.base.clone(), reader.directory.clone());
    let mut own =
        Reader { file, base, directory, prefixes: Prefixes::default(), findings: Vec::new(), files: Vec::new() };
    let script = match document::parse(&source) {
        Ok(root) => rules(&mut own, &root),
        Err(error) => {
            let mistake = Mistake::Yaml { message: error.message, help: error.help };
            own.findings.push(ConfigFinding::new(mistake, &own.file, error.span));
            None
        }
    };
    reader.findings.append(&mut own.findings);
    script.map(|rules| Script { file: written.to_owned(), rules })
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
    let mut fields = reader.fields(node, Shape::Rule)?;
    let listener = fields.take("listener").and_then(|node| reader.name(node)).map(|name| name.value);
    let when = fields.take("when").map_or_else(Vec::new, |node| match &node.value {
        Value::List(items) => items.iter().filter_map(|item| reader.text(item)).map(str::to_owned).collect(),
        _ => reader.text(node).map(str::to_owned).into_iter().collect(),
    });
    let answer = fields.require("answer", "a rule", reader).and_then(|node| reader.text(node)).map(str::to_owned);
    let cut = fields.take("cut").and_then(|node| reader.flag(node)).unwrap_or_default();
    let after = fields.take("after").and_then(|node| reader.duration(node)).unwrap_or(Duration::ZERO);
    let summary = fields.take("summary").and_then(|node| reader.flag(node)).unwrap_or_default();
    reader.finish(fields);
    Some(Rule { listener, when, answer: answer?, cut, after, summary })
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

fn number(reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str, min: u64, max: u64) -> Option<u32> {
    fields.take(key).and_then(|node| reader.number(key, node, min, max)).map(|number| number as u32)
}

/// Reads a decimal number with at most six digits behind the point.
pub(super) fn decimal(reader: &mut Reader, key: &'static str, node: &Node, max: u64) -> Option<Millionths> {
    let text = reader.text_such(node, "a number, such as 0.25")?;
    match Millionths::saturating(text) {
        Ok(number) if number.0 <= max * Millionths::ONE.0 => Some(number),
        Ok(_) => {
            reader.report(Mistake::Bounds { key, min: 0, max }, node.span);
            None
        }
        Err(error) => {
            reader.report(Mistake::Decimal { text: text.to_owned(), help: error.to_string() }, node.span);
            None
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
