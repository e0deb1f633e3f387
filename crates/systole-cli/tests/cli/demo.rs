//! `scripts/demo`: its answer, and its transcript in the README.

use std::path::Path;
use std::process::{Command, Stdio};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Tests a line against a pattern, in which `…` stands for any text.
fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut is_open = false;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        (rest, is_open) = (&rest[at + part.len()..], part.is_empty());
    }
    is_open || rest.is_empty()
}

#[test]
fn a_pattern_fits_whole_lines() {
    for (pattern, line, is_fit) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a…", "ab", true),
        ("…b", "ab", true),
        ("…b", "ba", false),
        ("a…c…e", "abcde", true),
        ("a…e…c", "abcde", false),
    ] {
        assert_eq!(fits(pattern, line), is_fit, "{pattern} {line}");
    }
}

#[test]
fn the_demo_ends_with_its_answer_as_the_readme_shows_it() {
    let output = Command::new("bash")
        .arg("scripts/demo")
        .current_dir(ROOT)
        .env("SYSTOLE", env!("CARGO_BIN_EXE_systole"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{out}\n{}", String::from_utf8_lossy(&output.stderr));
    let answer = out.lines().last().unwrap();
    assert!(fits("  <report …><text>…</text><euros>2700</euros></report>", answer), "{out}");

    let readme = std::fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let (_, shown) = readme.split_once("```text\n$ bash scripts/demo\n").expect("the README has the transcript");
    let (shown, _) = shown.split_once("\n```").unwrap();
    // A line of `…` alone stands for any lines.
    let (mut lines, mut is_cut) = (out.lines(), true);
    for pattern in shown.lines() {
        if pattern == "…" {
            is_cut = true;
            continue;
        }
        let found = if is_cut { lines.find(|line| fits(pattern, line)) } else { lines.next() };
        assert!(found.is_some_and(|line| fits(pattern, line)), "README.md shows {pattern:?}, not {found:?} of:\n{out}");
        is_cut = false;
    }
}
