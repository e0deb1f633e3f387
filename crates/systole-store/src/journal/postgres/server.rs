//! The server: a thread with the connections of a journal, and statements that outlive them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use systole_core::journal::JournalError;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls};

use super::address::Address;
use super::problem::{Problem, Trouble};
use super::tls::Tls;
use crate::tenure::Tenure;

/// Time for which a statement is tried again, while the connection is lost or the server takes none.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time for which a first connection is tried.
const FIRST: Duration = Duration::from_secs(10);

/// Pauses between attempts.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// Work that begins on the thread.
type Work = Box<dyn FnOnce() + Send>;

/// The thread with the connections of a journal. It ends with this value.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: Arc<Address>,
    work: Option<UnboundedSender<Work>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts the thread; nothing is connected yet.
    pub(super) fn start(address: &Arc<Address>) -> Result<Self, JournalError> {
        let (work, mut inbox) = unbounded_channel::<Work>();
        let (tell, told) = sync_channel(1);
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // The starter waits for it.
            let _ = tell.send(runtime.is_ok());
            if let Ok(runtime) = runtime {
                LocalSet::new().block_on(&runtime, async move {
                    while let Some(work) = inbox.recv().await {
                        work();
                    }
                });
            }
        };
        let thread = std::thread::Builder::new().name("postgres".into()).spawn(run);
        let thread = thread.map_err(|_| Problem::Ended.of(address))?;
        if told.recv() != Ok(true) {
            return Err(Problem::Ended.of(address));
        }
        Ok(Self { address: address.clone(), work: Some(work), thread: Some(thread) })
    }

    /// Runs a future on the thread, and waits for it.
    pub(super) fn wait<T: Send + 'static, F: Future<Output = Result<T, Problem>> + 'static>(
        &self,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Result<T, JournalError> {
        self.begin(work).wait(self)
    }

    /// Runs a future on the thread.
    pub(super) fn begin<T: Send + 'static, F: Future<Output = Result<T, Problem>> + 'static>(
        &self,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Begun<T> {
        let (tell, told) = sync_channel(1);
        let work: Work = Box::new(move || {
            tokio::task::spawn_local(async move {
                // Who waited for it may have gone.
                let _ = tell.send(work().await);
            });
        });
        // Without the thread the receiver learns it at once.
        let _ = self.work.as_ref().map(|thread| thread.send(work));
        Begun(told)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.work.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was an error of whoever waited.
            let _ = thread.join();
        }
    }
}

/// Work of a [`Server`] that has begun.
#[derive(Debug)]
pub(super) struct Begun<T>(std::sync::mpsc::Receiver<Result<T, Problem>>);

impl<T> Begun<T> {
    /// Waits for the end.
    pub(super) fn wait(self, server: &Server) -> Result<T, JournalError> {
        let done = self.0.recv().unwrap_or(Err(Problem::Ended));
        done.map_err(|problem| problem.of(&server.address))
    }

    /// Returns the result if the work has ended.
    pub(super) fn ended(&self) -> Option<Result<T, Problem>> {
        match self.0.try_recv() {
            Err(std::sync::mpsc::TryRecvError::Empty) => None,
            Err(std::sync::mpsc::TryRecvError::Disconnected) => Some(Err(Problem::Ended)),
            Ok(done) => Some(done),
        }
    }
}

/// A connection that is made again when it is lost.
#[derive(Debug)]
pub(super) struct Link {
    address: Arc<Address>,
    client: Mutex<Option<Arc<Client>>>,
    /// The epoch of an owner that names its connection in `fed`.
    owner: Option<i64>,
    /// The lease of a node, behind which nothing is tried again.
    tenure: Option<Tenure>,
    /// True while attempts fail, which is logged once.
    fails: AtomicBool,
}

impl Link {
    pub(super) fn new(address: &Arc<Address>) -> Arc<Self> {
        Self::within(address, None, None)
    }

    /// The connection of an owner, in that epoch, for as long as a node has that lease.
    pub(super) fn within(address: &Arc<Address>, owner: Option<i64>, tenure: Option<Tenure>) -> Arc<Self> {
        let (client, fails) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Self { address: address.clone(), client, owner, tenure, fails })
    }

    /// Runs statements until the server has answered them: again after a lost connection, for a minute. `work` gets the
    /// number of the attempt, from 0, and must settle what an earlier one has done.
    pub(super) async fn persist<T>(
        &self,
        work: impl AsyncFn(&Client, u32) -> Result<T, Trouble>,
    ) -> Result<T, Problem> {
        self.attempt(PATIENCE, work).await
    }

    /// Runs statements for a shorter time: for those who wait at a start, and for requests.
    pub(super) async fn briefly<T>(
        &self,
        work: impl AsyncFn(&Client, u32) -> Result<T, Trouble>,
    ) -> Result<T, Problem> {
        self.attempt(FIRST, work).await
    }

    async fn attempt<T>(
        &self,
        patience: Duration,
        work: impl AsyncFn(&Client, u32) -> Result<T, Trouble>,
    ) -> Result<T, Problem> {
        let mut last = "it does not answer".to_owned();
        let attempts = async {
            let (mut attempt, [mut pause, longest]) = (0, PAUSES);
            loop {
                let tried = match self.client().await {
                    Ok(client) => work(&client, attempt).await,
                    Err(trouble) => Err(trouble),
                };
                match tried {
                    Ok(done) => {
                        if self.fails.swap(false, Ordering::Relaxed) {
                            tracing::info!(journal = %self.address, "the database answers again");
                        }
                        return Ok(done);
                    }
                    Err(Trouble::Lasting(problem)) => return Err(problem),
                    Err(Trouble::Passing(cause)) => {
                        if !self.fails.swap(true, Ordering::Relaxed) {
                            tracing::warn!(journal = %self.address, %cause, "the database does not answer; trying again");
                        }
                        last = cause;
                    }
                }
                self.client.lock().await.take();
                tokio::time::sleep(pause).await;
                pause = longest.min(2 * pause);
                attempt += 1;
            }
        };
        let attempts = tokio::time::timeout(patience, attempts);
        let done = match &self.tenure {
            None => attempts.await,
            Some(tenure) => tokio::select! {
                biased;
                () = tenure.ended() => return Err(Problem::NoLease),
                done = attempts => done,
            },
        };
        done.unwrap_or_else(|_| Err(Problem::Unreachable { seconds: patience.as_secs(), cause: last }))
    }

    async fn client(&self) -> Result<Arc<Client>, Trouble> {
        let mut kept = self.client.lock().await;
        if let Some(client) = kept.as_ref().filter(|client| !client.is_closed()) {
            return Ok(client.clone());
        }
        let client = connect(&self.address).await?;
        self.name(&client).await?;
        Ok(kept.insert(Arc::new(client)).clone())
    }

    /// Names the connection of an owner, so that others see whether it is there. A fenced owner names none.
    pub(super) async fn name(&self, client: &Client) -> Result<(), Trouble> {
        let Some(epoch) = self.owner else { return Ok(()) };
        let name = "UPDATE systole.fed SET backend = pg_backend_pid(), \
                    since = (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()) \
                    WHERE part = 0 AND epoch = $1";
        client.query_typed(name, &[(&epoch, Type::INT8)]).await?;
        Ok(())
    }

    /// Takes the name back, before the connection ends.
    pub(super) async fn disown(&self) -> Result<(), Problem> {
        let Some(epoch) = self.owner else { return Ok(()) };
        let disown = "UPDATE systole.fed SET backend = NULL WHERE part = 0 AND epoch = $1";
        self.briefly(async |client, _| Ok(client.query_typed(disown, &[(&epoch, Type::INT8)]).await.map(drop)?)).await
    }
}

/// Connects once.
pub(super) async fn connect(address: &Address) -> Result<Client, Trouble> {
    let config = &address.config;
    let client = if config.get_ssl_mode() == SslMode::Disable {
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        client
    } else {
        let tls = Tls::new(address.roots.as_deref()).map_err(Problem::Tls)?;
        let (client, connection) = config.connect(tls).await?;
        tokio::spawn(connection);
        client
    };
    Ok(client)
}

/// Returns the connection of the owner of a journal, if it is there.
pub(super) async fn owner(client: &Client) -> Result<Option<i32>, Trouble> {
    let find = "SELECT backend FROM systole.fed WHERE part = 0 AND EXISTS \
                (SELECT FROM pg_stat_activity WHERE pid = fed.backend AND backend_start = fed.since)";
    Ok(client.query_typed(find, &[]).await?.first().map(|row| row.get(0)))
}
