//! A job through the pump, on a simulated clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use systole::actor::*;
use systole::inbox::payload::{
    Accept, ArtifactPayload, Cancel, Changed, Complete, EventPayload, Fail, Get, Input, InputRequired, List, Noted,
    Progress, Question, Reject, ResultPayload, Submit, Submitted, TaskPayload, Tasks,
};
use systole::inbox::*;
use systole::jobs::Job;
use systole::prelude::*;
use systole::runtime::OrganismBuilder;
use systole::testing::Kit;
use systole::vocab::TaskId;

/// Tells the writer to submit a task to the reviews, and to reply with its result.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Assignment {
    text: String,
    detached: bool,
    watched: bool,
    /// Makes the writer panic.
    panic: bool,
}

impl Payload for Assignment {
    const NAMESPACE: &'static str = "urn:example:office:v1";
    const ROOT: &'static str = "assignment";
}

fn assignment(text: &str) -> Assignment {
    Assignment { text: text.into(), detached: false, watched: false, panic: false }
}

/// A listener that submits, and notes every payload that it receives.
#[derive(Clone, Default)]
struct Writer {
    notes: Arc<Mutex<Vec<String>>>,
}

impl Writer {
    fn note(&self, note: String) {
        self.notes.lock().unwrap().push(note);
    }

    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap())
    }
}

impl Actor for Writer {
    type Context = Context<Self>;
}

impl Handler<Delivery<Assignment>> for Writer {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, given: Delivery<Assignment>, _: &mut Context<Self>) -> Self::Result {
        if given.panic {
            panic!("as told");
        }
        Box::pin(async move {
            let Assignment { text, detached, watched, .. } = (*given).clone();
            let answer =
                given.thread().call_any(call_to("reviews", Submit { detached, watched, ..Submit::new(text) })).await?;
            Ok(reply_any(answer))
        })
    }
}

impl Handler<Delivery<Question>> for Writer {
    type Result = Response;

    fn handle(&mut self, question: Delivery<Question>, _: &mut Context<Self>) -> Response {
        self.note(format!("{} asks: {}", question.from(), question.text));
        match &*question.text {
            "hard" => Err(Failure::new("I don't know")),
            _ => Ok(question.reply(Input { id: question.id, text: "British".into() })),
        }
    }
}

impl Handler<Delivery<ResultPayload>> for Writer {
    type Result = Response;

    fn handle(&mut self, result: Delivery<ResultPayload>, _: &mut Context<Self>) -> Response {
        self.note(format!("{}: {}", result.status, result.text));
        Ok(result.reply(Noted { id: result.id }))
    }
}

impl Handler<Delivery<EventPayload>> for Writer {
    type Result = Response;

    fn handle(&mut self, event: Delivery<EventPayload>, _: &mut Context<Self>) -> Response {
        self.note(format!("{} {}", event.number, event.kind));
        Ok(none())
    }
}

struct Office {
    kit: Kit,
    job: Job,
    writer: Writer,
    events: Arc<Mutex<Vec<TaskEvent>>>,
}

fn client(builder: OrganismBuilder, name: &str) -> OrganismBuilder {
    builder.client(name, |c| {
        c.calls::<Submit>()
            .calls::<Assignment>()
            .calls::<Get>()
            .calls::<List>()
            .calls::<Accept>()
            .calls::<Progress>()
            .calls::<ArtifactPayload>()
            .calls::<InputRequired>()
            .calls::<Input>()
            .calls::<Complete>()
            .calls::<Fail>()
            .calls::<Reject>()
            .calls::<Cancel>()
    })
}

fn office(hear: impl Fn(&TaskEvent) + Send + Sync + 'static) -> Office {
    std::panic::set_hook(Box::new(|info| {
        if info.payload().downcast_ref::<&str>() != Some(&"as told") {
            eprintln!("{info}");
        }
    }));
    let events = Arc::<Mutex<Vec<TaskEvent>>>::default();
    let heard = events.clone();
    let job = Job::new("reviews", "reviewer").unwrap().sends_results().sends_events().sends_questions();
    let job = job.on_event(move |event| {
        heard.lock().unwrap().push(event.clone());
        hear(event);
    });
    let writer = Writer::default();
    let made = writer.clone();
    let builder = job.install(Organism::builder("office")).listener(
        "writer",
        move || made.clone(),
        |c| {
            c.accepts::<Assignment>()
                .accepts::<Question>()
                .accepts::<ResultPayload>()
                .accepts::<EventPayload>()
                .replies::<ResultPayload>()
                .replies::<Submitted>()
                .replies::<Input>()
                .replies::<Noted>()
                .calls::<Submit>()
                .silence(Silence::Idle)
        },
    );
    let builder = ["reviewer", "editor", "stranger"].into_iter().fold(builder, client);
    Office { kit: Kit::start(builder).unwrap(), job, writer, events }
}

impl Office {
    /// Sends a payload to the job as a client, and decodes the answer.
    fn ask<T: Payload>(&self, client: &str, request: impl Payload) -> Result<T, Fault> {
        match self.kit.ask_any(client, call_to("reviews", request)) {
            Ok(answer) => Ok(answer.decode().unwrap_or_else(|error| panic!("{error}: {answer:?}"))),
            Err(AskError::Fault { fault, .. }) => Err(fault),
            Err(error) => panic!("{error}"),
        }
    }

    /// Submits as a client that waits, and returns the id.
    fn submit(&self, client: &str, submit: Submit) -> TaskId {
        self.kit.client(client).tell(call_to("reviews", submit)).unwrap();
        self.kit.settle();
        self.last()
    }

    fn last(&self) -> TaskId {
        self.job.read(|inbox| inbox.tasks().last().unwrap().id)
    }

    /// Draws the open threads without that of the job's `<boot>`, which is never closed.
    fn tree(&self) -> String {
        let tree = self.kit.tree();
        tree.strip_prefix("root\n  reviews\n").expect("boot comes first").to_owned()
    }

    fn status(&self, id: TaskId) -> Status {
        self.job.read(|inbox| inbox.get(id).unwrap().status)
    }

    fn kinds(&self) -> String {
        let events = self.events.lock().unwrap();
        events.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Returns the result that a client got, if it did.
    fn result(&self, client: &str) -> Option<ResultPayload> {
        let egress = self.kit.client(client).try_receive()?;
        let mut validator = systole::schema::Validator::new(Arc::new(systole::schema::Catalog::only(
            systole::inbox::payload::schemas().iter().cloned(),
        )));
        Some(systole::schema::decode(&validator.validate(egress.payload.clone()).unwrap()).unwrap())
    }
}

#[test]
fn a_task_is_an_open_child_until_it_ends() {
    let office = office(|_| ());
    let id = office.submit("editor", Submit::new("Read chapter 3."));
    assert_eq!(office.tree(), "root\n  reviews\n");
    assert!(office.job.render_pending_context().contains("> Read chapter 3."));
    office.kit.advance(Duration::from_secs(3600));
    assert_eq!(office.result("editor"), None, "it waits for as long as it takes");

    let changed: Changed = office.ask("reviewer", Accept { id }).unwrap();
    assert_eq!(changed, Changed { id, status: Status::Accepted });
    let _: Changed = office.ask("reviewer", Progress { id, percent: Some(50), text: "half".into() }).unwrap();
    let part = |text: &str, append, last| ArtifactPayload { id, name: "notes".into(), text: text.into(), append, last };
    let _: Changed = office.ask("reviewer", part("one ", false, false)).unwrap();
    let _: Changed = office.ask("reviewer", part("two", true, true)).unwrap();
    let task: TaskPayload = office.ask("editor", Get { id }).unwrap();
    assert_eq!((task.status, task.progress.unwrap().percent), (Status::Accepted, Some(50)));
    let _: Changed = office.ask("reviewer", Complete { id, text: "Two typos.".into() }).unwrap();
    let result = office.result("editor").unwrap();
    assert_eq!((result.id, result.status, &*result.text), (id, Status::Completed, "Two typos."));
    assert_eq!((&*result.artifact[0].text, result.artifact[0].last), ("one two", true));
    assert_eq!(office.tree(), "");
    assert_eq!(office.kinds(), "submitted routed accepted progress artifact artifact completed");
    assert!(office.events.lock().unwrap().iter().map(|event| event.number).eq(1..=7));
}

#[test]
fn what_may_not_be_is_a_fault_and_changes_nothing() {
    let office = office(|_| ());
    let id = office.submit("editor", Submit::new("Read."));
    let before = office.job.read(super::records);
    let refuse = |asked: Result<Changed, Fault>, words: &str| {
        let fault = asked.unwrap_err();
        assert_eq!((fault.code, fault.retryable), (FaultCode::Failed, false));
        assert!(fault.message.contains(words), "{fault}");
        assert_eq!(office.job.read(super::records), before);
    };
    refuse(office.ask("stranger", Accept { id }), "stranger may not accept: only the owner");
    refuse(office.ask("editor", Complete { id, text: String::new() }), "only the owner");
    refuse(office.ask("reviewer", Cancel { id, text: String::new() }), "only its submitter");
    refuse(office.ask("reviewer", Progress { id, percent: None, text: "?".into() }), "is pending: progress");
    let other = "67e55044-10b1-426f-9247-bb680e5fe0c8".parse().unwrap();
    refuse(office.ask("reviewer", Accept { id: other }), "there is no task 67e55044");
    for client in ["stranger", "editor"] {
        let watched = Submit { watched: true, ..Submit::new("Read.") };
        refuse(office.ask(client, watched), "set detached");
    }
    let strange: Result<TaskPayload, Fault> = office.ask("stranger", Get { id });
    assert!(strange.unwrap_err().message.contains("there is no task"), "what is not theirs is not there");
    let tasks: Tasks = office.ask("stranger", List::default()).unwrap();
    assert_eq!(tasks, Tasks::default());
    assert_eq!(office.ask::<Tasks>("reviewer", List::default()).unwrap().brief[0].id, id);
}

#[test]
fn two_racing_completions_have_one_winner() {
    let office = office(|_| ());
    let id = office.submit("editor", Submit::new("Read."));
    let reviewer = office.kit.client("reviewer");
    for text in ["one", "other"] {
        reviewer.tell(call_to("reviews", Complete { id, text: text.into() })).unwrap();
    }
    office.kit.settle();
    let answers: Vec<_> = std::iter::from_fn(|| reviewer.try_receive()).collect();
    let faults: Vec<_> = answers.iter().filter_map(|answer| answer.fault.as_ref()).collect();
    assert_eq!((answers.len(), faults.len()), (2, 1));
    assert!(faults[0].message.contains("is completed: complete leads from pending"), "{}", faults[0]);
    assert_eq!(office.result("editor").unwrap().text, "one");
    assert_eq!(office.result("editor"), None, "one result");
    assert_eq!(office.kinds(), "submitted routed completed");
}

#[test]
fn a_submitter_that_goes_away_cancels_its_task() {
    let office = office(|_| ());
    let mut conversation = office.kit.client("editor").converse();
    office.kit.block_on(async { conversation.send(call_to("reviews", Submit::new("Read."))) }).unwrap();
    office.kit.settle();
    let id = office.last();
    office.kit.block_on(async { conversation.cancel() });
    office.kit.settle();
    assert_eq!(office.status(id), Status::Cancelled);
    let fault = office.ask::<Changed>("reviewer", Complete { id, text: String::new() }).unwrap_err();
    assert!(fault.message.contains("is cancelled: complete leads"), "{fault}");
    assert_eq!(office.kinds(), "submitted routed cancelled");

    let patient = office.kit.client("editor").with_deadline(Duration::from_secs(5));
    patient.tell(call_to("reviews", Submit::new("Read."))).unwrap();
    office.kit.settle();
    let id = office.last();
    office.kit.advance(Duration::from_secs(6));
    assert_eq!(office.status(id), Status::Cancelled);
    assert_eq!(patient.try_receive().and_then(|egress| egress.fault).map(|fault| fault.code), Some(FaultCode::Timeout));
}

#[test]
fn the_submitter_cancels_and_the_owner_rejects_or_fails() {
    let office = office(|_| ());
    let id = office.submit("editor", Submit::new("Read."));
    let _: Changed = office.ask("editor", Cancel { id, text: "not needed".into() }).unwrap();
    let result = office.result("editor").unwrap();
    assert_eq!((result.status, &*result.text), (Status::Cancelled, "not needed"));
    let id = office.submit("editor", Submit::new("Read."));
    let _: Changed = office.ask("reviewer", Reject { id, text: "not mine".into() }).unwrap();
    assert_eq!(office.result("editor").unwrap().status, Status::Rejected);
    let id = office.submit("editor", Submit::new("Read."));
    let _: Changed = office.ask("reviewer", Fail { id, text: "illegible".into() }).unwrap();
    assert_eq!(office.result("editor").unwrap().text, "illegible");
}

#[test]
fn a_deadline_of_its_own_fails_a_task() {
    let office = office(|_| ());
    let deadline = Some(office.kit.now().after(Duration::from_secs(60)));
    let id = office.submit("editor", Submit { deadline, ..Submit::new("Read.") });
    office.kit.advance(Duration::from_secs(59));
    assert_eq!(office.status(id), Status::Pending);
    office.kit.advance(Duration::from_secs(1));
    assert_eq!(office.status(id), Status::Failed);
    assert_eq!(office.result("editor").unwrap().text, "its deadline passed");
    let fault = office.ask::<Changed>("editor", Submit { deadline, ..Submit::new("Read.") }).unwrap_err();
    assert!(fault.message.contains("has passed"), "{fault}");
}

#[test]
fn a_question_that_was_withdrawn_is_asked_again() {
    let office = office(|_| ());
    office.kit.client("editor").tell(assignment("Read.")).unwrap();
    office.kit.settle();
    let id = office.last();
    for _ in 0..2 {
        let _: Changed = office.ask("reviewer", Accept { id }).unwrap();
        let _: Changed = office.ask("reviewer", InputRequired { id, text: "hard".into() }).unwrap();
        assert_eq!(office.writer.notes(), ["reviews asks: hard"]);
        office.job.release(office.kit.now());
    }
}

#[test]
fn the_same_key_waits_for_the_same_task() {
    let office = office(|_| ());
    let keyed = || Submit { key: Some("k".into()), ..Submit::new("Read.") };
    let id = office.submit("editor", keyed());
    let mut second = office.kit.client("editor").converse();
    office.kit.block_on(async { second.send(call_to("reviews", keyed())) }).unwrap();
    office.kit.settle();
    assert_eq!(office.job.read(|inbox| inbox.tasks().count()), 1);
    office.kit.block_on(async { second.cancel() });
    office.kit.settle();
    assert_eq!(office.status(id), Status::Pending, "one still waits");
    let fault = office.ask::<Changed>("editor", Submit { description: "Write.".into(), ..keyed() }).unwrap_err();
    assert!(fault.message.contains("choose a new key"), "{fault}");
    let _: Changed = office.ask("reviewer", Complete { id, text: "done".into() }).unwrap();
    assert_eq!(office.result("editor").unwrap().text, "done");
    let again: ResultPayload = office.ask("editor", keyed()).unwrap();
    assert_eq!((again.id, &*again.text), (id, "done"), "also after it ended");
    assert_eq!(office.kinds(), "submitted routed completed");
}

#[test]
fn those_who_wait_leave_slots_for_those_who_work() {
    let inbox = TaskInbox::new("reviews", InboxPrincipal::parse("reviewer").unwrap()).unwrap();
    let job = Job::of(inbox.with_limits(InboxLimits { open: 3, ..InboxLimits::default() }));
    let builder = job.install(Organism::builder("office"));
    let builder = builder.client("editor", |c| c.calls::<Submit>()).client("reviewer", |c| c.calls::<Complete>());
    let kit = Kit::start(builder).unwrap();
    let keyed = || call_to("reviews", Submit { key: Some("k".into()), ..Submit::new("Read.") });
    for _ in 0..200 {
        kit.client("editor").tell(keyed()).unwrap();
    }
    kit.settle();
    let refused: Vec<_> = std::iter::from_fn(|| kit.client("editor").try_receive()).filter_map(|e| e.fault).collect();
    assert_eq!(refused.len(), 197);
    assert!(refused.iter().all(|fault| fault.retryable && fault.message.contains("submit detached")), "{refused:?}");
    let id = job.read(|inbox| inbox.pending().next().unwrap().id);
    kit.ask_any("reviewer", call_to("reviews", Complete { id, text: "done".into() })).unwrap();
    let results = std::iter::from_fn(|| kit.client("editor").try_receive()).filter(|egress| egress.fault.is_none());
    assert_eq!(results.count(), 3);
}

#[test]
fn a_detached_result_opens_a_new_conversation_at_its_submitter() {
    let office = office(|_| ());
    let given = Assignment { detached: true, ..assignment("Read.") };
    let submitted: Submitted = office.kit.ask_any("editor", given).unwrap().decode().unwrap();
    assert_eq!((submitted.status, submitted.new), (Status::Pending, true));
    assert_eq!(office.tree(), "", "nobody waits");
    let id = submitted.id;
    let _: Changed = office.ask("reviewer", Accept { id }).unwrap();
    let _: Changed = office.ask("reviewer", InputRequired { id, text: "British or American?".into() }).unwrap();
    office.kit.settle();
    assert_eq!(office.writer.notes(), ["reviews asks: British or American?"]);
    let task: TaskPayload = office.ask("reviewer", Get { id }).unwrap();
    assert_eq!((task.status, task.exchange[0].answer.as_deref()), (Status::Accepted, Some("British")));
    let _: Changed = office.ask("reviewer", Complete { id, text: "Two typos.".into() }).unwrap();
    office.kit.advance(Duration::from_secs(600));
    assert_eq!(office.writer.notes(), ["completed: Two typos."], "once");
    assert!(office.job.read(|inbox| inbox.get(id).unwrap().is_over()));
    assert_eq!(office.kinds(), "submitted routed accepted input-required input completed");
}

#[test]
fn a_watched_task_sends_each_event_once_and_in_order() {
    let office = office(|_| ());
    let given = Assignment { detached: true, watched: true, ..assignment("Read.") };
    let id = office.kit.ask_any("editor", given).unwrap().decode::<Submitted>().unwrap().id;
    let _: Changed = office.ask("reviewer", Accept { id }).unwrap();
    for percent in [10, 20, 30] {
        let _: Changed = office.ask("reviewer", Progress { id, percent: Some(percent), text: String::new() }).unwrap();
    }
    let _: Changed = office.ask("reviewer", Fail { id, text: "illegible".into() }).unwrap();
    office.kit.advance(Duration::from_secs(600));
    let expected =
        ["1 submitted", "2 routed", "3 accepted", "4 progress", "5 progress", "6 progress", "failed: illegible"];
    assert_eq!(office.writer.notes(), expected);
}

#[test]
fn a_question_goes_to_the_thread_that_waits() {
    let office = office(|_| ());
    let writer = office.kit.client("editor");
    writer.tell(assignment("Read.")).unwrap();
    office.kit.settle();
    let id = office.last();
    assert_eq!(office.tree(), "root\n  writer\n    reviews\n");
    let _: Changed = office.ask("reviewer", Accept { id }).unwrap();
    let _: Changed = office.ask("reviewer", InputRequired { id, text: "which?".into() }).unwrap();
    assert_eq!(office.writer.notes(), ["reviews asks: which?"]);
    assert_eq!(office.status(id), Status::Accepted);
    // A submitter that can't answer leaves the question open; it can be answered later, but only in the submitter's
    // name.
    let _: Changed = office.ask("reviewer", InputRequired { id, text: "hard".into() }).unwrap();
    assert_eq!((office.writer.notes().len(), office.status(id)), (1, Status::InputRequired));
    let fault = office.ask::<Changed>("editor", Input { id, text: "me".into() }).unwrap_err();
    assert!(fault.message.contains("editor may not input for task"), "{fault}");
    let _: Changed = office.ask("reviewer", Complete { id, text: "anyway".into() }).unwrap();
    office.kit.settle();
    let egress = writer.try_receive().unwrap();
    assert!(egress.payload.as_str().contains("anyway"), "{}", egress.payload.as_str());
}

#[test]
fn a_submitter_that_rests_gets_its_result_once_it_is_back() {
    let office = office(|_| ());
    let given = Assignment { detached: true, ..assignment("Read.") };
    let id = office.kit.ask_any("editor", given).unwrap().decode::<Submitted>().unwrap().id;
    for _ in 0..6 {
        office.kit.ask_any("editor", Assignment { panic: true, ..assignment("") }).unwrap_err();
    }
    let _: Changed = office.ask("reviewer", Complete { id, text: "Two typos.".into() }).unwrap();
    office.kit.advance(Duration::from_millis(500));
    assert_eq!(office.writer.notes(), [""; 0], "it rests");
    assert_eq!(office.job.read(|inbox| inbox.owed().count()), 1);
    office.kit.advance(Duration::from_millis(500));
    assert_eq!(office.writer.notes(), ["completed: Two typos."]);
    assert_eq!(office.job.read(|inbox| inbox.owed().count()), 0);
}

#[test]
fn a_client_that_cannot_be_called_asks_for_the_result_of_a_detached_task() {
    let office = office(|_| ());
    let submitted: Submitted = office.ask("editor", Submit::detached("Read.")).unwrap();
    let id = submitted.id;
    let _: Changed = office.ask("reviewer", Accept { id }).unwrap();
    let _: Changed = office.ask("reviewer", InputRequired { id, text: "which?".into() }).unwrap();
    let _: Changed = office.ask("editor", Input { id, text: "this".into() }).unwrap();
    let _: Changed = office.ask("reviewer", Complete { id, text: "done".into() }).unwrap();
    office.kit.settle();
    let task: TaskPayload = office.ask("editor", Get { id }).unwrap();
    assert_eq!((task.status, task.result.as_deref()), (Status::Completed, Some("done")));
    assert!(task.undelivered.is_some(), "and it says why nobody was told");
}

#[test]
fn a_context_of_any_element_reaches_the_owner() {
    let office = office(|_| ());
    let context = TaskContext::xml("<o:order xmlns:o=\"urn:o\">AT&amp;T</o:order>").unwrap();
    let submit = Submit::new("Deliver.").with_context(&context).write().unwrap();
    office.kit.client("editor").tell(call_to("reviews", submit)).unwrap();
    office.kit.settle();
    let id = office.last();
    assert_eq!(office.job.read(|inbox| inbox.get(id).unwrap().context.clone()), context);
    let answer = office.kit.ask_any("reviewer", call_to("reviews", Get { id })).unwrap();
    let task: TaskPayload = answer.decode().unwrap();
    let task = task.read_context(answer.payload.payload()).unwrap();
    let expected: Option<systole::inbox::payload::ContextPayload> = (&context).into();
    assert_eq!(task.context, expected);
}

#[test]
fn a_panic_in_the_job_loses_no_task() {
    let office = office(|event| {
        if event.text.as_deref() == Some("panic") {
            panic!("as told");
        }
    });
    let first = office.submit("editor", Submit::new("Read."));
    let _: Changed = office.ask("reviewer", Accept { id: first }).unwrap();
    let fault = office.ask::<Changed>("reviewer", Progress { id: first, percent: None, text: "panic".into() });
    assert_eq!(fault.unwrap_err().code, FaultCode::ListenerFailed);
    assert_eq!(office.status(first), Status::Accepted);
    let _: Changed = office.ask("reviewer", Complete { id: first, text: "done".into() }).unwrap();
    assert_eq!(office.result("editor").unwrap().text, "done");
}

#[test]
fn a_long_list_comes_in_pages() {
    let office = office(|_| ());
    let long = "&".repeat(13_000);
    for number in 0..30 {
        let _: Submitted = office.ask("editor", Submit::detached(format!("{number} {long}"))).unwrap();
    }
    let (mut after, mut seen, mut pages) = (None, Vec::new(), 0);
    loop {
        let tasks: Tasks =
            office.ask("editor", List { status: Some(Status::Pending), after, ..List::default() }).unwrap();
        seen.extend(tasks.brief.iter().map(|task| task.place));
        after = tasks.brief.last().map(|task| task.place);
        pages += 1;
        if tasks.more == 0 {
            break;
        }
    }
    assert!(seen.iter().copied().eq(1..=30), "{seen:?}");
    assert!(pages > 1, "{pages}");
}

#[test]
fn the_records_of_an_inbox_start_another_organism() {
    let office = office(|_| ());
    let submitted: Submitted = office.ask("editor", Submit::detached("Read.")).unwrap();
    let records = office.job.read(super::records);
    drop(office);
    let inbox = TaskInbox::recover("reviews", super::owner(), InboxLimits::default(), &records);
    let job = Job::of(inbox.unwrap());
    let builder = job.install(Organism::builder("office")).client("reviewer", |c| c.calls::<Complete>());
    let kit = Kit::start(builder).unwrap();
    let complete = Complete { id: submitted.id, text: "done".into() };
    let changed: Changed = kit.ask_any("reviewer", call_to("reviews", complete)).unwrap().decode().unwrap();
    assert_eq!(changed.status, Status::Completed);
    assert!(job.read(|inbox| inbox.get(submitted.id).unwrap().is_over()), "nobody there takes results");
}
