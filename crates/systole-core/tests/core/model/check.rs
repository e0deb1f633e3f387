//! Time for both sides, and the comparison of their outputs.

use std::time::Duration;

use systole_core::vocab::Time;

use super::Pair;
use super::reference::{Invocation, Model, What};
use crate::harness::{self, Seen, describe_egress, secs};

const TIMEOUT: Duration = Duration::from_secs(30);

/// A thing that is due at some time.
#[derive(Debug, Clone, Copy)]
enum Due {
    Handler(harness::Invocation),
    Deadline(usize),
    Continue(usize, i64),
    Idle(usize),
}

impl Pair {
    /// Lets time pass, and both do what comes due on the way.
    pub(super) fn pass(&mut self, duration: Duration) {
        let end = self.world.now.after(duration);
        while let Some(at) = self.model.next_due().filter(|&at| at <= end) {
            self.set_time(at);
            self.model.expire_all();
            self.settle();
        }
        self.set_time(end);
        self.settle();
    }

    fn set_time(&mut self, now: Time) {
        self.world.now = now;
        self.model.now = now;
    }

    /// Lets the world run until it is quiet, and compares it with the model.
    pub(super) fn settle(&mut self) {
        self.step += 1;
        self.world.run();
        self.model.drain_faults();
        for seen in std::mem::take(&mut self.world.log) {
            match seen {
                Seen::Started(invocation, thread, line) => self.started(invocation, thread, &line),
                Seen::Resumed(invocation, call, result) => self.resumed(invocation, call, result),
                Seen::Aborted(invocation) => self.aborted(invocation),
            }
        }
        self.model.cleared.clear();
        self.note_ready();
        self.compare_output();
        self.compare_state();
    }

    fn started(&mut self, name: harness::Invocation, id: systole_core::vocab::ThreadId, line: &str) {
        let (listener, rest) = line.split_once(" <- ").expect("a line of the harness");
        let me: usize = listener[1..].parse().expect("l<i>");
        let what = rest.split_once(": ").expect("a line of the harness").1;
        let is_it = |thread: &super::reference::Thread| match thread.id {
            Some(known) => known == id,
            None => thread.listener == Some(me) && thread.opened_with == what,
        };
        let known = self.model.threads.iter().position(|thread| thread.id == Some(id));
        let thread = known.or_else(|| self.model.threads.iter().position(is_it));
        let thread = thread.unwrap_or_else(|| panic!("the model has no thread for '{line}'"));
        self.model.threads[thread].id = Some(id);
        assert!(self.model.has_free_slot(me), "'{line}' started without a free slot");
        let text = |said: &What| match said {
            What::Payload(text) => text.clone(),
            What::Fault(code) | What::Fatal(code) => format!("!{code}"),
        };
        let cleared = |(other, said): &(usize, What)| *other == thread && what.starts_with(&text(said));
        let open = self.model.threads[thread].open && !self.model.cleared.iter().any(cleared);
        if open {
            assert!(self.model.is_startable(thread), "'{line}' may not start: {:?}", self.model.threads[thread]);
            self.check_first_come(thread, line);
            let mail = self.model.threads[thread].mailbox.pop_front().expect("it is startable");
            let position = self.model.position(mail.answers);
            let what = text(&mail.what);
            assert_eq!(line, format!("l{me} <- {}: {what}{position}", mail.from));
            self.model.threads[thread].invocation = true;
            self.model.threads[thread].ready_since = None;
        }
        // Where the thread is closed, or its call over, it was started before the core came to
        // what ended it: an abort must follow.
        self.model.order += 1;
        self.model.invocations.push(Invocation {
            name,
            thread: open.then_some(thread),
            listener: me,
            parked: false,
            slotless: false,
            left: TIMEOUT,
            since: self.model.now,
            order: self.model.order,
            ready: Default::default(),
            calls: 0,
        });
    }

    /// Checks that the thread of a conversation that has waited longest for a slot of a listener goes first.
    fn check_first_come(&self, thread: usize, line: &str) {
        let me = self.model.threads[thread].listener;
        let since = self.model.threads[thread].ready_since.unwrap_or(self.step);
        let earlier = (0..self.model.threads.len()).find(|&other| {
            let state = &self.model.threads[other];
            let together = self.model.root_of(other) == self.model.root_of(thread);
            together
                && state.listener == me
                && self.model.is_startable(other)
                && state.ready_since.is_some_and(|step| step < since)
        });
        // Depth-first, two that got their slots at the same time start in the order of the run queue.
        assert!(earlier.is_none() || self.model.plan.depth_first, "'{line}' overtook a thread that waits longer");
    }

    fn resumed(&mut self, name: harness::Invocation, call: u32, result: String) {
        let at = self.model.invocation_index(name);
        let me = self.model.invocations[at].listener;
        // Where the thread is closed, the core came to what closed it after this.
        if self.model.invocations[at].thread.is_some() {
            assert_eq!(
                self.model.invocations[at].ready.pop_front(),
                Some((call, result)),
                "what {name:?} is resumed with"
            );
        }
        if self.model.invocations[at].parked {
            assert!(self.model.has_free_slot(me), "{name:?} was resumed without a free slot");
            self.model.order += 1;
            let (now, order) = (self.model.now, self.model.order);
            let invocation = &mut self.model.invocations[at];
            (invocation.parked, invocation.since, invocation.order) = (false, now, order);
        }
    }

    fn aborted(&mut self, name: harness::Invocation) {
        let at = self.model.invocation_index(name);
        let invocation = &self.model.invocations[at];
        assert_eq!(invocation.thread, None, "{name:?} was aborted");
        if !self.model.plan.listeners[invocation.listener].blocking {
            self.model.invocations.remove(at);
        }
    }

    fn note_ready(&mut self) {
        for thread in 0..self.model.threads.len() {
            let ready = self.model.is_startable(thread);
            let since = &mut self.model.threads[thread].ready_since;
            *since = ready.then(|| since.unwrap_or(self.step));
        }
    }

    fn compare_output(&mut self) {
        let mut said: Vec<_> = Vec::new();
        for egress in std::mem::take(&mut self.world.egress) {
            let root = self.roots.get(&egress.root).map_or("none".to_owned(), usize::to_string);
            said.push(format!("{root}/{}", describe_egress(&egress)));
            if let Some(label) = &egress.in_reply_to {
                *self.answers.entry(label[1..].parse().expect("m<n>")).or_default() += 1;
            }
        }
        let mut expected = std::mem::take(&mut self.model.said);
        said.sort_unstable();
        expected.sort_unstable();
        assert_eq!(said, expected, "what leaves");
        let closed = std::mem::take(&mut self.world.closed);
        let mut closed: Vec<_> = closed.iter().filter_map(|root| self.roots.get(root).copied()).collect();
        let mut expected = std::mem::take(&mut self.model.closed);
        closed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(closed, expected, "the conversations that close");
    }

    fn compare_state(&self) {
        let (world, model) = (&self.world, &self.model);
        let running: Vec<_> = world.running.iter().map(|running| running.invocation).collect();
        assert_eq!(running.len(), model.invocations.len(), "handlers that run");
        for invocation in &model.invocations {
            assert!(running.contains(&invocation.name), "{invocation:?} does not run");
            let waits = invocation.parked && !model.has_free_slot(invocation.listener);
            assert!(invocation.ready.is_empty() || waits, "{invocation:?} could be resumed");
        }
        let startable: Vec<_> = (0..model.threads.len()).filter(|&thread| model.is_startable(thread)).collect();
        for &thread in &startable {
            let me = model.threads[thread].listener.expect("it is startable");
            assert!(!model.has_free_slot(me), "{:?} could start", model.threads[thread]);
        }
        let mut paths = world.paths();
        let mut expected = model.paths();
        paths.sort_unstable();
        expected.sort_unstable();
        assert_eq!(paths, expected, "open threads");
        assert_eq!(world.next_wake(), model.next_due(), "when the core wants to wake");
        assert_eq!(world.gauge.messages(), model.waiting(), "messages that wait");
        let is_idle = model.invocations.is_empty() && startable.is_empty();
        assert_eq!(world.is_idle(), is_idle, "whether it is idle");
    }

    pub(super) fn is_own(&self, root: usize, client: &str) -> bool {
        self.owners.get(&root).is_some_and(|owner| owner == client)
    }
}

impl Model {
    /// Tells whether a thread would get a slot of a listener now.
    pub(super) fn has_free_slot(&self, listener: usize) -> bool {
        let holds = |holder: &&Invocation| holder.listener == listener && !holder.parked && !holder.slotless;
        let holders = self.invocations.iter().filter(holds).count();
        !self.rests[listener] && holders < self.plan.listeners[listener].slots as usize
    }

    fn waiting(&self) -> usize {
        let waits = |thread: &super::reference::Thread| {
            let backlog = thread.backlog.as_ref().map_or(0, std::collections::VecDeque::len);
            thread.mailbox.len() + thread.continues.len() + backlog
        };
        self.threads.iter().filter(|thread| thread.open).map(waits).sum()
    }

    /// Tells whether a continue is still to come.
    pub(super) fn waits_for_time(&self) -> bool {
        self.threads.iter().any(|thread| thread.open && !thread.continues.is_empty())
    }

    fn paths(&self) -> Vec<String> {
        (0..self.threads.len()).filter(|&thread| self.threads[thread].open).map(|thread| self.path(thread)).collect()
    }

    fn path(&self, thread: usize) -> String {
        let state = &self.threads[thread];
        let (Some(parent), Some(me)) = (state.parent, state.listener) else { return "root".to_owned() };
        let ordinal = if state.ordinal > 1 { format!("#{}", state.ordinal) } else { String::new() };
        format!("{}/l{me}{ordinal}", self.path(parent))
    }

    /// The things that have a time, in order.
    fn dues(&self) -> Vec<(Time, u64, Due)> {
        let running = self.invocations.iter().filter(|invocation| invocation.thread.is_some() && !invocation.parked);
        let mut dues: Vec<_> = running
            .map(|invocation| {
                (invocation.since.after(invocation.left), invocation.order, Due::Handler(invocation.name))
            })
            .collect();
        for (at, thread) in self.threads.iter().enumerate().filter(|(_, thread)| thread.open) {
            dues.extend(thread.own_deadline.map(|order| (thread.deadline, order, Due::Deadline(at))));
            dues.extend(thread.continues.iter().map(|&(due, order, n)| (due, order, Due::Continue(at, n))));
            dues.extend(thread.idle_since.map(|(since, order)| (since.after(secs(900)), order, Due::Idle(at))));
        }
        dues.sort_unstable_by_key(|&(at, order, _)| (at, order));
        dues
    }

    pub(super) fn next_due(&self) -> Option<Time> {
        self.dues().first().map(|&(at, _, _)| at)
    }

    /// Expires everything that is due now, in order; things that an earlier one made void are passed over.
    pub(super) fn expire_all(&mut self) {
        while let Some(&(_, _, due)) = self.dues().first().filter(|(at, _, _)| *at <= self.now) {
            match due {
                Due::Handler(name) => {
                    let at = self.invocation_index(name);
                    let thread = self.invocations[at].thread.expect("only those of open threads are due");
                    self.fail(thread, "timeout");
                }
                Due::Deadline(thread) => self.fail(thread, "timeout"),
                Due::Continue(thread, n) => self.continue_due(thread, n),
                Due::Idle(root) => self.close(root),
            }
        }
    }
}
