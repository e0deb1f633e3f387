//! Takeover of files that older organisms kept beside their journal: the file of a gateway, and the outbox of its
//! pushes.

mod old;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use bytes::Bytes;
use rusqlite::OptionalExtension;
use systole_core::journal::{AddresseeRecord, EgressRecord, MailRecord, MailState, MailStatus, SubmissionRecord};
use systole_core::vocab::{Fault, FaultCode, MessageId, Name, ThreadId, XmlLimits};
use systole_xml::ladder::{Envelope, Raw, parse};

use self::old::{Old, OldAnswer, OldItem, OldSent, Taken};
use super::apply::Apply;
use super::error::StoreError;
use super::mail::TakenOver;
use super::mailbox::note_gone;
use super::meta::Meta;
use super::recover::known;
use super::row::{Record, write};
use super::sqlite::SqliteJournal;
use crate::runtime::sqlite::{FileProblem, beside};

/// Result of the takeover of the files of an older organism.
#[derive(Debug, Default)]
#[must_use]
pub struct Takeover {
    /// Messages of clients that were accepted but did not enter the organism, oldest first.
    pub accepted: Vec<(SubmissionRecord, Bytes)>,
    files: Vec<PathBuf>,
}

impl Takeover {
    /// Renames the files to `….taken-over`, once all accepted messages are in the journal. Until then each start
    /// returns those that are not.
    ///
    /// # Errors
    /// [`StoreError`] if a file can't be renamed.
    pub fn finish(self) -> Result<(), StoreError> {
        self.files.iter().try_for_each(|file| {
            std::fs::rename(file, beside(file, ".taken-over")).map_err(|error| FileProblem::from(error).of(file))?;
            // The file exists only to be locked.
            let _ = std::fs::remove_file(beside(file, "-lock"));
            Ok(())
        })
    }
}

impl SqliteJournal {
    /// Imports `….gateway` and `….outbox` of an older organism into this journal, before recovery: once, in one
    /// transaction.
    ///
    /// # Errors
    /// [`StoreError`] if a file is in use, damaged, of another format, or of a later program. Nothing is written.
    pub fn take_over(&mut self) -> Result<Takeover, StoreError> {
        let gateway = Old::gateway(&self.file)?;
        let done = self.has_taken_over().map_err(|problem| problem.of(&self.file))?;
        // An outbox without either does not belong to a gateway.
        let outbox = if gateway.is_some() || done { Old::outbox(&self.file)? } else { None };
        let files = gateway.iter().chain(&outbox).map(|old| old.file().to_owned()).collect();
        let pushes = match outbox {
            Some(outbox) => outbox.pushes()?,
            None => HashMap::new(),
        };
        let Some(gateway) = gateway else { return Ok(Takeover { accepted: Vec::new(), files }) };
        let taken = gateway.read(&pushes)?;
        let roots = self.roots().map_err(|problem| problem.of(&self.file))?;
        if !done {
            self.feed_all()?;
            self.transaction(|journal| journal.write_taken(&taken, &roots))?;
        }
        let new = |sent: &OldSent| sent.accepted && !roots.contains(&sent.record.root);
        let accepted = taken.sent.into_iter().filter(new).map(|sent| (sent.record, sent.envelope)).collect();
        Ok(Takeover { accepted, files })
    }

    fn has_taken_over(&self) -> Result<bool, FileProblem> {
        Ok(self.db.query_row("SELECT EXISTS (SELECT 1 FROM taken_over)", [], |row| row.get(0))?)
    }

    /// Lists conversations that the journal has rows of: a root, a submission, or messages that left.
    fn roots(&self) -> Result<HashSet<ThreadId>, FileProblem> {
        let sql =
            "SELECT id FROM thread WHERE number = root UNION SELECT root FROM egress UNION SELECT root FROM submission";
        let mut statement = self.db.prepare(sql)?;
        let ids = statement.query_map([], |row| Ok(ThreadId::from_uuid(old::uuid(row, 0)?)))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    /// Lists open messages that the next start runs again: all but those of `<boot>`, which starts again.
    fn run_again(&self) -> Result<HashSet<MessageId>, FileProblem> {
        let sql = "SELECT message.id FROM message JOIN thread ON thread.number = message.thread \
                   JOIN thread AS top ON top.number = thread.root \
                   WHERE message.ended IS NULL AND top.client IS NOT 'root'";
        let mut statement = self.db.prepare(sql)?;
        let ids = statement.query_map([], |row| Ok(MessageId::from_uuid(old::uuid(row, 0)?)))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    fn write_taken(&mut self, taken: &Taken, roots: &HashSet<ThreadId>) -> Result<Meta, FileProblem> {
        let recovered = super::recover::recover(&self.db, &self.meta)?;
        self.known = known(&recovered);
        let run_again = self.run_again()?;
        let Self { db, meta, known, sums, retain, .. } = self;
        let now = retain.now();
        let mut apply = Apply::after(now, db, meta, known, sums);
        let base = recovered.last_mail;
        for item in &taken.items {
            apply.take_item(item, base, run_again.contains(&item.record.id))?;
        }
        for (mailbox, pruned, last) in &taken.gone {
            let change = note_gone(db, mailbox, (base + pruned, base + last), now, apply.sums)?;
            apply.total = apply.total.wrapping_add(change);
        }
        for agent in &taken.agents {
            apply.agent(agent)?;
        }
        // The older gateway did not record the addressee of answers without one.
        let of_items = taken.items.iter().map(|item| &item.record.mailbox);
        let mailboxes: BTreeSet<&Name> = of_items.chain(taken.gone.iter().map(|(mailbox, ..)| mailbox)).collect();
        for mailbox in mailboxes {
            apply.addressee(&AddresseeRecord { mailbox: mailbox.clone(), person: None })?;
        }
        for sent in taken.sent.iter().filter(|sent| !sent.accepted || roots.contains(&sent.record.root)) {
            apply.take_sent(sent)?;
        }
        for row in &taken.principals {
            // Principals admitted since then stay.
            let sql = "SELECT 1 FROM principal WHERE name = ?1 OR token = ?2";
            let known = (row.principal.name.as_str(), row.token.0);
            if !db.prepare_cached(sql)?.exists(known)? {
                write(&mut *db.prepare_cached(super::principal::PrincipalRow::INSERT)?, row, now, apply.sums)?;
            }
        }
        apply.at = now;
        apply.insert(&TakenOver)?;
        apply.finish(meta)
    }
}

impl Apply<'_> {
    /// Imports a message of a mailbox. An ended message waits again if the pump still has it open, because its end did
    /// not reach the pump.
    fn take_item(&mut self, item: &OldItem, base: u64, runs_again: bool) -> Result<(), FileProblem> {
        let mut status = item.status.clone();
        if runs_again && !status.state.is_open() {
            status = MailStatus { deliveries: status.deliveries, error: status.error, ..MailStatus::default() };
        }
        self.at = match status.state == MailState::Dead || status.state.is_open() {
            true => item.record.at.as_nanos().cast_signed(),
            false => item.ended.unwrap_or(self.at),
        };
        self.mail(&MailRecord { seq: base + item.record.seq, ..item.record.clone() }, &status)
    }

    /// Imports a message of a client, with those of its answers that the journal has deleted.
    fn take_sent(&mut self, sent: &OldSent) -> Result<(), FileProblem> {
        self.at = sent.at.as_nanos().cast_signed();
        self.submitted(&sent.record, sent.ended.unwrap_or(self.at))?;
        sent.answers.iter().try_for_each(|answer| self.take_answer(&sent.record, answer))
    }

    fn take_answer(&mut self, submission: &SubmissionRecord, answer: &OldAnswer) -> Result<(), FileProblem> {
        self.at = answer.at.as_nanos().cast_signed();
        let number = answer.number.cast_signed();
        let sql = "SELECT 1 FROM egress WHERE number = ?1";
        let found: Option<i64> = self.db.prepare_cached(sql)?.query_row([number], |row| row.get(0)).optional()?;
        if found.is_none() {
            let Some(egress) = egress(submission, answer) else { return Ok(()) };
            self.hold(egress)?;
        }
        // The gateway has received it.
        self.read_egress(answer.number)
    }
}

/// Parses an answer; `None` if its envelope is invalid.
fn egress(submission: &SubmissionRecord, answer: &OldAnswer) -> Option<EgressRecord> {
    let canonical = parse(&Raw::new(answer.envelope.clone()), &XmlLimits::UNLIMITED).ok()?;
    let envelope = Envelope::open_emitted(canonical).ok()?;
    let fault = |code: &String| {
        let code = FaultCode::ALL.into_iter().find(|known| known.as_str() == code)?;
        Some(Fault {
            code,
            message: code.as_str().into(),
            retryable: false,
            in_reply_to: Some(submission.id),
            rule: None,
        })
    };
    Some(EgressRecord {
        number: answer.number,
        client: submission.client.clone(),
        root: submission.root,
        from: answer.from.clone(),
        in_reply_to: Some(submission.id.to_string().into()),
        envelope: answer.envelope.clone(),
        fault: answer.fault.as_ref().and_then(fault),
        payload: envelope.payload().bytes().clone(),
    })
}
