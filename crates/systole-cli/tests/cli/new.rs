//! `systole new`: each folder runs as its README says, is made whole or not at all, and overwrites nothing.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::kit::Scratch;

const PROGRAM: &str = env!("CARGO_BIN_EXE_systole");

/// A folder in which others are made.
struct Folder(Scratch);

impl Folder {
    fn new(name: &str) -> Self {
        Self(Scratch::new(&format!("new-{name}")))
    }

    fn make(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = Command::new(PROGRAM).arg("new").args(args).current_dir(&self.0).output().unwrap();
        assert!(output.stdout.is_empty(), "{output:?}");
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }

    fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }

    /// Makes an organism, and runs what its README says.
    fn as_its_readme_says(&self, kind: &str) {
        let name = format!("my-{kind}");
        let (code, said) = self.make(&[kind, &name]);
        assert_eq!(code, Some(0), "{said}");
        let folder = self.0.join(&name);
        let paths = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        for path in paths.filter(|path| path.is_file()) {
            let text = fs::read_to_string(&path).unwrap();
            assert!(!text.contains("NAME"), "{}:\n{text}", path.display());
        }
        let readme = fs::read_to_string(folder.join("README.md")).unwrap();
        assert!(readme.lines().count() <= 10, "a README of ten lines:\n{readme}");
        let commands: Vec<&str> = readme.lines().filter(|line| line.starts_with("    ")).collect();
        assert!(!commands.is_empty() && said.ends_with(&format!("{}\n", commands.join("\n"))), "{said}{readme}");
        let run = shell(&folder, &commands.join("\n"));
        let out = String::from_utf8(run.stdout).unwrap();
        let answer = fs::read_to_string(folder.join("answer.xml")).unwrap();
        let envelope = out.find(&format!("{}</message>\n", answer.trim_end()));
        let tested = out.strip_suffix("\nok\n");
        assert!(
            run.status.success() && envelope.is_some() && tested.is_some(),
            "{out}\n{}",
            String::from_utf8_lossy(&run.stderr)
        );
    }
}

/// Runs commands in a folder where `systole` is the program under test; what goes on in the background ends with them.
fn shell(folder: &Path, commands: &str) -> Output {
    let path = format!("{}:{}", Path::new(PROGRAM).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let commands = format!("trap 'kill $(jobs -p) 2>/dev/null || :' EXIT\n{commands}");
    Command::new("timeout")
        .args(["120", "sh", "-ec", &commands])
        .current_dir(folder)
        .env("PATH", path)
        .output()
        .unwrap()
}

#[test]
fn a_command_answers() {
    Folder::new("hello").as_its_readme_says("hello");
}

#[test]
fn a_worker_answers_with_the_package_of_the_sdk() {
    let scratch = Folder::new("worker");
    scratch.as_its_readme_says("worker");
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python/systole_sdk");
    let files = fs::read_dir(package).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut compared = 0;
    for file in files {
        let made = scratch.0.join("my-worker/systole_sdk").join(file.file_name().unwrap());
        assert_eq!(fs::read_to_string(made).unwrap(), fs::read_to_string(&file).unwrap(), "{}", file.display());
        compared += 1;
    }
    assert!(compared > 3, "only {compared} files of the package found");
}

#[test]
fn a_worker_answers_without_xml() {
    let scratch = Folder::new("json");
    let (code, said) = scratch.make(&["json", "my-json"]);
    assert_eq!(code, Some(0), "{said}");
    let folder = scratch.0.join("my-json");
    for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let text = fs::read_to_string(&entry).unwrap();
        assert!(
            !text.contains("NAME") && !text.contains("xmlns") && !text.contains("</"),
            "{}:\n{text}",
            entry.display()
        );
    }
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    let commands: Vec<&str> = readme.lines().filter(|line| line.starts_with("    ")).collect();
    let run = shell(&folder, &commands.join("\n"));
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let answer = fs::read_to_string(folder.join("answer.json")).unwrap();
    assert!(run.status.success() && out.starts_with(&answer) && out.ends_with("\nok\n"), "{out}\n{err}");
    assert!(out.contains(" 0 failed"), "{out}");
}

#[cfg(feature = "gateway")]
#[test]
fn a_model_answers_offline() {
    Folder::new("model").as_its_readme_says("model");
}

#[cfg(feature = "mcp")]
#[test]
fn a_shop_serves_hosts_and_uses_a_server() {
    let scratch = Folder::new("mcp");
    scratch.as_its_readme_says("mcp");
    let import = shell(&scratch.0.join("my-mcp"), "systole mcp import organism.yaml stock --dry-run");
    assert!(import.status.success(), "the lock file is that of its server: {import:?}");
    assert_eq!(String::from_utf8_lossy(&import.stdout), "", "{import:?}");
}

#[cfg(feature = "gateway")]
#[test]
fn an_agent_elsewhere_answers() {
    // Its port may be in use on this machine.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let scratch = Folder::new("remote");
    let (code, said) = scratch.make(&["remote", "far"]);
    assert_eq!(code, Some(0), "{said}");
    let folder = scratch.0.join("far");
    for file in ["README.md", "organism.yaml", "test.sh"] {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        assert!(text.contains(":8420"), "{file}:\n{text}");
        fs::write(folder.join(file), text.replace("8420", &free)).unwrap();
    }
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    let commands: Vec<&str> = readme.lines().filter(|line| line.starts_with("    ")).collect();
    let run = shell(&folder, &commands.join("\n"));
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let answer = fs::read_to_string(folder.join("answer.xml")).unwrap();
    let is_answered = out.contains(&format!("{}</message>\n", answer.trim_end()));
    assert!(run.status.success() && is_answered && out.ends_with("\nok\n"), "{out}\n{err}");
}

#[test]
fn a_program_in_rust_names_the_library() {
    // `scripts/outside` builds and runs it.
    let scratch = Folder::new("rust");
    let manifest = |name: &str| fs::read_to_string(scratch.0.join(name).join("Cargo.toml")).unwrap();
    let refused = |args: &[&str], why: &str| {
        let (code, said) = scratch.make(args);
        assert!(code == Some(2) && said.contains(why) && !scratch.has(args[1]), "{said}");
    };
    refused(&["rust", "here"], "neither this folder nor the folder systole is a checkout of it: name its folder");
    refused(&["rust", "here", "--systole", "nowhere"], "there is no checkout of Systole in nowhere");
    refused(&["rust", "async"], "'async' can't be the name of a crate");
    refused(&["rust", "1st"], "'1st' can't be the name of a crate: write letters");
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let checkout = checkout.to_str().unwrap();
    assert_eq!(scratch.make(&["rust", "by-path", "--systole", checkout]).0, Some(0));
    assert!(manifest("by-path").contains(&format!("systole = {{ path = \"{checkout}\" }}")), "{}", manifest("by-path"));
    assert_eq!(scratch.make(&["rust", "by-address", "--systole", "https://git.example/systole"]).0, Some(0));
    assert!(manifest("by-address").ends_with("systole = { git = \"https://git.example/systole\" }\n"));
    std::os::unix::fs::symlink(checkout, scratch.0.join("systole")).unwrap();
    assert_eq!(scratch.make(&["rust", "beside"]).0, Some(0));
    assert!(manifest("beside").contains("name = \"beside\"") && manifest("beside").contains("path = \"../systole\""));
    assert!(scratch.has("beside/src/main.rs"));
}

#[test]
fn a_name_is_that_of_a_folder_here() {
    let scratch = Folder::new("names");
    for name in ["", ".", "..", ".hidden", "a/b", "../up", "/tmp/there", "two words", "caf\u{e9}", "core"] {
        let (code, said) = scratch.make(&["hello", name]);
        assert!(code == Some(2) && said.contains("<NAME>"), "{name}: {said}");
    }
    // Words that YAML reads as something else.
    for name in ["true", "12", "null", "_"] {
        assert_eq!(scratch.make(&["hello", name]).0, Some(0));
        let check =
            Command::new(PROGRAM).arg("check").arg(scratch.0.join(name).join("organism.yaml")).output().unwrap();
        assert!(check.stdout.starts_with(format!("{name}: ok").as_bytes()), "{check:?}");
    }
}

#[test]
fn another_kind_is_refused_with_those_that_there_are() {
    let scratch = Folder::new("kinds");
    let (code, said) = scratch.make(&["foo", "x"]);
    let kinds = match (cfg!(feature = "mcp"), cfg!(feature = "gateway")) {
        (true, _) => "<hello|worker|json|model|rust|remote|mcp>",
        (false, true) => "<hello|worker|json|model|rust|remote>",
        (false, false) => "<hello|worker|json|rust>",
    };
    assert!(code == Some(2) && said.contains("'foo'") && said.contains(kinds) && !scratch.has("x"), "{said}");
    let output = Command::new(PROGRAM).args(["new", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let names = commands.lines().map_while(|line| line.strip_prefix("  ")?.split(' ').next());
    let names: Vec<&str> = names.filter(|name| !["", "help"].contains(name)).collect();
    assert_eq!(format!("<{}>", names.join("|")), kinds);
}

#[test]
fn what_is_there_stays() {
    let scratch = Folder::new("there");
    fs::create_dir(scratch.0.join("full")).unwrap();
    fs::write(scratch.0.join("full/task.xml"), "mine").unwrap();
    assert_eq!(
        scratch.make(&["hello", "full"]),
        (Some(2), "full exists and is not empty: name another folder\n".to_owned())
    );
    assert_eq!(fs::read_dir(scratch.0.join("full")).unwrap().count(), 1);
    fs::write(scratch.0.join("file"), "mine").unwrap();
    let (code, said) = scratch.make(&["hello", "file"]);
    assert!(code == Some(2) && said.starts_with("can't make file: "), "{said}");
    assert_eq!(fs::read_to_string(scratch.0.join("file")).unwrap(), "mine");
    fs::create_dir(scratch.0.join("empty")).unwrap();
    assert_eq!(scratch.make(&["hello", "empty"]).0, Some(0));
    assert!(scratch.has("empty/organism.yaml"));
}

#[test]
fn nothing_is_left_of_a_folder_that_could_not_be_made_whole() {
    let scratch = Folder::new("half");
    fs::create_dir(scratch.0.join("empty")).unwrap();
    for name in ["made", "empty"] {
        // A file of the package, behind the other files, is larger than a file may be.
        let limited = format!("ulimit -f 8; systole new worker {name}");
        let run = shell(&scratch.0, &limited);
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.code() == Some(2) && said.contains("systole_sdk/_json.py: File too large"), "{said}");
    }
    assert!(!scratch.has("made"));
    assert_eq!(fs::read_dir(scratch.0.join("empty")).unwrap().count(), 0);
}
