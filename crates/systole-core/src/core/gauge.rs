//! The gauge: counts of the messages and bytes that wait in all cores, with their bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::memmem;

use crate::vocab::ns;

/// Counts of the messages and bytes that wait in all cores, on Queue 1 and in mailboxes.
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
    is_in_reserve: bool,
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
        if self.messages() > self.inner.max_messages || self.bytes() > self.inner.max_bytes {
            drop(permit);
            return Err(Overloaded { messages: self.messages(), bytes: self.bytes() });
        }
        Ok(permit)
    }

    /// Takes a place for the message of an entrance: in the reserve for questions to the core where there is no
    /// other and the message may be such a question, because it writes out the core's namespace.
    ///
    /// # Errors
    /// [`Overloaded`] if neither [`admit`](Self::admit) nor [`admit_core`](Self::admit_core) has one.
    pub fn admit_entry(&self, message: &[u8]) -> Result<Permit, Overloaded> {
        self.admit(message.len()).or_else(|full| {
            let permit = self.admit_core(message.len()).map_err(|_| full)?;
            // Any other message would only keep questions out of the reserve.
            memmem::find(message, ns::META.as_bytes()).map(|_| permit).ok_or(full)
        })
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
        let permit = Permit { inner: self.inner.clone(), bytes, is_in_reserve: true };
        let taken = self.inner.reserved.fetch_add(1, Ordering::Relaxed);
        if taken >= Self::CORE_RESERVE || bytes > Self::CORE_RESERVE_BYTES {
            drop(permit);
            return Err(Overloaded { messages: self.messages(), bytes: self.bytes() });
        }
        Ok(permit)
    }

    /// Checks that there is a place for one more message.
    ///
    /// # Errors
    /// [`Overloaded`] if there is no place.
    pub fn room(&self) -> Result<(), Overloaded> {
        let (messages, bytes) = (self.messages(), self.bytes());
        let full = messages >= self.inner.max_messages || bytes >= self.inner.max_bytes;
        if full { Err(Overloaded { messages, bytes }) } else { Ok(()) }
    }

    /// Takes a place regardless of the bounds.
    pub fn count(&self, bytes: usize) -> Permit {
        self.inner.messages.fetch_add(1, Ordering::Relaxed);
        self.inner.bytes.fetch_add(bytes, Ordering::Relaxed);
        Permit { inner: self.inner.clone(), bytes, is_in_reserve: false }
    }

    /// Tells whether twice as much waits as may come in: messages refused then don't even get answers of their own.
    pub(super) fn is_flooded(&self) -> bool {
        let Inner { max_messages, max_bytes, .. } = &*self.inner;
        self.messages() > max_messages.saturating_mul(2) || self.bytes() > max_bytes.saturating_mul(2)
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

    /// Tells whether the place is in the reserve for questions to the core.
    pub(super) fn is_in_reserve(&self) -> bool {
        self.is_in_reserve
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
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
    fn only_what_may_be_a_question_to_the_core_enters_by_the_lane() {
        let gauge = Gauge::new(0, 0);
        let question = format!("<list-capabilities xmlns='{}'/>", ns::META);
        assert!(gauge.admit_entry(question.as_bytes()).is_ok_and(|permit| permit.is_in_reserve()));
        assert!(gauge.admit_entry(b"<other/>").is_err());
        assert_eq!(gauge.inner.reserved.load(Ordering::Relaxed), 0);
        let long = question.clone() + &" ".repeat(Gauge::CORE_RESERVE_BYTES);
        assert!(gauge.admit_entry(long.as_bytes()).is_err());
        assert!(Gauge::new(1, 1000).admit_entry(question.as_bytes()).is_ok_and(|permit| !permit.is_in_reserve()));
    }

    #[test]
    fn the_lane_of_the_core_is_short_and_on_its_own() {
        let gauge = Gauge::new(0, 0);
        assert!(gauge.admit(0).is_err());
        let reserve: Vec<_> =
            std::iter::from_fn(|| gauge.admit_core(Gauge::CORE_RESERVE_BYTES).ok()).take(1000).collect();
        assert_eq!(reserve.len(), Gauge::CORE_RESERVE);
        assert_eq!((gauge.messages(), gauge.bytes()), (0, 0));
        drop(reserve);
        assert!(gauge.admit_core(Gauge::CORE_RESERVE_BYTES + 1).is_err());
        assert!(gauge.admit_core(1).is_ok_and(|permit| permit.is_in_reserve()));
    }
}
