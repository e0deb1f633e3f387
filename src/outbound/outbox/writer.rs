//! The writer of the outbox.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use systole_core::vocab::{MessageId, Name, Time};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{End, Outbox};
use crate::outbound::error::{DeliveryOutcome, OutboxError};
use crate::outbound::store::{Begun, DeliveryStore, Job, Stored};
use crate::runtime::sqlite::FileProblem;

/// Most orders that wait, and that one transaction holds.
const BATCH: usize = 64;

/// Runs work on the outbox, off the threads of the runtime.
///
/// Work that waits is done together, in one transaction; each caller gets its result when that is written. After an
/// error nothing more is accepted.
#[derive(Debug, Clone)]
pub(in crate::outbound) struct OutboxWriter {
    orders: mpsc::Sender<Order>,
    failed: Arc<OnceLock<OutboxError>>,
}

enum Order {
    Work(Work),
    Close,
}

/// Work on the outbox; its result runs once the transaction is written.
type Work = Box<dyn FnOnce(&mut Outbox) -> Result<Tell, FileProblem> + Send>;
type Tell = Box<dyn FnOnce() + Send>;

impl OutboxWriter {
    /// Starts on the current runtime. The writer ends when it is closed, or when its last clone is dropped.
    pub(in crate::outbound) fn start(outbox: Outbox) -> (Self, JoinHandle<()>) {
        let (orders, inbox) = mpsc::channel(BATCH);
        let failed = Arc::new(OnceLock::new());
        let task = tokio::spawn(keep(outbox, inbox, failed.clone()));
        (Self { orders, failed }, task)
    }

    /// Runs work on the outbox; its result comes when it is written.
    ///
    /// # Cancel safety
    /// The work is done even if the future is dropped.
    pub(in crate::outbound) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Outbox) -> Result<T, FileProblem> + Send + 'static,
    ) -> Result<T, OutboxError> {
        let (tell, told) = oneshot::channel();
        let work: Work = Box::new(move |outbox| {
            let done = work(outbox)?;
            // The caller may be gone.
            Ok(Box::new(move || drop(tell.send(done))))
        });
        self.orders.send(Order::Work(work)).await.map_err(|_| self.end())?;
        match told.await {
            Ok(done) => Ok(done),
            Err(_) => {
                // The reason is known once nothing more is accepted.
                self.orders.closed().await;
                Err(self.end())
            }
        }
    }

    /// Closes the outbox after the orders before.
    pub(in crate::outbound) async fn close(&self) {
        // The writer may have ended already.
        let _ = self.orders.send(Order::Close).await;
    }

    fn end(&self) -> OutboxError {
        self.failed.get().cloned().unwrap_or(OutboxError::Closed)
    }
}

impl DeliveryStore for OutboxWriter {
    fn head(&self, target: Name) -> Stored<'_, Option<Job>> {
        Box::pin(self.run(move |outbox| outbox.head(&target)))
    }

    fn begin(&self, id: MessageId, attempts: u32, spent: Duration) -> Stored<'_, Option<Begun>> {
        Box::pin(self.run(move |outbox| Ok(outbox.begin(id, attempts, spent)?.then(Begun::default))))
    }

    fn back_off(&self, id: MessageId, until: Time, error: String, spent: Duration) -> Stored<'_, bool> {
        Box::pin(self.run(move |outbox| outbox.back_off(id, until, &error, spent)))
    }

    fn settle(
        &self,
        id: MessageId,
        outcome: DeliveryOutcome,
        spent: Duration,
        now: Time,
        told: bool,
    ) -> Stored<'_, bool> {
        Box::pin(self.run(move |outbox| outbox.settle(id, &End { outcome: &outcome, spent, now, told })))
    }
}

async fn keep(mut outbox: Outbox, mut inbox: mpsc::Receiver<Order>, failed: Arc<OnceLock<OutboxError>>) {
    let file = outbox.file().to_owned();
    let mut open = true;
    while open {
        let mut orders = Vec::new();
        if inbox.recv_many(&mut orders, BATCH).await == 0 {
            break;
        }
        let works = orders.into_iter().map_while(|order| match order {
            Order::Work(work) => Some(work),
            Order::Close => {
                open = false;
                None
            }
        });
        let works: Vec<Work> = works.collect();
        // A blocking task keeps a simulated clock from running ahead of the writes.
        let done = tokio::task::spawn_blocking(move || (write(&mut outbox, works), outbox)).await;
        match done {
            Ok((Ok(()), back)) => outbox = back,
            Ok((Err(problem), _)) => return fail(&failed, file, problem),
            Err(panic) => return fail(&failed, file, FileProblem::Failed(panic.to_string())),
        }
    }
}

/// Runs all work in one transaction; returns the notifications of the callers.
fn write(outbox: &mut Outbox, works: Vec<Work>) -> Result<(), FileProblem> {
    let tells =
        outbox.transaction(|outbox| works.into_iter().map(|work| work(outbox)).collect::<Result<Vec<_>, _>>())?;
    tells.into_iter().for_each(|tell| tell());
    Ok(())
}

fn fail(failed: &OnceLock<OutboxError>, file: PathBuf, problem: FileProblem) {
    let error = OutboxError::Store { file, problem: Arc::new(problem) };
    tracing::error!(%error, "the outbox can't be written: nothing more is sent");
    // No other task sets it.
    let _ = failed.set(error);
}

#[cfg(test)]
mod tests {
    use systole_core::vocab::Time;

    use super::*;
    use crate::runtime::sqlite::{Durability, Retention};

    #[tokio::test]
    async fn after_an_error_nothing_more_is_taken_and_everybody_hears_why() {
        let file = std::env::temp_dir().join(format!("systole-test-{}-outbox", std::process::id()));
        let outbox = Outbox::open(&file, Durability::Process, Retention::default(), Time::default()).unwrap();
        let (writer, task) = OutboxWriter::start(outbox);
        assert_eq!(writer.run(|outbox| outbox.untold(0)).await.unwrap(), None);
        let (failed, beside) =
            tokio::join!(writer.run(|_| Err::<(), _>(FileProblem::Full)), writer.run(|outbox| outbox.untold(0)),);
        for error in [failed.unwrap_err(), beside.unwrap_err(), writer.run(|_| Ok(())).await.unwrap_err()] {
            assert!(error.to_string().contains("the disk is full"), "{error}");
        }
        task.await.unwrap();
        std::fs::remove_file(file).unwrap();
    }
}
