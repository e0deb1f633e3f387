//! Changes of mailboxes, of remote listeners and of submissions as statements.

use rusqlite::{Connection, OptionalExtension, Row};
use systole_core::journal::{AddresseeRecord, AgentRecord, MailRecord, MailStatus, Number, SubmissionRecord};
use systole_core::vocab::{Name, ThreadId};

use super::apply::{Apply, over};
use super::mail::{Gone, StatusRow};
use super::row::{Record, load, write};
use super::sum::Sums;
use super::weigh::{ROW, weight};
use crate::sqlite::FileProblem;

impl Apply<'_> {
    /// Adds a message to its mailbox, once.
    pub(super) fn mail(&mut self, mail: &MailRecord, status: &MailStatus) -> Result<(), FileProblem> {
        let sql = "SELECT 1 FROM mail WHERE id = ?1";
        if self.db.prepare_cached(sql)?.exists([mail.id.as_uuid().as_bytes()])? {
            // The number was assigned all the same.
            return self.gone(&mail.mailbox, mail.seq);
        }
        self.insert(mail)?;
        let row = StatusRow { seq: mail.seq, status: status.clone() };
        self.insert(&row)?;
        if status.state.is_over() {
            self.end_mail(mail.seq)?;
        }
        Ok(())
    }

    /// Changes the status of a stored message; an ended one may be open again.
    pub(super) fn mail_status(&mut self, seq: Number, status: &MailStatus) -> Result<(), FileProblem> {
        let Some((old, is_over)) = self.status_of(seq)? else { return Ok(()) };
        if is_over {
            self.known.weights.ended(-self.mail_weight(seq)?);
        }
        let row = StatusRow { seq, status: status.clone() };
        let sum = write(&mut *self.db.prepare_cached(StatusRow::REPLACE)?, &row, self.at, self.sums)?;
        self.total = self.total.wrapping_add(sum);
        match is_over {
            false => self.total = self.total.wrapping_sub(old),
            true => self.total = self.total.wrapping_add(self.mail_sum(seq)?),
        }
        match (is_over, status.state.is_over()) {
            (_, true) => self.end_mail(seq),
            // The row was not checked since it ended.
            (true, false) => self.mail_at(seq).map(drop),
            (false, false) => Ok(()),
        }
    }

    /// Moves a message behind the others.
    pub(super) fn mail_moved(&mut self, from: Number, to: Number, status: &MailStatus) -> Result<(), FileProblem> {
        let Some(found) = self.mail_at(from)? else { return Ok(()) };
        let moved = MailRecord { seq: to, ..found };
        self.take_mail(from)?;
        self.mail(&moved, status)
    }

    /// Deletes a message.
    pub(super) fn mail_gone(&mut self, seq: Number) -> Result<(), FileProblem> {
        match self.take_mail(seq)? {
            Some(mailbox) => self.gone(&mailbox, seq),
            None => Ok(()),
        }
    }

    /// Replaces the record of a remote listener.
    pub(super) fn agent(&mut self, agent: &AgentRecord) -> Result<(), FileProblem> {
        self.take("DELETE FROM agent WHERE name = ?1 RETURNING sum", [agent.name.as_str()])?;
        self.insert(agent)
    }

    /// Replaces the addressee of a listener.
    pub(super) fn addressee(&mut self, addressee: &AddresseeRecord) -> Result<(), FileProblem> {
        self.take("DELETE FROM addressee WHERE mailbox = ?1 RETURNING sum", [addressee.mailbox.as_str()])?;
        self.insert(addressee)
    }

    /// Adds a submission of a client. It ends with its conversation: at `ended`, if that has ended already.
    pub(super) fn submitted(&mut self, submission: &SubmissionRecord, ended: i64) -> Result<(), FileProblem> {
        let sql = "SELECT 1 FROM submission WHERE id = ?1";
        if self.db.prepare_cached(sql)?.exists([submission.id.as_uuid().as_bytes()])? {
            return Ok(());
        }
        self.insert(submission)?;
        let key = submission.key.as_ref().map_or(0, |(key, _)| key.len() as i64);
        self.known.weights.submission(submission.client.as_str(), ROW + key);
        if self.known.roots.contains(&submission.root) { Ok(()) } else { self.end_submissions(submission.root, ended) }
    }

    fn mail_at(&mut self, seq: Number) -> Result<Option<MailRecord>, FileProblem> {
        let sql = [MailRecord::SELECT, "WHERE seq = ?1"].concat();
        Ok(self.find::<MailRecord>(&sql, [seq.cast_signed()])?.map(|found| found.record))
    }

    /// Returns the sum of a status, and whether it has ended.
    fn status_of(&self, seq: Number) -> Result<Option<(i64, bool)>, FileProblem> {
        let sql = "SELECT sum, ended IS NOT NULL FROM mail_status WHERE seq = ?1";
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        Ok(self.db.prepare_cached(sql)?.query_row([seq.cast_signed()], row).optional()?)
    }

    fn mail_sum(&self, seq: Number) -> Result<i64, FileProblem> {
        let sql = "SELECT sum FROM mail WHERE seq = ?1";
        let found = self.db.prepare_cached(sql)?.query_row([seq.cast_signed()], |row| row.get(0)).optional()?;
        found.ok_or_else(|| FileProblem::damaged(format!("mail {seq} has a status, but no message")))
    }

    fn mail_weight(&self, seq: Number) -> Result<i64, FileProblem> {
        let sql = concat!("SELECT ", weight!("mail_status"), " FROM mail_status WHERE seq = ?1");
        Ok(self.db.prepare_cached(sql)?.query_row([seq.cast_signed()], |row| row.get(0))?)
    }

    /// Ends both rows of an open message.
    fn end_mail(&mut self, seq: Number) -> Result<(), FileProblem> {
        self.total = self.total.wrapping_sub(self.mail_sum(seq)?);
        self.end(over!("mail_status", "seq = ?1", "?2"), &[seq.cast_signed()])
    }

    /// Ends the submissions of a conversation.
    pub(super) fn end_submissions(&mut self, root: ThreadId, ended: i64) -> Result<(), FileProblem> {
        let select = "SELECT id, sum FROM submission WHERE ended IS NULL AND root = ?1";
        let mut select = self.db.prepare_cached(select)?;
        let found = select.query_map([root.as_uuid().as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (id, sum) in found.collect::<rusqlite::Result<Vec<([u8; 16], i64)>>>()? {
            self.total = self.total.wrapping_sub(sum);
            // Updates by key: for a change of the index that finds the rows, SQLite opens a table of its own.
            let end = concat!("UPDATE submission SET ", over!(set "?2"), " WHERE id = ?1");
            self.db.prepare_cached(end)?.execute((id, ended))?;
        }
        Ok(())
    }

    /// Deletes both rows of a message, and returns its mailbox.
    fn take_mail(&mut self, seq: Number) -> Result<Option<Name>, FileProblem> {
        let Some((sum, is_over)) = self.status_of(seq)? else { return Ok(None) };
        match is_over {
            false => self.total = self.total.wrapping_sub(sum).wrapping_sub(self.mail_sum(seq)?),
            true => self.known.weights.ended(-self.mail_weight(seq)?),
        }
        self.db.prepare_cached("DELETE FROM mail_status WHERE seq = ?1")?.execute([seq.cast_signed()])?;
        Ok(delete_mail(self.db, seq)?.map(|(mailbox, _)| mailbox))
    }

    /// Notes that a number of a mailbox was assigned and is not in use.
    fn gone(&mut self, mailbox: &Name, seq: Number) -> Result<(), FileProblem> {
        let change = note_gone(self.db, mailbox, (0, seq), self.at, self.sums)?;
        self.total = self.total.wrapping_add(change);
        Ok(())
    }
}

/// Deletes the row of `mail` of a message, and returns its mailbox and the bytes of its envelope.
pub(super) fn delete_mail(db: &Connection, seq: Number) -> Result<Option<(Name, i64)>, FileProblem> {
    let sql = "DELETE FROM mail WHERE seq = ?1 RETURNING mailbox, octet_length(envelope)";
    let row = |row: &Row<'_>| Ok((row.get::<_, Box<str>>(0)?, row.get(1)?));
    let Some((name, bytes)) = db.prepare_cached(sql)?.query_row([seq.cast_signed()], row).optional()? else {
        return Ok(None);
    };
    let name = super::text::parse_name(&name);
    Ok(Some((name.ok_or_else(|| FileProblem::damaged(format!("mail {seq} is in no mailbox")))?, bytes)))
}

/// Notes numbers that have left a mailbox: the greatest that was pruned, and the greatest of all. Returns the addition
/// to the total.
pub(super) fn note_gone(
    db: &Connection,
    mailbox: &Name,
    (pruned, last): (Number, Number),
    at: i64,
    sums: &mut Sums,
) -> Result<i64, FileProblem> {
    let sql = [Gone::SELECT, "WHERE mailbox = ?1"].concat();
    let old = {
        let mut statement = db.prepare_cached(&sql)?;
        let mut rows = statement.query([mailbox.as_str()])?;
        rows.next()?.map(|row| load::<Gone>(row, sums)).transpose()?
    };
    let (known, sum) = match old {
        Some(old) => (old.record, old.sum),
        None => (Gone { mailbox: mailbox.clone(), pruned: 0, last: 0 }, 0),
    };
    if known.pruned >= pruned && known.last >= last {
        return Ok(0);
    }
    let gone = Gone { pruned: known.pruned.max(pruned), last: known.last.max(last), ..known };
    Ok(write(&mut *db.prepare_cached(Gone::REPLACE)?, &gone, at, sums)?.wrapping_sub(sum))
}
