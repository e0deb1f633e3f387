//! The expected behaviour of the core, as simply as possible: plain structs in vectors, nothing is ever removed, every
//! lookup is a search. There are no run queues, slots or timers here: the model checks the events that it is shown
//! against those that may happen, and says which must.

use std::collections::VecDeque;
use std::time::Duration;

use systole_core::core::Join;
use systole_core::vocab::{ThreadId, Time};

use super::plan::{Plan, STRIKES};
use crate::harness;

pub(crate) struct Model {
    pub(crate) plan: Plan,
    pub(crate) now: Time,
    pub(crate) threads: Vec<Thread>,
    pub(crate) invocations: Vec<Invocation>,
    pub(crate) groups: Vec<Group>,
    /// The listeners that rest: none of their handlers starts or resumes.
    pub(crate) rests: Vec<bool>,
    /// The messages that must leave, as `conversation/from: what [label]`.
    pub(crate) said: Vec<String>,
    pub(crate) closed: Vec<usize>,
    /// Messages of spawned threads whose calls ended in this step before they were started.
    pub(crate) cleared: Vec<(usize, What)>,
    pub(crate) draining: bool,
    /// The number of the last thing with a time, so that ties are broken in order of arrival.
    pub(crate) order: u64,
}

#[derive(Debug)]
pub(crate) struct Thread {
    /// `None` for the root of a conversation.
    pub(crate) listener: Option<usize>,
    pub(crate) parent: Option<usize>,
    pub(crate) open: bool,
    pub(crate) ordinal: usize,
    depth: u32,
    pub(crate) mailbox: VecDeque<Mail>,
    pub(crate) invocation: bool,
    debt: Debt,
    /// Calls on a spawned thread that have not started; `None` for other threads.
    pub(crate) backlog: Option<VecDeque<(Mail, Debt)>>,
    pub(crate) spawned: bool,
    pub(crate) continues: Vec<(Time, u64, i64)>,
    /// True if a drain cancelled a continue.
    drained: bool,
    strikes: u32,
    pub(crate) deadline: Time,
    /// The order of the deadline, if it is the thread's own.
    pub(crate) own_deadline: Option<u64>,
    label: Option<i64>,
    /// The payload that opened it: with the listener, its name until it has an id.
    pub(crate) opened_with: String,
    pub(crate) id: Option<ThreadId>,
    /// The step at which its next message could have started.
    pub(crate) ready_since: Option<usize>,
    left: bool,
    /// True for a root without an owner: messages that reach it leave for no client.
    nobodys: bool,
    pub(crate) idle_since: Option<(Time, u64)>,
}

/// The destination of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Debt {
    None,
    Single,
    Group { group: usize, index: usize },
}

#[derive(Debug)]
pub(crate) struct Mail {
    pub(crate) from: String,
    pub(crate) what: What,
    pub(crate) answers: Debt,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Payload(String),
    Fault(&'static str),
    /// A fault that the listener can't take, regardless of its contract.
    Fatal(&'static str),
}

#[derive(Debug)]
pub(crate) struct Group {
    owner: usize,
    total: usize,
    delivered: usize,
    off: usize,
    pub(crate) awaited: Option<Awaited>,
    pub(crate) over: bool,
}

#[derive(Debug)]
pub(crate) struct Awaited {
    pub(crate) invocation: harness::Invocation,
    pub(crate) id: u32,
    join: Join,
    outcomes: Vec<Option<Result<String, &'static str>>>,
}

#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) name: harness::Invocation,
    /// `None` once its thread is closed: it runs on until it is dropped.
    pub(crate) thread: Option<usize>,
    pub(crate) listener: usize,
    pub(crate) parked: bool,
    /// True if it went on without the answer for which it was parked.
    pub(crate) slotless: bool,
    pub(crate) left: Duration,
    pub(crate) since: Time,
    pub(crate) order: u64,
    pub(crate) ready: VecDeque<(u32, String)>,
    pub(crate) calls: u32,
}

/// An emission.
#[derive(Debug, Clone)]
pub(crate) enum Say {
    Reply {
        n: i64,
        ok: bool,
    },
    Call {
        target: usize,
        n: i64,
        ok: bool,
    },
    Continue {
        n: i64,
        ok: bool,
        after: Duration,
    },
    Spawn {
        target: usize,
        n: i64,
        ok: bool,
    },
    /// A call on a spawned thread.
    On {
        child: usize,
        target: usize,
        n: i64,
        ok: bool,
    },
    Close {
        child: usize,
    },
}

/// The end of a handler.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Says(Vec<Say>),
    Malformed,
    Failed,
    Panicked,
    Discarded,
}

impl Model {
    pub(crate) fn new(plan: Plan, now: Time) -> Self {
        let rests = vec![false; plan.count()];
        Self {
            plan,
            now,
            threads: Vec::new(),
            invocations: Vec::new(),
            groups: Vec::new(),
            rests,
            said: Vec::new(),
            closed: Vec::new(),
            cleared: Vec::new(),
            draining: false,
            order: 0,
        }
    }

    /// A message of a client; gives back the conversation that it belongs to, if there is one.
    pub(crate) fn inject(
        &mut self,
        client: &str,
        conversation: Option<usize>,
        target: usize,
        (n, ok): (i64, bool),
        deadline: Option<Time>,
    ) -> Option<usize> {
        let refused = if client == "bob" && target == 0 || self.plan.targets(target).is_empty() {
            Some("route")
        } else {
            (!ok).then_some("payload")
        };
        let root = match (refused, conversation) {
            (Some(code), _) => {
                self.say(conversation, "system", &format!("!{code}"), Some(n));
                conversation
            }
            (None, Some(root)) => Some(root),
            (None, None) => Some(self.open(None, None, String::new(), client)),
        };
        if refused.is_none() {
            for listener in self.plan.targets(target) {
                let payload = format!("{} {n}", self.plan.local(target));
                let root = root.expect("opened above");
                if self.place(root, listener, payload, client, Debt::Single, deadline, Some(n)).is_none() {
                    self.say(Some(root), "system", "!limit", Some(n));
                }
            }
        }
        if let Some(root) = root {
            self.threads[root].idle_since = None;
            self.settle(root);
        }
        root
    }

    /// Redrives a dead letter whose payload keeps its schema.
    pub(crate) fn redrive(&mut self, from: &str, to: Option<&str>, target: usize, n: i64) {
        let may = match from {
            "alice" => true,
            "bob" => target != 0,
            "core" | "system" => false,
            listener => self.plan.may_call(listener[1..].parse().expect("l<i>"), target),
        };
        let named = |listener: &usize| to.is_none_or(|to| to == format!("l{listener}"));
        let targets: Vec<_> = self.plan.targets(target).into_iter().filter(named).collect();
        if !may || targets.is_empty() {
            return;
        }
        let root = self.open(None, None, String::new(), from);
        self.threads[root].nobodys = true;
        for listener in targets {
            let payload = format!("{} {n}", self.plan.local(target));
            self.place(root, listener, payload, from, Debt::None, None, None);
        }
        self.settle(root);
    }

    /// A handler ends.
    pub(crate) fn end(&mut self, name: harness::Invocation, how: End) {
        let at = self.invocation_index(name);
        let invocation = self.invocations.remove(at);
        for group in self.groups_of(name) {
            self.groups[group].over = true;
            self.cancel_group(group);
        }
        let Some(thread) = invocation.thread else { return };
        self.threads[thread].invocation = false;
        match how {
            End::Says(says) => self.respond(thread, &says),
            End::Malformed => {
                self.fault_own(thread, "malformed", Debt::None);
                self.strike(thread);
                self.settle(thread);
            }
            End::Failed => self.fail(thread, "failed"),
            End::Panicked | End::Discarded => self.fail(thread, "listener-failed"),
        }
    }

    fn respond(&mut self, thread: usize, says: &[Say]) {
        let me = self.threads[thread].listener.expect("roots have no handlers");
        let answer = says.iter().find_map(|say| if let Say::Reply { n, ok: true } = say { Some(*n) } else { None });
        if let Some(n) = answer {
            return self.answer(thread, What::Payload(format!("a{me} {n}")));
        }
        if !says.is_empty() {
            let total: usize = says.iter().map(|say| self.width(me, say)).sum();
            let valid = if total.max(says.len()) > self.plan.fanout {
                self.fault_own(thread, "limit", Debt::None);
                false
            } else {
                let group = (total > 1).then(|| self.group(thread, total, None));
                self.perform(thread, says, group)
            };
            if valid {
                self.threads[thread].strikes = 0;
            } else {
                self.strike(thread);
            }
        }
        self.settle(thread);
    }

    /// Lets emissions take effect; whether any was valid.
    fn perform(&mut self, thread: usize, says: &[Say], group: Option<usize>) -> bool {
        let me = self.threads[thread].listener.expect("roots have no handlers");
        // All are judged before any takes effect.
        let refusals: Vec<_> = says.iter().map(|say| self.refusal(me, say)).collect();
        let (mut index, mut valid) = (0, false);
        for (say, refused) in says.iter().zip(refusals) {
            let debt = |copy: usize| match group {
                Some(group) => Debt::Group { group, index: index + copy },
                None => Debt::Single,
            };
            let width = self.width(me, say);
            if width > 0 && group.is_some_and(|group| self.groups[group].over) {
                index += width;
                continue;
            }
            if self.is_past_bounds(thread, say, (width, refused.is_some())) {
                self.fail(thread, "limit");
                return true;
            }
            if let Some(code) = refused {
                if width == 0 {
                    self.fault_own(thread, code, Debt::None);
                } else {
                    (0..width).for_each(|copy| self.fault_own(thread, code, debt(copy)));
                }
                index += width;
                continue;
            }
            match *say {
                Say::Reply { .. } => unreachable!("a valid reply is the answer, and awaited calls hold none"),
                Say::Continue { n, after, .. } => {
                    let has_room = self.reserved(thread) < self.plan.mailbox;
                    valid |= has_room;
                    if !has_room {
                        self.fault_own(thread, "limit", Debt::None);
                    } else if after.is_zero() {
                        let (from, what) = (format!("l{me}"), What::Payload(format!("q{me} {n}")));
                        self.threads[thread].mailbox.push_back(Mail { from, what, answers: Debt::None });
                    } else if self.draining {
                        self.threads[thread].drained = true;
                    } else {
                        self.order += 1;
                        self.threads[thread].continues.push((self.now.after(after), self.order, n));
                    }
                }
                Say::Call { target, n, .. } => {
                    for copy in 0..width {
                        if group.is_some_and(|group| self.groups[group].over) {
                            continue;
                        }
                        let payload = format!("{} {n}", self.plan.local(target));
                        let listener = self.plan.targets(target)[copy];
                        match self.place(thread, listener, payload, &format!("l{me}"), debt(copy), None, None) {
                            Some(_) => valid = true,
                            None => self.fault_own(thread, "limit", debt(copy)),
                        }
                    }
                }
                Say::Spawn { target, n, .. } => {
                    let payload = format!("{} {n}", self.plan.local(target));
                    let listener = self.plan.targets(target)[0];
                    match self.place(thread, listener, payload, &format!("l{me}"), debt(1), None, None) {
                        Some(child) => {
                            valid = true;
                            (self.threads[child].backlog, self.threads[child].spawned) = (Some(VecDeque::new()), true);
                            self.deliver(
                                thread,
                                "core".to_owned(),
                                What::Payload("thread-spawned".to_owned()),
                                debt(0),
                            );
                        }
                        None => (0..2).for_each(|copy| self.fault_own(thread, "limit", debt(copy))),
                    }
                }
                Say::On { child, target, n, .. } => {
                    if !self.threads[child].open {
                        self.fault_own(thread, "route", debt(0));
                    } else {
                        let payload = What::Payload(format!("{} {n}", self.plan.local(target)));
                        let mail = Mail { from: format!("l{me}"), what: payload, answers: Debt::None };
                        if self.threads[thread].depth >= self.plan.depth
                            || self.reserved(thread) >= self.plan.mailbox
                            || self.reserved(child) >= self.plan.mailbox
                        {
                            self.fault_own(thread, "limit", debt(0));
                        } else {
                            valid = true;
                            let backlog = self.threads[child].backlog.as_mut().expect("it is spawned");
                            backlog.push_back((mail, debt(0)));
                            self.next_call(child);
                        }
                    }
                }
                Say::Close { child } => {
                    valid = true;
                    self.close_spawned(thread, child);
                    self.count_off(thread, debt(0));
                }
            }
            index += width;
        }
        valid
    }

    /// Tells whether an emission asks for more than a thread and its conversation may hold at once.
    fn is_past_bounds(&self, thread: usize, say: &Say, (width, refused): (usize, bool)) -> bool {
        let threads = match say {
            Say::Close { .. } if !refused => return false,
            Say::Call { .. } if !refused => width,
            Say::Spawn { .. } if !refused => 1,
            _ => 0,
        };
        self.reserved(thread) + width.max(1) > self.plan.mailbox + self.plan.fanout
            || threads > 0 && self.live(thread) + threads > self.plan.conversation
    }

    /// The open threads of the conversation of a thread.
    fn live(&self, thread: usize) -> usize {
        let root = self.root_of(thread);
        (0..self.threads.len()).filter(|&at| self.threads[at].open && self.root_of(at) == root).count()
    }

    /// The reason to refuse an emission before it takes effect.
    fn refusal(&self, me: usize, say: &Say) -> Option<&'static str> {
        let (may, ok) = match *say {
            Say::Reply { ok, .. } | Say::Continue { ok, .. } => (true, ok),
            Say::Call { target, ok, .. } => {
                (self.plan.may_call(me, target) && !self.plan.targets(target).is_empty(), ok)
            }
            Say::Spawn { target, ok, .. } => {
                let targets = self.plan.targets(target).len();
                // Where several would get it, it is read before that is found.
                let code = if ok { "route" } else { "payload" };
                if self.plan.may_call(me, target) && targets > 1 {
                    return Some(code);
                }
                (self.plan.may_call(me, target) && targets == 1, ok)
            }
            Say::On { child, target, ok, .. } => {
                let accepts = self.threads[child].listener.is_some_and(|it| self.plan.targets(target).contains(&it));
                (self.threads[child].open && accepts && self.plan.may_call(me, target), ok)
            }
            Say::Close { child } => (self.threads[child].open, true),
        };
        if may { (!ok).then_some("payload") } else { Some("route") }
    }

    /// A call on a spawned thread that owes nothing starts.
    fn next_call(&mut self, child: usize) {
        let state = &mut self.threads[child];
        if let (true, Debt::None, Some(backlog)) = (state.open, state.debt, &mut state.backlog)
            && let Some((mail, debt)) = backlog.pop_front()
        {
            state.debt = debt;
            state.mailbox.push_back(mail);
        }
    }

    fn close_spawned(&mut self, owner: usize, child: usize) {
        if !self.threads[child].open {
            return;
        }
        let backlog = self.threads[child].backlog.take().expect("it is spawned");
        let debts: Vec<_> =
            [self.threads[child].debt].into_iter().chain(backlog.into_iter().map(|call| call.1)).collect();
        self.close(child);
        for debt in debts {
            self.count_off(owner, debt);
        }
    }

    /// Ends the call of a spawned thread: its work goes, the thread stays.
    fn clear(&mut self, child: usize) {
        let backlog = self.threads[child].backlog.take();
        self.close(child);
        let state = &mut self.threads[child];
        (state.open, state.backlog, state.invocation, state.strikes, state.drained) = (true, backlog, false, 0, false);
        self.cleared.extend(state.mailbox.drain(..).map(|mail| (child, mail.what)));
        state.continues.clear();
    }

    fn width(&self, me: usize, say: &Say) -> usize {
        match *say {
            Say::Reply { .. } | Say::Continue { .. } => 0,
            Say::Call { target, .. } if self.refusal(me, say).is_none() => self.plan.targets(target).len(),
            Say::Call { .. } | Say::On { .. } | Say::Close { .. } => 1,
            Say::Spawn { .. } => 2,
        }
    }

    /// A handler awaits calls; it parks.
    pub(crate) fn awaits(&mut self, name: harness::Invocation, id: u32, says: &[Say], join: Join) {
        self.park(name, true);
        let at = self.invocation_index(name);
        let Some(thread) = self.invocations[at].thread else { return };
        let me = self.invocations[at].listener;
        let total: usize = says.iter().map(|say| self.width(me, say)).sum();
        let refused = if self.plan.listeners[me].blocking {
            Some("!failed")
        } else {
            (total > self.plan.fanout).then_some("!limit")
        };
        if let Some(code) = refused {
            return self.invocations[at].ready.push_back((id, code.to_owned()));
        }
        let awaited = Awaited { invocation: name, id, join, outcomes: vec![None; total] };
        let group = self.group(thread, total, Some(awaited));
        self.perform(thread, says, Some(group));
        self.decide(group);
    }

    /// Parks a handler; `asked` if it has just called.
    pub(crate) fn park(&mut self, name: harness::Invocation, asked: bool) {
        let waits = asked || !self.groups_of(name).is_empty();
        let at = self.invocation_index(name);
        let invocation = &mut self.invocations[at];
        if invocation.thread.is_some() && !invocation.parked && (waits || !invocation.ready.is_empty()) {
            (invocation.parked, invocation.slotless) = (true, false);
            invocation.left = invocation.left.saturating_sub(self.now.since(invocation.since));
        }
    }

    /// A handler gives up a group of calls.
    pub(crate) fn drop_call(&mut self, name: harness::Invocation, id: u32) {
        let at = self.invocation_index(name);
        if self.invocations[at].thread.is_none() {
            return;
        }
        self.invocations[at].ready.retain(|(ready, _)| *ready != id);
        let of_id = |group: &usize| self.groups[*group].awaited.as_ref().is_some_and(|awaited| awaited.id == id);
        if let Some(group) = self.groups_of(name).into_iter().find(of_id) {
            self.groups[group].over = true;
            self.cancel_group(group);
        }
        let waits = !self.groups_of(name).is_empty();
        self.order += 1;
        let invocation = &mut self.invocations[at];
        if invocation.parked && !waits && invocation.ready.is_empty() {
            (invocation.parked, invocation.slotless, invocation.since, invocation.order) =
                (false, true, self.now, self.order);
        }
    }

    /// The open groups that a handler awaits.
    pub(crate) fn groups_of(&self, name: harness::Invocation) -> Vec<usize> {
        let awaits = |group: &Group| group.awaited.as_ref().is_some_and(|awaited| awaited.invocation == name);
        (0..self.groups.len()).filter(|&at| !self.groups[at].over && awaits(&self.groups[at])).collect()
    }

    pub(crate) fn invocation_index(&self, name: harness::Invocation) -> usize {
        self.invocations
            .iter()
            .position(|invocation| invocation.name == name)
            .unwrap_or_else(|| panic!("the model has no {name:?}"))
    }

    #[expect(clippy::too_many_arguments, reason = "each says another thing of one call")]
    fn place(
        &mut self,
        parent: usize,
        listener: usize,
        payload: String,
        from: &str,
        debt: Debt,
        deadline: Option<Time>,
        label: Option<i64>,
    ) -> Option<usize> {
        if self.threads[parent].depth >= self.plan.depth
            || self.reserved(parent) >= self.plan.mailbox
            || self.live(parent) >= self.plan.conversation
        {
            return None;
        }
        let opened = self.open(Some(parent), Some(listener), payload, from);
        self.order += 1;
        let order = self.order;
        let thread = &mut self.threads[opened];
        (thread.debt, thread.label) = (debt, label);
        if let Some(deadline) = deadline.filter(|&deadline| deadline < thread.deadline) {
            (thread.deadline, thread.own_deadline) = (deadline, Some(order));
        }
        Some(opened)
    }

    fn open(&mut self, parent: Option<usize>, listener: Option<usize>, payload: String, from: &str) -> usize {
        let (mut ordinal, mut depth, mut deadline) = (1, 0, Time::MAX);
        if let Some(parent) = parent {
            let siblings =
                self.threads.iter().filter(|other| other.parent == Some(parent) && other.listener == listener);
            ordinal += siblings.count();
            (depth, deadline) = (self.threads[parent].depth + 1, self.threads[parent].deadline);
        }
        let mail = Mail { from: from.to_owned(), what: What::Payload(payload.clone()), answers: Debt::None };
        self.threads.push(Thread {
            listener,
            parent,
            open: true,
            ordinal,
            depth,
            mailbox: listener.map(|_| mail).into_iter().collect(),
            invocation: false,
            debt: Debt::None,
            backlog: None,
            spawned: false,
            continues: Vec::new(),
            drained: false,
            strikes: 0,
            deadline,
            own_deadline: None,
            label: None,
            opened_with: payload,
            id: None,
            ready_since: None,
            left: false,
            nobodys: false,
            idle_since: None,
        });
        self.threads.len() - 1
    }

    fn group(&mut self, owner: usize, total: usize, awaited: Option<Awaited>) -> usize {
        self.groups.push(Group { owner, total, delivered: 0, off: 0, awaited, over: false });
        self.groups.len() - 1
    }

    pub(crate) fn root_of(&self, thread: usize) -> usize {
        self.threads[thread].parent.map_or(thread, |parent| self.root_of(parent))
    }

    fn open_children(&self, thread: usize) -> Vec<usize> {
        let is_child = |&at: &usize| self.threads[at].open && self.threads[at].parent == Some(thread);
        (0..self.threads.len()).filter(is_child).collect()
    }

    fn reserved(&self, thread: usize) -> usize {
        let state = &self.threads[thread];
        let backlog = state.backlog.as_ref().map_or(0, VecDeque::len);
        self.owed(thread) + state.mailbox.len() + state.continues.len() + backlog
    }

    /// Answers that the children of a thread owe it.
    fn owed(&self, thread: usize) -> usize {
        let of_child = |child: usize| {
            let state = &self.threads[child];
            usize::from(state.debt != Debt::None) + state.backlog.as_ref().map_or(0, VecDeque::len)
        };
        self.open_children(thread).into_iter().map(of_child).sum()
    }

    fn say(&mut self, root: Option<usize>, from: &str, what: &str, label: Option<i64>) {
        let root = root.map_or("none".to_owned(), |root| root.to_string());
        let label = label.map_or(String::new(), |label| format!(" [m{label}]"));
        self.said.push(format!("{root}/{from}: {what}{label}"));
    }

    /// A fault for an emission of a thread.
    fn fault_own(&mut self, thread: usize, code: &'static str, answers: Debt) {
        self.deliver(thread, "system".to_owned(), What::Fault(code), answers);
    }

    fn deliver(&mut self, thread: usize, from: String, what: What, answers: Debt) {
        if let Debt::Group { group, index } = answers
            && self.groups[group].awaited.is_some()
        {
            return self.settle_call(group, index, what);
        }
        let me = self.threads[thread].listener.expect("roots get no mail");
        let what = match what {
            What::Payload(text) if !self.takes(me, &text) => What::Fatal("failed"),
            what => what,
        };
        self.threads[thread].mailbox.push_back(Mail { from, what, answers });
    }

    fn takes(&self, me: usize, answer: &str) -> bool {
        if answer == "thread-spawned" {
            return true;
        }
        let from: usize = answer[1..answer.find(' ').expect("a number follows")].parse().expect("a<i>");
        self.plan.listeners[me].returns & 1 << from != 0
    }

    fn settle_call(&mut self, group: usize, index: usize, what: What) {
        if self.groups[group].over {
            return;
        }
        let outcome = match what {
            What::Payload(text) => Ok(text),
            What::Fault(code) | What::Fatal(code) => Err(code),
        };
        self.groups[group].awaited.as_mut().expect("awaited").outcomes[index] = Some(outcome);
        self.decide(group);
    }

    fn decide(&mut self, group: usize) {
        let awaited = self.groups[group].awaited.as_ref().expect("awaited");
        let Some(result) = result_of(awaited.join, &awaited.outcomes).filter(|_| !self.groups[group].over) else {
            return;
        };
        let (name, id) = (awaited.invocation, awaited.id);
        self.groups[group].over = true;
        self.cancel_group(group);
        let at = self.invocation_index(name);
        self.invocations[at].ready.push_back((id, result));
    }

    fn cancel_group(&mut self, group: usize) {
        for child in self.open_children(self.groups[group].owner) {
            let belongs = |debt: Debt| matches!(debt, Debt::Group { group: other, .. } if other == group);
            if let Some(backlog) = &mut self.threads[child].backlog {
                backlog.retain(|(_, debt)| !belongs(*debt));
            }
            if belongs(self.threads[child].debt) {
                self.threads[child].debt = Debt::None;
                self.end_call(child);
            }
        }
    }

    /// A thread gives its only answer.
    fn answer(&mut self, thread: usize, what: What) {
        let state = &mut self.threads[thread];
        let debt = std::mem::replace(&mut state.debt, Debt::None);
        let (parent, label) = (state.parent.expect("roots answer nobody"), state.label);
        let from = format!("l{}", state.listener.expect("roots answer nobody"));
        if self.threads[parent].listener.is_some() {
            self.deliver(parent, from, what, debt);
        } else if !self.threads[parent].nobodys {
            let what = match what {
                What::Payload(text) => text,
                What::Fault(code) | What::Fatal(code) => format!("!{code}"),
            };
            self.say(Some(parent), &from, &what, label);
        }
        self.end_call(thread);
        self.settle(parent);
    }

    /// A thread owes nothing any more.
    fn end_call(&mut self, thread: usize) {
        if self.threads[thread].backlog.is_some() {
            self.clear(thread);
            self.next_call(thread);
        } else {
            self.close(thread);
        }
    }

    pub(crate) fn fail(&mut self, thread: usize, code: &'static str) {
        self.answer(thread, What::Fault(code));
    }

    fn strike(&mut self, thread: usize) {
        self.threads[thread].strikes += 1;
        if self.threads[thread].strikes >= STRIKES {
            self.fail(thread, "failed");
        }
    }

    pub(crate) fn close(&mut self, thread: usize) {
        for child in self.open_children(thread) {
            self.close(child);
        }
        self.threads[thread].open = false;
        if self.threads[thread].listener.is_none() && !self.threads[thread].nobodys {
            self.closed.push(thread);
        }
        for group in self.groups.iter_mut().filter(|group| group.owner == thread) {
            group.over = true;
        }
        if let Some(invocation) = self.invocations.iter_mut().find(|invocation| invocation.thread == Some(thread)) {
            invocation.thread = None;
            invocation.ready.clear();
        }
    }

    /// A thread that has nothing more to do is silent.
    pub(crate) fn settle(&mut self, thread: usize) {
        let state = &self.threads[thread];
        let busy = state.invocation || !state.mailbox.is_empty() || !state.continues.is_empty();
        let rests = state.backlog.is_some() && state.debt == Debt::None;
        if !state.open || busy || rests || self.owed(thread) > 0 {
            return;
        }
        let Some(me) = state.listener else {
            // The children of a root without an owner owe nothing, so the root isn't busy with them.
            if state.nobodys && !self.open_children(thread).is_empty() {
                return;
            }
            if state.left || state.nobodys {
                return self.close(thread);
            }
            self.order += 1;
            let since = (self.now, self.order);
            self.threads[thread].idle_since.get_or_insert(since);
            return;
        };
        let parent = state.parent.expect("not a root");
        if self.threads[parent].nobodys {
            self.close(thread);
            return self.settle(parent);
        }
        if !self.plan.listeners[me].idle {
            return self.fail(thread, if state.drained { "cancelled" } else { "silent" });
        }
        let debt = std::mem::replace(&mut self.threads[thread].debt, Debt::None);
        self.count_off(parent, debt);
        self.end_call(thread);
        self.settle(parent);
    }

    fn count_off(&mut self, owner: usize, debt: Debt) {
        let ended = match debt {
            Debt::None => false,
            Debt::Single => true,
            Debt::Group { group, index } if self.groups[group].awaited.is_some() => {
                return self.settle_call(group, index, What::Fault("silent"));
            }
            Debt::Group { group, .. } => {
                let group = &mut self.groups[group];
                group.off += 1;
                group.off + group.delivered == group.total
            }
        };
        let listens = self.threads[owner].listener.is_some_and(|me| self.plan.listeners[me].takes_ends);
        if ended && listens {
            let (from, what) = ("core".to_owned(), What::Payload("fan-out-ended".to_owned()));
            self.threads[owner].mailbox.push_back(Mail { from, what, answers: Debt::None });
        }
    }

    /// The place of a message in its fan-out, when its handler starts.
    pub(crate) fn position(&mut self, answers: Debt) -> String {
        let Debt::Group { group, index } = answers else { return String::new() };
        let group = &mut self.groups[group];
        group.delivered += 1;
        format!(" ({index}/{}, {} left)", group.total, group.total - group.delivered - group.off)
    }

    /// Tells whether the next message of a thread is for a handler.
    pub(crate) fn is_startable(&self, thread: usize) -> bool {
        let state = &self.threads[thread];
        let (Some(me), Some(mail)) = (state.listener, state.mailbox.front()) else { return false };
        state.open && !state.invocation && self.for_handler(me, &mail.what)
    }

    fn for_handler(&self, me: usize, what: &What) -> bool {
        match what {
            What::Payload(_) => true,
            What::Fault(_) => self.plan.listeners[me].takes_faults,
            What::Fatal(_) => false,
        }
    }

    /// Messages that end their threads when their turn comes: it has come. The turns go round
    /// from the oldest thread, or to the newest first.
    pub(crate) fn drain_faults(&mut self) {
        let mut from = 0;
        loop {
            let mut ending = (0..self.threads.len()).filter(|&thread| self.is_ending(thread));
            let next = if self.plan.depth_first {
                ending.next_back()
            } else {
                ending.find(|&thread| thread >= from).or_else(|| (0..from).find(|&thread| self.is_ending(thread)))
            };
            let Some(thread) = next else { return };
            from = thread + 1;
            let ended_by = self.threads[thread].mailbox.pop_front().expect("it ends by a message");
            let (What::Fault(code) | What::Fatal(code)) = ended_by.what else { panic!("{ended_by:?} ends no thread") };
            self.fail(thread, code);
        }
    }

    fn is_ending(&self, thread: usize) -> bool {
        let state = &self.threads[thread];
        let (Some(me), Some(mail)) = (state.listener, state.mailbox.front()) else { return false };
        state.open && !state.invocation && !self.for_handler(me, &mail.what)
    }

    /// A delayed continue comes to the tail of its thread's mailbox.
    pub(crate) fn continue_due(&mut self, thread: usize, n: i64) {
        let state = &mut self.threads[thread];
        state.continues.retain(|&(_, _, other)| other != n);
        let me = state.listener.expect("roots don't continue");
        let (from, what) = (format!("l{me}"), What::Payload(format!("q{me} {n}")));
        state.mailbox.push_back(Mail { from, what, answers: Debt::None });
    }

    pub(crate) fn leave(&mut self, root: usize) {
        self.threads[root].left = true;
        self.settle(root);
    }

    /// Cancels pending continues, and puts off none from now on.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
        for thread in 0..self.threads.len() {
            if self.threads[thread].open && !std::mem::take(&mut self.threads[thread].continues).is_empty() {
                self.threads[thread].drained = true;
                self.settle(thread);
            }
        }
    }
}

/// The result of a group of awaited calls as text, once it is fixed.
fn result_of(join: Join, outcomes: &[Option<Result<String, &'static str>>]) -> Option<String> {
    let open = outcomes.iter().filter(|outcome| outcome.is_none()).count();
    let replies = outcomes.iter().flatten().filter(|outcome| outcome.is_ok()).count();
    let text = |faults: bool| {
        let one = |(index, outcome): (usize, &Option<Result<String, &'static str>>)| match outcome {
            Some(Ok(text)) => Some(format!("{index} {text}")),
            Some(Err(code)) if faults => Some(format!("{index} !{code}")),
            Some(Err(_)) | None => None,
        };
        outcomes.iter().enumerate().filter_map(one).collect::<Vec<_>>().join(", ")
    };
    let needed = match join {
        Join::Settled if open == 0 => return Some(text(true)),
        Join::Settled => return None,
        Join::All => outcomes.len(),
        Join::First => outcomes.len().min(1),
        Join::Quorum(n) => n as usize,
    };
    if replies >= needed {
        return Some(text(false));
    }
    if replies + open >= needed {
        return None;
    }
    let fault = outcomes.iter().flatten().find_map(|outcome| outcome.as_ref().err().copied());
    Some(format!("!{}", fault.unwrap_or("failed")))
}
