//! A cache of the names of elements.

use std::cell::Cell;

use crate::vocab::QName;

thread_local! {
    /// The names that were asked for last: messages of one kind share theirs.
    static KNOWN: Cell<Vec<QName>> = const { Cell::new(Vec::new()) };
}

/// The name of an element that the strict pass took.
pub(crate) fn known_name(namespace: &str, local: &str) -> QName {
    const MOST: usize = 8;
    let mut known = KNOWN.try_with(Cell::take).unwrap_or_default();
    let is_it = |name: &QName| name.local() == local && name.namespace() == namespace;
    let name = match known.iter().position(is_it) {
        Some(at) => known[at].clone(),
        None => {
            let name = QName::new(namespace, local).expect("the strict pass takes only NCNames");
            // A name as long as a message must not be kept.
            if namespace.len() + local.len() <= 256 {
                known.truncate(MOST - 1);
                known.insert(0, name.clone());
            }
            name
        }
    };
    let _ = KNOWN.try_with(|kept| kept.set(known));
    name
}
