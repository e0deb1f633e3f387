//! An operator at work: pauses a listener, finds the conversation that waits for it, cancels it, retries it once the listener
//! is resumed, and reads from the journal of the stopped organism who did what.
//!
//! `cargo run --example operate`

use std::error::Error;
use std::time::Duration;

use systole::journal::{Durability, Journaled, Retry};
use systole::operations::{Past, Wanted};
use systole::prelude::*;

/// An order of a shop.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:shop:v1", reply = Packed)]
struct Order {
    /// The article.
    article: String,
}

/// A packed order.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:shop:v1")]
struct Packed {
    /// The article.
    article: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("systole-operate-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let journal = folder.join("shop.journal");
    let organism = Organism::builder("shop")
        .on("packer", async |order: Delivery<Order>| Ok(Packed { article: order.article.clone() }))
        .client("customer", |c| c.calls::<Order>())
        .durable(&journal, Durability::Process)
        .start()?;
    let customer = organism.client("customer")?;
    let ada = organism.operations("ada".parse()?);
    block_on(async {
        // A paused listener starts no handler: its messages wait.
        ada.pause("packer").await?;
        let order = customer.post(Order { article: "tea".into() }).await?;
        let mut wanted = Wanted::default();
        (wanted.listener, wanted.open) = (Some("packer".into()), Some(true));
        for open in ada.conversations(&wanted).await?.items {
            println!("waits: {} of {:?}, {} messages", open.conversation, open.owner, open.queued);
        }
        // The customer learns that the order is cancelled.
        ada.cancel(order, order).await?;
        let fault = customer.receive().await.and_then(|answer| answer.fault).ok_or("a fault was expected")?;
        println!("the customer got: {fault}");
        // The same order again, as a new conversation of the same customer.
        ada.resume("packer").await?;
        let again = ada.retry(Retry { conversation: order, at: None, edit: None, owner: None }).await?;
        let packed = customer.receive().await.ok_or("an answer was expected")?;
        println!("{again} has an answer: {}", packed.payload.as_str());
        Ok::<_, Box<dyn Error>>(())
    })?;
    block_on(organism.drain(Duration::from_secs(10)));
    drop(organism);
    // The journal tells the past, with the same records.
    let past = Past::open(&Journaled::new(&journal))?;
    let acts = block_on(past.acts(&Wanted::default()))?;
    for act in acts.items.iter().rev() {
        println!("{} did {} {}", act.by, act.act, act.of);
    }
    let done: Vec<_> = acts.items.iter().rev().map(|act| act.act.as_str()).collect();
    assert_eq!(done, ["pause", "cancel", "resume", "retry"]);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
