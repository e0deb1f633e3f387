//! The gauge: counts of the messages and bytes that wait in all cores, with their bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::memmem;

use crate::vocab::ns;

/// Counts of the messages and bytes that wait in all cores, on the entrance queue and in mailboxes.
///
/// Entrances and calls are refused above the bounds; answers are only counted.
#[derive(Debug, Clone)]
pub struct Gauge {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    messages: AtomicUsize,
    bytes: AtomicUsize,
    max_messages: usize,
    max_bytes: usize,
    /// Messages in the reserve for questions to the core.
    reserved: AtomicUsize,
}

/// The place of a message in a [`Gauge`]; its drop gives the place back.
#[derive(Debug)]
pub struct Permit {
    inner: Arc<Inner>,
    bytes: usize,
    /// True for a place in the reserve for questions to the core.
    pub(super) is_in_reserve: bool,
    /// The holding of the client that sent the message, if it has one.
    holding: Option<Arc<Held>>,
}

/// The messages of one of several clients that wait as they came in. The last quarter of a gauge is for clients that hold
/// at most a sixteenth of it, so that one client can't shut the others out.
#[derive(Debug, Clone, Default)]
pub struct ClientUse(Arc<Held>);

#[derive(Debug, Default)]
struct Held {
    messages: AtomicUsize,
    bytes: AtomicUsize,
}

/// The organism is full: the message was not taken and can be sent again later.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the organism is full ({messages} messages, {bytes} bytes wait): try again later")]
#[non_exhaustive]
pub struct Overloaded {
    /// Messages that wait.
    pub messages: usize,
    /// The bytes of these messages.
    pub bytes: usize,
}

crate::vocab::debug_is_display!(Overloaded);

impl Gauge {
    /// Messages that the reserve for questions to the core holds.
    pub const CORE_RESERVE: usize = 64;
    /// The largest message in the reserve, in bytes.
    pub const CORE_RESERVE_BYTES: usize = 64 << 10;
    /// A small message, in bytes: [`Gauge::check_room`] checks for a place for one.
    pub const SMALL: usize = 1 << 10;

    /// A gauge with its bounds.
    pub fn new(max_messages: usize, max_bytes: usize) -> Self {
        let [messages, bytes, reserved] = [0; 3].map(AtomicUsize::new);
        Self { inner: Arc::new(Inner { messages, bytes, max_messages, max_bytes, reserved }) }
    }

    /// Takes a place for a message of `bytes`.
    ///
    /// # Errors
    /// [`Overloaded`] if the messages or the bytes that wait would pass a bound.
    pub fn admit(&self, bytes: usize) -> Result<Permit, Overloaded> {
        let permit = self.count(bytes);
        if self.is_beyond(1, (self.messages(), self.bytes())) {
            drop(permit);
            return Err(Overloaded { messages: self.messages(), bytes: self.bytes() });
        }
        Ok(permit)
    }

    /// Takes a place for the message of an entrance: in the reserve for questions to the core where there is no
    /// other and the message may be such a question, because it writes out the core's namespace. `client` is what the
    /// client has waiting, where there are others.
    ///
    /// # Errors
    /// [`Overloaded`] if neither [`admit`](Self::admit) nor [`admit_core`](Self::admit_core) has one, or the client holds
    /// more than its share of what is left.
    pub fn admit_entry(&self, message: &[u8], client: Option<&ClientUse>) -> Result<Permit, Overloaded> {
        self.admit_of(message.len(), client).or_else(|full| {
            let permit = self.admit_core(message.len()).map_err(|_| full)?;
            // Any other message would only keep questions out of the reserve.
            memmem::find(message, ns::META.as_bytes()).map(|_| permit).ok_or(full)
        })
    }

    fn admit_of(&self, bytes: usize, client: Option<&ClientUse>) -> Result<Permit, Overloaded> {
        let mut permit = self.admit(bytes)?;
        if let Some(ClientUse(held)) = client {
            let (messages, all) = held.add(bytes);
            permit.holding = Some(held.clone());
            if self.is_beyond_share((self.messages(), self.bytes()), (messages, all)) {
                return Err(Overloaded { messages: self.messages(), bytes: self.bytes() });
            }
        }
        Ok(permit)
    }

    /// Returns whether a client that has the messages and bytes `own` waiting holds more than its share while `all` wait.
    fn is_beyond_share(&self, all: (usize, usize), own: (usize, usize)) -> bool {
        let Inner { max_messages, max_bytes, .. } = *self.inner;
        let is_crowded = all.0 > max_messages - max_messages / 4 || all.1 > max_bytes - max_bytes / 4;
        is_crowded && (own.0 > (max_messages / 16).max(1) || own.1 > max_bytes / 16)
    }

    /// Takes a place in the reserve for questions to the core, for a message that [`Gauge::admit`] has refused: such a
    /// question is answered while the organism is overloaded. Any other message that comes this way is refused with
    /// `overload` once it has been read.
    ///
    /// Each core reads at most 16 such messages of one client at once, and 10 more a second; the
    /// others are refused with `overload` too.
    ///
    /// # Errors
    /// [`Overloaded`] if the reserve is full, or the message longer than [`Gauge::CORE_RESERVE_BYTES`].
    pub fn admit_core(&self, bytes: usize) -> Result<Permit, Overloaded> {
        let permit = Permit { inner: self.inner.clone(), bytes, is_in_reserve: true, holding: None };
        let taken = self.inner.reserved.fetch_add(1, Ordering::Relaxed);
        if taken >= Self::CORE_RESERVE || bytes > Self::CORE_RESERVE_BYTES {
            drop(permit);
            return Err(Overloaded { messages: self.messages(), bytes: self.bytes() });
        }
        Ok(permit)
    }

    /// Checks that one of these clients, or any if there is none, would get a place for a small message: of
    /// [`Gauge::SMALL`] bytes, or of a sixteenth of all bytes if that is less.
    ///
    /// # Errors
    /// [`Overloaded`] if there is no place for any of them.
    pub fn check_room(&self, clients: &[ClientUse]) -> Result<(), Overloaded> {
        let (messages, bytes) = (self.messages(), self.bytes());
        let small = Self::SMALL.min(self.inner.max_bytes / 16).max(1);
        let with = |messages: usize, bytes: usize| (messages.saturating_add(1), bytes.saturating_add(small));
        let all = with(messages, bytes);
        let is_shut_out = |ClientUse(held): &ClientUse| {
            let own = (held.messages.load(Ordering::Relaxed), held.bytes.load(Ordering::Relaxed));
            self.is_beyond_share(all, with(own.0, own.1))
        };
        let full = self.is_beyond(1, all) || (!clients.is_empty() && clients.iter().all(is_shut_out));
        if full { Err(Overloaded { messages, bytes }) } else { Ok(()) }
    }

    /// Takes a place regardless of the bounds.
    pub fn count(&self, bytes: usize) -> Permit {
        self.inner.messages.fetch_add(1, Ordering::Relaxed);
        self.inner.bytes.fetch_add(bytes, Ordering::Relaxed);
        Permit { inner: self.inner.clone(), bytes, is_in_reserve: false, holding: None }
    }

    /// Returns whether twice as much waits as may come in: messages refused then don't even get answers of their own.
    pub(super) fn is_flooded(&self) -> bool {
        self.is_beyond(2, (self.messages(), self.bytes()))
    }

    /// Returns whether so many messages and bytes pass so many times a bound.
    fn is_beyond(&self, times: usize, (messages, bytes): (usize, usize)) -> bool {
        let Inner { max_messages, max_bytes, .. } = *self.inner;
        messages > max_messages.saturating_mul(times) || bytes > max_bytes.saturating_mul(times)
    }

    /// Messages that wait.
    pub fn messages(&self) -> usize {
        self.inner.messages.load(Ordering::Relaxed)
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.inner.bytes.load(Ordering::Relaxed)
    }
}

impl Permit {
    /// Bytes that the permit counts.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Held {
    /// Counts a message; the messages and bytes with it.
    fn add(&self, bytes: usize) -> (usize, usize) {
        let messages = self.messages.fetch_add(1, Ordering::Relaxed) + 1;
        (messages, self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(held) = &self.holding {
            held.messages.fetch_sub(1, Ordering::Relaxed);
            held.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        }
        if self.is_in_reserve {
            self.inner.reserved.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        self.inner.messages.fetch_sub(1, Ordering::Relaxed);
        self.inner.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_gauge_refuses_and_recovers() {
        let gauge = Gauge::new(2, 100);
        let first = gauge.admit(60).unwrap();
        assert_eq!(gauge.admit(41).unwrap_err(), Overloaded { messages: 1, bytes: 60 });
        let second = gauge.admit(40).unwrap();
        assert!(gauge.admit(0).is_err());
        let forced = gauge.count(1000);
        drop((first, second, forced));
        assert_eq!((gauge.messages(), gauge.bytes()), (0, 0));
    }

    #[test]
    fn there_is_room_while_a_small_message_is_taken() {
        let gauge = Gauge::new(2, 100 << 10);
        let most = gauge.admit((100 << 10) - Gauge::SMALL).unwrap();
        gauge.check_room(&[]).unwrap();
        let one = gauge.admit(1).unwrap();
        // Both would be taken for messages of another size or number.
        assert!(gauge.check_room(&[]).is_err() && gauge.admit(Gauge::SMALL).is_err());
        drop(most);
        gauge.check_room(&[]).unwrap();
        let other = gauge.admit(1).unwrap();
        assert!(gauge.check_room(&[]).is_err());
        drop((one, other));
        assert_eq!((gauge.messages(), gauge.bytes()), (0, 0));
        // Also where all bytes are few.
        Gauge::new(2, 100).check_room(&[]).unwrap();
    }

    #[test]
    fn the_last_quarter_is_for_clients_that_hold_little() {
        let gauge = Gauge::new(64, 6400);
        let [greedy, other] = [ClientUse::default(), ClientUse::default()];
        let all: Vec<_> = std::iter::from_fn(|| gauge.admit_entry(&[b'x'; 50], Some(&greedy)).ok()).take(100).collect();
        assert_eq!(all.len(), 48);
        let clients = [greedy.clone(), other.clone()];
        gauge.check_room(&clients).unwrap();
        let few: Vec<_> = std::iter::from_fn(|| gauge.admit_entry(&[b'x'; 50], Some(&other)).ok()).take(100).collect();
        assert_eq!(few.len(), 4);
        assert!(gauge.check_room(&clients).is_err(), "both hold more than their share");
        gauge.check_room(&[]).unwrap();
        assert!(gauge.admit_entry(b"<a/>", None).is_ok(), "who is alone may have all");
        drop(all);
        assert!(gauge.admit_entry(b"<a/>", Some(&greedy)).is_ok());
        drop(few);
        assert_eq!((gauge.messages(), gauge.bytes()), (0, 0));
    }

    #[test]
    fn only_what_may_be_a_question_to_the_core_takes_a_place_in_the_reserve() {
        let gauge = Gauge::new(0, 0);
        let question = format!("<list-capabilities xmlns='{}'/>", ns::META);
        assert!(gauge.admit_entry(question.as_bytes(), None).is_ok_and(|permit| permit.is_in_reserve));
        assert!(gauge.admit_entry(b"<other/>", None).is_err());
        assert_eq!(gauge.inner.reserved.load(Ordering::Relaxed), 0);
        let long = question.clone() + &" ".repeat(Gauge::CORE_RESERVE_BYTES);
        assert!(gauge.admit_entry(long.as_bytes(), None).is_err());
        assert!(Gauge::new(1, 1000).admit_entry(question.as_bytes(), None).is_ok_and(|permit| !permit.is_in_reserve));
    }

    #[test]
    fn the_reserve_of_the_core_is_short_and_on_its_own() {
        let gauge = Gauge::new(0, 0);
        assert!(gauge.admit(0).is_err());
        let reserve: Vec<_> =
            std::iter::from_fn(|| gauge.admit_core(Gauge::CORE_RESERVE_BYTES).ok()).take(1000).collect();
        assert_eq!(reserve.len(), Gauge::CORE_RESERVE);
        assert_eq!((gauge.messages(), gauge.bytes()), (0, 0));
        drop(reserve);
        assert!(gauge.admit_core(Gauge::CORE_RESERVE_BYTES + 1).is_err());
        assert!(gauge.admit_core(1).is_ok_and(|permit| permit.is_in_reserve));
    }
}
