//! The events of an organism, in a ring: a late or a slow reader continues behind a number, and learns what it missed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use systole_core::core::Event;
use tokio::sync::Notify;

/// Most events that a ring holds.
const EVENTS: usize = 16_384;
/// Most bytes of the texts and lists of the events that a ring holds; one event may have more.
const BYTES: usize = 16 << 20;

/// A subscription to the events of an organism: the operator's view, including thread paths.
#[derive(Debug)]
pub struct Events {
    ring: Arc<EventRing>,
    /// The number of the last event that this reader has had or missed.
    after: u64,
}

/// An event, or a gap.
#[derive(Debug, Clone)]
pub enum Observed {
    /// An event.
    Event(Arc<Event>),
    /// The number of events that the subscriber missed because it was too slow.
    Missed(u64),
}

impl Events {
    /// Waits for the next event; `None` when the organism has ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Observed> {
        let ring = self.ring.clone();
        loop {
            // Registered before the look, so that no event between the two is slept through.
            let mut news = std::pin::pin!(ring.news.notified());
            news.as_mut().enable();
            if let Some(observed) = self.try_next() {
                return Some(observed);
            }
            if ring.writers.load(Ordering::Acquire) == 0 {
                // The last writer may have written since.
                return self.try_next();
            }
            news.await;
        }
    }

    /// Waits until there are events, and takes at most `most` of them into `taken`; `false` when the organism has ended. An
    /// event costs a reader of many less than by [`next`](Self::next).
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    #[cfg(feature = "gateway")]
    pub(crate) async fn take(&mut self, most: usize, taken: &mut Vec<Observed>) -> bool {
        let Some(first) = self.next().await else { return false };
        taken.push(first);
        let held = self.ring.lock();
        let begin = held.last + 1 - held.events.len() as u64;
        // Events that are missed since the first was taken are for the next call to tell.
        if self.after + 1 >= begin {
            let rest = held.events.range((self.after + 1 - begin) as usize..).take(most.saturating_sub(1));
            for event in rest {
                self.after = event.number;
                taken.push(Observed::Event(event.clone()));
            }
        }
        true
    }

    /// Takes the next event, if there is one.
    pub fn try_next(&mut self) -> Option<Observed> {
        let held = self.ring.lock();
        let first = held.last + 1 - held.events.len() as u64;
        if self.after + 1 < first {
            let missed = first - 1 - self.after;
            self.after = first - 1;
            return Some(Observed::Missed(missed));
        }
        let event = held.events.get((self.after + 1 - first) as usize)?.clone();
        self.after = event.number;
        Some(Observed::Event(event))
    }
}

/// The ring.
#[derive(Debug, Default)]
pub(crate) struct EventRing {
    held: Mutex<Held>,
    news: Notify,
    writers: AtomicUsize,
}

#[derive(Debug, Default)]
struct Held {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// The number of the newest event.
    last: u64,
}

impl EventRing {
    /// Returns a reader of the events behind a number, of those from now on without one. A number that no event has had
    /// yet counts as the newest.
    pub(crate) fn read(self: &Arc<Self>, after: Option<u64>) -> Events {
        let last = self.lock().last;
        Events { ring: self.clone(), after: after.map_or(last, |after| after.min(last)) }
    }

    /// Returns a writer. Readers learn of the end when the last writer is dropped.
    pub(crate) fn writer(self: &Arc<Self>) -> EventWriter {
        self.writers.fetch_add(1, Ordering::Relaxed);
        EventWriter(self.clone())
    }

    /// Numbers an event and takes it, in place of the oldest ones if there is no room.
    pub(crate) fn write(&self, event: Event) {
        // Its memory comes and goes outside of the lock, which the pumps of all shards and all readers want.
        let (bytes, mut event) = (event.heap_bytes(), Arc::new(event));
        let mut oldest = None;
        {
            let mut held = self.lock();
            held.last += 1;
            if let Some(event) = Arc::get_mut(&mut event) {
                event.number = held.last;
            }
            held.bytes += bytes;
            held.events.push_back(event);
            while held.events.len() > EVENTS || (held.bytes > BYTES && held.events.len() > 1) {
                oldest = held.events.pop_front();
                held.bytes -= oldest.as_ref().map_or(0, |oldest| oldest.heap_bytes());
            }
        }
        drop(oldest);
        self.news.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A shard's end of the ring.
#[derive(Debug)]
pub(crate) struct EventWriter(Arc<EventRing>);

impl EventWriter {
    /// Takes an event.
    pub(crate) fn write(&self, event: Event) {
        self.0.write(event);
    }
}

impl Drop for EventWriter {
    fn drop(&mut self) {
        if self.0.writers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.news.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use systole_core::core::EventKind;
    use systole_core::vocab::{Name, ThreadId, ThreadPath, Time};
    use uuid::Uuid;

    use super::*;
    use crate::runtime::block_on;

    fn event(text: &str) -> Event {
        let nil = ThreadId::from_uuid(Uuid::nil());
        let by = Name::parse("a").unwrap();
        Event::new((nil, nil), ThreadPath::new(Vec::new()), Time::MAX, EventKind::Progress { by, text: text.into() })
    }

    fn numbers(events: &mut Events) -> Vec<Result<u64, u64>> {
        let next = || events.try_next();
        let told = |observed| match observed {
            Observed::Event(event) => Ok(event.number),
            Observed::Missed(count) => Err(count),
        };
        std::iter::from_fn(next).map(told).collect()
    }

    #[test]
    fn a_reader_continues_behind_a_number() {
        let ring = Arc::new(EventRing::default());
        let writer = ring.writer();
        (0..5).for_each(|_| writer.write(event("x")));
        assert_eq!(numbers(&mut ring.read(Some(3))), [Ok(4), Ok(5)]);
        assert_eq!(numbers(&mut ring.read(None)), []);
        assert_eq!(numbers(&mut ring.read(Some(99))), [], "a number of another run");
        let mut reader = ring.read(None);
        writer.write(event("y"));
        drop(writer);
        assert!(matches!(block_on(reader.next()), Some(Observed::Event(event)) if event.number == 6));
        assert!(block_on(reader.next()).is_none(), "the organism has ended");
    }

    #[cfg(feature = "gateway")]
    #[test]
    fn events_are_taken_many_at_once_and_none_twice() {
        let ring = Arc::new(EventRing::default());
        let (writer, mut reader) = (ring.writer(), ring.read(None));
        (0..EVENTS + 5).for_each(|_| writer.write(event("x")));
        let mut taken = Vec::new();
        assert!(block_on(reader.take(3, &mut taken)));
        assert!(matches!(taken[..], [Observed::Missed(5), Observed::Event(_), Observed::Event(_)]), "{taken:?}");
        drop(writer);
        while block_on(reader.take(1000, &mut taken)) {}
        let numbers: Vec<_> = taken
            .iter()
            .filter_map(|observed| match observed {
                Observed::Event(event) => Some(event.number),
                Observed::Missed(_) => None,
            })
            .collect();
        assert_eq!(numbers, (6..=EVENTS as u64 + 5).collect::<Vec<_>>());
    }

    #[test]
    fn a_slow_reader_learns_how_many_it_missed() {
        let ring = Arc::new(EventRing::default());
        let (writer, mut slow) = (ring.writer(), ring.read(None));
        (0..EVENTS + 7).for_each(|_| writer.write(event("x")));
        let seen = numbers(&mut slow);
        assert_eq!((seen[0], seen[1], seen.len()), (Err(7), Ok(8), EVENTS + 1));
        writer.write(event(&"x".repeat(BYTES)));
        assert_eq!(numbers(&mut slow), [Ok(EVENTS as u64 + 8)], "one event may be larger than the ring");
        writer.write(event("y"));
        assert_eq!(numbers(&mut ring.read(Some(0))), [Err(EVENTS as u64 + 8), Ok(EVENTS as u64 + 9)]);
    }
}
