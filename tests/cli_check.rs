//! `systole check` on each `tests/golden/check/NAME.yaml`: what it says is in `NAME.err`.
//!
//! `UPDATE_GOLDEN=1 cargo test --test cli_check` writes the files anew.

use std::path::Path;
use std::process::{Command, Output};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/check");

fn check(file: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_systole"))
        .args(["check", file])
        .current_dir(DIRECTORY)
        .output()
        .expect("the program starts")
}

#[test]
fn each_mistake_is_told_with_its_place() {
    let mut names: Vec<String> = std::fs::read_dir(DIRECTORY)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().unwrap().strip_suffix(".yaml").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() > 5, "the golden files are there");
    let mut wrong = Vec::new();
    for name in names {
        let output = check(&format!("{name}.yaml"));
        let found = String::from_utf8(output.stderr).unwrap();
        let golden = Path::new(DIRECTORY).join(format!("{name}.err"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&golden, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if found != expected {
            wrong.push(format!("=== {name}: expected\n{expected}=== found\n{found}"));
        }
        let errors = !found.is_empty() && !found.contains("\n0 errors, ");
        assert_eq!(output.status.code(), Some(i32::from(errors)), "{name}");
        assert_eq!(output.stdout.is_empty(), errors, "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let output = check("no-such-file.yaml");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("can't read no-such-file.yaml: No such file"));
}

#[test]
fn identity_constraints_are_judged_like_all_else() {
    let output = check("both-paths.yaml");
    let found = String::from_utf8(output.stdout).unwrap();
    assert_eq!(found, "shop: ok (listeners: 1, clients: 0, payloads: 3)\n");
}
