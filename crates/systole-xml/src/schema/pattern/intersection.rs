//! Texts that several patterns have in common: a search, in the order of their lengths, through the product of their
//! automata.

use foldhash::{HashSet, HashSetExt};
use regex_automata::Anchored;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{Compiler, Config};
use regex_automata::util::start;
use regex_syntax::hir::Hir;

use super::cost;

/// The number of bytes that a text may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lengths {
    pub(crate) min: usize,
    pub(crate) max: usize,
}

/// The shortest ASCII texts that all trees match, at most `most`. `spend` takes steps, and ends the search by `false`.
pub(super) fn shortest(
    trees: &[&Hir],
    lengths: Option<Lengths>,
    most: usize,
    spend: &dyn Fn(usize) -> bool,
) -> Vec<String> {
    Search::new(trees, spend).and_then(|search| search.run(lengths, most, spend)).unwrap_or_default()
}

/// Maximum number of states of the product.
const STATES: usize = 1 << 14;

struct Search {
    automata: Vec<(DFA, Cache)>,
    /// A byte for each set of bytes that no pattern distinguishes.
    letters: Vec<u8>,
    states: Vec<State>,
}

/// A state of the product, and the way to it.
struct State {
    each: Box<[LazyStateID]>,
    before: usize,
    letter: u8,
    length: usize,
}

impl Search {
    /// The search from its first state; `None` if a pattern is too large.
    fn new(trees: &[&Hir], spend: &dyn Fn(usize) -> bool) -> Option<Self> {
        let mut automata = Vec::with_capacity(trees.len());
        for tree in trees {
            // Building the automaton takes longer than a step for each of its states.
            if !spend(cost::cost(tree).saturating_mul(8).saturating_add(512)) {
                return None;
            }
            let compiler = Config::new().nfa_size_limit(Some(1 << 20));
            let nfa = Compiler::new().configure(compiler).build_from_hir(tree).ok()?;
            // The ids of states stay valid until the cache is cleared, which ends the search.
            let config = DFA::config().minimum_cache_clear_count(Some(0)).cache_capacity(1 << 20);
            let automaton = DFA::builder().configure(config).build_from_nfa(nfa).ok()?;
            let cache = automaton.create_cache();
            automata.push((automaton, cache));
        }
        let classes = |byte: u8| automata.iter().map(|(dfa, _)| dfa.byte_classes().get(byte)).collect::<Vec<_>>();
        let mut seen = HashSet::new();
        // Letters and digits are the most legible.
        let legible = (b'a'..=b'z').chain(b'A'..=b'Z').chain(b'1'..=b'9').chain(*b"0 ").chain(b'!'..=b'~');
        let letters = legible.filter(|byte| seen.insert(classes(*byte))).collect();
        let config = start::Config::new().anchored(Anchored::Yes);
        let first = automata.iter_mut().map(|(dfa, cache)| dfa.start_state(cache, &config).ok());
        let each = first.collect::<Option<_>>()?;
        Some(Self { automata, letters, states: vec![State { each, before: 0, letter: 0, length: 0 }] })
    }

    /// The texts that were found; those before an automaton grew too large, if one does.
    fn run(mut self, lengths: Option<Lengths>, most: usize, spend: &dyn Fn(usize) -> bool) -> Option<Vec<String>> {
        let Lengths { min, max } = lengths.unwrap_or(Lengths { min: 0, max: usize::MAX });
        let mut seen: HashSet<(Box<[LazyStateID]>, usize)> = HashSet::new();
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.states.len() && found.len() < most {
            let length = self.states[at].length;
            if length >= min && self.accepts(at)? {
                found.push(self.text(at));
            }
            for letter in self.letters.clone() {
                if length >= max || self.states.len() >= STATES || !spend(8 * self.automata.len()) {
                    break;
                }
                let Some(each) = self.next(at, letter) else { continue };
                // Lengths tell states apart only while they decide something.
                let length = length + 1;
                let counted = if lengths.is_some() { length } else { 0 };
                if seen.insert((each.clone(), counted)) {
                    self.states.push(State { each, before: at, letter, length });
                }
            }
            at += 1;
        }
        Some(found)
    }

    /// The state behind a letter; `None` if no text goes on so, or an automaton is too large.
    fn next(&mut self, at: usize, letter: u8) -> Option<Box<[LazyStateID]>> {
        let steps = self.automata.iter_mut().zip(&self.states[at].each);
        steps
            .map(|((dfa, cache), state)| dfa.next_state(cache, *state, letter).ok().filter(|to| !to.is_dead()))
            .collect()
    }

    /// Returns whether a text may end in a state; `None` if an automaton is too large.
    fn accepts(&mut self, at: usize) -> Option<bool> {
        let mut accepts = true;
        for ((dfa, cache), state) in self.automata.iter_mut().zip(&self.states[at].each) {
            accepts &= dfa.next_eoi_state(cache, *state).ok()?.is_match();
        }
        Some(accepts)
    }

    fn text(&self, mut at: usize) -> String {
        let mut text = Vec::new();
        while at > 0 {
            text.push(char::from(self.states[at].letter));
            at = self.states[at].before;
        }
        text.into_iter().rev().collect()
    }
}
