//! A generator of valid schemas: simple types, attributes, groups, derivations, substitution groups, identity
//! constraints. Names are unique, so each content model is deterministic; the roles of the elements say which rules
//! hold there.

use super::tree::{Dice, Node, node};

/// A type with a value of it.
type Typed = (String, &'static str);

pub(crate) struct Generator<'d> {
    pub(super) dice: &'d mut Dice,
    names: usize,
    /// Types for elements and attributes.
    types: Vec<Typed>,
    pub(super) out: Vec<Node>,
}

/// A random schema for target namespace `urn:t`.
pub(crate) fn schema(dice: &mut Dice) -> Node {
    let types = [("xs:int", "7"), ("xs:string", "v"), ("xs:date", "2000-02-29"), ("xs:boolean", "true")];
    let types = types.map(|(name, value)| (name.to_owned(), value)).into();
    let mut generator = Generator { dice, names: 0, types, out: Vec::new() };
    generator.simple_types();
    generator.attributes();
    generator.elements();
    for _ in 0..=generator.dice.roll(2) {
        generator.free_type();
    }
    generator.groups();
    generator.derivations();
    generator.restrictions();
    let mut out = generator.out;
    dice.shuffle(&mut out);
    let form = dice.pick(&["qualified", "unqualified"]);
    node("schema")
        .with("xmlns:xs", "http://www.w3.org/2001/XMLSchema")
        .with("xmlns:t", "urn:t")
        .with("xmlns:o", "urn:o")
        .with("targetNamespace", "urn:t")
        .with("elementFormDefault", form)
        .of(out)
}

pub(super) fn restriction(base: &str, facets: &[(&'static str, &str)]) -> Node {
    let facets = facets.iter().map(|(facet, value)| node(facet).with("value", *value));
    node("restriction").with("base", base).of(facets)
}

pub(super) fn derived(how: &'static str, base: &str, children: impl IntoIterator<Item = Node>) -> Node {
    node("complexContent").of([node(how).with("base", base).of(children)])
}

impl Generator<'_> {
    pub(super) fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("{kind}{}", self.names)
    }

    fn number(&mut self, least: usize, more: usize) -> usize {
        least + self.dice.roll(more)
    }

    /// Adds a named component; the result refers to it.
    pub(super) fn global(&mut self, component: Node, role: &'static str) -> String {
        let name = self.name(&component.tag[..1]);
        let mut component = component.with("name", name.clone());
        component.role = role;
        self.out.push(component);
        format!("t:{name}")
    }

    fn simple(&mut self, role: &'static str, inner: Node) -> String {
        self.global(node("simpleType").of([inner]), role)
    }

    fn simple_types(&mut self) {
        let (low, high) = (self.number(5, 50), self.number(10, 50));
        let base = self.dice.pick(&["xs:int", "xs:decimal", "xs:long", "xs:integer"]);
        let bounds =
            |low: usize, high: usize| [("minInclusive", format!("-{low}")), ("maxInclusive", high.to_string())];
        let facets = |pairs: [(&'static str, String); 2], base: &str| {
            let pairs: Vec<(&'static str, &str)> =
                pairs.iter().map(|(facet, value)| (*facet, value.as_str())).collect();
            restriction(base, &pairs)
        };
        let wide = self.simple("bounds base", facets(bounds(low, high), base));
        let (low, high) = (low - self.dice.roll(4), high - self.dice.roll(4));
        let bounded = self.simple("bounds", facets(bounds(low, high), &wide));
        self.types.push((bounded, "1"));
        let open =
            self.simple("open base", restriction("xs:decimal", &[("minExclusive", "-9"), ("maxExclusive", "9")]));
        self.simple("open", restriction(&open, &[("minExclusive", "-8"), ("maxExclusive", "9")]));
        let base = self.dice.pick(&["xs:string", "xs:token", "xs:NCName"]);
        let (least, most) = (self.number(2, 3), self.number(8, 9));
        let lengths = |least: usize, most: usize| [("minLength", least.to_string()), ("maxLength", most.to_string())];
        let long = self.simple("lengths base", facets(lengths(least, most), base));
        self.simple("lengths", facets(lengths(least + 1, most - 1), &long));
        self.types.push((long, "value"));
        let length = self.number(2, 5).to_string();
        let same = self.simple("length base", restriction("xs:string", &[("length", length.as_str())]));
        self.simple("length", restriction(&same, &[("pattern", ".*")]));
        let digits = self.number(5, 9).to_string();
        let decimal =
            self.simple("digits base", restriction("xs:decimal", &[("totalDigits", &digits), ("fractionDigits", "2")]));
        self.simple("digits", restriction(&decimal, &[("totalDigits", "4"), ("fractionDigits", "1")]));
        self.simple("integers", restriction("xs:integer", &[("fractionDigits", "0"), ("totalDigits", &digits)]));
        let words = self.simple(
            "words base",
            restriction("xs:string", &[("enumeration", "x"), ("enumeration", "y"), ("enumeration", "z")]),
        );
        let word = self.dice.pick(&["x", "y", "z"]);
        self.simple("words", restriction(&words, &[("enumeration", word)]));
        self.types.push((words, "y"));
        let numbers = self.simple("numbers base", restriction("xs:int", &[("enumeration", "1"), ("enumeration", "5")]));
        let end = self.dice.pick(&["1", "5"]);
        self.simple("numbers", restriction(&numbers, &[("minInclusive", end)]));
        self.simple("pattern", restriction("xs:string", &[("pattern", "[a-c]{1,3}")]));
        self.simple("space", restriction("xs:token", &[("whiteSpace", "collapse")]));
        let item = self.dice.pick(&["xs:int", "xs:date", "xs:NCName"]);
        let item = self.simple("item", restriction(item, &[]));
        let list = self.simple("list", node("list").with("itemType", item.clone()));
        self.simple("list restricted", restriction(&list, &[("maxLength", "5")]));
        self.simple("tokens", restriction("xs:NMTOKENS", &[("minLength", "1")]));
        let member = self.simple("member type", restriction("xs:date", &[]));
        let union = self.simple("union", node("union").with("memberTypes", format!("{member} xs:int")));
        self.simple("union restricted", restriction(&union, &[("enumeration", "7")]));
        let inline = node("simpleType").of([restriction("xs:int", &[])]);
        self.simple("inline restriction", node("restriction").of([inline.clone()]));
        self.simple("inline list", node("list").of([inline]));
        let notation = node("notation").with("public", "p");
        let notation = self.global(notation, "notation");
        let kind = self.simple("notations", restriction("xs:NOTATION", &[("enumeration", &notation)]));
        self.global(node("attribute").with("type", kind.clone()), "notation attribute");
        self.global(node("element").with("type", kind), "notation element");
    }

    /// A local attribute.
    fn attribute(&mut self) -> Node {
        let (ty, value) = self.dice.pick(&self.types);
        let attribute = node("attribute").with("name", self.name("a")).with("type", ty);
        match self.dice.roll(4) {
            0 => attribute.with("use", "required"),
            1 => attribute.with("default", value),
            _ => attribute,
        }
    }

    fn attributes(&mut self) {
        self.global(node("attribute").with("type", "xs:int").with("default", "7"), "default attribute");
        let fixed = self.global(node("attribute").with("type", "xs:decimal").with("fixed", "1"), "fixed attribute");
        let reference = node("attribute").with("ref", fixed).with("fixed", "1.0").role("fixed reference");
        let own = self.attribute();
        self.global(node("complexType").of([reference, own]), "");
        let last = self.attribute();
        let last = self.global(node("attributeGroup").of([last]), "last attribute group");
        let middle = [self.attribute(), node("attributeGroup").with("ref", last)];
        let middle = self.global(node("attributeGroup").of(middle), "");
        let first = self
            .global(node("attributeGroup").of([node("attributeGroup").with("ref", middle)]), "first attribute group");
        self.global(node("complexType").of([node("attributeGroup").with("ref", first)]), "attributed");
    }

    fn elements(&mut self) {
        self.global(node("element").with("type", "xs:int").with("default", " 7 "), "default element");
        let head = self.global(node("element").with("type", "xs:int"), "head");
        self.global(node("element").with("type", "xs:short").with("substitutionGroup", head), "member");
        let first = self.global(node("element"), "untyped head");
        self.global(node("element").with("substitutionGroup", first), "untyped member");
        let inside = node("element").with("name", self.name("e")).with("minOccurs", "0").role("emptiable part");
        let content = node("complexType").with("mixed", "true").of([node("sequence").of([inside])]);
        self.global(node("element").with("default", "x").of([content.role("mixed content")]), "mixed element");
        let [item, part] = [self.name("e"), self.name("e")];
        let fields = |paths: [&str; 2]| paths.map(|path| node("field").with("xpath", path).role("field"));
        let keys: Vec<Node> = ["key", "unique", "keyref"]
            .map(|tag| {
                let selector = node("selector").with("xpath", format!("t:{item}")).role("selector");
                node(tag).with("name", self.name("k")).of([selector]).of(fields(["@p", &format!("t:{part}")])).role(tag)
            })
            .into();
        let [key, unique, keyref] = keys.try_into().expect("three");
        let keyref = keyref.with("refer", format!("t:{}", key.get("name").expect("it has a name")));
        let attribute = node("attribute").with("name", "p").with("type", "xs:int").with("use", "required");
        let parts = node("sequence").of([node("element").with("name", part).with("type", "xs:int")]);
        let item = node("element").with("name", item).with("maxOccurs", "9");
        let item = item.of([node("complexType").of([parts, attribute])]);
        let content = node("complexType").of([node("sequence").of([item])]);
        self.global(node("element").of([content, key, unique, keyref]), "keyed");
    }

    fn occurs(&mut self, node: Node) -> Node {
        let (min, max) =
            self.dice.pick(&[("1", "1"), ("1", "1"), ("0", "1"), ("0", "unbounded"), ("1", "3"), ("2", "2")]);
        let role = if node.role.is_empty() { "counted" } else { node.role };
        node.with("minOccurs", min).with("maxOccurs", max).role(role)
    }

    pub(super) fn element(&mut self) -> Node {
        let (ty, _) = self.dice.pick(&self.types);
        node("element").with("name", self.name("e")).with("type", ty)
    }

    /// A particle that no other particle of the schema conflicts with.
    fn particle(&mut self, depth: usize) -> Node {
        let particle = match self.dice.roll(if depth == 0 { 4 } else { 8 }) {
            0 | 1 => self.element(),
            2 => {
                let (ty, _) = self.dice.pick(&self.types);
                let element = self.global(node("element").with("type", ty), "");
                node("element").with("ref", element).role("element reference")
            }
            3 => node("any").with("namespace", format!("urn:{}", self.name("w"))).role("wildcard"),
            4 | 5 => self.open("sequence", depth - 1),
            6 => self.open("choice", depth - 1),
            _ => {
                let content = self.open("sequence", depth - 1);
                let group = self.global(node("group").of([content]), "");
                node("group").with("ref", group)
            }
        };
        self.occurs(particle)
    }

    /// A group to which particles may be added.
    fn open(&mut self, tag: &'static str, depth: usize) -> Node {
        let parts: Vec<Node> = (0..=self.dice.roll(3)).map(|_| self.particle(depth)).collect();
        node(tag).of(parts).role(if tag == "sequence" { "open sequence" } else { "open choice" })
    }

    /// A complex type from which none is derived, with all kinds of particles.
    fn free_type(&mut self) {
        let depth = self.number(1, 3);
        let mut content = self.open("sequence", depth);
        let wildcard = node("any").with("namespace", format!("urn:{}", self.name("w"))).role("wildcard");
        let (ty, _) = self.dice.pick(&self.types);
        let global = self.global(node("element").with("type", ty), "");
        content.children.extend([wildcard, node("element").with("ref", global).role("element reference")]);
        let attributes: Vec<Node> = (0..=self.dice.roll(2)).map(|_| self.attribute()).collect();
        let name = self.global(node("complexType").of([content]).of(attributes), "complex");
        self.global(node("element").with("type", name), "");
    }

    /// Groups that refer to each other.
    fn groups(&mut self) {
        let [first, middle, last] = [self.name("g"), self.name("g"), self.name("g")];
        let nested = |name: &str, inside: Node| node("group").with("name", name).of([node("sequence").of([inside])]);
        let to = |name: &str| node("group").with("ref", format!("t:{name}"));
        let end = self.element();
        self.out.extend([
            nested(&first, to(&middle)).role("first group"),
            nested(&middle, to(&last)),
            nested(&last, end).role("last group"),
        ]);
    }

    /// Extensions, simple content, and xs:all.
    fn derivations(&mut self) {
        let content = self.open("sequence", 1).role("extended sequence");
        let base = self.global(node("complexType").of([content]), "extended");
        let more = self.open("sequence", 1).role("extension sequence");
        let extension = derived("extension", &base, [more]);
        let middle = self.global(node("complexType").of([extension]), "extension");
        let attribute = self.attribute();
        self.global(node("complexType").of([derived("extension", &middle, [attribute])]), "last of the chain");
        let root = self.global(node("complexType"), "");
        let first = self.global(node("complexType").of([derived("extension", &root, [])]), "first of a circle");
        self.global(node("complexType").of([derived("extension", &first, [])]), "last of a circle");
        let text = self.simple("text", restriction("xs:int", &[]));
        let attribute = self.attribute();
        let simple = node("simpleContent").of([node("extension").with("base", text).of([attribute])]);
        let simple = self.global(node("complexType").of([simple]), "simple content");
        let narrow = node("simpleContent").of([restriction(&simple, &[("maxInclusive", "5")])]);
        self.global(node("complexType").of([narrow]), "simple content restricted");
        let part = self.element().with("minOccurs", "0").role("part of mixed");
        let mixed = node("complexType").with("mixed", "true").of([node("sequence").of([part])]);
        let mixed = self.global(mixed, "");
        let inline = node("simpleType").of([restriction("xs:int", &[])]);
        let plain = node("simpleContent").of([node("restriction").with("base", mixed).of([inline])]);
        self.global(node("complexType").of([plain]), "");
        let parts: Vec<Node> = (0..2).map(|_| self.element().role("part of all")).collect();
        let all = self.global(node("group").of([node("all").of(parts)]), "");
        let all = self.global(node("complexType").of([node("group").with("ref", all).role("reference to all")]), "all");
        let attribute = self.attribute();
        self.global(node("complexType").of([derived("extension", &all, [attribute])]), "extension of all");
        let base = self.global(node("complexType").of([node("attribute").with("name", "plain")]), "");
        self.global(node("complexType").of([derived("restriction", &base, [])]), "closed restriction");
    }
}
