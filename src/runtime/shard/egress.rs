//! Egress: the messages that leave a shard for clients.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use systole_core::core::{Directory, Egress, Exit, ExitPlace, Input};
use systole_core::journal::Number;
use systole_core::vocab::{Partition, ThreadId};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::command::{Command, Links};
use super::shared::Shared;

/// The sending end of messages for a client.
pub(crate) type EgressSender = UnboundedSender<Unread>;

/// A message that waits for its client to read it, in its place in the client's exit.
pub struct Unread {
    egress: Egress,
    receipt: Option<Receipt>,
    _place: ExitPlace,
}

/// Marks a message as read in the journal.
struct Receipt {
    number: Number,
    root: ThreadId,
    given: Given,
}

impl Receipt {
    fn read(self, at_once: bool) {
        self.given.held().remove(&self.number);
        self.given.read(self.number, self.root, at_once);
    }
}

/// Messages of the journal that are here: they wait for their clients, clients hold them, or have read them. A client that is
/// killed meanwhile receives such a message again; one whose conversation moves to another core does not.
#[derive(Clone)]
pub(crate) struct Given {
    links: Links,
    directory: Directory,
    held: Arc<Mutex<HashMap<Number, Held>>>,
}

/// The fate of a message that is here.
#[derive(Debug, Clone, Copy)]
enum Held {
    /// It waits for its client.
    Waiting,
    /// The client holds it, and has not finished reading. Its conversation.
    Given(ThreadId),
    /// The client has read it, and the core that would have written so has given its partition up.
    Read,
}

impl Given {
    pub(crate) fn new(links: Links, directory: Directory) -> Self {
        Self { links, directory, held: Arc::default() }
    }

    /// Marks all that clients hold as read, as the organism ends in order.
    pub(crate) fn read_all(&self) {
        let held = std::mem::take(&mut *self.held());
        for (number, held) in held {
            if let Held::Given(root) = held {
                self.read(number, root, true);
            }
        }
    }

    /// Notes a message that a core passes on; `false` if it is here already, as the core has taken its conversation over.
    fn arrives(&self, number: Number, root: ThreadId) -> bool {
        let before = match self.held().entry(number) {
            Entry::Occupied(held) if matches!(held.get(), Held::Read) => Some(held.remove()),
            Entry::Occupied(held) => Some(*held.get()),
            Entry::Vacant(place) => {
                place.insert(Held::Waiting);
                None
            }
        };
        if let Some(Held::Read) = before {
            self.read(number, root, true);
        }
        before.is_none()
    }

    fn read(&self, number: Number, root: ThreadId, at_once: bool) {
        match self.directory.core_of(Partition::of(root)) {
            Some(core) => drop(self.links.send(core, Command::Core(Input::Read { number, at_once }))),
            None => self.not_written(number),
        }
    }

    /// Notes that a message was read, and no core writes so: the next core of its partition does.
    pub(crate) fn not_written(&self, number: Number) {
        self.held().insert(number, Held::Read);
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Number, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unread {
    /// Returns the message.
    pub fn egress(&self) -> &Egress {
        &self.egress
    }

    /// Returns the message, and marks it as read.
    pub fn read(self) -> Egress {
        self.receipt.into_iter().for_each(|receipt| receipt.read(true));
        self.egress
    }

    /// Returns the message, and marks it as read with the next step of its shard: for readers that lose nothing when it
    /// comes again after a crash.
    #[cfg(feature = "gateway")]
    pub(crate) fn read_later(self) -> Egress {
        self.receipt.into_iter().for_each(|receipt| receipt.read(false));
        self.egress
    }

    /// Returns the message, with the receipt that marks it as read.
    fn give(self) -> (Egress, Option<Receipt>) {
        if let Some(Receipt { number, root, given }) = &self.receipt {
            given.held().insert(*number, Held::Given(*root));
        }
        (self.egress, self.receipt)
    }
}

/// The receiving end of messages for a client. A request for the next message marks the one before as read.
pub(crate) struct EgressReceiver {
    arrivals: UnboundedReceiver<Unread>,
    /// The receipt of the last message.
    last: Option<Receipt>,
}

/// Makes a channel from the shards to a client.
pub(crate) fn way() -> (EgressSender, EgressReceiver) {
    let (sender, arrivals) = unbounded_channel();
    (sender, EgressReceiver { arrivals, last: None })
}

impl EgressReceiver {
    /// Receives the next message; `None` when no more can come.
    pub(crate) async fn next(&mut self) -> Option<Egress> {
        let unread = self.next_unread().await?;
        Some(self.give(unread))
    }

    /// Receives the next message without marking it as read: if it is dropped, it comes again after the next start.
    pub(crate) async fn next_unread(&mut self) -> Option<Unread> {
        self.read_last();
        self.arrivals.recv().await
    }

    /// Takes the next message, if there is one.
    pub(crate) fn try_next(&mut self) -> Option<Egress> {
        let unread = self.try_next_unread()?;
        Some(self.give(unread))
    }

    /// Takes the next message, if there is one, without marking it as read.
    pub(crate) fn try_next_unread(&mut self) -> Option<Unread> {
        self.read_last();
        self.arrivals.try_recv().ok()
    }

    fn read_last(&mut self) {
        self.last.take().into_iter().for_each(|receipt| receipt.read(true));
    }

    fn give(&mut self, unread: Unread) -> Egress {
        let (egress, receipt) = unread.give();
        self.last = receipt;
        egress
    }
}

/// Marks the rest as read, since the client has dropped the receiving end.
impl Drop for EgressReceiver {
    fn drop(&mut self) {
        self.arrivals.close();
        while let Some(unread) = self.try_next_unread() {
            unread.read();
        }
    }
}

/// The channel to a client for messages outside of its conversations, and the exit of the client, over all shards. Only
/// shards hold it, so that the client sees their end.
#[derive(Clone)]
pub(crate) struct ClientPort {
    exit: Exit,
    sender: EgressSender,
}

impl ClientPort {
    /// Makes the port of a client, and its receiving end.
    pub(crate) fn new(exit: Exit) -> (Self, EgressReceiver) {
        let (sender, receiver) = way();
        (Self { exit, sender }, receiver)
    }
}

/// The egress of one shard: the sender of each conversation.
pub(crate) struct EgressRouter {
    given: Given,
    ports: Vec<ClientPort>,
    senders: HashMap<ThreadId, EgressSender>,
}

impl EgressRouter {
    pub(crate) fn new(shared: &Shared, ports: Vec<ClientPort>) -> Self {
        Self { given: shared.given.clone(), ports, senders: HashMap::new() }
    }

    /// Adds the ports of clients, whose ids are behind those of the others.
    pub(crate) fn extend(&mut self, ports: Vec<ClientPort>) {
        self.ports.extend(ports);
    }

    /// Sends the messages of a conversation to a sender of their own.
    pub(crate) fn open(&mut self, root: ThreadId, sender: EgressSender) {
        self.senders.insert(root, sender);
    }

    /// Forgets a closed conversation.
    pub(crate) fn close(&mut self, root: ThreadId) {
        self.senders.remove(&root);
    }

    /// Passes a message to its client. The entrance took no more than the exit can hold, so there is room for each.
    pub(crate) fn pass(&self, egress: Egress, place: Option<ExitPlace>) {
        let (number, root) = (egress.number, egress.root);
        if number != 0 && !self.given.arrives(number, root) {
            return;
        }
        let port = &self.ports[egress.client.0 as usize];
        let place = port.exit.fill(place, egress.envelope.len());
        let sender = self.senders.get(&egress.root).unwrap_or(&port.sender);
        let receipt = (number != 0).then(|| Receipt { number, root, given: self.given.clone() });
        if let Err(unsent) = sender.send(Unread { egress, receipt, _place: place }) {
            // The receiver is gone: the client has left.
            unsent.0.read();
        }
    }
}
