use std::collections::BTreeMap;

/// The elements that an emitter may use, and which of them may stand in which: what its schemas say, by local names
/// alone.
///
/// Repair reads it to tell elements from text and to find out which tag was meant. It is no judge: where it says too
/// much or too little, validation has the last word. An empty one says nothing: then the rules are lexical.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vocabulary {
    elements: BTreeMap<Box<str>, Declared>,
}

/// The declarations of all elements of one name, taken together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Declared {
    /// Whether text may stand in it.
    pub(super) text: bool,
    /// Whether elements may stand in it that no schema here names.
    pub(super) open: bool,
    /// The names of its children, and whether they may stand there more than once.
    children: BTreeMap<Box<str>, bool>,
}

impl Vocabulary {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Declares an element: whether it holds text, and whether it may hold elements that are not named.
    pub fn declare(&mut self, local: &str, text: bool, open: bool) {
        let declared = self.elements.entry(local.into()).or_default();
        declared.text |= text;
        declared.open |= open;
    }

    /// Lets `child` stand in `parent`, more than once if it `repeats`. Of several places in one parent all count.
    pub fn place(&mut self, parent: &str, child: &str, repeats: bool) {
        let children = &mut self.elements.entry(parent.into()).or_default().children;
        let known = children.insert(child.into(), repeats);
        if known.is_some() {
            children.insert(child.into(), true);
        }
        self.elements.entry(child.into()).or_default();
    }

    /// Takes over what another one says.
    pub fn join(&mut self, other: &Self) {
        for (name, declared) in &other.elements {
            self.declare(name, declared.text, declared.open);
            let children = &mut self.elements.entry(name.clone()).or_default().children;
            for (child, repeats) in &declared.children {
                *children.entry(child.clone()).or_default() |= repeats;
            }
        }
    }

    pub(super) fn get(&self, local: &str) -> Option<&Declared> {
        self.elements.get(local)
    }

    pub(super) fn knows(&self, local: &str) -> bool {
        self.elements.contains_key(local)
    }
}

impl Declared {
    /// Whether nothing may stand in it.
    pub(super) fn is_empty(&self) -> bool {
        !self.text && !self.open && self.children.is_empty()
    }

    pub(super) fn may_hold(&self, child: &str) -> bool {
        self.children.contains_key(child)
    }

    pub(super) fn repeats(&self, child: &str) -> bool {
        self.children.get(child).is_some_and(|repeats| *repeats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_of_one_name_are_taken_together() {
        let mut one = Vocabulary::default();
        one.declare("a", false, false);
        one.place("a", "b", false);
        let mut other = Vocabulary::default();
        other.declare("a", true, false);
        other.place("a", "b", true);
        other.place("b", "c", false);
        other.place("b", "c", false);
        one.join(&other);
        let (a, b) = (one.get("a").unwrap(), one.get("b").unwrap());
        assert!(a.text && !a.open && a.may_hold("b") && a.repeats("b") && !a.may_hold("c"));
        assert!(b.repeats("c") && one.knows("c") && !one.knows("d"));
    }
}
