//! `systole replay`: recorded conversations beside another organism.yaml, and what it does otherwise.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use serde_json::{Value, json};
use systole::config::{Config, NotReplayed};
use systole::journal::{NamedJournal, Reader};
use systole::process::signals::{self, Signals};
use systole::replay::{Comparison, Difference, Recording, ReplayError, Tape, compare, play};
use systole::runtime::entropy::Entropy;
use systole::runtime::{Organism, block_on};
use systole_core::core::Usage;
use systole_core::vocab::{Name, ThreadId, ThreadPath};
use tokio::task::JoinSet;

use super::failure::{Failure, INTERRUPTED};
use super::print::{self, Page};
use super::sought::Sought;
use super::thread::{Only, conversations};
use super::{journal_args, report, units};

/// Time for the end of an organism whose conversations have ended or were cancelled.
const DRAIN: Duration = Duration::from_secs(5);

const HELP: &str = "\
The conversations run once more by the organism.yaml, in a journal of their own: the listeners that --live names run, without \
one all that models speak for; all others give the answers that are recorded, and make their recorded requests again where a live listener is below. So nothing happens outside, but for requests to \
models, and what live programs do by themselves: they find SYSTOLE_REPLAY=1 in their environment. What differs is printed: \
requests of live listeners, and answers.

Exit codes: 0 nothing differs, 1 something differs, a conversation could not be replayed, no live listener is in any, or there is none to replay, 2 the command could not be carried \
out, 130 a signal stopped it.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Replay {
    /// The organism.yaml that the conversations are replayed by
    #[arg(long, value_name = "FILE")]
    organism: PathBuf,
    /// The conversations, or threads in them; the last digits of an id are enough. Without one, the newest that meet the conditions
    ids: Vec<Sought>,
    #[command(flatten)]
    only: Only,
    /// Without ids, so many conversations at most
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = at_least_one())]
    most: usize,
    /// A listener that runs, in place of all that models speak for
    #[arg(long, value_name = "NAME")]
    live: Vec<Name>,
    /// So many conversations at once
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,
    /// The longest time for a conversation; then it is cancelled
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = units::duration)]
    within: Duration,
    /// Keep the journal of the replays in this file, for `systole thread show --journal FILE`
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// The journal with the recorded conversations; by default that of the organism.yaml
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
}

/// The parser of a count that is not 0.
fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::<usize>::new().range(1..)
}

/// Replays conversations, and prints what differs.
pub(super) fn replay(args: &Replay) -> Result<ExitCode, Failure> {
    let config = Config::load(&args.organism).map_err(Failure::Config)?;
    if !config.warnings.is_empty() {
        report::print(&config.warnings);
    }
    let recorded = journal_args::journal(args.journal.as_deref(), Some(&args.organism))?;
    let reader = recorded.read().map_err(Failure::store)?;
    reader.check_owner(&config.blueprint.organism).map_err(Failure::store)?;
    let ids = args.ids(&recorded, &*reader)?;
    let way = Way {
        live: live(&config, &args.live)?,
        parallel: args.parallel.into(),
        within: args.within,
        keep: args.keep.clone(),
    };
    let Some(replays) = Replays::run(config, &way, &*reader, &ids)? else { return Ok(ExitCode::from(INTERRUPTED)) };
    // Each is opened once, for all conversations.
    let pasts = [&recorded, &replays.journal].map(|journal| journal.past().ok());
    let replayed = replays.journal.read().map_err(Failure::store)?;
    let (mut sums, mut records) = (Sums::default(), Vec::with_capacity(ids.len()));
    for Ended { id, new, recording } in &replays.ended {
        let compared = match new {
            Ok(new) => {
                let both = both((&*reader, &*replayed), *id, *new, recording.as_deref());
                both.map(|(recorded, replayed)| Compared {
                    requests: recorded.exchanges.len(),
                    with: compare(&recorded, &replayed, &way.live),
                })
            }
            Err(error) => Err(Failure::no(error.to_string())),
        };
        let used = |at: usize, id: ThreadId| block_on(pasts[at].as_ref()?.usage(id)).ok();
        let used = [used(0, *id), new.as_ref().ok().and_then(|new| used(1, *new))];
        let used = used.map(Option::unwrap_or_default);
        sums.add(&compared, used);
        records.push((*id, compared, used));
    }
    // The folder goes before anything is printed, and from then on a signal ends the program.
    drop((pasts, replayed, replays));
    signals::unhear();
    if args.json {
        let records: Vec<_> = records.iter().map(|(id, compared, used)| record(*id, compared, *used)).collect();
        print::json(&json!(records))?;
    } else {
        let mut page = Page::new();
        for (id, compared, _) in &records {
            show(&mut page, *id, compared)?;
        }
        sums.show(&mut page)?;
        page.finish()?;
    }
    let is_same = sums.differ + sums.failed == 0 && sums.same > 0;
    Ok(if is_same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Replay {
    /// Finds the conversations, oldest first.
    fn ids(&self, journal: &NamedJournal, reader: &dyn Reader) -> Result<Vec<ThreadId>, Failure> {
        if !self.ids.is_empty() {
            return self.ids.iter().map(|id| id.find(reader)).collect();
        }
        let past = systole::operations::Past::open(&**journal).map_err(Failure::look)?;
        let mut wanted = self.only.wanted();
        wanted.open.get_or_insert(false);
        let found = conversations(&past, wanted)?;
        // Those of clients alone can be replayed.
        let found: Vec<_> = found.iter().filter(|found| found.owner.is_some()).collect();
        if found.is_empty() {
            return Err(Failure::no(format!(
                "nothing is replayed: the journal has no conversation of a client {}; `systole thread list` shows the conversations that are kept",
                self.only.described()
            )));
        }
        let left_out = found.len().saturating_sub(self.most);
        if left_out > 0 {
            print::note(format_args!(
                "{left_out} older conversations are left out: --most {} replays all that meet the conditions",
                found.len()
            ));
        }
        // An id of a record is one.
        Ok(found[left_out..].iter().filter_map(|found| found.conversation.parse().ok()).collect())
    }
}

/// The listeners that run: those that are named, or all that models speak for.
pub(super) fn live(config: &Config, named: &[Name]) -> Result<BTreeSet<Name>, Failure> {
    let live: BTreeSet<Name> = match named {
        [] => config.models().cloned().collect(),
        named => named.iter().cloned().collect(),
    };
    match live.is_empty() {
        true => Err(Failure::unusable("no model speaks for a listener: name one that runs with --live NAME")),
        false => Ok(live),
    }
}

/// The way of replays.
pub(super) struct Way {
    pub(super) live: BTreeSet<Name>,
    pub(super) parallel: usize,
    pub(super) within: Duration,
    pub(super) keep: Option<PathBuf>,
}

/// A replay that has ended.
pub(super) struct Ended {
    /// The recorded conversation.
    pub(super) id: ThreadId,
    /// The id of the replay in the journal of the replays.
    pub(super) new: Result<ThreadId, ReplayError>,
    /// The recording of an open conversation, which may have gone on since.
    pub(super) recording: Option<Arc<Recording>>,
}

/// Replays that have ended.
pub(super) struct Replays {
    /// In the order of the recorded conversations.
    pub(super) ended: Vec<Ended>,
    pub(super) journal: NamedJournal,
    /// Removed with the value.
    _folder: Option<Folder>,
}

impl Replays {
    /// Replays conversations by an organism; `None` if a signal stopped them.
    pub(super) fn run(
        config: Config,
        way: &Way,
        reader: &dyn Reader,
        ids: &[ThreadId],
    ) -> Result<Option<Self>, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::System)?;
        // Before there is a folder that a signal would leave behind.
        let mut signals = runtime.block_on(async { Signals::listen() }).map_err(Failure::System)?;
        let (file, folder) = match &way.keep {
            Some(keep) if keep.exists() => {
                return Err(Failure::unusable(format!("{} exists: name another file to keep", keep.display())));
            }
            Some(keep) => (keep.clone(), None),
            None => {
                let folder = Folder::new().map_err(Failure::System)?;
                (folder.0.join("replay.journal"), Some(folder))
            }
        };
        let (journal, tape) = (NamedJournal::file(file), Tape::new(way.live.clone()));
        let config = config
            .replayed(&tape, journal.clone())
            .map_err(|error: NotReplayed| Failure::unusable(error.to_string()))?;
        let builder = config.into_builder(None).map_err(|error| Failure::unusable(error.to_string()))?;
        let organism = builder.organism.start().map_err(|error| Failure::unusable(error.to_string()))?;
        let organism = Arc::new(organism);
        let ended = runtime.block_on(async {
            let ended = tokio::select! {
                biased;
                () = signals.stop() => Ok(None),
                why = organism.broken() => Err(Failure::Broken(why)),
                ended = play_all(&organism, &tape, way, reader, ids) => Ok(Some(ended)),
            };
            organism.drain(DRAIN).await;
            ended
        })?;
        Ok(ended.map(|ended| Self { ended, journal, _folder: folder }))
    }
}

/// Reads a recorded conversation, unless it was kept, and its replay, each from its journal.
pub(super) fn both(
    (recorded, replayed): (&dyn Reader, &dyn Reader),
    id: ThreadId,
    new: ThreadId,
    kept: Option<&Recording>,
) -> Result<(Recording, Recording), Failure> {
    let refused = |error: ReplayError| match error {
        ReplayError::Journal(error) => Failure::store(error),
        error => Failure::no(error.to_string()),
    };
    let before = kept.map_or_else(|| Recording::read(recorded, id), |kept| Ok(kept.clone())).map_err(refused)?;
    let after = match Recording::read(replayed, new) {
        // No message of the client was taken.
        Err(ReplayError::NoThread(_)) => Ok(Recording::refused(new, before.client.clone())),
        after => after,
    };
    Ok((before, after.map_err(refused)?))
}

/// Replays conversations, some at once, in order.
async fn play_all(
    organism: &Arc<Organism>,
    tape: &Tape,
    way: &Way,
    reader: &dyn Reader,
    ids: &[ThreadId],
) -> Vec<Ended> {
    let (mut running, mut ended) = (JoinSet::new(), Vec::with_capacity(ids.len()));
    let mut left = ids.iter().enumerate();
    loop {
        while running.len() < way.parallel
            && let Some((at, &id)) = left.next()
        {
            match Recording::read(reader, id) {
                Ok(recording) => {
                    let (organism, tape, within) = (organism.clone(), tape.clone(), way.within);
                    running.spawn(async move {
                        let recording = Arc::new(recording);
                        let new = play(&organism, &tape, recording.clone(), within).await;
                        (at, Ended { id, new, recording: Some(recording).filter(|recording| recording.is_open) })
                    });
                }
                Err(error) => ended.push((at, Ended { id, new: Err(error), recording: None })),
            }
        }
        match running.join_next().await {
            Some(Ok(end)) => ended.push(end),
            // Nothing there panics, and nothing cancels it.
            Some(Err(_)) => {}
            None => break,
        }
    }
    ended.sort_by_key(|(at, _)| *at);
    ended.into_iter().map(|(_, end)| end).collect()
}

/// A folder that nobody else can read, removed with the value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("systole-replay-{}", Entropy::Real.random()));
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The system clears its folder of temporary files, if this fails.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A conversation beside its replay.
struct Compared {
    /// The number of recorded requests.
    requests: usize,
    with: Comparison,
}

impl Compared {
    fn result(&self) -> &'static str {
        match (self.with.differences.is_empty(), self.with.live) {
            (false, _) => "different",
            (true, 0) => "untouched",
            (true, _) => "same",
        }
    }
}

#[derive(Default)]
struct Sums {
    same: usize,
    differ: usize,
    /// Conversations without a live listener.
    untouched: usize,
    failed: usize,
    recorded: Usage,
    replayed: Usage,
}

impl Sums {
    fn add(&mut self, compared: &Result<Compared, Failure>, [recorded, replayed]: [Usage; 2]) {
        match compared {
            Ok(Compared { with, .. }) if !with.differences.is_empty() => self.differ += 1,
            Ok(Compared { with, .. }) if with.live == 0 => self.untouched += 1,
            Ok(_) => self.same += 1,
            Err(_) => self.failed += 1,
        }
        self.recorded = self.recorded.plus(recorded);
        self.replayed = self.replayed.plus(replayed);
    }

    fn show(&self, page: &mut Page) -> Result<(), Failure> {
        let Self { same, differ, untouched, failed, recorded, replayed } = self;
        let all = same + differ + untouched + failed;
        page.line(format_args!(
            "replayed: {all}, same: {same}, different: {differ}, untouched: {untouched}, failed: {failed}"
        ))?;
        if (recorded, replayed) != (&Usage::default(), &Usage::default()) {
            page.line(format_args!("recorded requests to models: {recorded}"))?;
            page.line(format_args!("replayed requests to models: {replayed}"))?;
        }
        Ok(())
    }
}

/// Prints a conversation, and what differs in it.
fn show(page: &mut Page, id: ThreadId, compared: &Result<Compared, Failure>) -> Result<(), Failure> {
    let compared = match compared {
        Ok(compared) => compared,
        Err(error) => return Ok(page.line(format_args!("{id}  failed: {error}"))?),
    };
    let Compared { requests, with: Comparison { differences: found, live, .. } } = compared;
    let result = compared.result();
    match (found.len(), live) {
        (0, 0) => {
            return Ok(page.line(format_args!("{id}  {result}: no live listener is in it ({requests} requests)"))?);
        }
        (0, _) => return Ok(page.line(format_args!("{id}  {result} ({requests} requests, {live} of live listeners)"))?),
        (count, _) => page.line(format_args!("{id}  {result} ({requests} requests, {count} differences)"))?,
    }
    for difference in found {
        let Sides { place, what, recorded, replayed } = Sides::of(difference);
        page.line(format_args!("  {place}: {what}"))?;
        page.block("    recorded: ", recorded.as_deref().unwrap_or("no such request"))?;
        page.block("    replayed: ", replayed.as_deref().unwrap_or("no such request"))?;
    }
    Ok(())
}

/// The two sides of a difference, as text.
struct Sides {
    place: String,
    what: String,
    recorded: Option<String>,
    replayed: Option<String>,
}

impl Sides {
    fn of(difference: &Difference) -> Self {
        let utf8 = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let place = |path: &ThreadPath| path.to_string();
        match difference {
            Difference::Request { caller, listener, recorded, replayed, .. } => Self {
                place: place(caller),
                what: format!("request to {listener}"),
                recorded: recorded.as_deref().map(utf8),
                replayed: replayed.as_deref().map(utf8),
            },
            Difference::Outcome { path, recorded, replayed, .. } => Self {
                place: place(path),
                what: "answer".to_owned(),
                recorded: Some(recorded.to_string()),
                replayed: Some(replayed.to_string()),
            },
            // Later kinds of differences.
            other => Self { place: String::new(), what: format!("{other:?}"), recorded: None, replayed: None },
        }
    }
}

/// A conversation as JSON.
fn record(id: ThreadId, compared: &Result<Compared, Failure>, [recorded, replayed]: [Usage; 2]) -> Value {
    let mut record = json!({ "conversation": id.to_string(), "used": { "recorded": recorded, "replayed": replayed } });
    match compared {
        Ok(compared) => {
            record["result"] = compared.result().into();
            record["requests"] = compared.requests.into();
            record["live"] = compared.with.live.into();
            let side = |difference: &Difference| {
                let Sides { place, what, recorded, replayed } = Sides::of(difference);
                json!({ "place": place, "what": what, "recorded": recorded, "replayed": replayed })
            };
            record["differences"] = compared.with.differences.iter().map(side).collect();
        }
        Err(error) => {
            record["result"] = "failed".into();
            record["error"] = error.to_string().into();
        }
    }
    record
}
