use std::net::SocketAddr;
use std::path::PathBuf;

use systole_core::core::Problem;
use systole_core::vocab::{Name, NameError, QName, QNameError};
use systole_xml::schema::{ContractError, DocumentProblem};

use super::text::Unread;

/// What can be wrong with an `organism.yaml`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mistake {
    /// The file, or a schema that it names, can't be read.
    #[error("can't read {}{}: {why}", .what, .path.display())]
    Unreadable {
        /// What the file is, before its name.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        why: Unread,
    },
    /// An organism without a listener.
    #[error("the organism has no listener: it can do nothing")]
    NoListener,
    /// It is no YAML.
    #[error("this is no YAML: {message}")]
    Yaml {
        /// What the parser says.
        message: String,
        /// What to write instead, where a known slip stopped the parser.
        help: Option<String>,
    },
    /// Another kind of value belongs here.
    #[error("expected {expected}, found {found}")]
    Kind {
        /// What belongs here.
        expected: &'static str,
        /// What stands here.
        found: &'static str,
        /// What to write instead.
        instead: String,
    },
    /// A key that nobody knows here.
    #[error("unknown key '{key}'")]
    UnknownKey {
        /// The key.
        key: String,
        /// The key that may be meant.
        near: Option<&'static str>,
        /// All keys that can stand here.
        known: Vec<&'static str>,
    },
    /// A key that stands twice in one mapping.
    #[error("the key '{key}' stands here twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A key that has to be there.
    #[error("{owner} needs a key '{key}'")]
    MissingKey {
        /// Whose key.
        owner: &'static str,
        /// The key.
        key: &'static str,
    },
    /// No name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// No qualified name.
    #[error(transparent)]
    QName(#[from] QNameError),
    /// A word that is not among those that can stand here.
    #[error("'{found}' can't stand here")]
    Choice {
        /// The word.
        found: String,
        /// The word that may be meant.
        near: Option<&'static str>,
        /// All words that can stand here.
        choices: Vec<&'static str>,
    },
    /// No whole number.
    #[error("'{text}' is no whole number")]
    Number {
        /// What stands there.
        text: String,
    },
    /// No size.
    #[error("'{text}' is no size")]
    Size {
        /// What stands there.
        text: String,
    },
    /// No duration.
    #[error("'{text}' is no duration")]
    Duration {
        /// What stands there.
        text: String,
    },
    /// A number out of its bounds.
    #[error("{key} can't be less than {min} or more than {max}")]
    Bounds {
        /// The key.
        key: &'static str,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// No decimal number.
    #[error("'{text}' is no number")]
    Decimal {
        /// What stands there.
        text: String,
        /// What to write.
        help: String,
    },
    /// A listener that a model speaks for, in an organism without models.
    #[error("a model speaks for this listener, and the organism has none")]
    NoLlm,
    /// A backend that isn't there.
    #[error("there is no backend '{backend}'")]
    NoBackend {
        /// Its name.
        backend: Name,
        /// A name that may be meant.
        near: Option<String>,
    },
    /// Two backends of one name.
    #[error("there is a backend '{name}' already")]
    TwoBackends {
        /// The name.
        name: Name,
    },
    /// A key of a backend that is not there.
    #[error("the backend has no key: {why}")]
    NoKey {
        /// Why.
        why: String,
    },
    /// A text that can't be the name of a variable, and may be the key itself.
    #[error("this is no name of an environment variable")]
    NoVariable,
    /// Two sources of one key.
    #[error("'api_key_env' and 'api_key_file' both say where the key is")]
    TwoKeys,
    /// A listener that is neither a command nor a worker nor a model nor a person nor an echo nor remote.
    #[error("this listener has no kind")]
    NoKind,
    /// A listener that is more than one of them.
    #[error("a listener is a command, a worker, a model, human, echo, remote, a job or jobs, only one of them")]
    TwoKinds,
    /// `human: false` or `echo: false`.
    #[error("'{key}: false' says nothing")]
    FalseKind {
        /// The key.
        key: &'static str,
    },
    /// A command without a program.
    #[error("the command is empty")]
    EmptyCommand,
    /// A program that isn't there.
    #[error("there is no program '{program}'")]
    NoProgram {
        /// The program as it is written.
        program: String,
        /// Whether it was looked for on `PATH`.
        on_path: bool,
        /// Whether a file of that name is beside the organism's file.
        beside: bool,
    },
    /// A program that may not be run.
    #[error("'{program}' is no program: it is not executable")]
    NotExecutable {
        /// The program as it is written.
        program: String,
    },
    /// A script whose first line names an interpreter that isn't there.
    #[error("'{program}' can't be started: its first line names '{}', which isn't there", .interpreter.escape_debug())]
    NoInterpreter {
        /// The script as it is written.
        program: String,
        /// The interpreter as the first line names it.
        interpreter: String,
    },
    /// A script that isn't there.
    #[error("there is no file '{script}' for '{program}' to run")]
    NoScript {
        /// The program.
        program: String,
        /// The script as it is written.
        script: String,
    },
    /// An entry of `env` that is neither `NAME` nor `NAME=value`.
    #[error("'{entry}' is no variable")]
    Variable {
        /// The entry.
        entry: String,
    },
    /// A variable that the pump sets itself.
    #[error("variables whose names start with SYSTOLE_ are set by the pump")]
    ReservedVariable,
    /// A key that means nothing for a listener of this kind.
    #[error("'{key}' means nothing for a listener that is {kind}")]
    Pointless {
        /// The key.
        key: &'static str,
        /// What the listener is.
        kind: &'static str,
    },
    /// A key that means nothing for a backend of this kind.
    #[error("'{key}' means nothing for a backend that is {kind}")]
    NotOfBackend {
        /// The key.
        key: &'static str,
        /// What the backend is.
        kind: &'static str,
    },
    /// A second registry of jobs.
    #[error("jobs register with one listener of an organism, and there is one already")]
    TwoRegistries,
    /// A job that belongs to nobody who is there.
    #[error("the job belongs to '{owner}', but no listener and no client has that name")]
    NoOwner {
        /// The owner.
        owner: Name,
        /// A name that may be meant.
        near: Option<String>,
    },
    /// A remote listener that nobody can reach.
    #[error("a remote listener comes in through the gateway, and there is none")]
    NoGateway,
    /// A gateway, or a listener behind it, whose messages would be forgotten.
    #[error("what comes in over the network must not be forgotten, but nothing here is durable")]
    NotDurable,
    /// What this program was built without.
    #[error("'{key}' needs a systole with the feature '{feature}', and this one was built without")]
    NotBuilt {
        /// The key.
        key: &'static str,
        /// The feature.
        feature: &'static str,
    },
    /// The mailbox of a client that nobody has.
    #[error("'{name}' has no mailbox to read: it is no remote listener, or is pushed to")]
    NoMailbox {
        /// Whose it should be.
        name: Name,
    },
    /// A place that nothing is pushed to.
    #[error("the URL {problem}")]
    Url {
        /// What is wrong with it.
        problem: String,
        /// Whether it only has to be allowed.
        private: bool,
    },
    /// Deliveries that could be anybody's.
    #[error("what is pushed to this listener is not signed: it can't know whom it is from")]
    Unsigned,
    /// A listener that is sent text in another platform's format, and can't be.
    #[error("'format: molecule' can't be used here: {problem}")]
    TextAlone {
        /// What is wrong.
        problem: &'static str,
        /// What to do about it.
        help: &'static str,
    },
    /// A file with something that has to be in order, and is not.
    #[error("the {what} {} can't be used: {why}", .path.display())]
    File {
        /// What is in it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// An address that another process listens at.
    #[error("another process listens at {address}")]
    AddressInUse {
        /// The address.
        address: SocketAddr,
    },
    /// An address of another machine, or a port that this user can't have.
    #[error("nothing can listen at {address}: {why}")]
    NoAddress {
        /// The address.
        address: SocketAddr,
        /// Why.
        why: String,
    },
    /// A text that is no address.
    #[error("'{text}' is no address with a port")]
    Address {
        /// What stands there.
        text: String,
    },
    /// An echo that may not say what it hears.
    #[error("an echo answers with what it gets, but {payload} is not in its replies")]
    EchoReply {
        /// The payload.
        payload: QName,
    },
    /// A schema file that is no usable schema.
    #[error("{problem}")]
    Document {
        /// What is wrong with it.
        problem: DocumentProblem,
    },
    /// A schema that can't be a contract.
    #[error(transparent)]
    Schema(#[from] ContractError),
    /// A second opinion refuses what the engine accepts.
    #[error("{by} refuses {what}, which the engine accepts: {message}")]
    Objection {
        /// The validator.
        by: String,
        /// A schema, or an example.
        what: String,
        /// The validator's reason.
        message: String,
    },
    /// A second opinion accepts schemas that the engine refuses.
    #[error("{by} accepts the schemas that the engine refuses")]
    Lenient {
        /// The validator.
        by: String,
    },
    /// Valid markup of a schema that rarely means what its author thinks.
    #[error("{message}")]
    Pitfall {
        /// The effect of the markup.
        message: String,
        /// The markup to write instead.
        help: &'static str,
    },
    /// There is no second opinion on the schemas.
    #[error("libxml2 gives no second opinion on the schemas: {why}")]
    NoOpinion {
        /// Why.
        why: String,
    },
    /// A payload without a schema.
    #[error("no schema declares {payload}")]
    Undeclared {
        /// The payload.
        payload: QName,
        /// The declared payload that may be meant.
        near: Option<QName>,
        /// What has that name and declares no payload: where it is, and what to write.
        namesake: Option<String>,
    },
    /// A client that can't send a message.
    #[error(
        "nobody can speak as the client '{client}': there is no gateway, and `systole run` speaks as the client 'cli'"
    )]
    Mute {
        /// The client.
        client: Name,
    },
    /// What the organism as a whole gets wrong.
    #[error(transparent)]
    Organism(Problem),
}

systole_core::vocab::debug_is_display!(Mistake);

impl Mistake {
    /// Whether the organism can run in spite of it.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::NoScript { .. } | Self::AddressInUse { .. } | Self::Unsigned | Self::NoListener => true,
            Self::Mute { .. } | Self::NoKey { .. } => true,
            Self::Objection { .. } | Self::Lenient { .. } | Self::NoOpinion { .. } | Self::Pitfall { .. } => true,
            Self::Organism(problem) => problem.is_warning(),
            _ => false,
        }
    }
}
