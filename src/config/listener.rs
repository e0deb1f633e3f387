//! An entry below `listeners:`.

use std::time::Duration;

use systole_core::core::{Contract, OnRestart, Routing, Silence};
use systole_core::vocab::{Limits, Name, QName, Span, ns};
use systole_xml::ladder::repair::Author;

use super::budget::{self, BudgetKeys};
use super::correction::Items;
use super::document::Node;
use super::gateway;
use super::human::{self, Human, HumanKeys};
use super::keys::{Always, Call, Count, Flag, List, Named, OneOf, OrTrue, Payload, Text, Texts, Time, Word, mapping};
use super::llm::{self, Model, ModelKeys};
use super::mcp_listener::{self, McpListener, McpListenerKeys};
use super::mistake::Mistake;
use super::organism_listener::{self, OrganismListener, OrganismListenerKeys};
use super::reader::{At, Reader};
use super::remote::{self, RemoteKeys};
use super::short_form::Called;
use super::tasks::{self, JobKeys, RegistryKeys, TasksSpec};
use crate::listeners::worker::{WorkerSpec, WorkerStart};
use crate::process::Variable;
use crate::settings::Mode;

/// A listener as the file describes it.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) name: At<Name>,
    pub(super) contract: Contract,
    pub(super) accepts: Vec<At<QName>>,
    pub(super) replies: Vec<At<QName>>,
    /// `calls` as it is written; `calls` once they are written out.
    pub(super) called: Vec<At<Called>>,
    pub(super) calls: Vec<At<QName>>,
    /// `returns`, if it is written.
    pub(super) returned: Option<Vec<At<QName>>>,
    pub(super) returns: Vec<At<QName>>,
    pub(super) schemas: Vec<At<String>>,
    pub(super) kind: Written,
}

/// A program as it is written; it isn't searched yet.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) words: Vec<At<String>>,
    pub(super) env: Vec<At<Variable>>,
}

/// The form in which a program reads and writes payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Xml,
    Json,
}

impl Form {
    pub(super) fn is_json(self) -> bool {
        self == Self::Json
    }
}

/// The kind of a listener as it is written.
#[derive(Debug)]
pub(super) enum Written {
    Command(Program, Form),
    Worker { program: Program, form: Form, processes: u32, heartbeat: Duration, start: WorkerStart },
    Mcp(Box<McpListener>),
    Organism(Box<OrganismListener>),
    Model(Model),
    Human(Human),
    Echo,
    Remote(Mode),
    Tasks { tasks: TasksSpec, owner: Option<At<Name>>, place: Span },
}

mapping! {
    /// A listener, which accepts messages.
    ListenerKeys: Listener with {
        "oneOf": [
            { "required": ["command"] },
            { "required": ["worker"] },
            { "required": ["mcp"] },
            { "required": ["organism"] },
            { "required": ["model"] },
            { "required": ["human"] },
            { "required": ["echo"] },
            { "required": ["remote"] },
            { "required": ["job"] },
            { "required": ["jobs"] }
        ]
    } {
        /// Name, of letters, digits, '_', '-' and '.'.
        name: Named, of "a listener";
        /// Line for people and models; without it: the schemas' documentation of the payloads that it accepts.
        description: Text;
        /// Program that runs once for each message, and its arguments (docs/commands.md).
        command: Texts;
        /// Program that stays for many messages, and its arguments (docs/worker.md).
        worker: Texts;
        /// MCP server, each of whose tools is a payload (docs/mcp-servers.md).
        mcp: McpListenerKeys<'static>;
        /// Another organism, whose listeners are called over its gateway (docs/federation.md).
        organism: OrganismListenerKeys<'static>;
        /// Language model that speaks for the listener (docs/model.md).
        model: ModelKeys<'static>;
        /// People (docs/people.md); true: those who run the organism, at its terminal or by systole inbox.
        human: OrTrue<HumanKeys<'static>>;
        /// Echo: the listener replies with the payload that it gets.
        echo: Always;
        /// Agent elsewhere (docs/remote.md).
        remote: RemoteKeys<'static>;
        /// Inbox of tasks (docs/tasks.md).
        job: JobKeys<'static>;
        /// Registry of jobs (docs/tasks.md).
        jobs: RegistryKeys<'static>;
        /// Environment variables of a command, a worker or an MCP server: `NAME` is passed on, `NAME=value` is set.
        env: Texts = [];
        /// True if a command or worker reads and writes payloads as JSON (docs/json.md).
        json: Flag = false;
        /// Processes of a worker.
        processes: Count<1, 1024> = 1;
        /// Time that a worker may be silent.
        heartbeat: Time<1> = "30s";
        /// Time at which the processes of a worker or an MCP server are started: when they are needed, or with the organism.
        start: OneOf<WorkerStart> = "lazy";
        /// The files that declare its payloads, .xsd or JSON Schema (.json, docs/json.md), relative to this file.
        schemas: Texts;
        /// Payloads that it accepts as requests.
        accepts: List<Payload>;
        /// Payloads that it replies with; of an echo: the payloads that it accepts.
        replies: List<Payload>;
        /// Payloads that it may send; a listener stands for all that it accepts.
        calls: List<Call> = [];
        /// Answers that come to it as messages; of programs and remote listeners that accept more than `<boot>`, without it: the
        /// replies to their calls.
        returns: List<Payload>;
        /// Author of its texts, by whom repair reads the words around payloads: a program, or a model (docs/repair.md).
        author: OneOf<Author> = "program";
        /// True if faults come to it as messages.
        accepts_faults: Flag = false;
        /// True if the payloads that it accepts and replies with may hold processing instructions.
        instructions: Flag = false;
        /// True if it gets the history of its threads, without what goes past the bounds of a context; `summary` if a model
        /// summarizes that.
        context: OneOf<History> = false;
        /// Meaning of an end without an answer: a fault, or nothing.
        silence: OneOf<Silence> = "error";
        /// Routing of payloads that name no listener.
        routing: OneOf<Routing> = "unique";
        /// Time that a handler may take; `handler_timeout` unless it is set, none for people and remote listeners.
        timeout: Time<1>;
        /// The most that each thread of the listener may use, with the threads below it.
        budget: BudgetKeys<'static>;
        /// Messages at once: 4 of a command, 64 of workers, MCP servers, other organisms, people and echoes, 10000 of remote listeners and callers.
        concurrency: Count<1, 0xFFFF_FFFF>;
    }
}

/// The history that a listener gets of its threads.
#[derive(Clone, Copy)]
pub(super) enum History {
    Nothing,
    /// What goes past the bounds of a context is left out.
    Trimmed,
    /// A model summarizes what goes past the bounds of a context.
    Summarized,
}

impl Word for History {
    const WORDS: &'static [(&'static str, Self)] =
        &[("true", Self::Trimmed), ("false", Self::Nothing), ("trim", Self::Trimmed), ("summary", Self::Summarized)];
}

impl Word for WorkerStart {
    const WORDS: &'static [(&'static str, Self)] = &[("lazy", Self::Lazy), ("eager", Self::Eager)];
}

impl Word for Author {
    const WORDS: &'static [(&'static str, Self)] = &[("program", Self::Program), ("model", Self::Model)];
}

impl Word for Silence {
    const WORDS: &'static [(&'static str, Self)] = &[("error", Self::Error), ("idle", Self::Idle)];
}

impl Word for Routing {
    const WORDS: &'static [(&'static str, Self)] =
        &[("unique", Self::Unique), ("broadcast", Self::Broadcast), ("addressed", Self::Addressed)];
}

impl ListenerKeys<'_> {
    /// Refuses the keys whose values the kind of the listener determines: those that shape the contract, and others that the
    /// kind names, which are left out already.
    fn refuse_own(&mut self, reader: &mut Reader, kind: &'static str, others: &[Option<(&'static str, Span)>]) {
        let own = [
            self.schemas.leave_out(),
            self.accepts.leave_out(),
            self.replies.leave_out(),
            self.calls.leave_out(),
            self.returns.leave_out(),
            self.author.leave_out(),
            self.accepts_faults.leave_out(),
            self.context.leave_out(),
            self.silence.leave_out(),
        ];
        for (key, span) in own.iter().chain(others).flatten() {
            reader.report(Mistake::Pointless { key, kind }, *span);
        }
    }
}

/// Reads an entry. `None` if it lacks a key without which the others can't be judged.
pub(super) fn read(reader: &mut Reader, node: &Node, limits: &Limits) -> Option<Listener> {
    let before = reader.findings.len();
    let mut keys = ListenerKeys::open(reader, node)?;
    let name = keys.name.read(reader);
    let description = keys.description.read(reader);
    let place = name.as_ref().map_or(keys.own.span, |name| name.span);
    let mut kind = kind(reader, &keys, name.as_ref());
    match kind {
        Some(Written::Tasks { .. }) => {
            let others = [keys.budget.leave_out(), keys.timeout.leave_out(), keys.concurrency.leave_out()];
            keys.refuse_own(reader, "a job", &others);
        }
        Some(Written::Mcp(_)) => {
            let others = [keys.instructions.leave_out()];
            keys.refuse_own(reader, "an MCP server", &others);
        }
        Some(Written::Organism(_)) => {
            let others = [keys.instructions.leave_out()];
            keys.refuse_own(reader, "another organism", &others);
        }
        _ => {}
    }
    let schemas = keys.schemas.read(reader).unwrap_or_default();
    let schemas = schemas.iter().filter_map(|node| text(reader, node)).collect();
    let [accepts, replies, returned] =
        [keys.accepts, keys.replies, keys.returns].map(|key| key.node.map(|_| key.read(reader).unwrap_or_default()));
    let called = keys.calls.read(reader).unwrap_or_default();
    let accepts = accepts.unwrap_or_default();
    let replies = match (&kind, replies) {
        (Some(Written::Echo), replies) => echoed(reader, &accepts, replies),
        (_, replies) => replies.unwrap_or_default(),
    };
    let mut contract =
        defaults(name.as_ref().map_or_else(Name::root, |name| name.value.clone()), kind.as_ref(), limits);
    contract.description =
        description.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap_or_default();
    behaviour(reader, &keys, &mut contract);
    match &mut kind {
        Some(Written::Model(model)) => model.summarizes(reader, contract.condenses),
        Some(_) if contract.condenses => reader.report(Mistake::NotSummarized, keys.context.span().unwrap_or(place)),
        Some(_) | None => {}
    }
    if reader.findings.len() > before {
        return None;
    }
    let (name, mut kind) = (name?, kind?);
    if let Written::Mcp(server) = &mut kind {
        server.silence(&mut contract);
        return Some(mcp_listener::listener(name, contract, kind));
    }
    if let Written::Organism(_) = &kind {
        return Some(organism_listener::listener(name, contract, kind));
    }
    if let Written::Tasks { tasks, place, .. } = &kind {
        return Some(with_tasks(name, tasks.contract(&contract), *place, kind));
    }
    let plain = |list: &[At<QName>]| list.iter().map(|at| at.value.clone()).collect();
    contract.accepts = plain(&accepts);
    contract.replies = plain(&replies);
    let (calls, returns) = (Vec::new(), Vec::new());
    Some(Listener { name, contract, accepts, replies, called, calls, returned, returns, schemas, kind })
}

/// Makes a listener whose kind determines its contract.
fn with_tasks(name: At<Name>, contract: Contract, place: Span, kind: Written) -> Listener {
    let at = |list: &[QName]| list.iter().map(|qname| At { value: qname.clone(), span: place }).collect();
    let (accepts, replies, calls) = (at(&contract.accepts), at(&contract.replies), at(&contract.calls));
    let (called, returned) = (Vec::new(), None);
    let (returns, schemas) = (Vec::new(), Vec::new());
    Listener { name, contract, accepts, replies, called, calls, returned, returns, schemas, kind }
}

fn defaults(name: Name, kind: Option<&Written>, limits: &Limits) -> Contract {
    let mut contract = Contract::new(name);
    contract.can_park = false;
    contract.timeout = Some(limits.handler_timeout);
    match kind {
        Some(Written::Command(..)) => {
            contract.concurrency = Contract::COMMAND_CONCURRENCY;
            contract.speaks_at_end = true;
        }
        Some(Written::Worker { .. }) => {
            contract.can_park = true;
            contract.speaks_at_end = true;
        }
        Some(Written::Mcp(server)) => server.defaults(&mut contract),
        Some(Written::Organism(_)) => organism_listener::defaults(&mut contract),
        Some(Written::Model(_)) => llm::defaults(&mut contract),
        Some(Written::Human(human)) => {
            contract.timeout = None;
            // The clients of callers come and go: those that leave their questions alone hold up no other.
            if human.people.iter().any(|name| name.value.as_str() == human::CALLER) {
                contract.concurrency = gateway::WAITING;
            }
            contract.on_restart = OnRestart::AskAgain;
            contract.outlives = true;
            // A call of a person is awaited, and its answer shown below the question.
            contract.can_park = true;
        }
        Some(Written::Remote(_)) => {
            contract.timeout = None;
            contract.on_restart = OnRestart::AskAgain;
            contract.concurrency = gateway::WAITING;
            contract.outlives = true;
        }
        Some(Written::Tasks { .. }) => contract.routing = tasks::ROUTING,
        // An echo has no state: each shard replies by itself.
        Some(Written::Echo) => contract.stateless = true,
        None => {}
    }
    contract
}

fn behaviour(reader: &mut Reader, keys: &ListenerKeys<'_>, contract: &mut Contract) {
    keys.author.set(reader, &mut contract.author);
    keys.accepts_faults.set(reader, &mut contract.accepts_faults);
    keys.instructions.set(reader, &mut contract.instructions);
    match keys.context.read(reader) {
        Some(History::Nothing) => (contract.context, contract.condenses) = (false, false),
        Some(History::Trimmed) => (contract.context, contract.condenses) = (true, false),
        Some(History::Summarized) => (contract.context, contract.condenses) = (true, true),
        None => {}
    }
    keys.silence.set(reader, &mut contract.silence);
    keys.routing.set(reader, &mut contract.routing);
    if let Some(timeout) = keys.timeout.read(reader) {
        contract.timeout = Some(timeout);
    }
    contract.budget = budget::read(reader, keys.budget);
    if let Some(slots) = keys.concurrency.read(reader) {
        contract.concurrency = slots as u32;
        // The number is that of the organism, not of a shard.
        contract.stateless = false;
    }
}

fn kind(reader: &mut Reader, keys: &ListenerKeys<'_>, name: Option<&At<Name>>) -> Option<Written> {
    let ListenerKeys { command, worker, mcp, organism, model, human, echo, remote, job, jobs, .. } = keys;
    let kinds = [
        command.node,
        worker.node,
        mcp.node,
        organism.node,
        model.node,
        human.node,
        echo.node,
        remote.node,
        job.node,
        jobs.node,
    ];
    let mut written = kinds.iter().flatten();
    let (Some(node), None) = (written.next(), written.next()) else {
        let is_none = kinds.iter().all(Option::is_none);
        let listener = name.map_or(keys.own.span, |name| name.span);
        reader.report(if is_none { Mistake::NoKind } else { Mistake::TwoKinds }, listener);
        return None;
    };
    let start = keys.start.read(reader);
    let form = if keys.json.read(reader) == Some(true) { Form::Json } else { Form::Xml };
    let written = match kinds {
        [Some(words), ..] => program(reader, words, keys.env.node).map(|program| Written::Command(program, form)),
        [_, Some(words), ..] => {
            let processes = keys.processes.read(reader).unwrap_or(1) as u32;
            let heartbeat = keys.heartbeat.read(reader).unwrap_or(WorkerSpec::HEARTBEAT);
            let program = program(reader, words, keys.env.node);
            let start = start.unwrap_or_default();
            program.map(|program| Written::Worker { program, form, processes, heartbeat, start })
        }
        [_, _, Some(server), ..] => {
            let eager = start == Some(WorkerStart::Eager);
            mcp_listener::read(reader, server, name, keys.env.node, eager).map(|server| Written::Mcp(Box::new(server)))
        }
        [_, _, _, Some(other), ..] => {
            organism_listener::read(reader, other, name).map(|other| Written::Organism(Box::new(other)))
        }
        [_, _, _, _, Some(model), ..] => llm::model(reader, model).map(Written::Model),
        [_, _, _, _, _, Some(human), ..] => human::read(reader, human).map(Written::Human),
        [_, _, _, _, _, _, Some(echo), ..] => marked(reader, "echo", echo).then_some(Written::Echo),
        [.., Some(remote), _, _] => remote::read(reader, remote).map(Written::Remote),
        [.., job, _] => {
            let read = if job.is_some() { tasks::job(reader, node) } else { tasks::jobs(reader, node) };
            read.map(|(tasks, owner)| Written::Tasks { tasks, owner, place: node.span })
        }
    };
    let keys =
        [keys.json.place(), keys.processes.place(), keys.heartbeat.place(), keys.start.place(), keys.env.place()];
    let (kind, keys) = match written.as_ref()? {
        Written::Human(_) => ("human", &keys[..]),
        Written::Remote(_) => ("remote", &keys[..]),
        Written::Tasks { .. } => ("a job", &keys[..]),
        Written::Echo => ("an echo", &keys[..]),
        Written::Command(..) => ("a command", &keys[1..4]),
        Written::Worker { .. } => ("a worker", &[][..]),
        Written::Mcp(_) => ("an MCP server", &keys[..3]),
        Written::Organism(_) => ("another organism", &keys[..]),
        Written::Model(_) => ("a model", &keys[..]),
    };
    for (key, span) in keys.iter().flatten() {
        reader.report(Mistake::Pointless { key, kind }, *span);
    }
    written
}

pub(super) fn program(reader: &mut Reader, command: &Node, env: Option<&Node>) -> Option<Program> {
    let words = reader.command(command)?.iter().filter_map(|word| text(reader, word)).collect::<Vec<_>>();
    if words.first().is_none_or(|program| program.value.is_empty()) {
        reader.report(Mistake::EmptyCommand, command.span);
    }
    let env = env.and_then(|node| reader.items(node, Items::Variables)).unwrap_or_default();
    let env = env.iter().filter_map(|entry| variable(reader, entry)).collect();
    Some(Program { words, env })
}

/// Reads `echo:`, which must be true.
fn marked(reader: &mut Reader, key: &'static str, node: &Node) -> bool {
    match reader.flag(node) {
        Some(true) => true,
        Some(false) => {
            reader.report(Mistake::FalseKind { key }, node.span);
            false
        }
        None => false,
    }
}

/// The replies of an echo: by default all that it accepts, and never less.
fn echoed(reader: &mut Reader, accepts: &[At<QName>], replies: Option<Vec<At<QName>>>) -> Vec<At<QName>> {
    let heard = accepts.iter().filter(|payload| payload.value.namespace() != ns::CORE);
    let Some(replies) = replies else { return heard.cloned().collect() };
    for payload in heard {
        if !replies.iter().any(|reply| reply.value == payload.value) {
            reader.report(Mistake::EchoReply { payload: payload.value.clone() }, payload.span);
        }
    }
    replies
}

pub(super) fn text(reader: &mut Reader, node: &Node) -> Option<At<String>> {
    reader.text(node).map(|text| At { value: text.to_owned(), span: node.span })
}

/// `NAME` or `NAME=value`.
fn variable(reader: &mut Reader, node: &Node) -> Option<At<Variable>> {
    let entry = At { value: reader.variable(node)?.to_owned(), span: node.span };
    let Ok(value) = entry.value.parse::<Variable>() else {
        reader.report(Mistake::Variable { entry: entry.value }, node.span);
        return None;
    };
    if value.name().starts_with("SYSTOLE_") {
        reader.report(Mistake::ReservedVariable, node.span);
        return None;
    }
    Some(At { value, span: entry.span })
}
