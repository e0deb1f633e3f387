//! Nodes: processes of one organism that share its journal in a database, and take over from each other.
//!
//! One node has the *lease*, and runs the organism. The others *stand by*: they have read the configuration, serve the
//! address of the gateway, and forward what comes there to the one that runs.
//!
//! ```text
//!            +-- driver: thread of the lease ------- the lease in the database
//! Node ------+
//!            +-- front: entrance of the node ------- the gateway here, or that of the active node
//! ```
//!
//! - [`systole_core::lease`] decides when this node asks, begins and stops; `driver` asks for it, on a thread of its own, so
//!   that a long start or a slow listener delays no renewal.
//! - The program runs the organism while it has a [`Tenure`]. Where work begins, and where an append waits for the
//!   database, the tenure is read: a node whose lease has ended begins nothing more.
//! - Requests come to the `front`, whoever is active. It holds them while no node is, for a bounded time.
//!
//! Not here: the fence. The log refuses what a node appends after another one has begun, whatever both believe.

mod driver;
mod forward;
mod front;
mod kept;
mod view;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use systole_core::vocab::Name;
use systole_store::entropy::Entropy;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::gateway::{Doorway, GatewayError, Install, NodeEntrance};
use crate::journal::{JournalError, LeaseStore, NodeCard};
use crate::outbound::OutboundError;
use crate::runtime::Tenure;
use crate::settings::{GatewaySettings, check_node_url};
use driver::Command;
use front::Front;
use view::View;

/// Reason why a node can't be one of its organism.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The organism has no `cluster:`.
    #[error("the organism has no nodes: write cluster: {{ node: NAME, url: URL }} in its organism.yaml")]
    NoCluster,
    /// The node has no name.
    #[error("this node has no name: give it by --node, by SYSTOLE_NODE, or by cluster: {{ node: NAME }}")]
    NoName,
    /// The node has no URL.
    #[error(
        "this node has no URL for the other nodes: give it by --node-url, by SYSTOLE_NODE_URL, or by cluster: {{ url: URL }}"
    )]
    NoUrl,
    /// The URL can't be that of a node.
    #[error("the URL of this node {0}: write http://HOST:PORT, or https://HOST:PORT")]
    Url(String),
    /// The database can't be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The entrance can't be served.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The other nodes can't be reached.
    #[error("the other nodes can't be reached: {0}")]
    Outbound(#[from] OutboundError),
    /// The file of certificates can't be read.
    #[error("the file of certificates (cluster.ca_file) can't be read: {0}")]
    Certificates(io::Error),
    /// The system refuses a thread.
    #[error("the operating system refuses a resource that the node needs: {0}")]
    System(#[from] io::Error),
}

systole_core::vocab::debug_is_display!(ClusterError);

/// What a node is made of.
pub(crate) struct NodePlan<'a> {
    pub(crate) name: Option<Name>,
    pub(crate) url: Option<String>,
    pub(crate) lease: Duration,
    /// Certificates that are trusted beside those of the system, in PEM.
    pub(crate) certificates: Vec<u8>,
    pub(crate) gateway: &'a GatewaySettings,
    /// The time for requests in flight when the node ends.
    pub(crate) patience: Duration,
}

/// A node of an organism: its entrance, and its part in the lease. Both end with this value.
#[derive(Debug)]
pub struct Node {
    card: NodeCard,
    commands: mpsc::UnboundedSender<Command>,
    begun: Mutex<mpsc::UnboundedReceiver<Tenure>>,
    view: Arc<View>,
    doorway: Doorway,
    end: watch::Sender<bool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// The place of an organism on its node: behind the entrance, and for a lease.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) doorway: Doorway,
    pub(crate) tenure: Tenure,
}

impl Node {
    /// Binds the address of the gateway, and serves it from now on; takes no lease before [`stand_by`](Self::stand_by).
    pub(crate) fn start(
        plan: NodePlan<'_>,
        leases: impl FnOnce(NodeCard) -> Result<Box<dyn LeaseStore>, JournalError>,
    ) -> Result<Self, ClusterError> {
        let name = plan.name.ok_or(ClusterError::NoName)?;
        let url = plan.url.ok_or(ClusterError::NoUrl)?;
        check_node_url(&url).map_err(ClusterError::Url)?;
        let url = url.trim_end_matches('/').into();
        let card = NodeCard { name: name.as_str().into(), url, process: Entropy::Real.random(), lease: plan.lease };
        let entrance = NodeEntrance::bind(plan.gateway)?;
        let store = leases(card.clone())?;
        let view = Arc::new(View::new(card.clone()));
        let placed = view.clone();
        let install: Install = Arc::new(move |router| placed.install(router));
        let doorway = entrance.doorway(install)?;
        let (commands, inbox) = mpsc::unbounded_channel();
        let (begin, begun) = mpsc::unbounded_channel();
        let (end, ended) = watch::channel(false);
        let front = Front::new(view.clone(), commands.clone(), &plan.certificates, plan.gateway.bodies)?;
        let address = entrance.address()?;
        let driver = driver::start(store, view.clone(), inbox, begin, front::client(&plan.certificates)?)?;
        let served = front::start(entrance, front, ended, plan.patience)?;
        tracing::info!(%address, node = %card.name, "the gateway listens");
        let threads = vec![served, driver];
        Ok(Self { card, commands, begun: Mutex::new(begun), view, doorway, end, threads })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.card.name
    }

    /// Waits until this node has the lease.
    ///
    /// # Cancel safety
    /// If the future is dropped the node may have the lease, and gives it back by [`release`](Self::release).
    pub async fn stand_by(&self) -> Tenure {
        let mut begun = self.begun.lock().await;
        self.view.stand_by();
        // The driver lives as long as this value.
        let _ = self.commands.send(Command::StandBy);
        loop {
            match begun.recv().await {
                // One that nobody waited for may have ended meanwhile.
                Some(tenure) if tenure.holds() => return tenure,
                Some(_) => drop(self.commands.send(Command::StandBy)),
                None => return std::future::pending().await,
            }
        }
    }

    /// The place of an organism that starts for this lease.
    pub(crate) fn place(&self, tenure: &Tenure) -> Placed {
        Placed { doorway: self.doorway.clone(), tenure: tenure.clone() }
    }

    /// Gives the lease up, if the node has it, and tells the other nodes; takes none before it stands by again. To be called
    /// once the organism has ended here.
    pub async fn release(&self) {
        let (tell, told) = oneshot::channel();
        let _ = self.commands.send(Command::Release(tell));
        // Past its length the lease has ended by itself.
        let _ = timeout(self.card.lease, told).await;
    }

    /// Takes no lease for that time: the organism could not start, so another node should try.
    pub fn rest(&self, time: Duration) {
        let _ = self.commands.send(Command::Rest(time));
    }

    /// Ends the node in order: requests that it holds find the node that took over, and those in flight end.
    pub async fn close(mut self) {
        self.view.close().await;
        self.end.send_replace(true);
        let threads = std::mem::take(&mut self.threads);
        let _ = self.commands.send(Command::End);
        // The log has a panic of a thread already.
        let join = move || threads.into_iter().for_each(|thread| drop(thread.join()));
        let _ = tokio::task::spawn_blocking(join).await;
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end.send_replace(true);
        let _ = self.commands.send(Command::End);
    }
}
