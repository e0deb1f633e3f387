//! The connection to a process of a worker: lines that wait for it, and handlers that wait for its lines.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use systole_core::vocab::{Limits, MessageId};
use tokio::sync::Notify;

use super::exchange::{Exchange, LineEffect, LineKind};
use super::line::{self, Recorded};
use crate::listeners::fleet::line_process::Written;
use crate::listeners::fleet::{Member, ProcessEnd};
use crate::listeners::json::JsonPayloads;
use crate::process::Subject;
use crate::process::streams::keep_end;
use crate::runtime::Thread;

/// Bytes that wait for a process to read them; beyond, messages and answers wait themselves.
const ROOM: usize = 256 * 1024;

/// State of a process: lines to be written to it, and its messages in flight.
pub(super) struct Connection {
    /// Lines that wait for the writer.
    lines: RefCell<Vec<u8>>,
    /// Wakes the writer.
    written: Notify,
    /// Wakes senders that wait for room among the lines.
    room: Notify,
    exchange: RefCell<Exchange<Rc<RefCell<LineQueue>>>>,
    /// The process has answered its first heartbeat.
    is_up: Cell<bool>,
    /// Reason of the process's end.
    end: RefCell<Option<Rc<ProcessEnd>>>,
    /// Wakes those who wait for the process to come up, or to end.
    begun: Notify,
}

/// The lines of a process about a message, for its handler: the exchange bounds them, but for reports. A draft goes into the
/// table of drafts at once, which bounds it.
struct LineQueue {
    subject: Subject,
    /// The thread of the handler, for its draft.
    thread: Thread,
    effects: VecDeque<LineEffect>,
    waker: Option<Waker>,
    /// The end of what the process wrote on standard error while it had no other message.
    said: String,
}

/// A message in flight in a process. Dropping it before the answer cancels it there.
pub(super) struct MessageHandle {
    id: MessageId,
    connection: Rc<Connection>,
    queue: Rc<RefCell<LineQueue>>,
    /// True if the process has received the message.
    pub(super) delivered: bool,
}

impl Connection {
    pub(super) fn new(limits: &Limits, json: Option<Rc<JsonPayloads>>) -> Self {
        Self {
            lines: RefCell::default(),
            written: Notify::new(),
            room: Notify::new(),
            exchange: RefCell::new(Exchange::new(limits, json)),
            is_up: Cell::new(false),
            end: RefCell::default(),
            begun: Notify::new(),
        }
    }

    /// The message in flight, if that is one alone.
    pub(super) fn subject(&self) -> Option<Subject> {
        self.exchange.borrow().only().map(|queue| queue.borrow().subject)
    }

    /// Keeps a line of standard error for the message in flight, if that is one alone.
    pub(super) fn said(&self, line: &str) {
        if let Some(queue) = self.exchange.borrow().only() {
            keep_end(&mut queue.borrow_mut().said, line);
        }
    }

    /// The payloads of the lines as JSON; `None` if they are XML.
    pub(super) fn json(&self) -> Option<Rc<JsonPayloads>> {
        self.exchange.borrow().json().cloned()
    }

    /// Registers a message before it is sent, with the values that it recorded in earlier runs.
    pub(super) fn open(self: &Rc<Self>, subject: Subject, thread: Thread, recorded: &[Recorded]) -> MessageHandle {
        let id = subject.id;
        let queue = LineQueue { subject, thread, effects: VecDeque::new(), waker: None, said: String::new() };
        let queue = Rc::new(RefCell::new(queue));
        if !self.has_ended() {
            self.exchange.borrow_mut().open(id, recorded, Rc::clone(&queue));
        }
        MessageHandle { id, connection: self.clone(), queue, delivered: false }
    }

    /// Queues a line once there is room for it. Returns `false` if the process has ended.
    ///
    /// # Cancel safety
    /// A line is written whole or not at all.
    pub(super) async fn send(&self, line: &[u8]) -> bool {
        loop {
            let room = self.room.notified();
            if self.has_ended() {
                return false;
            }
            if self.lines.borrow().len() < ROOM {
                self.push(line);
                return true;
            }
            room.await;
        }
    }

    /// Sends the line that answers a call or confirms a value. A process that has ended needs none.
    pub(super) async fn answer(&self, id: MessageId, label: &str, line: &[u8]) {
        if self.send(line).await {
            self.exchange.borrow_mut().answered(id, label);
        }
    }

    fn push(&self, line: &[u8]) {
        self.lines.borrow_mut().extend_from_slice(line);
        self.written.notify_one();
    }

    /// Waits for lines and takes them all; swaps them with the empty buffer.
    pub(super) async fn take(&self, lines: &mut Vec<u8>) {
        while self.lines.borrow().is_empty() {
            self.written.notified().await;
        }
        std::mem::swap(lines, &mut *self.lines.borrow_mut());
        self.room.notify_waiters();
    }

    /// Sends a heartbeat; returns `false` if the one before has no answer.
    pub(super) fn ping(&self) -> bool {
        let mut exchange = self.exchange.borrow_mut();
        if exchange.awaits_pong() {
            return false;
        }
        self.push(&line::ping(exchange.ping()));
        true
    }

    /// Handles a line of the process; returns the mistake of a bad one.
    pub(super) fn take_line(&self, line: Written<'_>) -> Result<(), String> {
        let kind = self.exchange.borrow_mut().judge(line)?;
        if matches!(kind, (LineKind::Pong, _)) && !self.is_up.replace(true) {
            self.begun.notify_waiters();
        }
        if let (LineKind::About { id, effect }, Some(queue)) = kind {
            if matches!(effect, LineEffect::Overdrawn(_)) {
                self.push(&line::cancel(id));
            }
            let mut queue = queue.borrow_mut();
            if let LineEffect::Drafted { text, anew } = &effect {
                if *anew {
                    queue.thread.redraft();
                }
                queue.thread.draft(text);
                return Ok(());
            }
            // Of progress that comes faster than it is taken, the last is shown, and use is added up: a process can't fill the
            // inbox.
            match (&effect, queue.effects.back_mut()) {
                (LineEffect::Progressed(_), Some(last @ LineEffect::Progressed(_))) => *last = effect,
                (LineEffect::Used(more), Some(LineEffect::Used(last))) => {
                    last.usage = last.usage.plus(more.usage);
                    last.took = last.took.saturating_add(more.took);
                }
                _ => queue.effects.push_back(effect),
            }
            queue.waker.take().into_iter().for_each(Waker::wake);
        }
        Ok(())
    }
}

impl Member for Connection {
    /// Returns whether the process has come up: it has answered a heartbeat.
    fn is_up(&self) -> bool {
        self.is_up.get()
    }

    fn changes(&self) -> &Notify {
        &self.begun
    }

    /// Number of messages in flight.
    fn load(&self) -> usize {
        self.exchange.borrow().load()
    }

    /// Returns whether the process has ended.
    fn has_ended(&self) -> bool {
        self.end.borrow().is_some()
    }

    /// Ends all messages in flight, as the process has ended.
    fn end(&self, end: ProcessEnd) {
        self.end.borrow_mut().get_or_insert_with(|| end.into());
        self.begun.notify_waiters();
        let queues: Vec<_> = self.exchange.borrow_mut().close_all().collect();
        queues.iter().filter_map(|queue| queue.borrow_mut().waker.take()).for_each(Waker::wake);
        self.lines.borrow_mut().clear();
        self.room.notify_waiters();
    }
}

impl MessageHandle {
    /// The next thing that the process said about the message, or the reason why it will say no more.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<Result<LineEffect, Rc<ProcessEnd>>> {
        let mut queue = self.queue.borrow_mut();
        if let Some(effect) = queue.effects.pop_front() {
            return Poll::Ready(Ok(effect));
        }
        if let Some(end) = &*self.connection.end.borrow() {
            return Poll::Ready(Err(end.clone()));
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl MessageHandle {
    /// The end of what the process wrote on standard error about the message.
    pub(super) fn said(&self) -> String {
        std::mem::take(&mut self.queue.borrow_mut().said)
    }
}

impl Drop for MessageHandle {
    fn drop(&mut self) {
        let is_open = self.connection.exchange.borrow_mut().close(self.id).is_some();
        if is_open && self.delivered {
            self.connection.push(&line::cancel(self.id));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;

    use super::*;

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn lines_wait_for_a_process_that_does_not_read() {
        let connection = Connection::new(&Limits::default(), None);
        assert_eq!(poll(pin!(connection.send(&[b'x'; ROOM]))), Poll::Ready(true));
        let mut waiting = pin!(connection.send(b"one more"));
        let mut another = pin!(connection.send(b"and another"));
        assert!(poll(waiting.as_mut()).is_pending() && poll(another.as_mut()).is_pending());
        assert_eq!(connection.lines.borrow().len(), ROOM);
        assert!(poll(pin!(connection.take(&mut Vec::new()))).is_ready());
        assert_eq!(poll(waiting), Poll::Ready(true));
        connection.end(ProcessEnd { why: "it ended".to_owned(), said: String::new() });
        assert_eq!(poll(another), Poll::Ready(false));
    }
}
