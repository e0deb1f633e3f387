//! The threads on which libxml judges payloads: no shard is held up by it, whatever it takes.

use std::cell::RefCell;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::link::{Command, Links};
use super::pool::{NoThread, Pool, Work};
use crate::core::contain::contain;
use crate::core::{Input, JudgementId, ShardId};
use crate::ladder::{Canonical, Element, Validated};
use crate::schema::{Catalog, SchemaError, Validator};

/// Judgements that run at the same time, for all shards together; the others wait.
const THREADS: usize = 4;

/// A few threads, made when there is something to judge.
pub(super) struct Judges {
    pool: Pool,
    catalog: Arc<Catalog>,
    links: Links,
}

thread_local! {
    /// What this thread has compiled: libxml doesn't say that threads may share it.
    static VALIDATOR: RefCell<Option<Validator>> = const { RefCell::new(None) };
}

impl Judges {
    /// `inline`: everything is judged at once, where it is asked for, so that a test is deterministic.
    pub(super) fn new(catalog: Arc<Catalog>, links: Links, inline: bool) -> Self {
        Self { pool: if inline { Pool::inline() } else { Pool::of_threads(THREADS) }, catalog, links }
    }

    /// Judges payloads for the core of a shard, and tells it.
    pub(super) fn judge(&self, shard: ShardId, judgement: JudgementId, payloads: Vec<Canonical>) {
        let (catalog, links) = (self.catalog.clone(), self.links.clone());
        let work = move || {
            let findings = payloads.into_iter().map(|payload| find(&catalog, payload)).collect();
            links.send(shard, Command::Core(Input::Judged { judgement, findings }));
        };
        self.submit(Box::new(work));
    }

    /// Judges a payload for a handler, which goes on when the verdict is there.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the verdict to nobody.
    pub(super) async fn find(&self, payload: Canonical) -> Result<Validated<Element>, SchemaError> {
        let root = payload.root().clone();
        let (catalog, (tell, verdict)) = (self.catalog.clone(), oneshot::channel());
        // Whoever has been cancelled hears of it no more.
        self.submit(Box::new(move || drop(tell.send(find(&catalog, payload)))));
        verdict.await.unwrap_or_else(|_| Err(SchemaError::unjudged(&root)))
    }

    /// Every payload schema of the organism.
    pub(super) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn submit(&self, work: Work) {
        if let Err(NoThread(work)) = self.pool.submit(work) {
            work();
        }
    }
}

impl Drop for Judges {
    fn drop(&mut self) {
        self.pool.close();
    }
}

fn find(catalog: &Arc<Catalog>, payload: Canonical) -> Result<Validated<Element>, SchemaError> {
    VALIDATOR.with_borrow_mut(|validator| {
        let root = payload.root().clone();
        let known = validator.take().filter(|validator| Arc::ptr_eq(validator.catalog(), catalog));
        let mut at_work = known.unwrap_or_else(|| Validator::new(catalog.clone()));
        let finding = contain(|| (at_work.validate(payload), at_work));
        match finding {
            Ok((finding, at_work)) => {
                *validator = Some(at_work);
                finding
            }
            // One that panicked is not used again.
            Err(_) => Err(SchemaError::unjudged(&root)),
        }
    })
}
