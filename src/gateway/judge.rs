//! Precheck of the messages of clients before they are submitted, and of the answers of remote listeners before they
//! end a message. A long document is judged on a thread of its own, so that it holds up no other request; principals take
//! turns there.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use bytes::{Bytes, BytesMut};
use systole_core::core::{
    Answered, Blueprint, ClientId, ListenerId, Misroute, OrganismVersion, Party, ReadAnswer, ReadMessage, Unreadable,
    Version, precheck, precheck_answer, precheck_read, precheck_valid,
};
use systole_core::vocab::{Fault, MessageId, Name, QName, ns};
use systole_xml::ladder::Raw;
#[cfg(feature = "mcp")]
use systole_xml::schema::PayloadSchema;
use systole_xml::schema::{JsonRefusal, Validator};
use tokio::sync::oneshot;

use super::service::MailboxService;
use crate::runtime::Organism;

/// Largest document, in bytes, that is judged on the calling thread: that takes less than the way to another thread.
const SHORT: usize = 16 << 10;

/// Prechecks documents.
pub(super) struct Judge {
    organism: Arc<Organism>,
    /// Validators that are not in use.
    idle: Mutex<Vec<Validators>>,
    /// The thread for long documents; none on a simulated clock, where nothing may run on another thread.
    thread: Option<Closing>,
}

/// A document that waits for its judgement.
type Case = Box<dyn FnOnce(&mut Validators) + Send>;

/// The validators of the versions of the organism that documents were judged by last.
#[derive(Default)]
struct Validators(Vec<(Version, Validator)>);

impl Validators {
    /// The most versions that are kept.
    const MOST: usize = 2;

    fn of(&mut self, version: &OrganismVersion) -> &mut Validator {
        let number = version.blueprint.version();
        if let Some(at) = self.0.iter().position(|(known, _)| *known == number) {
            return &mut self.0[at].1;
        }
        self.0.truncate(Self::MOST - 1);
        self.0.insert(0, (number, Validator::new(version.catalog.clone())));
        &mut self.0[0].1
    }
}

/// Documents that wait for the thread: a line for each principal that has some, first in, first out. Each turn takes one
/// document of the first line, which then goes behind the others.
#[derive(Default)]
struct Docket {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: VecDeque<(Party, VecDeque<Case>)>,
    /// True once no thread judges any more, or no document comes.
    closed: bool,
}

impl Docket {
    /// Adds a document of a principal; drops it if no thread judges it any more.
    fn push(&self, of: Party, case: Case) {
        let mut waiting = self.waiting();
        if waiting.closed {
            return;
        }
        match waiting.lines.iter_mut().find(|(party, _)| *party == of) {
            Some((_, line)) => line.push_back(case),
            None => waiting.lines.push_back((of, VecDeque::from([case]))),
        }
        self.changed.notify_one();
    }

    /// Waits for the next document; `None` once none comes.
    fn next(&self) -> Option<Case> {
        let idle = |waiting: &mut Waiting| waiting.lines.is_empty() && !waiting.closed;
        let waiting = self.changed.wait_while(self.waiting(), idle);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        let (of, mut line) = waiting.lines.pop_front()?;
        let case = line.pop_front();
        if !line.is_empty() {
            waiting.lines.push_back((of, line));
        }
        case
    }

    /// Drops the documents that wait, and those that come.
    fn close(&self) {
        let mut waiting = self.waiting();
        waiting.closed = true;
        let lines = std::mem::take(&mut waiting.lines);
        drop(waiting);
        drop(lines);
        self.changed.notify_one();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes a docket at its end: that of the judge, or of the thread.
struct Closing(Arc<Docket>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judge").finish_non_exhaustive()
    }
}

impl Judge {
    /// Makes a judge of the documents of an organism, with a thread for long ones.
    pub(super) fn of(organism: Arc<Organism>) -> io::Result<Self> {
        let docket = Arc::<Docket>::default();
        let vital = organism.critical_thread("gateway-judge");
        let cases = Closing(docket.clone());
        let judge = move || {
            // A panic ends the organism.
            let (_vital, mut validators) = (vital, Validators::default());
            while let Some(case) = cases.0.next() {
                case(&mut validators);
            }
        };
        std::thread::Builder::new().name("gateway-judge".to_owned()).spawn(judge)?;
        Ok(Self { thread: Some(Closing(docket)), ..Self::here(organism) })
    }

    /// Makes a judge that works on the calling thread.
    pub(super) fn here(organism: Arc<Organism>) -> Self {
        Self { organism, idle: Mutex::default(), thread: None }
    }

    /// The verdict of the pump on a message of a client, in advance; `None` if the thread has ended.
    pub(super) async fn message(&self, client: ClientId, bytes: Bytes) -> Option<Result<ReadMessage, Fault>> {
        let size = bytes.len();
        let look = move |blueprint: &Blueprint, validator: &mut Validator| {
            fault(precheck(&Raw::new(bytes), client, blueprint, validator), client, blueprint)
        };
        self.look(Party::Client(client), size, look).await
    }

    /// The same for a payload that a client sends as JSON, which names it.
    pub(super) async fn json(
        &self,
        client: ClientId,
        bytes: Bytes,
    ) -> Option<Result<Result<ReadMessage, Fault>, JsonRefusal>> {
        let size = bytes.len();
        let look = move |blueprint: &Blueprint, validator: &mut Validator| {
            let calls = blueprint.calls(Party::Client(client));
            let may_be = |name: &QName| calls.contains(name) || name.namespace() == ns::META;
            let payload = validator.payload_of_json(&bytes, may_be, &blueprint.limits.xml)?;
            Ok(fault(precheck_valid(payload, None, client, blueprint, validator), client, blueprint))
        };
        self.look(Party::Client(client), size, look).await
    }

    /// The same for a payload that a client sends to a listener as the JSON object behind its name.
    #[cfg(feature = "mcp")]
    pub(super) async fn object(
        &self,
        client: ClientId,
        to: &Name,
        schema: &PayloadSchema,
        bytes: Bytes,
    ) -> Option<Result<Result<ReadMessage, Fault>, JsonRefusal>> {
        let (size, to, schema) = (bytes.len(), to.clone(), schema.clone());
        let look = move |blueprint: &Blueprint, validator: &mut Validator| {
            let payload = validator.payload_of_object(&bytes, &schema, &blueprint.limits.xml)?;
            Ok(fault(precheck_valid(payload, Some(&to), client, blueprint, validator), client, blueprint))
        };
        self.look(Party::Client(client), size, look).await
    }

    /// The listener that answers a message of a mailbox: that of its handler, or the present one of that name.
    pub(super) fn listener(&self, mailboxes: &MailboxService, message: MessageId, name: &Name) -> Option<ListenerId> {
        mailboxes.listener_of(message).or_else(|| self.listener_named(name))
    }

    fn listener_named(&self, name: &Name) -> Option<ListenerId> {
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
        self.look(Party::Listener(listener), size, look).await
    }

    /// The same for payloads that a listener sends as JSON: one that names itself, or an array of such.
    pub(super) async fn answer_json(
        &self,
        listener: ListenerId,
        to: Answered,
        bytes: Bytes,
    ) -> Option<Result<Result<ReadAnswer, Fault>, JsonRefusal>> {
        let size = bytes.len();
        let look = move |blueprint: &Blueprint, validator: &mut Validator| {
            let contract = &blueprint[listener];
            let may_be = |name: &QName| contract.replies.contains(name) || contract.calls.contains(name);
            let payloads = validator.payloads_of_json(&bytes, may_be, &blueprint.limits.xml)?;
            let mut xml = BytesMut::new();
            payloads.iter().for_each(|payload| xml.extend_from_slice(payload.payload().bytes()));
            let read = ReadAnswer::of_valid(Raw::new(xml.freeze()), payloads);
            Ok(precheck_read(read, to, listener, blueprint, validator).map(|checked| checked.read))
        };
        self.look(Party::Listener(listener), size, look).await
    }

    async fn look<T: Send + 'static>(
        &self,
        of: Party,
        size: usize,
        look: impl FnOnce(&Blueprint, &mut Validator) -> T + Send + 'static,
    ) -> Option<T> {
        let version = match of {
            Party::Client(_) => self.organism.shared.present(),
            Party::Listener(listener) => self.organism.shared.version_of(listener),
        };
        let Some(thread) = self.thread.as_ref().filter(|_| size > SHORT) else {
            let mut validators = self.idle().pop().unwrap_or_default();
            let verdict = look(&version.blueprint, validators.of(&version));
            self.idle().push(validators);
            return Some(verdict);
        };
        let (tell, told) = oneshot::channel();
        let case = move |validators: &mut Validators| {
            // The request may have been dropped.
            let _ = tell.send(look(&version.blueprint, validators.of(&version)));
        };
        thread.0.push(of, Box::new(case));
        told.await.ok()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Validators>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fault for the sender of a message that is refused; operators read in the log what no sender learns.
fn fault<T>(read: Result<T, Unreadable>, client: ClientId, blueprint: &Blueprint) -> Result<T, Fault> {
    read.map_err(|Unreadable { fault, misroute, .. }| {
        if let Some(misroute) = misroute.filter(Misroute::is_denied) {
            tracing::warn!(client = %blueprint[client].name, denied = true, %misroute, "a message was refused");
        }
        fault
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principals_take_turns_with_their_long_documents() {
        let docket = Docket::default();
        let judged = Arc::<Mutex<Vec<(u32, u32)>>>::default();
        let push = |client, number| {
            let judged = judged.clone();
            let case = move |_: &mut Validators| judged.lock().unwrap().push((client, number));
            docket.push(Party::Client(ClientId(client)), Box::new(case));
        };
        (0..3).for_each(|number| push(0, number));
        push(1, 0);
        let mut validators = Validators::default();
        let mut judge = || docket.next().map(|case| case(&mut validators));
        judge();
        push(2, 0);
        push(1, 1);
        (0..5).for_each(|_| assert!(judge().is_some()));
        assert_eq!(*judged.lock().unwrap(), [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]);
        push(0, 3);
        docket.close();
        push(0, 4);
        assert!(judge().is_none(), "what waits is dropped");
    }
}
