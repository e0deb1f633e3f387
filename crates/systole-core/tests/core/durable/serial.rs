//! Listeners with one slot: a handler begins once the end of the one before it is durable, and after a crash handlers
//! begin in the same order again.

use std::collections::{HashMap, HashSet};

use systole_core::core::Version;
use systole_core::vocab::MessageId;

use super::store::Store;

/// The handlers of listeners with one slot, in all lives of the organism.
#[derive(Default)]
pub(crate) struct Serial {
    /// The messages of each listener whose handlers began and are not over for good, in the order in which they first began.
    begun: HashMap<usize, Vec<Begun>>,
    /// The starts of the organism so far.
    life: u64,
    /// Cores that gave their conversations up in this life. What they had let begin comes out yet.
    released: HashSet<usize>,
}

struct Begun {
    message: MessageId,
    /// The version of the organism that its conversation keeps: each has slots of its own.
    version: Version,
    core: usize,
    /// The life in which its handler began last.
    life: u64,
    is_parked: bool,
    /// Its core gave it up: the one that adopts it lets it begin again.
    has_moved: bool,
}

impl Serial {
    /// A start goes on with one version.
    pub(crate) fn restarts(&mut self, version: Version) {
        self.life += 1;
        self.released.clear();
        self.begun.values_mut().flatten().for_each(|one| (one.has_moved, one.version) = (false, version));
    }

    pub(crate) fn releases(&mut self, core: usize) {
        let life = self.life;
        self.released.insert(core);
        let moves = |one: &&mut Begun| one.core == core || one.life < life;
        self.begun.values_mut().flatten().filter(moves).for_each(|one| one.has_moved = true);
    }

    pub(crate) fn begins(
        &mut self,
        (listener, version): (usize, Version),
        core: usize,
        message: MessageId,
        store: &Store,
    ) {
        let life = self.life;
        let begun = self.begun.entry(listener).or_default();
        begun.retain(|one| !store.over.contains(&one.message));
        let at = begun.iter().position(|one| one.message == message).unwrap_or(begun.len());
        for earlier in begun[..at].iter().filter(|one| !one.has_moved && one.version == version) {
            assert_eq!(earlier.life, life, "{message} begins before {} does again, which began first", earlier.message);
        }
        let one = Begun { message, version, core, life, is_parked: true, has_moved: self.released.contains(&core) };
        match begun.get_mut(at) {
            Some(known) => *known = one,
            None => begun.push(one),
        }
        self.goes_on(listener, message, store);
    }

    pub(crate) fn parks(&mut self, listener: usize, message: MessageId) {
        let begun = self.begun.get_mut(&listener).into_iter().flatten();
        begun.filter(|one| one.message == message).for_each(|one| one.is_parked = true);
    }

    pub(crate) fn goes_on(&mut self, listener: usize, message: MessageId, store: &Store) {
        let begun = self.begun.entry(listener).or_default();
        let own = begun.iter().find(|one| one.message == message).map(|one| one.version);
        for one in begun.iter_mut().filter(|one| Some(one.version) == own) {
            if one.message == message {
                one.is_parked = false;
                continue;
            }
            let holds = one.life == self.life && !one.is_parked && !one.has_moved;
            let is_over = store.over.contains(&one.message);
            assert!(!holds || is_over, "{message} has the slot of {}, whose end is not durable", one.message);
        }
    }
}
