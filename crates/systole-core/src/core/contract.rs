use std::time::Duration;

use crate::vocab::{Name, QName};

/// What a listener promises and may do. Everything that it doesn't list is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// The name under which it is registered.
    pub name: Name,
    /// One line for people and models.
    pub description: String,
    /// Payloads it takes as requests.
    pub accepts: Vec<QName>,
    /// Payloads it answers with.
    pub replies: Vec<QName>,
    /// Payloads it may send as requests.
    pub calls: Vec<QName>,
    /// Answers that it takes as messages on its own threads.
    pub returns: Vec<QName>,
    /// Whether faults reach it as messages, rather than passing on to whoever called it.
    pub accepts_faults: bool,
    /// Whether the pump keeps a history of each of its threads.
    pub context: bool,
    /// What it means when one of its threads ends without an answer.
    pub silence: Silence,
    /// How payloads that name no target find it.
    pub routing: Routing,
    /// How long one of its handlers may run; `None`: for ever.
    pub timeout: Option<Duration>,
    /// How many of its handlers may run at once, at least 1. That of `<boot>` doesn't count.
    pub concurrency: u32,
    /// Whether a handler can wait for an answer (`false`: it has no `call`).
    pub can_park: bool,
    /// Whether each shard has an instance of its own.
    pub stateless: bool,
    /// Whether its handlers, run again after a crash, need not do all that they did, nor in that order: a call is the
    /// one that was made before if it asks the same. That of `<boot>` keeps its thread, and what it called goes on.
    pub reattaches: bool,
    /// Whether its handlers wait for something that may take days, as for an agent elsewhere: a durable organism that
    /// ends leaves them to its next start, rather than waiting for them.
    pub outlives: bool,
    /// Whether its handlers say all that they say at their end, as programs do: an organism is not idle before, even if
    /// it is that of `<boot>`.
    pub speaks_at_end: bool,
}

impl Contract {
    /// Handlers of an actor that may run at once, unless its contract says otherwise.
    pub const ACTOR_CONCURRENCY: u32 = 64;
    /// Processes of a command that may run at once, unless its contract says otherwise.
    pub const COMMAND_CONCURRENCY: u32 = 4;

    /// A contract that accepts, replies with and calls nothing.
    pub fn new(name: Name) -> Self {
        Self {
            name,
            description: String::new(),
            accepts: Vec::new(),
            replies: Vec::new(),
            calls: Vec::new(),
            returns: Vec::new(),
            accepts_faults: false,
            context: false,
            silence: Silence::Error,
            routing: Routing::Unique,
            timeout: Some(Duration::from_secs(30)),
            concurrency: Self::ACTOR_CONCURRENCY,
            can_park: true,
            stateless: false,
            reattaches: false,
            outlives: false,
            speaks_at_end: false,
        }
    }
}

/// What it means when a thread ends without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Silence {
    /// The caller gets an `agent-error` with code `silent`.
    #[default]
    Error,
    /// The thread closes and is only counted off its caller's join.
    Idle,
}

/// How a payload that names no target finds the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Routing {
    /// By its QName; nobody else may accept the same one.
    #[default]
    Unique,
    /// By its QName, together with everybody else who accepts it.
    Broadcast,
    /// Not at all: only `to` reaches it.
    Addressed,
}

/// In which order the ready threads of one conversation get their turn. Conversations take turns in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheduling {
    /// One message from each ready thread in turn.
    #[default]
    BreadthFirst,
    /// The newest ready thread first.
    DepthFirst,
}

/// Somebody outside who may speak through an entrance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// The name that `from` is stamped with.
    pub name: Name,
    /// Payloads that it may send.
    pub calls: Vec<QName>,
    /// Whether requests that need an operator are granted.
    pub admin: bool,
}

/// Who may make one kind of request to the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Nobody.
    None,
    /// Everybody, about what they may call; a listener also about what it may reply with, because
    /// one that is backed by a model must learn the shape of its own answers.
    #[default]
    Peers,
    /// Every known principal and listener, about everything.
    Authenticated,
    /// Admins, about everything.
    Admin,
}

/// The flags of the core, one a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetaFlags {
    /// `<list-capabilities/>`
    pub list_capabilities: Access,
    /// `<request-schema/>`
    pub request_schema: Access,
    /// `<request-example/>`
    pub request_example: Access,
    /// `<request-prompt/>`
    pub request_prompt: Access,
    /// `<spawn-thread>` and `<close-thread/>`
    pub spawn_thread: Access,
    /// `<clear-context/>`
    pub clear_context: Access,
    /// Whether principals that come over a network may ask at all.
    pub remote: bool,
}
