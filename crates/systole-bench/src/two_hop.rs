//! Cases (a), (b) and (k): a client asks the front, which asks the back; the answer comes back through both. Every message
//! is decoded and encoded on each hop.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use actix::{Actor, Context, Handler};
use systole::journal::{Durability, Retention};
use systole::runtime::{Delivery, Organism, OrganismBuilder, Response, call_to, reply_any};
use systole_core::core::Routing;

use super::latency::Latencies;
use super::load::{Load, LoadError, Pump, Scale};
use super::messages::Sample;

/// A load of conversations through two listeners, `window` of them at a time.
pub(super) struct TwoHop<T> {
    pump: Pump,
    count: u64,
    window: usize,
    payload: PhantomData<T>,
    // Declared below the pump, so that the folder is dropped after the pump has written to it for the last time.
    _folder: Option<Folder>,
}

/// The temporary folder of a journal, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("systole-bench-{}-{next}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // An error leaves files behind only in the temporary folder of the system.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl<T: Sample> TwoHop<T> {
    pub(super) fn start(scale: Scale, shards: Option<u16>, count: u64, window: usize) -> Result<Self, LoadError> {
        Self::start_with(scale, count, window, None, |builder| match shards {
            Some(shards) => builder.shards(shards),
            None => builder,
        })
    }

    /// Starts the same load, whose back writes so many pieces of a draft of each answer, which nobody reads.
    pub(super) fn drafting(scale: Scale, pieces: u32, count: u64, window: usize) -> Result<Self, LoadError> {
        Self::start_with_back(scale, (count, window, pieces), None, |builder| builder.shards(1))
    }

    /// Starts the same load with a journal, in a temporary folder, which keeps as much ended work.
    pub(super) fn durable(
        scale: Scale,
        (durability, retention): (Durability, Retention),
        count: u64,
        window: usize,
    ) -> Result<Self, LoadError> {
        let folder = Folder::new()?;
        let journal = folder.0.join("journal");
        let change = |builder: OrganismBuilder| builder.durable(journal, durability).retention(retention);
        Self::start_with(scale, count, window, Some(folder), change)
    }

    fn start_with(
        scale: Scale,
        count: u64,
        window: usize,
        folder: Option<Folder>,
        change: impl FnOnce(OrganismBuilder) -> OrganismBuilder,
    ) -> Result<Self, LoadError> {
        Self::start_with_back(scale, (count, window, 0), folder, change)
    }

    fn start_with_back(
        scale: Scale,
        (count, window, pieces): (u64, usize, u32),
        folder: Option<Folder>,
        change: impl FnOnce(OrganismBuilder) -> OrganismBuilder,
    ) -> Result<Self, LoadError> {
        let builder = Organism::builder("two-hop")
            .client("cli", |client| client.calls::<T>())
            .listener("front", Front::<T>::default, |c| {
                c.accepts::<T>().calls::<T>().returns::<T>().replies::<T>().stateless()
            })
            .listener(
                "back",
                move || Back::<T>(pieces, PhantomData),
                |c| c.accepts::<T>().replies::<T>().routing(Routing::Addressed).stateless(),
            );
        let pump = Pump::new(change(builder).start()?)?;
        Ok(Self { pump, count: scale.of(count), window, payload: PhantomData, _folder: folder })
    }
}

impl<T: Sample> Load for TwoHop<T> {
    fn round(&mut self, latencies: &mut Latencies) -> Result<u64, LoadError> {
        self.pump.converse(&T::envelope(), self.count, self.window, latencies)?;
        Ok(self.pump.delivered())
    }
}

struct Front<T>(PhantomData<fn() -> T>);
/// The back, with the number of pieces of a draft that it writes of each answer.
struct Back<T>(u32, PhantomData<fn() -> T>);

/// A piece of a draft: a few words.
const PIECE: &str = "a few words of an answer ";

impl<T> Default for Front<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: 'static> Actor for Front<T> {
    type Context = Context<Self>;
}

impl<T: 'static> Actor for Back<T> {
    type Context = Context<Self>;
}

impl<T: Sample> Handler<Delivery<T>> for Front<T> {
    type Result = Response;

    fn handle(&mut self, delivery: Delivery<T>, _: &mut Context<Self>) -> Response {
        Ok(match delivery.in_reply_to() {
            None => call_to("back", delivery.into_inner()),
            Some(_) => reply_any(delivery.into_inner()),
        })
    }
}

impl<T: Sample> Handler<Delivery<T>> for Back<T> {
    type Result = Response;

    fn handle(&mut self, delivery: Delivery<T>, _: &mut Context<Self>) -> Response {
        (0..self.0).for_each(|_| delivery.thread().draft(PIECE));
        Ok(reply_any(delivery.into_inner()))
    }
}
