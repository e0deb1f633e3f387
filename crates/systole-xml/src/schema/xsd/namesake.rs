//! Declarations that have the name of a payload but declare none.

use super::pitfalls::is_own;
use crate::schema::source::documents::Documents;
use crate::schema::source::tree::{NodeId, Tree};
use crate::vocab::QName;

/// Finds a declaration of the documents that has the name of a payload but declares none: a type, or an element inside
/// of others. Returns a text with its place and a correction.
pub(super) fn namesake(documents: &Documents, payload: &QName) -> Option<String> {
    let local = payload.local();
    for document in (0..documents.given).map(|index| documents.get(index)) {
        let tree = &document.tree;
        if document.target != payload.namespace() {
            continue;
        }
        let named = |id: &NodeId| is_own(tree, *id) && tree.get(*id, "name") == Some(local);
        let mut all = tree.ids().filter(named);
        let of = |kinds: &'static [&str]| move |id: &NodeId| kinds.contains(&tree.node(*id).local);
        let at = |id| format!("{}:{}", document.name, document.position(id));
        if let Some(ty) = all.clone().find(of(&["complexType", "simpleType"])) {
            let xs = prefixed(tree.node(0).prefix);
            let own = tree.declarations(0).find(|(prefix, to)| !prefix.is_empty() && *to == document.target);
            let own = prefixed(own.map_or("", |(prefix, _)| prefix));
            return Some(format!(
                "a type of that name is at {}: write <{xs}element name=\"{local}\" type=\"{own}{local}\"/> directly below <{xs}schema>",
                at(ty)
            ));
        }
        if let Some(element) = all.find(of(&["element"])) {
            let outer = outer(tree, element).map_or_else(String::new, |name| format!(" inside of '{name}'"));
            return Some(format!(
                "an element of that name is at {}{outer}, where it is no payload: declare it directly below <{}schema>",
                at(element),
                prefixed(tree.node(0).prefix)
            ));
        }
    }
    None
}

/// The outermost declaration with a name around a node.
fn outer(tree: &Tree, id: NodeId) -> Option<&str> {
    tree.ancestors(id).filter(|around| *around != id).filter_map(|around| tree.get(around, "name")).last()
}

fn prefixed(prefix: &str) -> String {
    if prefix.is_empty() { String::new() } else { format!("{prefix}:") }
}
