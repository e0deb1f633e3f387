//! `systole organism import`: the contract of another organism, which a listener stands for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use systole::config::Config;
use systole::federation::{self, Imported};
use systole::listeners::organism::{OrganismContract, OrganismLock, OrganismLockError};
use systole::terminal::readable;
use systole_core::vocab::Name;

use super::failure::Failure;
use super::{file, print};

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Ask the organism that a listener stands for what it lets its client call; write the schemas, and the lock file that it is
    /// held to
    Import(Import),
}

#[derive(Debug, Args)]
pub(super) struct Import {
    /// The organism.yaml
    organism: PathBuf,
    /// The listener with `organism:`
    listener: Name,
    /// Write nothing: print the differences from the last import, and exit with 1 if there are any
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(action: &Action) -> Result<ExitCode, Failure> {
    let Action::Import(args) = action;
    import(args)
}

/// Writes the contract and the lock of another organism, and prints its payloads, and what has changed since the last import.
fn import(args: &Import) -> Result<ExitCode, Failure> {
    let found = Config::other_organism(&args.organism, &args.listener).map_err(Failure::Config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::System)?;
    let imported = runtime.block_on(federation::import(&found.url, &found.token, found.certificates.as_deref()));
    let imported = imported.map_err(|why| Failure::no(format!("'{}' was not imported: {why}", args.listener)))?;
    let Imported { lock, remarks, .. } = imported;
    for remark in &remarks {
        print::line(remark)?;
    }
    let differences = differences(&found.lock, &args.listener, &lock.contract);
    for difference in differences.iter().flatten() {
        print::line(difference)?;
    }
    if args.dry_run {
        return Ok(match differences {
            Some(differences) if differences.is_empty() => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        });
    }
    write(&found.lock, &args.listener, &lock)?;
    let payloads: Vec<_> = lock.accepts().map(|payload| payload.to_string()).collect();
    print::line(format_args!(
        "{}: {} of {}, as its client {}: {}",
        args.listener,
        if payloads.len() == 1 { "1 payload".to_owned() } else { format!("{} payloads", payloads.len()) },
        readable(&lock.contract.organism),
        readable(&lock.contract.client),
        payloads.join(", "),
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The differences from the last import; `None` if there was none.
fn differences(lock: &Path, listener: &Name, now: &OrganismContract) -> Option<Vec<String>> {
    match OrganismLock::read(lock, listener) {
        Ok(before) => Some(before.contract.differences(now)),
        Err(OrganismLockError::Unreadable(..)) if !lock.exists() => None,
        Err(error) => Some(vec![format!("{}: {error}", lock.display())]),
    }
}

/// Writes the schema files, then the lock that vouches for them. Schema files of an import before that are no part of this one
/// are removed.
fn write(path: &Path, listener: &Name, lock: &OrganismLock) -> Result<(), Failure> {
    let folder = OrganismLock::folder(path);
    let failed = |cause| Failure::unusable(format!("can't write into {}: {cause}", folder.display()));
    fs::create_dir_all(&folder).map_err(failed)?;
    for document in &lock.contract.documents {
        file::replace(&folder.join(&document.name), &document.text)?;
    }
    file::replace(path, &lock.to_text(listener))?;
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let is_schema = Path::new(&name).extension().is_some_and(|kind| kind == "xsd" || kind == "json");
        let is_kept = lock.contract.documents.iter().any(|document| *document.name == *name);
        if is_schema && !is_kept {
            fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    Ok(())
}
