//! Regular expressions of Rust and of XSD: translation between them, and matching samples.
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

/// A pattern in the syntaxes of Rust and of XSD.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    /// The pattern as its author wrote it.
    pub(crate) written: String,
    /// The pattern in the syntax of XSD.
    pub(crate) xsd: String,
    /// The pattern in the syntax of the regex crate, for the same texts; `None` if it has no form there.
    tree: Option<(Hir, Arc<Automaton>)>,
}

impl Pattern {
    /// A pattern in the syntax of schemars.
    ///
    /// # Errors
    /// The part that has no counterpart in XSD.
    pub(crate) fn from_rust(pattern: &str) -> Result<Self, &'static str> {
        let tree = parse(pattern).ok_or("it is not in the syntax of the regex crate")?;
        let automaton = Automaton::new(pattern).map_err(|_| "it is too large")?;
        Ok(Self { written: pattern.to_owned(), xsd: emit::emit(&tree)?, tree: Some((tree, Arc::new(automaton))) })
    }

    /// A pattern of an `.xsd` document.
    pub(crate) fn from_xsd(pattern: &str) -> Self {
        let rust = translate::translate(pattern).ok();
        let tree = rust.and_then(|rust| Some((parse(&rust)?, compile(&rust).ok()?)));
        Self { written: pattern.to_owned(), xsd: pattern.to_owned(), tree }
    }

    /// Tells whether a text matches; true if only an XSD processor can tell.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.tree.as_ref().is_none_or(|(_, automaton)| automaton.is_match(text))
    }

    /// Texts that match, simple ones first; they differ by `variant`. None for a pattern without a short match.
    pub(crate) fn samples(&self, variant: usize) -> impl Iterator<Item = String> {
        const REPEATED: usize = 64;
        const LONGEST: usize = 1_024;
        let tree = self.tree.as_ref().map(|(tree, _)| tree);
        let samples = (0..REPEATED).map_while(move |extra| tree.map(|tree| sample::sample(tree, variant, extra)));
        samples.take_while(|sample| sample.len() <= LONGEST)
    }
}

/// Makes one expression for the texts that match at least one of several patterns of XSD.
///
/// # Errors
/// The error of a pattern by the grammar of XSD, or its size.
pub(crate) fn alternatives(patterns: &[&str]) -> Result<Arc<Automaton>, Flaw> {
    let translated: Result<Vec<String>, _> = patterns.iter().map(|pattern| translate::translate(pattern)).collect();
    compile(&translated?.join("|")).map_err(|why| Flaw { at: None, why })
}

/// Approximate number of states of the automaton of a pattern, with those of its alphabet; 0 if it is no pattern.
pub(crate) fn states(pattern: &str) -> usize {
    translate::translate(pattern).ok().and_then(|rust| parse(&rust)).map_or(0, |tree| match large(&tree) {
        // A run of letters takes about as long to build as three states.
        Some((alphabet, reduced)) => cost::cost(&reduced).saturating_add(3 * alphabet.runs()),
        None => cost::cost(&tree),
    })
}

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Automaton {
    form: Form,
    /// Steps that one byte of a value takes at worst: the cost of the pattern.
    weight: usize,
}

#[derive(Debug)]
enum Form {
    /// An expression over characters.
    Plain(regex::Regex),
    /// An expression over the letters of an alphabet of its own.
    Reduced(Box<Alphabet>, regex::bytes::Regex),
}

impl Automaton {
    /// Compiles a pattern of the regex crate.
    fn new(rust: &str) -> Result<Self, &'static str> {
        const BYTES: usize = 16 << 20;
        // A short pattern without counts has about as many states as characters.
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

    /// Steps that a match takes at worst.
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

/// The reduced form of a large pattern; `None` for a small one.
fn large(tree: &Hir) -> Option<(Alphabet, Hir)> {
    /// Limit in states.
    const LARGE: usize = 10_000;
    if cost::cost(tree) > LARGE { alphabet::reduced(tree) } else { None }
}

/// Compiles a pattern of the regex crate, or shares one that is in use. Although a pattern is trusted, its size is
/// limited: `(\w{1,500}){1,500}` must not fill the memory.
///
/// Compiling takes longer than all else of a simple type, and the types of a schema often share their patterns.
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

/// The reason for which a pattern is refused because of its size.
pub(crate) const TOO_LARGE: &str =
    "it is too large: have fewer or smaller counts inside of counts, such as (a{0,99}){0,99}";

/// Maximum depth of nested groups in a pattern.
const NESTING: u32 = 100;

fn parse(pattern: &str) -> Option<Hir> {
    regex_syntax::ParserBuilder::new().nest_limit(NESTING).build().parse(pattern).ok()
}

#[cfg(test)]
mod tests;
