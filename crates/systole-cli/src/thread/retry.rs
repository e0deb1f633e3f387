//! `systole thread retry`: a conversation again, from a recorded message on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
#[cfg(feature = "gateway")]
use serde_json::json;
use systole::config::Config;
#[cfg(feature = "gateway")]
use systole::journal::NamedJournal;
use systole::journal::{Reader, Retry as Point, RetryError};
use systole::runtime::clock::Clock;
use systole_core::core::Party;
use systole_core::vocab::{MessageId, Name, Position, ThreadId, XmlLimits};
use systole_xml::ladder::{Raw, parse};
use systole_xml::schema::{Catalog, Element, Validated, Validator};

use super::conversation;
use super::show::said_ids;
use crate::failure::Failure;
use crate::journal_args;
#[cfg(feature = "gateway")]
use crate::operate;
use crate::print;
use crate::sought::{Sought, digits, only};
use crate::xml::catalog;

#[derive(Debug, Args)]
pub(crate) struct Retry {
    /// The conversation, or a thread in it; its last digits are enough if only one id ends with them
    id: Sought,
    /// The message with which it begins, by its id in `thread show`; its last digits are enough, too. By default the one that
    /// opened the conversation
    #[arg(long, value_name = "MESSAGE")]
    at: Option<Message>,
    /// A file with another payload for the message, of the same name
    #[arg(long, value_name = "FILE")]
    edit: Option<PathBuf>,
    /// The client that owns the new conversation; by default the same client
    #[arg(long = "as", value_name = "NAME")]
    owner: Option<Name>,
    /// The organism.yaml, whose schemas judge FILE while the organism does not run, and which declares the clients
    #[arg(long, value_name = "FILE", group = "contracts")]
    organism: Option<PathBuf>,
    /// A schema that judges FILE while the organism does not run; name the schemas that it includes or imports, too
    #[arg(long = "schema", value_name = "XSD", group = "contracts", conflicts_with = "organism")]
    schemas: Vec<PathBuf>,
    /// The journal; by default that of the organism, or of the organism.yaml in this folder
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
}

/// Opens the conversation again, at once or for the next start, and prints the id of the new one.
pub(super) fn retry(args: &Retry) -> Result<ExitCode, Failure> {
    let journal = journal_args::journal(args.journal.as_deref(), args.organism.as_deref())?;
    let (conversation, at) = {
        let reader = journal.read().map_err(Failure::store)?;
        let id = args.id.find(&*reader)?;
        (id, args.at.as_ref().map(|at| at.find(&*reader, id)).transpose()?)
    };
    #[cfg(feature = "gateway")]
    if operate::is_served(&journal) {
        return online(args, &journal, conversation, at);
    }
    let point = Point { conversation, at, edit: args.judged()?, owner: args.owner.clone() };
    let mut editor = journal.edit().map_err(Failure::store)?;
    let id = editor.retry(&point, &Name::system(), Clock::real().now()).map_err(|error| match error {
        RetryError::Store(error) => Failure::store(error),
        error => Failure::no(error.to_string()),
    })?;
    print::line(id)?;
    Ok(ExitCode::SUCCESS)
}

/// Lets the running organism do it, which judges the edit.
#[cfg(feature = "gateway")]
fn online(args: &Retry, journal: &NamedJournal, id: ThreadId, at: Option<MessageId>) -> Result<ExitCode, Failure> {
    let mut act = json!({ "act": "retry", "conversation": id.to_string() });
    if let Some(at) = at {
        act["at"] = at.to_string().into();
    }
    if let Some(file) = &args.edit {
        let bytes = crate::file::read(file, crate::file::DOCUMENT)?;
        let text = String::from_utf8(bytes).map_err(|error| Failure::no(format!("{}: {error}", file.display())))?;
        act["edit"] = text.into();
    }
    if let Some(owner) = &args.owner {
        act["as"] = owner.as_str().into();
    }
    let outcomes = operate::acted(journal, &act)?;
    let outcome = outcomes.first().ok_or_else(|| Failure::no("the organism tells no outcome".to_owned()))?;
    match (outcome["opened"].as_str(), outcome["error"].as_str()) {
        (Some(opened), _) => print::line(opened)?,
        (None, error) => return Err(Failure::no(error.unwrap_or("it had no effect").to_owned())),
    }
    Ok(ExitCode::SUCCESS)
}

impl Retry {
    /// Checks the edit and the owner by the files that the arguments name.
    fn judged(&self) -> Result<Option<Validated<Element>>, Failure> {
        // Schemas that are named judge in place of the organism in this folder.
        let organism = match self.schemas.is_empty() {
            true => journal_args::organism(self.journal.as_deref(), self.organism.as_deref()),
            false => None,
        };
        let config = organism.map(Config::load).transpose().map_err(Failure::Config)?;
        if let (Some(config), Some(name)) = (&config, &self.owner)
            && !matches!(config.blueprint.party(name.as_str()), Some(Party::Client(_)))
        {
            return Err(Failure::no(format!("the organism has no client '{name}': name one that it has")));
        }
        let Some(file) = &self.edit else { return Ok(None) };
        let limits = config.as_ref().map_or_else(XmlLimits::default, |config| config.blueprint.limits.xml.clone());
        let catalog = match config {
            Some(config) => config.catalog,
            None if self.schemas.is_empty() => {
                return Err(Failure::unusable(
                    "--edit needs --organism FILE or --schema XSD while the organism does not run".to_owned(),
                ));
            }
            None => catalog(&self.schemas)?,
        };
        payload(file, catalog, &limits).map(Some)
    }
}

/// A message that is looked for.
#[derive(Debug, Clone)]
enum Message {
    Id(MessageId),
    /// The last digits of its id.
    Digits(String),
}

impl FromStr for Message {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self::Id).or_else(|error| digits(text, &error).map(Self::Digits))
    }
}

impl Message {
    /// Finds the message of a conversation that the argument names.
    fn find(&self, reader: &dyn Reader, id: ThreadId) -> Result<MessageId, Failure> {
        let digits = match self {
            Self::Id(id) => return Ok(*id),
            Self::Digits(digits) => digits,
        };
        let mut messages = BTreeSet::new();
        for thread in conversation(reader, id)? {
            messages.extend(said_ids(reader, &thread)?);
        }
        only(messages.into_iter(), digits)?.ok_or_else(|| {
            Failure::no(format!(
                "there is no message whose id ends with {digits}: `systole thread show {id}` shows them"
            ))
        })
    }
}

/// A payload as an entrance takes it.
fn payload(file: &Path, catalog: Catalog, limits: &XmlLimits) -> Result<Validated<Element>, Failure> {
    let bytes = crate::file::read(file, crate::file::DOCUMENT)?;
    let name = file.display();
    let canonical = parse(&Raw::new(bytes), limits).map_err(|error| Failure::no(format!("{name}:{error}")))?;
    Validator::new(Arc::new(catalog)).validate(canonical).map_err(|error| {
        let at = error.at.map_or_else(String::new, |Position { line, column }| format!("{line}:{column}:"));
        Failure::no(format!("{name}:{at} {error}"))
    })
}
