//! The interface of stores: everything durable of one organism, for those who write, read, ask, admit and mend.
//!
//! The configuration chooses a [`Store`], and all others hold it as `Arc<dyn Store>`. Its writing end is a [`Journal`].

use std::pin::Pin;
use std::sync::Arc;
use std::{fmt, io};

use systole_core::core::Usage;
use systole_core::journal::{
    Journal, JournalError, LetterRecord, Moment, Number, Owner, StateRecord, SubmissionRecord, TaskRecord, ThreadRecord,
};
use systole_core::vocab::{MessageId, Name, ThreadId, Time};
use systole_xml::ladder::transcript::Entry;
use uuid::Uuid;

use super::beside::{KeptAct, KeptLetter, KeptMailbox, LetterFilter, LetterPosition, TaskFilter, TaskPosition};
use super::edit::Compacted;
use super::look::{ConversationFilter, HistoryPosition, KeptConversation, KeptMessage, KeptThread, UsedDays};
use super::owner::JournalOwner;
use super::query::{History, Page, QueryError, Range, Sent, StoredMail};
use super::reader::{HistoryEntry, Stat, ThreadEntry};
use super::retry::{Retry, RetryError};
use super::transcript::{Source, TranscriptError};
use super::verify::VerifyReport;
use super::weigh::Room;
use super::writer::JournalFeeder;
use crate::principal::{Principal, PrincipalKind, TokenHash};
use crate::sqlite::{LogFull, Retention};
use crate::token::Token;

/// A future of a query.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = Result<T, QueryError>> + Send + 'a>>;

/// The store of one organism. Its `Display` names it for operators.
pub trait Store: fmt::Debug + fmt::Display + Send + Sync {
    /// Checks that the store could be opened, or created; opens and changes nothing.
    ///
    /// # Errors
    /// [`JournalError`] with the reason, as a sentence about the store.
    fn check(&self) -> Result<(), JournalError>;

    /// Opens the store for writing, or creates it with that secret of derived ids. A start of an organism claims it.
    ///
    /// # Errors
    /// [`JournalError`] if the store is in use, belongs to another organism, is damaged, or can't be written.
    fn open(&self, secret: [u8; 32], claim: Option<Claim<'_>>) -> Result<OpenStore, JournalError>;

    /// Opens an existing store for reading, whether its organism runs or not.
    ///
    /// # Errors
    /// [`JournalError`]; of the kind [`Missing`](systole_core::journal::JournalErrorKind::Missing) if there is none.
    fn read(&self) -> Result<Box<dyn Reader>, JournalError>;

    /// Opens the queries of an organism that this process runs. `here`: they are answered on the calling threads, and
    /// readers see all steps without `feeder`.
    ///
    /// # Errors
    /// [`JournalError`] if the store can't be read.
    fn ask(&self, feeder: Option<JournalFeeder>, here: bool) -> Result<Arc<dyn Query>, JournalError>;

    /// Opens the queries of a store whose organism this process doesn't run, on the calling threads.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn past(&self) -> Result<Arc<dyn Query>, JournalError> {
        // A reader writes what a killed process has left in batches to the tables.
        drop(self.read()?);
        self.ask(None, true)
    }

    /// Opens the principals, whether the organism runs or not; creates a store with that secret where there is none.
    ///
    /// # Errors
    /// [`JournalError`] if the store is damaged or can't be written.
    fn admit(&self, secret: [u8; 32]) -> Result<Box<dyn PrincipalStore>, JournalError>;

    /// Opens an existing store whose organism doesn't run, to change it.
    ///
    /// # Errors
    /// [`JournalError`] if there is none, it is in use, or it can't be written.
    fn edit(&self) -> Result<Box<dyn Editor>, JournalError>;

    /// Checks every row of an existing store.
    ///
    /// # Errors
    /// [`JournalError`] if the store can't be read. Damage is an entry of the report.
    fn verify(&self) -> Result<VerifyReport, JournalError>;

    /// Returns the bytes of an existing store, and of its log behind that; 0 for what is not there.
    fn bytes(&self) -> (u64, u64);

    /// Deletes what is past this retention in a store whose organism doesn't run, and shrinks it. `cut`: what was written
    /// behind a damaged place may be given up.
    ///
    /// # Errors
    /// As [`edit`](Self::edit).
    fn compact(&self, retention: Retention, cut: bool, now: Time) -> Result<Compacted, JournalError>;
}

/// A claim of an organism on its store.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// Name of the organism.
    pub organism: &'a str,
    /// Random id of the store, if it has none yet.
    pub id: Uuid,
}

/// A store that is open for writing.
pub struct OpenStore {
    /// The writing end.
    pub journal: Box<dyn Journal>,
    /// The room for the promises to clients over a network.
    pub room: Arc<Room>,
    /// States whether the store takes no new messages for a while.
    pub full: LogFull,
}

impl fmt::Debug for OpenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenStore").finish_non_exhaustive()
    }
}

/// Reads of operators and of recovery. Each call sees one state.
pub trait Reader {
    /// Checks that the store belongs to this organism, or to none.
    ///
    /// # Errors
    /// [`JournalError`] if it belongs to another one.
    fn check_owner(&self, organism: &str) -> Result<(), JournalError>;

    /// Counts the contents.
    ///
    /// # Errors
    /// [`JournalError`] if they can't be read; so for all calls here.
    fn stat(&self) -> Result<Stat, JournalError>;

    /// Lists the ids of roots, and of other threads, whose last digits are these; hyphens don't count.
    fn ids_with_end(&self, digits: &str) -> Result<(Vec<ThreadId>, Vec<ThreadId>), JournalError>;

    /// Lists all open threads, in order of number.
    fn open_threads(&self) -> Result<Vec<ThreadEntry>, JournalError>;

    /// Counts the open threads of each owner.
    fn open_owners(&self) -> Result<Vec<(Owner, u64)>, JournalError>;

    /// Lists the idempotency keys of a client that begin with a prefix.
    fn keys(&self, client: &Name, prefix: &str) -> Result<Vec<Arc<str>>, JournalError>;

    /// Lists the threads of the conversation of a thread, in order of number; nothing if there is no such thread.
    fn conversation(&self, thread: ThreadId) -> Result<Vec<ThreadEntry>, JournalError>;

    /// Lists the entries of a thread, in order of time.
    fn said(&self, thread: &ThreadRecord) -> Result<Vec<HistoryEntry>, JournalError>;

    /// Lists the dead letters, oldest first, and whether the next start redrives them.
    fn letters(&self) -> Result<Vec<(LetterRecord, bool)>, JournalError>;

    /// Passes on the conversation of a thread as the entries of a transcript that is made at this time: first one that describes
    /// the conversation, then its rows in the order in which they came, one at a time.
    ///
    /// # Errors
    /// [`TranscriptError`] if there is no such thread, the store can't be read, or `each` fails.
    fn transcript(
        &self,
        thread: ThreadId,
        now: Time,
        each: &mut dyn FnMut(Entry) -> io::Result<()>,
    ) -> Result<(), TranscriptError>;
}

/// Queries of committed rows, for entrances that answer requests while the organism runs. Each sees one state, in which
/// everything confirmed before is contained.
pub trait Query: fmt::Debug + Send + Sync {
    /// Returns the secret of the organism.
    fn secret(&self) -> &[u8; 32];

    /// Reads messages of a mailbox in order of their numbers.
    fn page(&self, range: Range) -> Answering<'_, Page>;

    /// Reads a message of any mailbox.
    fn mail(&self, id: MessageId) -> Answering<'_, Option<StoredMail>>;

    /// Finds the first of these messages that is in a mailbox, ended or not.
    fn mail_among(&self, mailbox: Name, ids: Vec<MessageId>) -> Answering<'_, Option<MessageId>>;

    /// Reads the messages of these numbers, in their order, without deleted ones.
    fn mail_at(&self, seqs: Vec<Number>) -> Answering<'_, Vec<StoredMail>>;

    /// Reads the messages that match, oldest first, and whether there are more.
    fn history(&self, of: History) -> Answering<'_, (Vec<StoredMail>, bool)>;

    /// Reads a message that a client submitted, with its answers but for the first `skip`: as many as have at most
    /// `bytes` bytes together; a first answer that is longer is returned alone.
    fn submission(&self, id: MessageId, skip: usize, bytes: usize) -> Answering<'_, Option<Sent>>;

    /// Reads the submission of a client under an idempotency key.
    fn submission_of_key(&self, client: Name, key: Arc<str>) -> Answering<'_, Option<SubmissionRecord>>;

    /// Reads the principal of a token.
    fn bearer(&self, token: TokenHash) -> Answering<'_, Option<Principal>>;

    /// Checks that the store can be read.
    fn answers(&self) -> Answering<'_, ()>;

    /// Lists conversations, newest first, and the number behind which the next page goes on, if there may be one.
    ///
    /// A page examines 2,000 conversations at most, and searches 64 MiB, so it may have fewer entries than its limit.
    fn conversations(&self, wanted: ConversationFilter) -> Answering<'_, (Vec<KeptConversation>, Option<Number>)>;

    /// Lists the threads of the conversation of a thread in the order in which they opened, those behind a number, and
    /// the number behind which the next page goes on. Nothing if none is kept.
    fn threads(&self, of: ThreadId, after: Number, limit: usize) -> Answering<'_, (Vec<KeptThread>, Option<Number>)>;

    /// Lists the entries of the history of a thread behind a place, and the place behind which the next page goes on. They
    /// are in order of messages: each comes with what its handler did behind it.
    fn history_of(
        &self,
        thread: ThreadId,
        after: HistoryPosition,
        limit: usize,
    ) -> Answering<'_, (Vec<KeptMessage>, Option<HistoryPosition>)>;

    /// Lists dead letters, those of the pump first, then those of mailboxes, and the place behind which the next page goes on.
    fn letters(&self, wanted: LetterFilter) -> Answering<'_, (Vec<KeptLetter>, Option<LetterPosition>)>;

    /// Lists the mailboxes of which the store has something, in order of name, with their state at this time.
    fn mailboxes(&self, now: Time) -> Answering<'_, Vec<KeptMailbox>>;

    /// Lists tasks, in order of job, then of arrival, and the one behind which the next page goes on.
    fn tasks(&self, wanted: TaskFilter) -> Answering<'_, (Vec<TaskRecord>, Option<TaskPosition>)>;

    /// Lists the acts of operators before a time, newest first, and whether there are more.
    fn acts(&self, before: Option<Time>, limit: usize) -> Answering<'_, (Vec<KeptAct>, bool)>;

    /// Reads the state that a party beside the cores keeps under a name.
    fn state(&self, of: Name) -> Answering<'_, Option<StateRecord>>;

    /// Finds a message in a mailbox of a thread, with all that its handler did.
    fn message(&self, id: MessageId) -> Answering<'_, Vec<KeptMessage>>;

    /// Finds messages in mailboxes of threads by their numbers, as far as they are kept: when each came, and the tokens and the
    /// cost of the answers of models in its conversation.
    fn waits(&self, messages: Vec<Number>) -> Answering<'_, Vec<(Number, Time, Usage)>>;

    /// Sums the tokens and the cost of the answers of models in a conversation.
    fn usage(&self, of: ThreadId) -> Answering<'_, Usage>;

    /// Sums the tokens and the cost of the answers of models since a time, by day in UTC and listener.
    ///
    /// It reads 50,000 notes of handlers at most, and 64 MiB of them, the newest first.
    fn used_by_day(&self, since: Time) -> Answering<'_, UsedDays>;

    /// Reads the moment of a retry.
    fn moment(&self, retry: Retry) -> Answering<'_, Result<Moment, RetryError>>;

    /// Does work in turn with the queries, where they have a thread of their own, so that long work, such as writing a
    /// document of megabytes, doesn't block the calling thread.
    fn work(&self, work: Box<dyn FnOnce() + Send>) -> Answering<'_, ()>;
}

impl dyn Query {
    /// Does work as [`work`](Query::work) does, and returns its result.
    ///
    /// # Errors
    /// [`QueryError`] if the thread has ended.
    pub async fn beside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, QueryError> {
        let (tell, told) = tokio::sync::oneshot::channel();
        // The caller may have dropped its future.
        self.work(Box::new(move || drop(tell.send(work())))).await?;
        told.await.map_err(|_| QueryError::ended())
    }
}

/// Principals of an organism, to be admitted and dismissed while it runs or not.
pub trait PrincipalStore {
    /// Admits a principal with a new token; an older token of that name becomes invalid.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing has changed.
    fn admit(&mut self, name: Name, kind: PrincipalKind, now: Time) -> Result<Token, JournalError>;

    /// Revokes the token of a principal; returns whether it had one.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing has changed.
    fn dismiss(&mut self, name: &Name) -> Result<bool, JournalError>;

    /// All principals, by name.
    ///
    /// # Errors
    /// [`JournalError`] if the principals can't be read.
    fn list(&self) -> Result<Vec<Principal>, JournalError>;
}

/// Changes that an operator makes while the organism doesn't run. Each is written with the record of the act.
pub trait Editor {
    /// Writes a new conversation, begun at this time, that the next start opens, and returns its id.
    ///
    /// # Errors
    /// [`RetryError`]; then nothing is written.
    fn retry(&mut self, retry: &Retry, by: &Name, now: Time) -> Result<ThreadId, RetryError>;

    /// Writes a conversation that has ended as the entries of a transcript have it, and returns its id. What was open in it ends
    /// at the time of the transcript.
    ///
    /// Counts as starts, since the records have the numbers of some.
    ///
    /// # Errors
    /// [`TranscriptError`] if an entry can't be read or used, or the conversation is there already; then nothing is written.
    fn import(&mut self, entries: Source<'_>, by: &Name, now: Time) -> Result<ThreadId, TranscriptError>;

    /// Deletes a dead letter; `false` if there is none of that number.
    ///
    /// # Errors
    /// [`JournalError`] if the change can't be written; so for all of the following.
    fn drop_letter(&mut self, letter: Number, by: &Name, now: Time) -> Result<bool, JournalError>;

    /// Marks a dead letter to be redriven by the next start; `false` if there is none of that number.
    fn redrive_letter(&mut self, letter: Number, by: &Name, now: Time) -> Result<bool, JournalError>;

    /// Deletes a dead letter of a mailbox; `false` if there is none of that message.
    fn drop_mail(&mut self, message: MessageId, by: &Name, now: Time) -> Result<bool, JournalError>;

    /// Puts a dead letter of a mailbox behind its last message; `false` if there is none of that message.
    fn redrive_mail(&mut self, message: MessageId, by: &Name, now: Time) -> Result<bool, JournalError>;

    /// Gives the store to the organism of another name. Returns the owner of before, if there was one.
    ///
    /// # Errors
    /// [`JournalError`] if the change can't be written.
    fn rename(&mut self, organism: &str) -> Result<Option<JournalOwner>, JournalError>;
}
