use super::automaton::Automata;
use super::positions::Budget;
use super::simple::Scope;
use super::substitution::Substitutions;
use super::{Compiler, Draft, DraftContent, Slot, unsupported};
use crate::schema::engine::grammar::{Content, Element, ElementId, Grammar, NameMap, StateId, Type};
use crate::schema::engine::simple::{Identity, Unsupported};

impl Compiler<'_, '_> {
    /// Makes automata of all drafts.
    pub(super) fn finish(mut self) -> Result<Grammar, Unsupported> {
        let mut drafts = Vec::with_capacity(self.types.len());
        for slot in std::mem::take(&mut self.types) {
            match slot {
                Slot::Read(draft) => drafts.push(draft),
                Slot::Waiting(_) | Slot::Reading => return unsupported("a type was not read"),
            }
        }
        let substitutions = Substitutions::new(&self.heads, &self.elements, &drafts)?;
        let mut automata = Automata {
            names: &self.names,
            elements: &self.elements,
            substitutions: &substitutions,
            budget: Budget::default(),
        };
        let types: Vec<Type> =
            drafts.into_iter().map(|draft| finished(&mut automata, draft)).collect::<Result<_, _>>()?;
        self.check_values(&types)?;
        let any = self.any_type();
        let global = |id: &ElementId| (self.names[self.elements[id.index()].name.index()].clone(), *id);
        Ok(Grammar {
            global_elements: unique(self.global_elements.iter().map(global).collect())?,
            global_attributes: unique(self.global_attributes)?,
            global_types: unique(self.global_types)?,
            namespaces: self.namespaces,
            names: self.names,
            elements: self.elements,
            types,
            any,
        })
    }

    /// The values that elements are given must be those of their types.
    fn check_values(&self, types: &[Type]) -> Result<(), Unsupported> {
        for (element, place) in &self.given_values {
            let Element { ty, value, .. } = &self.elements[element.index()];
            let Some(value) = value else { continue };
            let scope = Scope::new(self.tree(place), place.node);
            let fits = match &types[ty.index()].content {
                Content::Simple(simple) => {
                    simple.check(&value.text, &scope).is_ok() && simple.identity() == Identity::None
                }
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
        }
        Ok(())
    }
}

fn finished(automata: &mut Automata, draft: Draft) -> Result<Type, Unsupported> {
    let content = match draft.content {
        DraftContent::Empty => Content::Empty,
        DraftContent::Simple(simple) if simple.identity() == Identity::Mixed => {
            return unsupported(format!("the type '{}' mixes IDs with other values", draft.label));
        }
        DraftContent::Simple(simple) => Content::Simple(simple),
        DraftContent::Children { particle, mixed } => match automata.all(&particle)? {
            Some(members) => Content::All { members, mixed },
            None => Content::Sequence { model: automata.model(&particle)?, mixed },
        },
    };
    let mut names: Vec<_> = draft.attributes.uses.iter().map(|used| &used.name).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return unsupported(format!("the type '{}' has an attribute twice", draft.label));
    }
    Ok(Type {
        label: draft.label,
        base: draft.base,
        derivation: draft.derivation,
        members: draft.members,
        is_abstract: draft.is_abstract,
        block: draft.block,
        attributes: draft.attributes,
        content,
    })
}

fn unique<T>(entries: Vec<(super::Name, T)>) -> Result<NameMap<T>, Unsupported> {
    let mut names: Vec<_> = entries.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return unsupported(format!("'{}' is declared twice", pair[0].local));
    }
    Ok(NameMap::new(entries))
}
