use std::cell::Cell;

use super::{Compiler, Draft, DraftContent, unsupported};
use crate::schema::engine::grammar::TypeId;
use crate::schema::engine::simple::{Facet, Identity, Prefixes, SimpleType, Unsupported};
use crate::schema::xsd::read::Place;
use crate::schema::xsd::tree::{NodeId, Tree};

impl Compiler<'_, '_> {
    /// A simple type definition.
    pub(super) fn simple_draft(&mut self, place: &Place) -> Result<Draft, Unsupported> {
        let draft = self.written_simple(place)?;
        match &draft.content {
            DraftContent::Simple(simple) if simple.identity() == Identity::Mixed => {
                unsupported(format!("the type '{}' mixes IDs with other values", draft.label))
            }
            _ => Ok(draft),
        }
    }

    fn written_simple(&mut self, place: &Place) -> Result<Draft, Unsupported> {
        let tree = self.tree(place);
        let label = tree.get(place.node, "name").unwrap_or_default().into();
        let Some(node) = tree.parts(place.node).find(|part| tree.node(*part).local != "annotation") else {
            return unsupported("a simple type says nothing");
        };
        let derived = Place { node, ..place.clone() };
        match tree.node(node).local.as_str() {
            "restriction" => {
                let base = match tree.get(node, "base") {
                    Some(base) => self.named_type(&derived, base)?,
                    None => self.inner_type(&derived)?,
                };
                let simple = restrict(&self.simple_of(base)?, tree, node)?;
                Ok(Draft::simple(label, base, simple))
            }
            "list" => {
                let item = match tree.get(node, "itemType") {
                    Some(item) => self.named_type(&derived, item)?,
                    None => self.inner_type(&derived)?,
                };
                let list = SimpleType::list(&self.simple_of(item)?)?;
                Ok(Draft::simple(label, self.builtin("anySimpleType")?, list))
            }
            "union" => {
                let mut members = Vec::new();
                for member in tree.get(node, "memberTypes").unwrap_or_default().split_ascii_whitespace() {
                    members.push(self.named_type(&derived, member)?);
                }
                for inner in inner_types(tree, node) {
                    members.push(self.type_at(&Place { node: inner, ..place.clone() })?);
                }
                let simples = members.iter().map(|member| self.simple_of(*member)).collect::<Result<_, _>>()?;
                let draft = Draft::simple(label, self.builtin("anySimpleType")?, SimpleType::union(simples)?);
                Ok(Draft { members, ..draft })
            }
            other => unsupported(format!("a simple type is made by xs:{other}")),
        }
    }

    /// The simple type that a type is.
    pub(super) fn simple_of(&mut self, id: TypeId) -> Result<SimpleType, Unsupported> {
        self.read(id)?;
        self.unfit.check_type(id)?;
        match &self.read(id)?.content {
            DraftContent::Simple(simple) => Ok(simple.clone()),
            DraftContent::Empty | DraftContent::Children { .. } => {
                unsupported("a complex type stands where a simple one must be")
            }
        }
    }

    /// The one type that is defined inside of a restriction or list.
    pub(super) fn inner_type(&mut self, place: &Place) -> Result<TypeId, Unsupported> {
        match inner_types(self.tree(place), place.node).next() {
            Some(node) => self.type_at(&Place { node, ..place.clone() }),
            None => unsupported("a simple type has no base"),
        }
    }
}

fn inner_types(tree: &Tree, node: NodeId) -> impl Iterator<Item = NodeId> {
    tree.parts(node).filter(|part| tree.node(*part).local == "simpleType")
}

/// A type with the facets of a restriction.
pub(super) fn restrict(base: &SimpleType, tree: &Tree, node: NodeId) -> Result<SimpleType, Unsupported> {
    let facets: Vec<NodeId> = tree.parts(node).filter(|part| is_facet(&tree.node(*part).local)).collect();
    let scopes: Vec<Scope> = facets.iter().map(|facet| Scope::new(tree, *facet)).collect();
    let facets: Vec<Facet> = facets
        .iter()
        .zip(&scopes)
        .map(|(facet, scope)| Facet {
            name: &tree.node(*facet).local,
            value: tree.untrimmed(*facet, "value").unwrap_or_default(),
            prefixes: scope,
        })
        .collect();
    base.restrict(&facets)
}

/// Whatever stands in a restriction and is none of the other things that may.
fn is_facet(local: &str) -> bool {
    !matches!(local, "annotation" | "simpleType" | "attribute" | "attributeGroup" | "anyAttribute")
}

/// The prefixes at a place in a document.
pub(super) struct Scope<'a> {
    tree: &'a Tree,
    node: NodeId,
    was_asked: Cell<bool>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(tree: &'a Tree, node: NodeId) -> Self {
        Self { tree, node, was_asked: Cell::new(false) }
    }

    /// Whether a value was a qualified name.
    pub(super) fn was_asked(&self) -> bool {
        self.was_asked.get()
    }
}

impl Prefixes for Scope<'_> {
    fn namespace(&self, prefix: &str) -> Option<&str> {
        self.was_asked.set(true);
        let namespace = self.tree.resolve(self.node, prefix);
        (prefix.is_empty() || !namespace.is_empty()).then_some(namespace)
    }
}
