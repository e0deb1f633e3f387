//! The store in an SQLite file, behind the interface of all stores.

use std::path::Path;
use std::sync::Arc;
use std::{fmt, fs, io};

use systole_core::journal::{JournalError, LetterRecord, Number, Owner, ThreadRecord};
use systole_core::vocab::{MessageId, Name, ThreadId, Time};
use systole_xml::ladder::transcript::Entry;

use super::edit::Compacted;
use super::open::check_place;
use super::owner::JournalOwner;
use super::query::JournalQuery;
use super::reader::{HistoryEntry, JournalReader, Stat, ThreadEntry};
use super::retry::{Retry, RetryError};
use super::store::{Claim, Editor, OpenStore, PrincipalStore, Query, Reader, Store};
use super::transcript::{Source, TranscriptError};
use super::verify::VerifyReport;
use super::writer::JournalFeeder;
use super::{JournalOptions, Journaled, Principals, SqliteJournal, StoreError};
use crate::principal::{Principal, PrincipalKind};
use crate::sqlite::{FileProblem, Retention, beside};
use crate::token::Token;

impl fmt::Display for Journaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.display().fmt(f)
    }
}

impl Journaled {
    fn options(&self, secret: [u8; 32]) -> JournalOptions {
        JournalOptions::new(secret).durability(self.durability).retention(self.retention)
    }

    /// Opens a file that exists: so the secret of a new one is none.
    fn existing(&self, options: JournalOptions) -> Result<SqliteJournal, JournalError> {
        Ok(SqliteJournal::open_existing(&self.file, &options)?)
    }
}

impl Store for Journaled {
    fn check(&self) -> Result<(), JournalError> {
        check_place(&self.file).map_err(|error| {
            let problem = error.problem.to_string();
            JournalError::new(JournalError::from(error).kind(), problem)
        })
    }

    fn open(&self, secret: [u8; 32], claim: Option<Claim<'_>>) -> Result<OpenStore, JournalError> {
        let mut journal = SqliteJournal::open_when_free(&self.file, &self.options(secret))?;
        if let Some(Claim { organism, id }) = claim {
            journal.claim(organism, id)?;
        }
        Ok(OpenStore { room: journal.room(), full: journal.log_full(), journal: Box::new(journal) })
    }

    fn read(&self) -> Result<Box<dyn Reader>, JournalError> {
        Ok(Box::new(JournalReader::open(&self.file)?))
    }

    fn ask(&self, feeder: Option<JournalFeeder>, here: bool) -> Result<Arc<dyn Query>, JournalError> {
        let query = if here { JournalQuery::here(&self.file) } else { JournalQuery::open(&self.file, feeder) };
        Ok(Arc::new(query?))
    }

    fn admit(&self, secret: [u8; 32]) -> Result<Box<dyn PrincipalStore>, JournalError> {
        Ok(Box::new(Principals::open(&self.file, &self.options(secret))?))
    }

    fn edit(&self) -> Result<Box<dyn Editor>, JournalError> {
        Ok(Box::new(self.existing(self.options([0; 32]))?))
    }

    fn bytes(&self) -> (u64, u64) {
        let bytes = |file: &Path| fs::metadata(file).map_or(0, |found| found.len());
        (bytes(&self.file), bytes(&beside(&self.file, "-wal")))
    }

    fn verify(&self) -> Result<VerifyReport, JournalError> {
        match JournalReader::open(&self.file).and_then(|reader| reader.verify()) {
            Err(StoreError {
                problem:
                    problem @ (FileProblem::Damaged { .. }
                    | FileProblem::DamagedLog { .. }
                    | FileProblem::UnsyncedLog { .. }),
                ..
            }) => Ok(VerifyReport::damaged(&problem)),
            report => Ok(report?),
        }
    }

    fn compact(&self, retention: Retention, cut: bool, now: Time) -> Result<Compacted, JournalError> {
        let mut journal = self.existing(self.options([0; 32]).retention(retention).cut(cut))?;
        Ok(journal.compact(now)?)
    }
}

impl Reader for JournalReader {
    fn check_owner(&self, organism: &str) -> Result<(), JournalError> {
        Ok(self.check_owner(organism)?)
    }

    fn stat(&self) -> Result<Stat, JournalError> {
        Ok(self.stat()?)
    }

    fn ids_with_end(&self, digits: &str) -> Result<(Vec<ThreadId>, Vec<ThreadId>), JournalError> {
        Ok(self.ids_with_end(digits)?)
    }

    fn open_threads(&self) -> Result<Vec<ThreadEntry>, JournalError> {
        Ok(self.open_threads()?)
    }

    fn open_owners(&self) -> Result<Vec<(Owner, u64)>, JournalError> {
        Ok(self.open_owners()?)
    }

    fn keys(&self, client: &Name, prefix: &str) -> Result<Vec<Arc<str>>, JournalError> {
        Ok(self.keys(client, prefix)?)
    }

    fn conversation(&self, thread: ThreadId) -> Result<Vec<ThreadEntry>, JournalError> {
        Ok(self.conversation(thread)?)
    }

    fn said(&self, thread: &ThreadRecord) -> Result<Vec<HistoryEntry>, JournalError> {
        Ok(self.said(thread)?)
    }

    fn letters(&self) -> Result<Vec<(LetterRecord, bool)>, JournalError> {
        Ok(self.letters()?)
    }

    fn transcript(
        &self,
        thread: ThreadId,
        now: Time,
        each: &mut dyn FnMut(Entry) -> io::Result<()>,
    ) -> Result<(), TranscriptError> {
        self.transcript(thread, now, each)
    }
}

impl PrincipalStore for Principals {
    fn admit(&mut self, name: Name, kind: PrincipalKind, now: Time) -> Result<Token, JournalError> {
        Ok(self.admit(name, kind, now)?)
    }

    fn dismiss(&mut self, name: &Name) -> Result<bool, JournalError> {
        Ok(self.dismiss(name)?)
    }

    fn list(&self) -> Result<Vec<Principal>, JournalError> {
        Ok(self.list()?)
    }
}

impl Editor for SqliteJournal {
    fn retry(&mut self, retry: &Retry, by: &Name, now: Time) -> Result<ThreadId, RetryError> {
        self.retry(retry, by, now)
    }

    fn import(&mut self, entries: Source<'_>, by: &Name, now: Time) -> Result<ThreadId, TranscriptError> {
        self.import(entries, by, now)
    }

    fn drop_letter(&mut self, letter: Number, by: &Name, now: Time) -> Result<bool, JournalError> {
        Ok(self.drop_letter(letter, by, now)?)
    }

    fn redrive_letter(&mut self, letter: Number, by: &Name, now: Time) -> Result<bool, JournalError> {
        Ok(self.redrive_letter(letter, by, now)?)
    }

    fn drop_mail(&mut self, message: MessageId, by: &Name, now: Time) -> Result<bool, JournalError> {
        Ok(self.drop_mail(message, by, now)?)
    }

    fn redrive_mail(&mut self, message: MessageId, by: &Name, now: Time) -> Result<bool, JournalError> {
        Ok(self.redrive_mail(message, by, now)?)
    }

    fn rename(&mut self, organism: &str) -> Result<Option<JournalOwner>, JournalError> {
        Ok(self.rename(organism)?)
    }
}
