//! A contract accepts a payload that the actor has no handler for.

use systole::inbox::payload::Get;
use systole::{actor::*, prelude::*};

struct Clerk;

impl Actor for Clerk {
    type Context = Context<Self>;
}

fn main() {
    let _ = Organism::builder("demo").listener("clerk", || Clerk, |c| c.accepts::<Get>());
}
