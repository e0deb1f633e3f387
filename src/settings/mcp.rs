//! Settings of the Model Context Protocol: the organism as a server.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value};
use systole_core::vocab::Name;

/// The organism as a server of the Model Context Protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpSettings {
    /// The client that `systole mcp` speaks for, on standard input and output. Over HTTP the token names the client.
    pub client: Option<Name>,
    /// Origins of pages that may call over HTTP, such as `https://app.example`; those of this machine always may.
    pub origins: Vec<String>,
    /// Tools with another name than `listener.payload`, or more than its schema and its description.
    pub tools: Vec<McpTool>,
    /// Calls that are prompts, not tools.
    pub prompts: Vec<McpPrompt>,
    /// Resources that listeners read.
    pub resources: Vec<McpResource>,
    /// Agent Skills that are served beside that of the tools.
    pub skills: Vec<McpSkill>,
    /// Time for which the result of a task is kept: that of ended work in the journal.
    pub kept: Option<Duration>,
}

/// A tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpTool {
    /// The listener and the local name of the payload: `listener.payload`.
    pub call: String,
    /// The name of the tool; none for that of the call.
    pub name: Option<String>,
    /// The title for people.
    pub title: Option<String>,
    /// The description for models; none for those of the listener and the payload.
    pub description: Option<String>,
    /// True if the schema of the reply is listed.
    pub output: bool,
    /// Whether a call is a task, for a client that declares tasks.
    pub task: McpTask,
    /// True for a tool that changes nothing.
    pub read_only: Option<bool>,
    /// True for a tool that may destroy something.
    pub destructive: Option<bool>,
    /// True for a tool that may be called twice without another effect.
    pub idempotent: Option<bool>,
    /// True for a tool that reaches others than the organism.
    pub open_world: Option<bool>,
}

/// Whether calls of a tool are tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpTask {
    /// They are for clients that declare tasks; others wait for the answer.
    #[default]
    Auto,
    /// They are not: the tool answers at once.
    Never,
    /// They are, and other clients are refused.
    Required,
    /// As required, once the client has answered the first questions: these come before there is a task.
    AfterInput,
}

/// A prompt, which a listener writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpPrompt {
    /// The listener and the local name of the payload: `listener.payload`.
    pub call: String,
    /// The name of the prompt; none for that of the call.
    pub name: Option<String>,
    /// The title for people.
    pub title: Option<String>,
    /// The description; none for those of the listener and the payload.
    pub description: Option<String>,
}

/// A resource, which a listener reads, or a template of such.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpResource {
    /// The address; with `{name}` in it a template.
    pub uri: String,
    /// The listener that reads it.
    pub listener: Name,
    /// The name.
    pub name: String,
    /// The title for people.
    pub title: Option<String>,
    /// The description for models.
    pub description: Option<String>,
    /// The media type.
    pub mime: Option<String>,
}

/// An Agent Skill (<https://agentskills.io/specification>).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpSkill {
    /// The name, which is that of its folder: small letters, digits and single hyphens.
    pub name: String,
    /// The description for models.
    pub description: String,
    /// The other fields at the beginning of its `SKILL.md`.
    pub more: Map<String, Value>,
    /// The files, `SKILL.md` among them.
    pub files: Vec<McpSkillFile>,
}

/// A file of a skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpSkillFile {
    /// The path below the folder of the skill, with `/` between its names.
    pub path: String,
    /// The content.
    pub bytes: Bytes,
}

impl McpResource {
    /// A resource that a listener reads.
    pub fn new(uri: impl Into<String>, name: impl Into<String>, listener: Name) -> Self {
        Self { uri: uri.into(), listener, name: name.into(), title: None, description: None, mime: None }
    }
}
