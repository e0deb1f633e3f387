//! Queries of committed rows, for entrances that answer requests while the organism runs.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{OptionalExtension, Params, named_params};
use systole_core::core::{Egress, Usage};
use systole_core::journal::{
    EgressRecord, JournalError, JournalErrorKind, MailRecord, MailStatus, Moment, Number, StateRecord,
    SubmissionRecord, TaskRecord,
};
use systole_core::vocab::{FaultCode, MessageId, Name, QName, ThreadId, Time, XmlLimits};
use systole_xml::ladder::{Raw, parse};
use tokio::sync::oneshot;

use super::beside::{self, KeptAct, KeptLetter, KeptMailbox, LetterFilter, LetterPosition, TaskFilter, TaskPosition};
use super::error::StoreError;
use super::look::{self, ConversationFilter, HistoryPosition, KeptConversation, KeptMessage, KeptThread, UsedDays};
use super::mail::{Gone, StatusRow};
use super::principal::PrincipalRow;
use super::reader::{JournalReader, time};
use super::retry::{Retry, RetryError};
use super::store::{Answering, Query};
use super::writer::JournalFeeder;
use crate::principal::{Principal, TokenHash};
use crate::sqlite::FileProblem;

/// Reads the journal of an organism from any task; long queries run on threads of their own: those of clients and agents on
/// one, the looks of operators, which may search megabytes, on another one.
///
/// Each query sees one state of the journal, in which everything committed before the query is contained, and reports a
/// row that differs from what was written as damage.
#[derive(Clone)]
pub struct JournalQuery {
    /// A connection for the calling threads.
    here: Arc<Mutex<JournalReader>>,
    /// The reading threads with connections of their own; none on a simulated clock, where nothing may happen on other
    /// threads.
    threads: Option<ReadingThreads>,
    /// Brings the tables up to date; none where they always are.
    feeder: Option<JournalFeeder>,
    /// The database of an image, in which the principals are.
    #[cfg(feature = "postgres")]
    database: Option<Database>,
    secret: Arc<[u8; 32]>,
    file: Arc<Path>,
    /// True while queries fail, which is logged once.
    fails: Arc<AtomicBool>,
}

/// Principals in a database, which other processes write.
#[cfg(feature = "postgres")]
pub(super) trait Bearers: Send + Sync {
    /// Reads the principal of a token.
    fn find(&self, token: TokenHash) -> Answering<'_, Option<Principal>>;
}

/// The database of an image that queries are answered from.
#[cfg(feature = "postgres")]
#[derive(Clone)]
struct Database {
    bearers: Arc<dyn Bearers>,
    /// The image, which is deleted with the last one who needs it.
    _image: Arc<dyn Send + Sync>,
}

/// Failure to read the store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct QueryError {
    error: JournalError,
    problem: Arc<str>,
}

impl QueryError {
    /// Makes an error. `problem` doesn't say where the store is.
    pub fn new(error: JournalError, problem: impl Into<Arc<str>>) -> Self {
        Self { error, problem: problem.into() }
    }

    /// The problem, without the place of the store: clients of a network get it.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    pub(super) fn ended() -> Self {
        let message = "the thread that reads the journal has ended";
        Self::new(JournalError::new(JournalErrorKind::Panicked, message), message)
    }
}

impl From<StoreError> for QueryError {
    fn from(error: StoreError) -> Self {
        let problem = error.problem.to_string();
        Self::new(error.into(), problem)
    }
}

/// A query; it receives an error if the journal can't be read at all.
type Work = Box<dyn FnOnce(Result<&JournalReader, &QueryError>) + Send>;

/// The most queries that share one transaction.
const TOGETHER: usize = 64;

/// A message of a mailbox and its delivery status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMail {
    /// The message.
    pub record: MailRecord,
    /// The delivery status of the message.
    pub status: MailStatus,
}

/// Filter of the messages of a mailbox.
#[derive(Debug, Clone)]
pub struct Range {
    /// The mailbox.
    pub mailbox: Name,
    /// Only messages behind this number.
    pub after: Number,
    /// The most messages.
    pub limit: usize,
    /// Bytes of all envelopes together at most; a first envelope that is longer is returned alone.
    pub bytes: usize,
    /// Only messages with this payload.
    pub payload: Option<String>,
    /// Only messages from this sender.
    pub peer: Option<String>,
    /// Only messages that came before this time.
    pub before: Option<Time>,
    /// Only dead letters.
    pub dead: bool,
}

/// Messages of a mailbox, in order of their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The messages.
    pub items: Vec<StoredMail>,
    /// True if more messages follow.
    pub has_more: bool,
    /// Extent of the mailbox when they were read.
    pub position: Position,
}

impl Page {
    /// Bytes of the envelopes.
    pub fn bytes(&self) -> usize {
        self.items.iter().map(|mail| mail.record.envelope.len()).sum()
    }
}

/// The extent of a mailbox: the end of the part that retention has deleted, and the begin of the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The greatest number that was deleted.
    pub pruned: Number,
    /// The number of the oldest message.
    pub oldest: Option<Number>,
}

/// Filter of a search in a mailbox.
#[derive(Debug, Clone)]
pub struct History {
    /// The mailbox.
    pub mailbox: Name,
    /// Only messages behind this number.
    pub after: Number,
    /// The most messages.
    pub limit: usize,
    /// Bytes of all envelopes together at most; a first envelope that is longer is returned alone.
    pub bytes: usize,
    /// Only messages with this payload, or with a payload of this namespace.
    pub of: Of,
    /// Only messages from one of these senders.
    pub senders: Option<Vec<Name>>,
    /// Only messages that came at this time or later.
    pub since: Option<Time>,
    /// Only messages that came before this time.
    pub before: Option<Time>,
    /// Only messages that have no answer and can have one.
    pub waiting: bool,
}

/// Filter by payload.
#[derive(Debug, Clone)]
pub enum Of {
    /// A payload of that name.
    Payload(QName),
    /// Any payload of that namespace.
    Namespace(&'static str),
}

/// A message that a client submitted, with its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The submission.
    pub submission: SubmissionRecord,
    /// Time at which the pump took the message.
    pub at: Time,
    /// True if its conversation has ended.
    pub ended: bool,
    /// Time of the first answer, or of the end of a conversation without one.
    pub settled: Option<Time>,
    /// True if the first answer is a fault; `None` before the first answer.
    pub faulted: Option<bool>,
    /// The answers in order of number, without the skipped ones.
    pub answers: Vec<SentAnswer>,
    /// True if more answers follow.
    pub has_more: bool,
}

/// An answer in the conversation of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentAnswer {
    /// Number of the answer among all messages for clients.
    pub number: Number,
    /// The listener that answered.
    pub from: Name,
    /// Name of the payload.
    pub payload: QName,
    /// The canonical envelope.
    pub envelope: bytes::Bytes,
    /// The code of the fault, if it is one.
    pub fault: Option<FaultCode>,
}

impl SentAnswer {
    /// Converts an answer on its way to its client.
    pub fn of(egress: Egress) -> Self {
        Self {
            number: egress.number,
            from: egress.from,
            payload: egress.payload.root().clone(),
            envelope: egress.envelope,
            fault: egress.fault.map(|fault| fault.code),
        }
    }
}

/// The threads that read, each in order of requests.
#[derive(Clone)]
struct ReadingThreads {
    queries: Sender<Work>,
    looks: Sender<Work>,
}

impl ReadingThreads {
    fn start(file: &Path) -> Result<Self, StoreError> {
        let start = |name: &str, begin: fn()| {
            let reader = JournalReader::join(file)?;
            let (inbox, work) = channel::<Work>();
            let run = move || {
                begin();
                while let Ok(first) = work.recv() {
                    serve(&reader, std::iter::once(first).chain(work.try_iter()).take(TOGETHER).collect());
                }
            };
            let thread = std::thread::Builder::new().name(name.into()).spawn(run);
            thread.map_err(|error| FileProblem::from(error).of(file))?;
            Ok::<_, StoreError>(inbox)
        };
        Ok(Self { queries: start("journal-read", || {})?, looks: start("journal-look", yield_to_others)? })
    }
}

/// Lets the calling thread give way to others where all processors are busy: an operator's search is no haste.
fn yield_to_others() {
    /// A quarter of the share of a thread without it, on Linux, where each thread has a nice value of its own (sched(7)).
    #[cfg(target_os = "linux")]
    const NICE: i32 = 6;
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "looks of operators have the priority of messages");
    }
}

impl JournalQuery {
    /// Opens a journal that its organism has opened before.
    ///
    /// # Errors
    /// [`StoreError`] if the file is missing, no journal or unreadable, or if the threads can't be started.
    pub fn open(file: &Path, feeder: Option<JournalFeeder>) -> Result<Self, StoreError> {
        Ok(Self { threads: Some(ReadingThreads::start(file)?), feeder, ..Self::here(file)? })
    }

    /// Opens a journal as [`open`](Self::open) does, to be read on the calling threads. Its tables must have all steps.
    ///
    /// # Errors
    /// [`StoreError`] if the file is missing, no journal or unreadable.
    pub fn here(file: &Path) -> Result<Self, StoreError> {
        let reader = JournalReader::join(file)?;
        let secret = reader.at_one_moment(|reader| reader.key())?;
        Ok(Self {
            here: Arc::new(Mutex::new(reader)),
            threads: None,
            feeder: None,
            #[cfg(feature = "postgres")]
            database: None,
            secret: secret.into(),
            file: file.into(),
            fails: Arc::default(),
        })
    }

    /// Queries of an image, whose principals are in a database.
    #[cfg(feature = "postgres")]
    pub(super) fn of_image(self, image: Arc<dyn Send + Sync>, bearers: Arc<dyn Bearers>) -> Self {
        Self { database: Some(Database { bearers, _image: image }), ..self }
    }

    /// Waits until the tables have all steps that were confirmed before.
    async fn feed(&self) -> Result<(), QueryError> {
        match &self.feeder {
            Some(feeder) if !feeder.feed().await => {
                let message = "its last steps can't be written to its tables any more";
                Err(FileProblem::Failed(message.to_owned()).of(&self.file).into())
            }
            _ => Ok(()),
        }
    }

    /// Reads on the calling thread.
    fn read<T>(&self, read: impl FnOnce(&JournalReader) -> Result<T, FileProblem>) -> Result<T, QueryError> {
        let reader = self.here.lock().unwrap_or_else(PoisonError::into_inner);
        self.noted(reader.at_one_moment(read).map_err(QueryError::from))
    }

    /// Logs the first failure after a success.
    fn noted<T>(&self, read: Result<T, QueryError>) -> Result<T, QueryError> {
        let fails = read.is_err();
        if let Err(error) = &read
            && !self.fails.load(Ordering::Relaxed)
        {
            tracing::error!(%error, "queries of clients fail");
        }
        self.fails.store(fails, Ordering::Relaxed);
        read
    }

    /// Runs a query of a client or an agent.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        query: impl FnOnce(&JournalReader) -> Result<T, FileProblem> + Send + 'static,
    ) -> Result<T, QueryError> {
        self.run_on(self.threads.as_ref().map(|threads| &threads.queries), query).await
    }

    /// Runs a look of an operator.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&JournalReader) -> Result<T, FileProblem> + Send + 'static,
    ) -> Result<T, QueryError> {
        self.run_on(self.threads.as_ref().map(|threads| &threads.looks), look).await
    }

    /// Runs work on a reading thread, or on the calling one if there is none.
    async fn run_on<T: Send + 'static>(
        &self,
        thread: Option<&Sender<Work>>,
        work: impl FnOnce(&JournalReader) -> Result<T, FileProblem> + Send + 'static,
    ) -> Result<T, QueryError> {
        let Some(inbox) = thread else { return self.read(work) };
        self.feed().await?;
        let (tell, told) = oneshot::channel();
        let work = move |reader: Result<&JournalReader, &QueryError>| {
            let read = reader.map_err(Clone::clone).and_then(|reader| Ok(reader.told(work(reader))?));
            // The caller may have dropped its future.
            let _ = tell.send(read);
        };
        inbox.send(Box::new(work)).map_err(|_| QueryError::ended())?;
        self.noted(told.await.unwrap_or_else(|_| Err(QueryError::ended())))
    }
}

impl Query for JournalQuery {
    fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    fn page(&self, range: Range) -> Answering<'_, Page> {
        Box::pin(self.run(move |reader| page(reader, &range)))
    }

    fn mail(&self, id: MessageId) -> Answering<'_, Option<StoredMail>> {
        Box::pin(self.run(move |reader| Ok(mail(reader, "WHERE id = ?1", [id.as_uuid().as_bytes()])?.pop())))
    }

    fn mail_among(&self, mailbox: Name, ids: Vec<MessageId>) -> Answering<'_, Option<MessageId>> {
        Box::pin(self.run(move |reader| {
            let mut look = reader.db.prepare_cached("SELECT 1 FROM mail WHERE id = ?1 AND mailbox = ?2")?;
            for id in ids {
                if look.exists((id.as_uuid().as_bytes(), mailbox.as_str()))? {
                    return Ok(Some(id));
                }
            }
            Ok(None)
        }))
    }

    fn mail_at(&self, seqs: Vec<Number>) -> Answering<'_, Vec<StoredMail>> {
        Box::pin(self.run(move |reader| {
            let at = |seq: Number| Ok(mail(reader, "WHERE seq = ?1", [seq.cast_signed()])?.pop());
            seqs.into_iter().filter_map(|seq| at(seq).transpose()).collect()
        }))
    }

    fn history(&self, of: History) -> Answering<'_, (Vec<StoredMail>, bool)> {
        Box::pin(self.run(move |reader| history(reader, &of)))
    }

    fn submission(&self, id: MessageId, skip: usize, bytes: usize) -> Answering<'_, Option<Sent>> {
        Box::pin(self.run(move |reader| {
            let found = reader.rows(
                "WHERE id = ?1",
                [id.as_uuid().as_bytes()],
                |_, submission: SubmissionRecord, at, ended| Ok((submission, time(at), ended.map(time))),
            )?;
            let Some((submission, at, over)) = found.into_iter().next() else { return Ok(None) };
            let root = submission.root.as_uuid().as_bytes();
            let look = "SELECT fault IS NOT NULL, at FROM egress WHERE root = ?1 ORDER BY number LIMIT 1";
            let first = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, time(row.get(1)?)));
            let first = reader.db.prepare_cached(look)?.query_row([root], first).optional()?;
            let (answers, has_more) = answers(reader, root, skip, bytes)?;
            let settled = first.map(|(_, at)| at).or(over);
            let (ended, faulted) = (over.is_some(), first.map(|(faulted, _)| faulted));
            Ok(Some(Sent { submission, at, ended, settled, faulted, answers, has_more }))
        }))
    }

    fn submission_of_key(&self, client: Name, key: Arc<str>) -> Answering<'_, Option<SubmissionRecord>> {
        Box::pin(self.run(move |reader| {
            let newest = "WHERE client = ?1 AND key = ?2 ORDER BY at DESC LIMIT 1";
            Ok(reader.rows(newest, (client.as_str(), &*key), |_, submission, _, _| Ok(submission))?.pop())
        }))
    }

    fn bearer(&self, token: TokenHash) -> Answering<'_, Option<Principal>> {
        #[cfg(feature = "postgres")]
        if let Some(database) = &self.database {
            return database.bearers.find(token);
        }
        // On the calling thread: for a row of a small table in memory that is faster than the way to another one.
        Box::pin(std::future::ready(self.read(|reader| {
            let row = reader.rows("WHERE token = ?1", [token.0], |_, row: PrincipalRow, _, _| Ok(row.principal))?;
            Ok(row.into_iter().next())
        })))
    }

    fn answers(&self) -> Answering<'_, ()> {
        // On the calling thread: for a row of a small table in memory that is faster than the way to another one.
        Box::pin(std::future::ready(self.read(|reader| {
            reader.db.prepare_cached("SELECT 1 FROM principal LIMIT 1")?.exists([])?;
            Ok(())
        })))
    }

    fn conversations(&self, wanted: ConversationFilter) -> Answering<'_, (Vec<KeptConversation>, Option<Number>)> {
        Box::pin(self.look(move |reader| look::conversations(reader, &wanted)))
    }

    fn threads(&self, of: ThreadId, after: Number, limit: usize) -> Answering<'_, (Vec<KeptThread>, Option<Number>)> {
        Box::pin(self.look(move |reader| look::threads(reader, of, after, limit)))
    }

    fn history_of(
        &self,
        thread: ThreadId,
        after: HistoryPosition,
        limit: usize,
    ) -> Answering<'_, (Vec<KeptMessage>, Option<HistoryPosition>)> {
        Box::pin(self.look(move |reader| look::history_of(reader, thread, after, limit)))
    }

    fn letters(&self, wanted: LetterFilter) -> Answering<'_, (Vec<KeptLetter>, Option<LetterPosition>)> {
        Box::pin(self.look(move |reader| beside::letters(reader, &wanted)))
    }

    fn mailboxes(&self, now: Time) -> Answering<'_, Vec<KeptMailbox>> {
        Box::pin(self.look(move |reader| beside::mailboxes(reader, now)))
    }

    fn tasks(&self, wanted: TaskFilter) -> Answering<'_, (Vec<TaskRecord>, Option<TaskPosition>)> {
        Box::pin(self.look(move |reader| beside::tasks(reader, &wanted)))
    }

    fn acts(&self, before: Option<Time>, limit: usize) -> Answering<'_, (Vec<KeptAct>, bool)> {
        Box::pin(self.look(move |reader| beside::acts(reader, before, limit)))
    }

    fn state(&self, of: Name) -> Answering<'_, Option<StateRecord>> {
        Box::pin(self.look(move |reader| {
            let found = reader.rows("WHERE listener = ?1", [of.as_str()], |_, state: StateRecord, _, _| Ok(state))?;
            Ok(found.into_iter().next())
        }))
    }

    fn message(&self, id: MessageId) -> Answering<'_, Vec<KeptMessage>> {
        Box::pin(self.look(move |reader| look::message(reader, id)))
    }

    fn waits(&self, messages: Vec<Number>) -> Answering<'_, Vec<(Number, Time, Usage)>> {
        Box::pin(self.look(move |reader| look::waits(reader, &messages)))
    }

    fn usage(&self, of: ThreadId) -> Answering<'_, Usage> {
        Box::pin(self.look(move |reader| look::usage(reader, of)))
    }

    fn used_by_day(&self, since: Time) -> Answering<'_, UsedDays> {
        Box::pin(self.look(move |reader| look::used_by_day(reader, since)))
    }

    fn moment(&self, retry: Retry) -> Answering<'_, Result<Moment, RetryError>> {
        Box::pin(self.look(move |reader| Ok(retry.read(reader))))
    }

    fn work(&self, work: Box<dyn FnOnce() + Send>) -> Answering<'_, ()> {
        Box::pin(self.run(move |_| {
            work();
            Ok(())
        }))
    }
}

/// Answers queries in one transaction, which begins after all of them were made.
fn serve(reader: &JournalReader, queries: Vec<Work>) {
    let mut queries = queries.into_iter();
    let begun = reader.at_one_moment(|reader| {
        queries.by_ref().for_each(|query| query(Ok(reader)));
        Ok(())
    });
    if let Err(error) = begun.map_err(QueryError::from) {
        queries.for_each(|query| query(Err(&error)));
    }
}

impl fmt::Debug for JournalQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalQuery").field("file", &self.file).finish_non_exhaustive()
    }
}

/// The numbers of all dead letters: they are few among the open statuses, which an index finds.
pub(super) const DEAD: &str =
    "SELECT seq FROM mail_status INDEXED BY mail_status_ended WHERE ended IS NULL AND state = 'dead'";

/// The numbers of all messages that wait for an answer, by the same index.
const WAITING: &str =
    "SELECT seq FROM mail_status INDEXED BY mail_status_ended WHERE ended IS NULL AND state IN ('waiting', 'redriven')";

fn mail(reader: &JournalReader, condition: &str, params: impl Params) -> Result<Vec<StoredMail>, FileProblem> {
    reader.rows(condition, params, |reader, record: MailRecord, _, _| stored(reader, record))
}

pub(super) fn stored(reader: &JournalReader, record: MailRecord) -> Result<StoredMail, FileProblem> {
    let of_it = "WHERE seq = ?1";
    let status = reader.rows(of_it, [record.seq.cast_signed()], |_, row: StatusRow, _, _| Ok(row.status))?.pop();
    let status = status.ok_or_else(|| FileProblem::damaged(format!("mail {} has no status", record.seq)))?;
    Ok(StoredMail { record, status })
}

/// Reads at most `limit` messages with at most `room` bytes together, but at least one; and whether there are more.
fn fitting(
    reader: &JournalReader,
    condition: &str,
    params: impl Params,
    (limit, room): (usize, usize),
) -> Result<(Vec<StoredMail>, bool), FileProblem> {
    let (mut count, mut bytes, mut has_more) = (0, 0, false);
    let items = reader.rows_while(condition, params, |reader, record: MailRecord, _, _| {
        bytes += record.envelope.len();
        has_more = count == limit || (count > 0 && bytes > room);
        count += 1;
        if has_more { Ok(None) } else { stored(reader, record).map(Some) }
    })?;
    Ok((items, has_more))
}

fn page(reader: &JournalReader, range: &Range) -> Result<Page, FileProblem> {
    let mailbox = range.mailbox.as_str();
    let of = match range.dead {
        true => format!("seq IN ({DEAD}) AND +mailbox = :mailbox"),
        false => "mailbox = :mailbox".to_owned(),
    };
    let condition = format!(
        "WHERE {of} AND seq > :after AND (:payload IS NULL OR payload = :payload) \
         AND (:peer IS NULL OR sender = :peer) AND (:before IS NULL OR came < :before) ORDER BY seq LIMIT :limit"
    );
    let limit = i64::try_from(range.limit).unwrap_or(i64::MAX).saturating_add(1);
    let params = named_params! {
        ":mailbox": mailbox,
        ":after": range.after.cast_signed(),
        ":payload": range.payload,
        ":peer": range.peer,
        ":before": range.before.map(|before| before.as_nanos().cast_signed()),
        ":limit": limit,
    };
    let (items, has_more) = fitting(reader, &condition, params, (range.limit, range.bytes))?;
    let pruned = pruned(reader, mailbox)?;
    let oldest = "SELECT min(seq) FROM mail WHERE mailbox = ?1";
    let oldest: Option<i64> = reader.db.prepare_cached(oldest)?.query_row([mailbox], |row| row.get(0))?;
    let position = Position { pruned, oldest: oldest.map(i64::cast_unsigned) };
    Ok(Page { items, has_more, position })
}

fn history(reader: &JournalReader, of: &History) -> Result<(Vec<StoredMail>, bool), FileProblem> {
    let from = match of.waiting {
        true => format!("seq IN ({WAITING}) AND +mailbox = :mailbox"),
        false => "mailbox = :mailbox".to_owned(),
    };
    let condition = format!(
        "WHERE {from} AND seq > :after AND substr(payload, 1, length(:payload)) = :payload \
         AND (:whole = 0 OR payload = :payload) \
         AND (:senders IS NULL OR sender IN (SELECT value FROM json_each(:senders))) \
         AND (:since IS NULL OR came >= :since) AND (:before IS NULL OR came < :before) ORDER BY seq LIMIT :limit"
    );
    let (payload, whole) = match &of.of {
        Of::Payload(payload) => (payload.to_string(), true),
        Of::Namespace(namespace) => (format!("{{{namespace}}}"), false),
    };
    let names = |names: &Vec<Name>| serde_json::json!(names.iter().map(Name::as_str).collect::<Vec<_>>()).to_string();
    let params = named_params! {
        ":mailbox": of.mailbox.as_str(),
        ":after": of.after.cast_signed(),
        ":payload": payload,
        ":whole": whole,
        ":senders": of.senders.as_ref().map(names),
        ":since": of.since.map(|since| since.as_nanos().cast_signed()),
        ":before": of.before.map(|before| before.as_nanos().cast_signed()),
        ":limit": i64::try_from(of.limit).unwrap_or(i64::MAX).saturating_add(1),
    };
    fitting(reader, &condition, params, (of.limit, of.bytes))
}

fn pruned(reader: &JournalReader, mailbox: &str) -> Result<Number, FileProblem> {
    let gone = reader.rows("WHERE mailbox = ?1", [mailbox], |_, gone: Gone, _, _| Ok(gone.pruned))?.pop();
    Ok(gone.unwrap_or_default())
}

/// Reads the answers that left for a client in a conversation, read or not, and whether there are more.
fn answers(
    reader: &JournalReader,
    root: &[u8; 16],
    skip: usize,
    room: usize,
) -> Result<(Vec<SentAnswer>, bool), FileProblem> {
    let skip = i64::try_from(skip).unwrap_or(i64::MAX);
    let (mut count, mut bytes, mut has_more) = (0, 0, false);
    let condition = "WHERE root = ?1 ORDER BY number LIMIT -1 OFFSET ?2";
    let answers = reader.rows_while(condition, (root, skip), |_, egress: EgressRecord, _, _| {
        bytes += egress.envelope.len();
        has_more = count > 0 && bytes > room;
        count += 1;
        if has_more {
            return Ok(None);
        }
        let payload = parse(&Raw::new(egress.payload), &XmlLimits::UNLIMITED)
            .map_err(|error| FileProblem::damaged(format!("egress {} is no XML: {error}", egress.number)))?;
        Ok(Some(SentAnswer {
            number: egress.number,
            from: egress.from,
            payload: payload.root().clone(),
            envelope: egress.envelope,
            fault: egress.fault.map(|fault| fault.code),
        }))
    })?;
    Ok((answers, has_more))
}

#[cfg(test)]
mod tests;
