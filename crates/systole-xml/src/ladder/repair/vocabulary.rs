use std::collections::HashMap;

/// The elements that an emitter may use, and which of them may stand in which: what its schemas say, by local names
/// alone.
///
/// Repair reads it to tell elements from text and to find out which tag was meant. It is no judge: where it says too
/// much or too little, validation has the last word. An empty one says nothing: then the rules are lexical.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vocabulary {
    elements: HashMap<Box<str>, Declared>,
}

/// The declarations of all elements of one name, taken together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Declared {
    /// Whether text may stand in it.
    pub(super) text: bool,
    /// Whether elements may stand in it that no schema here names.
    pub(super) open: bool,
    /// The names of its children, and whether they may stand there more than once.
    children: HashMap<Box<str>, bool>,
}

impl Vocabulary {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Declares an element: whether it holds text, and whether it may hold elements that are not named.
    pub fn declare(&mut self, local: &str, text: bool, open: bool) {
        let declared = of(&mut self.elements, local);
        declared.text |= text;
        declared.open |= open;
    }

    /// Lets `child` stand in `parent`, more than once if it `repeats`. Of several places in one parent all count.
    pub fn place(&mut self, parent: &str, child: &str, repeats: bool) {
        let children = &mut of(&mut self.elements, parent).children;
        match children.get_mut(child) {
            Some(known) => *known = true,
            None => drop(children.insert(child.into(), repeats)),
        }
        of(&mut self.elements, child);
    }

    /// Takes over what another one says.
    pub fn join(&mut self, other: &Self) {
        for (name, declared) in &other.elements {
            self.declare(name, declared.text, declared.open);
            let children = &mut of(&mut self.elements, name).children;
            for (child, repeats) in &declared.children {
                *of(children, child) |= repeats;
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

/// The entry of a name, made if there is none: mostly there is one, which costs no copy of the name.
fn of<'m, T: Default>(map: &'m mut HashMap<Box<str>, T>, name: &str) -> &'m mut T {
    if !map.contains_key(name) {
        map.insert(name.into(), T::default());
    }
    map.get_mut(name).expect("it is there now")
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
