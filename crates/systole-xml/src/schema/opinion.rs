//! Second opinions on schemas.

use serde::{Deserialize, Serialize};

/// The verdict of another validator on schema documents that are given together, and on the examples that the engine
/// makes from them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opinion {
    /// The validator with its version.
    pub by: String,
    /// The validator's objections; none if it accepts all.
    pub objections: Vec<Objection>,
}

/// An objection of another validator to a schema document or an example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    /// The name of the document, if it is known.
    pub document: Option<String>,
    /// The line in the document.
    pub line: u32,
    /// The payload whose example it refuses; `None` if it refuses the schema itself.
    pub example: Option<String>,
    /// The validator's message.
    pub message: String,
}

/// The verdict of libxml2 on schema documents and their examples. It doesn't depend on that of the engine.
///
/// libxml2 judges the examples if it accepts the schema and the engine makes them; of a schema that it refuses, its
/// first error is kept. There is no opinion (`None`) on documents without a text to pass on: those that are not
/// well-formed, aren't schemas, or exceed the limits of schemas.
///
/// The time is not bounded: some valid schemas never end. Call it in a process that can be killed.
#[cfg(feature = "libxml")]
pub fn second_opinion(given: &[super::XsdDocument]) -> Option<Opinion> {
    use super::PayloadSchema;
    use super::libxml2::{Compiled, Fault, version};
    use super::source::documents::Documents;

    let documents = Documents::unjudged(given).ok()?;
    let objection = |fault: Fault, example| Objection {
        document: fault.url.as_deref().and_then(|url| documents.named_by(url)).map(str::to_owned),
        line: fault.line,
        example,
        message: fault.message,
    };
    let roots: Vec<usize> = documents.roots().into_iter().filter(|root| documents.is_given(*root)).collect();
    let (main, others) = documents.sources(&roots);
    let objections = match Compiled::new(&main, &others) {
        // The first error is usually the cause of the others.
        Err(faults) => faults.into_iter().take(1).map(|fault| objection(fault, None)).collect(),
        Ok(compiled) => {
            let schemas = PayloadSchema::from_xsd_set(given).unwrap_or_default();
            let examples = schemas.iter().filter_map(|schema| Some((schema.qname().to_string(), schema.example()?)));
            let judged =
                examples.filter_map(|(name, example)| Some((compiled.validate(example.as_str()).err()?, name)));
            judged.map(|(fault, name)| Objection { document: None, line: 0, ..objection(fault, Some(name)) }).collect()
        }
    };
    Some(Opinion { by: version(), objections })
}

#[cfg(all(test, feature = "libxml"))]
mod tests {
    use super::*;
    use crate::schema::{PayloadSchema, XsdDocument};

    fn document(name: &str, attributes: &str, inside: &str) -> XsdDocument {
        let text =
            format!("<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' {attributes}>\n{inside}</xs:schema>");
        XsdDocument { name: name.to_owned(), text }
    }

    /// The objections to documents, and whether the engine accepts them.
    fn judged(given: &[XsdDocument]) -> (Vec<Objection>, bool) {
        let opinion = second_opinion(given).expect("libxml2 is asked");
        assert!(opinion.by.starts_with("libxml2 "), "{}", opinion.by);
        (opinion.objections, PayloadSchema::from_xsd_set(given).is_ok())
    }

    #[test]
    fn a_schema_that_the_engine_refuses_for_its_structure_is_judged() {
        let (objections, accepted) =
            judged(&[document("a.xsd", "", "<xs:element name='a'><xs:sequence/></xs:element>")]);
        assert!(!accepted);
        let [objection] = objections.as_slice() else { panic!("{objections:?}") };
        assert_eq!((objection.document.as_deref(), objection.line), (Some("a.xsd"), 2), "{objection:?}");
        assert!(objection.message.contains("content is not valid"), "{objection:?}");
    }

    #[test]
    fn a_schema_that_the_engine_refuses_for_a_link_is_judged() {
        let other = document("b.xsd", "targetNamespace='urn:o'", "");
        for (link, said) in [
            ("<xs:include schemaLocation='b.xsd'/>", "target namespace"),
            ("<xs:import namespace='urn:t'/>", "import"),
            ("<xs:redefine schemaLocation='c.xsd'><xs:attributeGroup name='g'/></xs:redefine>", "redefine"),
        ] {
            let inside = format!("{link}<xs:element name='a'/>");
            let (objections, accepted) =
                judged(&[document("a.xsd", "targetNamespace='urn:t'", &inside), other.clone()]);
            assert!(!accepted, "{link}");
            let [objection] = objections.as_slice() else { panic!("{link}: {objections:?}") };
            assert!(objection.message.contains(said), "{objection:?}");
        }
    }

    #[test]
    fn examples_are_judged_by_the_schema() {
        let (objections, accepted) = judged(&[document("a.xsd", "", "<xs:element name='a' type='xs:int'/>")]);
        assert!(accepted && objections.is_empty(), "{objections:?}");
        // A decimal of more digits than libxml2 2.9 reads.
        let long = "<xs:element name='a'><xs:simpleType><xs:restriction base='xs:decimal'>\
                    <xs:pattern value='[1-9]{30}'/></xs:restriction></xs:simpleType></xs:element>";
        let (objections, accepted) = judged(&[document("a.xsd", "", long)]);
        let [objection] = objections.as_slice() else { panic!("{objections:?}") };
        assert!(accepted);
        assert_eq!((objection.document.as_deref(), objection.line, objection.example.as_deref()), (None, 0, Some("a")));
    }

    #[test]
    fn documents_that_are_no_schemas_have_no_opinion() {
        for text in ["<a>", "<a/>", ""] {
            assert_eq!(second_opinion(&[XsdDocument { name: "a.xsd".to_owned(), text: text.to_owned() }]), None);
        }
    }
}
