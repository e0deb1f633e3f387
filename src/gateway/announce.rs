//! Announcements of questions to people: a command that runs, or a push to a webhook, once for each question.
//!
//! A question is announced until the command exits with 0, or the peer has answered with a status of success, or the
//! attempts are used up, which is an error of the log. Each attempt is a note of the question before it begins, and so is the
//! end: a restart goes on with the attempts that are left. At least once: a crash between the announcement and the note of
//! its end repeats it, if an attempt is left.
//!
//! Listeners don't wait for each other: each has turns of its own, for the attempts that run at once. A change of a question
//! costs the same however many wait: the announcer looks only at those that are new.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use systole_core::question::{Answerer, Attempts, QuestionAct};
use systole_core::vocab::{MessageId, Name, Time};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::identity::Identity;
use crate::listeners::human::Announce;
use crate::listeners::human::people::{Asked, People, Unannounced};
use crate::outbound::retry::Policy;
use crate::outbound::{
    Begun, DeliveryOptions, DeliveryOutcome, DeliveryStore, Engine, Guard, Job, OutboundDelivery, OutboundError,
    Secret, Stored, Undelivered,
};
use crate::process::{CommandSpec, announce};
use crate::runtime::Organism;

/// Attempts of a command, and the pause behind the first; each further one is twice as long.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);
/// Time of a command in each attempt.
const TIME: Duration = Duration::from_secs(60);
/// Commands of a listener that run at once.
const AT_ONCE: usize = 8;

/// Announces the questions of an organism on a thread of its own, until it is dropped.
#[derive(Debug)]
pub(crate) struct Announcer {
    end: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// The reason why questions can't be announced.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum AnnounceError {
    /// The secret of a webhook can't be read.
    #[error("the secret of the webhook of {listener}: {why}")]
    Secret {
        /// The listener.
        listener: Name,
        /// The problem.
        why: String,
    },
    /// The engine that sends can't start.
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    /// The system refuses a thread.
    #[error(transparent)]
    System(#[from] io::Error),
}

systole_core::vocab::debug_is_display!(AnnounceError);

impl Announcer {
    /// Starts it for listeners with an announcement; `None` without any.
    pub(crate) fn start(organism: &Organism, all: BTreeMap<Name, Announce>) -> Result<Option<Self>, AnnounceError> {
        if all.is_empty() {
            return Ok(None);
        }
        let people = organism.people();
        let clock = organism.shared.clock.clone();
        let options = options(&all, organism.identity().cloned())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let store = Arc::new(Webhooks {
            people: people.clone(),
            all: all.clone(),
            waits: Mutex::default(),
            now: {
                let clock = clock.clone();
                Box::new(move || clock.now())
            },
        });
        let (end, ended) = watch::channel(false);
        let engine = {
            let _within = runtime.enter();
            Engine::start(store, options, clock.clone())?
        };
        let thread = std::thread::Builder::new().name("announcer".to_owned()).spawn(move || {
            runtime.block_on(run(people, all, engine, move || clock.now(), ended));
            runtime.shutdown_background();
        })?;
        Ok(Some(Self { end, thread: Some(thread) }))
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // The log has a panic of the thread already.
            let _ = thread.join();
        }
    }
}

async fn run(
    people: People,
    all: BTreeMap<Name, Announce>,
    engine: Engine,
    now: impl Fn() -> Time + Clone + Send + Sync + 'static,
    mut ended: watch::Receiver<bool>,
) {
    let mut changes = people.watch();
    let mut commands = JoinSet::new();
    // Of each listener its turns, and the number of the newest question that was looked at.
    let of = |(listener, announce)| (listener, announce, Arc::new(Semaphore::new(AT_ONCE)), 0);
    let mut listeners: Vec<_> = all.into_iter().map(of).collect();
    loop {
        changes.borrow_and_update();
        for (listener, announce, turns, newest) in &mut listeners {
            let new = people.unannounced(listener, *newest);
            let Some(last) = new.last() else { continue };
            *newest = last.number;
            match announce {
                Announce::Command(spec) => {
                    for Unannounced { asked, held, .. } in new {
                        let (people, spec, now, turns) = (people.clone(), spec.clone(), now.clone(), turns.clone());
                        commands.spawn(async move {
                            tokio::select! {
                                biased;
                                () = over(&people, asked.id, held) => {}
                                is_over = try_command(&people, &asked, &spec, &turns, &now) => if is_over {
                                    done(&people, asked.id, now()).await;
                                }
                            }
                        });
                    }
                }
                Announce::Push(_) => engine.wake(listener.clone()),
            }
        }
        while commands.try_join_next().is_some() {}
        tokio::select! {
            _ = ended.wait_for(|ended| *ended) => break,
            changed = changes.changed() => if changed.is_err() { break },
        }
    }
    engine.close(Duration::ZERO).await;
}

/// Waits until a question is announced or over, or is asked again.
async fn over(people: &People, id: MessageId, mut held: watch::Receiver<u64>) {
    while people.awaits_announcement(id) && held.changed().await.is_ok() {}
}

/// Announces by a program, as often as an attempt is left; `false` if the question is over or announced elsewhere. A pause
/// between attempts takes no turn. Dropped, it ends the program.
async fn try_command(
    people: &People,
    asked: &Asked,
    spec: &CommandSpec,
    turns: &Semaphore,
    now: impl Fn() -> Time,
) -> bool {
    let mut why = "the process ended during the last attempt".to_owned();
    for attempts in people.attempts(asked.id).attempts + 1..=ATTEMPTS {
        let turn = turns.acquire().await;
        if !begins(people, asked.id, Attempts { attempts, spent: 0 }, now()).await {
            return false;
        }
        let announced = announce(&asked.listener, spec, &asked.about, asked.envelope.clone());
        let late = || Err(format!("it ran for more than {} s", TIME.as_secs()));
        match timeout(TIME, announced).await.unwrap_or_else(|_| late()) {
            Ok(()) => return true,
            Err(error) => why = error,
        }
        drop(turn);
        if attempts < ATTEMPTS {
            sleep(PAUSE * 2_u32.pow(attempts - 1)).await;
        }
    }
    tracing::error!(listener = %asked.listener, question = %asked.id, why, "a question was not announced");
    true
}

/// Notes that an attempt begins; `false` if the question is over or announced.
async fn begins(people: &People, id: MessageId, attempts: Attempts, now: Time) -> bool {
    let by = Answerer::operator(Name::system());
    people.awaits_announcement(id) && people.act(id, &by, QuestionAct::TryToAnnounce(attempts), None, now).await.is_ok()
}

/// Notes that a question is announced.
async fn done(people: &People, id: MessageId, now: Time) {
    let by = Answerer::operator(Name::system());
    // One that has ended needs no note.
    let _ = people.act(id, &by, QuestionAct::Announce, None, now).await;
}

fn options(all: &BTreeMap<Name, Announce>, identity: Option<Arc<Identity>>) -> Result<DeliveryOptions, AnnounceError> {
    let (mut guards, mut secrets) = (HashMap::new(), HashMap::new());
    for (listener, announce) in all {
        let Announce::Push(push) = announce else { continue };
        if push.allow_private {
            guards.insert(listener.clone(), Guard::private());
        }
        let refused = |why| AnnounceError::Secret { listener: listener.clone(), why };
        if let Some(secret) = push.read_secret().map_err(refused)? {
            secrets.insert(listener.clone(), Secret::new(&secret));
        }
    }
    let policy = Policy { retry_after: true, ..Policy::default() };
    Ok(DeliveryOptions {
        policy,
        guards,
        secrets,
        identity,
        unpooled: all.keys().cloned().collect(),
        answer: None,
        ..DeliveryOptions::default()
    })
}

/// Questions as deliveries to webhooks.
struct Webhooks {
    people: People,
    all: BTreeMap<Name, Announce>,
    /// Failed attempts behind which another one waits: one of each webhook, and some of questions that have ended meanwhile.
    waits: Mutex<HashMap<MessageId, Wait>>,
    now: Box<dyn Fn() -> Time + Send + Sync>,
}

/// A wait for the next attempt.
#[derive(Debug, Clone)]
struct Wait {
    until: Time,
    spent: Duration,
    error: String,
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhooks").finish_non_exhaustive()
    }
}

impl Webhooks {
    fn waits(&self) -> MutexGuard<'_, HashMap<MessageId, Wait>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeliveryStore for Webhooks {
    fn head(&self, target: Name) -> Stored<'_, Option<Job>> {
        Box::pin(async move {
            let Some(Announce::Push(push)) = self.all.get(&target) else { return Ok(None) };
            let Some(url) = &push.url else { return Ok(None) };
            let Some((asked, Attempts { attempts, spent })) = self.people.first_unannounced(&target) else {
                return Ok(None);
            };
            let mut waits = self.waits();
            waits.retain(|id, _| self.people.awaits_announcement(*id));
            let wait = waits.get(&asked.id).cloned();
            drop(waits);
            let delivery = OutboundDelivery::new(asked.id, target, url, asked.envelope.clone());
            let delivery = OutboundDelivery { signed: push.is_signed(), ..delivery };
            let spent = wait.as_ref().map_or(Duration::from_millis(spent), |wait| wait.spent);
            let (next, last_error) = wait.map(|wait| (wait.until, wait.error)).unzip();
            Ok(Some(Job { delivery, attempts, spent, next, last_error }))
        })
    }

    fn begin(&self, id: MessageId, attempts: u32, spent: Duration) -> Stored<'_, Option<Begun>> {
        Box::pin(async move {
            self.waits().remove(&id);
            let spent = u64::try_from(spent.as_millis()).unwrap_or(u64::MAX);
            let is_open = begins(&self.people, id, Attempts { attempts, spent }, (self.now)()).await;
            Ok(is_open.then(Begun::default))
        })
    }

    fn back_off(&self, id: MessageId, until: Time, error: String, spent: Duration) -> Stored<'_, bool> {
        Box::pin(async move {
            let is_open = self.people.awaits_announcement(id);
            if is_open {
                self.waits().insert(id, Wait { until, spent, error });
            }
            Ok(is_open)
        })
    }

    fn settle(&self, id: MessageId, outcome: DeliveryOutcome) -> Stored<'_, ()> {
        if let Err(undelivered) = outcome {
            let Undelivered { target, url, cause, message: why, attempts, .. } = undelivered;
            tracing::error!(listener = %target, question = %id, url, %cause, attempts, why, "a question was not announced");
        }
        Box::pin(async move {
            self.waits().remove(&id);
            done(&self.people, id, (self.now)()).await;
            Ok(())
        })
    }
}
