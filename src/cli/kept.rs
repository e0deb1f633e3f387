//! The journal that a command is about.

use std::path::{Path, PathBuf};

use super::failure::Failure;
use crate::shell::config::Config;

const ORGANISM: &str = "organism.yaml";

/// The journal that was named; without a name, that of the organism, or of the `organism.yaml` in this folder.
pub(super) fn journal(named: Option<&Path>, organism: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let organism = organism.unwrap_or(Path::new(ORGANISM));
    let shown = organism.display();
    if !organism.exists() {
        return Err(Failure::unusable(format!("there is no {shown} here: name the journal")));
    }
    let journal = Config::load(organism).map_err(Failure::Config)?.journal;
    let journal = journal.ok_or_else(|| Failure::unusable(format!("{shown} has durability: off: name a journal")))?;
    Ok(journal.file)
}
