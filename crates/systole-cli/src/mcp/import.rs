//! `systole mcp import`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use systole::config::Config;
use systole::listeners::mcp::{McpLock, McpLockError};
use systole::mcp::client::{self, Contract};
use systole::terminal::readable;
use systole_core::vocab::{Limits, Name};
use tokio::task::LocalSet;

use crate::failure::Failure;
use crate::{file, print};

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The organism.yaml
    organism: PathBuf,
    /// The listener with `mcp:`
    listener: Name,
    /// Write nothing: print the differences from the last import, and exit with 1 if there are any
    #[arg(long)]
    dry_run: bool,
}

/// Writes the contract and the lock of a server, and prints its tools and skills, and what has changed since the last import.
pub(super) fn import(args: &Import) -> Result<ExitCode, Failure> {
    let found = Config::mcp_server(&args.organism, &args.listener).map_err(Failure::Config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::System)?;
    let limits = Limits::default();
    let contract =
        LocalSet::new().block_on(&runtime, client::import(&args.listener, &found.server, found.asks, &limits));
    let contract = contract.map_err(|why| Failure::no(format!("'{}' was not imported: {why}", args.listener)))?;
    if let Some(why) = &contract.unlisted
        && McpLock::read(&found.lock).is_ok_and(|before| !before.skills.is_empty())
    {
        return Err(Failure::no(format!(
            "'{}' was not imported: the last import has skills, and the server does not say whether it still has them: {why}. Import again when it lists its skills; if it has none any more, remove {} first",
            args.listener,
            found.lock.display()
        )));
    }
    // Before anything is written: the files of the import before stay.
    let lock = contract.lock.to_text();
    let lock = lock.map_err(|why| Failure::no(format!("'{}' was not imported: {why}", args.listener)))?;
    for remark in &contract.remarks {
        print::line(remark)?;
    }
    let differences = differences(&found.lock, &contract);
    for difference in differences.iter().flatten() {
        print::line(difference)?;
    }
    if args.dry_run {
        return Ok(match differences {
            Some(differences) if differences.is_empty() => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        });
    }
    let document = found.lock.with_file_name(&contract.lock.contract.file);
    file::replace(&document, &contract.document)?;
    file::replace(&found.lock, &lock)?;
    let names: Vec<_> = contract.lock.tools.iter().map(|tool| readable(&tool.facts.name)).collect();
    print::line(format_args!(
        "{}: {} of {} ({}): {}",
        args.listener,
        if names.len() == 1 { "1 tool".to_owned() } else { format!("{} tools", names.len()) },
        contract.lock.server,
        contract.lock.protocol,
        names.join(", "),
    ))?;
    let skills: Vec<_> = contract.lock.skills.iter().map(|skill| readable(&skill.facts.name)).collect();
    match skills.len() {
        0 => {}
        1 => print::line(format_args!("{}: 1 skill: {}", args.listener, skills[0]))?,
        count => print::line(format_args!("{}: {count} skills: {}", args.listener, skills.join(", ")))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The differences from the last import; `None` if there was none.
fn differences(lock: &Path, contract: &Contract) -> Option<Vec<String>> {
    match McpLock::read(lock) {
        Ok(before) => {
            let mut found = before.differences(contract.lock.tools.iter().map(|tool| &tool.facts));
            found.extend(before.differences_of_skills(contract.lock.skills.iter().map(|skill| &skill.facts)));
            Some(found)
        }
        Err(McpLockError::Unreadable(_)) if !lock.exists() => None,
        Err(error) => Some(vec![format!("{}: {error}", lock.display())]),
    }
}
