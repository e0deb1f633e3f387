//! The journal of a command.

use std::path::{Path, PathBuf};

use systole::config::Config;
use systole_core::core::Blueprint;

use super::failure::Failure;

const ORGANISM: &str = "organism.yaml";

/// The journal of the arguments; without one, that of the organism, or of the `organism.yaml` in this folder.
pub(super) fn journal(named: Option<&Path>, organism: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let organism = organism.unwrap_or(Path::new(ORGANISM));
    let journal = config(organism)?.journal;
    let none = || Failure::unusable(format!("{} has durability: off: name a journal", organism.display()));
    Ok(journal.ok_or_else(none)?.file)
}

/// The blueprint of the `organism.yaml` in this folder; none where a journal was named, of whatever organism.
pub(super) fn blueprint(named: Option<&Path>) -> Result<Option<Blueprint>, Failure> {
    match named {
        Some(_) => Ok(None),
        None => Ok(Some(config(Path::new(ORGANISM))?.blueprint)),
    }
}

fn config(organism: &Path) -> Result<Config, Failure> {
    if !organism.exists() {
        return Err(Failure::unusable(format!("there is no {} here: name the journal", organism.display())));
    }
    Config::load(organism).map_err(Failure::Config)
}
