//! Dead letters: undeliverable messages, kept to be listed, redriven or discarded.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use systole_xml::ladder::Canonical;

use super::blueprint::Blueprint;
use super::gauge::Overloaded;
use super::io::CoreId;
use crate::journal::{LetterPlace, LetterRecord, Number};
use crate::vocab::{Fault, Limits, Name, Partition, QName, ThreadId, ThreadPath, Time, ns};

/// An undeliverable message.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// The number of the letter, never given twice.
    pub id: DeadLetterId,
    /// The partition that keeps it: that of the conversation which it came from, where there was one.
    pub partition: Partition,
    /// The time at which it became a dead letter.
    pub at: Time,
    /// The sender.
    pub from: Name,
    /// The listener that it was for, where there was one.
    pub to: Option<Name>,
    /// The conversation that it was in; none for a message that was in none.
    pub conversation: Option<ThreadId>,
    /// The thread that it came from or was meant for.
    pub path: ThreadPath,
    /// The payload, if the message got that far.
    pub payload: Option<Canonical>,
    /// The reason.
    pub reason: Fault,
}

/// The number of a dead letter: the core that keeps it, and a count there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeadLetterId {
    core: CoreId,
    number: u64,
}

/// The reason why a dead letter is neither redriven nor discarded; it stays where it is.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeadLetterError {
    /// The letter was redriven, discarded, or pushed out by newer ones.
    #[error("there is no such dead letter any more: list them again")]
    Unknown,
    /// The sender may not call it: it is a reply, a question to the core, or the sender's contract has changed.
    #[error(
        "{from} may not call {payload}: a reply or a question to the core can't be redriven, since its conversation goes \
         on without it; discard this dead letter, or, if it was a call, add the payload to the calls of {from}"
    )]
    NotACall {
        /// The sender.
        from: Name,
        /// The payload.
        payload: QName,
    },
    /// The letter holds a fault, or bytes that could not be parsed.
    #[error("this dead letter holds no payload that could be sent again: discard it")]
    NoPayload,
    /// The organism is full.
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
    /// The organism takes no more messages.
    #[error("the organism has closed")]
    Closed,
}

crate::vocab::debug_is_display!(DeadLetterError);

/// The dead letters of a core, which shares their bounds with all cores.
#[derive(Debug)]
pub struct DeadLetters {
    core: CoreId,
    letters: VecDeque<DeadLetter>,
    all: AllLetters,
    max_letters: usize,
    max_bytes: usize,
    dropped: u64,
}

/// The numbers and sizes of the dead letters of all cores, oldest first: past a bound the oldest of all goes, wherever it
/// is kept.
#[derive(Debug, Clone, Default)]
pub(super) struct AllLetters(Arc<Mutex<Sizes>>);

#[derive(Debug, Default)]
struct Sizes {
    /// The last number given where there is no journal, which gives them else.
    numbered: u64,
    /// The bytes of each letter.
    letters: BTreeMap<(Number, CoreId), usize>,
    /// Bytes of all letters.
    bytes: usize,
}

impl DeadLetterId {
    /// The number of the letter in the journal, where there is one.
    pub fn number(self) -> Number {
        self.number
    }

    /// The core that keeps it.
    pub fn core(self) -> CoreId {
        self.core
    }
}

impl fmt::Display for DeadLetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.core.0, self.number)
    }
}

impl DeadLetter {
    /// The letter as the journal has it.
    pub(super) fn record(&self) -> LetterRecord {
        LetterRecord {
            number: self.id.number(),
            partition: self.partition,
            at: self.at,
            from: self.from.clone(),
            to: self.to.clone(),
            place: LetterPlace { conversation: self.conversation, path: self.path.clone() },
            payload: self.payload.as_ref().map(|payload| (payload.root().clone(), payload.bytes().clone())),
            reason: self.reason.clone(),
        }
    }

    fn held(&self) -> usize {
        self.payload.as_ref().map_or(0, Canonical::held)
    }
}

impl Blueprint {
    /// Checks that a dead letter can be redriven: its sender may call the payload today.
    ///
    /// # Errors
    /// [`DeadLetterError::NotACall`] if not.
    pub fn check_redrive(&self, from: &Name, payload: &QName) -> Result<(), DeadLetterError> {
        let caller = self.party(from.as_str());
        match payload.namespace() != ns::META && caller.is_some_and(|caller| self.may_call(caller, payload)) {
            true => Ok(()),
            false => Err(DeadLetterError::NotACall { from: from.clone(), payload: payload.clone() }),
        }
    }
}

impl AllLetters {
    fn lock(&self) -> MutexGuard<'_, Sizes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sizes {
    fn remove(&mut self, id: DeadLetterId) {
        self.bytes -= self.letters.remove(&(id.number, id.core)).unwrap_or(0);
    }

    /// Takes out the oldest letters until the rest is within the bounds.
    fn trim(&mut self, max_letters: usize, max_bytes: usize) -> Vec<DeadLetterId> {
        let mut out = Vec::new();
        while (self.letters.len() > max_letters || self.bytes > max_bytes)
            && let Some(((number, core), bytes)) = self.letters.pop_first()
        {
            self.bytes -= bytes;
            out.push(DeadLetterId { core, number });
        }
        out
    }
}

impl DeadLetters {
    pub(super) fn new(core: CoreId, limits: &Limits, all: AllLetters) -> Self {
        let (max_letters, max_bytes) = (limits.dead_letters, limits.dead_letter_bytes);
        Self { core, letters: VecDeque::new(), all, max_letters, max_bytes, dropped: 0 }
    }

    pub(super) fn next_id(&mut self) -> DeadLetterId {
        let mut all = self.all.lock();
        all.numbered += 1;
        self.id_of(all.numbered)
    }

    pub(super) fn id_of(&self, number: Number) -> DeadLetterId {
        DeadLetterId { core: self.core, number }
    }

    /// Keeps a letter. Returns those that it pushes out, which their cores have to [drop](Self::drop_letter): the oldest of
    /// all cores, or the letter itself if it alone is past the bound.
    pub(super) fn push(&mut self, letter: DeadLetter) -> Vec<DeadLetterId> {
        let (id, held) = (letter.id, letter.held());
        self.letters.push_back(letter);
        if held > self.max_bytes {
            return vec![id];
        }
        let mut all = self.all.lock();
        all.letters.insert((id.number, id.core), held);
        all.bytes += held;
        all.trim(self.max_letters, self.max_bytes)
    }

    /// A dead letter, if it is still there.
    pub fn get(&self, id: DeadLetterId) -> Option<&DeadLetter> {
        self.letters.get(self.place(id)?)
    }

    pub(super) fn take(&mut self, id: DeadLetterId) -> Option<DeadLetter> {
        let letter = self.letters.remove(self.place(id)?)?;
        self.all.lock().remove(id);
        Some(letter)
    }

    /// Takes a letter that was pushed out, if it is still there.
    pub(super) fn drop_letter(&mut self, id: DeadLetterId) -> Option<DeadLetter> {
        let letter = self.take(id)?;
        self.dropped += 1;
        Some(letter)
    }

    pub(super) fn clear(&mut self) {
        let mut all = self.all.lock();
        self.letters.drain(..).for_each(|letter| all.remove(letter.id));
    }

    fn place(&self, id: DeadLetterId) -> Option<usize> {
        self.letters.binary_search_by_key(&id, |letter| letter.id).ok()
    }

    /// The letters, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &DeadLetter> {
        self.letters.iter()
    }

    /// The number of letters.
    pub fn len(&self) -> usize {
        self.letters.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// Letters that the bounds pushed out.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use systole_xml::ladder::{Raw, parse};

    use super::*;
    use crate::vocab::{FaultCode, XmlLimits};

    fn keep_dead(letters: &mut DeadLetters, payload: Option<&str>) -> (DeadLetterId, Vec<DeadLetterId>) {
        let id = letters.next_id();
        let payload = payload.map(|text| parse(&Raw::new(text.to_owned()), &XmlLimits::default()).unwrap());
        let reason = Fault::new(FaultCode::Route, "nobody");
        let (at, path, from) = (Time::default(), ThreadPath::new(Vec::new()), Name::system());
        let partition = Partition::default();
        let letter = DeadLetter { id, partition, at, from, to: None, conversation: None, path, payload, reason };
        (id, letters.push(letter))
    }

    #[test]
    fn the_oldest_of_all_cores_go_past_either_bound() {
        let limits = Limits { dead_letters: 3, dead_letter_bytes: 100, ..Limits::default() };
        let all = AllLetters::default();
        let mut cores = [1, 2].map(|core| DeadLetters::new(CoreId(core), &limits, all.clone()));
        let mut kept = VecDeque::new();
        let mut keep = |core: usize, payload: Option<String>, goes: usize| {
            let (id, pushed_out) = keep_dead(&mut cores[core], payload.as_deref());
            kept.push_back(id);
            assert_eq!(pushed_out, kept.drain(..goes).collect::<Vec<_>>());
            for gone in pushed_out {
                assert!(cores[usize::from(gone.core.0) - 1].drop_letter(gone).is_some());
            }
            (cores[0].len() + cores[1].len(), all.lock().bytes)
        };
        assert_eq!([0, 0, 1].map(|core| keep(core, None, 0).0), [1, 2, 3]);
        assert_eq!([1, 0].map(|core| keep(core, None, 1).0), [3, 3]);
        // The letter holds its 40 bytes, and as many of the bytes that it was read from.
        assert_eq!(keep(0, Some(format!("<a>{}</a>", "x".repeat(33))), 1), (3, 80));
        assert_eq!(keep(1, Some("<another></another>".to_owned()), 3), (1, 38));
        let (long, pushed_out) = keep_dead(&mut cores[0], Some(&format!("<a>{}</a>", "x".repeat(100))));
        assert_eq!(pushed_out, [long], "one that is too long takes none with it");
        assert!(cores[0].drop_letter(long).is_some() && cores[0].drop_letter(long).is_none());
        assert_eq!((cores[0].dropped() + cores[1].dropped(), cores[1].len()), (7, 1));
        cores[1].clear();
        assert_eq!(all.lock().bytes, 0);
        assert!(all.lock().letters.is_empty());
    }

    #[test]
    fn a_letter_is_taken_once() {
        let mut letters = DeadLetters::new(CoreId(0), &Limits::default(), AllLetters::default());
        let ids: Vec<_> = (0..3).map(|_| keep_dead(&mut letters, Some("<a/>")).0).collect();
        assert_eq!(letters.take(ids[1]).map(|letter| letter.id), Some(ids[1]));
        assert!(letters.take(ids[1]).is_none() && letters.get(ids[1]).is_none());
        assert!(letters.take(ids[0]).is_some() && letters.take(ids[2]).is_some());
        assert_eq!((letters.all.lock().bytes, ids[2].to_string().as_str()), (0, "0-3"));
    }
}
