use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use systole_core::vocab::{MessageId, Name, Time};
use tokio::sync::Notify;

use super::circuit::{Circuit, CircuitPolicy, CircuitState};

/// Past so many targets those that nothing waits for are forgotten, unless their circuit is open.
const KEPT: usize = 1024;

/// What is known of each target: whether somebody drains its line, what runs there, and its circuit.
#[derive(Debug, Default)]
pub(super) struct Lines(Mutex<HashMap<Name, Line>>);

#[derive(Debug, Default)]
struct Line {
    drained: bool,
    /// Whether something came since the one who drains it looked.
    news: bool,
    running: Option<Running>,
    /// What was stopped since then, while nothing ran: the next one may be among it.
    stopped: Vec<MessageId>,
    circuit: Circuit,
}

/// The delivery that is sent now.
#[derive(Debug)]
struct Running {
    id: MessageId,
    /// Breaks it off.
    stop: Arc<Notify>,
    /// Ends it after the attempt that runs.
    enough: Arc<Notify>,
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something waits for a target. Whether the caller has to see to it that its line is drained.
    pub(super) fn wake(&self, target: &Name, policy: CircuitPolicy, now: Time) -> bool {
        let mut lines = self.lock();
        if lines.len() >= KEPT && !lines.contains_key(target) {
            lines.retain(|_, line| line.drained || !line.circuit.is_forgettable(policy, now));
        }
        let line = lines.entry(target.clone()).or_default();
        line.news = true;
        !std::mem::replace(&mut line.drained, true)
    }

    /// Whoever drains a line is about to look into the outbox.
    pub(super) fn look(&self, target: &Name) {
        if let Some(line) = self.lock().get_mut(target) {
            line.news = false;
            line.running = None;
            line.stopped.clear();
        }
    }

    /// Whoever drains a line found it empty. Whether that is still so: then somebody else drains it next.
    pub(super) fn leave(&self, target: &Name) -> bool {
        let mut lines = self.lock();
        let Some(line) = lines.get_mut(target) else { return true };
        if line.news {
            return false;
        }
        line.drained = false;
        line.stopped = Vec::new();
        if line.circuit.is_untouched() {
            lines.remove(target);
        }
        true
    }

    /// A delivery is the one that is sent to a target now. The first bell breaks it off, the second one ends it after
    /// the attempt that runs.
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

    /// Ends what is sent to a target, if it is this delivery.
    pub(super) fn stop(&self, target: &Name, id: MessageId) {
        let mut lines = self.lock();
        let Some(line) = lines.get_mut(target) else { return };
        match &line.running {
            Some(running) if running.id == id => running.stop.notify_one(),
            Some(_) => {}
            None if line.drained => line.stopped.push(id),
            None => {}
        }
    }

    /// Ends what is sent to a target after the attempt that runs, if it is this delivery.
    pub(super) fn finish(&self, target: &Name, id: MessageId) {
        if let Some(running) = self.lock().get(target).and_then(|line| line.running.as_ref())
            && running.id == id
        {
            running.enough.notify_one();
        }
    }

    /// Breaks off whatever is sent to a target: it is looked up anew.
    pub(super) fn restart(&self, target: &Name) {
        if let Some(running) = self.lock().get(target).and_then(|line| line.running.as_ref()) {
            running.stop.notify_one();
        }
    }

    /// The state of the circuit to a target.
    pub(super) fn circuit(&self, target: &Name, policy: CircuitPolicy, now: Time) -> CircuitState {
        self.lock().get(target).map_or(CircuitState::Closed, |line| line.circuit.state(policy, now))
    }

    /// A target has answered.
    pub(super) fn answered(&self, target: &Name) {
        if let Some(line) = self.lock().get_mut(target) {
            line.circuit.answered();
        }
    }

    /// The transport to a target has failed. Whether that opens its circuit.
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
        let (lines, peer) = (Lines::default(), "peer".parse().unwrap());
        assert!(lines.wake(&peer, POLICY, Time::default()));
        lines.look(&peer);
        lines.stop(&peer, id(1));
        assert!(is_stopped(&lines.run(&peer, id(1)).0).await);
        lines.look(&peer);
        let other = lines.run(&peer, id(2)).0;
        lines.stop(&peer, id(1));
        assert!(!is_stopped(&other).await);
        lines.stop(&peer, id(2));
        assert!(is_stopped(&other).await);
    }

    #[test]
    fn a_line_is_left_only_if_nothing_came_meanwhile() {
        let (lines, peer) = (Lines::default(), "peer".parse().unwrap());
        assert!(lines.wake(&peer, POLICY, Time::default()));
        lines.look(&peer);
        assert!(!lines.wake(&peer, POLICY, Time::default()), "somebody drains it");
        assert!(!lines.leave(&peer));
        lines.look(&peer);
        assert!(lines.leave(&peer));
        assert!(lines.wake(&peer, POLICY, Time::default()));
    }

    #[test]
    fn targets_that_nothing_waits_for_are_forgotten_unless_their_circuit_is_open() {
        let lines = Lines::default();
        for number in 0..3 * KEPT as u64 {
            // Each fails a minute after the one before.
            let now = Time::default().after(std::time::Duration::from_secs(60 * number));
            let target = format!("peer-{number}").parse().unwrap();
            lines.wake(&target, POLICY, now);
            lines.look(&target);
            assert!(lines.failed(&target, POLICY, now));
            assert!(lines.leave(&target));
            assert!(matches!(lines.circuit(&target, POLICY, now), CircuitState::Open(_)));
        }
        assert!(lines.lock().len() <= KEPT, "{}", lines.lock().len());
    }
}
