//! The engine compared with other validators, on the corpus and on random schemas. Each disagreement is decided by the
//! Recommendation and listed in `tests/corpus/xsd/disagreements.txt`.

mod corpus;
mod disagreements;
mod large;
mod random;
