//! `systole check`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use systole::config::{Config, ListenerKind};
use systole::process::signals;
use systole::runtime::clock::Clock;
use systole::upgrade::{Cause, Conflict, OpenWork, conflicts};
use systole_core::core::Blueprint;
use systole_core::journal::Owner;
use systole_core::vocab::{Name, QName};

use super::failure::{Failure, INTERRUPTED};
use super::print::{self, Page};
use super::replay::{self, Ended, Replays, Way};
use super::{journal_args, report, second_opinion};

/// Most conflicts that are listed one by one.
const LISTED: usize = 100;
/// Open conversations that are replayed at once, and the longest time for each.
const REPLAYS: usize = 4;
const REPLAY: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(super) struct Check {
    /// The organism.yaml
    organism: PathBuf,
    /// Compare the open work of the journal, too: exit code 1 if a start would not carry it on; by default the organism's own
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    journal: Option<Option<PathBuf>>,
    /// With --journal: replay the open conversations with this listener, to find recorded requests that it would not make
    /// again. All others give their recorded answers
    #[arg(long, value_name = "NAME", requires = "journal")]
    replay: Vec<Name>,
}

/// `systole check`: if the organism can run, a line on standard output and the contracts written out, as YAML; else exit
/// code 1.
///
/// With a journal, its open work instead of the contracts.
pub(super) fn check(args: &Check) -> Result<ExitCode, Failure> {
    let config = match Config::check(&args.organism, &second_opinion::ask) {
        Ok(config) => config,
        Err(findings) => {
            report::print(&findings);
            return Ok(ExitCode::FAILURE);
        }
    };
    if !config.warnings.is_empty() {
        report::print(&config.warnings);
    }
    let blueprint = &config.blueprint;
    let (listeners, clients) = (blueprint.listeners().count(), blueprint.clients().count());
    let payloads = config.payloads().count();
    let mut page = Page::new();
    page.line(format_args!(
        "{}: ok (listeners: {listeners}, clients: {clients}, payloads: {payloads})",
        blueprint.organism
    ))?;
    if let Some(journal) = &args.journal {
        let Some(work) = open_work(config, args, journal.as_deref())? else { return Ok(ExitCode::from(INTERRUPTED)) };
        compared(&mut page, &work)?;
        page.finish()?;
        return Ok(if work.found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    backends(&mut page, &config)?;
    contracts(&mut page, blueprint)?;
    people(&mut page, &config)?;
    schedules(&mut page, &config)?;
    page.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Compares the open work of a journal with the organism; `None` if a signal stopped that.
fn open_work(config: Config, args: &Check, journal: Option<&Path>) -> Result<Option<OpenWork>, Failure> {
    let journal = journal_args::journal(journal, Some(&args.organism))?;
    let reader = journal.read().map_err(Failure::store)?;
    reader.check_owner(&config.blueprint.organism).map_err(Failure::store)?;
    let mut work = conflicts(&config.blueprint, Arc::new(config.catalog.clone()), &*reader).map_err(Failure::store)?;
    if args.replay.is_empty() {
        return Ok(Some(work));
    }
    let open = reader.open_threads().map_err(Failure::store)?;
    let of_clients =
        open.iter().filter(|open| open.record.parent.is_none() && matches!(open.record.owner, Owner::Client(_)));
    let ids: Vec<_> = of_clients.map(|open| open.record.id).collect();
    if ids.is_empty() {
        print::note("nothing is replayed: no conversation of a client is open");
    }
    let way = Way { live: replay::live(&config, &args.replay)?, parallel: REPLAYS, within: REPLAY, keep: None };
    let Some(replays) = Replays::run(config, &way, &*reader, &ids)? else { return Ok(None) };
    let replayed = replays.journal.read().map_err(Failure::store)?;
    for Ended { id, new, recording } in &replays.ended {
        match new {
            Ok(new) => {
                let (before, after) = replay::both((&*reader, &*replayed), *id, *new, recording.as_deref())?;
                work.found.extend(systole::replay::conflicts(&before, &after, &way.live));
            }
            Err(error) => work.found.push(systole::replay::not_replayed(*id, error)),
        }
    }
    signals::unhear();
    Ok(Some(work))
}

/// Prints what a start would not carry on, by cause and by conversation.
fn compared(page: &mut Page, work: &OpenWork) -> Result<(), Failure> {
    let OpenWork { conversations, found, .. } = work;
    if found.is_empty() {
        return Ok(page.line(format_args!("open conversations: {conversations}, and all go on"))?);
    }
    let mut causes: BTreeMap<&Cause, Vec<&Conflict>> = BTreeMap::new();
    found.iter().for_each(|conflict| causes.entry(&conflict.cause).or_default().push(conflict));
    let mut stopped: Vec<_> = found.iter().map(|conflict| conflict.conversation).collect();
    stopped.dedup();
    page.line(format_args!("open conversations: {conversations}, with conflicts: {}", stopped.len()))?;
    page.line("causes:")?;
    for (cause, conflicts) in &causes {
        page.line(format_args!("  - cause: {}", quoted(&cause.to_string())))?;
        page.line(format_args!("    effect: {}", quoted(cause.effect())))?;
        page.line(format_args!("    found: {}", conflicts.len()))?;
    }
    page.line("conversations:")?;
    for conflict in found.iter().take(LISTED) {
        let message = conflict.message.map(|message| format!(" message {message}")).unwrap_or_default();
        let at = format!("{} {}{message}", conflict.conversation, conflict.path);
        page.line(format_args!("  - at: {}", quoted(&at)))?;
        page.line(format_args!("    cause: {}", quoted(&conflict.cause.to_string())))?;
    }
    if found.len() > LISTED {
        page.line(format_args!("# {} more are not shown", found.len() - LISTED))?;
    }
    Ok(())
}

/// Prints the backends of models, and which are left out.
fn backends(page: &mut Page, config: &Config) -> Result<(), Failure> {
    let Some(llm) = &config.llm else { return Ok(()) };
    page.line("backends:")?;
    for (backend, _) in &llm.backends {
        let left_out = backend.left_out().map(|why| format!("  # left out: {why}")).unwrap_or_default();
        page.line(format_args!("  - name: {}{left_out}", backend.name))?;
    }
    Ok(())
}

/// Prints where people answer.
fn people(page: &mut Page, config: &Config) -> Result<(), Failure> {
    let listeners = config.blueprint.listeners().zip(&config.kinds);
    for ((_, contract), kind) in listeners {
        let ListenerKind::Human(human) = kind else { continue };
        let to = &human.to;
        let people: Vec<_> = to.people.iter().map(ToString::to_string).collect();
        let operator = "at the terminal, or the standard input, of systole run, or by systole inbox";
        match (people.is_empty(), to.operators) {
            (true, _) => page.line(format_args!("# '{}' answers {operator}", contract.name))?,
            (false, true) => {
                page.line(format_args!(
                    "# {} answer for '{}', or an operator {operator}",
                    people.join(", "),
                    contract.name
                ))?;
            }
            (false, false) => page.line(format_args!("# {} answer for '{}'", people.join(", "), contract.name))?,
        }
    }
    Ok(())
}

/// Prints the next ticks of each schedule.
fn schedules(page: &mut Page, config: &Config) -> Result<(), Failure> {
    if !config.schedules.is_empty() {
        page.line("schedules:")?;
    }
    let now = Clock::real().now();
    for spec in &config.schedules {
        let timing = spec.timing();
        let next: Vec<_> = timing.following(now, 3).into_iter().map(|tick| quoted(&timing.shown(tick))).collect();
        page.line(format_args!("  - name: {}", spec.name()))?;
        page.line(format_args!("    next: [{}]", next.join(", ")))?;
    }
    Ok(())
}

/// Prints the permissions: every payload by its whole name, also where the file has short forms.
fn contracts(page: &mut Page, blueprint: &Blueprint) -> Result<(), Failure> {
    if blueprint.clients().next().is_some() {
        page.line("clients:")?;
    }
    for (_, client) in blueprint.clients() {
        page.line(format_args!("  - name: {}", client.name))?;
        payloads(page, "calls", &client.calls)?;
    }
    page.line("listeners:")?;
    for (_, listener) in blueprint.listeners() {
        page.line(format_args!("  - name: {}", listener.name))?;
        if !listener.description.is_empty() {
            page.line(format_args!("    description: {}", quoted(&listener.description)))?;
        }
        for (key, list) in [
            ("accepts", &listener.accepts),
            ("replies", &listener.replies),
            ("calls", &listener.calls),
            ("returns", &listener.returns),
        ] {
            payloads(page, key, list)?;
        }
    }
    Ok(())
}

fn payloads(page: &mut Page, key: &str, payloads: &[QName]) -> Result<(), Failure> {
    if payloads.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = payloads.iter().map(|payload| quoted(&payload.to_string())).collect();
    Ok(page.line(format_args!("    {key}: [{}]", names.join(", ")))?)
}

/// A text in double quotes of YAML.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
