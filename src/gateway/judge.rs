//! Precheck of the messages of clients before they are submitted, and of the answers of remote listeners before they
//! end a message. A long document is judged on a thread of its own, so that it holds up no other request.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use bytes::Bytes;
use systole_core::core::{
    Answered, Blueprint, ClientId, ListenerId, Party, ReadAnswer, ReadMessage, precheck, precheck_answer,
};
use systole_core::vocab::{Fault, Name};
use systole_xml::ladder::Raw;
use systole_xml::schema::Validator;
use tokio::sync::oneshot;

use crate::runtime::Organism;

/// Largest document, in bytes, that is judged on the calling thread: that takes less than the way to another thread.
const SHORT: usize = 16 << 10;

/// Prechecks documents.
pub(super) struct Judge {
    organism: Arc<Organism>,
    /// Validators that are not in use.
    idle: Mutex<Vec<Validator>>,
    /// The thread for long documents; none on a simulated clock, where nothing may run on another thread.
    thread: Option<Sender<Case>>,
}

/// A document that waits for its judgement.
type Case = Box<dyn FnOnce(&Blueprint, &mut Validator) + Send>;

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judge").finish_non_exhaustive()
    }
}

impl Judge {
    /// Makes a judge of the documents of an organism, with a thread for long ones.
    pub(super) fn of(organism: Arc<Organism>) -> io::Result<Self> {
        let (sender, cases) = channel::<Case>();
        let vital = organism.critical_thread("gateway-judge");
        let mut validator = validator(&organism);
        let judges = organism.clone();
        let judge = move || {
            // A panic ends the organism.
            let _vital = vital;
            while let Ok(case) = cases.recv() {
                case(judges.blueprint(), &mut validator);
            }
        };
        std::thread::Builder::new().name("gateway-judge".to_owned()).spawn(judge)?;
        Ok(Self { thread: Some(sender), ..Self::here(organism) })
    }

    /// Makes a judge that works on the calling thread.
    pub(super) fn here(organism: Arc<Organism>) -> Self {
        Self { organism, idle: Mutex::default(), thread: None }
    }

    /// The verdict of the pump on a message of a client, in advance; `None` if the thread has ended.
    pub(super) async fn message(&self, client: ClientId, bytes: Bytes) -> Option<Result<ReadMessage, Fault>> {
        let size = bytes.len();
        let look = move |blueprint: &Blueprint, validator: &mut Validator| {
            precheck(&Raw::new(bytes), client, blueprint, validator)
        };
        self.look(size, look).await
    }

    /// The listener of a name.
    pub(super) fn listener(&self, name: &Name) -> Option<ListenerId> {
        match self.organism.blueprint().party(name.as_str()) {
            Some(Party::Listener(listener)) => Some(listener),
            Some(Party::Client(_)) | None => None,
        }
    }

    /// The verdict of the pump on a listener's answer to a message, in advance; `None` if the thread has ended.
    pub(super) async fn answer(
        &self,
        listener: ListenerId,
        to: Answered,
        bytes: Bytes,
    ) -> Option<Result<ReadAnswer, Fault>> {
        let size = bytes.len();
        let look = move |blueprint: &Blueprint, validator: &mut Validator| {
            precheck_answer(Raw::new(bytes), to, listener, blueprint, validator).map(|checked| checked.read)
        };
        self.look(size, look).await
    }

    async fn look<T: Send + 'static>(
        &self,
        size: usize,
        look: impl FnOnce(&Blueprint, &mut Validator) -> T + Send + 'static,
    ) -> Option<T> {
        let Some(thread) = self.thread.as_ref().filter(|_| size > SHORT) else {
            let mut validator = self.idle().pop().unwrap_or_else(|| validator(&self.organism));
            let verdict = look(self.organism.blueprint(), &mut validator);
            self.idle().push(validator);
            return Some(verdict);
        };
        let (tell, told) = oneshot::channel();
        let case = move |blueprint: &Blueprint, validator: &mut Validator| {
            // The request may have been dropped.
            let _ = tell.send(look(blueprint, validator));
        };
        thread.send(Box::new(case)).ok()?;
        told.await.ok()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Validator>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn validator(organism: &Organism) -> Validator {
    Validator::new(Arc::new(organism.catalog().clone()))
}
