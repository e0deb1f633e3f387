//! Delivery to submitters: every event of a detached task reaches its submitter once, with a crash at any append.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use systole::actor::*;
use systole::inbox::Status;
use systole::inbox::payload::{
    Accept, Complete, EventPayload, Input, InputRequired, Noted, Question, ResultPayload, Submit, Submitted,
};
use systole::jobs::Job;
use systole::journal::{FailingJournal, Journal as _, MemoryJournal};
use systole::prelude::*;
use systole::runtime::{IntoRequest, OrganismBuilder};
use systole::testing::Kit;
use systole::vocab::MessageId;

type Journal = Arc<Mutex<MemoryJournal>>;

/// Tells the writer to submit a task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Assignment {
    detached: bool,
}

/// An event that the writer has heard.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Mark {
    what: String,
}

/// Confirms that the event was marked.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Marked {}

macro_rules! payloads {
    ($($type:ty: $root:literal;)*) => {
        $(impl Payload for $type {
            const NAMESPACE: &'static str = "urn:test:told:v1";
            const ROOT: &'static str = $root;
        })*
    };
}

payloads! {
    Assignment: "assignment";
    Mark: "mark";
    Marked: "marked";
}

impl Request for Mark {
    type Reply = Marked;
}

/// The messages that were heard, by their texts. A handler that runs again has the same message.
#[derive(Clone, Default)]
struct Heard {
    messages: Arc<Mutex<BTreeMap<String, BTreeSet<MessageId>>>>,
    /// True if marking is held back.
    held: Arc<AtomicBool>,
}

impl Heard {
    fn note(&self, what: &str, message: MessageId) {
        self.messages.lock().unwrap().entry(what.to_owned()).or_default().insert(message);
    }

    /// Checks that each event was heard once, and marked once.
    fn check(&self, expected: &[&str], after: &str) {
        let messages = self.messages.lock().unwrap();
        let twice: Vec<_> = messages.iter().filter(|(_, messages)| messages.len() != 1).collect();
        assert!(twice.is_empty(), "{after}: {twice:?}");
        let told: Vec<_> = messages.keys().map(String::as_str).filter(|what| !what.starts_with("mark")).collect();
        assert_eq!(told, expected, "{after}");
        assert_eq!(messages.len(), 2 * expected.len(), "{after}: {messages:?}");
    }
}

/// Events that the submitter of a detached and watched task hears.
const DETACHED: [&str; 8] =
    ["1 submitted", "2 routed", "3 accepted", "4 question", "5 input", "6 question", "7 input", "result completed"];

fn fresh() -> Journal {
    Arc::new(Mutex::new(MemoryJournal::new([5; 32])))
}

/// A listener that submits, and has each event marked before it answers.
struct Writer(Heard);

impl Actor for Writer {
    type Context = Context<Self>;
}

impl Writer {
    fn hear<T: Send + 'static>(
        &self,
        what: String,
        said: Delivery<T>,
        answer: impl FnOnce() -> Response + 'static,
    ) -> ResponseFuture<Response> {
        self.0.note(&what, said.id());
        Box::pin(async move {
            said.thread().call(Mark { what }).await?;
            answer()
        })
    }
}

impl Handler<Delivery<Assignment>> for Writer {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, given: Delivery<Assignment>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            let task = Submit { detached: given.detached, watched: given.detached, ..Submit::new("Read.") };
            let answer = given.thread().call_any(call_to("reviews", task)).await?;
            Ok(reply_any(answer))
        })
    }
}

impl Handler<Delivery<EventPayload>> for Writer {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, event: Delivery<EventPayload>, _: &mut Context<Self>) -> Self::Result {
        let (id, what) = (event.id, format!("{} {}", event.number, event.kind));
        self.hear(what, event, move || Ok(reply_any(Noted { id })))
    }
}

impl Handler<Delivery<Question>> for Writer {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, question: Delivery<Question>, _: &mut Context<Self>) -> Self::Result {
        let (id, what) = (question.id, format!("{} question", question.number));
        self.hear(what, question, move || Ok(reply_any(Input { id, text: "British".into() })))
    }
}

impl Handler<Delivery<ResultPayload>> for Writer {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, result: Delivery<ResultPayload>, _: &mut Context<Self>) -> Self::Result {
        let what = format!("result {}", result.status);
        self.hear(what, result, || Ok(none()))
    }
}

/// Outcomes of the writer's own calls.
struct Log(Heard);

impl Actor for Log {
    type Context = Context<Self>;
}

impl Handler<Delivery<Mark>> for Log {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, mark: Delivery<Mark>, _: &mut Context<Self>) -> Self::Result {
        self.0.note(&format!("mark {}", mark.what), mark.id());
        let held = self.0.held.load(Ordering::Relaxed);
        Box::pin(async move {
            if held {
                std::future::pending::<()>().await;
            }
            Ok(mark.reply(Marked {}))
        })
    }
}

fn office(job: &Job, heard: &Heard) -> OrganismBuilder {
    let (writer, log) = (heard.clone(), heard.clone());
    let builder = job.clone().sends_results().sends_events().sends_questions().install(Organism::builder("office"));
    let builder = builder.listener(
        "writer",
        move || Writer(writer.clone()),
        |c| {
            c.accepts::<Assignment>()
                .accepts::<EventPayload>()
                .accepts::<Question>()
                .accepts::<ResultPayload>()
                .replies::<Submitted>()
                .replies::<ResultPayload>()
                .replies::<Noted>()
                .replies::<Input>()
                .calls::<Submit>()
                .calls::<Mark>()
                .silence(Silence::Idle)
        },
    );
    builder
        .listener("log", move || Log(log.clone()), |c| c.accepts::<Mark>().replies::<Marked>())
        .client("reviewer", |c| c.calls::<Accept>().calls::<InputRequired>().calls::<Complete>())
        .client("boss", |c| c.calls::<Assignment>())
}

fn job() -> Job {
    Job::new("reviews", "reviewer").unwrap()
}

fn tell(kit: &Kit, client: &str, request: impl IntoRequest) -> bool {
    let told = kit.client(client).tell(request).is_ok();
    kit.settle();
    told
}

/// Makes the next step of the one task; `false` if there is none, or none is possible.
fn step(kit: &Kit, job: &Job, detached: bool) -> bool {
    let task = job.read(|inbox| inbox.tasks().next().map(|task| (task.id, task.status, task.questions.len())));
    match task {
        None => tell(kit, "boss", Assignment { detached }),
        Some((id, Status::Pending, _)) => tell(kit, "reviewer", call_to("reviews", Accept { id })),
        Some((id, Status::Accepted, asked @ (0 | 1))) => {
            // The same text, so that only the number distinguishes the second question.
            let asks = tell(kit, "reviewer", call_to("reviews", InputRequired { id, text: "Which one?".into() }));
            asks && job.read(|inbox| inbox.get(id).unwrap().questions.len()) > asked
        }
        Some((id, Status::Accepted, _)) => {
            tell(kit, "reviewer", call_to("reviews", Complete { id, text: "Done.".into() }))
        }
        Some(_) => false,
    }
}

/// Runs as far as the journal allows; `true` if that is to the end.
fn run(journal: &Journal, appends: u64, heard: &Heard, detached: bool) -> bool {
    let job = job();
    let failing = FailingJournal::new(journal.clone(), appends);
    let Ok(kit) = Kit::start(office(&job, heard).journal(failing)) else { return false };
    kit.settle();
    while step(&kit, &job, detached) {}
    kit.client("boss").tell(call_to("reviews", Assignment { detached })).is_ok() && {
        // Everything that was owed was delivered, and nothing of that is kept.
        kit.settle();
        job.read(|inbox| assert_eq!(inbox.owed().count(), 0));
        let left = journal.lock().unwrap().clone().recover().unwrap();
        let messages: Vec<_> = left.messages.iter().map(|message| &message.body).collect();
        assert!(left.fans.is_empty() && messages.len() == 1, "only <boot> waits: {messages:?}, {:?}", left.fans);
        true
    }
}

fn crash(journal: &Journal) -> Journal {
    Arc::new(Mutex::new(journal.lock().unwrap().clone()))
}

/// Crashes at every append, and again `later` appends after that; returns the number of crashes.
fn crashes(later: u64, detached: bool, expected: &[&str]) -> u32 {
    let mut crashes = 0;
    for appends in 0.. {
        let journal = fresh();
        let heard = Heard::default();
        let whole = run(&journal, appends, &heard, detached);
        let journal = crash(&journal);
        let journal = if run(&journal, later, &heard, detached) { journal } else { crash(&journal) };
        assert!(run(&journal, u64::MAX, &heard, detached), "{appends}, {later}");
        heard.check(expected, &format!("{appends}, {later}"));
        if whole {
            break;
        }
        crashes += 1;
    }
    crashes
}

#[test]
fn a_crash_at_any_append_tells_the_submitter_of_a_detached_task_once() {
    let all: u32 = [1, 3].map(|later| crashes(later, true, &DETACHED)).into_iter().sum();
    assert!(all > 2 * 40, "{all}");
}

#[test]
fn a_crash_at_any_append_asks_whoever_waits_for_a_task_once() {
    let all: u32 = [1, 2, 3, 8].map(|later| crashes(later, false, &["4 question", "6 question"])).into_iter().sum();
    assert!(all > 4 * 20, "{all}");
}

#[test]
fn an_end_in_order_with_everything_under_way_tells_the_submitter_once() {
    for steps in 0..5 {
        let (journal, heard) = (fresh(), Heard::default());
        let first = job();
        let mut kit = Kit::start(office(&first, &heard).journal(journal.clone())).unwrap();
        kit.settle();
        (0..steps).for_each(|at| assert!(step(&kit, &first, true), "{at}"));
        heard.held.store(true, Ordering::Relaxed);
        step(&kit, &first, true);
        kit.drain(Duration::ZERO);
        drop(kit);
        heard.held.store(false, Ordering::Relaxed);
        assert!(run(&journal, u64::MAX, &heard, true), "{steps}");
        heard.check(&DETACHED, &format!("{steps}"));
    }
}
