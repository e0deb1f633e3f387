//! Commands for a running organism: they go through the socket beside its journal.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use systole::gateway::{Method, stream_operator};
use systole::journal::NamedJournal;
use systole_core::vocab::Name;
use tokio::time::timeout;

use super::columns;
use super::draft_lines::DraftLines;
use super::failure::Failure;
use super::journal_args::JournalArgs;
use super::print;
use super::sought::Sought;

/// Longest wait for an answer of the organism itself.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause before a full organism is asked again.
const RETRY: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub(super) struct Cancel {
    /// The conversation; the last digits of its id are enough
    conversation: Sought,
    /// Only this thread of it, with all below it; the last digits of its id are enough
    #[arg(long, value_name = "ID")]
    thread: Option<Sought>,
    #[command(flatten)]
    of: JournalArgs,
}

#[derive(Debug, Args)]
pub(super) struct OneListener {
    /// The listener
    listener: Name,
    #[command(flatten)]
    of: JournalArgs,
}

#[derive(Debug, Args)]
pub(super) struct LogLevel {
    /// error, warn, info, debug or trace; or levels of parts, as info,systole::gateway=debug
    levels: String,
    #[command(flatten)]
    of: JournalArgs,
}

#[derive(Debug, Args)]
pub(super) struct Reload {
    #[command(flatten)]
    of: JournalArgs,
}

#[derive(Debug, Args)]
pub(super) struct Drain {
    /// Seconds for the work in flight, before the rest is left to the next start
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    within: u32,
    #[command(flatten)]
    of: JournalArgs,
}

#[derive(Debug, Args)]
pub(super) struct Top {
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: JournalArgs,
}

pub(super) fn cancel(args: &Cancel) -> Result<ExitCode, Failure> {
    let journal = args.of.journal()?;
    let reader = journal.read().map_err(Failure::store)?;
    let mut act = json!({ "act": "cancel", "conversation": args.conversation.find(&*reader)?.to_string() });
    if let Some(thread) = &args.thread {
        act["thread"] = thread.find(&*reader)?.to_string().into();
    }
    drop(reader);
    act_on(&journal, &act)
}

pub(super) fn pause(args: &OneListener) -> Result<ExitCode, Failure> {
    act_on(&args.of.journal()?, &json!({ "act": "pause", "listener": args.listener.as_str() }))
}

pub(super) fn resume(args: &OneListener) -> Result<ExitCode, Failure> {
    act_on(&args.of.journal()?, &json!({ "act": "resume", "listener": args.listener.as_str() }))
}

pub(super) fn log_level(args: &LogLevel) -> Result<ExitCode, Failure> {
    act_on(&args.of.journal()?, &json!({ "act": "log-level", "level": args.levels }))
}

pub(super) fn reload(args: &Reload) -> Result<ExitCode, Failure> {
    act_on(&args.of.journal()?, &json!({ "act": "reload" }))
}

pub(super) fn drain(args: &Drain) -> Result<ExitCode, Failure> {
    act_on(&args.of.journal()?, &json!({ "act": "drain", "within": args.within }))
}

/// Shows what the listeners of a running organism do, and its open conversations.
pub(super) fn top(args: &Top) -> Result<ExitCode, Failure> {
    let journal = args.of.journal()?;
    let listeners = look(&journal, "/v1/admin/listeners?limit=500")?;
    let conversations = look(&journal, "/v1/admin/conversations?state=open&limit=20")?;
    if args.json {
        print::json(&json!({ "listeners": listeners["items"], "conversations": conversations["items"] }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let row = |listener: &Value| {
        let state = match (&listener["paused"], &listener["rests"]) {
            (Value::String(since), _) => format!("paused since {since}"),
            (_, Value::Object(rest)) => {
                format!("rests from {} to {}: {}", text(&rest["since"]), text(&rest["until"]), text(&rest["why"]))
            }
            _ => String::new(),
        };
        let [name, running, concurrency, waiting] =
            ["listener", "running", "concurrency", "waiting"].map(|field| text(&listener[field]));
        [name, format!("{running} of {concurrency}"), waiting, state]
    };
    let rows: Vec<_> = listeners["items"].as_array().into_iter().flatten().map(row).collect();
    columns::print(["LISTENER", "RUNNING", "WAITING", "STATE"], &rows)?;
    let row = |conversation: &Value| {
        let [id, threads, running, queued] =
            ["conversation", "threads", "running", "queued"].map(|field| text(&conversation[field]));
        let listeners = conversation["listeners"].as_array().into_iter().flatten().map(text);
        [id, threads, running, queued, listeners.collect::<Vec<_>>().join(" ")]
    };
    let rows: Vec<_> = conversations["items"].as_array().into_iter().flatten().map(row).collect();
    print::line("")?;
    columns::print(["CONVERSATION", "THREADS", "RUNNING", "QUEUED", "LISTENERS"], &rows)?;
    if !conversations["next"].is_null() {
        print::line("and further conversations: `systole thread list --open` lists all")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Does an act, and prints its outcomes: exit code 1 if one of them is an error.
pub(super) fn act_on(journal: &NamedJournal, act: &Value) -> Result<ExitCode, Failure> {
    let (mut code, name) = (ExitCode::SUCCESS, act["act"].as_str().unwrap_or_default());
    for outcome in acted(journal, act)? {
        let of = outcome["of"].as_str().unwrap_or_default();
        match outcome["error"].as_str() {
            Some(error) => {
                code = ExitCode::FAILURE;
                print::line(format_args!("{name} {of}: no effect: {error}"))?;
            }
            None => print::line(format_args!("{name} {of}: done{}", change(&outcome)))?,
        }
    }
    Ok(code)
}

/// The version of a changed organism, and what is open of earlier ones.
fn change(outcome: &Value) -> String {
    match (&outcome["version"], &outcome["kept"]) {
        (Value::Number(version), Value::Number(kept)) => {
            format!(": version {version}; open conversations that keep an earlier one: {kept}")
        }
        _ => String::new(),
    }
}

/// Does an act, and returns its outcomes.
pub(super) fn acted(journal: &NamedJournal, act: &Value) -> Result<Vec<Value>, Failure> {
    let mut answer = call(journal, Method::POST, "/v1/admin/acts", act.to_string().into_bytes())?;
    Ok(answer["outcomes"].as_array_mut().map(std::mem::take).unwrap_or_default())
}

pub(super) fn look(journal: &NamedJournal, path: &str) -> Result<Value, Failure> {
    call(journal, Method::GET, path, Vec::new())
}

/// The path beside which the organism of a journal has its socket.
fn socket_of(journal: &NamedJournal) -> Result<&std::path::Path, Failure> {
    let unknown = || {
        Failure::unusable(format!(
            "a running organism of {journal} is reached beside its organism.yaml: name that by --organism"
        ))
    };
    journal.beside().ok_or_else(unknown)
}

/// Checks whether an organism that serves operators has the journal open.
pub(super) fn is_served(journal: &NamedJournal) -> bool {
    let Some(beside) = journal.beside() else { return false };
    std::os::unix::net::UnixStream::connect(systole::gateway::socket_path(beside)).is_ok()
}

/// Sends a message as a client, and waits for the answer.
pub(super) fn ask(
    journal: &NamedJournal,
    client: &str,
    message: Vec<u8>,
    within: Option<Duration>,
    stream: bool,
) -> Result<Value, Failure> {
    // Who sets a time waits for people, too.
    let people = if within.is_some() { "wait" } else { "leave" };
    let path = format!("/v1/admin/ask?client={client}&people={people}&drafts={stream}");
    loop {
        let (mut lines, mut streamed) = (DraftLines::default(), None);
        let each = |kind: &str, data: &str| match kind {
            "answer" => {
                if lines.tear() {
                    print::say("\n".to_owned());
                }
                streamed = serde_json::from_str(data).ok();
            }
            // A kind of a later release than the program is none that it shows.
            _ => {
                if let Ok(news) = serde_json::from_str(data) {
                    print::say(lines.show(&news));
                }
            }
        };
        match exchange_each(journal, Method::POST, &path, message.clone(), within, each)? {
            (200, answer) => match streamed.or(answer) {
                Some(answer) => return Ok(answer),
                None => return Err(Failure::no("the organism broke the stream off before the answer")),
            },
            // It is full, and takes the message later.
            (429 | 503 | 507, _) => std::thread::sleep(RETRY),
            (_, answer) => return Err(refused(&answer.unwrap_or_default())),
        }
    }
}

fn call(journal: &NamedJournal, method: Method, path: &str, body: Vec<u8>) -> Result<Value, Failure> {
    match exchange(journal, method, path, body, Some(PATIENCE))? {
        (200, answer) => Ok(answer),
        (_, answer) => Err(refused(&answer)),
    }
}

pub(super) fn refused(answer: &Value) -> Failure {
    Failure::no(answer["detail"].as_str().unwrap_or("it refused").to_owned())
}

/// Calls the organism; returns status and body of its answer.
pub(super) fn exchange(
    journal: &NamedJournal,
    method: Method,
    path: &str,
    body: Vec<u8>,
    within: Option<Duration>,
) -> Result<(u16, Value), Failure> {
    let (status, answer) = exchange_each(journal, method, path, body, within, |_, _| ())?;
    Ok((status, answer.unwrap_or_default()))
}

/// Calls the organism; `each` gets the events of an answer that is a stream, and that has no body then.
fn exchange_each(
    journal: &NamedJournal,
    method: Method,
    path: &str,
    body: Vec<u8>,
    within: Option<Duration>,
    each: impl FnMut(&str, &str),
) -> Result<(u16, Option<Value>), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::System)?;
    let place = socket_of(journal)?;
    let exchange = async {
        let call = stream_operator(place, method, path, body, each);
        match within {
            Some(within) => timeout(within, call).await.map_err(|_| Failure::no("no answer came in time")),
            None => Ok(call.await),
        }
    };
    let (status, body) = runtime.block_on(exchange)?.map_err(|error| {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::PermissionDenied => {
                Failure::unusable(format!(
                    "no running organism serves operators for {journal}: {error}; `systole run` does, where it has a journal"
                ))
            }
            _ => Failure::no(format!(
                "the organism of {journal} broke the call off: {error}; what was asked of it may have happened: see \
                 `systole thread list` and the log"
            )),
        }
    })?;
    if body.is_empty() {
        return Ok((status, None));
    }
    let answer = serde_json::from_slice(&body).map_err(|error| Failure::unusable(error.to_string()))?;
    Ok((status, Some(answer)))
}
