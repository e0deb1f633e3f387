//! Schemas with very many items in one place, and with long chains of small items.

use super::{
    Hostile, ROOT, complex, derived, element, link, many, named, one, restricted, schema, sequence, set, union,
};

pub(super) fn schemas() -> Vec<Hostile> {
    [attributes(), enumerations(), repetitions(), chains(), texts(), links()].into_iter().flatten().collect()
}

fn attributes() -> Vec<Hostile> {
    let attributes = |n: usize, how: &str| many(n, |i| format!("<xs:attribute name='a{i}'{how}/>"));
    vec![
        one("100,000 required attributes", element(&attributes(100_000, " use='required'"))),
        one("100,000 optional attributes", element(&attributes(100_000, " type='xs:int'"))),
        one("a group of 90,000 attributes", {
            format!("<xs:attributeGroup name='g'>{}</xs:attributeGroup>", attributes(90_000, ""))
                + &element("<xs:attributeGroup ref='g'/>")
        }),
        one("a restriction of 50,000 attributes", {
            complex("b", &attributes(50_000, "")) + &derived("d", "restriction", "b", &attributes(50_000, "")) + ROOT
        }),
        one("attribute groups inside each other, 60 deep, with 1,000 attributes each", {
            let group = |i: usize, inside: String| {
                let own = many(1_000, |j| format!("<xs:attribute name='a{i}.{j}'/>"));
                format!("<xs:attributeGroup name='g{i}'>{own}{inside}</xs:attributeGroup>")
            };
            many(60, |i| group(i, format!("<xs:attributeGroup ref='g{}'/>", i + 1)))
                + &group(60, String::new())
                + &element("<xs:attributeGroup ref='g0'/>")
        }),
    ]
}

fn enumerations() -> Vec<Hostile> {
    let r = "<xs:element name='r' type='t0'/>";
    let values =
        |n: usize, value: &dyn Fn(usize) -> String| many(n, |i| format!("<xs:enumeration value='{}'/>", value(i)));
    let of =
        |name, base: &str, n, value: &dyn Fn(usize) -> String| one(name, restricted("t0", base, &values(n, value)) + r);
    let list = |item: &str| format!("<xs:simpleType name='l'><xs:list itemType='{item}'/></xs:simpleType>");
    vec![
        of("an enumeration of 200,000 numbers", "xs:int", 200_000, &|i| i.to_string()),
        of("an enumeration of 200,000 texts", "xs:string", 200_000, &|i| format!("v{i}")),
        of("an enumeration of 200,000 equal texts", "xs:string", 200_000, &|_| "v".to_owned()),
        of("an enumeration of 100,000 decimals", "xs:decimal", 100_000, &|i| format!("{i}.{i}")),
        of("an enumeration of 100,000 doubles", "xs:double", 100_000, &|i| format!("{i}e{}", i % 300)),
        of("an enumeration of 100,000 names", "xs:QName", 100_000, &|i| format!("xs:n{i}")),
        of("an enumeration of 100,000 moments", "xs:dateTime", 100_000, &|i| {
            format!("{}-{:02}-{:02}T00:00:00Z", 1_000 + i / 336, 1 + i / 28 % 12, 1 + i % 28)
        }),
        of("an enumeration of 100,000 durations", "xs:duration", 100_000, &|i| format!("P{i}Y{}M", i % 12)),
        one(
            "an enumeration of 100,000 lists",
            list("xs:int") + &restricted("t0", "l", &values(100_000, &|i| format!("{i} 1"))) + r,
        ),
        one("an enumeration of a list of 100,000 items", {
            list("xs:int") + &restricted("t0", "l", &values(1, &|_| "1 ".repeat(100_000))) + r
        }),
        one("an enumeration of a list of 500,000 items", {
            list("xs:int") + &restricted("t0", "l", &values(1, &|_| "1 ".repeat(500_000))) + r
        }),
        one("a list of an enumeration of 100,000 texts", {
            list("t1")
                + &restricted("t1", "xs:string", &values(100_000, &|i| format!("v{i}")))
                + &restricted("t0", "l", "")
                + r
        }),
        one("an enumeration of 2,000 values of a union of 2,000 types", {
            many(2_000, |i| restricted(&format!("u{i}"), "xs:int", &format!("<xs:minInclusive value='{i}'/>")))
                + &union("u", &many(2_000, |i| format!("u{} ", 1_999 - i)))
                + &restricted("t0", "u", &values(2_000, &|i| i.to_string()))
                + r
        }),
        one("16 enumerations of 2,000 values of unions of 500 types", {
            many(500, |i| restricted(&format!("u{i}"), "xs:int", &format!("<xs:minInclusive value='{}'/>", 5_000 + i)))
                + &union("u", &many(500, |i| format!("u{i} ")))
                + &many(16, |i| restricted(&format!("e{i}"), "u", &values(2_000, &|i| (6_000 + i).to_string())))
                + r
        }),
        one("30,000 default values of a union of 4,000 types", {
            many(4_000, |i| restricted(&format!("u{i}"), "xs:int", &format!("<xs:minInclusive value='{i}'/>")))
                + &union("u", &many(4_000, |i| format!("u{} ", 3_999 - i)))
                + &many(30_000, |i| format!("<xs:attribute name='a{i}' type='u' default='0'/>"))
                + r
        }),
        one("200 unions of a union of 4,000 types", {
            many(4_000, |i| restricted(&format!("u{i}"), "xs:int", &format!("<xs:minInclusive value='{i}'/>")))
                + &union("u", &many(4_000, |i| format!("u{i} ")))
                + &many(200, |i| union(&format!("t{i}"), "u xs:date"))
                + r
        }),
        one("an enumeration of 50,000 notations", {
            many(50_000, |i| format!("<xs:notation name='n{i}' public='p'/>"))
                + &restricted("t0", "xs:NOTATION", &values(50_000, &|i| format!("n{i}")))
                + r
        }),
    ]
}

fn repetitions() -> Vec<Hostile> {
    vec![
        one("100,000 notations", many(100_000, |i| format!("<xs:notation name='n{i}' public='p'/>")) + ROOT),
        one("100,000 patterns", {
            restricted("t0", "xs:string", &many(100_000, |i| format!("<xs:pattern value='a{i}'/>"))) + ROOT
        }),
        one("100,000 equal facets", {
            restricted("t0", "xs:string", &"<xs:maxLength value='1'/>".repeat(100_000)) + ROOT
        }),
        one(
            "5,000 elements with a key each",
            many(5_000, |i| {
                let key = format!("<xs:key name='k{i}'><xs:selector xpath='a'/><xs:field xpath='@b'/></xs:key>");
                format!("<xs:element name='e{i}'>{key}</xs:element>")
            }),
        ),
        one("a key of 20,000 fields", {
            let fields = many(20_000, |i| format!("<xs:field xpath='@b{i}'/>"));
            format!("<xs:element name='r'><xs:key name='k'><xs:selector xpath='a'/>{fields}</xs:key></xs:element>")
        }),
    ]
}

fn chains() -> Vec<Hostile> {
    let chain = |n: usize, tag: &str, open: &str, close: &str| {
        many(n, |i| format!("<xs:{tag} name='g{i}'>{open}<xs:{tag} ref='g{}'/>{close}</xs:{tag}>", i + 1))
            + &format!("<xs:{tag} name='g{n}'>{open}{close}</xs:{tag}>")
            + ROOT
    };
    vec![
        one("10,000 groups that refer to the next one", chain(10_000, "group", "<xs:sequence>", "</xs:sequence>")),
        one("10,000 attribute groups that refer to the next one", chain(10_000, "attributeGroup", "", "")),
        one("a substitution group of a chain of 90", {
            many(90, |i| format!("<xs:element name='e{i}' substitutionGroup='e{}'/>", i + 1))
                + "<xs:element name='e90'/>"
                + &element(&sequence("<xs:element ref='e90' maxOccurs='unbounded'/>"))
        }),
        one("1,000 choices of 30 for each of 1,000 elements", {
            many(1_000, |i| {
                format!("<xs:group name='g{i}'><xs:choice>{}</xs:choice></xs:group>", named(30, " type='xs:int'"))
            }) + &many(1_000, |i| {
                format!("<xs:element name='r{i}'><xs:complexType><xs:group ref='g{i}'/></xs:complexType></xs:element>")
            })
        }),
    ]
}

fn texts() -> Vec<Hostile> {
    let noted = |text: &str| format!("<xs:annotation><xs:documentation>{text}</xs:documentation></xs:annotation>");
    vec![
        one("an annotation of 5 MB", {
            format!("<xs:element name='r'>{}</xs:element>", noted(&"word ".repeat(1_000_000)))
        }),
        one("an annotation of 500,000 references", {
            format!("<xs:element name='r'>{}</xs:element>", noted(&"&amp;x".repeat(500_000)))
        }),
        one("an annotation of 100,000 elements", {
            let inside = "<a>x</a>".repeat(100_000);
            format!(
                "<xs:element name='r'><xs:annotation><xs:appinfo>{inside}</xs:appinfo></xs:annotation></xs:element>"
            )
        }),
        one("50,000 annotations", noted("x").repeat(50_000) + ROOT),
        one(
            "1,000 elements with names of 4,000 characters",
            many(1_000, |i| format!("<xs:element name='e{i}{}'/>", "x".repeat(4_000))),
        ),
        one(
            "2,000 elements with names of 1,000 characters",
            many(2_000, |i| format!("<xs:element name='e{i}{}'/>", "x".repeat(1_000))),
        ),
        Hostile::of(
            "1,000 elements in a namespace of 1,000 characters",
            vec![(
                "h.xsd".to_owned(),
                schema(&format!(" targetNamespace='urn:{}'", "x".repeat(1_000)), &named(1_000, "")),
            )],
        ),
        one("1,000 elements of a type whose child has a name of 50,000 characters", {
            complex("t", &sequence(&format!("<xs:element name='{}' type='xs:int'/>", "x".repeat(50_000))))
                + &many(1_000, |i| format!("<xs:element name='e{i}' type='t'/>"))
        }),
        one("1,000 elements of a type with a value of 50,000 characters", {
            restricted("t", "xs:string", &format!("<xs:enumeration value='{}'/>", "x".repeat(50_000)))
                + &many(1_000, |i| format!("<xs:element name='e{i}' type='t'/>"))
        }),
        one("1,000 elements of a type with a documentation of 50,000 characters", {
            complex("t", &(noted(&"x".repeat(50_000)) + &sequence("<xs:element name='a' type='xs:int'/>")))
                + &many(1_000, |i| format!("<xs:element name='e{i}' type='t'/>"))
        }),
        one("1,000 elements of a type with a name of 50,000 characters", {
            let name = "t".repeat(50_000);
            restricted(&name, "xs:string", "")
                + &many(1_000, |i| {
                    format!(
                        "<xs:element name='e{i}'><xs:complexType><xs:sequence/><xs:attribute name='a'/></xs:complexType></xs:element><xs:element name='f{i}' default='1'/>"
                    )
                })
                + &format!("<xs:element name='r' type='{name}'/>")
        }),
        Hostile::of(
            "a namespace of 5 MB",
            vec![(
                "h.xsd".to_owned(),
                schema(&format!(" targetNamespace='urn:{}'", "x".repeat(5_000_000)), &named(10, "")),
            )],
        ),
        Hostile::of(
            "1,000 prefixes with namespaces of 1,000 characters",
            vec![(
                "h.xsd".to_owned(),
                schema(&many(1_000, |i| format!(" xmlns:p{i}='urn:{i}{}'", "x".repeat(1_000))), &named(10_000, "")),
            )],
        ),
    ]
}

fn links() -> Vec<Hostile> {
    let second = |links: String, own: &'static str| {
        move |i: usize| match i {
            0 => schema("", &(links.clone() + ROOT)),
            _ => schema(own, "<xs:element name='e'/>"),
        }
    };
    let import = "<xs:import namespace='urn:1' schemaLocation='1.xsd'/>";
    vec![
        set("20,000 includes of one document", 2, &second(link("include", 1).repeat(20_000), "")),
        set("20,000 imports of one document", 2, &second(import.repeat(20_000), " targetNamespace='urn:1'")),
        set(
            "20,000 imports of nothing",
            2,
            &second(many(20_000, |i| format!("<xs:import namespace='urn:n{i}'/>")), ""),
        ),
        set("20,000 includes of nothing", 2, &second(many(20_000, |i| link("include", i + 2)), "")),
        set("20,000 redefinitions of nothing in one document", 2, &second(link("redefine", 1).repeat(20_000), "")),
    ]
}
