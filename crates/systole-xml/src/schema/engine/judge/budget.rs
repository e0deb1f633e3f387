//! Bounds of the identity constraints of one payload: bytes of memory, and steps of time.

use super::matching::Keys;

/// The memory and time that the keys of a payload take.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// The bytes of the entries of scopes and tables.
    pub(super) held: usize,
    /// The steps that are left.
    left: usize,
    /// The steps that the payload had at its start.
    granted: usize,
}

impl Budget {
    /// The greatest number of bytes that the keys of a payload may take.
    const BYTES: usize = 32 << 20;

    /// The steps for a payload of any size, and for each of its bytes.
    const STEPS: (usize, usize) = (8_000_000, 32);

    /// The steps for an element that a selector matches, or for a value of a field.
    pub(super) const HIT: usize = 16;

    /// The bytes that one step copies.
    pub(super) const COPIED: usize = 16;

    /// Starts the budget for a payload of `bytes` bytes, with at most `most` steps.
    pub(super) fn begin(&mut self, bytes: usize, most: usize) {
        let (any, each) = Self::STEPS;
        self.granted = any.saturating_add(bytes.saturating_mul(each)).min(most);
        self.left = self.granted;
    }

    /// The steps that the payload took so far.
    pub(super) fn spent(&self) -> usize {
        self.granted - self.left
    }

    /// Ends the budget of a payload.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    #[inline]
    pub(super) fn spend(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps);
    }

    #[inline]
    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Adds to a list of entries, and counts the bytes that it allocates for them.
    #[inline]
    pub(super) fn grow<T>(&mut self, list: &mut Vec<T>, add: impl FnOnce(&mut Vec<T>)) {
        let before = room(list);
        add(list);
        self.held = self.held + room(list) - before;
    }
}

impl Keys {
    /// The reason why validation of a payload of `bytes` bytes stops, as a clause about the current element; `None`
    /// while the limits hold.
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

    /// The bytes that all lists allocate.
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
