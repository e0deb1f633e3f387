//! A payload that names no reply is asked, and answered by a function.

use systole::prelude::*;

#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:hello:v1")]
struct Hello {
    name: String,
}

#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:hello:v1")]
struct Greeting {
    text: String,
}

fn main() {
    let organism = Organism::builder("demo")
        .on("function", async |hello: Delivery<Hello>| Ok(Greeting { text: hello.name.clone() }))
        .start()
        .unwrap();
    let _ = block_on(organism.client("cli").unwrap().ask(Hello { name: "you".into() }));
}
