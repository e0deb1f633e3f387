//! Partitions: the fixed parts of all conversations, which a core serves and another one can take over.

use std::fmt;

use uuid::Uuid;

use super::ThreadId;

/// A part of all conversations: one of 256, fixed for good by the id of a conversation's root.
///
/// It is the last byte of that id, which is random in the ids that entrances draw and a hash in those that the pump
/// derives. So the root alone tells the partition, and an entrance that draws the id of a root can choose it. The number
/// of partitions can't be changed, because records in journals are found by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Partition(pub u8);

/// A set of partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Partitions([u64; 4]);

impl Partition {
    /// Number of partitions.
    pub const COUNT: usize = 256;

    /// Partition of the conversations of `<boot>`, whatever their ids are: each start boots in one place.
    pub const BOOT: Self = Self(0);

    /// Returns the partition of the conversation with that root.
    pub fn of(root: ThreadId) -> Self {
        Self(root.as_uuid().as_bytes()[15])
    }

    /// Makes the id of a root that belongs to this partition out of any id.
    #[must_use]
    pub fn place(self, root: ThreadId) -> ThreadId {
        let mut bytes = *root.as_uuid().as_bytes();
        bytes[15] = self.0;
        ThreadId::from_uuid(Uuid::from_bytes(bytes))
    }

    /// Lists all partitions.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..=u8::MAX).map(Self)
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Partitions {
    /// All partitions.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// Returns the share of the `index`-th of `count` cores: the partitions whose number modulo `count` is `index`.
    pub fn share(index: usize, count: usize) -> Self {
        Partition::all().filter(|partition| usize::from(partition.0) % count.max(1) == index).collect()
    }

    /// Returns whether a partition belongs to the set.
    pub const fn contains(&self, partition: Partition) -> bool {
        self.0[partition.0 as usize / 64] >> (partition.0 % 64) & 1 == 1
    }

    /// Returns whether no partition belongs to the set.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Returns whether all partitions of another set belong to this one.
    pub fn contains_all(&self, other: &Self) -> bool {
        other.without(self).is_empty()
    }

    /// Returns whether a partition belongs to both sets.
    pub fn meets(&self, other: &Self) -> bool {
        other.without(self) != *other
    }

    /// Returns the partitions of either set.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    /// Returns the partitions that don't belong to another set.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & !other.0[at]))
    }

    /// Lists the partitions of the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = Partition> {
        Partition::all().filter(|&partition| self.contains(partition))
    }
}

impl FromIterator<Partition> for Partitions {
    fn from_iter<I: IntoIterator<Item = Partition>>(partitions: I) -> Self {
        let mut bits = [0; 4];
        for Partition(number) in partitions {
            bits[usize::from(number / 64)] |= 1 << (number % 64);
        }
        Self(bits)
    }
}

impl From<Partition> for Partitions {
    fn from(partition: Partition) -> Self {
        Self::from_iter([partition])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_disjoint_and_have_all_partitions() {
        for count in [1, 2, 3, 7, 256, 300] {
            let shares: Vec<_> = (0..count).map(|index| Partitions::share(index, count)).collect();
            for partition in Partition::all() {
                let owners: Vec<_> = (0..count).filter(|&index| shares[index].contains(partition)).collect();
                assert_eq!(owners, [usize::from(partition.0) % count]);
            }
            assert_eq!(shares.iter().map(|share| share.iter().count()).sum::<usize>(), Partition::COUNT);
            assert!(shares.iter().take(Partition::COUNT).all(|share| !share.is_empty()));
        }
        assert_eq!(Partitions::share(0, 1), Partitions::ALL);
    }

    #[test]
    fn a_root_can_be_placed_in_any_partition() {
        let id = ThreadId::from_uuid(Uuid::new_v8([7; 16]));
        let mut placed: Vec<_> = Partition::all().map(|partition| partition.place(id)).collect();
        assert!(Partition::all().zip(&placed).all(|(partition, &root)| Partition::of(root) == partition));
        assert!(placed.iter().all(|root| root.as_uuid().get_version_num() == 8));
        placed.dedup();
        assert_eq!(placed.len(), Partition::COUNT);
    }
}
