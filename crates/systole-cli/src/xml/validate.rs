//! `systole xml validate`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use systole::terminal::Escaped;
use systole_core::vocab::{Position, QName, near};
use systole_xml::ladder::strict;
use systole_xml::schema::{Catalog, ContractError, PayloadSchema, Schema, Validator, XsdDocument, decoded};

use super::Document;
use crate::failure::Failure;
use crate::print;

/// `systole xml validate`: prints nothing for a valid document, and each broken rule of another one.
pub(super) fn validate(document: &Document, schemas: &[PathBuf]) -> Result<ExitCode, Failure> {
    let mut schema = Schema::new(&read_all(schemas)?).map_err(|error| Failure::unusable(error.to_string()))?;
    let canonical =
        strict::canonicalize(&document.bytes, &document.limits).map_err(|error| document.refused(&error))?;
    let mut own = Validator::new(Arc::new(Catalog::new()));
    let declared = schema.elements();
    let mut near = meant(canonical.root(), &declared);
    if let Some(unresolved) = schema.unresolved().filter(|_| !declared.contains(canonical.root())) {
        near.push_str(&format!("; {unresolved}: add it by --schema"));
    }
    let judged = match own.catalog().get(canonical.root()) {
        Some(_) => own.validate(canonical).map(drop),
        None => schema.validate(&canonical),
    };
    let Err(error) = judged else { return Ok(ExitCode::SUCCESS) };
    let more = error.more.iter().map(|finding| (finding.at, finding.to_string()));
    for (at, rule) in std::iter::once((error.at, error.to_string() + &near)).chain(more) {
        let at = at.map_or_else(String::new, |Position { line, column }| format!("{line}:{column}:"));
        let line = format!("{}:{at} {rule}", document.name);
        print::note(Escaped::line(&line));
    }
    Ok(ExitCode::FAILURE)
}

/// The declared element that is probably meant by an undeclared one.
fn meant(root: &QName, declared: &[QName]) -> String {
    match near::payload(root, declared.iter()) {
        Some(near) if !declared.contains(root) => format!(": did you mean {near}?"),
        _ => String::new(),
    }
}

/// The payloads of these schemas and of the pump itself.
pub(crate) fn catalog(schemas: &[PathBuf]) -> Result<Catalog, Failure> {
    let documents = read_all(schemas)?;
    let unusable = |error: &ContractError| Failure::unusable(error.to_string());
    let mut catalog = Catalog::new();
    let (described, declared): (Vec<_>, Vec<_>) =
        documents.into_iter().partition(|document| document.name.ends_with(".json"));
    let mut found = Vec::new();
    for XsdDocument { name, text } in &described {
        found.extend(PayloadSchema::from_json_schema(name, text).map_err(|error| unusable(&error))?);
    }
    if !declared.is_empty() {
        found.extend(PayloadSchema::from_xsd_set(&declared).map_err(|error| unusable(&error))?);
    }
    for schema in found {
        match catalog.add(schema) {
            // The catalog has the schemas of the pump already.
            Ok(()) | Err(ContractError::Reserved { .. }) => {}
            Err(error) => return Err(unusable(&error)),
        }
    }
    Ok(catalog)
}

fn read_all(files: &[PathBuf]) -> Result<Vec<XsdDocument>, Failure> {
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Result<XsdDocument, Failure> {
    let no_text = |error| Failure::unusable(format!("{}:{error}", file.display()));
    let text = decoded(&crate::file::read(file, crate::file::DOCUMENT)?).map_err(no_text)?;
    Ok(XsdDocument { name: file.display().to_string(), text })
}
