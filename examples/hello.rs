//! The smallest organism: one listener, one message.

use systole::prelude::*;

#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:hello:v1", reply = Hello)]
struct Hello {
    name: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let organism = Organism::builder("hello")
        .on("greeter", async |hello: Delivery<Hello>| Ok(Hello { name: format!("{} from the greeter", hello.name) }))
        .client("cli", |c| c.calls::<Hello>())
        .start()?;
    let answer = block_on(organism.client("cli")?.ask(Hello { name: "world".into() }))?;
    println!("Hello, {}!", answer.name);
    Ok(())
}
