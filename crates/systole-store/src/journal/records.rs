//! The records of the journal as rows.

use rusqlite::types::ToSqlOutput;
use systole_core::journal::{
    ActRecord, BodyRecord, EgressRecord, LetterRecord, MessageRecord, MessageState, NoteRecord, Number, Owner,
    PausedRecord, RememberedRecord, StateRecord, TaskRecord, ThreadRecord,
};
use systole_core::vocab::{MessageId, Partition, TaskId, ThreadId, Time};
use uuid::Uuid;

use super::row::{
    Cells, Record, blob, flag, number, optional_blob, optional_number, optional_owned_text, optional_text, owned_text,
    parse_time, statements, text, time,
};
use super::text as write;

type Cell<'a> = &'a mut dyn FnMut(ToSqlOutput<'_>) -> rusqlite::Result<()>;

impl Record for ThreadRecord {
    statements!(
        "thread",
        "number = ?1",
        "ended",
        "number, id, parent, root, listener, client, ordinal, depth, opened_by, origin, deadline, own_deadline, \
         spawned, gone, label, traceparent",
        "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
    );

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        let (listener, client) = match &self.owner {
            Owner::Listener(name) => (Some(name.as_str()), None),
            Owner::Client(name) => (None, Some(name.as_str())),
            // No client has this name.
            Owner::Boot => (None, Some("root")),
            Owner::None => (None, None),
        };
        cell(number(self.number))?;
        cell(blob(self.id.as_uuid().as_bytes()))?;
        cell(optional_number(self.parent))?;
        cell(number(self.root))?;
        cell(optional_text(listener))?;
        cell(optional_text(client))?;
        cell(number(self.ordinal.into()))?;
        cell(number(self.depth.into()))?;
        cell(blob(self.opened_by.as_uuid().as_bytes()))?;
        cell(optional_owned_text(write::reply_to(self.reply_to)))?;
        cell(time(self.deadline))?;
        cell(flag(self.own_deadline))?;
        cell(flag(self.spawned))?;
        cell(flag(self.left))?;
        cell(optional_text(self.label.as_deref()))?;
        cell(optional_text(self.traceparent.as_deref()))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            number: cells.number()?,
            id: thread_id(cells)?,
            parent: cells.optional_number()?,
            root: cells.number()?,
            owner: parse_owner(cells)?,
            ordinal: cells.small()?,
            depth: cells.small()?,
            opened_by: message_id(cells)?,
            reply_to: write::parse_reply_to(cells.optional_text()?)?,
            deadline: parse_time(cells.optional_number()?),
            own_deadline: cells.flag()?,
            spawned: cells.flag()?,
            left: cells.flag()?,
            label: cells.optional_text()?.map(Into::into),
            traceparent: cells.optional_text()?.map(Into::into),
        })
    }
}

impl Record for MessageRecord {
    statements!(
        "message",
        "number = ?1",
        "ended",
        "number, place, thread, id, sender, in_reply_to, answers, state, due, owes, kind, body, attempts",
        "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?",
        "ended, ending",
        "?, ?"
    );
    const HEAVY: &'static [usize] = &[11];

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        let (state, due, owes) = match self.state {
            MessageState::Queued => ("queued", None, None),
            MessageState::Delayed(due) => ("delayed", Some(due.as_nanos()), None),
            MessageState::Backlog(owes) => ("backlog", None, write::reply_to(owes)),
        };
        cell(number(self.number))?;
        cell(number(self.place))?;
        cell(number(self.thread))?;
        cell(blob(self.id.as_uuid().as_bytes()))?;
        cell(text(self.from.as_str().as_bytes()))?;
        cell(optional_blob(self.in_reply_to.as_ref().map(|id| id.as_uuid().as_bytes().as_slice())))?;
        cell(optional_owned_text(write::reply_to(self.answers)))?;
        cell(text(state.as_bytes()))?;
        cell(optional_number(due))?;
        cell(optional_owned_text(owes))?;
        match &self.body {
            BodyRecord::Payload(payload) => {
                cell(text(b"payload"))?;
                cell(text(payload))?;
            }
            BodyRecord::Fault(fault) => {
                cell(text(b"fault"))?;
                cell(owned_text(write::fault(fault)))?;
            }
            BodyRecord::Fatal(fault) => {
                cell(text(b"fatal"))?;
                cell(owned_text(write::fault(fault)))?;
            }
        }
        cell(number(self.attempts.into()))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            number: cells.number()?,
            place: cells.number()?,
            thread: cells.number()?,
            id: message_id(cells)?,
            from: cells.name()?,
            in_reply_to: cells.optional_blob()?.map(|id| MessageId::from_uuid(Uuid::from_bytes(id))),
            answers: write::parse_reply_to(cells.optional_text()?)?,
            state: match (cells.text()?, cells.optional_number()?, cells.optional_text()?) {
                ("queued", None, None) => MessageState::Queued,
                ("delayed", Some(due), None) => MessageState::Delayed(Time::from_nanos(due)),
                ("backlog", None, owes) => MessageState::Backlog(write::parse_reply_to(owes)?),
                _ => return None,
            },
            body: match cells.text()? {
                "payload" => BodyRecord::Payload(cells.bytes()?),
                "fault" => BodyRecord::Fault(write::parse_fault(cells.text()?)?),
                "fatal" => BodyRecord::Fatal(write::parse_fault(cells.text()?)?),
                _ => return None,
            },
            attempts: cells.small()?,
        })
    }
}

impl Record for NoteRecord {
    statements!("note", "message = ?1 AND place = ?2", "ended", "message, place, name, value", "?, ?, ?, ?");
    const HEAVY: &'static [usize] = &[3];

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        cell(number(self.message))?;
        cell(number(self.index.into()))?;
        cell(text(self.name.as_bytes()))?;
        cell(text(self.value.as_bytes()))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            message: cells.number()?,
            index: cells.small()?,
            name: cells.text()?.into(),
            value: cells.text()?.into(),
        })
    }
}

/// A mark on a dead letter that the next start redrives. Its table, `requeue`, keeps the name of the file format: another
/// name would be a new version of it.
pub(super) struct Redrive(pub(super) Number);

impl Record for Redrive {
    statements!("requeue", "letter = ?1", "NULL", "letter", "?");

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        cell(number(self.0))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        cells.number().map(Self)
    }
}

impl Record for RememberedRecord {
    statements!("remembered", "number = ?1", "ended", "number, thread, sender, payload", "?, ?, ?, ?");
    const HEAVY: &'static [usize] = &[3];

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        cell(number(self.number))?;
        cell(number(self.thread))?;
        cell(text(self.from.as_str().as_bytes()))?;
        cell(text(&write::remembered(self)))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        write::parse_remembered((cells.number()?, cells.number()?), cells.name()?, &cells.bytes()?)
    }
}

impl Record for EgressRecord {
    statements!(
        "egress",
        "number = ?1",
        "ended",
        "number, client, root, sender, in_reply_to, envelope, fault, payload",
        "?, ?, ?, ?, ?, ?, ?, ?"
    );
    const HEAVY: &'static [usize] = &[5, 7];

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        cell(number(self.number))?;
        cell(text(self.client.as_str().as_bytes()))?;
        cell(blob(self.root.as_uuid().as_bytes()))?;
        cell(text(self.from.as_str().as_bytes()))?;
        cell(optional_text(self.in_reply_to.as_deref()))?;
        cell(text(&self.envelope))?;
        cell(optional_owned_text(self.fault.as_ref().map(write::fault)))?;
        cell(text(&self.payload))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            number: cells.number()?,
            client: cells.name()?,
            root: thread_id(cells)?,
            from: cells.name()?,
            in_reply_to: cells.optional_text()?.map(Into::into),
            envelope: cells.bytes()?,
            fault: match cells.optional_text()? {
                Some(fault) => Some(write::parse_fault(fault)?),
                None => None,
            },
            payload: cells.bytes()?,
        })
    }
}

// The column `buried` is the time at which the message became a dead letter, and `path` has the id of the conversation
// behind the path; their names belong to the file format.
impl Record for LetterRecord {
    statements!(
        "letter",
        "number = ?1",
        "NULL",
        "number, buried, sender, target, path, qname, payload, reason, part",
        "?, ?, ?, ?, ?, ?, ?, ?, ?"
    );

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        cell(number(self.number))?;
        cell(number(self.at.as_nanos()))?;
        cell(text(self.from.as_str().as_bytes()))?;
        cell(optional_text(self.to.as_ref().map(|name| name.as_str())))?;
        cell(owned_text(write::letter_place(&self.place)))?;
        match &self.payload {
            Some((qname, payload)) => {
                cell(owned_text(qname.to_string()))?;
                cell(text(payload))?;
            }
            None => {
                cell(optional_text(None))?;
                cell(optional_text(None))?;
            }
        }
        cell(owned_text(write::fault(&self.reason)))?;
        cell(number(self.partition.0.into()))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            number: cells.number()?,
            at: Time::from_nanos(cells.number()?),
            from: cells.name()?,
            to: cells.optional_name()?,
            place: write::parse_letter_place(cells.text()?)?,
            payload: match cells.optional_text()? {
                Some(qname) => Some((qname.parse().ok()?, cells.bytes()?)),
                None => {
                    cells.value()?;
                    None
                }
            },
            reason: write::parse_fault(cells.text()?)?,
            partition: Partition(cells.small()?),
        })
    }
}

impl Record for TaskRecord {
    statements!("task", "0", "NULL", "inbox, id, place, state, body", "?, ?, ?, ?, ?");

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        cell(text(self.inbox.as_str().as_bytes()))?;
        cell(blob(self.id.as_uuid().as_bytes()))?;
        cell(number(self.place))?;
        cell(text(self.state.as_bytes()))?;
        cell(text(self.body.as_bytes()))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            inbox: cells.name()?,
            id: TaskId::from_uuid(Uuid::from_bytes(cells.blob()?)),
            place: cells.number()?,
            state: cells.text()?.into(),
            body: cells.text()?.into(),
        })
    }
}

impl Record for StateRecord {
    statements!("state", "0", "NULL", "listener, blob", "?, ?");

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        cell(text(self.listener.as_str().as_bytes()))?;
        cell(blob(&self.blob))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self { listener: cells.name()?, blob: cells.bytes()? })
    }
}

impl Record for PausedRecord {
    statements!("paused", "0", "NULL", "listener, since", "?, ?");

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        cell(text(self.listener.as_str().as_bytes()))?;
        cell(time(self.since))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self { listener: cells.name()?, since: Time::from_nanos(cells.number()?) })
    }
}

/// An act, with its place among those of its step.
pub(super) struct ActRow {
    pub(super) place: u32,
    pub(super) act: ActRecord,
}

impl Record for ActRow {
    statements!("act", "0", "ended", "place, operator, act, about, error, opened", "?, ?, ?, ?, ?, ?");
    const HEAVY: &'static [usize] = &[4];

    fn cells(&self, cell: Cell<'_>) -> rusqlite::Result<()> {
        let ActRecord { by, act, of, error, opened } = &self.act;
        cell(number(self.place.into()))?;
        cell(text(by.as_str().as_bytes()))?;
        cell(text(act.as_bytes()))?;
        cell(text(of.as_bytes()))?;
        cell(optional_text(error.as_deref()))?;
        cell(optional_blob(opened.as_ref().map(|root| root.as_uuid().as_bytes().as_slice())))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        let place = cells.small()?;
        let act = ActRecord {
            by: cells.name()?,
            act: cells.text()?.into(),
            of: cells.text()?.into(),
            error: cells.optional_text()?.map(Into::into),
            opened: cells.optional_blob()?.map(|id| ThreadId::from_uuid(Uuid::from_bytes(id))),
        };
        Some(Self { place, act })
    }
}

/// Parses the columns `listener` and `client`.
pub(super) fn parse_owner(cells: &mut Cells<'_>) -> Option<Owner> {
    match (cells.optional_name()?, cells.optional_name()?) {
        (Some(name), None) => Some(Owner::Listener(name)),
        (None, Some(name)) if name == systole_core::vocab::Name::root() => Some(Owner::Boot),
        (None, Some(name)) => Some(Owner::Client(name)),
        (None, None) => Some(Owner::None),
        (Some(_), Some(_)) => None,
    }
}

pub(super) fn thread_id(cells: &mut Cells<'_>) -> Option<ThreadId> {
    Some(ThreadId::from_uuid(Uuid::from_bytes(cells.blob()?)))
}

pub(super) fn message_id(cells: &mut Cells<'_>) -> Option<MessageId> {
    Some(MessageId::from_uuid(Uuid::from_bytes(cells.blob()?)))
}
