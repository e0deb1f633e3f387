//! A program that has an organism, and a client of HTTP of its own: no feature that systole turns on may change that.

use systole::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let organism = Organism::builder("beside").client("cli", |c| c).start()?;
    let _client = reqwest::Client::new();
    drop(organism);
    Ok(())
}
