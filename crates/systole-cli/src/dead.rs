//! `systole dead`: the dead letters of a journal.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use systole::journal::{Editor, JournalError, Store};
use systole::runtime::clock::Clock;
use systole_core::core::{Blueprint, DeadLetterError};
use systole_core::journal::{LetterRecord, Number};
use systole_core::protocol::refused_qname;

use super::columns::{self, date_time};
use super::failure::Failure;
use super::journal_args;
#[cfg(feature = "gateway")]
use super::operate;
use super::print::{self, Page};

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List the dead letters, oldest first
    List {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        of: journal_args::JournalArgs,
    },
    /// Print a dead letter: its reason and its payload
    Show {
        /// The number of the dead letter
        number: Number,
        #[command(flatten)]
        of: journal_args::JournalArgs,
    },
    /// Delete dead letters
    Drop(Chosen),
    /// Redrive dead letters: at once if the organism runs, else with its next start
    Redrive(Chosen),
}

#[derive(Debug, Args)]
pub(super) struct Chosen {
    /// The numbers of the dead letters
    #[arg(required = true)]
    numbers: Vec<Number>,
    #[command(flatten)]
    of: journal_args::JournalArgs,
}

pub(super) fn run(action: &Action) -> Result<ExitCode, Failure> {
    match action {
        Action::List { json, of } => list(&letters(&of.journal()?)?, *json),
        Action::Show { number, of } => show(&of.journal()?, *number),
        #[cfg(feature = "gateway")]
        Action::Drop(chosen) if operate::is_served(&chosen.of.journal()?) => online(chosen, "discard"),
        #[cfg(feature = "gateway")]
        Action::Redrive(chosen) if operate::is_served(&chosen.of.journal()?) => online(chosen, "redrive"),
        Action::Drop(chosen) => change(chosen, |journal, letter| journal.drop_letter(letter, Clock::real().now())),
        Action::Redrive(chosen) => {
            // Problems are reported before anything is changed.
            let blueprint = chosen.of.blueprint()?;
            let kept = letters(&chosen.of.journal()?)?;
            let chosen_ones = kept.iter().map(|(letter, _)| letter).filter(|it| chosen.numbers.contains(&it.number));
            for letter in chosen_ones {
                sendable(letter, blueprint.as_ref())
                    .map_err(|error| Failure::no(format!("dead letter {}: {error}", letter.number)))?;
            }
            change(chosen, |editor, letter| editor.redrive_letter(letter))?;
            for number in &chosen.numbers {
                print::line(format_args!("dead letter {number} is redriven at the next start"))?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Lets the running organism do it.
#[cfg(feature = "gateway")]
fn online(chosen: &Chosen, act: &str) -> Result<ExitCode, Failure> {
    let ids: Vec<_> = chosen.numbers.iter().map(ToString::to_string).collect();
    operate::act_on(&chosen.of.journal()?, &json!({ "act": act, "letters": { "ids": ids } }))
}

/// Checks whether a dead letter can be redriven, as far as that is known before the start.
fn sendable(letter: &LetterRecord, blueprint: Option<&Blueprint>) -> Result<(), DeadLetterError> {
    let qname = letter.payload.as_ref().map(|(qname, _)| qname).filter(|qname| **qname != refused_qname());
    let qname = qname.ok_or(DeadLetterError::NoPayload)?;
    match blueprint {
        Some(blueprint) => blueprint.check_redrive(&letter.from, qname),
        None => Ok(()),
    }
}

fn letters(journal: &dyn Store) -> Result<Vec<(LetterRecord, bool)>, Failure> {
    journal.read().and_then(|reader| reader.letters()).map_err(Failure::store)
}

fn list(letters: &[(LetterRecord, bool)], json: bool) -> Result<ExitCode, Failure> {
    if json {
        print::json(&letters.iter().map(value).collect())?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = |name: Option<String>| name.unwrap_or_else(|| "-".to_owned());
    let row = |(letter, redrive): &(LetterRecord, bool)| {
        let again = if *redrive { ", redriven at the next start" } else { "" };
        [
            letter.number.to_string(),
            date_time(letter.at),
            name(letter.place.conversation.map(|id| id.to_string())),
            letter.from.to_string(),
            name(letter.to.as_ref().map(ToString::to_string)),
            name(letter.payload.as_ref().map(|(qname, _)| qname.to_string())),
            format!("{}{again}", letter.reason.code),
        ]
    };
    let rows: Vec<_> = letters.iter().map(row).collect();
    columns::print(["NUMBER", "SINCE", "CONVERSATION", "FROM", "TO", "PAYLOAD", "REASON"], &rows)?;
    Ok(ExitCode::SUCCESS)
}

fn value((letter, redrive): &(LetterRecord, bool)) -> Value {
    json!({
        // As text: a number has more digits than JSON keeps everywhere.
        "number": letter.number.to_string(),
        "since": letter.at.to_string(),
        "from": letter.from.as_str(),
        "to": letter.to.as_ref().map(|name| name.as_str()),
        "conversation": letter.place.conversation.map(|id| id.to_string()),
        "path": letter.place.path.to_string(),
        "qname": letter.payload.as_ref().map(|(qname, _)| qname.to_string()),
        "payload": letter.payload.as_ref().map(|(_, payload)| String::from_utf8_lossy(payload)),
        "code": letter.reason.code.as_str(),
        "reason": letter.reason.to_string(),
        "redrive": redrive,
    })
}

fn show(journal: &dyn Store, number: Number) -> Result<ExitCode, Failure> {
    let letters = letters(journal)?;
    let (letter, redrive) =
        letters.iter().find(|(letter, _)| letter.number == number).ok_or_else(|| no_such(number))?;
    let mut page = Page::new();
    let to = letter.to.as_ref().map_or("no receiver", |name| name.as_str());
    let at = date_time(letter.at);
    page.line(format_args!("dead letter {number}, {at}, from {} to {to}, at {}", letter.from, letter.place.path))?;
    if let Some(conversation) = letter.place.conversation {
        page.line(format_args!("conversation {conversation}"))?;
    }
    page.line(&letter.reason)?;
    if *redrive {
        page.line("redriven at the next start")?;
    }
    if let Some((_, payload)) = &letter.payload {
        page.block("", String::from_utf8_lossy(payload))?;
    }
    page.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn change(
    chosen: &Chosen,
    change: fn(&mut dyn Editor, Number) -> Result<bool, JournalError>,
) -> Result<ExitCode, Failure> {
    let mut editor = chosen.of.journal()?.edit().map_err(Failure::store)?;
    for number in &chosen.numbers {
        if !change(&mut *editor, *number).map_err(Failure::store)? {
            return Err(no_such(*number));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn no_such(number: Number) -> Failure {
    Failure::no(format!("there is no dead letter {number}: `systole dead list` shows all"))
}
