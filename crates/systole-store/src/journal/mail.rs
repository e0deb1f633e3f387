//! The records of mailboxes, remote listeners and submissions as rows.

use rusqlite::types::ToSqlOutput;
use systole_core::journal::{
    AddresseeRecord, AgentRecord, MailRecord, MailState, MailStatus, Number, Registration, SubmissionRecord,
};
use systole_core::vocab::{MessageId, Name, Time};
use uuid::Uuid;

use super::records::{message_id, thread_id};
use super::row::{
    Cells, Record, blob, number, optional_blob, optional_number, optional_text, owned_text, parse_time, statements,
    text, time,
};

type Cell<'a> = &'a mut dyn FnMut(ToSqlOutput<'_>) -> rusqlite::Result<()>;

impl Record for MailRecord {
    statements!(
        "mail",
        "seq = ?1",
        "(SELECT ended FROM mail_status WHERE mail_status.seq = mail.seq)",
        "seq, mailbox, id, thread, sender, in_reply_to, payload, envelope, came",
        "?, ?, ?, ?, ?, ?, ?, ?, ?"
    );

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        cell(number(self.seq))?;
        cell(text(self.mailbox.as_str().as_bytes()))?;
        cell(blob(self.id.as_uuid().as_bytes()))?;
        cell(blob(self.thread.as_uuid().as_bytes()))?;
        cell(text(self.from.as_str().as_bytes()))?;
        cell(optional_blob(self.in_reply_to.as_ref().map(|id| id.as_uuid().as_bytes().as_slice())))?;
        cell(owned_text(self.payload.to_string()))?;
        cell(text(&self.envelope))?;
        cell(number(self.at.as_nanos()))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            seq: cells.number()?,
            mailbox: cells.name()?,
            id: message_id(cells)?,
            thread: thread_id(cells)?,
            from: cells.name()?,
            in_reply_to: cells.optional_blob()?.map(|id| MessageId::from_uuid(Uuid::from_bytes(id))),
            payload: cells.text()?.parse().ok()?,
            envelope: cells.bytes()?,
            at: Time::from_nanos(cells.number()?),
        })
    }
}

/// The status of a message, with its sequence number.
pub(super) struct StatusRow {
    pub(super) seq: Number,
    pub(super) status: MailStatus,
}

impl Record for StatusRow {
    statements!(
        "mail_status",
        "seq = ?1",
        "ended",
        "seq, state, deliveries, due, receipt, spent, error, answer",
        "?, ?, ?, ?, ?, ?, ?, ?"
    );

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        let MailStatus { state, deliveries, due, receipt, spent, error, answer } = &self.status;
        cell(number(self.seq))?;
        cell(text(state.as_str().as_bytes()))?;
        cell(number((*deliveries).into()))?;
        cell(time(*due))?;
        cell(optional_blob(receipt.as_ref().map(|receipt| receipt.as_slice())))?;
        cell(number(*spent))?;
        cell(optional_text(error.as_deref()))?;
        cell(optional_blob(answer.as_deref()))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        let seq = cells.number()?;
        let status = MailStatus {
            state: MailState::parse(cells.text()?)?,
            deliveries: cells.small()?,
            due: parse_time(cells.optional_number()?),
            receipt: cells.optional_blob()?,
            spent: cells.number()?,
            error: cells.optional_text()?.map(Into::into),
            answer: cells.optional_bytes()?,
        };
        Some(Self { seq, status })
    }
}

/// Sequence numbers that have left a mailbox.
#[derive(Clone)]
pub(super) struct Gone {
    pub(super) mailbox: Name,
    /// The greatest number that retention deleted.
    pub(super) pruned: Number,
    /// The greatest number of all that have left: it is not assigned again.
    pub(super) last: Number,
}

impl Record for Gone {
    statements!("mail_gone", "0", "NULL", "mailbox, pruned, last", "?, ?, ?");

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        cell(text(self.mailbox.as_str().as_bytes()))?;
        cell(number(self.pruned))?;
        cell(number(self.last))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self { mailbox: cells.name()?, pruned: cells.number()?, last: cells.number()? })
    }
}

impl Record for AgentRecord {
    statements!("agent", "0", "NULL", "name, paused, registered, mode, url, declared", "?, ?, ?, ?, ?, ?");

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        let registered = self.registered.as_ref();
        cell(text(self.name.as_str().as_bytes()))?;
        cell(optional_number(self.paused.map(Time::as_nanos)))?;
        cell(optional_number(registered.map(|registered| registered.at.as_nanos())))?;
        cell(optional_text(registered.map(|registered| &*registered.mode)))?;
        cell(optional_text(registered.and_then(|registered| registered.url.as_deref())))?;
        cell(optional_text(registered.and_then(|registered| registered.declared.as_deref())))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            name: cells.name()?,
            paused: cells.optional_number()?.map(Time::from_nanos),
            registered: match (
                cells.optional_number()?,
                cells.optional_text()?,
                cells.optional_text()?,
                cells.optional_text()?,
            ) {
                (Some(at), Some(mode), url, declared) => Some(Registration {
                    at: Time::from_nanos(at),
                    mode: mode.into(),
                    url: url.map(Into::into),
                    declared: declared.map(Into::into),
                }),
                (None, None, None, None) => None,
                _ => return None,
            },
        })
    }
}

impl Record for AddresseeRecord {
    statements!("addressee", "0", "NULL", "mailbox, person", "?, ?");

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        cell(text(self.mailbox.as_str().as_bytes()))?;
        cell(optional_text(self.person.as_ref().map(Name::as_str)))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self { mailbox: cells.name()?, person: cells.optional_name()? })
    }
}

impl Record for SubmissionRecord {
    statements!("submission", "0", "ended", "id, client, root, key, digest", "?, ?, ?, ?, ?");

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        cell(blob(self.id.as_uuid().as_bytes()))?;
        cell(text(self.client.as_str().as_bytes()))?;
        cell(blob(self.root.as_uuid().as_bytes()))?;
        cell(optional_text(self.key.as_ref().map(|(key, _)| &**key)))?;
        cell(optional_blob(self.key.as_ref().map(|(_, digest)| digest.as_slice())))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            id: message_id(cells)?,
            client: cells.name()?,
            root: thread_id(cells)?,
            key: match (cells.optional_text()?, cells.optional_blob()?) {
                (Some(key), Some(digest)) => Some((key.into(), digest)),
                (None, None) => None,
                _ => return None,
            },
        })
    }
}
