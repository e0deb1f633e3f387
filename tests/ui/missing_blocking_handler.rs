//! A blocking listener without the handler that its contract needs.

use systole::inbox::payload::Get;
use systole::prelude::*;

struct Disk;

fn main() {
    let _ = Organism::builder("demo").blocking_listener("disk", || Disk, |c| c.accepts::<Get>());
}
