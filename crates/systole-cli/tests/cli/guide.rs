//! The organisms of the guide: each, whole or in part, is accepted by `systole check`, and those that are whole answer where no
//! other party has to.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::kit::Scratch;

const PROGRAM: &str = env!("CARGO_BIN_EXE_systole");

/// An empty folder, removed at the end.
struct Folder(Scratch);

impl Folder {
    fn new(name: &str) -> Self {
        Self(Scratch::new(&format!("guide-{name}")))
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

/// The blocks of code of a page: language and text.
pub(crate) fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("\n```").skip(1).step_by(2);
    fenced.filter_map(|block| block.split_once('\n')).collect()
}

#[test]
fn each_kind_of_listener_is_an_organism() {
    let page = include_str!("../../../../docs/listeners.md");
    let blocks = blocks(page);
    let folder = Folder::new("listeners");
    let files =
        [("xml", "schema.xsd", "<xs:schema"), ("python", "agent.py", "import"), ("yaml script", "script.yaml", "- ")];
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

/// A fragment with what it leaves out, so that it is a whole organism.
fn completed(fragment: &str) -> String {
    let mut organism = format!("{fragment}\n");
    let has = |organism: &str, key: &str| organism.lines().any(|line| line.starts_with(key));
    if has(fragment, "organism:") {
        return organism;
    }
    organism += "organism: { name: fragment }\n";
    if !has(fragment, "listeners:") {
        organism += "listeners:\n  - { name: planner, model: {}, schemas: [planner.xsd], accepts: [\"{urn:planner}task\"], \
                     replies: [\"{urn:planner}plan\"] }\n";
    }
    if organism.contains("model:") && !has(fragment, "llm:") {
        organism += "llm: { backends: [{ name: script, provider: scripted, script: script.yaml, \
                     price: { input: 0, output: 0 } }] }\n";
    }
    if organism.contains("remote:") && !has(fragment, "gateway:") {
        let is_molecule = organism.contains("format: molecule");
        organism += &format!("gateway: {{ listen: 127.0.0.1:0, molecule: {is_molecule} }}\n");
    }
    // A database has its own.
    if has(&organism, "gateway:") && !has(fragment, "durability:") && !has(fragment, "journal: postgres:") {
        organism += "durability: process\n";
    }
    organism
}

/// Writes the files that an organism names. A schema declares all words of the organism in the namespace that has the
/// name of its file, or else in the first.
fn write_files(folder: &Folder, organism: &str) {
    let words = organism.split(|c: char| !(c.is_ascii_alphanumeric() || "_.-".contains(c)));
    let words: BTreeSet<&str> = words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic())).collect();
    let parts = organism.split(|c: char| c.is_whitespace() || "\"{},".contains(c));
    let namespaces: Vec<&str> = parts.filter(|part| part.starts_with("urn:")).collect();
    let elements = words.iter().filter(|word| !word.contains('.'));
    let elements: String = elements.map(|word| format!("<xs:element name='{word}' type='xs:string'/>")).collect();
    let kebab = words.iter().filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
    let objects = kebab.map(|word| format!("\"{word}\": {{ \"type\": \"object\" }}")).collect::<Vec<_>>().join(", ");
    for file in words.iter().filter(|word| word.contains('.')) {
        if file.ends_with(".schema.json") {
            folder.write(file, &format!("{{ \"$defs\": {{ {objects} }} }}"));
        } else if let Some(name) = file.strip_suffix(".xsd") {
            let own = namespaces.iter().find(|namespace| namespace.contains(&format!(":{name}:")));
            let namespace = own.or(namespaces.first()).unwrap();
            let start = format!("xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='{namespace}'");
            folder.write(file, &format!("<xs:schema {start}>{elements}</xs:schema>"));
        } else if [".py", ".md", ".secret"].iter().any(|ending| file.ends_with(ending)) {
            folder.write(file, "# a file of the fragment\n");
        } else if file.ends_with(".jwks") {
            assert!(folder.run(&["key", "new", file]).status.success());
        } else if file.ends_with(".public") {
            assert!(folder.run(&["key", "new", "secret.jwks"]).status.success());
            fs::write(folder.0.join(file), folder.run(&["key", "show", "secret.jwks"]).stdout).unwrap();
        }
    }
    folder.write("cert.pem", include_str!("../../../../tests/fixtures/tls/cert.pem"));
    folder.write("key.pem", include_str!("../../../../tests/fixtures/tls/key.pem"));
}

/// An info string `yaml script` is the script of a backend; `yaml` is an organism, or keys of one.
#[test]
fn each_fragment_is_part_of_an_organism() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut checked = 0;
    for path in pages.chain([root.join("README.md")]) {
        let page = fs::read_to_string(&path).unwrap();
        for (language, fragment) in blocks(&page) {
            let (fragment, script) = match language {
                "yaml" => (fragment, "- answer: Hello\n"),
                "yaml script" => ("", fragment),
                _ => continue,
            };
            if fragment.contains("format: molecule  ") && !cfg!(feature = "compat-molecule") {
                continue;
            }
            let folder = Folder::new("fragment");
            let organism = completed(fragment);
            write_files(&folder, &organism);
            folder.write("script.yaml", script);
            folder.write("organism.yaml", &organism);
            let output = folder.run(&["check", "organism.yaml"]);
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{}:\n{organism}\n{said}", path.display());
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} fragments found: the search is broken");
}

#[test]
fn the_page_of_keys_holds_the_reference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/keys.md");
    let page = fs::read_to_string(path).unwrap();
    let shown = blocks(&page)[0].1.trim_end();
    let reference = systole::config::REFERENCE.trim_end();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return fs::write(path, page.replacen(shown, reference, 1)).unwrap();
    }
    assert_eq!(shown, reference, "docs/keys.md: UPDATE_GOLDEN=1 writes it");
}

#[test]
fn the_core_answers_as_the_page_shows() {
    let page = include_str!("../../../../docs/core.md");
    let blocks = blocks(page);
    let folder = Folder::new("core");
    for (file, start) in [("schema.xsd", "<xs:schema"), ("organism.yaml", "organism:"), ("desk.py", "import")] {
        let found = blocks.iter().find(|(_, text)| text.starts_with(start));
        folder.write(file, found.unwrap_or_else(|| panic!("{file} is not there")).1);
    }
    let mut asked = 0;
    for (_, shown) in blocks.iter().filter(|(language, _)| *language == "console") {
        let (command, answer) = shown.split_once('\n').unwrap();
        let message = command.strip_prefix("$ systole ask organism.yaml '").and_then(|rest| rest.strip_suffix('\''));
        let output = folder.run(&["ask", "organism.yaml", message.unwrap_or_else(|| panic!("{command}"))]);
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), answer.trim_end(), "{command}");
        asked += 1;
    }
    assert_eq!(asked, 6, "the requests of the page were found");
}

#[test]
fn the_first_organisms_are_those_that_run() {
    let page = include_str!("../../../../docs/start.md");
    let folder = Folder::new("start");
    assert!(folder.run(&["new", "hello", "first"]).status.success());
    for file in ["organism.yaml", "schema.xsd", "greeter.py", "task.xml"] {
        assert!(page.contains(folder.read(&format!("first/{file}")).trim_end()), "docs/start.md: {file} differs");
    }
    let (_, program) = *blocks(include_str!("../../../../README.md")).iter().find(|(has, _)| *has == "rust").unwrap();
    assert!(page.contains(program), "docs/start.md: the program differs from the README's, which is built and run");
    let organism = folder.run(&["run", "first/organism.yaml", "first/task.xml", "--until-idle", "--quiet"]);
    let answer = folder.read("first/answer.xml");
    let printed = String::from_utf8(organism.stdout).unwrap();
    assert!(printed.contains(answer.trim_end()) && page.contains(answer.trim_end()), "{printed}");
}

#[test]
fn the_page_of_the_start_shows_what_its_commands_print() {
    let folder = Folder::new("start-shown");
    let mut current = folder.0.to_path_buf();
    for Shown { command, output } in shown(include_str!("../../../../docs/start.md")) {
        if let Some(inner) = command.strip_prefix("cd ") {
            current.push(inner);
            continue;
        }
        let printed = shell(&current, &format!("{command} 2>&1"));
        let printed = without_ids(&String::from_utf8(printed.stdout).unwrap());
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines.len(), output.len(), "{command} prints:\n{printed}");
        for expected in output.iter().map(|line| without_ids(line)) {
            let is_line = |line: &&str| match expected.strip_prefix("… ") {
                Some(end) => {
                    let start = line.strip_suffix(&format!(" {end}"));
                    start.and_then(|start| start.rsplit_once(' ')).is_some_and(|(_, id)| is_id_or_short(id))
                }
                None => **line == expected,
            };
            assert!(lines.iter().any(is_line), "{command} doesn't print\n{expected}\nbut\n{printed}");
        }
    }
}

/// Checks for a replaced id, or the last digits of one.
fn is_id_or_short(word: &str) -> bool {
    word == "ID" || word.len() == 8 && word.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// A text with `ID` for each id.
fn without_ids(text: &str) -> String {
    let is_id = |at: &usize| text.get(*at..at + 36).is_some_and(|id| id.parse::<uuid::Uuid>().is_ok());
    let mut out = String::new();
    let mut from = 0;
    while let Some(at) = (from..text.len()).find(is_id) {
        out += &text[from..at];
        out += "ID";
        from = at + 36;
    }
    out + &text[from..]
}

/// A command of a block `console`, with the output that the page shows.
struct Shown<'a> {
    command: &'a str,
    output: Vec<&'a str>,
}

fn shown(page: &str) -> Vec<Shown<'_>> {
    let mut all: Vec<Shown<'_>> = Vec::new();
    for (_, block) in blocks(page).into_iter().filter(|(language, _)| *language == "console") {
        for line in block.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => all.push(Shown { command, output: Vec::new() }),
                None => all.last_mut().expect("a block begins with a command").output.push(line),
            }
        }
    }
    all
}

/// Runs a command in a folder where `systole` is the program under test.
fn shell(folder: &Path, command: &str) -> Output {
    let path = format!("{}:{}", Path::new(PROGRAM).parent().unwrap().display(), std::env::var("PATH").unwrap());
    Command::new("sh").args(["-c", command]).current_dir(folder).env("PATH", path).output().unwrap()
}

#[test]
fn the_page_of_repair_shows_what_its_commands_print() {
    let folder = Folder::new("repair");
    folder.write("numbers.xsd", include_str!("../../../../examples/worker/numbers.xsd"));
    folder.write("add.xml", "<add xmlns='urn:example:numbers:v1'><a>1</a><b>2</b></add>");
    folder.write("answer.txt", "Sure: <sum value=3>");
    folder.write(
        "organism.yaml",
        "organism: { name: repair }\nclients: [{ name: cli, calls: [writer] }]\nlisteners:\n  \
         - { name: writer, echo: true, schemas: [numbers.xsd], accepts: ['{urn:example:numbers:v1}sum'] }\n",
    );
    let commands = shown(include_str!("../../../../docs/repair.md"));
    for Shown { command, output } in &commands {
        let run = shell(&folder.0, command);
        let (out, err) = (String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap());
        assert!(run.status.success(), "{command}: {err}");
        // The page shows no output where that of a valid or an unknown file is left to the reader.
        let printed: Vec<&str> = out.lines().chain(err.lines()).collect();
        assert!(output.is_empty() || *output == printed, "{command}: {printed:#?}");
    }
    assert_eq!(
        commands.iter().filter(|shown| !shown.output.is_empty()).count(),
        3,
        "the outputs of the page were found"
    );
}

#[test]
fn the_page_of_the_program_shows_what_its_command_prints() {
    // Ids differ from run to run.
    let without_ids = |text: &str| -> Vec<String> {
        let is_id = |part: &str| uuid::Uuid::try_parse(part).is_ok();
        text.split(['<', '>']).map(|part| if is_id(part) { "an id".to_owned() } else { part.to_owned() }).collect()
    };
    let commands = shown(include_str!("../../../../docs/program.md"));
    for Shown { command, output } in &commands {
        let run = shell(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), command);
        let printed = String::from_utf8(run.stdout).unwrap();
        assert_eq!(without_ids(printed.trim_end()), without_ids(&output.join("\n")), "{command}");
    }
    assert_eq!(commands.len(), 1, "the command of the page was found");
}
