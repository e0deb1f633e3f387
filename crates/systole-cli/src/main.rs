//! The program `systole`: reads its arguments, calls the library, prints.
//!
//! Data for programs goes to standard output; everything else goes to standard error. Exit codes: 0 success, 1 a fault, an
//! invalid document, or a mistake that `check` found, 2 the command could not be carried out (usage, a bad configuration or
//! schema), 3 an organism could not go on (its journal can't be written, or a thread of it failed), 4 questions to people
//! wait without a keyboard, 130 stopped by a second signal, 141 standard output is closed.

#[cfg(feature = "gateway")]
mod agent;
mod check;
mod cluster;
mod columns;
mod dead;
mod describe;
mod descriptor;
mod draft_lines;
mod event_line;
mod failure;
mod file;
#[cfg(feature = "gateway")]
mod inbox;
mod init;
mod journal;
mod journal_args;
mod json;
#[cfg(feature = "gateway")]
mod key;
mod log;
mod look;
mod manual;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "gateway")]
mod model;
mod new;
#[cfg(feature = "gateway")]
mod operate;
#[cfg(feature = "gateway")]
mod organism;
mod outlet;
mod print;
mod replay;
mod report;
mod run;
mod schedule;
mod screen;
#[cfg_attr(not(feature = "libxml"), path = "second_opinion/none.rs")]
mod second_opinion;
mod signals;
mod sought;
mod thread;
#[cfg(feature = "gateway")]
mod token;
mod tree;
mod units;
mod worker;
mod xml;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use systole_core::vocab::Name;

use failure::Failure;

/// A message pump for organisms of actors.
#[derive(Debug, Parser)]
#[command(name = "systole", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a folder with an organism that runs
    #[cfg_attr(feature = "mcp", command(subcommand, subcommand_value_name = "hello|worker|json|model|rust|remote|mcp"))]
    #[cfg_attr(
        all(feature = "gateway", not(feature = "mcp")),
        command(subcommand, subcommand_value_name = "hello|worker|json|model|rust|remote")
    )]
    #[cfg_attr(not(feature = "gateway"), command(subcommand, subcommand_value_name = "hello|worker|json|rust"))]
    New(new::New),
    /// Run an organism: send it messages, print the answers
    Run(run::Run),
    /// Send one message to an organism, and print the answer
    Ask(run::Ask),
    /// Serve a host of the Model Context Protocol on standard input and output
    #[cfg(feature = "mcp")]
    Mcp(mcp::Mcp),
    /// Import the contract of another organism, which a listener stands for
    #[cfg(feature = "gateway")]
    #[command(subcommand)]
    Organism(organism::Action),
    /// Serve the answers of a script to clients of models
    #[cfg(feature = "gateway")]
    #[command(subcommand)]
    Model(model::Action),
    /// Check an organism: print each mistake with its remedy, else the contracts
    Check(check::Check),
    /// Print every key of an organism.yaml with its default
    Reference {
        /// Print a JSON Schema of the file, for editors
        #[arg(long)]
        schema: bool,
    },
    /// Print the XSD of one payload, or of all payloads
    Schema(Schema),
    /// Print a valid example of one payload, or of all payloads
    Example(Example),
    /// Print a prompt for a model: to write one payload, or all payloads, or to speak for a listener
    Prompt(Prompt),
    /// Run one step of the trust ladder alone: repair, canonicalization, validation
    #[command(subcommand)]
    Xml(xml::Stage),
    /// Inspect, check, rename and compact the journal of a durable organism
    #[command(subcommand)]
    Journal(journal::Action),
    /// Show the nodes of an organism: which one runs it, and which stand by
    Cluster(cluster::Cluster),
    /// Show the conversations of a journal, while its organism runs or not; retry a conversation; make and import transcripts
    #[command(subcommand)]
    Thread(thread::Action),
    /// Run recorded conversations once more by another organism.yaml, and print what it does otherwise
    Replay(replay::Replay),
    /// Show, drop and redrive dead letters, while the organism runs or not
    #[command(subcommand)]
    Dead(dead::Action),
    /// Show the mailboxes of remote listeners: what waits, what is leased, and since when
    Mailboxes(look::Mailboxes),
    /// Show the tasks of jobs
    Tasks(look::Tasks),
    /// Show the schedules, what came of their ticks, and the next ones; pause, resume and run one
    #[command(subcommand)]
    Schedule(schedule::Action),
    /// Show what operators did, and with which effect
    Audit(look::Audit),
    /// Show what the listeners of a running organism do, and its open conversations
    #[cfg(feature = "gateway")]
    Top(operate::Top),
    /// Cancel a conversation of a running organism, or one thread of it
    #[cfg(feature = "gateway")]
    Cancel(operate::Cancel),
    /// Pause a listener of a running organism until it is resumed: its messages wait
    #[cfg(feature = "gateway")]
    Pause(operate::OneListener),
    /// Resume a paused listener
    #[cfg(feature = "gateway")]
    Resume(operate::OneListener),
    /// Set the levels of the log of a running organism, until it ends
    #[cfg(feature = "gateway")]
    LogLevel(operate::LogLevel),
    /// Change a running organism to what its organism.yaml says by now: open conversations keep what they began with
    #[cfg(feature = "gateway")]
    Reload(operate::Reload),
    /// End a running organism in order
    #[cfg(feature = "gateway")]
    Drain(operate::Drain),
    /// Show the questions to people that wait, and answer them
    #[cfg(feature = "gateway")]
    Inbox(inbox::Inbox),
    /// Test the program of a worker
    #[command(subcommand)]
    Worker(worker::Action),
    /// Make, list and revoke tokens for clients, listeners and admins of the gateway
    #[cfg(feature = "gateway")]
    #[command(subcommand)]
    Token(token::Action),
    /// Make, list, show and retire the keys that sign what leaves an organism, or the messages of a client
    #[cfg(feature = "gateway")]
    #[command(subcommand)]
    Key(key::Action),
    /// Sign a message, and print it
    #[cfg(feature = "gateway")]
    Sign(key::Sign),
    /// Verify the signature of a message, or a transcript
    #[cfg(feature = "gateway")]
    Verify(key::Verify),
    /// Run a command for each message of a remote listener
    #[cfg(feature = "gateway")]
    Agent(agent::Agent),
    /// Forward the messages of a remote listener to an HTTP server
    #[cfg(feature = "gateway")]
    Listen(agent::Listen),
    /// Print a script that completes the arguments in a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man {
        /// Write the pages of all commands into this folder instead; the folder is created if it is missing
        #[arg(long, value_name = "FOLDER")]
        into: Option<PathBuf>,
    },
    /// Judge schema documents by libxml2, in a process that may be killed
    #[cfg(feature = "libxml")]
    #[command(name = second_opinion::COMMAND, hide = true)]
    SecondOpinion,
}

#[derive(Debug, Args)]
struct Describe {
    /// The organism.yaml
    organism: PathBuf,
    /// The payload, written {namespace}local, or prefix:local as in the file; or only local, if one payload has that name
    payload: Option<String>,
}

#[derive(Debug, Args)]
struct Schema {
    #[command(flatten)]
    what: Describe,
    /// Print the JSON Schema instead, for callers that write payloads as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Prompt {
    #[command(flatten)]
    what: Describe,
    /// Print the whole system prompt of a listener: for one with `model:`, the prompt that is sent with each request
    #[arg(long, value_name = "NAME", conflicts_with = "payload")]
    listener: Option<Name>,
}

#[derive(Debug, Args)]
struct Example {
    #[command(flatten)]
    what: Describe,
    /// Print it in an envelope, as a client may send it
    #[arg(long)]
    envelope: bool,
}

/// The allocator of the program: faster than the system's where many threads hand messages to each other.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    systole::process::signals::unblock();
    if init::is_wanted() {
        return init::run().unwrap_or_else(|error| Failure::System(error).exit());
    }
    systole::process::descriptors::raise();
    if let Err(error) = signals::outlive_file_limits() {
        return Failure::System(error).exit();
    }
    let done = match Cli::parse().command {
        Command::New(kind) => new::new(&kind),
        Command::Run(args) => run::run(&args),
        Command::Ask(args) => run::ask(&args),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => mcp::run(&args),
        #[cfg(feature = "gateway")]
        Command::Organism(action) => organism::run(&action),
        #[cfg(feature = "gateway")]
        Command::Model(action) => model::run(&action),
        Command::Check(args) => check::check(&args),
        Command::Reference { schema } => describe::reference(schema),
        Command::Schema(Schema { what, json: false }) => describe::describe(&what, describe::Part::Schema),
        Command::Schema(Schema { what, json: true }) => describe::describe(&what, describe::Part::JsonSchema),
        Command::Example(Example { what, envelope: false }) => describe::describe(&what, describe::Part::Example),
        Command::Example(Example { what, envelope: true }) => describe::describe(&what, describe::Part::Envelope),
        Command::Prompt(Prompt { what, listener: Some(listener) }) => describe::listener(&what, &listener),
        Command::Prompt(Prompt { what, listener: None }) => describe::describe(&what, describe::Part::Prompt),
        Command::Xml(stage) => xml::run(stage),
        Command::Journal(action) => journal::run(&action),
        Command::Cluster(args) => cluster::run(&args),
        Command::Thread(action) => thread::run(&action),
        Command::Replay(args) => replay::replay(&args),
        Command::Dead(action) => dead::run(&action),
        Command::Schedule(action) => schedule::run(&action),
        Command::Mailboxes(args) => look::mailboxes(&args),
        Command::Tasks(args) => look::tasks(&args),
        Command::Audit(args) => look::audit(&args),
        #[cfg(feature = "gateway")]
        Command::Top(args) => operate::top(&args),
        #[cfg(feature = "gateway")]
        Command::Cancel(args) => operate::cancel(&args),
        #[cfg(feature = "gateway")]
        Command::Pause(args) => operate::pause(&args),
        #[cfg(feature = "gateway")]
        Command::Resume(args) => operate::resume(&args),
        #[cfg(feature = "gateway")]
        Command::LogLevel(args) => operate::log_level(&args),
        #[cfg(feature = "gateway")]
        Command::Reload(args) => operate::reload(&args),
        #[cfg(feature = "gateway")]
        Command::Drain(args) => operate::drain(&args),
        #[cfg(feature = "gateway")]
        Command::Inbox(args) => inbox::inbox(&args),
        Command::Worker(action) => worker::run(&action),
        #[cfg(feature = "gateway")]
        Command::Token(action) => token::run(&action),
        #[cfg(feature = "gateway")]
        Command::Key(action) => key::run(&action),
        #[cfg(feature = "gateway")]
        Command::Sign(args) => key::sign(&args),
        #[cfg(feature = "gateway")]
        Command::Verify(args) => key::verify(&args),
        #[cfg(feature = "gateway")]
        Command::Agent(args) => agent::agent(&args),
        #[cfg(feature = "gateway")]
        Command::Listen(args) => agent::listen(&args),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { into } => manual::man(into.as_deref()),
        #[cfg(feature = "libxml")]
        Command::SecondOpinion => second_opinion::give(),
    };
    // Processes that were told to end have their time, whatever command started them.
    systole::process::wait_for_ends();
    done.unwrap_or_else(Failure::exit)
}
