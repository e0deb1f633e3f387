//! A program of a crate that depends on systole alone: an error that `main` returns is shown as a sentence. It runs
//! itself with the name of each refusal, and reads the output of the standard library.

use std::process::Command;

use systole::actor::*;
use systole::prelude::*;

#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:refused:v1", reply = Order)]
struct Order {
    item: Vec<String>,
}

#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:refused:v1", reply = Self)]
struct Hello {
    name: String,
}

struct Desk;

impl Actor for Desk {
    type Context = Context<Self>;
}

impl Handler<Delivery<Order>> for Desk {
    type Result = Response;

    fn handle(&mut self, order: Delivery<Order>, _: &mut Context<Self>) -> Response {
        Ok(order.reply(Order { item: order.item.clone() }))
    }
}

impl Handler<Delivery<Hello>> for Desk {
    type Result = Response;

    fn handle(&mut self, hello: Delivery<Hello>, _: &mut Context<Self>) -> Response {
        Ok(hello.reply(Hello { name: hello.name.clone() }))
    }
}

const REFUSED: [(&str, &str); 4] = [
    (
        "start",
        "Error: the organism can't start:\n  'desk': the payload refused::Order can't be a contract: field 'item' of Order is \
         a list that can't be read back when it is empty: add #[serde(default)]",
    ),
    ("name", "Error: the organism has no client 'cl'\n"),
    ("ask", "Error: system: route: no listener takes {urn:example:refused:v1}hello from its sender\n"),
    ("decode", "Error: "),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        None => judge(),
        Some("start") => {
            Organism::builder("refused")
                .listener("desk", || Desk, |c| c.accepts::<Order>().replies::<Order>())
                .client("cli", |c| c.calls::<Order>())
                .start()?;
            Ok(())
        }
        Some(what) => {
            let organism = Organism::builder("refused")
                .listener("desk", || Desk, |c| c.accepts::<Hello>().replies::<Hello>())
                .client("cli", |c| c.calls::<Hello>())
                .client("mute", |c| c)
                .start()?;
            let hello = || Hello { name: "you".into() };
            match what {
                "name" => drop(organism.client("cl")?),
                "ask" => drop(block_on(organism.client("mute")?.ask(hello()))?),
                _ => drop(block_on(organism.client("cli")?.ask_any(hello()))?.decode::<Order>()?),
            }
            Ok(())
        }
    }
}

fn judge() -> Result<(), Box<dyn std::error::Error>> {
    for (what, sentence) in REFUSED {
        let output = Command::new(std::env::current_exe()?).arg(what).output()?;
        let said = String::from_utf8(output.stderr)?;
        assert!(!output.status.success(), "{what}: {said}");
        assert!(said.starts_with(sentence), "{what}: {said}");
        assert!(!said.contains(" { "), "{what} shows fields: {said}");
        assert_eq!(said.matches("refused::Order").count(), usize::from(what == "start"), "{what}: {said}");
    }
    Ok(())
}
