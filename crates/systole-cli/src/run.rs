//! `systole run`: an organism, the messages that the client `cli` sends it, and their answers.

mod ask;
mod input;
mod launch;
mod missing_parties;
#[cfg_attr(not(feature = "gateway"), path = "run/no_nodes.rs")]
mod nodes;
mod once;
mod watch;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use systole::config::{Config, ConfiguredOrganism};
use systole::journal::JournalErrorKind;
use systole::listeners::human::Console;
use systole::process::{conceal, hurry_ends, kill_all};
use systole::runtime::{Breakdown, Client, Events, Organism, Reader, SendError, Unread};
use systole_core::vocab::{Name, ThreadId};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at};

use super::failure::{Failure, INTERRUPTED};
use super::screen::Screen;
pub(super) use ask::{Ask, ask};
use input::{Input, Message, Taken};
use launch::{Launched, Stage};
use nodes::NodeOf;
use systole::operations::Act;
use systole::process::signals::{Heard, Signals};
use watch::Watch;

/// Name of the client that sends envelopes from files and standard input.
pub(super) const CLIENT: &str = "cli";
/// Time limit of a drain, before the rest is cancelled.
const DRAIN: Duration = Duration::from_secs(60);
/// Time limit of a drain where agents elsewhere may take days: their messages wait in the journal.
const REMOTE_DRAIN: Duration = Duration::from_secs(5);
/// Time limit for the end of cancelled work.
const GRACE: Duration = Duration::from_secs(2);
/// Wait before a refused message is offered again.
const RETRY: Duration = Duration::from_millis(5);
/// First and longest wait between two restarts.
const RESTART: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Interval of drawings of the tree.
const FRAME: Duration = Duration::from_millis(100);
/// Time for which events are gathered between two writes: a single one is shown at once.
const GATHER: Duration = Duration::from_millis(2);
/// Exit code where questions to people wait without a keyboard.
const UNANSWERED: u8 = 4;

const HELP: &str = "\
The client 'cli' sends the messages: payloads that it may call, or envelopes around them, as `systole example --envelope` \
prints them. Answers go to standard output, events and the log to standard error. Each answer is an envelope with a line \
feed behind it. Its text may have line feeds, too: with --print0 programs can separate the envelopes by a NUL.

If the organism has people as listeners, standard input is their keyboard. If standard input is named as a file (-), \
their keyboard is the terminal. Questions go to the terminal of the keyboard, so 2>FILE leaves it to them.

The first SIGINT or SIGTERM ends the organism after its work in flight; a second one ends it at once. SIGHUP does so, too, if the \
program has a terminal; without one it changes the organism to what its file says by now, as `systole reload` does. \
SYSTOLE_LOG sets the level of the log: error, warn, info (the default), debug or trace.

Exit codes: 0 success, 1 an answer was a fault (with --until-idle), work was cut off, or answers stayed unread, 2 the organism \
could not start, 3 it could not go on (its journal can't be written, or a thread of it failed), 4 only questions to people are \
left, and there is no keyboard to answer them (with --until-idle), 130 a second signal stopped it.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Run {
    /// The organism.yaml
    organism: PathBuf,
    /// Files of messages, sent one after the other; - is standard input, the default
    files: Vec<PathBuf>,
    /// End when nothing is left to do: exit 0, or 1 if an answer was a fault
    #[arg(long)]
    until_idle: bool,
    /// Number of shards; one per processor by default
    #[arg(long, value_name = "N", value_parser = shards)]
    shards: Option<u16>,
    /// If the organism can't go on, such as after a full disk, start it again from its journal as soon as the journal can be
    /// written; by default the program exits with 3
    #[arg(long)]
    restart: bool,
    /// Start the organism again when one of its files changes: organism.yaml, schemas, instructions, scripts, programs in its
    /// folder, and files of messages, which are sent again. If `systole check` refuses a change, its mistakes are shown, and
    /// the organism goes on unchanged
    #[arg(long, conflicts_with = "until_idle")]
    watch: bool,
    /// Send all messages of the files again. By default a durable organism gets each message of a file once, over all runs: the
    /// id of its envelope identifies it, else the file and its content
    #[arg(long)]
    again: bool,
    /// End the open work of a listener or client that organism.yaml no longer declares. Without this option such a start is
    /// refused
    #[arg(long, value_name = "NAME")]
    drop: Vec<Name>,
    /// Name of this node, if the organism has nodes (`cluster:`); before SYSTOLE_NODE and organism.yaml
    #[arg(long, value_name = "NAME")]
    node: Option<Name>,
    /// URL by which the other nodes reach this one; before SYSTOLE_NODE_URL and organism.yaml
    #[arg(long, value_name = "URL")]
    node_url: Option<String>,
    /// Print a link that signs an operator in at the console (`console: true`), once and within ten minutes
    #[arg(long)]
    open: bool,
    /// End each envelope on standard output with a NUL, which XML can't contain, instead of a line feed
    #[arg(short = '0', long)]
    print0: bool,
    /// Print events and the log as JSON objects, one a line
    #[arg(long)]
    json: bool,
    /// Show no events, and only warnings and errors of the log, unless SYSTOLE_LOG sets another level
    #[arg(short, long)]
    quiet: bool,
    /// A message that was given as an argument; no file is read then.
    #[arg(skip)]
    message: Option<Bytes>,
    /// True where a fault is the end of the run, and the events before it tell why.
    #[arg(skip)]
    tells_refusals: bool,
}

impl Run {
    /// A run of one shard without files that shows no events but those that tell why the answer is a fault.
    fn quietly(organism: PathBuf) -> Self {
        let (files, drop) = (Vec::new(), Vec::new());
        let (until_idle, restart, watch, again, open, print0, json) = (false, false, false, false, false, false, false);
        Self {
            organism,
            files,
            until_idle,
            shards: Some(1),
            restart,
            watch,
            again,
            drop,
            node: None,
            node_url: None,
            open,
            print0,
            json,
            quiet: true,
            message: None,
            tells_refusals: true,
        }
    }

    /// Returns whether messages of files are sent that were sent before.
    fn sends_again(&self) -> bool {
        self.again || self.watch
    }
}

fn shards(text: &str) -> Result<u16, String> {
    let count = text.parse().ok().filter(|count| (1..=1024).contains(count));
    count.ok_or_else(|| "write a whole number from 1 to 1024".to_owned())
}

/// Runs an organism until it is idle or stopped.
pub(super) fn run(args: &Run) -> Result<ExitCode, Failure> {
    conceal().map_err(Failure::System)?;
    let mut stage = Stage::set(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::System)?;
    // A signal during the start stops the organism in order once it has started.
    let mut signals = runtime.block_on(async { Signals::listen() }).map_err(Failure::System)?;
    let node = nodes::join(&mut stage, args)?;
    // A start that fails drops runtimes of its own, which none may do inside of another one.
    let first = if nodes::is_alone(&node) { Some(stage.launch(args)?) } else { None };
    let conduct = async {
        let first = match first {
            Some(first) => Some(first),
            None => nodes::launch(&mut stage, args, &node, &mut signals).await?,
        };
        let Some(mut launched) = first else { return Ok(nodes::leave(node, ExitCode::SUCCESS).await) };
        let faulted = Arc::<AtomicBool>::default();
        let mut watch = stage.watch.take();
        loop {
            let Launched { running, durable, drain, events } = launched;
            let (screen, console) = (stage.screen.clone(), stage.console.clone());
            let client = running.organism.client(CLIENT).ok();
            let organism = running.organism.clone();
            let answers = Answers { client, organism, screen: screen.clone(), faulted: faulted.clone() };
            let (open, reader) = (VecDeque::new(), Some(running.organism.reader()));
            let mut session = Session { running, durable, drain, answers, reader, screen, console, signals, open };
            let ended = session.conduct(events, &mut stage.input, &mut watch, args.until_idle).await;
            signals = session.signals;
            // The resources of the organism are free now: its journal, its address.
            drop((session.running, session.answers));
            match ended {
                Err(Failure::Broken(why)) if nodes::stands_by_again(&node, &why, args.restart) => {
                    match nodes::again(&mut stage, args, &node, &mut signals, &why).await? {
                        Some(again) => launched = again,
                        None => return Ok(nodes::leave(node, ExitCode::SUCCESS).await),
                    }
                }
                // Two that take a journal from each other would go on for ever.
                Err(Failure::Broken(why)) if args.restart && !is_fenced(&why) => {
                    stage.screen.note(&format!("{why}: the organism starts again when that is over"));
                    match again(&mut stage, args, &mut signals).await? {
                        Some(again) => launched = again,
                        None => return Err(Failure::Broken(why)),
                    }
                }
                Ok(Ended::Changed(config)) => {
                    match changed(&mut stage, args, (*config, &node), &mut watch, &mut signals).await? {
                        Some(again) => launched = again,
                        None => return Ok(nodes::leave(node, ExitCode::SUCCESS).await),
                    }
                }
                Ok(Ended::Done(code)) => return Ok(nodes::leave(node, code).await),
                Err(failure) => {
                    nodes::leave(node, ExitCode::SUCCESS).await;
                    return Err(failure);
                }
            }
        }
    };
    let code = runtime.block_on(conduct);
    // A read of standard input can't be interrupted; nothing else is left that would take time.
    runtime.shutdown_background();
    code
}

/// Returns whether another process has taken the journal over.
fn is_fenced(why: &Breakdown) -> bool {
    matches!(why, Breakdown::Journal(error) if error.kind() == JournalErrorKind::Fenced)
}

/// Starts an organism again as soon as it can be started; none if the program is stopped before.
async fn again(stage: &mut Stage, args: &Run, signals: &mut Signals) -> Result<Option<Launched>, Failure> {
    let (mut pause, most) = RESTART;
    loop {
        tokio::select! {
            () = sleep(pause) => {}
            () = signals.stop() => return Ok(None),
        }
        pause = (pause * 2).min(most);
        match stage.launch(args) {
            Ok(launched) => return Ok(Some(launched)),
            // The problem may be over at the next try.
            Err(failure) => stage.screen.note(&format!("the organism can't start again yet: {failure}")),
        }
    }
}

/// Starts a changed organism; if it can't start, waits for the next change. None if the program is stopped before.
async fn changed(
    stage: &mut Stage,
    args: &Run,
    (mut config, node): (Config, &NodeOf),
    watch: &mut Option<Watch>,
    signals: &mut Signals,
) -> Result<Option<Launched>, Failure> {
    loop {
        nodes::release(node).await;
        stage.reread(args, config)?;
        let failure = match nodes::launch(stage, args, node, signals).await {
            Ok(launched) => return Ok(launched),
            Err(failure) => failure,
        };
        stage.screen.note(&format!("the organism can't start: {failure}"));
        tokio::select! {
            (_, next) = watch::next(watch, &stage.screen) => config = next,
            () = signals.stop() => return Ok(None),
        }
    }
}

struct Session {
    running: ConfiguredOrganism,
    /// True if the organism has a journal.
    durable: bool,
    /// The time for work in flight when it ends, if its file says so.
    drain: Option<Duration>,
    answers: Answers,
    /// While it is there, the end of the organism waits for answers that are printed.
    reader: Option<Reader>,
    screen: Arc<Screen>,
    console: Console,
    signals: Signals,
    /// The latest conversations in which a program on standard input may go on.
    open: VecDeque<ThreadId>,
}

/// Most conversations that are left when standard input ends; older ones close 15 minutes after their last message.
const MOST_OPEN: usize = 1 << 16;

/// Reason why the main loop ended.
enum End {
    Idle,
    Signal,
    /// An operator has ended it.
    Drained,
    Broken,
    /// A file of the organism changed, which now reads so.
    Changed(PathBuf, Box<Config>),
}

/// The end of an organism.
enum Ended {
    Done(ExitCode),
    /// A changed configuration, by which the organism starts again.
    Changed(Box<Config>),
}

/// The end of the work in flight.
#[derive(Debug, Clone, Copy)]
enum Drained {
    /// All of it ended, and its answers are printed.
    Whole,
    /// The rest was cancelled, or its answers are unread.
    Cut,
    /// A signal ended it.
    Interrupted,
}

impl Drained {
    fn code(self) -> ExitCode {
        match self {
            Self::Whole => ExitCode::SUCCESS,
            Self::Cut => ExitCode::FAILURE,
            Self::Interrupted => ExitCode::from(INTERRUPTED),
        }
    }
}

impl Session {
    async fn conduct(
        &mut self,
        events: Option<Events>,
        input: &mut Option<Input>,
        watch: &mut Option<Watch>,
        until_idle: bool,
    ) -> Result<Ended, Failure> {
        let events = events.map(|events| tokio::spawn(show(events, self.screen.clone(), self.console.clone())));
        let ended = self.exchange(input, watch, until_idle).await;
        let served = self.running.close_entrances();
        let patience = self.drain.unwrap_or(if served { REMOTE_DRAIN } else { DRAIN });
        let ended = match ended {
            Ok(End::Idle) => {
                let open = self.console.people().open_questions();
                let code = if note_questions(&open, &self.screen, self.durable) {
                    ExitCode::from(UNANSWERED)
                } else if self.answers.faulted.load(Ordering::Relaxed) {
                    ExitCode::FAILURE
                } else {
                    ExitCode::SUCCESS
                };
                drop(self.reader.take());
                self.running.organism.drain(Duration::ZERO).await;
                Ok(Ended::Done(code))
            }
            Ok(End::Changed(file, config)) => {
                let (file, seconds) = (file.display(), patience.as_secs());
                self.screen.note(&format!(
                    "{file} changed: the organism starts again, after the work in flight, {seconds} s at most; a signal stops it at once"
                ));
                let drained = self.drain(patience).await;
                drained.map(|drained| match drained {
                    Drained::Interrupted => Ended::Done(drained.code()),
                    Drained::Whole | Drained::Cut => Ended::Changed(config),
                })
            }
            Ok(End::Signal) => {
                let seconds = patience.as_secs();
                self.screen.note(&format!(
                    "stopping: work in flight goes on for {seconds} s at most; a second signal stops at once"
                ));
                self.drain(patience).await.map(|drained| Ended::Done(drained.code()))
            }
            // Callers that wait have a fault by now, which is still to be printed.
            Ok(End::Broken | End::Drained) => {
                self.drain(Duration::ZERO).await.map(|drained| Ended::Done(drained.code()))
            }
            Err(failure) => {
                drop(self.reader.take());
                self.running.organism.drain(Duration::ZERO).await;
                Err(failure)
            }
        };
        // The last events; a listener that never ends holds the channel open, and standard error may have no reader.
        let end = Instant::now() + GRACE;
        if let Some(events) = events {
            let _ = timeout_at(end, events).await;
        }
        self.screen.finish();
        self.screen.flush(end.saturating_duration_since(Instant::now()));
        match self.running.organism.breakdown() {
            Some(why) => Err(Failure::Broken(why)),
            None => ended,
        }
    }

    /// Sends messages and prints answers, until there is a reason to stop.
    async fn exchange(
        &mut self,
        input: &mut Option<Input>,
        watch: &mut Option<Watch>,
        until_idle: bool,
    ) -> Result<End, Failure> {
        let mut refused: Option<Message> = None;
        let mut retry = std::pin::pin!(sleep(Duration::ZERO));
        let mut written = 0;
        loop {
            let reading = input.is_some() && refused.is_none();
            tokio::select! {
                unread = self.answers.next() => match unread {
                    Some(unread) => self.answers.print(unread),
                    None => return Ok(End::Signal),
                },
                error = self.screen.failed() => return Err(error.into()),
                // There may be room for a message that was refused.
                () = self.screen.took_more_than(written), if refused.is_some() => {
                    written = self.screen.progress().taken;
                    retry.as_mut().reset(Instant::now());
                }
                taken = next(input), if reading => match taken {
                    Some(Taken::Message(message)) => {
                        refused = self.sift(input, message).and_then(|message| self.send(message));
                    }
                    Some(Taken::Refused(why)) => self.refuse(&why),
                    Some(Taken::Failed(failure)) => return Err(failure),
                    None => {
                        let told = input.take().into_iter().flat_map(|mut input| input.told());
                        told.for_each(|told| self.screen.note(&told));
                        self.leave();
                    }
                },
                () = &mut retry, if refused.is_some() => {
                    refused = refused.take().and_then(|message| self.send(message));
                    retry.as_mut().reset(Instant::now() + RETRY);
                }
                () = self.running.organism.run_until_idle(), if until_idle && input.is_none() && refused.is_none() => {
                    return self.print_rest().await;
                }
                heard = self.signals.next() => match heard {
                    Heard::Stop => return Ok(End::Signal),
                    Heard::Reload => self.reload(),
                },
                (file, config) = watch::next(watch, &self.screen) => return Ok(End::Changed(file, Box::new(config))),
                _ = self.running.organism.broken() => return Ok(End::Broken),
                () = last_answers(&self.reader) => return Ok(End::Drained),
            }
        }
    }

    /// Changes the organism to what its file says by now; the log tells what came of it.
    fn reload(&self) {
        let (organism, screen) = (self.running.organism.clone(), self.screen.clone());
        tokio::spawn(async move {
            let by = Name::parse("sighup").expect("it is a name");
            if let Err(error) = organism.operations(by).act(&Act::Reload {}).await {
                screen.note(&format!("the organism goes on unchanged: {error}"));
            }
        });
    }

    /// Prints the answers that are left, however long their reader takes.
    async fn print_rest(&mut self) -> Result<End, Failure> {
        loop {
            tokio::select! {
                biased;
                () = self.signals.stop() => return Ok(End::Signal),
                _ = self.running.organism.broken() => return Ok(End::Broken),
                error = self.screen.failed() => return Err(error.into()),
                () = self.screen.room() => match self.answers.try_next() {
                    Some(unread) => self.answers.print(unread),
                    None => break,
                },
            }
        }
        tokio::select! {
            () = self.signals.stop() => Ok(End::Signal),
            _ = self.running.organism.broken() => Ok(End::Broken),
            error = self.screen.failed() => Err(error.into()),
            () = self.screen.written() => Ok(End::Idle),
        }
    }

    /// Lets the work end and prints the answers that still come; a second signal ends it at once.
    async fn drain(&mut self, patience: Duration) -> Result<Drained, Failure> {
        // Answers that were made before get their time in any case.
        let deadline = Instant::now() + patience.max(GRACE);
        let organism = self.running.organism.clone();
        // The drain waits for no person. Only a journal keeps their questions: others end while it begins.
        if self.durable {
            note_questions(&self.console.people().open_questions(), &self.screen, true);
        }
        // The organism keeps its shards until this is dropped: what is read behind their end comes again with the next start.
        let reader = self.reader.take();
        let mut drained = std::pin::pin!(organism.drain(patience));
        let mut reading = true;
        loop {
            tokio::select! {
                _ = &mut drained => break,
                () = last_answers(&reader) => break,
                error = self.screen.failed() => return Err(error.into()),
                unread = self.answers.next(), if reading => match unread {
                    Some(unread) => self.answers.print(unread),
                    None => reading = false,
                },
                () = self.signals.stop() => {
                    drop(reader);
                    return Ok(self.interrupt().await);
                }
            }
        }
        let mut unread = 0;
        if self.durable {
            unread = self.print_while_read(deadline).await?;
        }
        drop(reader);
        let drained = tokio::select! {
            drained = organism.drained() => drained,
            () = self.signals.stop() => return Ok(self.interrupt().await),
        };
        // Without a journal, or with one that can't be written, cancelled work has its faults by now.
        if !self.durable || organism.breakdown().is_some() {
            unread = self.print_while_read(deadline.max(Instant::now() + GRACE)).await?;
        }
        let cut = self.console.people().cut_questions();
        note_questions(&cut, &self.screen, false);
        Ok(if drained.idle && unread == 0 && cut.is_empty() { Drained::Whole } else { Drained::Cut })
    }

    /// Ends the organism at once.
    async fn interrupt(&self) -> Drained {
        // A process dies once its message is over: as a failure of the message its death would be an answer.
        hurry_ends();
        let _ = timeout(GRACE, self.running.organism.drain(Duration::ZERO)).await;
        // Processes of a stuck shard.
        kill_all();
        Drained::Interrupted
    }

    /// Prints the answers that are left, for as long as standard output takes some within [`GRACE`], up to the deadline;
    /// a signal ends it. Returns the number of those that stay unread, which it notes.
    async fn print_while_read(&mut self, deadline: Instant) -> Result<usize, Failure> {
        let is_over = loop {
            while self.screen.progress().has_room()
                && let Some(unread) = self.answers.try_next()
            {
                self.answers.print(unread);
            }
            let progress = self.screen.progress();
            if progress.unwritten() == 0 {
                break false;
            }
            let most = deadline.min(Instant::now() + GRACE);
            tokio::select! {
                error = self.screen.failed() => return Err(error.into()),
                () = self.signals.stop() => break true,
                took = timeout_at(most, self.screen.took_more_than(progress.taken)) => if took.is_err() { break true },
            }
        };
        let mut unread = 0;
        if is_over {
            unread = self.screen.progress().unwritten() + std::iter::from_fn(|| self.answers.try_next()).count();
            let fate = if self.durable { "they come again with the next start" } else { "they are lost" };
            self.screen.note(&format!(
                "{unread} answers are unread, because the reader of standard output did not take them: {fate}"
            ));
        }
        Ok(unread)
    }

    /// Returns a message with its key, unless it was sent before.
    fn sift(&self, input: &mut Option<Input>, message: Message) -> Option<Message> {
        match (input, &self.answers.client) {
            (Some(input), Some(client)) => input.sift(message, client),
            _ => Some(message),
        }
    }

    /// Offers a message; returns it if there is no room for it at the moment.
    fn send(&mut self, message: Message) -> Option<Message> {
        let client = self.answers.client.as_ref()?;
        let bytes = message.bytes.clone();
        let sent = match &message.key {
            Some(key) => client.send_under(key.clone(), bytes),
            None if message.last => client.send_last(bytes),
            None => client.send(bytes),
        };
        match sent {
            Ok(_) if message.last => None,
            Ok(conversation) => {
                self.open.push_back(conversation);
                if self.open.len() > MOST_OPEN {
                    self.open.pop_front();
                }
                None
            }
            Err(SendError::Overloaded(_) | SendError::Unread | SendError::LogFull) => Some(message),
            Err(error) => {
                self.refuse(&error.to_string());
                None
            }
        }
    }

    /// Leaves the conversations in which no message can follow, since standard input has ended.
    fn leave(&mut self) {
        let open = std::mem::take(&mut self.open);
        self.answers.client.iter().for_each(|client| open.iter().for_each(|&conversation| client.leave(conversation)));
    }

    /// Notes a message that was refused, which counts as a fault.
    fn refuse(&mut self, why: &str) {
        self.answers.faulted.store(true, Ordering::Relaxed);
        self.screen.note(why);
    }
}

/// Waits until a drain has let the work end; for ever without a reader.
async fn last_answers(reader: &Option<Reader>) {
    match reader {
        Some(reader) => reader.last_answers().await,
        None => std::future::pending().await,
    }
}

/// Notes the questions to people that the end leaves open; returns whether there are any.
fn note_questions(open: &[String], screen: &Screen, durable: bool) -> bool {
    if open.is_empty() {
        return false;
    }
    let fate = match durable {
        true => {
            "they wait in the journal (`systole inbox` lists them) for a start at a terminal, or for people elsewhere"
        }
        false => "they end with this run, since the organism has no journal (`durability`)",
    };
    screen.note(&format!("questions wait for a person: {}: {fate}", open.join(", ")));
    true
}

/// The answers to the client of the command line, on their way to standard output.
struct Answers {
    /// `None` if the organism has no client of the command line.
    client: Option<Client>,
    organism: Arc<Organism>,
    screen: Arc<Screen>,
    /// True if a fault came back.
    faulted: Arc<AtomicBool>,
}

impl Answers {
    /// Prints an answer. Only one that standard output has taken counts as read: if the process ends before, it comes
    /// again with the next start.
    fn print(&self, unread: Unread) {
        let envelope = self.organism.sign(&unread.egress().envelope);
        let faulted = self.faulted.clone();
        self.screen.envelope(&envelope, move || {
            if unread.read().fault.is_some() {
                faulted.store(true, Ordering::Relaxed);
            }
        });
    }

    /// The next answer, once standard output has room for it; waits for ever without a client.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    async fn next(&self) -> Option<Unread> {
        self.screen.room().await;
        match &self.client {
            Some(client) => client.receive_unread().await,
            None => std::future::pending().await,
        }
    }

    /// The next answer, if there is one.
    fn try_next(&self) -> Option<Unread> {
        self.client.as_ref().and_then(Client::try_receive_unread)
    }
}

async fn next(input: &mut Option<Input>) -> Option<Taken> {
    match input {
        Some(input) => input.next().await,
        None => None,
    }
}

/// Most events that are shown with one write.
const BURST: usize = 1024;

/// Shows events until the organism has ended.
async fn show(mut events: Events, screen: Arc<Screen>, console: Console) {
    let ticks = screen.draws() || screen.has_desk();
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            observed = async { screen.event_room().await; events.next().await } => match observed {
                Some(first) => {
                    let there = std::iter::from_fn(|| events.try_next());
                    screen.observed(std::iter::once(first).chain(there).take(BURST));
                    sleep(GATHER).await;
                }
                None => return,
            },
            _ = frames.tick(), if ticks => {
                if screen.draws() {
                    screen.refresh();
                }
                if screen.is_torn() {
                    console.redraw();
                }
            }
        }
    }
}
