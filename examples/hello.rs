//! The smallest organism: one listener, one message.

use systole::prelude::*;

#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:hello:v1")]
struct Hello {
    name: String,
}

struct Greeter;

impl Actor for Greeter {
    type Context = Context<Self>;
}

impl Handler<Delivery<Hello>> for Greeter {
    type Result = Response;

    fn handle(&mut self, hello: Delivery<Hello>, _: &mut Context<Self>) -> Response {
        Ok(reply(Hello { name: format!("{} from the greeter", hello.name) }))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let organism = Organism::builder("hello")
        .listener("greeter", || Greeter, |c| c.accepts::<Hello>().replies::<Hello>())
        .client("cli", |c| c.calls::<Hello>())
        .start()?;
    let answer: Hello = block_on(organism.client("cli")?.ask(Hello { name: "world".into() }))?.decode()?;
    println!("Hello, {}!", answer.name);
    assert_eq!(answer.name, "world from the greeter");
    Ok(())
}
