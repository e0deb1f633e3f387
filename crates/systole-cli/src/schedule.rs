//! `systole schedule`: the schedules of an organism, what came of their ticks, and acts on them.

use std::path::PathBuf;
use std::process::ExitCode;

#[cfg(feature = "gateway")]
use clap::Args;
use clap::Subcommand;
use serde_json::json;
use systole::config::Config;
use systole::journal::JournalErrorKind;
use systole::operations::{LookError, Past, ScheduleRecord, TickRecord};
use systole::runtime::block_on;
use systole::runtime::clock::Clock;
#[cfg(feature = "gateway")]
use systole_core::vocab::Name;

use super::columns::moment;
use super::failure::Failure;
#[cfg(feature = "gateway")]
use super::journal_args::JournalArgs;
#[cfg(feature = "gateway")]
use super::operate;
use super::print::{self, Page};

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List the schedules with their next ticks, and what came of the last ones, while the organism runs or not
    List {
        /// The organism.yaml
        #[arg(default_value = "organism.yaml")]
        organism: PathBuf,
        /// The last ticks of each, at most so many; 20 are kept
        #[arg(long, value_name = "COUNT", default_value_t = 5)]
        last: usize,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Pause a schedule of a running organism until it is resumed: its ticks have no messages
    #[cfg(feature = "gateway")]
    Pause(OneSchedule),
    /// Resume a paused schedule
    #[cfg(feature = "gateway")]
    Resume(OneSchedule),
    /// Send the message of a schedule of a running organism now, beside its ticks
    #[cfg(feature = "gateway")]
    Run(OneSchedule),
}

#[cfg(feature = "gateway")]
#[derive(Debug, Args)]
pub(super) struct OneSchedule {
    /// The schedule
    schedule: Name,
    #[command(flatten)]
    of: JournalArgs,
}

pub(super) fn run(action: &Action) -> Result<ExitCode, Failure> {
    match action {
        Action::List { organism, last, json } => {
            let mut found = records(organism)?;
            found.iter_mut().for_each(|schedule| schedule.ticks.truncate(*last));
            if *json {
                print::json(&json!(found))?;
                return Ok(ExitCode::SUCCESS);
            }
            let mut page = Page::new();
            found.iter().try_for_each(|schedule| shown(&mut page, schedule))?;
            page.finish()?;
            Ok(ExitCode::SUCCESS)
        }
        #[cfg(feature = "gateway")]
        Action::Pause(OneSchedule { schedule, of }) => act("pause-schedule", schedule, of),
        #[cfg(feature = "gateway")]
        Action::Resume(OneSchedule { schedule, of }) => act("resume-schedule", schedule, of),
        #[cfg(feature = "gateway")]
        Action::Run(OneSchedule { schedule, of }) => act("run-schedule", schedule, of),
    }
}

#[cfg(feature = "gateway")]
fn act(name: &str, schedule: &Name, of: &JournalArgs) -> Result<ExitCode, Failure> {
    operate::act_on(&of.journal()?, &json!({ "act": name, "schedule": schedule.as_str() }))
}

/// The schedules: from the organism if it runs, else from its journal if there is one, else as they are configured.
fn records(organism: &std::path::Path) -> Result<Vec<ScheduleRecord>, Failure> {
    let config = Config::load(organism).map_err(Failure::Config)?;
    let now = Clock::real().now();
    let configured = || config.schedules.iter().map(|spec| ScheduleRecord::of(spec, now)).collect();
    let Some(journal) = &config.journal else { return Ok(configured()) };
    #[cfg(feature = "gateway")]
    if operate::is_served(journal) {
        let page = operate::look(journal, "/v1/admin/schedules?limit=500")?;
        let read = serde_json::from_value(page["items"].clone());
        return read.map_err(|error| Failure::no(format!("the organism is of another version: {error}")));
    }
    match Past::open(&**journal) {
        Ok(past) => block_on(past.schedules(&config.schedules, now)).map_err(Failure::look),
        // It has not run yet.
        Err(LookError::Store(error)) if error.kind() == JournalErrorKind::Missing => Ok(configured()),
        Err(error) => Err(Failure::look(error)),
    }
}

fn shown(page: &mut Page, schedule: &ScheduleRecord) -> Result<(), Failure> {
    let ScheduleRecord { schedule: name, client, timing, missed, overlap, paused, next, ticks, .. } = schedule;
    page.line(format_args!("{name}: {timing}, as {client} (missed: {missed}; overlap: {overlap})"))?;
    match paused {
        Some(since) => page.line(format_args!("  paused since {}", moment(since)))?,
        None => page.line(format_args!("  next  {}", next.join("  ")))?,
    }
    for tick in ticks {
        page.line(format_args!("  {}", line(tick)))?;
    }
    Ok(())
}

fn line(tick: &TickRecord) -> String {
    let at = moment(&tick.at);
    match (&tick.conversation, tick.missed) {
        (Some(conversation), _) => {
            let by_hand = if tick.by_hand { "by hand, " } else { "" };
            format!("{at}  {by_hand}{}  {conversation}", tick.outcome.as_deref().unwrap_or("sent"))
        }
        (None, Some(1)) => format!("{at}  missed"),
        (None, Some(count)) => format!("{at}  missed, with {} before it", count - 1),
        (None, None) => format!("{at}  {}", tick.end),
    }
}
