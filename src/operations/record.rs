//! Records of looks: one type for what is there and what was, whether the organism runs or not.

use std::fmt::{self, Display};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_core::core::{ThreadState, Usage};
use systole_core::journal::BudgetRecord;
use systole_core::vocab::{Amounts, Budget, Millionths};

/// A conversation: an open one, or one that the journal still has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ConversationRecord {
    /// The id.
    pub conversation: String,
    /// True as long as it is open.
    pub open: bool,
    /// The client that owns it; left out for one of the organism itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The time at which it opened (RFC 3339), where there is a journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<String>,
    /// The time at which it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The name of the payload with which it began, where there is a journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The code of the first fault among its answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Open threads, the root included.
    pub threads: u64,
    /// All threads that the journal has, open and closed, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_threads: Option<u64>,
    /// Threads whose handlers run.
    pub running: u64,
    /// Messages that are not done.
    pub queued: u64,
    /// The listeners of its threads, in order of name: of all threads that the journal has, else of the open ones.
    pub listeners: Vec<String>,
}

/// A thread: an open one, or one that the journal still has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ThreadRecord {
    /// The id.
    pub thread: String,
    /// The id of the thread above it; left out for a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The client that owns it, of a root, where there is a journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The listeners from the root to it.
    pub path: String,
    /// State of its work; left out once it has closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ThreadState>,
    /// Messages that are not done.
    pub queued: u64,
    /// The time at which it opened (RFC 3339), where there is a journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<String>,
    /// The time at which it closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
    /// The use of models by its own handler, where there is a journal and it has asked one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<CostRecord>,
    /// The amounts that it and the threads below it have spent of its budget, if it has one, where there is a journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<SpendingRecord>,
}

/// The use of models.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CostRecord {
    /// Tokens of requests and answers.
    pub tokens: u64,
    /// Cost, in the currency of the operator's prices.
    pub cost: f64,
}

impl CostRecord {
    pub(super) fn of(usage: Usage) -> Self {
        Self { tokens: usage.input.saturating_add(usage.output), cost: usage.cost.as_f64() }
    }
}

impl Display for CostRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens, cost {}", self.tokens, self.cost)
    }
}

/// An amount that was spent, beside its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AmountRecord<T> {
    /// The amount.
    pub spent: T,
    /// The bound; null if there is none.
    pub most: Option<T>,
}

/// The amounts that were spent of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SpendingRecord {
    /// Tokens of requests to models and of their answers.
    pub tokens: AmountRecord<u64>,
    /// Cost of those, in the currency of the operator's prices.
    #[schemars(with = "AmountRecord<f64>")]
    pub cost: AmountRecord<Millionths>,
    /// Calls.
    pub calls: AmountRecord<u64>,
    /// Threads that were opened for calls.
    pub threads: AmountRecord<u64>,
}

impl SpendingRecord {
    pub(super) fn of(BudgetRecord { budget, spent, .. }: &BudgetRecord) -> Self {
        Self {
            tokens: AmountRecord { spent: spent.tokens, most: budget.tokens },
            cost: AmountRecord { spent: spent.cost, most: budget.cost },
            calls: AmountRecord { spent: spent.calls, most: budget.calls },
            threads: AmountRecord { spent: spent.threads, most: budget.threads },
        }
    }
}

/// `3 of 10 calls, 3 threads`.
impl Display for SpendingRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, cost, calls, threads } = self;
        let budget = Budget::NONE.tokens(tokens.most).cost(cost.most).calls(calls.most).threads(threads.most);
        let spent = Amounts { tokens: tokens.spent, cost: cost.spent, calls: calls.spent, threads: threads.spent };
        f.write_str(&spent.of(&budget))
    }
}

/// The kind of a [`MessageRecord`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MessageKind {
    /// A message in the mailbox of a thread.
    Message,
    /// The answer to an awaited call.
    AwaitedAnswer,
    /// A message that left for a client.
    Answer,
    /// An output of a handler that was refused.
    RefusedOutput,
    /// The end of what a program wrote on standard error before it failed.
    StandardError,
    /// A note of a handler, such as a request to a model with its answer.
    Note,
}

/// A message, or something that its handler left, in the history of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct MessageRecord {
    /// The time at which it came (RFC 3339).
    pub at: String,
    /// The kind.
    pub kind: MessageKind,
    /// The conversation.
    pub conversation: String,
    /// The thread.
    pub thread: String,
    /// The path of the thread.
    pub path: String,
    /// The id, of a message or an awaited answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The sender; left out for what the handler of the thread left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The id of the message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<String>,
    /// The time at which it was done, cancelled, or read by its client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The way in which a message ended: `done` or `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<String>,
    /// Earlier runs of its handler that ended with their process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The name of the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The code of the fault, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// The payload, the fault, the output or the note, at most 64 KiB of it.
    pub text: String,
}

/// A dead letter, of the pump or of a mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct LetterRecord {
    /// The number; of one of a mailbox the id of its message.
    pub letter: String,
    /// True if it is in the mailbox of its listener, whose failure it is.
    pub mailbox: bool,
    /// The time at which it became a dead letter (RFC 3339); of one of a mailbox that at which it came there.
    pub at: String,
    /// The sender.
    pub from: String,
    /// The listener that it was for, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listener: Option<String>,
    /// The conversation that it was in, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The thread of one of a mailbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The path of the thread that it came from or was meant for, of one of the pump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The name of the payload, if the message got that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The code of the fault that is the reason; `failed` in a mailbox.
    pub fault: String,
    /// That fault, with its code, its message and the broken rule; in a mailbox the last error that the listener reported.
    pub reason: String,
    /// True if the next start of the organism redrives it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redrives: bool,
    /// The payload, of one of a mailbox its envelope, at most 64 KiB of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The mailbox of a remote listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct MailboxRecord {
    /// The listener.
    pub mailbox: String,
    /// Messages that have not ended, the leased ones included.
    pub waiting: u64,
    /// Messages that a reader has leased or holds.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// The time at which the oldest message that has not ended came (RFC 3339): the mailbox lags since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<String>,
    /// The time since which an operator has it paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
}

/// A task of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct TaskRecord {
    /// The id.
    pub task: String,
    /// The job.
    pub job: String,
    /// The state: `pending`, `accepted` and so on.
    pub state: String,
    /// The submitter.
    pub from: String,
    /// The time of the submission (RFC 3339).
    pub at: String,
    /// The time of the last event.
    pub changed: String,
    /// The number of times that it was accepted.
    pub attempts: u32,
    /// The percentage that is done, as the owner reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// The work, at most 64 KiB of it.
    pub description: String,
    /// The open question of the owner, the result, or the reason why it failed, at most 64 KiB of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// An act of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ActRecord {
    /// The time (RFC 3339).
    pub at: String,
    /// The operator.
    pub by: String,
    /// The name of the act.
    pub act: String,
    /// The conversation, thread, dead letter, listener or organism that it was about.
    pub of: String,
    /// The reason why it had no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The conversation that a retry opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<String>,
}

/// A listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ListenerRecord {
    /// The name.
    pub listener: String,
    /// The most handlers that may run at once.
    pub concurrency: u32,
    /// Handlers that run.
    pub running: u32,
    /// Threads that wait for a slot.
    pub waiting: usize,
    /// The rest behind failures that it has now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rests: Option<RestRecord>,
    /// The time since which an operator has it paused (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
}

/// A schedule: what came of its ticks, and the next ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ScheduleRecord {
    /// The name.
    pub schedule: String,
    /// The client that sends the messages.
    pub client: String,
    /// The ticks: `cron`, the fields and the time zone, or `every` and the interval.
    pub timing: String,
    /// The rule for missed ticks.
    pub missed: String,
    /// The rule for ticks at which an earlier conversation is open.
    pub overlap: String,
    /// The time since which an operator has it paused (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// The next ticks (RFC 3339), with the offset of the time zone.
    pub next: Vec<String>,
    /// Ticks that were missed, in all.
    pub missed_ticks: u64,
    /// The last ticks, newest first: 20 at most.
    pub ticks: Vec<TickRecord>,
}

/// A tick of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct TickRecord {
    /// The time of the tick (RFC 3339); of a run that an operator asked for, that of the run.
    pub at: String,
    /// The outcome: `sent`, `overlapped` (an earlier conversation was open), or `missed`.
    pub end: String,
    /// The number of missed ticks of which this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
    /// True if an operator asked for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
    /// The time at which the message was sent (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The conversation that it opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The outcome of that, as long as the journal keeps it: `open`, `answered`, `fault`, or `unanswered` if it ended without an
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// A rest of a listener behind failures: its messages wait meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RestRecord {
    /// The time of its begin (RFC 3339).
    pub since: String,
    /// The time of its end (RFC 3339).
    pub until: String,
    /// The last failure before it.
    pub why: String,
}

/// A page of records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
#[non_exhaustive]
pub struct Page<T> {
    /// The records.
    pub items: Vec<T>,
    /// The `after` of the next page; left out on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
