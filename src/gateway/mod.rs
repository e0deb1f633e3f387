//! The entrance over HTTP: clients send messages, and agents elsewhere are listeners of the organism.
//!
//! A remote listener is declared in the configuration like any other: its contract is the operator's, and the pump
//! stays the trust boundary. In the pump it is a [`RemoteListener`], whose messages wait in a mailbox until its agent
//! answers them; an answer is judged like any emission.
//!
//! - Nothing is acknowledged before it is as durable as the journal. The message of a client is handed to the organism
//!   once, also if the process ends in between; the message of a remote listener is delivered at least once, and
//!   answered once.
//! - Each request carries a token; the principal of the token is the `from` of its messages.
//! - Everything that can grow has a bound with an error of its own.
//!
//! `docs/gateway.md` has the calls.

pub(crate) mod announce;
mod cursor;
mod doorway;
pub mod facade;
mod http;
mod judge;
mod listener;
mod notices;
pub(crate) mod pages;
mod problem;
mod push;
mod recovered_mail;
mod service;
mod socket;
mod submissions;

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::sync::watch;

pub use crate::runtime::Token;
pub use axum::http::Method;
pub(crate) use doorway::{Doorway, Install, NodeEntrance};
pub use listener::RemoteListener;
pub use notices::{
    Block, BoxFuture, Call, DelegateError, NoticeLimits, NoticeToken, QueueDelegate, QueueRead, Row, SessionId,
};
pub(crate) use problem::{Problem, Untouched};
pub use push::PushError;
pub use service::MailboxService;
#[cfg(feature = "mcp")]
pub(crate) use socket::upgrade_operator;
pub use socket::{OperatorSocket, call_operator, socket_path, stream_operator};
pub use systole_store::principal::{Principal, PrincipalKind};

use crate::accept::{Certificate, Entrance, Listener, Times, serve};
use crate::journal::JournalError;
use crate::process::descriptors::for_connections;
use crate::runtime::{Organism, OrganismBuilder};
use crate::settings::{GatewaySettings, Mode, TlsProblem};
use http::{AppState, Edge};
use judge::Judge;
use notices::{MailboxDelegate, Sessions};
use push::{Endpoints, MailStore, PushFormat, PushScheduler};
use submissions::Submissions;
use systole_core::vocab::{IdKey, Name};

/// Length of the system's queue of connections that are not accepted yet, as far as the system allows. Connections past
/// it come late, after retransmissions.
const BACKLOG: i32 = 4096;

/// A gateway that waits for its organism.
pub struct Gateway {
    settings: GatewaySettings,
    mailboxes: MailboxService,
    delegate: Option<Arc<dyn QueueDelegate>>,
    endpoints: Option<Endpoints>,
    /// The format of pushes that a façade brings.
    format: Option<Arc<dyn PushFormat>>,
    /// Mailboxes that also get the answers to a client, by client.
    answer_mailboxes: HashMap<Name, Name>,
    /// The routes of all calls, those of façades included.
    routes: http::Routes,
    /// The paths of pages for browsers, if there are any.
    is_page: Option<fn(&str) -> bool>,
    /// Paths that answer 404 for an unknown token.
    removal_notice: fn(&str) -> bool,
    socket: Option<BoundSocket>,
    /// False if nothing listens: façades reach it inside of the process alone, or requests come by the entrance of the node.
    listens: bool,
    /// The entrance of the node, where several can run the organism.
    doorway: Option<Doorway>,
    /// The description of all calls.
    description: http::Description,
}

/// Address and certificate of a gateway that is served over the network.
struct BoundSocket {
    listener: TcpListener,
    tls: Option<Arc<Certificate>>,
}

/// Reason why a gateway can't be served.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The journal of the organism can't be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The address can't be listened at.
    #[error("can't listen at {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Reason that the system gives.
        cause: io::Error,
    },
    /// The certificate can't be used.
    #[error(transparent)]
    Tls(#[from] TlsProblem),
    /// The organism was built without the mailboxes of this gateway, or has no store.
    #[error("the gateway is not installed: hand the builder of a durable organism to Gateway::install")]
    NotInstalled,
    /// Messages can't be pushed.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The system refuses a thread.
    #[error("the operating system refuses a resource that the gateway needs: {0}")]
    System(#[from] io::Error),
}

systole_core::vocab::debug_is_display!(GatewayError);

impl Gateway {
    /// Lays out the gateway of an organism with a store; `listeners` are the remote ones.
    ///
    /// # Errors
    /// [`GatewayError`] if the secret of a listener can't be read.
    pub fn new(
        settings: &GatewaySettings,
        listeners: impl IntoIterator<Item = (Name, Mode)>,
    ) -> Result<Self, GatewayError> {
        let mailboxes = MailboxService::new(listeners);
        let endpoints = Endpoints::declared(&mailboxes)?;
        let (routes, description) = http::split(http::calls());
        let settings = settings.clone();
        let removal_notice = |_: &str| false;
        Ok(Self {
            settings,
            mailboxes,
            delegate: None,
            endpoints,
            format: None,
            answer_mailboxes: HashMap::new(),
            routes,
            is_page: None,
            removal_notice,
            socket: None,
            listens: true,
            doorway: None,
            description,
        })
    }

    /// Listens at no address: façades inside of the process are the only callers.
    #[cfg(feature = "mcp")]
    pub(crate) fn inside(self) -> Self {
        Self { listens: false, ..self }
    }

    /// Takes its requests from the entrance of its node.
    pub(crate) fn behind(self, doorway: Doorway) -> Self {
        Self { listens: false, doorway: Some(doorway), ..self }
    }

    /// Binds the address before the organism starts: connections wait until the gateway is served.
    ///
    /// # Errors
    /// [`GatewayError`] if the address or the certificate can't be used.
    pub fn listen(self) -> Result<Self, GatewayError> {
        let socket = Some(BoundSocket::open(&self.settings)?);
        Ok(Self { socket, ..self })
    }

    /// Lets the mailboxes live in the journal of the organism, and the organism make the events that `/metrics` counts.
    #[must_use]
    pub fn install(&self, mut builder: OrganismBuilder) -> OrganismBuilder {
        builder.events();
        builder.recoverable(self.mailboxes.recoverable()).elsewhere(Arc::new(self.mailboxes.clone()))
    }

    /// Sets the delegate that gives the notices of responses, instead of the one that reads the mailboxes of clients.
    ///
    /// # Examples
    /// ```
    /// use systole::gateway::{BoxFuture, Call, DelegateError, Gateway, NoticeToken, QueueDelegate, QueueRead, SessionId};
    /// use systole::settings::GatewaySettings;
    ///
    /// /// A delegate without notices; the example of `QueueDelegate` has some.
    /// struct Quiet;
    ///
    /// impl QueueDelegate for Quiet {
    ///     fn read(&self, _: Call) -> BoxFuture<'_, Result<Option<QueueRead>, DelegateError>> {
    ///         Box::pin(async { Ok(None) })
    ///     }
    ///     fn confirm(&self, _: SessionId, _: NoticeToken) -> BoxFuture<'_, Result<Vec<String>, DelegateError>> {
    ///         Box::pin(async { Ok(Vec::new()) })
    ///     }
    ///     fn release(&self, _: SessionId, _: Option<NoticeToken>) -> BoxFuture<'_, Result<(), DelegateError>> {
    ///         Box::pin(async { Ok(()) })
    ///     }
    /// }
    ///
    /// let settings = GatewaySettings::default().listen(([127, 0, 0, 1], 0).into());
    /// let gateway = Gateway::new(&settings, [])?.with_delegate(Quiet);
    /// # drop(gateway);
    /// # Ok::<(), systole::gateway::GatewayError>(())
    /// ```
    #[must_use]
    pub fn with_delegate(self, delegate: impl QueueDelegate) -> Self {
        Self { delegate: Some(Arc::new(delegate)), ..self }
    }

    /// The mailboxes of the gateway's remote listeners.
    pub fn mailboxes(&self) -> &MailboxService {
        &self.mailboxes
    }

    /// Serves an organism at the address of the gateway, on a thread of its own. `others` are clients whose answers go
    /// elsewhere.
    ///
    /// # Errors
    /// [`GatewayError`] if the address can't be bound, or the journal can't be read.
    pub fn serve(mut self, organism: &Arc<Organism>, others: &[&str]) -> Result<Serving, GatewayError> {
        let socket = match self.socket.take() {
            None if self.listens => Some(BoundSocket::open(&self.settings)?),
            socket => socket,
        };
        let doorway = self.doorway.clone();
        let address = match (&socket, &doorway) {
            (Some(socket), _) => socket.listener.local_addr()?,
            (None, Some(doorway)) => doorway.address,
            (None, None) => self.settings.listen,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, mut ended) = watch::channel(false);
        let mailboxes = self.mailboxes.clone();
        let times = Times { header: self.settings.header_time, stall: self.settings.body_time };
        let (vital, of_work) = (organism.critical_thread("gateway"), organism.critical_thread("gateway-work"));
        let served = self.attach(organism, others)?;
        let admission = served.app.edge.admission.clone();
        let is_tls = match &doorway {
            Some(doorway) => doorway.is_tls,
            None => socket.as_ref().is_some_and(|socket| socket.tls.is_some()),
        };
        let scheme = if is_tls { "https" } else { "http" };
        let link = served.app.is_page.map(|_| (scheme, served.app.link.clone()));
        #[cfg(feature = "mcp")]
        let app = served.app.clone();
        match socket {
            Some(_) => tracing::info!(%address, "the gateway listens"),
            None if doorway.is_some() => {}
            None => tracing::debug!("the gateway listens at no address"),
        }
        let opened = doorway.clone();
        let thread = std::thread::Builder::new().name("gateway".to_owned()).spawn(move || {
            runtime.block_on(async move {
                let Attached { router, work, .. } = served;
                let work = tokio::spawn(of_work.keep(work.run(ended.clone())));
                if let Some(doorway) = opened {
                    doorway.open(router.clone());
                }
                match socket.map(|BoundSocket { listener, tls }| (tokio::net::TcpListener::from_std(listener), tls)) {
                    Some((Ok(listener), tls)) => {
                        let listener = Listener::System(listener);
                        serve(Entrance { listener, tls, times, linger: Duration::ZERO }, admission, router, ended)
                            .await;
                    }
                    Some((Err(error), _)) => vital.fail(error),
                    // Its end is that of its sender, too.
                    None => drop(ended.wait_for(|ended| *ended).await),
                }
                // The log has a panic of the work already.
                let _ = work.await;
            });
            runtime.shutdown_background();
        })?;
        Ok(Serving {
            address,
            mailboxes,
            link,
            doorway,
            end,
            thread: Some(thread),
            #[cfg(feature = "mcp")]
            app,
        })
    }

    /// Connects the gateway with its running organism.
    fn attach(self, organism: &Arc<Organism>, others: &[&str]) -> Result<Attached, GatewayError> {
        let clock = self.mailboxes.clock().ok_or(GatewayError::NotInstalled)?;
        // On a simulated clock nothing may happen on other threads.
        let simulated = clock.is_simulated();
        let query = organism.query()?.ok_or(GatewayError::NotInstalled)?;
        let secret = *query.secret();
        let delegate = self.delegate.unwrap_or_else(|| {
            let owned = self.settings.mailboxes.clone();
            Arc::new(MailboxDelegate::new(self.mailboxes.clone(), query.clone(), organism.clone(), owned))
        });
        let ids = IdKey::new(blake3::derive_key("systole gateway 2026 letters", &secret));
        let submissions =
            Submissions::new(self.mailboxes.clone(), query.clone(), ids, organism, others, self.answer_mailboxes);
        let sessions = Arc::new(Sessions::new(delegate));
        let answer = organism.blueprint().limits.xml.message_bytes;
        let endpoints = self.endpoints.map(|endpoints| endpoints.with_format(self.format.as_ref())).transpose()?;
        let judge = if simulated { Judge::here(organism.clone()) } else { Judge::of(organism.clone())? };
        let judge = Arc::new(judge);
        let scheduler = endpoints.map(|endpoints| {
            let (mailboxes, query) = (self.mailboxes.clone(), query.clone());
            let store = MailStore { mailboxes, query, endpoints, judge: judge.clone(), organism: organism.clone() };
            PushScheduler::new(store, answer)
        });
        let scheduler = scheduler.transpose()?.flatten();
        let connections = for_connections(self.settings.connections);
        let settings = narrowed(self.settings, connections);
        let tally = Arc::<http::Tally>::default();
        let mut edge = Edge::new(&settings, answer);
        if let Some(doorway) = &self.doorway {
            edge.admission = doorway.admission.clone();
        }
        let app = Arc::new(AppState {
            edge,
            contracts: http::contract::Contracts::default(),
            description: self.description,
            settings,
            is_page: self.is_page,
            removal_notice: self.removal_notice,
            organism: organism.clone(),
            mailboxes: self.mailboxes.clone(),
            cursors: blake3::derive_key("systole gateway 2026 cursors", &secret),
            query,
            sessions: sessions.clone(),
            submissions: submissions.clone(),
            judge,
            tally: tally.clone(),
            link: Arc::new(http::browser::Link::new(&secret)),
        });
        let router = http::router(app.clone(), self.routes);
        let organism = organism.clone();
        let doorway = self.doorway;
        let work = Work { organism, mailboxes: self.mailboxes, submissions, sessions, scheduler, tally, doorway };
        Ok(Attached { app, router, work })
    }
}

/// The settings with as many connections as the descriptors of the process allow. The other bounds of connections shrink
/// with them, so that what is kept for others is kept.
fn narrowed(settings: GatewaySettings, connections: usize) -> GatewaySettings {
    let wanted = settings.connections;
    if connections == wanted {
        return settings;
    }
    tracing::warn!(
        wanted,
        connections,
        "the limit of open descriptors allows fewer connections than gateway.connections"
    );
    let share = |bound: usize| (bound.saturating_mul(connections) / wanted.max(1)).max(1);
    GatewaySettings {
        connections,
        reserve: share(settings.reserve),
        connections_per_address: share(settings.connections_per_address),
        connections_per_principal: share(settings.connections_per_principal),
        ..settings
    }
}

impl BoundSocket {
    fn open(settings: &GatewaySettings) -> Result<Self, GatewayError> {
        let tls = settings.tls.as_ref().map(Certificate::load).transpose()?.map(Arc::new);
        let address = settings.listen;
        let listener = TcpListener::bind(address).map_err(|cause| GatewayError::Listen { address, cause })?;
        listener.set_nonblocking(true)?;
        rustix::net::listen(&listener, BACKLOG).map_err(io::Error::from)?;
        Ok(Self { listener, tls })
    }
}

impl Gateway {
    /// Connects the gateway with an organism on a simulated clock, on the runtime of the organism, and listens at its
    /// address in the network of the organism's world.
    #[cfg(feature = "testing")]
    pub(crate) async fn simulate(self, organism: &Arc<Organism>, others: &[&str]) -> Result<Simulated, GatewayError> {
        let address = self.settings.listen;
        let listener = Listener::bind(address).await.map_err(|cause| GatewayError::Listen { address, cause })?;
        let address = listener.address()?;
        let times = Times { header: self.settings.header_time, stall: self.settings.body_time };
        let (end, ended) = watch::channel(false);
        let mailboxes = self.mailboxes.clone();
        let Attached { app, router, work } = self.attach(organism, others)?;
        tokio::spawn(work.run(ended.clone()));
        let entrance = Entrance { listener, tls: None, times, linger: Duration::ZERO };
        tokio::spawn(serve(entrance, app.edge.admission.clone(), router.clone(), ended));
        Ok(Simulated { router, address, mailboxes, _end: end })
    }
}

/// A gateway in the world of a test.
#[cfg(feature = "testing")]
pub(crate) struct Simulated {
    pub(crate) router: Router,
    pub(crate) address: SocketAddr,
    mailboxes: MailboxService,
    /// Dropped, it ends the entrance and the background work.
    _end: watch::Sender<bool>,
}

#[cfg(feature = "testing")]
impl Simulated {
    /// As [`Serving::stop`].
    pub(crate) fn stop(&self) {
        self.mailboxes.stop();
    }
}

/// A gateway that is connected with its organism.
struct Attached {
    app: Arc<AppState>,
    router: Router,
    work: Work,
}

/// Background work of a gateway.
struct Work {
    organism: Arc<Organism>,
    mailboxes: MailboxService,
    submissions: Arc<Submissions>,
    sessions: Arc<Sessions>,
    scheduler: Option<PushScheduler>,
    tally: Arc<http::Tally>,
    doorway: Option<Doorway>,
}

impl Work {
    /// Runs until `end` is true or its sender is dropped.
    async fn run(self, mut end: watch::Receiver<bool>) {
        self.submissions.start();
        let lapse = tokio::spawn(self.mailboxes.clone().lapse());
        let (organism, mailboxes, doorway) = (self.organism, self.mailboxes.clone(), self.doorway);
        let events = organism.events_after(0).map(|events| tokio::spawn(self.tally.follow(events)));
        let breakdown = tokio::spawn(async move {
            organism.broken().await;
            doorway.iter().for_each(Doorway::close);
            mailboxes.stop();
        });
        let silence = self.mailboxes.clock().map(|clock| tokio::spawn(self.sessions.lapse(clock.clone())));
        match self.scheduler {
            Some(scheduler) => scheduler.run(end).await,
            None => drop(end.wait_for(|end| *end).await),
        }
        lapse.abort();
        breakdown.abort();
        [silence, events].iter().flatten().for_each(tokio::task::JoinHandle::abort);
    }
}

/// A served gateway, which ends when this value is dropped.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    mailboxes: MailboxService,
    /// The scheme, and the links that sign browsers in; absent without pages.
    link: Option<(&'static str, Arc<http::browser::Link>)>,
    doorway: Option<Doorway>,
    end: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
    #[cfg(feature = "mcp")]
    app: Arc<AppState>,
}

impl Serving {
    /// The state that façades see.
    #[cfg(feature = "mcp")]
    pub(crate) fn app(&self) -> &Arc<AppState> {
        &self.app
    }

    /// The address of the gateway.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes a link that signs an operator in at the console, once and within ten minutes; `None` without one.
    pub fn console_link(&self) -> Option<String> {
        let ((scheme, link), now) = (self.link.as_ref()?, self.mailboxes.clock()?.now());
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
        }
        Some(format!("{scheme}://{address}{}", link.make(now)))
    }

    /// Announces the end of the organism: no further messages are accepted, and those for remote listeners wait for its
    /// next start. Answers are still accepted.
    pub fn stop(&self) {
        self.doorway.iter().for_each(Doorway::close);
        self.mailboxes.stop();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop();
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // The log has a panic of the thread already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bounds_of_connections_shrink_with_the_descriptors() {
        let settings = GatewaySettings::default();
        assert_eq!(narrowed(settings.clone(), settings.connections), settings);
        let narrow = narrowed(settings.clone(), 128);
        assert_eq!((narrow.connections, narrow.connections_per_principal), (128, 64));
        assert_eq!((narrow.reserve, narrow.connections_per_address), (4, 128));
        assert_eq!(narrowed(settings, 1).reserve, 1);
    }
}
