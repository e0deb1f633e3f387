//! `mcp:`: hosts of the Model Context Protocol use the organism.

use std::collections::BTreeSet;

use systole_core::vocab::{Name, QName, Span};
use systole_xml::schema::PayloadSchema;

use super::correction::{Items, Shape};
use super::document::Node;
use super::human::CALLER;
use super::keys::{Flag, Key, List, Named, OneOf, Text, Texts, Word, mapping};
use super::listener::Written;
use super::mistake::Mistake;
use super::organism::Organism;
use super::reader::{At, Reader};
use super::skill;
use crate::listeners::mcp::NAMESPACE;
use crate::settings::{McpPrompt, McpResource, McpSettings, McpSkill, McpTask, McpTool};

/// The settings, and the places of their parts.
#[derive(Debug)]
pub(super) struct Mcp {
    pub(super) span: Span,
    pub(super) client: Option<At<Name>>,
    origins: Vec<String>,
    tools: Vec<At<McpTool>>,
    prompts: Vec<At<McpPrompt>>,
    resources: Vec<At<McpResource>>,
    skills: Vec<McpSkill>,
}

mapping! {
    /// Hosts of the Model Context Protocol (docs/mcp.md): over HTTP at /mcp of the gateway, and by `systole mcp`.
    McpKeys: Mcp {
        /// Client that `systole mcp` speaks for; over HTTP the token names the client.
        r#as: Named;
        /// Origins of pages that may call over HTTP, besides those of this machine.
        origins: Texts;
        /// Tools with another name than `listener.payload`, or more than its schema and its description.
        tools: List<McpToolKeys<'static>>;
        /// Calls that are prompts, not tools.
        prompts: List<McpPromptKeys<'static>>;
        /// Resources that listeners read, by the payload {urn:systole:mcp:v1}read.
        resources: List<McpResourceKeys<'static>>;
        /// Folders of Agent Skills, each with a SKILL.md, that hosts get beside the skill of the tools.
        skills: Texts;
    }
}

mapping! {
    /// A tool.
    McpToolKeys: McpTool {
        /// Listener and local name of the payload, with a dot between them.
        call: Text, of "a tool";
        /// Name of the tool; by default that of the call.
        name: Text;
        /// Title for people.
        title: Text;
        /// Description for models; by default those of the listener and the payload.
        description: Text;
        /// True if the schema of an only reply is listed.
        output: Flag = false;
        /// Whether calls are tasks: for clients that declare them, never, always, so that other clients are refused, or always
        /// once the client has answered the first questions.
        task: OneOf<McpTask> = "auto";
        /// True for a tool that changes nothing.
        read_only: Flag;
        /// True for a tool that may destroy something.
        destructive: Flag;
        /// True for a tool that may be called twice without another effect.
        idempotent: Flag;
        /// True for a tool that reaches others than the organism.
        open_world: Flag;
    }
}

mapping! {
    /// A prompt, which a listener writes.
    McpPromptKeys: McpPrompt {
        /// Listener and local name of the payload, with a dot between them.
        call: Text, of "a prompt";
        /// Name of the prompt; by default that of the call.
        name: Text;
        /// Title for people.
        title: Text;
        /// Description; by default those of the listener and the payload.
        description: Text;
    }
}

mapping! {
    /// A resource that a listener reads.
    McpResourceKeys: McpResource {
        /// Address; with `{name}` in it a template, where the name stands for one segment of a path.
        uri: Text, of "a resource";
        /// Name.
        name: Text, of "a resource";
        /// Listener that reads it.
        listener: Named, of "a resource";
        /// Title for people.
        title: Text;
        /// Description for models.
        description: Text;
        /// Media type.
        mime: Text;
    }
}

impl Word for McpTask {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("auto", Self::Auto),
        ("never", Self::Never),
        ("required", Self::Required),
        ("after-input", Self::AfterInput),
    ];
}

pub(super) fn read(reader: &mut Reader, node: &Node) -> Option<Mcp> {
    let keys = McpKeys::open(reader, node)?;
    if !cfg!(feature = "mcp") {
        reader.report(Mistake::NotBuilt { key: "mcp", feature: "mcp" }, node.span);
    }
    let client = keys.r#as.read(reader);
    let mut origins = Vec::new();
    for origin in keys.origins.read(reader).unwrap_or_default() {
        let Some(text) = reader.text_such(origin, "an origin, such as https://app.example") else { continue };
        match text.split_once("://") {
            Some((_, host)) if !host.is_empty() && !host.trim_end_matches('/').contains('/') => {
                origins.push(text.trim_end_matches('/').to_owned());
            }
            _ => reader.report(wrong(format!("'{text}' is no origin"), "write https://app.example"), origin.span),
        }
    }
    let tools = entries(reader, keys.tools.node, Shape::McpTool, tool);
    let prompts = entries(reader, keys.prompts.node, Shape::McpPrompt, prompt);
    let resources = entries(reader, keys.resources.node, Shape::McpResource, resource);
    let mut skills: Vec<McpSkill> = Vec::new();
    for folder in keys.skills.read(reader).unwrap_or_default() {
        let Some(read) = skill::read(reader, folder) else { continue };
        if skills.iter().any(|other| other.name == read.name) {
            let written = reader.text(folder).unwrap_or_default().to_owned();
            reader.report(skill::taken(&written, &read.name), folder.span);
            continue;
        }
        skills.push(read);
    }
    Some(Mcp { span: keys.own.span, client, origins, tools, prompts, resources, skills })
}

fn entries<T>(
    reader: &mut Reader,
    node: Option<&Node>,
    shape: Shape,
    read: impl Fn(&mut Reader, &Node) -> Option<T>,
) -> Vec<At<T>> {
    let lead = if shape == Shape::McpResource { "uri" } else { "call" };
    let nodes = node.and_then(|node| reader.items(node, Items::Maps { shape, lead })).unwrap_or_default();
    nodes.iter().filter_map(|node| Some(At { value: read(reader, node)?, span: node.span })).collect()
}

fn owned(reader: &mut Reader, key: Key<'_, Text>) -> Option<String> {
    key.read(reader).map(str::to_owned)
}

fn tool(reader: &mut Reader, node: &Node) -> Option<McpTool> {
    let keys = McpToolKeys::open(reader, node)?;
    let mut tool = McpTool { call: owned(reader, keys.call)?, ..McpTool::default() };
    tool.name = owned(reader, keys.name);
    tool.title = owned(reader, keys.title);
    tool.description = owned(reader, keys.description);
    keys.output.set(reader, &mut tool.output);
    keys.task.set(reader, &mut tool.task);
    tool.read_only = keys.read_only.read(reader);
    tool.destructive = keys.destructive.read(reader);
    tool.idempotent = keys.idempotent.read(reader);
    tool.open_world = keys.open_world.read(reader);
    Some(tool)
}

fn prompt(reader: &mut Reader, node: &Node) -> Option<McpPrompt> {
    let keys = McpPromptKeys::open(reader, node)?;
    let mut prompt = McpPrompt { call: owned(reader, keys.call)?, ..McpPrompt::default() };
    prompt.name = owned(reader, keys.name);
    prompt.title = owned(reader, keys.title);
    prompt.description = owned(reader, keys.description);
    Some(prompt)
}

fn resource(reader: &mut Reader, node: &Node) -> Option<McpResource> {
    let keys = McpResourceKeys::open(reader, node)?;
    let (uri, name) = (owned(reader, keys.uri), owned(reader, keys.name));
    let listener = keys.listener.read(reader);
    let mut resource = McpResource::new(uri?, name?, listener?.value);
    resource.title = owned(reader, keys.title);
    resource.description = owned(reader, keys.description);
    resource.mime = owned(reader, keys.mime);
    Some(resource)
}

pub(super) fn wrong(problem: impl Into<String>, help: impl Into<String>) -> Mistake {
    Mistake::Mcp { problem: problem.into(), help: help.into() }
}

/// Reports an organism without a journal, names of no client, call or listener, and names that two tools have.
pub(super) fn check(reader: &mut Reader, organism: &Organism) {
    let Some(mcp) = &organism.mcp else {
        let asks_callers = |kind: &Written| matches!(kind, Written::Human(human) if human.people.iter().any(|name| name.value.as_str() == CALLER));
        for listener in organism.listeners.iter().filter(|listener| asks_callers(&listener.kind)) {
            let problem = "a caller is asked by the Model Context Protocol alone, and the organism doesn't serve it";
            reader.report(wrong(problem, "add mcp: { as: CLIENT }"), listener.name.span);
        }
        return;
    };
    if organism.journal.is_none() {
        let problem = "calls of hosts have to survive the process, and there is no journal";
        reader.report(wrong(problem, "add durability: process"), mcp.span);
    }
    let clients: Vec<&str> = organism.clients.iter().map(|client| client.name.value.as_str()).collect();
    if let Some(client) = &mcp.client
        && !clients.contains(&client.value.as_str())
    {
        let problem = format!("there is no client '{}'", client.value);
        reader
            .report(wrong(problem, format!("add it to clients, or write one of {}", clients.join(", "))), client.span);
    }
    if !organism.complete {
        return;
    }
    let accepted = |name: &Name, payload: &QName| format!("{name}.{}", payload.local());
    let calls: BTreeSet<String> = organism
        .listeners
        .iter()
        .flat_map(|listener| listener.accepts.iter().map(|payload| accepted(&listener.name.value, &payload.value)))
        .collect();
    let named = mcp.tools.iter().map(|tool| (&tool.value.call, tool.value.name.as_ref(), tool.span));
    let prompts = mcp.prompts.iter().map(|prompt| (&prompt.value.call, prompt.value.name.as_ref(), prompt.span));
    let mut names = BTreeSet::new();
    for (call, name, span) in named.chain(prompts) {
        if !calls.contains(call) {
            let all = calls.iter().take(12).map(String::as_str).collect::<Vec<_>>().join(", ");
            reader.report(wrong(format!("no listener accepts '{call}'"), format!("write one of {all}")), span);
        }
        let name = name.unwrap_or(call);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.len() > 128 || !name.chars().all(is_plain) {
            let help = "write 1 to 128 letters, digits, '_', '-' and '.'";
            reader.report(wrong(format!("'{name}' is no name of the protocol"), help), span);
        }
        if !names.insert(name) {
            reader.report(wrong(format!("'{name}' is named twice"), "write another name"), span);
        }
    }
    for resource in &mcp.resources {
        let read = QName::new(NAMESPACE, "read").ok();
        let reads = |listener: &&super::listener::Listener| {
            listener.name.value == resource.value.listener
                && listener.accepts.iter().any(|payload| Some(&payload.value) == read.as_ref())
        };
        if !organism.listeners.iter().any(|listener| reads(&listener)) {
            let problem = format!("the listener '{}' reads no resources", resource.value.listener);
            let help = "write a listener with accepts: [\"{urn:systole:mcp:v1}read\"] and replies: [\"{urn:systole:mcp:v1}content\"]";
            reader.report(wrong(problem, help), resource.span);
        }
    }
}

impl Mcp {
    pub(super) fn settings(self, kept: Option<std::time::Duration>) -> McpSettings {
        McpSettings {
            client: self.client.map(|client| client.value),
            origins: self.origins,
            tools: self.tools.into_iter().map(|tool| tool.value).collect(),
            prompts: self.prompts.into_iter().map(|prompt| prompt.value).collect(),
            resources: self.resources.into_iter().map(|resource| resource.value).collect(),
            skills: self.skills,
            kept,
        }
    }
}

/// The schemas of the protocol's payloads, and the place of the key that adds them.
#[cfg(feature = "mcp")]
pub(super) fn schemas(organism: &Organism) -> impl Iterator<Item = (&'static PayloadSchema, Span)> {
    let server = organism.listeners.iter().find(|listener| matches!(listener.kind, Written::Mcp(_)));
    let server = server.map(|server| server.name.span);
    let place = organism.mcp.as_ref().map(|mcp| mcp.span).or(server);
    let shared = place.into_iter().flat_map(|place| crate::mcp::schemas().iter().map(move |schema| (schema, place)));
    let asked = |place| crate::mcp::client::schemas().iter().map(move |schema| (schema, place));
    shared.chain(server.into_iter().flat_map(asked))
}

/// Without the feature no schemas are added.
#[cfg(not(feature = "mcp"))]
pub(super) fn schemas(_: &Organism) -> impl Iterator<Item = (&'static PayloadSchema, Span)> {
    std::iter::empty()
}
