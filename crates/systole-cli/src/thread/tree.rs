//! `systole thread tree`, and paths of threads.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::process::ExitCode;

use serde_json::json;
use systole::journal::ThreadEntry;
use systole_core::core::Spending;
use systole_core::journal::{BudgetRecord, Number, Owner};
use systole_core::vocab::{Name, ThreadPath};

use super::{Journal, conversation, owner, show, state};
use crate::columns::date_time;
use crate::failure::Failure;
use crate::print::{self, Page};
use crate::sought::Sought;

/// Threads with their children.
pub(super) struct Threads<'a> {
    by_number: HashMap<Number, &'a ThreadEntry>,
    children: BTreeMap<Number, Vec<&'a ThreadEntry>>,
    /// Threads whose parent is no longer kept, or that have none.
    tops: Vec<&'a ThreadEntry>,
}

impl<'a> Threads<'a> {
    pub(super) fn new(threads: &'a [ThreadEntry]) -> Self {
        let by_number: HashMap<_, _> = threads.iter().map(|thread| (thread.record.number, thread)).collect();
        let mut children: BTreeMap<Number, Vec<_>> = BTreeMap::new();
        let mut tops = Vec::new();
        for thread in threads {
            match thread.record.parent.filter(|parent| by_number.contains_key(parent)) {
                Some(parent) => children.entry(parent).or_default().push(thread),
                None => tops.push(thread),
            }
        }
        Self { by_number, children, tops }
    }

    /// The listeners from the root to a thread, as far as they are kept.
    pub(super) fn path(&self, thread: &ThreadEntry) -> ThreadPath {
        let mut segments = Vec::new();
        let mut at = Some(thread);
        while let Some(thread) = at {
            if let Owner::Listener(name) = &thread.record.owner {
                segments.push((name.clone(), thread.record.ordinal));
            }
            at = thread.record.parent.and_then(|parent| self.by_number.get(&parent).copied());
        }
        segments.reverse();
        ThreadPath::new(segments)
    }
}

pub(super) fn tree(of: &Journal, sought: Option<&Sought>) -> Result<ExitCode, Failure> {
    let reader = of.read()?;
    let threads = match sought {
        Some(sought) => conversation(&*reader, sought.find(&*reader)?)?,
        None => reader.open_threads().map_err(Failure::store)?,
    };
    let waiting = reader.waiting().map_err(Failure::store)?;
    let of_whole = sought.and(threads.first()).map(|root| root.record.id);
    let budgets = reader.budgets(of_whole).map_err(Failure::store)?;
    let budget = |thread: &ThreadEntry| budgets.get(&thread.record.number);
    // All open threads may be a million, and each has a history.
    let usage = |thread: &ThreadEntry| sought.map_or(Ok(None), |_| show::usage(&*reader, thread));
    let tree = Threads::new(&threads);
    let waiting = |thread: &ThreadEntry| waiting.get(&thread.record.number).copied().unwrap_or(0);
    if of.json {
        let parent =
            |thread: &ThreadEntry| tree.by_number.get(&thread.record.parent?).map(|up| up.record.id.to_string());
        let value = |thread: &ThreadEntry| {
            Ok(json!({
                "id": thread.record.id.to_string(),
                "parent": parent(thread),
                "path": tree.path(thread).to_string(),
                "owner": owner(&thread.record.owner),
                "opened": thread.opened.to_string(),
                "closed": thread.closed.map(|time| time.to_string()),
                "waiting": waiting(thread),
                "budget": budget(thread).map(|record| Spending { budget: &record.budget, spent: &record.spent }),
                "usage": usage(thread)?,
            }))
        };
        print::json(&threads.iter().map(value).collect::<Result<_, Failure>>()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Page::new();
    let mut stack: Vec<_> = tree.tops.iter().rev().map(|top| (String::new(), String::new(), *top)).collect();
    let mut seen = HashSet::new();
    while let Some((fork, below, thread)) = stack.pop() {
        // A damaged journal can't make this run for ever.
        if !seen.insert(thread.record.number) {
            continue;
        }
        let messages = match waiting(thread) {
            0 => String::new(),
            count => format!(", {count} waiting"),
        };
        let spent = budget(thread)
            .map_or_else(String::new, |BudgetRecord { budget, spent, .. }| format!(", spent {}", spent.of(budget)));
        let used = usage(thread)?.map_or_else(String::new, |usage| format!(", asked models: {usage}"));
        let since = date_time(thread.closed.unwrap_or(thread.opened));
        let (name, id) = (label(thread), thread.record.id);
        page.line(format_args!("{fork}{name}  {id}  {} since {since}{messages}{spent}{used}", state(thread)))?;
        let children = tree.children.get(&thread.record.number).map_or(&[][..], Vec::as_slice);
        for (at, child) in children.iter().enumerate().rev() {
            let (fork, deeper) = if at + 1 == children.len() { ("└ ", "  ") } else { ("├ ", "│ ") };
            stack.push((format!("{below}{fork}"), format!("{below}{deeper}"), child));
        }
    }
    page.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn label(thread: &ThreadEntry) -> String {
    let name = match &thread.record.owner {
        Owner::Listener(name) => name.clone(),
        Owner::Client(name) => return format!("client {name}"),
        Owner::Boot => return "boot".to_owned(),
        Owner::None => Name::root(),
    };
    if thread.record.ordinal > 1 { format!("{name}#{}", thread.record.ordinal) } else { name.to_string() }
}
