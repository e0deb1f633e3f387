//! The values that a core is made from.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use systole_xml::schema::{Catalog, DecodeFn};

use super::blueprint::{Blueprint, ListenerId};
use super::books::Books;
use super::clock::Clock;
use super::directory::Directory;
use super::gauge::Gauge;
use super::io::CoreId;
use super::outputs::Outputs;
use super::queued::Sender;
use crate::vocab::{IdKey, Name, Partition, Partitions, QName, Time};

/// The values that a core is made from.
pub struct CoreConfig {
    /// The address of the core.
    pub core: CoreId,
    /// The number of cores that the organism starts with, at least 1. The home of listener n is core n modulo this.
    pub cores: u16,
    /// The partitions whose conversations it serves.
    pub partitions: Partitions,
    /// The listeners and clients.
    pub blueprint: Arc<Blueprint>,
    /// The schemas of all payloads.
    pub catalog: Arc<Catalog>,
    /// The decoders of payloads, by listener.
    pub decoders: Arc<Decoders>,
    /// The secret of derived ids.
    pub key: IdKey,
    /// The messages that wait in all cores.
    pub gauge: Gauge,
    /// The cores of conversations, and the number of threads in all cores.
    pub directory: Directory,
    /// States whether operators get events.
    pub events: bool,
    /// The start of the organism, for `<boot>`.
    pub started: Time,
    /// The epoch of its records, where the organism is durable: then [`Output::Append`](super::Output::Append) has the
    /// operations to write, and the outputs of a step wait until those are durable.
    pub epoch: Option<u32>,
}

/// The decoder of each payload that a listener takes; by listener, so that a look-up makes no key.
#[derive(Clone, Default)]
pub struct Decoders(Vec<HashMap<QName, DecodeFn>>);

/// The values that each step reads and writes, whatever it is about: the time, the books and the outputs. They pass through
/// all parts as one parameter. This is no part: it keeps no invariant beside those of its fields.
pub(super) struct StepContext {
    pub clock: Clock,
    pub books: Books,
    pub out: Outputs,
}

/// The values of [`CoreConfig`] that never change and that several parts read.
pub(super) struct Setup {
    pub core: CoreId,
    /// The number of cores that the organism starts with, at least 1.
    pub cores: u16,
    pub partitions: Partitions,
    pub blueprint: Arc<Blueprint>,
    /// The secret of derived ids.
    pub key: IdKey,
    /// The start of the organism.
    pub started: Time,
}

impl Decoders {
    /// Sets the decoder of a payload for a listener.
    pub fn insert(&mut self, listener: ListenerId, payload: QName, decode: DecodeFn) {
        let listener = listener.0 as usize;
        if self.0.len() <= listener {
            self.0.resize_with(listener + 1, HashMap::new);
        }
        self.0[listener].insert(payload, decode);
    }

    pub(super) fn get(&self, listener: ListenerId, payload: &QName) -> Option<&DecodeFn> {
        self.0.get(listener.0 as usize)?.get(payload)
    }
}

impl Setup {
    /// The first partition of the core, for what belongs to no conversation.
    pub(super) fn first_partition(&self) -> Partition {
        self.partitions.iter().next().unwrap_or(Partition::BOOT)
    }

    /// The name of a sender, as the pump stamps it.
    pub(super) fn name_of(&self, sender: Sender) -> Name {
        match sender {
            Sender::Listener(id) => self.blueprint.contract(id).name.clone(),
            Sender::Client(id) => self.blueprint.principal(id).name.clone(),
            Sender::Core => Name::core(),
            Sender::System => Name::system(),
        }
    }
}
