//! The journal of a command.

use std::path::{Path, PathBuf};

use clap::Args;
use systole::config::Config;
use systole::journal::{NamedJournal, is_url};
use systole_core::core::Blueprint;

use super::failure::Failure;

const ORGANISM: &str = "organism.yaml";
/// The ending of a journal's name, to find the only journal of a folder.
const EXTENSION: &str = "journal";

/// The journal of a command, by its name or by that of its organism.
#[derive(Debug, Args)]
pub(super) struct JournalArgs {
    /// The journal, a file or postgres://…; by default that of the organism, or the only *.journal in this folder
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// The organism.yaml that names the journal; by default that in this folder
    #[arg(long, value_name = "FILE")]
    organism: Option<PathBuf>,
}

impl JournalArgs {
    /// The journal. That of an organism must be its own.
    pub(super) fn journal(&self) -> Result<NamedJournal, Failure> {
        let journal = journal(self.journal.as_deref(), self.organism.as_deref())?;
        if let (Some(blueprint), Ok(reader)) = (self.blueprint()?, journal.read()) {
            reader.check_owner(&blueprint.organism).map_err(Failure::store)?;
        }
        Ok(journal)
    }

    /// The organism.yaml that the journal is that of; `None` where the journal was named alone.
    #[cfg(feature = "gateway")]
    pub(super) fn organism_file(&self) -> Option<&Path> {
        organism(self.journal.as_deref(), self.organism.as_deref())
    }

    /// The blueprint of the organism; `None` where the journal was named, and the organism is unknown.
    pub(super) fn blueprint(&self) -> Result<Option<Blueprint>, Failure> {
        let organism = organism(self.journal.as_deref(), self.organism.as_deref());
        organism.map(|organism| config(organism).map(|config| config.blueprint)).transpose()
    }
}

/// The organism.yaml that was named, or the one in this folder where no journal was.
pub(super) fn organism<'a>(journal: Option<&Path>, organism: Option<&'a Path>) -> Option<&'a Path> {
    organism.or_else(|| Some(Path::new(ORGANISM)).filter(|here| journal.is_none() && here.exists()))
}

/// The journal that was named; without a name, that of the organism, or of the `organism.yaml` in this folder, or the
/// only one in it.
pub(super) fn journal(named: Option<&Path>, organism: Option<&Path>) -> Result<NamedJournal, Failure> {
    if let Some(named) = named {
        // The text of a URL is none of a path with other bytes.
        return match named.to_str().filter(|named| is_url(named)) {
            Some(url) => NamedJournal::parse(url, None).map_err(|why| Failure::unusable(format!("the journal: {why}"))),
            None => Ok(NamedJournal::file(named)),
        };
    }
    let Some(organism) = self::organism(named, organism) else { return only() };
    let journal = config(organism)?.journal;
    let none = || Failure::unusable(format!("{} has durability: off: name a journal", organism.display()));
    journal.ok_or_else(none)
}

/// The only journal in this folder.
fn only() -> Result<NamedJournal, Failure> {
    let folder = std::fs::read_dir(".").map_err(|cause| Failure::read(Path::new("."), cause))?;
    let paths = folder.filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name())));
    let mut journals: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|is| is == EXTENSION) && path.is_file()).collect();
    journals.sort();
    match journals.as_slice() {
        [journal] => Ok(NamedJournal::file(journal)),
        [] => Err(Failure::unusable(format!("there is no {ORGANISM} and no *.{EXTENSION} here: name the journal"))),
        several => {
            let names: Vec<_> = several.iter().map(|path| path.display().to_string()).collect();
            Err(Failure::unusable(format!("there are several journals here, {}: name one", names.join(" and "))))
        }
    }
}

fn config(organism: &Path) -> Result<Config, Failure> {
    if !organism.exists() {
        return Err(Failure::unusable(format!("there is no {} here: name the journal", organism.display())));
    }
    Config::load(organism).map_err(Failure::Config)
}
