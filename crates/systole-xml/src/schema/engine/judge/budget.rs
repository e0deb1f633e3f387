//! Bounds of what the identity constraints of one payload may take: bytes of memory, and steps of time.

use super::matching::Keys;

/// What is spent on the keys of a payload.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// Bytes of the entries of scopes and tables.
    pub(super) held: usize,
    /// Steps that are left.
    left: usize,
}

impl Budget {
    /// Most bytes that are allocated for the keys of a payload.
    const BYTES: usize = 32 << 20;

    /// Steps for a payload of any size, and for each byte of it.
    const STEPS: (usize, usize) = (8_000_000, 32);

    /// Steps that an element selected by one constraint takes, or a value given to one field.
    pub(super) const HIT: usize = 16;

    /// Bytes that are copied in a step.
    pub(super) const COPIED: usize = 16;

    /// Begins with a payload of so many bytes.
    pub(super) fn begin(&mut self, bytes: usize) {
        let (any, each) = Self::STEPS;
        self.left = any.saturating_add(bytes.saturating_mul(each));
    }

    #[inline]
    pub(super) fn spend(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps);
    }

    #[inline]
    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Counts what a list of entries allocates for what is added to it.
    #[inline]
    pub(super) fn grow<T>(&mut self, list: &mut Vec<T>, add: impl FnOnce(&mut Vec<T>)) {
        let before = room(list);
        add(list);
        self.held = self.held + room(list) - before;
    }
}

impl Keys {
    /// Why a payload of so many bytes is judged no further: a clause about the element that is judged.
    pub(super) fn exceeded(&self, bytes: usize) -> Option<String> {
        if self.budget.is_spent() {
            return Some(format!(
                "the identity constraints take more steps up to here than a payload of {bytes} bytes may: declare \
                 fewer xs:unique, xs:key and xs:keyref around each other, with fewer paths, or send less at once"
            ));
        }
        (self.bytes() > Budget::BYTES).then(|| {
            format!(
                "the keys of the identity constraints up to here take more than {} bytes: declare fewer of them \
                 around each other, or send less at once",
                Budget::BYTES
            )
        })
    }

    /// What all of it allocates.
    pub(super) fn bytes(&self) -> usize {
        let own = room(&self.frames) + room(&self.live) + room(&self.matchers) + room(&self.scopes);
        let found = room(&self.selected) + room(&self.slots) + room(&self.waiting) + room(&self.tables);
        own + found + room(&self.hits) + room(&self.read) + self.values.capacity() + self.budget.held
    }
}

/// The bytes that a list allocates.
#[inline]
pub(super) fn room<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}
