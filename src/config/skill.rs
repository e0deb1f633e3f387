//! `mcp: { skills: [FOLDER] }`: Agent Skills (<https://agentskills.io/specification>), each a folder with a `SKILL.md`, which are read
//! whole with the file of the organism.
//!
//! Names that begin with a dot are left out, and a symbolic link is a mistake: what is served is what stands in the folder.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use serde_saphyr::{MessageFormatter, UserMessageFormatter};

use super::document::Node;
use super::mcp::wrong;
use super::mistake::Mistake;
use super::reader::Reader;
use crate::settings::{McpSkill, McpSkillFile, read_regular};

/// Most files of a skill, and most bytes of all of them: what each host accepts (specification/stable/skills.mdx, Limits).
const MOST: (usize, u64) = (512, 16 << 20);
/// Most folders within each other.
const DEPTH: usize = 16;
/// Most characters of a name and of a description (Agent Skills, frontmatter).
const TEXTS: (usize, usize) = (64, 1024);
/// The file that makes a folder a skill.
const MAIN: &str = "SKILL.md";

/// Reads the skill of a folder, relative to the file.
pub(super) fn read(reader: &mut Reader, node: &Node) -> Option<McpSkill> {
    let written = reader.text(node)?;
    let folder = reader.directory.join(written);
    let mut found = Found { files: Vec::new(), places: vec![folder.join(MAIN)], left: MOST.1 };
    let skill = found.skill(&folder);
    reader.files.append(&mut found.places);
    skill.map_err(|(problem, help)| reader.report(of_skill(written, &problem, help), node.span)).ok()
}

fn of_skill(written: &str, problem: &str, help: impl Into<String>) -> Mistake {
    wrong(format!("the skill '{written}' can't be served: {problem}"), help)
}

/// The mistake about a folder that is listed twice, or has the name of another one.
pub(super) fn taken(written: &str, name: &str) -> Mistake {
    of_skill(
        written,
        &format!("there is a skill '{name}' already"),
        "give one of them another name, and its folder, too",
    )
}

/// A problem, and its remedy.
type Problem = (String, String);

/// The files of a folder so far.
struct Found {
    files: Vec<McpSkillFile>,
    places: Vec<PathBuf>,
    /// Bytes that the skill may still have.
    left: u64,
}

impl Found {
    fn skill(&mut self, folder: &Path) -> Result<McpSkill, Problem> {
        self.collect(folder, "", 0)?;
        self.files.sort_by(|one, other| one.path.cmp(&other.path));
        let main = self.files.iter().find(|file| file.path == MAIN);
        let main = main.ok_or_else(|| {
            (format!("it has no {MAIN}"), "write one that begins with ---, name: and description:, and ---".to_owned())
        })?;
        let (name, description, more) = frontmatter(&main.bytes)?;
        let own = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if own != name {
            return Err((
                format!("its name is '{name}', and its folder '{own}'"),
                "give both the same name".to_owned(),
            ));
        }
        Ok(McpSkill { name, description, more, files: std::mem::take(&mut self.files) })
    }

    fn collect(&mut self, folder: &Path, within: &str, depth: usize) -> Result<(), Problem> {
        let unreadable = |path: &Path, error: std::io::Error| {
            let help = "check the path, which is relative to organism.yaml, and its permissions";
            (format!("{} can't be read: {error}", path.display()), help.to_owned())
        };
        if depth > DEPTH {
            let help = "put its files nearer to SKILL.md".to_owned();
            return Err((format!("more than {DEPTH} folders stand within each other"), help));
        }
        for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
            let entry = entry.map_err(|error| unreadable(folder, error))?;
            let (path, name) = (entry.path(), entry.file_name());
            let Some(name) = name.to_str() else {
                return Err((format!("{} is no UTF-8", path.display()), "rename the file".to_owned()));
            };
            if name.starts_with('.') {
                continue;
            }
            let kind = entry.file_type().map_err(|error| unreadable(&path, error))?;
            let inner = if within.is_empty() { name.to_owned() } else { format!("{within}/{name}") };
            if kind.is_symlink() {
                return Err((format!("{inner} is a symbolic link"), "put a copy of the file there".to_owned()));
            }
            if kind.is_dir() {
                self.collect(&path, &inner, depth + 1)?;
                continue;
            }
            if self.files.len() == MOST.0 {
                let help = "hosts accept no more: make two skills of it".to_owned();
                return Err((format!("it has more than {} files", MOST.0), help));
            }
            let bytes = read_regular(&path, self.left).map_err(|error| match error.kind() {
                std::io::ErrorKind::FileTooLarge => {
                    let help = "hosts accept no more: leave some out, or make two skills of it".to_owned();
                    (format!("its files have more than {} bytes", MOST.1), help)
                }
                _ => unreadable(&path, error),
            })?;
            self.left -= bytes.len() as u64;
            self.places.push(path);
            self.files.push(McpSkillFile { path: inner, bytes: bytes.into() });
        }
        Ok(())
    }
}

/// The name, the description and the other fields at the beginning of a `SKILL.md`.
fn frontmatter(main: &[u8]) -> Result<(String, String, Map<String, Value>), Problem> {
    let form = || "begin the file with ---, then name: NAME and description: TEXT, then ---".to_owned();
    let text =
        std::str::from_utf8(main).map_err(|_| (format!("its {MAIN} is no UTF-8"), "save it as UTF-8".to_owned()))?;
    let rest = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"));
    let lines = rest.and_then(|rest| {
        let mut at = 0;
        for line in rest.split_inclusive('\n') {
            if line.trim_end() == "---" {
                return Some(&rest[..at]);
            }
            at += line.len();
        }
        None
    });
    let lines = lines.ok_or_else(|| (format!("its {MAIN} has no fields between two lines of ---"), form()))?;
    let options = serde_saphyr::options! { with_snippet: false, budget: serde_saphyr::budget! { max_depth: 64 } };
    let mut fields: Map<String, Value> = serde_saphyr::from_str_with_options(lines, options).map_err(|error| {
        let why = UserMessageFormatter.format_message(&error).into_owned();
        (format!("the fields of its {MAIN} are no mapping of YAML: {why}"), form())
    })?;
    let mut text = |field: &str, most: usize| match fields.remove(field) {
        Some(Value::String(text)) if (1..=most).contains(&text.trim().chars().count()) => Ok(text),
        Some(_) => Err((format!("its {field} is no text of 1 to {most} characters"), format!("shorten {field}"))),
        None => Err((format!("its {MAIN} has no {field}"), form())),
    };
    let (name, description) = (text("name", TEXTS.0)?, text("description", TEXTS.1)?);
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.chars().all(is_plain) || name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        let help = "write small letters, digits, and single hyphens between them".to_owned();
        return Err((format!("'{name}' is no name of a skill"), help));
    }
    Ok((name, description, fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_skill_are_all_kept() {
        let text = "---\nname: refunds\ndescription: \"Pays: back\"\nlicense: MIT\nmetadata:\n  version: \"2.1\"\n---\n# Refunds\n";
        let (name, description, more) = frontmatter(text.as_bytes()).unwrap();
        assert_eq!((&*name, &*description), ("refunds", "Pays: back"));
        assert_eq!(Value::Object(more), serde_json::json!({ "license": "MIT", "metadata": { "version": "2.1" } }));
        assert!(frontmatter(text.replace('\n', "\r\n").as_bytes()).is_ok());
    }

    #[test]
    fn a_skill_that_hosts_would_refuse_is_a_mistake() {
        let long = format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1025));
        for (text, why) in [
            ("# Refunds\n", "no fields"),
            ("---\nname: a\ndescription: b\n", "no fields"),
            ("---\n- a\n---\n", "no mapping"),
            ("---\nname: a\n---\n", "has no description"),
            ("---\ndescription: a\n---\n", "has no name"),
            ("---\nname: 7\ndescription: a\n---\n", "its name is no text"),
            ("---\nname: Refunds\ndescription: a\n---\n", "'Refunds' is no name"),
            ("---\nname: a--b\ndescription: a\n---\n", "'a--b' is no name"),
            (&long, "description is no text of 1 to 1024"),
        ] {
            let (problem, help) = frontmatter(text.as_bytes()).unwrap_err();
            assert!(problem.contains(why) && !help.is_empty(), "{text}: {problem}");
        }
    }
}
