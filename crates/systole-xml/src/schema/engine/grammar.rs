//! The compiled schema: its components, with ids in place of names and automata in place of content models.

use std::sync::Arc;

use super::namespace::{Namespace, NamespaceSet, Namespaces};
use crate::schema::simple::SimpleType;
use crate::vocab::QName;

/// A compiled schema: all components of a set of schema documents that refer to each other.
#[derive(Debug)]
pub(in crate::schema) struct Grammar {
    pub(super) namespaces: Namespaces,
    /// The names that elements and edges refer to.
    pub(super) names: Vec<Name>,
    pub(super) elements: Vec<Element>,
    pub(super) types: Vec<Type>,
    pub(super) global_elements: NameMap<ElementId>,
    pub(super) global_attributes: NameMap<Attribute>,
    /// The named types, which `xsi:type` can refer to, built-in types included.
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
    /// A name, by its index in [`Grammar::names`].
    pub(super) NameId;
    /// An element declaration, by its index in [`Grammar::elements`].
    pub(in crate::schema) ElementId;
    /// A type definition, by its index in [`Grammar::types`].
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
    /// Disallowed substitutions.
    pub(super) block: Derivations,
    pub(super) value: Option<ValueConstraint>,
    /// The identity constraints of the element, by their indexes in [`Grammar::constraints`].
    pub(super) constraints: std::ops::Range<u32>,
}

/// An identity constraint (XSD 1.0 part 1, section 3.11).
#[derive(Debug)]
pub(super) struct Constraint {
    pub(super) label: Box<str>,
    pub(super) kind: ConstraintKind,
    pub(super) selector: Vec<Steps>,
    pub(super) fields: Vec<Vec<Steps>>,
    /// Set if an `xs:keyref` refers to this constraint.
    pub(super) is_referred: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConstraintKind {
    Unique,
    Key,
    /// A key reference, with the index of the key that it refers to in [`Grammar::constraints`].
    Keyref(u32),
}

/// A path of a selector or field.
#[derive(Debug, Clone)]
pub(super) struct Steps {
    /// Set if the path begins with `.//`.
    pub(super) anywhere: bool,
    pub(super) children: Vec<NameTest>,
    /// The attribute that the path ends with, if any.
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

/// A `default` or `fixed` value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueConstraint {
    pub(super) fixed: bool,
    pub(super) text: Box<str>,
    /// The lexical key that equal values share, if computing it takes the prefixes of the schema document.
    pub(super) key: Option<Box<str>>,
}

/// A type definition, simple or complex.
#[derive(Debug)]
pub(super) struct Type {
    /// The name for messages (`xs:` before a built-in one); empty for an anonymous type.
    pub(super) label: Box<str>,
    /// The base type; `None` for `xs:anyType` alone.
    pub(super) base: Option<TypeId>,
    pub(super) derivation: Derivation,
    /// The members of a union, those of its member unions included.
    pub(super) members: Vec<TypeId>,
    pub(super) is_abstract: bool,
    /// Prohibited substitutions.
    pub(super) block: Derivations,
    pub(super) attributes: Attributes,
    pub(super) content: Content,
}

/// The way a type is derived from its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Derivation {
    Extension,
    Restriction,
}

impl StateId {
    /// The initial state of a content model.
    pub(super) const START: Self = Self(0);
}

/// A set of derivation methods, as `block` and `final` list them.
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
    /// The indexes of the uses in the order of their names, if there are more than [`FEW`]; else empty.
    pub(super) by_name: Vec<u32>,
    /// The number of required attributes.
    pub(super) required: u32,
    /// Set if an attribute has a default or fixed value that refers to an ID.
    pub(super) refers: bool,
    pub(super) wildcard: Option<Wildcard>,
}

impl Attributes {
    /// Returns whether an element without attributes has all that it needs.
    #[inline]
    pub(super) fn may_be_absent(&self) -> bool {
        self.required == 0 && !self.refers
    }

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
    /// The number of the component: a group that is reached in two ways has the same uses.
    pub(super) number: u32,
    pub(super) name: Name,
    /// The documentation in the schema, if any.
    pub(super) doc: Option<Arc<str>>,
    pub(super) required: bool,
    pub(super) attribute: Attribute,
}

/// The type and value constraint of an attribute.
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

impl Wildcard {
    /// The elements that it allows, in words: `any element in namespace urn:o, of those that the schema declares`.
    pub(super) fn words(&self, namespaces: &Namespaces, noun: &str) -> String {
        let are_declared = match self.process {
            ProcessContents::Strict => ", of those that the schema declares",
            ProcessContents::Lax => ", valid where the schema declares it",
            ProcessContents::Skip => "",
        };
        self.namespaces.words(namespaces, noun) + are_declared
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessContents {
    Strict,
    Lax,
    Skip,
}

impl ProcessContents {
    /// Reports whether this mode checks less than another one.
    pub(super) fn is_looser(self, than: Self) -> bool {
        let strength = |process| match process {
            Self::Strict => 2,
            Self::Lax => 1,
            Self::Skip => 0,
        };
        strength(self) < strength(than)
    }
}

/// The content of an element.
#[derive(Debug)]
pub(super) enum Content {
    Empty,
    Simple(SimpleType),
    /// Types that refer to one group share its automaton.
    Sequence {
        model: Arc<Model>,
        mixed: bool,
    },
    All {
        members: Arc<AllGroup>,
        mixed: bool,
    },
}

/// A deterministic automaton over the names of child elements. Its initial state is the first.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) states: Vec<State>,
    /// The edges of all states and counters.
    edges: Vec<Edge>,
    wildcard_edges: Vec<WildcardEdge>,
    pub(super) wildcards: Vec<Wildcard>,
    /// All names on the edges, sorted by name, to find the declaration of an element in the wrong place.
    pub(super) known: Vec<(NameId, ElementId)>,
}

/// The edges of a state or counter, by their places in those of the model: a list for each would be an allocation.
#[derive(Debug, Clone)]
pub(super) struct Edges {
    named: std::ops::Range<u32>,
    wildcards: std::ops::Range<u32>,
}

impl Edges {
    /// The number of edges with a name.
    pub(super) fn named(&self) -> usize {
        self.named.len()
    }
}

impl Model {
    /// A model without states, with room for as many.
    pub(super) fn with_capacity(states: usize) -> Self {
        Self {
            states: Vec::with_capacity(states),
            edges: Vec::with_capacity(states),
            wildcard_edges: Vec::new(),
            wildcards: Vec::new(),
            known: Vec::new(),
        }
    }

    /// The edges of a state or counter.
    #[inline]
    pub(super) fn edges(&self, of: &Edges) -> &[Edge] {
        &self.edges[of.named.start as usize..of.named.end as usize]
    }

    /// The wildcards of a state or counter.
    #[inline]
    pub(super) fn wildcard_edges(&self, of: &Edges) -> &[WildcardEdge] {
        &self.wildcard_edges[of.wildcards.start as usize..of.wildcards.end as usize]
    }

    /// All edges with a name.
    pub(super) fn all_edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Adds the edges that a function lists.
    pub(super) fn add(
        &mut self,
        list: impl FnOnce(&mut Vec<Edge>, &mut Vec<WildcardEdge>, &mut Vec<Wildcard>),
    ) -> Edges {
        let place = |length: usize| u32::try_from(length).expect("a schema has fewer than 2^32 edges");
        let (named, wildcards) = (place(self.edges.len()), place(self.wildcard_edges.len()));
        list(&mut self.edges, &mut self.wildcard_edges, &mut self.wildcards);
        Edges { named: named..place(self.edges.len()), wildcards: wildcards..place(self.wildcard_edges.len()) }
    }

    /// Returns the memory that is left over.
    pub(super) fn shrink(&mut self) {
        self.states.shrink_to_fit();
        self.edges.shrink_to_fit();
        self.wildcard_edges.shrink_to_fit();
    }
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) edges: Edges,
    /// Set if the element may end in this state.
    pub(super) accepts: bool,
    /// Set if the state counts how often the same particle occurs in a row.
    pub(super) counter: Option<Box<Counter>>,
}

/// A particle with large bounds, counted rather than unrolled. Its edges lead back to its own state.
///
/// While the count is below `max`, these edges come before those of the state. The edges of the state, and the end,
/// need at least `min`.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) min: u32,
    /// The upper bound; [`UNBOUNDED`] for none.
    pub(super) max: u32,
    pub(super) edges: Edges,
}

/// The upper bound of a particle that may occur any number of times.
pub(super) const UNBOUNDED: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) name: NameId,
    pub(super) element: ElementId,
    pub(super) to: StateId,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct WildcardEdge {
    /// The index in [`Model::wildcards`].
    pub(super) wildcard: u32,
    pub(super) to: StateId,
}

/// An `xs:all`: elements that occur at most once each, in any order.
#[derive(Debug)]
pub(super) struct AllGroup {
    /// The edges to the members; `to` is the number of the member.
    pub(super) edges: Vec<Edge>,
    /// The flag of each member: `true` if it must occur.
    pub(super) required: Vec<bool>,
    /// Set if all members may be left out together.
    pub(super) optional: bool,
}

/// A map from names, searched by bisection, so that no choice of names makes it slow.
#[derive(Debug)]
pub(super) struct NameMap<T>(Vec<(Name, T)>);

impl<T> NameMap<T> {
    /// Sorts the entries. Each name occurs once.
    pub(super) fn new(mut entries: Vec<(Name, T)>) -> Self {
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self(entries)
    }

    pub(super) fn get(&self, namespace: Namespace, local: &str) -> Option<&T> {
        let found = self.0.binary_search_by(|(name, _)| name.order(namespace, local));
        found.ok().map(|at| &self.0[at].1)
    }

    /// The entries by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &T)> {
        self.0.iter().map(|(name, value)| (name, value))
    }
}

impl Name {
    /// Compares this name to another one.
    #[inline]
    pub(super) fn order(&self, namespace: Namespace, local: &str) -> std::cmp::Ordering {
        (*self.local).cmp(local).then(self.namespace.cmp(&namespace))
    }

    #[inline]
    pub(super) fn is(&self, namespace: Namespace, local: &str) -> bool {
        self.namespace == namespace && &*self.local == local
    }
}

/// The greatest number of edges or attributes that are searched in sequence; more are sorted by name.
pub(super) const FEW: usize = 8;

impl Grammar {
    /// Returns whether elements have identity constraints.
    pub(in crate::schema) fn has_keys(&self) -> bool {
        !self.constraints.is_empty()
    }

    /// The declaration of a global element.
    pub(in crate::schema) fn element(&self, namespace: &str, local: &str) -> Option<ElementId> {
        self.global_elements.get(self.namespaces.find(namespace), local).copied()
    }

    /// The names of the global elements.
    pub(in crate::schema) fn global_names(&self) -> Vec<QName> {
        let named = |(name, _): (&Name, _)| QName::new(self.namespaces.name(name.namespace), &name.local);
        self.global_elements.iter().filter_map(|entry| named(entry).ok()).collect()
    }

    #[inline]
    pub(super) fn name(&self, id: NameId) -> &Name {
        &self.names[id.index()]
    }

    /// The edge for a name. More than [`FEW`] edges are sorted by name.
    #[inline]
    pub(super) fn edge(&self, edges: &[Edge], namespace: Namespace, local: &str) -> Option<Edge> {
        if edges.len() <= FEW {
            return edges.iter().find(|edge| self.name(edge.name).is(namespace, local)).copied();
        }
        self.edge_of_many(edges, namespace, local)
    }

    #[inline(never)]
    fn edge_of_many(&self, edges: &[Edge], namespace: Namespace, local: &str) -> Option<Edge> {
        let found = edges.binary_search_by(|edge| self.name(edge.name).order(namespace, local));
        found.ok().map(|at| edges[at])
    }

    /// Reports whether a type is derived from another one without any of the blocked methods (XSD 1.0 part 1, sections
    /// 3.4.6 and 3.14.6: Type Derivation OK).
    pub(super) fn is_derived(&self, from: TypeId, to: TypeId, blocked: Derivations) -> bool {
        // The members include those of unions inside of the union.
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
