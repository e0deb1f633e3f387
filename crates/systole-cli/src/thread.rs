//! `systole thread`: the conversations of a journal, open and ended ones; retries of them.

mod retry;
mod show;
mod tree;

use std::fmt::Display;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;
use systole::journal::{ConversationFilter, KeptConversation, Reader, Store, ThreadEntry};
use systole_core::journal::Owner;
use systole_core::vocab::{FaultCode, Name, QName, ThreadId, Time};

use super::columns::{self, date_time};
use super::failure::Failure;
use super::journal_args;
use super::print;

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
}

/// The conversations that are listed: those that meet all conditions.
#[derive(Debug, Args)]
pub(super) struct Only {
    /// List only open conversations
    #[arg(long)]
    open: bool,
    /// Only conversations with a thread of this listener
    #[arg(long, value_name = "NAME")]
    listener: Option<Name>,
    /// Only conversations that began with this payload, {namespace}local
    #[arg(long, value_name = "PAYLOAD")]
    payload: Option<QName>,
    /// Only conversations with a fault of this code among their answers, such as timeout
    #[arg(long, value_name = "CODE", value_parser = code)]
    fault: Option<FaultCode>,
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

fn code(text: &str) -> Result<FaultCode, String> {
    let known = FaultCode::ALL.into_iter().find(|code| code.as_str() == text);
    known.ok_or_else(|| {
        let all: Vec<_> = FaultCode::ALL.iter().map(|code| code.as_str()).collect();
        format!("there is no such code: write one of {}", all.join(", "))
    })
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
    }
}

/// A thread to find.
#[derive(Debug, Clone)]
pub(super) enum Sought {
    Id(ThreadId),
    /// The last digits of its id.
    Digits(String),
}

/// Fewest digits: with fewer, too many conversations match.
const FEWEST: usize = 4;

impl FromStr for Sought {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self::Id).or_else(|error| digits(text, &error).map(Self::Digits))
    }
}

/// The last digits of an id.
fn digits(text: &str, error: &dyn Display) -> Result<String, String> {
    let is_digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    match text.len() >= FEWEST && text.bytes().all(is_digit) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(format!("{error}; its last {FEWEST} digits or more are enough if only one id ends with them")),
    }
}

/// The one id that ends with some digits.
fn only<T: Copy + Display>(ids: impl Iterator<Item = T>, digits: &str) -> Result<Option<T>, Failure> {
    let found: Vec<T> = ids.filter(|id| id.to_string().ends_with(digits)).collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        several => {
            let ids: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(Failure::no(format!("more than one id ends with {digits}: {}: write more digits", ids.join(" or "))))
        }
    }
}

impl Sought {
    /// Finds the one thread.
    pub(super) fn find(&self, reader: &dyn Reader) -> Result<ThreadId, Failure> {
        let digits = match self {
            Self::Id(id) => return Ok(*id),
            Self::Digits(digits) => digits,
        };
        let (roots, threads) = reader.ids_with_end(digits).map_err(Failure::store)?;
        if let Some(conversation) = only(roots.into_iter(), digits)? {
            return Ok(conversation);
        }
        only(threads.into_iter(), digits)?.ok_or_else(|| {
            Failure::no(format!(
                "there is no thread whose id ends with {digits}: `systole thread list` shows the threads that are kept"
            ))
        })
    }
}

impl Journal {
    fn read(&self) -> Result<Box<dyn Reader>, Failure> {
        self.of.journal()?.read().map_err(Failure::store)
    }
}

fn list(of: &Journal, only: &Only) -> Result<ExitCode, Failure> {
    /// Conversations of a page, which is read in one transaction.
    const PAGE: usize = 500;
    let reader = of.read()?;
    let mut wanted = ConversationFilter {
        before: None,
        since: only.since,
        until: only.until,
        open: only.open.then_some(true),
        listener: only.listener.clone(),
        payload: only.payload.clone(),
        fault: only.fault,
        text: only.text.as_deref().map(Arc::from),
        limit: PAGE,
    };
    let mut conversations = Vec::new();
    loop {
        let (page, next) = reader.find(&wanted).map_err(Failure::store)?;
        conversations.extend(page);
        match next {
            Some(next) => wanted.before = Some(next),
            None => break,
        }
    }
    conversations.reverse();
    if of.json {
        let value = |conversation: &KeptConversation| {
            let KeptConversation { root, threads, open_threads, waiting, listeners, payload, fault, .. } = conversation;
            json!({
                "id": root.record.id.to_string(),
                "owner": owner(&root.record.owner),
                "opened": root.opened.to_string(),
                "closed": root.closed.map(|time| time.to_string()),
                "threads": threads,
                "open_threads": open_threads,
                "waiting": waiting,
                "listeners": listeners.iter().map(Name::as_str).collect::<Vec<_>>(),
                "payload": payload.as_ref().map(ToString::to_string),
                "fault": fault.map(|code| code.as_str()),
            })
        };
        print::json(&conversations.iter().map(value).collect())?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |conversation: &KeptConversation| {
        let root = &conversation.root;
        [
            root.record.id.to_string(),
            owner(&root.record.owner),
            match conversation.fault {
                Some(code) => format!("{}, {code}", state(root)),
                None => state(root).to_owned(),
            },
            date_time(root.closed.unwrap_or(root.opened)),
            format!("{} of {}", conversation.open_threads, conversation.threads),
            conversation.waiting.to_string(),
        ]
    };
    let rows: Vec<_> = conversations.iter().map(row).collect();
    columns::print(["ID", "OWNER", "STATE", "SINCE", "OPEN THREADS", "WAITING MESSAGES"], &rows)?;
    Ok(ExitCode::SUCCESS)
}

fn owner(owner: &Owner) -> String {
    match owner {
        Owner::Listener(name) | Owner::Client(name) => name.to_string(),
        Owner::Boot => "boot".to_owned(),
        Owner::None => "-".to_owned(),
    }
}

fn state(thread: &ThreadEntry) -> &'static str {
    if thread.closed.is_some() { "closed" } else { "open" }
}

/// The threads of the conversation that a thread belongs to.
fn conversation(reader: &dyn Reader, id: ThreadId) -> Result<Vec<ThreadEntry>, Failure> {
    let threads = reader.conversation(id).map_err(Failure::store)?;
    match threads.is_empty() {
        true => {
            Err(Failure::no(format!("there is no thread {id}: `systole thread list` shows the threads that are kept")))
        }
        false => Ok(threads),
    }
}
