//! The schema files that listeners list, and the catalog of their payloads.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use systole_core::inbox::payload;
use systole_core::vocab::{Position, QName, Span, is_ncname};
use systole_xml::schema::{Catalog, ContractError, PayloadSchema, Pitfall, XsdDocument, XsdSet};

use super::finding::{ConfigFinding, File};
use super::listener::Written;
use super::organism::Organism;
use super::reader::{At, Reader};
use super::{Adviser, Mistake, advice, mcp, molecule, organism_listener};

/// A readable schema file.
pub(super) struct Listed {
    /// The first entry in the organism's file that names it.
    pub(super) by: At<String>,
    pub(super) document: XsdDocument,
}

/// The schema files of an organism.
pub(super) struct Schemas {
    /// Every payload that they declare.
    pub(super) catalog: Catalog,
    set: Option<XsdSet>,
}

impl Schemas {
    /// The declaration in the files that has the name of a payload and is none: its place, and the text to write
    /// instead.
    pub(super) fn namesake(&self, payload: &QName) -> Option<String> {
        self.set.as_ref()?.namesake(payload)
    }
}

/// Loads every payload that the files declare; `None` if one of the files can't be used.
pub(super) fn load(reader: &mut Reader, organism: &Organism, directory: &Path, advise: Adviser<'_>) -> Option<Schemas> {
    let before = reader.findings.len();
    let (described, listed): (Vec<_>, Vec<_>) = read(reader, organism, directory).into_iter().partition(is_json);
    let mut catalog = Catalog::new();
    let mut accepted = None;
    let documents: Vec<XsdDocument> = listed.iter().map(|file| file.document.clone()).collect();
    let mut pitfalls = Vec::new();
    let mut files = None;
    if !listed.is_empty() {
        let set = XsdSet::read(&documents);
        pitfalls = set.as_ref().map(XsdSet::pitfalls).unwrap_or_default();
        if reader.findings.len() == before {
            let schemas = set.and_then(|set| {
                let schemas = set.schemas().map_err(|error| vec![error]);
                files = Some(set);
                schemas
            });
            accepted = Some(schemas.is_ok());
            match schemas {
                Ok(schemas) => schemas.into_iter().for_each(|schema| add(reader, &mut catalog, &listed, schema)),
                Err(errors) => errors.into_iter().for_each(|error| report(reader, &listed, error)),
            }
        }
    }
    if reader.findings.len() == before {
        described.iter().for_each(|file| describe(reader, &mut catalog, file));
    }
    let tasks = organism.listeners.iter().find_map(|listener| match &listener.kind {
        Written::Tasks { place, .. } => Some(*place),
        _ => None,
    });
    // The schemas of tasks come with the listener.
    if let Some(place) = tasks {
        for schema in payload::schemas() {
            if let Err(error) = catalog.add(schema.clone()) {
                reader.report(Mistake::Schema(error), place);
            }
        }
    }
    organism_listener::declare(reader, organism, &mut catalog);
    let all = mcp::schemas(organism).chain(molecule::schemas(organism));
    for (schema, place) in all {
        if let Err(error) = catalog.add(schema.clone()) {
            reader.report(Mistake::Schema(error), place);
        }
    }
    let usable = reader.findings.len() == before;
    pitfalls.into_iter().for_each(|pitfall| warn(reader, &listed, pitfall));
    if let Some(accepted) = accepted {
        advice::report(reader, &listed, accepted, advise(&documents));
    }
    usable.then_some(Schemas { catalog, set: files })
}

/// Returns whether a file is a JSON Schema.
fn is_json(file: &Listed) -> bool {
    file.document.name.ends_with(".json")
}

/// Adds the payloads of a JSON Schema.
fn describe(reader: &mut Reader, catalog: &mut Catalog, file: &Listed) {
    let XsdDocument { name, text } = &file.document;
    match PayloadSchema::from_json_schema(name, text) {
        Err(error) => report(reader, std::slice::from_ref(file), error),
        Ok(schemas) => {
            for schema in schemas {
                if let Err(error) = catalog.add(schema) {
                    reader.report(Mistake::Schema(error), file.by.span);
                }
            }
        }
    }
}

/// Reads the files in the order in which they are named, each once.
fn read(reader: &mut Reader, organism: &Organism, directory: &Path) -> Vec<Listed> {
    let mut seen: HashSet<PathBuf> = HashSet::new();
    let mut listed = Vec::new();
    for by in organism.listeners.iter().flat_map(|listener| &listener.schemas) {
        let path = directory.join(&by.value);
        if !seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
            continue;
        }
        let is_json = by.value.ends_with(".json");
        match if is_json { reader.open(&by.value) } else { reader.open_schema(&by.value) } {
            Ok(text) => {
                let document = XsdDocument { name: by.value.clone(), text };
                listed.push(Listed { by: by.clone(), document });
            }
            Err(why) => {
                let path = by.value.clone().into();
                reader.report(Mistake::Unreadable { what: "the schema ", path, why }, by.span);
            }
        }
    }
    listed
}

fn add(reader: &mut Reader, catalog: &mut Catalog, listed: &[Listed], schema: PayloadSchema) {
    let from = listed.iter().find(|file| file.document.text == schema.document());
    if let (Err(error), Some(file)) = (catalog.add(schema), from) {
        reader.report(Mistake::Schema(error), file.by.span);
    }
}

/// Reports an error in the schema file that has it.
fn report(reader: &mut Reader, listed: &[Listed], error: ContractError) {
    let ContractError::Document { document, at, problem } = &error else {
        return reader.report(Mistake::Schema(error), Span { start: 0, end: 0 });
    };
    let Some(file) = listed.iter().find(|file| file.document.name == *document) else {
        return reader.report(Mistake::Schema(error), Span { start: 0, end: 0 });
    };
    note(reader, file, *at, Mistake::Document { problem: problem.clone() });
}

/// Reports a pitfall in a schema file.
fn warn(reader: &mut Reader, listed: &[Listed], pitfall: Pitfall) {
    let Pitfall { document, at, message, help } = pitfall;
    if let Some(file) = listed.iter().find(|file| file.document.name == document) {
        note(reader, file, at, Mistake::Pitfall { message, help });
    }
}

/// Reports a mistake at a place in a schema file.
pub(super) fn note(reader: &mut Reader, file: &Listed, at: Position, mistake: Mistake) {
    let text = &file.document.text;
    let place = File::new(reader.beside(&file.by.value).display().to_string(), text);
    reader.findings.push(ConfigFinding::new(mistake, &place, markup_at(text, at)));
}

/// The tag or the attribute at a place; of other text, the rest of its line without the white space around.
fn markup_at(text: &str, at: Position) -> Span {
    let mut start = 0;
    for line in text.split_inclusive('\n').take(at.line.saturating_sub(1) as usize) {
        start += line.len();
    }
    let line = text[start..].lines().next().unwrap_or_default();
    let skipped = line.chars().take(at.column.saturating_sub(1) as usize).map(char::len_utf8).sum::<usize>();
    let rest = &line[skipped..];
    let start = start + skipped + (rest.len() - rest.trim_start().len());
    Span { start, end: start + markup(rest.trim()).len() }
}

/// The tag or the attribute that a line starts with, or all of the line.
fn markup(line: &str) -> &str {
    let is_quote = |c: char| matches!(c, '"' | '\'');
    let is_tag = line.starts_with('<');
    let mut at = 0;
    while let Some(found) = line[at..].find(|c: char| is_quote(c) || is_tag && c == '>') {
        let found = at + found;
        let quote = &line[found..=found];
        let Some(length) = line[found + 1..].find(quote).filter(|_| quote != ">") else {
            return if quote == ">" { &line[..=found] } else { line };
        };
        at = found + 1 + length + 1;
        let is_attribute = || line[..found].trim_end().strip_suffix('=').is_some_and(|name| is_name(name.trim_end()));
        if !is_tag {
            return if is_attribute() { &line[..at] } else { line };
        }
    }
    line
}

/// Checks for a name as a document writes it, with its prefix.
fn is_name(text: &str) -> bool {
    text.split(':').all(is_ncname)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_covers_its_tag_or_attribute_or_the_rest_of_its_line() {
        let text = "<a>\n  <é b='1' x:c = \">\"/>text 'x' \n</a>\n<a b=\"'\n<a>'";
        let covered = |line, column| {
            let span = markup_at(text, Position { line, column });
            &text[span.start..span.end]
        };
        assert_eq!(covered(2, 1), "<é b='1' x:c = \">\"/>");
        assert_eq!(covered(2, 6), "b='1'");
        assert_eq!(covered(2, 12), "x:c = \">\"");
        assert_eq!(covered(2, 23), "text 'x'");
        assert_eq!(covered(4, 1), "<a b=\"'");
        assert_eq!(covered(4, 4), "b=\"'");
        assert_eq!(covered(5, 1), "<a>");
        assert_eq!(covered(3, 1), "</a>");
        assert_eq!(covered(9, 9), "");
    }
}
