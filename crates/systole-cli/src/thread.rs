//! `systole thread`: the conversations of a journal, open and ended ones; retries of them.

#[cfg(feature = "otel")]
mod export;
mod retry;
mod show;
#[cfg(feature = "gateway")]
pub(crate) mod transcript;
mod tree;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;
use systole::journal::{Condition, Reader, ThreadEntry};
use systole::operations::{ConversationRecord, Past, Wanted};
use systole::runtime::block_on;
use systole_core::vocab::{FaultCode, Name, QName, ThreadId, Time};

use super::columns::{self, moment};
use super::failure::Failure;
use super::journal_args;
use super::look::all;
use super::print;
use super::sought::Sought;

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List conversations, oldest first
    List {
        #[command(flatten)]
        only: Only,
        #[command(flatten)]
        of: Journal,
    },
    /// Print threads as a tree: those of one conversation, or all open threads
    Tree {
        /// The conversation, or a thread in it; the last digits of its id are enough, as events show them
        id: Option<Sought>,
        #[command(flatten)]
        of: Journal,
    },
    /// Print the messages of a thread in order, or of all threads of a conversation
    Show {
        /// The conversation, or a thread in it; the last digits of its id are enough, as events show them
        id: Sought,
        #[command(flatten)]
        of: Journal,
    },
    /// Open a conversation again from a recorded message on, as a new one
    #[command(alias = "fork")]
    Retry(retry::Retry),
    /// Print a conversation as a file that anybody can verify: each entry with the hash of the one before it, the head signed
    #[cfg(feature = "gateway")]
    Transcript(transcript::Transcript),
    /// Write the conversation of a transcript into the journal of an organism that does not run, for reading and for retries
    #[cfg(feature = "gateway")]
    Import(transcript::Import),
    /// Send ended conversations to a collector of OpenTelemetry, with the ids of traces made while they ran
    #[cfg(feature = "otel")]
    Export(export::Export),
}

/// The conversations that are listed: those that meet all conditions.
#[derive(Debug, Args)]
pub(super) struct Only {
    /// List only open conversations
    #[arg(long)]
    open: bool,
    /// Only conversations with a thread of this listener; behind a '-', without one: '-a -b'
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    listener: Option<Condition<Name>>,
    /// Only conversations that began with this payload, {namespace}local; behind a '-', with another one
    #[arg(long, value_name = "PAYLOAD", allow_hyphen_values = true)]
    payload: Option<Condition<QName>>,
    /// Only conversations with a fault of this code among their answers, such as timeout; behind a '-', without one
    #[arg(long, value_name = "CODE", allow_hyphen_values = true)]
    fault: Option<Condition<FaultCode>>,
    /// Only conversations with this text in a message, an answer or a fault
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Only conversations that opened at this time (RFC 3339) or later
    #[arg(long, value_name = "TIME")]
    since: Option<Time>,
    /// Only conversations that opened before this time
    #[arg(long, value_name = "TIME")]
    until: Option<Time>,
}

#[derive(Debug, Args)]
pub(super) struct Journal {
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: journal_args::JournalArgs,
}

pub(super) fn run(action: &Action) -> Result<ExitCode, Failure> {
    match action {
        Action::List { only, of } => list(of, only),
        Action::Tree { id, of } => tree::tree(of, id.as_ref()),
        Action::Show { id, of } => show::show(of, id),
        Action::Retry(args) => retry::retry(args),
        #[cfg(feature = "gateway")]
        Action::Transcript(args) => transcript::transcript(args),
        #[cfg(feature = "gateway")]
        Action::Import(args) => transcript::import(args),
        #[cfg(feature = "otel")]
        Action::Export(args) => export::export(args),
    }
}

impl Journal {
    fn read(&self) -> Result<Box<dyn Reader>, Failure> {
        self.of.journal()?.read().map_err(Failure::store)
    }

    fn past(&self) -> Result<Past, Failure> {
        Past::open(&*self.of.journal()?).map_err(Failure::look)
    }
}

impl Only {
    pub(super) fn wanted(&self) -> Wanted {
        let mut wanted = Wanted::default();
        wanted.open = self.open.then_some(true);
        wanted.listener = self.listener.as_ref().map(ToString::to_string);
        wanted.payload = self.payload.as_ref().map(ToString::to_string);
        wanted.fault = self.fault.as_ref().map(ToString::to_string);
        wanted.text.clone_from(&self.text);
        [wanted.since, wanted.until] = [self.since, self.until].map(|time| time.map(|time| time.to_string()));
        wanted
    }

    /// The conditions as they are written on the command line, for a search that found nothing; that of a replay without `--open`
    /// is for conversations that have ended.
    pub(super) fn described(&self) -> String {
        let wanted = self.wanted();
        let conditions = [
            ("--listener", wanted.listener),
            ("--payload", wanted.payload),
            ("--fault", wanted.fault),
            ("--text", wanted.text),
            ("--since", wanted.since),
            ("--until", wanted.until),
        ];
        let state = if self.open { "that is open" } else { "that has ended" };
        let written = conditions.into_iter().filter_map(|(key, value)| Some(format!("{key} {}", value?)));
        let written: Vec<_> = written.collect();
        match written.is_empty() {
            true => state.to_owned(),
            false => format!("{state} and meets {}", written.join(", ")),
        }
    }
}

/// Finds the conversations that meet all conditions, oldest first.
pub(super) fn conversations(past: &Past, wanted: Wanted) -> Result<Vec<ConversationRecord>, Failure> {
    let mut found = all(wanted, |wanted| block_on(past.conversations(wanted)))?;
    found.reverse();
    Ok(found)
}

fn list(of: &Journal, only: &Only) -> Result<ExitCode, Failure> {
    let found = conversations(&of.past()?, only.wanted())?;
    if of.json {
        print::json(&json!(found))?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |conversation: &ConversationRecord| {
        let ConversationRecord { ended, opened, .. } = conversation;
        let state = if conversation.open { "open" } else { "ended" };
        [
            conversation.conversation.clone(),
            conversation.owner.clone().unwrap_or_else(|| "-".to_owned()),
            match &conversation.fault {
                Some(code) => format!("{state}, {code}"),
                None => state.to_owned(),
            },
            ended.as_ref().or(opened.as_ref()).map_or_else(String::new, |since| moment(since)),
            format!("{} of {}", conversation.threads, conversation.kept_threads.unwrap_or_default()),
            conversation.queued.to_string(),
        ]
    };
    let rows: Vec<_> = found.iter().map(row).collect();
    columns::print(["ID", "OWNER", "STATE", "SINCE", "OPEN THREADS", "WAITING MESSAGES"], &rows)?;
    Ok(ExitCode::SUCCESS)
}

/// The threads of the conversation that a thread belongs to.
fn conversation(reader: &dyn Reader, id: ThreadId) -> Result<Vec<ThreadEntry>, Failure> {
    let threads = reader.conversation(id).map_err(Failure::store)?;
    if threads.is_empty() { Err(absent(id)) } else { Ok(threads) }
}

fn absent(id: ThreadId) -> Failure {
    Failure::no(format!("there is no thread {id}: `systole thread list` shows the threads that are kept"))
}
