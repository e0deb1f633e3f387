use std::sync::Arc;

use super::namespace::{Namespace, NamespaceSet, Namespaces};
use super::simple::SimpleType;

/// A compiled schema: all components of a set of documents that refer to each other.
#[derive(Debug)]
pub(in crate::schema) struct Grammar {
    pub(super) namespaces: Namespaces,
    /// The names that edges and attributes refer to.
    pub(super) names: Vec<Name>,
    pub(super) elements: Vec<Element>,
    pub(super) types: Vec<Type>,
    pub(super) global_elements: NameMap<ElementId>,
    pub(super) global_attributes: NameMap<Attribute>,
    /// Those that `xsi:type` can name, built-in ones included.
    pub(super) global_types: NameMap<TypeId>,
    /// `xs:anyType`.
    pub(super) any: TypeId,
    pub(super) constraints: Vec<Constraint>,
}

/// An expanded name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name {
    pub(super) local: Box<str>,
    pub(super) namespace: Namespace,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $visibility:vis $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
            $visibility struct $name(pub(super) u32);

            impl $name {
                pub(super) fn new(index: usize) -> Self {
                    Self(u32::try_from(index).expect("a schema has fewer than 2^32 components"))
                }

                #[inline]
                pub(super) fn index(self) -> usize {
                    self.0 as usize
                }
            }
        )*
    };
}

ids! {
    /// A name, by its place in the grammar.
    pub(super) NameId;
    /// An element declaration, by its place in the grammar.
    pub(in crate::schema) ElementId;
    /// A type definition, by its place in the grammar.
    pub(super) TypeId;
    /// A state of a content model.
    pub(super) StateId;
}

/// An element declaration.
#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) name: NameId,
    pub(super) ty: TypeId,
    pub(super) nillable: bool,
    pub(super) is_abstract: bool,
    /// Its disallowed substitutions.
    pub(super) block: Derivations,
    pub(super) value: Option<ValueConstraint>,
    /// Identity constraints of the element, by their place in the grammar.
    pub(super) constraints: std::ops::Range<u32>,
}

/// An identity constraint (XSD 1.0 part 1, section 3.11).
#[derive(Debug)]
pub(super) struct Constraint {
    pub(super) label: Box<str>,
    pub(super) kind: ConstraintKind,
    pub(super) selector: Vec<Steps>,
    pub(super) fields: Vec<Vec<Steps>>,
    /// Whether an `xs:keyref` refers to it.
    pub(super) is_referred: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConstraintKind {
    Unique,
    Key,
    /// With the place of what it refers to.
    Keyref(u32),
}

/// One path of a selector or field.
#[derive(Debug, Clone)]
pub(super) struct Steps {
    /// Whether it begins with `.//`.
    pub(super) anywhere: bool,
    pub(super) children: Vec<NameTest>,
    /// Whether it ends with an attribute.
    pub(super) attribute: Option<NameTest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NameTest {
    Any,
    Namespace(Namespace),
    Name(Name),
}

impl NameTest {
    #[inline]
    pub(super) fn allows(&self, namespace: Namespace, local: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Namespace(known) => *known == namespace,
            Self::Name(name) => name.is(namespace, local),
        }
    }
}

/// `default` or `fixed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueConstraint {
    pub(super) fixed: bool,
    pub(super) text: Box<str>,
    /// The text that equal values share, where that takes the prefixes of the schema.
    pub(super) key: Option<Box<str>>,
}

/// A type definition, simple or complex.
#[derive(Debug)]
pub(super) struct Type {
    /// As a person would write it; empty for one without a name.
    pub(super) label: Box<str>,
    /// `None` for `xs:anyType` alone.
    pub(super) base: Option<TypeId>,
    pub(super) derivation: Derivation,
    /// The members of a union.
    pub(super) members: Vec<TypeId>,
    pub(super) is_abstract: bool,
    /// Its prohibited substitutions.
    pub(super) block: Derivations,
    pub(super) attributes: Attributes,
    pub(super) content: Content,
}

/// How a type is made from its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Derivation {
    Extension,
    Restriction,
}

impl StateId {
    /// Where a content model begins.
    pub(super) const START: Self = Self(0);
}

/// A set of ways to stand for something else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Derivations {
    pub(super) extension: bool,
    pub(super) restriction: bool,
    pub(super) substitution: bool,
    pub(super) list: bool,
    pub(super) union: bool,
}

/// The attributes of a complex type.
#[derive(Debug, Clone, Default)]
pub(super) struct Attributes {
    pub(super) uses: Vec<AttributeUse>,
    /// The places of more than [`FEW`] of them, in the order of their names.
    pub(super) by_name: Vec<u32>,
    /// How many of them are required.
    pub(super) required: u32,
    /// Whether one that is left out has a value that refers to an ID.
    pub(super) refers: bool,
    pub(super) wildcard: Option<Wildcard>,
}

impl Attributes {
    pub(super) fn find(&self, namespace: Namespace, local: &str) -> Option<&AttributeUse> {
        if self.by_name.is_empty() {
            return self.uses.iter().find(|used| used.name.is(namespace, local));
        }
        let used = |place: &u32| &self.uses[*place as usize];
        let found = self.by_name.binary_search_by(|place| used(place).name.order(namespace, local));
        found.ok().map(|at| used(&self.by_name[at]))
    }
}

#[derive(Debug, Clone)]
pub(super) struct AttributeUse {
    pub(super) name: Name,
    /// What its author says of it.
    pub(super) doc: Option<Arc<str>>,
    pub(super) required: bool,
    pub(super) attribute: Attribute,
}

/// What an attribute holds.
#[derive(Debug, Clone)]
pub(super) struct Attribute {
    pub(super) ty: SimpleType,
    pub(super) id: TypeId,
    pub(super) value: Option<ValueConstraint>,
}

impl Attribute {
    pub(super) fn fixed(&self) -> Option<&str> {
        self.value.as_ref().filter(|value| value.fixed).map(|value| &*value.text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wildcard {
    pub(super) namespaces: NamespaceSet,
    pub(super) process: ProcessContents,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessContents {
    Strict,
    Lax,
    Skip,
}

impl ProcessContents {
    /// Whether it checks less than another one.
    pub(super) fn is_looser(self, than: Self) -> bool {
        let strength = |process| match process {
            Self::Strict => 2,
            Self::Lax => 1,
            Self::Skip => 0,
        };
        strength(self) < strength(than)
    }
}

/// What stands between the tags.
#[derive(Debug)]
pub(super) enum Content {
    Empty,
    Simple(SimpleType),
    Sequence { model: Model, mixed: bool },
    All { members: AllGroup, mixed: bool },
}

/// A deterministic automaton over the names of child elements. It begins in its first state.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) states: Vec<State>,
    pub(super) wildcards: Vec<Wildcard>,
    /// All names on its edges, sorted by name: for what stands in the wrong place.
    pub(super) known: Vec<(NameId, ElementId)>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) edges: Vec<Edge>,
    pub(super) wildcards: Vec<WildcardEdge>,
    /// Whether the element may end here.
    pub(super) accepts: bool,
    /// Set if the state counts how often the same particle stands in a row.
    pub(super) counter: Option<Box<Counter>>,
}

/// A particle that may stand many times, counted rather than unrolled. Its edges lead back to its state.
///
/// While the count is below `max` they come before those of the state; those, and the end, need `min`.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) min: u32,
    /// [`UNBOUNDED`] for any number.
    pub(super) max: u32,
    pub(super) edges: Vec<Edge>,
    pub(super) wildcards: Vec<WildcardEdge>,
}

/// No upper bound.
pub(super) const UNBOUNDED: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) name: NameId,
    pub(super) element: ElementId,
    pub(super) to: StateId,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct WildcardEdge {
    /// Its place in [`Model::wildcards`].
    pub(super) wildcard: u32,
    pub(super) to: StateId,
}

/// Elements that stand at most once each, in any order.
#[derive(Debug)]
pub(super) struct AllGroup {
    /// In a sequence of edges `to` is the number of the member.
    pub(super) edges: Vec<Edge>,
    /// For each member whether it must stand.
    pub(super) required: Vec<bool>,
    /// Whether all of them may be left out together.
    pub(super) optional: bool,
}

/// Names to things, searched by halves: nobody outside can make that slow.
#[derive(Debug)]
pub(super) struct NameMap<T>(Vec<(Name, T)>);

impl<T> NameMap<T> {
    /// Each name once.
    pub(super) fn new(mut entries: Vec<(Name, T)>) -> Self {
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self(entries)
    }

    pub(super) fn get(&self, namespace: Namespace, local: &str) -> Option<&T> {
        let found = self.0.binary_search_by(|(name, _)| name.order(namespace, local));
        found.ok().map(|at| &self.0[at].1)
    }
}

impl Name {
    /// How it compares to another one.
    #[inline]
    pub(super) fn order(&self, namespace: Namespace, local: &str) -> std::cmp::Ordering {
        (*self.local).cmp(local).then(self.namespace.cmp(&namespace))
    }

    #[inline]
    pub(super) fn is(&self, namespace: Namespace, local: &str) -> bool {
        self.namespace == namespace && &*self.local == local
    }
}

/// Up to so many edges are tried one after the other; more are sorted by name.
pub(super) const FEW: usize = 8;

impl Grammar {
    /// The declaration of a global element.
    pub(in crate::schema) fn element(&self, namespace: &str, local: &str) -> Option<ElementId> {
        self.global_elements.get(self.namespaces.find(namespace), local).copied()
    }

    #[inline]
    pub(super) fn name(&self, id: NameId) -> &Name {
        &self.names[id.index()]
    }

    /// The edge of a name; more than [`FEW`] edges are sorted by name.
    #[inline]
    pub(super) fn edge(&self, edges: &[Edge], namespace: Namespace, local: &str) -> Option<Edge> {
        if edges.len() <= FEW {
            return edges.iter().find(|edge| self.name(edge.name).is(namespace, local)).copied();
        }
        let found = edges.binary_search_by(|edge| self.name(edge.name).order(namespace, local));
        found.ok().map(|at| edges[at])
    }

    /// Whether a type is made from another one by none of the ways that are blocked (XSD 1.0 part 1, sections
    /// 3.4.6 and 3.14.6: Type Derivation OK).
    pub(super) fn is_derived(&self, from: TypeId, to: TypeId, blocked: Derivations) -> bool {
        // The members are those of unions inside of it, too.
        let members = &self.types[to.index()].members;
        let by_union = |member: &TypeId| self.steps_lead(from, *member, blocked);
        self.steps_lead(from, to, blocked) || !blocked.restriction && members.iter().any(by_union)
    }

    fn steps_lead(&self, from: TypeId, to: TypeId, blocked: Derivations) -> bool {
        let mut at = from;
        loop {
            if at == to {
                return true;
            }
            let ty = &self.types[at.index()];
            let is_blocked = match ty.derivation {
                Derivation::Extension => blocked.extension,
                Derivation::Restriction => blocked.restriction,
            };
            if is_blocked {
                return false;
            }
            match ty.base {
                Some(base) => at = base,
                None => return false,
            }
        }
    }
}

impl AllGroup {
    pub(super) fn is_emptiable(&self) -> bool {
        self.optional || !self.required.contains(&true)
    }
}

impl Derivations {
    pub(super) fn union(self, other: Self) -> Self {
        Self {
            extension: self.extension || other.extension,
            restriction: self.restriction || other.restriction,
            substitution: self.substitution || other.substitution,
            list: self.list || other.list,
            union: self.union || other.union,
        }
    }
}
