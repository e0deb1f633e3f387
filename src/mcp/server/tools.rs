//! The tools of a client: the payloads that it calls, each to one listener. So are prompts that listeners write.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rmcp::model::{JsonObject, Prompt, PromptArgument, Tool, ToolAnnotations};
use serde_json::Value;
use systole_core::core::{Contract, Party};
use systole_core::protocol::boot_qname;
use systole_core::vocab::{Name, QName, ns};
use systole_xml::schema::{Payload, PayloadSchema};

use super::directory::Form;
use super::skill::Served;
use crate::mcp::content::{Content, Read};
use crate::runtime::Organism;
use crate::settings::{McpPrompt, McpSettings, McpTask, McpTool};

/// Most characters of a description, which are some 200 tokens: lists take the room of a model's context.
const DESCRIPTION: usize = 800;
/// Most bytes of a tool's name (revision 2025-11-25, tool names).
const NAME: usize = 128;

/// The tools and prompts of a client, in the order of its calls.
pub(super) struct Tools {
    pub(super) tools: Vec<Tool>,
    pub(super) prompts: Vec<Prompt>,
    /// The skill that tells how to call them.
    pub(super) skill: Option<Served>,
    calls: HashMap<String, Call>,
    prompt_calls: HashMap<String, Call>,
}

/// A payload to a listener.
pub(super) struct Call {
    pub(super) listener: Name,
    pub(super) schema: PayloadSchema,
    /// Whether calls are tasks.
    pub(super) task: McpTask,
}

impl Tools {
    /// The tools of a client.
    pub(super) fn of(organism: &Organism, settings: &McpSettings, client: &Name) -> Self {
        let (blueprint, catalog) = (organism.blueprint(), organism.catalog());
        let mut made = Self {
            tools: Vec::new(),
            prompts: Vec::new(),
            skill: None,
            calls: HashMap::new(),
            prompt_calls: HashMap::new(),
        };
        let Some(party @ Party::Client(_)) = blueprint.party(client.as_str()) else { return made };
        let mut taken = HashSet::new();
        for payload in blueprint.calls(party).iter().filter(|payload| is_offered(payload)) {
            let Some(schema) = catalog.get(payload) else { continue };
            for contract in blueprint.accepting(payload).iter().filter_map(|id| blueprint.listener(*id)) {
                let call = format!("{}.{}", contract.name, payload.local());
                let accepted = contract.accepts.iter().filter(|accepted| **accepted != boot_qname());
                let accepted = accepted.filter_map(|accepted| catalog.get(accepted)).map(PayloadSchema::description);
                let told = described(&contract.description, schema.description(), accepted);
                if let Some(prompt) = settings.prompts.iter().find(|prompt| prompt.call == call) {
                    let name = free(&mut taken, prompt.name.as_ref().unwrap_or(&call));
                    made.prompts.push(prompt_of(&name, prompt, told, schema));
                    made.prompt_calls.insert(name, Call::new(contract, schema, McpTask::Never));
                    continue;
                }
                let set = settings.tools.iter().find(|tool| tool.call == call).cloned().unwrap_or_default();
                let name = free(&mut taken, set.name.as_ref().unwrap_or(&call));
                let output = set.output.then(|| output(contract, |reply| catalog.get(reply))).flatten();
                made.tools.push(tool(&name, &set, told, schema, output));
                made.calls.insert(name, Call::new(contract, schema, set.task));
            }
        }
        let told = made.tools.iter().filter_map(|tool| {
            Some((&*tool.name, tool.description.as_deref().unwrap_or_default(), &made.calls.get(&*tool.name)?.schema))
        });
        made.skill = Served::of_tools(&blueprint.organism, told);
        made
    }

    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    pub(super) fn call(&self, name: &str) -> Option<&Call> {
        self.calls.get(name)
    }

    pub(super) fn prompt(&self, name: &str) -> Option<&Call> {
        self.prompt_calls.get(name)
    }

    /// The names of the tools, for a caller that has none of them.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}

impl Call {
    fn new(contract: &Contract, schema: &PayloadSchema, task: McpTask) -> Self {
        Self { listener: contract.name.clone(), schema: schema.clone(), task }
    }

    /// The call that reads a resource, where its listener does so and the client may call it.
    pub(super) fn read(organism: &Organism, client: &Name, listener: &Name) -> Option<Self> {
        let (blueprint, read) = (organism.blueprint(), Read::qname());
        let party = blueprint.party(client.as_str()).filter(|party| blueprint.may_call(*party, &read))?;
        debug_assert!(matches!(party, Party::Client(_)), "{client} has come in");
        let mut accepting = blueprint.accepting(&read).iter().filter_map(|id| blueprint.listener(*id));
        let contract = accepting.find(|contract| contract.name == *listener)?;
        Some(Self::new(contract, organism.catalog().get(&read)?, McpTask::Never))
    }
}

/// Returns whether a payload is a tool where a client calls it: those of the pump are not, nor are reads of resources.
fn is_offered(payload: &QName) -> bool {
    let is_own = matches!(payload.namespace(), ns::CORE | ns::META | ns::ENVELOPE);
    !is_own && *payload != boot_qname() && *payload != Read::qname()
}

/// A name of the protocol's characters that no other tool has.
fn free(taken: &mut HashSet<String>, wanted: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let plain: String = wanted.chars().map(|c| if is_plain(c) { c } else { '_' }).take(NAME).collect();
    let mut name = plain.clone();
    for number in 2.. {
        if taken.insert(name.clone()) {
            break;
        }
        let number = format!("-{number}");
        name = format!("{}{number}", &plain[..plain.len().min(NAME - number.len())]);
    }
    name
}

/// The description of a tool: that of its payload, or else that of its listener.
fn described<'t>(listener: &str, payload: &str, accepted: impl Iterator<Item = &'t str>) -> String {
    let payload = shortened(payload);
    if !payload.is_empty() {
        return payload;
    }
    // A listener without a description is told by all its payloads, of which the client may call others, or none.
    let made = accepted.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    if made == listener { String::new() } else { shortened(listener) }
}

/// A text of at most some 200 tokens, cut between two words.
fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((end, _)) = text.char_indices().nth(DESCRIPTION) else { return text };
    let cut = text[..end].rsplit_once(' ').map_or(&text[..end], |(cut, _)| cut);
    format!("{cut} …")
}

fn tool(name: &str, set: &McpTool, told: String, schema: &PayloadSchema, output: Option<JsonObject>) -> Tool {
    let description = set.description.clone().unwrap_or(told);
    let mut tool = Tool::new(name.to_owned(), description, Arc::new(lean(schema.json_schema())));
    if let Some(title) = &set.title {
        tool = tool.with_title(title);
    }
    if let Some(output) = output {
        tool = tool.with_raw_output_schema(Arc::new(output));
    }
    let hints = [set.read_only, set.destructive, set.idempotent, set.open_world];
    if hints.iter().any(Option::is_some) {
        let mut annotations = ToolAnnotations::new();
        [
            annotations.read_only_hint,
            annotations.destructive_hint,
            annotations.idempotent_hint,
            annotations.open_world_hint,
        ] = hints;
        tool = tool.with_annotations(annotations);
    }
    tool
}

/// The schema of an only reply, if it has one: others name themselves, which a schema can't tell in short.
fn output<'a>(contract: &Contract, schema: impl Fn(&QName) -> Option<&'a PayloadSchema>) -> Option<JsonObject> {
    let [reply] = &contract.replies[..] else { return None };
    (*reply != Content::qname()).then(|| schema(reply)).flatten().map(|schema| lean(schema.json_schema()))
}

/// A schema without its dialect, its title and examples: a host knows them, or gets them with a refusal.
fn lean(schema: &Value) -> JsonObject {
    let mut object = schema.as_object().cloned().unwrap_or_default();
    ["$schema", "title", "examples"].into_iter().for_each(|key| _ = object.remove(key));
    object
}

fn prompt_of(name: &str, set: &McpPrompt, told: String, schema: &PayloadSchema) -> Prompt {
    let object = schema.json_schema();
    let required: Vec<&str> = object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let argument = |(name, value): (&String, &Value)| {
        let argument = PromptArgument::new(name).with_required(required.contains(&name.as_str()));
        let form = Form::of(object, value);
        let written = (form != Form::Text).then(|| format!("Write {}.", form.words()));
        let about = value["description"].as_str().map(str::to_owned).into_iter().chain(written).collect::<Vec<_>>();
        if about.is_empty() { argument } else { argument.with_description(about.join(" ")) }
    };
    let arguments: Vec<_> = object["properties"].as_object().into_iter().flatten().map(argument).collect();
    let description = set.description.clone().unwrap_or(told);
    let prompt = Prompt::new(name, Some(description), (!arguments.is_empty()).then_some(arguments));
    match &set.title {
        Some(title) => prompt.with_title(title),
        None => prompt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_differ() {
        let mut taken = HashSet::new();
        assert_eq!(free(&mut taken, "desk.order"), "desk.order");
        assert_eq!(free(&mut taken, "desk.order"), "desk.order-2");
        assert_eq!(free(&mut taken, "desk.größe"), "desk.gr__e");
        let long = free(&mut taken, &"x".repeat(300));
        assert_eq!(long.len(), NAME);
        let next = free(&mut taken, &"x".repeat(300));
        assert!(next.len() <= NAME && next.ends_with("-2"), "{next}");
    }

    #[test]
    fn a_tool_is_described_by_its_own_payload() {
        let all = || ["Counts a shelf.", "", "Loads a skill: \n- fees: How to do fees."].into_iter();
        let made = "Counts a shelf. Loads a skill: - fees: How to do fees.";
        assert_eq!(described(made, "Counts a shelf.", all()), "Counts a shelf.");
        assert_eq!(described(made, "", all()), "", "the words are those of other payloads");
        assert_eq!(described("Keeps the stock.", "", all()), "Keeps the stock.");
        assert_eq!(described("Keeps the stock.", "Counts a\n shelf.", all()), "Counts a shelf.");
    }

    #[test]
    fn a_long_description_is_cut_between_words() {
        let cut = shortened(&"word ".repeat(400));
        assert!(cut.chars().count() <= DESCRIPTION + 2 && cut.ends_with("word …"), "{cut}");
        assert_eq!(shortened(" two\n words "), "two words");
    }
}
