//! Changes of a running organism to what its `organism.yaml` says by now.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use systole_core::vocab::Name;
use tokio::sync::oneshot;

use super::launch::Beside;
use super::{Config, ConfigFinding, ListenerKind};
use crate::listeners::human::CALLER;
use crate::runtime::{BoxFuture, Organism, Reloaded, Reloader, block_on};
use crate::schedules::ScheduleSpec;
use crate::settings::{ClusterSettings, GatewaySettings, McpSettings, Mode};

/// What a file sets that only a start can change.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fixed {
    journal: Option<String>,
    signs: bool,
    gateway: Option<GatewaySettings>,
    cluster: Option<ClusterSettings>,
    mcp: Option<McpSettings>,
    schedules: Vec<ScheduleSpec>,
    /// The listeners elsewhere, which have mailboxes.
    remote: BTreeMap<Name, Mode>,
    /// The jobs and registries.
    jobs: Vec<Name>,
    /// Listeners whose questions are announced, with the way in which they are.
    announced: BTreeMap<Name, String>,
    /// True if a listener asks the callers of hosts.
    asks_callers: bool,
}

impl Fixed {
    pub(super) fn of(config: &Config) -> Self {
        let (mut remote, mut jobs, mut announced) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        let mut asks_callers = false;
        for ((_, contract), kind) in config.blueprint.listeners().zip(&config.kinds) {
            let name = contract.name.clone();
            match kind {
                ListenerKind::Remote(mode) => drop(remote.insert(name, mode.clone())),
                ListenerKind::Tasks(_) => jobs.push(name),
                ListenerKind::Human(human) => {
                    asks_callers |= human.to.people.iter().any(|name| name.as_str() == CALLER);
                    announced.extend(human.announce.as_ref().map(|way| (name, format!("{way:?}"))));
                }
                _ => {}
            }
        }
        #[cfg(feature = "gateway")]
        let signs = config.identity.is_some();
        #[cfg(not(feature = "gateway"))]
        let signs = false;
        let (journal, schedules) = (config.journal.as_ref().map(ToString::to_string), config.schedules.clone());
        let (gateway, cluster, mcp) = (config.gateway.clone(), config.cluster.clone(), config.mcp.clone());
        Self { journal, signs, gateway, cluster, mcp, schedules, remote, jobs, announced, asks_callers }
    }

    /// Names what differs from another file, or keeps an organism from changing at all.
    fn differences(&self, other: &Self) -> Vec<String> {
        let is_facade = self.gateway.as_ref().is_some_and(|gateway| gateway.molecule);
        let listeners = |of: &Self| of.remote.keys().cloned().collect::<Vec<_>>();
        let mut jobs: Vec<_> = self.jobs.iter().chain(&other.jobs).map(|name| format!("'{name}'")).collect();
        jobs.dedup();
        let differs = [
            ("journal", self.journal != other.journal),
            ("identity", self.signs != other.signs),
            ("gateway", self.gateway != other.gateway),
            ("gateway.molecule, of an organism that has it", is_facade),
            ("cluster", self.cluster != other.cluster),
            ("mcp", self.mcp != other.mcp),
            ("schedules", self.schedules != other.schedules),
            ("the set of remote listeners", listeners(self) != listeners(other)),
            ("the mode of a remote listener", listeners(self) == listeners(other) && self.remote != other.remote),
            ("the announcements of questions", self.announced != other.announced),
            ("whether a listener asks callers", self.asks_callers != other.asks_callers),
        ];
        let differs = differs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what.to_owned());
        let jobs = (!jobs.is_empty()).then(|| format!("an organism with jobs ({})", jobs.join(", ")));
        differs.chain(jobs).collect()
    }
}

/// Changes an organism to what a file says at that time.
pub(super) struct Reloads(Arc<Source>);

struct Source {
    file: PathBuf,
    organism: Weak<Organism>,
    beside: Beside,
    fixed: Fixed,
}

impl Reloads {
    pub(super) fn new(file: PathBuf, organism: &Arc<Organism>, beside: Beside, fixed: Fixed) -> Self {
        Self(Arc::new(Source { file, organism: Arc::downgrade(organism), beside, fixed }))
    }
}

impl From<Reloads> for Reloader {
    /// Reads the file and makes the listeners on a thread of its own: the caller's may serve others.
    fn from(Reloads(source): Reloads) -> Self {
        Box::new(move || -> BoxFuture<'static, Result<Reloaded, String>> {
            let (tell, told) = oneshot::channel();
            let source = source.clone();
            let reload = move || {
                // The caller may have dropped its future.
                let _ = tell.send(source.reload());
            };
            let begun = std::thread::Builder::new().name("systole-reload".into()).spawn(reload);
            Box::pin(async move {
                begun.map_err(|error| format!("the system refuses a thread: {error}"))?;
                told.await.unwrap_or_else(|_| Err("the change has panicked: the log tells why".to_owned()))
            })
        })
    }
}

impl Source {
    fn reload(&self) -> Result<Reloaded, String> {
        let text = |findings: Vec<ConfigFinding>| {
            let line = |finding: &ConfigFinding| match finding.place() {
                Some((file, at)) => format!("{file}:{at}: {finding}"),
                None => finding.to_string(),
            };
            findings.iter().map(line).collect::<Vec<_>>().join("\n")
        };
        let config = Config::load(&self.file).map_err(text)?;
        let differences = self.fixed.differences(&Fixed::of(&config));
        if !differences.is_empty() {
            let what = differences.join(", ");
            return Err(format!("these can't change while the organism runs: {what}: start it again"));
        }
        config.warnings.iter().for_each(|finding| tracing::warn!("{finding}"));
        let organism = self.organism.upgrade().ok_or("the organism has ended")?;
        let keep = config.keep;
        let registered = config.register(&self.beside).map_err(|error| error.to_string())?;
        block_on(organism.reload(registered.builder, keep)).map_err(|error| error.to_string())
    }
}
