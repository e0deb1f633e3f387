//! `systole mcp`: the organism as a server of the Model Context Protocol, on standard input and output; `systole mcp import` for
//! servers that are listeners.
//!
//! A host starts a process for each of its sessions. The first one runs the organism; the others find the journal taken, and relay
//! to the process that has it, by the socket beside the journal. When that one ends, one of the others goes on with the organism.

mod import;

use std::cell::{Cell, RefCell};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use systole::config::{Config, ConfiguredOrganism, LaunchError};
use systole::gateway::GatewayError;
use systole::journal::JournalErrorKind;
use systole::listeners::human::{Console, Keyboard};
use systole::mcp::server::{LineStream, StreamError, open_stream, serve_stdio};
use systole::process::signals::Signals;
use systole::process::{conceal, kill_all};
use systole::runtime::StartError;
use systole::runtime::clock::Clock;
use systole_core::vocab::Name;
use tokio::time::{Instant, sleep, timeout};
use tracing::Level;

use super::failure::Failure;
use super::log;
use super::screen::{PeopleTerminal, Screen, Style};

/// Time for work in flight when the organism ends with its host: the rest goes on at its next start.
const DRAIN: Duration = Duration::from_secs(2);
/// Time limit for the end of cancelled work.
const GRACE: Duration = Duration::from_secs(2);
/// Longest wait for the process that holds the journal to serve its socket, or to end.
const BUSY: Duration = Duration::from_secs(30);
/// Time for a process that served this host to start again, as a service does, before this one runs the organism.
const TAKEOVER: Duration = Duration::from_secs(5);
/// Pause between two looks at it.
const RETRY: Duration = Duration::from_millis(50);
/// Bytes between the relay and the organism in this process.
const PIPE: usize = 64 << 10;

const HELP: &str = "\
A host starts this program, such as by the configuration

  {\"mcpServers\": {\"shop\": {\"command\": \"systole\", \"args\": [\"mcp\", \"/path/of/organism.yaml\"]}}}

The tools are the payloads that the client calls (mcp: { as: CLIENT }). If the organism runs already, the calls go to its process. \
Standard output has messages of the protocol alone; the log goes to standard error, and SYSTOLE_LOG sets its level. The end of \
standard input ends the program.

Exit codes: 0 standard input has ended, 2 the organism could not start.";

#[derive(Debug, Args)]
#[command(after_help = HELP, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Mcp {
    /// The organism.yaml
    #[arg(required = true)]
    organism: Option<PathBuf>,
    /// The client that the host speaks as; by default that of mcp: { as: CLIENT }
    #[arg(long = "as", value_name = "CLIENT")]
    client: Option<Name>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Connect to the MCP server of a listener; write the schemas of its tools, and the lock file that it is held to
    Import(import::Import),
}

pub(super) fn run(args: &Mcp) -> Result<ExitCode, Failure> {
    match (&args.action, &args.organism) {
        (Some(Action::Import(args)), _) => import::import(args),
        (None, Some(organism)) => serve(organism, args.client.as_ref()),
        (None, None) => unreachable!("clap asks for the organism"),
    }
}

/// Serves a host until standard input ends, or a signal comes.
fn serve(organism: &Path, client: Option<&Name>) -> Result<ExitCode, Failure> {
    conceal().map_err(Failure::System)?;
    let screen = Arc::new(Screen::standard(Style::Lines, PeopleTerminal::None).without_events());
    log::start(&screen, Level::WARN);
    let config = Config::load(organism).map_err(Failure::Config)?;
    if config.mcp.is_none() {
        return Err(Failure::unusable(StreamError::NotServed.to_string()));
    }
    // The check of the file refuses one without a journal.
    let Some(journal) = config.journal.as_ref().and_then(|journal| journal.beside().map(ToOwned::to_owned)) else {
        let why = "the journal is a database of other machines, too: serve hosts over HTTP, at /mcp of the gateway";
        return Err(Failure::unusable(why));
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::System)?;
    // No other process has had that number at that time.
    let session = format!("{}-{}", std::process::id(), Clock::real().now().as_nanos());
    // The organism, while it runs in this process.
    let own = Rc::new(RefCell::new(None::<Arc<ConfiguredOrganism>>));
    // True once another process has served this host.
    let is_guest = Cell::new(false);
    let connect = || connect((organism, client), &journal, &session, (&own, &is_guest));
    let served = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        tokio::select! {
            served = serve_stdio(connect) => served,
            () = signals.stop() => Ok(()),
        }
    });
    runtime.block_on(async {
        let Some(running) = own.borrow_mut().take() else { return };
        running.close_entrances();
        let _ = timeout(GRACE + DRAIN, running.organism.drain(DRAIN)).await;
    });
    kill_all();
    screen.finish();
    screen.flush(GRACE);
    // A read of standard input can't be interrupted.
    runtime.shutdown_background();
    match served {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::unusable(error.to_string())),
    }
}

/// Opens a stream to the organism: in the process that has its journal, else in this one.
async fn connect(
    (organism, client): (&Path, Option<&Name>),
    journal: &Path,
    session: &str,
    (own, is_guest): (&RefCell<Option<Arc<ConfiguredOrganism>>>, &Cell<bool>),
) -> io::Result<LineStream> {
    let began = Instant::now();
    // One that broke down here starts again from its journal.
    drop(own.borrow_mut().take());
    loop {
        match open_stream(journal, client, session).await {
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied) => {
                return Err(error);
            }
            Ok(stream) => {
                is_guest.set(true);
                return Ok(stream);
            }
            // Nobody is there, or not yet again.
            Err(_) if is_guest.get() && began.elapsed() < TAKEOVER => {
                sleep(RETRY).await;
                continue;
            }
            Err(_) => {}
        }
        match start(organism) {
            Ok(running) => {
                is_guest.set(false);
                let running = Arc::new(running);
                *own.borrow_mut() = Some(running.clone());
                let (here, there) = tokio::io::duplex(PIPE);
                let (client, session) = (client.cloned(), session.to_owned());
                let (tell, told) = tokio::sync::oneshot::channel();
                tokio::spawn(async move {
                    if let Err(refused) = running.serve_mcp(client, &session, there).await {
                        let _ = tell.send(refused);
                    }
                });
                // A client that can't be served is refused before anything is read.
                return match timeout(RETRY, told).await {
                    Ok(Ok(refused)) => Err(io::Error::new(io::ErrorKind::InvalidInput, refused.to_string())),
                    _ => Ok(LineStream::new(here)),
                };
            }
            Err(Starting::Busy) if began.elapsed() < BUSY => sleep(RETRY).await,
            Err(Starting::Busy) => {
                let why = format!(
                    "another process holds the journal {}, and its socket doesn't answer: end it, or start the organism with \
                     `systole run`",
                    journal.display()
                );
                return Err(io::Error::other(why));
            }
            Err(Starting::Failed(why)) => return Err(io::Error::other(why)),
        }
    }
}

/// Reason why the organism doesn't run in this process.
enum Starting {
    /// Another process has its journal.
    Busy,
    Failed(String),
}

fn start(organism: &Path) -> Result<ConfiguredOrganism, Starting> {
    let failed = |why: String| Starting::Failed(why);
    let config = Config::load(organism)
        .map_err(|findings| failed(findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    // Nobody is at the terminal: it is the host's.
    let console = Console::new(Keyboard::lines(io::empty()), Arc::new(|_: &str| ()));
    let starting = |error: LaunchError| match &error {
        LaunchError::Start(StartError::Journal(journal)) if journal.kind() == JournalErrorKind::InUse => Starting::Busy,
        // That of the same organism, whose process is about to serve its socket, or to end.
        LaunchError::Gateway(GatewayError::Listen { cause, .. }) if cause.kind() == io::ErrorKind::AddrInUse => {
            Starting::Busy
        }
        _ => failed(error.to_string()),
    };
    let mut builder = config.into_builder(Some(&console)).map_err(starting)?;
    builder.organism = builder.organism.log_levels(log::set);
    builder.start(&[]).map_err(starting)
}
