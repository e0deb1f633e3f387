//! `systole agent` and `systole listen`: the agent of a remote listener, by a command or an HTTP server.

mod work;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use systole::outbound::Secret;
use systole::process::{Variable, conceal};
use systole::remote::{CallOptions, ForwardHandler, LeaseDelivery, Mailbox, ProgramHandler, RemoteError};
use systole::settings::read_secret;
use systole_core::vocab::Name;

use super::failure::Failure;
use super::{file, units};
use work::work;

/// Variable of the token, if it is in no file.
const TOKEN: &str = "SYSTOLE_TOKEN";

const HELP: &str = "\
Exit codes: 0 stopped or paused, 1 the gateway no longer accepts the agent, 2 the agent could not begin, or the gateway \
pushes the messages of the listener. The first SIGINT, SIGTERM or SIGHUP lets the messages in flight end; a second one \
ends them at once, and they are leased again later.

The token comes from --token-file (/dev/stdin is standard input) or from the variable SYSTOLE_TOKEN. A command of --exec \
can't read the environment, the memory or the open files of the agent, unless it runs as root. It can read every file \
that the agent's user may read. SYSTOLE_LOG sets the level of the log: error, warn, info (the default), debug or trace.";

#[derive(Debug, Args)]
pub(super) struct At {
    /// The remote listener
    name: Name,
    /// The URL of the gateway
    #[arg(long)]
    url: String,
    /// A file with the token of the listener
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A file with certificates (PEM) that are trusted in addition to those of the system
    #[arg(long, value_name = "FILE")]
    certificates: Option<PathBuf>,
    /// The number of messages that are handled at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,
    /// The time of a lease, 1s to 12h. It is extended while the message is handled; if the agent ends, the message is free for
    /// another one after this time
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_lease)]
    lease: Duration,
    /// Time limit of one message, such as 90s or 10m
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    timeout: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Agent {
    #[command(flatten)]
    at: At,
    /// The command, for /bin/sh. It gets the payload on standard input and SYSTOLE_* in its environment, and writes the reply
    /// to standard output. If its exit code is not 0, the caller gets the end of its standard error
    #[arg(long, value_name = "COMMAND")]
    exec: String,
    /// Further variables of its environment, in addition to PATH, HOME and the locale: NAME, or NAME=VALUE
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<Variable>,
}

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Listen {
    #[command(flatten)]
    at: At,
    /// The URL of the server. It gets each envelope as a POST. It answers 200 with the reply, or 202 and replies later with
    /// POST /v1/messages/ID/reply and the token of the listener
    #[arg(long, value_name = "URL")]
    forward_to: String,
    /// A file with the secret that requests are signed with: 16 to 4096 bytes
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

/// Runs a command for each message.
pub(super) fn agent(args: &Agent) -> Result<ExitCode, Failure> {
    conceal().map_err(Failure::System)?;
    let directory = std::env::current_dir().map_err(Failure::System)?;
    if args.env.contains(&Variable::Inherited(TOKEN.to_owned())) {
        return Err(Failure::unusable(format!(
            "--env {TOKEN} would give the token of the agent to its command: leave it out, or set another value, --env {TOKEN}=VALUE"
        )));
    }
    let program =
        ProgramHandler::shell(args.at.name.clone(), &args.exec, directory, args.env.clone()).timeout(args.at.timeout);
    work(&args.at, Arc::new(program))
}

/// Forwards each message to a server.
pub(super) fn listen(args: &Listen) -> Result<ExitCode, Failure> {
    conceal().map_err(Failure::System)?;
    let secret = args.secret_file.as_ref().map(|file| {
        let refused = |why| Failure::unusable(format!("the secret in {}: {why}", file.display()));
        read_secret(file).map(|secret| Secret::new(&secret)).map_err(refused)
    });
    let secret = secret.transpose()?;
    // The time limit of a push.
    let timeout = args.at.timeout.unwrap_or(Duration::from_secs(300));
    let server = ForwardHandler::new(&args.forward_to, secret, timeout).map_err(failure)?;
    work(&args.at, Arc::new(server))
}

impl At {
    fn mailbox(&self) -> Result<Mailbox, Failure> {
        let token = match &self.token_file {
            Some(path) => file::text(path, file::TOKEN)?,
            None => std::env::var(TOKEN).map_err(|_| {
                Failure::unusable(format!("there is no token: name a file with --token-file, or set {TOKEN}"))
            })?,
        };
        let mut options = CallOptions::default();
        if let Some(path) = &self.certificates {
            options.certificates = file::read(path, file::DOCUMENT)?;
        }
        Mailbox::new(&self.url, self.name.clone(), &token, options).map_err(failure)
    }
}

fn parse_lease(text: &str) -> Result<Duration, String> {
    let lease = units::duration(text)?;
    let whole = lease.subsec_nanos() == 0 && LeaseDelivery::LEASES.contains(&lease);
    if whole { Ok(lease) } else { Err("a lease is whole seconds, from 1s to 12h".to_owned()) }
}

fn failure(error: RemoteError) -> Failure {
    Failure::unusable(error.to_string())
}
