//! Derivation of types from each other, while drafts are read and after (XSD 1.0 part 1, sections 3.4.6 and 3.14.6:
//! Type Derivation OK).

use super::{BrokenSchemaRule, Compiler, Draft, Slot};
use crate::schema::engine::grammar::{Derivation, Derivations, TypeId};

impl Compiler<'_, '_> {
    /// Reports whether a type is derived from another one without any of the blocked methods. Both types are read
    /// already.
    pub(super) fn is_restriction(
        &self,
        from: TypeId,
        to: TypeId,
        blocked: Derivations,
    ) -> Result<bool, BrokenSchemaRule> {
        Ok(leads(|id| self.draft(id), from, to, blocked))
    }

    fn draft(&self, id: TypeId) -> Option<&Draft> {
        match &self.types[id.index()] {
            Slot::Read(draft) => Some(draft),
            Slot::Reading | Slot::Waiting(_) => None,
        }
    }
}

/// Reports the same as [`Compiler::is_restriction`] once all types are read.
pub(super) fn is_derived(drafts: &[Draft], from: TypeId, to: TypeId, blocked: Derivations) -> bool {
    leads(|id| drafts.get(id.index()), from, to, blocked)
}

fn leads<'d>(draft: impl Fn(TypeId) -> Option<&'d Draft>, from: TypeId, to: TypeId, blocked: Derivations) -> bool {
    let target = draft(to);
    let members = target.map_or(&[][..], |target| target.members.as_slice());
    let mut at = from;
    loop {
        if at == to || !blocked.restriction && members.contains(&at) {
            return true;
        }
        let Some(ty) = draft(at) else { return false };
        let is_blocked = match ty.derivation {
            Derivation::Extension => blocked.extension,
            Derivation::Restriction => blocked.restriction,
        };
        match ty.base {
            Some(base) if !is_blocked => at = base,
            _ => return false,
        }
    }
}
