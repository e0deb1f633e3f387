//! An entry below `listeners:`.

use std::time::Duration;

use systole_core::core::{Contract, OnRestart, Routing, Silence};
use systole_core::vocab::{Limits, Name, QName, Span, ns};

use super::budget;
use super::correction::{Items, Shape};
use super::document::Node;
use super::gateway;
use super::llm::{self, Model};
use super::mistake::Mistake;
use super::reader::{At, Fields, Reader};
use super::remote;
use super::short_form::Called;
use super::tasks::{self, TasksSpec};
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

/// The kind of a listener as it is written.
#[derive(Debug)]
pub(super) enum Written {
    Command(Program),
    Worker { program: Program, processes: u32, heartbeat: Duration, start: WorkerStart },
    Model(Model),
    Human,
    Echo,
    Remote(Mode),
    Tasks { tasks: TasksSpec, owner: Option<At<Name>>, place: Span },
}

/// Most processes of a worker.
const MAX_PROCESSES: u64 = 1024;

/// Reads an entry. `None` if it lacks a key without which the others can't be judged.
pub(super) fn read(reader: &mut Reader, node: &Node, limits: &Limits) -> Option<Listener> {
    let before = reader.findings.len();
    let mut fields = reader.fields(node, Shape::Listener)?;
    let name = fields.require("name", "a listener", reader).and_then(|node| reader.name(node));
    let description = fields.take("description").and_then(|node| reader.text(node));
    let place = name.as_ref().map_or(fields.span, |name| name.span);
    let mut kind = kind(reader, &mut fields, place);
    if matches!(kind, Some(Written::Tasks { .. })) {
        tasks::refuse_own(reader, &mut fields);
    }
    let schemas = fields.take("schemas").and_then(|node| reader.list(node)).unwrap_or_default();
    let schemas = schemas.iter().filter_map(|node| text(reader, node)).collect();
    let [accepts, replies] =
        ["accepts", "replies"].map(|key| fields.take(key).map(|node| reader.qnames(node).unwrap_or_default()));
    let called = fields.take("calls").and_then(|node| reader.called(node)).unwrap_or_default();
    let returned = fields.take("returns").map(|node| reader.qnames(node).unwrap_or_default());
    let accepts = accepts.unwrap_or_default();
    let replies = match (&kind, replies) {
        (Some(Written::Echo), replies) => echoed(reader, &accepts, replies),
        (_, replies) => replies.unwrap_or_default(),
    };
    let mut contract =
        defaults(name.as_ref().map_or_else(Name::root, |name| name.value.clone()), kind.as_ref(), limits);
    contract.description =
        description.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap_or_default();
    let context = fields.look("context").map(|node| node.span);
    behaviour(reader, &mut fields, &mut contract);
    match &mut kind {
        Some(Written::Model(model)) => model.summarizes(reader, contract.condenses),
        Some(_) if contract.condenses => reader.report(Mistake::NotSummarized, context.unwrap_or(place)),
        Some(_) | None => {}
    }
    reader.finish(fields);
    if reader.findings.len() > before {
        return None;
    }
    let (name, kind) = (name?, kind?);
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
        Some(Written::Command(_)) => {
            contract.concurrency = Contract::COMMAND_CONCURRENCY;
            contract.speaks_at_end = true;
        }
        Some(Written::Worker { .. }) => {
            contract.can_park = true;
            contract.speaks_at_end = true;
        }
        Some(Written::Model(_)) => llm::defaults(&mut contract),
        Some(Written::Human) => {
            contract.timeout = None;
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

fn behaviour(reader: &mut Reader, fields: &mut Fields<'_>, contract: &mut Contract) {
    let flag = |reader: &mut Reader, fields: &mut Fields<'_>, key| fields.take(key).and_then(|node| reader.flag(node));
    contract.accepts_faults = flag(reader, fields, "accepts_faults").unwrap_or(contract.accepts_faults);
    contract.instructions = flag(reader, fields, "instructions").unwrap_or(contract.instructions);
    // What goes past the bounds of a context is left out, or summarized.
    let contexts =
        [("true", (true, false)), ("false", (false, false)), ("trim", (true, false)), ("summary", (true, true))];
    if let Some(context) = fields.take("context").and_then(|node| reader.choice(node, &contexts)) {
        (contract.context, contract.condenses) = context;
    }
    let silence = [("error", Silence::Error), ("idle", Silence::Idle)];
    contract.silence = fields.take("silence").and_then(|node| reader.choice(node, &silence)).unwrap_or_default();
    let routing = [("unique", Routing::Unique), ("broadcast", Routing::Broadcast), ("addressed", Routing::Addressed)];
    if let Some(routing) = fields.take("routing").and_then(|node| reader.choice(node, &routing)) {
        contract.routing = routing;
    }
    if let Some(timeout) = fields.take("timeout").and_then(|node| reader.duration(node)) {
        contract.timeout = Some(timeout);
    }
    contract.budget = budget::take(reader, fields);
    let slots = fields.take("concurrency").and_then(|node| reader.number("concurrency", node, 1, u32::MAX.into()));
    if let Some(slots) = slots {
        contract.concurrency = slots as u32;
        // The number is that of the organism, not of a shard.
        contract.stateless = false;
    }
}

fn kind(reader: &mut Reader, fields: &mut Fields<'_>, listener: Span) -> Option<Written> {
    let command = fields.take("command");
    let worker = fields.take("worker");
    let model = fields.take("model");
    let human = fields.take("human");
    let echo = fields.take("echo");
    let remote = fields.take("remote");
    let tasks = fields.take("job").map(|node| (node, true));
    let tasks = [tasks, fields.take("jobs").map(|node| (node, false))];
    let tasks = tasks.into_iter().flatten().collect::<Vec<_>>();
    let keys = ["env", "processes", "heartbeat", "start"].map(|key| (key, fields.take(key)));
    let [env, processes, heartbeat, start] = keys.map(|(_, node)| node);
    if model.is_some() && ([command, worker, human, echo, remote].iter().any(Option::is_some) || !tasks.is_empty()) {
        reader.report(Mistake::TwoKinds, listener);
        return None;
    }
    let starts = [("lazy", WorkerStart::Lazy), ("eager", WorkerStart::Eager)];
    let start = start.and_then(|node| reader.choice(node, &starts));
    let written = match (command, worker, human, echo, remote, tasks.as_slice()) {
        (Some(words), None, None, None, None, []) => program(reader, words, env).map(Written::Command),
        (None, Some(words), None, None, None, []) => {
            let processes = processes.and_then(|node| reader.number("processes", node, 1, MAX_PROCESSES));
            let heartbeat = heartbeat.and_then(|node| reader.duration(node)).unwrap_or(WorkerSpec::HEARTBEAT);
            let (processes, start) = (processes.unwrap_or(1) as u32, start.unwrap_or_default());
            let program = program(reader, words, env);
            program.map(|program| Written::Worker { program, processes, heartbeat, start })
        }
        (None, None, Some(human), None, None, []) => marked(reader, "human", human).then_some(Written::Human),
        (None, None, None, Some(echo), None, []) => marked(reader, "echo", echo).then_some(Written::Echo),
        (None, None, None, None, Some(node), []) => remote::read(reader, node).map(Written::Remote),
        (None, None, None, None, None, [(node, is_one)]) => {
            let read = if *is_one { tasks::job(reader, node) } else { tasks::jobs(reader, node) };
            read.map(|(tasks, owner)| Written::Tasks { tasks, owner, place: node.span })
        }
        (None, None, None, None, None, []) if model.is_some() => {
            model.and_then(|node| llm::model(reader, node)).map(Written::Model)
        }
        (None, None, None, None, None, []) => {
            reader.report(Mistake::NoKind, listener);
            None
        }
        _ => {
            reader.report(Mistake::TwoKinds, listener);
            return None;
        }
    };
    let (kind, keys) = match written.as_ref()? {
        Written::Human => ("human", &keys[..]),
        Written::Remote(_) => ("remote", &keys[..]),
        Written::Tasks { .. } => ("a job", &keys[..]),
        Written::Echo => ("an echo", &keys[..]),
        Written::Command(_) => ("a command", &keys[1..]),
        Written::Worker { .. } => ("a worker", &[][..]),
        Written::Model(_) => ("a model", &keys[..]),
    };
    for (key, node) in keys {
        node.iter().for_each(|node| reader.report(Mistake::Pointless { key, kind }, node.span));
    }
    written
}

fn program(reader: &mut Reader, command: &Node, env: Option<&Node>) -> Option<Program> {
    let words = reader.command(command)?.iter().filter_map(|word| text(reader, word)).collect::<Vec<_>>();
    if words.first().is_none_or(|program| program.value.is_empty()) {
        reader.report(Mistake::EmptyCommand, command.span);
    }
    let env = env.and_then(|node| reader.items(node, Items::Variables)).unwrap_or_default();
    let env = env.iter().filter_map(|entry| variable(reader, entry)).collect();
    Some(Program { words, env })
}

/// Reads `human:` or `echo:`, which must be true.
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

fn text(reader: &mut Reader, node: &Node) -> Option<At<String>> {
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
