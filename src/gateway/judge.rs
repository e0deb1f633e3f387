//! Looks at what clients send before it is kept: on a thread of its own, so that no long document holds up a request.

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

/// Hands documents to the thread.
pub(super) struct Judge(Sender<Case>);

struct Case {
    client: Client,
    bytes: Bytes,
    tell: oneshot::Sender<Result<Foreseen, Fault>>,
}

impl Judge {
    /// A judge of what comes to an organism.
    pub(super) fn of(organism: Arc<Organism>) -> io::Result<Self> {
        let (sender, cases) = channel::<Case>();
        let vital = organism.vital("gateway-judge");
        let judge = move || {
            // A panic ends the organism.
            let _vital = vital;
            let mut validator = Validator::new(Arc::new(organism.catalog().clone()));
            while let Ok(Case { client, bytes, tell }) = cases.recv() {
                // Whoever asked may have gone.
                let _ = tell.send(foresee(&Raw::new(bytes), &client, organism.blueprint(), &mut validator));
            }
        };
        std::thread::Builder::new().name("gateway-judge".to_owned()).spawn(judge)?;
        Ok(Self(sender))
    }

    /// What the pump would say; `None` if the thread has ended.
    pub(super) async fn judge(&self, client: Client, bytes: Bytes) -> Option<Result<Foreseen, Fault>> {
        let (tell, told) = oneshot::channel();
        self.0.send(Case { client, bytes, tell }).ok()?;
        told.await.ok()
    }
}
