//! A job with an inbox, and two agents: a writer that submits three tasks, and a reviewer that owns the inbox and reads
//! it as a model would. One task is completed, with progress and a question on the way; one fails; one is cancelled.

use std::sync::{Arc, Mutex};

use systole::actor::*;
use systole::inbox::payload::{
    Accept, Cancel, Complete, Fail, Get, Input, InputRequired, List, Progress, Question, ResultPayload, Submit,
};
use systole::inbox::{TaskContext, TaskEvent};
use systole::jobs::Job;
use systole::prelude::*;
use systole::vocab::TaskId;

/// The book to review.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:office:v1", reply = Outcome)]
struct Book {
    /// The chapters, by title.
    #[serde(default)]
    chapter: Vec<String>,
}

/// The outcome of a review.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:office:v1")]
struct Outcome {
    /// A line for each chapter.
    #[serde(default)]
    line: Vec<String>,
}

/// Tells the reviewer to handle its inbox.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:office:v1", reply = Work)]
struct Work;

/// Submits a task for each chapter, and waits for all of them.
struct Writer;

impl Actor for Writer {
    type Context = Context<Self>;
}

impl Handler<Delivery<Book>> for Writer {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, book: Delivery<Book>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            let tasks = book.chapter.iter().map(|title| {
                let context = TaskContext::entries([("file", format!("{title}.md"))]);
                let submit = Submit { key: Some(title.clone()), ..Submit::new(format!("Review '{title}'.")) };
                call_to("reviews", submit.with_context(&context))
            });
            let results = book.thread().call_all_any(tasks, Join::All).await?.decode::<ResultPayload>()?;
            let line = results.iter().map(|result| format!("{}: {}", result.status, result.text)).collect();
            Ok(book.reply(Outcome { line }))
        })
    }
}

impl Handler<Delivery<Question>> for Writer {
    type Result = Response;

    fn handle(&mut self, question: Delivery<Question>, _: &mut Context<Self>) -> Response {
        println!("writer is asked: {}", question.text);
        Ok(question.reply(Input { id: question.id, text: "British".into() }))
    }
}

/// Cancels a task when the writer changes its mind.
impl Handler<Delivery<Cancel>> for Writer {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, cancel: Delivery<Cancel>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move { Ok(reply_any(cancel.thread().call_any(cancel.forward_to("reviews")).await?)) })
    }
}

/// Owns the inbox. A model might decide the same about each task.
struct Reviewer;

impl Actor for Reviewer {
    type Context = Context<Self>;
}

impl Handler<Delivery<Work>> for Reviewer {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, work: Delivery<Work>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            let thread = work.thread();
            let tasks = thread.call_to("reviews", List::default()).await?;
            for task in tasks.brief {
                let id = task.id;
                if task.description.contains("Winter") {
                    thread.call_to("reviews", Fail { id, text: "the file is empty".into() }).await?;
                    continue;
                }
                thread.call_to("reviews", Accept { id }).await?;
                if task.description.contains("Autumn") {
                    continue;
                }
                thread.call_to("reviews", Progress { id, percent: Some(50), text: "half read".into() }).await?;
                thread.call_to("reviews", InputRequired { id, text: "British or American?".into() }).await?;
                while answer(thread, id).await?.is_none() {
                    tokio::task::yield_now().await;
                }
                thread.call_to("reviews", Complete { id, text: "two typos".into() }).await?;
            }
            Ok(work.reply(Work))
        })
    }
}

/// The answer to the last question about a task, once there is one.
async fn answer(thread: &Thread, id: TaskId) -> Result<Option<String>, Fault> {
    let task = thread.call_to("reviews", Get { id }).await?;
    Ok(task.exchange.into_iter().next_back().and_then(|exchange| exchange.answer))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let events = Arc::<Mutex<Vec<TaskEvent>>>::default();
    let heard = events.clone();
    let reviews = Job::new("reviews", "reviewer")?
        .description("Reads what others wrote.")
        .sends_questions()
        .on_event(move |event| heard.lock().expect("nobody panics while it is held").push(event.clone()));
    let organism = reviews
        .install(Organism::builder("office"))
        .listener(
            "writer",
            || Writer,
            |c| c.answers::<Book>().answers::<Question>().answers::<Cancel>().calls::<Submit>().calls::<Cancel>(),
        )
        .listener(
            "reviewer",
            || Reviewer,
            |c| {
                c.answers::<Work>()
                    .calls::<List>()
                    .calls::<Get>()
                    .calls::<Accept>()
                    .calls::<Progress>()
                    .calls::<InputRequired>()
                    .calls::<Complete>()
                    .calls::<Fail>()
            },
        )
        .client("cli", |c| c.calls::<Book>().calls::<Work>().calls::<Cancel>())
        .start()?;
    let cli = organism.client("cli")?;
    let book = Book { chapter: vec!["Summer".into(), "Autumn".into(), "Winter".into()] };

    let outcome = block_on(async {
        let written = async { cli.ask(book).await };
        let reviewed = async {
            while reviews.read(|inbox| inbox.pending().count()) < 3 {
                tokio::task::yield_now().await;
            }
            println!("{}", reviews.render_pending_context());
            cli.ask(Work).await?;
            let autumn = reviews
                .read(|inbox| inbox.tasks().find(|task| task.description.contains("Autumn")).map(|task| task.id));
            let cancel = Cancel { id: autumn.expect("it was submitted"), text: "it was cut".into() };
            cli.ask_to("writer", cancel).await
        };
        let (outcome, changed) = tokio::join!(written, reviewed);
        changed?;
        outcome
    })?;

    for line in &outcome.line {
        println!("{line}");
    }
    assert_eq!(outcome.line, ["completed: two typos", "cancelled: it was cut", "failed: the file is empty"]);
    let events = events.lock().expect("nobody panics while it is held");
    for id in reviews.read(|inbox| inbox.tasks().map(|task| task.id).collect::<Vec<_>>()) {
        let own: Vec<_> = events.iter().filter(|event| event.task == id).collect();
        println!("{id}: {}", own.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>().join(" "));
        assert!(own.iter().map(|event| event.number).eq(1..=own.len() as u32), "each once, and in order");
    }
    Ok(())
}
