//! Rows of activity: messages of a mailbox, in both shapes that are in use.

use serde_json::{Value, json};
use systole_core::protocol::read_fault;
use systole_core::vocab::Name;

use super::ids::id_of;
use super::parties::{Parties, Sender};
use super::said::Said;
use crate::gateway::facade::{AppState, History, Problem, StoredMail};
use crate::remote::SourceKind;

/// Bytes of text in a page, which has at least one row.
pub(super) const BYTES: usize = 1 << 20;

/// Characters of a summary.
const SUMMARY: usize = 80;

/// The type of a row with a text.
pub(super) const RECEIVED: &str = "a2a_receive";

/// The type of a row with the failure of a message that the workspace sent.
pub(super) const ERROR: &str = "error";

/// A message of a workspace's mailbox.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) item: StoredMail,
    pub(super) sender: Sender,
    kind: &'static str,
    pub(super) text: String,
}

impl Row {
    pub(super) fn of(parties: &Parties, item: StoredMail) -> Option<Self> {
        if let Some(said) = Said::read(&item.record.envelope) {
            let sender = parties.sender(&item, &said);
            return Some(Self { item, sender, kind: RECEIVED, text: said.text });
        }
        let fault = read_fault(&crate::gateway::facade::payload(&item.record.envelope)?).ok()?;
        let sender = Sender { kind: SourceKind::Unknown, name: item.record.from.to_string() };
        Some(Self { item, sender, kind: ERROR, text: fault.message.to_string() })
    }

    /// Checks for a text, and no failure.
    pub(super) fn is_said(&self) -> bool {
        self.kind == RECEIVED
    }

    /// Checks whether the row waits for an answer.
    pub(super) fn is_open(&self) -> bool {
        self.item.status.state.is_open()
    }

    /// Checks whether a person sent the row.
    pub(super) fn is_persons(&self) -> bool {
        self.sender.kind == SourceKind::Person
    }

    /// JSON of the row for its reader; `notified` is true if `notify` answers it.
    pub(super) fn show(&self, parties: &Parties, notified: bool) -> Value {
        let Self { item, sender, kind, text } = self;
        let peer = Name::parse(&sender.name).ok().filter(|_| sender.kind == SourceKind::Peer);
        let source = match sender.kind {
            SourceKind::Person if notified => Some("canvas_user"),
            SourceKind::Person | SourceKind::Peer => Some("peer_agent"),
            SourceKind::Unknown => None,
        };
        let role = if peer.is_some() { "agent" } else { "user" };
        let (id, workspace) = (item.record.id.to_string(), id_of(&item.record.mailbox).to_string());
        // The SDK sends its answer there: the id names this row alone, so that the answer can be for no other one.
        let source_id = Some(&id).filter(|_| !notified);
        let listener = peer.as_ref().and_then(|name| parties.speaker(name));
        let described = listener.map_or("", |listener| listener.description.as_str());
        let peer_id = peer.as_ref().map(|name| id_of(name).to_string());
        let card = peer_id.as_ref().filter(|_| listener.is_some_and(|listener| listener.takes));
        let card = card.map_or(String::new(), |id| format!("/registry/discover/{id}"));
        let at = item.record.at.to_string();
        let part = json!({ "kind": "text", "text": text });
        let message = json!({ "role": role, "messageId": id, "parts": [part] });
        json!({
            "id": id,
            "type": kind,
            "activity_type": kind,
            "workspace_id": workspace,
            "source_id": source_id,
            "target_id": workspace,
            "method": "message/send",
            "summary": text.chars().take(SUMMARY).collect::<String>(),
            "data": {
                "source": source,
                "source_id": source_id.unwrap_or(&sender.name),
                "peer_id": peer_id,
                "peer_name": if notified { "" } else { &sender.name },
                "peer_role": if sender.kind == SourceKind::Person && !notified { "person" } else { described },
                "agent_card_url": card,
                "text": text,
                "in_reply_to": item.record.in_reply_to.map(|id| id.to_string()),
            },
            "request_body": { "jsonrpc": "2.0", "id": id, "method": "message/send", "params": { "message": message } },
            "status": if *kind == ERROR { "error" } else { "ok" },
            "created_at": at,
            "ts": at,
        })
    }
}

/// The rows of a history, oldest first, within the limit of `of`.
pub(super) async fn rows(
    app: &AppState,
    parties: &Parties,
    mut of: History,
    wanted: impl Fn(&Row) -> bool,
) -> Result<Vec<Row>, Problem> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    loop {
        let (page, has_more) = app.history(of.clone()).await?;
        of.after = page.last().map_or(of.after, |mail| mail.record.seq);
        for row in page.into_iter().filter_map(|item| Row::of(parties, item)).filter(&wanted) {
            bytes += row.text.len();
            if rows.len() == of.limit || bytes > BYTES && !rows.is_empty() {
                return Ok(rows);
            }
            rows.push(row);
        }
        if !has_more || rows.len() == of.limit {
            return Ok(rows);
        }
    }
}
