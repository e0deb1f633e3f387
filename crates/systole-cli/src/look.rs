//! Looks into the journal of an organism, whether it runs or not: its mailboxes, the tasks of its jobs, the acts of operators.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use systole::journal::Store;
use systole::operations::{ActRecord, LookError, MailboxRecord, Page, Past, TaskRecord, Wanted};
use systole::runtime::block_on;
use systole::runtime::clock::Clock;
use systole_core::vocab::Name;

use super::columns::{self, moment};
use super::failure::Failure;
use super::journal_args::JournalArgs;
use super::print;

#[derive(Debug, Args)]
pub(super) struct Mailboxes {
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: JournalArgs,
}

#[derive(Debug, Args)]
pub(super) struct Tasks {
    /// Only tasks of this job
    #[arg(long, value_name = "NAME")]
    job: Option<Name>,
    /// Only tasks in this state, such as pending
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Only tasks with this text
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: JournalArgs,
}

#[derive(Debug, Args)]
pub(super) struct Audit {
    /// The last acts, at most so many
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    last: usize,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: JournalArgs,
}

pub(super) fn mailboxes(args: &Mailboxes) -> Result<ExitCode, Failure> {
    let (past, now) = (open(&*args.of.journal()?)?, Clock::real().now());
    let found = all(Wanted::default(), |wanted| block_on(past.mailboxes(wanted, now)))?;
    if args.json {
        print::json(&json!(found))?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |mailbox: &MailboxRecord| {
        let paused =
            mailbox.paused.as_deref().map_or_else(String::new, |since| format!("paused since {}", moment(since)));
        let counts = [mailbox.waiting, mailbox.leased, mailbox.dead].map(|count| count.to_string());
        let [waiting, leased, dead] = counts;
        [
            mailbox.mailbox.clone(),
            waiting,
            leased,
            dead,
            mailbox.oldest.as_deref().map_or("-".to_owned(), moment),
            paused,
        ]
    };
    let rows: Vec<_> = found.iter().map(row).collect();
    columns::print(["MAILBOX", "WAITING", "LEASED", "DEAD", "OLDEST SINCE", "STATE"], &rows)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn tasks(args: &Tasks) -> Result<ExitCode, Failure> {
    let past = open(&*args.of.journal()?)?;
    let mut wanted = Wanted::default();
    wanted.job = args.job.as_ref().map(ToString::to_string);
    (wanted.state, wanted.text) = (args.state.clone(), args.text.clone());
    let found = all(wanted, |wanted| block_on(past.tasks(wanted)))?;
    if args.json {
        print::json(&json!(found))?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |task: &TaskRecord| {
        [
            task.task.clone(),
            task.job.clone(),
            task.state.clone(),
            task.from.clone(),
            moment(&task.changed),
            task.description.lines().next().unwrap_or_default().to_owned(),
        ]
    };
    let rows: Vec<_> = found.iter().map(row).collect();
    columns::print(["TASK", "JOB", "STATE", "FROM", "CHANGED", "DESCRIPTION"], &rows)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn audit(args: &Audit) -> Result<ExitCode, Failure> {
    let past = open(&*args.of.journal()?)?;
    let mut wanted = Wanted::default();
    let mut found: Vec<ActRecord> = Vec::new();
    while found.len() < args.last {
        wanted.limit = Some(args.last - found.len());
        let Page { items, next, .. } = block_on(past.acts(&wanted)).map_err(Failure::look)?;
        found.extend(items);
        match next {
            Some(next) => wanted.after = Some(next),
            None => break,
        }
    }
    if args.json {
        print::json(&json!(found))?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |act: &ActRecord| {
        let effect = match (&act.error, &act.opened) {
            (Some(error), _) => format!("no effect: {error}"),
            (None, Some(opened)) => format!("opened {opened}"),
            (None, None) => "done".to_owned(),
        };
        [moment(&act.at), act.by.clone(), act.act.clone(), act.of.clone(), effect]
    };
    let rows: Vec<_> = found.iter().rev().map(row).collect();
    columns::print(["AT", "OPERATOR", "ACT", "OF", "EFFECT"], &rows)?;
    Ok(ExitCode::SUCCESS)
}

fn open(journal: &dyn Store) -> Result<Past, Failure> {
    Past::open(journal).map_err(Failure::look)
}

/// Collects all pages.
pub(super) fn all<T>(
    mut wanted: Wanted,
    look: impl Fn(&Wanted) -> Result<Page<T>, LookError>,
) -> Result<Vec<T>, Failure> {
    let mut found = Vec::new();
    wanted.limit = Some(500);
    loop {
        let Page { items, next, .. } = look(&wanted).map_err(Failure::look)?;
        found.extend(items);
        match next {
            Some(next) => wanted.after = Some(next),
            None => return Ok(found),
        }
    }
}
