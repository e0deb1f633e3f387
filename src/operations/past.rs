//! Looks into the store of an organism, whether that runs or not.

use std::sync::Arc;

use systole_core::core::{ThreadState, Usage};
use systole_core::inbox::Task;
use systole_core::journal::{BodyRecord, Owner};
use systole_core::vocab::{Fault, MessageId, Name, ThreadId, Time};
use systole_xml::ladder::root_of;

use super::look::{LookError, Wanted};
use super::record::{
    ActRecord, ConversationRecord, CostRecord, LetterRecord, MailboxRecord, MessageKind, MessageRecord, Page,
    SpendingRecord, TaskRecord, ThreadRecord,
};
use crate::journal::{
    HistoryRecord, KeptAct, KeptConversation, KeptLetter, KeptMailbox, KeptMessage, KeptThread, LetterFilter, Query,
    Store, TaskPosition,
};

/// Looks into a store. What runs there now, only the [`Operations`](super::Operations) of a running organism tell.
#[derive(Debug, Clone)]
pub struct Past {
    query: Arc<dyn Query>,
}

impl Past {
    /// Opens a store to look into it, whether its organism runs or not. Its futures are ready at once.
    ///
    /// # Errors
    /// [`LookError`] if there is no store, or it can't be read.
    pub fn open(store: &dyn Store) -> Result<Self, LookError> {
        Ok(Self::of(store.past()?))
    }

    pub(super) fn of(query: Arc<dyn Query>) -> Self {
        Self { query }
    }

    pub(super) fn query(&self) -> &dyn Query {
        &*self.query
    }

    /// Lists conversations, newest first.
    ///
    /// A page examines 2,000 conversations at most, and searches 64 MiB: under conditions it may have fewer entries than its
    /// limit, and another page behind it.
    ///
    /// # Errors
    /// [`LookError`] if a condition can't be read, or the store can't; so for all looks here.
    pub async fn conversations(&self, wanted: &Wanted) -> Result<Page<ConversationRecord>, LookError> {
        let (kept, next) = self.query.conversations(wanted.conversations()?).await?;
        let record = |kept: KeptConversation| ConversationRecord {
            conversation: kept.root.record.id.to_string(),
            open: kept.root.closed.is_none(),
            owner: client_of(kept.root.record.owner),
            opened: Some(kept.root.opened.to_string()),
            ended: kept.root.closed.map(|closed| closed.to_string()),
            payload: kept.payload.map(|payload| payload.to_string()),
            fault: kept.fault.map(|code| code.to_string()),
            threads: kept.open_threads,
            kept_threads: Some(kept.threads),
            running: 0,
            queued: kept.waiting,
            listeners: kept.listeners.iter().map(ToString::to_string).collect(),
        };
        Ok(page(kept.into_iter().map(record), next))
    }

    /// Lists the threads of a conversation, open and closed, in the order in which they opened. Nothing if there are none.
    ///
    /// # Errors
    /// As [`conversations`](Self::conversations).
    pub async fn threads(&self, conversation: ThreadId, wanted: &Wanted) -> Result<Page<ThreadRecord>, LookError> {
        let after = wanted.behind()?.unwrap_or(0);
        let (kept, next) = self.query.threads(conversation, after, wanted.most()).await?;
        let record = |kept: KeptThread| ThreadRecord {
            thread: kept.entry.record.id.to_string(),
            parent: kept.parent.map(|parent| parent.to_string()),
            owner: client_of(kept.entry.record.owner),
            path: kept.path.to_string(),
            state: kept.entry.closed.is_none().then_some(ThreadState::Waiting),
            queued: kept.waiting,
            opened: Some(kept.entry.opened.to_string()),
            closed: kept.entry.closed.map(|closed| closed.to_string()),
            used: (kept.usage != Usage::default()).then(|| CostRecord::of(kept.usage)),
            budget: kept.budget.as_ref().map(SpendingRecord::of),
        };
        Ok(page(kept.into_iter().map(record), next))
    }

    /// Lists the history of a thread: its messages in the order in which they came, and behind each what its handler did.
    ///
    /// # Errors
    /// As [`conversations`](Self::conversations).
    pub async fn messages(&self, thread: ThreadId, wanted: &Wanted) -> Result<Page<MessageRecord>, LookError> {
        let after = wanted.behind()?.unwrap_or_default();
        let (kept, next) = self.query.history_of(thread, after, wanted.most()).await?;
        Ok(page(kept.into_iter().map(message_record), next))
    }

    /// Finds a message in the mailbox of a thread: its record, and those of all that its handler did. Nothing if it isn't kept.
    ///
    /// # Errors
    /// As [`conversations`](Self::conversations).
    pub async fn message(&self, id: MessageId) -> Result<Vec<MessageRecord>, LookError> {
        Ok(self.query.message(id).await?.into_iter().map(message_record).collect())
    }

    /// Lists the dead letters: those of the pump, oldest first, then those of mailboxes.
    ///
    /// # Errors
    /// As [`conversations`](Self::conversations).
    pub async fn dead_letters(&self, wanted: &Wanted) -> Result<Page<LetterRecord>, LookError> {
        let filter = LetterFilter { after: wanted.behind()?, limit: wanted.most(), ..wanted.letters()? };
        let (kept, next) = self.query.letters(filter).await?;
        Ok(page(kept.iter().map(letter_record), next))
    }

    /// Lists the mailboxes of remote listeners that had a message or an agent, in order of name, with the leases that are in
    /// force at this time.
    ///
    /// # Errors
    /// As [`conversations`](Self::conversations).
    pub async fn mailboxes(&self, wanted: &Wanted, now: Time) -> Result<Page<MailboxRecord>, LookError> {
        let kept = self.query.mailboxes(now).await?;
        Ok(wanted.page(kept.into_iter().map(mailbox_entry)))
    }

    /// Lists the tasks of jobs, in order of job, then of arrival.
    ///
    /// # Errors
    /// As [`conversations`](Self::conversations).
    pub async fn tasks(&self, wanted: &Wanted) -> Result<Page<TaskRecord>, LookError> {
        let (kept, next): (_, Option<TaskPosition>) = self.query.tasks(wanted.tasks()?).await?;
        let of = |kept: systole_core::journal::TaskRecord| {
            let task: Task = serde_json::from_str(&kept.body)
                .map_err(|error| LookError::Invalid(format!("task {} of {}: {error}", kept.id, kept.inbox)))?;
            Ok(task_record(&kept.inbox, &task))
        };
        let items = kept.into_iter().map(of).collect::<Result<_, LookError>>()?;
        Ok(Page { items, next: next.map(|next| next.to_string()) })
    }

    /// Lists the acts of operators, newest first, as long as retention keeps them.
    ///
    /// # Errors
    /// As [`conversations`](Self::conversations).
    pub async fn acts(&self, wanted: &Wanted) -> Result<Page<ActRecord>, LookError> {
        let before = wanted.behind::<u64>()?.map(Time::from_nanos);
        let (kept, has_more) = self.query.acts(before, wanted.most()).await?;
        let next = kept.last().filter(|_| has_more).map(|last| last.at.as_nanos());
        let record = |KeptAct { at, record, .. }: KeptAct| ActRecord {
            at: at.to_string(),
            by: record.by.to_string(),
            act: record.act.to_string(),
            of: record.of.to_string(),
            error: record.error.map(|error| error.to_string()),
            opened: record.opened.map(|opened| opened.to_string()),
        };
        Ok(page(kept.into_iter().map(record), next))
    }
}

fn client_of(owner: Owner) -> Option<String> {
    match owner {
        Owner::Client(client) => Some(client.to_string()),
        Owner::Listener(_) | Owner::Boot | Owner::None => None,
    }
}

fn page<T>(items: impl Iterator<Item = T>, next: Option<impl ToString>) -> Page<T> {
    Page { items: items.collect(), next: next.map(|next| next.to_string()) }
}

pub(super) fn mailbox_entry(kept: KeptMailbox) -> (String, MailboxRecord) {
    let KeptMailbox { mailbox, waiting, leased, dead, oldest, paused, .. } = kept;
    let (oldest, paused) = (oldest.map(|time| time.to_string()), paused.map(|time| time.to_string()));
    (mailbox.to_string(), MailboxRecord { mailbox: mailbox.to_string(), waiting, leased, dead, oldest, paused })
}

pub(super) fn task_record(job: &Name, task: &Task) -> TaskRecord {
    let text = task.result.as_ref().or(task.reason.as_ref()).or(task.open_question().map(|open| &open.question));
    TaskRecord {
        task: task.id.to_string(),
        job: job.to_string(),
        state: task.status.as_str().to_owned(),
        from: task.source.agent.to_string(),
        at: task.created.to_string(),
        changed: task.changed.to_string(),
        attempts: task.attempts,
        percent: task.progress.as_ref().and_then(|progress| progress.percent),
        description: text_of(task.description.as_bytes()),
        text: text.map(|text| text_of(text.as_bytes())),
    }
}

fn letter_record(kept: &KeptLetter) -> LetterRecord {
    match kept {
        KeptLetter::Pump(letter, redrives) => LetterRecord {
            letter: letter.number.to_string(),
            mailbox: false,
            at: letter.at.to_string(),
            from: letter.from.to_string(),
            listener: letter.to.as_ref().map(ToString::to_string),
            conversation: letter.place.conversation.map(|root| root.to_string()),
            thread: None,
            path: Some(letter.place.path.to_string()),
            payload: letter.payload.as_ref().map(|(name, _)| name.to_string()),
            fault: letter.reason.code.to_string(),
            reason: letter.reason.to_string(),
            redrives: *redrives,
            text: letter.payload.as_ref().map(|(_, payload)| text_of(payload)),
        },
        KeptLetter::Mailbox(mail) => LetterRecord {
            letter: mail.record.id.to_string(),
            mailbox: true,
            at: mail.record.at.to_string(),
            from: mail.record.from.to_string(),
            listener: Some(mail.record.mailbox.to_string()),
            conversation: None,
            thread: Some(mail.record.thread.to_string()),
            path: None,
            payload: Some(mail.record.payload.to_string()),
            fault: KeptLetter::MAILBOX.to_string(),
            reason: mail.status.error.as_deref().unwrap_or_default().to_owned(),
            redrives: false,
            text: Some(text_of(&mail.record.envelope)),
        },
    }
}

fn message_record(kept: KeptMessage) -> MessageRecord {
    let KeptMessage { entry, thread, root, path, .. } = kept;
    let mut record = MessageRecord {
        at: entry.at.to_string(),
        kind: MessageKind::Note,
        conversation: root.to_string(),
        thread: thread.to_string(),
        path: path.to_string(),
        message: None,
        from: None,
        in_reply_to: None,
        ended: None,
        ending: None,
        attempts: None,
        payload: None,
        fault: None,
        text: String::new(),
    };
    match entry.said {
        HistoryRecord::Message(message, ended) => {
            record.kind = MessageKind::Message;
            record.message = Some(message.id.to_string());
            record.from = Some(message.from.to_string());
            record.in_reply_to = message.in_reply_to.map(|id| id.to_string());
            (record.ended, record.ending) = ended.map(|(at, ending)| (at.to_string(), ending)).unzip();
            record.attempts = Some(message.attempts).filter(|&attempts| attempts > 0);
            match message.body {
                BodyRecord::Payload(payload) => record.has(&payload),
                BodyRecord::Fault(fault) | BodyRecord::Fatal(fault) => record.has_fault(&fault),
            }
        }
        HistoryRecord::Awaited(id, _, settled) => {
            record.kind = MessageKind::AwaitedAnswer;
            record.message = Some(id.to_string());
            match settled.outcome {
                Ok(answer) => {
                    record.from = Some(answer.from.to_string());
                    record.has(&answer.payload);
                }
                Err(fault) => record.has_fault(&fault),
            }
        }
        HistoryRecord::Left(egress, read) => {
            record.kind = MessageKind::Answer;
            record.from = Some(egress.from.to_string());
            record.in_reply_to = egress.in_reply_to.as_deref().map(str::to_owned);
            record.ended = read.map(|read| read.to_string());
            match egress.fault {
                Some(fault) => record.has_fault(&fault),
                None => record.has(&egress.payload),
            }
        }
        HistoryRecord::Refused(note) => {
            record.kind = MessageKind::RefusedOutput;
            record.text = text_of(note.value.as_bytes());
        }
        HistoryRecord::Said(note) => {
            record.kind = MessageKind::StandardError;
            record.text = text_of(note.value.as_bytes());
        }
        HistoryRecord::Recorded(note) => record.text = text_of(note.value.as_bytes()),
    }
    record
}

impl MessageRecord {
    fn has(&mut self, payload: &[u8]) {
        self.payload = root_of(payload).map(|name| name.to_string());
        self.text = text_of(payload);
    }

    fn has_fault(&mut self, fault: &Fault) {
        self.fault = Some(fault.code.to_string());
        self.text = fault.to_string();
    }
}

/// The start of a text. A character that is cut in two is shown as one that is damaged.
pub(super) fn text_of(bytes: &[u8]) -> String {
    const TEXT: usize = 64 << 10;
    String::from_utf8_lossy(&bytes[..bytes.len().min(TEXT)]).into_owned()
}
