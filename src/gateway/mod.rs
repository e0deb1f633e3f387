//! The entrance over HTTP: clients send messages, and agents elsewhere are listeners of the organism.
//!
//! A remote listener is declared in the configuration like any other: its contract is the operator's, and the pump
//! stays the trust boundary. In the pump it is a [`RemoteListener`], whose messages wait in a mailbox until somebody
//! answers there; what is answered is judged like any emission.
//!
//! - Nothing is acknowledged before it is as durable as the journal. What a client sent is handed to the organism once,
//!   also if the process ends in between; what a remote listener has is at least once, and answered once.
//! - Whoever comes in shows a token; `from` is who that says.
//! - Everything that can grow has a bound with an error of its own.
//!
//! `docs/gateway.md` has the calls.

mod courier;
mod cursor;
mod http;
mod judge;
mod listener;
mod mailboxes;
mod notices;
mod problem;
mod push;
#[cfg(feature = "facade")]
pub(crate) mod seam;
mod store;
mod tidy;
mod token;

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

pub use courier::StartError;
pub use listener::RemoteListener;
pub use mailboxes::Mailboxes;
pub use notices::{Block, BoxFuture, Call, DelegateError, NoticeToken, QueueDelegate, QueueRead, Room, Row, SessionId};
pub use push::PushError;
pub use store::{Kind, OpenError, Principal, Store, StoreError, beside};
pub use token::Token;

use crate::shell::config::{Gateway as Settings, Journaled, Mode, Tls, TlsProblem};
use crate::shell::descriptors::for_connections;
use crate::shell::{Organism, block_on};
use crate::vocab::Name;
use courier::Courier;
use http::{Entrance, Gate, serve};
use judge::Judge;
use notices::{MailboxDelegate, Sessions};
use push::{Places, Pusher};

/// Connections that wait with the system, as far as it lets them: past it they come late, by its timers.
const BACKLOG: i32 = 4096;

/// A gateway that has its file and its address, and waits for its organism.
pub struct Gateway {
    settings: Settings,
    journal: Journaled,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    mailboxes: Mailboxes,
    sessions: Arc<Sessions>,
    places: Option<Places>,
    /// Clients whose answers are put into a mailbox, too.
    letters: HashMap<Name, Name>,
    /// What is served besides its own calls.
    more: http::Routes,
}

/// Why a gateway can't be served.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// Its file.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its address.
    #[error("can't listen at {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        cause: io::Error,
    },
    /// Its certificate.
    #[error(transparent)]
    Tls(#[from] TlsProblem),
    /// What is pushed.
    #[error(transparent)]
    Push(#[from] PushError),
    /// Its thread.
    #[error("the system refuses what the gateway needs: {0}")]
    System(#[from] io::Error),
    /// What an earlier run left.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Gateway {
    /// Opens the file beside a journal and takes the address; `listeners` are the remote ones.
    ///
    /// # Errors
    /// [`GatewayError`] if one of them can't be had.
    pub fn open(
        settings: &Settings,
        journal: &Journaled,
        listeners: impl IntoIterator<Item = (Name, Mode)>,
    ) -> Result<Self, GatewayError> {
        let tls = settings.tls.as_ref().map(Tls::load).transpose()?.map(|config| Arc::new(config).into());
        let store = Store::open(&beside(&journal.file), journal.durability, journal.retention)?;
        let address = settings.listen;
        let listener = TcpListener::bind(address).map_err(|cause| GatewayError::Listen { address, cause })?;
        listener.set_nonblocking(true)?;
        rustix::net::listen(&listener, BACKLOG).map_err(io::Error::from)?;
        let mailboxes = Mailboxes::new(store, listeners);
        let delegate = MailboxDelegate::new(mailboxes.clone(), settings.mailboxes.clone());
        let sessions = Arc::new(Sessions::new(Arc::new(delegate)));
        let places = Places::declared(&mailboxes)?;
        block_on(mailboxes.pull()).map_err(StartError::from)?;
        let (letters, more) = (HashMap::new(), http::Routes::new());
        let (settings, journal) = (settings.clone(), journal.clone());
        Ok(Self { settings, journal, listener, tls, mailboxes, sessions, places, letters, more })
    }

    /// Asks another delegate for what rides on responses, instead of the one that reads the mailboxes of clients.
    ///
    /// # Examples
    /// ```
    /// use systole::gateway::{BoxFuture, Call, DelegateError, Gateway, NoticeToken, QueueDelegate, QueueRead, SessionId};
    /// use systole::shell::config::{Gateway as Settings, Journaled};
    /// use systole::shell::journal::{Durability, Retention};
    ///
    /// /// Nothing is ever pending; `QueueDelegate` shows one that has something to say.
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
    /// # let folder = std::env::temp_dir().join(format!("systole-doc-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// let settings = Settings { listen: ([127, 0, 0, 1], 0).into(), ..Settings::default() };
    /// let file = folder.join("office.journal");
    /// let journal = Journaled { file, durability: Durability::Process, retention: Retention::default() };
    /// let gateway = Gateway::open(&settings, &journal, [])?.with_delegate(Quiet);
    /// # drop(gateway);
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_delegate(self, delegate: impl QueueDelegate) -> Self {
        Self { sessions: Arc::new(Sessions::new(Arc::new(delegate))), ..self }
    }

    /// The mailboxes of its remote listeners.
    pub fn mailboxes(&self) -> &Mailboxes {
        &self.mailboxes
    }

    /// Serves an organism, on a thread of its own. `others` are clients whose answers go elsewhere.
    ///
    /// # Errors
    /// [`GatewayError`] if what an earlier run left can't be read, or there is no thread.
    pub fn serve(self, organism: &Arc<Organism>, others: &[&str]) -> Result<Serving, GatewayError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let address = self.listener.local_addr()?;
        let courier = Courier::new(self.mailboxes.clone(), organism, others, self.letters);
        let answer = organism.blueprint().limits.xml.message_bytes;
        let start = |places| runtime.block_on(Pusher::start(&self.mailboxes, places, &self.journal, answer));
        let pusher = self.places.map(start).transpose()?;
        let outbound = pusher.as_ref().map(Pusher::outbound);
        let connections = for_connections(self.settings.connections);
        let settings = Settings { connections, ..self.settings };
        let gate = Arc::new(Gate {
            rate: http::rate(&settings),
            room: Arc::new(Semaphore::new(connections)),
            settings,
            organism: organism.clone(),
            mailboxes: self.mailboxes.clone(),
            sessions: self.sessions.clone(),
            courier: courier.clone(),
            outbound: outbound.clone(),
            judge: Judge::of(organism.clone())?,
        });
        runtime.block_on(courier.start(&self.journal.file))?;
        let (end, ended) = watch::channel(false);
        let (listener, tls, more) = (self.listener, self.tls, self.more);
        let (mailboxes, sessions) = (self.mailboxes.clone(), self.sessions);
        let vital = ["gateway", "gateway-sessions", "gateway-lapse", "gateway-tidy", "gateway-push"]
            .map(|name| organism.vital(name));
        let thread = std::thread::Builder::new().name("gateway".to_owned()).spawn(move || {
            let [vital, of_sessions, of_lapse, of_tidy, of_push] = vital;
            runtime.block_on(async move {
                tokio::spawn(of_sessions.keep(sessions.lapse(mailboxes.clock().clone())));
                tokio::spawn(of_lapse.keep(mailboxes.clone().lapse()));
                tokio::spawn(of_tidy.keep(tidy::tidy(mailboxes, outbound)));
                let push = pusher.map(|pusher| tokio::spawn(of_push.keep(pusher.run(ended.clone()))));
                match tokio::net::TcpListener::from_std(listener) {
                    Ok(listener) => serve(Entrance { listener, tls, more }, gate, ended).await,
                    Err(error) => vital.fail(error),
                }
                if let Some(push) = push {
                    // What it said in a panic stands in the log.
                    let _ = push.await;
                }
            });
            runtime.shutdown_background();
        })?;
        tracing::info!(%address, "the gateway listens");
        Ok(Serving { address, mailboxes: self.mailboxes, end, thread: Some(thread) })
    }
}

/// A gateway that is served until this is dropped.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    mailboxes: Mailboxes,
    end: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Serving {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The organism ends: nothing new is taken, and what waits for remote listeners waits for its next start. Answers
    /// are still taken.
    pub fn stop(&self) {
        self.mailboxes.stop();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop();
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // What it said in a panic stands in the log.
            let _ = thread.join();
        }
    }
}
