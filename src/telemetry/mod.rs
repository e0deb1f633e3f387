//! Traces of conversations, by OTLP over HTTP.
//!
//! A conversation is a trace, and each thread a span below the one of the thread that called it. Below the span of a thread stand
//! the runs of its handler, and below a run the requests to models. Ids are derived from those of the conversation, the thread
//! and the message, so parents are right however spans arrive, also those of a conversation that goes on after a restart. A span
//! is made when it ends, of the [events](crate::core::Event) of the organism; nothing is added to the way of a message.
//!
//! The standard variables of OpenTelemetry configure it (`OTEL_EXPORTER_OTLP_ENDPOINT`, …; [`Traces::from_environment`]). Names of
//! attributes are those of the semantic conventions for GenAI, version 0.1.0. No content of a message is sent.

mod past;

use std::collections::HashMap;
use std::env;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use systole_core::core::{Blueprint, Event, EventKind, Usage, Version};
use systole_core::vocab::{
    FaultCode, MessageId, Name, Sampler, ThreadId, Time, Traceparent, span_id, span_of_run, span_of_thread, trace_of,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::outbound::{http, tls};
use crate::runtime::{Events, Observed, Organism, OrganismBuilder};

pub use past::{PastError, PastTraces};

/// Names of the semantic conventions: GenAI 1.42 (<https://opentelemetry.io/schemas/gen-ai/1.42.0>) and messaging.
mod names {
    pub(super) const SCHEMA: &str = "https://opentelemetry.io/schemas/gen-ai/1.42.0";
    pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
    pub(super) const SESSION: &str = "session.id";
    pub(super) const OPERATION: &str = "gen_ai.operation.name";
    pub(super) const AGENT: &str = "gen_ai.agent.name";
    pub(super) const TOOL: &str = "gen_ai.tool.name";
    pub(super) const PROVIDER: &str = "gen_ai.provider.name";
    pub(super) const MODEL: &str = "gen_ai.response.model";
    pub(super) const INPUT: &str = "gen_ai.usage.input_tokens";
    pub(super) const OUTPUT: &str = "gen_ai.usage.output_tokens";
    pub(super) const CACHED: &str = "gen_ai.usage.cache_read.input_tokens";
    pub(super) const WRITTEN: &str = "gen_ai.usage.cache_creation.input_tokens";
    pub(super) const SYSTEM: &str = "messaging.system";
    pub(super) const MESSAGING: &str = "messaging.operation.type";
    pub(super) const DESTINATION: &str = "messaging.destination.name";
    pub(super) const MESSAGE: &str = "messaging.message.id";
    pub(super) const ERROR: &str = "error.type";
    pub(super) const COST: &str = "systole.cost";
    pub(super) const PATH: &str = "systole.path";
    pub(super) const PAYLOAD: &str = "systole.payload";
}

/// Most spans of one request.
const BATCH: usize = 512;
/// Most events that are read at once, under the lock that the pump writes under.
const EVENTS: usize = 256;
/// Time in which events gather. The ring holds those of this time at 800,000 events a second.
const GATHER: Duration = Duration::from_millis(20);
/// The longest time for which a span waits for others.
const WAIT: Duration = Duration::from_secs(1);
/// Time limit of a request, unless `OTEL_EXPORTER_OTLP_TIMEOUT` sets another one.
const LIMIT: Duration = Duration::from_secs(10);
/// Time limit for the last spans, at the end of the organism.
const FLUSH: Duration = Duration::from_secs(2);
/// Least time between two lines of the log about lost spans.
const QUIET: Duration = Duration::from_secs(60);
/// Most bytes of an answer of the collector that are read.
const ANSWER: usize = 64 << 10;

/// Reason why traces can't be exported.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// A variable says what can't be done.
    #[error("{variable}={value}: {why}")]
    Variable {
        /// The variable.
        variable: &'static str,
        /// The value.
        value: String,
        /// The reason.
        why: &'static str,
    },
    /// The variables of the exporter are wrong.
    #[error("traces can't be exported: {0}")]
    Exporter(#[from] ExporterBuildError),
    /// The organism was built without traces.
    #[error("traces can't be exported: the organism was not prepared for them; call Traces::prepare on its builder")]
    Unprepared,
    /// No client of HTTP can be made.
    #[error("traces can't be exported: {0}")]
    Client(String),
    /// The system refuses a thread.
    #[error("traces can't be exported: {0}")]
    System(#[from] std::io::Error),
}

systole_core::vocab::debug_is_display!(TelemetryError);

/// An exporter of traces, before its organism has started.
pub struct Traces {
    exporter: SpanExporter,
    /// Time limit of a request.
    limit: Duration,
    sampler: Sampler,
}

/// The counts of spans.
#[derive(Debug, Default)]
struct Fate {
    sent: AtomicU64,
    lost: AtomicU64,
}

/// Traces that are being exported, until this value is dropped: then the last spans are sent, for at most 2 s.
#[derive(Debug)]
pub struct Exporting {
    end: watch::Sender<bool>,
    fate: Arc<Fate>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Exporting {
    /// The spans that the collector took.
    pub fn sent(&self) -> u64 {
        self.fate.sent.load(Ordering::Relaxed)
    }

    /// The spans that were lost, because the collector did not take them, and the events that came too fast.
    pub fn lost(&self) -> u64 {
        self.fate.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Exporting {
    fn drop(&mut self) {
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // The log has a panic of the thread already.
            let _ = thread.join();
        }
    }
}

impl Traces {
    /// Reads the standard variables; none unless `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set, or
    /// if `OTEL_SDK_DISABLED` or `OTEL_TRACES_EXPORTER` switch traces off.
    ///
    /// The endpoint, headers and timeout are read as the specification of the OTLP exporter says;
    /// `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` describe the resource, whose name is else that of the organism;
    /// `OTEL_TRACES_SAMPLER` is `always_on`, `always_off` or `traceidratio`. With `parentbased_` before it, the caller of a
    /// message decides, where its `traceparent` names one.
    ///
    /// # Errors
    /// [`TelemetryError`] if a variable can't be followed.
    pub fn from_environment() -> Result<Option<Self>, TelemetryError> {
        let read = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let wanted = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
            .into_iter()
            .any(|name| read(name).is_some());
        let disabled = read("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if !wanted || disabled {
            return Ok(None);
        }
        match read("OTEL_TRACES_EXPORTER").as_deref() {
            None | Some("otlp") => {}
            Some("none") => return Ok(None),
            Some(value) => return Err(unknown("OTEL_TRACES_EXPORTER", value, "write otlp or none")),
        }
        for variable in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            if let Some(value) = read(variable).filter(|value| value != "http/protobuf") {
                return Err(unknown(variable, &value, "write http/protobuf"));
            }
        }
        let sampler = read("OTEL_TRACES_SAMPLER");
        let sampler = sampler.as_deref().unwrap_or("parentbased_always_on");
        let own = sampler.strip_prefix("parentbased_");
        let ratio = match own.unwrap_or(sampler) {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => ratio(read("OTEL_TRACES_SAMPLER_ARG").as_deref())?,
            _ => {
                return Err(unknown("OTEL_TRACES_SAMPLER", sampler, "write always_on, always_off or traceidratio"));
            }
        };
        let mut limit = LIMIT;
        for variable in ["OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"] {
            if let Some(value) = read(variable) {
                let millis = value.parse().map_err(|_| unknown(variable, &value, "write milliseconds"))?;
                limit = Duration::from_millis(millis);
            }
        }
        let exporter = SpanExporter::builder().with_http().with_http_client(Collector::new(limit)?).build()?;
        Ok(Some(Self { exporter, limit, sampler: Sampler::new(ratio, own.is_some()) }))
    }

    /// Prepares an organism to be [followed](Self::follow): it makes events, and its requests to programs and other machines
    /// name the run of the handler that makes them as their caller (W3C Trace Context).
    #[must_use]
    pub fn prepare(&self, organism: OrganismBuilder) -> OrganismBuilder {
        organism.traced(self.sampler)
    }

    /// Exports the spans of an organism from its start on, on a thread of its own.
    ///
    /// # Errors
    /// [`TelemetryError`] if the organism was not [prepared](Self::prepare), or the system refuses a thread.
    pub fn follow(mut self, organism: &Arc<Organism>) -> Result<Exporting, TelemetryError> {
        let prepared = organism.sampler().and(organism.events_after(0));
        let events = prepared.ok_or(TelemetryError::Unprepared)?;
        self.name_resource(&organism.blueprint().organism);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = watch::channel(false);
        let (organism, fate) = (Arc::downgrade(organism), Arc::<Fate>::default());
        let told = fate.clone();
        let thread = std::thread::Builder::new().name("systole-traces".to_owned()).spawn(move || {
            runtime.block_on(async move {
                let mut spans = match organism.upgrade() {
                    Some(organism) => Spans::of(&organism, self.sampler).await,
                    None => return,
                };
                let mut sender = self.sender(told);
                send(&organism, &mut spans, events, &mut sender, ended).await;
            });
        })?;
        Ok(Exporting { end, fate, thread: Some(thread) })
    }
}

impl Traces {
    /// Gives the resource the name of an organism, unless a variable names it.
    fn name_resource(&mut self, organism: &str) {
        let mut resource = Resource::builder();
        if env::var_os("OTEL_SERVICE_NAME").is_none_or(|name| name.is_empty()) {
            resource = resource.with_service_name(organism.to_owned());
        }
        self.exporter.set_resource(&resource.build());
    }

    fn sender(self, fate: Arc<Fate>) -> Sender {
        let Self { exporter, limit, .. } = self;
        Sender { exporter, limit, fate, quiet_until: Instant::now() }
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").field("sampler", &self.sampler).finish_non_exhaustive()
    }
}

fn unknown(variable: &'static str, value: &str, why: &'static str) -> TelemetryError {
    TelemetryError::Variable { variable, value: value.to_owned(), why }
}

fn ratio(text: Option<&str>) -> Result<f64, TelemetryError> {
    let Some(text) = text else { return Ok(1.0) };
    let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| unknown("OTEL_TRACES_SAMPLER_ARG", text, "write a number from 0 to 1"))
}

/// Makes spans of events, and sends them, until the organism or this has ended; the last ones for a bounded time.
async fn send(
    organism: &Weak<Organism>,
    spans: &mut Spans,
    mut events: Events,
    sender: &mut Sender,
    ended: watch::Receiver<bool>,
) {
    let (mut end, mut over) = (ended.clone(), ended);
    let work = async {
        let (mut due, mut taken) = (None, Vec::new());
        loop {
            tokio::select! {
                biased;
                () = until(due) => {
                    sender.send(&mut spans.made).await;
                    due = None;
                    continue;
                }
                more = events.take(EVENTS, &mut taken) => {
                    if !more {
                        break;
                    }
                }
                // Those that are there are told yet.
                _ = end.wait_for(|ended| *ended) => break,
            }
            let are_more = taken.len() >= EVENTS;
            if let Some(present) = organism.upgrade().map(|organism| organism.blueprint())
                && present.version() != spans.version
            {
                spans.learn(&present);
            }
            for observed in taken.drain(..) {
                match observed {
                    Observed::Event(event) => spans.take(&event),
                    Observed::Missed(count) => {
                        // The ends of these may be among them.
                        spans.open.clear();
                        sender.lose(count, "events came too fast");
                    }
                }
                if spans.made.len() >= BATCH {
                    sender.send(&mut spans.made).await;
                    due = None;
                }
            }
            if due.is_none() && !spans.made.is_empty() {
                due = Some(Instant::now() + WAIT);
            }
            if !are_more {
                // The pump wakes a reader that waits for each event, and none that lets them gather.
                tokio::select! {
                    () = sleep(GATHER) => {}
                    _ = end.wait_for(|ended| *ended) => {}
                }
            }
        }
        sender.send(&mut spans.made).await;
    };
    let overdue = async {
        // Its sender is dropped behind the end.
        let _ = over.wait_for(|ended| *ended).await;
        sleep(FLUSH).await;
    };
    tokio::select! {
        () = work => {}
        () = overdue => {}
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// The way to the collector.
#[derive(Debug)]
struct Sender {
    exporter: SpanExporter,
    limit: Duration,
    fate: Arc<Fate>,
    /// The time until which the log has enough of lost spans.
    quiet_until: Instant,
}

impl Sender {
    /// Sends spans; those that the collector doesn't take are lost.
    async fn send(&mut self, made: &mut Vec<SpanData>) {
        let batch = std::mem::take(made);
        if batch.is_empty() {
            return;
        }
        let count = batch.len() as u64;
        match self.export(batch).await {
            Ok(()) => drop(self.fate.sent.fetch_add(count, Ordering::Relaxed)),
            Err(why) => self.lose(count, &why),
        }
    }

    /// Sends spans; the error is the reason why the collector doesn't take them.
    async fn export(&self, batch: Vec<SpanData>) -> Result<(), String> {
        match timeout(self.limit, self.exporter.export(batch)).await {
            Ok(sent) => sent.map_err(|error| error.to_string()),
            Err(_) => Err("the collector doesn't answer".to_owned()),
        }
    }

    fn lose(&mut self, count: u64, why: &str) {
        let lost = self.fate.lost.fetch_add(count, Ordering::Relaxed) + count;
        if Instant::now() >= self.quiet_until {
            self.quiet_until = Instant::now() + QUIET;
            tracing::warn!(lost, "spans are lost: {why}");
        }
    }
}

/// The collector, by the client that sends to other machines.
#[derive(Debug)]
struct Collector(http::Client);

impl Collector {
    /// Makes a client that connects within this time.
    fn new(limit: Duration) -> Result<Self, TelemetryError> {
        let tls = tls(&[]).map_err(|error| TelemetryError::Client(error.to_string()))?;
        Ok(Self(http::Client::new(tls, None, Some(limit))))
    }
}

#[async_trait::async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let mut sent = http::Request::new(head.method, head.uri.to_string().parse()?);
        sent.headers = head.headers;
        sent.body = Full::new(body).boxed_unsync();
        let mut answer = self.0.execute(sent).await?;
        let mut read = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            read.extend_from_slice(&chunk);
            if read.len() > ANSWER {
                return Err("the answer of the collector is too long".into());
            }
        }
        Ok(Response::builder().status(answer.status()).body(Bytes::from(read))?)
    }
}

/// A span of a thread that is open.
#[derive(Debug)]
struct Open {
    parent: Option<ThreadId>,
    /// The caller elsewhere.
    caller: Option<Traceparent>,
    since: Time,
    path: String,
    listener: Option<Name>,
    payload: Option<String>,
    fault: Option<FaultCode>,
    /// True if a model speaks for the listener, or it calls others.
    is_agent: bool,
    run: Option<Run>,
}

/// The kind of an error, and what is said of it.
type Failure<'a> = (&'a str, &'a str);

impl Open {
    fn failure(&self) -> Option<Failure<'static>> {
        self.fault.map(|code| (code.as_str(), code.as_str()))
    }
}

/// A handler that runs.
#[derive(Debug)]
struct Run {
    message: MessageId,
    since: Time,
}

/// The listeners that may call others.
fn callers(blueprint: &Blueprint) -> Vec<Name> {
    let callers = blueprint.listeners().filter(|(_, contract)| !contract.calls.is_empty());
    callers.map(|(_, contract)| contract.name.clone()).collect()
}

/// The open threads, and the spans of those that have ended.
#[derive(Debug)]
struct Spans {
    open: HashMap<ThreadId, Open>,
    made: Vec<SpanData>,
    /// The listeners that call others, in this version of the organism.
    callers: Vec<Name>,
    version: Version,
    organism: String,
    sampler: Sampler,
    scope: InstrumentationScope,
}

impl Spans {
    fn new(organism: String, callers: Vec<Name>, sampler: Sampler) -> Self {
        let scope = InstrumentationScope::builder("systole")
            .with_version(env!("CARGO_PKG_VERSION"))
            .with_schema_url(names::SCHEMA)
            .build();
        let version = Version::default();
        Self { open: HashMap::new(), made: Vec::new(), callers, version, organism, sampler, scope }
    }

    /// The spans of an organism, whose threads that are open already are known.
    async fn of(organism: &Organism, sampler: Sampler) -> Self {
        let blueprint = organism.blueprint();
        let mut spans = Self::new(blueprint.organism.clone(), Vec::new(), sampler);
        spans.learn(&blueprint);
        let now = organism.now();
        let threads = organism.snapshot().await.threads;
        for thread in threads.into_iter().filter(|thread| sampler.samples(thread.root, thread.traceparent)) {
            let listener = thread.path.segments().last().map(|(name, _)| name.clone());
            // Those that an earlier start opened began then, at a time that only the journal has.
            let open = spans.opened((thread.parent, thread.traceparent), now, thread.path.to_string(), listener);
            spans.open.insert(thread.id, open);
        }
        spans
    }

    /// Learns the listeners of the present version.
    fn learn(&mut self, blueprint: &Blueprint) {
        (self.callers, self.version) = (callers(blueprint), blueprint.version());
    }

    fn opened(
        &self,
        (parent, caller): (Option<ThreadId>, Option<Traceparent>),
        since: Time,
        path: String,
        listener: Option<Name>,
    ) -> Open {
        let is_agent = listener.as_ref().is_some_and(|name| self.callers.contains(name));
        Open { parent, caller, since, path, listener, payload: None, fault: None, is_agent, run: None }
    }

    /// Takes an event, which may end spans.
    fn take(&mut self, event: &Event) {
        if !self.sampler.samples(event.root, event.traceparent) {
            return;
        }
        match &event.kind {
            EventKind::Opened { parent } => {
                let listener = event.path.segments().last().map(|(name, _)| name.clone());
                let open = self.opened((*parent, event.traceparent), event.at, event.path.to_string(), listener);
                self.open.insert(event.thread, open);
            }
            EventKind::Delivered { message, payload, .. } => {
                if let Some(open) = self.open.get_mut(&event.thread) {
                    if open.payload.is_none() {
                        open.payload = payload.as_ref().map(ToString::to_string);
                    }
                    open.run = Some(Run { message: *message, since: event.at });
                }
            }
            EventKind::Faulted { fault, .. } => {
                if let Some(open) = self.open.get_mut(&event.thread) {
                    open.fault = Some(fault.code);
                }
            }
            EventKind::ModelAnswered { by, message, note, backend, model, usage, took, .. } => {
                let (note, model) = (*note, Some(model));
                let asked = Asked { by, message: *message, note, backend, model, usage, took: *took };
                self.asked(event, &asked, None);
            }
            EventKind::ModelFailed { by, message, backend, error, usage, took, .. } => {
                let asked = Asked { by, message: *message, note: None, backend, model: None, usage, took: *took };
                self.asked(event, &asked, Some(("no-answer", error)));
            }
            EventKind::Handled { .. } => self.end_run(event),
            EventKind::Closed { .. } => {
                self.end_run(event);
                self.close(event);
            }
            _ => {}
        }
    }

    /// Ends the span of the handler that runs on a thread, if one does.
    fn end_run(&mut self, event: &Event) {
        let Some(open) = self.open.get_mut(&event.thread) else { return };
        let (Some(run), Some(listener)) = (open.run.take(), open.listener.clone()) else { return };
        let failure = open.failure();
        let attributes = vec![
            KeyValue::new(names::SYSTEM, "systole"),
            KeyValue::new(names::MESSAGING, "process"),
            KeyValue::new(names::DESTINATION, listener.to_string()),
            KeyValue::new(names::MESSAGE, run.message.to_string()),
        ];
        let span = Part {
            id: span_of_run(event.thread, run.message),
            parent: span_of_thread(event.thread),
            is_remote: false,
            kind: SpanKind::Consumer,
            since: run.since,
            until: event.at,
        };
        self.make(event, span, format!("process {listener}"), attributes, failure);
    }

    /// Ends the span of a thread.
    fn close(&mut self, event: &Event) {
        let Some(open) = self.open.remove(&event.thread) else { return };
        let (name, kind, mut attributes) = match &open.listener {
            None => (
                format!("invoke_workflow {}", self.organism),
                SpanKind::Server,
                vec![
                    KeyValue::new(names::OPERATION, "invoke_workflow"),
                    KeyValue::new(names::AGENT, self.organism.clone()),
                ],
            ),
            Some(listener) if open.is_agent => (
                format!("invoke_agent {listener}"),
                SpanKind::Internal,
                vec![
                    KeyValue::new(names::OPERATION, "invoke_agent"),
                    KeyValue::new(names::AGENT, listener.to_string()),
                ],
            ),
            Some(listener) => (
                format!("execute_tool {listener}"),
                SpanKind::Internal,
                vec![KeyValue::new(names::OPERATION, "execute_tool"), KeyValue::new(names::TOOL, listener.to_string())],
            ),
        };
        let failure = open.failure();
        attributes.push(KeyValue::new(names::PATH, open.path));
        attributes.extend(open.payload.map(|payload| KeyValue::new(names::PAYLOAD, payload)));
        // A message of a conversation may have another caller than the first one: then it is a part of that trace.
        let is_of = |parent: &ThreadId| self.open.get(parent).is_none_or(|parent| parent.caller == open.caller);
        let (parent, is_remote) = match (open.parent.filter(is_of), open.caller) {
            (Some(parent), _) => (span_of_thread(parent), false),
            (None, Some(caller)) => (caller.span(), true),
            (None, None) => ([0; 8], false),
        };
        let id = span_of_thread(event.thread);
        let span = Part { id, parent, is_remote, kind, since: open.since, until: event.at };
        self.make(event, span, name, attributes, failure);
    }

    /// Makes the span of a request to a model.
    fn asked(&mut self, event: &Event, asked: &Asked<'_>, failure: Option<Failure<'_>>) {
        // Its parents are lost.
        let Some(open) = self.open.get_mut(&event.thread) else { return };
        open.is_agent = true;
        let Asked { by, message, note, backend, model, usage, took } = *asked;
        let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        let mut attributes = vec![
            KeyValue::new(names::OPERATION, "chat"),
            KeyValue::new(names::PROVIDER, backend.to_string()),
            KeyValue::new(names::AGENT, by.to_string()),
            KeyValue::new(names::INPUT, count(usage.input)),
            KeyValue::new(names::OUTPUT, count(usage.output)),
            KeyValue::new(names::CACHED, count(usage.cached)),
            KeyValue::new(names::WRITTEN, count(usage.written)),
            KeyValue::new(names::COST, usage.cost.as_f64()),
        ];
        attributes.extend(model.map(|model| KeyValue::new(names::MODEL, model.to_string())));
        let since = Time::from_nanos(event.at.as_nanos().saturating_sub(took.as_nanos() as u64));
        let parent = span_of_run(event.thread, message);
        let id = match note {
            Some(note) => span_id(&[b"answer", message.as_uuid().as_bytes(), &note.to_le_bytes()]),
            None => span_id(&[b"model", message.as_uuid().as_bytes(), &event.at.as_nanos().to_le_bytes()]),
        };
        let span = Part { id, parent, is_remote: false, kind: SpanKind::Client, since, until: event.at };
        self.make(event, span, format!("chat {}", model.unwrap_or(backend)), attributes, failure);
    }

    fn make(
        &mut self,
        event: &Event,
        span: Part,
        name: String,
        mut attributes: Vec<KeyValue>,
        failure: Option<Failure<'_>>,
    ) {
        let trace = TraceId::from_bytes(trace_of(event.root, event.traceparent));
        let status = failure.map_or(Status::Unset, |(_, said)| Status::error(said.to_owned()));
        attributes.extend(failure.map(|(kind, _)| KeyValue::new(names::ERROR, kind.to_owned())));
        let Part { id, parent, is_remote, kind, since, until } = span;
        let conversation: Arc<str> = event.root.to_string().into();
        attributes.push(KeyValue::new(names::CONVERSATION, conversation.clone()));
        attributes.push(KeyValue::new(names::SESSION, conversation));
        let id = SpanId::from_bytes(id);
        self.made.push(SpanData {
            span_context: SpanContext::new(trace, id, TraceFlags::SAMPLED, false, TraceState::default()),
            parent_span_id: SpanId::from_bytes(parent),
            parent_span_is_remote: is_remote,
            span_kind: kind,
            name: name.into(),
            start_time: moment(since),
            end_time: moment(until),
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status,
            instrumentation_scope: self.scope.clone(),
        });
    }
}

/// A request to a model that has ended.
#[derive(Clone, Copy)]
struct Asked<'a> {
    by: &'a Name,
    message: MessageId,
    /// The note that keeps its answer.
    note: Option<u32>,
    backend: &'a Arc<str>,
    model: Option<&'a Arc<str>>,
    usage: &'a Usage,
    took: Duration,
}

/// The place of a span.
struct Part {
    id: [u8; 8],
    /// Zeros for none.
    parent: [u8; 8],
    /// True if the parent is a span of another program.
    is_remote: bool,
    kind: SpanKind,
    since: Time,
    until: Time,
}

fn moment(time: Time) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(time.as_nanos())
}
