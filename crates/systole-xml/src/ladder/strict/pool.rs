//! The tapes that an OS thread keeps.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use super::canonical::{Canonical, Identity};
use crate::ladder::tape::Tape;

/// A tape that this OS thread lends. Dropping the loan gives it back.
#[derive(Debug)]
pub(in crate::ladder) struct Loan {
    /// `None` only while it is being given back.
    kept: Option<Box<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The document that the tape is of.
    of: Option<Identity>,
    tape: Tape,
}

thread_local! {
    /// The two tapes that were used last, for a message and the payload in it.
    static KEPT: [Cell<Option<Box<Kept>>>; 2] = const { [const { Cell::new(None) }; 2] };
}

impl Loan {
    /// A blank tape of no document.
    pub(in crate::ladder) fn blank() -> Self {
        let kept = KEPT.try_with(|[last, other]| other.take().or_else(|| last.take()));
        let mut kept = kept.ok().flatten().unwrap_or_default();
        kept.of = None;
        kept.tape.clear();
        kept.tape.shrink();
        Self { kept: Some(kept) }
    }

    /// The tape of a document: the kept one, or one that is read from the document. Builds with debug assertions
    /// read it again and compare.
    pub(in crate::ladder) fn of(document: &Canonical) -> Self {
        let is_its = |kept: &Kept| kept.of.as_ref().is_some_and(|of| document.is(of));
        let find = |slots: &[Cell<Option<Box<Kept>>>; 2]| {
            slots.iter().find_map(|slot| match slot.take() {
                Some(kept) if is_its(&kept) => Some(kept),
                kept => {
                    slot.set(kept);
                    None
                }
            })
        };
        if let Ok(Some(kept)) = KEPT.try_with(find) {
            let loan = Self { kept: Some(kept) };
            debug_assert!(loan.is_right(document), "the tape of {document:?} is wrong");
            return loan;
        }
        let mut loan = Self::blank();
        loan.read(document.as_str());
        loan.belong_to(Some(document.identity()));
        loan
    }

    fn is_right(&self, document: &Canonical) -> bool {
        let mut again = Self::blank();
        again.read(document.as_str());
        **self == *again
    }

    /// Assigns the tape to its document; `None` marks it as unused.
    pub(in crate::ladder) fn belong_to(&mut self, document: Option<Identity>) {
        if let Some(kept) = &mut self.kept {
            kept.of = document;
        }
    }
}

impl Deref for Loan {
    type Target = Tape;

    fn deref(&self) -> &Tape {
        &self.kept.as_ref().expect("it is given back by dropping it").tape
    }
}

impl DerefMut for Loan {
    fn deref_mut(&mut self) -> &mut Tape {
        &mut self.kept.as_mut().expect("it is given back by dropping it").tape
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        let _ = KEPT.try_with(|[last, other]| {
            if let Some(before) = last.replace(Some(kept)) {
                other.set(Some(before));
            }
        });
    }
}
