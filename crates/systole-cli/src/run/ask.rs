//! `systole ask`: an organism, one message to it, and the one answer.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use systole::config::Config;
use systole::drafts::Drafts;
#[cfg(feature = "gateway")]
use systole::journal::NamedJournal;
use systole::listeners::human::Console;
use systole::process::conceal;
use systole::runtime::{Conversation, Events, Observed, Organism, SendError};
use systole_core::core::{Egress, EventKind};
use systole_core::vocab::QName;
#[cfg(feature = "gateway")]
use systole_core::vocab::XmlLimits;
#[cfg(feature = "gateway")]
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::{Catalog, Validator};
use tokio::time::{sleep, timeout};

use super::input::{Input, Message, Taken};
use super::launch::{Launched, Stage};
use super::{CLIENT, GRACE, RETRY, Run, UNANSWERED, note_questions};
use crate::event_line::EventLine;
use crate::failure::Failure;
use crate::json;
use crate::screen::Screen;
use crate::units;
#[cfg(feature = "gateway")]
use crate::{inbox, operate, print};
use systole::process::signals::Signals;

/// Time limit of work that an answer or a cancellation leaves behind: the end of its conversation among it, which a journal
/// gets.
const REST: Duration = Duration::from_millis(500);

const HELP: &str = "\
The organism starts, gets the message from the client 'cli', and ends after its answer; if it runs already, and has a \
journal, it gets the message and goes on. The payload of the answer is \
printed on standard output, as JSON if the message is JSON, with --stream behind what listeners wrote of it, on standard \
error. If it is a fault, standard error has what the pump refused of that which listeners wrote, with the rule. Other events \
are not shown, and only warnings and errors of the log, unless SYSTOLE_LOG sets another level.

Exit codes: 0 the answer was a reply, 1 it was a fault, or there was no answer, 2 the message could not be sent, 3 the \
organism could not go on, 4 the answer depends on a person, and there is no keyboard, 130 a signal stopped it.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Ask {
    /// The organism.yaml
    organism: PathBuf,
    /// The message: a payload that the client may call, as XML or as JSON such as {"add": {"a": 1}}, or an envelope around one;
    /// - reads it from standard input
    message: String,
    /// The longest time to wait for the answer, such as 30s; then the conversation is cancelled
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    within: Option<Duration>,
    /// Print the whole envelope of the answer
    #[arg(long)]
    envelope: bool,
    /// Show on standard error what models, workers and agents write of their messages, while they write it
    #[arg(long)]
    stream: bool,
}

/// Sends one message to an organism, and prints the answer.
pub(crate) fn ask(args: &Ask) -> Result<ExitCode, Failure> {
    conceal().map_err(Failure::System)?;
    let mut run = Run::quietly(args.organism.clone());
    let given = match args.message.as_str() {
        "-" => crate::file::from_stdin(crate::file::DOCUMENT)?.into(),
        message => Bytes::copy_from_slice(message.as_bytes()),
    };
    let survey = Stage::survey(&run)?;
    let is_json = json::is_json(&given);
    let given = if is_json { as_xml(&given, &survey.0)? } else { given };
    // The answer has the form of the message.
    let catalog = (is_json && !args.envelope).then(|| survey.0.catalog.clone());
    #[cfg(feature = "gateway")]
    if let Some(journal) = survey.0.journal.as_ref().filter(|journal| operate::is_served(journal)) {
        return online(args, journal, &given, catalog.as_ref());
    }
    run.message = Some(given);
    let mut stage = Stage::of(&run, survey)?;
    let Launched { running, durable, mut events, .. } = stage.launch(&run)?;
    let organism = &running.organism;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::System)?;
    let exchange = async {
        let mut signals = Signals::listen().map_err(Failure::System)?;
        let message = only(stage.input.as_mut()).await?;
        let client = organism.client(CLIENT).map_err(|error| Failure::unusable(error.to_string()))?;
        let mut conversation = client.converse();
        let mut drafts = args.stream.then(|| conversation.drafts());
        let answer = async {
            send(&mut conversation, message).await?;
            Ok::<_, Failure>(conversation.receive().await)
        };
        let answered = tokio::select! {
            biased;
            answer = answer => answer,
            () = show(drafts.as_mut(), &stage.screen) => Ok(None),
            _ = organism.broken() => Ok(None),
            // With a time limit people elsewhere may answer.
            () = waits_for_people(organism, &stage.console), if args.within.is_none() => {
                note_questions(&stage.console.people().open_questions(), &stage.screen, durable);
                return Ok((ExitCode::from(UNANSWERED), Duration::ZERO));
            }
            // Nobody is left who would read the answer.
            () = elapse(args.within) => {
                conversation.cancel();
                return Err(Failure::no("no answer came in time: its conversation is cancelled"));
            }
            () = signals.stop() => {
                conversation.cancel();
                return Ok((ExitCode::from(super::INTERRUPTED), REST));
            }
        };
        drafts.iter_mut().for_each(|drafts| {
            std::iter::from_fn(|| drafts.try_next()).for_each(|record| stage.screen.draft(&record.news));
        });
        // The answer counts as read once standard output has it.
        let printed = async {
            let answer = answered?;
            if answer.as_ref().is_some_and(|answer| answer.fault.is_some()) {
                tell_refusals(events.as_mut(), &stage.screen);
            }
            let code = print((organism, &stage.screen), answer, args.envelope, catalog.as_ref())?;
            tokio::select! {
                () = stage.screen.written() => Ok(code),
                error = stage.screen.failed() => Err(error.into()),
                () = signals.stop() => Ok(ExitCode::from(super::INTERRUPTED)),
            }
        };
        let code = printed.await;
        drop(conversation);
        code.map(|code| (code, REST))
    };
    let code = runtime.block_on(async {
        let ended = exchange.await;
        running.close_entrances();
        let rest = ended.as_ref().map_or(REST, |(_, rest)| *rest);
        let _ = timeout(GRACE, organism.drain(rest)).await;
        organism.breakdown().map_or(ended.map(|(code, _)| code), |why| Err(Failure::Broken(why)))
    });
    stage.screen.finish();
    stage.screen.flush(GRACE);
    // A read of standard input can't be interrupted.
    runtime.shutdown_background();
    code
}

/// Lets the running organism take the message.
#[cfg(feature = "gateway")]
fn online(args: &Ask, journal: &NamedJournal, message: &[u8], catalog: Option<&Catalog>) -> Result<ExitCode, Failure> {
    let answer = operate::ask(journal, CLIENT, message.to_vec(), args.within, args.stream)?;
    if let Some(people) = answer["people"].as_array() {
        let conversation = answer["conversation"].as_str().unwrap_or_default();
        for question in people {
            print::note(format_args!("{}", inbox::waits(question)));
        }
        print::note(format_args!(
            "answer with `systole inbox answer`, or wait here with --within; conversation {conversation} goes on, and the \
             organism prints its answer"
        ));
        return Ok(ExitCode::from(UNANSWERED));
    }
    if answer["ended"] == true {
        let conversation = answer["conversation"].as_str().unwrap_or_default();
        return Err(Failure::no(format!(
            "the organism ended before the answer: conversation {conversation} goes on at its next start"
        )));
    }
    let text = if args.envelope { &answer["envelope"] } else { &answer["payload"] };
    let text = text.as_str().ok_or_else(|| Failure::no("the conversation closed without an answer"))?;
    let payload = catalog.and_then(|catalog| {
        let payload = canonicalize(&text.to_owned().into(), &XmlLimits::UNLIMITED).ok()?;
        json::of_xml(&payload, catalog)
    });
    print::document(payload.unwrap_or_else(|| format!("{text}\n")).as_bytes())?;
    if !answer["fault"].is_string() {
        return Ok(ExitCode::SUCCESS);
    }
    let conversation = answer["conversation"].as_str().unwrap_or_default();
    print::note(format_args!("`systole thread show {conversation}` shows what went before, and what was refused"));
    Ok(ExitCode::FAILURE)
}

/// Shows drafts, for ever.
async fn show(drafts: Option<&mut Drafts>, screen: &Screen) {
    if let Some(drafts) = drafts {
        while let Some(record) = drafts.next().await {
            screen.draft(&record.news);
        }
    }
    // The answer has the last word.
    std::future::pending().await
}

/// Waits for the longest time to wait, if there is one.
async fn elapse(within: Option<Duration>) {
    match within {
        Some(within) => sleep(within).await,
        None => std::future::pending().await,
    }
}

/// Waits until only questions are left that nobody can answer here.
async fn waits_for_people(organism: &Organism, console: &Console) {
    loop {
        organism.run_until_idle().await;
        if !console.people().open_questions().is_empty() {
            return;
        }
        sleep(RETRY).await;
    }
}

/// The message, if there is one and no more.
async fn only(input: Option<&mut Input>) -> Result<Message, Failure> {
    let missing = || Failure::unusable("there is no message: write a payload, such as systole example prints");
    let input = input.ok_or_else(missing)?;
    let message = match input.next().await.ok_or_else(missing)? {
        Taken::Message(message) => message,
        Taken::Refused(why) => return Err(Failure::unusable(why)),
        Taken::Failed(failure) => return Err(failure),
    };
    match input.next().await {
        None => Ok(message),
        Some(Taken::Failed(failure)) => Err(failure),
        Some(_) => Err(Failure::unusable("there is more than one message: systole run sends them all")),
    }
}

/// Offers the message until there is room for it.
async fn send(conversation: &mut Conversation, message: Message) -> Result<(), Failure> {
    loop {
        match conversation.send_last(message.bytes.clone()) {
            Ok(()) => return Ok(()),
            Err(SendError::Overloaded(_) | SendError::Unread | SendError::LogFull) => sleep(RETRY).await,
            Err(error) => return Err(Failure::unusable(error.to_string())),
        }
    }
}

/// Says what the listeners wrote that was refused: the caller of a listener gets a fault that doesn't quote it.
fn tell_refusals(events: Option<&mut Events>, screen: &Screen) {
    let observed = events.into_iter().flat_map(|events| std::iter::from_fn(|| events.try_next()));
    for event in observed {
        if let Observed::Event(event) = event
            && let EventKind::Refused { .. } = event.kind
        {
            screen.note(&EventLine(&event).to_string());
        }
    }
}

/// The XML of a message that is JSON: a payload that the client of the command line may call.
fn as_xml(message: &[u8], config: &Config) -> Result<Bytes, Failure> {
    let client = config.blueprint.clients().map(|(_, client)| client).find(|client| client.name.as_str() == CLIENT);
    let may_be = |name: &QName| client.is_some_and(|client| client.calls.contains(name));
    let mut validator = Validator::new(Arc::new(config.catalog.clone()));
    let read = validator.payload_of_json(message, may_be, &config.blueprint.limits.xml);
    let payload = read.map_err(|refusal| Failure::unusable(refusal.mistakes().join("\n")))?;
    Ok(payload.payload().bytes().clone())
}

fn print(
    (organism, screen): (&Organism, &Screen),
    answer: Option<Egress>,
    envelope: bool,
    catalog: Option<&Catalog>,
) -> Result<ExitCode, Failure> {
    let answer = answer.ok_or_else(|| Failure::no("the conversation closed without an answer"))?;
    let json = catalog.and_then(|catalog| catalog.to_named_json(&answer.payload)).map(Bytes::from);
    let xml = if envelope { organism.sign(&answer.envelope) } else { answer.payload.bytes().clone() };
    screen.envelope(&json.unwrap_or(xml), || {});
    Ok(if answer.fault.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
