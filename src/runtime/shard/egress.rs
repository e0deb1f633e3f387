//! Egress: the messages that leave a shard for clients.

use std::collections::HashMap;
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
        self.given.open().remove(&self.number);
        self.given.read(self.number, self.root, at_once);
    }
}

/// Messages that clients hold and have not finished reading. A client that is killed meanwhile receives such a message
/// again.
#[derive(Clone)]
pub(crate) struct Given {
    links: Links,
    directory: Directory,
    open: Arc<Mutex<HashMap<Number, ThreadId>>>,
}

impl Given {
    pub(crate) fn new(links: Links, directory: Directory) -> Self {
        Self { links, directory, open: Arc::default() }
    }

    /// Marks all of them as read, as the organism ends in order.
    pub(crate) fn read_all(&self) {
        let open = std::mem::take(&mut *self.open());
        open.into_iter().for_each(|(number, root)| self.read(number, root, true));
    }

    fn read(&self, number: Number, root: ThreadId, at_once: bool) {
        // Without a core, or once its shard has ended, the message stays unread and comes again with the next one.
        if let Some(core) = self.directory.core_of(Partition::of(root)) {
            self.links.send(core, Command::Core(Input::Read { number, at_once }));
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Number, ThreadId>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
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
            given.open().insert(*number, *root);
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
        let port = &self.ports[egress.client.0 as usize];
        let place = port.exit.fill(place, egress.envelope.len());
        let sender = self.senders.get(&egress.root).unwrap_or(&port.sender);
        let (number, root) = (egress.number, egress.root);
        let receipt = (number != 0).then(|| Receipt { number, root, given: self.given.clone() });
        if let Err(unsent) = sender.send(Unread { egress, receipt, _place: place }) {
            // The receiver is gone: the client has left.
            unsent.0.read();
        }
    }
}
