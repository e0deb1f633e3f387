//! Error texts on elements of one content model that are ambiguous or contradict each other: each names both places,
//! and is reported at the second one.

use super::BrokenSchemaRule;
use crate::schema::engine::namespace::{Namespace, NamespaceSet, Namespaces};
use crate::schema::source::Place;
use crate::schema::source::read::Reader;
use crate::schema::source::tree::NodeId;

/// The places of the elements and wildcards in content models, by the ids of their particles.
pub(super) struct Spots<'c> {
    pub(super) reader: &'c Reader<'c>,
    pub(super) namespaces: &'c Namespaces,
    pub(super) places: &'c [(u32, Place)],
}

/// Two particles that compete for an element, by their ids.
pub(super) enum Conflict {
    Elements(u32, u32),
    Wildcard { element: u32, wildcard: u32 },
    Wildcards(u32, u32),
}

impl Spots<'_> {
    /// The error for two particles that take the same element, with the name `local` unless both are wildcards (section
    /// 3.8.6).
    pub(super) fn ambiguous(&self, conflict: &Conflict, local: &str, namespace: Namespace) -> BrokenSchemaRule {
        let (&Conflict::Elements(one, other)
        | &Conflict::Wildcard { element: one, wildcard: other }
        | &Conflict::Wildcards(one, other)) = conflict;
        let Some((first, second)) = self.ordered(one, other) else {
            return BrokenSchemaRule::new(
                None,
                format!("an element <{local}> fits two declarations (Unique Particle Attribution)"),
            );
        };
        let there = self.reader.shown(first, second);
        let rule = match conflict {
            Conflict::Elements(..) if first == second => format!(
                "this <{local}> occurs twice in one content model, by a group or a type that is used twice: use it once"
            ),
            Conflict::Elements(..) => format!(
                "an element <{local}> fits both this declaration and the one at {there}, and nothing before it tells which (Unique Particle Attribution): {}",
                self.merged(first, second, local)
            ),
            Conflict::Wildcard { .. } => {
                let wildcard = self.place(other).unwrap_or(second);
                let fits = if wildcard == second {
                    format!("fits both this xs:any and its declaration at {there}")
                } else {
                    format!("fits both this declaration and the xs:any at {there}")
                };
                let advice = self.narrower(wildcard, local, namespace);
                format!(
                    "an element <{local}> {fits}, and nothing before it tells which (Unique Particle Attribution): {advice}"
                )
            }
            Conflict::Wildcards(..) => format!(
                "an element fits both this xs:any and the one at {there}, and nothing before it tells which (Unique Particle Attribution): write one xs:any, or namespaces that differ"
            ),
        };
        BrokenSchemaRule::new(Some(second.clone()), rule)
    }

    /// The error for two elements of one name with two types (section 3.8.6, cos-element-consistent).
    pub(super) fn two_types(&self, one: u32, other: u32, local: &str) -> BrokenSchemaRule {
        let Some((first, second)) = self.ordered(one, other) else {
            return BrokenSchemaRule::new(None, format!("the elements <{local}> of one content model have two types"));
        };
        let there = self.reader.shown(first, second);
        let ty = |place: &Place| self.reader.document(place).tree.get(place.node, "type").map(str::to_owned);
        let rule = match (ty(first), ty(second)) {
            (Some(before), Some(here)) if before != here => format!(
                "<{local}> has the type {here} here and {before} at {there}, and elements of one name in one content model have one type: write the same type at both, or give one of them another name"
            ),
            _ => format!(
                "<{local}> has another type here than at {there}, and elements of one name in one content model have one type: declare a type with a name below xs:schema and write type=\"…\" at both, or give one of them another name"
            ),
        };
        BrokenSchemaRule::new(Some(second.clone()), rule)
    }

    fn place(&self, particle: u32) -> Option<&Place> {
        let at = self.places.binary_search_by_key(&particle, |(id, _)| *id).ok()?;
        Some(&self.places[at].1)
    }

    /// The places of two particles, in document order.
    fn ordered(&self, one: u32, other: u32) -> Option<(&Place, &Place)> {
        let (one, other) = (self.place(one)?, self.place(other)?);
        let swap = one.document == other.document && one.node > other.node;
        Some(if swap { (other, one) } else { (one, other) })
    }

    /// The advice for two declarations that fit the same element.
    fn merged(&self, first: &Place, second: &Place, local: &str) -> String {
        let rename = "give one of them another name";
        if let Some(head) = [first, second].into_iter().map(|place| self.local(place)).find(|name| *name != local) {
            return format!(
                "<{local}> is in the substitutionGroup of <{head}> and may replace it everywhere: remove one of them"
            );
        }
        let Some((group, before, behind)) = self.parts_of_one_group(first, second) else { return rename.to_owned() };
        let tree = &self.reader.document(second).tree;
        let parts: Vec<NodeId> = tree.parts(group).collect();
        let at = |part: NodeId| parts.iter().position(|other| *other == part);
        let are_neighbours = at(before).zip(at(behind)).is_some_and(|(before, behind)| behind == before + 1);
        let are_whole = before == first.node && behind == second.node;
        match tree.node(group).local {
            "choice" | "all" if are_whole => format!("remove one of them, or {rename}"),
            "choice" => format!("write <{local}> once, and an xs:choice of what differs behind it"),
            "sequence" if are_whole && are_neighbours => {
                format!("write one <{local}>, with minOccurs and maxOccurs for both, or {rename}")
            }
            "sequence" => {
                format!("put a required element between them (minOccurs above 0), or {rename}")
            }
            _ => rename.to_owned(),
        }
    }

    /// The local name of the element that is declared or referred to at a place.
    fn local(&self, place: &Place) -> &str {
        let tree = &self.reader.document(place).tree;
        let name = tree.get(place.node, "name").or_else(|| tree.get(place.node, "ref")).unwrap_or_default();
        name.rsplit(':').next().unwrap_or_default()
    }

    /// The innermost group around two declarations, with the two parts of it that contain them.
    fn parts_of_one_group(&self, first: &Place, second: &Place) -> Option<(NodeId, NodeId, NodeId)> {
        if first.document != second.document {
            return None;
        }
        let tree = &self.reader.document(second).tree;
        let way = |node| tree.ancestors(node).collect::<Vec<NodeId>>();
        let (one, other) = (way(first.node), way(second.node));
        let group = *one.iter().skip(1).find(|node| other.contains(node))?;
        let below = |way: &[NodeId]| way.windows(2).find(|pair| pair[1] == group).map(|pair| pair[0]);
        Some((group, below(&one)?, below(&other)?))
    }

    /// The advice for a wildcard that takes an element with a declaration of its own.
    fn narrower(&self, wildcard: &Place, local: &str, namespace: Namespace) -> String {
        let others = NamespaceSet::other_than(self.namespaces.find(&wildcard.target));
        if others.contains(namespace) {
            let namespace = self.namespaces.name(namespace);
            return format!("list the namespaces that the xs:any takes in its 'namespace', and leave out {namespace}");
        }
        format!("write namespace=\"##other\" at the xs:any, so that it takes no <{local}>")
    }
}
