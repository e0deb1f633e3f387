//! Files of an older organism: the file of a gateway, versions 1 to 4, and an outbox.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use rusqlite::{Connection, OpenFlags, Row};
use systole_core::journal::{AgentRecord, MailRecord, MailState, MailStatus, Number, Registration, SubmissionRecord};
use systole_core::vocab::{MessageId, Name, ThreadId, Time};
use uuid::Uuid;

use crate::runtime::journal::error::StoreError;
use crate::runtime::journal::principal::PrincipalRow;
use crate::runtime::journal::text::parse_name;
use crate::runtime::principal::{Principal, PrincipalKind, TokenHash};
use crate::runtime::sqlite::{FileProblem, LockedFile, beside, place, truncate_log};

/// Due time of a message that is held without a time limit.
const HELD: i64 = i64::MAX;

const BUSY: Duration = Duration::from_secs(5);

/// A file of an older organism, locked against other writers.
pub(super) struct Old {
    // Before the lock, so that it is closed first.
    db: Connection,
    version: i64,
    file: PathBuf,
    _lock: LockedFile,
}

/// Contents of a gateway's file.
pub(super) struct Taken {
    pub(super) items: Vec<OldItem>,
    /// Per mailbox: the greatest number that was pruned, and the greatest of all that have left.
    pub(super) gone: Vec<(Name, Number, Number)>,
    pub(super) agents: Vec<AgentRecord>,
    pub(super) principals: Vec<PrincipalRow>,
    pub(super) sent: Vec<OldSent>,
}

pub(super) struct OldItem {
    pub(super) record: MailRecord,
    pub(super) status: MailStatus,
    pub(super) ended: Option<i64>,
}

pub(super) struct OldSent {
    pub(super) record: SubmissionRecord,
    pub(super) envelope: Bytes,
    /// True if the organism has not confirmed to the gateway that it has the message.
    pub(super) accepted: bool,
    pub(super) at: Time,
    pub(super) ended: Option<i64>,
    pub(super) answers: Vec<OldAnswer>,
}

pub(super) struct OldAnswer {
    pub(super) number: Number,
    pub(super) from: Name,
    pub(super) envelope: Bytes,
    pub(super) fault: Option<String>,
    pub(super) at: Time,
}

/// Progress of a push.
pub(super) struct Push {
    attempts: u32,
    spent: u64,
    error: Option<String>,
}

impl Old {
    /// Opens the file of the gateway of an organism with that journal, if there is one.
    pub(super) fn gateway(journal: &Path) -> Result<Option<Self>, StoreError> {
        Self::open(find(journal, ".gateway")?, "file of a gateway", 0x5379_4731, 4)
    }

    /// Opens the outbox, if there is one.
    pub(super) fn outbox(journal: &Path) -> Result<Option<Self>, StoreError> {
        Self::open(find(journal, ".outbox")?, "outbox", 0x5379_4f31, 1)
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    fn open(file: Option<PathBuf>, format: &'static str, id: i32, known: i64) -> Result<Option<Self>, StoreError> {
        let Some(file) = file else { return Ok(None) };
        let open = || {
            let lock = LockedFile::take(&file)?;
            if let Some(problem) = lock.inspect()?.and_then(|cut| cut.problem()) {
                return Err(problem);
            }
            let db = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            db.busy_timeout(BUSY)?;
            if db.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0))? != id {
                return Err(FileProblem::Foreign { format });
            }
            let version = match db.pragma_query_value(None, "user_version", |row| row.get(0))? {
                found if found > known => return Err(FileProblem::Newer { found, known }),
                found => found,
            };
            let found: String = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
            if found != "ok" {
                return Err(FileProblem::damaged(found.replace('\n', " ")));
            }
            // The file will be renamed without its log.
            truncate_log(&db)?;
            Ok((db, version, lock))
        };
        let (db, version, lock) = open().map_err(|problem| problem.of(&file))?;
        Ok(Some(Self { db, version, file, _lock: lock }))
    }

    /// Reads the open deliveries of an outbox.
    pub(super) fn pushes(&self) -> Result<HashMap<MessageId, Push>, StoreError> {
        let sql = "SELECT id, attempts, spent, error FROM delivery WHERE settled IS NULL";
        let push = |row: &Row<'_>| {
            let push = Push { attempts: row.get(1)?, spent: row.get::<_, i64>(2)?.cast_unsigned(), error: row.get(3)? };
            Ok((MessageId::from_uuid(uuid(row, 0)?), push))
        };
        Ok(self.told(self.all(sql, push))?.into_iter().collect())
    }

    /// Reads the contents of a gateway's file.
    pub(super) fn read(&self, pushes: &HashMap<MessageId, Push>) -> Result<Taken, StoreError> {
        let read = || {
            Ok(Taken {
                items: self.items(pushes)?,
                gone: self.gone()?,
                agents: self.agents()?,
                principals: self.all("SELECT name, kind, created, token FROM principal ORDER BY name", principal)?,
                sent: self.sent()?,
            })
        };
        self.told(read())
    }

    fn told<T>(&self, read: Result<T, FileProblem>) -> Result<T, StoreError> {
        read.map_err(|problem| problem.of(&self.file))
    }

    fn all<T>(&self, sql: &str, each: impl FnMut(&Row<'_>) -> rusqlite::Result<T>) -> Result<Vec<T>, FileProblem> {
        Ok(self.db.prepare(sql)?.query_map([], each)?.collect::<rusqlite::Result<_>>()?)
    }

    fn items(&self, pushes: &HashMap<MessageId, Push>) -> Result<Vec<OldItem>, FileProblem> {
        // A session that held a message ended with its process.
        let noticed = match self.version {
            ..3 => "0",
            _ => "state = 'waiting' AND EXISTS (SELECT 1 FROM notice WHERE notice.item = item.id AND token = receipt)",
        };
        let sql = format!(
            "SELECT seq, mailbox, id, thread, sender, in_reply_to, type, envelope, at, state, live, deliveries, due, \
             receipt, error, answer, ended, {noticed} FROM item ORDER BY seq"
        );
        self.all(&sql, |row| item(row, pushes))
    }

    fn gone(&self) -> Result<Vec<(Name, Number, Number)>, FileProblem> {
        let pruned = self.all("SELECT mailbox, seq FROM pruned ORDER BY mailbox", |row| {
            Ok((name(row, 0)?, row.get::<_, i64>(1)?.cast_unsigned()))
        })?;
        let mut gone: BTreeMap<Name, (Number, Number)> =
            pruned.into_iter().map(|(mailbox, seq)| (mailbox, (seq, seq))).collect();
        // Numbers of deleted dead letters are not assigned again either; any mailbox can record that.
        let last = self.all("SELECT seq FROM sqlite_sequence WHERE name = 'item'", |row| row.get::<_, i64>(0))?;
        let some = self.all("SELECT mailbox FROM item ORDER BY seq DESC LIMIT 1", |row| name(row, 0))?;
        let some = some.into_iter().next().or_else(|| gone.keys().next().cloned());
        if let (Some(last), Some(mailbox)) = (last.first(), some) {
            let mark = &mut gone.entry(mailbox).or_default().1;
            *mark = last.cast_unsigned().max(*mark);
        }
        Ok(gone.into_iter().map(|(mailbox, (pruned, last))| (mailbox, pruned, last)).collect())
    }

    fn agents(&self) -> Result<Vec<AgentRecord>, FileProblem> {
        let mut agents = BTreeMap::new();
        let blank = |name: &Name| AgentRecord { name: name.clone(), paused: None, registered: None };
        let urls = if self.version < 2 { "NULL, NULL" } else { "url, declared" };
        let registered = self.all(&format!("SELECT name, mode, at, {urls} FROM listener"), |row| {
            let text = |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(column)?.map(Into::into));
            let (mode, at): (String, _) = (row.get(1)?, time(row, 2)?);
            Ok((name(row, 0)?, Registration { at, mode: mode.into(), url: text(3)?, declared: text(4)? }))
        })?;
        for (name, registration) in registered {
            agents.entry(name.clone()).or_insert_with(|| blank(&name)).registered = Some(registration);
        }
        if self.version >= 4 {
            for (name, at) in self.all("SELECT name, at FROM pause", |row| Ok((name(row, 0)?, time(row, 1)?)))? {
                agents.entry(name.clone()).or_insert_with(|| blank(&name)).paused = Some(at);
            }
        }
        Ok(agents.into_values().collect())
    }

    fn sent(&self) -> Result<Vec<OldSent>, FileProblem> {
        let sql = "SELECT sent.id, sent.principal, root, envelope, at, state, ended, key, digest FROM sent \
                   LEFT JOIN idempotency ON idempotency.message = sent.id ORDER BY at, sent.id";
        let mut sent = self.all(sql, |row| {
            let key: (Option<String>, Option<[u8; 32]>) = (row.get(7)?, row.get(8)?);
            let record = SubmissionRecord {
                id: MessageId::from_uuid(uuid(row, 0)?),
                client: name(row, 1)?,
                root: ThreadId::from_uuid(uuid(row, 2)?),
                key: key.0.map(Into::into).zip(key.1),
            };
            Ok(OldSent {
                record,
                envelope: row.get::<_, String>(3)?.into(),
                accepted: row.get::<_, String>(5)? == "accepted",
                at: time(row, 4)?,
                ended: row.get(6)?,
                answers: Vec::new(),
            })
        })?;
        let sql = "SELECT message, number, sender, envelope, fault, at FROM answer ORDER BY number";
        let mut answers: HashMap<MessageId, Vec<OldAnswer>> = HashMap::new();
        let answer = |row: &Row<'_>| {
            let answer = OldAnswer {
                number: row.get::<_, i64>(1)?.cast_unsigned(),
                from: name(row, 2)?,
                envelope: row.get::<_, String>(3)?.into(),
                fault: row.get(4)?,
                at: time(row, 5)?,
            };
            Ok((MessageId::from_uuid(uuid(row, 0)?), answer))
        };
        for (id, answer) in self.all(sql, answer)? {
            answers.entry(id).or_default().push(answer);
        }
        sent.iter_mut().for_each(|sent| sent.answers = answers.remove(&sent.record.id).unwrap_or_default());
        Ok(sent)
    }
}

fn item(row: &Row<'_>, pushes: &HashMap<MessageId, Push>) -> rusqlite::Result<OldItem> {
    let id = MessageId::from_uuid(uuid(row, 2)?);
    let (state, payload): (String, String) = (row.get(9)?, row.get(6)?);
    let state = match MailState::parse(&state).ok_or_else(|| strange(9, &state))? {
        // The pump has its answer.
        MailState::Waiting if row.get::<_, i64>(10)? == 2 => MailState::Redriven,
        state => state,
    };
    let noticed: bool = row.get(17)?;
    let due: i64 = row.get(12)?;
    let push = pushes.get(&id).filter(|_| state.is_open());
    let deliveries: u32 = row.get(11)?;
    let error: Option<String> = row.get(14)?;
    let status = MailStatus {
        state,
        deliveries: push.map_or(deliveries, |push| push.attempts.max(deliveries)),
        due: match due {
            _ if noticed => Time::default(),
            HELD => Time::MAX,
            due => Time::from_nanos(due.cast_unsigned()),
        },
        receipt: row.get::<_, Option<[u8; 16]>>(13)?.filter(|_| !noticed),
        spent: push.map_or(0, |push| push.spent),
        error: push.and_then(|push| push.error.clone()).or(error).map(Into::into),
        answer: row.get::<_, Option<Vec<u8>>>(15)?.map(Bytes::from),
    };
    let record = MailRecord {
        seq: row.get::<_, i64>(0)?.cast_unsigned(),
        mailbox: name(row, 1)?,
        id,
        thread: ThreadId::from_uuid(uuid(row, 3)?),
        from: name(row, 4)?,
        in_reply_to: row.get::<_, Option<[u8; 16]>>(5)?.map(|id| MessageId::from_uuid(Uuid::from_bytes(id))),
        payload: payload.parse().map_err(|_| strange(6, &payload))?,
        envelope: row.get::<_, String>(7)?.into(),
        at: time(row, 8)?,
    };
    Ok(OldItem { record, status, ended: row.get(16)? })
}

fn principal(row: &Row<'_>) -> rusqlite::Result<PrincipalRow> {
    let kind: String = row.get(1)?;
    let principal = Principal {
        name: name(row, 0)?,
        kind: PrincipalKind::parse(&kind).ok_or_else(|| strange(1, &kind))?,
        created: time(row, 2)?,
    };
    Ok(PrincipalRow { principal, token: TokenHash(row.get(3)?) })
}

fn name(row: &Row<'_>, column: usize) -> rusqlite::Result<Name> {
    let text: String = row.get(column)?;
    parse_name(&text).ok_or_else(|| strange(column, &text))
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Time> {
    Ok(Time::from_nanos(row.get::<_, i64>(column)?.cast_unsigned()))
}

pub(super) fn uuid(row: &Row<'_>, column: usize) -> rusqlite::Result<Uuid> {
    row.get(column).map(Uuid::from_bytes)
}

/// The error for a value that no version writes.
fn strange(column: usize, found: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, found.to_owned().into())
}

/// Finds the older file beside a journal. An older organism put it beside the path in its configuration, which may have
/// been a link to the journal or the journal itself, so both places are checked.
fn find(journal: &Path, ending: &str) -> Result<Option<PathBuf>, StoreError> {
    let given = beside(journal, ending);
    let real = place(journal).map_err(|problem| problem.of(journal))?;
    let real = beside(&real, ending);
    let same = || Some(fs::canonicalize(&given).ok()? == fs::canonicalize(&real).ok()?);
    match (given.exists(), real.exists()) {
        (true, true) if same() != Some(true) => Err(FileProblem::Twofold { other: real }.of(&given)),
        (true, _) => Ok(Some(given)),
        (false, true) => Ok(Some(real)),
        (false, false) => Ok(None),
    }
}
