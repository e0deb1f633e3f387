//! The tasks that send what is due.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use systole_core::journal::{ActRecord, Op, SubmissionRecord};
use systole_core::vocab::{MessageId, Name, ThreadId, Time};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet, LocalSet, spawn_local};
use uuid::Uuid;

use super::due::{Due, due};
use super::state::{State, Tick, TickEnd};
use super::{Overlap, Schedule};
use crate::journal::Room;
use crate::runtime::clock::Clock;
use crate::runtime::{Client, Ending, NoSuchClient, Organism, SendError};

/// The longest sleep of a task: a clock that was set, and a machine that slept, are noticed within it.
const LONGEST: Duration = Duration::from_secs(60);
/// The wait before a refused message is offered again, at first and at most.
const RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// Acts of operators that wait for the task.
const REQUESTS: usize = 16;

/// Runs the schedules of an organism, until it is dropped.
#[derive(Debug)]
pub struct Scheduler {
    end: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
    /// On a simulated clock, where nothing may happen on other threads.
    here: Option<JoinHandle<()>>,
}

/// The reader of the answers to the messages of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswersTo {
    /// The program, by [`Client::receive`].
    Program,
    /// The gateway, which has them in the journal.
    Gateway,
    /// No reader: the answers are received and dropped. The journal has them as long as it keeps the conversation.
    Nobody,
}

/// The reason why schedules can't run.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SchedulerError {
    /// The client of a schedule is unknown.
    #[error("the schedule '{schedule}': {error}")]
    Client {
        /// The schedule.
        schedule: Name,
        /// The reason.
        error: NoSuchClient,
    },
    /// The system refuses a thread.
    #[error("the schedules have no thread: {0}")]
    System(#[from] io::Error),
}

systole_core::vocab::debug_is_display!(SchedulerError);

/// An act of an operator on a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleAct {
    /// Pauses it, also over a restart. Its ticks have no messages, and are not made up for.
    Pause,
    /// Resumes it.
    Resume,
    /// Sends its message now, beside its ticks.
    Run,
}

/// The reason why an act had no effect.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleRefusal {
    /// No scheduler runs.
    #[error("the schedules of this organism don't run")]
    Idle,
    /// The organism ends.
    #[error("the organism ends: ask again after its next start")]
    Closed,
    /// The message was not taken.
    #[error("the message was not taken: {0}")]
    Unsent(String),
}

systole_core::vocab::debug_is_display!(ScheduleRefusal);

impl From<Ending> for ScheduleRefusal {
    fn from(_: Ending) -> Self {
        Self::Closed
    }
}

/// An act for the task of a schedule.
#[derive(Debug)]
pub(super) struct Request {
    act: ScheduleAct,
    record: ActRecord,
    tell: oneshot::Sender<Result<Option<ThreadId>, ScheduleRefusal>>,
}

impl Schedule {
    /// Acts on the schedule; the conversation that a run opened. It is as durable as the organism then.
    pub(crate) async fn act(&self, act: ScheduleAct, record: ActRecord) -> Result<Option<ThreadId>, ScheduleRefusal> {
        let requests = self.requests.get().ok_or(ScheduleRefusal::Idle)?;
        let (tell, told) = oneshot::channel();
        requests.send(Request { act, record, tell }).await.map_err(|_| ScheduleRefusal::Closed)?;
        told.await.unwrap_or(Err(ScheduleRefusal::Closed))
    }
}

impl Scheduler {
    /// Runs the schedules of an organism; `None` without any. `answers` says who reads the answers to a client.
    ///
    /// On a simulated clock it runs in the world of the test: call it inside of that.
    ///
    /// # Errors
    /// [`SchedulerError`] if the client of a schedule is unknown, or the system refuses a thread.
    pub fn start(organism: &Organism, answers: impl Fn(&Name) -> AnswersTo) -> Result<Option<Self>, SchedulerError> {
        let mut tasks = Vec::new();
        let mut unread: Vec<Client> = Vec::new();
        for schedule in organism.schedules().iter() {
            let name = schedule.spec.client.as_str();
            let client = organism.client(name);
            let client =
                client.map_err(|error| SchedulerError::Client { schedule: schedule.spec.name.clone(), error })?;
            let to = answers(client.name());
            if to == AnswersTo::Nobody && unread.iter().all(|other| other.name() != client.name()) {
                unread.push(client.clone());
            }
            tasks.push(Task::new(schedule.clone(), client, to, organism));
        }
        if tasks.is_empty() {
            return Ok(None);
        }
        let is_simulated = tasks.iter().any(|task| task.clock.is_simulated());
        let (end, mut ended) = watch::channel(false);
        let run = async move {
            let mut running = JoinSet::new();
            tasks.into_iter().for_each(|task| drop(running.spawn_local(task.run())));
            unread.into_iter().for_each(|client| drop(running.spawn_local(read(client))));
            tokio::select! {
                _ = ended.wait_for(|ended| *ended) => {}
                () = async { while running.join_next().await.is_some() {} } => {}
            }
        };
        if is_simulated {
            return Ok(Some(Self { end, thread: None, here: Some(spawn_local(run)) }));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("schedules".to_owned()).spawn(move || {
            LocalSet::new().block_on(&runtime, run);
        })?;
        Ok(Some(Self { end, thread: Some(thread), here: None }))
    }

    /// Sends nothing more, and doesn't wait for what is on its way.
    pub fn stop(&self) {
        self.end.send_replace(true);
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // The log has a panic of the thread already.
            let _ = thread.join();
        }
        if let Some(here) = self.here.take() {
            here.abort();
        }
    }
}

/// Reads and drops the answers to a client.
async fn read(client: Client) {
    while client.receive().await.is_some() {}
}

/// The task of a schedule.
struct Task {
    schedule: Arc<Schedule>,
    client: Client,
    answers: AnswersTo,
    clock: Clock,
    room: Option<Arc<Room>>,
    /// The secret of the ids of messages.
    secret: [u8; 32],
    requests: mpsc::Receiver<Request>,
    /// The wait before the next attempt, while messages are refused.
    backoff: Duration,
}

/// The reason why nothing was sent.
enum Unsent {
    /// The organism ends.
    Ending,
    /// It takes the message later.
    Later(String),
}

impl From<Ending> for Unsent {
    fn from(_: Ending) -> Self {
        Self::Ending
    }
}

impl Task {
    fn new(schedule: Arc<Schedule>, client: Client, answers: AnswersTo, organism: &Organism) -> Self {
        let clock = organism.shared.clock.clone();
        let (sender, requests) = mpsc::channel(REQUESTS);
        // The first scheduler of an organism is the one that its operators reach.
        let _ = schedule.requests.set(sender);
        let secret = match schedule.journal.get() {
            Some((_, secret)) => *secret,
            None => {
                *schedule.lock() = State::begin(schedule.spec.timing.to_string(), clock.now());
                organism.shared.entropy.secret()
            }
        };
        Self { schedule, client, answers, clock, room: organism.room(), secret, requests, backoff: RETRY[0] }
    }

    async fn run(mut self) {
        loop {
            let pause = match self.settle().await {
                Ok(pause) => pause,
                Err(Unsent::Ending) => return,
                Err(Unsent::Later(why)) => {
                    let (pause, [_, most]) = (self.backoff, RETRY);
                    self.backoff = (pause * 2).min(most);
                    self.schedule.figures.refused.fetch_add(1, Ordering::Relaxed);
                    let (schedule, again) = (&self.schedule.spec.name, pause.as_secs());
                    tracing::warn!(%schedule, %why, again, "the message of a tick is not taken yet");
                    pause
                }
            };
            tokio::select! {
                biased;
                request = self.requests.recv() => match request {
                    Some(Request { act, record, tell }) => {
                        let done = self.act(act, record).await;
                        let is_over = done == Err(ScheduleRefusal::Closed);
                        // The operator may have hung up.
                        let _ = tell.send(done);
                        if is_over {
                            return;
                        }
                    }
                    // The schedule has the sender.
                    None => return,
                },
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Settles the next tick that is due; returns the time to wait before the next look.
    async fn settle(&mut self) -> Result<Duration, Unsent> {
        let spec = &self.schedule.spec;
        let (state, now) = (self.schedule.state(), self.clock.now());
        if state.paused.is_some() {
            return Ok(LONGEST);
        }
        let Due { send, missed, last_missed } = due(&spec.timing, spec.missed, state.last, now);
        let mut next = state.clone();
        if let Some(at) = last_missed {
            next.add(Tick { at, end: TickEnd::Missed(missed) });
        }
        let Some(&tick) = send.first() else {
            if missed > 0 {
                self.write(next, Vec::new()).await?;
            }
            return Ok(spec.timing.next(now).map_or(LONGEST, |next| self.clock.until(next)).min(LONGEST));
        };
        if spec.overlap == Overlap::Skip && self.client.has_open(conversations(&state)).await {
            next.add(Tick { at: tick, end: TickEnd::Overlapped });
            self.write(next, Vec::new()).await?;
        } else {
            self.send(tick, next, None).await?;
            self.backoff = RETRY[0];
        }
        Ok(Duration::ZERO)
    }

    async fn act(&mut self, act: ScheduleAct, record: ActRecord) -> Result<Option<ThreadId>, ScheduleRefusal> {
        let now = self.clock.now();
        let mut next = self.schedule.state();
        match act {
            ScheduleAct::Pause => next.paused = next.paused.or(Some(now)),
            ScheduleAct::Resume => {
                if next.paused.take().is_some() {
                    next.last = next.last.max(now);
                }
            }
            ScheduleAct::Run => {
                let sent = self.send(now, next, Some(record)).await;
                return sent.map(Some).map_err(|unsent| match unsent {
                    Unsent::Ending => ScheduleRefusal::Closed,
                    Unsent::Later(why) => ScheduleRefusal::Unsent(why),
                });
            }
        }
        self.write(next, vec![Op::Acted(record)]).await?;
        Ok(None)
    }

    /// Sends the message of a tick, in the step that writes the state after it. With the record of an act it is a run that an
    /// operator asked for.
    async fn send(&self, at: Time, mut next: State, act: Option<ActRecord>) -> Result<ThreadId, Unsent> {
        let spec = &self.schedule.spec;
        let client = self.client.name();
        if let Some(share) = self.room.as_ref().and_then(|room| room.exhausted(client.as_str())) {
            let why = format!("the messages of '{client}' and their answers take the {share} bytes that it may have");
            return Err(Unsent::Later(why));
        }
        let by_hand = act.is_some();
        let (id, key) = self.names(at, by_hand);
        let envelope = self.client.envelope(spec.to.as_ref(), id, &spec.payload);
        let key = Some((key.into(), *blake3::hash(&envelope).as_bytes()));
        let (conversation, sent) = (self.client.root(), self.clock.now());
        next.add(Tick { at, end: TickEnd::Sent { message: id, conversation, sent, by_hand } });
        let submission = SubmissionRecord { id, client: client.clone(), root: conversation, key };
        let acted = act.map(|act| Op::Acted(ActRecord { opened: Some(conversation), ..act }));
        let ops = [Op::Submitted(submission), next.op(&spec.record)].into_iter().chain(acted).collect();
        let by_journal = self.answers == AnswersTo::Gateway;
        let taken = match self.client.send_with(conversation, envelope, ops, by_journal) {
            Ok(taken) => taken.await,
            Err(error) => Err(error),
        };
        match taken {
            Ok(()) => {
                tracing::debug!(schedule = %spec.name, tick = %at, %conversation, "the message of a tick is sent");
                self.now_is(next);
                Ok(conversation)
            }
            Err(SendError::Closed) if self.client.is_closed() => Err(Unsent::Ending),
            // Of a conversation whose partition moves, nothing was written.
            Err(error) => Err(Unsent::Later(error.to_string())),
        }
    }

    /// Writes a state, and more with it.
    async fn write(&self, next: State, more: Vec<Op>) -> Result<(), Ending> {
        if let Some((journal, _)) = self.schedule.journal.get() {
            let (tell, told) = oneshot::channel();
            let ops = more.into_iter().chain([next.op(&self.schedule.spec.record)]).collect();
            journal.append(ops, Box::new(move || _ = tell.send(())))?;
            told.await.map_err(|_| Ending)?;
        }
        self.now_is(next);
        Ok(())
    }

    /// Publishes a state that is durable, and tells of the ticks that have no message.
    fn now_is(&self, next: State) {
        let name = &self.schedule.spec.name;
        let known = self.schedule.state();
        let is_new = |tick: &&Tick| !known.ticks.contains(tick);
        for Tick { at, end } in next.ticks.iter().filter(is_new) {
            self.schedule.count(end);
            match end {
                TickEnd::Missed(count) => {
                    tracing::warn!(schedule = %name, count, last = %at, "ticks were missed: the organism did not run");
                }
                TickEnd::Overlapped => {
                    tracing::warn!(schedule = %name, tick = %at, "a tick has no message: an earlier conversation is open");
                }
                TickEnd::Sent { .. } => {}
            }
        }
        *self.schedule.lock() = next;
    }

    /// The id and the idempotency key of the message of a tick: the same whenever they are made.
    fn names(&self, at: Time, by_hand: bool) -> (MessageId, String) {
        let by_hand = if by_hand { "/by-hand" } else { "" };
        let key = format!("schedule/{}/{at}{by_hand}", self.schedule.spec.name);
        let hash = blake3::keyed_hash(&self.secret, key.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.as_bytes()[..16]);
        (MessageId::from_uuid(Uuid::new_v8(bytes)), key)
    }
}

/// The conversations of the ticks that a state keeps.
fn conversations(state: &State) -> HashSet<ThreadId> {
    let sent = |tick: &Tick| match tick.end {
        TickEnd::Sent { conversation, .. } => Some(conversation),
        TickEnd::Overlapped | TickEnd::Missed(_) => None,
    };
    state.ticks.iter().filter_map(sent).collect()
}
