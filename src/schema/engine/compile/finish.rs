use std::sync::Arc;

use super::automaton::Automata;
use super::positions::Budget;
use super::simple::Scope;
use super::substitution::Substitutions;
use super::{Compilation, Compiler, Draft, DraftContent, Slot, unsupported};
use crate::schema::engine::grammar::{Content, Element, ElementId, Grammar, NameMap, StateId, Type, TypeId};
use crate::schema::engine::simple::{Identity, Unsupported};
use crate::schema::xsd::read::Place;

impl Compiler<'_, '_> {
    /// Makes automata of all drafts.
    pub(super) fn finish(mut self) -> Result<Compilation, Unsupported> {
        self.unfit.check_whole()?;
        let mut drafts = Vec::with_capacity(self.types.len());
        for slot in std::mem::take(&mut self.types) {
            match slot {
                Slot::Read(draft) => drafts.push(draft),
                Slot::Waiting(_) | Slot::Reading => return unsupported("a type was not read"),
            }
        }
        let substitutions = Substitutions::new(&self.heads, &self.elements, &drafts, &self.unfit)?;
        let mut automata = Automata {
            names: &self.names,
            elements: &self.elements,
            substitutions: &substitutions,
            budget: Budget::default(),
        };
        let mut types: Vec<Type> = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let content = content(&mut automata, &draft).unwrap_or_else(|why| {
                self.unfit.ty(TypeId::new(types.len()), why);
                Content::Empty
            });
            types.push(finished(draft, content));
        }
        for (element, why) in self.wrong_values(&types) {
            self.unfit.element(element, why);
        }
        let any = self.any_type();
        let global = |id: &ElementId| (self.names[self.elements[id.index()].name.index()].clone(), *id);
        let grammar = Grammar {
            global_elements: unique(self.global_elements.iter().map(global).collect())?,
            global_attributes: unique(self.global_attributes)?,
            global_types: unique(self.global_types)?,
            namespaces: self.namespaces,
            names: self.names,
            elements: self.elements,
            types,
            any,
        };
        let (left, first) = (self.unfit.left(&grammar), self.unfit.into_first());
        Ok(Compilation { left, first, by_union: substitutions.by_union, grammar: Arc::new(grammar) })
    }

    /// The elements whose given values are none of their types, or are not understood.
    fn wrong_values(&self, types: &[Type]) -> Vec<(ElementId, Unsupported)> {
        let check = |(element, place): &(ElementId, Place)| {
            if self.unfit.has_element(*element) {
                return None;
            }
            Some((*element, self.check_value(&self.elements[element.index()], place, types).err()?))
        };
        self.given_values.iter().filter_map(check).collect()
    }

    fn check_value(&self, element: &Element, place: &Place, types: &[Type]) -> Result<(), Unsupported> {
        let Some(value) = &element.value else { return Ok(()) };
        // Its elements aren't understood anyway.
        if self.unfit.check_type(element.ty).is_err() {
            return Ok(());
        }
        let scope = Scope::new(self.tree(place), place.node);
        let fits = match &types[element.ty.index()].content {
            Content::Simple(simple) => simple.check(&value.text, &scope).is_ok() && simple.identity() == Identity::None,
            Content::Sequence { model, mixed: true } => model.states[StateId::START.index()].accepts,
            Content::All { members, mixed: true } => members.is_emptiable(),
            Content::Empty | Content::Sequence { .. } | Content::All { .. } => false,
        };
        if scope.was_asked() {
            return unsupported("an element is given a value that is a qualified name");
        }
        if !fits {
            return unsupported(format!("the value '{}' that an element is given is none of its type", value.text));
        }
        Ok(())
    }
}

fn content(automata: &mut Automata, draft: &Draft) -> Result<Content, Unsupported> {
    let mut names: Vec<_> = draft.attributes.uses.iter().map(|used| &used.name).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return unsupported(format!("the type '{}' has an attribute twice", draft.label));
    }
    Ok(match &draft.content {
        DraftContent::Empty => Content::Empty,
        DraftContent::Simple(simple) => Content::Simple(simple.clone()),
        DraftContent::Children { particle, mixed } => match automata.all(particle)? {
            Some(members) => Content::All { members, mixed: *mixed },
            None => Content::Sequence { model: automata.model(particle)?, mixed: *mixed },
        },
    })
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

fn unique<T>(entries: Vec<(super::Name, T)>) -> Result<NameMap<T>, Unsupported> {
    let mut names: Vec<_> = entries.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return unsupported(format!("'{}' is declared twice", pair[0].local));
    }
    Ok(NameMap::new(entries))
}
