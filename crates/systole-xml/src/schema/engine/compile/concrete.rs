//! Concrete types that are derived from abstract ones, for examples.

use std::collections::BTreeMap;

use super::super::grammar::{Grammar, Name, TypeId};

/// For each abstract type a named type that is derived from it and not abstract: the first by its name.
#[derive(Debug, Default)]
pub(super) struct Concrete<'g>(BTreeMap<TypeId, (TypeId, &'g Name)>);

impl<'g> Concrete<'g> {
    /// The concrete types of a grammar. Each type is visited once.
    pub(super) fn of(grammar: &'g Grammar) -> Self {
        let mut found = BTreeMap::new();
        if !grammar.types.iter().any(|ty| ty.is_abstract) {
            return Self(found);
        }
        let mut seen = vec![false; grammar.types.len()];
        for (name, id) in grammar.global_types.iter() {
            if grammar.types[id.index()].is_abstract {
                continue;
            }
            let mut base = grammar.types[id.index()].base;
            while let Some(above) = base.filter(|above| !std::mem::replace(&mut seen[above.index()], true)) {
                if grammar.types[above.index()].is_abstract {
                    found.insert(above, (*id, name));
                }
                base = grammar.types[above.index()].base;
            }
        }
        Self(found)
    }

    /// The type to write for an abstract one, and its name.
    pub(super) fn get(&self, id: TypeId) -> Option<(TypeId, &'g Name)> {
        self.0.get(&id).copied()
    }
}
