//! Rows that a document of an agent names, in any field.
//!
//! Agents have several names for the id of a task (`task_id`, `taskId`, `contextId`, `in_reply_to`, …), and they have ids of
//! their own in the same fields. So each id in a string or a key counts, a path such as `/workspaces/ID/a2a` among them, and
//! the mailbox of the workspace tells its rows from all others.

use std::collections::HashSet;

use serde_json::Value;
use systole_core::vocab::MessageId;

use crate::gateway::facade::Problem;

/// Fields whose string is a text: an id there names nothing.
const TEXTS: [&str; 3] = ["text", "message", "result"];

/// The ids in a document, but for one.
pub(super) fn others(document: &Value, own: MessageId) -> Vec<MessageId> {
    let (mut found, mut rest) = (HashSet::new(), vec![document]);
    while let Some(value) = rest.pop() {
        match value {
            Value::Object(fields) => {
                let is_text = |key: &str, value: &Value| value.is_string() && TEXTS.contains(&key);
                fields.keys().for_each(|key| found.extend(ids(key)));
                rest.extend(fields.iter().filter(|(key, value)| !is_text(key, value)).map(|(_, value)| value));
            }
            Value::Array(items) => rest.extend(items),
            Value::String(text) => found.extend(ids(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found.remove(&own);
    found.into_iter().collect()
}

/// The ids in a string: all of it, or a part between characters that no id has.
fn ids(text: &str) -> impl Iterator<Item = MessageId> {
    let parts = text.split(|c: char| !(c.is_ascii_hexdigit() || c == '-'));
    parts.chain([text]).filter_map(|part| part.parse().ok())
}

/// Refusal of an answer to a row that names another row of the same workspace, too.
pub(super) fn ambiguous(other: MessageId) -> Problem {
    let detail = format!("the answer names the row {other}, too: say which one row it answers, and no other");
    Problem::conflict("ambiguous", detail)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_count_in_any_field_but_as_a_text() {
        let [own, other] = [1, 2].map(|n| MessageId::from_uuid(uuid::Uuid::from_u128(n)));
        let id = other.to_string();
        for named in [
            json!({ "task_id": id }),
            json!({ "result": { "kind": "message", "taskId": id, "parts": [] } }),
            json!({ id.clone(): 1 }),
            json!({ "path": format!("/workspaces/{id}/a2a") }),
            json!({ "row": format!(" {id} ") }),
            json!({ "params": { "message": { "metadata": { "anything": [own.to_string(), id] } } } }),
        ] {
            assert_eq!(others(&named, own), [other], "{named}");
        }
        for none in [json!({ "task_id": own.to_string() }), json!({ "text": id }), json!({ "result": id, "id": 7 })] {
            assert_eq!(others(&none, own), [], "{none}");
        }
    }
}
