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

/// The verdict of libxml2 on schema documents and their examples; `None` if they are not XML.
///
/// The time is not bounded: some valid schemas never end. Call it in a process that can be killed.
#[cfg(feature = "libxml")]
pub fn second_opinion(given: &[super::XsdDocument]) -> Option<Opinion> {
    use super::PayloadSchema;
    use super::libxml2::{Compiled, Fault, version};
    use super::xsd;

    let documents = xsd::documents(given).ok()?;
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
