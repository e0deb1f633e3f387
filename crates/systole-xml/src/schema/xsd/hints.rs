//! Advice for misplaced or unknown markup in a schema document: frequent slips, each with a correction.

use crate::schema::engine;
use crate::schema::simple::is_facet;
use crate::schema::source::read::nearest;
use crate::schema::source::tree::{NodeId, Tree};
use crate::vocab::ns;

/// Elements of XSD 1.1.
const OF_1_1: [&str; 7] =
    ["assert", "assertion", "alternative", "override", "openContent", "defaultOpenContent", "explicitTimezone"];

/// Elements of XSD 1.0.
const ELEMENTS: [&str; 42] = [
    "all",
    "annotation",
    "any",
    "anyAttribute",
    "appinfo",
    "attribute",
    "attributeGroup",
    "choice",
    "complexContent",
    "complexType",
    "documentation",
    "element",
    "enumeration",
    "extension",
    "field",
    "fractionDigits",
    "group",
    "import",
    "include",
    "key",
    "keyref",
    "length",
    "list",
    "maxExclusive",
    "maxInclusive",
    "maxLength",
    "minExclusive",
    "minInclusive",
    "minLength",
    "notation",
    "pattern",
    "redefine",
    "restriction",
    "schema",
    "selector",
    "sequence",
    "simpleContent",
    "simpleType",
    "totalDigits",
    "union",
    "unique",
    "whiteSpace",
];

/// Attributes of XSD 1.0.
const ATTRIBUTES: [&str; 34] = [
    "abstract",
    "attributeFormDefault",
    "base",
    "block",
    "blockDefault",
    "default",
    "elementFormDefault",
    "final",
    "finalDefault",
    "fixed",
    "form",
    "id",
    "itemType",
    "maxOccurs",
    "memberTypes",
    "minOccurs",
    "mixed",
    "name",
    "namespace",
    "nillable",
    "processContents",
    "public",
    "ref",
    "refer",
    "schemaLocation",
    "source",
    "substitutionGroup",
    "system",
    "targetNamespace",
    "type",
    "use",
    "value",
    "version",
    "xpath",
];

/// Attributes of XSD 1.1, each with its elements.
const ATTRIBUTES_OF_1_1: [(&str, &[&str]); 9] = [
    ("inheritable", &["attribute"]),
    ("targetNamespace", &["element", "attribute"]),
    ("defaultAttributes", &["schema"]),
    ("xpathDefaultNamespace", &["schema", "selector", "field"]),
    ("defaultAttributesApply", &["complexType"]),
    ("appliesToEmpty", &["any", "anyAttribute"]),
    ("notNamespace", &["any", "anyAttribute"]),
    ("notQName", &["any", "anyAttribute"]),
    ("ref", &["unique", "key", "keyref"]),
];

/// The advice for an element that breaks the structure, or for one of its attributes, in brackets; empty for none.
pub(super) fn hint(tree: &Tree, element: NodeId, part: &engine::Part) -> String {
    let node = tree.node(element);
    if node.namespace != ns::XSD {
        return String::new();
    }
    let local = node.local;
    let advice = if OF_1_1.contains(&local) {
        Some(format!(
            "xs:{local} is of XSD 1.1, and schemas here are XSD 1.0: check it in the handler, and remove it or leave it out by vc:minVersion=\"1.1\""
        ))
    } else if let engine::Part::Attribute(attribute) = part {
        of_attribute(tree, element, attribute)
    } else if ELEMENTS.contains(&local) {
        of_place(tree, element).map(str::to_owned)
    } else {
        Some(match nearest(local, ELEMENTS.into_iter()) {
            Some(near) => format!("there is no xs:{local}: did you mean xs:{near}?"),
            None => format!("there is no xs:{local}"),
        })
    };
    advice.map(|advice| format!(" ({advice})")).unwrap_or_default()
}

/// The advice for an attribute that its element doesn't have, or not with this value.
fn of_attribute(tree: &Tree, element: NodeId, attribute: &str) -> Option<String> {
    let local = tree.node(element).local;
    let parent = tree.ancestors(element).nth(1).map(|parent| tree.node(parent).local);
    let value = tree.get(element, attribute).unwrap_or_default();
    if ATTRIBUTES_OF_1_1.iter().any(|(name, elements)| *name == attribute && elements.contains(&local)) {
        return Some(format!("{attribute} is of XSD 1.1, and schemas here are XSD 1.0: remove it"));
    }
    if let Some(slip) = slip(local, attribute, value, parent) {
        return Some(slip.to_owned());
    }
    if ATTRIBUTES.contains(&attribute) || attribute.contains(':') {
        return None;
    }
    nearest(attribute, ATTRIBUTES.into_iter()).map(|near| format!("did you mean {near}?"))
}

/// The advice for an attribute at a wrong element, or with a value of another language.
fn slip(local: &str, attribute: &str, value: &str, parent: Option<&str>) -> Option<&'static str> {
    const ITS_TYPE: &str = "a type has a base, by base=\"…\" in an xs:restriction or xs:extension inside of it";
    Some(match (attribute, local) {
        ("maxOccurs", "element") if parent == Some("all") => {
            "in xs:all an element stands once at most: use xs:sequence, or xs:choice with maxOccurs"
        }
        ("minOccurs" | "maxOccurs", "all") => "an xs:all stands once at most",
        ("maxOccurs", "element" | "sequence" | "choice" | "group" | "any") if is_any_number(value) => {
            "for any number, write maxOccurs=\"unbounded\""
        }
        ("use", "element") | ("required" | "optional", "element") => match value {
            "optional" | "false" => "an element may be absent by minOccurs=\"0\": write that instead",
            "prohibited" => "an element that may not stand is not declared: remove it",
            _ => "an element must stand unless it has minOccurs=\"0\": remove this attribute",
        },
        ("required" | "optional", "attribute") => {
            "an attribute that must stand has use=\"required\", and any other may be absent: write that instead"
        }
        ("minOccurs", "attribute") => match value {
            "0" => "an attribute may be absent unless it has use=\"required\": remove minOccurs",
            _ => "an attribute must stand by use=\"required\": write that instead",
        },
        ("maxOccurs", "attribute") => match value {
            "0" | "1" => "an attribute stands once at most: remove maxOccurs",
            _ => "an attribute stands once at most: declare an xs:element, or give it a type made by xs:list",
        },
        ("minOccurs" | "maxOccurs", "element") if parent == Some("schema") => {
            "an element below xs:schema is the root of a payload, or is used by ref: write it at the xs:element with the ref"
        }
        ("minOccurs" | "maxOccurs", "complexType" | "simpleType") => {
            "how often an element stands is said at its xs:element: write it there"
        }
        ("type", "complexType" | "simpleType") | ("base", "complexType" | "simpleType") => ITS_TYPE,
        ("base", "element" | "attribute") => "write type=\"…\" instead",
        ("type", "restriction" | "extension") => "write base=\"…\" instead",
        ("type", "list") => "write itemType=\"…\" instead",
        ("type" | "types", "union") => "write memberTypes=\"…\" instead",
        ("nullable", "element") => "write nillable=\"true\" instead",
        ("namespace" | "targetNameSpace", "schema") => "write targetNamespace=\"…\" instead",
        ("location" | "src" | "href" | "file", "include" | "import" | "redefine") => {
            "write schemaLocation=\"…\" instead"
        }
        ("name", "element" | "attribute") if value.contains(char::is_whitespace) => {
            "a name has no spaces: write '-' or '_' instead"
        }
        ("name", "element" | "attribute" | "complexType" | "simpleType") if value.contains(':') => {
            "a declared name has no prefix: the targetNamespace says its namespace"
        }
        ("elementFormDefault" | "attributeFormDefault", "schema") if matches!(value, "true" | "yes" | "1") => {
            "write \"qualified\""
        }
        ("elementFormDefault" | "attributeFormDefault", "schema") if matches!(value, "false" | "no" | "0") => {
            "write \"unqualified\""
        }
        ("substitutionGroup", "element") if value.contains(char::is_whitespace) => {
            "several heads are of XSD 1.1, and schemas here are XSD 1.0: name one"
        }
        _ => return None,
    })
}

fn is_any_number(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "*" | "n" | "+" | "-1" | "infinity" | "infinite" | "many" | "any")
        || value.eq_ignore_ascii_case("unbounded")
}

/// The advice for an element of XSD at a place where it can't stand.
fn of_place(tree: &Tree, element: NodeId) -> Option<&'static str> {
    let local = tree.node(element).local;
    let above = |levels: usize| tree.ancestors(element).nth(levels).map(|node| tree.node(node).local);
    let parent = tree.ancestors(element).nth(1)?;
    let stands_behind = |is_one: &dyn Fn(&str) -> bool| {
        let mut before = tree.parts(parent).take_while(|part| *part != element);
        before.any(|part| is_one(tree.node(part).local))
    };
    let is_model = |local: &str| is_content(local) || matches!(local, "simpleContent" | "complexContent");
    match tree.node(parent).local {
        _ if matches!(local, "documentation" | "appinfo") => Some("write xs:annotation around it"),
        _ if local == "annotation" && stands_behind(&|_| true) => Some("write it first in its element"),
        "schema" => below_schema(local, stands_behind(&is_declaration)),
        "element" => in_element(local),
        "attribute" if is_facet(local) => Some(FACET),
        "attribute" if matches!(local, "restriction" | "list" | "union") => Some("write xs:simpleType around it"),
        "attribute" if local == "complexType" || is_model(local) => {
            Some("an attribute has text only: declare an xs:element for what has parts")
        }
        "sequence" | "choice" | "all" => in_group(local, above(1)),
        "simpleType" if is_facet(local) => Some("write xs:restriction base=\"…\" around it"),
        "simpleType" if is_model(local) || is_attribute(local) || local == "element" => {
            Some("a simple type is text only: write xs:complexType instead of xs:simpleType")
        }
        "simpleType" if local == "extension" => Some(
            "a simple type is restricted, not extended: write xs:restriction, or xs:complexType with xs:simpleContent to add attributes",
        ),
        "simpleContent" if is_content(local) || is_attribute(local) || is_facet(local) => {
            Some("write xs:extension or xs:restriction with a base around it")
        }
        "complexContent" if is_content(local) || is_attribute(local) || local == "element" => {
            Some("write xs:extension or xs:restriction with a base around it")
        }
        "complexType" if matches!(local, "restriction" | "extension") => {
            Some("write xs:complexContent around it, or xs:simpleContent if its base is text")
        }
        "complexType" if matches!(local, "complexType" | "simpleType") => {
            Some("write it in the xs:element or xs:attribute that has the type, or below xs:schema with a name")
        }
        "complexType" if is_facet(local) => {
            Some("write xs:simpleType instead of xs:complexType, and xs:restriction base=\"…\" around it")
        }
        "complexType" | "extension" | "restriction" if matches!(local, "element" | "any") => {
            Some("write xs:sequence around it")
        }
        "complexType" | "extension" | "restriction" if is_content(local) => {
            if stands_behind(&is_attribute) {
                Some("attributes stand behind the content: write it before them")
            } else if stands_behind(&is_content) {
                Some("a type has one of xs:sequence, xs:choice and xs:all: write both in one xs:sequence")
            } else if above(2) == Some("simpleContent") || above(2) == Some("simpleType") {
                Some("this type is text only: elements stand in the xs:complexContent of an xs:complexType")
            } else {
                None
            }
        }
        "restriction" if is_attribute(local) && above(2) == Some("simpleType") => Some(
            "a simple type is text only: to add attributes, write xs:complexType with xs:simpleContent and xs:extension",
        ),
        "extension" if is_facet(local) => Some("an extension adds: write xs:restriction for facets"),
        "restriction" if is_facet(local) && above(2) == Some("complexContent") => {
            Some("facets restrict text: write xs:simpleContent instead of xs:complexContent")
        }
        _ => None,
    }
}

const FACET: &str =
    "write xs:simpleType and xs:restriction base=\"…\" around it, and remove the 'type' of the declaration";

fn below_schema(local: &str, is_late: bool) -> Option<&'static str> {
    match local {
        "import" | "include" | "redefine" if is_late => Some("write it before all declarations"),
        "sequence" | "choice" | "all" => Some("write it in an xs:complexType, or in an xs:group with a name"),
        "restriction" | "list" | "union" => Some("write xs:simpleType with a name around it"),
        "any" | "anyAttribute" | "simpleContent" | "complexContent" | "extension" => {
            Some("write it in an xs:complexType")
        }
        "unique" | "key" | "keyref" => Some("write it in an xs:element, behind its type"),
        _ if is_facet(local) => Some("write it in the xs:restriction of an xs:simpleType"),
        _ => None,
    }
}

fn in_element(local: &str) -> Option<&'static str> {
    match local {
        "element" | "any" => Some("write xs:complexType and xs:sequence around it"),
        "restriction" | "list" | "union" => Some("write xs:simpleType around it"),
        "extension" => {
            Some("write xs:complexType around it, with xs:simpleContent if its base is text, or xs:complexContent")
        }
        "simpleContent" | "complexContent" => Some("write xs:complexType around it"),
        _ if is_content(local) || is_attribute(local) => Some("write xs:complexType around it"),
        _ if is_facet(local) => Some(FACET),
        _ => None,
    }
}

fn in_group(local: &str, group: Option<&str>) -> Option<&'static str> {
    match local {
        _ if is_attribute(local) => {
            Some("attributes stand behind the content: write it behind the end of the outermost group of the type")
        }
        "all" => Some("an xs:all stands alone in its type: write xs:sequence, or xs:choice with maxOccurs"),
        "sequence" | "choice" | "group" | "any" if group == Some("all") => {
            Some("an xs:all holds xs:element only: write xs:sequence instead of xs:all")
        }
        "complexType" | "simpleType" => Some("write xs:element with a name around it"),
        "restriction" | "list" | "union" => Some("write xs:element with a name and xs:simpleType around it"),
        "simpleContent" | "complexContent" => Some("write it alone in its xs:complexType"),
        "unique" | "key" | "keyref" => Some("write it in an xs:element, behind its type"),
        _ if is_facet(local) => Some("write it in the xs:restriction of an xs:simpleType"),
        _ => None,
    }
}

fn is_content(local: &str) -> bool {
    matches!(local, "sequence" | "choice" | "all" | "group")
}

fn is_attribute(local: &str) -> bool {
    matches!(local, "attribute" | "attributeGroup" | "anyAttribute")
}

fn is_declaration(local: &str) -> bool {
    matches!(local, "element" | "complexType" | "simpleType" | "attribute" | "attributeGroup" | "group" | "notation")
}
