//! Checks of the organism as a whole: clashes of names, calls that no listener accepts, payloads without a schema,
//! missing programs.

use std::collections::{BTreeMap, BTreeSet};

use systole_core::core::{Blueprint, BlueprintProblem, Routing};
use systole_core::protocol::boot_qname;
use systole_core::vocab::{Name, QName, Span, near, ns};
use systole_xml::schema::PayloadSchema;

use super::Mistake;
use super::finding::ConfigFinding;
use super::listener::{Listener, Written};
use super::organism::Organism;
use super::reader::{At, Reader};
use super::schemas::Schemas;
use super::tasks::{TasksOf, TasksSpec};
use super::{Look, mcp_listener, program, python};
use crate::settings::{Format, Mode, Push};

/// Makes the blueprint that the file describes.
pub(super) fn blueprint(organism: &Organism) -> Blueprint {
    let listeners = organism.listeners.iter().map(|listener| listener.contract.clone()).collect();
    let clients = organism.clients.iter().map(super::organism::Speaker::client).collect();
    let mut blueprint = Blueprint::new(&*organism.name, listeners, clients);
    blueprint.scheduling = organism.scheduling;
    blueprint.limits = organism.limits.clone();
    blueprint.budget = organism.budget;
    blueprint.meta = organism.meta.clone();
    blueprint
}

/// Reports payloads that no schema declares; the pump declares its own.
pub(super) fn declarations(reader: &mut Reader, organism: &Organism, schemas: &Schemas) {
    let catalog = &schemas.catalog;
    let listed = organism.listeners.iter().flat_map(lists).chain(organism.clients.iter().map(|c| &c.calls)).flatten();
    let declared: Vec<&QName> = catalog.payloads().map(PayloadSchema::qname).collect();
    let wrong = wrong_prefixes(reader, organism, &declared);
    for payload in listed.filter(|payload| catalog.get(&payload.value).is_none()) {
        if wrong.contains(payload.value.namespace()) {
            continue;
        }
        // An echo's replies are its accepts, at the same place.
        if !reader.is_marked(payload.span) {
            let near = near::payload(&payload.value, declared.iter().copied()).cloned();
            let namesake = schemas.namesake(&payload.value);
            let mistake = callee(organism, payload, near.is_some() || namesake.is_some())
                .unwrap_or_else(|| Mistake::Undeclared { payload: payload.value.clone(), near, namesake });
            reader.report(mistake, payload.span);
        }
    }
}

/// Reports calls that only an envelope could address, of listeners that write JSON, which has none.
pub(super) fn receivers(reader: &mut Reader, organism: &Organism) {
    let writes_json = |listener: &Listener| match &listener.kind {
        Written::Command(_, form) => form.is_json(),
        Written::Model(model) => model.is_json(),
        _ => false,
    };
    for call in organism.listeners.iter().filter(|listener| writes_json(listener)).flat_map(|listener| &listener.calls)
    {
        let accepts = |listener: &&Listener| listener.contract.accepts.contains(&call.value);
        let mut acceptors = organism.listeners.iter().filter(accepts).peekable();
        let Some(callee) = acceptors.peek().map(|first| first.name.value.clone()) else { continue };
        if acceptors.all(|acceptor| acceptor.contract.routing == Routing::Addressed) {
            reader.report(Mistake::NoReceiver { payload: call.value.clone(), callee }, call.span);
        }
    }
}

/// Reports each prefix that payloads use and in whose namespace no schema declares any: one mistake, where it was made.
/// Returns these namespaces.
fn wrong_prefixes(reader: &mut Reader, organism: &Organism, declared: &[&QName]) -> BTreeSet<String> {
    let listed = organism.listeners.iter().flat_map(lists).chain(organism.clients.iter().map(|c| &c.calls)).flatten();
    let used: BTreeSet<&str> = listed.map(|payload| payload.value.namespace()).collect();
    let known: BTreeSet<&str> =
        declared.iter().filter(|payload| !is_the_pumps(payload)).map(|payload| payload.namespace()).collect();
    let is_wrong =
        |namespace: &str| used.contains(namespace) && !declared.iter().any(|one| one.namespace() == namespace);
    let prefixes = reader.prefixes.all().filter(|(_, namespace)| is_wrong(&namespace.value));
    let wrong: Vec<At<String>> = prefixes.map(|(_, namespace)| namespace.clone()).collect();
    for At { value: namespace, span } in wrong.iter().cloned() {
        let near = near::nearest(&namespace, known.iter().copied()).map(str::to_owned);
        let known = known.iter().map(|&known| known.to_owned()).collect();
        reader.report(Mistake::PrefixOfNone { namespace, near, known }, span);
    }
    wrong.into_iter().map(|namespace| namespace.value).collect()
}

/// The mistake of a word in `calls` that was probably to name a listener: one that is near to a name, or to nothing else.
fn callee(organism: &Organism, payload: &At<QName>, is_near_payload: bool) -> Option<Mistake> {
    let listeners = organism.listeners.iter().map(|listener| &listener.calls);
    let is_called = |calls: &Vec<At<QName>>| calls.iter().any(|call| call.span == payload.span);
    let mut calls = listeners.chain(organism.clients.iter().map(|client| &client.calls));
    if !payload.value.namespace().is_empty() || !calls.any(is_called) {
        return None;
    }
    let listeners: Vec<Name> = organism.listeners.iter().map(|listener| listener.name.value.clone()).collect();
    let word = payload.value.local().to_owned();
    let near = near::nearest(&word, listeners.iter().map(Name::as_str)).and_then(|near| near.parse().ok());
    (near.is_some() || !is_near_payload).then_some(Mistake::NoCallee { word, near, listeners })
}

/// Checks for a payload of the pump itself.
pub(super) fn is_the_pumps(payload: &QName) -> bool {
    matches!(payload.namespace(), ns::CORE | ns::META | ns::ENVELOPE)
}

/// Reports missing programs and scripts.
pub(super) fn programs(reader: &mut Reader, organism: &Organism, directory: &std::path::Path, look: Look) {
    for listener in &organism.listeners {
        let called = match &listener.kind {
            Written::Command(called, _) | Written::Worker { program: called, .. } => called,
            Written::Mcp(server) => match &server.way {
                mcp_listener::Way::Command(called) => called,
                mcp_listener::Way::Http { .. } => continue,
            },
            _ => continue,
        };
        let [program, arguments @ ..] = called.words.as_slice() else { continue };
        let beside = called.words.iter().map(|word| directory.join(&word.value));
        reader.files.extend(beside.filter(|file| file.is_file()));
        if let Some(mistake) = program::mistake(&program.value, directory) {
            reader.report(mistake, program.span);
        } else if let Some(script) =
            arguments.first().filter(|script| program::is_missing_script(&script.value, directory))
        {
            let mistake = Mistake::NoScript { program: program.value.clone(), script: script.value.clone() };
            reader.files.push(directory.join(&script.value));
            reader.report(mistake, script.span);
        } else if look == Look::Machine
            && let Some(interpreter) = program::find(&program.value, directory)
            && let Some(script) = python::script(&program.value, arguments.iter().map(|word| word.value.as_str()))
        {
            let env: Vec<_> = called.env.iter().map(|entry| entry.value.clone()).collect();
            let at = arguments.iter().find(|word| word.value == script).map_or(program.span, |word| word.span);
            let mistake = python::mistake(&interpreter, script, directory, &env);
            mistake.into_iter().for_each(|mistake| reader.report(mistake, at));
        }
    }
}

/// Reports pushes without a signature to receivers that could check one. `A2AServer` checks none.
pub(super) fn signed(reader: &mut Reader, organism: &Organism) {
    for listener in &organism.listeners {
        if let Written::Remote(Mode::Push(Push { secret: None, secret_env: None, format: Format::Envelope, .. })) =
            &listener.kind
        {
            reader.report(Mistake::Unsigned, listener.name.span);
        }
    }
}

/// Reports a second registry of jobs.
pub(super) fn registries(reader: &mut Reader, organism: &Organism) {
    let is_registry =
        |kind: &Written| matches!(kind, Written::Tasks { tasks: TasksSpec { of: TasksOf::Registered(_), .. }, .. });
    let registries = organism.listeners.iter().filter(|listener| is_registry(&listener.kind));
    registries.skip(1).for_each(|listener| reader.report(Mistake::TwoRegistries, listener.name.span));
}

/// Reports jobs with unknown owners.
pub(super) fn owners(reader: &mut Reader, organism: &Organism) {
    for listener in organism.listeners.iter().filter(|_| organism.complete) {
        let Written::Tasks { owner: Some(owner), .. } = &listener.kind else { continue };
        if !names(organism).any(|name| name.value == owner.value) {
            let near = near::nearest(owner.value.as_str(), names(organism).map(|name| name.value.as_str()));
            let (near, names) = (near.map(str::to_owned), names(organism).map(|name| name.value.clone()).collect());
            reader.report(Mistake::NoOwner { owner: owner.value.clone(), near, names }, owner.span);
        }
    }
}

/// Reports messages of remote agents and clients that would not survive the process.
pub(super) fn durable(reader: &mut Reader, organism: &Organism) {
    let remote = || organism.listeners.iter().filter(|listener| matches!(listener.kind, Written::Remote(_)));
    if organism.gateway.is_none() {
        remote().for_each(|listener| reader.report(Mistake::NoGateway, listener.name.span));
    } else if organism.journal.is_none() {
        let gateway = organism.gateway.iter().map(|gateway| gateway.span);
        gateway
            .chain(remote().map(|listener| listener.name.span))
            .for_each(|span| reader.report(Mistake::NotDurable, span));
    }
}

/// Reports clients that can't send: `systole run` sends as the client `cli`, others need the gateway.
pub(super) fn speakers(reader: &mut Reader, organism: &Organism) {
    if organism.gateway.is_some() || organism.mcp.is_some() || !organism.complete {
        return;
    }
    for client in organism.clients.iter().map(|client| &client.name).filter(|name| name.value.as_str() != "cli") {
        reader.report(Mistake::Mute { client: client.value.clone() }, client.span);
    }
    let boots = organism
        .listeners
        .iter()
        .any(|listener| listener.accepts.iter().any(|accepted| accepted.value == boot_qname()));
    // The missing gateway of a remote listener is reported by itself.
    let remote = organism.listeners.iter().any(|listener| matches!(listener.kind, Written::Remote(_)));
    if organism.clients.is_empty() && !boots && !remote {
        let first = organism.listeners.first().map(|listener| listener.name.span);
        first.into_iter().for_each(|span| reader.report(Mistake::Organism(BlueprintProblem::NoSpeaker), span));
    }
}

/// The mailboxes of clients.
pub(super) fn mailboxes(reader: &mut Reader, organism: &Organism) -> BTreeMap<Name, Name> {
    let is_read = |listener: &&Listener| matches!(listener.kind, Written::Remote(Mode::Poll | Mode::Stream));
    let read = || organism.listeners.iter().filter(is_read).map(|listener| &listener.name.value);
    let mut owned = BTreeMap::new();
    for client in &organism.clients {
        let Some(mailbox) = &client.mailbox else { continue };
        if organism.complete && !read().any(|name| *name == mailbox.value) {
            let near =
                near::nearest(mailbox.value.as_str(), read().map(Name::as_str)).and_then(|near| near.parse().ok());
            let mailboxes = read().cloned().collect();
            reader.report(Mistake::NoMailbox { name: mailbox.value.clone(), near, mailboxes }, mailbox.span);
        }
        owned.insert(client.name.value.clone(), mailbox.value.clone());
    }
    owned
}

/// Reports the problems of a blueprint, each at its place in the file.
pub(super) fn problems(reader: &mut Reader, organism: &Organism, problems: Vec<BlueprintProblem>) {
    let mut repeats = Vec::new();
    for problem in problems {
        let nth = repeats.iter().filter(|&earlier| *earlier == problem).count();
        repeats.push(problem.clone());
        let (span, other) = place(organism, &problem, nth);
        let moot = match problem {
            // A listener that couldn't be read may accept it.
            BlueprintProblem::Unanswered { .. } => !organism.complete || reader.is_marked(span),
            BlueprintProblem::Reserved { .. } => reader.is_marked(span),
            // Two listeners with one name are reported as that.
            BlueprintProblem::Ambiguous { ref first, ref second, .. } => first == second,
            BlueprintProblem::DuplicateName { .. }
            | BlueprintProblem::NoSlot { .. }
            | BlueprintProblem::Unreturned { .. }
            | BlueprintProblem::Replyless { .. }
            | BlueprintProblem::NoSpeaker => false,
        };
        if moot {
            continue;
        }
        let finding = ConfigFinding::new(Mistake::Organism(problem), &reader.file, span);
        reader.findings.push(match other {
            Some((other, why)) => finding.with_other(other, why),
            None => finding,
        });
    }
}

type Other = Option<(Span, &'static str)>;

/// The place of the `nth` problem with the same text.
fn place(organism: &Organism, problem: &BlueprintProblem, nth: usize) -> (Span, Other) {
    let listed = |list: &[At<QName>], payload: &QName| {
        list.iter().filter(|at| at.value == *payload).map(|at| at.span).collect::<Vec<_>>()
    };
    let pick = |spans: Vec<Span>| spans.get(nth).or(spans.last()).copied();
    let found = match problem {
        BlueprintProblem::DuplicateName { name } => {
            let spans: Vec<Span> = names(organism).filter(|at| at.value == *name).map(|at| at.span).collect();
            let other = spans.first().map(|&first| (first, "the first of that name"));
            return (spans.get(nth + 1).copied().unwrap_or(START), other);
        }
        BlueprintProblem::Ambiguous { first, second, payload } => {
            let accepts = |name| find(organism, name).map_or_else(Vec::new, |l| listed(&l.accepts, payload));
            let other = accepts(first).first().map(|&first| (first, "accepted here too"));
            return (pick(accepts(second)).unwrap_or(START), other);
        }
        BlueprintProblem::Unanswered { caller, payload } => pick(listed(calls(organism, caller), payload)),
        BlueprintProblem::Reserved { name, payload } => match find(organism, name) {
            Some(l) => {
                pick([&l.accepts, &l.replies, &l.calls].into_iter().flat_map(|list| listed(list, payload)).collect())
            }
            None => pick(listed(calls(organism, name), payload)),
        },
        BlueprintProblem::Unreturned { caller, call, .. } => pick(listed(calls(organism, caller), call)),
        BlueprintProblem::Replyless { listener, payload, .. } => {
            pick(find(organism, listener).map(|found| listed(&found.accepts, payload)).unwrap_or_default())
        }
        BlueprintProblem::NoSlot { name } => find(organism, name).map(|listener| listener.name.span),
        BlueprintProblem::NoSpeaker => organism.listeners.first().map(|listener| listener.name.span),
    };
    (found.unwrap_or(START), None)
}

const START: Span = Span { start: 0, end: 0 };

/// All names, in the order in which a blueprint takes them.
fn names(organism: &Organism) -> impl Iterator<Item = &At<Name>> {
    organism.clients.iter().map(|client| &client.name).chain(organism.listeners.iter().map(|listener| &listener.name))
}

fn find<'o>(organism: &'o Organism, name: &Name) -> Option<&'o Listener> {
    organism.listeners.iter().find(|listener| listener.name.value == *name)
}

fn calls<'o>(organism: &'o Organism, name: &Name) -> &'o [At<QName>] {
    let client = || organism.clients.iter().find(|client| client.name.value == *name).map(|client| &client.calls);
    find(organism, name).map(|listener| &listener.calls).or_else(client).map_or(&[], Vec::as_slice)
}

fn lists(listener: &Listener) -> [&Vec<At<QName>>; 4] {
    [&listener.accepts, &listener.replies, &listener.calls, &listener.returns]
}
