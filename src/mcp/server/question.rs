//! Questions of an organism to the caller of a conversation, as requests for input: forms, or raw requests of a listener.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use rmcp::model::{ClientCapabilities, InputRequest, InputRequests, InputResponses};
use serde_json::{Map, Value, json};
use systole_core::question::{Answerer, QuestionRefusal};
use systole_core::vocab::{Name, ThreadId, Time};
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::{Payload, PayloadSchema, decode_canonical, encode};

use super::Face;
use super::answer::words;
use crate::gateway::facade::Problem;
use crate::mcp::content::{Raw, Requests, Responses};
use crate::operations::{QuestionError, QuestionRecord, QuestionStateRecord, Wanted};

/// The property of a form for a text that has no name.
const ANSWER: &str = "answer";

/// Most characters of a host's error that a listener is told.
const ERROR: usize = 400;
/// Most calls of one client whose questions wait for an answer. Further calls that ask are refused.
const WAITING: usize = 128;
/// Time for which a question waits for its caller, if nobody else may answer it: as long as the state of its call is good. Then
/// it is declined, and its call ends.
pub(super) const PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Pause between two looks for questions that wait longer.
const LOOK: Duration = Duration::from_secs(3600);

/// A question that its caller may answer.
pub(super) struct Asking {
    pub(super) question: String,
    /// True if no other party may answer it.
    is_callers_alone: bool,
    /// The requests by their keys; none if they are none of the protocol.
    requests: Option<InputRequests>,
    form: Option<Form>,
    /// The answers to the calls that were made for it.
    told: Vec<String>,
}

/// The effect of an answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// It took effect, or the question is over.
    Reply,
    /// It made calls: the question comes again with their answers.
    Calls,
    /// It was none, or the question stays open.
    No,
}

/// Questions that a call needn't ask: those that are over, or that wait for the answers to calls of their person.
#[derive(Debug, Default)]
pub(super) struct Handled(HashMap<String, Option<Vec<String>>>);

impl Handled {
    /// Notes the effect of an answer to a question.
    pub(super) fn note(&mut self, asking: Asking, taken: Taken) {
        let told = match taken {
            Taken::Reply => None,
            Taken::Calls => Some(asking.told),
            Taken::No => return,
        };
        self.0.insert(asking.question, told);
    }

    /// Checks whether a question is over.
    fn is_over(&self, question: &str) -> bool {
        self.0.get(question).is_some_and(Option::is_none)
    }

    /// Checks whether a question waits for the answers to calls: those that it had then are all that it has.
    fn awaits_answers(&self, question: &QuestionRecord) -> bool {
        matches!(self.0.get(&question.question), Some(Some(told)) if *told == question.told)
    }
}

/// The way from a form back to a payload.
struct Form {
    /// The payload: {namespace}local; none if the answer names it.
    payload: Option<String>,
    /// The properties of the payload, by those of the form.
    properties: HashMap<String, String>,
}

impl Face {
    /// The open questions of a conversation to its caller, but for those that needn't be asked. `wrong` has the reasons why an earlier answer
    /// was none.
    pub(super) async fn questions(
        &self,
        conversation: ThreadId,
        but: &Handled,
        wrong: &HashMap<String, String>,
    ) -> Vec<Asking> {
        let Some(caller) = &self.caller else { return Vec::new() };
        let questions = self.app.organism().questions(caller.clone());
        let mut open = Vec::new();
        for record in questions.of(conversation).await {
            if but.is_over(&record.question) {
                continue;
            }
            // One that ended meanwhile asks nothing.
            let Ok(whole) = questions.look(&record.question).await else { continue };
            if but.awaits_answers(&whole) {
                continue;
            }
            let Ok(offers) = questions.offers(&record.question).await else { continue };
            open.push(self.asking(&whole, &offers, wrong.get(&record.question)));
        }
        open
    }

    /// Notes that a conversation of a client asks its caller; false if it is a new one, and the client has too many. Its calls
    /// of before the start of the process don't count.
    pub(super) fn may_ask(&self, client: &Name, conversation: ThreadId, is_new: bool) -> bool {
        let Some(caller) = &self.caller else { return true };
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if !asking.contains_key(&conversation) {
            let open = self.app.organism().questions(caller.clone()).conversations();
            asking.retain(|other, _| open.contains(other));
            if is_new && asking.values().filter(|other| *other == client).count() >= WAITING {
                return false;
            }
            asking.insert(conversation, client.clone());
        }
        true
    }

    /// The refusal of a call of a client that leaves too many questions without an answer.
    pub(super) fn too_many(client: &Name) -> Problem {
        let detail = format!(
            "{WAITING} calls of '{client}' wait for the answers to their questions, the most allowed: answer or cancel some, \
             and call again; each ends by itself {} days after its question",
            PATIENCE.as_secs() / (24 * 3600)
        );
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "questions", "Too many questions", detail)
    }

    /// Declines, as long as the organism runs, the questions that waited too long: their callers have left them.
    pub(super) async fn end_abandoned(self: Arc<Self>) {
        let Some(caller) = &self.caller else { return };
        loop {
            tokio::select! {
                () = self.app.stopping() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            let questions = self.app.organism().questions(caller.clone());
            let mut wanted = Wanted::default();
            // A journal that can't be read may be read at the next look.
            while let Ok(page) = questions.list(&wanted).await {
                for record in page.items.iter().filter(|record| is_abandoned(record, self.app.now())) {
                    let why = format!("the caller gave no answer within {} days", PATIENCE.as_secs() / (24 * 3600));
                    // It may have ended meanwhile.
                    let _ = questions.decline(&record.question, &why).await;
                }
                match page.next {
                    Some(next) => wanted.after = Some(next),
                    None => break,
                }
            }
        }
    }

    fn asking(&self, record: &QuestionRecord, offers: &[PayloadSchema], wrong: Option<&String>) -> Asking {
        let question = record.question.clone();
        let is_callers_alone = is_callers_alone(record);
        let organism = self.app.organism();
        let text = record.text.clone().unwrap_or_default();
        let payload = canonicalize(&Bytes::from(text.clone()), &organism.blueprint().limits.xml).ok();
        let raw = payload.as_ref().filter(|payload| *payload.root() == Requests::qname());
        if let Some(raw) = raw.and_then(|payload| decode_canonical::<Requests>(payload).ok()) {
            let requests = raw_requests(raw);
            return Asking { question, is_callers_alone, requests, form: None, told: record.told.clone() };
        }
        let said = payload.and_then(|payload| organism.shared.catalog_for(&payload)?.to_named_json(&payload));
        let said = said.and_then(|json| serde_json::from_str::<Map<String, Value>>(&json).ok()).map_or(text, |named| {
            match named.values().next() {
                Some(Value::String(text)) => text.clone(),
                _ => Value::Object(named).to_string(),
            }
        });
        let mut message = match wrong {
            Some(wrong) => format!("The last answer was refused: {wrong}\n\n{} asks: {said}", record.listener),
            None => format!("{} asks: {said}", record.listener),
        };
        if !record.told.is_empty() {
            message = format!("{message}\n\nThe answers to your calls:\n{}", record.told.join("\n"));
        }
        let (schema, form) = form(offers);
        let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
        let request = json!({ "method": "elicitation/create", "params": params });
        let requests = serde_json::from_value(request).ok().map(|request| [(question.clone(), request)].into());
        Asking { question, is_callers_alone, requests, form: Some(form), told: record.told.clone() }
    }

    /// Hands the answers in `responses` to a question of a client with these capabilities. A question without all of its answers
    /// stays open.
    pub(super) async fn answer(
        &self,
        asking: &Asking,
        able: Option<&ClientCapabilities>,
        responses: &InputResponses,
        wrong: &mut HashMap<String, String>,
    ) -> Taken {
        let (Some(caller), Some(requests)) = (&self.caller, asking.requests(able)) else { return Taken::No };
        let given: BTreeMap<&String, &Value> =
            requests.keys().filter_map(|key| Some((key, responses.get(key)?))).collect();
        if given.len() < requests.len() {
            return Taken::No;
        }
        self.settle(caller, asking, &given, wrong).await
    }

    /// Declines a question that the client can't be asked, unless others may answer it; returns whether it was. `failed` is the
    /// error of a client that was asked.
    pub(super) async fn unasked(&self, asking: &Asking, failed: Option<&str>) -> bool {
        let Some(caller) = &self.caller else { return false };
        if !asking.is_callers_alone {
            return false;
        }
        let why = match (failed, &asking.requests) {
            (Some(failed), _) => {
                &*format!("the caller's host has not asked: {}", failed.chars().take(ERROR).collect::<String>())
            }
            (None, Some(_)) => "the caller's host can't be asked: it doesn't declare the capability",
            (None, None) => "the requests are none of the protocol: write parameters as its schema has them",
        };
        let _ = self.app.organism().questions(caller.clone()).decline(&asking.question, why).await;
        true
    }

    async fn settle(
        &self,
        caller: &Answerer,
        asking: &Asking,
        given: &BTreeMap<&String, &Value>,
        wrong: &mut HashMap<String, String>,
    ) -> Taken {
        let questions = self.app.organism().questions(caller.clone());
        let Some(form) = &asking.form else {
            let raw =
                |(key, value): (&&String, &&Value)| Raw { key: key.to_string(), method: None, json: value.to_string() };
            let responses = Responses { response: given.iter().map(raw).collect() };
            let done = match encode(&responses) {
                Ok(payload) => questions.answer(&asking.question, payload.bytes().clone()).await,
                Err(error) => Err(QuestionError::Invalid(error.to_string())),
            };
            return settled(done, asking, wrong);
        };
        let Some(response) = given.values().next() else { return Taken::No };
        if response["action"] != "accept" {
            let why = match response["action"].as_str() {
                Some("decline") => "the caller declined to answer",
                Some("cancel") => "the caller dismissed the question",
                _ => {
                    let why = "an answer has an action: accept, decline or cancel";
                    wrong.insert(asking.question.clone(), why.to_owned());
                    return Taken::No;
                }
            };
            return settled(questions.decline(&asking.question, why).await, asking, wrong);
        }
        let json = form.payload(&response["content"]);
        let xml = match self.app.answer_as_xml(caller, &asking.question, json.as_bytes()).await {
            Ok(xml) => xml,
            Err(problem) => {
                wrong.insert(asking.question.clone(), words(&problem));
                return Taken::No;
            }
        };
        settled(questions.answer(&asking.question, xml).await, asking, wrong)
    }
}

/// Notes the reason why an answer was none. One that came too late counts as done: the conversation goes on.
fn settled(
    done: Result<QuestionStateRecord, QuestionError>,
    asking: &Asking,
    wrong: &mut HashMap<String, String>,
) -> Taken {
    match done {
        // Calls claim the question.
        Ok(state) if state.state == "claimed" => Taken::Calls,
        Ok(_) | Err(QuestionError::Unknown | QuestionError::Refused(QuestionRefusal::Over(_))) => Taken::Reply,
        Err(error) => {
            wrong.insert(asking.question.clone(), error.to_string());
            Taken::No
        }
    }
}

impl Asking {
    /// The capabilities that its requests need.
    pub(super) fn needs(&self) -> ClientCapabilities {
        let mut needed = json!({});
        for request in self.requests.iter().flatten().map(|(_, request)| request) {
            let name = match request {
                InputRequest::Elicitation(_) => "elicitation",
                InputRequest::CreateMessage(_) => "sampling",
                InputRequest::ListRoots(_) => "roots",
                _ => continue,
            };
            needed[name] = json!({});
        }
        serde_json::from_value(needed).unwrap_or_default()
    }

    /// The requests that a client with these capabilities can be asked, if there are any.
    pub(super) fn requests(&self, able: Option<&ClientCapabilities>) -> Option<InputRequests> {
        let requests = self.requests.as_ref()?;
        let possible = |request: &InputRequest| match request {
            InputRequest::Elicitation(_) => able.is_some_and(|able| able.elicitation.is_some()),
            InputRequest::CreateMessage(_) => able.is_some_and(|able| able.sampling.is_some()),
            InputRequest::ListRoots(_) => able.is_some_and(|able| able.roots.is_some()),
            _ => false,
        };
        let found: InputRequests = requests
            .iter()
            .filter(|(_, request)| possible(request))
            .map(|(key, one)| (key.clone(), one.clone()))
            .collect();
        (!found.is_empty()).then_some(found)
    }
}

/// Returns whether a question is for its caller alone.
fn is_callers_alone(record: &QuestionRecord) -> bool {
    record.people.len() == 1 && !record.operators
}

/// Returns whether a question has waited too long for its caller.
fn is_abandoned(record: &QuestionRecord, now: Time) -> bool {
    is_callers_alone(record) && record.since.parse::<Time>().is_ok_and(|since| now.since(since) > PATIENCE)
}

fn raw_requests(raw: Requests) -> Option<InputRequests> {
    let one = |raw: Raw| {
        let params: Value =
            if raw.json.trim().is_empty() { json!({}) } else { serde_json::from_str(&raw.json).ok()? };
        let request = json!({ "method": raw.method?, "params": params });
        Some((raw.key, serde_json::from_value(request).ok()?))
    };
    raw.request.into_iter().map(one).collect()
}

/// The form of an answer. One payload of plain values is a form of its own; all else is a text: JSON that names its payload.
fn form(offers: &[PayloadSchema]) -> (Value, Form) {
    if let [schema] = offers
        && let Some((form, properties)) = plain(schema.json_schema())
    {
        return (form, Form { payload: Some(schema.qname().to_string()), properties });
    }
    let examples: Vec<String> = offers
        .iter()
        .filter_map(|schema| Some(schema.to_named_json(schema.example()?, schema.qname().local())))
        .collect();
    let description = format!("JSON, an object of one property, which names the payload: {}", examples.join(" or "));
    let property = json!({ "type": "string", "description": description });
    let form = json!({ "type": "object", "properties": { ANSWER: property }, "required": [ANSWER] });
    (form, Form { payload: None, properties: HashMap::new() })
}

/// The form of an object whose properties are plain values, and the properties of the object by those of the form.
fn plain(schema: &Value) -> Option<(Value, HashMap<String, String>)> {
    const KEPT: [&str; 9] =
        ["type", "title", "description", "minLength", "maxLength", "minimum", "maximum", "enum", "default"];
    let object = schema["properties"].as_object()?;
    if ["oneOf", "anyOf", "allOf"].iter().any(|key| schema.get(key).is_some()) {
        return None;
    }
    let (mut properties, mut names) = (Map::new(), HashMap::new());
    for (name, value) in object {
        let value = match value["$ref"].as_str() {
            Some(place) => schema.pointer(place.strip_prefix('#')?)?,
            None => value,
        };
        let mut kept: Map<String, Value> =
            KEPT.iter().filter_map(|key| Some(((*key).to_owned(), value.get(key)?.clone()))).collect();
        if kept.get("enum").is_some_and(|all| all.as_array().is_some_and(|all| all.iter().all(Value::is_string))) {
            kept.insert("type".to_owned(), "string".into());
        }
        if !matches!(kept.get("type").and_then(Value::as_str), Some("string" | "number" | "integer" | "boolean")) {
            return None;
        }
        let shown = if name == "$" { ANSWER } else { name.trim_start_matches('@') };
        if names.insert(shown.to_owned(), name.clone()).is_some() {
            return None;
        }
        properties.insert(shown.to_owned(), kept.into());
    }
    let is_required = |(_, name): &(&String, &String)| {
        schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == *name))
    };
    let mut required: Vec<&String> = names.iter().filter(is_required).map(|(shown, _)| shown).collect();
    required.sort();
    let form = json!({ "type": "object", "properties": properties, "required": required });
    Some((form, names))
}

impl Form {
    /// The JSON of the payload that a filled form is.
    fn payload(&self, content: &Value) -> String {
        let Some(payload) = &self.payload else {
            return match &content[ANSWER] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
        };
        let given = content.as_object().cloned().unwrap_or_default();
        let is_bare = self.properties.len() == 1 && self.properties.values().any(|name| name == "$");
        let value = if is_bare {
            given.get(ANSWER).cloned().unwrap_or(Value::Null)
        } else {
            let name = |shown: String| self.properties.get(&shown).cloned().unwrap_or(shown);
            Value::Object(given.into_iter().map(|(shown, value)| (name(shown), value)).collect())
        };
        json!({ payload: value }).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_its_caller_leaves_ends() {
        let record = |people: &[&str]| -> QuestionRecord {
            serde_json::from_value(json!({
                "question": "q", "listener": "user", "from": "a", "thread": "t", "since": "2026-01-01T00:00:00Z",
                "people": people, "operators": false, "state": "waiting",
            }))
            .unwrap()
        };
        let since = record(&[]).since.parse::<Time>().unwrap();
        assert!(!is_abandoned(&record(&["caller"]), since.after(PATIENCE)));
        let late = since.after(PATIENCE + Duration::from_secs(1));
        assert!(is_abandoned(&record(&["caller"]), late));
        assert!(!is_abandoned(&record(&["ada", "caller"]), late), "ada may answer");
    }

    #[test]
    fn a_question_that_was_answered_with_a_call_comes_again_with_its_answer() {
        let record = |told: &[&str]| -> QuestionRecord {
            serde_json::from_value(json!({
                "question": "q", "listener": "user", "from": "a", "thread": "t", "since": "2026-01-01T00:00:00Z",
                "people": ["caller"], "operators": false, "state": "waiting", "told": told,
            }))
            .unwrap()
        };
        let asking = |told: &[&str]| Asking {
            question: "q".to_owned(),
            is_callers_alone: true,
            requests: None,
            form: None,
            told: record(told).told,
        };
        let mut handled = Handled::default();
        assert!(!handled.is_over("q") && !handled.awaits_answers(&record(&[])));
        handled.note(asking(&[]), Taken::No);
        assert!(!handled.awaits_answers(&record(&[])), "it is asked again at once");
        handled.note(asking(&[]), Taken::Calls);
        assert!(!handled.is_over("q") && handled.awaits_answers(&record(&[])));
        assert!(!handled.awaits_answers(&record(&["42"])));
        handled.note(asking(&["42"]), Taken::Reply);
        assert!(handled.is_over("q"));
    }

    #[test]
    fn plain_values_are_a_form_and_come_back() {
        let schema = json!({
            "type": "object",
            "properties": {
                "@id": { "type": "integer", "minimum": 1 },
                "$": { "$ref": "#/$defs/word" },
                "note": { "type": "string", "pattern": "^a" },
            },
            "required": ["@id", "$"],
            "$defs": { "word": { "enum": ["yes", "no"] } },
        });
        let (form, properties) = plain(&schema).unwrap();
        assert_eq!(form["required"], json!(["answer", "id"]));
        assert_eq!(form["properties"]["answer"], json!({ "type": "string", "enum": ["yes", "no"] }));
        assert!(form["properties"]["note"].get("pattern").is_none());
        let form = Form { payload: Some("{urn:o}verdict".to_owned()), properties };
        let json: Value = serde_json::from_str(&form.payload(&json!({ "id": 7, "answer": "yes" }))).unwrap();
        assert_eq!(json, json!({ "{urn:o}verdict": { "@id": 7, "$": "yes" } }));
    }

    #[test]
    fn a_bare_value_and_a_payload_that_is_no_form() {
        let bare = json!({ "type": "object", "properties": { "$": { "type": "boolean" } }, "required": ["$"] });
        let (_, properties) = plain(&bare).unwrap();
        let form = Form { payload: Some("{urn:o}verdict".to_owned()), properties };
        assert_eq!(form.payload(&json!({ "answer": true })), r#"{"{urn:o}verdict":true}"#);
        for other in [
            json!({ "type": "object", "properties": { "line": { "type": "array" } } }),
            json!({ "type": "object", "properties": { "a": { "type": "object" } } }),
            json!({ "type": "object", "properties": { "a": { "type": "string" }, "@a": { "type": "string" } } }),
            json!({ "type": "object", "properties": {}, "oneOf": [] }),
        ] {
            assert!(plain(&other).is_none(), "{other}");
        }
    }
}
