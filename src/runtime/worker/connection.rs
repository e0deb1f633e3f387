//! The connection to a process of a worker: lines that wait, and messages that are in flight.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use systole_core::vocab::MessageId;
use tokio::sync::Notify;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::line::{self, Heard, Said};

/// Bytes that wait for a process to read them; beyond, messages and answers wait themselves.
const ROOM: usize = 256 * 1024;
/// Lines in a row about messages that are not in flight; beyond, the process is ended. A cancelled message may have
/// been answered meanwhile.
const STRAYS: u32 = 1000;

/// State of a process: lines to be written to it, and its messages in flight.
#[derive(Default)]
pub(super) struct Connection {
    /// Lines that wait for the writer.
    lines: RefCell<Vec<u8>>,
    /// Wakes the writer.
    written: Notify,
    /// Wakes senders that wait for room among the lines.
    room: Notify,
    under_way: RefCell<BTreeMap<MessageId, Sender<Said>>>,
    strays: Cell<u32>,
    /// Numbers of the last heartbeat, and of the last one that was answered.
    pings: Cell<(u64, u64)>,
    /// Reason of the process's end.
    end: RefCell<Option<Rc<str>>>,
}

/// A message in flight in a process. Dropping it before the answer cancels it there.
pub(super) struct Ticket {
    id: MessageId,
    connection: Rc<Connection>,
    pub(super) said: Receiver<Said>,
    /// True if the process has received the message.
    pub(super) told: bool,
}

impl Connection {
    /// Number of messages in flight.
    pub(super) fn load(&self) -> usize {
        self.under_way.borrow().len()
    }

    /// Tells whether the process has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.end.borrow().is_some()
    }

    /// Reason of the process's end, if it has ended.
    pub(super) fn why(&self) -> Option<Rc<str>> {
        self.end.borrow().clone()
    }

    /// Registers a message before it is sent, with the calls that it may make at once.
    pub(super) fn open(self: &Rc<Self>, id: MessageId, calls: usize) -> Ticket {
        let (sender, said) = channel(calls.max(1));
        if !self.has_ended() {
            self.under_way.borrow_mut().insert(id, sender);
        }
        Ticket { id, connection: self.clone(), said, told: false }
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
        let (sent, answered) = self.pings.get();
        if sent != answered {
            return false;
        }
        self.pings.set((sent + 1, answered));
        self.push(&line::ping(sent + 1));
        true
    }

    /// Handles a line of the process; returns the mistake of a bad one.
    pub(super) fn hear(&self, line: &[u8]) -> Result<(), String> {
        let (id, said) = match line::read(line)? {
            Heard::Pong(number) => {
                let (sent, _) = self.pings.get();
                if number != sent {
                    return Err(format!("the last heartbeat has the number {sent}"));
                }
                self.pings.set((sent, number));
                return Ok(());
            }
            Heard::About { id, said } => (id, said),
        };
        let Ok(id) = id.parse::<MessageId>() else { return Err(format!("\"id\": '{}' is no id", clipped(&id, 64))) };
        let is_answer = !matches!(said, Said::Call { .. });
        let mut under_way = self.under_way.borrow_mut();
        let Some(sender) = under_way.get(&id) else {
            drop(under_way);
            self.strays.set(self.strays.get() + 1);
            return if self.strays.get() > STRAYS {
                Err(format!("{STRAYS} lines in a row were about messages that are not in flight"))
            } else {
                Ok(())
            };
        };
        self.strays.set(0);
        // A full channel has more calls open than allowed: its handler finds the channel closed.
        let is_full = matches!(sender.try_send(said), Err(TrySendError::Full(_)));
        if is_answer || is_full {
            under_way.remove(&id);
        }
        if is_full {
            self.push(&line::cancel(id));
        }
        Ok(())
    }

    /// Fails all messages in flight, as the process has ended. The first reason stays.
    pub(super) fn end(&self, why: &str) {
        self.end.borrow_mut().get_or_insert_with(|| why.into());
        self.under_way.borrow_mut().clear();
        self.lines.borrow_mut().clear();
        self.room.notify_waiters();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let is_under_way = self.connection.under_way.borrow_mut().remove(&self.id).is_some();
        if is_under_way && self.told {
            self.connection.push(&line::cancel(self.id));
        }
    }
}

/// Cuts a text to at most `most` bytes.
pub(super) fn clipped(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn lines_wait_for_a_process_that_does_not_read() {
        let connection = Connection::default();
        assert_eq!(poll(pin!(connection.send(&[b'x'; ROOM]))), Poll::Ready(true));
        let mut waiting = pin!(connection.send(b"one more"));
        let mut another = pin!(connection.send(b"and another"));
        assert!(poll(waiting.as_mut()).is_pending() && poll(another.as_mut()).is_pending());
        assert_eq!(connection.lines.borrow().len(), ROOM);
        assert!(poll(pin!(connection.take(&mut Vec::new()))).is_ready());
        assert_eq!(poll(waiting), Poll::Ready(true));
        connection.end("it ended");
        assert_eq!(poll(another), Poll::Ready(false));
    }

    #[test]
    fn a_line_that_says_too_little_or_too_much_is_refused() {
        let connection = Connection::default();
        let id = "00000000-0000-0000-0000-000000000001";
        for (line, why) in [
            ("[]".to_owned(), "it is no JSON object"),
            (format!(r#"{{"id":"{id}"}}"#), "exactly one of"),
            (format!(r#"{{"id":"{id}","error":"x","pong":1}}"#), "exactly one of"),
            (format!(r#"{{"id":"{id}","call":"<a/>"}}"#), "needs \"as\""),
            (r#"{"error":"x"}"#.to_owned(), "needs the \"id\""),
            (r#"{"id":"x","error":"x"}"#.to_owned(), "'x' is no id"),
            (r#"{"pong":1}"#.to_owned(), "the last heartbeat has the number 0"),
        ] {
            let found = connection.hear(line.as_bytes()).unwrap_err();
            assert!(found.contains(why), "{line}: {found}");
        }
        for _ in 0..STRAYS {
            connection.hear(format!(r#"{{"id":"{id}","error":"x","more":[]}}"#).as_bytes()).unwrap();
        }
        assert!(connection.hear(format!(r#"{{"id":"{id}","payloads":[]}}"#).as_bytes()).is_err());
    }
}
