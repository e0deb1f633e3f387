//! Agent Skills, by the extension `io.modelcontextprotocol/skills` (SEP-2640): those of the settings, and one of each client's
//! tools, whose files tell how to call them.
//!
//! Not here: the rules of an entry (complete, digests, names), which the crate `rmcp` checks before it sends one.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rmcp::model::{
    DIRECTORY_MIME_TYPE, Resource, ResourceContents, SKILL_MD, Skill, SkillFrontmatter, SkillResource, SkillResources,
};
use systole_core::vocab::Name;
use systole_xml::schema::PayloadSchema;

use super::Face;
use super::tools::Tools;
use crate::settings::McpSkill;

/// The scheme of addresses.
const SCHEME: &str = "skill://";
/// Tools that a skill tells of, so that it has as many files as each host accepts.
const TOOLS: usize = 511;
/// Most characters of the skill's name, and of the names of tools in its description.
const SHOWN: (usize, usize) = (64, 600);
/// Characters of a name that stand in an address as they are.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A skill, and its files by their addresses.
pub(super) struct Served {
    pub(super) skill: Skill,
    files: BTreeMap<String, Bytes>,
}

impl Served {
    fn new(name: &str, frontmatter: SkillFrontmatter, files: impl IntoIterator<Item = (String, Bytes)>) -> Self {
        let root = format!("{SCHEME}{name}");
        let files: BTreeMap<String, Bytes> = files
            .into_iter()
            .map(|(path, bytes)| {
                let segments = path.split('/').map(|segment| utf8_percent_encode(segment, PLAIN).to_string());
                let uri = segments.fold(root.clone(), |uri, segment| uri + "/" + &segment);
                (uri, bytes)
            })
            .collect();
        let listed = files.iter().map(|(uri, bytes)| SkillResource::from_bytes(uri, bytes)).collect();
        let skill = Skill::new(format!("{root}/{SKILL_MD}"), frontmatter, SkillResources::Files(listed));
        Self { skill, files }
    }

    /// A skill of the settings.
    pub(super) fn of(skill: &McpSkill) -> Self {
        let more = skill.more.iter();
        let frontmatter = more.fold(SkillFrontmatter::new(&skill.name, &skill.description), |all, (key, value)| {
            all.with_field(key, value.clone())
        });
        Self::new(&skill.name, frontmatter, skill.files.iter().map(|file| (file.path.clone(), file.bytes.clone())))
    }

    /// The skill of a client's tools, under the name of the organism; none without tools.
    pub(super) fn of_tools<'t>(
        organism: &str,
        tools: impl Iterator<Item = (&'t str, &'t str, &'t PayloadSchema)>,
    ) -> Option<Self> {
        let (mut names, mut lines, mut files) = (String::new(), String::new(), Vec::new());
        for (tool, about, schema) in tools.take(TOOLS) {
            if names.len() < SHOWN.1 {
                names.push_str(if names.is_empty() { "" } else { ", " });
                names.push_str(tool);
            }
            lines.push_str(&format!("- [{tool}](references/{tool}.md): {about}\n"));
            let example = schema.example().map(|example| schema.to_json(example)).unwrap_or_default();
            let text = format!(
                "# {tool}\n\n{about}\n\nThe arguments are a JSON object, such as\n\n    {example}\n\nIt stands for this \
                 payload:\n\n{}\n",
                schema.words()
            );
            files.push((format!("references/{tool}.md"), Bytes::from(text)));
        }
        if files.is_empty() {
            return None;
        }
        let name = named(organism);
        let description =
            format!("How to call the tools of {organism}: {names}. Read the file of a tool before its first call.");
        // A text of JSON is one of YAML, too.
        let quoted = serde_json::Value::from(description.as_str());
        let main = format!("---\nname: {name}\ndescription: {quoted}\n---\n\n# The tools of {organism}\n\n{lines}");
        files.push((SKILL_MD.to_owned(), Bytes::from(main)));
        Some(Self::new(&name, SkillFrontmatter::new(&name, description), files))
    }

    /// The `SKILL.md` as a resource.
    fn listed(&self) -> Resource {
        let SkillFrontmatter { name, description, .. } = &self.skill.frontmatter;
        Resource::new(&self.skill.uri, name).with_description(description).with_mime_type(mime(SKILL_MD))
    }
}

/// A name of a skill for an organism: small letters, digits and single hyphens.
fn named(organism: &str) -> String {
    let plain = organism.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    let plain: String = plain.collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(SHOWN.0).collect();
    match name.trim_end_matches('-') {
        "" => "organism".to_owned(),
        name => name.to_owned(),
    }
}

/// The media type of a file, by its ending.
fn mime(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending).unwrap_or_default() {
        "md" => "text/markdown",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "xml" | "xsd" => "application/xml",
        "html" => "text/html",
        "csv" => "text/csv",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "pdf" => "application/pdf",
        _ => "text/plain",
    }
}

impl Face {
    /// Calls `each` with the skills of a client, those of the settings first.
    fn skills_of<T>(&self, client: &Name, each: impl FnMut(&Served) -> Option<T>) -> Vec<T> {
        let tools: Arc<Tools> = self.tools(client);
        let is_taken = |own: &&Served| self.skills.iter().any(|skill| skill.skill.uri == own.skill.uri);
        let own = tools.skill.as_ref().filter(|own| !is_taken(own));
        self.skills.iter().chain(own).filter_map(each).collect()
    }

    /// The entries of a client's skills.
    pub(super) fn skills(&self, client: &Name) -> Vec<Skill> {
        self.skills_of(client, |served| Some(served.skill.clone()))
    }

    /// The entry of a skill, by the address of its `SKILL.md`.
    pub(super) fn skill(&self, client: &Name, uri: &str) -> Option<Skill> {
        self.skills_of(client, |served| (served.skill.uri == uri).then(|| served.skill.clone())).pop()
    }

    /// The skills of the settings as resources: hosts without the extension find them so.
    pub(super) fn listed_skills(&self) -> impl Iterator<Item = Resource> {
        self.skills.iter().map(Served::listed)
    }

    /// The contents of a file of a skill.
    pub(super) fn skill_file(&self, client: &Name, uri: &str) -> Option<ResourceContents> {
        let contents = |served: &Served| {
            let bytes = served.files.get(uri)?;
            Some(match std::str::from_utf8(bytes) {
                Ok(text) => ResourceContents::text(text, uri).with_mime_type(mime(uri)),
                Err(_) => {
                    let kind = mime(uri);
                    let kind = if kind == "text/plain" { "application/octet-stream" } else { kind };
                    ResourceContents::blob(BASE64_STANDARD.encode(bytes), uri).with_mime_type(kind)
                }
            })
        };
        self.skills_of(client, contents).pop()
    }

    /// The direct children of a folder of skills; none if it is no folder.
    pub(super) fn skill_folder(&self, client: &Name, uri: &str) -> Option<Vec<Resource>> {
        let mut children = BTreeMap::new();
        self.skills_of(client, |served| {
            for inner in served.files.keys().filter_map(|file| file.strip_prefix(uri)?.strip_prefix('/')) {
                let (name, is_folder) = match inner.split_once('/') {
                    Some((folder, _)) => (folder, true),
                    None => (inner, false),
                };
                let kind = if is_folder { DIRECTORY_MIME_TYPE } else { mime(name) };
                let child = match name == SKILL_MD && served.skill.uri == format!("{uri}/{name}") {
                    true => served.listed(),
                    false => Resource::new(format!("{uri}/{name}"), name).with_mime_type(kind),
                };
                children.insert(name.to_owned(), child);
            }
            None::<()>
        });
        let is_folder = uri.starts_with(SCHEME) && uri.len() > SCHEME.len() && !children.is_empty();
        is_folder.then(|| children.into_values().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_organism_of_any_name_has_a_name_of_a_skill() {
        for (organism, name) in
            [("shop", "shop"), ("My Shop_2", "my-shop-2"), ("--a--", "a"), ("größe", "gr-e"), ("日本", "organism")]
        {
            assert_eq!(named(organism), name);
        }
        assert!(named(&"ab-".repeat(40)).len() <= 64);
    }

    #[test]
    fn the_skill_of_tools_is_one_that_hosts_accept() {
        let schemas = crate::mcp::schemas();
        let tools = schemas.iter().map(|schema| ("desk.order", "Takes \"orders\": all.", schema)).take(1);
        let served = Served::of_tools("My Shop", tools).unwrap();
        served.skill.validate().unwrap();
        assert_eq!(served.skill.uri, "skill://my-shop/SKILL.md");
        let main = std::str::from_utf8(&served.files["skill://my-shop/SKILL.md"]).unwrap();
        assert!(
            main.starts_with("---\nname: my-shop\ndescription: \"How to call the tools of My Shop: desk.order."),
            "{main}"
        );
        assert!(served.files.contains_key("skill://my-shop/references/desk.order.md"));
        assert!(Served::of_tools("shop", std::iter::empty()).is_none());
    }
}
