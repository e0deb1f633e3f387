//! Programs that must not compile, and the compiler's messages: `tests/ui/NAME.rs` and `NAME.stderr`. `UPDATE_GOLDEN=1`
//! writes the latter.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

#[test]
fn contracts_are_checked_by_the_compiler() {
    let library = library();
    for entry in fs::read_dir("tests/ui").unwrap() {
        let source = entry.unwrap().path();
        if source.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let (said, golden) = (compile(&source, &library), source.with_extension("stderr"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&golden, &said).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(said, expected, "{}: UPDATE_GOLDEN=1 writes what it is", source.display());
    }
}

/// Finds the build of the library for this test, beside it: the latest one before the test was linked. Those with other
/// features may follow while it runs.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = fs::read_dir(test.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let is_library = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "rlib")
            && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libsystole-"))
    };
    let made = |path: &PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    let linked = made(&test);
    let before = |path: &PathBuf| made(path) <= linked;
    built.filter(is_library).filter(before).max_by_key(made).expect("the test depends on the library")
}

/// Returns the compiler's messages: the errors, the labels and the notes, without positions.
fn compile(source: &Path, library: &Path) -> String {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(rustc)
        .args(["--edition=2024", "--crate-type=bin", "--emit=metadata", "--error-format=json"])
        .arg("--out-dir")
        .arg(std::env::temp_dir())
        .arg("--extern")
        .arg(format!("systole={}", library.display()))
        .arg("-L")
        .arg(format!("dependency={}", library.parent().unwrap().display()))
        .arg(source)
        .output()
        .unwrap();
    assert!(!output.status.success(), "{} compiles", source.display());
    let mut said = String::new();
    for message in String::from_utf8(output.stderr).unwrap().lines() {
        let message: Value = serde_json::from_str(message).unwrap();
        let spans = message["spans"].as_array().unwrap();
        match message["code"]["code"].as_str() {
            Some(code) => writeln!(said, "error[{code}]: {}", text(&message["message"])).unwrap(),
            // Messages of derives have a position, and the count of errors has none.
            None if !spans.is_empty() => writeln!(said, "error: {}", text(&message["message"])).unwrap(),
            None => continue,
        }
        let labels = spans.iter().filter_map(|span| span["label"].as_str());
        labels.for_each(|label| writeln!(said, "  at: {label}").unwrap());
        // The list of other types is no advice, and changes with each new type.
        let others = |child: &&Value| !text(&child["message"]).starts_with("the following other types implement");
        for child in message["children"].as_array().unwrap().iter().filter(others) {
            writeln!(said, "  {}: {}", text(&child["level"]), text(&child["message"])).unwrap();
        }
    }
    said
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
