//! The outputs of the core, and the write-ahead: the operations of a step, and the outputs held back until they are
//! durable.
//!
//! A step is one input, one timer, one item of the entrance queue or one turn. Where the organism is durable, each step that
//! changed something goes out as [`Output::Append`], and no output of it or of a later step before the runtime has
//! said [`Input::Appended`](super::Input::Appended): no client and no handler learns what a crash could undo.

use std::collections::VecDeque;

use foldhash::HashMap;

use super::blueprint::Principal;
use super::directory::Directory;
use super::event::{Event, EventKind};
use super::io::{Attachment, AttachmentEnd, CoreId, CoreMessage, Output};
use super::latency::Latency;
use crate::journal::{Number, Op, Step};
use crate::vocab::{ThreadId, ThreadPath, Time, Traceparent};

/// Bytes of a principal's steps on their way into the journal from which on its items wait at the entrance.
///
/// Steps are written in order, so all of them stand before the next one, of whatever principal; at the entrance principals take
/// turns. It is room for two transactions of short steps: one is written while the core makes the next.
const UNWRITTEN: usize = 512 << 10;

/// The outputs of the present step and of the steps before it, and the numbers of records.
#[derive(Debug)]
pub(super) struct Outputs {
    /// Outputs of the present step, or of all steps where nothing is written.
    current: VecDeque<Output>,
    write_ahead: Option<Box<WriteAhead>>,
    /// States whether operators get events.
    events: bool,
    directory: Directory,
    /// The last number that was given, where it is not.
    sequence: Number,
}

/// The write-ahead of a durable core.
#[derive(Debug, Default)]
struct WriteAhead {
    /// Operations of the present step.
    ops: Vec<Op>,
    /// Operations that are written with the next step that writes others.
    riding: Vec<Op>,
    /// Steps that were given out to be written.
    appended: u64,
    /// Outputs of steps that are not durable yet, or come after one that isn't.
    held: VecDeque<Held>,
    /// Bytes of the steps among them that are charged to a principal, by principal.
    unwritten: HashMap<Principal, usize>,
    /// The principal that the present step is charged to.
    charged: Option<Principal>,
    /// Outputs that may go.
    ready: VecDeque<Output>,
    /// Times from the end of a step until it was durable.
    latency: Latency,
    /// The organism ends and writes no more; its next start takes up the rest.
    sealed: bool,
    /// The journal can't be written.
    broken: bool,
}

/// The outputs of a step that is not durable yet, and of later ones that have nothing to write.
#[derive(Debug)]
struct Held {
    number: u64,
    /// The time of the step.
    at: Time,
    charge: Option<(Principal, usize)>,
    outputs: VecDeque<Output>,
}

impl Outputs {
    /// Outputs of a core.
    pub(super) fn new(durable: bool, events: bool, directory: Directory) -> Self {
        Self { current: VecDeque::new(), write_ahead: durable.then(Box::default), events, directory, sequence: 0 }
    }

    /// Adds an output to the step.
    pub(super) fn emit(&mut self, output: Output) {
        self.current.push_back(output);
    }

    /// Adds a message for another core.
    pub(super) fn send(&mut self, to: CoreId, message: CoreMessage) {
        self.emit(Output::Core { to, message });
    }

    /// Adds an event on a thread; none once changes stay in memory, since the next start takes everything up.
    pub(super) fn event(&mut self, event: impl FnOnce() -> Event) {
        if self.events && !self.is_sealed() {
            self.emit(Output::Event(event()));
        }
    }

    /// Adds an event at the root of a conversation, which need not be open; none once the journal can't be written, since the
    /// next start takes the conversation up.
    pub(super) fn root_event(
        &mut self,
        (root, traceparent): (ThreadId, Option<Traceparent>),
        at: Time,
        kind: impl FnOnce() -> EventKind,
    ) {
        if self.events && !self.write_ahead.as_ref().is_some_and(|ahead| ahead.broken) {
            let path = ThreadPath::new(Vec::new());
            self.emit(Output::Event(Event::new((root, root), path, at, kind()).traceparent(traceparent)));
        }
    }

    /// Adds an operation to the step, where changes are written.
    pub(super) fn write(&mut self, op: impl FnOnce() -> Op) {
        if let Some(ahead) = self.write_ahead.as_mut().filter(|ahead| !ahead.sealed) {
            ahead.ops.push(op());
        }
    }

    /// Adds an operation to the next step that writes others: losing it in a crash does no harm.
    pub(super) fn write_later(&mut self, op: Op) {
        if let Some(ahead) = self.write_ahead.as_mut().filter(|ahead| !ahead.sealed) {
            ahead.riding.push(op);
        }
    }

    /// Writes the operations of an attachment, unless it is dropped, and reports its end.
    pub(super) fn take(&mut self, Attachment { ops, ticket, .. }: Attachment, end: AttachmentEnd) {
        if end != AttachmentEnd::Dropped {
            ops.into_iter().for_each(|op| self.write(|| op));
        }
        self.taken(ticket, end);
    }

    /// Reports the end of an attachment; once nothing is written any more, it is dropped.
    pub(super) fn taken(&mut self, ticket: u64, end: AttachmentEnd) {
        let end = if self.is_sealed() { AttachmentEnd::Dropped } else { end };
        self.emit(Output::Taken { ticket, end });
    }

    /// Ends a step: its operations go out to be written, and its outputs wait for that.
    pub(super) fn end_step(&mut self, at: Time) {
        let Some(ahead) = &mut self.write_ahead else { return };
        if ahead.ops.is_empty() || ahead.broken {
            ahead.charged = None;
            match ahead.held.back_mut() {
                Some(last) => last.outputs.append(&mut self.current),
                None => ahead.ready.append(&mut self.current),
            }
            return;
        }
        ahead.appended += 1;
        ahead.ops.append(&mut ahead.riding);
        let (number, step) = (ahead.appended, Step { ops: std::mem::take(&mut ahead.ops), at });
        let charge = ahead.charged.take().map(|principal| (principal, step.bytes()));
        if let Some((principal, bytes)) = charge {
            *ahead.unwritten.entry(principal).or_default() += bytes;
        }
        ahead.ready.push_back(Output::Append { number, step });
        ahead.held.push_back(Held { number, at, charge, outputs: std::mem::take(&mut self.current) });
    }

    /// Releases the outputs of all steps up to one that is durable now.
    pub(super) fn appended(&mut self, number: u64, now: Time) {
        let Some(ahead) = &mut self.write_ahead else { return };
        while ahead.held.front().is_some_and(|held| held.number <= number) {
            let Some(mut held) = ahead.held.pop_front() else { return };
            ahead.latency.record(now.since(held.at));
            if let Some((principal, bytes)) = held.charge
                && let Some(unwritten) = ahead.unwritten.get_mut(&principal)
            {
                *unwritten -= bytes;
            }
            ahead.ready.append(&mut held.outputs);
        }
    }

    /// The times from the end of a step until it was durable.
    pub(super) fn append_latency(&self) -> Latency {
        self.write_ahead.as_ref().map_or_else(Latency::default, |ahead| ahead.latency)
    }

    /// Charges the present step to a principal.
    pub(super) fn charge(&mut self, principal: Principal) {
        self.write_ahead.iter_mut().for_each(|ahead| ahead.charged = Some(principal));
    }

    /// Returns whether the journal has so much of a principal to write that its further items wait.
    pub(super) fn awaits_journal(&self, principal: Principal) -> bool {
        let unwritten = self.write_ahead.as_ref().and_then(|ahead| ahead.unwritten.get(&principal));
        unwritten.is_some_and(|unwritten| *unwritten >= UNWRITTEN)
    }

    /// The next output that may go.
    pub(super) fn next(&mut self) -> Option<Output> {
        match &mut self.write_ahead {
            Some(ahead) => ahead.ready.pop_front(),
            None => self.current.pop_front(),
        }
    }

    /// Returns whether all outputs have gone.
    pub(super) fn is_empty(&self) -> bool {
        self.current.is_empty()
            && self.write_ahead.as_ref().is_none_or(|ahead| ahead.ready.is_empty() && ahead.held.is_empty())
    }

    /// Writes nothing from now on: the next start takes up the contents of the journal.
    pub(super) fn seal(&mut self) {
        if let Some(ahead) = &mut self.write_ahead {
            ahead.ops.append(&mut ahead.riding);
            ahead.sealed = true;
        }
    }

    /// Drops the operations that wait: they can't be written, so they will never be durable. Returns the outputs that
    /// waited for that.
    pub(super) fn give_up(&mut self) -> Vec<Output> {
        let Some(ahead) = &mut self.write_ahead else { return Vec::new() };
        (ahead.sealed, ahead.broken) = (true, true);
        ahead.ops.clear();
        ahead.riding.clear();
        ahead.unwritten.clear();
        ahead.ready.retain(|output| !matches!(output, Output::Append { .. }));
        std::mem::take(&mut ahead.held).into_iter().flat_map(|held| held.outputs).collect()
    }

    /// Returns whether changes are written.
    pub(super) fn writes(&self) -> bool {
        self.write_ahead.as_ref().is_some_and(|ahead| !ahead.sealed)
    }

    /// Returns whether nothing is written any more, because the organism ends or its partitions move.
    pub(super) fn is_sealed(&self) -> bool {
        self.write_ahead.as_ref().is_some_and(|ahead| ahead.sealed)
    }

    /// A number that no record had before.
    pub(super) fn next_number(&mut self) -> Number {
        if self.write_ahead.is_some() {
            return self.directory.next_number();
        }
        self.sequence += 1;
        self.sequence
    }
}
