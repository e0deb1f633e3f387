//! Regular expressions of Rust and of XSD: translation between them, and matching samples.
//!
//! A pattern of JSON Schema finds a match anywhere; one of XSD matches the whole value, and `^` and `$` are
//! plain characters in it (XSD 1.0 part 2, appendix F). Both become one syntax tree.

mod alphabet;
mod class;
mod cost;
mod ecma;
mod emit;
mod foreign;
mod intersection;
mod sample;
mod translate;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use alphabet::Alphabet;
pub(crate) use intersection::Lengths;
use regex_automata::meta::Regex;
use regex_syntax::hir::{Hir, Look};
pub(crate) use translate::Flaw;

/// A pattern of Rust or of XSD.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    /// The pattern in the syntax of XSD.
    pub(crate) xsd: String,
    /// The pattern as a syntax tree, for the same texts; `None` if it has no such form.
    tree: Option<Hir>,
}

impl Pattern {
    /// A pattern in the syntax of schemars.
    ///
    /// # Errors
    /// The part that has no counterpart in XSD.
    pub(crate) fn from_rust(pattern: &str) -> Result<Self, &'static str> {
        let tree = parse(pattern).ok_or("it is not in the syntax of the regex crate")?;
        Automaton::new(tree.clone()).map_err(|_| "it is too large")?;
        Ok(Self { xsd: emit::emit(&tree)?, tree: Some(tree) })
    }

    /// The patterns of one restriction of an `.xsd` document, of which a text matches at least one.
    pub(crate) fn from_xsd(patterns: &[&str]) -> Self {
        let tree = tree(patterns).ok();
        let xsd = match patterns {
            [one] => (*one).to_owned(),
            several => several.iter().map(|pattern| format!("({pattern})")).collect::<Vec<_>>().join("|"),
        };
        Self { xsd, tree }
    }

    /// The pattern in the syntax of ECMA-262, to be searched for in a text; `None` if it has no such form that is short.
    pub(crate) fn ecma(&self) -> Option<String> {
        ecma::emit(self.tree.as_ref()?)
    }

    /// Texts that match, simple ones first; they differ by `variant`. Texts of about `length` characters are among them.
    /// None for a pattern without a short match.
    pub(crate) fn samples(&self, variant: usize, length: Option<u64>) -> impl Iterator<Item = String> {
        self.tree.iter().flat_map(move |tree| sample::samples(tree, variant, length))
    }
}

/// The automaton of a pattern in the syntax of the regex crate, which finds it anywhere in a text.
///
/// # Errors
/// The reason why there is none: the syntax, or the size.
pub(crate) fn search(pattern: &str) -> Result<Automaton, &'static str> {
    let tree = parse(pattern).ok_or("it is not in the syntax of regular expressions without look-around")?;
    Automaton::new(tree).map_err(|_| "it is too large")
}

/// The shortest texts that all of several patterns match, and a pattern of the lexical form of a type. `spend` takes steps,
/// and ends the search by `false`.
pub(crate) fn shortest_of_all(
    patterns: &[Pattern],
    form: Option<&str>,
    lengths: Option<Lengths>,
    spend: &dyn Fn(usize) -> bool,
) -> Vec<String> {
    const MOST: usize = 16;
    let form = form.and_then(|form| tree(&[form]).ok());
    let trees: Vec<&Hir> = patterns.iter().filter_map(|pattern| pattern.tree.as_ref()).chain(&form).collect();
    intersection::shortest(&trees, lengths, MOST, spend)
}

/// Number of escapes in a pattern that stand for classes of hundreds of ranges.
pub(crate) fn class_escapes(pattern: &str) -> usize {
    let (mut bytes, mut count) = (pattern.bytes(), 0);
    while let Some(byte) = bytes.next() {
        count += usize::from(byte == b'\\' && bytes.next().is_some_and(|name| b"pPwWiIcC".contains(&name)));
    }
    count
}

/// Approximate number of states of the automaton of a pattern, with those of its alphabet; 0 if it is no pattern.
pub(crate) fn states(pattern: &str) -> usize {
    let Ok(tree) = tree(&[pattern]) else { return 0 };
    let cost = cost::cost(&tree);
    match large(&tree, cost) {
        // A run of letters takes about as long to build as three states.
        Some((alphabet, reduced)) => cost::cost(&reduced).saturating_add(3 * alphabet.runs()),
        None => cost,
    }
}

/// Steps of any comparison of a text, beside those for its bytes.
pub(crate) const COMPARISON: usize = 16;

/// A pattern that can be compiled, and is at its first match.
#[derive(Debug)]
pub(crate) struct Automaton {
    regex: LazyLock<Regex, Compile>,
    /// The alphabet whose letters the expression reads; `None` if it reads characters.
    alphabet: Option<Box<Alphabet>>,
    /// Steps that one byte of a value takes at worst: the cost of the pattern.
    cost_per_byte: usize,
}

/// Compiles a pattern.
type Compile = Box<dyn FnOnce() -> Regex + Send>;

impl Automaton {
    /// A tree, which is compiled at once only if it may be too large.
    fn new(tree: Hir) -> Result<Self, &'static str> {
        let (cost, cost_per_byte) = (cost::cost(&tree), cost::per_byte(&tree));
        if cost <= LARGE {
            let compile: Compile = Box::new(move || regex(&tree).expect("a small pattern is not too large"));
            return Ok(Self { regex: LazyLock::new(compile), alphabet: None, cost_per_byte });
        }
        let (alphabet, tree) = match large(&tree, cost) {
            Some((alphabet, tree)) => (Some(Box::new(alphabet)), tree),
            None => (None, tree),
        };
        Ok(Self::compiled(regex(&tree)?, alphabet, cost_per_byte))
    }

    fn compiled(regex: Regex, alphabet: Option<Box<Alphabet>>, cost_per_byte: usize) -> Self {
        Self { regex: LazyLock::new(Box::new(|| regex)), alphabet, cost_per_byte }
    }

    /// Steps that a match takes at worst.
    #[inline]
    pub(crate) fn steps(&self, text: &str) -> usize {
        text.len().saturating_add(COMPARISON).saturating_mul(self.cost_per_byte)
    }

    #[inline]
    pub(crate) fn is_match(&self, text: &str) -> bool {
        match &self.alphabet {
            None => self.regex.is_match(text),
            Some(alphabet) => alphabet.spell(text, |spelled| self.regex.is_match(spelled)),
        }
    }
}

/// Memory of the automata of a pattern.
const BYTES: usize = 16 << 20;

/// The automata of a tree. Although a pattern is trusted, their size is limited: `(\w{1,500}){1,500}` must not fill the
/// memory.
fn regex(tree: &Hir) -> Result<Regex, &'static str> {
    // The whole text is to match, so that no search for a start pays.
    let config = Regex::config().nfa_size_limit(Some(BYTES)).auto_prefilter(false);
    Regex::builder().configure(config).build_from_hir(tree).map_err(|_| TOO_LARGE)
}

/// More states are a large pattern. As many take less than a quarter of [`BYTES`].
const LARGE: usize = 10_000;

/// The reduced form of a large pattern; `None` for a small one.
fn large(tree: &Hir, cost: usize) -> Option<(Alphabet, Hir)> {
    if cost > LARGE { alphabet::reduced(tree) } else { None }
}

/// The tree for the texts that match, as a whole, at least one of several patterns of XSD.
///
/// # Errors
/// The error of a pattern by the grammar of XSD.
fn tree(patterns: &[&str]) -> Result<Hir, Flaw> {
    let alternatives: Vec<Hir> =
        patterns.iter().map(|pattern| translate::translate(pattern)).collect::<Result<_, _>>()?;
    Ok(Hir::concat(vec![Hir::look(Look::Start), Hir::alternation(alternatives), Hir::look(Look::End)]))
}

/// Compiles one expression for the texts that match at least one of several patterns of XSD, or shares one that is in
/// use: compiling takes longer than all else of a simple type, and the types of a schema often share their patterns.
///
/// # Errors
/// The error of a pattern by the grammar of XSD, or its size.
pub(crate) fn alternatives(patterns: &[&str]) -> Result<Arc<Automaton>, Flaw> {
    static IN_USE: LazyLock<Mutex<HashMap<String, Weak<Automaton>>>> = LazyLock::new(Mutex::default);
    let in_use = || IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    let key = key(patterns);
    if let Some(known) = in_use().get(&key).and_then(Weak::upgrade) {
        return Ok(known);
    }
    let automaton = Automaton::new(tree(patterns)?).map_err(|why| Flaw { at: None, why })?;
    let automaton = Arc::new(automaton);
    let mut known = in_use();
    if known.len() == known.capacity() {
        known.retain(|_, automaton| automaton.strong_count() > 0);
    }
    known.insert(key, Arc::downgrade(&automaton));
    Ok(automaton)
}

/// A text that only these patterns have. No document contains the separator.
pub(crate) fn key(patterns: &[&str]) -> String {
    patterns.join("\0")
}

/// The reason for which a pattern is refused because of its size.
pub(crate) const TOO_LARGE: &str =
    "it is too large: have fewer or smaller counts inside of counts, such as (a{0,99}){0,99}";

/// Maximum depth of nested groups in a pattern.
const NESTING: usize = 100;

fn parse(pattern: &str) -> Option<Hir> {
    regex_syntax::ParserBuilder::new().nest_limit(NESTING as u32).build().parse(pattern).ok()
}

#[cfg(test)]
mod tests;
