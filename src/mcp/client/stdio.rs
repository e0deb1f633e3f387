//! A server that is a program: its process, and its lines as a transport of `rmcp`.
//!
//! A line that is no message, as many servers print, goes to the log; one that answers no open request is dropped with a
//! warning. A line past the limit fails the request that it answers, or the process, if it names none.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use systole_core::vocab::{Limits, Name};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::raw;
use super::session::{self, Listed, Session, Talk};
use crate::listeners::fleet::Over;
use crate::listeners::fleet::line_process::{End, LineProcess, Written};
use crate::listeners::fleet::prints::{self, Log};
use crate::listeners::mcp::McpAsks;
use crate::process::environment::passed_on;
use crate::process::run::{CommandError, LINGER, Process, Streams};
use crate::process::streams::keep_end;
use crate::process::{CommandSpec, guard};
use crate::terminal::readable;
use systole_store::clock::Clock;

/// Messages that wait for the server to read them, and that wait to be handled here.
const WAITING: usize = 64;
/// Lines in a row that are no messages, after which the process is ended.
const NOISE: usize = 10_000;
/// Requests of servers that are answered.
const DONE: [&str; 4] = ["ping", "roots/list", "elicitation/create", "sampling/createMessage"];
/// Cancelled requests whose answers may still come.
const CANCELLED: usize = 1024;

/// A started program.
pub(super) struct Server {
    process: LineProcess,
    streams: Streams,
    session: Rc<Session>,
}

impl Server {
    /// Starts a program.
    pub(super) fn start(spec: &CommandSpec, session: Rc<Session>, limits: &Limits) -> Result<Self, CommandError> {
        let (child, group) = guard::spawn(spec.command(passed_on(&spec.env)), None).map_err(CommandError::Start)?;
        let mut process = Process::new(child, group);
        let mut streams = process.take_streams();
        let lines = streams.stdout.take();
        let lines = lines.ok_or_else(|| CommandError::Start(io::Error::other("the process has no standard output")))?;
        // Base64 and escapes make JSON longer than the payload that is made of it.
        let longest = limits.xml.message_bytes.saturating_mul(2).saturating_add(64 * 1024);
        Ok(Self { process: LineProcess::new(process, lines, longest), streams, session })
    }

    /// Moves messages until the process ends or has to be ended, and waits for its end.
    pub(super) async fn serve(mut self, name: &Name, clock: &Clock, talk: &Talk) -> Over {
        let (said, session) = (RefCell::default(), self.session.clone());
        let stopped = self.run(name, clock, &said, |transport| talk.run(&session, transport)).await;
        let said = said.into_inner();
        match stopped {
            Stopped::Lines(end) => {
                Over { why: end.to_string(), detail: end.detail(), said, is_success: end.is_success() }
            }
            Stopped::Broken(why) | Stopped::Talk(why) => Over { detail: why.clone(), why, said, is_success: false },
        }
    }

    /// Moves messages until the process ends, or has to be ended, or the talk does.
    async fn run<F: Future>(
        &mut self,
        name: &Name,
        clock: &Clock,
        said: &RefCell<String>,
        talk: impl FnOnce(Lines) -> F,
    ) -> Stopped<F::Output> {
        let Self { process, streams: Streams { stdin, stderr, .. }, session, .. } = self;
        let keep = |line: &str| keep_end(&mut said.borrow_mut(), line);
        let mut printing = pin!(prints::log(stderr.take(), name, clock, || session.subject(), keep));
        let mut printed = false;
        let (out, queue) = mpsc::channel(WAITING);
        let (feed, inbox) = mpsc::channel(WAITING);
        let open = Arc::<Mutex<Requests>>::default();
        let (refusals, transport) = (out.clone(), Lines { out, inbox, open: open.clone() });
        let stopped = {
            let mut reading = pin!(read(process, (feed, refusals), &open, Log::new(name, clock), session));
            let mut writing = pin!(write(queue, stdin.take()));
            let mut talking = pin!(talk(transport));
            loop {
                tokio::select! {
                    biased;
                    () = &mut printing, if !printed => printed = true,
                    said = &mut talking => break Stopped::Talk(said),
                    stopped = &mut reading => {
                        // What was read before is told yet.
                        let _ = timeout(LINGER, &mut talking).await;
                        break stopped;
                    }
                    () = &mut writing => {
                        // Mostly it is about to exit; the lines that it wrote before count.
                        let stopped = timeout(LINGER, reading).await.unwrap_or(Stopped::Lines(End::Closed));
                        let _ = timeout(LINGER, &mut talking).await;
                        break stopped;
                    }
                }
            }
        };
        process.finish(matches!(stopped, Stopped::Lines(End::Exit(_))), printing, printed).await;
        stopped
    }
}

/// Connects to a server, and lists its tools; an error has the end of its standard error.
pub(super) async fn look(name: &Name, spec: &CommandSpec, asks: McpAsks, limits: &Limits) -> Result<Listed, String> {
    let said = RefCell::<String>::default();
    let server = Server::start(spec, Rc::default(), limits).map_err(|error| error.detail());
    let stopped =
        server?.run(name, &Clock::real().steady(), &said, |transport| session::look(transport, "", asks)).await;
    let why = match stopped {
        Stopped::Talk(Ok(listed)) => return Ok(listed),
        Stopped::Lines(end) => end.detail(),
        Stopped::Broken(why) | Stopped::Talk(Err(why)) => why,
    };
    let said = said.into_inner();
    Err(if said.trim().is_empty() { why } else { format!("{why}; it said: {}", said.trim()) })
}

/// The reason why a process is to end: its lines, a line that is none, or the end of the talk.
enum Stopped<T> {
    Lines(End),
    Broken(String),
    Talk(T),
}

/// Requests whose answers may come.
#[derive(Default)]
struct Requests {
    open: BTreeSet<String>,
    cancelled: VecDeque<String>,
}

impl Requests {
    fn sent(&mut self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                self.open.insert(key(&request.id));
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                    && self.open.remove(&key(id))
                {
                    self.cancelled.push_back(key(id));
                    if self.cancelled.len() > CANCELLED {
                        self.cancelled.pop_front();
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes the request that an answer is for.
    fn answered(&mut self, id: &str) -> Answered {
        if self.open.remove(id) {
            return Answered::Open;
        }
        match self.cancelled.iter().position(|cancelled| cancelled == id) {
            Some(at) => {
                self.cancelled.remove(at);
                Answered::Cancelled
            }
            None => Answered::Unknown,
        }
    }

    /// The only open request.
    fn only(&self) -> Option<&String> {
        self.open.first().filter(|_| self.open.len() == 1)
    }
}

enum Answered {
    Open,
    Cancelled,
    Unknown,
}

/// An id as a key: `1` and `"1"` are two.
pub(super) fn key(id: &RequestId) -> String {
    serde_json::to_string(id).unwrap_or_default()
}

/// The lines of a process as a transport.
struct Lines {
    out: mpsc::Sender<Vec<u8>>,
    inbox: mpsc::Receiver<ServerJsonRpcMessage>,
    open: Arc<Mutex<Requests>>,
}

impl Transport<RoleClient> for Lines {
    type Error = io::Error;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        lock(&self.open).sent(&item);
        let (out, line) = (self.out.clone(), serde_json::to_vec(&item));
        async move {
            let mut line = raw::unwrap(line.map_err(io::Error::other)?);
            line.push(b'\n');
            out.send(line).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.inbox.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lock(requests: &Mutex<Requests>) -> std::sync::MutexGuard<'_, Requests> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads messages until the end of the process.
async fn read<T>(
    process: &mut LineProcess,
    (feed, refusals): (mpsc::Sender<ServerJsonRpcMessage>, mpsc::Sender<Vec<u8>>),
    open: &Mutex<Requests>,
    mut log: Log<'_>,
    session: &Session,
) -> Stopped<T> {
    let mut noise = 0;
    let mut first = String::new();
    loop {
        if let Err(end) = process.next().await {
            return Stopped::Lines(end);
        }
        let line = process.line();
        match judge(line, open) {
            Line::Message(message) => {
                noise = 0;
                // The talk has ended with its end, which comes first.
                if feed.send(*message).await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            Line::Dropped(why) => {
                let text = format!("{why}: {}", readable(&String::from_utf8_lossy(line.bytes())));
                log.line(session.subject().as_ref(), &text);
            }
            Line::Refused { method, answer } => {
                noise = 0;
                log.line(session.subject().as_ref(), &format!("the server is refused what nobody here does: {method}"));
                // A server that does not read what it asks for gets no answer.
                let _ = refusals.try_send(answer);
            }
            Line::Nothing => {}
            Line::Noise => {
                let text = String::from_utf8_lossy(line.bytes());
                if noise == 0 {
                    first = readable(&text);
                }
                noise += 1;
                log.line(session.subject().as_ref(), &text);
                session.noise(&first);
                if noise >= NOISE {
                    return Stopped::Broken(format!(
                        "the server wrote {NOISE} lines in a row that are no messages to its standard output, the first one '{first}': it must print to its standard error"
                    ));
                }
                // A flood leaves others their turns.
                if noise % WAITING == 0 {
                    tokio::task::yield_now().await;
                }
            }
            Line::Fatal(why) => return Stopped::Broken(why),
        }
    }
}

/// The meaning of a line.
pub(super) enum Line {
    Message(Box<ServerJsonRpcMessage>),
    /// An answer that nothing waits for.
    Dropped(&'static str),
    /// A request of the server that this client does not do, and the answer.
    Refused {
        method: String,
        answer: Vec<u8>,
    },
    Nothing,
    /// No message.
    Noise,
    Fatal(String),
}

/// The meaning of a message that may answer this request alone. Some servers over HTTP answer a number as a text, which the
/// library takes.
pub(super) fn judge_for(id: &RequestId, message: &[u8]) -> Line {
    let (id, text) = (key(id), format!("\"{id}\""));
    let id = if Head::of(message).id.as_ref() == Some(&text) { text } else { id };
    let open = Requests { open: BTreeSet::from([id]), cancelled: VecDeque::new() };
    judge(Written::Whole(message), &Mutex::new(open))
}

fn judge(line: Written<'_>, open: &Mutex<Requests>) -> Line {
    let bytes = match line {
        Written::Whole(bytes) => bytes,
        Written::Cut(beginning, length) => {
            let mut open = lock(open);
            let named = Head::of(beginning).id.filter(|id| open.open.contains(id)).or_else(|| open.only().cloned());
            let why = format!(
                "the server wrote a message of {length} bytes, more than fit into a message of the organism: ask for less, or raise limits.message_bytes"
            );
            return match named {
                Some(id) => {
                    open.answered(&id);
                    refusal(&id, why)
                }
                None => Line::Fatal(why),
            };
        }
    };
    if bytes.trim_ascii().is_empty() {
        return Line::Nothing;
    }
    let bytes = &*raw::wrap(bytes);
    let value = match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => value,
        Err(error) => return unreadable(bytes, &error, open),
    };
    let Some(object) = value.as_object().filter(|object| object.get("jsonrpc").is_some_and(|version| version == "2.0"))
    else {
        return Line::Noise;
    };
    let is_answer = object.contains_key("result") || object.contains_key("error");
    if !is_answer {
        let asked = object.get("method").and_then(Value::as_str).zip(object.get("id"));
        let asked = asked.map(|(method, id)| (method.to_owned(), id.clone()));
        let refused = |(method, id): (String, Value), code: ErrorCode, why: &str| {
            let method = readable(&method);
            let error = json!({ "code": code.0, "message": why.replace("METHOD", &method) });
            let mut answer = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes();
            answer.push(b'\n');
            Line::Refused { method, answer }
        };
        return match (asked, serde_json::from_value(value)) {
            (Some(asked), _) if !DONE.contains(&asked.0.as_str()) => {
                refused(asked, ErrorCode::METHOD_NOT_FOUND, "this client does not do METHOD")
            }
            (_, Ok(message)) => Line::Message(Box::new(message)),
            (Some(asked), Err(_)) => {
                refused(asked, ErrorCode::INVALID_PARAMS, "the params of METHOD are none of the protocol")
            }
            (None, Err(_)) => Line::Noise,
        };
    }
    let id = match object.get("id") {
        None | Some(Value::Null) if object.contains_key("result") => {
            return Line::Dropped("a result without an id, which may be that of any call");
        }
        None | Some(Value::Null) => lock(open).only().cloned(),
        Some(id) => Some(id.to_string()),
    };
    let Some(id) = id else { return Line::Dropped("an error without an id, which may be about any call") };
    match lock(open).answered(&id) {
        Answered::Cancelled => Line::Nothing,
        Answered::Unknown => Line::Dropped("an answer to a request that is not open: it came twice, or has a wrong id"),
        Answered::Open => {
            let mut value = value;
            value["id"] = serde_json::from_str(&id).unwrap_or_default();
            match serde_json::from_value::<ServerJsonRpcMessage>(value) {
                Ok(message @ (JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))) => {
                    Line::Message(Box::new(message))
                }
                Ok(_) => refusal(&id, "the answer of the server is none of the protocol".to_owned()),
                Err(error) => refusal(&id, format!("the answer of the server is none of the protocol: {error}")),
            }
        }
    }
}

/// An error in the place of an answer that can't be used.
fn refusal(id: &str, why: String) -> Line {
    match serde_json::from_str(id) {
        Ok(id) => {
            let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None);
            Line::Message(Box::new(ServerJsonRpcMessage::error(error, Some(id))))
        }
        Err(_) => Line::Fatal(why),
    }
}

/// The meaning of a line that is no JSON: an answer, though broken, fails its request at once.
fn unreadable(bytes: &[u8], error: &serde_json::Error, open: &Mutex<Requests>) -> Line {
    let head = Head::of(bytes);
    let Some(id) = head.id.filter(|id| head.is_answer && lock(open).open.contains(id)) else { return Line::Noise };
    lock(open).answered(&id);
    let why = format!(
        "the server wrote an answer that can't be read as JSON: {error} (NaN, Infinity and halves of surrogate pairs are none, and 127 levels are the most)"
    );
    refusal(&id, why)
}

/// The keys of a message that tell what it is, from text that may be broken or cut.
#[derive(Debug, Default, PartialEq, Eq)]
struct Head {
    /// The id, as a key.
    id: Option<String>,
    /// True if it is an answer of JSON-RPC.
    is_answer: bool,
}

impl Head {
    fn of(bytes: &[u8]) -> Self {
        let (mut head, mut depth, mut at) = (Self::default(), 0_usize, 0);
        let mut key: Option<&[u8]> = None;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            let token = match byte {
                b'"' => string(&bytes[at..]),
                b'{' | b'[' | b'}' | b']' | b',' | b':' => 1,
                byte if byte.is_ascii_whitespace() => 1,
                _ => {
                    let ends = |byte: &u8| b",:{}[]\"".contains(byte) || byte.is_ascii_whitespace();
                    bytes[at..].iter().position(ends).unwrap_or(bytes.len() - at)
                }
            };
            let text = &bytes[at..at + token];
            at += token;
            match byte {
                b',' | b'}' | b']' => key = None,
                b':' | b'{' | b'[' => {}
                _ if depth != 1 || byte.is_ascii_whitespace() => {}
                b'"' if key.is_none() => {
                    key = Some(text);
                    head.is_answer |= [&b"\"result\""[..], b"\"error\""].contains(&text);
                }
                _ if key == Some(b"\"id\"") && at < bytes.len() => {
                    head.id = serde_json::from_slice(text).ok().map(|id: Value| id.to_string());
                }
                _ => {}
            }
        }
        head
    }
}

/// Bytes of the text in quotes that begins here.
fn string(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Writes queued lines to the process; ends when it doesn't read any more.
async fn write(mut queue: mpsc::Receiver<Vec<u8>>, stdin: Option<ChildStdin>) {
    let Some(mut stdin) = stdin else { return };
    while let Some(line) = queue.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
    // Whoever sends has ended; so does what is read.
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(ids: &[&str]) -> Mutex<Requests> {
        let mut requests = Requests::default();
        requests.open.extend(ids.iter().map(|&id| id.to_owned()));
        Mutex::new(requests)
    }

    fn told(line: &str, requests: &Mutex<Requests>) -> String {
        match judge(Written::Whole(line.as_bytes()), requests) {
            Line::Message(message) => format!("message {}", serde_json::to_string(&message).unwrap()),
            Line::Dropped(why) => format!("dropped {why}"),
            Line::Refused { answer, .. } => format!("refused {}", String::from_utf8(answer).unwrap()),
            Line::Nothing => "nothing".to_owned(),
            Line::Noise => "noise".to_owned(),
            Line::Fatal(why) => format!("fatal {why}"),
        }
    }

    #[test]
    fn an_answer_counts_once_and_for_an_open_request_alone() {
        let requests = open(&["1", "2"]);
        let answer = r#"{"jsonrpc": "2.0", "id": 1, "result": {"content": [], "isError": false}}"#;
        assert!(told(answer, &requests).starts_with("message"));
        assert!(told(answer, &requests).starts_with("dropped"));
        assert!(told(&answer.replace("1,", "\"2\","), &requests).starts_with("dropped"), "a text is no number");
        assert!(told(&answer.replace("1,", "99,"), &requests).starts_with("dropped"));
        lock(&requests).cancelled.push_back("7".to_owned());
        assert_eq!(told(&answer.replace("1,", "7,"), &requests), "nothing");
    }

    #[test]
    fn an_error_without_an_id_is_that_of_the_only_request() {
        let error = r#"{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "no"}}"#;
        assert!(told(error, &open(&["1", "2"])).starts_with("dropped"));
        assert!(told(error, &open(&["4"])).contains("\"id\":4"));
    }

    #[test]
    fn requests_that_nobody_does_are_refused() {
        let request = r#"{"jsonrpc": "2.0", "id": "s1", "method": "resources/read", "params": {}}"#;
        let refused = told(request, &open(&[]));
        assert!(refused.contains("-32601") && refused.contains("\"id\":\"s1\""), "{refused}");
        assert!(told(&request.replace("resources/read", "ping"), &open(&[])).starts_with("message"));
    }

    #[test]
    fn a_result_without_an_id_is_no_answer() {
        let result = r#"{"jsonrpc": "2.0", "id": null, "result": {"content": []}}"#;
        assert!(told(result, &open(&["4"])).starts_with("dropped"));
        assert!(told(&result.replace("\"id\": null, ", ""), &open(&["4"])).starts_with("dropped"));
    }

    #[test]
    fn an_answer_that_is_not_quite_json_fails_its_call_at_once() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        for value in ["NaN", "-Infinity", r#""\ud800""#, &deep, "{\"id\": 2"] {
            let requests = open(&["1", "2"]);
            let line = format!(r#"{{"jsonrpc": "2.0", "id": 1, "result": {{"a": {{"id": 2}}, "n": {value}}}}}"#);
            let said = told(&line, &requests);
            assert!(said.starts_with("message") && said.contains("\"id\":1"), "{said}");
            assert!(said.contains("can't be read as JSON"), "{said}");
            let last = format!(r#"{{"jsonrpc": "2.0", "result": {{"id": 2, "n": {value}}}, "id": "1"}}"#);
            assert_eq!(told(&last, &requests), "noise", "no open request has that id");
        }
        assert_eq!(told(r#"{"jsonrpc": "2.0", "id": 1, "method": NaN}"#, &open(&["1"])), "noise");
    }

    #[test]
    fn what_is_no_message_is_noise() {
        for line in
            ["Server started", "{}", "[1]", "{\"jsonrpc\": \"1.0\"}", "{\"jsonrpc\": \"2.0\"}", "\u{1b}[2J", "{"]
        {
            assert_eq!(told(line, &open(&["1"])), "noise", "{line}");
        }
        assert_eq!(told(" \r", &open(&[])), "nothing");
    }

    #[test]
    fn a_line_past_the_limit_fails_the_request_that_it_answers() {
        let cut = |beginning: &[u8], requests: &Mutex<Requests>| match judge(Written::Cut(beginning, 999), requests) {
            Line::Message(message) => serde_json::to_string(&message).unwrap(),
            Line::Fatal(why) => format!("fatal {why}"),
            _ => panic!("another meaning"),
        };
        let named = br#"{"jsonrpc": "2.0", "id": 12, "result": {"content": [{"type""#;
        assert!(cut(named, &open(&["11", "12"])).contains("\"id\":12"));
        let unnamed = br#"{"result": {"content": [{"type": "text", "text""#;
        assert!(cut(unnamed, &open(&["11"])).contains("999 bytes"));
        assert!(cut(unnamed, &open(&["11", "12"])).starts_with("fatal"));
    }
}
