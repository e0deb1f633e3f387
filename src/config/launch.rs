//! The way from a configuration to a running organism.

#[cfg(feature = "gateway")]
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "gateway")]
use super::cluster::CERTIFICATES;
use super::reload::{Fixed, Reloads};
use super::{Config, HumanSpec, ListenerKind};
#[cfg(feature = "gateway")]
use crate::cluster::{ClusterError, Node, NodePlan};
#[cfg(feature = "gateway")]
use crate::federation::OrganismListener;
#[cfg(feature = "gateway")]
use crate::gateway::announce::{AnnounceError, Announcer};
#[cfg(feature = "gateway")]
use crate::gateway::{Doorway, Gateway, GatewayError, MailboxService, OperatorSocket, RemoteListener, Serving};
use crate::listeners::command::CommandListener;
use crate::listeners::echo::EchoListener;
#[cfg(feature = "gateway")]
use crate::listeners::human::Announce;
use crate::listeners::human::{Console, HumanListener, People};
use crate::listeners::worker::{WorkerListener, WorkerStart};
#[cfg(feature = "mcp")]
use crate::mcp::client::McpListener;
#[cfg(feature = "gateway")]
use crate::model::{Llm, LlmError, ModelListener};
use crate::replay::RecordedListener;
#[cfg(feature = "gateway")]
use crate::runtime::Tenure;
use crate::runtime::{Organism, OrganismBuilder, StartError};
use crate::schedules::{AnswersTo, Scheduler, SchedulerError};
#[cfg(feature = "gateway")]
use crate::settings::{LlmSettings, ModelSettings, read_regular};
#[cfg(feature = "otel")]
use crate::telemetry::{Exporting, TelemetryError, Traces};
use systole_core::protocol::boot_qname;
use systole_core::vocab::Name;

/// What the listeners of all versions of an organism share.
#[derive(Debug, Clone)]
pub(super) struct Beside {
    console: Option<Console>,
    people: People,
    #[cfg(feature = "gateway")]
    mailboxes: Option<MailboxService>,
}

/// A builder with the listeners and clients of a file.
pub(super) struct Registered {
    pub(super) builder: OrganismBuilder,
    #[cfg(feature = "gateway")]
    announcements: BTreeMap<Name, Announce>,
}

/// An organism of an `organism.yaml`, before its start.
pub struct ConfiguredBuilder {
    /// The builder of the organism, with all listeners and clients of the file.
    pub organism: OrganismBuilder,
    beside: Beside,
    fixed: Fixed,
    #[cfg(feature = "gateway")]
    journal: Option<std::path::PathBuf>,
    #[cfg(feature = "gateway")]
    announcements: BTreeMap<Name, Announce>,
    #[cfg(feature = "gateway")]
    gateway: Option<Gateway>,
    #[cfg(feature = "mcp")]
    mcp: Option<Arc<crate::mcp::server::Server>>,
}

/// A running organism of an `organism.yaml`, with its entrances.
#[derive(Debug)]
pub struct ConfiguredOrganism {
    #[cfg(feature = "gateway")]
    #[expect(dead_code, reason = "it serves as long as it is there")]
    operators: Option<OperatorSocket>,
    #[cfg(feature = "gateway")]
    #[expect(dead_code, reason = "it announces as long as it is there")]
    announcer: Option<Announcer>,
    /// Ended before the organism.
    schedules: Option<Scheduler>,
    /// The organism.
    pub organism: Arc<Organism>,
    beside: Beside,
    fixed: Fixed,
    #[cfg(feature = "gateway")]
    gateway: Option<Serving>,
    #[cfg(feature = "mcp")]
    mcp: Option<Arc<crate::mcp::server::Server>>,
    /// Dropped last, so that the end of the organism is among the spans.
    #[cfg(feature = "otel")]
    #[expect(dead_code, reason = "it exports as long as it is there")]
    traces: Option<Exporting>,
}

/// Reason why an organism of an `organism.yaml` can't start, although the file is right.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The organism can't start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The traces can't be exported.
    #[cfg(feature = "otel")]
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// This process can't be a node of the organism.
    #[cfg(feature = "gateway")]
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The gateway can't be served.
    #[cfg(feature = "gateway")]
    #[error("{}{}", .0, remedy(.0))]
    Gateway(#[from] GatewayError),
    /// Questions to people can't be announced.
    #[cfg(feature = "gateway")]
    #[error(transparent)]
    Announce(#[from] AnnounceError),
    /// The backends of models can't be set up.
    #[cfg(feature = "gateway")]
    #[error(transparent)]
    Llm(#[from] LlmError),
    /// The schedules can't run.
    #[error(transparent)]
    Schedules(#[from] SchedulerError),
    /// Each backend of a listener that a model speaks for is left out.
    #[error("'{listener}' has no model to ask: each of its backends is left out by its when_env or unless_env")]
    NoModel {
        /// The listener.
        listener: Name,
    },
    /// A listener is a person, and there is no console.
    #[error(
        "'{listener}' is a person (human: true), and needs a console: hand one over, or name people who answer elsewhere"
    )]
    NoConsole {
        /// The listener.
        listener: Name,
    },
    /// The library was built without the feature that the file needs.
    #[error("this systole was built without its gateway: build it with the feature 'gateway'")]
    NotBuilt,
}

systole_core::vocab::debug_is_display!(LaunchError);

#[cfg(feature = "gateway")]
fn remedy(error: &GatewayError) -> &'static str {
    match error {
        GatewayError::Listen { cause, .. } if cause.kind() == std::io::ErrorKind::AddrInUse => {
            ": end the other program if it is this organism, or write another port, or 0 for any free port"
        }
        _ => "",
    }
}

/// Time for requests in flight when a node ends, if the file says nothing.
#[cfg(feature = "gateway")]
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

impl Config {
    /// Makes this process a node of the organism: its gateway is served from now on, and the organism starts here once the node
    /// has its lease. A name and a URL that are given come before those of the file.
    ///
    /// # Errors
    /// [`LaunchError`] if the file has no `cluster:`, the node has no name or no URL, or the database or the address can't be
    /// used.
    #[cfg(feature = "gateway")]
    pub fn join(&self, name: Option<Name>, url: Option<String>) -> Result<Node, LaunchError> {
        let (Some(cluster), Some(gateway), Some(journal)) = (&self.cluster, &self.gateway, &self.journal) else {
            return Err(ClusterError::NoCluster.into());
        };
        let certificates = match &cluster.ca_file {
            Some(file) => read_regular(file, CERTIFICATES).map_err(ClusterError::Certificates)?,
            None => Vec::new(),
        };
        let plan = NodePlan {
            name: name.or_else(|| cluster.node.clone()),
            url: url.or_else(|| cluster.url.clone()),
            lease: cluster.lease,
            certificates,
            gateway,
            patience: self.drain.unwrap_or(PATIENCE),
        };
        Ok(Node::start(plan, |card| journal.leases(&self.blueprint.organism, card))?)
    }

    /// Lets the organism run on this node, for as long as that has its lease.
    #[cfg(feature = "gateway")]
    #[must_use]
    pub fn placed(self, node: &Node, tenure: &Tenure) -> Self {
        let journal = self.journal.map(|journal| journal.within(tenure));
        Self { journal, placed: Some(node.place(tenure)), ..self }
    }

    /// Makes the builder of the organism: with its listeners and clients, its journal, the backends of its models, and
    /// its gateway, whose address is bound from now on. People are asked at `console`.
    ///
    /// ```no_run
    /// use std::path::Path;
    ///
    /// use systole::config::Config;
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = Config::load(Path::new("organism.yaml")).map_err(|findings| findings[0].to_string())?;
    /// let running = config.into_builder(None)?.start(&[])?;
    /// running.organism.serve().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`LaunchError`] if the address of the gateway or a key of a model can't be used, a listener is a person without a
    /// console, or the feature `gateway` is needed and absent.
    pub fn into_builder(mut self, console: Option<&Console>) -> Result<ConfiguredBuilder, LaunchError> {
        #[cfg(not(feature = "gateway"))]
        if self.gateway.is_some()
            || self.mcp.is_some()
            || self.kinds.iter().any(|kind| matches!(kind, ListenerKind::Model(_) | ListenerKind::Organism(_)))
        {
            return Err(LaunchError::NotBuilt);
        }
        #[cfg(feature = "gateway")]
        let placed = self.placed.take();
        #[cfg(feature = "gateway")]
        let gateway = self.open_gateway(placed.as_ref().map(|placed| &placed.doorway))?;
        #[cfg(feature = "mcp")]
        let mcp = self.mcp.clone().map(crate::mcp::server::Server::new);
        #[cfg(feature = "mcp")]
        let gateway = match (&mcp, gateway) {
            (Some(mcp), Some(gateway)) => Some(mcp.serve(gateway)),
            (_, gateway) => gateway,
        };
        let fixed = Fixed::of(&self);
        let people = console.map_or_else(People::new, |console| console.people().clone());
        let beside = Beside {
            console: console.cloned(),
            people,
            #[cfg(feature = "gateway")]
            mailboxes: gateway.as_ref().map(|gateway| gateway.mailboxes().clone()),
        };
        #[cfg(feature = "gateway")]
        let identity = self.identity.clone();
        let (journal, schedules) = (self.journal.take(), std::mem::take(&mut self.schedules));
        #[cfg(feature = "gateway")]
        let operated = journal.as_ref().and_then(|journal| journal.beside().map(ToOwned::to_owned));
        let Registered {
            mut builder,
            #[cfg(feature = "gateway")]
            announcements,
        } = self.register(&beside)?;
        builder = builder.people(&beside.people);
        #[cfg(feature = "gateway")]
        if let Some(placed) = placed {
            builder = builder.within(placed.tenure);
        }
        #[cfg(feature = "gateway")]
        if let Some(identity) = identity {
            builder = builder.identity(identity);
        }
        if let Some(journal) = journal {
            builder = builder.store(journal.into());
        }
        for schedule in schedules {
            builder = builder.schedule(schedule);
        }
        #[cfg(feature = "gateway")]
        if let Some(gateway) = &gateway {
            builder = gateway.install(builder);
        }
        Ok(ConfiguredBuilder {
            organism: builder,
            beside,
            fixed,
            #[cfg(feature = "gateway")]
            journal: operated,
            #[cfg(feature = "gateway")]
            announcements,
            #[cfg(feature = "gateway")]
            gateway,
            #[cfg(feature = "mcp")]
            mcp,
        })
    }

    /// Makes a builder with the listeners and clients of the file.
    pub(super) fn register(self, beside: &Beside) -> Result<Registered, LaunchError> {
        #[cfg(feature = "gateway")]
        let llm = self.open_models()?;
        let schemas: Vec<_> = self.payloads().cloned().collect();
        let blueprint = self.blueprint;
        let mut builder = Organism::builder(&*blueprint.organism)
            .limits(blueprint.limits.clone())
            .budget(blueprint.budget)
            .scheduling(blueprint.scheduling)
            .meta(blueprint.meta.clone())
            .schemas(schemas);
        #[cfg(feature = "gateway")]
        let mut announcements = BTreeMap::new();
        for (_, client) in blueprint.clients() {
            builder = builder.raw_client(client.clone());
        }
        for ((_, contract), kind) in blueprint.listeners().zip(self.kinds) {
            let contract = contract.clone();
            builder = match kind {
                ListenerKind::Command { command, json } => {
                    let command = CommandListener::new(contract.name.clone(), command).json(json);
                    builder.raw_listener(contract, move || command.clone())
                }
                ListenerKind::Worker(spec) => {
                    let (name, start) = (contract.name.clone(), spec.start);
                    let worker = move || WorkerListener::new(name.clone(), spec.clone());
                    match start {
                        WorkerStart::Lazy => builder.raw_listener(contract, worker),
                        WorkerStart::Eager => builder.raw_listener_at_start(contract, worker),
                    }
                }
                #[cfg(feature = "mcp")]
                ListenerKind::Mcp(settings) => {
                    let (name, eager) = (contract.name.clone(), settings.eager);
                    let server = move || McpListener::new(name.clone(), (*settings).clone());
                    match eager {
                        false => builder.raw_listener(contract, server),
                        true => builder.raw_listener_at_start(contract, server),
                    }
                }
                #[cfg(not(feature = "mcp"))]
                ListenerKind::Mcp(_) => return Err(LaunchError::NotBuilt),
                #[cfg(feature = "gateway")]
                ListenerKind::Organism(settings) => {
                    let identity = self.identity.clone();
                    builder.raw_listener(contract, move || OrganismListener::new((*settings).clone(), identity.clone()))
                }
                ListenerKind::Human(HumanSpec { to, announce }) => {
                    // Others than operators leave the terminal alone.
                    let is_there = to.operators || contract.accepts.contains(&boot_qname());
                    let human = match beside.console.as_ref().filter(|_| is_there) {
                        Some(console) => HumanListener::new(console.clone()),
                        None if to.people.is_empty() => {
                            return Err(LaunchError::NoConsole { listener: contract.name });
                        }
                        None => HumanListener::elsewhere(&beside.people),
                    };
                    beside.people.address(contract.name.clone(), to);
                    #[cfg(feature = "gateway")]
                    announcements.extend(announce.map(|announce| (contract.name.clone(), announce)));
                    #[cfg(not(feature = "gateway"))]
                    if announce.is_some() {
                        return Err(LaunchError::NotBuilt);
                    }
                    builder.raw_listener(contract, move || human.clone())
                }
                ListenerKind::Recorded(tape) => {
                    let (name, tape) = (contract.name.clone(), tape.clone());
                    builder.raw_listener(contract, move || RecordedListener::new(name.clone(), tape.clone()))
                }
                ListenerKind::Echo => builder.raw_listener(contract, EchoListener::default),
                ListenerKind::Tasks(tasks) => tasks.install(builder, &contract),
                #[cfg(feature = "gateway")]
                ListenerKind::Model(settings) => {
                    let llm = llm.clone();
                    builder.raw_listener(contract, move || ModelListener::new(&llm, settings.clone()))
                }
                // The check of the file refuses one without a gateway.
                #[cfg(feature = "gateway")]
                ListenerKind::Remote(_) => match &beside.mailboxes {
                    Some(mailboxes) => {
                        let remote = RemoteListener::new(mailboxes.clone());
                        builder.raw_listener(contract, move || remote.clone())
                    }
                    None => builder,
                },
                #[cfg(not(feature = "gateway"))]
                ListenerKind::Model(_) | ListenerKind::Organism(_) | ListenerKind::Remote(_) => {
                    return Err(LaunchError::NotBuilt);
                }
            };
        }
        Ok(Registered {
            builder,
            #[cfg(feature = "gateway")]
            announcements,
        })
    }

    /// Opens the gateway, if the file has one. Where only hosts of the Model Context Protocol need it, it listens nowhere.
    #[cfg(feature = "gateway")]
    fn open_gateway(&self, doorway: Option<&Doorway>) -> Result<Option<Gateway>, GatewayError> {
        #[cfg(feature = "mcp")]
        let inside = self.mcp.as_ref().map(|_| crate::settings::GatewaySettings::default());
        #[cfg(not(feature = "mcp"))]
        let inside = None;
        let Some(settings) = self.gateway.as_ref().or(inside.as_ref()) else { return Ok(None) };
        let listeners = self.blueprint.listeners().zip(&self.kinds);
        let remote = listeners.filter_map(|((_, contract), kind)| match kind {
            ListenerKind::Remote(mode) => Some((contract.name.clone(), mode.clone())),
            _ => None,
        });
        let gateway = Gateway::new(settings, remote)?;
        let gateway = match doorway {
            Some(doorway) => gateway.behind(doorway.clone()),
            #[cfg(feature = "mcp")]
            None if self.gateway.is_none() => gateway.inside(),
            None => gateway.listen()?,
        };
        let gateway = if settings.console { crate::console::serve(gateway) } else { gateway };
        #[cfg(feature = "compat-molecule")]
        let gateway = if settings.molecule { crate::molecule::serve(gateway, &self.blueprint) } else { gateway };
        Ok(Some(gateway))
    }

    /// Sets up the backends of models. Where no listener needs one, no key is read.
    #[cfg(feature = "gateway")]
    fn open_models(&self) -> Result<Llm, LaunchError> {
        let is_needed = self.kinds.iter().any(|kind| matches!(kind, ListenerKind::Model(_)));
        let none = LlmSettings::default();
        let llm = Llm::open(self.llm.as_ref().filter(|_| is_needed).unwrap_or(&none))?;
        for ((_, contract), kind) in self.blueprint.listeners().zip(&self.kinds) {
            let ListenerKind::Model(ModelSettings { backend: only, .. }) = kind else { continue };
            if !llm.backends().any(|backend| only.as_ref().is_none_or(|only| only == backend)) {
                return Err(LaunchError::NoModel { listener: contract.name.clone() });
            }
        }
        Ok(llm)
    }
}

impl ConfiguredBuilder {
    /// Starts the organism, and serves it to all of its clients but the `local` ones, whose answers this program reads.
    ///
    /// # Errors
    /// [`LaunchError`] if the organism can't start, or its gateway can't be served.
    pub fn start(self, local: &[&str]) -> Result<ConfiguredOrganism, LaunchError> {
        let builder = self.organism;
        #[cfg(feature = "otel")]
        let traces = Traces::from_environment()?;
        #[cfg(feature = "otel")]
        let builder = match &traces {
            Some(traces) => traces.prepare(builder),
            None => builder,
        };
        let organism = Arc::new(builder.start()?);
        #[cfg(feature = "gateway")]
        let gateway = self.gateway.map(|gateway| gateway.serve(&organism, local)).transpose()?;
        #[cfg(feature = "gateway")]
        let is_served = gateway.is_some();
        #[cfg(not(feature = "gateway"))]
        let is_served = false;
        let schedules = Scheduler::start(&organism, |client| match local.contains(&client.as_str()) {
            true => AnswersTo::Program,
            false if is_served => AnswersTo::Gateway,
            false => AnswersTo::Nobody,
        })?;
        #[cfg(feature = "gateway")]
        let others = axum::Router::new();
        #[cfg(feature = "mcp")]
        let others = match (&self.mcp, &gateway) {
            (Some(mcp), Some(gateway)) => mcp.routes(gateway.app()),
            _ => others,
        };
        Ok(ConfiguredOrganism {
            // An organism without its socket is one that can't be operated from another terminal, and no worse.
            #[cfg(feature = "gateway")]
            operators: self.journal.and_then(|journal| {
                let socket = OperatorSocket::serve_with(&journal, &organism, others);
                socket.inspect_err(|error| tracing::warn!(%error, "no socket for operators")).ok()
            }),
            #[cfg(feature = "gateway")]
            announcer: Announcer::start(&organism, self.announcements)?,
            #[cfg(feature = "gateway")]
            gateway,
            #[cfg(feature = "mcp")]
            mcp: self.mcp,
            #[cfg(feature = "otel")]
            traces: traces.map(|traces| traces.follow(&organism)).transpose()?,
            schedules,
            organism,
            beside: self.beside,
            fixed: self.fixed,
        })
    }
}

impl fmt::Debug for ConfiguredBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfiguredBuilder").finish_non_exhaustive()
    }
}

impl ConfiguredOrganism {
    /// Makes a link that signs an operator in at the console once; `None` without a console.
    pub fn console_link(&self) -> Option<String> {
        #[cfg(feature = "gateway")]
        let link = self.gateway.as_ref().and_then(Serving::console_link);
        #[cfg(not(feature = "gateway"))]
        let link = None;
        link
    }

    /// Serves a stream of lines of the Model Context Protocol for a client, by default that of `mcp: { as: … }`, until the stream or
    /// the organism ends. `session` is an id of the host, which its next stream has, too.
    ///
    /// # Errors
    /// [`StreamError`](crate::mcp::server::StreamError) before anything is read.
    #[cfg(feature = "mcp")]
    pub async fn serve_mcp(
        &self,
        client: Option<Name>,
        session: &str,
        stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + 'static,
    ) -> Result<(), crate::mcp::server::StreamError> {
        let (Some(mcp), Some(gateway)) = (&self.mcp, &self.gateway) else {
            return Err(crate::mcp::server::StreamError::NotServed);
        };
        mcp.stream(gateway.app(), client, session, stream).await
    }

    /// Lets operators change the organism to what that file says then ([`Act::Reload`](crate::operations::Act::Reload)), while it
    /// runs. Has an effect once.
    pub fn reload_from(&self, file: impl Into<PathBuf>) {
        let (beside, fixed) = (self.beside.clone(), self.fixed.clone());
        self.organism.reload_by(Reloads::new(file.into(), &self.organism, beside, fixed).into());
    }

    /// Closes the entrances other than this program: no further messages are accepted there. Returns whether there is
    /// one.
    pub fn close_entrances(&self) -> bool {
        self.schedules.iter().for_each(Scheduler::stop);
        #[cfg(feature = "gateway")]
        self.gateway.iter().for_each(Serving::stop);
        #[cfg(feature = "gateway")]
        let is_served = self.gateway.is_some();
        #[cfg(not(feature = "gateway"))]
        let is_served = false;
        is_served
    }
}
