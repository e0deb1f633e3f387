//! A contract takes an answer as a message, and faults, without handlers for them.

use systole::inbox::payload::TaskPayload;
use systole::{actor::*, prelude::*};

struct Clerk;

impl Actor for Clerk {
    type Context = Context<Self>;
}

fn main() {
    let _ = Organism::builder("demo").listener("clerk", || Clerk, |c| c.returns::<TaskPayload>().accepts_faults());
}
