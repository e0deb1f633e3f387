//! Paths of identity constraints while they are matched, and the keys that they have found.

use std::ops::Range;

use crate::schema::engine::grammar::{Grammar, Steps};
use crate::schema::engine::namespace::Namespace;

/// Most bytes of all keys of a payload.
pub(super) const MOST: usize = 32 << 20;

/// The constraints in force, and what they have found.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) frames: Vec<Frame>,
    pub(super) live: Vec<Live>,
    pub(super) matchers: Vec<Matcher>,
    pub(super) scopes: Vec<Scope>,
    pub(super) selected: Vec<Selected>,
    pub(super) slots: Vec<Slot>,
    /// The fields that are the text of the innermost elements.
    pub(super) waiting: Vec<usize>,
    pub(super) values: String,
    pub(super) tables: Vec<Table>,
    pub(super) hits: Vec<(usize, usize)>,
}

/// Start of an open element's part of each list.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) element: usize,
    pub(super) live: usize,
    pub(super) matchers: usize,
    pub(super) scopes: usize,
    pub(super) selected: usize,
    pub(super) slots: usize,
    pub(super) waiting: usize,
}

/// A path that may match below an element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Live {
    pub(super) matcher: usize,
    pub(super) path: usize,
    /// Bit k: k steps have matched.
    pub(super) bits: u64,
}

/// A selector or a field that is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matcher {
    pub(super) constraint: u32,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// With the place of its scope.
    Selector(usize),
    /// With its number among the fields, and the place of its value.
    Field(usize, usize),
}

/// A constraint of an open element.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) constraint: u32,
    pub(super) entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: Range<usize>,
    pub(super) element: usize,
}

/// An open element that a selector has selected.
#[derive(Debug)]
pub(super) struct Selected {
    pub(super) scope: usize,
    pub(super) slots: Range<usize>,
    pub(super) element: usize,
}

/// The value of a field.
#[derive(Debug, Clone)]
pub(super) enum Slot {
    Empty,
    /// Of the element, or its attribute by number.
    Value {
        key: Range<usize>,
        from: (usize, usize),
    },
}

/// The keys that were found in and below an element, for the references to them in it and above.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) constraint: u32,
    /// Depth of the element.
    pub(super) depth: usize,
    /// With the elements of the scope that found it, from the one with the constraint on, by number: its keys are
    /// preferred to those from below.
    pub(super) entries: Vec<(Entry, Range<usize>)>,
    pub(super) sorted: bool,
}

/// The part of an element that a field without an attribute names.
pub(super) const TEXT: usize = usize::MAX;

impl Keys {
    pub(super) fn clear(&mut self, kept: usize) {
        if self.values.capacity() > kept || self.live.capacity() > kept || self.slots.capacity() > kept {
            *self = Self::default();
        }
        self.frames.clear();
        self.live.clear();
        self.matchers.clear();
        self.scopes.clear();
        self.selected.clear();
        self.slots.clear();
        self.waiting.clear();
        self.values.clear();
        self.tables.clear();
    }

    pub(super) fn paths<'g>(&self, grammar: &'g Grammar, matcher: usize) -> &'g [Steps] {
        let Matcher { constraint, what } = self.matchers[matcher];
        let constraint = &grammar.constraints[constraint as usize];
        match what {
            What::Selector(_) => &constraint.selector,
            What::Field(field, _) => &constraint.fields[field],
        }
    }

    /// Begins to look for the paths of a matcher from the element whose frame is the last.
    pub(super) fn begin(&mut self, grammar: &Grammar, constraint: u32, what: What) {
        let matcher = self.matchers.len();
        self.matchers.push(Matcher { constraint, what });
        for (path, steps) in self.paths(grammar, matcher).iter().enumerate() {
            if steps.children.is_empty() {
                self.hits.push((matcher, path));
            }
            if steps.anywhere || !steps.children.is_empty() {
                self.live.push(Live { matcher, path, bits: 1 });
            }
        }
    }

    pub(super) fn advance(&mut self, grammar: &Grammar, parent: Range<usize>, namespace: Namespace, local: &str) {
        for at in parent {
            let Live { matcher, path, bits } = self.live[at];
            let steps = &self.paths(grammar, matcher)[path];
            let last = steps.children.len();
            let mut next = u64::from(steps.anywhere);
            let mut rest = bits;
            while rest != 0 {
                let step = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if steps.children.get(step).is_some_and(|test| test.allows(namespace, local)) {
                    next |= 1 << (step + 1);
                }
            }
            let anywhere_itself = steps.anywhere && last == 0;
            if next & (1 << last) != 0 && (last > 0 || anywhere_itself) {
                self.hits.push((matcher, path));
            }
            if next & !(if last > 0 { 1 << last } else { 0 }) != 0 {
                self.live.push(Live { matcher, path, bits: next });
            }
        }
    }

    pub(super) fn text(&self, key: &Range<usize>) -> &str {
        &self.values[key.clone()]
    }

    /// Brings the tables of the children of an element to it, those of one constraint together; returns where they
    /// begin. Those before are of its siblings, and nothing in it refers to them.
    pub(super) fn gather(&mut self, depth: usize) -> usize {
        let first = self.tables.iter().rposition(|table| table.depth <= depth).map_or(0, |at| at + 1);
        let mut gathered: Vec<Table> = Vec::new();
        for mut table in self.tables.drain(first..) {
            table.depth = depth;
            match gathered.iter_mut().find(|known| known.constraint == table.constraint) {
                None => gathered.push(table),
                Some(known) => {
                    if known.entries.len() < table.entries.len() {
                        std::mem::swap(&mut known.entries, &mut table.entries);
                    }
                    known.entries.append(&mut table.entries);
                    known.sorted = false;
                }
            }
        }
        self.tables.append(&mut gathered);
        first
    }
}
