//! A job in a durable organism, on the simulated clock: a crash at any append loses nothing.

use std::sync::{Arc, Mutex};

use systole::actor::*;
use systole::inbox::payload::{Accept, Changed, Complete, Submit};
use systole::inbox::{Status, TaskAction, TaskEventKind};
use systole::jobs::Job;
use systole::journal::{FailingJournal, Journal as _, MemoryJournal};
use systole::prelude::*;
use systole::runtime::{AsActor, ContractBuilder, OrganismBuilder};
use systole::testing::Kit;
use systole::vocab::{Partition, Partitions};

type Journal = Arc<Mutex<MemoryJournal>>;

/// Tells the clerk to complete the first task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:test:clerk:v1", reply = Worked)]
struct Work {}

/// Number of tasks that the clerk has completed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:test:clerk:v1")]
struct Worked {
    count: u32,
}

/// An owner that moves its tasks itself, and counts them in its state.
struct Clerk(Job);

impl Clerk {
    fn count(&self) -> u32 {
        self.0.state().map_or(0, |state| std::str::from_utf8(&state).unwrap().parse().unwrap())
    }
}

impl Actor for Clerk {
    type Context = Context<Self>;
}

impl Handler<Delivery<Work>> for Clerk {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, work: Delivery<Work>, _: &mut Context<Self>) -> Self::Result {
        let state = (self.count() + 1).to_string();
        let done = self.0.act(work.thread(), Some(state.into()), |inbox, now| {
            let owner = inbox.owner().unwrap().clone();
            let first = inbox.pending().next().map_or_else(|| super::id(0), |task| task.id);
            inbox.apply(&owner, first, TaskAction::Complete("Done.".into()), now)
        });
        let job = self.0.clone();
        Box::pin(async move {
            done.await?;
            Ok(work.reply(Worked { count: Clerk(job).count() }))
        })
    }
}

fn fresh() -> Journal {
    Arc::new(Mutex::new(MemoryJournal::new([5; 32])))
}

/// Returns the state that a crash at this moment leaves.
fn crash(journal: &Journal) -> Journal {
    Arc::new(Mutex::new(journal.lock().unwrap().clone()))
}

fn office(job: &Job) -> OrganismBuilder {
    let clerk = job.clone();
    let builder = job.install(Organism::builder("office")).listener(
        "clerk",
        move || Clerk(clerk.clone()),
        |c| c.accepts::<Work>().replies::<Worked>(),
    );
    builder
        .client("reviewer", |c| c.calls::<Accept>().calls::<Complete>())
        .client("editor", |c| c.calls::<Submit>())
        .client("boss", |c| c.calls::<Work>())
}

fn job(owner: &str) -> Job {
    Job::new("reviews", owner).unwrap()
}

fn start(job: &Job, journal: &Journal) -> Kit {
    Kit::start(office(job).journal(journal.clone())).unwrap()
}

fn tell(kit: &Kit, client: &str, request: impl Payload) -> bool {
    let told = kit.client(client).tell(call_to("reviews", request)).is_ok();
    kit.settle();
    told
}

fn status(job: &Job) -> Option<Status> {
    job.read(|inbox| inbox.tasks().next().map(|task| task.status))
}

/// Returns the status of the one task after a start from that journal.
fn job_after(journal: &Journal) -> Option<Status> {
    let job = job("reviewer");
    let _kit = start(&job, journal);
    status(&job)
}

/// Lists the results that a client was sent and has not read.
fn results(kit: &Kit, client: &str) -> Vec<String> {
    kit.settle();
    let client = kit.client(client);
    let egress = std::iter::from_fn(|| client.try_receive());
    egress.map(|egress| egress.payload.as_str().to_owned()).collect()
}

/// Makes the next step of the one task; `false` if there is none, or none is possible.
fn step(kit: &Kit, job: &Job) -> bool {
    let id = job.read(|inbox| inbox.tasks().next().map(|task| task.id));
    match (id, status(job)) {
        (None, _) => tell(kit, "editor", Submit::new("Read.")),
        (Some(id), Some(Status::Pending)) => tell(kit, "reviewer", Accept { id }),
        (Some(id), Some(Status::Accepted)) => tell(kit, "reviewer", Complete { id, text: "Two typos.".into() }),
        _ => false,
    }
}

#[test]
fn a_task_waits_on_while_the_conversations_of_its_submitter_and_its_worker_move() {
    let (job, journal) = (job("reviewer"), fresh());
    let kit = start(&job, &journal);
    assert!(step(&kit, &job), "it is submitted");
    let hand_over = || {
        assert_eq!(kit.release(Partition::BOOT).unwrap(), Partitions::ALL);
        kit.settle();
        let before = status(&job);
        kit.adopt(Partitions::ALL).unwrap();
        kit.settle();
        assert_eq!(status(&job), before);
        before
    };
    assert_eq!(hand_over(), Some(Status::Pending), "its submitter waits on");
    assert!(step(&kit, &job), "it is accepted");
    assert_eq!(hand_over(), Some(Status::Accepted));
    assert!(step(&kit, &job), "it is completed");
    let told = results(&kit, "editor");
    assert_eq!(told.iter().filter(|result| result.contains("Two typos.")).count(), 1, "{told:?}");
    assert_eq!(hand_over(), Some(Status::Completed));
    assert_eq!(results(&kit, "editor"), [""; 0], "it is told once");
    // So it is after a crash.
    let again = job_after(&crash(&journal));
    assert_eq!(again, Some(Status::Completed));
}

#[test]
fn a_crash_at_any_append_moves_a_task_once() {
    let mut crashes = 0;
    for appends in 0.. {
        let journal = fresh();
        let first = job("reviewer");
        let failing = office(&first).journal(FailingJournal::new(journal.clone(), appends));
        let kit = Kit::start(failing).unwrap();
        kit.settle();
        // The first process has learned it, though it may be killed before it reports it.
        while step(&kit, &first) {}
        if kit.client("editor").tell(call_to("reviews", Submit::new("More."))).is_ok() {
            break;
        }
        crashes += 1;
        let (journal, heard) = (crash(&journal), Arc::<Mutex<Vec<_>>>::default());
        drop(kit);
        let hearing = heard.clone();
        let again = job("reviewer").on_event(move |event| hearing.lock().unwrap().push((event.task, event.number)));
        let kit = start(&again, &journal);
        kit.settle();
        while step(&kit, &again) {}
        again.read(|inbox| {
            let mut tasks = inbox.tasks();
            let task = tasks.next().unwrap();
            assert_eq!(tasks.count(), 0, "{appends}: the task was taken twice");
            assert_eq!((task.status, task.attempts), (Status::Completed, 1), "{appends}");
            assert_eq!(task.events, 4, "{appends}: submitted, routed, accepted, completed");
        });
        let heard = heard.lock().unwrap();
        assert!(heard.is_sorted_by(|one, next| one.1 < next.1), "{appends}: {heard:?}");
        let results = results(&kit, "editor");
        assert!(matches!(&results[..], [result] if result.contains("Two typos.")), "{appends}: {results:?}");
    }
    assert!(crashes > 8, "{crashes}");
}

#[test]
fn the_state_of_an_owner_and_its_inbox_are_one_transaction() {
    let mut crashes = 0;
    for appends in 0.. {
        let journal = fresh();
        let first = job("clerk");
        let kit = Kit::start(office(&first).journal(FailingJournal::new(journal.clone(), appends))).unwrap();
        tell(&kit, "editor", Submit { detached: true, ..Submit::new("Read.") });
        let whole = kit.client("boss").tell(Work {}).is_ok() && {
            kit.settle();
            kit.client("boss").tell(Work {}).is_ok()
        };
        let journal = crash(&journal);
        drop(kit);
        let again = job("clerk");
        let kit = start(&again, &journal);
        kit.settle();
        let completed = again.read(|inbox| inbox.tasks().filter(|task| task.status == Status::Completed).count());
        let state = again.state().map(|state| String::from_utf8(state.to_vec()).unwrap());
        assert_eq!(state.as_deref(), (completed == 1).then_some("1"), "{appends}");
        let answers = results(&kit, "boss");
        assert_eq!(
            answers.iter().filter(|answer| answer.contains("<count>1</count>")).count(),
            completed,
            "{answers:?}"
        );
        if whole {
            assert_eq!(completed, 1);
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 4, "{crashes}");
}

#[test]
fn an_end_in_order_leaves_a_task_to_the_next_start() {
    let journal = fresh();
    let first = job("reviewer");
    let kit = start(&first, &journal);
    tell(&kit, "editor", Submit::new("Read."));
    drop(kit);
    assert_eq!(status(&first), Some(Status::Pending), "nobody gave it up");
    for _ in 0..6 {
        drop(start(&job("reviewer"), &journal));
    }
    let again = job("reviewer");
    let kit = start(&again, &journal);
    kit.settle();
    while step(&kit, &again) {}
    assert_eq!(results(&kit, "editor").len(), 1);
}

/// Tells the planner to have a task done.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:test:planner:v1", reply = Worked)]
struct Plan {}

/// Submits a task, and answers when it has ended.
struct Planner;

impl Actor for Planner {
    type Context = Context<Self>;
}

impl Handler<Delivery<Plan>> for Planner {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, plan: Delivery<Plan>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            plan.thread().call_any(call_to("reviews", Submit::new("Read."))).await?;
            Ok(plan.reply(Worked { count: 1 }))
        })
    }
}

#[test]
fn an_end_in_order_waits_for_no_task_that_a_journal_keeps() {
    let office = |job: &Job| {
        let planner = |c: ContractBuilder<Planner, AsActor>| c.accepts::<Plan>().replies::<Worked>().calls::<Submit>();
        office(job).listener("planner", || Planner, planner).client("chief", |c| c.calls::<Plan>())
    };
    let begin = |kit: &Kit, job: &Job| {
        kit.client("chief").tell(call_to("planner", Plan {})).unwrap();
        kit.settle();
        assert!(step(kit, job), "the reviewer accepts the task");
    };
    let day = std::time::Duration::from_secs(86_400);

    let reviews = job("reviewer");
    let mut kit = Kit::start(office(&reviews)).unwrap();
    begin(&kit, &reviews);
    let before = kit.now();
    assert!(!kit.drain(day).idle, "without a journal the task would be lost");
    assert!(kit.now().since(before) >= day);

    let journal = fresh();
    let reviews = job("reviewer");
    let mut kit = Kit::start(office(&reviews).journal(journal.clone())).unwrap();
    begin(&kit, &reviews);
    let before = kit.now();
    assert!(kit.drain(day).idle, "the next start has the planner and the task");
    assert!(kit.now().since(before) < std::time::Duration::from_secs(1));
    let again = job("reviewer");
    let kit = Kit::start(office(&again).journal(journal)).unwrap();
    kit.settle();
    assert_eq!(status(&again), Some(Status::Accepted));
    assert!(step(&kit, &again), "the reviewer completes it");
    assert_eq!(results(&kit, "chief").len(), 1, "the planner goes on with its result");
}

#[test]
fn a_submitter_that_is_cancelled_takes_its_task_along_whatever_crashes() {
    let mut crashes = 0;
    for appends in 0.. {
        let journal = fresh();
        let first = job("reviewer");
        let kit = Kit::start(office(&first).journal(FailingJournal::new(journal.clone(), appends))).unwrap();
        let mut conversation = kit.client("editor").converse();
        let sent = kit.block_on(async { conversation.send(call_to("reviews", Submit::new("Read."))) });
        kit.settle();
        kit.block_on(async { conversation.cancel() });
        kit.settle();
        let whole = sent.is_ok() && kit.client("editor").tell(call_to("reviews", Submit::new("More."))).is_ok();
        let journal = crash(&journal);
        drop(kit);
        let again = job("reviewer");
        let kit = start(&again, &journal);
        kit.settle();
        let waits = kit.tree().matches("reviews").count() - 1;
        let open = again.read(|inbox| inbox.tasks().filter(|task| !task.status.is_ended()).count());
        assert_eq!(open, waits, "{appends}: {}", kit.tree());
        if whole {
            assert_eq!(status(&again), Some(Status::Cancelled));
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 2, "{crashes}");
}

#[test]
fn tasks_from_elsewhere_are_written_down_and_those_of_the_journal_count() {
    let journal = fresh();
    let mut inbox = super::inbox();
    let id = super::submit(&mut inbox, 1);
    let kit = start(&Job::of(inbox.clone()), &journal);
    let changed: Changed = kit.ask_any("reviewer", call_to("reviews", Accept { id })).unwrap().decode().unwrap();
    assert_eq!(changed.status, Status::Accepted);
    drop(kit);
    let again = Job::of(inbox);
    let kit = start(&again, &journal);
    assert_eq!(status(&again), Some(Status::Accepted), "not as it came from elsewhere");
    again.release(kit.now());
    kit.settle();
    let journal = crash(&journal);
    let third = job("reviewer");
    drop(kit);
    let _kit = start(&third, &journal);
    assert_eq!(status(&third), Some(Status::Pending));
}

#[test]
fn a_job_whose_tasks_break_its_rules_does_not_start() {
    let journal = fresh();
    let kit = start(&job("reviewer"), &journal);
    tell(&kit, "editor", Submit::new("Read this."));
    drop(kit);
    let limits = systole::inbox::InboxLimits { description_bytes: 4, ..Default::default() };
    let strict = Job::of(super::inbox().with_limits(limits));
    let error = Kit::start(office(&strict).journal(journal)).unwrap_err();
    assert!(error.to_string().contains("the inbox of 'reviews' can't be recovered from the journal"), "{error}");
}

#[test]
fn a_change_that_was_not_written_is_not_heard() {
    let journal = fresh();
    let heard = Arc::<Mutex<Vec<TaskEventKind>>>::default();
    let hearing = heard.clone();
    let job = job("reviewer").on_event(move |event| hearing.lock().unwrap().push(event.kind));
    // The appends before the one that takes the task.
    let before = {
        let mut appends = 0;
        loop {
            let (probe, journal) = (self::job("reviewer"), fresh());
            let kit = Kit::start(office(&probe).journal(FailingJournal::new(journal.clone(), appends))).unwrap();
            tell(&kit, "editor", Submit::new("Read."));
            if !journal.lock().unwrap().clone().recover().unwrap().tasks.is_empty() {
                break appends - 1;
            }
            appends += 1;
        }
    };
    let kit = Kit::start(office(&job).journal(FailingJournal::new(journal, before))).unwrap();
    tell(&kit, "editor", Submit::new("Read."));
    assert_eq!(status(&job), Some(Status::Pending), "it is there, for those who come after it");
    assert_eq!(*heard.lock().unwrap(), [], "and nobody hears of it");
}

#[test]
fn what_came_of_a_task_outlives_the_wait_for_it() {
    let journal = fresh();
    let first = job("reviewer");
    let kit = start(&first, &journal);
    tell(&kit, "editor", Submit::new("Read."));
    let id = first.read(|inbox| inbox.tasks().next().unwrap().id);
    drop(kit);
    let kit = start(&job("reviewer"), &journal);
    let done: Changed =
        kit.ask_any("reviewer", call_to("reviews", Complete { id, text: "Fine.".into() })).unwrap().decode().unwrap();
    assert_eq!(done.status, Status::Completed);
    let journal = crash(&journal);
    drop(kit);
    let kit = start(&first, &journal);
    let results = results(&kit, "editor");
    assert!(matches!(&results[..], [result] if result.contains("Fine.")), "{results:?}");
}
