//! Distinct texts by number: the prefixes and the namespace names of a document.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::HashMap;

/// Distinct texts by number, from 0. Up to eight are searched linearly, more by a hash that the sender can't predict.
#[derive(Debug, Default)]
pub(super) struct Names {
    text: String,
    names: Vec<Range<usize>>,
    /// Numbers of names, by the keyed hash of the name or the next free one, once there are more than a few.
    numbers: HashMap<u64, u32>,
    hasher: RandomState,
}

impl Names {
    const FEW: usize = 8;

    /// The number of a name, which is added if it isn't there.
    pub(super) fn intern(&mut self, name: &str) -> u32 {
        if self.names.len() <= Self::FEW {
            return self.search(name).unwrap_or_else(|| self.add(name));
        }
        let slot = self.slot(name);
        match self.numbers.get(&slot) {
            Some(&known) => known,
            None => {
                let new = self.push(name);
                self.numbers.insert(slot, new);
                new
            }
        }
    }

    /// The number of a name, if it is there.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        if self.names.len() <= Self::FEW {
            return self.search(name);
        }
        self.numbers.get(&self.slot(name)).copied()
    }

    pub(super) fn name(&self, number: u32) -> &str {
        &self.text[self.names[number as usize].clone()]
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Keeps the first `names` names, few enough to be searched without hashes.
    pub(super) fn truncate(&mut self, names: usize) {
        debug_assert!(names <= Self::FEW, "{names} names have no hashes");
        self.names.truncate(names);
        self.text.truncate(self.names.last().map_or(0, |last| last.end));
        self.numbers.clear();
    }

    /// Becomes a copy of `other`, in the memory that it has.
    pub(super) fn copy(&mut self, other: &Self) {
        self.text.clone_from(&other.text);
        self.names.clone_from(&other.names);
        self.numbers.clone_from(&other.numbers);
        self.hasher.clone_from(&other.hasher);
    }

    /// Returns whether its capacity is over `kept` names, or 16 bytes for each.
    pub(super) fn is_large(&self, kept: usize) -> bool {
        self.text.capacity() > 16 * kept || self.names.capacity() > kept || self.numbers.capacity() > kept
    }

    /// Searches few names, one by one.
    fn search(&self, name: &str) -> Option<u32> {
        let known = self.names.iter().position(|range| self.text.as_bytes()[range.clone()] == *name.as_bytes());
        known.map(number)
    }

    fn add(&mut self, name: &str) -> u32 {
        let new = self.push(name);
        if self.names.len() > Self::FEW {
            (0..self.names.len()).for_each(|known| self.index(known));
        }
        new
    }

    fn push(&mut self, name: &str) -> u32 {
        let start = self.text.len();
        self.text.push_str(name);
        self.names.push(start..self.text.len());
        number(self.names.len() - 1)
    }

    fn index(&mut self, known: usize) {
        let slot = self.slot(&self.text[self.names[known].clone()]);
        self.numbers.insert(slot, number(known));
    }

    /// The hash of a name, or the first one behind it that isn't the slot of another name.
    fn slot(&self, name: &str) -> u64 {
        let mut hash = self.hasher.hash_one(name);
        while self.numbers.get(&hash).is_some_and(|&known| self.name(known) != name) {
            hash = hash.wrapping_add(1);
        }
        hash
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("a document has fewer than 2^32 names: each takes a byte, and 4 GiB are refused")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_the_same_past_the_linear_search() {
        let names: Vec<String> = (0..100).map(|i| format!("n{i}")).collect();
        let mut table = Names::default();
        let mut copy = Names::default();
        for round in 0..4 {
            for (i, name) in names.iter().enumerate() {
                assert_eq!(table.intern(name) as usize, i, "{name} in round {round}");
                assert_eq!(table.name(number(i)), name);
            }
            copy.copy(&table);
            let found: Vec<_> = names.iter().map(|name| copy.find(name)).collect();
            assert_eq!(found, (0..100).map(Some).collect::<Vec<_>>());
            assert_eq!(copy.find("n100"), None);
            if round == 1 {
                table.truncate(2);
            }
        }
    }
}
