//! The documents of a set by the locations and namespaces that links name.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::Document;

/// The documents of a set by the locations and namespaces that links name.
pub(super) struct Locations {
    /// Documents by path; the first of several.
    paths: HashMap<String, usize>,
    /// Documents by file name; `None` for several.
    files: HashMap<String, Option<usize>>,
    /// By target namespace.
    namespaces: HashMap<String, Arc<[usize]>>,
}

impl Locations {
    pub(super) fn of(documents: &[Document]) -> Self {
        let (mut paths, mut files) = (HashMap::new(), HashMap::new());
        let mut namespaces: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, document) in documents.iter().enumerate() {
            paths.entry(normal(&document.name)).or_insert(index);
            let file = files.entry(file_name(&document.name).to_owned());
            file.and_modify(|known| *known = None).or_insert(Some(index));
            namespaces.entry(&document.target).or_default().push(index);
        }
        let namespaces = namespaces.into_iter().map(|(namespace, all)| (namespace.to_owned(), all.into())).collect();
        Self { paths, files, namespaces }
    }

    /// The documents of a namespace.
    pub(super) fn of_namespace(&self, namespace: &str) -> Option<&Arc<[usize]>> {
        self.namespaces.get(namespace)
    }

    /// The document at a location that another one names: by path, or else by a file name that only one document has.
    pub(super) fn find(&self, from: &str, location: &str) -> Option<usize> {
        let directory = from.rfind('/').map_or("", |at| &from[..=at]);
        let path = normal(&format!("{directory}{location}"));
        self.paths.get(&path).copied().or_else(|| *self.files.get(file_name(location))?)
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// A path without `.` and `..`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
