//! A contract accepts a payload that the actor has no handler for.

use systole::prelude::*;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

impl Payload for Add {
    const NAMESPACE: &'static str = "urn:example:calculator:v1";
    const ROOT: &'static str = "add";
}

struct Calculator;

impl Actor for Calculator {
    type Context = Context<Self>;
}

fn main() {
    let _ = Organism::builder("demo").listener("calculator", || Calculator, |c| c.accepts::<Add>());
}
