//! The engine beside other validators, on the corpus and on random schemas. A disagreement is decided by the
//! Recommendation and written down in `tests/corpus/xsd/disagreements.txt`.

mod corpus;
mod disagreements;
mod large;
mod random;
