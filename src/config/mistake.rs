//! Mistakes in an `organism.yaml`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use systole_core::core::BlueprintProblem;
use systole_core::vocab::{Name, NameError, QName, QNameError, Time};
use systole_xml::schema::{ContractError, DocumentProblem};

use super::text::TextError;

/// A mistake in an `organism.yaml`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mistake {
    /// The file, or a schema that it names, can't be read.
    #[error("can't read {}{}: {why}", .what, .path.display())]
    Unreadable {
        /// The kind of the file, before its name.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        why: TextError,
    },
    /// An organism without a listener.
    #[error("the organism has no listener: it can do nothing")]
    NoListener,
    /// Invalid YAML.
    #[error("invalid YAML: {message}")]
    Yaml {
        /// The message of the parser.
        message: String,
        /// Correction, where a known slip stopped the parser.
        help: Option<String>,
    },
    /// A value of another kind than its key needs.
    #[error("expected {expected}, found {found}")]
    Kind {
        /// The kind that the key needs.
        expected: &'static str,
        /// The kind of the value.
        found: &'static str,
        /// Correction of the value.
        instead: String,
    },
    /// An unknown key.
    #[error("unknown key '{key}'")]
    UnknownKey {
        /// The key.
        key: String,
        /// The key that may be meant.
        near: Option<&'static str>,
        /// All keys of the mapping.
        known: Vec<&'static str>,
    },
    /// A key that is repeated in one mapping.
    #[error("duplicate key '{key}'")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A missing key.
    #[error("{owner} needs a key '{key}'")]
    MissingKey {
        /// The owner of the key.
        owner: &'static str,
        /// The key.
        key: &'static str,
    },
    /// An invalid name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// An invalid qualified name.
    #[error(transparent)]
    QName(#[from] QNameError),
    /// A prefix that `prefixes` does not declare.
    #[error("there is no prefix '{prefix}'")]
    Prefix {
        /// The prefix.
        prefix: String,
        /// The prefix that may be meant.
        near: Option<String>,
        /// All prefixes that are declared.
        known: Vec<String>,
    },
    /// A prefix of a namespace in which no schema declares a payload.
    #[error("no schema declares a payload in the namespace '{namespace}'")]
    PrefixOfNone {
        /// The namespace.
        namespace: String,
        /// The namespace that may be meant.
        near: Option<String>,
        /// All namespaces of the schemas.
        known: Vec<String>,
    },
    /// A prefix that is no name.
    #[error("'{prefix}' is no prefix: it is no name of XML without a colon")]
    PrefixName {
        /// The prefix.
        prefix: String,
    },
    /// Arguments of a tool that are no JSON object.
    #[error("the arguments of a call are no JSON object: {why}")]
    Arguments {
        /// The reason.
        why: String,
    },
    /// A prefix without a namespace.
    #[error("a prefix stands for a namespace, and this is none")]
    PrefixOfNothing,
    /// A word in `calls` that is the name of a listener and of a payload in no namespace.
    #[error("'{word}' is a listener, and a payload that a listener accepts")]
    TwoMeanings {
        /// The word.
        word: String,
        /// The payloads that the listener accepts.
        payloads: Vec<QName>,
    },
    /// A word that the key doesn't allow.
    #[error("'{found}' is not allowed here")]
    Choice {
        /// The word.
        found: String,
        /// The word that may be meant.
        near: Option<&'static str>,
        /// All words that the key allows.
        choices: Vec<&'static str>,
    },
    /// An invalid whole number.
    #[error("'{text}' is no whole number")]
    Number {
        /// The text.
        text: String,
    },
    /// An invalid size.
    #[error("'{text}' is no size")]
    Size {
        /// The text.
        text: String,
    },
    /// An invalid duration.
    #[error("'{text}' is no duration")]
    Duration {
        /// The text.
        text: String,
    },
    /// A duration that is too long.
    #[error("the duration '{text}' is too long")]
    TooLong {
        /// The text.
        text: String,
    },
    /// A duration that is too short.
    #[error("the duration '{text}' is too short")]
    TooShort {
        /// The text.
        text: String,
        /// The least duration here.
        least: Duration,
    },
    /// A budget without an amount.
    #[error("the budget is empty")]
    EmptyBudget,
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
        /// The text in its place.
        text: String,
        /// The form that a number has.
        help: String,
    },
    /// A listener that a model speaks for, in an organism without models.
    #[error("a model speaks for this listener, and the organism has none")]
    NoLlm,
    /// A backend that isn't there.
    #[error("there is no backend '{backend}'")]
    NoBackend {
        /// The name.
        backend: Name,
        /// A name that may be meant.
        near: Option<String>,
        /// All backends.
        backends: Vec<Name>,
    },
    /// A listener whose backends are all left out by their `when_env` or `unless_env`.
    #[error("no model can be asked: each backend of this listener is left out, because {}", .reasons.join(" and "))]
    LeftOut {
        /// The reasons, such as `A_KEY is not set`.
        reasons: Vec<String>,
    },
    /// A model that calls others, and is not told what it asked.
    #[error("with 'context: false' a model gets the answers to its calls without its task and its calls")]
    Forgetful,
    /// A listener whose threads nobody summarizes.
    #[error("only a model summarizes the messages of its threads: this listener is none")]
    NotSummarized,
    /// A key about summaries of a model that writes none.
    #[error("'{key}' means nothing without 'context: summary'")]
    NoSummaries {
        /// The key.
        key: &'static str,
    },
    /// A backend without a price, in an organism with a budget of cost.
    #[error("a budget bounds the cost, but the backend '{backend}' has no price of input and output")]
    NoPrice {
        /// The name of the backend.
        backend: Name,
    },
    /// A list of backends that is empty.
    #[error("there is no backend")]
    NoBackends,
    /// Instructions without a text.
    #[error("the instructions are empty")]
    NoInstructions,
    /// Two backends of one name.
    #[error("there is a backend '{name}' already")]
    TwoBackends {
        /// The name.
        name: Name,
    },
    /// A key of a backend that is not there.
    #[error("the backend has no key: {why}")]
    NoKey {
        /// The reason.
        why: String,
    },
    /// A text that can't be the name of a variable, and may be the key itself.
    #[error("this is no name of an environment variable")]
    NoVariable,
    /// Two sources of one key.
    #[error("'api_key_env' and 'api_key_file' both say where the key is")]
    TwoKeys,
    /// Two sources of one secret.
    #[error("'secret' and 'secret_env' both say where the secret is")]
    TwoSecrets,
    /// A secret in a variable of the environment that can't be used.
    #[error("the secret in the environment variable {variable} can't be used: {why}")]
    SecretVariable {
        /// The variable.
        variable: String,
        /// The problem.
        why: String,
    },
    /// A listener that is neither a command nor a worker nor a model nor a person nor an echo nor remote.
    #[error("this listener has no kind")]
    NoKind,
    /// A listener of several kinds.
    #[error("a listener is a command, a worker, a model, human, echo, remote, a job or jobs, only one of them")]
    TwoKinds,
    /// `human: false` or `echo: false`.
    #[error("'{key}: false' has no effect")]
    FalseKind {
        /// The key.
        key: &'static str,
    },
    /// An empty list of people.
    #[error("nobody may answer")]
    NoPeople,
    /// A person with the name of a client or a listener, or of operators.
    #[error("'{name}' is the name of another party, and can't be that of a person, too")]
    PersonTaken {
        /// The name.
        name: Name,
    },
    /// Questions that operators can't answer, in an organism without the entrances of people.
    #[error("no person can answer: without a journal the terminal alone asks, as operator")]
    PeopleNotDurable,
    /// A command without a program.
    #[error("the command is empty")]
    EmptyCommand,
    /// A missing program.
    #[error("there is no program '{program}'")]
    NoProgram {
        /// The program as it is written.
        program: String,
        /// True if it was searched on `PATH`.
        on_path: bool,
        /// True if a file of that name is beside the organism's file.
        beside: bool,
    },
    /// A program that is not executable.
    #[error("'{program}' is no program: it is not executable")]
    NotExecutable {
        /// The program as it is written.
        program: String,
    },
    /// A script whose first line names a missing interpreter.
    #[error("'{program}' can't be started: its first line names '{}', which doesn't exist", .interpreter.escape_debug())]
    NoInterpreter {
        /// The script as it is written.
        program: String,
        /// The interpreter as the first line names it.
        interpreter: String,
    },
    /// A script in Python that its interpreter can't parse.
    #[error("{script} is no program in Python: {why}")]
    Syntax {
        /// The script as it is written.
        script: String,
        /// The line and the mistake.
        why: String,
    },
    /// A script in Python that imports what isn't there.
    #[error("{script}: {why}")]
    Import {
        /// The script as it is written.
        script: String,
        /// The line and the module.
        why: String,
    },
    /// A missing script.
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
    /// A call that needs an envelope, of a listener that writes JSON.
    #[error("a listener that writes JSON can't send {payload}, which reaches '{callee}' by its name alone")]
    NoReceiver {
        /// The payload.
        payload: QName,
        /// The listener that accepts it.
        callee: Name,
    },
    /// A key that does not apply to a listener of this kind.
    #[error("'{key}' does not apply to a listener that is {kind}")]
    Pointless {
        /// The key.
        key: &'static str,
        /// The kind of the listener.
        kind: &'static str,
    },
    /// A lock file of an MCP server that can't be used.
    #[error("the lock file '{file}' of the MCP server '{listener}' can't be used: {why}")]
    McpLock {
        /// The file as it is written.
        file: String,
        /// The listener.
        listener: Name,
        /// The end of a sentence about it.
        why: String,
    },
    /// A lock file of another organism that can't be used.
    #[error("the lock file '{file}' of the other organism '{listener}' can't be used: {why}")]
    OrganismLock {
        /// The file as it is written.
        file: String,
        /// The listener.
        listener: Name,
        /// The end of a sentence about it.
        why: String,
    },
    /// A listener to import that is no other organism.
    #[error("there is no listener '{listener}' with `organism:`")]
    NoOtherOrganism {
        /// The name.
        listener: Name,
    },
    /// An MCP server with no way to it, or with two.
    #[error("an MCP server has either a command or a url")]
    McpWay,
    /// A tool that the MCP server did not have when it was imported.
    #[error("the MCP server has no tool '{tool}'")]
    NoTool {
        /// The name as it is written.
        tool: String,
        /// The tool that may be meant.
        near: Option<String>,
        /// All tools.
        tools: Vec<String>,
    },
    /// A listener to import that is no MCP server.
    #[error("there is no listener '{listener}' with `mcp:`")]
    NoMcpServer {
        /// The name.
        listener: Name,
    },
    /// A header that can't be sent to a backend.
    #[error("the header '{name}' {problem}")]
    Header {
        /// The header.
        name: String,
        /// The end of a sentence about it.
        problem: String,
    },
    /// A URL of no proxy.
    #[error("the URL of a proxy {problem}")]
    Proxy {
        /// The problem of the URL.
        problem: String,
    },
    /// A field of requests to a backend that is not the operator's.
    #[error("the field '{field}' of a request is set by the program")]
    OwnField {
        /// The field.
        field: String,
    },
    /// A field that gets the name of another one.
    #[error("two fields of a request would be called '{field}': one would replace the other")]
    TwoFields {
        /// The name.
        field: String,
    },
    /// A bound of a backend that leaves no token for a request, besides those that an answer may have.
    #[error("{key} is {most}, but an answer to '{listener}' may have {max_tokens} tokens (max_tokens): {so}")]
    NoRoom {
        /// The key of the backend.
        key: &'static str,
        /// The tokens that it allows.
        most: u32,
        /// The listener.
        listener: Name,
        /// The tokens of an answer.
        max_tokens: u32,
        /// The consequence.
        so: &'static str,
    },
    /// A key that means nothing for a backend of this kind.
    #[error("'{key}' means nothing for a backend that is {kind}")]
    NotOfBackend {
        /// The key.
        key: &'static str,
        /// The kind of the backend.
        kind: &'static str,
    },
    /// A second registry of jobs.
    #[error("jobs register with one listener of an organism, and there is one already")]
    TwoRegistries,
    /// A job of an unknown owner.
    #[error("the job belongs to '{owner}', but no listener and no client has that name")]
    NoOwner {
        /// The owner.
        owner: Name,
        /// A name that may be meant.
        near: Option<String>,
        /// All listeners and clients.
        names: Vec<Name>,
    },
    /// A remote listener without a gateway.
    #[error("a remote listener needs a gateway, and there is none")]
    NoGateway,
    /// A gateway, or a listener behind it, whose messages are not durable.
    #[error("messages over the network must be durable, but durability is off")]
    NotDurable,
    /// A key of a feature without which this program was built.
    #[error("'{key}' needs a systole with the feature '{feature}', and this one was built without")]
    NotBuilt {
        /// The key.
        key: &'static str,
        /// The feature.
        feature: &'static str,
    },
    /// Nodes that can't run the organism together.
    #[error("{problem}")]
    Cluster {
        /// The problem.
        problem: String,
        /// The remedy.
        help: &'static str,
    },
    /// Settings of the Model Context Protocol that can't be served.
    #[error("{problem}")]
    Mcp {
        /// The problem.
        problem: String,
        /// The remedy.
        help: String,
    },
    /// A schedule that can't run.
    #[error("{problem}")]
    Schedule {
        /// The problem.
        problem: String,
        /// The remedy.
        help: String,
    },
    /// A mailbox that no listener has.
    #[error("'{name}' has no mailbox to read: it is no remote listener, or is pushed to")]
    NoMailbox {
        /// The name of the mailbox.
        name: Name,
        /// The listener that may be meant.
        near: Option<Name>,
        /// All listeners that have a mailbox.
        mailboxes: Vec<Name>,
    },
    /// A URL that messages can't be pushed to.
    #[error("the URL {problem}")]
    Url {
        /// The problem of the URL.
        problem: String,
        /// True if it only has to be allowed.
        private: bool,
    },
    /// Pushes without a signature.
    #[error("pushes to this listener are not signed: it can't verify their sender")]
    Unsigned,
    /// A listener that can't get pushes in another platform's format.
    #[error("'format: molecule' can't be used here: {problem}")]
    TextAlone {
        /// The problem.
        problem: &'static str,
        /// The remedy.
        help: &'static str,
    },
    /// Two listeners that agents of another platform can't tell apart.
    #[error("its id on that platform is that of '{other}', too")]
    SharedId {
        /// The name of the other listener.
        other: Name,
    },
    /// A file with unusable content.
    #[error("the {what} {} can't be used: {why}", .path.display())]
    File {
        /// The content.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The problem of the content.
        why: String,
    },
    /// A certificate that has expired, or will within two weeks.
    #[error("the certificate {} expires at {until}: from then on clients refuse the gateway", .path.display())]
    Expires {
        /// The file.
        path: PathBuf,
        /// The end of its validity.
        until: Time,
    },
    /// An address at which another process listens.
    #[error("another process listens at {address}")]
    AddressInUse {
        /// The address.
        address: SocketAddr,
    },
    /// An address of another machine, or a port that this user can't bind.
    #[error("nothing can listen at {address}: {why}")]
    NoAddress {
        /// The address.
        address: SocketAddr,
        /// The reason.
        why: String,
    },
    /// An invalid address.
    #[error("'{text}' is no address with a port")]
    Address {
        /// The text.
        text: String,
    },
    /// An echo whose replies lack a payload that it accepts.
    #[error("an echo replies with what it accepts, but {payload} is not in its replies")]
    EchoReply {
        /// The payload.
        payload: QName,
    },
    /// An unusable schema file.
    #[error("{problem}")]
    Document {
        /// The problem of the file.
        problem: DocumentProblem,
    },
    /// A schema that can't be a contract.
    #[error(transparent)]
    Schema(#[from] ContractError),
    /// A second opinion that refuses a schema which the engine accepts.
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
    /// Valid markup of a schema that rarely means what its author expects.
    #[error("{message}")]
    Pitfall {
        /// The effect of the markup.
        message: String,
        /// The markup to write instead.
        help: &'static str,
    },
    /// No second opinion on the schemas is available.
    #[error("libxml2 gives no second opinion on the schemas: {why}")]
    NoOpinion {
        /// The reason.
        why: String,
    },
    /// A payload without a schema.
    #[error("no schema declares {payload}")]
    Undeclared {
        /// The payload.
        payload: QName,
        /// The declared payload that may be meant.
        near: Option<QName>,
        /// The declaration that has the name and is no payload: its place, and the text to write instead.
        namesake: Option<String>,
    },
    /// A word in `calls` that names neither a listener nor a payload.
    #[error("no listener has the name '{word}', and no schema declares a payload of that name")]
    NoCallee {
        /// The word.
        word: String,
        /// The listener that may be meant.
        near: Option<Name>,
        /// All listeners.
        listeners: Vec<Name>,
    },
    /// A client without a way to send a message.
    #[error("the client '{client}' can't send: there is no gateway, and `systole run` sends as the client 'cli'")]
    Mute {
        /// The client.
        client: Name,
    },
    /// A problem of the organism as a whole.
    #[error(transparent)]
    Organism(BlueprintProblem),
}

systole_core::vocab::debug_is_display!(Mistake);

impl Mistake {
    /// Checks whether the organism can run in spite of the mistake.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::NoScript { .. } | Self::AddressInUse { .. } | Self::Unsigned | Self::NoListener => true,
            Self::Expires { .. }
            | Self::Import { .. }
            | Self::Mute { .. }
            | Self::NoKey { .. }
            | Self::LeftOut { .. }
            | Self::Forgetful => true,
            Self::Objection { .. } | Self::Lenient { .. } | Self::NoOpinion { .. } | Self::Pitfall { .. } => true,
            Self::Organism(problem) => problem.is_warning(),
            _ => false,
        }
    }
}
