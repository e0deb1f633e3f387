//! Helpers of the tests of deliveries: an engine over a store in memory.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use systole_core::vocab::{MessageId, Name, Time};
use tokio::sync::watch;
use uuid::Uuid;

use crate::outbound::circuit::{CircuitPolicy, CircuitState};
use crate::outbound::retry::Policy;
use crate::outbound::{
    Begun, DeliveryOptions, DeliveryOutcome, DeliveryStore, Engine, Guard, Job, OutboundDelivery, Stored,
};
use systole_store::clock::Clock;

/// State of a delivery in the store.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum State {
    Waiting,
    Attempting,
    BackingOff { until: Time },
    Settled(DeliveryOutcome),
}

/// Deliveries in the order in which they came, those that have ended among them.
#[derive(Debug, Default)]
pub(super) struct MemoryStore(Mutex<Vec<(Job, watch::Sender<State>)>>);

impl MemoryStore {
    /// Changes a delivery and tells its state.
    fn change<T>(&self, id: MessageId, change: impl FnOnce(&mut Job) -> (State, T)) -> T {
        let mut jobs = self.0.lock().unwrap();
        let (job, state) = jobs.iter_mut().find(|(job, _)| job.delivery.id == id).unwrap();
        let (next, done) = change(job);
        state.send_replace(next);
        done
    }

    pub(super) fn attempts(&self, id: MessageId) -> u32 {
        self.0.lock().unwrap().iter().find(|(job, _)| job.delivery.id == id).unwrap().0.attempts
    }

    /// The states of a delivery from now on.
    pub(super) fn handle(&self, id: MessageId) -> Handle {
        Handle(self.0.lock().unwrap().iter().find(|(job, _)| job.delivery.id == id).unwrap().1.subscribe())
    }
}

impl DeliveryStore for MemoryStore {
    fn head(&self, target: Name) -> Stored<'_, Option<Job>> {
        let jobs = self.0.lock().unwrap();
        let waits = |state: &watch::Sender<State>| !matches!(*state.borrow(), State::Settled(_));
        let head = jobs.iter().find(|(job, state)| job.delivery.target == target && waits(state));
        let head = head.map(|(job, _)| job.clone());
        Box::pin(async move { Ok(head) })
    }

    fn begin(&self, id: MessageId, attempts: u32, spent: Duration) -> Stored<'_, Option<Begun>> {
        self.change(id, |job| {
            (job.attempts, job.spent, job.next) = (attempts, spent, None);
            (State::Attempting, ())
        });
        Box::pin(async { Ok(Some(Begun::default())) })
    }

    fn back_off(&self, id: MessageId, until: Time, error: String, spent: Duration) -> Stored<'_, bool> {
        self.change(id, |job| {
            (job.spent, job.next, job.last_error) = (spent, Some(until), Some(error));
            (State::BackingOff { until }, ())
        });
        Box::pin(async { Ok(true) })
    }

    fn settle(&self, id: MessageId, outcome: DeliveryOutcome) -> Stored<'_, ()> {
        self.change(id, |_| (State::Settled(outcome), ()));
        Box::pin(async { Ok(()) })
    }
}

/// The states of a delivery.
pub(super) struct Handle(watch::Receiver<State>);

impl Handle {
    pub(super) fn state(&self) -> State {
        self.0.borrow().clone()
    }

    pub(super) async fn wait_for(&mut self, is: impl FnMut(&State) -> bool) -> State {
        self.0.wait_for(is).await.unwrap().clone()
    }

    /// The end of the delivery.
    pub(super) async fn outcome(&mut self) -> DeliveryOutcome {
        match self.wait_for(|state| matches!(state, State::Settled(_))).await {
            State::Settled(outcome) => outcome,
            state => panic!("{state:?}"),
        }
    }
}

/// An engine and its store.
pub(super) struct Sender {
    pub(super) engine: Engine,
    pub(super) store: Arc<MemoryStore>,
}

impl Sender {
    pub(super) fn start(options: DeliveryOptions) -> Self {
        Self::over(Arc::default(), options)
    }

    /// Goes on with what waits in a store.
    pub(super) fn over(store: Arc<MemoryStore>, options: DeliveryOptions) -> Self {
        let engine = Engine::start(store.clone(), options, Clock::of_runtime()).unwrap();
        let targets: Vec<_> = store.0.lock().unwrap().iter().map(|(job, _)| job.delivery.target.clone()).collect();
        targets.into_iter().for_each(|target| engine.wake(target));
        Self { engine, store }
    }

    pub(super) fn send(&self, delivery: OutboundDelivery) -> Handle {
        let (id, target) = (delivery.id, delivery.target.clone());
        let job = Job { delivery, attempts: 0, spent: Duration::ZERO, next: None, last_error: None };
        self.store.0.lock().unwrap().push((job, watch::Sender::new(State::Waiting)));
        self.engine.wake(target);
        self.store.handle(id)
    }

    /// Sends a delivery and waits for its end.
    pub(super) async fn deliver(&self, delivery: OutboundDelivery) -> DeliveryOutcome {
        self.send(delivery).outcome().await
    }

    /// Ends the engine, as a process does that ends or is killed; what waits is in the store.
    pub(super) async fn close(self, grace: Duration) -> Arc<MemoryStore> {
        self.engine.close(grace).await;
        self.store
    }

    /// The state of the circuit to the target of [`delivery`].
    pub(super) fn circuit(&self) -> CircuitState {
        self.engine.circuit(&peer())
    }
}

/// Options of three attempts without waits, to this machine, without time limits.
pub(super) fn options() -> DeliveryOptions {
    let policy = Policy::default().attempts(3).base(Duration::from_millis(1)).cap(Duration::from_millis(2)).jitter(0.0);
    let circuit = CircuitPolicy { failures: 0, ..CircuitPolicy::default() };
    DeliveryOptions { policy, guard: Guard::private(), circuit, ..DeliveryOptions::default() }
}

/// Options as [`options`], with a wait that allows no second attempt within a test.
pub(super) fn patient() -> DeliveryOptions {
    let mut options = options();
    options.policy.base = Duration::from_secs(400);
    options.policy.cap = options.policy.base;
    options
}

pub(super) fn id(number: u128) -> MessageId {
    MessageId::from_uuid(Uuid::from_u128(number))
}

pub(super) fn peer() -> Name {
    "peer".parse().unwrap()
}

pub(super) fn delivery(number: u128, url: &str) -> OutboundDelivery {
    OutboundDelivery::new(id(number), peer(), url, format!("<a n='{number}'/>"))
}

/// The end of the only delivery of a sender.
pub(super) async fn outcome(options: DeliveryOptions, delivery: OutboundDelivery) -> DeliveryOutcome {
    Sender::start(options).deliver(delivery).await
}
