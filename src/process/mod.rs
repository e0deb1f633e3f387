//! Processes of programs: their environment, start, streams and end.
//!
//! A program runs in the directory of its specification, in a process group of its own, with an environment of `PATH`,
//! `HOME`, the locale, the variables of `env`, the `SYSTOLE_*` variables and `TRACEPARENT`. Its standard error goes to the log.
//!
//! Invariants: a process is killed with its group and reaped, at the latest a few seconds after it was told to end
//! (`ending`); when this process ends, even by `kill -9`, the groups end with it (`guard`). A descendant that leaves the
//! group (`setsid`) is not killed.
//!
//! Not here: which messages a program gets, and what its output means. Those are the listeners'.

mod conceal;
#[doc(hidden)]
pub mod descriptors;
pub(crate) mod ending;
pub(crate) mod environment;
pub(crate) mod guard;
pub(crate) mod memory;
pub(crate) mod run;
pub mod signals;
pub(crate) mod streams;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Stdio;
use std::str::FromStr;

#[cfg(feature = "gateway")]
use bytes::Bytes;

#[cfg(feature = "gateway")]
use environment::variables;
#[cfg(feature = "gateway")]
use run::{CommandError, Invocation, Wait};
use systole_core::core::{JoinPosition, Message};
#[cfg(feature = "gateway")]
use systole_core::vocab::Name;
use systole_core::vocab::{MessageId, ThreadId, Time, Traceparent, trace_of};
use tokio::process::Command;

pub use conceal::conceal;
#[doc(hidden)]
pub use ending::{hurry as hurry_ends, wait as wait_for_ends};
pub use guard::kill_all;

/// The `tracing` target of the standard error of commands.
pub const STDERR_TARGET: &str = "systole::stderr";

/// A program with its arguments and environment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandSpec {
    /// The program: an absolute path.
    pub program: PathBuf,
    /// The arguments.
    pub arguments: Vec<String>,
    /// Further variables of its environment.
    pub env: Vec<Variable>,
    /// The working directory.
    pub directory: PathBuf,
}

impl CommandSpec {
    /// A program without arguments and further variables, in that working directory.
    pub fn new(program: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), arguments: Vec::new(), env: Vec::new(), directory: directory.into() }
    }

    /// The command of the program, with an environment of these variables alone, and pipes as its standard streams.
    pub(crate) fn command(
        &self,
        environment: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.directory)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

systole_core::vocab::setters!(CommandSpec {
    program: impl Into<PathBuf>,
    arguments: Vec<String>,
    env: Vec<Variable>,
    directory: impl Into<PathBuf>,
});

/// A variable of a command's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Variable {
    /// Copied from the pump's environment when a message comes; absent if it is absent there.
    Inherited(String),
    /// Set to a value.
    Set(String, String),
}

/// Facts about the message for the program, in `SYSTOLE_*` and `TRACEPARENT`.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) from: String,
    pub(crate) thread: ThreadId,
    pub(crate) id: MessageId,
    pub(crate) in_reply_to: Option<MessageId>,
    /// The place of the call that it answers, among the messages of the thread.
    pub(crate) answers: Option<u32>,
    pub(crate) join: Option<JoinPosition>,
    pub(crate) deadline: Option<Time>,
    pub(crate) traceparent: Option<Traceparent>,
    /// The root of its conversation, if that is known.
    pub(crate) root: Option<ThreadId>,
}

/// The message that a line of the log is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) thread: ThreadId,
    pub(crate) id: MessageId,
    trace: Option<[u8; 16]>,
}

impl Subject {
    pub(crate) fn of(message: &Message) -> Self {
        let trace = Some(trace_of(message.root, message.traceparent));
        Self { thread: message.thread, id: message.id, trace }
    }

    /// A message of no organism, for tests.
    #[cfg(all(test, feature = "gateway"))]
    pub(crate) fn none() -> Self {
        let nil = uuid::Uuid::nil();
        Self { thread: ThreadId::from_uuid(nil), id: MessageId::from_uuid(nil), trace: None }
    }

    /// The id of the trace of its conversation, if that is known.
    pub(crate) fn trace(&self) -> Option<String> {
        self.trace.map(|trace| format!("{:032x}", u128::from_be_bytes(trace)))
    }
}

impl About {
    pub(crate) fn of(message: &Message) -> Self {
        Self {
            from: message.from.to_string(),
            thread: message.thread,
            id: message.id,
            in_reply_to: message.in_reply_to,
            answers: message.place.answers,
            join: message.join,
            deadline: message.deadline,
            traceparent: message.traceparent,
            root: Some(message.root),
        }
    }

    pub(crate) fn subject(&self) -> Subject {
        let of_caller = self.traceparent.map(|caller| caller.trace());
        let trace = of_caller.or_else(|| self.root.map(|root| trace_of(root, None)));
        Subject { thread: self.thread, id: self.id, trace }
    }
}

/// Runs a program that announces a message; its output is dropped. The error says why it failed.
#[cfg(feature = "gateway")]
pub(crate) async fn announce(name: &Name, spec: &CommandSpec, about: &About, input: Bytes) -> Result<(), String> {
    const OUTPUT: usize = 1 << 20;
    let environment = variables(&spec.env, about, None);
    let invocation = Invocation { spec, environment, input, inherited: None, max_output: OUTPUT, ends: None };
    run::run((name, Some(about.subject())), invocation, Wait::ENDLESS, &mut String::new())
        .await
        .map(drop)
        .map_err(|error| error.to_string())
}

/// A program that gave no output.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
#[cfg(feature = "gateway")]
pub(crate) struct Failed {
    error: CommandError,
    /// The end of the program's standard error.
    pub(crate) said: String,
}

/// Runs a program for a message from another organism, and returns its output, at most `max_output` bytes.
///
/// # Cancel safety
/// Dropping the future ends the process and everything in its group.
#[cfg(feature = "gateway")]
pub(crate) async fn call(
    name: &Name,
    spec: &CommandSpec,
    about: &About,
    input: Bytes,
    max_output: usize,
) -> Result<Bytes, Failed> {
    let mut said = String::new();
    let environment = variables(&spec.env, about, None);
    let invocation = Invocation { spec, environment, input, inherited: None, max_output, ends: None };
    let output = run::run((name, Some(about.subject())), invocation, Wait::ENDLESS, &mut said).await;
    output.map_err(|error| Failed { error, said })
}

/// The error of a text that is no entry of `env`.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write NAME or NAME=VALUE: a name has letters of ASCII, digits and _, and no digit first")]
pub struct NoVariable;

systole_core::vocab::debug_is_display!(NoVariable);

impl Variable {
    /// Returns its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Inherited(name) | Self::Set(name, _) => name,
        }
    }
}

impl FromStr for Variable {
    type Err = NoVariable;

    /// Parses an entry of `env`: `NAME` is inherited, `NAME=value` is set.
    fn from_str(entry: &str) -> Result<Self, NoVariable> {
        let (name, value) = entry.split_once('=').map_or((entry, None), |(name, value)| (name, Some(value)));
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !starts || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') || entry.contains('\0') {
            return Err(NoVariable);
        }
        Ok(match value {
            Some(value) => Self::Set(name.to_owned(), value.to_owned()),
            None => Self::Inherited(name.to_owned()),
        })
    }
}
