//! No folder of modules uses, over others beside it, what uses it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::each_source;

/// The path of a module in its crate.
type Module = Vec<String>;

#[test]
fn no_folder_is_in_a_circle() {
    let mut crates: BTreeMap<String, BTreeMap<Module, String>> = BTreeMap::new();
    let found = std::cell::RefCell::new(&mut crates);
    each_source(|path, code| {
        let (root, module) = place(path);
        found.borrow_mut().entry(root).or_default().insert(module, code.to_owned());
    });
    let mut circles = Vec::new();
    for (root, modules) in &crates {
        let uses = modules.iter().flat_map(|(module, code)| {
            used(module, code, modules).into_iter().map(move |other| (module.clone(), other))
        });
        let uses: BTreeSet<(Module, Module)> = uses.collect();
        assert!(uses.len() > 5 || modules.len() < 5, "{root}: only {} uses found: the search is broken", uses.len());
        let folders: BTreeSet<&[String]> =
            modules.keys().filter_map(|module| module.split_last()).map(|(_, above)| above).collect();
        for parent in &folders {
            let beside = beside(parent, &uses);
            circles
                .extend(circle(&beside, &folders).map(|circle| format!("{root}, in {}: {circle}", parent.join("::"))));
        }
    }
    assert!(circles.is_empty(), "move what both need into a module of its own: {circles:#?}");
}

/// The crate of a file, and its module in it.
fn place(path: &Path) -> (String, Module) {
    let path = path.with_extension("");
    let parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let source = parts.iter().position(|part| part == "src").expect("sources are in src");
    let mut module = parts[source + 1..].to_vec();
    module.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
    (parts[..source].join("/"), module)
}

/// The modules that the code of a module names.
fn used(module: &[String], code: &str, modules: &BTreeMap<Module, String>) -> Vec<Module> {
    let code: String =
        code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let mut paths = Vec::new();
    for (at, _) in
        code.match_indices("use ").filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    {
        expand(&[], &code[at + 4..code[at..].find(';').map_or(code.len(), |end| at + end)], &mut paths);
    }
    for start in ["crate::", "super::"] {
        paths.extend(code.match_indices(start).map(|(at, _)| {
            let path =
                code[at..].split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).next().unwrap_or_default();
            path.split("::").map(str::to_owned).collect()
        }));
    }
    paths.into_iter().filter_map(|path| resolve(module, &path, modules)).filter(|other| other != module).collect()
}

/// Adds the paths of a tree of imports.
fn expand(before: &[String], tree: &str, paths: &mut Vec<Module>) {
    let mut depth = 0;
    let parts = tree.split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        let (path, below) = part.split_once('{').unwrap_or((part, ""));
        let mut all = before.to_vec();
        all.extend(path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned));
        match below.rsplit_once('}') {
            Some((below, _)) => expand(&all, below, paths),
            None => paths.push(all),
        }
    }
}

/// The module that a path leads to, as seen from another one: the one that defines its name, not one that re-exports it.
fn resolve(from: &[String], path: &[String], modules: &BTreeMap<Module, String>) -> Option<Module> {
    let mut at = from.to_vec();
    let mut names = path.iter().peekable();
    match names.peek()?.as_str() {
        "crate" => at.clear(),
        "self" | "super" => {}
        child if modules.contains_key(&[from, &[child.to_owned()]].concat()) => {}
        _ => return None,
    }
    for name in names {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => drop(at.pop()),
            name if modules.contains_key(&[&*at, &[name.to_owned()]].concat()) => at.push(name.to_owned()),
            name => {
                let exported = modules.get(&at).and_then(|code| re_exported(code, name));
                return exported.and_then(|path| resolve(&at, &path, modules)).or(Some(at));
            }
        }
    }
    Some(at)
}

/// The path of a name that a module re-exports.
fn re_exported(code: &str, name: &str) -> Option<Module> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("\npub") {
        let item = &code[at + 1..code[at..].find(';').map_or(code.len(), |end| at + end)];
        let Some((visibility, tree)) = item.split_once(" use ") else { continue };
        if visibility == "pub" || visibility.starts_with("pub(") && visibility.ends_with(')') {
            expand(&[], tree, &mut paths);
        }
    }
    paths.into_iter().find_map(|mut path| {
        let last = path.pop()?;
        let (own, exported) = last.split_once(" as ").unwrap_or((&last, &last));
        path.push(own.to_owned());
        (exported == name).then_some(path)
    })
}

/// The uses of modules below a parent among each other.
fn beside<'a>(
    parent: &[String],
    uses: &'a BTreeSet<(Module, Module)>,
) -> HashMap<&'a [String], BTreeSet<&'a [String]>> {
    let below = |module: &'a Module| module.get(..=parent.len()).filter(|own| own.starts_with(parent));
    let mut beside: HashMap<_, BTreeSet<_>> = HashMap::new();
    for (module, other) in uses {
        if let (Some(one), Some(other)) = (below(module), below(other))
            && one != other
        {
            beside.entry(one).or_default().insert(other);
        }
    }
    beside
}

/// The way from a folder back to itself, if there is one.
fn circle(beside: &HashMap<&[String], BTreeSet<&[String]>>, folders: &BTreeSet<&[String]>) -> Option<String> {
    beside.keys().filter(|start| folders.contains(*start)).find_map(|start| {
        let mut ways = vec![vec![*start]];
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop() {
            for next in beside.get(way.last()?).into_iter().flatten() {
                let longer = [&*way, &[*next]].concat();
                if next == start {
                    let names: Vec<_> = longer.iter().filter_map(|module| module.last()).cloned().collect();
                    return Some(names.join(" uses "));
                }
                if seen.insert(*next) {
                    ways.push(longer);
                }
            }
        }
        None
    })
}
