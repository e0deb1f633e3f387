//! The repair stage, from outside: golden files, a corpus of model outputs, properties, hostile inputs.

mod ambiguous;
mod corpus;
mod damage;
mod files;
mod golden;
mod hostile;
mod lies;
mod meaning;
mod model;
mod properties;
