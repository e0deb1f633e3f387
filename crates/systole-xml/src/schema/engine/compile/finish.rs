//! The last phase of compilation: checks that need all components, then one automaton per content model.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::automaton::{Automata, Children, SharedGroup, ranks};
use super::conflict::Spots;
use super::model::{Components, Kept};
use super::particle::{Particle, Term};
use super::positions::Budget;
use super::restriction::Restriction;
use super::simple::{Scope, checked_key};
use super::substitution::Substitutions;
use super::{BrokenSchemaRule, Compiler, Draft, DraftContent, Slot, wrong};
use crate::schema::engine::grammar::{Content, Derivation, ElementId, Grammar, NameId, NameMap, StateId, Type, TypeId};
use crate::schema::shorten::quoted;
use crate::schema::source::Place;

impl<'r, 'a> Compiler<'r, 'a> {
    /// Checks the drafts, compiles their content models and assembles the grammar.
    pub(super) fn finish(mut self) -> Result<Components<'r, 'a>, BrokenSchemaRule> {
        let mut drafts = Vec::with_capacity(self.types.len());
        for slot in std::mem::take(&mut self.types) {
            match slot {
                Slot::Read(draft) => drafts.push(*draft),
                Slot::Waiting(_) | Slot::Reading => return wrong("a type was not read"),
            }
        }
        let constraints = self.finished_constraints()?;
        let substitutions = Substitutions::new(&self.heads, &self.elements, &drafts, &self.declared)?;
        let any = self.any_type();
        let mut restriction = Restriction {
            names: &self.names,
            elements: &self.elements,
            constraints: &constraints,
            drafts: &drafts,
            substitutions: &substitutions,
            budget: Budget::default(),
        };
        for draft in &drafts {
            restricted(&mut restriction, draft, any).map_err(|wrong| wrong.at_maybe(draft.place.as_ref()))?;
        }
        for (own, base, place) in &self.redefined_groups {
            restriction.check(own, base).map_err(|wrong| wrong.at(place))?;
        }
        let mut automata = Automata {
            names: &self.names,
            ranks: ranks(&self.names),
            elements: &self.elements,
            substitutions: &substitutions,
            spots: Spots { reader: self.reader, namespaces: &self.namespaces, places: &self.leaves },
            globals: self.global_elements.iter().copied().collect(),
            budget: Budget::default(),
            shared: HashMap::new(),
        };
        let mut types: Vec<Type> = Vec::with_capacity(drafts.len());
        let mut kept = Vec::with_capacity(drafts.len());
        for mut draft in drafts {
            let content = content(&mut automata, &draft).map_err(|wrong| wrong.at_maybe(draft.place.as_ref()))?;
            kept.push(Kept::of(&mut draft));
            types.push(finished(draft, content));
        }
        // A group keeps the rule by itself, also if no type uses it. Those that types use were checked with these.
        automata.budget = Budget::default();
        self.named_groups.iter().try_for_each(|group| consistent(&mut automata, group))?;
        for (element, place) in std::mem::take(&mut self.given_values) {
            self.check_value(element, &place, &types).map_err(|wrong| wrong.at(&place))?;
        }
        let global = |id: &ElementId| (self.names[self.elements[id.index()].name.index()].clone(), *id);
        let grammar = Arc::new(Grammar {
            global_elements: NameMap::new(self.global_elements.iter().map(global).collect()),
            global_attributes: NameMap::new(self.global_attributes),
            global_types: NameMap::new(self.global_types),
            namespaces: self.namespaces,
            names: self.names,
            elements: self.elements,
            types,
            any,
            constraints,
        });
        let declared = self.declared.into_iter().map(|(place, _)| place).collect();
        Ok(Components::new(self.reader, grammar, kept, declared, (substitutions, self.references)))
    }

    /// Checks that the given value of an element is valid for its type (section 3.3.6, e-props-correct).
    fn check_value(&mut self, id: ElementId, place: &Place, types: &[Type]) -> Result<(), BrokenSchemaRule> {
        let tree = self.tree(place);
        if tree.get(place.node, "default").is_some() && tree.get(place.node, "fixed").is_some() {
            return wrong("an element has either default or fixed, not both");
        }
        let element = &self.elements[id.index()];
        let Some(value) = &element.value else { return Ok(()) };
        if let Content::Simple(simple) = &types[element.ty.index()].content {
            let text = value.text.clone();
            self.spend_on_value(simple, &text)?;
        }
        let element = &mut self.elements[id.index()];
        let Some(value) = &mut element.value else { return Ok(()) };
        let scope = Scope::new(tree, place.node);
        match &types[element.ty.index()].content {
            Content::Simple(simple) if simple.is_id() => {
                wrong("an element that is an ID can't have a default or fixed value")
            }
            Content::Simple(simple) => match checked_key(simple, &value.text, &scope) {
                Ok(key) => {
                    value.key = key;
                    Ok(())
                }
                Err(mismatch) => {
                    let (value, mismatch) = (value.clone(), mismatch.to_string());
                    Err(self.wrong_value(place, &value, &mismatch))
                }
            },
            Content::Sequence { model, mixed: true } if model.states[StateId::START.index()].accepts => Ok(()),
            Content::All { members, mixed: true } if members.is_emptiable() => Ok(()),
            _ => wrong(format!(
                "the element is given the value '{}', but its type must have elements: only text can be given",
                quoted(&value.text)
            )),
        }
    }
}

impl BrokenSchemaRule {
    fn at_maybe(self, place: Option<&Place>) -> Self {
        match place {
            Some(place) => self.at(place),
            None => self,
        }
    }
}

/// Checks that the content of a restriction restricts that of its base (section 3.4.6, derivation-ok-restriction,
/// clause 5).
fn restricted(restriction: &mut Restriction, draft: &Draft, any: TypeId) -> Result<(), BrokenSchemaRule> {
    let Some(base) = draft.base.filter(|base| *base != any) else { return Ok(()) };
    if draft.is_simple || draft.derivation != Derivation::Restriction {
        return Ok(());
    }
    match (&draft.content, &restriction.drafts[base.index()].content) {
        (DraftContent::Simple(_), DraftContent::Simple(_)) => Ok(()),
        (DraftContent::Simple(_), DraftContent::Children { particle, mixed: true }) if particle.is_emptiable() => {
            Ok(())
        }
        (DraftContent::Empty, DraftContent::Empty) => Ok(()),
        (DraftContent::Empty, DraftContent::Children { particle, .. }) if particle.is_emptiable() => Ok(()),
        (DraftContent::Children { mixed: true, .. }, DraftContent::Children { mixed: false, .. }) => {
            wrong("a restriction can't be mixed if its base isn't")
        }
        (DraftContent::Children { particle, .. }, DraftContent::Children { particle: base, .. }) => {
            restriction.check(particle, base)
        }
        (DraftContent::Empty, _) => wrong("a restriction is empty, but its base must have content"),
        _ => wrong("the content of a restriction is of another kind than that of its base"),
    }
}

fn content(automata: &mut Automata, draft: &Draft) -> Result<Content, BrokenSchemaRule> {
    Ok(match &draft.content {
        DraftContent::Empty => Content::Empty,
        DraftContent::Simple(simple) => Content::Simple(simple.clone()),
        DraftContent::Children { particle, mixed } => match children(automata, particle)? {
            Children::All(members) => Content::All { members, mixed: *mixed },
            Children::Sequence(model) => Content::Sequence { model, mixed: *mixed },
        },
    })
}

/// The children of a content model: those of a group, once for all types that consist of it.
fn children(automata: &mut Automata, particle: &Particle) -> Result<Children, BrokenSchemaRule> {
    let group = SharedGroup::of(particle);
    if let Some(known) = group.as_ref().and_then(|group| automata.shared.get(group)) {
        return Ok(known.clone());
    }
    consistent(automata, particle)?;
    let children = match automata.all(particle)? {
        Some(members) => Children::All(members.into()),
        None => Children::Sequence(automata.model(particle)?.into()),
    };
    automata.shared.extend(group.map(|group| (group, children.clone())));
    Ok(children)
}

/// Checks that all elements of one name in a content model have one type (section 3.8.6, cos-element-consistent). All
/// global elements of one name are one, so that a schema breaks the rule only by a local element.
fn consistent(automata: &mut Automata, particle: &Particle) -> Result<(), BrokenSchemaRule> {
    let mut local: HashMap<NameId, (TypeId, u32)> = HashMap::new();
    let mut global: Vec<(ElementId, u32)> = Vec::new();
    let mut pending = vec![particle];
    let type_of = |id: ElementId| (automata.elements[id.index()].name, automata.elements[id.index()].ty);
    let wrong =
        |spots: &Spots, name: NameId, one, other| Err(spots.two_types(one, other, &automata.names[name.index()].local));
    while let Some(particle) = pending.pop() {
        automata.budget.spend(1)?;
        match &particle.term {
            Term::Group(_, parts) => pending.extend(parts.iter()),
            Term::Wildcard(_) => {}
            Term::Element(element) if automata.globals.contains(element) => global.push((*element, particle.id)),
            Term::Element(element) => {
                let (name, ty) = type_of(*element);
                let (known, first) = *local.entry(name).or_insert((ty, particle.id));
                if known != ty {
                    return wrong(&automata.spots, name, first, particle.id);
                }
            }
        }
    }
    for (element, id) in global.into_iter().filter(|_| !local.is_empty()) {
        let members = automata.substitutions.members(element);
        automata.budget.spend(members.len())?;
        for member in std::iter::once(&element).chain(members) {
            let (name, ty) = type_of(*member);
            if let Some((known, first)) = local.get(&name)
                && *known != ty
            {
                return wrong(&automata.spots, name, *first, id);
            }
        }
    }
    Ok(())
}

fn finished(draft: Draft, content: Content) -> Type {
    Type {
        label: draft.label,
        base: draft.base,
        derivation: draft.derivation,
        members: draft.members,
        is_abstract: draft.is_abstract,
        block: draft.block,
        attributes: draft.attributes,
        content,
    }
}
