//! Substitution groups.

use super::derive::is_derived;
use super::{BrokenSchemaRule, Draft, wrong};
use crate::schema::engine::grammar::{Derivation, Derivations, Element, ElementId};
use crate::schema::source::Place;

/// The elements that may substitute each element (XSD 1.0 part 1, section 3.3.6, Substitution Group OK).
#[derive(Debug, Default)]
pub(super) struct Substitutions(Vec<Vec<ElementId>>);

impl Substitutions {
    /// Computes the groups from pairs of a member and its head. `declared` has, for each element, its place and the
    /// derivations that its `final` excludes.
    pub(super) fn new(
        heads: &[(ElementId, ElementId)],
        elements: &[Element],
        types: &[Draft],
        declared: &[(Place, Derivations)],
    ) -> Result<Self, BrokenSchemaRule> {
        /// The greatest number of members of all groups, including members of nested groups.
        const MOST: usize = 100_000;
        if heads.is_empty() {
            return Ok(Self::default());
        }
        let mut direct: Vec<Vec<ElementId>> = vec![Vec::new(); elements.len()];
        for (member, head) in heads {
            direct[head.index()].push(*member);
            let (place, _) = &declared[member.index()];
            let (_, last) = &declared[head.index()];
            let ty = |id: &ElementId| elements[id.index()].ty;
            if !is_derived(types, ty(member), ty(head), *last) {
                let rule = match is_derived(types, ty(member), ty(head), Derivations::default()) {
                    true => {
                        "the 'final' of the head of the substitution group forbids a type that is derived in this way"
                    }
                    false => "the type of a member of a substitution group must be derived from the type of its head",
                };
                return wrong(rule).map_err(|wrong: BrokenSchemaRule| wrong.at(place));
            }
        }
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
                let at = |wrong: BrokenSchemaRule| wrong.at(&declared[head.index()].0);
                if member == *head {
                    return wrong("a substitution group contains its own head").map_err(at);
                }
                if count > MOST {
                    return wrong(format!("substitution groups have more than {MOST} members, or form a cycle"))
                        .map_err(at);
                }
                pending.extend(&direct[member.index()]);
                if may_stand(member, *head, elements, types) {
                    found.push(member);
                }
            }
            found.sort_unstable();
            found.dedup();
            members[head.index()] = found;
        }
        Ok(Self(members))
    }

    /// Reports whether no element may substitute another one.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }

    /// The elements that may substitute an element, without the element itself.
    pub(super) fn members(&self, element: ElementId) -> &[ElementId] {
        self.0.get(element.index()).map_or(&[], Vec::as_slice)
    }
}

/// Reports whether nothing blocks a member from substituting its head. The type of the member derives from that of the
/// head.
fn may_stand(member: ElementId, head: ElementId, elements: &[Element], types: &[Draft]) -> bool {
    let (member, head) = (&elements[member.index()], &elements[head.index()]);
    if head.block.substitution {
        return false;
    }
    let mut used = Derivations::default();
    let mut blocked = head.block.union(types[head.ty.index()].block);
    let mut at = member.ty;
    while at != head.ty {
        let ty = &types[at.index()];
        if types[head.ty.index()].members.contains(&at) {
            used.restriction = true;
            break;
        }
        match ty.derivation {
            Derivation::Extension => used.extension = true,
            Derivation::Restriction => used.restriction = true,
        }
        if at != member.ty {
            blocked = blocked.union(ty.block);
        }
        let Some(base) = ty.base else { break };
        at = base;
    }
    !(used.extension && blocked.extension || used.restriction && blocked.restriction)
}
