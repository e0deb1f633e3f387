//! MCP servers as listeners: a payload for each tool, and its result as a payload.
//!
//! A server is a program with one process that is kept and restarted as a worker's, or an endpoint of streamable HTTP. Its
//! tools are imported once ([`import`]): the contract is made of their schemas, and a lock keeps what the server said of them
//! (`listeners::mcp`). A server that says anything else is refused, at its start and when it says that its tools changed. Skills of
//! the server are loaded by one more payload, on demand.
//!
//! Invariants: each message in flight has an outcome within the timeout of its listener, which progress of the server begins
//! anew, ten times that at most; a call whose outcome is unknown, since the server or this process ended, is made again only if
//! its tool says that this changes nothing, or the file does; nothing that a server says reaches a listener but through the
//! ladder and the validator. A message that is cancelled cancels the call.
//!
//! `docs/mcp-servers.md` describes it for operators.

mod call;
mod contract;
mod http;
mod questions;
mod raw;
mod result;
mod sampling;
mod session;
mod shape;
mod skill;
mod stdio;

use std::collections::BTreeMap;
use std::rc::Rc;

use systole_core::core::{Failure, HandlerOutcome, Message};
use systole_core::vocab::{Fault, Limits, Name};

use crate::listeners::fleet::{Fleet, Kind, Lost, Means, ProcessEnd, Started, failed};
use crate::listeners::mcp::{LockedTool, McpAsks, McpListenerSettings, McpServer};
use crate::process::run::CommandError;
use crate::runtime::{LocalBoxFuture, RawListener, RunContext, StartContext};
use call::{Called, Caller};
pub use contract::Contract;
use http::Endpoint;
pub(crate) use questions::schemas;
pub use questions::{Elicitation, Elicited};
pub use sampling::{Sampled, Sampling};
use session::{Session, Talk};
use shape::Form;
use skill::Loader;
use stdio::Server;

/// A listener that is an MCP server.
pub struct McpListener {
    fleet: Rc<Fleet<Servers>>,
    settings: Rc<McpListenerSettings>,
    /// The tools, by the elements of their calls.
    tools: BTreeMap<String, Tool>,
}

/// A tool with the forms of its payloads.
struct Tool {
    locked: LockedTool,
    arguments: Form,
    result: Option<Form>,
}

impl Tool {
    fn of(locked: &LockedTool) -> Self {
        let form = |schema| if locked.is_untyped { Form::ANY } else { Form::of(schema) };
        let result = locked.facts.output_schema.as_ref().map(form);
        Self { locked: locked.clone(), arguments: form(&locked.facts.input_schema), result }
    }
}

/// The connections to a server.
struct Servers(Rc<McpListenerSettings>);

impl Kind for Servers {
    type Member = Session;
    const WHAT: &'static str = "an MCP server";

    fn start(&self, name: &Name, means: &Means<Self>) -> Result<Started<Session>, CommandError> {
        let Self(settings) = self;
        let session = Rc::<Session>::default();
        let lock = Rc::new(settings.lock.clone());
        let talk = Talk { name: name.clone(), lock, asks: settings.asks() };
        let member = session.clone();
        let serving: LocalBoxFuture<_> = match &settings.server {
            McpServer::Command(spec) => {
                let server = Server::start(spec, session, &means.limits)?;
                let (name, clock) = (name.clone(), means.clock.clone());
                Box::pin(async move { server.serve(&name, &clock, &talk).await })
            }
            McpServer::Http { url, token } => {
                let endpoint = Endpoint::open(url, token.as_deref(), &means.limits);
                Box::pin(async move { http::serve(endpoint, &session, &talk).await })
            }
        };
        Ok(Started { member, serving })
    }

    fn program(&self) -> String {
        self.0.server.to_string()
    }
}

impl McpListener {
    /// Makes a listener of that name.
    pub fn new(name: Name, settings: McpListenerSettings) -> Self {
        let settings = Rc::new(settings);
        let tools = settings.lock.tools.iter().map(|locked| (locked.element.clone(), Tool::of(locked))).collect();
        Self { tools, fleet: Rc::new(Fleet::new(name, Servers(settings.clone()), 1)), settings }
    }

    /// Runs a message until it has an outcome.
    async fn handle(self: Rc<Self>, message: Message, context: RunContext) -> HandlerOutcome {
        let wall = match context.thread().clock() {
            Ok(wall) => wall,
            Err(failure) => return HandlerOutcome::Failed(failure),
        };
        let clock = self.fleet.means(&wall, context.rests(), context.limits()).clock.clone();
        let mut work = match Work::new(&self, &message, &context) {
            Ok(work) => work,
            Err(fault) => return HandlerOutcome::Failed(Failure::passing(fault)),
        };
        let seat = self.fleet.enter(message.attempts, context.limits().max_attempts);
        loop {
            let session = match seat.process(self.settings.silence, &context, &clock).await {
                Ok(session) => session,
                Err(failure) => return HandlerOutcome::Failed(failure),
            };
            if let Some(refusal) = session.refusal() {
                return HandlerOutcome::Failed(failed(refusal, false));
            }
            let lost = match work.call(&session, || seat.read()).await {
                Called::Done(outcome) => {
                    seat.answered();
                    return outcome;
                }
                Called::Lost(end) => end,
            };
            context.thread().said(lost.said.as_str());
            if let Some(outcome) = work.lost(&lost, seat.lost()) {
                return outcome;
            }
        }
    }
}

/// The work for a message: the call of a tool, or the load of a skill.
enum Work<'m> {
    Tool(Caller<'m>),
    Skill(Loader<'m>),
}

impl<'m> Work<'m> {
    fn new(listener: &'m McpListener, message: &Message, context: &'m RunContext) -> Result<Self, Fault> {
        let McpListener { settings, tools, .. } = listener;
        let loads = settings.lock.loads.as_deref();
        Ok(match loads == Some(message.body.written().root().local()) {
            true => Self::Skill(Loader::new(settings, message, context)?),
            false => Self::Tool(Caller::new((settings, tools), message, context)?),
        })
    }

    async fn call(&mut self, session: &Rc<Session>, sent: impl Fn()) -> Called {
        match self {
            Self::Tool(caller) => caller.call(session, sent).await,
            Self::Skill(loader) => loader.call(session, sent).await,
        }
    }

    fn lost(&mut self, end: &ProcessEnd, lost: Lost) -> Option<HandlerOutcome> {
        match self {
            Self::Tool(caller) => caller.lost(end, lost),
            Self::Skill(loader) => loader.lost(end, lost),
        }
    }
}

impl RawListener for McpListener {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(self.handle(message, context))
    }

    fn prepare(self: Rc<Self>, context: StartContext) {
        self.fleet.means(context.clock(), context.rests(), context.limits());
        self.fleet.prepare(1);
    }
}

/// The revision that servers with a handshake are spoken to by.
const LEGACY: &str = "2025-11-25";

/// Connects to the server of a listener, and makes the contract of its tools. `asks`: the requests of the server that are
/// answered.
///
/// It has to be awaited within a `tokio::task::LocalSet`.
///
/// # Errors
/// The reason why the server can't be reached, lists no tools, or makes no contract; with the end of its standard error.
pub async fn import(name: &Name, server: &McpServer, asks: McpAsks, limits: &Limits) -> Result<Contract, String> {
    let listed = match server {
        McpServer::Command(spec) => stdio::look(name, spec, asks, limits).await?,
        McpServer::Http { url, token } => http::look(Endpoint::open(url, token.as_deref(), limits)?, asks).await?,
    };
    Contract::of(name, listed)
}
