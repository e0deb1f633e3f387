//! `systole thread`: the conversations of a journal, open and ended ones; retries of them.

#[cfg(feature = "otel")]
mod export;
mod retry;
mod show;
mod tree;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;
use systole::journal::{ConversationFilter, KeptConversation, Reader, Store, ThreadEntry};
use systole_core::journal::Owner;
use systole_core::vocab::{FaultCode, Name, QName, ThreadId, Time};

use super::columns::{self, date_time};
use super::failure::Failure;
use super::journal_args;
use super::look::code;
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
        #[cfg(feature = "otel")]
        Action::Export(args) => export::export(args),
    }
}

impl Journal {
    fn read(&self) -> Result<Box<dyn Reader>, Failure> {
        self.of.journal()?.read().map_err(Failure::store)
    }
}

/// Finds the conversations that meet all conditions, oldest first.
fn conversations(reader: &dyn Reader, only: &Only) -> Result<Vec<KeptConversation>, Failure> {
    /// Conversations of a page, which is read in one transaction.
    const PAGE: usize = 500;
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
    Ok(conversations)
}

fn list(of: &Journal, only: &Only) -> Result<ExitCode, Failure> {
    let conversations = conversations(&*of.read()?, only)?;
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
