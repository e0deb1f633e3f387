//! Unique Particle Attribution (section 3.8.6) on random content models, against a naive reference: positions and
//! follow sets of the model with all counts written out, and each set of positions to which the beginning of a document
//! can lead.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use systole_xml::schema::PayloadSchema;

use super::config;
use super::tree::{Dice, Node, node};

/// A content model.
struct Part {
    min: usize,
    /// `None` for any number.
    max: Option<usize>,
    term: Term,
}

enum Term {
    /// A particle with its number, and what it takes.
    Leaf(usize, Takes),
    Sequence(Vec<Part>),
    Choice(Vec<Part>),
}

#[derive(Clone, Copy, PartialEq)]
enum Takes {
    /// The element of this name, in no namespace.
    Element(&'static str),
    /// Elements of a namespace.
    Wildcard(&'static str),
}

impl Takes {
    fn overlaps(self, other: Self) -> bool {
        match (self, other) {
            (Self::Element(_), Self::Wildcard(namespace)) | (Self::Wildcard(namespace), Self::Element(_)) => {
                namespace == "##local"
            }
            (one, other) => one == other,
        }
    }
}

/// The positions of a model with all counts written out, each with the particle, and those that may follow it.
#[derive(Default)]
struct Positions {
    particles: Vec<(usize, Takes)>,
    follow: Vec<BTreeSet<usize>>,
}

/// The positions where a part can begin and end, and whether it can be empty.
#[derive(Clone)]
struct Ends {
    first: BTreeSet<usize>,
    last: BTreeSet<usize>,
    empty: bool,
}

impl Ends {
    fn none() -> Self {
        Self { first: BTreeSet::new(), last: BTreeSet::new(), empty: true }
    }
}

impl Positions {
    fn part(&mut self, part: &Part) -> Ends {
        let mut all = Ends::none();
        for _ in 0..part.min {
            let copy = self.term(&part.term);
            all = self.join(all, copy);
        }
        match part.max {
            Some(max) => {
                for _ in part.min..max {
                    let copy = self.term(&part.term);
                    all = self.join(all, Ends { empty: true, ..copy });
                }
            }
            None => {
                let copy = self.term(&part.term);
                self.link(&copy, &copy);
                all = self.join(all, Ends { empty: true, ..copy });
            }
        }
        all
    }

    fn term(&mut self, term: &Term) -> Ends {
        match term {
            Term::Leaf(particle, takes) => {
                let position = BTreeSet::from([self.particles.len()]);
                self.particles.push((*particle, *takes));
                self.follow.push(BTreeSet::new());
                Ends { first: position.clone(), last: position, empty: false }
            }
            Term::Sequence(parts) => parts.iter().fold(Ends::none(), |before, part| {
                let next = self.part(part);
                self.join(before, next)
            }),
            Term::Choice(parts) => {
                // With maxOccurs="0" there is no particle (section 3.9.2), so a choice may have none, and take nothing.
                let parts = parts.iter().filter(|part| part.max != Some(0));
                let parts: Vec<Ends> = parts.map(|part| self.part(part)).collect();
                let all = |ends: fn(&Ends) -> &BTreeSet<usize>| parts.iter().flat_map(ends).copied().collect();
                let empty = parts.iter().any(|part| part.empty);
                Ends { first: all(|part| &part.first), last: all(|part| &part.last), empty }
            }
        }
    }

    fn link(&mut self, before: &Ends, behind: &Ends) {
        before.last.iter().for_each(|last| self.follow[*last].extend(&behind.first));
    }

    fn join(&mut self, mut before: Ends, behind: Ends) -> Ends {
        self.link(&before, &behind);
        if before.empty {
            before.first.extend(&behind.first);
        }
        before.last = if behind.empty { &before.last | &behind.last } else { behind.last };
        before.empty &= behind.empty;
        before
    }

    /// Tells whether two particles compete for the next element behind some beginning of a document. Copies of one
    /// particle don't compete, but then what may follow any of them does.
    fn is_ambiguous(&self, whole: Ends) -> bool {
        let mut seen = BTreeSet::from([whole.first.clone()]);
        let mut pending = vec![whole.first];
        while let Some(next) = pending.pop() {
            let particles: BTreeMap<usize, Takes> = next.iter().map(|position| self.particles[*position]).collect();
            let mut pairs = particles.iter().flat_map(|one| particles.iter().map(move |other| (one, other)));
            if pairs.any(|((one, takes), (other, more))| one < other && takes.overlaps(*more)) {
                return true;
            }
            for particle in particles.keys() {
                let taken = next.iter().filter(|position| self.particles[**position].0 == *particle);
                let behind: BTreeSet<usize> = taken.flat_map(|position| &self.follow[*position]).copied().collect();
                if seen.insert(behind.clone()) {
                    pending.push(behind);
                }
            }
        }
        false
    }
}

fn part(dice: &mut Dice, depth: usize, leaves: &mut usize) -> Part {
    let (min, max) = dice.pick(&[
        (1, Some(1)),
        (1, Some(1)),
        (0, Some(1)),
        (0, None),
        (1, None),
        (1, Some(2)),
        (2, Some(2)),
        (2, Some(3)),
        (0, Some(0)),
    ]);
    if depth > 0 && dice.roll(2) == 0 {
        let parts = (0..=dice.roll(3)).map(|_| part(dice, depth - 1, leaves)).collect();
        let term = if dice.roll(3) == 0 { Term::Choice(parts) } else { Term::Sequence(parts) };
        return Part { min, max, term };
    }
    *leaves += 1;
    let takes = match dice.roll(12) {
        0 => Takes::Wildcard("##local"),
        1 => Takes::Wildcard("urn:o"),
        other => Takes::Element(["a", "b", "c", "d"][other % 4]),
    };
    // More copies than the engine keeps as states.
    let (min, max) =
        if dice.roll(12) == 0 { dice.pick(&[(0, Some(20)), (18, Some(20)), (20, Some(20))]) } else { (min, max) };
    Part { min, max, term: Term::Leaf(*leaves, takes) }
}

fn model(dice: &mut Dice) -> Part {
    let mut leaves = 0;
    let parts = (0..=dice.roll(3)).map(|_| part(dice, 3, &mut leaves)).collect();
    Part { min: 1, max: Some(1), term: Term::Sequence(parts) }
}

fn written(part: &Part) -> Node {
    let node = match &part.term {
        Term::Leaf(_, Takes::Element(name)) => node("element").with("name", *name).with("type", "xs:int"),
        Term::Leaf(_, Takes::Wildcard(namespace)) => node("any").with("namespace", *namespace),
        Term::Sequence(parts) => node("sequence").of(parts.iter().map(written)),
        Term::Choice(parts) => node("choice").of(parts.iter().map(written)),
    };
    let max = part.max.map_or_else(|| "unbounded".to_owned(), |max| max.to_string());
    node.with("minOccurs", part.min.to_string()).with("maxOccurs", max)
}

/// The verdicts of the reference and the engine, and the schema.
fn verdicts(seed: u64) -> (bool, Result<(), String>, String) {
    let model = model(&mut Dice(seed));
    let mut positions = Positions::default();
    let whole = positions.part(&model);
    let root = node("element").with("name", "r").of([node("complexType").of([written(&model)])]);
    let schema = node("schema").with("xmlns:xs", "http://www.w3.org/2001/XMLSchema").of([root]).text();
    let said = PayloadSchema::from_xsd("random.xsd", &schema).map(drop).map_err(|error| error.to_string());
    (positions.is_ambiguous(whole), said, schema)
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn ambiguous_models_are_refused_and_no_others(seed in any::<u64>()) {
        let (is_ambiguous, said, schema) = verdicts(seed);
        match said {
            Ok(()) => prop_assert!(!is_ambiguous, "ambiguous, but accepted:\n{}", schema),
            Err(error) => {
                let is_told = error.contains("(Unique Particle Attribution)");
                prop_assert!(is_ambiguous && is_told, "ambiguous: {}, but: {}\n{}", is_ambiguous, error, schema);
            }
        }
    }
}

#[test]
fn random_models_are_of_both_kinds() {
    let ambiguous = (0..200).filter(|seed| verdicts(*seed).0).count();
    assert!((40..160).contains(&ambiguous), "{ambiguous} of 200 are ambiguous");
}
