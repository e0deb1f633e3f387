//! The organisms that the guide shows whole: each is accepted by `systole check`, and answers where no other party has to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_systole");

/// An empty folder, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("guide-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap()
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(PROGRAM).args(args).current_dir(&self.0).output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The blocks of code of a page: language and text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("\n```").skip(1).step_by(2);
    fenced.filter_map(|block| block.split_once('\n')).collect()
}

#[test]
fn each_kind_of_listener_is_an_organism() {
    let page = include_str!("../../../docs/listeners.md");
    let blocks = blocks(page);
    let folder = Folder::new("listeners");
    let files = [("xml", "schema.xsd", "<xs:schema"), ("python", "agent.py", "import"), ("yaml", "script.yaml", "- ")];
    for (language, file, start) in files {
        let found = blocks.iter().find(|(has, text)| *has == language && text.starts_with(start));
        folder.write(file, found.unwrap_or_else(|| panic!("{file} is not there")).1);
    }
    let (mut checked, mut asked) = (0, 0);
    for (_, organism) in blocks.iter().filter(|(_, text)| text.starts_with("organism:")) {
        folder.write("organism.yaml", organism);
        let output = folder.run(&["check", "organism.yaml"]);
        assert!(output.status.success(), "{organism}\n{output:?}");
        checked += 1;
        // People, agents elsewhere and owners of jobs answer in their own time.
        if ["human:", "remote:", "job:"].iter().any(|kind| organism.contains(kind)) {
            continue;
        }
        let output = folder.run(&["ask", "organism.yaml", "<hello>Ada</hello>"]);
        let answer = String::from_utf8(output.stdout).unwrap();
        let is_reply = answer.contains(" xmlns=\"urn:example:hello:v1\">") && !answer.contains("error");
        assert!(output.status.success() && is_reply, "{organism}\n{answer}");
        asked += 1;
    }
    assert_eq!((checked, asked), (7, 4), "the organisms of the page were found");
}

#[test]
fn the_first_organisms_are_those_that_run() {
    let page = include_str!("../../../docs/start.md");
    let folder = Folder::new("start");
    assert!(folder.run(&["new", "hello", "first"]).status.success());
    for file in ["organism.yaml", "schema.xsd", "task.xml"] {
        assert!(page.contains(folder.read(&format!("first/{file}")).trim_end()), "docs/start.md: {file} differs");
    }
    let (_, program) = *blocks(include_str!("../../../README.md")).iter().find(|(has, _)| *has == "rust").unwrap();
    assert!(page.contains(program), "docs/start.md: the program differs from the README's, which is built and run");
    let organism = folder.run(&["run", "first/organism.yaml", "first/task.xml", "--until-idle", "--quiet"]);
    let answer = folder.read("first/answer.xml");
    let printed = String::from_utf8(organism.stdout).unwrap();
    assert!(printed.contains(answer.trim_end()) && page.contains(answer.trim_end()), "{printed}");
}
