//! Looks at what clients send before it is submitted. A long document is judged on a thread of its own, so that it holds
//! up no other request.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::core::{Client, Foreseen, foresee};
use crate::ladder::Raw;
use crate::schema::Validator;
use crate::shell::Organism;
use crate::vocab::Fault;

/// Documents of so many bytes are judged on the thread that asks: that takes less than the way to another one.
const SHORT: usize = 16 << 10;

/// Judges documents before the pump does.
pub(super) struct Judge {
    organism: Arc<Organism>,
    /// Validators that nobody uses.
    idle: Mutex<Vec<Validator>>,
    /// The thread for long documents; none on a simulated clock, where nothing may happen elsewhere.
    thread: Option<Sender<Case>>,
}

/// A document that waits for its judgement.
pub(super) struct Case {
    client: Client,
    bytes: Bytes,
    tell: oneshot::Sender<Result<Foreseen, Fault>>,
}

impl Judge {
    /// A judge of what comes to an organism.
    pub(super) fn of(organism: Arc<Organism>) -> io::Result<Self> {
        let (sender, cases) = channel::<Case>();
        let vital = organism.vital("gateway-judge");
        let mut validator = validator(&organism);
        let judges = organism.clone();
        let judge = move || {
            // A panic ends the organism.
            let _vital = vital;
            while let Ok(Case { client, bytes, tell }) = cases.recv() {
                // The request may have gone.
                let _ = tell.send(foresee(&Raw::new(bytes), &client, judges.blueprint(), &mut validator));
            }
        };
        std::thread::Builder::new().name("gateway-judge".to_owned()).spawn(judge)?;
        Ok(Self { thread: Some(sender), ..Self::here(organism) })
    }

    /// A judge that works where it is asked.
    pub(super) fn here(organism: Arc<Organism>) -> Self {
        Self { organism, idle: Mutex::default(), thread: None }
    }

    /// The verdict of the pump, in advance; `None` if the thread has ended.
    pub(super) async fn judge(&self, client: Client, bytes: Bytes) -> Option<Result<Foreseen, Fault>> {
        let Some(thread) = self.thread.as_ref().filter(|_| bytes.len() > SHORT) else {
            let mut validator = self.idle().pop().unwrap_or_else(|| validator(&self.organism));
            let verdict = foresee(&Raw::new(bytes), &client, self.organism.blueprint(), &mut validator);
            self.idle().push(validator);
            return Some(verdict);
        };
        let (tell, told) = oneshot::channel();
        thread.send(Case { client, bytes, tell }).ok()?;
        told.await.ok()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Validator>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn validator(organism: &Organism) -> Validator {
    Validator::new(Arc::new(organism.catalog().clone()))
}
