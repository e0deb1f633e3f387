//! Regular expressions of Rust and of XSD: from one to the other, and texts that match.
//!
//! A pattern of JSON Schema finds a match anywhere; one of XSD matches the whole value, and `^` and `$` are
//! plain characters in it (XSD 1.0 part 2, appendix F). Both become one syntax tree.

mod alphabet;
mod class;
mod cost;
mod emit;
mod foreign;
mod sample;
mod translate;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use alphabet::Alphabet;
use regex_syntax::hir::Hir;
pub(crate) use translate::Flaw;

/// A pattern in both languages.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    /// As its author wrote it.
    pub(crate) written: String,
    /// In the language of XSD.
    pub(crate) xsd: String,
    /// In the language of the regex crate, for the same texts; `None` if it can't be said there.
    tree: Option<(Hir, Arc<Automaton>)>,
}

impl Pattern {
    /// A pattern as schemars takes it.
    ///
    /// # Errors
    /// What XSD has no counterpart for.
    pub(crate) fn from_rust(pattern: &str) -> Result<Self, &'static str> {
        let tree = parse(pattern).ok_or("it is not in the syntax of the regex crate")?;
        let automaton = Automaton::new(pattern).map_err(|_| "it is too large")?;
        Ok(Self { written: pattern.to_owned(), xsd: emit::emit(&tree)?, tree: Some((tree, Arc::new(automaton))) })
    }

    /// A pattern as it stands in an `.xsd` document.
    pub(crate) fn from_xsd(pattern: &str) -> Self {
        let rust = translate::translate(pattern).ok();
        let tree = rust.and_then(|rust| Some((parse(&rust)?, compile(&rust).ok()?)));
        Self { written: pattern.to_owned(), xsd: pattern.to_owned(), tree }
    }

    /// Whether a text matches; `true` if only an XSD processor can tell.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.tree.as_ref().is_none_or(|(_, automaton)| automaton.is_match(text))
    }

    /// Texts that match, simple ones first; they differ by `variant`. A pattern that no short one matches has none.
    pub(crate) fn samples(&self, variant: usize) -> impl Iterator<Item = String> {
        const REPEATED: usize = 64;
        const LONGEST: usize = 1_024;
        let tree = self.tree.as_ref().map(|(tree, _)| tree);
        let samples = (0..REPEATED).map_while(move |extra| tree.map(|tree| sample::sample(tree, variant, extra)));
        samples.take_while(|sample| sample.len() <= LONGEST)
    }
}

/// One expression for the texts that match at least one of several patterns of XSD.
///
/// # Errors
/// What is wrong with a pattern by the grammar of XSD, or that it is too large.
pub(crate) fn alternatives(patterns: &[&str]) -> Result<Arc<Automaton>, Flaw> {
    let translated: Result<Vec<String>, _> = patterns.iter().map(|pattern| translate::translate(pattern)).collect();
    compile(&translated?.join("|")).map_err(|why| Flaw { at: None, why })
}

/// Approximate number of states of the automaton of a pattern, with what its alphabet takes; 0 if it is no pattern.
pub(crate) fn states(pattern: &str) -> usize {
    translate::translate(pattern).ok().and_then(|rust| parse(&rust)).map_or(0, |tree| match large(&tree) {
        // A run of letters takes about as long to make as three states do.
        Some((alphabet, reduced)) => cost::cost(&reduced).saturating_add(3 * alphabet.runs()),
        None => cost::cost(&tree),
    })
}

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Automaton {
    form: Form,
    /// Steps that a byte of a value takes, at worst.
    weight: usize,
}

#[derive(Debug)]
enum Form {
    /// Over characters.
    Plain(regex::Regex),
    /// Over the letters of an alphabet of its own.
    Reduced(Box<Alphabet>, regex::bytes::Regex),
}

impl Automaton {
    /// Of a pattern of the regex crate.
    fn new(rust: &str) -> Result<Self, &'static str> {
        const BYTES: usize = 16 << 20;
        // What is not counted is as large as it is written.
        const SHORT: usize = 256;
        let tree = (rust.contains('{') || rust.len() > SHORT).then(|| parse(rust)).flatten();
        let weight = tree.as_ref().map_or(1, cost::weight);
        let form = match tree.as_ref().and_then(large) {
            Some((alphabet, tree)) => {
                let mut builder = regex::bytes::RegexBuilder::new(&tree.to_string());
                let regex = builder.size_limit(BYTES).nest_limit(NESTING).build().map_err(|_| TOO_LARGE)?;
                Form::Reduced(Box::new(alphabet), regex)
            }
            None => {
                let mut builder = regex::RegexBuilder::new(rust);
                Form::Plain(builder.size_limit(BYTES).nest_limit(NESTING).build().map_err(|_| TOO_LARGE)?)
            }
        };
        Ok(Self { form, weight })
    }

    /// Steps that it takes to tell whether a text matches, at worst.
    #[inline]
    pub(crate) fn steps(&self, text: &str) -> usize {
        /// Steps of any comparison.
        const ANY: usize = 16;
        text.len().saturating_add(ANY).saturating_mul(self.weight)
    }

    #[inline]
    pub(crate) fn is_match(&self, text: &str) -> bool {
        match &self.form {
            Form::Plain(regex) => regex.is_match(text),
            Form::Reduced(alphabet, regex) => alphabet.spell(text, |spelled| regex.is_match(spelled)),
        }
    }
}

/// The form in which a large pattern is compiled.
fn large(tree: &Hir) -> Option<(Alphabet, Hir)> {
    /// States.
    const LARGE: usize = 10_000;
    if cost::cost(tree) > LARGE { alphabet::reduced(tree) } else { None }
}

/// A pattern is trusted, but `(\w{1,500}){1,500}` must not fill the memory.
///
/// One that is in use is not compiled again: that takes longer than all else of a simple type, and the types of a
/// schema often share theirs.
fn compile(rust: &str) -> Result<Arc<Automaton>, &'static str> {
    static IN_USE: LazyLock<Mutex<HashMap<String, Weak<Automaton>>>> = LazyLock::new(Mutex::default);
    let in_use = || IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = in_use().get(rust).and_then(Weak::upgrade) {
        return Ok(known);
    }
    let automaton = Arc::new(Automaton::new(rust)?);
    let mut known = in_use();
    if known.len() == known.capacity() {
        known.retain(|_, automaton| automaton.strong_count() > 0);
    }
    known.insert(rust.to_owned(), Arc::downgrade(&automaton));
    Ok(automaton)
}

/// Why a pattern is refused for its size.
pub(crate) const TOO_LARGE: &str =
    "it is too large: have fewer or smaller counts inside of counts, such as (a{0,99}){0,99}";

/// How deep groups may nest in a pattern.
const NESTING: u32 = 100;

fn parse(pattern: &str) -> Option<Hir> {
    regex_syntax::ParserBuilder::new().nest_limit(NESTING).build().parse(pattern).ok()
}

#[cfg(test)]
mod tests;
