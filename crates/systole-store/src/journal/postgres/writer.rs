//! The writing end: entries of the log first, then the image, then the tables.

use std::sync::Arc;
use std::time::Duration;

use systole_core::journal::{
    AppendError, Batch, Durability, Journal, JournalError, JournalErrorKind, Number, Recovered, Tail,
};
use systole_core::vocab::{MessageId, Name, Partitions, ThreadId, Time};

use super::super::batch::encode;
use super::super::edit::Compacted;
use super::super::owner::JournalOwner;
use super::super::retry::{Retry, RetryError};
use super::super::store::Editor;
use super::super::transcript::{Source, TranscriptError};
use super::super::{SqliteJournal, StoreError};
use super::entry::{Kind, compress};
use super::image::{self, Image};
use super::lease::Guard;
use super::load::{LoadedImage, load_image, note};
use super::log::{self, Feed, Head, New};
use super::server::{Begun, Link, Server};
use super::table::Table;
use crate::entropy::Entropy;
use crate::sqlite::{FileProblem, Retention};
use crate::tenure::Tenure;

/// The number of steps in the log behind the tables at which a busy organism feeds them.
const STEPS: usize = 4096;

/// The bytes of these steps, before they are compressed, at which it does.
const BYTES: usize = 16 << 20;

/// The lead of the log while the tables are fed, at which the organism waits for that.
const LATE: usize = 8;

/// A journal in a database, open for writing.
pub(super) struct PostgresJournal {
    image: SqliteJournal,
    /// The folder of the image, deleted after it is closed.
    folder: Arc<Image>,
    tables: Vec<Table>,
    /// Appends.
    link: Arc<Link>,
    /// Feeds the tables, while the log goes on.
    feeder: Arc<Link>,
    server: Arc<Server>,
    /// The lease of the node that runs the organism, where several may.
    tenure: Option<Tenure>,
    head: Head,
    /// True until the epoch of the opening is that of a recovery.
    is_fresh: bool,
    feeding: Feeding,
    failed: Option<JournalError>,
}

/// The way of the tables behind the log.
#[derive(Debug)]
struct Feeding {
    /// The last entry that they have, or will have.
    seq: i64,
    /// The feed under way.
    begun: Option<Begun<()>>,
    steps: usize,
    bytes: usize,
}

impl PostgresJournal {
    /// Takes a journal over, and loads it. `kind` is [`Kind::Start`] for an organism; `tenure` is the lease of its node.
    pub(super) fn open(
        server: Arc<Server>,
        retention: Retention,
        kind: Kind,
        tenure: Option<Tenure>,
    ) -> Result<Self, JournalError> {
        let address = server.address.clone();
        let link = Link::within(&address, None, tenure.clone());
        let (id, guard) = (Entropy::Real.random(), Guard::of(tenure.as_ref()));
        let head = server.wait(move || async move { log::take(&link, kind, id, guard).await })?;
        // Now nobody else appends or feeds, so what is read is all that there is.
        let (folder, loaded) = load_image(&server, retention, Some(head.seq), true)?;
        let LoadedImage { journal, tables, fed, damage } = loaded;
        if let Some(damage) = damage {
            return Err(damage.of(&address));
        }
        let link = Link::within(&address, (kind == Kind::Start).then_some(head.epoch), tenure.clone());
        let named = link.clone();
        server.wait(move || async move { log::own(&named, head.epoch).await })?;
        Ok(Self {
            image: journal,
            folder: Arc::new(folder),
            tables,
            link,
            feeder: Link::within(&address, None, tenure.clone()),
            server,
            tenure,
            head,
            is_fresh: true,
            feeding: Feeding { seq: fed.seq, begun: None, steps: 0, bytes: 0 },
            failed: None,
        })
    }

    /// The image, from which queries are answered.
    pub(super) fn image(&self) -> &SqliteJournal {
        &self.image
    }

    /// The folder of the image.
    pub(super) fn folder(&self) -> &Arc<Image> {
        &self.folder
    }

    /// Makes it that of an organism, if it belongs to none.
    pub(super) fn claim(&mut self, organism: &str, id: uuid::Uuid) -> Result<(), JournalError> {
        self.image.claim(organism, id)?;
        self.feed_now()
    }

    /// Deletes what is past its retention, also from the tables.
    pub(super) fn compact(&mut self, now: Time) -> Result<u64, JournalError> {
        let Compacted { rows, .. } = self.image.compact(now)?;
        self.feed_now()?;
        Ok(rows)
    }

    /// Appends an entry, and waits for it.
    fn put(&mut self, kind: Kind, epoch: i64, body: Vec<u8>) -> Result<(), JournalError> {
        if let Some(error) = &self.failed {
            return Err(JournalError::new(JournalErrorKind::Closed, format!("it has failed before: {error}")));
        }
        let (link, head) = (self.link.clone(), self.head);
        let new = Arc::new(New { id: Entropy::Real.random(), epoch, kind, body });
        self.head = self.settled(self.server.wait(move || async move { log::append(&link, head, new).await }))?;
        Ok(())
    }

    /// Notes a failure for good.
    fn settled<T>(&mut self, done: Result<T, JournalError>) -> Result<T, JournalError> {
        if let Err(error) = &done {
            self.failed.get_or_insert_with(|| error.clone());
        }
        done
    }

    /// Begins a feed, unless one is under way; waits for that one if the log is far ahead.
    fn feed_behind(&mut self) -> Result<(), JournalError> {
        let Feeding { begun, steps, bytes, .. } = &mut self.feeding;
        if let Some(feed) = begun.take() {
            let is_late = *steps > LATE * STEPS || *bytes > LATE * BYTES;
            match feed.ended() {
                None if !is_late => {
                    *begun = Some(feed);
                    return Ok(());
                }
                None => {
                    let done = feed.wait(&self.server);
                    self.settled(done)?;
                }
                Some(done) => {
                    let done = done.map_err(|problem| problem.of(&self.server.address));
                    self.settled(done)?;
                }
            }
        }
        self.image.feed_all()?;
        let changes = image::changes(&self.image.db, &self.tables).map_err(|error| self.told(error))?;
        let (from, to) = (self.feeding.seq, self.head.seq);
        if changes.is_empty() && from == to {
            return Ok(());
        }
        let (link, feed) = (self.feeder.clone(), Feed { epoch: self.head.epoch, from, to, changes });
        let begun = self.server.begin(move || async move { log::feed(&link, feed).await });
        self.feeding = Feeding { seq: to, begun: Some(begun), steps: 0, bytes: 0 };
        Ok(())
    }

    /// Feeds the tables with all that there is, and waits for it.
    fn feed_now(&mut self) -> Result<(), JournalError> {
        // One that is under way lacks what has changed since.
        for _ in 0..2 {
            if let Some(feed) = self.feeding.begun.take() {
                let done = feed.wait(&self.server);
                self.settled(done)?;
            }
            self.feed_behind()?;
        }
        if let Some(feed) = self.feeding.begun.take() {
            let done = feed.wait(&self.server);
            self.settled(done)?;
        }
        Ok(())
    }

    fn told(&self, error: rusqlite::Error) -> JournalError {
        FileProblem::from(error).of(&self.image.file).into()
    }

    /// Begins a new epoch, which the log and feeds have from now on.
    fn begin_epoch(&mut self, kind: Kind) -> Result<(), JournalError> {
        // Feeds of the epoch before would be taken for those of another owner.
        self.feed_now()?;
        self.put(kind, self.head.epoch + 1, Vec::new())?;
        let (link, epoch) = (self.link.clone(), self.head.epoch);
        let fenced = self.server.wait(move || async move { log::own(&link, epoch).await });
        self.settled(fenced)?;
        self.link = Link::within(&self.server.address, Some(epoch), self.tenure.clone());
        Ok(())
    }

    /// Sets the epoch of the image, so that its next one is that of the log.
    fn before_epoch(&mut self) -> Result<(), JournalError> {
        let epoch = u32::try_from(self.head.epoch - 1).map_err(|_| FileProblem::Worn.of(&self.image.file))?;
        if self.image.meta.epoch != epoch {
            note(&mut self.image, Some(epoch), None)?;
        }
        Ok(())
    }
}

impl Journal for PostgresJournal {
    fn durability(&self) -> Option<Durability> {
        Some(Durability::Power)
    }

    fn may_block(&self) -> bool {
        true
    }

    fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
        self.image.check_heads(batch.tails())?;
        let (steps, _) = encode(batch.steps(), self.image.retain.now());
        let body = compress(&steps);
        self.feeding.bytes += steps.len();
        self.feeding.steps += batch.steps().len();
        self.put(Kind::Steps, self.head.epoch, body)?;
        self.image.append(batch)?;
        if self.feeding.steps >= STEPS || self.feeding.bytes >= BYTES {
            self.feed_behind()?;
        }
        Ok(())
    }

    fn is_fed(&self) -> bool {
        self.image.is_fed()
    }

    fn feed(&mut self) -> Result<(), JournalError> {
        self.feed_behind()
    }

    fn recover(&mut self) -> Result<Recovered, JournalError> {
        if !std::mem::take(&mut self.is_fresh) {
            self.begin_epoch(Kind::Start)?;
        }
        self.before_epoch()?;
        self.image.recover()
    }

    fn adopt(&mut self, partitions: &Partitions) -> Result<Recovered, JournalError> {
        self.begin_epoch(Kind::Epoch)?;
        self.before_epoch()?;
        self.image.adopt(partitions)
    }

    fn release(&mut self, tail: &Tail) -> Result<(), AppendError> {
        self.image.release(tail)
    }

    fn tidy(&mut self, now: Time) -> Result<bool, JournalError> {
        // An idle organism, too, learns that another process has its journal.
        let (link, head) = (self.link.clone(), self.head);
        let checked = self.server.wait(move || async move { log::check(&link, head).await });
        self.settled(checked)?;
        let more = self.image.tidy(now)?;
        self.feed_behind()?;
        Ok(more)
    }

    fn tidy_interval(&self) -> Duration {
        self.image.tidy_interval()
    }

    fn close(&mut self) -> Result<(), JournalError> {
        self.put(Kind::End, self.head.epoch, Vec::new())?;
        self.image.close()?;
        self.feed_now()?;
        let link = self.link.clone();
        self.server.wait(move || async move { link.disown().await })
    }
}

/// A journal whose organism doesn't run, for an operator. Each change is in the tables when its call returns.
pub(super) struct PostgresEditor(pub(super) PostgresJournal);

impl PostgresEditor {
    fn change<T>(
        &mut self,
        change: impl FnOnce(&mut SqliteJournal) -> Result<T, StoreError>,
    ) -> Result<T, JournalError> {
        let done = change(&mut self.0.image)?;
        self.0.feed_now()?;
        Ok(done)
    }
}

impl Editor for PostgresEditor {
    fn retry(&mut self, retry: &Retry, by: &Name, now: Time) -> Result<ThreadId, RetryError> {
        let id = self.0.image.retry(retry, by, now)?;
        self.0.feed_now()?;
        Ok(id)
    }

    fn import(&mut self, entries: Source<'_>, by: &Name, now: Time) -> Result<ThreadId, TranscriptError> {
        let id = self.0.image.import(entries, by, now)?;
        self.0.feed_now()?;
        Ok(id)
    }

    fn drop_letter(&mut self, letter: Number, by: &Name, now: Time) -> Result<bool, JournalError> {
        self.change(|image| image.drop_letter(letter, by, now))
    }

    fn redrive_letter(&mut self, letter: Number, by: &Name, now: Time) -> Result<bool, JournalError> {
        self.change(|image| image.redrive_letter(letter, by, now))
    }

    fn drop_mail(&mut self, message: MessageId, by: &Name, now: Time) -> Result<bool, JournalError> {
        self.change(|image| image.drop_mail(message, by, now))
    }

    fn redrive_mail(&mut self, message: MessageId, by: &Name, now: Time) -> Result<bool, JournalError> {
        self.change(|image| image.redrive_mail(message, by, now))
    }

    fn rename(&mut self, organism: &str) -> Result<Option<JournalOwner>, JournalError> {
        self.change(|image| image.rename(organism))
    }
}
