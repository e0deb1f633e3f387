//! Work in the journal of parties that the organism no longer has. A start would end it for good, and a mistyped name
//! in organism.yaml is reason enough for that.

use std::collections::BTreeMap;

use systole::journal::Store;
use systole::upgrade::missing;
use systole_core::core::Blueprint;
use systole_core::vocab::Name;

use super::Run;
use crate::failure::Failure;

/// Refuses a start that would end open threads of missing parties, unless `--drop` names them.
pub(super) fn refuse(journal: &dyn Store, blueprint: &Blueprint, args: &Run) -> Result<(), Failure> {
    // An unreadable journal is reported when it is opened for writing.
    let Ok(reader) = journal.read() else { return Ok(()) };
    let Ok(owners) = reader.open_owners() else { return Ok(()) };
    // The start refuses the journal of another organism; the parties of that are not missing here.
    if reader.check_owner(&blueprint.organism).is_err() {
        return Ok(());
    }
    let mut gone: BTreeMap<&Name, u64> = BTreeMap::new();
    for (owner, threads) in &owners {
        if let Some(name) = missing(blueprint, owner) {
            *gone.entry(name).or_default() += threads;
        }
    }
    let is_there = |name: &&Name| !gone.contains_key(*name) && blueprint.party(name.as_str()).is_some();
    if let Some(name) = args.drop.iter().find(is_there) {
        return Err(Failure::unusable(format!(
            "--drop {name}: {} declares '{name}': remove it there first, or start without this option",
            args.organism.display()
        )));
    }
    gone.retain(|name, _| !args.drop.contains(name));
    // A damaged name is reported when the journal is opened for writing, too.
    if gone.is_empty() || reader.open_threads().is_err() {
        return Ok(());
    }
    let counted: Vec<String> = gone.iter().map(|(name, count)| format!("'{name}' (open threads: {count})")).collect();
    let drop: Vec<String> = gone.keys().map(|name| format!("--drop {name}")).collect();
    Err(Failure::unusable(format!(
        "the journal has open threads of {}, which {} no longer declares: declare it as before, or end them with {}",
        counted.join(" and "),
        args.organism.display(),
        drop.join(" ")
    )))
}
