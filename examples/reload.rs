//! An organism that changes while it runs: an open conversation keeps the clerk that it began with, a new one has the next clerk.
//!
//! `cargo run --example reload`

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use systole::prelude::*;
use systole::runtime::{Keep, OrganismBuilder, with_state};
use tokio::sync::Notify;

/// A question to a desk.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:desk:v1", reply = Answer)]
struct Ask {
    /// The question.
    question: String,
}

/// The answer of a clerk.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:desk:v1")]
struct Answer {
    /// The clerk.
    clerk: String,
}

/// A version of the organism: a clerk of that name, who answers the question `wait` once the door is open.
fn desk(clerk: &'static str, door: &Arc<Notify>) -> OrganismBuilder {
    let answer = with_state(door.clone(), move |door: Arc<Notify>, ask: Delivery<Ask>| async move {
        if ask.question == "wait" {
            door.notified().await;
        }
        Ok(Answer { clerk: clerk.into() })
    });
    Organism::builder("desk").on_with("clerk", answer, |c| c.concurrency(10)).client("cli", |c| c.calls::<Ask>())
}

fn main() -> Result<(), Box<dyn Error>> {
    let door = Arc::new(Notify::new());
    let organism = desk("the first clerk", &door).start()?;
    let client = organism.client("cli")?;
    block_on(async {
        client.post(Ask { question: "wait".into() }).await?;
        let reloaded = organism.reload(desk("the second clerk", &door), Keep::default()).await?;
        println!("version {}; open conversations that keep an earlier one: {}", reloaded.version.0, reloaded.kept);
        println!("a new conversation: {}", client.ask(Ask { question: "who?".into() }).await?.clerk);
        door.notify_one();
        let answer = client.receive().await.ok_or("an answer was expected")?;
        println!("the open one: {}", answer.payload.as_str());
        Ok::<_, Box<dyn Error>>(())
    })?;
    block_on(organism.drain(Duration::from_secs(10)));
    Ok(())
}
