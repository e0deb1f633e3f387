//! The open children of a thread, in order of opening: a list whose links stand in the threads themselves.
//!
//! The `previous` of the first child leads to the last one, as in the tail queues of many kernels; the `next` of the
//! last leads nowhere.

use super::Tree;
use crate::core::key::ThreadKey;

impl Tree {
    /// Puts a thread behind the other children of its parent.
    pub(super) fn link(&mut self, parent: ThreadKey, child: ThreadKey) {
        let last = match self.threads[parent].children.first {
            Some(first) => self.threads[first].children.previous.replace(child),
            None => self.threads[parent].children.first.replace(child),
        };
        if let Some(last) = last {
            self.threads[last].children.next = Some(child);
        }
        self.threads[child].children.previous = Some(last.unwrap_or(child));
    }

    /// Takes a thread out of its parent's list.
    pub(in crate::core) fn unlink(&mut self, child: ThreadKey) {
        let thread = &mut self.threads[child];
        let (parent, previous, next) = (thread.parent, thread.children.previous.take(), thread.children.next.take());
        let (Some(parent), Some(previous)) = (parent, previous) else { return };
        let first = &mut self.threads[parent].children.first;
        if *first == Some(child) {
            *first = next;
        } else {
            self.threads[previous].children.next = next;
        }
        // The next one, or the first if the child was the last.
        if let Some(behind) = next.or(self.threads[parent].children.first) {
            self.threads[behind].children.previous = Some(previous);
        }
    }

    /// Appends the open children of a thread.
    pub(in crate::core) fn children_of(&self, key: ThreadKey, into: &mut Vec<ThreadKey>) {
        let mut next = self.threads[key].children.first;
        while let Some(child) = next {
            into.push(child);
            next = self.threads[child].children.next;
        }
    }
}
