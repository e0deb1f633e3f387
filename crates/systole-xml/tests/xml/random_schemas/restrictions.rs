//! Restrictions of complex types for the generator: attributes, and particles of each pair of kinds.

use super::generator::{Generator, derived};
use super::tree::{Node, node};

impl Generator<'_> {
    fn pair(&mut self, base: Node, own: impl IntoIterator<Item = Node>) {
        let base = self.global(base, "restricted base");
        self.global(node("complexType").of([derived("restriction", &base, own)]), "restriction");
    }

    /// A pair of content models, between declarations of their own.
    fn contents(&mut self, base: Node, own: Node) {
        let base = self.global(node("complexType").of([base]), "");
        self.global(node("complexType").of([derived("restriction", &base, [own])]), "");
    }

    pub(super) fn restrictions(&mut self) {
        self.restricted_attributes();
        self.restricted_sequence();
        self.restricted_choice();
        self.restricted_all();
        self.restricted_wildcards();
    }

    fn restricted_attributes(&mut self) {
        let [needed, typed, fixed, own] = [self.name("a"), self.name("a"), self.name("a"), self.name("a")];
        let needed = node("attribute").with("name", needed).with("type", "xs:int").with("use", "required");
        let typed = node("attribute").with("name", typed).with("type", "xs:int");
        let fixed = node("attribute").with("name", fixed).with("type", "xs:decimal").with("fixed", "1");
        let any = node("anyAttribute").with("namespace", "urn:o urn:p").with("processContents", "lax");
        let base = node("complexType").of([needed.clone(), typed.clone(), fixed.clone()]);
        let base = base.of([node("attribute").with("name", own), any.clone()]);
        self.pair(
            base,
            [
                needed.role("needed attribute"),
                typed.with("type", "xs:short").role("typed attribute"),
                fixed.with("fixed", "1.0").role("attribute of a fixed value"),
                any.with("namespace", "urn:o").role("narrowed wildcard of attributes"),
            ],
        );
    }

    /// A sequence with nested ones, narrowed part by part.
    fn restricted_sequence(&mut self) {
        let depth = self.dice.roll(3);
        let (base, mut own) = self.narrowed(depth);
        let last = self.element();
        own.children.push(last.clone().role("narrowed element"));
        let base = base.of([last]);
        let base = self.global(node("complexType").of([base]), "base of a sequence");
        let own = node("complexType").of([derived("restriction", &base, [own.role("narrowed sequence")])]);
        self.global(own, "restriction of a sequence");
        // Optional parts, which a choice can't restrict.
        let parts: Vec<Node> = (0..3).map(|_| self.element().with("minOccurs", "0")).collect();
        let optional = node("sequence").of(parts);
        self.contents(optional.clone(), optional.role("optional parts"));
    }

    /// A sequence whose parts must be there, and a restriction of it.
    fn narrowed(&mut self, depth: usize) -> (Node, Node) {
        let (mut base, mut own) = (node("sequence"), node("sequence"));
        let element = self.element().with("minOccurs", "1").with("maxOccurs", "3");
        base.children.push(element.clone());
        own.children.push(element.with("maxOccurs", self.dice.pick(&["1", "2", "3"])).role("narrowed element"));
        let fixed = node("element").with("name", self.name("e")).with("type", "xs:decimal").with("fixed", "1");
        let blocked = self.element().with("block", "extension");
        base.children.extend([fixed.clone(), blocked.clone()]);
        own.children.push(fixed.with("fixed", "1.0").role("narrowed fixed element"));
        own.children.push(blocked.role("narrowed blocking element"));
        if depth > 0 {
            let (inner, narrower) = self.narrowed(depth - 1);
            // A group that stands once would be no group in the restriction, but one in the base.
            let ranges = [[("1", "1"), ("1", "1")], [("1", "3"), ("2", "3")], [("2", "3"), ("2", "2")]];
            let [(min, max), (more, less)] = self.dice.pick(&ranges);
            base.children.push(inner.with("minOccurs", min).with("maxOccurs", max));
            own.children.push(narrower.with("minOccurs", more).with("maxOccurs", less));
        }
        (base, own)
    }

    fn restricted_choice(&mut self) {
        let parts: Vec<Node> = (0..4).map(|_| self.element()).collect();
        let base = node("choice").of(parts.clone());
        let left_out = 1 + self.dice.roll(2);
        let fewer = parts.iter().enumerate().filter(|(at, _)| *at != left_out);
        let own = node("choice").of(fewer.map(|(_, part)| part.clone().role("chosen element")));
        let base = base.with("maxOccurs", "3");
        self.contents(base.clone(), own.with("maxOccurs", "2").role("narrowed choice"));
        let mut some: Vec<Node> = parts.iter().take(3).map(|part| part.clone().role("summed element")).collect();
        self.dice.shuffle(&mut some);
        self.contents(base.role("summed choice"), node("sequence").of(some).role("summed sequence"));
    }

    fn restricted_all(&mut self) {
        let parts: Vec<Node> = (0..3).map(|_| self.element()).collect();
        let base = node("all").of(parts.clone()).of([self.element().with("minOccurs", "0")]);
        self.contents(base.clone(), node("all").of(parts.clone()).role("narrowed all"));
        let mut some: Vec<Node> = parts.iter().map(|part| part.clone().role("ordered element")).collect();
        self.dice.shuffle(&mut some);
        self.contents(base, node("sequence").of(some).role("ordered sequence"));
    }

    fn restricted_wildcards(&mut self) {
        let own = node("any").with("namespace", "##targetNamespace").with("maxOccurs", "4");
        let element = self.element().with("form", "qualified").with("maxOccurs", "2").role("element for a wildcard");
        self.contents(node("sequence").of([own.clone()]), node("sequence").of([element]));
        let parts: Vec<Node> =
            (0..2).map(|_| self.element().with("form", "qualified").role("part for a wildcard")).collect();
        self.contents(node("sequence").of([own]), node("sequence").of(parts).role("group for a wildcard"));
        let any = node("any").with("namespace", "##local urn:o").with("processContents", "lax");
        let narrow = any.clone().with("namespace", self.dice.pick(&["##local", "urn:o"])).role("narrowed wildcard");
        self.contents(node("sequence").of([any]), node("sequence").of([narrow]));
    }
}
