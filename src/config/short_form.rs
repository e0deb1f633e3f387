//! The short forms of contracts, written out: prefixes of payload names, listeners in `calls`, `returns` and `description`
//! that are left out.

use std::collections::{HashMap, HashSet};

use systole_core::protocol::boot_qname;
use systole_core::vocab::{Name, QName, is_ncname, near};
use systole_xml::schema::{Catalog, PayloadSchema};

use super::correction::Shape;
use super::document::{Node, Value};
use super::listener::{Listener, Written};
use super::mistake::Mistake;
use super::organism::{Organism, Speaker};
use super::reader::{At, Reader};
use crate::runtime::contract::Acceptors;

/// An entry of `calls` as it is written.
#[derive(Debug, Clone)]
pub(super) enum Called {
    /// A payload by its qualified name.
    Payload(QName),
    /// A listener, which stands for all that it accepts, or a payload in no namespace.
    Word(String),
}

/// The namespaces that `prefixes:` names.
#[derive(Debug, Default)]
pub(super) struct Prefixes(Vec<(String, At<String>)>);

impl Prefixes {
    pub(super) fn read(reader: &mut Reader, node: &Node) -> Self {
        let Value::Map(entries) = &node.value else {
            reader.fields(node, Shape::Prefixes);
            return Self::default();
        };
        let mut prefixes: Vec<(String, At<String>)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let Some(namespace) = reader.text(value) else { continue };
            let mistake = if prefixes.iter().any(|(prefix, _)| *prefix == key.text) {
                Some((Mistake::DuplicateKey { key: key.text.clone() }, key.span))
            } else if !is_ncname(&key.text) {
                Some((Mistake::PrefixName { prefix: key.text.clone() }, key.span))
            } else if namespace.is_empty() {
                Some((Mistake::PrefixOfNothing, value.span))
            } else {
                None
            };
            match mistake {
                Some((mistake, span)) => reader.report(mistake, span),
                None => prefixes.push((key.text.clone(), At { value: namespace.to_owned(), span: value.span })),
            }
        }
        Self(prefixes)
    }

    /// Lists the prefixes with their namespaces.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &At<String>)> {
        self.0.iter().map(|(prefix, namespace)| (prefix.as_str(), namespace))
    }

    /// Checks for a prefix that is declared.
    pub(super) fn has(&self, prefix: &str) -> bool {
        self.0.iter().any(|(known, _)| known == prefix)
    }

    /// A payload name: `{namespace}local`, `prefix:local`, or `local` in no namespace.
    pub(super) fn payload(&self, text: &str) -> Result<QName, Mistake> {
        if !text.starts_with('{')
            && let Some((prefix, local)) = text.split_once(':')
        {
            let namespace = self.0.iter().find(|(known, _)| known == prefix).map(|(_, namespace)| &namespace.value);
            let unknown = || Mistake::Prefix {
                prefix: prefix.to_owned(),
                near: near::nearest(prefix, self.0.iter().map(|(known, _)| known.as_str())).map(str::to_owned),
                known: self.0.iter().map(|(known, _)| known.clone()).collect(),
            };
            return Ok(QName::new(namespace.ok_or_else(unknown)?, local)?);
        }
        Ok(text.parse()?)
    }

    /// An entry of `calls`.
    pub(super) fn called(&self, text: &str) -> Result<Called, Mistake> {
        if text.contains(['{', ':']) {
            return self.payload(text).map(Called::Payload);
        }
        // A name of a listener need be no name of an element.
        if Name::parse(text).is_ok() {
            Ok(Called::Word(text.to_owned()))
        } else {
            self.payload(text).map(Called::Payload)
        }
    }
}

/// Writes `calls` and `returns` of all listeners and clients out.
pub(super) fn expand(reader: &mut Reader, listeners: &mut [Listener], clients: &mut [Speaker]) {
    let accepted: HashMap<String, Vec<QName>> = listeners
        .iter()
        .map(|listener| {
            let accepts = listener.contract.accepts.iter().filter(|payload| **payload != boot_qname());
            (listener.name.value.to_string(), accepts.cloned().collect())
        })
        .collect();
    let contracts: Vec<_> = listeners.iter().map(|listener| listener.contract.clone()).collect();
    let acceptors = Acceptors::of(&contracts);
    for client in clients {
        client.calls = calls(reader, std::mem::take(&mut client.called), &accepted, &acceptors);
    }
    for listener in listeners.iter_mut().filter(|listener| !matches!(listener.kind, Written::Tasks { .. })) {
        listener.calls = calls(reader, std::mem::take(&mut listener.called), &accepted, &acceptors);
        // A person's calls are answered below the question, and an echo makes none. A program that is only woken at the
        // start calls and forgets: the answers would wake it again and again.
        let is_called = listener.contract.accepts.iter().any(|payload| *payload != boot_qname());
        let hears =
            is_called && matches!(listener.kind, Written::Command(..) | Written::Worker { .. } | Written::Remote(_));
        // A model gets every answer, and the end of a fan-out.
        let hears_all = listener.returned.is_none() && matches!(listener.kind, Written::Model(_));
        listener.returns = match listener.returned.take() {
            Some(returns) => returns,
            // Each at the place of the first call that it answers.
            None if hears => {
                let replies = acceptors.replies(listener.calls.iter().map(|call| &call.value));
                let at = |(call, reply): (usize, &QName)| At { value: reply.clone(), span: listener.calls[call].span };
                replies.into_iter().map(at).collect()
            }
            None => Vec::new(),
        };
        let plain = |list: &[At<QName>]| list.iter().map(|at| at.value.clone()).collect();
        listener.contract.calls = plain(&listener.calls);
        listener.contract.returns = match hears_all {
            true => acceptors.answers(&listener.contract.calls),
            false => plain(&listener.returns),
        };
    }
}

/// The payloads that entries of `calls` stand for, each once.
fn calls(
    reader: &mut Reader,
    called: Vec<At<Called>>,
    accepted: &HashMap<String, Vec<QName>>,
    acceptors: &Acceptors<'_>,
) -> Vec<At<QName>> {
    let mut calls: Vec<At<QName>> = Vec::with_capacity(called.len());
    let mut seen = HashSet::new();
    for At { value, span } in called {
        let payloads = match value {
            Called::Payload(payload) => vec![payload],
            Called::Word(word) => match (accepted.get(&word), word.parse::<QName>()) {
                (Some(payloads), Ok(payload)) if *payloads != [payload.clone()] && acceptors.accept(&payload) => {
                    reader.report(Mistake::TwoMeanings { word, payloads: payloads.clone() }, span);
                    continue;
                }
                (Some(payloads), _) => payloads.clone(),
                (None, Ok(payload)) => vec![payload],
                (None, Err(error)) => {
                    reader.report(Mistake::QName(error), span);
                    continue;
                }
            },
        };
        let new = payloads.into_iter().filter(|payload| seen.insert(payload.clone()));
        calls.extend(new.map(|value| At { value, span }));
    }
    calls
}

/// Describes listeners without a description by the payloads that they accept, as the schemas document those.
pub(super) fn describe(organism: &mut Organism, catalog: &Catalog) {
    for listener in organism.listeners.iter_mut().filter(|listener| listener.contract.description.is_empty()) {
        if matches!(listener.kind, Written::Tasks { .. }) {
            continue;
        }
        let accepts = listener.contract.accepts.iter().filter(|payload| **payload != boot_qname());
        let texts: Vec<&str> =
            accepts.filter_map(|payload| catalog.get(payload)).map(PayloadSchema::description).collect();
        let words = texts.iter().flat_map(|text| text.split_whitespace()).collect::<Vec<_>>();
        listener.contract.description = words.join(" ");
    }
}
