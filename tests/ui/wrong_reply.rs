//! Replies with another payload than the request names: by a handler, by a function, and to a caller that wants another.

use systole::{actor::*, prelude::*};

#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:hello:v1", reply = Greeting)]
struct Hello {
    name: String,
}

#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:hello:v1")]
struct Greeting {
    text: String,
}

#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:hello:v1")]
struct Parting {
    text: String,
}

struct Greeter;

impl Actor for Greeter {
    type Context = Context<Self>;
}

impl Handler<Delivery<Hello>> for Greeter {
    type Result = Response;

    fn handle(&mut self, hello: Delivery<Hello>, _: &mut Context<Self>) -> Response {
        Ok(hello.reply(Parting { text: hello.name.clone() }))
    }
}

fn main() {
    let organism = Organism::builder("demo")
        .listener("greeter", || Greeter, |c| c.answers::<Hello>())
        .on("function", async |hello: Delivery<Hello>| Ok(Parting { text: hello.name.clone() }))
        .start()
        .unwrap();
    let asked = organism.client("cli").unwrap().ask(Hello { name: "you".into() });
    let _: Result<Parting, AskError> = block_on(asked);
}
