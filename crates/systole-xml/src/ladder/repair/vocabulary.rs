//! The vocabulary of a contract, as repair uses it.

use foldhash::HashMap;

use super::Author;

/// The elements that an emitter may use, and the children that each may have: the content of its schemas, by local
/// names alone; and the author of its texts.
///
/// Repair uses it to tell elements from text and to find the tag that was meant. It judges nothing: if it allows too
/// much or too little, validation has the last word. Without one, or with an empty one, the rules are lexical.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vocabulary {
    elements: HashMap<Box<str>, Declared>,
    author: Author,
}

/// The declarations of all elements of one name, taken together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Declared {
    /// True if text may stand in it.
    pub(super) text: bool,
    /// True if elements may stand in it that no schema here names.
    pub(super) open: bool,
    /// The names of its children; true for those that may stand there more than once.
    children: HashMap<Box<str>, bool>,
    content: Option<Content>,
}

/// The content of all elements of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Content {
    /// True if any text is valid, and nothing else.
    any_text: bool,
    /// The names of the children that each of them has, sorted.
    required: Vec<Box<str>>,
}

impl Vocabulary {
    /// The same elements, in texts of this author.
    #[must_use]
    pub fn by(self, author: Author) -> Self {
        Self { author, ..self }
    }

    /// The author of the texts.
    pub const fn author(&self) -> Author {
        self.author
    }

    /// Returns whether it declares no element.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Declares an element: `text` if it may hold text, `open` if it may hold elements that are not named.
    pub fn declare(&mut self, local: &str, text: bool, open: bool) {
        let declared = of(&mut self.elements, local);
        declared.text |= text;
        declared.open |= open;
    }

    /// Allows `child` in `parent`, more than once if it `repeats`, or if it was allowed there before.
    pub fn place(&mut self, parent: &str, child: &str, repeats: bool) {
        let children = &mut of(&mut self.elements, parent).children;
        match children.get_mut(child) {
            Some(known) => *known = true,
            None => drop(children.insert(child.into(), repeats)),
        }
        of(&mut self.elements, child);
    }

    /// Describes the content of an element: `any_text` if any text is valid in it and nothing else, and the names of the
    /// children that it must have. Of several elements of one name, only what all of them have in common counts.
    pub fn describe<'a>(&mut self, local: &str, any_text: bool, required: impl IntoIterator<Item = &'a str>) {
        let mut required: Vec<Box<str>> = required.into_iter().map(Box::from).collect();
        required.sort_unstable();
        required.dedup();
        of(&mut self.elements, local).narrow(&Content { any_text, required });
    }

    /// Adds the declarations of another vocabulary.
    pub fn join(&mut self, other: &Self) {
        for (name, declared) in &other.elements {
            self.declare(name, declared.text, declared.open);
            let children = &mut of(&mut self.elements, name).children;
            for (child, repeats) in &declared.children {
                *of(children, child) |= repeats;
            }
            if let Some(content) = &declared.content {
                of(&mut self.elements, name).narrow(content);
            }
        }
    }

    /// Returns whether elements of that name may hold any text, and nothing else.
    pub(in crate::ladder) fn is_string(&self, local: &str) -> bool {
        self.get(local).is_some_and(Declared::is_string)
    }

    pub(super) fn get(&self, local: &str) -> Option<&Declared> {
        self.elements.get(local)
    }

    pub(in crate::ladder) fn knows(&self, local: &str) -> bool {
        self.elements.contains_key(local)
    }
}

/// The entry of a name, created if missing. Most names have one: then the name isn't copied.
fn of<'m, T: Default>(map: &'m mut HashMap<Box<str>, T>, name: &str) -> &'m mut T {
    if !map.contains_key(name) {
        map.insert(name.into(), T::default());
    }
    map.get_mut(name).expect("it is there now")
}

impl Declared {
    /// Returns whether it must be empty.
    pub(super) fn is_empty(&self) -> bool {
        !self.text && !self.open && self.children.is_empty()
    }

    /// Returns whether any text is valid in it, and nothing else.
    pub(super) fn is_string(&self) -> bool {
        self.content.as_ref().is_some_and(|content| content.any_text)
    }

    /// The names of the children that it must have.
    pub(super) fn required(&self) -> impl Iterator<Item = &str> {
        self.content.iter().flat_map(|content| content.required.iter().map(|name| &**name))
    }

    /// Keeps what the content has in common with that of another element of the name.
    fn narrow(&mut self, other: &Content) {
        match &mut self.content {
            Some(content) => {
                content.any_text &= other.any_text;
                content.required.retain(|name| other.required.binary_search(name).is_ok());
            }
            none => *none = Some(other.clone()),
        }
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
        one.describe("a", true, ["b", "c"]);
        other.describe("a", false, ["c", "d"]);
        other.describe("b", true, []);
        one.join(&other);
        let (a, b) = (one.get("a").unwrap(), one.get("b").unwrap());
        assert!(a.text && !a.open && a.may_hold("b") && a.repeats("b") && !a.may_hold("c"));
        assert!(!a.is_string() && a.required().eq(["c"]) && b.is_string());
        assert!(b.repeats("c") && one.knows("c") && !one.knows("d"));
    }
}
