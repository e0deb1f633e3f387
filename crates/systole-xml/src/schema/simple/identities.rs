//! The IDs, and the references to them, in a value of a list or a union.

use super::definition::{Definition, Variety};
use super::mismatch::{Broken, Mismatch, Rule};
use super::{Identity, Prefixes, SimpleType};

/// Takes an ID or references, as written.
type Found<'f> = dyn FnMut(Identity, &str) + 'f;

impl SimpleType {
    /// Calls `found` with each ID and each reference in a valid literal: the values of those members of unions that take them.
    ///
    /// # Errors
    /// [`Mismatch`] if no steps are left to find the members.
    pub(in crate::schema) fn identities(
        &self,
        literal: &str,
        prefixes: &dyn Prefixes,
        found: &mut Found,
    ) -> Result<(), Mismatch> {
        self.definition.identities(literal, prefixes, found).map_err(|broken| self.mismatch(broken, literal))
    }
}

impl Definition {
    fn identities(&self, literal: &str, prefixes: &dyn Prefixes, found: &mut Found) -> Result<(), Broken> {
        match (self.identity, &self.variety) {
            (Identity::None, _) => Ok(()),
            (Identity::Mixed, Variety::List(item)) => {
                let items = literal.split([' ', '\t', '\n', '\r']).filter(|text| !text.is_empty());
                items.into_iter().try_for_each(|text| item.definition.identities(text, prefixes, found))
            }
            (Identity::Mixed, Variety::Union(members)) => {
                for member in members.candidates(literal) {
                    let member = &member.definition;
                    if !prefixes.spend(member.own_work(literal)) {
                        return Err(Rule::Steps.into());
                    }
                    match member.value(literal, prefixes, false) {
                        Ok(_) => return member.identities(literal, prefixes, found),
                        Err(broken) if broken.rule == Rule::Steps => return Err(broken),
                        Err(_) => {}
                    }
                }
                Ok(())
            }
            (identity, _) => {
                found(identity, literal);
                Ok(())
            }
        }
    }
}
