use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::documents::{Document, Documents};
use super::tree::NodeId;
use crate::vocab::{QName, is_ncname};

/// The components of a document and of all that it leads to, where they stand.
pub(in crate::schema) struct Reader<'a> {
    documents: &'a Documents,
    components: [HashMap<Name, Vec<Place>>; Kind::COUNT],
    elements: Vec<(QName, Place)>,
    /// The original of each component in an `xs:redefine`.
    originals: HashMap<(usize, NodeId, Arc<str>), Place>,
    hidden: HashSet<(usize, NodeId, Arc<str>)>,
    /// Mistakes in an `xs:redefine`, with their places.
    misplaced: Vec<(Place, &'static str)>,
    /// Components that a document without a target has again, in the namespaces of further documents that include it.
    copies: usize,
    /// The document of which there are too many; what is behind it was not read.
    crowd: Option<Place>,
    /// The namespaces that each document may refer to, its own apart.
    imported: HashMap<usize, HashSet<String>>,
}

/// A component, with the namespace that its document has here: an included one without target takes that of
/// the document that includes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::schema) struct Place {
    pub(in crate::schema) document: usize,
    pub(in crate::schema) node: NodeId,
    pub(in crate::schema) target: Arc<str>,
}

/// Namespace and local name.
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

    /// The kind's name in messages.
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
    /// Most components that are read again in further namespaces.
    pub(in crate::schema) const COPIES: usize = 10_000;

    /// The components of all documents that were given together, which make one schema.
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
        let (mut seen, mut collected) = (HashSet::new(), HashSet::new());
        // Each document behind those that it redefines, so that what is redefined twice is so in the right order.
        let mut redefinitions = Vec::new();
        for root in documents.roots() {
            let target: Arc<str> = documents.get(root).target.as_str().into();
            let mut pending = vec![(root, target)];
            while let Some((index, target)) = pending.pop() {
                if !seen.insert((index, target.clone())) {
                    continue;
                }
                let document = documents.get(index);
                if !collected.insert(index) {
                    reader.copies += document.tree.parts(0).count();
                }
                if reader.copies > Self::COPIES {
                    reader.crowd = Some(Place { document: index, node: 0, target });
                    return reader;
                }
                reader.collect(document, index, &target, documents.is_given(index));
                redefinitions.push((index, target.clone()));
                for link in document.links.iter().rev() {
                    for &to in link.to.iter().rev() {
                        let declared: Arc<str> = documents.get(to).target.as_str().into();
                        let target = if declared.is_empty() && !link.import { target.clone() } else { declared };
                        pending.push((to, target));
                    }
                }
            }
        }
        for (index, target) in redefinitions.into_iter().rev() {
            reader.redefine(documents.get(index), index, &target);
        }
        reader
    }

    /// The global elements of the document and of those that it includes.
    pub(in crate::schema) fn elements(&self) -> Vec<(QName, &Place)> {
        self.elements.iter().map(|(qname, place)| (qname.clone(), place)).collect()
    }

    fn collect(&mut self, document: &Document, index: usize, target: &Arc<str>, own: bool) {
        let tree = &document.tree;
        for node in tree.parts(0) {
            if tree.node(node).local == "import" {
                let namespace = tree.get(node, "namespace").unwrap_or_default().to_owned();
                self.imported.entry(index).or_default().insert(namespace);
            }
            let (Some(kind), Some(name)) = (kind(tree.node(node).local), tree.get(node, "name")) else { continue };
            let place = Place { document: index, node, target: target.clone() };
            if let (Kind::Element, true, Ok(qname)) = (kind, own, QName::new(target, name)) {
                self.elements.push((qname, place.clone()));
            }
            self.components[kind as usize].entry((target.clone(), name.to_owned())).or_default().push(place);
        }
    }

    /// Puts the components of `xs:redefine` into the place of what they redefine (part 1, section 4.2.2).
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
                None => Some("it redefines what the redefined document doesn't have"),
                Some(original) if !reached[original.document] => {
                    Some("it is redefined twice, so that there would be two of this name: redefine it once")
                }
                // What it redefines would be made from it.
                Some(original) if reached[index] && self.originals.contains_key(&key(original)) => {
                    Some("documents that redefine each other make it from itself")
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

    /// A document without a target that is included into too many namespaces: what is behind it was not read.
    pub(in crate::schema) fn crowd(&self) -> Option<&Place> {
        self.crowd.as_ref()
    }

    /// A component in an `xs:redefine` that doesn't redefine what is there once, and why.
    pub(in crate::schema) fn misplaced_redefinition(&self) -> Option<&(Place, &'static str)> {
        self.misplaced.first()
    }

    /// Whether a component is redefined by another one, and has no name any more.
    pub(in crate::schema) fn is_hidden(&self, place: &Place) -> bool {
        self.hidden.contains(&key(place))
    }

    /// Whether a component stands in an `xs:redefine`, and what it redefines.
    pub(in crate::schema) fn original(&self, place: &Place) -> Option<&Place> {
        self.originals.get(&key(place))
    }

    /// The components of a kind with a name each, in the order of their documents.
    pub(in crate::schema) fn components(&self, kind: Kind) -> Vec<(&Name, &Place)> {
        let of_kind = self.components[kind as usize].iter();
        let mut places: Vec<_> =
            of_kind.flat_map(|(name, places)| places.iter().map(move |place| (name, place))).collect();
        places.sort_unstable_by(|(name, place), (other, at)| {
            (place.document, place.node, name).cmp(&(at.document, at.node, other))
        });
        places
    }

    /// The component that a reference at a place names: inside of a redefinition, a reference to itself is one to what
    /// it redefines.
    pub(in crate::schema) fn refer(&self, kind: Kind, name: &Name, from: &Place) -> Option<&Place> {
        let found = self.components[kind as usize].get(name)?.first()?;
        Some(self.within(found, from))
    }

    fn within<'s>(&'s self, found: &'s Place, from: &Place) -> &'s Place {
        if self.originals.is_empty() {
            return found;
        }
        // From the last of a chain of redefinitions to the one that the reference stands in.
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

    /// Whether a document may refer to a namespace: its own, or one that it imports.
    pub(in crate::schema) fn may_refer(&self, place: &Place, namespace: &str) -> bool {
        *place.target == *namespace
            || self.imported.get(&place.document).is_some_and(|imported| imported.contains(namespace))
    }

    /// A name of a component that is much like one that there is not.
    pub(in crate::schema) fn nearest(&self, kind: Kind, name: &Name) -> Option<String> {
        let mut names: Vec<&str> = self.components[kind as usize].keys().map(|name| name.1.as_str()).collect();
        names.sort_unstable();
        nearest(&name.1, names.into_iter()).map(str::to_owned)
    }

    pub(in crate::schema) fn document(&self, place: &Place) -> &'a Document {
        self.documents.get(place.document)
    }

    /// A place as a text at another one names it: `line:column`, behind the document where that is another one.
    pub(in crate::schema) fn shown(&self, place: &Place, from: &Place) -> String {
        let document = self.document(place);
        let at = document.position(place.node);
        if place.document == from.document { at.to_string() } else { format!("{}:{at}", document.name) }
    }

    /// The namespace and local name that a QName means at a place.
    pub(in crate::schema) fn name(&self, place: &Place, qname: &str) -> Option<Name> {
        let (prefix, local) = qname.split_once(':').unwrap_or(("", qname));
        let namespace = self.document(place).tree.bound(place.node, prefix);
        let chameleon = namespace.is_empty() && prefix.is_empty() && self.document(place).target.is_empty();
        let namespace = if chameleon { place.target.clone() } else { namespace.clone() };
        is_ncname(local).then(|| (namespace, local.to_owned()))
    }
}

fn key(place: &Place) -> (usize, NodeId, Arc<str>) {
    (place.document, place.node, place.target.clone())
}

/// The name that differs from another one by the fewest letters, if they are few.
pub(in crate::schema) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const LONGEST: usize = 64;
    const MOST: usize = 2_000;
    let near = |other: &&str| other.len().abs_diff(name.len()) <= 2 && other.len() <= LONGEST;
    let distances = known.take(MOST).filter(near).map(|other| (distance(name, other), other));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= 2 && distance < name.len()).then_some(nearest)
}

/// Letters to change, add or take away, case apart (Wagner and Fischer, 1974).
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
