//! The matching of paths of identity constraints, and the keys found by it.

use std::ops::Range;

use super::budget::{Budget, room};
use crate::schema::engine::grammar::{Grammar, Steps};
use crate::schema::engine::namespace::Namespace;

/// The constraints in force, and their keys so far.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) frames: Vec<Frame>,
    pub(super) live: Vec<Live>,
    pub(super) matchers: Vec<Matcher>,
    pub(super) scopes: Vec<Scope>,
    pub(super) selected: Vec<Selected>,
    pub(super) slots: Vec<Slot>,
    /// The slots of fields that take the text of the open elements.
    pub(super) waiting: Vec<usize>,
    pub(super) values: String,
    pub(super) tables: Vec<Table>,
    pub(super) hits: Vec<(usize, usize)>,
    /// The keys of attributes of the innermost element, by number: each attribute is read once for all fields.
    pub(super) read: Vec<(usize, Range<u32>)>,
    pub(super) budget: Budget,
}

/// The lengths of the lists when an element was opened.
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
    /// Bit k is set if k steps have matched.
    pub(super) bits: u64,
}

/// A selector or a field whose paths are being matched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matcher {
    pub(super) constraint: u32,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// A selector, with the index of its scope.
    Selector(usize),
    /// A field, with its number in the constraint and the index of its slot.
    Field(usize, usize),
}

/// A constraint of an open element, with its keys so far.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) constraint: u32,
    pub(super) entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: Range<u32>,
    pub(super) element: u32,
}

/// An open element that a selector matched.
#[derive(Debug, Clone)]
pub(super) struct Selected {
    pub(super) scope: usize,
    pub(super) slots: Range<usize>,
    pub(super) element: usize,
}

/// The value of a field.
#[derive(Debug, Clone)]
pub(super) enum Slot {
    Empty,
    /// A key, with the element and the number of the attribute that it comes from ([`TEXT`] for the text).
    Value {
        key: Range<u32>,
        from: (usize, usize),
    },
}

/// The keys that were found in an element and below it, for references in it and above.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) constraint: u32,
    /// The depth of the element.
    pub(super) depth: usize,
    /// The keys, each with the range of elements (by number) of the scope that found it. A key of an outer scope takes
    /// precedence over one from below.
    pub(super) entries: Vec<(Entry, Range<u32>)>,
    pub(super) sorted: bool,
}

/// The number that stands for the text of an element, in place of an attribute.
pub(super) const TEXT: usize = usize::MAX;

impl Keys {
    pub(super) fn clear(&mut self) {
        // The memory of a large message must not stay allocated.
        const KEPT: usize = 1 << 20;
        if self.bytes() > KEPT {
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
        self.budget.clear();
    }

    pub(super) fn paths<'g>(&self, grammar: &'g Grammar, matcher: usize) -> &'g [Steps] {
        let Matcher { constraint, what } = self.matchers[matcher];
        let constraint = &grammar.constraints[constraint as usize];
        match what {
            What::Selector(_) => &constraint.selector,
            What::Field(field, _) => &constraint.fields[field],
        }
    }

    /// Starts matching the paths of a selector or field at the innermost element.
    pub(super) fn begin(&mut self, grammar: &Grammar, constraint: u32, what: What) {
        let matcher = self.matchers.len();
        self.matchers.push(Matcher { constraint, what });
        let paths = self.paths(grammar, matcher);
        self.budget.spend(paths.len());
        for (path, steps) in paths.iter().enumerate() {
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
            self.budget.spend(bits.count_ones() as usize);
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

    pub(super) fn text(&self, key: &Range<u32>) -> &str {
        self.values.get(key.start as usize..key.end as usize).unwrap_or_default()
    }

    /// The key written to the end of the values, from `start` on. The number of their bytes is bounded below 2^32.
    pub(super) fn written(&self, start: usize) -> Range<u32> {
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        place(start)..place(self.values.len())
    }

    /// The key of an attribute of the innermost element. `write` writes it at the first call.
    pub(super) fn read_once(&mut self, number: usize, write: impl FnOnce(&mut String)) -> Range<u32> {
        if let Some((_, key)) = self.read.iter().find(|(known, _)| *known == number) {
            return key.clone();
        }
        let start = self.values.len();
        write(&mut self.values);
        let key = self.written(start);
        self.read.push((number, key.clone()));
        key
    }

    /// Sets the value of a field; `false` if it has one from elsewhere.
    pub(super) fn fill(&mut self, slot: usize, key: Range<u32>, from: (usize, usize)) -> bool {
        match &self.slots[slot] {
            Slot::Empty => self.slots[slot] = Slot::Value { key, from },
            Slot::Value { from: known, .. } => return *known == from,
        }
        true
    }

    /// The key of a selected element: its fields joined. `None` if a field is missing.
    pub(super) fn whole_key(&mut self, slots: Range<usize>) -> Option<Range<u32>> {
        self.budget.spend(slots.len());
        if let [Slot::Value { key, .. }] = &self.slots[slots.clone()] {
            self.budget.spend(key.len() / Budget::COPIED);
            return Some(key.clone());
        }
        if self.slots[slots.clone()].iter().any(|slot| matches!(slot, Slot::Empty)) {
            return None;
        }
        let start = self.values.len();
        for slot in &self.slots[slots] {
            if let Slot::Value { key, .. } = slot {
                self.values.extend_from_within(key.start as usize..key.end as usize);
                self.values.push('\u{0}');
            }
        }
        self.budget.spend((self.values.len() - start) / Budget::COPIED);
        Some(self.written(start))
    }

    /// Merges the tables of the children of an element into its own, one per constraint. Returns the index of the
    /// first; the tables before it belong to preceding siblings, which no reference in the element sees.
    pub(super) fn gather(&mut self, depth: usize) -> usize {
        let first = self.tables.iter().rposition(|table| table.depth <= depth).map_or(0, |at| at + 1);
        let mut gathered: Vec<Table> = Vec::new();
        for mut table in self.tables.drain(first..) {
            table.depth = depth;
            self.budget.spend(gathered.len());
            match gathered.iter_mut().find(|known| known.constraint == table.constraint) {
                None => gathered.push(table),
                Some(known) => {
                    if known.entries.len() < table.entries.len() {
                        std::mem::swap(&mut known.entries, &mut table.entries);
                    }
                    self.budget.spend(table.entries.len());
                    self.budget.held -= room(&table.entries);
                    self.budget.grow(&mut known.entries, |known| known.append(&mut table.entries));
                    known.sorted = false;
                }
            }
        }
        self.tables.append(&mut gathered);
        first
    }
}
