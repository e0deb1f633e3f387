//! The start of organisms with many listeners, and a question to one listener: `cargo bench --bench start`.

use std::rc::Rc;

use systole::core::{ClientContract, Contract, HandlerOutcome, Message, Routing};
use systole::prelude::*;
use systole::runtime::{LocalBoxFuture, OrganismBuilder, RawListener, RunContext};

const LISTENERS: [usize; 3] = [100, 1_000, 10_000];

fn main() {
    divan::main();
}

#[derive(Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:numbers:v1", reply = Add)]
struct Add {
    a: i64,
    b: i64,
}

/// A listener that never answers.
struct Mute;

impl RawListener for Mute {
    fn run(self: Rc<Self>, _: Message, _: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(async { HandlerOutcome::Emitted(Vec::new()) })
    }
}

/// An organism of function listeners for one type, addressed by name.
fn of_one_type(listeners: usize) -> OrganismBuilder {
    let add = async |add: Delivery<Add>| Ok(Add { a: add.a + add.b, b: 0 });
    let with = |builder: OrganismBuilder, number| {
        builder.on_with(&format!("listener-{number}"), add, |contract| contract.routing(Routing::Addressed))
    };
    (0..listeners).fold(Organism::builder("many"), with).client("cli", |client| client.calls::<Add>()).shards(1)
}

/// An organism of raw listeners with a payload type each, and a client that may call all of them.
fn of_distinct_contracts(listeners: usize) -> OrganismBuilder {
    let payload = |number| format!("{{urn:example:many:v1}}request-{number}").parse().expect("a name");
    let with = |builder: OrganismBuilder, number| {
        let mut contract = Contract::new(format!("listener-{number}").parse().expect("a name"));
        contract.accepts = vec![payload(number)];
        contract.replies = vec![payload(listeners)];
        builder.raw_listener(contract, || Mute)
    };
    let client = ClientContract::new("cli".parse().expect("a name")).calls((0..listeners).map(payload).collect());
    (0..listeners).fold(Organism::builder("many"), with).raw_client(client).shards(1)
}

#[divan::bench(args = LISTENERS)]
fn start_of_one_type(bencher: divan::Bencher<'_, '_>, listeners: usize) {
    bencher.bench_local(|| of_one_type(listeners).start().expect("it starts"));
}

#[divan::bench(args = LISTENERS)]
fn start_of_distinct_contracts(bencher: divan::Bencher<'_, '_>, listeners: usize) {
    bencher.bench_local(|| of_distinct_contracts(listeners).start().expect("it starts"));
}

#[divan::bench(args = LISTENERS, sample_size = 1_000)]
fn ask_the_last(bencher: divan::Bencher<'_, '_>, listeners: usize) {
    let organism = of_one_type(listeners).start().expect("it starts");
    let client = organism.client("cli").expect("there is one");
    let last = format!("listener-{}", listeners - 1);
    bencher.bench_local(|| block_on(client.ask_to(&last, Add { a: 1, b: 2 })).expect("it answers"));
}
