//! Schemas with the highest costs that are known, shared by `tests/xml/hostile.rs` and `benches/hostile.rs`.

mod pairs;
mod wide;

use systole_xml::schema::XsdDocument;

/// Documents of one schema set, named after the attack.
pub(crate) struct Hostile {
    pub(crate) name: &'static str,
    pub(crate) documents: Vec<XsdDocument>,
}

impl Hostile {
    /// A set of documents, given as names and texts.
    fn of(name: &'static str, documents: Vec<(String, String)>) -> Self {
        Self { name, documents: documents.into_iter().map(|(name, text)| XsdDocument { name, text }).collect() }
    }
}

impl std::fmt::Display for Hostile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The hostile schemas of all classes.
pub(crate) fn schemas() -> Vec<Hostile> {
    let classes = [
        declarations(),
        models(),
        counts(),
        types(),
        attributes(),
        simple(),
        patterns(),
        keys(),
        sets(),
        wide::schemas(),
        pairs::schemas(),
    ];
    classes.into_iter().flatten().collect()
}

fn schema(attributes: &str, inside: &str) -> String {
    format!("<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'{attributes}>{inside}</xs:schema>")
}

fn one(name: &'static str, inside: String) -> Hostile {
    Hostile::of(name, vec![("h.xsd".to_owned(), schema("", &inside))])
}

fn many(n: usize, item: impl Fn(usize) -> String) -> String {
    (0..n).map(item).collect()
}

fn element(content: &str) -> String {
    format!("<xs:element name='r'><xs:complexType>{content}</xs:complexType></xs:element>")
}

fn complex(name: &str, content: &str) -> String {
    format!("<xs:complexType name='{name}'>{content}</xs:complexType>")
}

fn derived(name: &str, how: &str, base: &str, content: &str) -> String {
    complex(name, &format!("<xs:complexContent><xs:{how} base='{base}'>{content}</xs:{how}></xs:complexContent>"))
}

/// A union type.
fn union(name: &str, members: &str) -> String {
    format!("<xs:simpleType name='{name}'><xs:union memberTypes='{members}'/></xs:simpleType>")
}

fn restricted(name: &str, base: &str, facets: &str) -> String {
    format!("<xs:simpleType name='{name}'><xs:restriction base='{base}'>{facets}</xs:restriction></xs:simpleType>")
}

fn named(n: usize, attributes: &str) -> String {
    many(n, |i| format!("<xs:element name='e{i}'{attributes}/>"))
}

fn sequence(inside: &str) -> String {
    format!("<xs:sequence>{inside}</xs:sequence>")
}

const OPTIONAL: &str = " minOccurs='0'";
const ROOT: &str = "<xs:element name='r'/>";

fn declarations() -> Vec<Hostile> {
    const N: usize = 10_000;
    vec![
        one("10,000 elements", named(N, " type='xs:int'")),
        one(
            "10,000 elements with types",
            many(N, |i| {
                format!(
                    "<xs:element name='e{i}'><xs:complexType><xs:sequence><xs:element name='a'/></xs:sequence></xs:complexType></xs:element>"
                )
            }),
        ),
        one(
            "10,000 complex types",
            many(N, |i| complex(&format!("t{i}"), &sequence("<xs:element name='a' maxOccurs='9'/>"))) + ROOT,
        ),
        one(
            "10,000 simple types",
            many(N, |i| restricted(&format!("t{i}"), "xs:string", "<xs:maxLength value='9'/>")) + ROOT,
        ),
        one("10,000 attributes", many(N, |i| format!("<xs:attribute name='a{i}' type='xs:int'/>")) + ROOT),
        one(
            "10,000 groups",
            many(N, |i| format!("<xs:group name='g{i}'><xs:sequence><xs:element name='a'/></xs:sequence></xs:group>"))
                + ROOT,
        ),
        one("10,000 references to nothing", named(N, " type='nothing'")),
        one(
            "1,000 elements of a type with 1,000 children",
            named(1_000, " type='t'")
                + &complex("t", &sequence(&many(1_000, |i| format!("<xs:element name='a{i}'/>")))),
        ),
        one(
            "1,000 elements of a net of 1,000 types",
            named(1_000, " type='t0'")
                + &many(1_000, |i| {
                    let a =
                        |n: usize| format!("<xs:element name='a{n}' type='t{}' minOccurs='0'/>", (i * 7 + n) % 1_000);
                    complex(&format!("t{i}"), &sequence(&many(9, a)))
                }),
        ),
    ]
}

fn models() -> Vec<Hostile> {
    let wide = |n, how: &str| element(&format!("<xs:choice{how}>{}</xs:choice>", named(n, "")));
    let deep = |n: usize, tag: &str, how: &str| {
        let (open, close) = (format!("<xs:{tag}{how}>").repeat(n), format!("</xs:{tag}>").repeat(n));
        element(&format!("{open}<xs:element name='a'/>{close}"))
    };
    let groups = |last: &str| {
        many(60, |i| {
            format!(
                "<xs:group name='g{i}'><xs:sequence><xs:group ref='g{0}'/><xs:group ref='g{0}'/></xs:sequence></xs:group>",
                i + 1
            )
        }) + &format!("<xs:group name='g60'><xs:sequence>{last}</xs:sequence></xs:group>")
            + &element("<xs:group ref='g0'/>")
    };
    vec![
        one("1,000 optional elements in a row", element(&sequence(&named(1_000, OPTIONAL)))),
        one("3,000 optional elements in a row", element(&sequence(&named(3_000, OPTIONAL)))),
        one("a choice of 10,000", wide(10_000, "")),
        one("a choice of 10,000 that repeats", wide(10_000, " maxOccurs='unbounded'")),
        one("a sequence of 10,000", element(&sequence(&named(10_000, "")))),
        one("all of 5,000", element(&format!("<xs:all>{}</xs:all>", named(5_000, OPTIONAL)))),
        one("90 choices that repeat inside each other", deep(90, "choice", " maxOccurs='unbounded'")),
        one("200 sequences inside each other", deep(200, "sequence", "")),
        one("groups of two groups, 60 deep", groups("<xs:element name='a'/>")),
        one("empty groups of two groups, 60 deep", groups("")),
        one(
            "a restriction of a wide choice by a sequence",
            complex("b", &format!("<xs:choice maxOccurs='unbounded'>{}</xs:choice>", named(2_000, "")))
                + &derived("d", "restriction", "b", &sequence(&named(2_000, "")))
                + ROOT,
        ),
        one("an xs:all of 2,000 restricted from its end", {
            let backwards = many(2_000, |i| format!("<xs:element name='e{}'/>", 1_999 - i));
            complex("b", &format!("<xs:all>{}</xs:all>", named(2_000, "")))
                + &derived("d", "restriction", "b", &sequence(&backwards))
                + ROOT
        }),
        one(
            "1,500 wildcards",
            element(&sequence(&many(1_500, |i| {
                format!("<xs:element name='e{i}'/><xs:any namespace='urn:{i}' minOccurs='0' maxOccurs='unbounded'/>")
            }))),
        ),
        one(
            "a wildcard of 20,000 namespaces",
            element(&sequence(&format!("<xs:any namespace='{}'/>", many(20_000, |i| format!("urn:{i} "))))),
        ),
    ]
}

fn counts() -> Vec<Hostile> {
    let nested = |n: usize, occurs: &str, inside: &str| {
        element(&format!("{}{inside}{}", format!("<xs:sequence {occurs}>").repeat(n), "</xs:sequence>".repeat(n)))
    };
    let ab = "<xs:element name='a'/><xs:element name='b' minOccurs='0'/>";
    vec![
        one(
            "an element 99,999 times",
            element(&sequence("<xs:element name='a' minOccurs='99999' maxOccurs='99999'/>")),
        ),
        one("a group 99,999 times", nested(1, "maxOccurs='99999'", ab)),
        one(
            "a group 15,000 times",
            nested(1, "minOccurs='0' maxOccurs='15000'", "<xs:element name='a'/><xs:element name='b'/>"),
        ),
        one("a group 30 times, 4 deep", nested(4, "maxOccurs='30'", ab)),
        one("a group twice, 15 deep", nested(15, "minOccurs='2' maxOccurs='2'", "<xs:element name='a'/>")),
        one(
            "a minLength of 2,000,000,000",
            restricted("t", "xs:string", "<xs:minLength value='2000000000'/>") + "<xs:element name='r' type='t'/>",
        ),
    ]
}

fn types() -> Vec<Hostile> {
    let chain = |n: usize, each: &dyn Fn(usize) -> String| {
        complex("t0", &sequence("<xs:element name='a'/>"))
            + &many(n, |i| derived(&format!("t{}", i + 1), "extension", &format!("t{i}"), &each(i)))
            + ROOT
    };
    let inside = "<xs:complexType><xs:sequence><xs:element name='a'>";
    let outside = "</xs:element></xs:sequence></xs:complexType>";
    let deep = |n: usize| format!("<xs:element name='r'>{}{}</xs:element>", inside.repeat(n), outside.repeat(n));
    let tree = |occurs: &str| {
        many(40, |i| {
            let child = |name| format!("<xs:element name='{name}' type='t{}'{occurs}/>", i + 1);
            complex(&format!("t{i}"), &sequence(&(child("a") + &child("b"))))
        }) + &complex("t40", "")
            + "<xs:element name='r' type='t0'/>"
    };
    vec![
        one("10,000 types extend each other", chain(10_000, &|i| sequence(&format!("<xs:element name='a{i}'/>")))),
        one(
            "90 types extend each other by 100 optional elements",
            chain(90, &|i| sequence(&many(100, |j| format!("<xs:element name='a{i}.{j}' minOccurs='0'/>")))),
        ),
        one("types inside each other, 60 deep", deep(60)),
        one(
            "200 elements with types inside each other, 50 deep",
            many(200, |i| format!("<xs:element name='e{i}'>{}{}</xs:element>", inside.repeat(49), outside.repeat(49))),
        ),
        one("types inside each other, 240 deep", deep(240)),
        one("a tree of 40 levels that must be there", tree("")),
        one("a tree of 40 levels that may be there", tree(OPTIONAL)),
        one(
            "heads in a circle of 10,000",
            many(10_000, |i| format!("<xs:element name='e{i}' substitutionGroup='e{}'/>", (i + 1) % 10_000)),
        ),
        one(
            "10,000 elements for one head",
            named(10_000, " substitutionGroup='h'")
                + "<xs:element name='h'/>"
                + &element(&sequence("<xs:element ref='h' maxOccurs='9'/>")),
        ),
        one(
            "900 elements for one head in 1,000 places",
            named(900, " substitutionGroup='h'")
                + "<xs:element name='h'/>"
                + &element(&sequence(&many(1_000, |i| {
                    format!("<xs:element name='x{i}'/><xs:element ref='h' minOccurs='0'/>")
                }))),
        ),
    ]
}

fn attributes() -> Vec<Hostile> {
    let many_of = |prefix: &str, n| many(n, |i| format!("<xs:attribute name='{prefix}{i}'/>"));
    let groups = |last: &str| {
        many(60, |i| {
            format!(
                "<xs:attributeGroup name='g{i}'><xs:attributeGroup ref='g{0}'/><xs:attributeGroup ref='g{0}'/></xs:attributeGroup>",
                i + 1
            )
        }) + &format!("<xs:attributeGroup name='g60'>{last}</xs:attributeGroup>")
            + ROOT
    };
    vec![
        one("5,000 attributes", element(&many_of("a", 5_000))),
        one("90 types extend each other by 100 attributes", {
            complex("t0", "")
                + &many(90, |i| {
                    derived(&format!("t{}", i + 1), "extension", &format!("t{i}"), &many_of(&format!("a{i}."), 100))
                })
                + ROOT
        }),
        one("2,000 types with a group of 1,000 attributes", {
            format!("<xs:attributeGroup name='g'>{}</xs:attributeGroup>", many_of("a", 1_000))
                + &many(2_000, |i| complex(&format!("t{i}"), "<xs:attributeGroup ref='g'/>"))
                + ROOT
        }),
        one("attribute groups of two, 60 deep", groups("<xs:attribute name='a'/>")),
        one("empty attribute groups of two, 60 deep", groups("")),
    ]
}

fn simple() -> Vec<Hostile> {
    let r = "<xs:element name='r' type='t0'/>";
    let enumeration = |n| many(n, |i| format!("<xs:enumeration value='v{i}'/>"));
    vec![
        one("10,000 simple types restrict each other", {
            restricted("t0", "xs:int", "")
                + &many(10_000, |i| restricted(&format!("t{}", i + 1), &format!("t{i}"), ""))
                + ROOT
        }),
        one("unions of one type twice, 90 deep", {
            many(90, |i| union(&format!("t{i}"), &format!("t{0} t{0}", i + 1))) + &restricted("t90", "xs:int", "") + r
        }),
        one("unions of two types, 40 deep", {
            let both = |i: usize, name: &str, digit: usize| {
                format!(
                    "<xs:simpleType name='{name}{i}'><xs:restriction><xs:simpleType><xs:union memberTypes='t{0} u{0}'/></xs:simpleType><xs:enumeration value='{digit}'/></xs:restriction></xs:simpleType>",
                    i + 1
                )
            };
            many(40, |i| both(i, "t", 1) + &both(i, "u", 1))
                + &restricted("t40", "xs:int", "")
                + &restricted("u40", "xs:int", "")
                + r
        }),
        one("a union of 10,000 types", {
            many(10_000, |i| restricted(&format!("u{i}"), "xs:int", ""))
                + &union("t0", &many(10_000, |i| format!("u{i} ")))
                + r
        }),
        one("an enumeration of 20,000 values", restricted("t0", "xs:string", &enumeration(20_000)) + r),
        one(
            "an enumeration of 50,000 numbers",
            restricted("t0", "xs:int", &many(50_000, |i| format!("<xs:enumeration value='{i}'/>"))) + r,
        ),
        one("500 unions of 500 types with a text", {
            many(500, |i| restricted(&format!("u{i}"), "xs:string", &format!("<xs:enumeration value='{i}'/>")))
                + &many(500, |i| union(&format!("t{i}"), &many(500, |j| format!("u{j} "))))
                + r
        }),
        one(
            "a bound of 1,000,000 digits",
            restricted("t0", "xs:decimal", &format!("<xs:maxInclusive value='{}'/>", "9".repeat(1_000_000))) + r,
        ),
        one(
            "a duration of 100,000 digits",
            restricted("t0", "xs:duration", &format!("<xs:maxInclusive value='P{}Y'/>", "9".repeat(100_000))) + r,
        ),
        one(
            "a fixed list of 100,000 items",
            format!("<xs:element name='r' type='xs:NMTOKENS' fixed='{}'/>", "a ".repeat(100_000)),
        ),
    ]
}

fn patterns() -> Vec<Hostile> {
    let r = "<xs:element name='r' type='t0'/>";
    let pattern = |value: &str| format!("<xs:pattern value='{value}'/>");
    let with = |name, value: &str| one(name, restricted("t0", "xs:string", &pattern(value)) + r);
    vec![
        with("100,000 parentheses", &("(".repeat(100_000) + "a" + &")".repeat(100_000))),
        with("a pattern counted 999 times, 3 deep", "(((a{0,999}){0,999}){0,999})*"),
        with("a pattern of 999,999,999", "a{999999999}"),
        with("a pattern of any letter 999 times", "\\p{L}{0,999}"),
        with(
            "a pattern of 60 classes 999 times",
            &format!(
                "({}){{0,999}}",
                many(60, |i| format!("[\\p{{L}}-[a-z]]?[&#x{:X};-&#x{:X};]", 0x400 + i, 0x3400 + 7 * i))
            ),
        ),
        with("a pattern of letters or numbers 100 times", "(\\p{L}|\\p{N}){0,100}"),
        with("a pattern of 5,000 that may and 5,000 that must be there", &("a?".repeat(5_000) + &"a".repeat(5_000))),
        with("a pattern of 5,000 groups inside each other", &("(".repeat(5_000) + "a" + &")".repeat(5_000))),
        with("a pattern of 500 classes less classes", &("[a-z-".repeat(500) + "[b]" + &"]".repeat(500))),
        with("200 classes of letters less classes", &("[\\p{L}-".repeat(200) + "[b]" + &"]".repeat(200))),
        with("a class of 30,000 characters", &format!("[{}]", many(30_000, |i| format!("&#x{:X};", 0x20000 + 2 * i)))),
        with("a class of 50,000 classes", &format!("[{}]", "\\p{L}".repeat(50_000))),
        with("a pattern of 50,000 classes", &"\\p{L}".repeat(50_000)),
        with("a pattern of 10,000 words", &many(10_000, |i| format!("w{i}|"))),
        one(
            "1,000 patterns",
            many(1_000, |i| restricted(&format!("t{i}"), "xs:string", &pattern(&format!("[a-z]{{0,20}}x{i}")))) + r,
        ),
        one(
            "1,000 patterns of any letter",
            many(1_000, |i| restricted(&format!("t{i}"), "xs:string", &pattern(&format!("\\w{{0,20}}x{i}")))) + r,
        ),
        one(
            "a type with 2,000 patterns of any letter",
            restricted("t0", "xs:string", &many(2_000, |i| pattern(&format!("\\w{{0,20}}x{i}")))) + r,
        ),
    ]
}

fn keys() -> Vec<Hostile> {
    let key = |kind: &str, attributes: &str, path: &str| {
        format!("<xs:{kind} {attributes}><xs:selector xpath='{path}'/><xs:field xpath='@b'/></xs:{kind}>")
    };
    let name = |i: usize| format!("name='k{i}'");
    let refer = |i: usize| format!("name='f{i}' refer='k0'");
    let on = |keys: String| format!("<xs:element name='r'>{keys}</xs:element>");
    vec![
        one("5,000 keys", on(many(5_000, |i| key("key", &name(i), "a")))),
        one(
            "a key and 5,000 references",
            on(key("key", &name(0), "a") + &many(5_000, |i| key("keyref", &refer(i), "a"))),
        ),
        one(
            "a selector of 10,000 paths",
            on(key("key", &name(0), many(10_000, |i| format!(".//a{i}/b|")).trim_end_matches('|'))),
        ),
    ]
}

/// A set of `n` documents.
fn set(name: &'static str, n: usize, text: &dyn Fn(usize) -> String) -> Hostile {
    Hostile::of(name, (0..n).map(|i| (format!("{i}.xsd"), text(i))).collect())
}

fn link(kind: &str, to: usize) -> String {
    format!("<xs:{kind} schemaLocation='{to}.xsd'/>")
}

fn sets() -> Vec<Hostile> {
    let import = |to: usize| format!("<xs:import namespace='urn:{to}' schemaLocation='{to}.xsd'/>");
    let target = |i: usize| format!(" targetNamespace='urn:{i}'");
    vec![
        set("300 imports in a circle", 300, &|i| {
            let next = (i + 1) % 300;
            let inside = import(next) + &element(&sequence("<xs:element ref='n:r' minOccurs='0'/>"));
            schema(&format!("{} xmlns:n='urn:{next}'", target(i)), &inside)
        }),
        set("500 imports in a circle", 500, &|i| {
            let next = (i + 1) % 500;
            let inside = import(next) + &element(&sequence("<xs:element ref='n:r' minOccurs='0'/>"));
            schema(&format!("{} xmlns:n='urn:{next}'", target(i)), &inside)
        }),
        set("300 includes in a circle", 300, &|i| {
            schema("", &(link("include", (i + 1) % 300) + &format!("<xs:element name='e{i}'/>")))
        }),
        set("180 documents that all import each other", 180, &|i| {
            schema(&target(i), &(many(180, |j| if i == j { String::new() } else { import(j) }) + ROOT))
        }),
        set("100 elements included into 100 namespaces", 101, &|i| match i {
            100 => schema("", &named(100, " type='xs:int'")),
            _ => schema(&target(i), &link("include", 100)),
        }),
        set("1,000 elements included into 200 namespaces", 201, &|i| match i {
            200 => schema("", &named(1_000, "")),
            _ => schema(&target(i), &link("include", 200)),
        }),
        set("a type redefined 90 times", 91, &|i| match i {
            90 => schema("", &(complex("t", "") + "<xs:element name='r' type='t'/>")),
            _ => {
                let own = derived("t", "extension", "t", &sequence(&format!("<xs:element name='x{i}'/>")));
                schema("", &format!("<xs:redefine schemaLocation='{}.xsd'>{own}</xs:redefine>", i + 1))
            }
        }),
        set("a group and its attributes redefined 1,000 times", 1_001, &|i| {
            let group = |name: &str| {
                format!("<xs:group name='g'><xs:sequence><xs:element name='{name}'/></xs:sequence></xs:group>")
            };
            let own = group("a") + "<xs:attributeGroup name='h'><xs:attribute name='b'/></xs:attributeGroup>";
            match i {
                1_000 => schema("", &(own + ROOT)),
                _ => schema("", &format!("<xs:redefine schemaLocation='{}.xsd'>{own}</xs:redefine>", i + 1)),
            }
        }),
        set("each of 60 documents included twice by the one before", 60, &|i| match i {
            59 => schema("", ROOT),
            _ => schema("", &(link("include", i + 1) + &link("include", i + 1))),
        }),
    ]
}
