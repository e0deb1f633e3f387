//! Payloads that the core doesn't judge itself: libxml does, on another thread, because it may take long.
//!
//! The item of Queue 1 that holds one is put aside until the verdict is there; then it is processed from the start,
//! and meets its verdicts where it would have judged. What comes after it in the same thread or conversation waits
//! behind it, so that its order holds, and everything else goes on.

use std::collections::{HashMap, VecDeque};

use slotmap::SlotMap;

use super::io::Output;
use super::key::{JudgementId, ThreadKey};
use super::machine::{Core, Item};
use crate::ladder::{Canonical, Element, Validated};
use crate::schema::SchemaError;
use crate::vocab::ThreadId;

/// What a payload was found to be.
pub(super) type Finding = Result<Validated<Element>, SchemaError>;

/// A payload that has to be judged elsewhere before its item goes on.
#[derive(Debug)]
pub(super) struct Unproved(pub Canonical);

/// An item whose verdicts are there.
pub(super) struct Judged {
    pub item: Item,
    findings: VecDeque<(Canonical, Finding)>,
}

/// Where items keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Thread(ThreadKey),
    Root(ThreadId),
}

/// The items that are put aside.
#[derive(Default)]
pub(super) struct Aside {
    waiting: SlotMap<JudgementId, Waiting>,
    places: HashMap<Place, JudgementId>,
    /// Of the item that is being processed.
    findings: VecDeque<(Canonical, Finding)>,
}

struct Waiting {
    item: Item,
    payloads: Vec<Canonical>,
    followers: Vec<Item>,
}

impl Aside {
    /// Items that wait.
    pub(super) fn items(&self) -> impl Iterator<Item = &Item> {
        self.waiting.values().flat_map(|waiting| std::iter::once(&waiting.item).chain(&waiting.followers))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether what comes to a place has to wait.
    pub(super) fn holds(&self, place: Option<Place>) -> bool {
        !self.is_empty() && place.is_some_and(|place| self.places.contains_key(&place))
    }

    /// Lets an item wait behind what is aside in its place; gives it back if nothing is.
    pub(super) fn follow(&mut self, item: Item) -> Option<Item> {
        if self.is_empty() {
            return Some(item);
        }
        let leader = item.place().and_then(|place| self.places.get(&place));
        match leader.and_then(|&leader| self.waiting.get_mut(leader)) {
            Some(leader) => {
                leader.followers.push(item);
                None
            }
            None => Some(item),
        }
    }

    /// What was found of a payload, for the item that is being processed. It judges its payloads in the same order
    /// each time, so that of two that are equal each meets its own.
    pub(super) fn finding(&mut self, payload: &Canonical) -> Option<Finding> {
        let at = self.findings.iter().position(|(other, _)| other.bytes() == payload.bytes())?;
        self.findings.remove(at).map(|(_, finding)| finding)
    }

    /// Takes everything that waits, in order.
    pub(super) fn take_all(&mut self) -> Vec<Item> {
        self.places.clear();
        let waiting = self.waiting.drain();
        waiting.flat_map(|(_, waiting)| std::iter::once(waiting.item).chain(waiting.followers)).collect()
    }
}

impl Core {
    /// Puts an item aside until its payloads are judged.
    pub(super) fn put_aside(&mut self, item: Item, unproved: Vec<Unproved>) {
        let payloads: Vec<_> = unproved.into_iter().map(|Unproved(payload)| payload).collect();
        let place = item.place();
        let waiting = Waiting { item, payloads: payloads.clone(), followers: Vec::new() };
        let judgement = self.aside.waiting.insert(waiting);
        if let Some(place) = place {
            self.aside.places.insert(place, judgement);
        }
        self.outputs.push_back(Output::Judge { judgement, payloads });
    }

    /// Goes on with an item, and with what waits behind it, before everything that came later.
    pub(super) fn judged(&mut self, judgement: JudgementId, findings: Vec<Finding>) {
        let Some(Waiting { item, payloads, followers }) = self.aside.waiting.remove(judgement) else { return };
        if let Some(place) = item.place() {
            self.aside.places.remove(&place);
        }
        for follower in followers.into_iter().rev() {
            self.queue.push_front(follower);
        }
        let findings = payloads.into_iter().zip(findings).collect();
        self.queue.push_front(Item::Judged(Box::new(Judged { item, findings })));
    }

    /// Processes an item whose verdicts are there.
    pub(super) fn resume_item(&mut self, judged: Judged) {
        self.aside.findings = judged.findings;
        self.process_item(judged.item);
        self.aside.findings.clear();
    }
}

impl Item {
    /// Where its order matters.
    pub(super) fn place(&self) -> Option<Place> {
        match self {
            Self::Response(response) => Some(Place::Thread(response.thread)),
            Self::Calls(calls) => Some(Place::Thread(calls.thread)),
            Self::Reattached(thread, _) => Some(Place::Thread(*thread)),
            Self::Entry(entry) => Some(Place::Root(entry.root)),
            Self::Left(root) | Self::Cancel(root) => Some(Place::Root(*root)),
            // Only what it says tells the conversation of a message; a letter has one of its own.
            Self::Injected(_) | Self::Requeued(_) => None,
            Self::Judged(_) => None,
        }
    }

    /// Whether it is a message of its own in the books.
    pub(super) fn is_message(&self) -> bool {
        match self {
            Self::Injected(_) | Self::Entry(_) | Self::Requeued(_) => true,
            Self::Judged(judged) => judged.item.is_message(),
            Self::Response(_) | Self::Calls(_) | Self::Reattached(..) | Self::Left(_) | Self::Cancel(_) => false,
        }
    }
}
