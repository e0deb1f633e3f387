//! Recursion: the deepest schema of each kind that is accepted, with its examples and prompts, and the deepest value,
//! on a thread with a small stack; one more is refused with an error.

use std::thread;

use bytes::Bytes;
use serde::Deserialize;
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::oracle::Whole;
use systole_xml::schema::{PayloadSchema, XsdDocument, decode_canonical};
use systole_xml::vocab::XmlLimits;

/// Three quarters of the stack that a thread has by default; this build isn't optimized, so that frames are large.
const STACK: usize = 1_536 << 10;

/// Runs on a thread with a small stack; an overflow ends the process.
fn on_a_stack_of<T: Send>(bytes: usize, run: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(bytes).spawn_scoped(scope, run);
        thread.expect("a thread starts").join().expect("it ends well")
    })
}

/// Compiles a schema, makes its examples and prompts, and drops all.
fn accepts(documents: &[XsdDocument]) -> Result<(), String> {
    let schemas = PayloadSchema::from_xsd_set(documents).map_err(|error| error.to_string())?;
    for schema in &schemas {
        schema.example();
        schema.prompt();
    }
    Ok(())
}

fn schema(name: &str, inside: &str) -> XsdDocument {
    let text = format!("<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>{inside}</xs:schema>");
    XsdDocument { name: name.to_owned(), text }
}

fn around(n: usize, open: &str, inside: &str, close: &str) -> String {
    format!("{}{inside}{}", open.repeat(n), close.repeat(n))
}

fn each(n: usize, item: impl Fn(usize) -> String) -> String {
    (0..n).map(item).collect()
}

const TYPED: &str = "<xs:element name='r' type='t0'/>";
const LEAF: &str = "<xs:element name='a' type='xs:int'/>";

/// A type that is derived from the next one.
fn complex(how: &str, i: usize, content: &str) -> String {
    format!(
        "<xs:complexType name='t{i}'><xs:complexContent><xs:{how} base='t{}'>{content}</xs:{how}></xs:complexContent></xs:complexType>",
        i + 1
    )
}

fn of_elements(n: usize, occurs: &str) -> String {
    let next = |i: usize| {
        let next = i + 1;
        format!(
            "<xs:complexType name='t{i}'><xs:sequence><xs:element name='a' type='t{next}'{occurs}/></xs:sequence></xs:complexType>"
        )
    };
    each(n, next) + &format!("<xs:simpleType name='t{n}'><xs:restriction base='xs:int'/></xs:simpleType>{TYPED}")
}

/// The content of a schema of a depth.
type Inside = fn(usize) -> String;

/// The greatest depth of a kind.
enum Deepest {
    /// One more is refused.
    Bound(usize),
    /// Nothing recurses, or another bound comes first; tried to this depth.
    Free(usize),
}
use Deepest::{Bound, Free};

const KINDS: &[(&str, Deepest, Inside)] = &[
    ("sequences inside each other", Bound(99), |n| {
        let content = around(n, "<xs:sequence>", LEAF, "</xs:sequence>");
        format!("<xs:element name='r'><xs:complexType>{content}</xs:complexType></xs:element>")
    }),
    ("choices that repeat inside each other", Bound(99), |n| {
        let content = around(n, "<xs:choice maxOccurs='unbounded'>", LEAF, "</xs:choice>");
        format!("<xs:element name='r'><xs:complexType>{content}</xs:complexType></xs:element>")
    }),
    ("references to groups", Bound(48), |n| {
        let group = |i: usize| {
            let next = i + 1;
            format!("<xs:group name='g{i}'><xs:sequence><xs:group ref='g{next}'/></xs:sequence></xs:group>")
        };
        let last = format!("<xs:group name='g{n}'><xs:sequence>{LEAF}</xs:sequence></xs:group>");
        each(n, group)
            + &last
            + "<xs:element name='r'><xs:complexType><xs:group ref='g0'/></xs:complexType></xs:element>"
    }),
    ("references to groups of attributes", Bound(99), |n| {
        let group = |i: usize| {
            format!("<xs:attributeGroup name='g{i}'><xs:attributeGroup ref='g{}'/></xs:attributeGroup>", i + 1)
        };
        let last = format!("<xs:attributeGroup name='g{n}'><xs:attribute name='a'/></xs:attributeGroup>");
        let user = "<xs:element name='r'><xs:complexType><xs:attributeGroup ref='g0'/></xs:complexType></xs:element>";
        each(n, group) + &last + user
    }),
    ("types inside each other", Bound(84), |n| {
        let open = "<xs:complexType><xs:sequence><xs:element name='a'>";
        let content = around(n, open, "", "</xs:element></xs:sequence></xs:complexType>");
        format!("<xs:element name='r'>{content}</xs:element>")
    }),
    ("named types of elements that must be there", Free(1_000), |n| of_elements(n, "")),
    ("named types of elements that may be there", Free(1_000), |n| of_elements(n, " minOccurs='0'")),
    ("extensions", Free(100), |n| {
        let last = format!("<xs:complexType name='t{n}'><xs:sequence>{LEAF}</xs:sequence></xs:complexType>");
        let more = |i: usize| format!("<xs:sequence><xs:element name='b{i}' minOccurs='0'/></xs:sequence>");
        each(n, |i| complex("extension", i, &more(i))) + &last + TYPED
    }),
    ("restrictions", Free(300), |n| {
        let content = format!("<xs:sequence>{LEAF}</xs:sequence>");
        let last = format!("<xs:complexType name='t{n}'>{content}</xs:complexType>");
        each(n, |i| complex("restriction", i, &content)) + &last + TYPED
    }),
    ("restrictions of sequences inside each other", Free(90), |n| {
        let content = around(n, "<xs:sequence minOccurs='0'>", "<xs:element name='a'/>", "</xs:sequence>");
        complex("restriction", 0, &content) + &format!("<xs:complexType name='t1'>{content}</xs:complexType>{TYPED}")
    }),
    ("restrictions of a simple type", Bound(99), |n| {
        let restricted = |i: usize| {
            let next = i + 1;
            format!(
                "<xs:simpleType name='t{i}'><xs:restriction base='t{next}'><xs:pattern value='\\d*'/></xs:restriction></xs:simpleType>"
            )
        };
        each(n, restricted)
            + &format!("<xs:simpleType name='t{n}'><xs:restriction base='xs:int'/></xs:simpleType>{TYPED}")
    }),
    ("simple types inside each other", Bound(99), |n| {
        let inside = "<xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType>";
        let open = "<xs:simpleType><xs:restriction>";
        let content = around(n, open, inside, "</xs:restriction></xs:simpleType>");
        format!("<xs:element name='r'>{content}</xs:element>")
    }),
    ("unions", Bound(99), |n| {
        let union = |i: usize| {
            format!("<xs:simpleType name='t{i}'><xs:union memberTypes='t{} xs:date'/></xs:simpleType>", i + 1)
        };
        each(n, union) + &format!("<xs:simpleType name='t{n}'><xs:restriction base='xs:int'/></xs:simpleType>{TYPED}")
    }),
    ("unions with enumerations", Bound(49), |n| {
        let union = |i: usize| {
            let next = i + 1;
            format!(
                "<xs:simpleType name='t{i}'><xs:restriction><xs:simpleType><xs:union memberTypes='t{next} xs:date'/></xs:simpleType><xs:enumeration value='1'/></xs:restriction></xs:simpleType>"
            )
        };
        each(n, union) + &format!("<xs:simpleType name='t{n}'><xs:restriction base='xs:int'/></xs:simpleType>{TYPED}")
    }),
    ("groups of a pattern", Bound(100), |n| {
        let pattern = around(n, "(", "a", ")?");
        format!(
            "<xs:simpleType name='t0'><xs:restriction base='xs:string'><xs:pattern value='{pattern}'/></xs:restriction></xs:simpleType>{TYPED}"
        )
    }),
    ("classes less classes of a pattern", Free(300), |n| {
        let pattern = around(n, "[a-z-", "[b]", "]");
        format!(
            "<xs:simpleType name='t0'><xs:restriction base='xs:string'><xs:pattern value='{pattern}'/></xs:restriction></xs:simpleType>{TYPED}"
        )
    }),
    ("heads of substitution groups", Bound(100), |n| {
        let member = |i: usize| format!("<xs:element name='e{i}' substitutionGroup='e{}'/>", i + 1);
        let user = format!(
            "<xs:element name='r'><xs:complexType><xs:sequence><xs:element ref='e{n}'/></xs:sequence></xs:complexType></xs:element>"
        );
        each(n, member) + &format!("<xs:element name='e{n}'/>") + &user
    }),
    ("steps of a path", Bound(60), |n| {
        let path = vec!["a"; n].join("/");
        format!(
            "<xs:element name='r'><xs:key name='k'><xs:selector xpath='{path}'/><xs:field xpath='.'/></xs:key></xs:element>"
        )
    }),
    ("elements in documentation", Bound(252), |n| {
        let inside = around(n, "<p>", "text", "</p>");
        format!(
            "<xs:element name='r'><xs:annotation><xs:documentation>{inside}</xs:documentation></xs:annotation></xs:element>"
        )
    }),
];

fn documents_of(n: usize, kind: &str) -> Vec<XsdDocument> {
    let link = |i: usize| {
        let own = match kind {
            "redefine" => format!(
                "<xs:complexType name='t'><xs:complexContent><xs:extension base='t'><xs:attribute name='a{i}'/></xs:extension></xs:complexContent></xs:complexType>"
            ),
            _ => String::new(),
        };
        schema(&format!("{i}.xsd"), &format!("<xs:{kind} schemaLocation='{}.xsd'>{own}</xs:{kind}>", i + 1))
    };
    let last = schema(&format!("{n}.xsd"), "<xs:complexType name='t'/><xs:element name='r' type='t'/>");
    (0..n).map(link).chain([last]).collect()
}

/// Checks that a depth is accepted, and that one more is refused if it is a bound.
fn check(kind: &str, deepest: &Deepest, documents: impl Fn(usize) -> Vec<XsdDocument> + Sync) {
    let accepts = |depth| on_a_stack_of(STACK, || accepts(&documents(depth)));
    let (Bound(depth) | Free(depth)) = *deepest;
    eprintln!("{kind}");
    assert_eq!(accepts(depth), Ok(()), "{depth} {kind}");
    if let Bound(depth) = deepest {
        assert!(accepts(depth + 1).is_err(), "{} {kind}", depth + 1);
    }
}

#[test]
fn the_deepest_schemas_take_a_small_stack() {
    for (kind, deepest, inside) in KINDS {
        check(kind, deepest, |n| vec![schema("d.xsd", &inside(n))]);
    }
    check("documents that include each other", &Bound(511), |n| documents_of(n, "include"));
    check("documents that redefine each other", &Bound(99), |n| documents_of(n, "redefine"));
}

#[derive(Deserialize)]
struct Nested {
    #[serde(default)]
    child: Vec<Nested>,
}

#[test]
fn the_deepest_value_takes_a_small_stack() {
    let text = |depth: usize| format!("<r>{}</r>", around(depth, "<child>", "", "</child>"));
    let inside = "<xs:element name='r' type='T'/><xs:complexType name='T'><xs:sequence>\
                  <xs:element name='child' type='T' minOccurs='0'/></xs:sequence></xs:complexType>";
    on_a_stack_of(1 << 20, || {
        let mut limits = XmlLimits::default();
        limits.depth = 1_000;
        let payload = |depth| canonicalize(&Bytes::from(text(depth)), &limits).expect("it is well-formed");
        let value: Nested = decode_canonical(&payload(255)).expect("256 elements inside each other are decoded");
        assert_eq!(std::iter::successors(Some(&value), |value| value.child.first()).count(), 256);
        assert!(decode_canonical::<Nested>(&payload(256)).is_err());
        let mut whole = Whole::new(&[schema("d.xsd", inside)]).expect("it is a schema");
        whole.judge(&text(100_000)).expect("the engine doesn't recurse");
    });
}
