//! Places of components.

use std::sync::Arc;

use super::tree::NodeId;

/// The place of a component, with the namespace of its document there: an included document without a target takes that
/// of the including document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::schema) struct Place {
    pub(in crate::schema) document: usize,
    pub(in crate::schema) node: NodeId,
    pub(in crate::schema) target: Arc<str>,
}
