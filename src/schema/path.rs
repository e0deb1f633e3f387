use std::sync::Arc;

use super::engine::{self, ElementId, Grammar, Judge};
use super::events::Events;
use super::libxml2::Compiled;
use super::validator::{SchemaError, by_engine, by_libxml};
use crate::ladder::Canonical;
use crate::vocab::QName;

/// What judges the payloads of a schema: decided once, when it is made.
#[derive(Debug, Clone)]
pub(super) enum Path {
    /// The engine, whose grammar all threads share, from the declaration of the payload.
    Engine(Arc<Grammar>, ElementId),
    /// libxml, and what the engine doesn't understand.
    Libxml(Arc<str>),
}

/// What a schema became, or why the engine leaves all of it to libxml.
pub(super) type Compilation = Result<engine::Compilation, Arc<str>>;

impl Path {
    /// The path of a payload, by what became of its schema.
    pub(super) fn of(compilation: &Compilation, payload: &QName) -> Self {
        match compilation {
            Ok(compiled) => match compiled.grammar.element(payload.namespace(), payload.local()) {
                Some(root) => match compiled.left.get(&root) {
                    None => Self::Engine(compiled.grammar.clone(), root),
                    Some(reason) => Self::Libxml(reason.clone()),
                },
                None => Self::Libxml("its declaration was not found".into()),
            },
            Err(reason) => Self::Libxml(reason.clone()),
        }
    }
}

/// Judges examples while a schema is made.
pub(super) struct Checker<'c> {
    path: &'c Path,
    compiled: Option<&'c Compiled>,
    judge: Judge,
    events: Events,
}

impl<'c> Checker<'c> {
    /// `compiled` is used where the path is libxml's.
    pub(super) fn new(path: &'c Path, compiled: Option<&'c Compiled>) -> Self {
        Self { path, compiled, judge: Judge::default(), events: Events::default() }
    }

    pub(super) fn check(&mut self, payload: &Canonical) -> Result<(), SchemaError> {
        match self.path {
            Path::Engine(grammar, root) => by_engine(grammar, *root, &mut self.judge, payload),
            Path::Libxml(reason) => match self.compiled {
                Some(compiled) => by_libxml(compiled, &mut self.events, payload, |_, _| None),
                None => Err(SchemaError::left_alone(reason)),
            },
        }
    }
}
