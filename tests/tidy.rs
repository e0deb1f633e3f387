//! Rules of the house that no compiler checks. A failure names the file and the rule.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers, lowest first; a module may use its own layer and those below.
const LAYERS: [(&str, u8); 16] = [
    ("vocab", 0),
    ("ladder", 1),
    ("schema", 1),
    ("protocol", 1),
    ("journal", 1),
    ("core", 2),
    ("inbox", 2),
    ("shell", 3),
    ("accept", 3),
    ("gateway", 3),
    ("outbound", 3),
    ("remote", 3),
    ("molecule", 3),
    ("testing", 3),
    ("bench", 4),
    ("cli", 4),
];

/// What layers 0 to 2 never name: they are pure, time and bytes come in from outside.
const IMPURE: [&str; 9] =
    ["tokio", "actix", "std::fs", "std::net", "std::process", "Instant", "SystemTime", "Timestamp::now", "std::thread"];

const MAX_LINES: usize = 400;

#[test]
fn no_module_uses_a_layer_above_its_own() {
    each_source(|path, code| {
        let Some(own) = layer_of(path) else { return };
        for line in code.lines() {
            for (module, layer) in LAYERS {
                let named = line.contains(&format!("crate::{module}::")) || line.contains(&format!("crate::{module};"));
                assert!(!named || layer <= own, "{}: layer {own} uses {module}, layer {layer}: {line}", path.display());
            }
        }
    });
}

#[test]
fn the_lower_layers_are_pure() {
    each_source(|path, code| {
        if layer_of(path).is_none_or(|layer| layer > 2) {
            return;
        }
        for line in code.lines() {
            let words: Vec<&str> = line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).collect();
            for name in IMPURE {
                let named = words.iter().any(|word| *word == name || word.starts_with(&format!("{name}::")));
                assert!(!named, "{}: layers 0 to 2 don't name {name}: {line}", path.display());
            }
        }
    });
}

#[test]
fn libxml_is_named_in_one_module() {
    each_source(|path, code| {
        let allowed = path.ends_with("schema/libxml2.rs") || layer_of(path) == Some(4) && path.starts_with("src/bench");
        let named = code.lines().any(|line| line.contains("libxml::"));
        assert!(!named || allowed, "{}: libxml belongs into src/schema/libxml2.rs", path.display());
    });
}

#[test]
fn one_module_sends_to_networks() {
    each_source(|path, code| {
        let named = code.lines().any(|line| line.contains("hyper_util::client"));
        assert!(!named || path.ends_with("outbound/http.rs"), "{}: send it through src/outbound", path.display());
    });
}

#[test]
fn the_program_prints_through_what_escapes() {
    // What goes to a terminal is escaped there; `report` renders findings, which are escaped as they are made.
    let escaping = ["src/cli/print.rs", "src/cli/screen.rs", "src/cli/report.rs"];
    let ways = ["stdout()", "stderr()", "print!(", "println!("];
    each_source(|path, code| {
        if !path.starts_with("src/cli") || escaping.iter().any(|file| path == Path::new(file)) {
            return;
        }
        for line in code.lines().filter(|line| !line.contains("is_terminal()")) {
            let named = ways.iter().find(|way| line.contains(*way));
            assert!(named.is_none(), "{}: print it through src/cli/print.rs: {line}", path.display());
        }
    });
}

#[test]
fn files_are_small() {
    each_source(|path, code| {
        let lines = code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count();
        assert!(lines <= MAX_LINES, "{}: {lines} lines of code, at most {MAX_LINES}: split it", path.display());
    });
}

#[test]
fn modules_have_telling_names() {
    each_source(|path, _| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let empty = ["utils", "util", "common", "helpers", "helper", "misc"];
        assert!(!empty.contains(&stem), "{}: name it after what it does", path.display());
    });
}

#[test]
fn nothing_is_left_unfinished() {
    // Spelled apart, so that this file does not find itself.
    let marks = [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("FIX", "ME"), concat!("dbg", "!(")];
    each_source(|path, code| {
        for mark in marks {
            assert!(!code.contains(mark), "{}: {mark} is unfinished work", path.display());
        }
    });
}

#[test]
fn errors_of_users_have_a_debug_that_reads() {
    // What a user's `main` can return; the configuration's mistakes among them.
    let below = ["src/schema/decode/mod.rs", "src/core/dead.rs", "src/core/gauge.rs"];
    each_source(|path, code| {
        let shown =
            layer_of(path) == Some(3) || path.starts_with("src/inbox") || below.iter().any(|it| path == Path::new(it));
        let lines: Vec<&str> = code.lines().map(str::trim_start).collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("thiserror::Error)]") && shown) {
            let item =
                lines[at..].iter().find_map(|line| line.strip_prefix("pub enum ").or(line.strip_prefix("pub struct ")));
            let is_public =
                lines[at + 1..].iter().find(|line| !line.starts_with('#')).is_some_and(|line| line.starts_with("pub "));
            if is_public {
                let name = item.unwrap_or_default();
                assert!(!line.contains("Debug"), "{}: give {name} debug_is_display!, not {line}", path.display());
            }
        }
    });
}

#[test]
fn scripts_find_what_cargo_built() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scripts = fs::read_dir(root.join("scripts")).expect("the scripts can be read");
    for path in scripts.map(|entry| entry.expect("their entries too").path()).chain([root.join("fuzz/run")]) {
        let text = fs::read_to_string(&path).expect("scripts are UTF-8");
        let named = text.match_indices("target/").any(|(at, _)| !text[..at].ends_with('$'));
        assert!(!named, "{}: the folder is ${{CARGO_TARGET_DIR:-target}}", path.display());
    }
}

fn layer_of(path: &Path) -> Option<u8> {
    let module = path.strip_prefix("src").ok()?.components().next()?;
    let name = Path::new(module.as_os_str()).file_stem()?.to_str()?.to_owned();
    LAYERS.iter().find(|(module, _)| *module == name).map(|(_, layer)| *layer)
}

/// Calls `check` with each source file and its code without its unit tests.
fn each_source(check: impl Fn(&Path, &str)) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("src"), root.join("crates")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the source folder can be read") {
            let path: PathBuf = entry.expect("its entries too").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
                let text = fs::read_to_string(&path).expect("sources are UTF-8");
                let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
                check(path.strip_prefix(root).expect("below the root"), code);
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "only {seen} source files found: the walk is broken");
}
