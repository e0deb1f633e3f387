//! The choice of a backend for each request: strategy, limits, retries, failover.
//!
//! A provider that stalls is left: each attempt has a share of the time that its handler has left, so that the other
//! backends are asked before that is over. Each attempt that a provider may bill is charged.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use systole_core::core::{Failure, ModelFailure, Usage};
use systole_core::vocab::{Name, Time};
use tokio::sync::{Mutex as AsyncMutex, Semaphore, SemaphorePermit};
use tokio::time::sleep;

use super::allowance::Allowance;
use super::bucket::Bucket;
use super::growth::Pulse;
use super::http::{Http, Keys};
use super::{Again, Billed, Completion, Growth, LlmError, ModelPrompt, Provider, Setback};
use crate::outbound::retry::{Policy, Tried};
use crate::process::Subject;
use crate::runtime::LocalBoxFuture;
use crate::settings::{Backend, LlmSettings, ProviderSettings, Rule, Script, Strategy};
use systole_store::clock::Clock;
use systole_store::entropy::Entropy;

/// Time for which a backend rests at most, however long its provider asks for.
const REST: Duration = Duration::from_secs(600);

/// Asks models. Clones are the same, and share the limits of its backends.
#[derive(Clone)]
pub struct Llm(Arc<Inner>);

type Factory = Arc<dyn Fn() -> Box<dyn Provider> + Send + Sync>;

#[derive(Clone)]
struct Inner {
    strategy: Strategy,
    policy: Policy,
    slots: Vec<Arc<Slot>>,
    /// Requests so far, for [`Strategy::RoundRobin`].
    turn: Arc<AtomicUsize>,
}

/// A backend with the state of its limits.
struct Slot {
    backend: Backend,
    provider: Factory,
    under_way: AtomicUsize,
    permits: Option<Semaphore>,
    bucket: Mutex<Option<Bucket>>,
    /// Held by the request that waits for tokens, so that requests get them in their order.
    gate: AsyncMutex<()>,
    /// The end of the time for which the provider asked to be left alone.
    rests: Mutex<Time>,
}

/// A request to models, with what its attempts need.
pub(super) struct Asking<'a> {
    /// A provider for each backend.
    pub(super) providers: &'a [Box<dyn Provider>],
    pub(super) prompt: &'a ModelPrompt,
    /// The name of the backend to ask, if not any.
    pub(super) only: Option<&'a Name>,
    /// The message, for the log.
    pub(super) subject: Subject,
    pub(super) allowance: Allowance<'a>,
    /// The end of the time of the handler.
    pub(super) until: Time,
    pub(super) growth: Growth,
    pub(super) clock: Clock,
}

/// An answer, and where it comes from.
pub(super) struct Answered {
    pub(super) backend: Name,
    /// The request as it was sent.
    pub(super) asked: ModelPrompt,
    pub(super) completion: Completion,
    /// The time of the attempt that got it.
    pub(super) took: Duration,
}

/// The end of a request without an answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// No backend answered.
    Failed(Unanswered),
    /// The budget of the thread does not bear an attempt.
    Refused(Failure),
}

/// The last setback of each backend, where none answered.
#[derive(Debug)]
pub(super) struct Unanswered {
    setbacks: Vec<(Name, Setback)>,
    /// Set if the same request may be answered later.
    pub(super) is_passing: bool,
}

/// The attempts of one request at one backend.
struct Candidate {
    slot: usize,
    tried: Tried,
    /// The earliest time of the next attempt.
    due: Time,
    /// The setback that ended the attempts.
    over: Option<Setback>,
    last: Option<Setback>,
}

impl Llm {
    /// A router without backends.
    pub fn new(strategy: Strategy) -> Self {
        Self(Arc::new(Inner {
            strategy,
            policy: Policy { attempts: 4, cap: Duration::from_secs(60), ..Policy::default() },
            slots: Vec::new(),
            turn: Arc::default(),
        }))
    }

    /// A model that needs no network: the first rule that fits a request answers it.
    pub fn scripted(rules: impl IntoIterator<Item = impl Into<Rule>>) -> Self {
        let script = Arc::new(Script { rules: rules.into_iter().map(Into::into).collect(), ..Script::default() });
        Self::new(Strategy::Failover)
            .backend(Backend::new(Name::parse("script").expect("a name")), move || script.clone())
    }

    /// Sets up backends, and reads their keys. Those that are left out need none.
    ///
    /// # Errors
    /// [`LlmError`]: a key or a URL that can't be used.
    pub fn open(settings: &LlmSettings) -> Result<Self, LlmError> {
        let mut llm = Self::new(settings.strategy);
        let keys = Keys::default();
        for (backend, provider) in &settings.backends {
            if let Some(why) = backend.left_out() {
                tracing::info!(backend = %backend.name, "a backend is left out: {why}");
                continue;
            }
            llm = match provider {
                ProviderSettings::Scripted(script) => {
                    let script = Arc::new(script.clone());
                    llm.backend(backend.clone(), move || script.clone())
                }
                ProviderSettings::Http(endpoint) => {
                    let way = Http::open(&backend.name, endpoint, &keys)?;
                    llm.backend(backend.clone(), move || way.start())
                }
            };
        }
        Ok(llm)
    }

    /// Adds a backend whose provider is made for each listener, on the thread of its shard.
    #[must_use]
    pub fn backend<P: Provider>(self, backend: Backend, provider: impl Fn() -> P + Send + Sync + 'static) -> Self {
        let slot = Slot {
            under_way: AtomicUsize::new(0),
            permits: backend.max_concurrent.map(|most| Semaphore::new(most.max(1) as usize)),
            bucket: Mutex::default(),
            gate: AsyncMutex::default(),
            rests: Mutex::default(),
            backend,
            provider: Arc::new(move || Box::new(provider())),
        };
        self.change(|inner| inner.slots.push(Arc::new(slot)))
    }

    /// Sets how often and how patiently each backend is asked, by `attempts`, `base`, `cap`, `jitter` and `budget`. By
    /// default 4 attempts within 600 s, with waits of 1, 2 and 4 s, give or take a quarter.
    #[must_use]
    pub fn retry(self, policy: Policy) -> Self {
        self.change(|inner| inner.policy = policy)
    }

    fn change(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        change(&mut inner);
        Self(Arc::new(inner))
    }

    /// The names of the backends.
    pub fn backends(&self) -> impl Iterator<Item = &Name> {
        self.0.slots.iter().map(|slot| &slot.backend.name)
    }

    /// A provider for each backend.
    pub(super) fn providers(&self) -> Vec<Box<dyn Provider>> {
        self.0.slots.iter().map(|slot| (slot.provider)()).collect()
    }

    /// Asks one backend after the other, as often as the policy lets it, until one answers.
    ///
    /// # Cancel safety
    /// Dropping the future ends the request in flight; what was reserved for it counts as used.
    pub(super) async fn ask(&self, asking: Asking<'_>) -> Result<Answered, NoAnswer> {
        let Asking { providers, prompt, only, subject, allowance, until, growth, clock } = asking;
        let Inner { strategy, policy, slots, turn } = &*self.0;
        let since = clock.now();
        let wanted = slots.iter().enumerate().filter(|(_, slot)| only.is_none_or(|only| slot.backend.name == *only));
        let tried = Tried { attempts: 0, since };
        let candidate = |slot| Candidate { slot, tried, due: since, over: None, last: None };
        let mut candidates: Vec<Candidate> = wanted.map(|(at, _)| candidate(at)).collect();
        if *strategy == Strategy::RoundRobin && !candidates.is_empty() {
            let first = turn.fetch_add(1, Ordering::Relaxed) % candidates.len();
            candidates.rotate_left(first);
        }
        loop {
            let now = clock.now();
            let due = |candidate: &Candidate| candidate.due.max(slots[candidate.slot].rests_until());
            for candidate in candidates.iter_mut().filter(|candidate| candidate.over.is_none()) {
                let due = due(candidate);
                if due.since(since) > policy.budget || due > now && due >= until {
                    candidate.over = Some(candidate.last.take().unwrap_or_else(|| resting(due.since(now))));
                }
            }
            let untried = candidates.iter().filter(|one| one.over.is_none() && one.tried.attempts == 0).count();
            let open = candidates.iter_mut().filter(|candidate| candidate.over.is_none());
            let (ready, later): (Vec<_>, Vec<_>) = open.partition(|candidate| due(candidate) <= now);
            let next = match strategy {
                Strategy::Failover => ready.into_iter().min_by_key(|candidate| slots[candidate.slot].backend.priority),
                Strategy::RoundRobin => ready.into_iter().next(),
                Strategy::LeastLoaded => ready.into_iter().min_by_key(|candidate| slots[candidate.slot].load()),
            };
            let Some(candidate) = next else {
                match later.iter().map(|candidate| due(candidate)).min() {
                    Some(soonest) => sleep(clock.until(soonest)).await,
                    None => return Err(NoAnswer::Failed(Unanswered::of(candidates, slots))),
                }
                continue;
            };
            let slot = &slots[candidate.slot];
            let mut lease = match slot.admit(prompt.estimate(), until, &clock).await {
                Ok(lease) => lease,
                Err(full) => {
                    candidate.over = Some(full);
                    continue;
                }
            };
            if slot.rests_until() > clock.now() {
                // The provider asked for that while this request waited for room.
                lease.give_back();
                continue;
            }
            let asked = match allowance.allow(prompt, &slot.backend.price).await {
                Ok(asked) => asked,
                Err(failure) => {
                    lease.give_back();
                    return Err(NoAnswer::Refused(failure));
                }
            };
            lease.is_settled = false;
            // This backend, and those that have not had their turn.
            let shares = untried + usize::from(candidate.tried.attempts > 0);
            candidate.tried.attempts += 1;
            let patience = Patience { backend: &slot.backend, until, shares: shares as u32, clock: &clock };
            let growth = growth.anew();
            let begun = clock.now();
            match patience.wait(providers[candidate.slot].ask(&asked, &growth), growth.pulse()).await {
                Ok(mut completion) => {
                    let used = asked.used(&completion);
                    if used != completion.usage {
                        tracing::warn!(backend = %slot.backend.name, "a model did not say how many tokens it used: what was reserved counts as used");
                    }
                    completion.usage = slot.backend.price.of(used);
                    lease.settle(completion.usage);
                    let took = clock.now().since(begun);
                    return Ok(Answered { backend: slot.backend.name.clone(), asked, completion, took });
                }
                Err(setback) => {
                    let used = slot.backend.price.of(asked.billed(setback.billed));
                    allowance.charge(used);
                    lease.settle(used);
                    let attempts = candidate.tried.attempts;
                    let (Subject { thread, id, .. }, trace) = (subject, subject.trace());
                    tracing::warn!(listener = %prompt.listener, %thread, message_id = %id, trace, backend = %slot.backend.name, attempts, error = setback.detail, charged = %used, "a model did not answer");
                    growth.fail(ModelFailure {
                        backend: slot.backend.name.as_str().into(),
                        attempt: attempts,
                        error: setback.detail.as_str().into(),
                        usage: used,
                        took: clock.now().since(begun),
                    });
                    candidate.note(slot, setback, policy, clock.now());
                }
            }
        }
    }
}

/// The time for which an attempt may stand still.
struct Patience<'a> {
    backend: &'a Backend,
    /// The end of the time of the handler.
    until: Time,
    /// The backends among which the time that is left is divided.
    shares: u32,
    clock: &'a Clock,
}

impl Patience<'_> {
    /// Waits for the end of an attempt, as long as it goes on.
    async fn wait(
        &self,
        mut answer: LocalBoxFuture<Result<Completion, Setback>>,
        pulse: &Pulse,
    ) -> Result<Completion, Setback> {
        let mut has_begun = false;
        loop {
            let now = self.clock.now();
            let most = if has_begun { self.backend.between_tokens } else { self.backend.first_token };
            let left = self.until.since(now);
            // The last backend has all the time that is left: the end of the handler's is that of its attempt.
            let share = if self.shares > 1 { left / self.shares } else { left.saturating_add(most) };
            let wait = most.min(share);
            tokio::select! {
                biased;
                done = &mut answer => return done,
                () = pulse.beat() => has_begun = true,
                () = sleep(wait) => return Err(stalled(wait, has_begun, pulse.usage())),
            }
        }
    }
}

fn stalled(wait: Duration, has_begun: bool, usage: Usage) -> Setback {
    let what = if has_begun { "its answer stood still" } else { "no part of an answer came from it" };
    let setback = Setback::new(format!("{what} for {:.1} s", wait.as_secs_f64()), Again::Later(None));
    Setback { billed: if usage == Usage::default() { Billed::Unknown } else { Billed::Used(usage) }, ..setback }
}

impl Candidate {
    /// Decides about the next attempt after one without an answer.
    fn note(&mut self, slot: &Slot, setback: Setback, policy: &Policy, now: Time) {
        let Again::Later(after) = setback.again else {
            self.over = Some(setback);
            return;
        };
        let backoff = policy.backoff(self.tried.attempts.saturating_sub(1), Entropy::Real.fraction());
        let wait = after.map_or(backoff, |after| after.max(backoff));
        if let Some(after) = after {
            // The provider means all requests, not this one alone. It is asked again in any case after a while: a provider
            // that asks for a year would be lost until the next start.
            let mut rests = lock(&slot.rests);
            *rests = rests.max(now.after(after.min(REST)));
        }
        match policy.may_try(self.tried, now.after(wait)) {
            Ok(()) => (self.due, self.last) = (now.after(wait), Some(setback)),
            Err(_) => self.over = Some(setback),
        }
    }
}

impl Slot {
    fn load(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    fn rests_until(&self) -> Time {
        *lock(&self.rests)
    }

    /// Waits for room for a request of about so many tokens.
    ///
    /// # Errors
    /// A setback, if the bucket can't have them in time.
    async fn admit(&self, tokens: u64, until: Time, clock: &Clock) -> Result<Lease<'_>, Setback> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let mut lease = Lease { slot: self, reserved: 0, is_settled: true, _permit: None };
        if let Some(permits) = &self.permits {
            // The semaphore is never closed.
            lease._permit = permits.acquire().await.ok();
        }
        if let Some(per_minute) = self.backend.rate_limit_tpm {
            let _turn = self.gate.lock().await;
            loop {
                let now = clock.now();
                let taken = lock(&self.bucket).get_or_insert_with(|| Bucket::new(per_minute, now)).take(tokens, now);
                match taken {
                    Ok(()) => break,
                    Err(wait) if now.after(wait) >= until => return Err(full(per_minute, tokens, wait)),
                    Err(wait) => sleep(wait).await,
                }
            }
            lease.reserved = tokens;
        }
        Ok(lease)
    }
}

fn full(per_minute: u32, tokens: u64, wait: Duration) -> Setback {
    let message = format!(
        "its rate_limit_tpm of {per_minute} has no room for about {tokens} tokens for another {} s",
        wait.as_secs()
    );
    Setback::new(message, Again::Later(None)).unbilled()
}

/// The place of a request in flight.
struct Lease<'s> {
    slot: &'s Slot,
    reserved: u64,
    /// Unset while a request is in flight.
    is_settled: bool,
    _permit: Option<SemaphorePermit<'s>>,
}

impl Lease<'_> {
    fn settle(&mut self, usage: Usage) {
        self.is_settled = true;
        if let Some(bucket) = &mut *lock(&self.slot.bucket) {
            bucket.settle(self.reserved, usage.input.saturating_add(usage.output));
        }
    }

    fn give_back(&mut self) {
        self.settle(Usage::default());
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.slot.under_way.fetch_sub(1, Ordering::Relaxed);
        if !self.is_settled {
            tracing::warn!(backend = %self.slot.backend.name, "a request to a model was dropped in flight, by a timeout or a cancellation: what was reserved counts as used");
        }
    }
}

impl Unanswered {
    fn of(candidates: Vec<Candidate>, slots: &[Arc<Slot>]) -> Self {
        let setbacks = candidates.into_iter().filter_map(|candidate| Some((candidate.slot, candidate.over?)));
        let setbacks: Vec<_> = setbacks.map(|(slot, setback)| (slots[slot].backend.name.clone(), setback)).collect();
        let is_passing = setbacks.iter().any(|(_, setback)| matches!(setback.again, Again::Later(_)));
        Self { setbacks, is_passing }
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no model answered")?;
        if self.setbacks.is_empty() {
            return f.write_str(": there is no backend to ask");
        }
        for (at, (backend, setback)) in self.setbacks.iter().enumerate() {
            write!(f, "{} {backend}: {setback}", if at == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Llm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Llm").field("strategy", &self.0.strategy).finish_non_exhaustive()
    }
}

fn resting(wait: Duration) -> Setback {
    let message = format!("it asked to be left alone for another {} s", wait.as_secs());
    Setback::new(message, Again::Later(Some(wait))).unbilled()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use proptest::prelude::{Just, ProptestConfig, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
    use proptest::strategy::Strategy as Generator;
    use tokio::runtime::Builder;
    use tokio::task::LocalSet;

    use super::*;
    use crate::model::{Finish, Role, Turn};

    /// A provider's reaction to a request: after so many seconds it answers (`None`) or fails.
    type Step = (u64, Option<Again>);

    /// The requests to a backend, as its provider sees them.
    #[derive(Default)]
    struct Seen {
        steps: Vec<Step>,
        under_way: usize,
        most: usize,
        asked: usize,
        /// The end of the time for which it has asked to be left alone.
        rests: Time,
        broken: bool,
    }

    struct Watched {
        seen: Rc<RefCell<Seen>>,
        clock: Clock,
    }

    impl Provider for Watched {
        fn ask(&self, _: &ModelPrompt, _: &Growth) -> LocalBoxFuture<Result<Completion, Setback>> {
            let (seen, clock) = (self.seen.clone(), self.clock.clone());
            let (wait, fails) = {
                let mut seen = seen.borrow_mut();
                seen.under_way += 1;
                seen.most = seen.most.max(seen.under_way);
                seen.asked += 1;
                seen.broken |= clock.now() < seen.rests;
                seen.steps.pop().unwrap_or((1, None))
            };
            Box::pin(async move {
                sleep(Duration::from_secs(wait)).await;
                let mut seen = seen.borrow_mut();
                seen.under_way -= 1;
                let Some(again) = fails else {
                    let usage = Usage { input: 50, output: 50, ..Usage::default() };
                    let (text, model) = ("<a/>".to_owned(), "m".to_owned());
                    return Ok(Completion { text, finish: Finish::Whole, model, usage });
                };
                if let Again::Later(Some(after)) = again {
                    seen.rests = seen.rests.max(clock.now().after(after));
                }
                Err(Setback::new("it failed", again))
            })
        }
    }

    fn steps() -> impl Generator<Value = Vec<Step>> {
        let fails = prop_oneof![
            3 => Just(None),
            2 => Just(Some(Again::Later(None))),
            1 => (0..90_u64).prop_map(|after| Some(Again::Later(Some(Duration::from_secs(after))))),
            1 => Just(Some(Again::Never)),
        ];
        prop::collection::vec((0..20_u64, fails), 0..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Each request ends within the attempts of its policy, regardless of the providers; no backend has more in
        /// flight than its limit, and none is asked while its `Retry-After` lasts.
        #[test]
        fn requests_end_and_limits_hold(
            strategy in prop::sample::select(vec![Strategy::Failover, Strategy::RoundRobin, Strategy::LeastLoaded]),
            backends in prop::collection::vec((steps(), prop::option::of(1..4_u32), prop::option::of(200..2000_u32)), 1..4),
            requests in 1..8_usize,
        ) {
            let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            let local = LocalSet::new();
            let (seen, answered) = local.block_on(&runtime, async {
                let clock = Clock::simulated(Time::from_nanos(1));
                let policy = Policy { attempts: 3, budget: Duration::from_secs(300), ..Policy::default() };
                let (mut llm, mut seen, mut providers) = (Llm::new(strategy).retry(policy), Vec::new(), Vec::new());
                for (at, (steps, max_concurrent, rate_limit_tpm)) in backends.iter().enumerate() {
                    let backend = Backend::new(Name::parse(&format!("b{at}")).unwrap());
                    let (max_concurrent, rate_limit_tpm) = (*max_concurrent, *rate_limit_tpm);
                    llm = llm.backend(Backend { max_concurrent, rate_limit_tpm, ..backend }, || {
                        Arc::new(crate::settings::Script::default())
                    });
                    let watched = Rc::new(RefCell::new(Seen { steps: steps.clone(), ..Seen::default() }));
                    seen.push(watched.clone());
                    providers.push(Box::new(Watched { seen: watched, clock: clock.clone() }) as Box<dyn Provider>);
                }
                let providers = Rc::new(providers);
                let asking: Vec<_> = (0..requests).map(|_| {
                    let (llm, providers, clock) = (llm.clone(), providers.clone(), clock.clone());
                    tokio::task::spawn_local(async move {
                        let turns = vec![Turn { role: Role::User, text: "x".repeat(100) }];
                        let listener = Name::parse("planner").unwrap();
                        let prompt =
                            ModelPrompt { listener, system: String::new(), turns, temperature: None, max_tokens: 100, answer_schema: None, is_summary: false, traceparent: None };
                        let (allowance, growth) = (Allowance::unbounded(), Growth::hidden());
                        let (prompt, providers) = (&prompt, &*providers);
                        let asking = Asking { providers, prompt, only: None, subject: Subject::none(), allowance, until: Time::MAX, growth, clock };
                        llm.ask(asking).await.is_ok()
                    })
                }).collect();
                let mut answered = 0;
                for one in asking {
                    answered += usize::from(one.await.unwrap());
                }
                (seen, answered)
            });
            for (seen, (_, max_concurrent, _)) in seen.iter().zip(&backends) {
                let seen = seen.borrow();
                prop_assert_eq!(seen.under_way, 0);
                prop_assert!(seen.most <= max_concurrent.map_or(requests, |most| most as usize), "{} at once", seen.most);
                prop_assert!(seen.asked <= 3 * requests, "{} attempts", seen.asked);
                prop_assert!(!seen.broken, "it was not left alone");
            }
            let fails = backends.iter().any(|(steps, ..)| steps.iter().any(|(_, fails)| fails.is_some()));
            prop_assert!(answered == requests || fails, "{answered} of {requests}");
        }
    }
}
