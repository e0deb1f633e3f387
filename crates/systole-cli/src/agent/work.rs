//! Workers on one mailbox, until the gateway or a signal ends them.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::Level;

use super::At;
use crate::failure::{Failure, INTERRUPTED};
use crate::log;
use crate::screen::{PeopleTerminal, Screen, Style};
use systole::process::kill_all;
use systole::process::signals::Signals;
use systole::remote::{AgentState, Handler, LeaseDelivery, LoopEnd, LoopOptions, Mailbox, Presence, run_agent_loop};

/// Time that standard error has to take the last lines.
const GRACE: Duration = Duration::from_secs(2);

/// Handles messages until the gateway or a signal ends it.
pub(super) fn work(at: &At, handler: Arc<dyn Handler>) -> Result<ExitCode, Failure> {
    let mailbox = at.mailbox()?;
    let screen = Arc::new(Screen::standard(Style::Lines, PeopleTerminal::None));
    log::start(&screen, Level::INFO);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::System)?;
    let code = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(Failure::System)?;
        tokio::select! {
            greeted = greet(&mailbox) => greeted?,
            () = signals.stop() => return Ok(ExitCode::SUCCESS),
        }
        all(at, mailbox, handler, &mut signals).await
    });
    runtime.shutdown_background();
    screen.flush(GRACE);
    code
}

/// Sends a first heartbeat. A gateway that can't be reached is waited for; a refusal is final.
async fn greet(mailbox: &Mailbox) -> Result<(), Failure> {
    let name = mailbox.name();
    match mailbox.heartbeat().await {
        Ok(AgentState::Removed) => Err(Failure::unusable(format!(
            "the gateway doesn't accept that token for '{name}': make one with 'systole token new {name}'"
        ))),
        Ok(AgentState::Active | AgentState::Paused) => {
            tracing::info!(listener = %name, "the gateway knows the agent");
            Ok(())
        }
        Err(error) if error.status().is_some_and(|status| (400..500).contains(&status) && status != 429) => {
            Err(Failure::unusable(error.to_string()))
        }
        Err(error) if error.is_unanswered() => Ok(()),
        Err(error) => {
            tracing::warn!(%error, "the gateway refuses requests at the moment");
            Ok(())
        }
    }
}

async fn all(at: &At, mailbox: Mailbox, handler: Arc<dyn Handler>, signals: &mut Signals) -> Result<ExitCode, Failure> {
    let (stop, stopped) = watch::channel(false);
    let mut running = JoinSet::new();
    for _ in 0..at.workers {
        let delivery = LeaseDelivery::new(mailbox.clone()).visibility(at.lease);
        running.spawn(worker(mailbox.clone(), delivery, handler.clone(), stopped.clone()));
    }
    let mut why = LoopEnd::Stopped;
    loop {
        tokio::select! {
            end = running.join_next() => match end {
                Some(Ok(LoopEnd::Stopped)) => {}
                Some(Ok(end)) => {
                    why = end;
                    stop.send_replace(true);
                }
                Some(Err(error)) => return Err(Failure::unusable(format!("a worker broke: {error}"))),
                None => return verdict(why, &mailbox),
            },
            () = signals.stop() => {
                if stop.send_replace(true) {
                    kill_all();
                    return Ok(ExitCode::from(INTERRUPTED));
                }
            }
        }
    }
}

async fn worker(
    mailbox: Mailbox,
    mut delivery: LeaseDelivery,
    handler: Arc<dyn Handler>,
    stop: watch::Receiver<bool>,
) -> LoopEnd {
    let options = LoopOptions::default().stop(Some(stop));
    run_agent_loop(&mut delivery, &*handler, &mailbox, options).await
}

fn verdict(why: LoopEnd, mailbox: &Mailbox) -> Result<ExitCode, Failure> {
    match why {
        LoopEnd::Removed => Err(Failure::no(format!("the gateway no longer accepts '{}'", mailbox.name()))),
        LoopEnd::Refused => Err(Failure::unusable(format!(
            "the gateway gives no messages of '{name}' to this agent: an agent handles the messages of its own listener \
             with `mode: poll` or `mode: stream`; the gateway pushes those of `mode: push` to a URL",
            name = mailbox.name()
        ))),
        LoopEnd::Paused => {
            tracing::info!(listener = %mailbox.name(), "the agent was paused");
            Ok(ExitCode::SUCCESS)
        }
        LoopEnd::Stopped | LoopEnd::MaxIterations => Ok(ExitCode::SUCCESS),
    }
}
