//! `systole xml validate`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use systole::runtime::terminal::Escaped;
use systole_core::vocab::{Position, QName, near};
use systole_xml::ladder::strict;
use systole_xml::schema::{Catalog, ContractError, PayloadSchema, Validator, XsdDocument};

use super::Document;
use crate::failure::Failure;
use crate::print;

/// `systole xml validate`: prints nothing for a valid document, and each broken rule of another one.
pub(super) fn validate(document: &Document, schemas: &[PathBuf]) -> Result<ExitCode, Failure> {
    let mut validator = Validator::new(Arc::new(catalog(schemas)?));
    let canonical =
        strict::canonicalize(&document.bytes, &document.limits).map_err(|error| document.refused(&error))?;
    let near = meant(canonical.root(), validator.catalog());
    let Err(error) = validator.validate(canonical) else { return Ok(ExitCode::SUCCESS) };
    let more = error.more.iter().map(|finding| (finding.at, finding.to_string()));
    for (at, rule) in std::iter::once((error.at, error.to_string() + &near)).chain(more) {
        let at = at.map_or_else(String::new, |Position { line, column }| format!("{line}:{column}:"));
        let line = format!("{}:{at} {rule}", document.name);
        print::note(Escaped::line(&line));
    }
    Ok(ExitCode::FAILURE)
}

/// The declared payload that is probably meant by an undeclared one.
fn meant(payload: &QName, catalog: &Catalog) -> String {
    let declared: Vec<&QName> = catalog.payloads().map(PayloadSchema::qname).collect();
    match near::payload(payload, declared.iter().copied()) {
        Some(near) if catalog.get(payload).is_none() => format!(": did you mean {near}?"),
        _ => String::new(),
    }
}

/// The payloads of these schemas and of the pump itself.
pub(crate) fn catalog(schemas: &[PathBuf]) -> Result<Catalog, Failure> {
    let documents = schemas.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    let unusable = |error: &ContractError| Failure::unusable(error.to_string());
    let mut catalog = Catalog::new();
    for schema in PayloadSchema::from_xsd_set(&documents).map_err(|error| unusable(&error))? {
        match catalog.add(schema) {
            // The catalog has the schemas of the pump already.
            Ok(()) | Err(ContractError::Reserved { .. }) => {}
            Err(error) => return Err(unusable(&error)),
        }
    }
    Ok(catalog)
}

fn read(file: &Path) -> Result<XsdDocument, Failure> {
    let text = std::fs::read_to_string(file).map_err(|cause| Failure::read(file, cause))?;
    Ok(XsdDocument { name: file.display().to_string(), text })
}
