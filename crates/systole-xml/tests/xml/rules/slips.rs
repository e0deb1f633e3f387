//! Common mistakes of beginners, each with the corrected schema that its error text describes. The error texts are in a
//! golden file.

use systole_xml::schema::{PayloadSchema, XsdDocument};

use super::golden;

/// Mistakes in the `xs:complexType` of an element.
const TYPES: &[(&str, &str, &str)] = &[
    (
        "an optional element in front of the same one",
        "<xs:sequence>\n<xs:element name='a' minOccurs='0'/>\n<xs:element name='a'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' maxOccurs='2'/></xs:sequence>",
    ),
    (
        "the same element behind an optional one",
        "<xs:sequence>\n<xs:element name='a' minOccurs='0'/><xs:element name='b' minOccurs='0'/>\n<xs:element name='a'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' minOccurs='0'/><xs:element name='b'/><xs:element name='a'/></xs:sequence>",
    ),
    (
        "a choice of sequences that start alike",
        "<xs:choice><xs:sequence>\n<xs:element name='a'/><xs:element name='b'/></xs:sequence>\n<xs:sequence><xs:element name='a'/><xs:element name='c'/></xs:sequence></xs:choice>",
        "<xs:sequence><xs:element name='a'/><xs:choice><xs:element name='b'/><xs:element name='c'/></xs:choice></xs:sequence>",
    ),
    (
        "a choice of the same element",
        "<xs:choice>\n<xs:element name='a'/>\n<xs:element name='a'/></xs:choice>",
        "<xs:choice><xs:element name='a'/></xs:choice>",
    ),
    (
        "an xs:all with the same element twice",
        "<xs:all>\n<xs:element name='a'/>\n<xs:element name='a'/></xs:all>",
        "<xs:all><xs:element name='a'/></xs:all>",
    ),
    (
        "an optional element in front of xs:any",
        "<xs:sequence>\n<xs:element name='a' minOccurs='0'/>\n<xs:any/></xs:sequence>",
        "<xs:sequence><xs:element name='a' minOccurs='0'/><xs:any namespace='##other'/></xs:sequence>",
    ),
    (
        "an element behind xs:any",
        "<xs:sequence>\n<xs:any minOccurs='0'/>\n<xs:element name='a'/></xs:sequence>",
        "<xs:sequence><xs:any minOccurs='0' namespace='##other'/><xs:element name='a'/></xs:sequence>",
    ),
    (
        "xs:any behind an optional one",
        "<xs:sequence>\n<xs:any minOccurs='0'/>\n<xs:any/></xs:sequence>",
        "<xs:sequence><xs:any minOccurs='0' namespace='##targetNamespace'/><xs:any namespace='##other'/></xs:sequence>",
    ),
    (
        "a group that is used twice",
        "<xs:sequence><xs:group ref='t:g' minOccurs='0'/><xs:group ref='t:g'/></xs:sequence></xs:complexType></xs:element>\n<xs:group name='g'><xs:sequence><xs:element name='a'/></xs:sequence></xs:group><xs:element name='o'><xs:complexType>",
        "<xs:sequence><xs:group ref='t:g'/></xs:sequence></xs:complexType></xs:element><xs:group name='g'><xs:sequence><xs:element name='a'/></xs:sequence></xs:group><xs:element name='o'><xs:complexType>",
    ),
    (
        "two types of one element",
        "<xs:sequence>\n<xs:element name='a' type='xs:string'/>\n<xs:element name='a' type='xs:int'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' type='xs:string'/><xs:element name='a' type='xs:string'/></xs:sequence>",
    ),
    (
        "a type of its own for each element of a name",
        "<xs:sequence>\n<xs:element name='a'><xs:complexType/></xs:element>\n<xs:element name='a'><xs:complexType/></xs:element></xs:sequence>",
        "<xs:sequence><xs:element name='a'><xs:complexType/></xs:element><xs:element name='b'><xs:complexType/></xs:element></xs:sequence>",
    ),
    (
        "an attribute among the elements",
        "<xs:sequence><xs:element name='a'/>\n<xs:attribute name='b'/></xs:sequence>",
        "<xs:sequence><xs:element name='a'/></xs:sequence><xs:attribute name='b'/>",
    ),
    (
        "an element without a group",
        "<xs:attribute name='b'/>\n<xs:element name='a'/>",
        "<xs:sequence><xs:element name='a'/></xs:sequence><xs:attribute name='b'/>",
    ),
    (
        "two sequences",
        "<xs:sequence><xs:element name='a'/></xs:sequence>\n<xs:sequence/>",
        "<xs:sequence><xs:element name='a'/><xs:sequence/></xs:sequence>",
    ),
    (
        "use at an element",
        "<xs:sequence>\n<xs:element name='a' use='required'/></xs:sequence>",
        "<xs:sequence><xs:element name='a'/></xs:sequence>",
    ),
    (
        "use='optional' at an element",
        "<xs:sequence>\n<xs:element name='a' use='optional'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' minOccurs='0'/></xs:sequence>",
    ),
    (
        "minOccurs at an attribute",
        "\n<xs:attribute name='a' minOccurs='1'/>",
        "<xs:attribute name='a' use='required'/>",
    ),
    ("minOccurs='0' at an attribute", "\n<xs:attribute name='a' minOccurs='0'/>", "<xs:attribute name='a'/>"),
    (
        "several of one attribute",
        "\n<xs:attribute name='a' maxOccurs='unbounded'/>",
        "<xs:sequence><xs:element name='a' maxOccurs='unbounded'/></xs:sequence>",
    ),
    ("required='true'", "\n<xs:attribute name='a' required='true'/>", "<xs:attribute name='a' use='required'/>"),
    (
        "maxOccurs='*'",
        "<xs:sequence>\n<xs:element name='a' maxOccurs='*'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' maxOccurs='unbounded'/></xs:sequence>",
    ),
    (
        "xs:all in a sequence",
        "<xs:sequence>\n<xs:all><xs:element name='a'/></xs:all></xs:sequence>",
        "<xs:sequence><xs:sequence><xs:element name='a'/></xs:sequence></xs:sequence>",
    ),
    (
        "a group in xs:all",
        "<xs:all>\n<xs:choice><xs:element name='a'/></xs:choice></xs:all>",
        "<xs:sequence><xs:choice><xs:element name='a'/></xs:choice></xs:sequence>",
    ),
    (
        "a type in a sequence",
        "<xs:sequence>\n<xs:complexType/></xs:sequence>",
        "<xs:sequence><xs:element name='a'><xs:complexType/></xs:element></xs:sequence>",
    ),
    (
        "an extension without its content",
        "\n<xs:extension base='xs:int'/>",
        "<xs:simpleContent><xs:extension base='xs:int'/></xs:simpleContent>",
    ),
    (
        "content without its extension",
        "<xs:complexContent>\n<xs:sequence/></xs:complexContent>",
        "<xs:complexContent><xs:extension base='xs:anyType'><xs:sequence/></xs:extension></xs:complexContent>",
    ),
    ("inheritable", "\n<xs:attribute name='a' inheritable='true'/>", "<xs:attribute name='a'/>"),
    (
        "notNamespace",
        "<xs:sequence>\n<xs:any notNamespace='urn:t'/></xs:sequence>",
        "<xs:sequence><xs:any namespace='##other'/></xs:sequence>",
    ),
    (
        "a default that is none",
        "\n<xs:attribute name='a' type='xs:decimal' default='abc'/>",
        "<xs:attribute name='a' type='xs:decimal' default='1.5'/>",
    ),
    (
        "a fixed value that is none",
        "<xs:sequence>\n<xs:element name='a' type='xs:int' fixed='abc'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' type='xs:int' fixed='1'/></xs:sequence>",
    ),
    ("a name with a space", "\n<xs:attribute name='a b'/>", "<xs:attribute name='a-b'/>"),
];

/// Mistakes below `xs:schema`.
const DECLARATIONS: &[(&str, &str, &str)] = &[
    (
        "a name of another language",
        "\n<xs:element name='a' type='xs:text'/>",
        "<xs:element name='a' type='xs:string'/>",
    ),
    (
        "a built-in type without prefix",
        "\n<xs:element name='a' type='string'/>",
        "<xs:element name='a' type='xs:string'/>",
    ),
    (
        "a built-in type in other case",
        "\n<xs:element name='a' type='t:String'/>",
        "<xs:element name='a' type='xs:string'/>",
    ),
    (
        "a built-in type by another prefix",
        "\n<xs:element name='a' type='xsd:string'/>",
        "<xs:element name='a' type='xs:string'/>",
    ),
    (
        "a built-in type among the members of a union",
        "\n<xs:simpleType name='u'><xs:union memberTypes='xs:int t:date'/></xs:simpleType>",
        "<xs:simpleType name='u'><xs:union memberTypes='xs:int xs:date'/></xs:simpleType>",
    ),
    (
        "an own type with the prefix of XML Schema",
        "\n<xs:element name='a' type='xs:Item'/><xs:complexType name='Item'/>",
        "<xs:element name='a' type='t:Item'/><xs:complexType name='Item'/>",
    ),
    (
        "an enumeration in an element",
        "<xs:element name='a' type='xs:string'>\n<xs:enumeration value='b'/></xs:element>",
        "<xs:element name='a'><xs:simpleType><xs:restriction base='xs:string'><xs:enumeration value='b'/></xs:restriction></xs:simpleType></xs:element>",
    ),
    (
        "a facet in a simple type",
        "<xs:simpleType name='u'>\n<xs:minLength value='1'/></xs:simpleType>",
        "<xs:simpleType name='u'><xs:restriction base='xs:string'><xs:minLength value='1'/></xs:restriction></xs:simpleType>",
    ),
    (
        "elements in a simple type",
        "<xs:simpleType name='u'>\n<xs:sequence/></xs:simpleType>",
        "<xs:complexType name='u'><xs:sequence/></xs:complexType>",
    ),
    (
        "an element in an element",
        "<xs:element name='a'>\n<xs:element name='b'/></xs:element>",
        "<xs:element name='a'><xs:complexType><xs:sequence><xs:element name='b'/></xs:sequence></xs:complexType></xs:element>",
    ),
    ("minOccurs at the root", "\n<xs:element name='a' minOccurs='0'/>", "<xs:element name='a'/>"),
    ("a late import", "\n<xs:import namespace='urn:o'/>", ""),
    (
        "documentation alone",
        "<xs:element name='a'>\n<xs:documentation>b</xs:documentation></xs:element>",
        "<xs:element name='a'><xs:annotation><xs:documentation>b</xs:documentation></xs:annotation></xs:element>",
    ),
    (
        "a facet of numbers for text",
        "<xs:simpleType name='u'><xs:restriction base='xs:string'>\n<xs:minInclusive value='1'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='u'><xs:restriction base='xs:int'><xs:minInclusive value='1'/></xs:restriction></xs:simpleType>",
    ),
    (
        "a bound that is no value",
        "<xs:simpleType name='u'><xs:restriction base='xs:int'>\n<xs:minInclusive value='one'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='u'><xs:restriction base='xs:int'><xs:minInclusive value='1'/></xs:restriction></xs:simpleType>",
    ),
    (
        "an enumerated value that is none",
        "<xs:simpleType name='u'><xs:restriction base='xs:int'>\n<xs:enumeration value='one'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='u'><xs:restriction base='xs:int'><xs:enumeration value='1'/></xs:restriction></xs:simpleType>",
    ),
];

/// Patterns of other dialects, each with its equivalent in XML Schema.
const PATTERNS: &[(&str, &str)] = &[
    ("(?i)abc", "[Aa][Bb][Cc]"),
    ("a(?:b)", "a(b)"),
    ("a(?!b)", "a[^b]"),
    ("(?P&lt;n>a)", "(a)"),
    ("ab\\bc", "ab c"),
    ("\\Aab", "ab"),
    ("a+?", "a+"),
    ("a{2}+", "a{2}"),
    ("(a)\\1", "(a)a"),
    ("a\\/b", "a/b"),
    ("\\x41", "A"),
    ("[[:alpha:]]", "[\\p{L}]"),
    ("a{,3}", "a{0,3}"),
    ("a(b(c)", "a(b)(c)"),
    ("ab)", "ab\\)"),
    ("ab[cd", "ab[cd]"),
    ("a**", "a*"),
];

/// Mistakes in whole documents.
const DOCUMENTS: &[(&str, &str, &str)] = &[
    ("a page", "<html/>", "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='a'/></xs:schema>"),
    (
        "a namespace with another letter",
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLschema'/>",
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='a'/></xs:schema>",
    ),
    (
        "a declaration without a schema",
        "<xs:element xmlns:xs='http://www.w3.org/2001/XMLSchema' name='a'/>",
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='a'/></xs:schema>",
    ),
    (
        "a type of one's own where XML Schema has no prefix",
        "<schema xmlns='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:t'>\n<element name='a' type='Item'/><complexType name='Item'/></schema>",
        "<schema xmlns='http://www.w3.org/2001/XMLSchema' xmlns:t='urn:t' targetNamespace='urn:t'><element name='a' type='t:Item'/><complexType name='Item'/></schema>",
    ),
    (
        "a built-in type with a prefix where XML Schema has none",
        "<schema xmlns='http://www.w3.org/2001/XMLSchema' xmlns:t='urn:t' targetNamespace='urn:t'>\n<element name='a' type='t:string'/></schema>",
        "<schema xmlns='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:t'><element name='a' type='string'/></schema>",
    ),
    (
        "a built-in type without a prefix, in no namespace",
        "<xsd:schema xmlns:xsd='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:t'>\n<xsd:element name='a' type='string'/></xsd:schema>",
        "<xsd:schema xmlns:xsd='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:t'><xsd:element name='a' type='xsd:string'/></xsd:schema>",
    ),
    (
        "quotes of a word processor",
        "<xs:schema xmlns:xs=“http://www.w3.org/2001/XMLSchema”/>",
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='a'/></xs:schema>",
    ),
    (
        "elementFormDefault='true'",
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' elementFormDefault='true'><xs:element name='a'/></xs:schema>",
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' elementFormDefault='qualified'><xs:element name='a'/></xs:schema>",
    ),
];

#[test]
fn slips_are_told_with_what_to_write() {
    let mut told = String::new();
    let mut check = |slip: &str, broken: &str, mended: &str| {
        let Err(error) = read(&[("a.xsd", broken)]) else { panic!("{slip}: accepted: {broken}") };
        told.push_str(&format!("{slip}\n  {error}\n"));
        if let Err(error) = read(&[("a.xsd", mended)]) {
            panic!("{slip}: what the text says to write is refused: {error}\n{mended}");
        }
    };
    let schema = |inside: &str| {
        format!(
            "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:t='urn:t' xmlns='urn:t' targetNamespace='urn:t' elementFormDefault='qualified'><xs:element name='z'/>{inside}</xs:schema>"
        )
    };
    let of_type =
        |inside: &str| schema(&format!("<xs:element name='r'><xs:complexType>{inside}</xs:complexType></xs:element>"));
    for (slip, broken, mended) in TYPES {
        check(slip, &of_type(broken), &of_type(mended));
    }
    for (slip, broken, mended) in DECLARATIONS {
        check(slip, &schema(broken), &schema(mended));
    }
    let restricted = |pattern: &str| {
        schema(&format!(
            "<xs:simpleType name='u'><xs:restriction base='xs:string'>\n<xs:pattern value='{pattern}'/></xs:restriction></xs:simpleType>"
        ))
    };
    for (broken, mended) in PATTERNS {
        check(broken, &restricted(broken), &restricted(mended));
    }
    for (slip, broken, mended) in DOCUMENTS {
        check(slip, broken, mended);
    }
    golden("slips.txt", &told);
}

/// Checks that the other place of a conflict is shown with its document if that is another one.
#[test]
fn a_conflict_with_another_document_names_it() {
    const HEAD: &str = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>";
    let base = format!(
        "{HEAD}\n<xs:complexType name='b'><xs:sequence>\n  <xs:element name='a' minOccurs='0'/></xs:sequence></xs:complexType></xs:schema>"
    );
    let extension = format!(
        "{HEAD}<xs:include schemaLocation='base.xsd'/>\n<xs:element name='r'><xs:complexType><xs:complexContent><xs:extension base='b'><xs:sequence>\n<xs:element name='a'/></xs:sequence></xs:extension></xs:complexContent></xs:complexType></xs:element></xs:schema>"
    );
    for documents in
        [[("base.xsd", &*base), ("own.xsd", &*extension)], [("own.xsd", &*extension), ("base.xsd", &*base)]]
    {
        assert_eq!(
            read(&documents).unwrap_err(),
            "own.xsd:3:1: an element <a> fits both this declaration and the one at base.xsd:3:3, and nothing before it tells which (Unique Particle Attribution): give one of them another name"
        );
    }
}

fn read(documents: &[(&str, &str)]) -> Result<(), String> {
    let documents = documents.iter().map(|(name, text)| XsdDocument { name: (*name).into(), text: (*text).into() });
    PayloadSchema::from_xsd_set(&documents.collect::<Vec<_>>()).map(drop).map_err(|error| error.to_string())
}
