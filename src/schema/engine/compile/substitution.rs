use super::unfit::Unfit;
use super::{Draft, unsupported};
use crate::schema::engine::grammar::{Derivation, Derivations, Element, ElementId};
use crate::schema::engine::simple::Unsupported;

/// Which elements may stand in the place of others (XSD 1.0 part 1, section 3.3.6, Substitution Group OK).
#[derive(Debug, Default)]
pub(super) struct Substitutions(Vec<Vec<ElementId>>);

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
                if is_unfit || may_stand(member, *head, elements, types)? {
                    found.push(member);
                }
            }
            found.sort_unstable();
            found.dedup();
            members[head.index()] = found;
        }
        Ok(Self(members))
    }

    /// Those that may stand in the place of an element, itself apart.
    pub(super) fn members(&self, element: ElementId) -> &[ElementId] {
        self.0.get(element.index()).map_or(&[], Vec::as_slice)
    }
}

/// Whether nothing blocks a member of the group of a head.
fn may_stand(member: ElementId, head: ElementId, elements: &[Element], types: &[Draft]) -> Result<bool, Unsupported> {
    let (member, head) = (&elements[member.index()], &elements[head.index()]);
    if head.block.substitution {
        return Ok(false);
    }
    let mut used = Derivations::default();
    let mut blocked = head.block.union(types[head.ty.index()].block);
    let mut at = member.ty;
    while at != head.ty {
        let ty = &types[at.index()];
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
    Ok(!(used.extension && blocked.extension || used.restriction && blocked.restriction))
}
