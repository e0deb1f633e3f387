//! Simple types: restrictions, lists and unions, with the facets of restrictions (XSD 1.0 part 1, section 3.14).

use std::cell::Cell;

use foldhash::HashSet;

use super::model::Made;
use super::{BrokenSchemaRule, Compiler, Draft, DraftContent, derivations, wrong};
use crate::schema::engine::grammar::TypeId;
use crate::schema::pattern;
use crate::schema::shorten::quoted;
use crate::schema::simple::{Facet, Mismatch, Prefixes, SimpleType, Unsupported};
use crate::schema::source::Place;
use crate::schema::source::read::Kind;
use crate::schema::source::tree::{NodeId, Tree};

impl Compiler<'_, '_> {
    /// The draft of a simple type definition.
    pub(super) fn simple_draft(&mut self, place: &Place) -> Result<Draft, BrokenSchemaRule> {
        let last = derivations(self.tree(place), place, "final", "finalDefault");
        Ok(Draft { last, ..self.written_simple(place)? })
    }

    fn written_simple(&mut self, place: &Place) -> Result<Draft, BrokenSchemaRule> {
        let tree = self.tree(place);
        let label = tree.get(place.node, "name").unwrap_or_default().into();
        let Some(node) = tree.parts(place.node).find(|part| tree.node(*part).local != "annotation") else {
            return wrong("a simple type is empty: write xs:restriction, xs:list or xs:union inside of it");
        };
        let derived = Place { node, ..place.clone() };
        if tree.node(node).local != "restriction" {
            self.check_redefinition(&derived, self.xsd_type("anySimpleType")?)?;
        }
        // A function for each, since types are read by recursion: the frame of one would have the values of all.
        match tree.node(node).local {
            "restriction" => self.restriction(label, derived),
            "list" => self.list(label, &derived),
            "union" => self.union(label, &derived),
            other => wrong(format!("xs:{other} is not allowed in a simple type")),
        }
    }

    fn restriction(&mut self, label: Box<str>, derived: Place) -> Result<Draft, BrokenSchemaRule> {
        let base = self.one_type(&derived, "base")?;
        self.check_redefinition(&derived, base)?;
        let of = self.simple_of(base)?;
        if of.is_any() {
            return wrong("xs:anySimpleType can't be restricted: write xs:string as the base");
        }
        if self.read(base)?.last.restriction {
            return wrong("the 'final' of the base forbids restriction");
        }
        let simple = self.restrict(&of, &derived)?;
        Ok(Draft::simple(label, base, simple, Made::Restriction(derived)))
    }

    fn list(&mut self, label: Box<str>, derived: &Place) -> Result<Draft, BrokenSchemaRule> {
        let item = self.one_type(derived, "itemType")?;
        let of = self.simple_of(item)?;
        if self.read(item)?.last.list {
            return wrong("the 'final' of the item type forbids lists");
        }
        check_notation(&of, "the type of the items of a list")?;
        let list = SimpleType::list(&of)?;
        Ok(Draft::simple(label, self.xsd_type("anySimpleType")?, list, Made::List(item)))
    }

    fn union(&mut self, label: Box<str>, derived: &Place) -> Result<Draft, BrokenSchemaRule> {
        let (tree, node) = (self.tree(derived), derived.node);
        let mut members = Vec::new();
        for member in tree.get(node, "memberTypes").unwrap_or_default().split_ascii_whitespace() {
            members.push(self.named_type(derived, member)?);
        }
        for inner in inner_types(tree, node) {
            members.push(self.type_at(&Place { node: inner, ..derived.clone() })?);
        }
        if members.is_empty() {
            return wrong("a union has types: write memberTypes, or xs:simpleType inside");
        }
        for member in &members {
            self.simple_of(*member)?;
            if self.read(*member)?.last.union {
                return wrong("the 'final' of a member type forbids unions");
            }
        }
        let simples = members.iter().map(|member| self.simple_of(*member)).collect::<Result<_, _>>()?;
        let made = Made::Union(members.clone());
        let union = SimpleType::union(simples)?;
        self.spend_on_union(&union)?;
        // Members of member unions are members, too.
        let mut seen: HashSet<TypeId> = members.iter().copied().collect();
        let mut at = 0;
        while let Some(member) = members.get(at).copied() {
            let inner = self.read(member)?.members.clone();
            members.extend(inner.into_iter().filter(|inner| seen.insert(*inner)));
            at += 1;
        }
        let draft = Draft::simple(label, self.xsd_type("anySimpleType")?, union, made);
        Ok(Draft { members, ..draft })
    }

    /// The simple type of a type id; an error if the type is complex.
    pub(super) fn simple_of(&mut self, id: TypeId) -> Result<SimpleType, BrokenSchemaRule> {
        match self.read(id)? {
            Draft { content: DraftContent::Simple(simple), is_simple: true, .. } => Ok(simple.clone()),
            _ => wrong("a complex type is used where a simple type is required"),
        }
    }

    /// The type that an attribute names, or the anonymous one inside; an error if there are both or none.
    fn one_type(&mut self, place: &Place, attribute: &str) -> Result<TypeId, BrokenSchemaRule> {
        let tree = self.tree(place);
        match (tree.get(place.node, attribute), inner_types(tree, place.node).next()) {
            (Some(_), Some(_)) => wrong(format!("there is either a {attribute} or an xs:simpleType inside, not both")),
            (Some(name), None) => self.named_type(place, name),
            (None, _) => self.inner_type(place),
        }
    }

    /// The anonymous type inside of a restriction or list.
    pub(super) fn inner_type(&mut self, place: &Place) -> Result<TypeId, BrokenSchemaRule> {
        match inner_types(self.tree(place), place.node).next() {
            Some(node) => self.type_at(&Place { node, ..place.clone() }),
            None => wrong("a simple type has no base"),
        }
    }
}

/// Refuses a NOTATION type without an enumeration (part 2, section 3.2.19, enumeration required). A type that is only
/// the base of a further restriction may lack one, and the public test suite accepts such members of unions.
pub(super) fn check_notation(ty: &SimpleType, used: &str) -> Result<(), BrokenSchemaRule> {
    match ty.is_bare_notation() {
        true => wrong(format!("xs:NOTATION can't be {used}: restrict it by an enumeration of notations")),
        false => Ok(()),
    }
}

fn inner_types(tree: &Tree, node: NodeId) -> impl Iterator<Item = NodeId> {
    tree.parts(node).filter(|part| tree.node(*part).local == "simpleType")
}

impl Compiler<'_, '_> {
    /// The restriction of a simple type by the facets at a place.
    pub(super) fn restrict(&mut self, base: &SimpleType, place: &Place) -> Result<SimpleType, BrokenSchemaRule> {
        let tree = self.tree(place);
        let parts = tree.parts(place.node).filter(|part| is_facet(tree.node(*part).local));
        let scopes: Vec<Scope> = parts.map(|facet| Scope::new(tree, facet)).collect();
        let facets = scopes.iter().map(|scope| Facet {
            name: tree.node(scope.node).local,
            value: tree.untrimmed(scope.node, "value").unwrap_or_default(),
            fixed: matches!(tree.get(scope.node, "fixed"), Some("true" | "1")),
            prefixes: scope,
        });
        let facets: Vec<Facet> = facets.collect();
        self.spend_on_patterns(&facets, place, &scopes)?;
        for facet in facets.iter().filter(|facet| facet.name == "enumeration") {
            self.spend_on_value(base, facet.value)?;
        }
        let name = tree.get(place.node, "base").unwrap_or("the type inside of it");
        let made = base.restrict(name, &facets).map_err(|Unsupported(rule, facet)| {
            let Some(facet) = facet else { return BrokenSchemaRule::new(None, rule) };
            let at = Place { node: scopes[facet].node, ..place.clone() };
            match base.has_facet(facets[facet].name) {
                true => BrokenSchemaRule::of_attribute(&at, "value", rule),
                false => BrokenSchemaRule::new(Some(at), rule),
            }
        })?;
        if base.is_notation() {
            for (facet, scope) in facets.iter().zip(&scopes).filter(|(facet, _)| facet.name == "enumeration") {
                let at = Place { node: scope.node, ..place.clone() };
                let name = self.reference(Kind::Notation, &at, facet.value.trim())?;
                self.find(Kind::Notation, &name, &at)?;
            }
        }
        Ok(made)
    }
}

impl Compiler<'_, '_> {
    /// Bounds the members of all unions together.
    fn spend_on_union(&mut self, union: &SimpleType) -> Result<(), BrokenSchemaRule> {
        const MOST: usize = 100_000;
        self.union_members = self.union_members.saturating_add(union.width());
        if self.union_members > MOST {
            return wrong(format!("unions have more than {MOST} members together, those of their members counted"));
        }
        Ok(())
    }

    /// Bounds the checks of enumerated, default and fixed values: each is checked against one member of its union after
    /// the other, and each pattern takes a number of steps for each byte.
    pub(super) fn spend_on_value(&mut self, ty: &SimpleType, value: &str) -> Result<(), BrokenSchemaRule> {
        const MOST: usize = 500_000;
        const STEPS: usize = 8_000_000;
        const WORK: usize = 24_000_000;
        self.pattern_steps = self.pattern_steps.saturating_add(ty.steps(value));
        if self.pattern_steps > STEPS {
            return wrong(format!(
                "enumerated, default and fixed values take more than {STEPS} steps of patterns: have fewer values, or \
                 write xs:maxLength instead of counts in the patterns"
            ));
        }
        self.union_checks = self.union_checks.saturating_add(ty.checks(value));
        if self.union_checks <= MOST && ty.width() > 1 {
            self.union_steps = self.union_steps.saturating_add(ty.work(value));
        }
        if self.union_checks > MOST || self.union_steps > WORK {
            return wrong(format!(
                "enumerated, default and fixed values of unions take more than {MOST} checks against members, or \
                 {WORK} steps: have fewer values, or unions of fewer types"
            ));
        }
        Ok(())
    }

    /// Bounds the automata of all patterns together. The patterns of one restriction make one automaton, which counts
    /// once if several restrictions have it.
    fn spend_on_patterns(&mut self, facets: &[Facet], place: &Place, scopes: &[Scope]) -> Result<(), BrokenSchemaRule> {
        /// The greatest number of states of one pattern, about 16 MiB of automata, and of all together.
        const MOST: usize = 250_000;
        const MOST_TOGETHER: usize = 4 * MOST;
        /// An automaton takes about as long as so many states beside its own.
        const AUTOMATON: usize = 60;
        /// An escape of many characters takes about as long to become a class as so many states.
        const CLASS: usize = 50;
        let patterns = || facets.iter().zip(scopes).filter(|(facet, _)| facet.name == "pattern");
        let all: Vec<&str> = patterns().map(|(facet, _)| facet.value).collect();
        if all.is_empty() || !self.patterns.insert(pattern::key(&all)) {
            return Ok(());
        }
        self.pattern_states += AUTOMATON;
        for (facet, scope) in patterns() {
            // What the classes take to be made is counted first, since a difference of two may be small.
            let classes = CLASS.saturating_mul(pattern::class_escapes(facet.value));
            let room = MOST.min(MOST_TOGETHER.saturating_sub(self.pattern_states));
            let states = if classes > room { classes } else { classes.saturating_add(pattern::states(facet.value)) };
            self.pattern_states = self.pattern_states.saturating_add(states);
            if states > MOST || self.pattern_states > MOST_TOGETHER {
                let why = if states > MOST { pattern::TOO_LARGE } else { TOO_MANY };
                let rule = format!("the pattern '{}': {why}", quoted(facet.value));
                return Err(BrokenSchemaRule::of_attribute(
                    &Place { node: scope.node, ..place.clone() },
                    "value",
                    rule,
                ));
            }
        }
        Ok(())
    }
}

const TOO_MANY: &str = "it and those before it are too large together: have fewer different patterns, smaller counts, or fewer classes \
     such as \\w in repeated groups; write [A-Za-z0-9_] for \\w where that is meant, or xs:maxLength instead of counts";

/// Reports whether an element inside of a restriction is a facet, valid or not: anything but the other elements that a
/// restriction may contain.
pub(super) fn is_facet(local: &str) -> bool {
    !matches!(local, "annotation" | "simpleType" | "attribute" | "attributeGroup" | "anyAttribute")
}

/// The prefixes in scope at a place in a schema document.
pub(super) struct Scope<'a> {
    tree: &'a Tree,
    node: NodeId,
    was_asked: Cell<bool>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(tree: &'a Tree, node: NodeId) -> Self {
        Self { tree, node, was_asked: Cell::new(false) }
    }

    /// Reports whether the check of a value has looked up a prefix.
    pub(super) fn was_asked(&self) -> bool {
        self.was_asked.get()
    }
}

/// Checks the text of a default or fixed value. Its key is kept only if its value depends on the prefixes in scope.
pub(super) fn checked_key(ty: &SimpleType, text: &str, scope: &Scope) -> Result<Option<Box<str>>, Mismatch> {
    ty.check(text, scope)?;
    if !scope.was_asked() {
        return Ok(None);
    }
    let mut key = String::new();
    ty.key(&mut key, text, scope)?;
    Ok(Some(key.into()))
}

impl Prefixes for Scope<'_> {
    fn namespace(&self, prefix: &str) -> Option<&str> {
        self.was_asked.set(true);
        let namespace = self.tree.resolve(self.node, prefix);
        (prefix.is_empty() || !namespace.is_empty()).then_some(namespace)
    }
}
