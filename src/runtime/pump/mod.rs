//! The pump of a shard: between its core and its hosts.

pub(super) mod spec;

use std::collections::HashMap;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

#[cfg(feature = "gateway")]
use systole_core::core::DraftEnd;
use systole_core::core::{Core, CoreId, Event, EventKind, Input, ListenerId, OperationError, Output, Start};
use systole_core::journal::{Recovered, Step};
use systole_core::vocab::{Partitions, ThreadPath, Time};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep};

use crate::runtime::shard::command::{Command, ShardVersion};
use crate::runtime::shard::context::ShardContext;
use crate::runtime::shard::cores::Cores;
use crate::runtime::shard::egress::EgressRouter;
use crate::runtime::shard::events::EventWriter;
use crate::runtime::shard::handlers::{Place, dropping};
use crate::runtime::shard::host::{Host, HostFactory};
use crate::runtime::shard::shared::Shared;
use crate::runtime::shard::spin::{SPIN, Spin, look};
use crate::runtime::write::handle::JournalKeeper;
use systole_store::clock::instant;

/// The most steps of the core before other work on the thread.
const BATCH: usize = 64;
/// Bytes of a step after which other work on the thread comes, too.
const LONG: usize = 32 << 10;
/// The longest sleep; a timer that is due later is checked again.
const NAP: Duration = Duration::from_secs(3600);

/// Makes a core at an address that serves these partitions, with their records where the organism is durable.
pub(crate) type MakeCore = Box<dyn Fn(CoreId, Partitions, Option<Box<Recovered>>) -> Core>;

/// Connections of a shard.
pub(crate) struct ShardChannels {
    pub(crate) router: EgressRouter,
    pub(crate) events: Option<EventWriter>,
    pub(crate) commands: UnboundedReceiver<(CoreId, Command)>,
    /// The journal, if there is one.
    pub(crate) journal_handle: Option<Arc<JournalKeeper>>,
}

/// A shard: its cores, the hosts of the listeners that live here, and the pump between them.
pub(crate) struct Shard {
    shard_context: Rc<ShardContext>,
    shared: Arc<Shared>,
    journal_handle: Option<Arc<JournalKeeper>>,
    cores: Cores,
    /// Makes a core that serves these partitions.
    make: MakeCore,
    hosts: Vec<Option<Rc<dyn Host>>>,
    router: EgressRouter,
    events: Option<EventWriter>,
    commands: UnboundedReceiver<(CoreId, Command)>,
    /// Waiters for operations, by ticket.
    operations: HashMap<u64, oneshot::Sender<Result<(), OperationError>>>,
    /// The last ticket that was given.
    ticket: u64,
    timer: Pin<Box<Sleep>>,
    armed: Option<Time>,
    /// True if the organism counts the shard as busy.
    active: bool,
    quit: bool,
    /// The date of the start, as the cores know it.
    started: Time,
    spin: Spin,
}

/// The longest time that a shard waits.
#[derive(Debug, Clone, Copy)]
enum Patience {
    /// Waits for one turn of the other tasks of its thread.
    OneTurn,
    Endless,
}

/// The end of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    /// An input from a task of the thread.
    Here,
    /// A command or the timer.
    Elsewhere,
    Nothing,
}

impl Shard {
    /// Makes the core and the hosts, on the thread that they stay on.
    pub(crate) fn new(
        shard_context: Rc<ShardContext>,
        shared: Arc<Shared>,
        make: MakeCore,
        (partitions, recovered): (Partitions, Option<Recovered>),
        factories: &[HostFactory],
        channels: ShardChannels,
    ) -> Self {
        let ShardChannels { router, events, commands, journal_handle } = channels;
        let core = make(shard_context.shard, partitions, recovered.map(Box::new));
        let cores = Cores::new(shard_context.shard, core);
        let hosts =
            (0..).map(ListenerId).zip(factories).map(|(id, factory)| host(&shard_context, id, factory)).collect();
        let timer = Box::pin(tokio::time::sleep(NAP));
        let started = shard_context.clock.start();
        Self {
            shard_context,
            shared,
            journal_handle,
            cores,
            make,
            hosts,
            router,
            events,
            commands,
            operations: HashMap::new(),
            ticket: 0,
            timer,
            armed: None,
            active: false,
            quit: false,
            started,
            spin: Spin::new(),
        }
    }

    /// Pumps until the command to quit.
    ///
    /// To be spawned as a task of its own, without a cooperative budget: it yields by itself.
    pub(crate) async fn pump(mut self) {
        while !self.quit {
            if self.work() {
                tokio::task::yield_now().await;
            } else if !self.quit {
                self.rest();
                self.pause().await;
            }
        }
        while self.work() {}
        self.close();
    }

    /// Does one batch of work, and flushes its steps to the journal; returns `false` when no work is left.
    fn work(&mut self) -> bool {
        let more = self.turn();
        // After each turn, since the other cores may never be without work.
        for (core, (claim, tell)) in self.cores.part() {
            let Some(journal_handle) = &self.journal_handle else { continue };
            let released = move || {
                let partitions = claim.partitions();
                drop(claim);
                // The caller may have dropped its future.
                let _ = tell.send(partitions);
            };
            journal_handle.release(core, Box::new(released));
        }
        self.journal_handle.iter().for_each(|journal_handle| journal_handle.flush());
        more
    }

    fn turn(&mut self) -> bool {
        let mut now = self.now();
        self.shard_context.count_activity();
        for _ in 0..BATCH {
            // Before each step of the core, since a step with a long message takes as long as many others.
            while let Ok((to, command)) = self.commands.try_recv() {
                now = self.now();
                self.obey(to, command, now);
            }
            while let Some((to, input)) = self.shard_context.next_input() {
                self.cores.handle(to, input, now);
            }
            match self.cores.poll(now) {
                // The journal writes such a step while the shard goes on.
                Some((core, Output::Append { number, step })) if step.bytes() > LONG => {
                    self.append(core, number, step);
                    return true;
                }
                Some((core, output)) => self.execute(core, output),
                None if self.shard_context.has_input() => {}
                None => return false,
            }
        }
        true
    }

    /// Returns the time. If the clock was set, the cores learn that before anything that has the new time.
    fn now(&mut self) -> Time {
        let clock = &self.shard_context.clock;
        loop {
            let (start, now) = (clock.start(), clock.now());
            if clock.start() != start {
                continue;
            }
            let before = std::mem::replace(&mut self.started, start);
            if before != start {
                self.cores.set_clock(before, start, now);
            }
            return now;
        }
    }

    /// Reports that the shard is idle, if its cores are, too.
    fn rest(&mut self) {
        if self.cores.are_idle() && !self.shard_context.awaits_first_steps() {
            if std::mem::take(&mut self.active) {
                self.shard_context.links.busy().end();
            }
        } else {
            self.wake_up();
        }
    }

    fn wake_up(&mut self) {
        if !std::mem::replace(&mut self.active, true) {
            self.shard_context.links.busy().begin();
        }
    }

    /// Looks for an input or a command for a while, if recent sleeps were short; then waits for them or the timer.
    async fn pause(&mut self) {
        let start = instant();
        let looks = self.spin.is_worth() && !self.shard_context.clock.is_simulated();
        while looks && start.elapsed() < SPIN {
            // The tasks of this thread that are ready come first, and those whose sockets are.
            if self.wait(Patience::OneTurn).await != Woken::Nothing
                || look(|| !self.commands.is_empty() || self.shard_context.has_input())
            {
                return;
            }
        }
        // Tasks of this thread wake it without a call of the system.
        if self.wait(Patience::Endless).await == Woken::Elsewhere || looks {
            self.spin.slept(start.elapsed(), looks);
        }
    }

    /// Waits for an input, a command or the timer.
    async fn wait(&mut self, patience: Patience) -> Woken {
        let due = self.cores.next_wake();
        if due != self.armed
            && let Some(due) = due
        {
            self.timer.as_mut().reset(Instant::now() + self.shard_context.clock.until(due).min(NAP));
        }
        self.armed = due;
        let mut turn = std::pin::pin!(tokio::task::yield_now());
        std::future::poll_fn(|cx| {
            self.shard_context.sleep(cx.waker());
            if self.shard_context.has_input() {
                return Poll::Ready(Woken::Here);
            }
            match self.commands.poll_recv(cx) {
                Poll::Ready(Some((to, command))) => {
                    let now = self.now();
                    self.obey(to, command, now);
                    return Poll::Ready(Woken::Elsewhere);
                }
                // All senders of commands are gone.
                Poll::Ready(None) => {
                    self.quit = true;
                    return Poll::Ready(Woken::Elsewhere);
                }
                Poll::Pending => {}
            }
            if self.armed.is_some() && self.timer.as_mut().poll(cx).is_ready() {
                self.armed = None;
                return Poll::Ready(Woken::Elsewhere);
            }
            match patience {
                Patience::OneTurn => turn.as_mut().poll(cx).map(|()| Woken::Nothing),
                Patience::Endless => Poll::Pending,
            }
        })
        .await
    }

    fn obey(&mut self, to: CoreId, command: Command, now: Time) {
        // Counted as a busy shard before the command is no longer counted.
        self.wake_up();
        match command {
            Command::Core(input) => {
                if let (Input::Stop, Some(journal_handle)) = (&input, &self.journal_handle) {
                    journal_handle.seal();
                    self.shard_context.seal();
                }
                self.close_if_unwritable(&input);
                if let Input::Read { number, .. } = input
                    && !self.cores.keeps(to)
                {
                    self.shared.given.not_written(number);
                }
                if matches!(input, Input::Fenced) {
                    let CoreId(core) = to;
                    tracing::warn!(
                        core,
                        "another process has taken partitions of this core over: it drops their conversations"
                    );
                    let event = Event::of_none(ThreadPath::new(Vec::new()), now, EventKind::Fenced { core });
                    self.events.iter().for_each(|events| events.write(event.clone()));
                }
                self.cores.handle(to, input, now);
            }
            Command::Open { root, sender, input } => {
                self.router.open(root, sender);
                self.cores.handle(to, input, now);
            }
            Command::Leave { client, root, cancel } => {
                let input = if cancel { Input::Cancel { client, root } } else { Input::Left { client, root } };
                self.cores.handle(to, input, now);
            }
            Command::HandOver { root, tell } => {
                self.router.close(root);
                // The conversation may be dropped meanwhile.
                let _ = tell.send(());
            }
            Command::Start { origin, start } => self.start(origin, *start),
            Command::Resume { origin, invocation, call, result } => {
                self.shard_context.resume(origin, invocation, call, result)
            }
            Command::Abort { origin, invocation, moves } => dropping(moves, || self.abort(origin, invocation)),
            Command::Noted { origin, invocation, index } => self.shard_context.noted(origin, invocation, index),
            #[cfg(feature = "gateway")]
            Command::Reserved { origin, invocation, result } => self.shard_context.reserved(origin, invocation, result),
            Command::Finished { invocation, outcome } => {
                self.shard_context.handlers.borrow_mut().remove(to, invocation);
                self.cores.handle(to, Input::Finished { invocation, outcome }, now);
            }
            #[cfg(feature = "gateway")]
            Command::Draft { key, subject, text, anew, tell } => {
                if anew {
                    self.shard_context.give_draft_up(key, DraftEnd::Retried);
                }
                // The caller may have hung up.
                let _ = tell.send(self.shard_context.draft(key, subject, &text));
            }
            Command::Unblocked { listener, key, outcome } => {
                if let Some(host) = self.host(listener) {
                    host.ended(key, outcome);
                }
            }
            Command::Operate { operation, act, tell } if self.cores.has(to) => {
                self.ticket += 1;
                let ticket = self.ticket;
                self.operations.insert(ticket, tell);
                self.cores.handle(to, Input::Operate { ticket, operation, act }, now);
            }
            // The caller may have dropped its future.
            Command::Operate { tell, .. } => drop(tell.send(Err(OperationError::Closed))),
            Command::Look(look) => look(&self.cores),
            Command::Version { version: ShardVersion { version, hosts, ports }, tell } => {
                self.shard_context.add_version(version.clone());
                let first = self.hosts.len() as u32;
                let new = (first..).map(ListenerId).zip(&*hosts);
                self.hosts.extend(new.map(|(id, factory)| host(&self.shard_context, id, factory)));
                self.router.extend(ports);
                self.cores.learn(&version, now);
                // The caller may have dropped its future.
                let _ = tell.send(());
            }
            Command::Forget(version) => {
                self.cores.handle(to, Input::Forget { version }, now);
                for ListenerId(listener) in self.shard_context.forget_version(version) {
                    self.hosts[listener as usize].take().into_iter().for_each(|host| host.close());
                }
            }
            Command::Release { claim, tell } => self.cores.release(to, (claim, tell), now),
            // Else the caller learns from the dropped sender that the organism ends.
            Command::Adopt { claim, mut recovered, boot, tell } if !self.cores.are_ending() => {
                // Those that were read with the records may be older than what the cores here have learned since.
                recovered.paused = self.shared.paused();
                let core = (self.make)(to, claim.partitions(), Some(recovered));
                self.cores.add(to, core, now);
                boot.into_iter().for_each(|root| self.cores.handle(to, Input::Boot { root }, now));
                drop(claim);
                // The caller may have dropped its future.
                let _ = tell.send(());
            }
            Command::Adopt { .. } => {}
            Command::Beside => self.journal_handle.iter().for_each(|journal_handle| journal_handle.write_beside()),
            Command::Quit => self.quit = true,
        }
        self.shard_context.links.busy().end();
    }

    fn execute(&mut self, core: CoreId, output: Output) {
        // A process that was stopped goes on here, maybe long after its lease.
        if matches!(output, Output::Start(_) | Output::Resume { .. }) && !self.shared.check_tenure() {
            return;
        }
        let context = &self.shard_context;
        match output {
            Output::Start(start) => match home(context, start.listener) {
                home if home == context.shard => self.start(core, start),
                away => {
                    context.enter(core, start.invocation, start.listener, Place::Away(away));
                    context.links.send(away, Command::Start { origin: core, start: Box::new(start) });
                }
            },
            Output::Resume { invocation, call, result } => match context.away(core, invocation) {
                Some(away) => {
                    context.links.send(away, Command::Resume { origin: core, invocation, call, result });
                }
                None => context.resume(core, invocation, call, result),
            },
            Output::Abort { invocation, moves } => match context.away(core, invocation) {
                Some(away) => {
                    context.links.send(away, Command::Abort { origin: core, invocation, moves });
                }
                None => dropping(moves, || self.abort(core, invocation)),
            },
            Output::Egress { egress, place } => self.router.pass(egress, place),
            Output::Closed { root, .. } | Output::Gone { root } => {
                self.router.close(root);
                self.shared.drafts.conversation_over(root);
                #[cfg(feature = "gateway")]
                self.shared.endings.over(root);
            }
            Output::Operated { ticket, result } => {
                // The caller may have dropped its future.
                self.operations.remove(&ticket).into_iter().for_each(|tell| drop(tell.send(result.clone())));
            }
            Output::NotRedriven { letter, error } => tracing::warn!(%letter, %error, "a dead letter can't be redriven"),
            Output::Core { to, message } => {
                context.links.send(to, Command::Core(Input::Core(message)));
            }
            Output::Append { number, step } => self.append(core, number, step),
            Output::Taken { ticket, end } => self.shared.links.pending_acks.resolve(ticket, end),
            Output::Noted { invocation, index } => match context.away(core, invocation) {
                Some(away) => {
                    context.links.send(away, Command::Noted { origin: core, invocation, index });
                }
                None => context.noted(core, invocation, index),
            },
            // Only models reserve.
            #[cfg(not(feature = "gateway"))]
            Output::Reserved { .. } => {}
            #[cfg(feature = "gateway")]
            Output::Reserved { invocation, result } => match context.away(core, invocation) {
                Some(away) => {
                    context.links.send(away, Command::Reserved { origin: core, invocation, result });
                }
                None => context.reserved(core, invocation, result),
            },
            Output::DraftOver { invocation, end } => context.draft_over(core, invocation, end),
            Output::Event(event) => {
                if let Some(events) = &self.events {
                    events.write(event);
                }
            }
        }
    }

    /// Closes the entrances once the journal can't be written, and ends the waits for messages to be taken.
    fn close_if_unwritable(&self, input: &Input) {
        if matches!(input, Input::Unwritable) {
            self.shared.closed.store(true, Ordering::Release);
            self.journal_handle.iter().for_each(|journal_handle| journal_handle.seal());
            self.shard_context.seal();
            self.shared.links.pending_acks.fail_all();
        }
    }

    fn append(&mut self, core: CoreId, number: u64, step: Step) {
        let Some(journal_handle) = &self.journal_handle else { return };
        if let Some(input) = journal_handle.append(core, number, step) {
            self.close_if_unwritable(&input);
            let now = self.now();
            self.cores.handle(core, input, now);
        }
    }

    fn start(&self, origin: CoreId, start: Start) {
        let Start { invocation, listener, mut message } = start;
        if let Some(sampler) = self.shared.sampler {
            let caller = message.traceparent;
            message.traceparent = Some(sampler.run(message.root, caller, message.thread, message.id));
        }
        let key = self.shard_context.enter(origin, invocation, listener, Place::Host);
        match self.host(listener) {
            Some(host) => host.start(key, message),
            None => unreachable!("a handler was sent to a shard that its listener doesn't live in"),
        }
    }

    fn abort(&self, origin: CoreId, invocation: systole_core::core::InvocationId) {
        let key = self.shard_context.key(origin, invocation);
        let found = match self.shard_context.handlers.borrow_mut().get(origin, invocation) {
            None => return,
            Some(handler) => match &handler.place {
                Place::Detached(running) => Ok(running.clone()),
                Place::Host | Place::Away(_) => Err(handler.listener),
            },
        };
        match found {
            Ok(running) => running.cancel(),
            Err(listener) => {
                if let Some(host) = self.host(listener) {
                    host.abort(key);
                }
            }
        }
    }

    fn host(&self, listener: ListenerId) -> Option<Rc<dyn Host>> {
        self.hosts.get(listener.0 as usize)?.clone()
    }

    /// Drops the running handlers, then the listeners, without reports.
    fn close(&mut self) {
        let running = self.shard_context.handlers.borrow_mut().drain();
        for handler in running {
            if let Place::Detached(running) = handler.place {
                running.cancel();
            }
        }
        for host in self.hosts.drain(..).flatten() {
            host.close();
        }
        while self.shard_context.next_input().is_some() {}
        if std::mem::take(&mut self.active) {
            self.shard_context.links.busy().end();
        }
        self.commands.close();
        while self.commands.try_recv().is_ok() {
            self.shard_context.links.busy().end();
        }
    }
}

/// Makes the host of a listener, if it lives in this shard.
fn host(shard_context: &Rc<ShardContext>, listener: ListenerId, factory: &HostFactory) -> Option<Rc<dyn Host>> {
    (home(shard_context, listener) == shard_context.shard).then(|| factory(shard_context.clone(), listener))
}

/// Returns the shard whose instance of a listener serves this one.
fn home(shard_context: &ShardContext, listener: ListenerId) -> CoreId {
    if shard_context.blueprint()[listener].stateless {
        return shard_context.shard;
    }
    let shards = shard_context.links.shards().count();
    CoreId(u16::try_from(listener.0 as usize % shards).expect("less than the number of shards"))
}
