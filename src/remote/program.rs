//! A program as a handler: one process for each message, like a command listener of the organism itself.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use systole_core::vocab::Name;

use super::BoxFuture;
use super::handler::{Failed, Handled, Handler};
use super::inbound::Inbound;
use crate::process::{About, CommandSpec, Variable, call};

/// Most bytes of a program's output: those of the largest message of an organism, unless its limits differ.
const OUTPUT: usize = 1 << 20;

/// Runs a program for each message. Its standard input is the payload, `SYSTOLE_*` in its environment have the rest,
/// its standard output is the reply, if it exits with 0. Otherwise the caller gets the exit status and the end of its
/// standard error.
#[derive(Debug, Clone)]
pub struct ProgramHandler {
    name: Name,
    spec: CommandSpec,
    timeout: Option<Duration>,
}

impl ProgramHandler {
    /// Makes a handler that gives a command to `/bin/sh`, in that directory, with an environment of `PATH`, `HOME`,
    /// `LANG` and these; `name` is its name in the log.
    pub fn shell(name: Name, command: &str, directory: PathBuf, env: Vec<Variable>) -> Self {
        let arguments = vec!["-c".to_owned(), command.to_owned()];
        let spec = CommandSpec { program: "/bin/sh".into(), arguments, env, directory };
        Self { name, spec, timeout: None }
    }

    /// Time limit of a process; past it the process is killed, and its message has failed.
    #[must_use]
    pub fn timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }

    async fn run(&self, message: Inbound) -> Result<String, Failed> {
        let about = About {
            from: message.from,
            thread: message.thread,
            id: message.id,
            in_reply_to: message.in_reply_to,
            answers: None,
            join: None,
            deadline: message.deadline,
            traceparent: message.traceparent,
            root: None,
        };
        let process = call(&self.name, &self.spec, &about, Bytes::from(message.payload), OUTPUT);
        let ended = match self.timeout {
            Some(limit) => tokio::time::timeout(limit, process)
                .await
                .map_err(|_| Failed::new(format!("the command took longer than {limit:?}")))?,
            None => process.await,
        };
        let output = ended.map_err(|failed| match failed.said.trim() {
            "" => Failed::new(failed.to_string()),
            said => Failed::new(format!("{failed}: {said}")),
        })?;
        String::from_utf8(output.into()).map_err(|_| Failed::new("the output of the command is no UTF-8"))
    }
}

impl Handler for ProgramHandler {
    fn handle<'a>(&'a self, message: Inbound) -> BoxFuture<'a, Result<Handled, Failed>> {
        Box::pin(async move { self.run(message).await.map(Handled::Reply) })
    }
}
