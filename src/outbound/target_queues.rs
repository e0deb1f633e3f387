//! Queues of the targets, and their circuits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use systole_core::vocab::{MessageId, Name, Time};
use tokio::sync::Notify;

use super::circuit::{Circuit, CircuitPolicy, CircuitState};

/// Most targets that are kept: past it, those without deliveries are forgotten, unless their circuit is open.
const KEPT: usize = 1024;

/// State of each target: whether a task drains its queue, the delivery in flight, the circuit.
#[derive(Debug, Default)]
pub(super) struct TargetQueues(Mutex<HashMap<Name, TargetQueue>>);

#[derive(Debug, Default)]
struct TargetQueue {
    drained: bool,
    /// True if a delivery came since the draining task looked.
    news: bool,
    running: Option<Running>,
    /// Deliveries that were stopped since then, with none in flight: the next one may be among them.
    stopped: Vec<MessageId>,
    circuit: Circuit,
}

/// The delivery in flight.
#[derive(Debug)]
struct Running {
    id: MessageId,
    /// Cuts the delivery off.
    stop: Arc<Notify>,
    /// Ends the delivery after the attempt in flight.
    enough: Arc<Notify>,
}

impl TargetQueues {
    fn lock(&self) -> MutexGuard<'_, HashMap<Name, TargetQueue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a delivery waits for a target. Returns true if the caller has to start a task that drains the queue.
    pub(super) fn wake(&self, target: &Name, policy: CircuitPolicy, now: Time) -> bool {
        let mut queues = self.lock();
        if queues.len() >= KEPT && !queues.contains_key(target) {
            queues.retain(|_, line| line.drained || !line.circuit.is_forgettable(policy, now));
        }
        let line = queues.entry(target.clone()).or_default();
        line.news = true;
        !std::mem::replace(&mut line.drained, true)
    }

    /// Notes that the draining task is about to read the store.
    pub(super) fn look(&self, target: &Name) {
        if let Some(line) = self.lock().get_mut(target) {
            line.news = false;
            line.running = None;
            line.stopped.clear();
        }
    }

    /// Notes that the draining task found the queue empty. Returns true if that still holds: then another task drains
    /// it next.
    pub(super) fn leave(&self, target: &Name) -> bool {
        let mut queues = self.lock();
        let Some(line) = queues.get_mut(target) else { return true };
        if line.news {
            return false;
        }
        line.drained = false;
        line.stopped = Vec::new();
        if line.circuit.is_untouched() {
            queues.remove(target);
        }
        true
    }

    /// Notes the delivery in flight to a target. The first notification cuts it off, the second one ends it after the
    /// attempt in flight.
    pub(super) fn run(&self, target: &Name, id: MessageId) -> (Arc<Notify>, Arc<Notify>) {
        let (stop, enough) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        if let Some(line) = self.lock().get_mut(target) {
            if line.stopped.contains(&id) {
                stop.notify_one();
            }
            line.running = Some(Running { id, stop: stop.clone(), enough: enough.clone() });
        }
        (stop, enough)
    }

    /// Cuts off the delivery in flight to a target, if it is this one.
    pub(super) fn stop(&self, target: &Name, id: MessageId) {
        let mut queues = self.lock();
        let Some(line) = queues.get_mut(target) else { return };
        match &line.running {
            Some(running) if running.id == id => running.stop.notify_one(),
            Some(_) => {}
            None if line.drained => line.stopped.push(id),
            None => {}
        }
    }

    /// Ends the delivery in flight to a target after its attempt, if it is this one.
    pub(super) fn finish(&self, target: &Name, id: MessageId) {
        if let Some(running) = self.lock().get(target).and_then(|line| line.running.as_ref())
            && running.id == id
        {
            running.enough.notify_one();
        }
    }

    /// Cuts off the delivery in flight to a target: it is read anew.
    pub(super) fn restart(&self, target: &Name) {
        if let Some(running) = self.lock().get(target).and_then(|line| line.running.as_ref()) {
            running.stop.notify_one();
        }
    }

    /// The state of the circuit to a target.
    pub(super) fn circuit(&self, target: &Name, policy: CircuitPolicy, now: Time) -> CircuitState {
        self.lock().get(target).map_or(CircuitState::Closed, |line| line.circuit.state(policy, now))
    }

    /// Notes an answer of a target.
    pub(super) fn answered(&self, target: &Name) {
        if let Some(line) = self.lock().get_mut(target) {
            line.circuit.answered();
        }
    }

    /// Notes a transport failure of a target. Returns true if that opens its circuit.
    pub(super) fn failed(&self, target: &Name, policy: CircuitPolicy, now: Time) -> bool {
        self.lock().get_mut(target).is_some_and(|line| line.circuit.failed(policy, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: CircuitPolicy = CircuitPolicy { failures: 1, cool_down: std::time::Duration::from_secs(30) };

    fn id(number: u128) -> MessageId {
        MessageId::from_uuid(uuid::Uuid::from_u128(number))
    }

    async fn is_stopped(stop: &Notify) -> bool {
        tokio::select! {
            biased;
            () = stop.notified() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn what_is_stopped_before_it_runs_is_stopped() {
        let (queues, peer) = (TargetQueues::default(), "peer".parse().unwrap());
        assert!(queues.wake(&peer, POLICY, Time::default()));
        queues.look(&peer);
        queues.stop(&peer, id(1));
        assert!(is_stopped(&queues.run(&peer, id(1)).0).await);
        queues.look(&peer);
        let other = queues.run(&peer, id(2)).0;
        queues.stop(&peer, id(1));
        assert!(!is_stopped(&other).await);
        queues.stop(&peer, id(2));
        assert!(is_stopped(&other).await);
    }

    #[test]
    fn a_line_is_left_only_if_nothing_came_meanwhile() {
        let (queues, peer) = (TargetQueues::default(), "peer".parse().unwrap());
        assert!(queues.wake(&peer, POLICY, Time::default()));
        queues.look(&peer);
        assert!(!queues.wake(&peer, POLICY, Time::default()), "somebody drains it");
        assert!(!queues.leave(&peer));
        queues.look(&peer);
        assert!(queues.leave(&peer));
        assert!(queues.wake(&peer, POLICY, Time::default()));
    }

    #[test]
    fn targets_that_nothing_waits_for_are_forgotten_unless_their_circuit_is_open() {
        let queues = TargetQueues::default();
        for number in 0..3 * KEPT as u64 {
            // Each one fails a minute after the one before.
            let now = Time::default().after(std::time::Duration::from_secs(60 * number));
            let target = format!("peer-{number}").parse().unwrap();
            queues.wake(&target, POLICY, now);
            queues.look(&target);
            assert!(queues.failed(&target, POLICY, now));
            assert!(queues.leave(&target));
            assert!(matches!(queues.circuit(&target, POLICY, now), CircuitState::Open(_)));
        }
        assert!(queues.lock().len() <= KEPT, "{}", queues.lock().len());
    }
}
