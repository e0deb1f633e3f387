//! The scratch space of the strict pass.

use std::cell::Cell;

use super::pass::{Open, Root};
use super::scope::Scope;
use super::tag::Attribute;

/// The working memory of a pass, kept for the next one.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) open: Vec<Open>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) scope: Scope,
    pub(super) roots: Vec<Root>,
    pub(super) out: String,
}

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

impl Scratch {
    /// Lends the scratch space of this OS thread.
    pub(super) fn lend<R>(borrow: impl FnOnce(&mut Self) -> R) -> R {
        let mut scratch = SCRATCH.try_with(Cell::take).ok().flatten().unwrap_or_default();
        let result = borrow(&mut scratch);
        if !scratch.is_large() {
            let _ = SCRATCH.try_with(|kept| kept.set(Some(scratch)));
        }
        result
    }

    /// Empties it for the next pass.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.attributes.clear();
        self.scope.clear();
        self.roots.clear();
        self.out.clear();
    }

    /// Returns whether a large document has left so much memory that it must not be kept.
    fn is_large(&self) -> bool {
        const KEPT: usize = 1 << 12;
        let Self { open, attributes, scope, roots, out } = self;
        open.capacity() > KEPT
            || attributes.capacity() > KEPT
            || scope.is_large(KEPT)
            || roots.capacity() > KEPT
            || out.capacity() > 2 * super::writer::COPIED
    }
}
