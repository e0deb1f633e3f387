//! Trees of schema markup, for generators that change what they made.

/// A source of choices that a seed determines.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % sides.max(1)
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())].clone()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.roll(at + 1));
        }
    }
}

/// An element of a schema document.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The local name, in the namespace of XML Schema.
    pub(crate) tag: &'static str,
    attributes: Vec<(&'static str, String)>,
    pub(crate) children: Vec<Node>,
    /// The part of the element in the schema, by which changes find it.
    pub(crate) role: &'static str,
}

pub(crate) fn node(tag: &'static str) -> Node {
    Node { tag, attributes: Vec::new(), children: Vec::new(), role: "" }
}

impl Node {
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.set(name, value);
        self
    }

    pub(crate) fn of(mut self, children: impl IntoIterator<Item = Node>) -> Self {
        self.children.extend(children);
        self
    }

    pub(crate) fn role(mut self, role: &'static str) -> Self {
        self.role = role;
        self
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.unset(name);
        self.attributes.push((name, value.into()));
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.attributes.retain(|(known, _)| *known != name);
    }

    /// Adds an attribute declaration, in front of a wildcard.
    pub(crate) fn declare(&mut self, attribute: Node) {
        let wildcard = self.children.iter().position(|child| child.tag == "anyAttribute");
        self.children.insert(wildcard.unwrap_or(self.children.len()), attribute);
    }

    /// The child of a tag.
    pub(crate) fn child(&mut self, tag: &str) -> &mut Node {
        self.children.iter_mut().find(|child| child.tag == tag).unwrap_or_else(|| panic!("there is no {tag}"))
    }

    /// A random element of a kind.
    pub(crate) fn any(&mut self, dice: &mut Dice, kind: impl Fn(&Node) -> bool) -> &mut Node {
        let mut count = 0;
        self.visit(&mut |node| {
            count += usize::from(kind(node));
            false
        });
        let (chosen, mut seen) = (dice.roll(count), 0);
        let chosen = self.visit(&mut |node| {
            seen += usize::from(kind(node));
            seen > chosen
        });
        chosen.expect("each random schema has one of each kind")
    }

    /// A random element of a role.
    pub(crate) fn one(&mut self, dice: &mut Dice, role: &str) -> &mut Node {
        assert!(self.visit(&mut |node| node.role == role).is_some(), "there is no {role}");
        self.any(dice, |node| node.role == role)
    }

    /// The reference to the component of a role: its name with the prefix.
    pub(crate) fn reference(&mut self, dice: &mut Dice, role: &str) -> String {
        format!("t:{}", self.one(dice, role).get("name").expect("it has a name"))
    }

    /// Visits the elements in document order, until one of them is wanted.
    fn visit(&mut self, is_wanted: &mut dyn FnMut(&Node) -> bool) -> Option<&mut Node> {
        if is_wanted(self) {
            return Some(self);
        }
        self.children.iter_mut().find_map(|child| child.visit(is_wanted))
    }

    pub(crate) fn write(&self, out: &mut String) {
        out.push_str(&format!("<xs:{}", self.tag));
        for (name, value) in &self.attributes {
            out.push_str(&format!(" {name}='{value}'"));
        }
        out.push('>');
        self.children.iter().for_each(|child| child.write(out));
        out.push_str(&format!("</xs:{}>\n", self.tag));
    }

    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}
