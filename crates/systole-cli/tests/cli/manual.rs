//! `systole completions` and `systole man`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::kit::{Scratch, fresh};

const PROGRAM: &str = env!("CARGO_BIN_EXE_systole");

fn said(args: &[&str]) -> String {
    let run = Command::new(PROGRAM).args(args).output().unwrap();
    assert!(run.status.success() && run.stderr.is_empty(), "{run:?}");
    String::from_utf8(run.stdout).unwrap()
}

/// The completions that bash offers behind these words.
fn offered(script: &Path, words: &[&str]) -> String {
    let text = format!(
        "source '{}'; COMP_WORDS=({}); COMP_CWORD={}; _systole systole '{}' ''; echo \"${{COMPREPLY[@]}}\"",
        script.display(),
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1,
        words.last().unwrap()
    );
    let run = Command::new("bash").args(["-c", &text]).output().unwrap();
    assert!(run.status.success() && run.stderr.is_empty(), "{run:?}");
    String::from_utf8(run.stdout).unwrap()
}

#[test]
fn bash_completes_commands_and_options() {
    let script = fresh("completions");
    fs::write(&script, said(&["completions", "bash"])).unwrap();
    assert_eq!(offered(&script, &["systole", "ru"]), "run\n");
    assert_eq!(offered(&script, &["systole", "run", "--wat"]), "--watch\n");
    assert_eq!(offered(&script, &["systole", "new", "hel"]).split_whitespace().collect::<Vec<_>>(), ["hello", "help"]);
    assert_eq!(offered(&script, &["systole", "--ver"]), "--version\n");
    assert_eq!(offered(&script, &["systole", "second"]), "\n", "a command that is hidden");
    fs::remove_file(script).unwrap();
}

#[test]
fn other_shells_have_scripts_of_their_own() {
    assert!(said(&["completions", "zsh"]).starts_with("#compdef systole\n"));
    assert!(said(&["completions", "fish"]).contains("complete -c systole"));
    let run = Command::new(PROGRAM).args(["completions", "csh"]).output().unwrap();
    assert!(run.status.code() == Some(2) && String::from_utf8_lossy(&run.stderr).contains("fish"), "{run:?}");
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let page = said(&["man"]);
    assert!(page.contains(".TH systole 1") && page.contains("systole\\-run(1)"), "{page}");
    let scratch = Scratch::new("manual");
    let folder = scratch.join("share/man1");
    assert_eq!(said(&["man", "--into", folder.to_str().unwrap()]), "", "the folder is created");
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert!(text("systole-run.1").contains("\\-\\-watch") && text("systole-worker-test.1").contains("SYNOPSIS"));
    assert!(text("systole.1").contains("systole\\-run(1)"));
    // Each page that is referred to is there.
    for entry in fs::read_dir(&folder).unwrap() {
        let page = fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in page.lines().filter(|line| line.starts_with("systole\\-") && line.ends_with("(1)")) {
            let name = line.trim_end_matches("(1)").replace("\\-", "-");
            assert!(folder.join(format!("{name}.1")).exists(), "{name}");
        }
    }
    let file = folder.join("systole.1/below");
    let run = Command::new(PROGRAM).args(["man", "--into", file.to_str().unwrap()]).output().unwrap();
    let err = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.code() == Some(2) && err.starts_with("can't write into "), "{err}");
}
