//! A key of `#[payload(…)]` is misspelt: that is told, and nothing that follows from it.

use systole::{actor::*, prelude::*};

#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespce = "urn:example:hello:v1")]
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
        Ok(reply_any(Hello { name: hello.name.clone() }))
    }
}

fn main() {
    let _ = Organism::builder("demo").listener("greeter", || Greeter, |c| c.accepts::<Hello>().replies::<Hello>());
}
