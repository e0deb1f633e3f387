//! `organism.yaml`: its keys, and the mistakes in it.
//!
//! [`Config::load`] reads the file and the schemas that it names. All mistakes are found at once, each with its place
//! in the file and its remedy; an organism with an error never starts. Paths are relative to the file.
//!
//! ```yaml
#![doc = include_str!("reference.yaml")]
//! ```
//!
//! - Sizes are whole numbers of bytes, with or without a unit: `B`, `kB`, `MB`, `GB`, `KiB`, `MiB`,
//!   `GiB`. Durations have a unit: `ms`, `s`, `m` or `min`, `h`.
//! - A program with a `/` is relative to the file, another one is searched on `PATH`. It runs in the directory of the
//!   file. `env` lists `NAME`, which is passed on from the pump's own environment, and `NAME=value`;
//!   [`command`](crate::process) has all that a program gets.
//! - A schema that one listener lists is known to all.
//! - A payload is `{namespace}local`, `prefix:local` with a prefix of `prefixes`, or `local` in no namespace. In `calls` the
//!   name of a listener stands for all that it accepts, but for `<boot>`.
//! - [`SCHEMA`] is a JSON Schema of the file, for editors.
//!
//! Not here: running anything. [`Config::kinds`] has the kind of each listener.

mod advice;
mod budget;
mod check;
mod cluster;
mod correction;
mod document;
mod finding;
mod gateway;
mod help;
mod human;
mod keys;
mod launch;
mod limits;
mod listener;
mod llm;
mod mcp;
mod mcp_listener;
mod mistake;
mod molecule;
mod organism;
mod organism_listener;
mod place;
mod program;
mod python;
mod reader;
mod reload;
mod remote;
mod schedule;
mod schema;
mod schemas;
mod short_form;
mod skill;
mod tasks;
mod text;
mod tls;
mod units;
mod yaml_help;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use advice::Advice;
pub use finding::ConfigFinding;
pub use human::HumanSpec;
pub use launch::{ConfiguredBuilder, ConfiguredOrganism, LaunchError};
pub use llm::load_script;
pub use mcp_listener::McpImport;
pub use mistake::Mistake;
pub use organism_listener::OrganismImport;
pub use place::journal as check_journal;
pub use schema::SCHEMA;
pub use tasks::{TasksOf, TasksSpec};
pub use text::TextError;

use crate::journal::NamedJournal;
use crate::listeners::mcp::{McpListenerSettings, McpServer};
use crate::listeners::organism::OrganismListenerSettings;
use crate::listeners::worker::WorkerSpec;
use crate::process::{CommandSpec, Variable};
use crate::replay::Tape;
use crate::runtime::Keep;
use crate::schedules::ScheduleSpec;
use crate::settings::{ClusterSettings, GatewaySettings, LlmSettings, McpSettings, Mode, ModelSettings};
use finding::File;
use listener::{Program, Written};
use organism::Organism;
use reader::Reader;
use short_form::Prefixes;
use systole_core::core::{Blueprint, Party};
use systole_core::vocab::{Limits, Name, QName};
use systole_xml::schema::{Catalog, PayloadSchema, XsdDocument};

/// An `organism.yaml` with every key that there is, each with its default where it has one.
pub const REFERENCE: &str = include_str!("reference.yaml");

/// Gives a second opinion on schema documents that are given together.
pub type Adviser<'a> = &'a dyn Fn(&[XsdDocument]) -> Advice;

/// The adviser that gives no opinion.
const UNADVISED: Adviser<'static> = &|_| Advice::Unasked;

/// An organism, ready to be built.
#[derive(Debug)]
pub struct Config {
    /// The listeners and the clients, with their contracts.
    pub blueprint: Blueprint,
    /// The schemas of all payloads.
    pub catalog: Catalog,
    /// The kind of each listener, in the order of the blueprint.
    pub kinds: Vec<ListenerKind>,
    /// The journal, if the organism is durable.
    pub journal: Option<NamedJournal>,
    /// The keys that sign what leaves the organism, if it has some.
    #[cfg(feature = "gateway")]
    pub identity: Option<std::sync::Arc<crate::identity::Identity>>,
    /// The gateway, if the organism has one.
    pub gateway: Option<GatewaySettings>,
    /// The nodes of the organism, if it may have several.
    pub cluster: Option<ClusterSettings>,
    /// The node that starts the organism, and its lease.
    #[cfg(feature = "gateway")]
    pub(crate) placed: Option<crate::cluster::Placed>,
    /// The hosts of the Model Context Protocol, if they are served.
    pub mcp: Option<McpSettings>,
    /// The time for work in flight when the organism ends in order, if the file says so.
    pub drain: Option<Duration>,
    /// The time for which open conversations keep their version of an organism that changes.
    pub keep: Keep,
    /// The backends of models, if there are any.
    pub llm: Option<LlmSettings>,
    /// The schedules, in the order of the file.
    pub schedules: Vec<ScheduleSpec>,
    /// Mistakes that don't keep the organism from running.
    pub warnings: Vec<ConfigFinding>,
    prefixes: Prefixes,
}

/// An organism, or its mistakes, and the files that it was read from or will run.
#[derive(Debug)]
pub struct Survey {
    /// The organism, or its mistakes, as [`Config::load_advised`] returns them.
    pub config: Result<Config, Vec<ConfigFinding>>,
    /// The organism.yaml; schemas, instructions and scripts; programs and arguments of commands and workers that are files
    /// beside it. Those that are missing are among them.
    pub files: Vec<PathBuf>,
}

/// Kind of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenerKind {
    /// A program that runs once for each message.
    Command {
        /// The program.
        command: CommandSpec,
        /// True if it reads and writes payloads as JSON.
        json: bool,
    },
    /// A program that stays, and handles many messages.
    Worker(WorkerSpec),
    /// An MCP server.
    Mcp(Box<McpListenerSettings>),
    /// Another organism, over its gateway.
    Organism(Box<OrganismListenerSettings>),
    /// A model speaks for it.
    Model(ModelSettings),
    /// People, and those who may answer.
    Human(HumanSpec),
    /// An echo: it replies with the payload that it gets.
    Echo,
    /// An agent elsewhere, which gets its messages over HTTP.
    Remote(Mode),
    /// A job, or a registry of jobs.
    Tasks(TasksSpec),
    /// A listener that gives its recorded answers: see [`Config::replayed`].
    Recorded(Tape),
}

impl Config {
    /// Reads an `organism.yaml` and everything it names.
    ///
    /// # Errors
    /// All mistakes, in the order of the file, warnings included; at least one of them is an error.
    pub fn load(path: &Path) -> Result<Self, Vec<ConfigFinding>> {
        Self::load_advised(path, UNADVISED)
    }

    /// Reads as [`load`](Self::load), with a second opinion on the schemas: where it differs, that is a warning.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_advised(path: &Path, advise: Adviser<'_>) -> Result<Self, Vec<ConfigFinding>> {
        Self::survey(path, advise).config
    }

    /// Reads as [`load_advised`](Self::load_advised), and returns the files that make the organism, too.
    pub fn survey(path: &Path, advise: Adviser<'_>) -> Survey {
        let (config, mut files) = match Self::open(path) {
            Ok((name, source, directory)) => read(&name, &source, &directory, advise, Look::File),
            Err(findings) => (Err(findings), Vec::new()),
        };
        files.push(path.to_owned());
        Survey { config, files }
    }

    /// Reads as [`load_advised`](Self::load_advised), and checks this machine for a start: the place of the journal,
    /// the address of the gateway.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn check(path: &Path, advise: Adviser<'_>) -> Result<Self, Vec<ConfigFinding>> {
        let (name, source, directory) = Self::open(path)?;
        read(&name, &source, &directory, advise, Look::Machine).0
    }

    /// Opens a file: its name for messages, its text, and its directory.
    fn open(path: &Path) -> Result<(String, String, PathBuf), Vec<ConfigFinding>> {
        let source = text::read(path).map_err(|why| {
            vec![ConfigFinding::nowhere(Mistake::Unreadable { what: "", path: path.to_owned(), why })]
        })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let directory = std::path::absolute(Path::new(".").join(directory)).unwrap_or_else(|_| directory.to_owned());
        Ok((path.display().to_string(), source, directory))
    }

    /// Returns the organism for replays, with its steps in that journal: only the live listeners of the tape run, all others
    /// answer from it, and bounds on the organism as a whole are no closer than by default. It has no gateway and no schedules, serves no hosts, and signs nothing; programs find `SYSTOLE_REPLAY=1` in their environment.
    ///
    /// # Errors
    /// [`NotReplayed`]: the first of the live listeners that can't run in a replay.
    pub fn replayed(mut self, tape: &Tape, journal: NamedJournal) -> Result<Self, NotReplayed> {
        let is_listener = |name: &&Name| matches!(self.blueprint.party(name.as_str()), Some(Party::Listener(_)));
        if let Some(name) = tape.live().iter().find(|name| !is_listener(name)) {
            return Err(NotReplayed::Unknown(name.clone()));
        }
        for ((_, contract), kind) in self.blueprint.listeners().zip(&mut self.kinds) {
            let is_live = tape.live().contains(&contract.name);
            match kind {
                ListenerKind::Command { command, .. } if is_live => command.env.push(in_replay()),
                ListenerKind::Worker(spec) if is_live => spec.command.env.push(in_replay()),
                ListenerKind::Mcp(settings) if is_live => {
                    if let McpServer::Command(command) = &mut settings.server {
                        command.env.push(in_replay());
                    }
                }
                ListenerKind::Model(_) | ListenerKind::Echo if is_live => {}
                ListenerKind::Human(_)
                | ListenerKind::Remote(_)
                | ListenerKind::Organism(_)
                | ListenerKind::Tasks(_)
                    if is_live =>
                {
                    return Err(NotReplayed::Elsewhere(contract.name.clone()));
                }
                kind => *kind = ListenerKind::Recorded(tape.clone()),
            }
        }
        // The signature of a recorded message is not kept, and what sends it here is no client.
        let before = &self.blueprint;
        let clients = before.clients().map(|(_, client)| client.clone().signatures(None)).collect();
        // What answers from the tape waits for the calls that it makes again.
        let listeners = before.listeners().map(|(_, contract)| {
            let mut contract = contract.clone();
            contract.can_park |= !tape.live().contains(&contract.name);
            contract
        });
        let listeners = listeners.collect();
        let mut blueprint = Blueprint::new(before.organism.clone(), listeners, clients);
        blueprint.scheduling = before.scheduling;
        // Some conversations run at once that ran one after the other, or the other way round.
        let (limits, default) = (before.limits.clone(), Limits::default());
        blueprint.limits = limits
            .threads(before.limits.threads.max(default.threads))
            .queue(before.limits.queue.max(default.queue))
            .queue_bytes(before.limits.queue_bytes.max(default.queue_bytes))
            .egress(before.limits.egress.max(default.egress))
            .egress_bytes(before.limits.egress_bytes.max(default.egress_bytes))
            .context_total_bytes(before.limits.context_total_bytes.max(default.context_total_bytes));
        blueprint.budget = before.budget;
        blueprint.meta = before.meta.clone();
        #[cfg(feature = "gateway")]
        let unsigned = Self { identity: None, ..self };
        #[cfg(not(feature = "gateway"))]
        let unsigned = self;
        Ok(Self {
            blueprint,
            journal: Some(journal),
            gateway: None,
            cluster: None,
            mcp: None,
            schedules: Vec::new(),
            ..unsigned
        })
    }

    /// Lists the listeners that models speak for.
    pub fn models(&self) -> impl Iterator<Item = &Name> {
        let listeners = self.blueprint.listeners().zip(&self.kinds);
        let models = listeners.filter(|(_, kind)| matches!(kind, ListenerKind::Model(_)));
        models.map(|((_, contract), _)| &contract.name)
    }

    /// The payload of a name as the file writes it: `{namespace}local`, `prefix:local`, or `local` in no namespace.
    ///
    /// # Errors
    /// [`Mistake::Prefix`] and [`Mistake::QName`] if it is none.
    pub fn payload(&self, name: &str) -> Result<QName, Mistake> {
        self.prefixes.payload(name)
    }

    /// The schemas of the organism's own payloads, without those that the pump speaks itself.
    pub fn payloads(&self) -> impl Iterator<Item = &PayloadSchema> {
        self.catalog.payloads().filter(|schema| !check::is_the_pumps(schema.qname()))
    }
}

/// The variable that tells a program that it runs in a replay.
fn in_replay() -> Variable {
    Variable::Set("SYSTOLE_REPLAY".to_owned(), "1".to_owned())
}

/// The reason why a listener can't run in a replay.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReplayed {
    /// The organism has no such listener.
    #[error("there is no listener '{0}'")]
    Unknown(Name),
    /// People, agents elsewhere, another organism or the owner of a job answer for the listener.
    #[error(
        "'{0}' can't run in a replay, since its answers come from elsewhere: its recorded answers are used without --live"
    )]
    Elsewhere(Name),
}

systole_core::vocab::debug_is_display!(NotReplayed);

/// Parses a size in the notation of an `organism.yaml`: bytes, or with a unit such as `MiB`.
///
/// # Errors
/// [`Mistake::Size`] if the text is no size.
pub fn parse_size(text: &str) -> Result<usize, Mistake> {
    units::size(text).ok_or_else(|| Mistake::Size { text: text.to_owned() })
}

/// Parses a duration in the notation of an `organism.yaml`: with a unit such as `30s` or `7d`.
///
/// # Errors
/// [`Mistake::Duration`] if the text is no duration, [`Mistake::TooLong`] if it is one of more than 100 years.
pub fn parse_duration(text: &str) -> Result<Duration, Mistake> {
    units::duration(text, Duration::ZERO)
}

/// The extent of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// The file and the files that it names.
    File,
    /// Also the place of the journal, the address of the gateway, and programs in Python.
    Machine,
}

fn read(
    name: &str,
    source: &str,
    directory: &Path,
    advise: Adviser<'_>,
    look: Look,
) -> (Result<Config, Vec<ConfigFinding>>, Vec<PathBuf>) {
    let file = File::new(name, source);
    let root = match document::parse(source) {
        Ok(root) => root,
        Err(error) => {
            let mistake = Mistake::Yaml { message: error.message, help: error.help };
            return (Err(vec![ConfigFinding::new(mistake, &file, error.span)]), Vec::new());
        }
    };
    let base = Path::new(name).parent().map(Path::to_owned).unwrap_or_default();
    let (directory_owned, prefixes) = (directory.to_owned(), Prefixes::default());
    let mut reader =
        Reader { file, base, directory: directory_owned, prefixes, findings: Vec::new(), files: Vec::new() };
    let organism = organism::read(&mut reader, &root);
    if let Some(organism) = organism.as_ref().filter(|_| look == Look::Machine) {
        place::judge(&mut reader, organism, directory);
    }
    let built = organism.map(|organism| judge(&mut reader, organism, directory, advise, look));
    let Reader { file, mut findings, files, .. } = reader;
    let mut unknown = BTreeSet::new();
    findings.retain(|finding| match finding.mistake() {
        // One mistake, however often the prefix is written.
        Mistake::Prefix { prefix, .. } => unknown.insert(prefix.clone()),
        _ => true,
    });
    findings.sort_by_key(|finding| {
        // A remark on errors stands behind them.
        let is_remark = matches!(finding.mistake(), Mistake::Lenient { .. });
        (is_remark, finding.span_in(&file).map_or(usize::MAX, |span| span.start))
    });
    let config = match built {
        Some(config) if findings.iter().all(|finding| finding.mistake().is_warning()) => {
            Ok(Config { warnings: findings, ..config })
        }
        _ => Err(findings),
    };
    (config, files)
}

fn judge(reader: &mut Reader, mut organism: Organism, directory: &Path, advise: Adviser<'_>, look: Look) -> Config {
    let schemas = schemas::load(reader, &organism, directory, advise);
    if let Some(schemas) = schemas.as_ref().filter(|_| organism.complete) {
        check::declarations(reader, &organism, schemas);
        check::receivers(reader, &organism);
    }
    let catalog = schemas.map(|schemas| schemas.catalog);
    if let Some(catalog) = &catalog {
        short_form::describe(&mut organism, catalog);
    }
    let blueprint = check::blueprint(&organism);
    check::programs(reader, &organism, directory, look);
    check::problems(reader, &organism, blueprint.problems());
    check::owners(reader, &organism);
    check::registries(reader, &organism);
    check::durable(reader, &organism);
    cluster::check(reader, &organism);
    human::check(reader, &organism);
    mcp_listener::check(reader, &organism);
    check::speakers(reader, &organism);
    let mailboxes = check::mailboxes(reader, &organism);
    check::signed(reader, &organism);
    llm::check(reader, &organism);
    let schedules = schedule::check(reader, &organism, catalog.as_ref(), &blueprint);
    molecule::check(reader, &organism);
    mcp::check(reader, &organism);
    let kept = organism.journal.as_ref().map(|journal| journal.retention.age);
    let mcp = organism.mcp.map(|mcp| mcp.settings(kept));
    let journal = organism.journal.and_then(|keep| match NamedJournal::parse(&keep.file.value, Some(directory)) {
        Ok(journal) => Some(journal.durability(keep.durability).retention(keep.retention)),
        Err(why) => {
            // The URL may have a password.
            reader.report(Mistake::File { what: "journal", path: "postgres://".into(), why }, keep.file.span);
            None
        }
    });
    let prefixes = std::mem::take(&mut reader.prefixes);
    let kinds =
        organism.listeners.into_iter().map(|listener| kind(listener.kind, &organism.teams, directory)).collect();
    let gateway = organism.gateway.map(|gateway| GatewaySettings { mailboxes, ..gateway.value });
    let mut catalog = catalog.unwrap_or_default();
    blueprint.listeners().for_each(|(_, contract)| contract.let_instructions(&mut catalog));
    let llm = organism.llm.map(|llm| llm.settings);
    let cluster = organism.cluster.map(|cluster| cluster.value);
    let (drain, keep) = (organism.drain, organism.keep);
    Config {
        blueprint,
        catalog,
        kinds,
        journal,
        #[cfg(feature = "gateway")]
        identity: organism.identity,
        gateway,
        cluster,
        #[cfg(feature = "gateway")]
        placed: None,
        mcp,
        drain,
        keep,
        llm,
        schedules,
        warnings: Vec::new(),
        prefixes,
    }
}

fn kind(written: Written, teams: &human::Teams, directory: &Path) -> ListenerKind {
    match written {
        Written::Command(program, form) => {
            ListenerKind::Command { command: command(program, directory), json: form.is_json() }
        }
        Written::Worker { program, form, processes, heartbeat, start } => {
            let (command, json) = (command(program, directory), form.is_json());
            ListenerKind::Worker(WorkerSpec { command, processes, heartbeat, start, json })
        }
        Written::Mcp(server) => ListenerKind::Mcp(Box::new(server.settings(directory))),
        Written::Organism(other) => ListenerKind::Organism(Box::new(other.settings())),
        Written::Model(model) => ListenerKind::Model(model.settings()),
        Written::Human(human) => ListenerKind::Human(human.spec(teams, |program| command(program, directory))),
        Written::Echo => ListenerKind::Echo,
        Written::Remote(mode) => ListenerKind::Remote(mode),
        Written::Tasks { tasks, .. } => ListenerKind::Tasks(tasks),
    }
}

fn command(Program { words, env }: Program, directory: &Path) -> CommandSpec {
    let mut words = words.into_iter().map(|word| word.value);
    let program = words.next().unwrap_or_default();
    let program = program::find(&program, directory).unwrap_or_else(|| PathBuf::from(program));
    let env = env.into_iter().map(|entry| entry.value).collect();
    CommandSpec { program, arguments: words.collect(), env, directory: directory.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use systole_core::core::MetaFlags;
    use systole_core::vocab::Limits;

    use super::*;

    const GOOD: &str = include_str!("../../tests/golden/config/all-keys.yaml");

    fn directory() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/config")
    }

    /// The mistakes of a text, each with its place.
    fn findings(source: &str) -> Vec<ConfigFinding> {
        let findings = match read("o.yaml", source, &directory(), UNADVISED, Look::File).0 {
            Ok(config) => config.warnings,
            Err(findings) => {
                assert!(findings.iter().any(|finding| !finding.mistake().is_warning()), "{source}");
                findings
            }
        };
        for finding in &findings {
            let (name, _) = finding.place().unwrap_or_else(|| panic!("{finding:?} in {source}"));
            assert!(name == "o.yaml" || name.ends_with(".xsd") || name.ends_with("script.yaml"), "{finding:?}");
            let (text, span) = finding.source().expect("what has a place has a text");
            assert!(text.get(span.start..span.end).is_some(), "{finding:?}");
        }
        findings
    }

    #[test]
    fn the_whole_file_is_right() {
        assert!(findings(GOOD).is_empty());
    }

    #[test]
    fn a_wrong_prefix_is_one_mistake_where_it_was_made() {
        let source = |namespace: &str, prefix: &str| {
            let names = format!("[\"{prefix}:ask\", \"{prefix}:answer\"]");
            format!(
                "organism: {{ name: a }}\nprefixes:\n  t: \"{namespace}\"\nclients: [{{ name: cli, calls: {names} }}]\n\
                 listeners: [{{ name: l, echo: true, schemas: [thing.xsd], accepts: {names} }}]\n"
            )
        };
        assert_eq!(findings(&source("urn:t", "t")).len(), 0);
        let [wrong] = &findings(&source("urn:tt", "t"))[..] else { panic!("more than one") };
        assert_eq!(wrong.mistake().to_string(), "no schema declares a payload in the namespace 'urn:tt'");
        assert_eq!(wrong.mistake().help().as_deref(), Some("did you mean 'urn:t'?"));
        assert_eq!(wrong.source().map(|(text, span)| &text[span.start..span.end]), Some("\"urn:tt\""));
        let unknown = findings(&source("urn:t", "u"));
        let is_unknown = |it: &&ConfigFinding| matches!(it.mistake(), Mistake::Prefix { .. });
        assert_eq!(unknown.iter().filter(is_unknown).count(), 1, "{unknown:?}");
    }

    #[test]
    fn devices_are_no_files_of_an_organism() {
        let device = findings(&GOOD.replace("thing.xsd", "/dev/zero"));
        assert!(device.iter().any(|it| it.mistake().to_string().contains("it is a device")), "{device:?}");
    }

    #[test]
    fn a_journal_may_keep_no_ended_work() {
        assert!(findings(&GOOD.replace("age: 2h", "age: 0s")).is_empty());
        let unitless = findings(&GOOD.replace("age: 2h", "age: 0"));
        assert!(unitless.iter().any(|it| matches!(it.mistake(), Mistake::Duration { .. })), "{unitless:?}");
    }

    #[test]
    fn another_platforms_agents_need_their_feature() {
        let wanted = findings(&GOOD.replace("gateway: {", "gateway: { molecule: true,"));
        let is_built = cfg!(feature = "compat-molecule");
        assert_eq!(wanted.is_empty(), is_built, "{wanted:?}");
        let refused = |finding: &ConfigFinding| matches!(finding.mistake(), Mistake::NotBuilt { key: "molecule", .. });
        assert!(wanted.iter().all(refused), "{wanted:?}");
        assert!(findings(&GOOD.replace("gateway: {", "gateway: { molecule: false,")).is_empty());
    }

    #[test]
    fn a_push_in_that_platforms_format_carries_text_alone() {
        let organism = |gateway: &str, remote: &str, contract: &str| {
            let said = "[\"{urn:systole:chat:v1}said\"]";
            let gateway = format!("gateway: {{ listen: \"127.0.0.1:0\", {gateway} }}");
            let remote = format!("remote: {{ mode: push, secret: pushed.secret, {remote} }}");
            let contract = contract.replace("SAID", said);
            format!(
                "organism: {{ name: a }}\ndurability: process\n{gateway}\nclients: [{{ name: cli, calls: {said} }}]\n\
                 listeners: [{{ name: scout, {remote}, {contract} }}]\n"
            )
        };
        let (on, contract) =
            ("molecule: true", "accepts: SAID, replies: SAID, calls: SAID, returns: SAID, routing: addressed");
        let reported = "format: molecule, url: reported, allowed: [\"https://agents.example/a2a\"]";
        let right = findings(&organism(on, reported, contract));
        if !cfg!(feature = "compat-molecule") {
            assert!(
                right.iter().any(|it| matches!(it.mistake(), Mistake::NotBuilt { key: "format", .. })),
                "{right:?}"
            );
            return;
        }
        assert!(right.is_empty(), "{right:?}");
        assert!(findings(&organism(on, "format: molecule, url: \"https://agents.example/a2a\"", contract)).is_empty());
        // A listener that reports its URL needs the list of allowed ones.
        let open = findings(&organism(on, "format: molecule, url: reported", contract));
        assert!(open.iter().any(|it| matches!(it.mistake(), Mistake::MissingKey { key: "allowed", .. })), "{open:?}");
        let inside = reported.replace("agents.example", "10.0.0.7");
        let inside = findings(&organism(on, &inside, contract));
        assert!(inside.iter().any(|it| matches!(it.mistake(), Mistake::Url { private: true, .. })), "{inside:?}");
        // The id of the listener `scout` on that platform.
        let shared = organism(on, reported, contract)
            .replace("listeners: [", "listeners: [{ name: 3578ee30-02d5-5a4d-a967-969ed819a346, echo: true }, ");
        let shared = findings(&shared);
        assert!(shared.iter().any(|it| matches!(it.mistake(), Mistake::SharedId { .. })), "{shared:?}");
        for (gateway, contract) in [
            ("molecule: false", "accepts: [], replies: []"),
            (on, "accepts: SAID, routing: addressed"),
            (on, "accepts: [], replies: SAID"),
            (on, "accepts: SAID, replies: SAID, accepts_faults: true"),
        ] {
            let wrong = findings(&organism(gateway, reported, contract));
            assert!(wrong.iter().any(|it| matches!(it.mistake(), Mistake::TextAlone { .. })), "{contract}: {wrong:?}");
        }
    }

    #[test]
    fn an_organism_of_two_commands_is_right() {
        let swarm = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/swarm");
        let config =
            read("o.yaml", include_str!("../../tests/golden/config/overview.yaml"), &swarm, UNADVISED, Look::File)
                .0
                .unwrap();
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);
        assert_eq!((config.kinds.len(), config.payloads().count()), (2, 4));
    }

    #[test]
    fn the_reference_names_every_key_with_its_default() {
        let swarm = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/swarm");
        let config = read("reference.yaml", REFERENCE, &swarm, UNADVISED, Look::File).0.unwrap();
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);
        assert_eq!(config.blueprint.limits, Limits::default());
        assert_eq!(config.blueprint.meta, MetaFlags::default());
        let (_, calculator) = config.blueprint.listeners().next().unwrap();
        let sparse = "organism: { name: demo }\nlisteners:\n  - name: calculator\n    description: Adds.\n    \
                      command: [python3, calculator.py]\n    schemas: [calculator.xsd]\n    \
                      accepts: ['{urn:example:calculator:v1}add']\n    replies: ['{urn:example:calculator:v1}sum']\n";
        let config = read("sparse.yaml", sparse, &swarm, UNADVISED, Look::File).0.unwrap();
        assert_eq!(config.blueprint.listeners().next().unwrap().1, calculator);
    }

    proptest! {
        #[test]
        fn whatever_is_wrong_has_a_place_that_can_be_shown(at in 0..GOOD.len(), cut in 0..40usize, put in "[ \\-:{}\\[\\]\"'#&*!|>%@`é\u{202e}\u{1b}\n\ta-c0-9,]{0,6}") {
            let (start, end) = (at, (at + cut).min(GOOD.len()));
            findings(&format!("{}{put}{}", &GOOD[..start], &GOOD[end..]));
        }

        #[test]
        fn any_text_is_read_without_a_panic(source in "[ \\-:{}\\[\\]\"'#&*!|>a-e\n]{0,200}") {
            findings(&source);
        }
    }
}
