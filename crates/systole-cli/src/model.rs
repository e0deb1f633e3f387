//! `systole model serve`: a script answers clients of providers' protocols.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use systole::config::load_script;
use systole::model::ModelServer;
use systole::process::signals::Signals;
use tracing::Level;

use super::failure::Failure;
use super::screen::{PeopleTerminal, Screen, Style};
use super::{log, print};

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Serve the answers of a script by the protocols of OpenAI and Anthropic
    Serve(Serve),
}

const HELP: &str = "\
The script is that of a backend with `provider: scripted` (docs/model.md). Clients take any key, and the printed URL as that of the \
provider (those of OpenAI with /v1 behind it): /v1/chat/completions, /v1/responses and /v1/messages, as a whole or as a stream. A rule with \
`call: { name, arguments }` answers a client that offers that tool with a call of it; a rule with `listener` answers requests \
for the model of that name. If no rule fits, the answer is the status 400, and the log says what was asked.

Exit codes: 0 a signal has ended the server, 2 it could not start.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Serve {
    /// The script
    script: PathBuf,
    /// The address to listen at; a port of 0 is any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8430")]
    listen: SocketAddr,
}

pub(super) fn run(action: &Action) -> Result<ExitCode, Failure> {
    let Action::Serve(args) = action;
    let script = load_script(&args.script).map_err(Failure::Config)?;
    let screen = Arc::new(Screen::standard(Style::Lines, PeopleTerminal::None).without_events());
    log::start(&screen, Level::INFO);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::System)?;
    runtime.block_on(async {
        let mut signals = Signals::listen().map_err(Failure::System)?;
        let server = ModelServer::bind(script, args.listen).await.map_err(|error| {
            let why = format!("can't listen at {}: {error}: name another address with --listen", args.listen);
            Failure::unusable(why)
        })?;
        let address = server.address().map_err(Failure::System)?;
        if !address.ip().is_loopback() {
            tracing::warn!(%address, "other machines can reach the server, which asks for no key");
        }
        print::line(format_args!("http://{address}"))?;
        server.serve(signals.stop()).await;
        Ok::<(), Failure>(())
    })?;
    screen.finish();
    Ok(ExitCode::SUCCESS)
}
