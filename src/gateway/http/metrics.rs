//! The figures of `/metrics` and `/v1/admin/metrics`: what events told since the start, and the state at the moment. Those
//! that need no token hold no name of any party.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use systole_core::core::{Event, EventKind, Latency, Usage};
use systole_core::vocab::{Name, ThreadId, Time};

use super::admin::admin;
use super::caller::Caller;
use super::failures::Reason;
use super::{AppState, view};
use crate::gateway::problem::Problem;
use crate::operations::ListenerRecord;
use crate::runtime::{Events, Observed};

/// Most events that are counted at once.
const BATCH: usize = 256;

/// The figures that events tell.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<Counting>);

#[derive(Debug, Default)]
struct Counting {
    figures: Figures,
    threads: HashMap<ThreadId, Thread>,
}

/// A thread whose request waits, or whose handler runs.
#[derive(Debug)]
struct Thread {
    listener: Option<Name>,
    is_running: bool,
    /// The time at which the thread opened, or its handler got the message.
    since: Time,
}

/// Figures of events since the start.
#[derive(Debug, Clone, Default)]
struct Figures {
    /// By listener or client.
    parties: BTreeMap<Option<Name>, Party>,
    dead_letters: BTreeMap<&'static str, u64>,
    /// Acts of operators, and whether they had an effect.
    acts: BTreeMap<(&'static str, bool), u64>,
    missed: u64,
}

/// Figures of one listener or client.
#[derive(Debug, Clone, Default)]
struct Party {
    deliveries: u64,
    /// Handlers that ended, by outcome.
    ended: BTreeMap<&'static str, u64>,
    took: Latency,
    /// Times from the opening of a thread until its handler got the request.
    waited: Latency,
    faults: BTreeMap<&'static str, u64>,
    refusals: BTreeMap<&'static str, u64>,
    repairs: BTreeMap<&'static str, u64>,
    models: BTreeMap<Arc<str>, Model>,
}

/// Figures of one backend, for one listener.
#[derive(Debug, Clone, Copy, Default)]
struct Model {
    answered: u64,
    failed: u64,
    usage: Usage,
    took: Latency,
}

/// The use of one backend by one listener.
pub(crate) struct ModelFigures {
    pub(crate) listener: String,
    pub(crate) backend: Arc<str>,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    pub(crate) usage: Usage,
    /// Mean time of a request.
    pub(crate) mean: Duration,
    /// Outputs of the listener that were refused, and repairs of them.
    pub(crate) refused: u64,
    pub(crate) repaired: u64,
}

/// The work of one listener.
#[derive(Default)]
pub(crate) struct ListenerFigures {
    /// Messages that its handlers got.
    pub(crate) deliveries: u64,
    /// Mean time from the opening of a thread until its handler got the request, and that of a handler.
    pub(crate) waited: Duration,
    pub(crate) took: Duration,
    /// Handlers that ended, by outcome, and faults by code.
    pub(crate) ended: BTreeMap<&'static str, u64>,
    pub(crate) faults: BTreeMap<&'static str, u64>,
    /// Outputs that were refused, and repairs.
    pub(crate) refusals: BTreeMap<&'static str, u64>,
    pub(crate) repairs: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Counts events until the organism ends.
    pub(in crate::gateway) async fn follow(self: Arc<Self>, mut events: Events) {
        let mut taken = Vec::new();
        // Within bounds, for who waits for the lock.
        while events.take(BATCH, &mut taken).await {
            let mut counting = self.counting();
            taken.drain(..).for_each(|observed| counting.take(observed));
        }
    }

    /// The models that were asked, by listener and backend.
    pub(crate) fn models(&self) -> Vec<ModelFigures> {
        let figures = self.read();
        let sum = |counts: &BTreeMap<&str, u64>| counts.values().sum();
        let of_party = |(name, party): (&Option<Name>, &Party)| {
            let (listener, refused, repaired) =
                (name.as_ref().map_or_else(String::new, Name::to_string), sum(&party.refusals), sum(&party.repairs));
            party
                .models
                .iter()
                .map(|(backend, model)| ModelFigures {
                    listener: listener.clone(),
                    backend: backend.clone(),
                    answered: model.answered,
                    failed: model.failed,
                    usage: model.usage,
                    mean: model.took.mean(),
                    refused,
                    repaired,
                })
                .collect::<Vec<_>>()
        };
        figures.parties.iter().flat_map(of_party).collect()
    }

    /// The work of a listener, since the start.
    pub(crate) fn listener(&self, name: &Name) -> ListenerFigures {
        let counting = self.counting();
        let Some(party) = counting.figures.parties.get(&Some(name.clone())) else { return ListenerFigures::default() };
        let Party { deliveries, ended, took, waited, faults, refusals, repairs, .. } = party.clone();
        ListenerFigures { deliveries, waited: waited.mean(), took: took.mean(), ended, faults, refusals, repairs }
    }

    /// The figures so far.
    fn read(&self) -> Figures {
        self.counting().figures.clone()
    }

    /// The time since which the oldest request to each listener waits.
    fn oldest(&self) -> BTreeMap<Name, Time> {
        let mut oldest = BTreeMap::new();
        for thread in self.counting().threads.values().filter(|thread| !thread.is_running) {
            let Some(listener) = &thread.listener else { continue };
            let since = oldest.entry(listener.clone()).or_insert(thread.since);
            *since = thread.since.min(*since);
        }
        oldest
    }

    fn counting(&self) -> MutexGuard<'_, Counting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The figures, without any name.
pub(super) async fn metrics(State(app): State<Arc<AppState>>) -> Response {
    answer(scrape(&app, &app.tally.oldest(), false).await)
}

/// `GET /v1/admin/metrics`: the figures with those of each listener.
pub(super) async fn metrics_by_name(State(app): State<Arc<AppState>>, caller: Caller) -> Result<Response, Problem> {
    let by = admin(&caller)?;
    let oldest = app.tally.oldest();
    let mut scrape = scrape(&app, &oldest, true).await;
    let listeners = app.organism.operations(by).each_listener().await;
    let of = |figure: fn(&ListenerRecord) -> u64| {
        listeners.values().map(|one| (vec![("listener", one.listener.clone())], figure(one))).collect::<Vec<_>>()
    };
    scrape.gauges.extend([
        ("listener_running", "Handlers of a listener that run", of(|one| one.running.into())),
        ("listener_waiting", "Threads that wait for a slot of a listener", of(|one| one.waiting as u64)),
        ("listener_paused", "1 if an operator has paused the listener", of(|one| one.paused.is_some().into())),
        ("listener_resting", "1 if the listener rests behind failures", of(|one| one.rests.is_some().into())),
    ]);
    let schedules = app.organism.schedules().iter().flat_map(|schedule| {
        let label = |end: &str| vec![("schedule", schedule.spec().name().to_string()), ("end", end.to_owned())];
        schedule.figures().map(|(end, count)| (label(end), count))
    });
    scrape.counters.push((
        "schedule_ticks",
        "Ticks of a schedule since the start by their ends (sent, overlapped, missed), and attempts to send that were refused",
        schedules.collect(),
    ));
    let mailboxes = app.mailboxes.modes().map(|(name, _)| {
        (vec![("mailbox", name.to_string())], app.mailboxes.look(|machine| machine.waiting_in(name)) as u64)
    });
    scrape.gauges.push(("mailbox_waiting", "Messages that wait in a mailbox", mailboxes.collect()));
    let now = app.organism.now();
    let held: Vec<_> =
        app.mailboxes.modes().map(|(name, _)| (name, app.mailboxes.look(|machine| machine.held(name, now)))).collect();
    let label = |name: &Name| vec![("mailbox", name.to_string())];
    let leased = held.iter().map(|(name, held)| (label(name), held.leased as u64)).collect();
    scrape.gauges.push(("mailbox_leased", "Messages of a mailbox that a reader has leased", leased));
    let age = |since: Time| now.since(since).as_secs_f64();
    let lag = held.iter().map(|(name, held)| (label(name), held.oldest.map_or(0.0, age))).collect();
    scrape.ages.push(("mailbox_lag", "Age of the oldest message that waits in a mailbox", lag));
    let waits = listeners.values().map(|one| {
        let since = one.listener.parse().ok().and_then(|name: Name| oldest.get(&name).copied());
        (vec![("listener", one.listener.clone())], since.map_or(0.0, age))
    });
    scrape.ages.push((
        "listener_oldest_waiting",
        "Age of the oldest request that waits for a handler",
        waits.collect(),
    ));
    Ok(answer(scrape))
}

fn answer(scrape: Scrape) -> Response {
    view::typed(StatusCode::OK, prometheus_text::CONTENT_TYPE, scrape.text())
}

async fn scrape(app: &AppState, oldest: &BTreeMap<Name, Time>, names: bool) -> Scrape {
    let counts = app.organism.counts().await;
    let fates = [
        ("injected", counts.injected),
        ("emitted", counts.emitted),
        ("made", counts.made),
        ("redriven", counts.redriven),
        ("recovered", counts.recovered),
        ("delivered", counts.delivered),
        ("faulted", counts.faulted),
        ("dead", counts.dead),
        ("cancelled", counts.cancelled),
    ];
    let fates = fates.map(|(fate, count)| (vec![("fate", fate.to_owned())], count)).into();
    let (connections, calls) = app.edge.admission.figures();
    let (in_mailboxes, dead_in_mailboxes) = app.mailboxes.look(|machine| (machine.waiting(), machine.dead_letters()));
    let (letters, dropped) = app.organism.dead_letter_figures().await;
    let limited = [("principal", app.edge.rate.refused()), ("stranger", app.edge.unauthenticated.refused())];
    let limited = limited.map(|(of, count)| (vec![("of", of.to_owned())], count)).into();
    let unauthorized =
        Reason::ALL.map(|reason| (vec![("reason", reason.as_str().to_owned())], app.edge.failures.counted(reason)));
    let rejected = app
        .edge
        .rejections
        .all()
        .into_iter()
        .map(|((status, code), count)| (vec![("status", status.to_string()), ("code", code.to_owned())], count));
    let drafts = app.organism.draft_figures();
    let counters = vec![
        (
            "messages",
            "Messages that came in (injected, emitted, made, redriven, recovered) and their ends (the others)",
            fates,
        ),
        ("dropped_draft_bytes", "Bytes of drafts that fell out for later text", alone(drafts.dropped)),
        ("dropped_dead_letters", "Dead letters that later ones pushed out", alone(dropped)),
        ("gateway_rate_limited", "Requests that were refused for their rate", limited),
        ("gateway_unauthorized", "Requests without a valid token", unauthorized.into()),
        ("gateway_rejected", "Requests that were refused, by status and code", rejected.collect()),
    ];
    let journal = app.organism.store().map(|store| store.bytes());
    let journal = journal.map(|(file, log)| [("file", file), ("log", log)]).into_iter().flatten();
    let journal = journal.map(|(part, bytes)| (vec![("part", part.to_owned())], bytes)).collect();
    let waiters = app.mailboxes.waiters() + app.submissions.waiters();
    let gauges = vec![
        ("messages_waiting", "Messages that no listener has begun", alone(app.organism.waiting().await)),
        ("dead_letters", "Dead letters of the pump", alone(letters)),
        ("gateway_waiting", "Messages that wait in mailboxes", alone(in_mailboxes)),
        ("gateway_dead_letters", "Dead letters of mailboxes", alone(dead_in_mailboxes)),
        (
            "gateway_waiters",
            "Submissions and ends on their way into the journal, and submissions whose answers are waited for",
            alone(waiters),
        ),
        ("drafts", "Open drafts", alone(drafts.drafts)),
        ("draft_bytes", "Bytes of drafts in memory", alone(drafts.bytes)),
        ("gateway_connections", "Connections", alone(connections)),
        ("gateway_calls", "Calls in flight", alone(calls)),
        ("gateway_body_bytes", "Bytes of bodies in memory", alone(app.edge.bodies.bytes())),
        ("journal_bytes", "Bytes of the journal and of its write-ahead log", journal),
    ];
    let appends = app.organism.append_latency().await;
    let now = app.organism.now();
    let oldest = oldest.values().min().map_or(0.0, |&since| now.since(since).as_secs_f64());
    let ages =
        vec![("oldest_waiting", "Age of the oldest request that waits for a handler", vec![(Labels::new(), oldest)])];
    Scrape { figures: app.tally.read(), appends, counters, gauges, ages, names }
}

impl Counting {
    fn take(&mut self, observed: Observed) {
        match observed {
            Observed::Event(event) => self.count(&event),
            Observed::Missed(count) => {
                self.figures.missed += count;
                // The ends of these may be among them.
                self.threads.clear();
            }
        }
    }

    fn count(&mut self, event: &Event) {
        let listener = || event.path.segments().last().map(|(name, _)| name);
        match &event.kind {
            EventKind::Delivered { .. } => {
                let running = Thread { listener: listener().cloned(), is_running: true, since: event.at };
                let before = self.threads.insert(event.thread, running);
                let party = self.party(listener());
                party.deliveries += 1;
                if let Some(waiting) = before.filter(|thread| !thread.is_running) {
                    party.waited.record(event.at.since(waiting.since));
                }
            }
            EventKind::Opened { .. } => {
                if let Some(listener) = listener() {
                    let waiting = Thread { listener: Some(listener.clone()), is_running: false, since: event.at };
                    self.threads.insert(event.thread, waiting);
                }
            }
            EventKind::Handled { outcome, .. } => self.end(event, outcome.as_str()),
            EventKind::Closed { .. } => self.end(event, "closed"),
            EventKind::Faulted { fault, .. } => bump(&mut self.party(listener()).faults, fault.code.as_str()),
            EventKind::Refused { by, fault, .. } => bump(&mut self.party(Some(by)).refusals, fault.code.as_str()),
            EventKind::Repaired { by, repairs, .. } => {
                let kinds = &mut self.party(Some(by)).repairs;
                repairs.iter().for_each(|repair| bump(kinds, repair.kind.as_str()));
            }
            EventKind::ModelAnswered { by, backend, usage, took, .. }
            | EventKind::ModelFailed { by, backend, usage, took, .. } => {
                let model = self.party(Some(by)).models.entry(backend.clone()).or_default();
                let is_answer = matches!(event.kind, EventKind::ModelAnswered { .. });
                *if is_answer { &mut model.answered } else { &mut model.failed } += 1;
                model.usage = model.usage.plus(*usage);
                model.took.record(*took);
            }
            EventKind::DeadLetter { reason, .. } => bump(&mut self.figures.dead_letters, reason.as_str()),
            EventKind::Operated { act, error, .. } => {
                *self.figures.acts.entry((act, error.is_none())).or_default() += 1;
            }
            _ => {}
        }
    }

    /// Counts the end of the handler that runs on a thread, if one does.
    fn end(&mut self, event: &Event, outcome: &'static str) {
        let Some(thread) = self.threads.remove(&event.thread).filter(|thread| thread.is_running) else { return };
        let party = self.party(thread.listener.as_ref());
        bump(&mut party.ended, outcome);
        party.took.record(event.at.since(thread.since));
    }

    fn party(&mut self, name: Option<&Name>) -> &mut Party {
        self.figures.parties.entry(name.cloned()).or_default()
    }
}

fn bump(counts: &mut BTreeMap<&'static str, u64>, of: &'static str) {
    *counts.entry(of).or_default() += 1;
}

/// The figures of one moment, as they are told.
#[derive(Debug)]
struct Scrape {
    figures: Figures,
    /// Steps until the journal had them.
    appends: Latency,
    /// Counters: name, help, and the values by label.
    counters: Vec<Row>,
    /// Gauges, in the same way.
    gauges: Vec<Row>,
    /// Gauges in seconds.
    ages: Vec<Row<f64>>,
    /// True if names of listeners are told.
    names: bool,
}

/// A name, its help, and its values by their labels.
type Row<T = u64> = (&'static str, &'static str, Vec<(Labels, T)>);

/// Names and values of labels.
type Labels = Vec<(&'static str, String)>;

/// A figure without labels.
fn alone(value: impl TryInto<u64>) -> Vec<(Labels, u64)> {
    vec![(Labels::new(), value.try_into().unwrap_or(u64::MAX))]
}

impl Scrape {
    /// Writes the figures in the text format of Prometheus, version 0.0.4.
    fn text(self) -> String {
        let mut registry = Registry::with_prefix("systole");
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        // A text takes everything.
        let _ = prometheus_text::encode(&mut text, &registry);
        text
    }

    /// The sums of all parties.
    fn sums<'a>(&'a self, of: impl Fn(&'a Party) -> &'a BTreeMap<&'static str, u64>) -> BTreeMap<&'static str, u64> {
        let mut sums = BTreeMap::new();
        let all = self.figures.parties.values().flat_map(of);
        all.for_each(|(name, count)| *sums.entry(*name).or_default() += count);
        sums
    }

    /// The figures of each party by a further label.
    fn by_party<'a>(
        &'a self,
        label: &'static str,
        of: impl Fn(&'a Party) -> &'a BTreeMap<&'static str, u64> + 'a,
    ) -> impl Iterator<Item = (Labels, u64)> + 'a {
        self.figures.parties.iter().flat_map(move |(name, party)| {
            of(party).iter().map(move |(value, count)| (vec![party_label(name), (label, (*value).to_owned())], *count))
        })
    }

    /// The figures of each listener at each backend.
    fn models(&self) -> impl Iterator<Item = (Labels, &Model)> {
        self.figures.parties.iter().flat_map(|(name, party)| {
            party
                .models
                .iter()
                .map(|(backend, model)| (vec![party_label(name), ("backend", backend.to_string())], model))
        })
    }

    fn of_all(&self, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, values) in &self.counters {
            counter(to, name, help, values.iter().cloned())?;
        }
        for (name, help, values) in &self.gauges {
            let mut metric = to.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (labels, value) in values {
                labelled(&mut metric, labels, |one| one.encode_gauge(value))?;
            }
        }
        for (name, help, values) in &self.ages {
            let mut metric = to.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Gauge)?;
            for (labels, value) in values {
                labelled(&mut metric, labels, |one| one.encode_gauge(value))?;
            }
        }
        let by = |label, sums: BTreeMap<&'static str, u64>| {
            sums.into_iter().map(move |(value, count)| (vec![(label, value.to_owned())], count))
        };
        counter(to, "faults", "Faults that were made, by code", by("code", self.sums(|party| &party.faults)))?;
        counter(
            to,
            "refused_outputs",
            "Outputs of listeners that were refused",
            by("code", self.sums(|party| &party.refusals)),
        )?;
        counter(to, "repairs", "Repairs of documents, by kind", by("kind", self.sums(|party| &party.repairs)))?;
        counter(
            to,
            "dead_letters_made",
            "Messages that became dead letters, by reason",
            by("reason", self.figures.dead_letters.clone()),
        )?;
        counter(
            to,
            "events_missed",
            "Events that are not counted here, because they came too fast",
            alone(self.figures.missed),
        )?;
        let took = self.figures.parties.values().fold(Latency::default(), |sum, party| sum.plus(party.took));
        histogram(to, "handler", "Time that handlers took", [(Labels::new(), took)])?;
        let waited = self.figures.parties.values().fold(Latency::default(), |sum, party| sum.plus(party.waited));
        histogram(
            to,
            "queue",
            "Time from the opening of a thread until its handler got the request",
            [(Labels::new(), waited)],
        )?;
        histogram(
            to,
            "journal_append",
            "Time from the end of a step until the journal had it",
            [(Labels::new(), self.appends)],
        )
    }

    fn of_each(&self, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let parties = || self.figures.parties.iter().filter(|(_, party)| party.deliveries > 0);
        let deliveries = parties().map(|(name, party)| (vec![party_label(name)], party.deliveries));
        counter(to, "listener_deliveries", "Messages that handlers of a listener got", deliveries)?;
        let ended = self.by_party("outcome", |party| &party.ended);
        counter(to, "listener_handlers", "Handlers of a listener that ended, by outcome", ended)?;
        let took = parties().map(|(name, party)| (vec![party_label(name)], party.took));
        histogram(to, "listener_handler", "Time that handlers of a listener took", took)?;
        let waited = parties().map(|(name, party)| (vec![party_label(name)], party.waited));
        histogram(to, "listener_queue", "Time until a handler of a listener got a request", waited)?;
        counter(
            to,
            "listener_faults",
            "Faults in threads of a listener, by code",
            self.by_party("code", |party| &party.faults),
        )?;
        let refusals = self.by_party("code", |party| &party.refusals);
        counter(to, "listener_refused_outputs", "Outputs of a listener that were refused, by code", refusals)?;
        let repairs = self.by_party("kind", |party| &party.repairs);
        counter(to, "listener_repairs", "Repairs of what a listener or client wrote, by kind", repairs)?;
        let requests = self.models().flat_map(|(labels, model)| {
            let outcome = |outcome: &str| labels.iter().cloned().chain([("outcome", outcome.to_owned())]).collect();
            [(outcome("answered"), model.answered), (outcome("failed"), model.failed)]
        });
        counter(to, "model_requests", "Requests of a listener to a model, by outcome", requests)?;
        let tokens = self.models().flat_map(|(labels, Model { usage, .. })| {
            let kind = |kind: &str| labels.iter().cloned().chain([("kind", kind.to_owned())]).collect();
            let Usage { input, output, cached, written, .. } = *usage;
            [("input", input), ("output", output), ("cached", cached), ("written", written)]
                .map(|(name, count)| (kind(name), count))
        });
        counter(
            to,
            "model_tokens",
            "Tokens of requests and answers; those of input include cached and written ones",
            tokens,
        )?;
        let mut cost =
            to.encode_descriptor("model_cost", "Cost, in the currency of the prices", None, MetricType::Counter)?;
        for (labels, model) in self.models() {
            let value = model.usage.cost.as_f64();
            labelled(&mut cost, &labels, |one| one.encode_counter::<NoLabelSet, _, u64>(&value, None))?;
        }
        let took = self.models().map(|(labels, model)| (labels, model.took));
        histogram(to, "model_request", "Time of requests of a listener to a model", took)?;
        let acts = self.figures.acts.iter().map(|((act, worked), count)| {
            (vec![("act", (*act).to_owned()), ("outcome", if *worked { "done" } else { "refused" }.to_owned())], *count)
        });
        counter(to, "acts", "Acts of operators, by outcome", acts)
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.of_all(&mut encoder)?;
        if self.names { self.of_each(&mut encoder) } else { Ok(()) }
    }
}

fn party_label(name: &Option<Name>) -> (&'static str, String) {
    ("listener", name.as_ref().map(Name::to_string).unwrap_or_default())
}

/// Writes one value of a metric.
fn labelled(
    metric: &mut MetricEncoder<'_>,
    labels: &Labels,
    write: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    if labels.is_empty() { write(metric) } else { write(&mut metric.encode_family(labels)?) }
}

fn counter(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels, u64)>,
) -> fmt::Result {
    let mut metric = to.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in values {
        labelled(&mut metric, &labels, |one| one.encode_counter::<NoLabelSet, _, u64>(&value, None))?;
    }
    Ok(())
}

fn histogram(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels, Latency)>,
) -> fmt::Result {
    let mut metric = to.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
    for (labels, latency) in values {
        let buckets: Vec<_> = latency.buckets().collect();
        let (sum, count) = (latency.sum().as_secs_f64(), latency.count());
        labelled(&mut metric, &labels, |one| one.encode_histogram::<NoLabelSet>(sum, count, &buckets, None))?;
    }
    Ok(())
}
