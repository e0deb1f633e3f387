//! Random schemas: each is accepted, and refused with the sentence of a rule after a change that breaks the rule. Random
//! content models, identity constraints and redefinitions are compared with naive references.

mod ambiguity;
mod bounds;
mod declarations;
mod generator;
mod keys;
mod models;
mod mutations;
mod particles;
mod redefinitions;
mod restrictions;
mod simple;
pub(crate) mod tree;

use std::collections::BTreeSet;

use proptest::prelude::*;
use systole_xml::schema::{PayloadSchema, XsdDocument};

use super::rules::rows;
use mutations::Mutation;
use tree::{Dice, Node};

/// The configuration of a random test: `cases` of them, or as many as `PROPTEST_CASES` says.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let given = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { given.cases } else { cases };
    // A seed has no smaller one that is like it.
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 0, ..given }
}

fn refusal(schema: &Node) -> Option<String> {
    let document = XsdDocument { name: "random.xsd".to_owned(), text: schema.text() };
    PayloadSchema::from_xsd_set(&[document]).err().map(|error| error.to_string())
}

fn mutations() -> impl Iterator<Item = &'static Mutation> {
    let tables = [declarations::DECLARATIONS, models::MODELS, particles::PARTICLES, simple::SIMPLE, bounds::BOUNDS];
    tables.into_iter().flatten()
}

/// The number of random schemas that share the changes.
const SHARES: usize = 8;

proptest! {
    #![proptest_config(config(6))]

    #[test]
    fn each_rule_that_a_random_schema_breaks_is_told(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let schema = generator::schema(&mut dice);
        prop_assert_eq!(refusal(&schema), None, "{}", schema.text());
        let mut wrong = String::new();
        for Mutation { rule, said, mutate } in mutations().skip(dice.roll(SHARES)).step_by(SHARES) {
            let mut broken = schema.clone();
            mutate(&mut broken, &mut dice);
            match refusal(&broken) {
                Some(error) if error.contains(said) => {}
                error => wrong.push_str(&format!("{rule}, expected '{said}': {error:?}\n")),
            }
        }
        prop_assert!(wrong.is_empty(), "{}\n{}", wrong, schema.text());
    }
}

#[test]
fn each_rule_of_the_tables_has_a_change_that_breaks_it() {
    let name = |row: &str| row.split(" (").next().unwrap_or_default().to_owned();
    let known: BTreeSet<&str> = mutations().map(|mutation| mutation.rule).collect();
    let missing: BTreeSet<String> =
        rows().into_iter().map(|(rule, ..)| name(rule)).filter(|rule| !known.contains(rule.as_str())).collect();
    assert!(missing.is_empty(), "no random schema breaks {missing:?}");
}
