//! Looks at what clients send before it is submitted: on a thread of its own, so that no long document holds up a request.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::core::{Client, Foreseen, foresee};
use crate::ladder::Raw;
use crate::schema::Validator;
use crate::shell::Organism;
use crate::vocab::Fault;

/// Judges documents before the pump does.
pub(super) enum Judge {
    /// On a thread of its own.
    Thread(Sender<Case>),
    /// On the thread that asks: on a simulated clock nothing may happen elsewhere.
    Here(Arc<Organism>),
}

/// A document that waits for its judgement.
pub(super) struct Case {
    client: Client,
    bytes: Bytes,
    tell: oneshot::Sender<Result<Foreseen, Fault>>,
}

/// The contracts of an organism, and a validator of its own.
struct Bench {
    organism: Arc<Organism>,
    validator: Validator,
}

impl Bench {
    fn new(organism: Arc<Organism>) -> Self {
        let validator = Validator::new(Arc::new(organism.catalog().clone()));
        Self { organism, validator }
    }

    fn judge(&mut self, client: &Client, bytes: Bytes) -> Result<Foreseen, Fault> {
        foresee(&Raw::new(bytes), client, self.organism.blueprint(), &mut self.validator)
    }
}

impl Judge {
    /// A judge of what comes to an organism.
    pub(super) fn of(organism: Arc<Organism>) -> io::Result<Self> {
        let (sender, cases) = channel::<Case>();
        let vital = organism.vital("gateway-judge");
        let judge = move || {
            // A panic ends the organism.
            let _vital = vital;
            let mut bench = Bench::new(organism);
            while let Ok(Case { client, bytes, tell }) = cases.recv() {
                // The request may have gone.
                let _ = tell.send(bench.judge(&client, bytes));
            }
        };
        std::thread::Builder::new().name("gateway-judge".to_owned()).spawn(judge)?;
        Ok(Self::Thread(sender))
    }

    /// A judge that works where it is asked.
    pub(super) fn here(organism: Arc<Organism>) -> Self {
        Self::Here(organism)
    }

    /// The verdict of the pump, in advance; `None` if the thread has ended.
    pub(super) async fn judge(&self, client: Client, bytes: Bytes) -> Option<Result<Foreseen, Fault>> {
        let sender = match self {
            Self::Thread(sender) => sender,
            Self::Here(organism) => return Some(Bench::new(organism.clone()).judge(&client, bytes)),
        };
        let (tell, told) = oneshot::channel();
        sender.send(Case { client, bytes, tell }).ok()?;
        told.await.ok()
    }
}
