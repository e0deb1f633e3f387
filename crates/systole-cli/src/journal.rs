//! `systole journal`: content, verification and compaction of a journal.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use systole::journal::{NamedJournal, Retention, Stat, Store, Verdict};
use systole::runtime::clock::Clock;
use systole::terminal::Escaped;
use systole_core::vocab::Time;

use super::columns::date_time;
use super::failure::Failure;
use super::journal_args;
use super::print::{self, Page};
use super::units;

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Print counts and sizes of a journal, and the process that writes it
    Stat {
        /// Print the figures as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        of: Named,
    },
    /// Check every page, index and row: exit 0 if all is in order, 1 if not
    Verify {
        /// Print the problems as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        of: Named,
    },
    /// Give the journal to an organism of another name, such as after a change of its name; refused while the organism runs
    Rename {
        /// The new name of the organism that owns the journal
        name: String,
        #[command(flatten)]
        of: Named,
    },
    /// Delete ended work past its retention, and shrink the file; refused while the organism runs
    Compact(Compact),
    /// Copy a journal from a file to a PostgreSQL database, or from there to a file; refused while the organism runs
    Copy {
        /// The journal to copy: a file, or postgres://USER@HOST/DATABASE
        from: PathBuf,
        /// The copy, which does not exist yet
        to: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(super) struct Compact {
    /// Retention of ended work
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = units::duration)]
    age: Duration,
    /// Size past which the oldest ended work is deleted earlier
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = units::size)]
    size: usize,
    /// Drop the part of the log behind a damaged place
    #[arg(long)]
    cut: bool,
    #[command(flatten)]
    of: Named,
}

/// The journal that the arguments name.
#[derive(Debug, Args)]
pub(super) struct Named {
    /// The journal; without it, that of the organism, or the only *.journal in this folder
    journal: Option<PathBuf>,
    /// The organism.yaml that names its journal; without it, the one in this folder
    #[arg(long, value_name = "FILE")]
    organism: Option<PathBuf>,
}

impl Named {
    pub(super) fn journal(&self) -> Result<NamedJournal, Failure> {
        journal_args::journal(self.journal.as_deref(), self.organism.as_deref())
    }
}

pub(super) fn run(action: &Action) -> Result<ExitCode, Failure> {
    match action {
        Action::Stat { json, of } => stat(&*of.journal()?, *json),
        Action::Verify { json, of } => verify(&*of.journal()?, *json),
        Action::Rename { name, of } => rename(name, &*of.journal()?),
        Action::Compact(args) => compact(args),
        Action::Copy { from, to } => copy(from, to),
    }
}

fn rename(name: &str, journal: &dyn Store) -> Result<ExitCode, Failure> {
    let before = journal.edit().and_then(|mut editor| editor.rename(name)).map_err(Failure::store)?;
    let Some(before) = before else {
        return Err(Failure::unusable(format!(
            "{journal}: it belongs to no organism yet: its first start gives it one"
        )));
    };
    print::line(format_args!("{journal}: it belonged to '{}', and belongs to '{name}' now", before.organism))?;
    Ok(ExitCode::SUCCESS)
}

fn stat(journal: &dyn Store, json: bool) -> Result<ExitCode, Failure> {
    let stat = journal.read().and_then(|reader| reader.stat()).map_err(Failure::store)?;
    if json {
        let mut value = json!(stat);
        value["last_written"] = (stat.last_written > 0).then(|| Time::from_nanos(stat.last_written).to_string()).into();
        print::json(&value)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Page::new();
    let (kib, sizes) = (|bytes: u64| bytes.div_ceil(1024), (stat.file_bytes, stat.used_bytes, stat.log_bytes));
    page.line(format_args!("state           {}", state(&stat)))?;
    if let (Some(organism), Some(id)) = (&stat.organism, &stat.id) {
        page.line(format_args!("organism        {organism}, journal {id}"))?;
    }
    page.line(format_args!("epoch           {}", stat.epoch))?;
    let written = match stat.last_written {
        0 => "never".to_owned(),
        nanos => date_time(Time::from_nanos(nanos)).to_string(),
    };
    page.line(format_args!("last written    {written}"))?;
    page.line(format_args!("conversations   {} open", stat.open_conversations))?;
    page.line(format_args!("threads         {} open, {} kept", stat.open_threads, stat.kept_threads))?;
    page.line(format_args!("messages        {} waiting, {} kept", stat.waiting_messages, stat.kept_messages))?;
    page.line(format_args!("unread egress   {}", stat.unread_egress))?;
    page.line(format_args!("dead letters    {}", stat.dead_letters))?;
    if stat.batches > 0 {
        page.line(format_args!("batches         {} not in the tables yet", stat.batches))?;
    }
    page.line(format_args!(
        "file            {} KiB, {} KiB used, log {} KiB",
        kib(sizes.0),
        kib(sizes.1),
        kib(sizes.2)
    ))?;
    page.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn state(stat: &Stat) -> String {
    match (stat.in_use, stat.writer, stat.ended_in_order) {
        (true, Some(writer), _) => format!("in use by process {writer}"),
        (true, None, _) => "in use".to_owned(),
        (false, _, true) => "ended in order".to_owned(),
        (false, _, false) => "ended by a crash".to_owned(),
    }
}

fn verify(journal: &dyn Store, json: bool) -> Result<ExitCode, Failure> {
    let report = journal.verify().map_err(Failure::store)?;
    let verdict = match report.verdict {
        Verdict::DamagedLog => "its log is damaged; what is before that place can be kept",
        Verdict::IncompleteLog => "its log is incomplete; what is before that place can be kept",
        Verdict::InOrder if report.unchecked => "its rows are in order; its pages and indexes were not checked",
        Verdict::InOrder => "in order",
        _ => "damaged: restore a copy, or move it away and start anew",
    };
    if json {
        let cut = report.cut.map(|cut| json!({ "at": cut.at, "bytes": cut.bytes, "frames": cut.frames }));
        print::json(&json!({
            "rows": report.rows,
            "faults": report.faults,
            "cut": cut,
            "unchecked": report.unchecked,
        }))?;
    } else {
        for said in &report.faults {
            print::note(Escaped::line(&format!("{journal}: {said}")));
        }
        if let Some(cut) = report.cut {
            print::note(Escaped::line(&format!(
                "{journal}: its log ended with an unfinished transaction ({} bytes from byte {} on), which was cut off",
                cut.bytes, cut.at
            )));
        }
        if let Some(why) = report.why_unchecked() {
            print::note(Escaped::line(&format!("{journal}: {why}")));
        }
        print::line(format_args!("{journal}: {verdict}"))?;
    }
    let in_order = report.faults.is_empty() && !report.unchecked;
    Ok(if in_order { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn copy(from: &Path, to: &Path) -> Result<ExitCode, Failure> {
    let (from, to) = (journal_args::journal(Some(from), None)?, journal_args::journal(Some(to), None)?);
    from.copy(&to).map_err(Failure::no)?;
    print::line(format_args!(
        "{from} copied to {to}: name it in organism.yaml, and start the organism on one of them only"
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn compact(args: &Compact) -> Result<ExitCode, Failure> {
    let retention = Retention::default().age(args.age).bytes(args.size as u64);
    let done = args.of.journal()?.compact(retention, args.cut, Clock::real().now()).map_err(Failure::store)?;
    let freed = done.before.saturating_sub(done.after).div_ceil(1024);
    let left = done.after.div_ceil(1024);
    print::line(format_args!("{} rows deleted, {freed} KiB freed, {left} KiB left", done.rows))?;
    Ok(ExitCode::SUCCESS)
}
