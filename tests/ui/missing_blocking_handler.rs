//! A blocking listener without the handler that its contract needs.

use systole::prelude::*;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Read {
    path: String,
}

impl Payload for Read {
    const NAMESPACE: &'static str = "urn:example:disk:v1";
    const ROOT: &'static str = "read";
}

struct Disk;

fn main() {
    let _ = Organism::builder("demo").blocking_listener("disk", || Disk, |c| c.accepts::<Read>());
}
