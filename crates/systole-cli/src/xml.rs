//! `systole xml`: the stages of the ladder, each alone.

mod validate;

use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use clap::{Args, Subcommand};

use super::failure::Failure;
use super::{json, print, report, units};
use systole::config::Config;
use systole::terminal::Escaped;
use systole_core::vocab::XmlLimits;
use systole_xml::ladder::repair::{Shape, Vocabulary};
use systole_xml::ladder::strict::CanonicalOptions;
use systole_xml::ladder::{Raw, mend, strict};
use systole_xml::schema::{self, Catalog, Validator};

pub(super) use validate::catalog;

#[derive(Debug, Subcommand)]
pub(super) enum Stage {
    /// Repair XML with mistakes; prints one line for each repair on standard error
    Repair {
        /// Allow several top-level elements, as in the output of a listener
        #[arg(long)]
        fragment: bool,
        /// Repair the document as output of this listener: its contract distinguishes elements from text
        #[arg(long, value_name = "NAME", requires = "organism")]
        listener: Option<String>,
        /// The organism.yaml that declares the listener
        #[arg(long, value_name = "FILE", requires = "listener")]
        organism: Option<PathBuf>,
        #[command(flatten)]
        input: Input,
    },
    /// Print the canonical form (Exclusive XML Canonicalization 1.0); refuses input that is not well-formed
    C14n {
        /// Keep comments
        #[arg(long)]
        with_comments: bool,
        /// Print only the element with this number in document order, counted from 0
        #[arg(long, value_name = "INDEX")]
        element: Option<usize>,
        /// Keep the declarations of these prefixes everywhere, #default for the default namespace: the InclusiveNamespaces
        /// PrefixList of the standard
        #[arg(long, value_name = "PREFIXES", value_delimiter = ' ')]
        inclusive: Vec<String>,
        #[command(flatten)]
        input: Input,
    },
    /// Convert a payload: XML to JSON, and a JSON object {"name": …} to XML; exit 0 if it is valid, 1 if not, 2 for a bad schema
    Json {
        /// A schema; name the schemas that it includes or imports, too, since no other file is read
        #[arg(long = "schema", value_name = "XSD", required = true)]
        schemas: Vec<PathBuf>,
        #[command(flatten)]
        input: Input,
    },
    /// Validate a document by XML Schemas: exit 0 if it is valid, 1 if not, 2 for a bad schema
    Validate {
        /// A schema; name the schemas that it includes or imports, too, since no other file is read
        #[arg(long = "schema", value_name = "XSD", required = true)]
        schemas: Vec<PathBuf>,
        #[command(flatten)]
        input: Input,
    },
}

#[derive(Debug, Args)]
pub(super) struct Input {
    /// Most bytes that the document may have
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = units::size)]
    message_bytes: usize,
    /// The document; standard input if it is left out or -
    file: Option<PathBuf>,
}

/// A document and its name in messages.
struct Document {
    name: String,
    bytes: Bytes,
    limits: XmlLimits,
}

pub(super) fn run(stage: Stage) -> Result<ExitCode, Failure> {
    match stage {
        Stage::Repair { fragment, listener, organism, input } => {
            let emitter = listener.zip(organism);
            let vocabulary =
                emitter.as_ref().map_or(Ok(Vocabulary::default()), |(name, file)| vocabulary(file, name))?;
            repaired(&input.read()?, &vocabulary, fragment || emitter.is_some())
        }
        Stage::C14n { with_comments, element, inclusive, input } => {
            let prefixes: Vec<&str> = inclusive.iter().map(String::as_str).collect();
            let form = CanonicalOptions { comments: with_comments, prefixes: &prefixes };
            canonical(&input.read()?, form, element)
        }
        Stage::Json { schemas, input } => converted(&input.read()?, &validate::catalog(&schemas)?),
        Stage::Validate { schemas, input } => validate::validate(&input.read()?, &schemas),
    }
}

/// The vocabulary that the contract of a listener gives to repair.
fn vocabulary(organism: &Path, listener: &str) -> Result<Vocabulary, Failure> {
    let config = Config::load(organism).map_err(|findings| {
        report::print(&findings);
        Failure::unusable(format!("{}: the organism can't start", organism.display()))
    })?;
    let found = config.blueprint.listeners().find(|(_, contract)| contract.name.as_str() == listener);
    let Some((_, contract)) = found else {
        return Err(Failure::unusable(format!("{}: no listener is called '{listener}'", organism.display())));
    };
    let catalog = Catalog::only(config.payloads().cloned());
    Ok(schema::vocabulary(contract.replies.iter().chain(&contract.calls), &catalog).by(contract.author))
}

fn repaired(document: &Document, vocabulary: &Vocabulary, fragment: bool) -> Result<ExitCode, Failure> {
    let shape = if fragment { Shape::Fragment } else { Shape::Document };
    let raw = Raw::new(document.bytes.clone());
    let repaired = mend(&raw, shape, &document.limits, vocabulary).map_err(|error| document.refused(&error))?;
    let (bytes, repairs) = repaired.into_parts();
    for repair in &repairs {
        print::note(format_args!("{} {}", repair.at, repair.kind));
    }
    show(&bytes)
}

fn canonical(document: &Document, form: CanonicalOptions, element: Option<usize>) -> Result<ExitCode, Failure> {
    let bytes = match element {
        None => strict::c14n(&document.bytes, form, &document.limits).map(Some),
        Some(index) => strict::c14n_subtree(&document.bytes, index, form, &document.limits),
    };
    match bytes.map_err(|error| document.refused(&error))? {
        Some(bytes) => show(&bytes),
        None => Err(Failure::no(format!("{}: there are fewer elements: count them from 0", document.name))),
    }
}

/// The document in the other form.
fn converted(document: &Document, catalog: &Catalog) -> Result<ExitCode, Failure> {
    let Document { name, bytes, limits } = document;
    if bytes.len() > limits.message_bytes {
        return Err(Failure::no(format!("{name}: more than {} bytes: raise --message-bytes", limits.message_bytes)));
    }
    let mut validator = Validator::new(Arc::new(catalog.clone()));
    if json::is_json(bytes) {
        return match validator.payload_of_json(bytes, |_| true, limits) {
            Ok(payload) => show(payload.payload().bytes()),
            Err(refusal) => {
                for mistake in refusal.mistakes() {
                    print::note(Escaped::line(&format!("{name}: {mistake}")));
                }
                Ok(ExitCode::FAILURE)
            }
        };
    }
    let payload = strict::canonicalize(bytes, limits).map_err(|error| document.refused(&error))?;
    let valid = validator.validate(payload);
    let valid = valid.map_err(|error| Failure::no(format!("{name}: {error}")))?;
    show(json::of_xml(valid.payload(), catalog).unwrap_or_default().as_bytes())
}

fn show(bytes: &[u8]) -> Result<ExitCode, Failure> {
    print::document(bytes)?;
    Ok(ExitCode::SUCCESS)
}

impl Input {
    /// Reads at most one byte more than the limit allows: enough for the stage to refuse the document.
    fn read(&self) -> Result<Document, Failure> {
        let file = self.file.as_deref().filter(|file| *file != Path::new("-"));
        let mut bytes = Vec::new();
        let bound = (self.message_bytes as u64).saturating_add(1);
        match file {
            Some(file) => File::open(file).and_then(|file| file.take(bound).read_to_end(&mut bytes)),
            None => io::stdin().lock().take(bound).read_to_end(&mut bytes),
        }
        .map_err(|cause| Failure::read(file.unwrap_or(Path::new("standard input")), cause))?;
        let name = file.map_or_else(|| "-".to_owned(), |file| file.display().to_string());
        let limits = XmlLimits::default().message_bytes(self.message_bytes);
        Ok(Document { name, bytes: bytes.into(), limits })
    }
}

impl Document {
    /// Makes a failure of an error of a stage, which starts with its place.
    fn refused(&self, error: &dyn Error) -> Failure {
        Failure::no(format!("{}:{error}", self.name))
    }
}
