//! The books: the messages that came in, and their fates.
//!
//! Each message has an [`Entry`] from the moment at which it comes in. The holder of the message keeps the entry,
//! and closes it with the message: as delivered, faulted, dead or cancelled. So the entries that are open are the
//! messages that wait, after every step.

/// The fate of all messages so far. At any moment injected + emitted + made + redriven + recovered is
/// delivered + faulted + dead + cancelled + [`Core::waiting`](super::Core::waiting).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages of clients.
    pub injected: u64,
    /// Payloads that handlers emitted.
    pub emitted: u64,
    /// Messages of the pump itself: boot, faults, answers of the core, copies of a broadcast, dead letters of payloads
    /// that were refused with a fault.
    pub made: u64,
    /// Dead letters that were redriven.
    pub redriven: u64,
    /// Messages that the journal held at the start.
    pub recovered: u64,
    /// Messages that a handler, the core or a client got.
    pub delivered: u64,
    /// Messages that were refused with a fault, and faults that passed on.
    pub faulted: u64,
    /// Undeliverable messages: the dead letters.
    pub dead: u64,
    /// Messages that were discarded because their thread was over.
    pub cancelled: u64,
}

impl Counts {
    /// The sums of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            injected: self.injected + other.injected,
            emitted: self.emitted + other.emitted,
            made: self.made + other.made,
            redriven: self.redriven + other.redriven,
            recovered: self.recovered + other.recovered,
            delivered: self.delivered + other.delivered,
            faulted: self.faulted + other.faulted,
            dead: self.dead + other.dead,
            cancelled: self.cancelled + other.cancelled,
        }
    }
}

/// The books of a core.
#[derive(Debug, Default)]
pub(super) struct Books {
    counts: Counts,
}

/// A message that came in and has not ended.
#[derive(Debug)]
#[must_use = "a message ends as delivered, faulted, dead or cancelled"]
pub(super) struct Entry(());

/// Several messages that came in together and have not ended.
#[derive(Debug)]
#[must_use = "messages end as delivered, faulted, dead or cancelled"]
pub(super) struct Entries(u64);

impl Books {
    /// A client's message comes in.
    pub(super) fn injected(&mut self) -> Entry {
        self.counts.injected += 1;
        Entry(())
    }

    /// A handler emits messages.
    pub(super) fn emitted(&mut self, messages: usize) -> Entries {
        self.counts.emitted += messages as u64;
        Entries(messages as u64)
    }

    /// The pump makes a message.
    pub(super) fn made(&mut self) -> Entry {
        self.counts.made += 1;
        Entry(())
    }

    /// A dead letter comes in again.
    pub(super) fn redriven(&mut self) -> Entry {
        self.counts.redriven += 1;
        Entry(())
    }

    /// A message comes out of the journal.
    pub(super) fn recovered(&mut self) -> Entry {
        self.counts.recovered += 1;
        Entry(())
    }

    /// A client's message goes to another core, which counts it as injected.
    pub(super) fn forwarded(&mut self, _: Entry) {
        self.counts.injected -= 1;
    }

    /// A handler, the core or a client has the message.
    pub(super) fn delivered(&mut self, _: Entry) {
        self.counts.delivered += 1;
    }

    /// The messages are answered with a fault.
    pub(super) fn faulted(&mut self, messages: impl Into<Entries>) {
        self.counts.faulted += messages.into().0;
    }

    /// The message is a dead letter.
    pub(super) fn dead(&mut self, _: Entry) {
        self.counts.dead += 1;
    }

    /// The threads of the messages are over.
    pub(super) fn cancelled(&mut self, messages: impl Into<Entries>) {
        self.counts.cancelled += messages.into().0;
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Messages that came in and have not ended.
    pub(super) fn open(&self) -> u64 {
        let Counts { injected, emitted, made, redriven, recovered, delivered, faulted, dead, cancelled } = self.counts;
        injected + emitted + made + redriven + recovered - delivered - faulted - dead - cancelled
    }
}

impl Entries {
    /// Takes one of the messages out.
    ///
    /// # Panics
    /// If there is none left.
    pub(super) fn one(&mut self) -> Entry {
        self.0 = self.0.checked_sub(1).expect("each emission is taken once");
        Entry(())
    }
}

impl From<Entry> for Entries {
    fn from(_: Entry) -> Self {
        Self(1)
    }
}
