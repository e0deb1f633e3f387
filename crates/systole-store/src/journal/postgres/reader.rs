//! Reads of operators: from an image of one moment.

use std::io;
use std::sync::Arc;

use systole_core::journal::{JournalError, LetterRecord, Owner, ThreadRecord};
use systole_core::vocab::{Name, ThreadId, Time};
use systole_xml::ladder::transcript::Entry;

use super::super::reader::{HistoryEntry, JournalReader, Stat, ThreadEntry};
use super::super::store::Reader;
use super::super::transcript::TranscriptError;
use super::address::Address;
use super::image::Image;
use super::load::{Fed, LoadedImage};

/// A journal as it was when it was opened, with all steps that were acknowledged before.
pub(super) struct ImageReader {
    reader: JournalReader,
    fed: Fed,
    sizes: (u64, u64),
    _image: Image,
}

impl ImageReader {
    /// Takes an image for reading. `sizes` are the bytes of the tables and of the log.
    pub(super) fn open(
        (image, loaded): (Image, LoadedImage),
        sizes: (u64, u64),
        address: &Address,
    ) -> Result<Self, JournalError> {
        let LoadedImage { journal, fed, damage, .. } = loaded;
        drop(journal);
        if let Some(damage) = damage {
            return Err(damage.of(address));
        }
        Ok(Self { reader: JournalReader::open(&image.file)?, fed, sizes, _image: image })
    }
}

impl Reader for ImageReader {
    fn check_owner(&self, organism: &str) -> Result<(), JournalError> {
        Ok(self.reader.check_owner(organism)?)
    }

    fn stat(&self) -> Result<Stat, JournalError> {
        let stat = self.reader.stat()?;
        Ok(Stat {
            in_use: self.fed.owner.is_some(),
            writer: None,
            ended_in_order: stat.ended_in_order && self.fed.owner.is_none(),
            file_bytes: self.sizes.0,
            used_bytes: self.sizes.0,
            log_bytes: self.sizes.1,
            ..stat
        })
    }

    fn ids_with_end(&self, digits: &str) -> Result<(Vec<ThreadId>, Vec<ThreadId>), JournalError> {
        Ok(self.reader.ids_with_end(digits)?)
    }

    fn open_threads(&self) -> Result<Vec<ThreadEntry>, JournalError> {
        Ok(self.reader.open_threads()?)
    }

    fn open_owners(&self) -> Result<Vec<(Owner, u64)>, JournalError> {
        Ok(self.reader.open_owners()?)
    }

    fn keys(&self, client: &Name, prefix: &str) -> Result<Vec<Arc<str>>, JournalError> {
        Ok(self.reader.keys(client, prefix)?)
    }

    fn conversation(&self, thread: ThreadId) -> Result<Vec<ThreadEntry>, JournalError> {
        Ok(self.reader.conversation(thread)?)
    }

    fn said(&self, thread: &ThreadRecord) -> Result<Vec<HistoryEntry>, JournalError> {
        Ok(self.reader.said(thread)?)
    }

    fn letters(&self) -> Result<Vec<(LetterRecord, bool)>, JournalError> {
        Ok(self.reader.letters()?)
    }

    fn transcript(
        &self,
        thread: ThreadId,
        now: Time,
        each: &mut dyn FnMut(Entry) -> io::Result<()>,
    ) -> Result<(), TranscriptError> {
        self.reader.transcript(thread, now, each)
    }
}
