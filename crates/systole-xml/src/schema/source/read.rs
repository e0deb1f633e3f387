//! The components of schema documents by their names.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::Place;
use super::documents::{Document, Documents};
use super::tree::NodeId;
use crate::schema::simple;
use crate::vocab::{QName, is_ncname, ns};

/// The components of all documents of a set, with their places.
pub(in crate::schema) struct Reader<'a> {
    documents: &'a Documents,
    components: [HashMap<Name, Vec<Place>>; Kind::COUNT],
    elements: Vec<(QName, Place)>,
    /// The original of each component in an `xs:redefine`.
    originals: HashMap<(usize, NodeId, Arc<str>), Place>,
    hidden: HashSet<(usize, NodeId, Arc<str>)>,
    /// Errors in an `xs:redefine`, with their places.
    misplaced: Vec<(Place, &'static str)>,
    /// Number of components of documents without a target that are repeated in the namespaces of further documents.
    copies: usize,
    /// The document at which that number was too large. Documents behind it were not read.
    crowd: Option<Place>,
    /// The namespaces that each document may refer to, beside its own.
    imported: HashMap<usize, HashSet<String>>,
}

/// The namespace and the local name.
pub(in crate::schema) type Name = (Arc<str>, String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::schema) enum Kind {
    Element,
    Type,
    Attribute,
    Group,
    AttributeGroup,
    Notation,
}

impl Kind {
    const COUNT: usize = Self::Notation as usize + 1;

    /// The kind in messages.
    pub(in crate::schema) fn words(self) -> &'static str {
        match self {
            Self::Element => "element",
            Self::Type => "type",
            Self::Attribute => "attribute",
            Self::Group => "group",
            Self::AttributeGroup => "attribute group",
            Self::Notation => "notation",
        }
    }
}

impl<'a> Reader<'a> {
    /// Maximum number of components that are repeated in further namespaces.
    pub(in crate::schema) const COPIES: usize = 10_000;

    /// Collects the components of all documents of a set, which make one schema.
    pub(in crate::schema) fn new(documents: &'a Documents) -> Self {
        let mut reader = Self {
            documents,
            components: Default::default(),
            elements: Vec::new(),
            originals: HashMap::new(),
            hidden: HashSet::new(),
            misplaced: Vec::new(),
            copies: 0,
            crowd: None,
            imported: HashMap::new(),
        };
        let mut seen = Seen::of(documents);
        let mut collected = HashSet::new();
        // Each document stands behind those that it redefines, so that repeated redefinitions apply in the right order.
        let mut redefinitions = Vec::new();
        for root in documents.roots() {
            let mut pending = vec![(root, seen.targets[root].clone())];
            while let Some((index, target)) = pending.pop() {
                if !seen.insert(index, &target) {
                    continue;
                }
                let document = documents.get(index);
                if !collected.insert(index) {
                    reader.copies += document.tree.outside_annotations().count();
                }
                if reader.copies > Self::COPIES {
                    reader.crowd = Some(Place { document: index, node: 0, target });
                    return reader;
                }
                reader.collect(document, index, &target, documents.is_given(index));
                redefinitions.push((index, target.clone()));
                for link in document.links.iter().rev().filter(|link| !link.is_repeated) {
                    for &to in link.to.iter().rev() {
                        let declared = &seen.targets[to];
                        let target = if declared.is_empty() && !link.import { &target } else { declared };
                        if !seen.has(to, target) {
                            pending.push((to, target.clone()));
                        }
                    }
                }
            }
        }
        for (index, target) in redefinitions.into_iter().rev() {
            reader.redefine(documents.get(index), index, &target);
        }
        reader
    }

    /// The global elements of the documents.
    pub(in crate::schema) fn elements(&self) -> &[(QName, Place)] {
        &self.elements
    }

    fn collect(&mut self, document: &Document, index: usize, target: &Arc<str>, own: bool) {
        let tree = &document.tree;
        for node in tree.parts(0) {
            if tree.node(node).local == "import" {
                let namespace = tree.get(node, "namespace").unwrap_or_default().to_owned();
                self.imported.entry(index).or_default().insert(namespace);
            }
            let (Some(kind), Some(name)) = (kind(tree.node(node).local), tree.get(node, "name")) else { continue };
            if is_built_in(kind, target, name) {
                continue;
            }
            let place = Place { document: index, node, target: target.clone() };
            if let (Kind::Element, true, Ok(qname)) = (kind, own, QName::new(target, name)) {
                self.elements.push((qname, place.clone()));
            }
            self.components[kind as usize].entry((target.clone(), name.to_owned())).or_default().push(place);
        }
    }

    /// Replaces components by those of `xs:redefine` (part 1, section 4.2.2).
    fn redefine(&mut self, document: &Document, index: usize, target: &Arc<str>) {
        let tree = &document.tree;
        let redefines = tree.parts(0).filter(|part| tree.node(*part).local == "redefine");
        let parts = redefines.flat_map(|redefine| tree.parts(redefine).map(move |node| (redefine, node)));
        let mut reached: Option<(NodeId, Vec<bool>)> = None;
        for (redefine, node) in parts {
            let (Some(kind), Some(name)) = (kind(tree.node(node).local), tree.get(node, "name")) else { continue };
            let place = Place { document: index, node, target: target.clone() };
            let places = self.components[kind as usize].entry((target.clone(), name.to_owned())).or_default();
            let original = places.iter().position(|known| !self.originals.contains_key(&key(known)));
            let original = original.or_else(|| places.len().checked_sub(1)).map(|at| places.remove(at));
            let reached = match &mut reached {
                Some((of, reached)) if *of == redefine => reached,
                slot => &mut slot.insert((redefine, self.documents.redefined_by(index, redefine))).1,
            };
            let wrong = match &original {
                None => Some("the redefined document has no component of this kind and name: correct the name"),
                Some(original) if !reached[original.document] => {
                    Some("the component is redefined twice, so that there would be two of its name: redefine it once")
                }
                // The original would be made from its own redefinition.
                Some(original) if reached[index] && self.originals.contains_key(&key(original)) => {
                    Some("documents that redefine each other derive the component from itself: redefine it once")
                }
                Some(_) => None,
            };
            self.misplaced.extend(wrong.map(|wrong| (place.clone(), wrong)));
            if let Some(original) = original {
                self.hidden.insert(key(&original));
                self.originals.insert(key(&place), original);
            }
            places.push(place);
        }
    }

    /// The document without a target that is included into too many namespaces. Documents behind it were not read.
    pub(in crate::schema) fn crowd(&self) -> Option<&Place> {
        self.crowd.as_ref()
    }

    /// The first component of an `xs:redefine` that doesn't redefine exactly one component, with the reason.
    pub(in crate::schema) fn misplaced_redefinition(&self) -> Option<&(Place, &'static str)> {
        self.misplaced.first()
    }

    /// Returns whether a component is redefined by another one, and so has no name of its own.
    pub(in crate::schema) fn is_hidden(&self, place: &Place) -> bool {
        self.hidden.contains(&key(place))
    }

    /// The component that a component of an `xs:redefine` redefines; `None` for any other component.
    pub(in crate::schema) fn original(&self, place: &Place) -> Option<&Place> {
        self.originals.get(&key(place))
    }

    /// Returns whether two components of a kind have one name.
    pub(in crate::schema) fn has_twins(&self, kind: Kind) -> bool {
        self.components[kind as usize].values().any(|places| places.len() > 1)
    }

    /// The components of a kind, each with its name, in the order of their documents.
    pub(in crate::schema) fn components(&self, kind: Kind) -> Vec<(&Name, &Place)> {
        let of_kind = self.components[kind as usize].iter();
        let mut places: Vec<_> =
            of_kind.flat_map(|(name, places)| places.iter().map(move |place| (name, place))).collect();
        places.sort_unstable_by(|(name, place), (other, at)| {
            (place.document, place.node, name).cmp(&(at.document, at.node, other))
        });
        places
    }

    /// The component that a reference at a place names. Inside of a redefinition, a reference to the component itself
    /// means its original.
    pub(in crate::schema) fn refer(&self, kind: Kind, name: &Name, from: &Place) -> Option<&Place> {
        let found = self.components[kind as usize].get(name)?.first()?;
        Some(self.within(found, from))
    }

    fn within<'s>(&'s self, found: &'s Place, from: &Place) -> &'s Place {
        if self.originals.is_empty() {
            return found;
        }
        // Goes from the last redefinition in a chain to the one that holds the reference.
        let mut at = found;
        loop {
            let Some(original) = self.originals.get(&key(at)) else { return found };
            let tree = &self.document(at).tree;
            if at.document == from.document && tree.ancestors(from.node).any(|node| node == at.node) {
                return original;
            }
            at = original;
        }
    }

    /// Returns whether a document may refer to a namespace: its own, or one that it imports.
    pub(in crate::schema) fn may_refer(&self, place: &Place, namespace: &str) -> bool {
        *place.target == *namespace
            || self.imported.get(&place.document).is_some_and(|imported| imported.contains(namespace))
    }

    /// The name of a component that is similar to an unknown one.
    pub(in crate::schema) fn nearest(&self, kind: Kind, name: &Name) -> Option<String> {
        let mut names: Vec<&str> = self.components[kind as usize].keys().map(|name| name.1.as_str()).collect();
        names.sort_unstable();
        nearest(&name.1, names.into_iter()).map(str::to_owned)
    }

    pub(in crate::schema) fn document(&self, place: &Place) -> &'a Document {
        self.documents.get(place.document)
    }

    /// A place as written in a text for another place: `line:column`, behind the name of its document if that is
    /// another one.
    pub(in crate::schema) fn shown(&self, place: &Place, from: &Place) -> String {
        let document = self.document(place);
        let at = document.position(place.node);
        if place.document == from.document { at.to_string() } else { format!("{}:{at}", document.name) }
    }

    /// The namespace and local name of a QName at a place.
    pub(in crate::schema) fn name(&self, place: &Place, qname: &str) -> Option<Name> {
        let (prefix, local) = qname.split_once(':').unwrap_or(("", qname));
        let namespace = self.document(place).tree.bound(place.node, prefix);
        let chameleon = namespace.is_empty() && prefix.is_empty() && self.document(place).target.is_empty();
        let namespace = if chameleon { place.target.clone() } else { namespace.clone() };
        is_ncname(local).then(|| (namespace, local.to_owned()))
    }
}

/// The documents that were read, each with its namespace there.
struct Seen {
    /// The namespace that each document declares.
    targets: Vec<Arc<str>>,
    /// Returns for each document whether it was read with that namespace.
    declared: Vec<bool>,
    /// The documents without a namespace that were read in that of another document.
    adopted: HashSet<(usize, Arc<str>)>,
}

impl Seen {
    fn of(documents: &Documents) -> Self {
        let targets: Vec<Arc<str>> = documents.all().map(|document| document.target.as_str().into()).collect();
        Self { declared: vec![false; targets.len()], targets, adopted: HashSet::new() }
    }

    fn is_declared(&self, document: usize, target: &Arc<str>) -> bool {
        Arc::ptr_eq(&self.targets[document], target) || self.targets[document] == *target
    }

    fn has(&self, document: usize, target: &Arc<str>) -> bool {
        match self.is_declared(document, target) {
            true => self.declared[document],
            false => self.adopted.contains(&(document, target.clone())),
        }
    }

    /// Adds a document; false if it was there.
    fn insert(&mut self, document: usize, target: &Arc<str>) -> bool {
        match self.is_declared(document, target) {
            true => !std::mem::replace(&mut self.declared[document], true),
            false => self.adopted.insert((document, target.clone())),
        }
    }
}

fn key(place: &Place) -> (usize, NodeId, Arc<str>) {
    (place.document, place.node, place.target.clone())
}

/// The known name that differs from `name` by the fewest letters, if they are few.
pub(in crate::schema) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const LONGEST: usize = 64;
    const MOST: usize = 2_000;
    let near = |other: &&str| other.len().abs_diff(name.len()) <= 2 && other.len() <= LONGEST;
    let distances = known.take(MOST).filter(near).map(|other| (distance(name, other), other));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= 2 && distance < name.len()).then_some(nearest)
}

/// Number of letters to change, add or remove, regardless of case (Wagner and Fischer, 1974).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, c) in one.chars().flat_map(char::to_lowercase).enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, d) in other.iter().enumerate() {
            let changed = before + usize::from(c != *d);
            before = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(before + 1);
        }
    }
    row[other.len()]
}

/// Returns whether every schema has a component: a built-in type, or an attribute such as `xsi:type`. The schema for schemas and
/// that of instances declare them again, for their readers.
fn is_built_in(kind: Kind, target: &str, name: &str) -> bool {
    match kind {
        Kind::Type => target == ns::XSD && (simple::is_xsd_type(name) || name == "anySimpleType"),
        Kind::Attribute => {
            target == ns::XSI && matches!(name, "type" | "nil" | "schemaLocation" | "noNamespaceSchemaLocation")
        }
        _ => false,
    }
}

fn kind(local: &str) -> Option<Kind> {
    match local {
        "element" => Some(Kind::Element),
        "complexType" | "simpleType" => Some(Kind::Type),
        "attribute" => Some(Kind::Attribute),
        "group" => Some(Kind::Group),
        "attributeGroup" => Some(Kind::AttributeGroup),
        "notation" => Some(Kind::Notation),
        _ => None,
    }
}
