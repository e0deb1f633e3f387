use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use systole_core::vocab::{MessageId, Name, Time};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{End, Outbox};
use crate::outbound::error::{OutboxError, Outcome};
use crate::outbound::store::{DeliveryStore, Job, Stored};
use crate::shell::sqlite::Problem;

/// At most so many orders wait, and are one transaction.
const BATCH: usize = 64;

/// Gives work to the outbox, off the threads of the runtime.
///
/// What waits is done together, in one transaction; whoever asked is told when that is written. After an error nothing
/// more is taken.
#[derive(Debug, Clone)]
pub(in crate::outbound) struct Keeper {
    orders: mpsc::Sender<Order>,
    failed: Arc<OnceLock<OutboxError>>,
}

enum Order {
    Work(Work),
    Close,
}

/// Does something, and says what is to be done when it is written.
type Work = Box<dyn FnOnce(&mut Outbox) -> Result<Tell, Problem> + Send>;
type Tell = Box<dyn FnOnce() + Send>;

impl Keeper {
    /// Starts on the runtime that this is called in. It ends when it is closed, or when its last clone is gone.
    pub(in crate::outbound) fn start(outbox: Outbox) -> (Self, JoinHandle<()>) {
        let (orders, inbox) = mpsc::channel(BATCH);
        let failed = Arc::new(OnceLock::new());
        let task = tokio::spawn(keep(outbox, inbox, failed.clone()));
        (Self { orders, failed }, task)
    }

    /// Does something with the outbox; what it returns comes when it is written.
    ///
    /// # Cancel safety
    /// It is done even if nobody waits for it any more.
    pub(in crate::outbound) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Outbox) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, OutboxError> {
        let (tell, told) = oneshot::channel();
        let work: Work = Box::new(move |outbox| {
            let done = work(outbox)?;
            // Nobody may wait for it any more.
            Ok(Box::new(move || drop(tell.send(done))))
        });
        self.orders.send(Order::Work(work)).await.map_err(|_| self.end())?;
        match told.await {
            Ok(done) => Ok(done),
            Err(_) => {
                // Why is known when nothing more is taken.
                self.orders.closed().await;
                Err(self.end())
            }
        }
    }

    /// Closes the outbox behind what was asked before.
    pub(in crate::outbound) async fn close(&self) {
        // It may have ended already.
        let _ = self.orders.send(Order::Close).await;
    }

    fn end(&self) -> OutboxError {
        self.failed.get().cloned().unwrap_or(OutboxError::Closed)
    }
}

impl DeliveryStore for Keeper {
    fn head(&self, target: Name) -> Stored<'_, Option<Job>> {
        Box::pin(self.run(move |outbox| outbox.head(&target)))
    }

    fn begin(&self, id: MessageId, attempts: u32, spent: Duration) -> Stored<'_, bool> {
        Box::pin(self.run(move |outbox| outbox.begin(id, attempts, spent)))
    }

    fn back_off(&self, id: MessageId, until: Time, error: String, spent: Duration) -> Stored<'_, bool> {
        Box::pin(self.run(move |outbox| outbox.back_off(id, until, &error, spent)))
    }

    fn settle(&self, id: MessageId, outcome: Outcome, spent: Duration, now: Time, told: bool) -> Stored<'_, bool> {
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
        // A blocking task keeps a simulated clock from running ahead of what is written.
        let done = tokio::task::spawn_blocking(move || (write(&mut outbox, works), outbox)).await;
        match done {
            Ok((Ok(()), back)) => outbox = back,
            Ok((Err(problem), _)) => return fail(&failed, file, problem),
            Err(panic) => return fail(&failed, file, Problem::Failed(panic.to_string())),
        }
    }
}

/// All in one transaction; who asked is told behind it.
fn write(outbox: &mut Outbox, works: Vec<Work>) -> Result<(), Problem> {
    let tells =
        outbox.transaction(|outbox| works.into_iter().map(|work| work(outbox)).collect::<Result<Vec<_>, _>>())?;
    tells.into_iter().for_each(|tell| tell());
    Ok(())
}

fn fail(failed: &OnceLock<OutboxError>, file: PathBuf, problem: Problem) {
    let error = OutboxError::Store { file, problem: Arc::new(problem) };
    tracing::error!(%error, "the outbox can't be written: nothing more is sent");
    // Nobody else sets it.
    let _ = failed.set(error);
}

#[cfg(test)]
mod tests {
    use systole_core::vocab::Time;

    use super::*;
    use crate::shell::sqlite::{Durability, Retention};

    #[tokio::test]
    async fn after_an_error_nothing_more_is_taken_and_everybody_hears_why() {
        let file = std::env::temp_dir().join(format!("systole-test-{}-outbox", std::process::id()));
        let outbox = Outbox::open(&file, Durability::Process, Retention::default(), Time::default()).unwrap();
        let (keeper, task) = Keeper::start(outbox);
        assert_eq!(keeper.run(|outbox| outbox.untold(0)).await.unwrap(), None);
        let (failed, beside) =
            tokio::join!(keeper.run(|_| Err::<(), _>(Problem::Full)), keeper.run(|outbox| outbox.untold(0)),);
        for error in [failed.unwrap_err(), beside.unwrap_err(), keeper.run(|_| Ok(())).await.unwrap_err()] {
            assert!(error.to_string().contains("the disk is full"), "{error}");
        }
        task.await.unwrap();
        std::fs::remove_file(file).unwrap();
    }
}
