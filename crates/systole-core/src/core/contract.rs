//! Contracts of listeners, clients, and the parties that may make requests to the core.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use systole_xml::ladder::repair::Author;
use systole_xml::ladder::{Canonical, Raw};
use systole_xml::schema::Catalog;

use crate::vocab::{Budget, Name, QName};

/// The payloads that a listener takes and may send, and its bounds. Everything that it doesn't list is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contract {
    /// The name under which it is registered.
    pub name: Name,
    /// A line for people and models.
    pub description: String,
    /// Payloads it takes as requests.
    pub accepts: Vec<QName>,
    /// Payloads it answers with.
    pub replies: Vec<QName>,
    /// Payloads it may send as requests.
    pub calls: Vec<QName>,
    /// Answers that it takes as messages on its own threads.
    pub returns: Vec<QName>,
    /// The author of its texts, by whom repair reads the words around payloads.
    pub author: Author,
    /// States whether faults reach it as messages, rather than passing on to its caller.
    pub accepts_faults: bool,
    /// States whether the payloads that it accepts and replies with may hold processing instructions, of which no
    /// schema says anything.
    pub instructions: bool,
    /// States whether the pump keeps a history of each of its threads.
    pub context: bool,
    /// States whether its handlers condense that history ([`Input::Condensed`](super::Input::Condensed)): up to twice the
    /// bounds of a context are kept until they do.
    pub condenses: bool,
    /// The effect of a thread that ends without an answer.
    pub silence: Silence,
    /// The routing of payloads that name no target.
    pub routing: Routing,
    /// The time that one of its handlers may run; `None`: for ever.
    pub timeout: Option<Duration>,
    /// The number of its handlers that may run at once, at least 1. That of `<boot>` doesn't count.
    pub concurrency: u32,
    /// States whether a handler can wait for an answer (`false`: it has no `call`).
    pub can_park: bool,
    /// States whether each shard has an instance of its own.
    pub stateless: bool,
    /// The handling of a message whose handler had not ended when the organism did.
    pub on_restart: OnRestart,
    /// States whether its handlers wait for something that may take days, as for an agent elsewhere: a durable organism
    /// that ends leaves them to its next start, rather than waiting for them.
    pub outlives: bool,
    /// States whether its handlers emit everything at their end, as programs do: an organism is not idle before,
    /// even if it is that of `<boot>`.
    pub speaks_at_end: bool,
    /// The most that each of its threads may use, with the threads below it.
    pub budget: Budget,
}

systole_xml::vocab::setters!(Contract {
    name: Name,
    description: impl Into<String>,
    accepts: Vec<QName>,
    replies: Vec<QName>,
    calls: Vec<QName>,
    returns: Vec<QName>,
    author: Author,
    accepts_faults: bool,
    instructions: bool,
    context: bool,
    condenses: bool,
    silence: Silence,
    routing: Routing,
    timeout: Option<Duration>,
    concurrency: u32,
    can_park: bool,
    stateless: bool,
    on_restart: OnRestart,
    outlives: bool,
    speaks_at_end: bool,
    budget: Budget,
});

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
            author: Author::Program,
            accepts_faults: false,
            instructions: false,
            context: false,
            condenses: false,
            silence: Silence::Error,
            routing: Routing::Unique,
            timeout: Some(Duration::from_secs(30)),
            concurrency: Self::ACTOR_CONCURRENCY,
            can_park: true,
            stateless: false,
            on_restart: OnRestart::Replay,
            outlives: false,
            speaks_at_end: false,
            budget: Budget::NONE,
        }
    }

    /// Lets processing instructions stand in its payloads, if it asks for that.
    pub fn let_instructions(&self, catalog: &mut Catalog) {
        if self.instructions {
            self.accepts.iter().chain(&self.replies).for_each(|payload| catalog.let_instructions(payload.clone()));
        }
    }
}

/// The handling, after a restart of a durable organism, of a message whose handler had not ended before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnRestart {
    /// The handler runs again and must make the same calls in the same order: it gets the results that it had. A run that
    /// a crash ended counts towards [`Limits::max_attempts`](crate::vocab::Limits::max_attempts).
    #[default]
    Replay,
    /// The handler runs again and goes on from what it keeps elsewhere, in any order: a call is the one that was made
    /// before if it asks the same. That of `<boot>` keeps its thread, and what it called goes on. Runs don't count.
    Reattach,
    /// A party outside the process is asked again, such as a person or a remote agent, and may answer anything: calls that
    /// the handler awaits are cancelled. Runs don't count, because no such party brings the process down.
    AskAgain,
}

/// The effect of a thread that ends without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Silence {
    /// The caller gets an `agent-error` with code `silent`.
    #[default]
    Error,
    /// The thread closes and is only counted off its caller's join.
    Idle,
}

/// The routing of a payload that names no target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Routing {
    /// Reached by QName; no other listener may accept the same one.
    #[default]
    Unique,
    /// Reached by QName, together with all other listeners that accept it.
    Broadcast,
    /// Reached only by name, in `to`.
    Addressed,
}

/// The order in which the ready threads of one conversation get their turn. Conversations take turns in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Scheduling {
    /// Ready threads take turns, with a message each.
    #[default]
    BreadthFirst,
    /// The newest ready thread goes first.
    DepthFirst,
}

/// A principal outside that may send messages through an entrance.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientContract {
    /// The name that `from` is stamped with.
    pub name: Name,
    /// Payloads that it may send.
    pub calls: Vec<QName>,
    /// States whether requests that need an operator are granted.
    pub admin: bool,
    /// The most that each of its conversations may use.
    pub budget: Budget,
    /// The check of the signatures that its messages must have, if they must.
    pub signatures: Option<Signatures>,
}

/// A check of the signatures of a client's messages. A message that fails it is refused, whatever entrance it comes to.
#[derive(Clone)]
pub struct Signatures(Arc<dyn CheckSignature>);

/// Checks the signature of a message.
pub trait CheckSignature: Send + Sync {
    /// Checks the signature of a message: its bytes as they came, and what the pump has read of them.
    ///
    /// # Errors
    /// The reason why the message is refused, for operators.
    fn check(&self, raw: &Raw, message: &Canonical) -> Result<(), Arc<str>>;
}

impl Signatures {
    /// Requires that messages pass a check.
    pub fn new(check: impl CheckSignature + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(super) fn check(&self, raw: &Raw, message: &Canonical) -> Result<(), Arc<str>> {
        self.0.check(raw, message)
    }
}

impl fmt::Debug for Signatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signatures(..)")
    }
}

/// The same check, not an equal one.
impl PartialEq for Signatures {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Signatures {}

impl ClientContract {
    /// A contract of a client that may send nothing, without a budget.
    pub fn new(name: Name) -> Self {
        Self { name, calls: Vec::new(), admin: false, budget: Budget::NONE, signatures: None }
    }

    /// The contract of a client that a later version of the organism does not have: it may send nothing more.
    pub(super) fn retired(&self) -> Self {
        Self { calls: Vec::new(), admin: false, ..self.clone() }
    }
}

systole_xml::vocab::setters!(ClientContract {
    name: Name,
    calls: Vec<QName>,
    admin: bool,
    budget: Budget,
    signatures: Option<Signatures>,
});

/// The parties that may make one kind of request to the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Access {
    /// No party.
    None,
    /// All parties, about what they may call; a listener also about what it may reply with, because
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
#[non_exhaustive]
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
    /// States whether principals that come over a network may ask at all.
    pub remote: bool,
}

systole_xml::vocab::setters!(MetaFlags {
    list_capabilities: Access,
    request_schema: Access,
    request_example: Access,
    request_prompt: Access,
    spawn_thread: Access,
    clear_context: Access,
    remote: bool,
});
