//! A contract takes an answer as a message, and faults, without handlers for them.

use systole::prelude::*;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Sum {
    value: i64,
}

impl Payload for Sum {
    const NAMESPACE: &'static str = "urn:example:calculator:v1";
    const ROOT: &'static str = "sum";
}

struct Asker;

impl Actor for Asker {
    type Context = Context<Self>;
}

fn main() {
    let _ = Organism::builder("demo").listener("asker", || Asker, |c| c.returns::<Sum>().accepts_faults());
}
