//! A task that outlives the organism it was submitted to.
//!
//! A writer submits a task and waits; its owner accepts it, and stores its own progress with it, in one transaction.
//! Then the organism ends. Another one starts from the same journal: the task, the owner's state and the writer's wait
//! are there, and the result reaches the writer.

use std::path::Path;

use systole::actor::*;
use systole::inbox::TaskAction;
use systole::inbox::payload::{ResultPayload, Submit};
use systole::jobs::Job;
use systole::journal::Durability;
use systole::prelude::*;

/// Tells the reviewer to go on.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:review:v1", reply = Self)]
struct Read {
    /// The page to read up to.
    page: u32,
}

/// Owns the inbox; its state is the page that it has read.
struct Reviewer(Job);

impl Actor for Reviewer {
    type Context = Context<Self>;
}

impl Handler<Delivery<Read>> for Reviewer {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, read: Delivery<Read>, _: &mut Context<Self>) -> Self::Result {
        let before = self.0.state().map_or("page 0".into(), |state| String::from_utf8_lossy(&state).into_owned());
        let page = read.page;
        println!("reviewer: was at {before}, is at page {page}");
        // This happens once, however often this message is run: the task, the state and the note of it are one
        // transaction.
        let moved = self.0.act(read.thread(), Some(format!("page {page}").into()), |inbox, now| {
            let owner = inbox.owner().expect("the job has one").clone();
            let task = inbox.tasks().next().expect("it was submitted");
            let (id, pages) = (task.id, 20);
            let action = match page {
                page if page < pages => TaskAction::Accept,
                _ => TaskAction::Complete("two typos".into()),
            };
            inbox.apply(&owner, id, action, now)
        });
        Box::pin(async move {
            moved.await?;
            Ok(read.reply(Read { page }))
        })
    }
}

fn office(journal: &Path) -> Result<(Organism, Job), Box<dyn std::error::Error>> {
    let reviews = Job::new("reviews", "reviewer")?;
    let job = reviews.clone();
    let organism = reviews
        .install(Organism::builder("office"))
        .listener("reviewer", move || Reviewer(job.clone()), |c| c.answers::<Read>())
        .client("writer", |c| c.calls::<Submit>())
        .client("cli", |c| c.calls::<Read>())
        .durable(journal, Durability::Process)
        .start()?;
    Ok((organism, reviews))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::temp_dir().join(format!("systole-durable-tasks-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let journal = directory.join("office.journal");

    let (organism, reviews) = office(&journal)?;
    block_on(organism.client("writer")?.post(call_to("reviews", Submit::new("Read chapter 3, all 20 pages."))))?;
    // A durable answer can't be undone by a crash, so this is when the task was accepted for good.
    while reviews.read(|inbox| inbox.pending().count()) == 0 {
        std::thread::yield_now();
    }
    print!("{}", reviews.render_pending_context());
    block_on(organism.client("cli")?.ask(Read { page: 7 }))?;
    drop((organism, reviews));
    println!("-- the organism ended; another one starts from its journal --");

    let (organism, reviews) = office(&journal)?;
    for task in reviews.read(|inbox| inbox.tasks().cloned().collect::<Vec<_>>()) {
        println!("{} is {}: {}", task.id, task.status, task.description);
    }
    block_on(organism.client("cli")?.ask(Read { page: 20 }))?;
    let result = block_on(organism.client("writer")?.receive()).ok_or("the organism ended")?;
    let result: ResultPayload = systole::schema::decode(&result.proof.ok_or("a fault came back")?)?;
    println!("writer: {} ({})", result.text, result.status);
    assert_eq!(result.text, "two typos");
    drop(organism);
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}
