//! `systole thread tree`.

use std::collections::{HashMap, HashSet};
use std::process::ExitCode;

use serde_json::json;
use systole::operations::{Past, ThreadRecord, Wanted};
use systole::runtime::block_on;
use systole_core::vocab::ThreadId;

use super::{Journal, conversations};
use crate::columns::moment;
use crate::failure::Failure;
use crate::look::all;
use crate::print::{self, Page};
use crate::sought::Sought;

pub(super) fn tree(of: &Journal, sought: Option<&Sought>) -> Result<ExitCode, Failure> {
    let sought = sought.map(|sought| sought.find(&*of.read()?)).transpose()?;
    let past = of.past()?;
    let mut threads = Vec::new();
    match sought {
        Some(id) => threads = threads_of(&past, id)?,
        None => {
            let mut open = Wanted::default();
            open.open = Some(true);
            for conversation in conversations(&past, open)? {
                // An id of a record is one.
                let Ok(id) = conversation.conversation.parse() else { continue };
                threads.extend(threads_of(&past, id)?.into_iter().filter(|thread| thread.closed.is_none()));
            }
        }
    }
    if let Some(id) = sought.filter(|_| threads.is_empty()) {
        return Err(super::absent(id));
    }
    if of.json {
        print::json(&json!(threads))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (mut children, mut tops) = (HashMap::<&str, Vec<&ThreadRecord>>::new(), Vec::new());
    let kept: HashSet<_> = threads.iter().map(|thread| thread.thread.as_str()).collect();
    for thread in &threads {
        match thread.parent.as_deref().filter(|parent| kept.contains(parent)) {
            Some(parent) => children.entry(parent).or_default().push(thread),
            None => tops.push(thread),
        }
    }
    let mut page = Page::new();
    let mut stack: Vec<_> = tops.into_iter().rev().map(|top| (String::new(), String::new(), top)).collect();
    while let Some((fork, below, thread)) = stack.pop() {
        // Each thread has one parent, and is taken once: a damaged journal can't make this run for ever.
        let children = children.remove(thread.thread.as_str()).unwrap_or_default();
        let messages = match thread.queued {
            0 => String::new(),
            count => format!(", {count} waiting"),
        };
        let spent = thread.budget.map_or_else(String::new, |budget| format!(", spent {budget}"));
        let used = thread.used.map_or_else(String::new, |used| format!(", asked models: {used}"));
        let (state, since) = match &thread.closed {
            Some(closed) => ("closed", Some(closed)),
            None => ("open", thread.opened.as_ref()),
        };
        let since = since.map_or_else(String::new, |since| moment(since));
        let (name, id) = (label(thread), &thread.thread);
        page.line(format_args!("{fork}{name}  {id}  {state} since {since}{messages}{spent}{used}"))?;
        for (at, child) in children.iter().enumerate().rev() {
            let (fork, deeper) = if at + 1 == children.len() { ("└ ", "  ") } else { ("├ ", "│ ") };
            stack.push((format!("{below}{fork}"), format!("{below}{deeper}"), child));
        }
    }
    page.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn threads_of(past: &Past, conversation: ThreadId) -> Result<Vec<ThreadRecord>, Failure> {
    all(Wanted::default(), |wanted| block_on(past.threads(conversation, wanted)))
}

fn label(thread: &ThreadRecord) -> String {
    match (&thread.owner, thread.path.rsplit('/').next()) {
        (Some(client), _) => format!("client {client}"),
        (None, Some(name)) if !name.is_empty() => name.to_owned(),
        _ => "root".to_owned(),
    }
}
