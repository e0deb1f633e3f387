//! `mcp:`: a listener that is an MCP server, by the lock file of its import.

use std::path::{Path, PathBuf};

use systole_core::core::{Contract, OnRestart};
use systole_core::vocab::{Name, QName, Span, near};

use super::correction::Items;
use super::document::{self, Node, Value};
use super::finding::ConfigFinding;
use super::keys::{List, Named, OneOf, Text, Texts, Word, mapping};
use super::listener::{self, Listener, Program, Written};
use super::mistake::Mistake;
use super::organism::Organism;
use super::reader::{At, Reader};
use super::short_form::Called;
use super::{Config, File, Prefixes};
use crate::listeners::mcp::{McpAsks, McpListenerSettings, McpLock, McpServer, NAMESPACE, Repeat};

/// The longest that a call takes, as a multiple of the time that its server may be silent.
const LONGEST: u32 = 10;

/// An MCP server as it is written.
#[derive(Debug)]
pub(super) struct McpListener {
    pub(super) way: Way,
    pub(super) lock: McpLock,
    lock_file: At<String>,
    tools: Option<Vec<At<String>>>,
    repeat: Repeat,
    pub(super) questions: Option<At<Name>>,
    pub(super) sampling: Option<At<Name>>,
    eager: bool,
    silence: Option<std::time::Duration>,
}

/// The way to a server as it is written.
#[derive(Debug)]
pub(super) enum Way {
    Command(Program),
    Http { url: String, token: Option<String> },
}

mapping! {
    /// An MCP server, by the way to it.
    McpListenerKeys: McpListener with { "oneOf": [{ "required": ["command"] }, { "required": ["url"] }] } {
        /// Program that speaks the protocol on its standard input and output, and its arguments.
        command: Texts;
        /// URL of a server that speaks streamable HTTP.
        url: Text;
        /// File with the token for the URL, relative to this file.
        token_file: Text;
        /// Lock file that systole mcp import writes, relative to this file; NAME.mcp.json by default.
        lock: Text;
        /// Tools that may be called, by their names; without it: all that were imported.
        tools: List<Text>;
        /// Calls that are made again when the server or the organism ended before the answer: those of tools that say that
        /// this is harmless (readOnlyHint, idempotentHint), all, or none.
        repeat: OneOf<Repeat> = "hints";
        /// Listener that answers the questions of the server to people; without it they are declined.
        questions: Named;
        /// Listener that completes texts for the server, mostly a model; without it such requests are refused.
        sampling: Named;
    }
}

impl Word for Repeat {
    const WORDS: &'static [(&'static str, Self)] =
        &[("hints", Self::Hints), ("always", Self::Always), ("never", Self::Never)];
}

/// Reads the value of `mcp:`.
pub(super) fn read(
    reader: &mut Reader,
    node: &Node,
    name: Option<&At<Name>>,
    env: Option<&Node>,
    eager: bool,
) -> Option<McpListener> {
    let keys = McpListenerKeys::open(reader, node)?;
    let way = way(reader, &keys, env);
    let name = name?;
    if cfg!(not(feature = "mcp")) {
        reader.report(Mistake::NotBuilt { key: "mcp", feature: "mcp" }, node.span);
        return None;
    }
    let lock_file = lock_file(reader, &keys, name);
    let path = reader.directory.join(&lock_file.value);
    let lock = McpLock::read(&path).map_err(|error| error.to_string()).and_then(|lock| {
        match lock.listener == name.value.as_str() {
            true => Ok(lock),
            false => Err(format!("it is that of the listener '{}'", lock.listener)),
        }
    });
    reader.files.push(path);
    let lock = match lock {
        Ok(lock) => Some(lock),
        Err(why) => {
            let (file, listener) = (lock_file.value.clone(), name.value.clone());
            reader.report(Mistake::McpLock { file, listener, why }, lock_file.span);
            None
        }
    };
    let tools = keys.tools.node.and_then(|node| reader.items(node, Items::Texts));
    let tools: Option<Vec<At<String>>> =
        tools.map(|tools| tools.iter().filter_map(|node| listener::text(reader, node)).collect());
    if let Some(lock) = &lock {
        let known = || lock.tools.iter().map(|tool| tool.facts.name.as_str());
        for tool in tools.iter().flatten() {
            if !known().any(|name| name == tool.value) {
                let near = near::nearest(&tool.value, known()).map(str::to_owned);
                let tools = known().map(str::to_owned).collect();
                reader.report(Mistake::NoTool { tool: tool.value.clone(), near, tools }, tool.span);
            }
        }
    }
    let repeat = keys.repeat.read(reader).unwrap_or_default();
    let questions = keys.questions.read(reader);
    let sampling = keys.sampling.read(reader);
    Some(McpListener { way: way?, lock: lock?, lock_file, tools, repeat, questions, sampling, eager, silence: None })
}

/// Reads the way to a server: a command, or a URL.
fn way(reader: &mut Reader, keys: &McpListenerKeys<'_>, env: Option<&Node>) -> Option<Way> {
    let (pointless, way) = match (keys.command.node, keys.url.node) {
        (Some(words), None) => {
            let program = listener::program(reader, words, env);
            (keys.token_file.place().map(|place| (place, "an MCP server with a command")), program.map(Way::Command))
        }
        (None, Some(_)) => {
            let url = keys.url.read(reader)?.to_owned();
            let token = keys.token_file.read(reader).map(str::to_owned);
            let env = env.map(|env| (("env", env.span), "an MCP server with a URL"));
            (env, Some(Way::Http { url, token }))
        }
        _ => {
            reader.report(Mistake::McpWay, keys.own.span);
            return None;
        }
    };
    if let Some(((key, span), kind)) = pointless {
        reader.report(Mistake::Pointless { key, kind }, span);
    }
    way
}

impl Way {
    fn server(self, directory: &Path) -> McpServer {
        match self {
            Self::Command(program) => McpServer::Command(super::command(program, directory)),
            Self::Http { url, token } => McpServer::Http { url, token: token.map(|file| directory.join(file)) },
        }
    }
}

fn lock_file(reader: &mut Reader, keys: &McpListenerKeys<'_>, name: &At<Name>) -> At<String> {
    match keys.lock.read(reader).zip(keys.lock.span()) {
        Some((file, span)) => At { value: file.to_owned(), span },
        None => At { value: format!("{}.mcp.json", name.value), span: keys.own.span },
    }
}

impl McpListener {
    /// The behaviour of a server's listener, unless its keys say otherwise.
    pub(super) fn defaults(&self, contract: &mut Contract) {
        if self.questions.is_some() || self.sampling.is_some() {
            contract.can_park = true;
            contract.on_restart = OnRestart::AskAgain;
        }
    }

    /// Takes the timeout of the listener for the time that the server may be silent: its progress begins that anew, up to a
    /// bound.
    pub(super) fn silence(&mut self, contract: &mut Contract) {
        self.silence = contract.timeout;
        contract.timeout = contract.timeout.map(|timeout| timeout * LONGEST);
    }

    /// The settings of the listener.
    pub(super) fn settings(self, directory: &Path) -> McpListenerSettings {
        let server = self.way.server(directory);
        McpListenerSettings::new(server, self.lock)
            .silence(self.silence)
            .repeat(self.repeat)
            .questions(self.questions.map(|name| name.value))
            .sampling(self.sampling.map(|name| name.value))
            .eager(self.eager)
    }
}

/// The listener of a server.
pub(super) fn listener(name: At<Name>, mut contract: Contract, kind: Written) -> Listener {
    let Written::Mcp(server) = &kind else { unreachable!("it is called for servers alone") };
    let span = server.lock_file.span;
    let shared = |local: &str| QName::new(NAMESPACE, local).ok();
    let is_wanted = |element: &QName| {
        let tool = server.lock.tools.iter().find(|tool| tool.element == element.local());
        let names = server.tools.as_ref().zip(tool);
        names.is_none_or(|(tools, tool)| tools.iter().any(|name| name.value == tool.facts.name))
    };
    contract.accepts = server.lock.accepts().filter(is_wanted).collect();
    contract.replies = server.lock.results().chain(shared("content")).collect();
    let at = |list: &[QName]| list.iter().map(|qname| At { value: qname.clone(), span }).collect();
    let asked = [server.questions.as_ref().map(|_| "elicitation"), server.sampling.as_ref().map(|_| "sampling")];
    let asked = asked.into_iter().flatten().filter_map(shared);
    let called = asked.map(|payload| At { value: Called::Payload(payload), span }).collect();
    let contract_file = PathBuf::from(&server.lock_file.value).with_file_name(&server.lock.contract.file);
    let schemas = vec![At { value: contract_file.display().to_string(), span }];
    let (accepts, replies) = (at(&contract.accepts), at(&contract.replies));
    let (calls, returned, returns) = (Vec::new(), None, Vec::new());
    Listener { name, accepts, replies, called, calls, returned, returns, schemas, contract, kind }
}

/// Reports listeners for questions and completions that there are not.
pub(super) fn check(reader: &mut Reader, organism: &Organism) {
    let names = || organism.listeners.iter().map(|listener| &listener.name.value);
    for listener in organism.listeners.iter().filter(|_| organism.complete) {
        let Written::Mcp(server) = &listener.kind else { continue };
        let asked = server.questions.iter().chain(&server.sampling);
        for asked in asked.filter(|asked| !names().any(|name| *name == asked.value)) {
            let word = asked.value.to_string();
            let near = near::nearest(&word, names().map(Name::as_str)).and_then(|near| near.parse().ok());
            reader.report(Mistake::NoCallee { word, near, listeners: names().cloned().collect() }, asked.span);
        }
    }
}

/// An MCP server of an `organism.yaml` that may not have been imported yet.
#[derive(Debug)]
#[non_exhaustive]
pub struct McpImport {
    /// The way to the server.
    pub server: McpServer,
    /// The lock file.
    pub lock: PathBuf,
    /// The requests of the server that are answered.
    pub asks: McpAsks,
}

impl Config {
    /// The MCP server of a listener, for its import: the rest of the file need not be right.
    ///
    /// # Errors
    /// The mistakes of the file and of that listener.
    pub fn mcp_server(path: &Path, listener: &Name) -> Result<McpImport, Vec<ConfigFinding>> {
        let missing = Mistake::NoMcpServer { listener: listener.clone() };
        import_of(path, listener, ("mcp", missing), |reader, name, node, env| {
            let keys = McpListenerKeys::open(reader, node)?;
            let way = way(reader, &keys, env)?;
            let lock = lock_file(reader, &keys, name);
            let server = way.server(&reader.directory);
            let asks = McpAsks::new(keys.questions.node.is_some(), keys.sampling.node.is_some());
            Some(McpImport { server, lock: reader.directory.join(lock.value), asks })
        })
    }
}

/// Reads what an import needs of the entry of a listener with a key: the rest of the file need not be right. `read` gets the
/// listener's name, the value of the key, and its `env`; `missing` is reported where there is no such entry.
pub(super) fn import_of<T>(
    path: &Path,
    listener: &Name,
    (key, missing): (&str, Mistake),
    read: impl FnOnce(&mut Reader, &At<Name>, &Node, Option<&Node>) -> Option<T>,
) -> Result<T, Vec<ConfigFinding>> {
    let (name, source, directory) = Config::open(path)?;
    let file = File::new(&name, &source);
    let root = document::parse(&source).map_err(|error| {
        let mistake = Mistake::Yaml { message: error.message, help: error.help };
        vec![ConfigFinding::new(mistake, &file, error.span)]
    })?;
    let base = Path::new(&name).parent().map(Path::to_owned).unwrap_or_default();
    let (prefixes, findings, files) = (Prefixes::default(), Vec::new(), Vec::new());
    let mut reader = Reader { file, base, directory, prefixes, findings, files };
    let found = entry(&root, listener, key);
    let import = found.and_then(|(span, node, env)| {
        let name = At { value: listener.clone(), span };
        read(&mut reader, &name, node, env)
    });
    match import {
        Some(import) if reader.findings.is_empty() => Ok(import),
        _ if reader.findings.is_empty() => Err(vec![ConfigFinding::nowhere(missing)]),
        _ => Err(reader.findings),
    }
}

/// The entry of a listener with a key: the place of its name, the value of the key, and its `env`.
fn entry<'n>(root: &'n Node, listener: &Name, key: &str) -> Option<(Span, &'n Node, Option<&'n Node>)> {
    let get = |node: &'n Node, key: &str| match &node.value {
        Value::Map(map) => map.iter().find(|(known, _)| known.text == key).map(|(_, value)| value),
        _ => None,
    };
    let Value::List(entries) = &get(root, "listeners")?.value else { return None };
    entries.iter().find_map(|entry| {
        let name = get(entry, "name")?;
        let is_named = matches!(&name.value, Value::Scalar(text) if text == listener.as_str());
        is_named.then_some((name.span, get(entry, key)?, get(entry, "env")))
    })
}
