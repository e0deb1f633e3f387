//! IDs and references to them.

use std::ops::Range;

use crate::schema::simple::Identity;

/// The IDs of a payload, and the references to them.
#[derive(Debug, Default)]
pub(super) struct Identities {
    values: String,
    declared: Vec<Declared>,
    referred: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    value: Range<usize>,
    /// The number of the element that contains the value.
    element: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Declared {
    entry: Entry,
    /// The element that the ID belongs to: equal IDs of one element count once (XSD 1.0 part 1, section 3.15.5).
    owner: Option<usize>,
}

impl Identities {
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.declared.clear();
        self.referred.clear();
    }

    /// Records a value of a type that is `xs:ID` or refers to IDs.
    pub(super) fn record(&mut self, identity: Identity, value: &str, element: usize, owner: Option<usize>) {
        match identity {
            Identity::Id => self.declare(value, element, owner),
            Identity::Idref | Identity::Idrefs => self.refer(value, element),
            Identity::None | Identity::Mixed => {}
        }
    }

    /// Records an ID of the element `owner`, found in `element`.
    pub(super) fn declare(&mut self, value: &str, element: usize, owner: Option<usize>) {
        let entry = self.entry(value.trim_matches(SPACES), element);
        self.declared.push(Declared { entry, owner });
    }

    /// Records references, separated by white space.
    pub(super) fn refer(&mut self, values: &str, element: usize) {
        for value in values.split(SPACES).filter(|value| !value.is_empty()) {
            let entry = self.entry(value, element);
            self.referred.push(entry);
        }
    }

    /// The duplicate IDs and dangling references, each with its element: at most `most`.
    pub(super) fn broken(&mut self, most: usize) -> Vec<(usize, String)> {
        let values = &self.values;
        let text = |entry: &Entry| &values[entry.value.clone()];
        self.declared.sort_unstable_by(|one, other| {
            text(&one.entry).cmp(text(&other.entry)).then(one.entry.element.cmp(&other.entry.element))
        });
        let twice = self.declared.windows(2).filter(|pair| {
            text(&pair[0].entry) == text(&pair[1].entry) && (pair[0].owner != pair[1].owner || pair[0].owner.is_none())
        });
        let twice = twice.map(|pair| {
            (pair[1].entry.element, format!("the ID '{}' is used twice: IDs must be unique", text(&pair[1].entry)))
        });
        let known =
            |entry: &&Entry| self.declared.binary_search_by(|declared| text(&declared.entry).cmp(text(entry))).is_ok();
        let lost = self.referred.iter().filter(|entry| !known(entry));
        let lost = lost.map(|entry| (entry.element, format!("there is no ID '{}' that this refers to", text(entry))));
        twice.chain(lost).take(most).collect()
    }

    fn entry(&mut self, value: &str, element: usize) -> Entry {
        let start = self.values.len();
        self.values.push_str(value);
        Entry { value: start..self.values.len(), element }
    }

    /// Drops the memory if a large message has left more than `kept` entries.
    pub(super) fn shrink(&mut self, kept: usize) {
        if self.values.capacity() > kept || self.declared.capacity() > kept || self.referred.capacity() > kept {
            *self = Self::default();
        }
    }
}

const SPACES: [char; 4] = [' ', '\t', '\n', '\r'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stand_once_and_references_lead_to_them() {
        let mut ids = Identities::default();
        ids.declare(" a ", 1, Some(1));
        ids.declare("b", 2, Some(1));
        ids.refer("a\n b c", 3);
        ids.declare("a", 4, Some(4));
        // The same ID for the same element is one.
        ids.declare("b", 5, Some(1));
        let broken = ids.broken(8);
        assert_eq!(broken.iter().map(|(element, _)| *element).collect::<Vec<_>>(), [4, 3]);
        assert_eq!(broken[1].1, "there is no ID 'c' that this refers to");
        assert_eq!(ids.broken(1).len(), 1);
    }
}
