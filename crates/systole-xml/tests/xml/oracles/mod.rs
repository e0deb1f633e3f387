//! The engine compared with other validators, on the corpus, on the tables of rules and on random schemas. Each
//! disagreement is decided by the Recommendation and listed in `tests/corpus/xsd/disagreements.txt`, those about schemas
//! in `disagreements-rules.txt` there.

mod corpus;
mod disagreements;
mod large;
mod random;
mod rules;
