//! What libxml2 would spend on the content models of a schema, found out before it tries.
//!
//! It builds an automaton for each complex type, with all that its groups and its base hold, and then compares the
//! transitions that leave a state with each other, to see that no two compete. Groups that hold another one twice
//! double their particles with each level; of n optional elements in a row, which may all follow each other, about
//! n³ / 3 transitions are compared. A schema is trusted, but must not keep an organism from ever starting.
//!
//! What it does not do: count the members of substitution groups.

use std::collections::HashMap;

use super::read::{Kind, Place, Reader};
use super::tree::{NodeId, Tree};
use crate::schema::contract::DocumentProblem;
use crate::schema::pattern;

/// The most that the content models of one schema may weigh together, in comparisons: about two seconds.
const MOST: u64 = 100_000_000;

/// What a particle costs by itself, in comparisons.
const PARTICLE: u64 = 256;

/// Groups and types may be so deep inside each other.
const DEEPEST: usize = 256;

/// The first place with which a schema is too large to be checked, and what is too large there.
pub(super) fn too_large(reader: &Reader) -> Option<(Place, DocumentProblem)> {
    let mut scale = Scale { reader, known: HashMap::new(), depth: 0 };
    let mut total: u64 = 0;
    let kinds = [Kind::Type, Kind::Element, Kind::Group, Kind::Attribute, Kind::AttributeGroup];
    for (_, component) in kinds.into_iter().flat_map(|kind| reader.components(kind)) {
        let tree = &reader.document(component).tree;
        let mut pending = vec![component.node];
        while let Some(node) = pending.pop() {
            pending.extend(tree.parts(node));
            if tree.node(node).local == "pattern" && tree.get(node, "value").is_some_and(pattern::is_too_large) {
                return Some((Place { node, ..component.clone() }, DocumentProblem::Pattern));
            }
            if tree.node(node).local == "complexType" {
                let place = Place { node, ..component.clone() };
                total = total.saturating_add(scale.known(&place).comparisons);
                if total > MOST {
                    return Some((place, DocumentProblem::TooLarge));
                }
            }
        }
    }
    None
}

/// An automaton between two states, which has no silent transitions left.
#[derive(Debug, Clone, Copy)]
struct Weight {
    comparisons: u64,
    /// Transitions that leave its first state.
    first: u64,
    /// Whether it may be passed without an element.
    nullable: bool,
    /// States from which nothing has to stand before its end, its last one apart; and the transitions that leave them.
    open: u64,
    leaving: u64,
}

struct Scale<'r, 'a> {
    reader: &'r Reader<'a>,
    /// Types and groups, by document and node. One that is being weighed weighs nothing: libxml refuses a circle.
    known: HashMap<(usize, NodeId), Weight>,
    depth: usize,
}

impl Weight {
    const EMPTY: Self = Self { comparisons: 0, first: 0, nullable: true, open: 0, leaving: 0 };
    const LEAF: Self = Self { comparisons: PARTICLE, first: 1, nullable: false, open: 0, leaving: 0 };
    const TOO_DEEP: Self = Self { comparisons: u64::MAX, ..Self::EMPTY };

    /// The transitions of something else leave its open states too.
    fn extended(self, by: u64) -> Self {
        let more = self.leaving.saturating_mul(2).saturating_add(by.saturating_mul(self.open)).saturating_mul(by);
        let leaving = self.leaving.saturating_add(by.saturating_mul(self.open));
        Self { comparisons: self.comparisons.saturating_add(more), leaving, ..self }
    }

    fn then(self, next: Self) -> Self {
        let before = self.extended(next.first);
        let (open, leaving) = if next.nullable { (before.open, before.leaving) } else { (0, 0) };
        Self {
            comparisons: before.comparisons.saturating_add(next.comparisons),
            first: if self.nullable { self.first.saturating_add(next.first) } else { self.first },
            nullable: self.nullable && next.nullable,
            open: next.open.saturating_add(open),
            leaving: next.leaving.saturating_add(leaving),
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            // All transitions of both leave the same state.
            comparisons: self.comparisons.saturating_add(other.comparisons).saturating_add(self.first),
            first: self.first.saturating_add(other.first),
            nullable: self.nullable || other.nullable,
            open: self.open.saturating_add(other.open),
            leaving: self.leaving.saturating_add(other.leaving),
        }
    }

    fn occurring(self, tree: &Tree, node: NodeId) -> Self {
        let repeats = tree.get(node, "maxOccurs").is_some_and(|max| !matches!(max, "0" | "1"));
        let optional = tree.get(node, "minOccurs").is_some_and(|min| min.bytes().all(|byte| byte == b'0'));
        let weight = if repeats { self.extended(self.first) } else { self };
        if !optional || weight.nullable {
            return weight;
        }
        let (open, leaving) = (weight.open.saturating_add(1), weight.leaving.saturating_add(weight.first));
        Self { nullable: true, open, leaving, ..weight }
    }
}

impl Scale<'_, '_> {
    /// A type or a group that others may refer to.
    fn known(&mut self, place: &Place) -> Weight {
        let key = (place.document, place.node);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        self.known.insert(key, Weight::EMPTY);
        let weight = self.parts(place).into_iter().fold(Weight::EMPTY, Weight::then);
        self.known.insert(key, weight);
        weight
    }

    /// What the particles in a component weigh.
    fn parts(&mut self, place: &Place) -> Vec<Weight> {
        if self.depth >= DEEPEST {
            return vec![Weight::TOO_DEEP];
        }
        self.depth += 1;
        let tree = &self.reader.document(place).tree;
        let part = |node| self.part(&Place { node, ..place.clone() });
        let weights = tree.parts(place.node).map(part).collect();
        self.depth -= 1;
        weights
    }

    fn part(&mut self, place: &Place) -> Weight {
        let reader = self.reader;
        let tree = &reader.document(place).tree;
        let weight = match tree.node(place.node).local.as_str() {
            "element" | "any" => Weight::LEAF,
            "sequence" | "complexContent" | "restriction" => {
                self.parts(place).into_iter().fold(Weight::EMPTY, Weight::then)
            }
            "choice" | "all" => self.parts(place).into_iter().reduce(Weight::or).unwrap_or(Weight::EMPTY),
            "group" => self.referred(Kind::Group, place, "ref"),
            "extension" => {
                let base = self.referred(Kind::Type, place, "base");
                self.parts(place).into_iter().fold(base, Weight::then)
            }
            _ => return Weight::EMPTY,
        };
        weight.occurring(tree, place.node)
    }

    fn referred(&mut self, kind: Kind, place: &Place, attribute: &str) -> Weight {
        let reader = self.reader;
        let name = reader.document(place).tree.get(place.node, attribute).and_then(|name| reader.name(place, name));
        match name.and_then(|name| reader.find(kind, &name, place.node)) {
            Some(found) => self.known(found),
            None => Weight::EMPTY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::xsd::XsdDocument;
    use crate::schema::xsd::documents::Documents;

    fn is_too_large(components: &str) -> bool {
        let text = format!(
            "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns='urn:t' targetNamespace='urn:t'>{components}</xs:schema>"
        );
        let documents = Documents::new(&[XsdDocument { name: String::new(), text }]).unwrap();
        too_large(&Reader::new(&documents, 0)).is_some()
    }

    fn elements(count: usize, attributes: &str) -> String {
        (0..count).map(|n| format!("<xs:element name='e{n}' {attributes}/>")).collect()
    }

    fn of_type(particle: &str) -> bool {
        is_too_large(&format!("<xs:complexType name='t'>{particle}</xs:complexType>"))
    }

    #[test]
    fn what_libxml_checks_in_no_time_is_not_too_large() {
        for particle in [
            format!("<xs:sequence>{}</xs:sequence>", elements(5_000, "")),
            format!("<xs:sequence>{}</xs:sequence>", elements(300, "minOccurs='0' maxOccurs='unbounded'")),
            format!("<xs:choice minOccurs='0' maxOccurs='unbounded'>{}</xs:choice>", elements(5_000, "")),
            format!("<xs:all>{}</xs:all>", elements(1_000, "minOccurs='0'")),
            format!("<xs:sequence maxOccurs='100000'>{}</xs:sequence>", elements(9, "maxOccurs='4000000'")),
        ] {
            assert!(!of_type(&particle), "{}", &particle[..80]);
        }
    }

    #[test]
    fn what_libxml_would_not_end_with_is_too_large() {
        assert!(of_type(&format!("<xs:sequence>{}</xs:sequence>", elements(1_000, "minOccurs='0'"))));
        let doubled = |n: usize| {
            let below = format!("<xs:group ref='g{}'/>", n - 1).repeat(2);
            format!("<xs:group name='g{n}'><xs:sequence>{below}</xs:sequence></xs:group>")
        };
        let leaf = "<xs:group name='g0'><xs:sequence><xs:element name='a'/></xs:sequence></xs:group>";
        let groups = |levels: usize| {
            let groups: String = (1..=levels).map(doubled).collect();
            format!("{leaf}{groups}<xs:complexType name='t'><xs:group ref='g{levels}'/></xs:complexType>")
        };
        assert_eq!([8, 40, 5_000].map(|levels| is_too_large(&groups(levels))), [false, true, true]);
    }

    #[test]
    fn a_pattern_may_not_count_without_an_end() {
        let restricted = |pattern: &str| {
            is_too_large(&format!(
                "<xs:simpleType name='t'><xs:restriction base='xs:string'><xs:pattern value='{pattern}'/></xs:restriction></xs:simpleType>"
            ))
        };
        let patterns = [r"\p{Lu}{1,1000}", "(a{0,99}){0,99}", "((((a{0,1000}){0,1000}){0,1000}){0,1000})*"];
        assert_eq!(patterns.map(restricted), [false, false, true]);
    }

    #[test]
    fn an_extension_weighs_what_it_extends() {
        let part = |from: usize| {
            let elements = (from..from + 400).map(|n| format!("<xs:element name='e{n}' minOccurs='0'/>"));
            format!("<xs:sequence>{}</xs:sequence>", elements.collect::<String>())
        };
        let base = format!("<xs:complexType name='base'>{}</xs:complexType>", part(0));
        let extension = format!("<xs:extension base='base'>{}</xs:extension>", part(400));
        assert!(!is_too_large(&base));
        assert!(is_too_large(&format!(
            "{base}<xs:complexType name='t'><xs:complexContent>{extension}</xs:complexContent></xs:complexType>"
        )));
        let circle =
            "<xs:complexType name='t'><xs:complexContent><xs:extension base='t'/></xs:complexContent></xs:complexType>";
        assert!(!is_too_large(circle));
    }
}
