use std::collections::HashSet;

use super::unfit::Unfit;
use super::{Draft, unsupported};
use crate::schema::engine::grammar::{Derivation, Derivations, Element, ElementId, TypeId};
use crate::schema::engine::simple::Unsupported;

/// Which elements may stand in the place of others (XSD 1.0 part 1, section 3.3.6, Substitution Group OK).
#[derive(Debug, Default)]
pub(super) struct Substitutions {
    members: Vec<Vec<ElementId>>,
    /// Whether a member has a type of the union that its head is of, with which libxml2 2.9 never ends.
    pub(super) by_union: bool,
}

impl Substitutions {
    /// From each member with its head.
    pub(super) fn new(
        heads: &[(ElementId, ElementId)],
        elements: &[Element],
        types: &[Draft],
        unfit: &Unfit,
    ) -> Result<Self, Unsupported> {
        /// All members of all groups, those of groups inside of them included.
        const MOST: usize = 100_000;
        let mut direct: Vec<Vec<ElementId>> = vec![Vec::new(); elements.len()];
        heads.iter().for_each(|(member, head)| direct[head.index()].push(*member));
        let mut members = vec![Vec::new(); elements.len()];
        let mut by_union = false;
        let mut count = 0;
        for (_, head) in heads {
            if !members[head.index()].is_empty() {
                continue;
            }
            let mut pending = direct[head.index()].clone();
            let mut found = Vec::new();
            while let Some(member) = pending.pop() {
                count += 1;
                if count > MOST || member == *head {
                    return unsupported("its substitution groups are too large, or hold themselves");
                }
                pending.extend(&direct[member.index()]);
                // Of what isn't understood nobody knows better.
                let is_unfit = unfit.has_element(member) || unfit.has_element(*head);
                let stands = match is_unfit {
                    true => Stands::Yes,
                    false => stands(member, *head, elements, types)?,
                };
                by_union |= stands == Stands::ByUnion;
                if stands != Stands::No {
                    found.push(member);
                }
            }
            found.sort_unstable();
            found.dedup();
            members[head.index()] = found;
        }
        Ok(Self { members, by_union })
    }

    /// Those that may stand in the place of an element, itself apart.
    pub(super) fn members(&self, element: ElementId) -> &[ElementId] {
        self.members.get(element.index()).map_or(&[], Vec::as_slice)
    }
}

/// Whether a member of a group may stand in the place of its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    No,
    Yes,
    /// Its type is one of the union that the type of the head is (section 3.14.6, Type Derivation OK (Simple)).
    ByUnion,
}

fn stands(member: ElementId, head: ElementId, elements: &[Element], types: &[Draft]) -> Result<Stands, Unsupported> {
    let (member, head) = (&elements[member.index()], &elements[head.index()]);
    if head.block.substitution {
        return Ok(Stands::No);
    }
    let mut used = Derivations::default();
    let mut blocked = head.block.union(types[head.ty.index()].block);
    let mut at = member.ty;
    while at != head.ty {
        let ty = &types[at.index()];
        if is_member(at, head.ty, types) {
            let is_blocked = used.extension && blocked.extension || blocked.restriction;
            return Ok(if is_blocked { Stands::No } else { Stands::ByUnion });
        }
        match ty.derivation {
            Derivation::Extension => used.extension = true,
            Derivation::Restriction => used.restriction = true,
        }
        if at != member.ty {
            blocked = blocked.union(ty.block);
        }
        let Some(base) = ty.base else {
            return unsupported("a member of a substitution group has a type that is not made from that of its head");
        };
        at = base;
    }
    let is_blocked = used.extension && blocked.extension || used.restriction && blocked.restriction;
    Ok(if is_blocked { Stands::No } else { Stands::Yes })
}

/// Whether a type is a member of a union, or of a union among its members.
fn is_member(ty: TypeId, union: TypeId, types: &[Draft]) -> bool {
    let (mut pending, mut seen) = (vec![union], HashSet::new());
    while let Some(union) = pending.pop() {
        for &member in types[union.index()].members.iter().filter(|member| seen.insert(**member)) {
            if member == ty {
                return true;
            }
            pending.push(member);
        }
    }
    false
}
