//! A program with an organism, and an HTTP client of its own: no feature that systole turns on may change that client.

use systole::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let organism = Organism::builder("beside").client("cli", |c| c).start()?;
    let _client = reqwest::Client::new();
    drop(organism);
    Ok(())
}
