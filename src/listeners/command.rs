//! Listeners that are programs, with one process for each message.
//!
//! The process gets the canonical payload as its standard input, a sealed file in memory, and writes raw bytes, 0 to n
//! payloads, to its standard output; they count only if it exits with 0. With `json: true` both are JSON. Its standard error goes to the log. It runs in
//! the directory of the organism's file, in a process group of its own, with an environment of `PATH`, `HOME`, the
//! locale, the variables of `env`, the `SYSTOLE_*` variables and `TRACEPARENT`.
//!
//! Invariants: when the future of [`CommandListener::answer`] is done, the whole group is killed and the process is
//! reaped; when it is dropped, the group gets SIGTERM, and SIGKILL a few seconds later, and counts for the concurrency of
//! its listener until then; when this process ends, even by `kill -9`, the groups end with it. A descendant that leaves the
//! group (`setsid`) is not killed, but can't delay the answer. No part of a payload is ever taken for the whole, and no
//! file is left behind.

mod history;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use systole_core::core::{Failure, HandlerOutcome, Message, Remembered};
use systole_core::vocab::{Fault, FaultCode, Name};
use systole_xml::ladder::Raw;

use super::json::{self, JsonPayloads};
use crate::process::ending::Ends;
use crate::process::environment::variables;
use crate::process::run::{self, CommandError, Invocation, Wait};
use crate::process::{About, CommandSpec, Subject};
use crate::runtime::{LocalBoxFuture, RawListener, RunContext};
use history::History;

/// A listener that runs a program for each message.
#[derive(Debug, Clone)]
pub struct CommandListener {
    name: Name,
    spec: CommandSpec,
    is_json: bool,
    occupied: Arc<Occupied>,
}

/// The processes of a listener.
#[derive(Debug, Default)]
struct Occupied {
    /// Processes whose messages are in flight.
    running: AtomicUsize,
    /// Processes whose messages are over, but which have not ended yet.
    ends: Arc<Ends>,
}

/// A process whose message is in flight.
struct Running<'a>(&'a Occupied);

impl Occupied {
    /// Waits until a process that has to end leaves its place, where all places are taken. `stalls`: called before and
    /// after.
    async fn enter(&self, places: usize, stalls: impl Fn(bool)) -> Running<'_> {
        let mut waits = false;
        while self.running.load(Ordering::Relaxed) + self.ends.len() >= places {
            if !waits {
                stalls(true);
            }
            waits = true;
            if !self.ends.next().await {
                break;
            }
        }
        if waits {
            stalls(false);
        }
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(self)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CommandListener {
    /// Makes a listener of that name.
    pub fn new(name: Name, spec: CommandSpec) -> Self {
        Self { name, spec, is_json: false, occupied: Arc::default() }
    }

    /// Lets the program read and write payloads as JSON (`docs/json.md`).
    #[must_use]
    pub fn json(self, is_json: bool) -> Self {
        Self { is_json, ..self }
    }

    /// Runs the program for a message, with payloads as XML: `Wrote` at exit 0, `Failed` otherwise.
    ///
    /// A history is passed as a file in memory that the program inherits and `SYSTOLE_HISTORY` names. A program that
    /// writes more than `max_output` bytes is killed.
    ///
    /// # Cancel safety
    /// Dropping the future ends the process and everything in its group: SIGTERM, and SIGKILL a few seconds later.
    pub async fn answer(&self, message: &Message, history: Option<&[Remembered]>, max_output: usize) -> HandlerOutcome {
        match self.run_program(message, history, max_output, Wait::ENDLESS, None).await {
            Ok(output) => HandlerOutcome::Wrote(output),
            Err((failure, _)) => HandlerOutcome::Failed(failure),
        }
    }

    /// Runs the program; the failure comes with the end of its standard error.
    async fn run_program(
        &self,
        message: &Message,
        history: Option<&[Remembered]>,
        max_output: usize,
        wait: Wait<impl Fn(bool)>,
        json: Option<&JsonPayloads>,
    ) -> Result<Raw, (Failure, String)> {
        let mut said = String::new();
        let payload = message.body.written();
        let input = match json {
            None => payload.bytes().clone(),
            Some(json) => format!("{}\n", json.write(&payload).get()).into(),
        };
        let history = history.map(|history| History::new(history, json)).transpose();
        let output = match history.map_err(CommandError::Start) {
            Ok(history) => {
                let about = About::of(message);
                let path = history.as_ref().map(History::path);
                let environment = variables(&self.spec.env, &about, path.as_deref());
                let inherited = history.map(History::into_file);
                let ends = Some(&self.occupied.ends);
                let invocation = Invocation { spec: &self.spec, environment, input, inherited, max_output, ends };
                run::run((&self.name, Some(about.subject())), invocation, wait, &mut said).await
            }
            Err(error) => Err(error),
        };
        match output {
            Ok(output) => Ok(Raw::new(output)),
            Err(error) => Err((self.failure(&error, Subject::of(message)), said)),
        }
    }

    /// Logs the error, and makes the failure that the caller may see.
    fn failure(&self, error: &CommandError, subject: Subject) -> Failure {
        let (Subject { thread, id, .. }, trace) = (subject, subject.trace());
        tracing::warn!(listener = %self.name, %thread, message_id = %id, trace, program = %self.spec.program.display(), error = error.detail(), "a command failed");
        let fault = match error {
            CommandError::Start(_) => {
                let fault = Fault::new(FaultCode::ListenerFailed, error.to_string());
                Some(Fault { retryable: error.is_temporary(), ..fault })
            }
            CommandError::TooMuch { .. } => Some(Fault::new(FaultCode::Limit, error.to_string())),
            CommandError::Exit(_) | CommandError::Stream(_) => None,
        };
        Failure { message: error.to_string().into(), fault }
    }
}

impl RawListener for CommandListener {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(async move {
            let (contract, thread) = (context.contract(), context.thread());
            let history = contract.context.then(|| thread.history());
            let (places, stalls) = (contract.concurrency as usize, |stalled| thread.stall(stalled));
            let _running = self.occupied.enter(places, stalls).await;
            let wait = Wait { longest: contract.timeout, stalls };
            let json = || JsonPayloads::new(contract, context.catalog().clone(), &context.limits().xml);
            let json = self.is_json.then(json);
            let most = context.limits().xml.message_bytes;
            match self.run_program(&message, history, most, wait, json.as_ref()).await {
                Ok(raw) => match json {
                    None => HandlerOutcome::Wrote(raw),
                    Some(json) => {
                        let read = json.read(raw.bytes());
                        json::outcome(raw, read)
                    }
                },
                Err((failure, said)) => {
                    thread.said(said);
                    HandlerOutcome::Failed(failure)
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use bytes::Bytes;
    use systole_core::core::{Body, JoinPosition};
    use systole_core::vocab::{MessageId, ThreadId, Traceparent, XmlLimits};
    use systole_xml::ladder::{Canonical, strict};
    use systole_xml::schema::{Catalog, Element, PayloadSchema, Validated, Validator};
    use uuid::Uuid;

    use super::*;

    fn canonical(xml: &'static str) -> Canonical {
        strict::canonicalize(&Bytes::from_static(xml.as_bytes()), &XmlLimits::default()).unwrap()
    }

    /// Validates a payload `a` against its schema, text.
    fn proven(payload: Canonical) -> Validated<Element> {
        let schema = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a" type="xs:string"/></xs:schema>"#;
        let catalog = Catalog::only(PayloadSchema::from_xsd("a.xsd", schema).unwrap());
        Validator::new(Arc::new(catalog)).validate(payload).unwrap()
    }

    fn message(xml: &'static str) -> Message {
        Message {
            id: MessageId::from_uuid(Uuid::from_u128(1)),
            thread: ThreadId::from_uuid(Uuid::from_u128(2)),
            from: Name::parse("asker").unwrap(),
            in_reply_to: Some(MessageId::from_uuid(Uuid::from_u128(3))),
            body: Body::Payload {
                payload: proven(canonical(xml)),
                value: systole_core::core::Value::new(Box::new(())),
            },
            join: Some(JoinPosition { index: 1, total: 3, remaining: 0 }),
            deadline: Some("2031-05-07T12:00:00Z".parse().unwrap()),
            is_budgeted: false,
            attempts: 0,
            root: ThreadId::from_uuid(Uuid::from_u128(4)),
            traceparent: Traceparent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            history: Vec::new(),
            place: Default::default(),
            number: 0,
            notes: Vec::new(),
        }
    }

    async fn answer(script: &str, env: &[&str], context: bool) -> HandlerOutcome {
        let spec = CommandSpec {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            env: env.iter().map(|entry| entry.parse().unwrap()).collect(),
            directory: std::env::temp_dir(),
        };
        let listener = CommandListener::new(Name::parse("test").unwrap(), spec);
        let (from, payload) = (Name::parse("other").unwrap(), canonical("<b>&amp;</b>"));
        let history = [Remembered { from, payload, place: Default::default() }];
        listener.answer(&message("<a>x</a>"), context.then_some(&history), 10_000).await
    }

    fn written(outcome: HandlerOutcome) -> String {
        let HandlerOutcome::Wrote(raw) = outcome else { panic!("{outcome:?}") };
        String::from_utf8(raw.bytes().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn the_canonical_payload_comes_in_and_raw_bytes_go_out() {
        assert_eq!(written(answer("cat; echo ' & more'", &[], false).await), "<a>x</a> & more\n");
    }

    #[tokio::test]
    async fn the_environment_tells_where_the_message_stands() {
        let script = r#"env | grep -E '^(SYSTOLE_|SET|CARGO_MANIFEST_DIR|TRACEPARENT)' | sort"#;
        let asked_for = concat!("CARGO_MANIFEST_DIR=", env!("CARGO_MANIFEST_DIR"), "\nSET=a=b\n");
        let always = "\
            SYSTOLE_DEADLINE=2031-05-07T12:00:00Z\n\
            SYSTOLE_FROM=asker\n\
            SYSTOLE_INDEX=1\n\
            SYSTOLE_IN_REPLY_TO=00000000-0000-0000-0000-000000000003\n\
            SYSTOLE_MESSAGE_ID=00000000-0000-0000-0000-000000000001\n\
            SYSTOLE_REMAINING=0\n\
            SYSTOLE_THREAD=00000000-0000-0000-0000-000000000002\n\
            SYSTOLE_TOTAL=3\n\
            TRACEPARENT=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n";
        assert_eq!(written(answer(script, &[], false).await), always);
        let variables = ["SET=a=b", "CARGO_MANIFEST_DIR", "NO_SUCH_VARIABLE"];
        assert_eq!(written(answer(script, &variables, false).await), format!("{asked_for}{always}"));
    }

    #[tokio::test]
    async fn the_history_is_a_sealed_file_that_has_no_name() {
        let script = r#"cat "$SYSTOLE_HISTORY"; cat "$SYSTOLE_HISTORY"
            (echo more >> "$SYSTOLE_HISTORY") 2>/dev/null && echo written
            readlink "$SYSTOLE_HISTORY""#;
        let output = written(answer(script, &[], true).await);
        let [first, second, link] = output.lines().collect::<Vec<_>>()[..] else { panic!("{output}") };
        assert_eq!(first, r#"<history><message from="other"><b>&amp;</b></message></history>"#);
        assert_eq!(second, first, "each `open` begins at the start");
        assert!(link.starts_with("/memfd:") && link.ends_with(" (deleted)"), "{link}");
    }

    #[tokio::test]
    async fn a_command_inherits_its_streams_and_its_history_alone() {
        let script = r#"for fd in /proc/$$/fd/*; do readlink "$fd"; done | grep -c memfd:"#;
        assert_eq!(written(answer(script, &[], false).await), "1\n", "the payload");
        assert_eq!(written(answer(script, &[], true).await), "2\n", "and the history");
    }

    #[tokio::test]
    async fn each_failure_says_to_the_caller_what_it_may_know() {
        let failed = async |script: &str| match answer(script, &[], false).await {
            HandlerOutcome::Failed(failure) => (failure.message.to_string(), failure.fault.map(|fault| fault.code)),
            outcome => panic!("{outcome:?}"),
        };
        assert_eq!(failed("exit 7").await, ("the listener exited with status 7".into(), None));
        let limit = ("the listener wrote more than 10000 bytes".into(), Some(FaultCode::Limit));
        assert_eq!(failed("yes").await, limit);
    }

    #[tokio::test]
    async fn a_program_that_lost_its_permission_fails_the_listener() {
        let file = std::env::temp_dir().join(format!("systole-test-{}-program", std::process::id()));
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let spec = CommandSpec {
            program: file.clone(),
            arguments: Vec::new(),
            env: Vec::new(),
            directory: std::env::temp_dir(),
        };
        let outcome = CommandListener::new(Name::parse("test").unwrap(), spec).answer(&message("<a/>"), None, 1).await;
        std::fs::remove_file(&file).unwrap();
        let HandlerOutcome::Failed(Failure { fault: Some(fault), .. }) = outcome else { panic!("{outcome:?}") };
        assert_eq!((fault.code, fault.retryable), (FaultCode::ListenerFailed, false));
    }
}
