//! Standard input and output of a host's process, relayed to the organism: in this process, or in another one that holds the
//! journal.
//!
//! Where the organism ends, as its process is killed, the relay finds or starts the next one, and sends it what got no answer:
//! a request has one id for the whole process, and its call one idempotency key, so it takes effect once. Standard output has
//! messages of the protocol alone. A line that is no message is answered here: the host waits for nothing.
//!
//! A request to the host, such as a question to its person, has an id of the relay, which no other request of the process ever
//! has. The answer goes to the stream that asked, or nowhere: each process of the organism numbers its requests anew, so an id of
//! its own would hand the answer to a dialog of the last one to another question.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::io;
use std::pin::Pin;
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, NumberOrString};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::{sleep, timeout};

use super::written::{bare, flaw};

/// Most bytes of a line of a host, for the relay and for the organism.
pub(super) const LINE: usize = 16 << 20;
/// Bytes that are kept of a line that is too long.
const BEGINNING: usize = 1024;
/// Most requests without an answer, of a host and to it.
const OPEN: usize = 1024;
/// Streams in a row that end without a line: then the requests without an answer are refused.
const BARREN: u32 = 8;
/// Pause after such a stream, longer with each.
const PAUSE: Duration = Duration::from_millis(50);
/// Time for the last answers after the end of standard input.
const LAST_ANSWERS: Duration = Duration::from_secs(6);

/// A stream of lines to an organism.
pub struct LineStream {
    read: BufReader<Pin<Box<dyn AsyncRead + Send>>>,
    write: Pin<Box<dyn AsyncWrite + Send>>,
}

impl std::fmt::Debug for LineStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineStream").finish_non_exhaustive()
    }
}

impl LineStream {
    /// Makes one of a stream of bytes.
    pub fn new(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (read, write) = tokio::io::split(stream);
        Self { read: BufReader::new(Box::pin(read)), write: Box::pin(write) }
    }
}

/// Serves a host on standard input and output, until standard input ends. `connect` opens a stream to the organism, at first and
/// whenever the last one has ended.
///
/// # Errors
/// The error of `connect`, after open requests were answered with it, or that of standard output.
pub async fn serve_stdio<C: Future<Output = io::Result<LineStream>>>(connect: impl FnMut() -> C) -> io::Result<()> {
    relay(tokio::io::stdin(), tokio::io::stdout(), connect).await
}

/// The parts of a message that a relay reads.
#[derive(Deserialize)]
struct Head<'l> {
    /// `null` is an id that is wrong, not one that is missing.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'l RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'l RawValue>,
    #[serde(borrow, default)]
    result: Option<&'l RawValue>,
}

/// A member that is there, whatever its value is.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The parameters of a cancellation.
#[derive(Deserialize)]
struct Cancelled<'l> {
    #[serde(borrow, default, rename = "requestId")]
    request: Option<&'l RawValue>,
}

/// A host: its requests without an answer, and the beginning of its session.
#[derive(Default)]
struct Host {
    /// Requests without an answer, each with its id, in their order.
    open: Vec<(String, Vec<u8>)>,
    /// The request that began the session, and its id, once it is answered.
    initialize: Option<(String, Vec<u8>)>,
    initialized: Option<Vec<u8>>,
    /// Ids of requests that were sent again, and whose answer the host has.
    answered: HashSet<String>,
    /// True once a request went on: nothing else may be the first message.
    has_begun: bool,
    /// Requests of this stream to the host without an answer, oldest first: each with the relay's id and the stream's.
    asked: VecDeque<(u64, String)>,
    /// The next id of such a request.
    next: u64,
}

/// The way of a line of the host.
#[derive(Debug)]
enum Way<'l> {
    /// To the organism.
    On(Cow<'l, [u8]>),
    /// Nowhere: it needs no answer.
    Nowhere,
    /// Back to the host: an answer.
    Back(Vec<u8>),
}

async fn relay<C: Future<Output = io::Result<LineStream>>>(
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    mut connect: impl FnMut() -> C,
) -> io::Result<()> {
    let mut lines = Lines::new(input);
    let mut host = Host::default();
    let mut barren = 0;
    loop {
        let connected = connect().await;
        let mut stream = match connected {
            Ok(stream) => stream,
            Err(error) => {
                for (id, _) in host.open.drain(..) {
                    write(&mut output, &refusal(&id, -32603, &format!("the organism can't be reached: {error}")))
                        .await?;
                }
                return Err(error);
            }
        };
        if host.replay(&mut stream.write).await.is_err() {
            continue;
        }
        let mut answers = Lines::new(&mut stream.read);
        barren += 1;
        loop {
            tokio::select! {
                answer = answers.next() => match answer {
                    Ok(Some(Line::Whole(answer))) => if let Some(answer) = host.takes(answer) {
                        barren = 0;
                        write(&mut output, &answer).await?;
                    },
                    Ok(Some(Line::TooLong(_))) => {}
                    Ok(None) | Err(_) => break,
                },
                line = lines.next() => {
                    let line = match line? {
                        Some(Line::Whole(line)) => line,
                        Some(Line::TooLong(beginning)) => {
                            let id = id_in(beginning).unwrap_or("null");
                            let why = format!("the line has more than {LINE} bytes: send less");
                            write(&mut output, &refusal(id, -32600, &why)).await?;
                            continue;
                        }
                        None => return finish(&mut stream.write, answers, &mut host, output).await,
                    };
                    match host.reads(line) {
                        Way::On(line) => if write(&mut stream.write, &line).await.is_err() {
                            break;
                        },
                        Way::Nowhere => {}
                        Way::Back(answer) => write(&mut output, &answer).await?,
                    }
                }
            }
        }
        // The dialogs of a stream that has ended have no answer: the next one asks again.
        for cancelled in host.withdraw() {
            write(&mut output, &cancelled).await?;
        }
        if barren >= BARREN {
            barren = 0;
            for (id, _) in host.open.drain(..) {
                let why = "the organism closes its stream without an answer: see its log on standard error";
                write(&mut output, &refusal(&id, -32603, why)).await?;
            }
        }
        sleep(PAUSE * barren).await;
    }
}

/// Ends a stream after standard input has ended: the answers that are on their way still count.
async fn finish<R: AsyncRead + Unpin>(
    write_side: &mut Pin<Box<dyn AsyncWrite + Send>>,
    mut answers: Lines<R>,
    host: &mut Host,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let _ = write_side.shutdown().await;
    let rest = async {
        while let Ok(Some(Line::Whole(answer))) = answers.next().await {
            if let Some(answer) = host.takes(answer) {
                write(&mut output, &answer).await?;
            }
        }
        Ok(())
    };
    timeout(LAST_ANSWERS, rest).await.unwrap_or(Ok(()))
}

impl Host {
    /// Reads a line of the host.
    fn reads<'l>(&mut self, line: &'l [u8]) -> Way<'l> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Way::Nowhere;
        }
        let is_object = line.trim_ascii_start().starts_with(b"{");
        let flaw = flaw(line).filter(|_| is_object);
        let head = match serde_json::from_slice::<Head<'_>>(line) {
            // A list would be read as the members in their order.
            Ok(head) if is_object => head,
            read => {
                let error = read.err().map(|error| error.to_string()).unwrap_or_default();
                let (code, why) = match serde_json::from_slice::<&RawValue>(line) {
                    Ok(_) if flaw.is_some() => flaw.unwrap_or_default(),
                    Ok(_) if is_object => (-32600, format!("the message is none of the protocol: {error}")),
                    Ok(_) => (-32600, "a line is one JSON-RPC object; batches are none of this revision".to_owned()),
                    Err(error) => (-32700, format!("the line is no JSON: {error}")),
                };
                // Of an object whose other members are wrong, such as one that stands there twice.
                let id = if is_object { id_in(line).unwrap_or("null") } else { "null" };
                return Way::Back(refusal(id, code, &why));
            }
        };
        // Written as it is, so that a number which is none of the protocol keeps its digits.
        let known = head.id.map(RawValue::get).filter(|id| is_known(id)).unwrap_or("null");
        if head.method.is_some() && head.id.is_some_and(|id| serde_json::from_str::<NumberOrString>(id.get()).is_err())
        {
            let why = "the id of a request is a text, or a whole number from -2^63 to 2^63 - 1: write another one";
            return Way::Back(refusal(known, -32600, why));
        }
        if let Some((code, why)) = flaw {
            return match head.id {
                Some(_) => Way::Back(refusal(known, code, &why)),
                // A notification has no answer.
                None => Way::Nowhere,
            };
        }
        let message = |line: &[u8]| serde_json::from_slice::<ClientJsonRpcMessage>(line).map(drop);
        let read = message(line).or_else(|error| bare(line).map_or(Err(error), |bare| message(&bare)));
        if let Err(error) = read {
            let why = format!("the message is none of the protocol: {error}");
            return match head.method.is_some() && head.id.is_none() {
                true => Way::Nowhere,
                false => Way::Back(refusal(known, -32600, &why)),
            };
        }
        let id = head.id.map(|id| id.get().to_owned());
        match (head.method.as_deref(), id) {
            (Some(_), Some(id)) => {
                if self.open.iter().any(|(open, _)| *open == id) {
                    let why = "a request with that id has no answer yet: use another id";
                    return Way::Back(refusal(&id, -32600, why));
                }
                if self.open.len() >= OPEN {
                    let why = format!("{OPEN} requests have no answer yet: wait for some");
                    return Way::Back(refusal(&id, -32603, &why));
                }
                self.has_begun = true;
                self.open.push((id, line.to_vec()));
                Way::On(line.into())
            }
            _ if !self.has_begun => Way::Nowhere,
            (None, Some(id)) => {
                let at = self.asked.iter().position(|(own, _)| own.to_string() == id);
                let asked = at.and_then(|at| self.asked.remove(at)).zip(head.id);
                // An answer to a stream that has ended, or a second one, is for no question.
                asked.map_or(Way::Nowhere, |((_, theirs), id)| Way::On(spliced(line, id, &theirs).into()))
            }
            // After a session that was refused it would end the stream.
            (Some("notifications/initialized"), None) if !self.begins_session() => Way::Nowhere,
            (Some("notifications/initialized"), None) => {
                self.initialized = Some(line.to_vec());
                Way::On(line.into())
            }
            (Some("notifications/cancelled"), None) => {
                if let Some(request) = head.params.and_then(cancelled) {
                    self.open.retain(|(id, _)| id != request.get());
                }
                Way::On(line.into())
            }
            _ => Way::On(line.into()),
        }
    }

    /// Reads a line of the organism; returns it as the host gets it, if it is for the host.
    fn takes<'l>(&mut self, answer: &'l [u8]) -> Option<Cow<'l, [u8]>> {
        let head = serde_json::from_slice::<Head<'_>>(answer).ok()?;
        let id = match (head.method.as_deref(), head.id) {
            (None, Some(id)) => id,
            (Some(_), Some(id)) => {
                let own = self.next;
                self.next += 1;
                self.asked.push_back((own, id.get().to_owned()));
                if self.asked.len() > OPEN {
                    // Such as one whose call has ended meanwhile.
                    self.asked.pop_front();
                }
                return Some(spliced(answer, id, &own.to_string()).into());
            }
            (Some("notifications/cancelled"), None) => {
                let request = head.params.and_then(cancelled)?;
                let at = self.asked.iter().position(|(_, theirs)| theirs == request.get())?;
                let (own, _) = self.asked.remove(at)?;
                return Some(spliced(answer, request, &own.to_string()).into());
            }
            _ => return Some(answer.into()),
        };
        if self.answered.remove(id.get()) {
            return None;
        }
        if let Some(at) = self.open.iter().position(|(open, _)| open == id.get()) {
            let (id, line) = self.open.remove(at);
            if head.result.is_some() && is_initialize(&line) {
                self.initialize = Some((id, line));
            }
        }
        Some(answer.into())
    }

    /// Returns whether a session has begun, or its first request has no answer yet.
    fn begins_session(&self) -> bool {
        self.initialize.is_some() || self.open.iter().any(|(_, line)| is_initialize(line))
    }

    /// Gives up the requests to the host of a stream that has ended; returns the notifications that cancel them.
    fn withdraw(&mut self) -> Vec<Vec<u8>> {
        let cancelled = |(own, _)| {
            let params =
                json!({ "requestId": own, "reason": "the process that asked has ended: the question comes again" });
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string().into_bytes()
        };
        self.asked.drain(..).map(cancelled).collect()
    }

    /// Sends to another process of the organism what the last one left.
    async fn replay(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        self.answered.clear();
        if let Some((id, line)) = &self.initialize {
            self.answered.insert(id.clone());
            write(to, line).await?;
            if let Some(line) = &self.initialized {
                write(to, line).await?;
            }
        }
        for (_, line) in &self.open {
            write(to, line).await?;
        }
        Ok(())
    }
}

fn is_initialize(line: &[u8]) -> bool {
    serde_json::from_slice::<Head<'_>>(line).is_ok_and(|head| head.method.as_deref() == Some("initialize"))
}

/// The id of the request that a notification cancels.
fn cancelled(params: &RawValue) -> Option<&RawValue> {
    serde_json::from_str::<Cancelled<'_>>(params.get()).ok()?.request
}

/// A line with another text in the place of a part that was read from it.
pub(super) fn spliced(line: &[u8], part: &RawValue, with: &str) -> Vec<u8> {
    let start = part.get().as_ptr() as usize - line.as_ptr() as usize;
    [&line[..start], with.as_bytes(), &line[start + part.get().len()..]].concat()
}

/// The id of a message, as JSON, from its beginning, where it stands in front of the parameters.
pub(super) fn id_in(beginning: &[u8]) -> Option<&str> {
    let text = beginning.utf8_chunks().next()?.valid();
    let members = &text[..text.find("\"params\"").unwrap_or(text.len())];
    let value = members.split_once("\"id\"")?.1.trim_start().strip_prefix(':')?.trim_start();
    let mut values = serde_json::Deserializer::from_str(value).into_iter::<Value>();
    values.next()?.ok()?;
    Some(value[..values.byte_offset()].trim_end()).filter(|id| is_known(id))
}

/// Returns whether an id is a text or a number, which an answer may have.
fn is_known(id: &str) -> bool {
    serde_json::from_str::<Value>(id).is_ok_and(|id| id.is_string() || id.is_number())
}

/// The refusal of a request; `id` as JSON.
pub(super) fn refusal(id: &str, code: i32, why: &str) -> Vec<u8> {
    let why = Value::String(why.to_owned());
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{why}}}}}"#).into_bytes()
}

/// Writes a line.
pub(super) async fn write(to: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> io::Result<()> {
    to.write_all(line).await?;
    to.write_all(b"\n").await?;
    to.flush().await
}

/// The lines of a stream, each of a bounded length.
pub(super) struct Lines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    /// True if the line is whole: the next one begins anew.
    is_over: bool,
    /// True while the rest of a line is left out that is too long.
    skips: bool,
}

pub(super) enum Line<'l> {
    Whole(&'l [u8]),
    /// One that is left out, with its beginning.
    TooLong(&'l [u8]),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from: BufReader::new(from), line: Vec::new(), is_over: false, skips: false }
    }

    /// The next line, without its end; none at the end of the stream.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the beginning of a line is kept.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.is_over {
            self.line.clear();
            self.is_over = false;
        }
        loop {
            let found = self.from.fill_buf().await?;
            if found.is_empty() {
                // What has no end is a line, too.
                self.is_over = true;
                let is_line = !self.line.is_empty() && !self.skips;
                return Ok(is_line.then_some(Line::Whole(&self.line)));
            }
            let end = found.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(found.len(), |end| end + 1);
            if !self.skips {
                self.line.extend_from_slice(&found[..end.unwrap_or(taken)]);
            }
            self.from.consume(taken);
            let was_short = !self.skips;
            self.skips |= self.line.len() > LINE;
            match end {
                Some(_) if self.skips => {
                    self.is_over = true;
                    self.skips = false;
                    return Ok(Some(Line::TooLong(&self.line)));
                }
                Some(_) => {
                    self.is_over = true;
                    return Ok(Some(Line::Whole(&self.line)));
                }
                None if self.skips && was_short => {
                    self.line.truncate(BEGINNING);
                    self.line.shrink_to_fit();
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[u8]) -> Value {
        serde_json::from_slice(line).unwrap()
    }

    fn back(way: Way) -> Value {
        match way {
            Way::Back(answer) => parsed(&answer),
            Way::On(_) => panic!("it goes on"),
            Way::Nowhere => panic!("it goes nowhere"),
        }
    }

    #[test]
    fn lines_that_are_no_messages_are_answered() {
        let mut host = Host::default();
        assert_eq!(back(host.reads(b"{nonsense"))["error"]["code"], -32700);
        assert_eq!(back(host.reads(b"[]"))["error"]["code"], -32600);
        let wrong = back(host.reads(br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":"x"}"#));
        assert_eq!((&wrong["id"], &wrong["error"]["code"]), (&json!(5), &json!(-32600)));
        assert!(matches!(host.reads(b"  "), Way::Nowhere));
        assert!(matches!(host.reads(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), Way::Nowhere));
    }

    #[test]
    fn a_request_whose_id_is_none_is_answered_and_the_id_keeps_its_digits() {
        let mut host = Host::default();
        let mut answer =
            |id: &str| match host.reads(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).as_bytes()) {
                Way::Back(answer) => String::from_utf8(answer).unwrap(),
                other => panic!("{id}: {other:?}"),
            };
        for (id, told) in [
            ("null", "null"),
            ("1e400", "null"),
            (r#""\ud800""#, "null"),
            ("[1]", "null"),
            ("true", "null"),
            ("1.5", "1.5"),
            ("12345678901234567890123", "12345678901234567890123"),
        ] {
            let answer = answer(id);
            assert!(answer.contains(&format!(r#""id":{told},"#)) && answer.contains("-32600"), "{id}: {answer}");
            assert!(answer.contains("the id of a request is"), "{answer}");
        }
        assert!(host.open.is_empty());
        for id in ["1", "-0", "1.0", "9223372036854775807", r#""""#, r#""\u00e9""#] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            assert!(matches!(host.reads(line.as_bytes()), Way::On(_)), "{id}");
        }
    }

    #[test]
    fn a_repeated_member_is_named() {
        let mut host = Host::default();
        for (line, code, why) in [
            (r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}"#, -32600, "'jsonrpc' is repeated"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#, -32600, "'method' is repeated"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{},"_meta":{}}}"#,
                -32602,
                "'_meta' is repeated in params",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{},"capabilities":{}}}"#,
                -32602,
                "'capabilities' is repeated in params",
            ),
        ] {
            let answer = back(host.reads(line.as_bytes()));
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(code)), "{line}: {answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{line}: {answer}");
        }
        let notification = br#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1,"a":2}}"#;
        assert!(matches!(host.reads(notification), Way::Nowhere), "it has no answer");
        assert!(!host.has_begun);
    }

    #[tokio::test]
    async fn another_process_gets_what_has_no_answer() {
        let mut host = Host::default();
        let initialize = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        assert!(matches!(host.reads(initialize), Way::On(_)));
        assert!(host.takes(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#).is_some());
        let initialized = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert!(matches!(host.reads(initialized), Way::On(_)));
        let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
        assert!(matches!(host.reads(call), Way::On(_)));
        assert_eq!(back(host.reads(call))["error"]["code"], -32600, "its id is taken");
        let mut sent = Vec::new();
        host.replay(&mut sent).await.unwrap();
        let lines: Vec<_> = sent.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, [&initialize[..], initialized, call]);
        assert!(host.takes(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#).is_none(), "the host has that answer");
        assert!(host.takes(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#).is_some());
        assert!(host.open.is_empty());
    }

    #[test]
    fn an_answer_of_the_host_reaches_the_question_that_was_asked_or_none() {
        let on = |way: Way<'_>| match way {
            Way::On(line) => parsed(&line),
            other => panic!("{other:?}"),
        };
        let ask = |host: &mut Host, id: &str| {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"id":{id}}}}}"#);
            let asked = parsed(&host.takes(line.as_bytes()).unwrap());
            assert_eq!(asked["params"]["id"].to_string(), id, "that is another id");
            asked["id"].clone()
        };
        let answer = |id: &Value| {
            let result = json!({ "action": "accept", "content": { "answer": true } });
            json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
        };
        let mut host = Host::default();
        host.reads(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let first = [ask(&mut host, "0"), ask(&mut host, "1"), ask(&mut host, "\"a\"")];
        assert_eq!(on(host.reads(answer(&first[2]).as_bytes()))["id"], "a");
        assert!(matches!(host.reads(answer(&first[2]).as_bytes()), Way::Nowhere), "it is answered");
        // The organism withdraws one.
        let cancelled =
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0,"reason":"r"}}"#;
        let cancelled = parsed(&host.takes(cancelled).unwrap());
        assert_eq!((&cancelled["params"]["requestId"], &cancelled["params"]["reason"]), (&first[0], &json!("r")));
        assert!(matches!(host.reads(answer(&first[0]).as_bytes()), Way::Nowhere), "it was withdrawn");
        // The next process begins with 0, too.
        let withdrawn = host.withdraw();
        assert_eq!(
            withdrawn.iter().map(|line| parsed(line)["params"]["requestId"].clone()).collect::<Vec<_>>(),
            [first[1].clone()]
        );
        let second = [ask(&mut host, "0"), ask(&mut host, "1")];
        assert!(second.iter().all(|id| !first.contains(id)));
        assert!(matches!(host.reads(answer(&first[1]).as_bytes()), Way::Nowhere), "another stream asked that");
        assert_eq!(on(host.reads(answer(&second[1]).as_bytes()))["id"], 1);
        assert_eq!(on(host.reads(answer(&second[0]).as_bytes()))["id"], 0);
    }

    #[test]
    fn the_id_of_a_message_stands_in_its_beginning() {
        for (beginning, id) in [
            (r#"{"jsonrpc":"2.0","id":93,"method":"tools/call","params":{"id":7,"#, Some("93")),
            (r#"{"id" : "a\"b" ,"params":"#, Some(r#""a\"b""#)),
            (r#"{"params":{"id":7,"#, None),
            (r#"{"id":{"#, None),
            (r#"xxxx"#, None),
        ] {
            assert_eq!(id_in(beginning.as_bytes()), id, "{beginning}");
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_left_out_alone() {
        let text = [vec![b'x'; LINE + 3], b"\nshort\n".to_vec(), b"end".to_vec()].concat();
        let mut lines = Lines::new(&text[..]);
        assert!(matches!(lines.next().await.unwrap(), Some(Line::TooLong(beginning)) if beginning.starts_with(b"xxx")));
        assert!(matches!(lines.next().await.unwrap(), Some(Line::Whole(b"short"))));
        assert!(matches!(lines.next().await.unwrap(), Some(Line::Whole(b"end"))));
        assert!(lines.next().await.unwrap().is_none());
    }
}
