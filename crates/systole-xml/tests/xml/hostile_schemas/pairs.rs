//! Schemas in which two things multiply, each of them within its own bounds.

use super::{
    Hostile, OPTIONAL, ROOT, complex, derived, element, many, named, one, restricted, schema, sequence, set, union,
};

pub(super) fn schemas() -> Vec<Hostile> {
    [patterns(), documents(), groups(), values(), keys(), substitutions(), payloads()].into_iter().flatten().collect()
}

fn pattern(value: &str) -> String {
    format!("<xs:pattern value='{value}'/>")
}

fn enumerated(n: usize, value: impl Fn(usize) -> String) -> String {
    many(n, |i| format!("<xs:enumeration value='{}'/>", value(i)))
}

fn patterns() -> Vec<Hostile> {
    let each = |name, n, patterns: &dyn Fn(usize) -> String| {
        one(name, many(n, |i| restricted(&format!("t{i}"), "xs:string", &patterns(i))) + ROOT)
    };
    vec![
        one(
            "1,000 elements of a type with a pattern of any letter 400 times",
            restricted("t", "xs:string", &pattern("\\p{L}{1,400}")) + &named(1_000, " type='t'"),
        ),
        each("300 types with a pattern of any capital letter each", 300, &|i| pattern(&format!("\\p{{Lu}}x{i}"))),
        each("300 types with a pattern of characters of names each", 300, &|i| pattern(&format!("\\i\\c+x{i}"))),
        each("300 types with one large pattern, and a small one each", 300, &|i| {
            pattern("\\p{L}{1,400}") + &pattern(&format!("x{i}"))
        }),
        each("10,000 types with a small pattern each", 10_000, &|i| pattern(&format!("x{i}"))),
        each("100 types with 2,000 differences of classes each", 100, &|i| {
            pattern(&("[^\\P{L}-[\\p{L}-[a]]]".repeat(2_000) + &i.to_string()))
        }),
        each("2,000 types with a pattern of four classes each", 2_000, &|i| {
            pattern(&format!("[a-z]{{3}}\\d+-[A-Z0-9]{{2,{}}}", 3 + i))
        }),
    ]
}

fn documents() -> Vec<Hostile> {
    let import = |i: usize| format!("<xs:import namespace='urn:{i}' schemaLocation='{i}.xsd'/>");
    let own = |i: usize| format!("<xs:element name='e{i}'/>");
    vec![
        set("512 documents with 60 imports each", 512, &|i| {
            let imports = many(60, |j| import((i + 1 + j * 8) % 512));
            schema(&format!(" targetNamespace='urn:{i}'"), &(imports + ROOT))
        }),
        set("512 documents with 60 includes each", 512, &|i| {
            let includes = many(60, |j| format!("<xs:include schemaLocation='{}.xsd'/>", (i + 1 + j * 8) % 512));
            schema("", &(includes + &own(i)))
        }),
        set("30,000 imports of 500 documents of one namespace", 501, &|i| match i {
            500 => schema("", &("<xs:import namespace='urn:a'/>".repeat(30_000) + ROOT)),
            _ => schema(" targetNamespace='urn:a'", &own(i)),
        }),
        set("250 documents that import 250 of one namespace 120 times each", 500, &|i| match i {
            250.. => schema(" targetNamespace='urn:b'", &("<xs:import namespace='urn:a'/>".repeat(120) + &own(i))),
            _ => schema(" targetNamespace='urn:a'", &own(i)),
        }),
        set("200,000 entities", 1, &|_| {
            format!("<!DOCTYPE s [{}]>{}", many(200_000, |i| format!("<!ENTITY e{i} ''>")), schema("", ROOT))
        }),
    ]
}

fn groups() -> Vec<Hostile> {
    let group = |name: &str, inside: &str| format!("<xs:group name='{name}'>{inside}</xs:group>");
    let refer = |i: usize| format!("<xs:group ref='g{i}'/>");
    vec![
        one(
            "100 types with a group of 1,900 elements",
            group("g0", &sequence(&named(1_900, ""))) + &many(100, |i| complex(&format!("t{i}"), &refer(0))) + ROOT,
        ),
        one("100 references to groups of groups with 1,800 elements", {
            let elements = |i: usize| many(150, |j| format!("<xs:element name='e{i}.{j}'/>"));
            group("g0", &format!("<xs:choice>{}</xs:choice>", elements(0)))
                + &many(11, |i| {
                    group(&format!("g{}", i + 1), &format!("<xs:choice>{}{}</xs:choice>", refer(i), elements(i + 1)))
                })
                + &many(100, |i| complex(&format!("t{i}"), &refer(11)))
                + ROOT
        }),
        one("10,000 groups that refer to the one before", {
            group("g0", &sequence(""))
                + &many(10_000, |i| group(&format!("g{}", i + 1), &sequence(&refer(i))))
                + &element(&refer(10_000))
        }),
        one("groups of two groups before them, 60 deep", {
            group("g0", &sequence("<xs:element name='a'/>"))
                + &many(60, |i| group(&format!("g{}", i + 1), &sequence(&(refer(i) + &refer(i)))))
                + &element(&refer(60))
        }),
        set("a group of 60 elements redefined 500 times", 500, &|i| {
            let own = group("g", &sequence(&named(60, OPTIONAL)));
            match i {
                499 => schema("", &(own + ROOT)),
                _ => schema("", &format!("<xs:redefine schemaLocation='{}.xsd'>{own}</xs:redefine>", i + 1)),
            }
        }),
    ]
}

fn values() -> Vec<Hostile> {
    let list =
        |name: &str, of: &str| format!("<xs:simpleType name='{name}'><xs:list itemType='{of}'/></xs:simpleType>");
    let least = |i: usize| restricted(&format!("u{i}"), "xs:int", &format!("<xs:minInclusive value='{i}'/>"));
    vec![
        one("300 enumerations of a union of 60 enumerations", {
            many(60, |i| restricted(&format!("u{i}"), "xs:string", &enumerated(20, |j| format!("v{i}.{j}"))))
                + &union("u", &many(60, |i| format!("u{i} ")))
                + &many(300, |i| restricted(&format!("t{i}"), "u", &enumerated(40, |j| format!("v59.{}", j % 20))))
                + ROOT
        }),
        one("100 enumerations of lists of a union of 90 types", {
            many(90, least)
                + &union("u", &many(90, |i| format!("u{} ", 89 - i)))
                + &list("l", "u")
                + &many(100, |i| restricted(&format!("t{i}"), "l", &enumerated(10, |_| "0 ".repeat(200))))
                + ROOT
        }),
        one("a list of 240 items of a union of 4,000 types", {
            many(4_000, least)
                + &union("u", &many(4_000, |i| format!("u{} ", 3_999 - i)))
                + &list("t", "u")
                + &format!("<xs:element name='r' type='t' default='{}'/>", "0 ".repeat(240))
        }),
        one("10,000 default values of a union of 50 patterns", {
            many(50, |i| restricted(&format!("u{i}"), "xs:string", &pattern(&format!("a{{0,99}}x{i}"))))
                + &union("u", &many(50, |i| format!("u{i} ")))
                + &many(10_000, |i| format!("<xs:attribute name='a{i}' type='u' default='aaax49'/>"))
                + ROOT
        }),
        one(
            "100 moments with fractions of 60,000 digits",
            restricted(
                "t",
                "xs:dateTime",
                &enumerated(100, |i| format!("2000-01-01T00:00:00.{}{i}", "1".repeat(60_000))),
            ) + "<xs:element name='r' type='t'/>",
        ),
    ]
}

fn keys() -> Vec<Hostile> {
    let paths = "<xs:selector xpath='a'/><xs:field xpath='@b'/>";
    vec![
        one("120 keys of 16,000 paths each", {
            let paths = vec!["a"; 16_000].join("|");
            let key = |i| format!("<xs:key name='k{i}'><xs:selector xpath='{paths}'/><xs:field xpath='@a'/></xs:key>");
            format!("<xs:element name='r'>{}</xs:element>", many(120, key))
        }),
        one("5,000 references to 5,000 keys of one element", {
            let keys = many(5_000, |i| format!("<xs:key name='k{i}'>{paths}</xs:key>"));
            let references =
                many(5_000, |i| format!("<xs:keyref name='r{i}' refer='k{}'>{paths}</xs:keyref>", 4_999 - i));
            format!("<xs:element name='r'>{keys}{references}</xs:element>")
        }),
        one("3,000 nested elements with keys of 4 fields of 3 paths", {
            let fields = "<xs:field xpath='@a|b/@c|.//d'/>".repeat(4);
            element(&sequence(&many(3_000, |i| {
                let key = format!("<xs:key name='k{i}'><xs:selector xpath='.//a|b/c|d'/>{fields}</xs:key>");
                format!("<xs:element name='e{i}'>{key}</xs:element>")
            })))
        }),
    ]
}

fn substitutions() -> Vec<Hostile> {
    let head = "<xs:element name='h'/>";
    vec![
        one("1,000 roots that hold a head of 1,000 elements", {
            let inside = sequence("<xs:element ref='h'/>");
            let root = |i| format!("<xs:element name='r{i}'><xs:complexType>{inside}</xs:complexType></xs:element>");
            "<xs:element name='h' abstract='true'/>".to_owned()
                + &named(1_000, " substitutionGroup='h'")
                + &many(1_000, root)
        }),
        one("1,000 elements for a head beside 60 wildcards in 30 types", {
            let parts = many(60, |i| {
                format!(
                    "<xs:element name='x{i}'/><xs:element ref='h' minOccurs='0'/><xs:any namespace='urn:{i}' minOccurs='0'/>"
                )
            });
            named(1_000, " substitutionGroup='h'")
                + head
                + &many(30, |i| complex(&format!("t{i}"), &sequence(&parts)))
                + ROOT
        }),
        one("30 restrictions of 30 heads by their 30 elements each", {
            let choice = |inside: String| format!("<xs:choice maxOccurs='unbounded'>{inside}</xs:choice>");
            let members = |h: usize, item: &dyn Fn(usize) -> String| many(30, |i| item(h * 30 + i));
            many(30, |h| {
                let member = |i: usize| format!("<xs:element name='m{i}' substitutionGroup='h{h}'/>");
                format!("<xs:element name='h{h}'/>") + &members(h, &member)
            }) + &complex("b", &choice(many(30, |h| format!("<xs:element ref='h{h}'/>"))))
                + &many(30, |i| {
                    let refer = |i: usize| format!("<xs:element ref='m{i}'/>");
                    derived(&format!("d{i}"), "restriction", "b", &choice(many(30, |h| members(h, &refer))))
                })
                + ROOT
        }),
    ]
}

fn payloads() -> Vec<Hostile> {
    vec![
        one("500 elements of 100 attributes whose pattern has no short text", {
            let facets = pattern("([a-z]{1,9}-)*x") + "<xs:minLength value='900'/><xs:maxLength value='901'/>";
            let attributes = many(100, |i| format!("<xs:attribute name='a{i}' type='t' use='required'/>"));
            restricted("t", "xs:string", &facets) + &complex("k", &attributes) + &named(500, " type='k'")
        }),
        one("9 elements of a net of 1,000 choices", {
            many(1_000, |i| {
                let parts = many(8, |j| format!("<xs:element name='a{j}' type='t{}'/>", (i * 7 + j * 31) % 1_000));
                let last = if i == 999 { "z".to_owned() } else { (i + 1).to_string() };
                complex(
                    &format!("t{i}"),
                    &format!("<xs:choice>{parts}<xs:element name='z' type='t{last}'/></xs:choice>"),
                )
            }) + &complex("tz", "")
                + &named(9, " type='t0'")
        }),
        one("1,000 elements of a type with 100 values documented by 60,000 bytes each", {
            let doc = "d ".repeat(30_000);
            let value = |i| {
                format!(
                    "<xs:enumeration value='v{i}'><xs:annotation><xs:documentation>{doc}</xs:documentation></xs:annotation></xs:enumeration>"
                )
            };
            restricted("t", "xs:string", &many(100, value)) + &named(1_000, " type='t'")
        }),
        one(
            "2,000 elements of types with two patterns that have no text in common",
            many(2_000, |i| {
                restricted(&format!("b{i}"), "xs:string", &pattern(&format!("[a-m]{{1,9}}x[a-m]{{{}}}", 1 + i % 90)))
                    + &restricted(
                        &format!("t{i}"),
                        &format!("b{i}"),
                        &pattern(&format!(".*[a-m]{{1,9}}y[n-z{}]*", i % 10)),
                    )
                    + &format!("<xs:element name='e{i}' type='t{i}'/>")
            }),
        ),
        one(
            "5,000 elements of types with a least length of 60,000",
            many(5_000, |i| {
                restricted(&format!("t{i}"), "xs:string", &format!("<xs:minLength value='{}'/>", 60_000 + i))
                    + &format!("<xs:element name='e{i}' type='t{i}'/>")
            }),
        ),
        one("20 elements of types with a pattern and a bound of 60,000 digits", {
            let bound = format!("<xs:minInclusive value='{}'/>", "9".repeat(60_000));
            many(20, |i| {
                restricted(&format!("t{i}"), "xs:integer", &(pattern(&format!("[0-9]{{{}}}", i + 1)) + &bound))
                    + &format!("<xs:element name='e{i}' type='t{i}'/>")
            })
        }),
        one(
            "3,000 elements of types with a pattern each",
            many(3_000, |i| {
                restricted(&format!("t{i}"), "xs:date", &pattern(&format!("\\d{{4}}-\\d{{2}}-{:02}{i}", i % 28 + 1)))
                    + &format!("<xs:element name='e{i}' type='t{i}'/>")
            }),
        ),
        one("an xs:all of 30,000 elements", element(&format!("<xs:all>{}</xs:all>", named(30_000, OPTIONAL)))),
        one(
            "7,000 elements of 7,000 types",
            many(7_000, |i| {
                complex(&format!("t{i}"), &sequence("<xs:element name='a' type='xs:int'/>"))
                    + &format!("<xs:element name='e{i}' type='t{i}'/>")
            }),
        ),
    ]
}
