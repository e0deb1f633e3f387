//! Schemas that break one rule of XSD 1.0 (second edition) each, beside their nearest valid neighbours.

/// The rule, a schema that breaks it, and a neighbour that keeps it: the content of `xs:schema` for target namespace
/// `urn:t`.
pub(crate) type Row = (&'static str, &'static str, &'static str);

pub(crate) const STRUCTURES: &[Row] = &[
    (
        "sch-props-correct.2",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'/></xs:simpleType><xs:complexType name='s'/>",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'/></xs:simpleType><xs:attribute name='s'/>",
    ),
    (
        "sch-props-correct.2 (keys)",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='x'/><xs:field xpath='.'/></xs:key></xs:element><xs:element name='b'><xs:unique name='k'><xs:selector xpath='x'/><xs:field xpath='.'/></xs:unique></xs:element>",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='x'/><xs:field xpath='.'/></xs:key></xs:element><xs:element name='b'><xs:unique name='l'><xs:selector xpath='x'/><xs:field xpath='.'/></xs:unique></xs:element>",
    ),
    ("src-element.1", "<xs:element name='a' default='1' fixed='1'/>", "<xs:element name='a' default='1'/>"),
    (
        "src-element.2.1",
        "<xs:complexType name='c'><xs:sequence><xs:element name='a' ref='t:z'/></xs:sequence></xs:complexType>",
        "<xs:complexType name='c'><xs:sequence><xs:element ref='t:z'/></xs:sequence></xs:complexType>",
    ),
    (
        "src-element.2.2",
        "<xs:complexType name='c'><xs:sequence><xs:element ref='t:z' nillable='true'/></xs:sequence></xs:complexType>",
        "<xs:complexType name='c'><xs:sequence><xs:element ref='t:z' minOccurs='0'/></xs:sequence></xs:complexType>",
    ),
    (
        "src-element.3",
        "<xs:element name='a' type='xs:int'><xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType></xs:element>",
        "<xs:element name='a'><xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType></xs:element>",
    ),
    (
        "e-props-correct.2",
        "<xs:element name='a' type='xs:int' default='x'/>",
        "<xs:element name='a' type='xs:int' default=' 7 '/>",
    ),
    (
        "e-props-correct.4",
        "<xs:element name='h' type='xs:int'/><xs:element name='m' type='xs:string' substitutionGroup='t:h'/>",
        "<xs:element name='h' type='xs:int'/><xs:element name='m' type='xs:short' substitutionGroup='t:h'/>",
    ),
    (
        "e-props-correct.4 (final)",
        "<xs:element name='h' type='xs:int' final='restriction'/><xs:element name='m' type='xs:short' substitutionGroup='t:h'/>",
        "<xs:element name='h' type='xs:int' final='restriction'/><xs:element name='m' type='xs:int' substitutionGroup='t:h'/>",
    ),
    (
        "e-props-correct.5",
        "<xs:element name='a' type='xs:ID' default='x'/>",
        "<xs:element name='a' type='xs:NCName' default='x'/>",
    ),
    (
        "e-props-correct.6",
        "<xs:element name='a' substitutionGroup='t:b'/><xs:element name='b' substitutionGroup='t:a'/>",
        "<xs:element name='a' substitutionGroup='t:b'/><xs:element name='b' substitutionGroup='t:z'/>",
    ),
    (
        "cos-valid-default.2.1",
        "<xs:element name='a' default='x'><xs:complexType><xs:sequence minOccurs='0'><xs:element name='b'/></xs:sequence></xs:complexType></xs:element>",
        "<xs:element name='a' default='x'><xs:complexType mixed='true'><xs:sequence minOccurs='0'><xs:element name='b'/></xs:sequence></xs:complexType></xs:element>",
    ),
    (
        "cos-valid-default.2.2.2",
        "<xs:element name='a' default='x'><xs:complexType mixed='true'><xs:sequence><xs:element name='b'/></xs:sequence></xs:complexType></xs:element>",
        "<xs:element name='a' default='x'><xs:complexType mixed='true'><xs:sequence><xs:element name='b' minOccurs='0'/></xs:sequence></xs:complexType></xs:element>",
    ),
    ("src-attribute.1", "<xs:attribute name='a' default='1' fixed='1'/>", "<xs:attribute name='a' fixed='1'/>"),
    (
        "src-attribute.3.2",
        "<xs:attribute name='g'/><xs:complexType name='c'><xs:attribute ref='t:g' type='xs:int'/></xs:complexType>",
        "<xs:attribute name='g'/><xs:complexType name='c'><xs:attribute ref='t:g' use='required'/></xs:complexType>",
    ),
    (
        "src-attribute.4",
        "<xs:attribute name='a' type='xs:int'><xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType></xs:attribute>",
        "<xs:attribute name='a'><xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType></xs:attribute>",
    ),
    (
        "a-props-correct.2",
        "<xs:attribute name='a' type='xs:date' fixed='2001-02-29'/>",
        "<xs:attribute name='a' type='xs:date' fixed='2000-02-29'/>",
    ),
    (
        "a-props-correct.3",
        "<xs:attribute name='a' type='xs:ID' fixed='x'/>",
        "<xs:attribute name='a' type='xs:IDREF' fixed='x'/>",
    ),
    (
        "au-props-correct.2",
        "<xs:attribute name='g' fixed='1'/><xs:complexType name='c'><xs:attribute ref='t:g' fixed='2'/></xs:complexType>",
        "<xs:attribute name='g' type='xs:decimal' fixed='1'/><xs:complexType name='c'><xs:attribute ref='t:g' fixed='1.0'/></xs:complexType>",
    ),
    (
        "au-props-correct.2 (default)",
        "<xs:attribute name='g' fixed='1'/><xs:complexType name='c'><xs:attribute ref='t:g' default='1'/></xs:complexType>",
        "<xs:attribute name='g' default='1'/><xs:complexType name='c'><xs:attribute ref='t:g' default='2'/></xs:complexType>",
    ),
    ("no-xmlns", "<xs:attribute name='xmlns'/>", "<xs:attribute name='xmlnsx'/>"),
    (
        "no-xmlns (local)",
        "<xs:complexType name='c'><xs:attribute name='xmlns' form='unqualified'/></xs:complexType>",
        "<xs:complexType name='c'><xs:attribute name='xml' form='unqualified'/></xs:complexType>",
    ),
    (
        "ct-props-correct.3",
        "<xs:complexType name='a'><xs:complexContent><xs:extension base='t:b'/></xs:complexContent></xs:complexType><xs:complexType name='b'><xs:complexContent><xs:extension base='t:a'/></xs:complexContent></xs:complexType>",
        "<xs:complexType name='a'><xs:complexContent><xs:extension base='t:b'/></xs:complexContent></xs:complexType><xs:complexType name='b'/>",
    ),
    (
        "ct-props-correct.4",
        "<xs:attributeGroup name='g'><xs:attribute name='a'/></xs:attributeGroup><xs:complexType name='c'><xs:attribute name='a'/><xs:attributeGroup ref='t:g'/></xs:complexType>",
        "<xs:attributeGroup name='g'><xs:attribute name='a' form='qualified'/></xs:attributeGroup><xs:complexType name='c'><xs:attribute name='a'/><xs:attributeGroup ref='t:g'/></xs:complexType>",
    ),
    (
        "ct-props-correct.5",
        "<xs:complexType name='c'><xs:attribute name='a' type='xs:ID'/><xs:attribute name='b' type='xs:ID'/></xs:complexType>",
        "<xs:complexType name='c'><xs:attribute name='a' type='xs:ID'/><xs:attribute name='b' type='xs:IDREF'/></xs:complexType>",
    ),
    (
        "ct-props-correct.5 (derived)",
        "<xs:simpleType name='i'><xs:restriction base='xs:ID'><xs:maxLength value='3'/></xs:restriction></xs:simpleType><xs:complexType name='b'><xs:attribute name='a' type='xs:ID'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:extension base='t:b'><xs:attribute name='b' type='t:i'/></xs:extension></xs:complexContent></xs:complexType>",
        "<xs:simpleType name='i'><xs:restriction base='xs:NCName'><xs:maxLength value='3'/></xs:restriction></xs:simpleType><xs:complexType name='b'><xs:attribute name='a' type='xs:ID'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:extension base='t:b'><xs:attribute name='b' type='t:i'/></xs:extension></xs:complexContent></xs:complexType>",
    ),
    (
        "ag-props-correct.3",
        "<xs:attributeGroup name='g'><xs:attribute name='a' type='xs:ID'/><xs:attribute name='b' type='xs:ID'/></xs:attributeGroup>",
        "<xs:attributeGroup name='g'><xs:attribute name='a' type='xs:ID'/><xs:attribute name='b' type='xs:IDREFS'/></xs:attributeGroup>",
    ),
    (
        "src-attribute_group.3",
        "<xs:attributeGroup name='g'><xs:attributeGroup ref='t:h'/></xs:attributeGroup><xs:attributeGroup name='h'><xs:attributeGroup ref='t:g'/></xs:attributeGroup>",
        "<xs:attributeGroup name='g'><xs:attributeGroup ref='t:h'/></xs:attributeGroup><xs:attributeGroup name='h'/>",
    ),
    (
        "src-ct.1",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'/></xs:simpleType><xs:complexType name='c'><xs:complexContent><xs:extension base='t:s'/></xs:complexContent></xs:complexType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'/></xs:simpleType><xs:complexType name='c'><xs:simpleContent><xs:extension base='t:s'/></xs:simpleContent></xs:complexType>",
    ),
    (
        "src-ct.2 (restriction of a simple type)",
        "<xs:complexType name='c'><xs:simpleContent><xs:restriction base='xs:int'/></xs:simpleContent></xs:complexType>",
        "<xs:complexType name='b'><xs:simpleContent><xs:extension base='xs:int'/></xs:simpleContent></xs:complexType><xs:complexType name='c'><xs:simpleContent><xs:restriction base='t:b'/></xs:simpleContent></xs:complexType>",
    ),
    (
        "src-ct.2 (mixed not emptiable)",
        "<xs:complexType name='b' mixed='true'><xs:sequence><xs:element name='a'/></xs:sequence></xs:complexType><xs:complexType name='c'><xs:simpleContent><xs:restriction base='t:b'><xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType></xs:restriction></xs:simpleContent></xs:complexType>",
        "<xs:complexType name='b' mixed='true'><xs:sequence><xs:element name='a' minOccurs='0'/></xs:sequence></xs:complexType><xs:complexType name='c'><xs:simpleContent><xs:restriction base='t:b'><xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType></xs:restriction></xs:simpleContent></xs:complexType>",
    ),
    (
        "cos-ct-extends.1.1",
        "<xs:complexType name='b' final='extension'/><xs:complexType name='c'><xs:complexContent><xs:extension base='t:b'/></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b' final='restriction'/><xs:complexType name='c'><xs:complexContent><xs:extension base='t:b'/></xs:complexContent></xs:complexType>",
    ),
    (
        "cos-ct-extends.1.4.2.2.2.2.1 (mixed)",
        "<xs:complexType name='b' mixed='true'><xs:sequence><xs:element name='a'/></xs:sequence></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:extension base='t:b'><xs:sequence><xs:element name='d'/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b' mixed='true'><xs:sequence><xs:element name='a'/></xs:sequence></xs:complexType><xs:complexType name='c'><xs:complexContent mixed='true'><xs:extension base='t:b'><xs:sequence><xs:element name='d'/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>",
    ),
    (
        "cos-ct-extends.2.2 (final of the simple base)",
        "<xs:simpleType name='s' final='#all'><xs:restriction base='xs:int'/></xs:simpleType><xs:complexType name='c'><xs:simpleContent><xs:extension base='t:s'/></xs:simpleContent></xs:complexType>",
        "<xs:simpleType name='s' final='list restriction union'><xs:restriction base='xs:int'/></xs:simpleType><xs:complexType name='c'><xs:simpleContent><xs:extension base='t:s'/></xs:simpleContent></xs:complexType>",
    ),
    (
        "cos-ct-extends.1.4.2.2.2.2.1 (attributes beside xs:all)",
        "<xs:complexType name='b'><xs:all><xs:element name='a'/></xs:all></xs:complexType><xs:complexType name='c'><xs:complexContent mixed='true'><xs:extension base='t:b'><xs:attribute name='p'/></xs:extension></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b' mixed='true'><xs:all><xs:element name='a'/></xs:all></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:extension base='t:b'><xs:attribute name='p'/></xs:extension></xs:complexContent></xs:complexType>",
    ),
    (
        "cos-ct-extends.1.4.2.2.2.2.1 (attributes beside xs:all, said of the type)",
        "<xs:complexType name='b'><xs:all><xs:element name='a'/></xs:all></xs:complexType><xs:complexType name='c' mixed='true'><xs:complexContent><xs:extension base='t:b'><xs:attribute name='p'/></xs:extension></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b'><xs:all><xs:element name='a'/></xs:all></xs:complexType><xs:complexType name='c' mixed='true'><xs:complexContent mixed='false'><xs:extension base='t:b'><xs:attribute name='p'/></xs:extension></xs:complexContent></xs:complexType>",
    ),
    (
        "derivation-ok-restriction.1",
        "<xs:complexType name='b' final='restriction'/><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'/></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b' final='extension'/><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'/></xs:complexContent></xs:complexType>",
    ),
    (
        "derivation-ok-restriction.2.1.1",
        "<xs:complexType name='b'><xs:attribute name='a' use='required'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:attribute name='a' use='optional'/></xs:restriction></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b'><xs:attribute name='a'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:attribute name='a' use='required'/></xs:restriction></xs:complexContent></xs:complexType>",
    ),
    (
        "derivation-ok-restriction.2.1.2",
        "<xs:complexType name='b'><xs:attribute name='a' type='xs:int'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:attribute name='a' type='xs:string'/></xs:restriction></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b'><xs:attribute name='a' type='xs:int'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:attribute name='a' type='xs:byte'/></xs:restriction></xs:complexContent></xs:complexType>",
    ),
    (
        "derivation-ok-restriction.2.1.3",
        "<xs:complexType name='b'><xs:attribute name='a' type='xs:decimal' fixed='1'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:attribute name='a' type='xs:decimal' fixed='2'/></xs:restriction></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b'><xs:attribute name='a' type='xs:decimal' fixed='1'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:attribute name='a' type='xs:decimal' fixed='1.0'/></xs:restriction></xs:complexContent></xs:complexType>",
    ),
    (
        "derivation-ok-restriction.2.2",
        "<xs:complexType name='b'><xs:anyAttribute namespace='urn:o'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:attribute name='a'/></xs:restriction></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b'><xs:anyAttribute namespace='##local'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:attribute name='a'/></xs:restriction></xs:complexContent></xs:complexType>",
    ),
    (
        "derivation-ok-restriction.3",
        "<xs:complexType name='b'><xs:attribute name='a' use='required'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:attribute name='a' use='prohibited'/></xs:restriction></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b'><xs:attribute name='a'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:attribute name='a' use='prohibited'/></xs:restriction></xs:complexContent></xs:complexType>",
    ),
    (
        "derivation-ok-restriction.4.1",
        "<xs:complexType name='b'/><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:anyAttribute/></xs:restriction></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b'><xs:anyAttribute/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:anyAttribute/></xs:restriction></xs:complexContent></xs:complexType>",
    ),
    (
        "derivation-ok-restriction.4.2",
        "<xs:complexType name='b'><xs:anyAttribute namespace='##other'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:anyAttribute namespace='##local'/></xs:restriction></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b'><xs:anyAttribute namespace='##other'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:anyAttribute namespace='urn:o'/></xs:restriction></xs:complexContent></xs:complexType>",
    ),
    (
        "derivation-ok-restriction.4.3",
        "<xs:complexType name='b'><xs:anyAttribute processContents='strict'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:anyAttribute processContents='lax'/></xs:restriction></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b'><xs:anyAttribute processContents='lax'/></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:anyAttribute processContents='strict'/></xs:restriction></xs:complexContent></xs:complexType>",
    ),
    (
        "derivation-ok-restriction.5.4.1 (mixed)",
        "<xs:complexType name='b'><xs:sequence><xs:element name='a'/></xs:sequence></xs:complexType><xs:complexType name='c' mixed='true'><xs:complexContent><xs:restriction base='t:b'><xs:sequence><xs:element name='a'/></xs:sequence></xs:restriction></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b' mixed='true'><xs:sequence><xs:element name='a'/></xs:sequence></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'><xs:sequence><xs:element name='a'/></xs:sequence></xs:restriction></xs:complexContent></xs:complexType>",
    ),
    (
        "derivation-ok-restriction.5.3 (empty)",
        "<xs:complexType name='b'><xs:sequence><xs:element name='a'/></xs:sequence></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'/></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b'><xs:sequence><xs:element name='a' minOccurs='0'/></xs:sequence></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:restriction base='t:b'/></xs:complexContent></xs:complexType>",
    ),
    (
        "mg-props-correct.2",
        "<xs:group name='g'><xs:sequence><xs:group ref='t:h'/></xs:sequence></xs:group><xs:group name='h'><xs:choice><xs:group ref='t:g'/></xs:choice></xs:group>",
        "<xs:group name='g'><xs:sequence><xs:group ref='t:h'/></xs:sequence></xs:group><xs:group name='h'><xs:choice><xs:element name='a'/></xs:choice></xs:group>",
    ),
    (
        "cos-all-limited.1.2",
        "<xs:group name='g'><xs:all><xs:element name='a'/></xs:all></xs:group><xs:complexType name='c'><xs:sequence><xs:group ref='t:g'/></xs:sequence></xs:complexType>",
        "<xs:group name='g'><xs:all><xs:element name='a'/></xs:all></xs:group><xs:complexType name='c'><xs:group ref='t:g'/></xs:complexType>",
    ),
    (
        "cos-all-limited.1.2 (counted)",
        "<xs:group name='g'><xs:all><xs:element name='a'/></xs:all></xs:group><xs:complexType name='c'><xs:group ref='t:g' maxOccurs='2'/></xs:complexType>",
        "<xs:group name='g'><xs:all><xs:element name='a'/></xs:all></xs:group><xs:complexType name='c'><xs:group ref='t:g' minOccurs='0'/></xs:complexType>",
    ),
    (
        "cos-all-limited.1.2 (extended)",
        "<xs:complexType name='b'><xs:all><xs:element name='a'/></xs:all></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:extension base='t:b'><xs:sequence><xs:element name='d'/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b'><xs:all><xs:element name='a'/></xs:all></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:extension base='t:b'><xs:attribute name='d'/></xs:extension></xs:complexContent></xs:complexType>",
    ),
    (
        "cos-all-limited.2",
        "<xs:complexType name='c'><xs:all><xs:element name='a' maxOccurs='2'/></xs:all></xs:complexType>",
        "<xs:complexType name='c'><xs:all><xs:element name='a' minOccurs='0'/></xs:all></xs:complexType>",
    ),
    (
        "cos-element-consistent",
        "<xs:complexType name='c'><xs:sequence><xs:element name='a' type='xs:int'/><xs:element name='b'/><xs:element name='a' type='xs:short'/></xs:sequence></xs:complexType>",
        "<xs:complexType name='c'><xs:sequence><xs:element name='a' type='xs:int'/><xs:element name='b'/><xs:element name='a' type='xs:int'/></xs:sequence></xs:complexType>",
    ),
    (
        "cos-element-consistent (anonymous)",
        "<xs:complexType name='c'><xs:sequence><xs:element name='a'><xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType></xs:element><xs:element name='b'/><xs:element name='a'><xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType></xs:element></xs:sequence></xs:complexType>",
        "<xs:complexType name='c'><xs:sequence><xs:element name='a'><xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType></xs:element><xs:element name='b'/><xs:element name='a' form='qualified'><xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType></xs:element></xs:sequence></xs:complexType>",
    ),
    (
        "cos-element-consistent (unused group)",
        "<xs:group name='g'><xs:sequence><xs:element name='a' type='xs:int'/><xs:element name='b'/><xs:element name='a' type='xs:short'/></xs:sequence></xs:group>",
        "<xs:group name='g'><xs:sequence><xs:element name='a' type='xs:int'/><xs:element name='b'/><xs:element name='a' type='xs:int'/></xs:sequence></xs:group>",
    ),
    (
        "cos-element-consistent (substituted)",
        "<xs:element name='h' type='xs:int'/><xs:element name='m' type='xs:int' substitutionGroup='t:h'/><xs:complexType name='c'><xs:sequence><xs:element ref='t:h'/><xs:element name='b'/><xs:element name='m' form='qualified' type='xs:short'/></xs:sequence></xs:complexType>",
        "<xs:element name='h' type='xs:int'/><xs:element name='m' type='xs:int' substitutionGroup='t:h'/><xs:complexType name='c'><xs:sequence><xs:element ref='t:h'/><xs:element name='b'/><xs:element name='m' form='qualified' type='xs:int'/></xs:sequence></xs:complexType>",
    ),
    (
        "cos-nonambig (wildcard)",
        "<xs:complexType name='c'><xs:sequence><xs:element name='a' minOccurs='0'/><xs:any namespace='##local'/></xs:sequence></xs:complexType>",
        "<xs:complexType name='c'><xs:sequence><xs:element name='a' minOccurs='0'/><xs:any namespace='##targetNamespace'/></xs:sequence></xs:complexType>",
    ),
    (
        "cos-nonambig (two wildcards)",
        "<xs:complexType name='c'><xs:choice><xs:any namespace='##any'/><xs:any namespace='urn:o'/></xs:choice></xs:complexType>",
        "<xs:complexType name='c'><xs:choice><xs:any namespace='##local'/><xs:any namespace='urn:o'/></xs:choice></xs:complexType>",
    ),
    (
        "cos-nonambig (substituted)",
        "<xs:element name='h'/><xs:element name='m' substitutionGroup='t:h'/><xs:complexType name='c'><xs:choice><xs:element ref='t:h'/><xs:element ref='t:m'/></xs:choice></xs:complexType>",
        "<xs:element name='h' block='substitution'/><xs:element name='m' substitutionGroup='t:h'/><xs:complexType name='c'><xs:choice><xs:element ref='t:h'/><xs:element ref='t:m'/></xs:choice></xs:complexType>",
    ),
    (
        "cos-nonambig (counted)",
        "<xs:complexType name='c'><xs:sequence><xs:element name='a' minOccurs='1' maxOccurs='2'/><xs:element name='a'/></xs:sequence></xs:complexType>",
        "<xs:complexType name='c'><xs:sequence><xs:element name='a' minOccurs='2' maxOccurs='2'/><xs:element name='a'/></xs:sequence></xs:complexType>",
    ),
    (
        "cos-nonambig (extension)",
        "<xs:complexType name='b'><xs:sequence><xs:element name='a' minOccurs='0'/></xs:sequence></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:extension base='t:b'><xs:sequence><xs:element name='a'/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>",
        "<xs:complexType name='b'><xs:sequence><xs:element name='a'/></xs:sequence></xs:complexType><xs:complexType name='c'><xs:complexContent><xs:extension base='t:b'><xs:sequence><xs:element name='a'/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>",
    ),
    (
        "p-props-correct.2.1",
        "<xs:complexType name='c'><xs:sequence minOccurs='3' maxOccurs='2'><xs:element name='a'/></xs:sequence></xs:complexType>",
        "<xs:complexType name='c'><xs:sequence minOccurs='2' maxOccurs='2'><xs:element name='a'/></xs:sequence></xs:complexType>",
    ),
    (
        "p-props-correct.2.1 (empty)",
        "<xs:complexType name='c'><xs:sequence minOccurs='2'/></xs:complexType>",
        "<xs:complexType name='c'><xs:sequence minOccurs='2' maxOccurs='2'/></xs:complexType>",
    ),
    (
        "w-props-correct",
        "<xs:complexType name='c'><xs:sequence><xs:any namespace='##any urn:o'/></xs:sequence></xs:complexType>",
        "<xs:complexType name='c'><xs:sequence><xs:any namespace='##local urn:o'/></xs:sequence></xs:complexType>",
    ),
    (
        "src-resolve",
        "<xs:complexType name='c'><xs:sequence><xs:element ref='t:nowhere'/></xs:sequence></xs:complexType>",
        "<xs:complexType name='c'><xs:sequence><xs:element ref='t:z'/></xs:sequence></xs:complexType>",
    ),
    (
        "src-resolve.4",
        "<xs:element name='a' type='o:x' xmlns:o='urn:o'/>",
        "<xs:element name='a' type='o:string' xmlns:o='http://www.w3.org/2001/XMLSchema'/>",
    ),
    (
        "c-props-correct.2",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='x'/><xs:field xpath='@p'/><xs:field xpath='@q'/></xs:key><xs:keyref name='l' refer='t:k'><xs:selector xpath='y'/><xs:field xpath='@p'/></xs:keyref></xs:element>",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='x'/><xs:field xpath='@p'/></xs:key><xs:keyref name='l' refer='t:k'><xs:selector xpath='y'/><xs:field xpath='@p'/></xs:keyref></xs:element>",
    ),
    (
        "c-selector-xpath (attribute)",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='x/@p'/><xs:field xpath='.'/></xs:key></xs:element>",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='.//x/child::y | *'/><xs:field xpath='.'/></xs:key></xs:element>",
    ),
    (
        "c-selector-xpath (inner //)",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='x//y'/><xs:field xpath='.'/></xs:key></xs:element>",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='.//x/./y'/><xs:field xpath='.'/></xs:key></xs:element>",
    ),
    (
        "c-selector-xpath (absolute)",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='/x'/><xs:field xpath='.'/></xs:key></xs:element>",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='./x'/><xs:field xpath='.'/></xs:key></xs:element>",
    ),
    (
        "c-selector-xpath (prefix)",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='q:x'/><xs:field xpath='.'/></xs:key></xs:element>",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='t:x'/><xs:field xpath='.'/></xs:key></xs:element>",
    ),
    (
        "c-fields-xpaths",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='x'/><xs:field xpath='@p/y'/></xs:key></xs:element>",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='x'/><xs:field xpath='y/attribute::t:* | y/@p'/></xs:key></xs:element>",
    ),
    (
        "c-fields-xpaths (function)",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='x'/><xs:field xpath='text()'/></xs:key></xs:element>",
        "<xs:element name='a'><xs:key name='k'><xs:selector xpath='x'/><xs:field xpath='text'/></xs:key></xs:element>",
    ),
    (
        "n-props-correct",
        "<xs:notation name='n' public='p'/><xs:notation name='n' public='q'/>",
        "<xs:notation name='n' public='p'/><xs:notation name='m' public='p'/>",
    ),
];

pub(crate) const SIMPLE: &[Row] = &[
    (
        "src-simple-type.2",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction><xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType></xs:restriction></xs:simpleType>",
    ),
    (
        "src-simple-type.2 (neither)",
        "<xs:simpleType name='s'><xs:restriction/></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'/></xs:simpleType>",
    ),
    (
        "src-simple-type.3",
        "<xs:simpleType name='s'><xs:list itemType='xs:int'><xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType></xs:list></xs:simpleType>",
        "<xs:simpleType name='s'><xs:list><xs:simpleType><xs:restriction base='xs:int'/></xs:simpleType></xs:list></xs:simpleType>",
    ),
    (
        "src-simple-type.4",
        "<xs:simpleType name='s'><xs:union memberTypes='t:u xs:int'/></xs:simpleType><xs:simpleType name='u'><xs:union memberTypes='t:s'/></xs:simpleType>",
        "<xs:simpleType name='s'><xs:union memberTypes='t:u xs:int'/></xs:simpleType><xs:simpleType name='u'><xs:union memberTypes='xs:date'/></xs:simpleType>",
    ),
    (
        "src-union-memberTypes-or-simpleTypes",
        "<xs:simpleType name='s'><xs:union/></xs:simpleType>",
        "<xs:simpleType name='s'><xs:union memberTypes='xs:int'/></xs:simpleType>",
    ),
    (
        "st-props-correct.2",
        "<xs:simpleType name='s'><xs:list itemType='t:u'/></xs:simpleType><xs:simpleType name='u'><xs:restriction base='t:s'/></xs:simpleType>",
        "<xs:simpleType name='s'><xs:list itemType='t:u'/></xs:simpleType><xs:simpleType name='u'><xs:restriction base='xs:int'/></xs:simpleType>",
    ),
    (
        "st-props-correct.3",
        "<xs:simpleType name='b' final='restriction'><xs:restriction base='xs:int'/></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'/></xs:simpleType>",
        "<xs:simpleType name='b' final='list union'><xs:restriction base='xs:int'/></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'/></xs:simpleType>",
    ),
    (
        "cos-st-restricts.2.1",
        "<xs:simpleType name='l'><xs:list itemType='xs:int'/></xs:simpleType><xs:simpleType name='s'><xs:list itemType='t:l'/></xs:simpleType>",
        "<xs:simpleType name='l'><xs:union memberTypes='xs:int xs:date'/></xs:simpleType><xs:simpleType name='s'><xs:list itemType='t:l'/></xs:simpleType>",
    ),
    (
        "cos-st-restricts.2.1 (union of a list)",
        "<xs:simpleType name='l'><xs:union memberTypes='xs:int xs:NMTOKENS'/></xs:simpleType><xs:simpleType name='s'><xs:list itemType='t:l'/></xs:simpleType>",
        "<xs:simpleType name='l'><xs:union memberTypes='xs:int xs:NMTOKEN'/></xs:simpleType><xs:simpleType name='s'><xs:list itemType='t:l'/></xs:simpleType>",
    ),
    (
        "cos-st-restricts.2.3.1.1",
        "<xs:simpleType name='b' final='list'><xs:restriction base='xs:int'/></xs:simpleType><xs:simpleType name='s'><xs:list itemType='t:b'/></xs:simpleType>",
        "<xs:simpleType name='b' final='union'><xs:restriction base='xs:int'/></xs:simpleType><xs:simpleType name='s'><xs:list itemType='t:b'/></xs:simpleType>",
    ),
    (
        "cos-st-restricts.3.3.1",
        "<xs:simpleType name='b' final='union'><xs:restriction base='xs:int'/></xs:simpleType><xs:simpleType name='s'><xs:union memberTypes='t:b'/></xs:simpleType>",
        "<xs:simpleType name='b' final='list'><xs:restriction base='xs:int'/></xs:simpleType><xs:simpleType name='s'><xs:union memberTypes='t:b'/></xs:simpleType>",
    ),
    (
        "cos-st-restricts.1.3.1 (facet of the primitive)",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:length value='2'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:totalDigits value='2'/></xs:restriction></xs:simpleType>",
    ),
    (
        "cos-st-restricts.2.3.2.4 (facet of a list)",
        "<xs:simpleType name='l'><xs:list itemType='xs:int'/></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:l'><xs:minInclusive value='2'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='l'><xs:list itemType='xs:int'/></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:l'><xs:minLength value='2'/></xs:restriction></xs:simpleType>",
    ),
    (
        "cos-st-restricts.3.3.2.4 (facet of a union)",
        "<xs:simpleType name='u'><xs:union memberTypes='xs:int'/></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:u'><xs:maxInclusive value='2'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='u'><xs:union memberTypes='xs:int'/></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:u'><xs:enumeration value='2'/></xs:restriction></xs:simpleType>",
    ),
    (
        "src-single-facet-value",
        "<xs:simpleType name='s'><xs:restriction base='xs:string'><xs:maxLength value='2'/><xs:maxLength value='2'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:string'><xs:pattern value='a'/><xs:pattern value='a'/></xs:restriction></xs:simpleType>",
    ),
    (
        "length-minLength-maxLength",
        "<xs:simpleType name='s'><xs:restriction base='xs:string'><xs:length value='2'/><xs:minLength value='2'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='b'><xs:restriction base='xs:string'><xs:minLength value='2'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:length value='2'/></xs:restriction></xs:simpleType>",
    ),
    (
        "length-minLength-maxLength (below a length)",
        "<xs:simpleType name='b'><xs:restriction base='xs:string'><xs:length value='3'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:minLength value='2'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='b'><xs:restriction base='xs:string'><xs:minLength value='2'/></xs:restriction></xs:simpleType><xs:simpleType name='c'><xs:restriction base='t:b'><xs:length value='3'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:c'><xs:minLength value='2'/></xs:restriction></xs:simpleType>",
    ),
    (
        "length-minLength-maxLength (most below a length)",
        "<xs:simpleType name='b'><xs:restriction base='xs:string'><xs:length value='3'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:maxLength value='3'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='b'><xs:restriction base='xs:string'><xs:maxLength value='3'/></xs:restriction></xs:simpleType><xs:simpleType name='c'><xs:restriction base='t:b'><xs:length value='3'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:c'><xs:maxLength value='3'/></xs:restriction></xs:simpleType>",
    ),
    (
        "length-minLength-maxLength (another bound below a length)",
        "<xs:simpleType name='b'><xs:restriction base='xs:string'><xs:minLength value='1'/></xs:restriction></xs:simpleType><xs:simpleType name='c'><xs:restriction base='t:b'><xs:length value='3'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:c'><xs:minLength value='2'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='a'><xs:restriction base='xs:string'><xs:minLength value='1'/></xs:restriction></xs:simpleType><xs:simpleType name='b'><xs:restriction base='t:a'><xs:minLength value='2'/></xs:restriction></xs:simpleType><xs:simpleType name='c'><xs:restriction base='t:b'><xs:length value='3'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:c'><xs:minLength value='2'/></xs:restriction></xs:simpleType>",
    ),
    (
        "length-minLength-maxLength (of a list)",
        "<xs:simpleType name='l'><xs:list itemType='xs:int'/></xs:simpleType><xs:simpleType name='b'><xs:restriction base='t:l'><xs:length value='3'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:maxLength value='4'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='l'><xs:list itemType='xs:int'/></xs:simpleType><xs:simpleType name='b'><xs:restriction base='t:l'><xs:maxLength value='4'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:length value='3'/><xs:maxLength value='4'/></xs:restriction></xs:simpleType>",
    ),
    (
        "length-valid-restriction",
        "<xs:simpleType name='b'><xs:restriction base='xs:string'><xs:length value='2'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:length value='3'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='b'><xs:restriction base='xs:string'><xs:length value='2'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:length value='2'/></xs:restriction></xs:simpleType>",
    ),
    (
        "minLength-valid-restriction",
        "<xs:simpleType name='b'><xs:restriction base='xs:string'><xs:minLength value='2'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:minLength value='1'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='b'><xs:restriction base='xs:string'><xs:minLength value='2'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:minLength value='3'/></xs:restriction></xs:simpleType>",
    ),
    (
        "maxLength-valid-restriction",
        "<xs:simpleType name='b'><xs:restriction base='xs:string'><xs:maxLength value='2'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:maxLength value='3'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='b'><xs:restriction base='xs:string'><xs:maxLength value='2'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:maxLength value='1'/></xs:restriction></xs:simpleType>",
    ),
    (
        "minLength of NMTOKENS",
        "<xs:simpleType name='s'><xs:restriction base='xs:NMTOKENS'><xs:minLength value='0'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:NMTOKENS'><xs:minLength value='1'/></xs:restriction></xs:simpleType>",
    ),
    (
        "whiteSpace-valid-restriction",
        "<xs:simpleType name='s'><xs:restriction base='xs:token'><xs:whiteSpace value='preserve'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:string'><xs:whiteSpace value='collapse'/></xs:restriction></xs:simpleType>",
    ),
    (
        "whiteSpace-valid-restriction (replace)",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:whiteSpace value='replace'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:whiteSpace value='collapse'/></xs:restriction></xs:simpleType>",
    ),
    (
        "minInclusive-less-than-equal-to-maxInclusive",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:minInclusive value='3'/><xs:maxInclusive value='2'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:minInclusive value='2'/><xs:maxInclusive value='2'/></xs:restriction></xs:simpleType>",
    ),
    (
        "minInclusive-less-than-maxExclusive",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:minInclusive value='2'/><xs:maxExclusive value='2'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:minInclusive value='2'/><xs:maxExclusive value='3'/></xs:restriction></xs:simpleType>",
    ),
    (
        "minExclusive-less-than-maxInclusive",
        "<xs:simpleType name='s'><xs:restriction base='xs:decimal'><xs:minExclusive value='2'/><xs:maxInclusive value='2.0'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:decimal'><xs:minExclusive value='2'/><xs:maxInclusive value='2.01'/></xs:restriction></xs:simpleType>",
    ),
    (
        "minInclusive-minExclusive",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:minInclusive value='2'/><xs:minExclusive value='2'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:minInclusive value='2'/></xs:restriction></xs:simpleType>",
    ),
    (
        "maxInclusive-maxExclusive",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:maxInclusive value='2'/><xs:maxExclusive value='3'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:maxExclusive value='3'/></xs:restriction></xs:simpleType>",
    ),
    (
        "minInclusive-valid-restriction",
        "<xs:simpleType name='b'><xs:restriction base='xs:date'><xs:minInclusive value='2000-01-01'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:minInclusive value='1999-12-31'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='b'><xs:restriction base='xs:date'><xs:minInclusive value='2000-01-01'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:minInclusive value='2000-01-02'/></xs:restriction></xs:simpleType>",
    ),
    (
        "maxInclusive-valid-restriction",
        "<xs:simpleType name='s'><xs:restriction base='xs:byte'><xs:maxInclusive value='128'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:byte'><xs:maxInclusive value='127'/></xs:restriction></xs:simpleType>",
    ),
    (
        "minInclusive is a value of the base (enumeration)",
        "<xs:simpleType name='b'><xs:restriction base='xs:int'><xs:enumeration value='1'/><xs:enumeration value='5'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:minInclusive value='3'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='b'><xs:restriction base='xs:int'><xs:enumeration value='1'/><xs:enumeration value='5'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:minInclusive value='5'/></xs:restriction></xs:simpleType>",
    ),
    (
        "maxExclusive is a value of the base (enumeration)",
        "<xs:simpleType name='b'><xs:restriction base='xs:int'><xs:enumeration value='1'/><xs:enumeration value='5'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:maxExclusive value='6'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='b'><xs:restriction base='xs:int'><xs:enumeration value='1'/><xs:enumeration value='5'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:maxExclusive value='5'/></xs:restriction></xs:simpleType>",
    ),
    (
        "maxInclusive is a value of the base (pattern)",
        "<xs:simpleType name='b'><xs:restriction base='xs:date'><xs:pattern value='2.*'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:maxInclusive value='1999-12-31'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='b'><xs:restriction base='xs:date'><xs:pattern value='2.*'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:maxInclusive value='2000-01-01'/></xs:restriction></xs:simpleType>",
    ),
    (
        "minExclusive is a value of the base (digits)",
        "<xs:simpleType name='b'><xs:restriction base='xs:decimal'><xs:fractionDigits value='1'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:minExclusive value='1.25'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='b'><xs:restriction base='xs:decimal'><xs:fractionDigits value='1'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:minExclusive value='1.50'/></xs:restriction></xs:simpleType>",
    ),
    (
        "minExclusive is a value of the base, or excludes the same",
        "<xs:simpleType name='b'><xs:restriction base='xs:int'><xs:minExclusive value='1'/><xs:pattern value='[2-9]'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:minExclusive value='0'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='b'><xs:restriction base='xs:int'><xs:minExclusive value='1'/><xs:pattern value='[2-9]'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:minExclusive value='1'/></xs:restriction></xs:simpleType>",
    ),
    (
        "totalDigits-valid-restriction",
        "<xs:simpleType name='b'><xs:restriction base='xs:decimal'><xs:totalDigits value='3'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:totalDigits value='4'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='b'><xs:restriction base='xs:decimal'><xs:totalDigits value='3'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:totalDigits value='3'/></xs:restriction></xs:simpleType>",
    ),
    (
        "fractionDigits-totalDigits",
        "<xs:simpleType name='s'><xs:restriction base='xs:decimal'><xs:totalDigits value='3'/><xs:fractionDigits value='4'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:decimal'><xs:totalDigits value='3'/><xs:fractionDigits value='3'/></xs:restriction></xs:simpleType>",
    ),
    (
        "fractionDigits-valid-restriction",
        "<xs:simpleType name='s'><xs:restriction base='xs:integer'><xs:fractionDigits value='1'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:integer'><xs:fractionDigits value='0'/></xs:restriction></xs:simpleType>",
    ),
    (
        "totalDigits is positive",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:totalDigits value='0'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:totalDigits value='1'/></xs:restriction></xs:simpleType>",
    ),
    (
        "enumeration-valid-restriction",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:enumeration value='x'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:enumeration value='+1'/></xs:restriction></xs:simpleType>",
    ),
    (
        "enumeration-valid-restriction (of the base)",
        "<xs:simpleType name='b'><xs:restriction base='xs:string'><xs:enumeration value='x'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:enumeration value='y'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='b'><xs:restriction base='xs:string'><xs:enumeration value='x'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:restriction base='t:b'><xs:enumeration value='x'/></xs:restriction></xs:simpleType>",
    ),
    (
        "enumeration-required-notation",
        "<xs:notation name='n' public='p'/><xs:attribute name='a' type='xs:NOTATION'/>",
        "<xs:notation name='n' public='p'/><xs:attribute name='a'><xs:simpleType><xs:restriction base='xs:NOTATION'><xs:enumeration value='t:n'/></xs:restriction></xs:simpleType></xs:attribute>",
    ),
    (
        "enumeration-required-notation (element)",
        "<xs:notation name='n' public='p'/><xs:element name='a' type='xs:NOTATION'/>",
        "<xs:notation name='n' public='p'/><xs:simpleType name='n'><xs:restriction base='xs:NOTATION'><xs:enumeration value='t:n'/></xs:restriction></xs:simpleType><xs:element name='a' type='t:n'/>",
    ),
    (
        "enumeration-required-notation (pattern alone)",
        "<xs:notation name='n' public='p'/><xs:simpleType name='p'><xs:restriction base='xs:NOTATION'><xs:pattern value='t:.'/></xs:restriction></xs:simpleType><xs:element name='a' type='t:p'/>",
        "<xs:notation name='n' public='p'/><xs:simpleType name='p'><xs:restriction base='xs:NOTATION'><xs:pattern value='t:.'/></xs:restriction></xs:simpleType><xs:simpleType name='q'><xs:restriction base='t:p'><xs:enumeration value='t:n'/></xs:restriction></xs:simpleType><xs:element name='a' type='t:q'/>",
    ),
    (
        "enumeration-required-notation (length alone)",
        "<xs:notation name='n' public='p'/><xs:attribute name='a'><xs:simpleType><xs:restriction base='xs:NOTATION'><xs:length value='3'/></xs:restriction></xs:simpleType></xs:attribute>",
        "<xs:notation name='n' public='p'/><xs:simpleType name='n'><xs:restriction base='xs:NOTATION'><xs:enumeration value='t:n'/></xs:restriction></xs:simpleType><xs:attribute name='a'><xs:simpleType><xs:restriction base='t:n'><xs:length value='3'/></xs:restriction></xs:simpleType></xs:attribute>",
    ),
    (
        "enumeration-required-notation (local element)",
        "<xs:notation name='n' public='p'/><xs:complexType name='c'><xs:sequence><xs:element name='a' type='xs:NOTATION'/></xs:sequence></xs:complexType>",
        "<xs:notation name='n' public='p'/><xs:simpleType name='n'><xs:restriction base='xs:NOTATION'><xs:enumeration value='t:n'/></xs:restriction></xs:simpleType><xs:complexType name='c'><xs:sequence><xs:element name='a' type='t:n'/></xs:sequence></xs:complexType>",
    ),
    (
        "enumeration-required-notation (simple content)",
        "<xs:notation name='n' public='p'/><xs:complexType name='c'><xs:simpleContent><xs:extension base='xs:NOTATION'/></xs:simpleContent></xs:complexType>",
        "<xs:notation name='n' public='p'/><xs:simpleType name='n'><xs:restriction base='xs:NOTATION'><xs:enumeration value='t:n'/></xs:restriction></xs:simpleType><xs:complexType name='c'><xs:simpleContent><xs:extension base='t:n'/></xs:simpleContent></xs:complexType>",
    ),
    (
        "enumeration-required-notation (list)",
        "<xs:notation name='n' public='p'/><xs:simpleType name='s'><xs:list itemType='xs:NOTATION'/></xs:simpleType>",
        "<xs:notation name='n' public='p'/><xs:simpleType name='n'><xs:restriction base='xs:NOTATION'><xs:enumeration value='t:n'/></xs:restriction></xs:simpleType><xs:simpleType name='s'><xs:list itemType='t:n'/></xs:simpleType><xs:simpleType name='u'><xs:union memberTypes='xs:int xs:NOTATION'/></xs:simpleType>",
    ),
    (
        "enumeration of an undeclared notation",
        "<xs:notation name='n' public='p'/><xs:simpleType name='s'><xs:restriction base='xs:NOTATION'><xs:enumeration value='t:m'/></xs:restriction></xs:simpleType>",
        "<xs:notation name='n' public='p'/><xs:simpleType name='s'><xs:restriction base='xs:NOTATION'><xs:enumeration value='t:n'/></xs:restriction></xs:simpleType>",
    ),
    (
        "pattern (appendix F: range)",
        "<xs:simpleType name='s'><xs:restriction base='xs:string'><xs:pattern value='[b-a]'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:string'><xs:pattern value='[a-a]'/></xs:restriction></xs:simpleType>",
    ),
    (
        "pattern (appendix F: quantity)",
        "<xs:simpleType name='s'><xs:restriction base='xs:string'><xs:pattern value='a{2,1}'/></xs:restriction></xs:simpleType>",
        "<xs:simpleType name='s'><xs:restriction base='xs:string'><xs:pattern value='a{2,2}'/></xs:restriction></xs:simpleType>",
    ),
    (
        "pattern (appendix F: escape)",
        r"<xs:simpleType name='s'><xs:restriction base='xs:string'><xs:pattern value='\b'/></xs:restriction></xs:simpleType>",
        r"<xs:simpleType name='s'><xs:restriction base='xs:string'><xs:pattern value='\i\c*'/></xs:restriction></xs:simpleType>",
    ),
    (
        "pattern (appendix F: block)",
        r"<xs:simpleType name='s'><xs:restriction base='xs:string'><xs:pattern value='\p{IsNowhere}'/></xs:restriction></xs:simpleType>",
        r"<xs:simpleType name='s'><xs:restriction base='xs:string'><xs:pattern value='\p{IsBasicLatin}'/></xs:restriction></xs:simpleType>",
    ),
];

/// The rule, a base, a restriction that breaks the rule and a restriction that keeps it: content models.
pub(crate) const PARTICLES: &[(&str, &str, &str, &str)] = &[
    (
        "rcase-NameAndTypeOK.1",
        "<xs:sequence><xs:element name='a'/></xs:sequence>",
        "<xs:sequence><xs:element name='b'/></xs:sequence>",
        "<xs:sequence><xs:element name='a'/></xs:sequence>",
    ),
    (
        "rcase-NameAndTypeOK.2 (nillable)",
        "<xs:sequence><xs:element name='a'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' nillable='true'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' nillable='false'/></xs:sequence>",
    ),
    (
        "rcase-NameAndTypeOK.3 (occurrence)",
        "<xs:sequence><xs:element name='a' maxOccurs='3'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' maxOccurs='4'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' minOccurs='2' maxOccurs='3'/></xs:sequence>",
    ),
    (
        "rcase-NameAndTypeOK.4 (fixed)",
        "<xs:sequence><xs:element name='a' type='xs:decimal' fixed='1'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' type='xs:decimal'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' type='xs:decimal' fixed='1.0'/></xs:sequence>",
    ),
    (
        "rcase-NameAndTypeOK.6 (block)",
        "<xs:sequence><xs:element name='a' block='extension'/></xs:sequence>",
        "<xs:sequence><xs:element name='a'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' block='#all'/></xs:sequence>",
    ),
    (
        "rcase-NameAndTypeOK.7 (type)",
        "<xs:sequence><xs:element name='a' type='xs:int'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' type='xs:long'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' type='xs:short'/></xs:sequence>",
    ),
    (
        "rcase-NSCompat.1",
        "<xs:sequence><xs:any namespace='##targetNamespace'/></xs:sequence>",
        "<xs:sequence><xs:element name='a'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' form='qualified'/></xs:sequence>",
    ),
    (
        "rcase-NSCompat.2",
        "<xs:sequence><xs:any maxOccurs='2'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' maxOccurs='3'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' maxOccurs='2'/></xs:sequence>",
    ),
    (
        "rcase-NSSubset.2",
        "<xs:sequence><xs:any namespace='##local urn:o'/></xs:sequence>",
        "<xs:sequence><xs:any namespace='##local urn:p'/></xs:sequence>",
        "<xs:sequence><xs:any namespace='urn:o'/></xs:sequence>",
    ),
    (
        "rcase-NSSubset.3",
        "<xs:sequence><xs:any processContents='lax'/></xs:sequence>",
        "<xs:sequence><xs:any processContents='skip'/></xs:sequence>",
        "<xs:sequence><xs:any processContents='strict'/></xs:sequence>",
    ),
    (
        "rcase-NSRecurseCheckCardinality.1",
        "<xs:sequence><xs:any namespace='##local' maxOccurs='3'/></xs:sequence>",
        "<xs:sequence><xs:element name='a'/><xs:element name='b' form='qualified'/></xs:sequence>",
        "<xs:sequence><xs:element name='a'/><xs:element name='b'/></xs:sequence>",
    ),
    (
        "rcase-NSRecurseCheckCardinality.2",
        "<xs:sequence><xs:any maxOccurs='2'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' maxOccurs='2'/><xs:element name='b'/></xs:sequence>",
        "<xs:sequence><xs:element name='a'/><xs:element name='b' minOccurs='0'/></xs:sequence>",
    ),
    (
        "rcase-Recurse.2.1 (order)",
        "<xs:sequence><xs:element name='a'/><xs:element name='b'/></xs:sequence>",
        "<xs:sequence><xs:element name='b'/><xs:element name='a'/></xs:sequence>",
        "<xs:sequence><xs:element name='a'/><xs:element name='b'/></xs:sequence>",
    ),
    (
        "rcase-Recurse.2.2 (emptiable)",
        "<xs:sequence><xs:element name='a'/><xs:element name='b'/></xs:sequence>",
        "<xs:sequence><xs:element name='a'/></xs:sequence>",
        "<xs:sequence><xs:element name='a' minOccurs='1'/><xs:element name='b'/></xs:sequence>",
    ),
    (
        "rcase-Recurse (all to all)",
        "<xs:all><xs:element name='a'/><xs:element name='b'/></xs:all>",
        "<xs:all><xs:element name='a'/></xs:all>",
        "<xs:all><xs:element name='a'/><xs:element name='b'/></xs:all>",
    ),
    (
        "rcase-RecurseUnordered.2.1",
        "<xs:all><xs:element name='a'/><xs:element name='b' minOccurs='0'/></xs:all>",
        "<xs:sequence><xs:element name='b'/><xs:element name='a' maxOccurs='2'/></xs:sequence>",
        "<xs:sequence><xs:element name='b'/><xs:element name='a'/></xs:sequence>",
    ),
    (
        "rcase-RecurseUnordered.2.3",
        "<xs:all><xs:element name='a'/><xs:element name='b'/></xs:all>",
        "<xs:sequence><xs:element name='b'/></xs:sequence>",
        "<xs:sequence><xs:element name='b'/><xs:element name='a'/></xs:sequence>",
    ),
    (
        "rcase-RecurseLax.2",
        "<xs:choice><xs:element name='a'/><xs:element name='b'/></xs:choice>",
        "<xs:choice><xs:element name='a'/><xs:element name='c'/></xs:choice>",
        "<xs:choice><xs:element name='b'/></xs:choice>",
    ),
    (
        "rcase-RecurseLax.1",
        "<xs:choice maxOccurs='2'><xs:element name='a'/><xs:element name='b'/></xs:choice>",
        "<xs:choice maxOccurs='3'><xs:element name='a'/><xs:element name='b'/></xs:choice>",
        "<xs:choice><xs:element name='a'/><xs:element name='b'/></xs:choice>",
    ),
    (
        "rcase-MapAndSum.2",
        "<xs:choice maxOccurs='2'><xs:element name='a'/><xs:element name='b'/></xs:choice>",
        "<xs:sequence><xs:element name='a'/><xs:element name='b'/><xs:element name='a'/></xs:sequence>",
        "<xs:sequence><xs:element name='a'/><xs:element name='b'/></xs:sequence>",
    ),
    (
        "rcase-MapAndSum.1",
        "<xs:choice maxOccurs='2'><xs:element name='a'/><xs:element name='b'/></xs:choice>",
        "<xs:sequence><xs:element name='a'/><xs:element name='c'/></xs:sequence>",
        "<xs:sequence><xs:element name='b'/><xs:element name='a'/></xs:sequence>",
    ),
    (
        "cos-particle-restrict.2 (choice by all)",
        "<xs:choice maxOccurs='2'><xs:element name='a'/><xs:element name='b'/></xs:choice>",
        "<xs:all><xs:element name='a'/><xs:element name='b'/></xs:all>",
        "<xs:sequence><xs:element name='a'/><xs:element name='b'/></xs:sequence>",
    ),
    (
        "cos-particle-restrict.2 (sequence by choice)",
        "<xs:sequence><xs:element name='a' minOccurs='0'/><xs:element name='b' minOccurs='0'/></xs:sequence>",
        "<xs:choice><xs:element name='a'/><xs:element name='b'/></xs:choice>",
        "<xs:sequence><xs:element name='a'/><xs:element name='b' minOccurs='0'/></xs:sequence>",
    ),
];
