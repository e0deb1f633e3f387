//! Reads nodes into values. Mistakes are collected, never thrown: one run shows all of them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use systole_core::vocab::{Millionths, Name, QName, Span, near};

use super::correction::{self, Items, Shape};
use super::document::{Key, Node, Value};
use super::finding::{ConfigFinding, File};
use super::mistake::Mistake;
use super::short_form::{Called, Prefixes};
use super::text::{self, TextError};
use super::units;

pub(super) struct Reader {
    pub(super) file: Arc<File>,
    /// The directory of the file, as messages name it.
    pub(super) base: PathBuf,
    /// The directory of the file, to search files in.
    pub(super) directory: PathBuf,
    pub(super) prefixes: Prefixes,
    pub(super) findings: Vec<ConfigFinding>,
    /// The files that this one names, and that are there or should be.
    pub(super) files: Vec<PathBuf>,
}

/// A value with its place.
#[derive(Debug, Clone)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) span: Span,
}

/// The entries of a mapping, taken out one by one; keys that are left at the end are unknown.
pub(super) struct Fields<'n> {
    entries: Vec<&'n (Key, Node)>,
    known: Vec<&'static str>,
    /// The place to point at when a key is missing.
    pub(super) span: Span,
}

impl Reader {
    pub(super) fn report(&mut self, mistake: Mistake, span: Span) {
        self.findings.push(ConfigFinding::new(mistake, &self.file, span));
    }

    /// The name in messages of a file whose path is relative to this one.
    pub(super) fn beside(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    /// Reads a file whose path is relative to this one.
    pub(super) fn open(&mut self, path: &str) -> Result<String, TextError> {
        let path = self.directory.join(path);
        let text = text::read(&path);
        self.files.push(path);
        text
    }

    /// Opens a schema, which may be in another encoding than UTF-8.
    pub(super) fn open_schema(&mut self, path: &str) -> Result<String, TextError> {
        let path = self.directory.join(path);
        let text = text::read_schema(&path);
        self.files.push(path);
        text
    }

    /// Checks for an earlier mistake at this very place.
    pub(super) fn is_marked(&self, span: Span) -> bool {
        self.findings.iter().any(|finding| finding.span_in(&self.file) == Some(span))
    }

    /// The entries of a mapping; each key once.
    pub(super) fn fields<'n>(&mut self, node: &'n Node, shape: Shape) -> Option<Fields<'n>> {
        let Value::Map(map) = &node.value else {
            self.kind("a mapping", correction::mapping(&node.value, shape), node);
            return None;
        };
        let mut entries: Vec<&(Key, Node)> = Vec::with_capacity(map.len());
        let mut seen = HashSet::new();
        for entry in map {
            if seen.insert(&entry.0.text) {
                entries.push(entry);
            } else {
                self.report(Mistake::DuplicateKey { key: entry.0.text.clone() }, entry.0.span);
            }
        }
        let span = entries.first().map_or(node.span, |(key, _)| key.span);
        Some(Fields { entries, known: Vec::new(), span })
    }

    /// Reports the unknown entries.
    pub(super) fn finish(&mut self, fields: Fields<'_>) {
        for (key, _) in fields.entries {
            let near = near::key(&key.text, &fields.known);
            let mistake = Mistake::UnknownKey { key: key.text.clone(), near, known: fields.known.clone() };
            self.report(mistake, key.span);
        }
    }

    pub(super) fn text<'n>(&mut self, node: &'n Node) -> Option<&'n str> {
        self.single(node, |value| correction::text(value, None))
    }

    /// A text that the key parses itself; `such` says which ones it takes.
    pub(super) fn text_such<'n>(&mut self, node: &'n Node, such: &str) -> Option<&'n str> {
        self.single(node, |value| correction::text(value, Some(such)))
    }

    /// An entry of `env`.
    pub(super) fn variable<'n>(&mut self, node: &'n Node) -> Option<&'n str> {
        self.single(node, correction::variable)
    }

    fn single<'n>(&mut self, node: &'n Node, instead: impl FnOnce(&Value) -> String) -> Option<&'n str> {
        match &node.value {
            Value::Scalar(text) => Some(text),
            value => {
                self.kind("a single value", instead(value), node);
                None
            }
        }
    }

    /// The texts of a list: names, or files.
    pub(super) fn list<'n>(&mut self, node: &'n Node) -> Option<&'n [Node]> {
        self.items(node, Items::Texts)
    }

    pub(super) fn items<'n>(&mut self, node: &'n Node, items: Items) -> Option<&'n [Node]> {
        self.listed(node, |value| correction::list(value, items))
    }

    /// The words of a command.
    pub(super) fn command<'n>(&mut self, node: &'n Node) -> Option<&'n [Node]> {
        self.listed(node, correction::command)
    }

    fn listed<'n>(&mut self, node: &'n Node, instead: impl FnOnce(&Value) -> String) -> Option<&'n [Node]> {
        match &node.value {
            Value::List(items) => Some(items),
            value => {
                self.kind("a list", instead(value), node);
                None
            }
        }
    }

    pub(super) fn name(&mut self, node: &Node) -> Option<At<Name>> {
        self.parsed(node, "a name, such as cli", |text| Name::parse(text).map_err(Mistake::from))
    }

    pub(super) fn qnames(&mut self, node: &Node) -> Option<Vec<At<QName>>> {
        self.each(node, Prefixes::payload)
    }

    /// The entries of `calls`.
    pub(super) fn called(&mut self, node: &Node) -> Option<Vec<At<Called>>> {
        self.each(node, Prefixes::called)
    }

    /// Names of a list, if all of them are right.
    fn each<T>(&mut self, node: &Node, read: fn(&Prefixes, &str) -> Result<T, Mistake>) -> Option<Vec<At<T>>> {
        let prefixes = std::mem::take(&mut self.prefixes);
        let items = self.listed(node, |value| correction::names(value, &prefixes));
        let names = items.and_then(|items| {
            let names: Vec<_> = items.iter().filter_map(|item| self.named(item, &prefixes, read)).collect();
            (names.len() == items.len()).then_some(names)
        });
        self.prefixes = prefixes;
        names
    }

    fn named<T>(
        &mut self,
        node: &Node,
        prefixes: &Prefixes,
        read: fn(&Prefixes, &str) -> Result<T, Mistake>,
    ) -> Option<At<T>> {
        let text = self.single(node, |value| correction::name(value, prefixes))?;
        self.judged(read(prefixes, text), node.span)
    }

    pub(super) fn flag(&mut self, node: &Node) -> Option<bool> {
        self.choice(node, &[("true", true), ("false", false)])
    }

    /// Reads one of some words.
    pub(super) fn choice<T: Copy>(&mut self, node: &Node, choices: &[(&'static str, T)]) -> Option<T> {
        let words: Vec<_> = choices.iter().map(|&(word, _)| word).collect();
        let chosen = self.parsed(node, &words.join(" or "), |text| {
            choices.iter().find(|(word, _)| *word == text).map(|&(_, value)| value).ok_or_else(|| Mistake::Choice {
                found: text.to_owned(),
                near: near::nearest(text, words.iter().copied()),
                choices: words.clone(),
            })
        });
        chosen.map(|at| at.value)
    }

    pub(super) fn number(&mut self, key: &'static str, node: &Node, min: u64, max: u64) -> Option<u64> {
        let read = |text: &str| units::saturating(text).ok_or_else(|| Mistake::Number { text: text.to_owned() });
        self.bounded(key, (node, "a number, such as 64"), min, max, read)
    }

    pub(super) fn size(&mut self, key: &'static str, node: &Node, min: u64, max: u64) -> Option<u64> {
        let read = |text: &str| units::size(text).ok_or_else(|| Mistake::Size { text: text.to_owned() });
        self.bounded(key, (node, "a size, such as 4MiB"), min, max, |text| read(text).map(|size| size as u64))
    }

    /// Reads a decimal number with at most six digits behind the point.
    pub(super) fn decimal(&mut self, key: &'static str, node: &Node, max: u64) -> Option<Millionths> {
        let read = |text: &str| match Millionths::saturating(text) {
            Ok(number) if number.0 <= max * Millionths::ONE.0 => Ok(number),
            Ok(_) => Err(Mistake::Bounds { key, min: 0, max }),
            Err(error) => Err(Mistake::Decimal { text: text.to_owned(), help: error.to_string() }),
        };
        self.parsed(node, "a number, such as 0.25", read).map(|at| at.value)
    }

    pub(super) fn duration(&mut self, least: Duration, node: &Node) -> Option<Duration> {
        self.parsed(node, "a duration, such as 30s", |text| units::duration(text, least)).map(|at| at.value)
    }

    fn bounded(
        &mut self,
        key: &'static str,
        (node, such): (&Node, &str),
        min: u64,
        max: u64,
        read: impl FnOnce(&str) -> Result<u64, Mistake>,
    ) -> Option<u64> {
        let in_bounds = |value| {
            if (min..=max).contains(&value) { Ok(value) } else { Err(Mistake::Bounds { key, min, max }) }
        };
        self.parsed(node, such, |text| read(text).and_then(in_bounds)).map(|at| at.value)
    }

    /// Parses a single value; `such` says which ones the key takes.
    fn parsed<T>(&mut self, node: &Node, such: &str, read: impl FnOnce(&str) -> Result<T, Mistake>) -> Option<At<T>> {
        let text = self.text_such(node, such)?;
        self.judged(read(text), node.span)
    }

    fn judged<T>(&mut self, read: Result<T, Mistake>, span: Span) -> Option<At<T>> {
        match read {
            Ok(value) => Some(At { value, span }),
            Err(mistake) => {
                self.report(mistake, span);
                None
            }
        }
    }

    fn kind(&mut self, expected: &'static str, instead: String, node: &Node) {
        self.report(Mistake::Kind { expected, found: node.value.what(), instead }, node.span);
    }
}

impl<'n> Fields<'n> {
    /// The value of a key, if the key is there.
    pub(super) fn take(&mut self, key: &'static str) -> Option<&'n Node> {
        self.known.push(key);
        let at = self.entries.iter().position(|(entry, _)| entry.text == key)?;
        Some(&self.entries.remove(at).1)
    }

    /// The keys that no one has taken.
    pub(super) fn left(&self) -> impl Iterator<Item = &'n str> {
        self.entries.iter().map(|(key, _)| key.text.as_str())
    }
}
