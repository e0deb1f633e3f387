//! Identity constraints: unique, key and keyref (XSD 1.0 part 1, section 3.11.4).
//!
//! Paths are matched during the walk: each path that may still match below an open element is a word of bits, one for
//! each step that may come next. An element costs as many steps as there are such paths at its parent. Keys are
//! compared by a text that equal values share, and sorted when their scope ends.

use std::ops::Range;

use foldhash::HashMap;

use super::budget::{Budget, room};
use super::matching::{Entry, Frame, Keys, Matcher, Scope, Selected, Slot, TEXT, Table, What};
use super::violation::{Part, Subject};
use super::{Started, Walk};
use crate::ladder::scan::unescape;
use crate::schema::engine::grammar::{ConstraintKind, Content, Element, Steps, Type};
use crate::schema::simple::{Prefixes, SimpleType};

impl<'a> Walk<'_, 'a> {
    /// Matches an element with its type, and its attributes. If the schema has no identity constraints, this and the
    /// calls below cost one comparison each.
    #[inline]
    pub(super) fn keys_enter(&mut self, started: &Started<'a>, ty: &Type, element: Option<&Element>) {
        if !self.grammar.constraints.is_empty() {
            self.enter_keys(started, ty, element);
        }
    }

    /// Takes the text of the innermost element, a valid value of its type.
    #[inline]
    pub(super) fn keys_value(&mut self, started: &Started<'a>, simple: &SimpleType, value: &str) {
        if !self.grammar.constraints.is_empty() {
            self.keep_key(started, simple, value);
        }
    }

    /// Ends the innermost element.
    #[inline]
    pub(super) fn keys_leave(&mut self) {
        if !self.grammar.constraints.is_empty() {
            self.leave_keys();
        }
    }

    #[inline(never)]
    fn enter_keys(&mut self, started: &Started<'a>, ty: &Type, element: Option<&Element>) {
        let grammar = self.grammar;
        let mut keys = std::mem::take(&mut self.judge.keys);
        if keys.frames.is_empty() {
            keys.budget.begin(self.text.len(), self.judge.bound.unwrap_or(usize::MAX));
        }
        let parent = keys.frames.last().map_or(0..0, |frame| frame.live..keys.live.len());
        keys.frames.push(Frame {
            element: started.number,
            live: keys.live.len(),
            matchers: keys.matchers.len(),
            scopes: keys.scopes.len(),
            selected: keys.selected.len(),
            slots: keys.slots.len(),
            waiting: keys.waiting.len(),
        });
        keys.hits.clear();
        keys.read.clear();
        keys.advance(grammar, parent, started.namespace, started.local);
        for constraint in element.map_or(0..0, |element| element.constraints.clone()) {
            let scope = keys.scopes.len();
            keys.scopes.push(Scope { constraint, entries: Vec::new() });
            keys.begin(grammar, constraint, What::Selector(scope));
        }
        let mut at = 0;
        while let Some(&(matcher, path)) = keys.hits.get(at) {
            at += 1;
            keys.budget.spend(Budget::HIT);
            if keys.budget.is_spent() {
                break;
            }
            let Matcher { constraint, what } = keys.matchers[matcher];
            match what {
                What::Selector(scope) => {
                    // The hits of one matcher are adjacent.
                    let first = keys.frames.last().map_or(0, |frame| frame.selected);
                    if keys.selected[first..].last().is_some_and(|selected| selected.scope == scope) {
                        continue;
                    }
                    let fields = grammar.constraints[constraint as usize].fields.len();
                    let slots = keys.slots.len()..keys.slots.len() + fields;
                    keys.slots.resize(slots.end, Slot::Empty);
                    keys.selected.push(Selected { scope, slots: slots.clone(), element: started.number });
                    for (field, slot) in slots.enumerate() {
                        keys.begin(grammar, constraint, What::Field(field, slot));
                    }
                }
                What::Field(_, slot) => {
                    let steps = &keys.paths(grammar, matcher)[path];
                    match &steps.attribute {
                        Some(_) => self.keys_attributes(&mut keys, started, ty, (constraint, slot), steps),
                        None => self.keys_element(&mut keys, started, ty, element, (constraint, slot)),
                    }
                }
            }
        }
        self.end_exceeded(&keys, started.number);
        self.judge.keys = keys;
    }

    /// Selects an element as a field.
    fn keys_element(
        &mut self,
        keys: &mut Keys,
        started: &Started<'a>,
        ty: &Type,
        element: Option<&Element>,
        (constraint, slot): (u32, usize),
    ) {
        let constraint = &self.grammar.constraints[constraint as usize];
        let first = keys.frames.last().map_or(0, |frame| frame.waiting);
        if keys.waiting[first..].last() == Some(&slot) {
            return;
        }
        if !matches!(ty.content, Content::Simple(_)) {
            let clause = format!("it is a field of '{}', so it must hold a simple value", constraint.label);
            return self.refuse(started, Part::Tag, clause);
        }
        if constraint.kind == ConstraintKind::Key && element.is_some_and(|element| element.nillable) {
            let clause = format!("it is a field of the key '{}', so it can't be declared nillable", constraint.label);
            return self.refuse(started, Part::Tag, clause);
        }
        if !matches!(keys.slots[slot], Slot::Empty) {
            return self.refuse(
                started,
                Part::Tag,
                format!("it is a second value for one field of '{}'", constraint.label),
            );
        }
        keys.waiting.push(slot);
    }

    /// Takes the attributes that a field matches, including those with a default or fixed value.
    fn keys_attributes(
        &mut self,
        keys: &mut Keys,
        started: &Started<'a>,
        ty: &Type,
        (constraint, slot): (u32, usize),
        steps: &Steps,
    ) {
        let Some(test) = &steps.attribute else { return };
        let grammar = self.grammar;
        let mut is_second = false;
        keys.budget.spend(keys.read.len() + ty.attributes.uses.len() / Budget::COPIED);
        for (number, attribute) in started.tag.attributes().enumerate() {
            keys.budget.spend(1);
            let Some(uri) = attribute.uri() else { continue };
            let namespace = self.namespace(uri);
            if !test.allows(namespace, attribute.local()) {
                continue;
            }
            let used = ty.attributes.find(namespace, attribute.local());
            let declared = match used {
                Some(used) => Some(&used.attribute),
                None => grammar.global_attributes.get(namespace, attribute.local()),
            };
            let Some(declared) = declared else { continue };
            let mut made = Ok(());
            let key = keys.read_once(number, |values| {
                let prefixes = self.prefixes(started);
                made = declared.ty.key(values, &unescape(attribute.written()), &prefixes);
            });
            if let Err(mismatch) = made
                && mismatch.is_of_steps()
            {
                return self.refuse_attribute_value(started, attribute.name(), &mismatch);
            }
            is_second |= !keys.fill(slot, key, (started.number, number));
        }
        for (number, used) in ty.attributes.uses.iter().enumerate() {
            let name = &used.name;
            let Some(value) = &used.attribute.value else { continue };
            if !test.allows(name.namespace, &name.local) || self.is_there(started, used) {
                continue;
            }
            let number = TEXT - 1 - number;
            let mut made = Ok(());
            let key = keys.read_once(number, |values| match &value.key {
                Some(key) => values.push_str(key),
                None => {
                    let prefixes = self.prefixes(started);
                    made = used.attribute.ty.key(values, &value.text, &prefixes);
                }
            });
            if let Err(mismatch) = made {
                return self.refuse_attribute_value(started, &name.local, &mismatch);
            }
            is_second |= !keys.fill(slot, key, (started.number, number));
        }
        if is_second {
            let label = &grammar.constraints[constraint as usize].label;
            self.refuse(started, Part::Tag, format!("it has a second value for one field of '{label}'"));
        }
    }

    #[inline(never)]
    fn keep_key(&mut self, started: &Started<'a>, simple: &SimpleType, value: &str) {
        let keys = &mut self.judge.keys;
        let Some(frame) = keys.frames.last() else { return };
        if keys.waiting.len() == frame.waiting {
            return;
        }
        let start = keys.values.len();
        let prefixes = self.judge.scope.prefixes(&self.cursor, started.number);
        if let Err(mismatch) = simple.key(&mut keys.values, value, &prefixes as &dyn Prefixes) {
            return self.refuse_value(started, &mismatch);
        }
        let key = keys.written(start);
        for &slot in &keys.waiting[frame.waiting..] {
            keys.slots[slot] = Slot::Value { key: key.clone(), from: (frame.element, TEXT) };
        }
    }

    #[inline(never)]
    fn leave_keys(&mut self) {
        let grammar = self.grammar;
        let Some(frame) = self.judge.keys.frames.pop() else { return };
        let mut keys = std::mem::take(&mut self.judge.keys);
        for at in frame.selected..keys.selected.len() {
            let Selected { scope, slots, element } = keys.selected[at].clone();
            let key = keys.whole_key(slots);
            let Keys { scopes, budget, .. } = &mut keys;
            let scope = &mut scopes[scope];
            let constraint = &grammar.constraints[scope.constraint as usize];
            match key {
                Some(key) => {
                    let element = u32::try_from(element).unwrap_or(u32::MAX);
                    budget.grow(&mut scope.entries, |entries| entries.push(Entry { key, element }));
                }
                None if constraint.kind == ConstraintKind::Key => {
                    let clause = format!("it lacks a required field of the key '{}'", constraint.label);
                    self.report_key(element, clause);
                }
                None => {}
            }
            if self.end_exceeded(&keys, element) {
                break;
            }
        }
        keys.selected.truncate(frame.selected);
        let depth = keys.frames.len();
        let tables = keys.gather(depth);
        let place = |element: usize| u32::try_from(element).unwrap_or(u32::MAX);
        let elements = place(frame.element)..place(self.cursor.elements());
        self.keys_end(&mut keys, frame.scopes, (depth, tables), elements);
        keys.live.truncate(frame.live);
        keys.matchers.truncate(frame.matchers);
        keys.scopes.truncate(frame.scopes);
        keys.slots.truncate(frame.slots);
        keys.waiting.truncate(frame.waiting);
        self.end_exceeded(&keys, frame.element);
        self.judge.keys = keys;
    }

    /// Ends the constraints of an element and checks the keys that they found. `tables` is the index of its first
    /// table.
    fn keys_end(&mut self, keys: &mut Keys, first: usize, (depth, tables): (usize, usize), elements: Range<u32>) {
        let grammar = self.grammar;
        let mut references = Vec::new();
        let mut index = Index::of(&keys.tables[tables..], keys.scopes.len() - first);
        for at in first..keys.scopes.len() {
            let Scope { constraint, entries } = &mut keys.scopes[at];
            let (number, mut entries) = (*constraint, std::mem::take(entries));
            keys.budget.held -= room(&entries);
            let constraint = &grammar.constraints[number as usize];
            if let ConstraintKind::Keyref(refer) = constraint.kind {
                references.push((number, refer, entries));
                continue;
            }
            entries.sort_by(|one, other| {
                keys.text(&one.key).cmp(keys.text(&other.key)).then(one.element.cmp(&other.element))
            });
            for pair in entries.windows(2) {
                if keys.text(&pair[0].key) == keys.text(&pair[1].key) {
                    let clause = format!("it repeats a value of '{}', which must be unique", constraint.label);
                    self.report_key(pair[1].element as usize, clause);
                }
            }
            if constraint.is_referred {
                let entries = entries.into_iter().map(|entry| (entry, elements.clone()));
                let Keys { tables: all, budget, .. } = &mut *keys;
                let (found, steps) = index.find(&all[tables..], number);
                budget.spend(steps + entries.len());
                match found {
                    Some(at) => {
                        let table = &mut all[tables + at];
                        budget.grow(&mut table.entries, |table| table.extend(entries));
                        table.sorted = false;
                    }
                    None => {
                        let mut own = Vec::new();
                        budget.grow(&mut own, |own| own.extend(entries));
                        index.add(number, all.len() - tables);
                        all.push(Table { constraint: number, depth, entries: own, sorted: true });
                    }
                }
            }
        }
        for (number, refer, mut entries) in references {
            let (found, steps) = index.find(&keys.tables[tables..], refer);
            keys.budget.spend(steps);
            let at = found.map(|at| at + tables);
            if let Some(at) = at
                && !keys.tables[at].sorted
            {
                let mut sorted = std::mem::take(&mut keys.tables[at].entries);
                keys.budget.spend(sorted.len());
                sorted.sort_by(|(one, _), (other, _)| keys.text(&one.key).cmp(keys.text(&other.key)));
                (keys.tables[at].entries, keys.tables[at].sorted) = (sorted, true);
            }
            entries.sort_by(|one, other| keys.text(&one.key).cmp(keys.text(&other.key)));
            let mut table = at.map_or(&[][..], |at| &keys.tables[at].entries);
            // Both lists are sorted, so equal references are looked up once.
            for same in entries.chunk_by(|one, other| keys.text(&one.key) == keys.text(&other.key)) {
                let key = keys.text(&same[0].key);
                table = &table[table.partition_point(|(known, _)| keys.text(&known.key) < key)..];
                let found = &table[..table.partition_point(|(known, _)| keys.text(&known.key) == key)];
                if is_one_key(found) {
                    continue;
                }
                let (own, refer) =
                    (&grammar.constraints[number as usize].label, &grammar.constraints[refer as usize].label);
                for entry in same {
                    self.report_key(
                        entry.element as usize,
                        format!("by '{own}' it refers to a value of '{refer}' that is not there"),
                    );
                }
            }
        }
    }

    /// Ends the walk if the constraints exceed their budget.
    fn end_exceeded(&mut self, keys: &Keys, element: usize) -> bool {
        let exceeded = keys.exceeded(self.text.len());
        let is_exceeded = exceeded.is_some();
        if let Some(clause) = exceeded {
            self.report_key(element, clause);
            self.most = self.violations.len();
        }
        is_exceeded
    }

    fn report_key(&mut self, element: usize, clause: String) {
        let name = self.cursor.tag(element).map_or("", |tag| tag.local()).to_owned();
        self.report(element, Part::Tag, &Subject::Element(&name), clause);
    }
}

/// Reports whether the equal keys in a table are one key: a key of an outer scope takes precedence over those of scopes
/// inside of it, and a key that two separate scopes share is a key of neither (section 3.11.5, node tables).
fn is_one_key(found: &[(Entry, Range<u32>)]) -> bool {
    let outermost = found.iter().map(|(_, scope)| scope).min_by_key(|scope| (scope.start, u32::MAX - scope.end));
    outermost.is_some_and(|outermost| found.iter().all(|(_, scope)| outermost.contains(&scope.start)))
}

/// The tables of an element by their constraints, if they are many.
struct Index(Option<HashMap<u32, usize>>);

impl Index {
    /// The index of the tables, to which those of `more` constraints may be added.
    fn of(tables: &[Table], more: usize) -> Self {
        const FEW: usize = 16;
        let index = || tables.iter().enumerate().map(|(at, table)| (table.constraint, at)).collect();
        Self((tables.len() + more > FEW).then(index))
    }

    /// The table of a constraint, and the steps that the search takes.
    fn find(&self, tables: &[Table], constraint: u32) -> (Option<usize>, usize) {
        match &self.0 {
            Some(index) => (index.get(&constraint).copied(), 1),
            None => (tables.iter().position(|table| table.constraint == constraint), tables.len()),
        }
    }

    fn add(&mut self, constraint: u32, at: usize) {
        if let Some(index) = &mut self.0 {
            index.insert(constraint, at);
        }
    }
}
