//! Documents, each with the rule of XSD 1.0 (second edition) that it breaks, if any.

/// The content of `xs:schema` for target namespace `urn:t` with qualified local elements, and its documents.
pub(crate) type Case = (&'static str, &'static [(&'static str, Option<&'static str>)]);

const IDENTITY: &[Case] = &[
    (
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='a' type='xs:decimal' minOccurs='0' maxOccurs='9'/></xs:sequence></xs:complexType><xs:unique name='u'><xs:selector xpath='t:a'/><xs:field xpath='.'/></xs:unique></xs:element>",
        &[
            ("<t:r><t:a>1.0</t:a><t:a>2</t:a></t:r>", None),
            ("<t:r><t:a>1.0</t:a><t:a>+01</t:a></t:r>", Some("cvc-identity-constraint.4.1")),
            ("<t:r><t:a>0</t:a><t:a>-0.0</t:a></t:r>", Some("cvc-identity-constraint.4.1")),
            (
                "<t:r><t:a>123456789012345678901234567890.10</t:a><t:a>123456789012345678901234567890.1</t:a></t:r>",
                Some("cvc-identity-constraint.4.1"),
            ),
            (
                "<t:r><t:a>123456789012345678901234567890.10</t:a><t:a>123456789012345678901234567890.11</t:a></t:r>",
                None,
            ),
        ],
    ),
    (
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='a' type='xs:QName' maxOccurs='9'/></xs:sequence></xs:complexType><xs:unique name='u'><xs:selector xpath='t:a'/><xs:field xpath='.'/></xs:unique></xs:element>",
        &[
            (
                "<t:r xmlns:p='urn:o' xmlns:q='urn:o'><t:a>p:x</t:a><t:a>q:x</t:a></t:r>",
                Some("cvc-identity-constraint.4.1"),
            ),
            ("<t:r><t:a xmlns:p='urn:o'>p:x</t:a><t:a xmlns:p='urn:q'>p:x</t:a></t:r>", None),
            ("<t:r><t:a>p:x</t:a></t:r>", Some("cvc-datatype-valid")),
        ],
    ),
    (
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='a' maxOccurs='9' nillable='true' type='xs:int'/></xs:sequence></xs:complexType><xs:key name='k'><xs:selector xpath='t:a'/><xs:field xpath='.'/></xs:key></xs:element>",
        &[
            // A field of a key can't be declared nillable, even if it isn't nil.
            ("<t:r><t:a>1</t:a></t:r>", Some("cvc-identity-constraint.4.2.3")),
            ("<t:r><t:a xsi:nil='true'/></t:r>", Some("cvc-identity-constraint.4.2.3")),
        ],
    ),
    (
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='a' maxOccurs='9' nillable='true' type='xs:int'/></xs:sequence></xs:complexType><xs:unique name='k'><xs:selector xpath='t:a'/><xs:field xpath='.'/></xs:unique></xs:element>",
        &[("<t:r><t:a>1</t:a></t:r>", None), ("<t:r><t:a xsi:nil='true'/><t:a xsi:nil='true'/></t:r>", None)],
    ),
    (
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='a' maxOccurs='9'><xs:complexType><xs:attribute name='p' type='xs:int' default='7'/><xs:attribute name='q' type='xs:int'/></xs:complexType></xs:element></xs:sequence></xs:complexType><xs:key name='k'><xs:selector xpath='t:a'/><xs:field xpath='@p'/></xs:key><xs:unique name='u'><xs:selector xpath='t:a'/><xs:field xpath='@q'/></xs:unique></xs:element>",
        &[
            ("<t:r><t:a/><t:a p='8'/></t:r>", None),
            ("<t:r><t:a/><t:a p='07'/></t:r>", Some("cvc-identity-constraint.4.2.2")),
            ("<t:r><t:a/><t:a p='8' q='1'/><t:a p='9' q='01'/></t:r>", Some("cvc-identity-constraint.4.1")),
        ],
    ),
    (
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='k' type='xs:int' minOccurs='0' maxOccurs='9'/><xs:element name='s' minOccurs='0' maxOccurs='9'><xs:complexType><xs:sequence><xs:element name='k' type='xs:int' minOccurs='0' maxOccurs='9'/><xs:element name='f' type='xs:decimal' minOccurs='0' maxOccurs='9'/></xs:sequence></xs:complexType><xs:key name='inner'><xs:selector xpath='t:k'/><xs:field xpath='.'/></xs:key></xs:element><xs:element name='f' type='xs:int' minOccurs='0' maxOccurs='9'/></xs:sequence></xs:complexType><xs:keyref name='x' refer='t:inner'><xs:selector xpath='t:f'/><xs:field xpath='.'/></xs:keyref></xs:element>",
        &[
            ("<t:r><t:s><t:k>1</t:k></t:s><t:f>01</t:f></t:r>", None),
            ("<t:r><t:k>2</t:k><t:s><t:k>1</t:k></t:s><t:f>2</t:f></t:r>", Some("cvc-identity-constraint.4.3")),
            // A key that two children share is not a key of the parent (section 3.11.5).
            (
                "<t:r><t:s><t:k>1</t:k></t:s><t:s><t:k>1</t:k></t:s><t:f>1</t:f></t:r>",
                Some("cvc-identity-constraint.4.3"),
            ),
            ("<t:r><t:s><t:k>1</t:k></t:s><t:s><t:k>2</t:k></t:s><t:f>1</t:f><t:f>2</t:f></t:r>", None),
            ("<t:r><t:s><t:k>1</t:k><t:k>01</t:k></t:s></t:r>", Some("cvc-identity-constraint.4.2.2")),
        ],
    ),
    (
        "<xs:element name='h' type='xs:int' abstract='true'/><xs:element name='m' type='xs:int' substitutionGroup='t:h'/><xs:element name='n' type='xs:int' substitutionGroup='t:h'/><xs:element name='r'><xs:complexType><xs:sequence><xs:element ref='t:h' maxOccurs='9'/></xs:sequence></xs:complexType><xs:unique name='u'><xs:selector xpath='*'/><xs:field xpath='.'/></xs:unique><xs:unique name='v'><xs:selector xpath='t:h'/><xs:field xpath='.'/></xs:unique></xs:element>",
        &[
            ("<t:r><t:m>1</t:m><t:n>2</t:n></t:r>", None),
            ("<t:r><t:m>1</t:m><t:n>01</t:n></t:r>", Some("cvc-identity-constraint.4.1")),
            ("<t:r><t:h>1</t:h></t:r>", Some("cvc-elt.2")),
        ],
    ),
    (
        "<xs:element name='a' type='xs:int'/><xs:element name='r'><xs:complexType><xs:sequence><xs:any processContents='lax' maxOccurs='9'/></xs:sequence></xs:complexType><xs:unique name='u'><xs:selector xpath='.//t:a'/><xs:field xpath='.'/></xs:unique></xs:element>",
        &[
            ("<t:r><t:a>1</t:a><o><t:a>2</t:a></o></t:r>", None),
            ("<t:r><t:a>1</t:a><o><t:a>+1</t:a></o></t:r>", Some("cvc-identity-constraint.4.1")),
        ],
    ),
    (
        "<xs:simpleType name='u'><xs:union memberTypes='xs:int xs:string'/></xs:simpleType><xs:element name='r'><xs:complexType><xs:sequence><xs:element name='a' type='t:u' maxOccurs='9'/></xs:sequence></xs:complexType><xs:unique name='u'><xs:selector xpath='t:a'/><xs:field xpath='.'/></xs:unique></xs:element>",
        &[
            ("<t:r><t:a>1</t:a><t:a>01</t:a></t:r>", Some("cvc-identity-constraint.4.1")),
            ("<t:r><t:a>x</t:a><t:a>0x</t:a></t:r>", None),
            ("<t:r><t:a>1</t:a><t:a xsi:type='xs:string'>1</t:a></t:r>", None),
        ],
    ),
    (
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='a' maxOccurs='9'><xs:complexType><xs:sequence><xs:element name='b' type='xs:int' minOccurs='0' maxOccurs='2'/></xs:sequence></xs:complexType></xs:element></xs:sequence></xs:complexType><xs:unique name='u'><xs:selector xpath='t:a'/><xs:field xpath='t:b'/></xs:unique></xs:element>",
        &[
            ("<t:r><t:a/><t:a/></t:r>", None),
            ("<t:r><t:a><t:b>1</t:b><t:b>2</t:b></t:a></t:r>", Some("cvc-identity-constraint.3")),
        ],
    ),
    (
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='a' type='xs:duration' maxOccurs='9'/></xs:sequence></xs:complexType><xs:unique name='u'><xs:selector xpath='t:a'/><xs:field xpath='.'/></xs:unique></xs:element>",
        &[
            ("<t:r><t:a>P1Y</t:a><t:a>P365D</t:a><t:a>-P1Y</t:a></t:r>", None),
            ("<t:r><t:a>P1Y</t:a><t:a>P12M</t:a></t:r>", Some("cvc-identity-constraint.4.1")),
            ("<t:r><t:a>P0D</t:a><t:a>-PT0S</t:a></t:r>", Some("cvc-identity-constraint.4.1")),
            ("<t:r><t:a>P400Y</t:a><t:a>P146097D</t:a></t:r>", Some("cvc-identity-constraint.4.1")),
        ],
    ),
];

const ELEMENTS: &[Case] = &[
    (
        "<xs:complexType name='b'><xs:sequence><xs:element name='x' minOccurs='0'/></xs:sequence></xs:complexType><xs:complexType name='e'><xs:complexContent><xs:extension base='t:b'><xs:sequence><xs:element name='y' minOccurs='0'/></xs:sequence></xs:extension></xs:complexContent></xs:complexType><xs:complexType name='s'><xs:complexContent><xs:restriction base='t:b'/></xs:complexContent></xs:complexType><xs:complexType name='v' block='extension'><xs:sequence/></xs:complexType><xs:complexType name='w'><xs:complexContent><xs:extension base='t:v'/></xs:complexContent></xs:complexType><xs:element name='r'><xs:complexType><xs:choice><xs:element name='free' type='t:b'/><xs:element name='noext' type='t:b' block='extension'/><xs:element name='nores' type='t:b' block='restriction'/><xs:element name='typed' type='t:v'/></xs:choice></xs:complexType></xs:element>",
        &[
            ("<t:r><t:free xsi:type='t:e'><t:y/></t:free></t:r>", None),
            ("<t:r><t:free><t:y/></t:free></t:r>", Some("cvc-complex-type.2.4")),
            ("<t:r><t:noext xsi:type='t:e'/></t:r>", Some("cvc-elt.4.3")),
            ("<t:r><t:noext xsi:type='t:s'/></t:r>", None),
            ("<t:r><t:nores xsi:type='t:s'/></t:r>", Some("cvc-elt.4.3")),
            ("<t:r><t:nores xsi:type='t:e'/></t:r>", None),
            ("<t:r><t:typed xsi:type='t:w'/></t:r>", Some("cvc-elt.4.3")),
            ("<t:r><t:free xsi:type='t:v'/></t:r>", Some("cvc-elt.4.3")),
            ("<t:r><t:free xsi:type='t:nowhere'/></t:r>", Some("cvc-elt.4.2")),
            ("<t:r><t:free xsi:type='q:e'/></t:r>", Some("cvc-elt.4.1")),
        ],
    ),
    (
        "<xs:element name='r'><xs:complexType><xs:choice><xs:element name='f' type='xs:int' nillable='true' fixed='1'/><xs:element name='d' type='xs:int' nillable='true' default='1'/><xs:element name='n' type='xs:int'/></xs:choice></xs:complexType></xs:element>",
        &[
            ("<t:r><t:f/></t:r>", None),
            ("<t:r><t:f>+1</t:f></t:r>", None),
            ("<t:r><t:f>2</t:f></t:r>", Some("cvc-elt.5.2.2.2.2")),
            ("<t:r><t:f xsi:nil='true'/></t:r>", Some("cvc-elt.3.2.2")),
            ("<t:r><t:d xsi:nil='true'/></t:r>", None),
            ("<t:r><t:d xsi:nil='1'> </t:d></t:r>", Some("cvc-elt.3.2.1")),
            ("<t:r><t:d xsi:nil='0'/></t:r>", None),
            ("<t:r><t:d xsi:nil='maybe'/></t:r>", Some("cvc-simple-type.1")),
            ("<t:r><t:n xsi:nil='false'>1</t:n></t:r>", Some("cvc-elt.3.1")),
            ("<t:r><t:d xsi:type='xs:short'/></t:r>", None),
        ],
    ),
    (
        "<xs:element name='i' type='xs:int'/><xs:element name='r'><xs:complexType><xs:choice><xs:element name='lax'><xs:complexType><xs:sequence><xs:any processContents='lax'/></xs:sequence></xs:complexType></xs:element><xs:element name='strict'><xs:complexType><xs:sequence><xs:any/></xs:sequence></xs:complexType></xs:element><xs:element name='skip'><xs:complexType><xs:sequence><xs:any processContents='skip'/></xs:sequence></xs:complexType></xs:element></xs:choice></xs:complexType></xs:element>",
        &[
            ("<t:r><t:lax><o><t:i>x</t:i></o></t:lax></t:r>", Some("cvc-datatype-valid")),
            ("<t:r><t:strict><o/></t:strict></t:r>", Some("cvc-assess-elt.1.1")),
            ("<t:r><t:skip><o xsi:type='xs:nowhere' xsi:nil='maybe'/></t:skip></t:r>", None),
            ("<t:r><t:lax><o xsi:type='xs:int'>x</o></t:lax></t:r>", Some("cvc-datatype-valid")),
        ],
    ),
    (
        "<xs:element name='r' default='x'><xs:complexType mixed='true'><xs:sequence><xs:element name='b' minOccurs='0'/></xs:sequence></xs:complexType></xs:element>",
        &[("<t:r/>", None), ("<t:r>a<t:b/>c</t:r>", None), ("<t:r>a<t:c/></t:r>", Some("cvc-complex-type.2.4"))],
    ),
    (
        "<xs:element name='r' fixed='x'><xs:complexType mixed='true'><xs:sequence><xs:element name='b' minOccurs='0'/></xs:sequence></xs:complexType></xs:element>",
        &[
            ("<t:r/>", None),
            ("<t:r>x</t:r>", None),
            ("<t:r> x</t:r>", Some("cvc-elt.5.2.2.2.1")),
            ("<t:r><t:b/></t:r>", Some("cvc-elt.5.2.2.1")),
        ],
    ),
    (
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='a' minOccurs='0' maxOccurs='9'><xs:complexType><xs:attribute name='i' type='xs:ID'/><xs:attribute name='f' type='xs:IDREFS'/></xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element>",
        &[
            ("<t:r><t:a i='x'/><t:a f='x y'/><t:a i='y'/></t:r>", None),
            ("<t:r><t:a i='x'/><t:a i=' x '/></t:r>", Some("cvc-id.2")),
            ("<t:r><t:a i='x'/><t:a f='x z'/></t:r>", Some("cvc-id.1")),
            ("<t:r><t:a i='x'/><t:a f=''/></t:r>", Some("cvc-datatype-valid")),
            ("<t:r><t:a i='1x'/></t:r>", Some("cvc-datatype-valid")),
        ],
    ),
    (
        "<xs:simpleType name='ids'><xs:list itemType='xs:ID'/></xs:simpleType><xs:simpleType name='u'><xs:union memberTypes='xs:int xs:IDREF'/></xs:simpleType><xs:simpleType name='us'><xs:list itemType='t:u'/></xs:simpleType><xs:element name='r'><xs:complexType><xs:sequence><xs:element name='a' minOccurs='0' maxOccurs='9'><xs:complexType><xs:attribute name='i' type='t:ids'/><xs:attribute name='f' type='t:us'/></xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element>",
        &[
            ("<t:r><t:a i='x y'/><t:a i='z' f='7 y  z'/></t:r>", None),
            ("<t:r><t:a i='x y'/><t:a i='z x'/></t:r>", Some("cvc-id.2")),
            ("<t:r><t:a i='x'/><t:a f='7 y'/></t:r>", Some("cvc-id.1")),
            ("<t:r><t:a f='7 8'/></t:r>", None),
        ],
    ),
    (
        "<xs:notation name='n' public='p'/><xs:notation name='m' public='p'/><xs:element name='r'><xs:simpleType><xs:restriction base='xs:NOTATION'><xs:enumeration value='t:n'/></xs:restriction></xs:simpleType></xs:element>",
        &[
            ("<t:r>t:n</t:r>", None),
            ("<t:r xmlns:q='urn:t'>q:n</t:r>", None),
            ("<t:r>t:m</t:r>", Some("cvc-enumeration-valid")),
            ("<t:r>n</t:r>", Some("cvc-datatype-valid")),
        ],
    ),
];

/// Type, text and broken rule: the text of one element.
pub(crate) const VALUES: &[(&str, &str, Option<&str>)] = &[
    ("dateTime", "2000-01-01T24:00:00", None),
    ("dateTime", "2000-01-01T24:00:00.000Z", None),
    ("dateTime", "2000-01-01T24:00:01", Some("cvc-datatype-valid")),
    ("dateTime", "2000-01-01T23:60:00", Some("cvc-datatype-valid")),
    ("dateTime", "2000-01-01T23:59:60", Some("cvc-datatype-valid")),
    ("dateTime", "2000-01-01T00:00:00+14:00", None),
    ("dateTime", "2000-01-01T00:00:00+14:01", Some("cvc-datatype-valid")),
    ("dateTime", "2000-01-01T00:00:00.", Some("cvc-datatype-valid")),
    ("dateTime", "0000-01-01T00:00:00", Some("cvc-datatype-valid")),
    ("dateTime", "-0001-01-01T00:00:00", None),
    ("dateTime", "02000-01-01T00:00:00", Some("cvc-datatype-valid")),
    ("dateTime", "12000-01-01T00:00:00", None),
    ("dateTime", "+2000-01-01T00:00:00", Some("cvc-datatype-valid")),
    ("date", "1900-02-29", Some("cvc-datatype-valid")),
    ("date", "2000-02-29-13:59", None),
    ("date", "2000-02-29-00:60", Some("cvc-datatype-valid")),
    ("time", "24:00:00", None),
    ("time", "24:00:00.1", Some("cvc-datatype-valid")),
    ("gMonthDay", "--02-29", None),
    ("gMonthDay", "--02-30", Some("cvc-datatype-valid")),
    ("gDay", "---32", Some("cvc-datatype-valid")),
    ("gYear", "0000", Some("cvc-datatype-valid")),
    ("duration", "-P1Y2M3DT4H5M6.7S", None),
    ("duration", "P", Some("cvc-datatype-valid")),
    ("duration", "P1YT", Some("cvc-datatype-valid")),
    ("duration", "P1.5Y", Some("cvc-datatype-valid")),
    ("integer", "999999999999999999999999999999999999999", None),
    ("integer", "1.0", Some("cvc-datatype-valid")),
    ("decimal", ".5", None),
    ("decimal", "5.", None),
    ("decimal", ".", Some("cvc-datatype-valid")),
    ("decimal", "1e1", Some("cvc-datatype-valid")),
    ("unsignedByte", "-0", None),
    ("unsignedLong", "18446744073709551616", Some("cvc-maxInclusive-valid")),
    ("negativeInteger", "-0", Some("cvc-maxInclusive-valid")),
    ("double", "INF", None),
    ("double", "+INF", Some("cvc-datatype-valid")),
    ("double", "1E+400", None),
    ("double", "nan", Some("cvc-datatype-valid")),
    ("boolean", " 1&#9;", None),
    ("boolean", "TRUE", Some("cvc-datatype-valid")),
    ("hexBinary", "0aF", Some("cvc-datatype-valid")),
    ("hexBinary", "", None),
    ("base64Binary", "Y Q = =", None),
    ("base64Binary", "YQ=", Some("cvc-datatype-valid")),
    ("base64Binary", "YR==", Some("cvc-datatype-valid")),
    ("base64Binary", "", None),
    ("anyURI", "http://example.org/a b?c=d#e", None),
    ("anyURI", "a#b#c", Some("cvc-datatype-valid")),
    ("anyURI", "", None),
    ("language", "en-GB-x-abcdefgh", None),
    ("language", "abcdefghi", Some("cvc-datatype-valid")),
    ("Name", ":a:b", None),
    ("NCName", "a:b", Some("cvc-datatype-valid")),
    ("NMTOKENS", "  ", Some("cvc-minLength-valid")),
    ("token", "  a   b ", None),
    ("normalizedString", "a&#10;b", None),
];

pub(crate) fn cases() -> impl Iterator<Item = &'static Case> {
    IDENTITY.iter().chain(ELEMENTS)
}
