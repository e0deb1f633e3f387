//! Skills of a server (extension `io.modelcontextprotocol/skills`, SEP-2640), loaded on demand: a payload names one, and the reply
//! has its instructions.
//!
//! Invariant: nothing of a skill reaches a listener that was not there when the server was imported. The entry of the skill is
//! read anew for each load and compared with the lock, and so is the digest of the file that is read. A load changes nothing at
//! the server, so it is repeated if a connection ends.

use std::rc::Rc;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use rmcp::RoleClient;
use rmcp::model::{
    ErrorCode, GetSkillRequestParams, ListSkillsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ResourceContents, SKILL_MD, Skill, SkillResource, SkillResources,
};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;
use systole_core::core::{Failure, HandlerOutcome, Message};
use systole_core::vocab::{Fault, FaultCode};
use systole_xml::ladder::Raw;
use systole_xml::ladder::escape::carriable;
use systole_xml::schema::encode;
use tokio::time::{sleep, timeout};

use super::call::{Called, repeated};
use super::raw;
use super::session::{Session, told};
use crate::listeners::fleet::{Lost, ProcessEnd, failed};
use crate::listeners::mcp::{LockedSkill, McpListenerSettings, SkillFacts, SkillFile};
use crate::mcp::content::{Block, Body, Content, Link, Resource, Text};
use crate::process::run::LINGER;
use crate::runtime::RunContext;
use crate::terminal::readable;

/// Pages of a list, and skills, at most.
const PAGES: usize = 100;
const SKILLS: usize = 500;
/// Files of one skill, and bytes of its description, at most (specification/stable/skills.mdx, Limits; Agent Skills).
const FILES: usize = 512;
const DESCRIPTION: usize = 4096;

/// Remarks on skills, and characters of a name in one, at most.
const REMARKS: usize = 20;
const NAME: usize = 100;

/// The skills of a server as an import takes them, and remarks on those that are left out. None of a server without the
/// extension.
///
/// # Errors
/// The reason why the list can't be read: nothing is known of the skills then.
pub(super) async fn list(peer: &Peer<RoleClient>) -> Result<(Vec<SkillFacts>, Vec<String>), String> {
    let (all, mut remarks) = listed(peer).await?;
    let more = remarks.len().saturating_sub(REMARKS);
    if more > 0 {
        remarks.truncate(REMARKS);
        remarks.push(format!("and {more} more remarks on skills of the server"));
    }
    Ok((all, remarks))
}

async fn listed(peer: &Peer<RoleClient>) -> Result<(Vec<SkillFacts>, Vec<String>), String> {
    let has_skills = peer.peer_info().is_some_and(|info| info.capabilities.supports_skills());
    if !has_skills {
        return Ok((Vec::new(), Vec::new()));
    }
    let (mut all, mut remarks) = (Vec::<SkillFacts>::new(), Vec::new());
    let (mut cursor, mut number) = (None, 0);
    for _ in 0..PAGES {
        let page = peer.list_skills(Some(PaginatedRequestParams::default().with_cursor(cursor))).await;
        let ListSkillsResult { skills, next_cursor, .. } =
            page.map_err(|error| format!("it does not list them: {}", told(&error)))?;
        for skill in skills {
            number += 1;
            let read = entry(&raw::entry(&skill));
            let facts = read.and_then(|skill| facts(&skill).map_err(|why| (Some(skill.name().to_owned()), why)));
            match facts {
                Ok(facts) if all.iter().any(|known| known.name == facts.name) => remarks.push(format!(
                    "the server lists two skills of the name '{}': the first one is taken",
                    readable(&facts.name)
                )),
                Ok(facts) => all.push(facts),
                Err((name, why)) => {
                    let which = match name {
                        Some(name) => format!("'{}'", readable(&name.chars().take(NAME).collect::<String>())),
                        None => format!("number {number} of its list"),
                    };
                    remarks.push(format!("the skill {which} of the server is left out: {why}"));
                }
            }
        }
        if all.len() > SKILLS {
            remarks.insert(0, format!("the server has more than {SKILLS} skills: the first {SKILLS} are taken"));
            all.truncate(SKILLS);
            return Ok((all, remarks));
        }
        cursor = next_cursor;
        if cursor.is_none() {
            return Ok((all, remarks));
        }
    }
    let why =
        format!("the list of the server's skills has more than {PAGES} pages: those of the first {PAGES} are taken");
    remarks.insert(0, why);
    Ok((all, remarks))
}

/// An entry of a list of skills.
///
/// # Errors
/// The name of the skill, if it has one, and the field that is wrong.
fn entry(text: &str) -> Result<Skill, (Option<String>, String)> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| (None, format!("its entry can't be read as JSON: {error}")))?;
    let name = || value.pointer("/frontmatter/name").and_then(Value::as_str).map(str::to_owned);
    let is_text = |value: &Value, at: &str| value.pointer(at).is_some_and(Value::is_string);
    for (at, field) in [
        ("/uri", "uri"),
        ("/frontmatter/name", "frontmatter.name"),
        ("/frontmatter/description", "frontmatter.description"),
    ] {
        if !is_text(&value, at) {
            return Err((name(), format!("its `{field}` is missing, or is no text")));
        }
    }
    let is_file = |file: &Value| is_text(file, "/uri") && is_text(file, "/digest") && file["size"].is_u64();
    let wrong = match value.get("resources") {
        Some(Value::Array(files)) => files.iter().position(|file| !is_file(file)).map(|at| {
            format!("`resources[{at}]` is no file: a file has the texts `uri` and `digest`, and `size`, a whole number")
        }),
        Some(Value::String(_)) => None,
        _ => Some("its `resources` is neither a list of files nor \"dynamic\"".to_owned()),
    };
    match wrong {
        Some(why) => Err((name(), why)),
        None => {
            let read = serde_json::from_value(value.clone());
            read.map_err(|error| (name(), readable(&error.to_string())))
        }
    }
}

/// The words of a server on a skill.
///
/// # Errors
/// The reason why it can't be loaded.
fn facts(skill: &Skill) -> Result<SkillFacts, String> {
    skill.validate().map_err(|error| readable(&error.to_string()))?;
    let SkillResources::Files(listed) = &skill.resources else {
        return Err("its files change (\"dynamic\"), so nothing would tell whether they are those that were imported"
            .to_owned());
    };
    if listed.len() > FILES {
        return Err(format!("it has {} files, more than {FILES}", listed.len()));
    }
    let description = &skill.frontmatter.description;
    if description.len() > DESCRIPTION {
        return Err(format!("its description has {} bytes, more than {DESCRIPTION}", description.len()));
    }
    let root = skill.uri.strip_suffix(SKILL_MD).unwrap_or(&skill.uri);
    let mut files: Vec<SkillFile> = listed
        .iter()
        .map(|SkillResource { uri, digest, size, .. }| SkillFile {
            path: uri.strip_prefix(root).unwrap_or(uri).to_owned(),
            uri: uri.clone(),
            digest: digest.clone(),
            size: *size,
        })
        .collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(SkillFacts {
        name: skill.name().to_owned(),
        description: description.clone(),
        uri: skill.uri.clone(),
        more: skill.frontmatter.extra.clone(),
        files,
    })
}

/// The loader of a skill, for one message.
pub(super) struct Loader<'m> {
    settings: &'m McpListenerSettings,
    context: &'m RunContext,
    skill: &'m LockedSkill,
    file: &'m SkillFile,
}

/// The reason why a skill is not loaded.
enum Unloaded {
    Fault(Fault),
    /// The connection failed.
    Failed(ServiceError),
}

impl From<ServiceError> for Unloaded {
    fn from(error: ServiceError) -> Self {
        Self::Failed(error)
    }
}

impl<'m> Loader<'m> {
    /// Makes the loader of a message: finds the skill and its file.
    pub(super) fn new(
        settings: &'m McpListenerSettings,
        message: &Message,
        context: &'m RunContext,
    ) -> Result<Self, Fault> {
        let payload = message.body.written();
        let schema = context.catalog().get(payload.root());
        let schema = schema.ok_or_else(|| Fault::new(FaultCode::Internal, "a payload without a schema"))?;
        let asked: Asked = serde_json::from_str(&schema.to_json(&payload))
            .map_err(|error| Fault::new(FaultCode::Internal, error.to_string()))?;
        let lock = &settings.lock;
        let skill = lock.skills.iter().find(|skill| skill.facts.name == asked.name);
        let skill = skill.ok_or_else(|| {
            let names: Vec<_> = lock.skills.iter().map(|skill| skill.facts.name.as_str()).collect();
            let what = format!("there is no skill '{}': there are {}", readable(&asked.name), names.join(", "));
            Fault::new(FaultCode::Failed, what)
        })?;
        let path = asked.file.as_deref().unwrap_or(SKILL_MD);
        let file = skill.facts.files.iter().find(|file| file.path == path).ok_or_else(|| {
            let paths: Vec<_> = skill.facts.files.iter().map(|file| file.path.as_str()).collect();
            let name = &skill.facts.name;
            let what = format!("the skill '{name}' has no file '{}': it has {}", readable(path), paths.join(", "));
            Fault::new(FaultCode::Failed, what)
        })?;
        let most = context.limits().xml.message_bytes;
        if file.size > most as u64 {
            let SkillFile { path, size, .. } = file;
            let message = format!(
                "the file '{path}' of the skill '{}' has {size} bytes, more than the {most} of limits.message_bytes: raise it",
                skill.facts.name
            );
            return Err(Fault::new(FaultCode::Limit, message));
        }
        Ok(Self { settings, context, skill, file })
    }

    /// Loads the file. `sent` is called when the server may have got a request.
    pub(super) async fn call(&self, session: &Rc<Session>, sent: impl Fn()) -> Called {
        let Some(peer) = session.peer() else { return Called::Lost(session.ended().await) };
        sent();
        let silence = self.settings.silence;
        let silent = async {
            match silence {
                Some(silence) => sleep(silence).await,
                None => std::future::pending().await,
            }
        };
        let loaded = tokio::select! {
            biased;
            loaded = self.load(&peer) => loaded,
            end = session.ended() => return Called::Lost(end),
            () = silent => {
                session.doubt();
                return Called::Done(HandlerOutcome::Failed(Failure::passing(self.unanswered(silence.unwrap_or_default()))));
            }
        };
        let fault = match loaded {
            Ok(raw) => return Called::Done(HandlerOutcome::Wrote(raw)),
            Err(Unloaded::Fault(fault)) => Failure::passing(fault),
            Err(Unloaded::Failed(ServiceError::McpError(error))) => failed(
                format!("the MCP server failed to load the skill '{}': {}", self.name(), readable(&error.message)),
                false,
            ),
            // The end of the connection says why; a request over HTTP may fail without one.
            Err(Unloaded::Failed(error)) => match timeout(LINGER, session.ended()).await {
                Ok(end) => return Called::Lost(end),
                Err(_) => failed(format!("the MCP server gave no answer: {}", told(&error)), true),
            },
        };
        Called::Done(HandlerOutcome::Failed(fault))
    }

    /// The outcome of a message whose connection has ended; `None` if it is loaded again.
    pub(super) fn lost(&self, end: &ProcessEnd, lost: Lost) -> Option<HandlerOutcome> {
        repeated(self.context, end, lost)
    }

    fn name(&self) -> &str {
        &self.skill.facts.name
    }

    fn unanswered(&self, silence: Duration) -> Fault {
        let message = format!(
            "the MCP server did not answer within {silence:?}, so the skill '{}' is not loaded; where it takes long, write a longer `timeout`",
            self.name()
        );
        Fault::new(FaultCode::Timeout, message)
    }

    async fn load(&self, peer: &Peer<RoleClient>) -> Result<Raw, Unloaded> {
        let facts = &self.skill.facts;
        let entry = peer.get_skill(GetSkillRequestParams::new(facts.uri.as_str())).await;
        let now = match entry {
            Ok(entry) => self::facts(&entry.skill).map_err(|why| self.changed(&[why]))?,
            Err(ServiceError::McpError(error))
                if [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND].contains(&error.code) =>
            {
                return Err(self.changed(&[format!("it is gone: {}", readable(&error.message))]));
            }
            Err(error) => return Err(error.into()),
        };
        let mut found = Vec::new();
        facts.differences(&now, &mut found);
        if !found.is_empty() {
            return Err(self.changed(&found));
        }
        let read = peer.read_resource_once(ReadResourceRequestParams::new(self.file.uri.as_str())).await?;
        let ReadResourceResponse::Complete(read) = read else {
            let why = format!("the MCP server asks for input before it shows a file of the skill '{}'", self.name());
            return Err(Unloaded::Fault(Fault::new(FaultCode::Failed, why)));
        };
        let (bytes, mime) = match read.contents.into_iter().next() {
            Some(ResourceContents::TextResourceContents { text, mime_type, .. }) => (text.into_bytes(), mime_type),
            Some(ResourceContents::BlobResourceContents { blob, mime_type, .. }) => {
                let bytes = BASE64_STANDARD.decode(blob);
                (bytes.map_err(|error| self.changed(&[format!("its base64 is none: {error}")]))?, mime_type)
            }
            _ => return Err(self.changed(&["the file has no contents".to_owned()])),
        };
        let SkillFile { uri, digest, size, .. } = self.file;
        SkillResource::new(uri.as_str(), digest.as_str(), *size)
            .verify(&bytes)
            .map_err(|error| self.changed(&[readable(&error.to_string())]))?;
        self.written(bytes, mime)
    }

    /// The payload of a file; that of a `SKILL.md` names the other files.
    fn written(&self, bytes: Vec<u8>, mime: Option<String>) -> Result<Raw, Unloaded> {
        let SkillFile { path, uri, .. } = self.file;
        let mut blocks = vec![match String::from_utf8(bytes) {
            Ok(text) => Block::Text(Text { role: None, text: carriable(&text).into_owned() }),
            Err(error) => Block::Resource(Resource {
                uri: uri.clone(),
                mime: mime.map(|mime| carriable(&mime).into_owned()),
                role: None,
                body: Body::Blob(BASE64_STANDARD.encode(error.into_bytes())),
            }),
        }];
        if path == SKILL_MD {
            let others = self.skill.facts.files.iter().filter(|file| file.path != SKILL_MD);
            blocks.extend(others.map(|file| {
                let (uri, name) = (carriable(&file.uri).into_owned(), carriable(&file.path).into_owned());
                Block::Link(Link { uri, name, ..Link::default() })
            }));
        }
        let fault = |code, why: String| Unloaded::Fault(Fault::new(code, why));
        let written = encode(&Content { blocks }).map_err(|error| fault(FaultCode::Failed, error.to_string()))?;
        let (length, most) = (written.as_str().len(), self.context.limits().xml.message_bytes);
        match length > most {
            true => Err(fault(
                FaultCode::Limit,
                format!(
                    "the file '{path}' of the skill '{}' has {length} bytes as a message, more than the {most} of limits.message_bytes: raise it",
                    self.name()
                ),
            )),
            false => Ok(Raw::new(written.as_str().to_owned())),
        }
    }

    /// The refusal of a skill that is not the one that was imported.
    fn changed(&self, found: &[String]) -> Unloaded {
        let listener = &self.context.contract().name;
        let why = format!(
            "the skill '{}' of the MCP server '{listener}' is not the one that was imported: {}. If you trust the change, run `systole mcp import` again for '{listener}'",
            self.name(),
            found.join("; ")
        );
        tracing::error!(%listener, "{why}");
        Unloaded::Fault(Fault { retryable: false, ..Fault::new(FaultCode::ListenerFailed, why) })
    }
}

/// The payload that loads a skill, as JSON.
#[derive(serde::Deserialize)]
struct Asked {
    name: String,
    #[serde(default)]
    file: Option<String>,
}
