//! Jobs that register while the organism runs, on a simulated clock.

use std::sync::{Arc, Mutex};

use systole::inbox::payload::{
    Accept, Changed, Complete, Find, Get, JobsPayload, List, Register, Registered, Remove, Removed, Submit, Submitted,
    TaskPayload, Tasks,
};
use systole::inbox::*;
use systole::jobs::{Job, JobRegistry};
use systole::journal::{FailingJournal, MemoryJournal};
use systole::prelude::*;
use systole::runtime::OrganismBuilder;
use systole::testing::Kit;
use systole::vocab::Name;

type Journal = Arc<Mutex<MemoryJournal>>;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn office(jobs: &JobRegistry) -> OrganismBuilder {
    ["reviewer", "editor", "stranger"].into_iter().fold(jobs.install(Organism::builder("office")), |builder, who| {
        builder.client(who, |c| {
            let c = c.calls::<Submit>().calls::<Accept>().calls::<Complete>().calls::<Get>().calls::<List>();
            c.calls::<Register>().calls::<Remove>().calls::<Find>()
        })
    })
}

fn start(jobs: &JobRegistry) -> Kit {
    Kit::start(office(jobs)).unwrap()
}

fn ask<T: Payload>(kit: &Kit, who: &str, request: impl Payload) -> Result<T, String> {
    match kit.ask_any(who, call_to("jobs", request)) {
        Ok(answer) => Ok(answer.decode().unwrap_or_else(|error| panic!("{error}: {answer:?}"))),
        Err(error) => Err(error.to_string()),
    }
}

fn register(kit: &Kit, who: &str, job: &str, skills: &[&str]) -> Result<Registered, String> {
    ask(kit, who, Register::new(name(job), format!("The job {job}."), skills.iter().copied()))
}

fn found(kit: &Kit, find: Find) -> Vec<String> {
    let jobs: JobsPayload = ask(kit, "editor", find).unwrap();
    jobs.job.iter().map(|job| job.name.to_string()).collect()
}

fn task(text: &str) -> Submit {
    Submit::new(text).to(name("reviews"))
}

fn detached(text: &str) -> Submit {
    Submit { detached: true, ..task(text) }
}

#[test]
fn a_task_waits_for_its_job_and_its_submitter_for_the_result() {
    let jobs = JobRegistry::new("jobs").unwrap();
    let kit = start(&jobs);
    let root = kit.client("editor").tell(call_to("jobs", task("Read."))).unwrap();
    kit.settle();
    assert!(kit.client("editor").try_receive().is_none(), "nobody is there");
    assert_eq!(register(&kit, "reviewer", "reviews", &["read"]).unwrap().pending, 1);
    let tasks: Tasks = ask(&kit, "reviewer", List { job: Some(name("reviews")), ..List::default() }).unwrap();
    let id = tasks.brief[0].id;
    assert!(ask::<TaskPayload>(&kit, "stranger", Get { id }).is_err(), "what is not theirs is not there");
    assert_eq!(ask::<TaskPayload>(&kit, "editor", Get { id }).unwrap().target, name("reviews"));
    assert!(ask::<Changed>(&kit, "editor", Accept { id }).unwrap_err().contains("only the owner"));
    let changed: Changed = ask(&kit, "reviewer", Accept { id }).unwrap();
    assert_eq!(changed.status, Status::Accepted);
    let _: Changed = ask(&kit, "reviewer", Complete { id, text: "Two typos.".into() }).unwrap();
    let egress = kit.client("editor").try_receive().unwrap();
    assert_eq!(egress.root, root);
    assert!(egress.payload.as_str().contains("Two typos."), "{}", egress.payload.as_str());
}

#[test]
fn jobs_are_looked_up_by_name_and_by_skill() {
    let jobs = JobRegistry::new("jobs").unwrap();
    let kit = start(&jobs);
    for (job, skills) in [("b", &["read", "write"][..]), ("a", &["read"]), ("c", &[])] {
        register(&kit, "reviewer", job, skills).unwrap();
    }
    let skill = |skill: &str| Find { skill: Some(skill.into()), ..Find::default() };
    assert_eq!(found(&kit, Find::default()), ["a", "b", "c"]);
    assert_eq!(found(&kit, skill("read")), ["a", "b"]);
    assert_eq!(found(&kit, skill("sing")), [""; 0]);
    assert_eq!(found(&kit, Find { job: Some(name("c")), ..Find::default() }), ["c"]);
    assert_eq!(found(&kit, Find { after: Some(name("a")), ..skill("read") }), ["b"]);
    let _: Removed = ask(&kit, "reviewer", Remove { job: name("a") }).unwrap();
    assert_eq!(found(&kit, skill("read")), ["b"]);
}

#[test]
fn a_name_is_its_owners_and_what_was_accepted_comes_back() {
    let jobs = JobRegistry::new("jobs").unwrap();
    let kit = start(&jobs);
    register(&kit, "reviewer", "reviews", &[]).unwrap();
    let submitted: Submitted = ask(&kit, "editor", detached("Read.")).unwrap();
    let accept = || ask::<Changed>(&kit, "reviewer", Accept { id: submitted.id }).unwrap();
    accept();
    assert!(register(&kit, "stranger", "reviews", &[]).unwrap_err().contains("belongs to another principal"));
    assert_eq!(register(&kit, "reviewer", "reviews", &["read"]).unwrap().pending, 1, "it was given back");
    accept();
    assert!(ask::<Removed>(&kit, "stranger", Remove { job: name("reviews") }).is_err());
    assert_eq!(ask::<Removed>(&kit, "reviewer", Remove { job: name("reviews") }).unwrap().pending, 1);
    assert!(ask::<Removed>(&kit, "reviewer", Remove { job: name("reviews") }).unwrap_err().contains("there is no job"));
    assert!(
        register(&kit, "stranger", "reviews", &[]).unwrap_err().contains("belongs to another principal"),
        "it waits"
    );
    assert!(ask::<Changed>(&kit, "reviewer", Accept { id: submitted.id }).is_err(), "the job is not there");
    register(&kit, "reviewer", "reviews", &[]).unwrap();
    accept();
}

#[test]
fn what_a_registry_refuses_says_why() {
    let keeps = Jobs::new(Absent::Refuse).with_limits(JobsLimits { jobs: 1, ..JobsLimits::default() });
    let jobs = JobRegistry::of("jobs", keeps).unwrap();
    let kit = Kit::start(Job::new("drafts", "editor").unwrap().install(office(&jobs))).unwrap();
    let refused = |submit: Submit| ask::<Submitted>(&kit, "editor", submit).unwrap_err();
    assert!(refused(detached("Read.")).contains("there is no job 'reviews'"), "{}", refused(detached("Read.")));
    assert!(refused(Submit::detached("Read.")).contains("name the one that is meant"));
    assert!(ask::<Tasks>(&kit, "editor", List::default()).unwrap_err().contains("name the one that is meant"));
    for elsewhere in ["drafts", "jobs"] {
        let error = register(&kit, "reviewer", elsewhere, &[]).unwrap_err();
        assert!(error.contains(&format!("'{elsewhere}' is a listener of the organism")), "{error}");
    }
    // The editor submits in the name of a job of its own name, so no other principal may own such a job.
    assert!(register(&kit, "reviewer", "editor", &[]).unwrap_err().contains("belongs to another principal"));
    register(&kit, "reviewer", "reviews", &[]).unwrap();
    assert!(register(&kit, "reviewer", "more", &[]).unwrap_err().contains("1 jobs are registered"));
    let error = kit.ask_any("editor", call_to("drafts", detached("Read."))).unwrap_err().to_string();
    assert!(error.contains("there is no job 'reviews'"), "a job that is a listener has one inbox: {error}");
}

#[test]
fn an_organism_has_one_registry() {
    let [one, two] = ["jobs", "more"].map(|name| JobRegistry::new(name).unwrap());
    let error = two.install(office(&one)).start().unwrap_err().to_string();
    assert!(error.contains("jobs register with 'jobs' and with 'more': keep one of the two"), "{error}");
}

/// Makes the next step: a task for an unregistered job, the job, its removal while it has the task, the job again, the
/// result. `false` if there is none, or none is possible.
fn step(kit: &Kit, jobs: &JobRegistry) -> bool {
    let first = jobs.read(|jobs| jobs.inboxes().flat_map(TaskInbox::tasks).next().cloned());
    let Some(Task { id, status, attempts, .. }) = first else { return told(kit, "editor", task("Read.")) };
    let there = jobs.read(|jobs| jobs.find(&name("reviews")).is_some());
    match (status, there, attempts) {
        (Status::Pending, false, _) => told(kit, "reviewer", Register::new(name("reviews"), "Reads.", ["read"])),
        (Status::Pending, true, _) => told(kit, "reviewer", Accept { id }),
        (Status::Accepted, true, 1) => told(kit, "reviewer", Remove { job: name("reviews") }),
        (Status::Accepted, true, _) => told(kit, "reviewer", Complete { id, text: "Done.".into() }),
        _ => false,
    }
}

fn told(kit: &Kit, who: &str, request: impl Payload) -> bool {
    let told = kit.client(who).tell(call_to("jobs", request)).is_ok();
    kit.settle();
    told
}

#[test]
fn a_crash_at_any_append_registers_and_moves_once() {
    let mut crashes = 0;
    for appends in 0.. {
        let journal: Journal = Arc::new(Mutex::new(MemoryJournal::new([5; 32])));
        let first = JobRegistry::new("jobs").unwrap();
        let kit = Kit::start(office(&first).journal(FailingJournal::new(journal.clone(), appends))).unwrap();
        kit.settle();
        while step(&kit, &first) {}
        if kit.client("editor").tell(call_to("jobs", task("More."))).is_ok() {
            break;
        }
        crashes += 1;
        let journal: Journal = Arc::new(Mutex::new(journal.lock().unwrap().clone()));
        drop(kit);
        let again = JobRegistry::new("jobs").unwrap();
        let kit = Kit::start(office(&again).journal(journal)).unwrap();
        kit.settle();
        while step(&kit, &again) {}
        again.read(|jobs| {
            let tasks: Vec<_> = jobs.inboxes().flat_map(TaskInbox::tasks).collect();
            assert_eq!(tasks.len(), 1, "{appends}: {tasks:?}");
            assert_eq!((tasks[0].status, tasks[0].attempts), (Status::Completed, 2), "{appends}");
            assert_eq!(jobs.by_skill("read").count(), 1, "{appends}");
        });
        let client = kit.client("editor");
        let egress = std::iter::from_fn(|| client.try_receive());
        let results: Vec<_> = egress.map(|egress| egress.payload.as_str().to_owned()).collect();
        assert!(matches!(&results[..], [result] if result.contains("Done.")), "{appends}: {results:?}");
    }
    assert!(crashes > 12, "{crashes}");
}
