//! The values that a core is made from.

use std::sync::Arc;

use systole_xml::schema::Catalog;

use super::blueprint::Blueprint;
use super::books::Books;
use super::clock::Clock;
use super::directory::Directory;
use super::gauge::Gauge;
use super::io::CoreId;
use super::judge::Decoders;
use super::outputs::Outputs;
use super::queued::Sender;
use crate::vocab::{IdKey, Name, Partition, Partitions, Time};

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

/// The values that each step reads and writes, whatever it is about: the time, the books and the outputs. They go
/// through the core as one parameter, which keeps no invariant beside those of its fields.
pub(super) struct StepContext {
    pub clock: Clock,
    pub books: Books,
    pub out: Outputs,
}

/// The values of [`CoreConfig`] that no step changes. A later version of the organism makes another one.
pub(super) struct Setup {
    pub core: CoreId,
    /// The number of cores that the organism starts with, at least 1.
    pub cores: u16,
    pub partitions: Partitions,
    /// The newest version. It knows the listeners and clients of the earlier ones by their ids, which open conversations keep.
    pub blueprint: Arc<Blueprint>,
    /// The secret of derived ids.
    pub key: IdKey,
    /// The start of the organism.
    pub started: Time,
}

impl Setup {
    /// The first partition of the core, for what belongs to no conversation.
    pub(super) fn first_partition(&self) -> Partition {
        self.partitions.iter().next().unwrap_or(Partition::BOOT)
    }

    /// The name of a sender, as the pump stamps it.
    pub(super) fn name_of(&self, sender: Sender) -> Name {
        match sender {
            Sender::Listener(id) => self.blueprint[id].name.clone(),
            Sender::Client(id) => self.blueprint[id].name.clone(),
            Sender::Core => Name::core(),
            Sender::System => Name::system(),
        }
    }
}
