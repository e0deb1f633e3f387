//! Namespace names as numbers, and the sets of them that wildcards allow.

use crate::vocab::ns;

/// A namespace name, by its index in the table of the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Namespace(u32);

impl Namespace {
    /// No namespace.
    pub(super) const NONE: Self = Self(0);
    pub(super) const XML: Self = Self(1);
    /// The namespace of `xsi:type` and `xsi:nil`.
    pub(super) const XSI: Self = Self(2);
    pub(super) const XSD: Self = Self(3);
    /// Any namespace that the schema doesn't mention.
    pub(super) const FOREIGN: Self = Self(u32::MAX);
}

/// The namespace names of a grammar.
#[derive(Debug)]
pub(super) struct Namespaces {
    names: Vec<Box<str>>,
    /// Indexes in the order of the names.
    sorted: Vec<u32>,
}

impl Namespaces {
    pub(super) fn new() -> Self {
        let mut namespaces = Self { names: Vec::new(), sorted: Vec::new() };
        for (name, namespace) in
            [("", Namespace::NONE), (ns::XML, Namespace::XML), (ns::XSI, Namespace::XSI), (ns::XSD, Namespace::XSD)]
        {
            let interned = namespaces.intern(name);
            debug_assert_eq!(interned, namespace);
        }
        namespaces
    }

    pub(super) fn intern(&mut self, name: &str) -> Namespace {
        match self.search(name) {
            Ok(at) => Namespace(self.sorted[at]),
            Err(at) => {
                let number = u32::try_from(self.names.len()).expect("a schema has fewer than 2^32 namespaces");
                self.names.push(name.into());
                self.sorted.insert(at, number);
                Namespace(number)
            }
        }
    }

    /// The namespace of a name; [`Namespace::FOREIGN`] if the schema doesn't mention it.
    pub(super) fn find(&self, name: &str) -> Namespace {
        self.search(name).map_or(Namespace::FOREIGN, |at| Namespace(self.sorted[at]))
    }

    /// The name of a namespace; empty for none and for a foreign one.
    pub(super) fn name(&self, namespace: Namespace) -> &str {
        self.names.get(namespace.0 as usize).map_or("", |name| name)
    }

    fn search(&self, name: &str) -> Result<usize, usize> {
        self.sorted.binary_search_by(|number| (*self.names[*number as usize]).cmp(name))
    }
}

/// The namespace constraint of a wildcard: the listed namespaces, or all but the listed ones.
///
/// `##other` leaves out the target namespace and names without one (XSD 1.0 part 1, section 3.10.1), so all three
/// forms of the Recommendation are such sets, and unions and intersections of them too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamespaceSet {
    complement: bool,
    /// Sorted, without duplicates.
    listed: Vec<Namespace>,
}

impl NamespaceSet {
    pub(super) fn any() -> Self {
        Self { complement: true, listed: Vec::new() }
    }

    pub(super) fn of(listed: impl IntoIterator<Item = Namespace>) -> Self {
        Self::new(false, listed.into_iter().collect())
    }

    /// The set for `##other` in a document with that target namespace.
    pub(super) fn other_than(target: Namespace) -> Self {
        Self::new(true, vec![Namespace::NONE, target])
    }

    fn new(complement: bool, mut listed: Vec<Namespace>) -> Self {
        listed.sort_unstable();
        listed.dedup();
        Self { complement, listed }
    }

    #[inline]
    pub(super) fn contains(&self, namespace: Namespace) -> bool {
        self.listed.contains(&namespace) != self.complement
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        self.complemented().intersection(&other.complemented()).complemented()
    }

    /// The number of listed namespaces.
    pub(super) fn len(&self) -> usize {
        self.listed.len()
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let kept = |from: &Self, by: &Self| from.listed.iter().copied().filter(|n| by.contains(*n)).collect();
        match (self.complement, other.complement) {
            (false, _) => Self::new(false, kept(self, other)),
            (true, false) => Self::new(false, kept(other, self)),
            (true, true) => Self::new(true, self.listed.iter().chain(&other.listed).copied().collect()),
        }
    }

    /// Reports whether a wildcard of XSD 1.0 can express this set: of complements, only those of one namespace and of
    /// none (section 3.10.6).
    pub(super) fn is_expressible(&self) -> bool {
        match (self.complement, self.listed.as_slice()) {
            (false, _) | (true, []) => true,
            (true, [none]) | (true, [none, _]) => *none == Namespace::NONE,
            (true, _) => false,
        }
    }

    /// Reports whether another set includes this one (section 3.10.6, cos-ns-subset).
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.intersection(other) == *self
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.complement && self.listed.is_empty()
    }

    /// The description of the items that are in the set, for messages: `any element in namespace urn:o`.
    pub(in crate::schema::engine) fn words(&self, namespaces: &Namespaces, noun: &str) -> String {
        const MOST: usize = 12;
        let name = |namespace: &Namespace| match namespaces.name(*namespace) {
            "" => "no namespace".to_owned(),
            name if self.complement => name.to_owned(),
            name => format!("namespace {name}"),
        };
        let mut named = self.listed.iter().filter(|namespace| !(self.complement && **namespace == Namespace::NONE));
        let mut listed: Vec<String> = named.by_ref().take(MOST).map(name).collect();
        listed.extend(named.next().map(|_| "…".to_owned()));
        let lacks_none = self.complement && self.listed.contains(&Namespace::NONE);
        let somewhere = if lacks_none { " in a namespace" } else { "" };
        match (self.complement, listed.as_slice()) {
            (true, []) => format!("any {noun}{somewhere}"),
            (true, listed) => format!("any {noun}{somewhere} other than {}", listed.join(" and ")),
            (false, listed) => format!("any {noun} in {}", listed.join(" or in ")),
        }
    }

    fn complemented(&self) -> Self {
        Self { complement: !self.complement, listed: self.listed.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_what_the_recommendation_says() {
        let mut names = Namespaces::new();
        let [a, b] = ["urn:a", "urn:b"].map(|name| names.intern(name));
        assert_eq!((names.find("urn:a"), names.find("urn:c")), (a, Namespace::FOREIGN));
        let other = NamespaceSet::other_than(a);
        let holds = |set: &NamespaceSet| [Namespace::NONE, a, b, Namespace::FOREIGN].map(|n| set.contains(n));
        assert_eq!(holds(&NamespaceSet::any()), [true; 4]);
        assert_eq!(holds(&other), [false, false, true, true]);
        assert_eq!(holds(&NamespaceSet::of([a, Namespace::NONE])), [true, true, false, false]);
        // Section 3.10.6, union: two different complements, and a complement with a set.
        assert_eq!(holds(&other.union(&NamespaceSet::other_than(b))), [false, true, true, true]);
        assert_eq!(holds(&other.union(&NamespaceSet::of([a]))), [false, true, true, true]);
        assert_eq!(holds(&other.union(&NamespaceSet::of([a, Namespace::NONE]))), [true; 4]);
        // Intersection: a complement with a set, and with another complement.
        assert_eq!(holds(&other.intersection(&NamespaceSet::of([a, b, Namespace::NONE]))), [false, false, true, false]);
        assert_eq!(holds(&other.intersection(&NamespaceSet::other_than(b))), [false, false, false, true]);
        assert!(NamespaceSet::of([a]).intersection(&other).is_empty());
    }
}
