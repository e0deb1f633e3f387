//! `systole dead`: the dead letters of an organism, of its pump and of its mailboxes.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;
use systole::journal::{Condition, Editor, Store};
use systole::operations::{LetterRecord, Letters, Past, Wanted};
use systole::runtime::block_on;
use systole::runtime::clock::Clock;
use systole_core::core::{Blueprint, DeadLetterError};
use systole_core::protocol::refused_qname;
use systole_core::vocab::{FaultCode, MessageId, Name, QName, Time};

use super::columns::{self, moment};
use super::failure::Failure;
use super::journal_args;
use super::look::all;
#[cfg(feature = "gateway")]
use super::operate;
use super::print::{self, Page};

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List the dead letters: those of the pump, oldest first, then those of mailboxes
    List {
        #[command(flatten)]
        only: Only,
        /// Print them as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        of: journal_args::JournalArgs,
    },
    /// Print a dead letter: its reason and its payload
    Show {
        /// The dead letter, as the list names it
        letter: String,
        #[command(flatten)]
        of: journal_args::JournalArgs,
    },
    /// Delete dead letters
    Drop(Chosen),
    /// Redrive dead letters: at once if the organism runs, else with its next start
    Redrive(Chosen),
}

/// The dead letters that meet all conditions.
#[derive(Debug, Clone, Args)]
pub(super) struct Only {
    /// Only dead letters of this sender
    #[arg(long, value_name = "NAME")]
    from: Option<Name>,
    /// Only dead letters for this listener; behind a '-', for another one: '-a -b'
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    listener: Option<Condition<Name>>,
    /// Only dead letters with this payload, {namespace}local; behind a '-', with another one
    #[arg(long, value_name = "PAYLOAD", allow_hyphen_values = true)]
    payload: Option<Condition<QName>>,
    /// Only dead letters for the reason of this code, such as route; behind a '-', of another one. Those of mailboxes have `failed`
    #[arg(long, value_name = "CODE", allow_hyphen_values = true)]
    fault: Option<Condition<FaultCode>>,
    /// Only dead letters with this text in their payload or their reason
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Only dead letters from this time (RFC 3339) on
    #[arg(long, value_name = "TIME")]
    since: Option<Time>,
    /// Only dead letters from before this time
    #[arg(long, value_name = "TIME")]
    until: Option<Time>,
}

#[derive(Debug, Args)]
pub(super) struct Chosen {
    /// The dead letters, as the list names them
    #[arg(group = "choice")]
    letters: Vec<String>,
    /// All dead letters that meet the conditions, or all without one
    #[arg(long, group = "choice")]
    all: bool,
    #[command(flatten)]
    only: Only,
    #[command(flatten)]
    of: journal_args::JournalArgs,
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Drop,
    Redrive,
}

pub(super) fn run(action: &Action) -> Result<ExitCode, Failure> {
    match action {
        Action::List { only, json, of } => list(&letters(&*of.journal()?, &only.letters())?, *json),
        Action::Show { letter, of } => show(&*of.journal()?, letter),
        Action::Drop(chosen) => chosen.act(Act::Drop),
        Action::Redrive(chosen) => chosen.act(Act::Redrive),
    }
}

impl Only {
    fn letters(&self) -> Letters {
        let mut letters = Letters::default();
        letters.from = self.from.as_ref().map(ToString::to_string);
        letters.listener = self.listener.as_ref().map(ToString::to_string);
        letters.payload = self.payload.as_ref().map(ToString::to_string);
        letters.fault = self.fault.as_ref().map(ToString::to_string);
        letters.text = self.text.clone();
        letters.since = self.since.map(|time| time.to_string());
        letters.until = self.until.map(|time| time.to_string());
        letters
    }
}

impl Chosen {
    fn act(&self, act: Act) -> Result<ExitCode, Failure> {
        let mut wanted = self.only.letters();
        match (self.letters.is_empty(), self.all, wanted == Letters::default()) {
            (true, false, true) => {
                return Err(Failure::unusable("name dead letters, conditions of them, or all of them with --all"));
            }
            (false, ..) => wanted.ids = Some(self.letters.clone()),
            _ => {}
        }
        let journal = self.of.journal()?;
        #[cfg(feature = "gateway")]
        if operate::is_served(&journal) {
            let name = if matches!(act, Act::Drop) { "discard" } else { "redrive" };
            return operate::act_on(&journal, &json!({ "act": name, "letters": wanted }));
        }
        let found = letters(&*journal, &wanted)?;
        if let Some(missing) = self.letters.iter().find(|id| !found.iter().any(|letter| letter.letter == **id)) {
            return Err(no_such(missing));
        }
        if matches!(act, Act::Redrive) {
            // Problems are reported before anything is changed.
            let blueprint = self.of.blueprint()?;
            for letter in &found {
                sendable(letter, blueprint.as_ref())
                    .map_err(|error| Failure::no(format!("dead letter {}: {error}", letter.letter)))?;
            }
        }
        let mut editor = journal.edit().map_err(Failure::store)?;
        for letter in &found {
            act.on(&mut *editor, letter)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Act {
    fn on(self, editor: &mut dyn Editor, letter: &LetterRecord) -> Result<(), Failure> {
        let (by, now, id) = (Name::system(), Clock::real().now(), &letter.letter);
        let done = match (self, id.parse::<MessageId>(), id.parse()) {
            (Self::Drop, Ok(message), _) => editor.drop_mail(message, &by, now),
            (Self::Redrive, Ok(message), _) => editor.redrive_mail(message, &by, now),
            (Self::Drop, _, Ok(number)) => editor.drop_letter(number, &by, now),
            (Self::Redrive, _, Ok(number)) => editor.redrive_letter(number, &by, now),
            (_, Err(_), Err(_)) => Ok(false),
        };
        if !done.map_err(Failure::store)? {
            return Err(no_such(id));
        }
        match self {
            Self::Drop => print::line(format_args!("dead letter {id} is deleted"))?,
            Self::Redrive => print::line(format_args!("dead letter {id} is redriven at the next start"))?,
        }
        Ok(())
    }
}

/// Checks whether a dead letter can be redriven, as far as that is known before the start. A mailbox takes each of its own.
fn sendable(letter: &LetterRecord, blueprint: Option<&Blueprint>) -> Result<(), DeadLetterError> {
    if letter.mailbox {
        return Ok(());
    }
    let payload = letter.payload.as_ref().and_then(|name| name.parse().ok());
    let payload: QName = payload.filter(|name| *name != refused_qname()).ok_or(DeadLetterError::NoPayload)?;
    match (blueprint, letter.from.parse::<Name>()) {
        (Some(blueprint), Ok(from)) => blueprint.check_redrive(&from, &payload),
        _ => Ok(()),
    }
}

/// All dead letters that meet the conditions.
fn letters(journal: &dyn Store, wanted: &Letters) -> Result<Vec<LetterRecord>, Failure> {
    let past = Past::open(journal).map_err(Failure::look)?;
    let mut found = all(Wanted::from(wanted), |wanted| block_on(past.dead_letters(wanted)))?;
    if let Some(ids) = &wanted.ids {
        found.retain(|letter| ids.contains(&letter.letter));
    }
    Ok(found)
}

fn list(letters: &[LetterRecord], json: bool) -> Result<ExitCode, Failure> {
    if json {
        print::json(&json!(letters))?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
    let row = |letter: &LetterRecord| {
        let again = if letter.redrives { ", redriven at the next start" } else { "" };
        [
            letter.letter.clone(),
            moment(&letter.at),
            name(&letter.conversation),
            letter.from.clone(),
            name(&letter.listener),
            name(&letter.payload),
            format!("{}{again}", letter.fault),
        ]
    };
    let rows: Vec<_> = letters.iter().map(row).collect();
    columns::print(["LETTER", "SINCE", "CONVERSATION", "FROM", "TO", "PAYLOAD", "REASON"], &rows)?;
    Ok(ExitCode::SUCCESS)
}

fn show(journal: &dyn Store, id: &str) -> Result<ExitCode, Failure> {
    let mut wanted = Letters::default();
    wanted.ids = Some(vec![id.to_owned()]);
    let found = letters(journal, &wanted)?;
    let letter = found.first().ok_or_else(|| no_such(id))?;
    let mut page = Page::new();
    let to = letter.listener.as_deref().unwrap_or("no receiver");
    let place = match (&letter.path, &letter.thread) {
        (Some(path), _) => format!(", at {path}"),
        (None, Some(thread)) => format!(", in its mailbox, of thread {thread}"),
        (None, None) => String::new(),
    };
    page.line(format_args!("dead letter {id}, {}, from {} to {to}{place}", moment(&letter.at), letter.from))?;
    if let Some(conversation) = &letter.conversation {
        page.line(format_args!("conversation {conversation}"))?;
    }
    match letter.mailbox {
        true => page.line(format_args!("{}: {}", letter.fault, letter.reason))?,
        false => page.line(&letter.reason)?,
    }
    if letter.redrives {
        page.line("redriven at the next start")?;
    }
    if let Some(text) = &letter.text {
        page.block("", text)?;
    }
    page.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn no_such(id: &str) -> Failure {
    Failure::no(format!("there is no dead letter {id}: `systole dead list` shows all"))
}
