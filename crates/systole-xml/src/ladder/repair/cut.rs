//! Evidence that an output was cut behind a whole tag.
//!
//! An author who forgets an end tag at the end of the input forgets one: that of the payload, behind the end of its
//! last child. Everything else is taken for an output that a limit, a crash or a closed connection cut, because a
//! payload without its last children may be valid, and would be a lie.

use super::lexis::is_blank;
use super::scan::Scanner;
use crate::ladder::RepairKind;
use crate::ladder::scan::split_prefix;

impl Scanner<'_> {
    /// Returns whether the input is cut, at its end behind a tag, with elements open and without a closing fence.
    pub(super) fn is_cut(&self) -> bool {
        let Some(open) = self.tree.last() else { return false };
        // A start tag is last, or an inner element is open, or text of the payload may go on.
        !open.has_child
            || self.tree.depth() > 1
            || open.has_text
            || self.outside.in_fence
            || self.is_indented_deeper(open.start)
            || self.lacks_child()
            || self.has_supplied()
    }

    /// Returns whether the input ends with the indentation of one more child.
    fn is_indented_deeper(&self, root: usize) -> bool {
        let indentation = |text: &str| {
            let line = &text[text.rfind('\n').map_or(text.len(), |at| at + 1)..];
            if is_blank(line) { line.len() } else { 0 }
        };
        indentation(&self.text[self.tail..]) > indentation(&self.text[..root])
    }

    /// Returns whether an end tag was supplied before. It was missing in all that followed, which may be cut: so the element
    /// may have held more.
    pub(super) fn has_supplied(&self) -> bool {
        self.marks.iter().any(|mark| mark.kind == RepairKind::MissingEndTag)
    }

    /// Returns whether the payload has not all children that its contract demands.
    fn lacks_child(&self) -> bool {
        let Some(root) = self.tree.last().filter(|open| !open.is_typed) else { return false };
        let declared = self.vocabulary.get(split_prefix(root.name).1);
        declared.is_some_and(|declared| declared.required().any(|child| !self.outside.root.children.contains(child)))
    }
}
