//! Calls as tasks: a task is a message of its client, and the journal has its state.

use std::collections::HashMap;

use rmcp::model::{
    ClientCapabilities, DetailedTask, ErrorData, GetTaskResult, InputRequests, InputResponses, JsonObject, Task,
    TaskPayload, TaskStatus,
};
use serde_json::{Value, json};
use systole_core::vocab::{FaultCode, Time};

use super::Face;
use super::answer::{end, result};
use super::call::unreadable;
use super::handler::Who;
use super::question::Handled;
use crate::journal::Sent;

/// Pause between two looks at a task, in milliseconds, as clients are told.
const POLL: u64 = 1000;

impl Face {
    /// The handle of a message as a task.
    pub(super) fn task(&self, sent: &Sent) -> Task {
        self.with_status(sent, TaskStatus::Working, sent.at)
    }

    fn with_status(&self, sent: &Sent, status: TaskStatus, changed: Time) -> Task {
        let id = sent.submission.id.to_string();
        let task = Task::new(id, status, sent.at.to_string(), changed.to_string()).with_poll_interval_ms(POLL);
        match self.settings.kept {
            Some(kept) => task.with_ttl_ms(u64::try_from(kept.as_millis()).unwrap_or(u64::MAX)),
            None => task,
        }
    }

    /// The state of a task.
    pub(super) async fn get_task(
        &self,
        who: &Who,
        able: Option<&ClientCapabilities>,
        id: &str,
    ) -> Result<GetTaskResult, ErrorData> {
        let sent = self.task_of(who, id).await?;
        let payload = self.payload(&sent, able).await;
        let task = self.with_status(&sent, payload.status(), sent.settled.unwrap_or_else(|| self.app.now()));
        Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
    }

    async fn payload(&self, sent: &Sent, able: Option<&ClientCapabilities>) -> TaskPayload {
        match sent.answers.first() {
            Some(answer) => match end(answer) {
                Some(FaultCode::Cancelled) => return TaskPayload::Cancelled,
                Some(_) => {
                    let result = result(self.app.organism(), &sent.answers);
                    let message =
                        result.content.first().and_then(|block| block.as_text()).map(|text| text.text.clone());
                    let error = json!({ "code": -32603, "message": message.unwrap_or_default() });
                    return TaskPayload::Failed { error: as_object(error) };
                }
                None => {}
            },
            None if !sent.ended => {
                let open = self.questions(sent.submission.root, &Handled::default(), &HashMap::new()).await;
                let requests: InputRequests =
                    open.iter().filter_map(|asking| asking.requests(able)).flatten().collect();
                return match requests.is_empty() {
                    true => TaskPayload::Working,
                    false => TaskPayload::InputRequired { input_requests: requests },
                };
            }
            None => {}
        }
        let result = result(self.app.organism(), &sent.answers);
        TaskPayload::Completed { result: as_object(serde_json::to_value(result).unwrap_or_default()) }
    }

    /// Answers questions of a task.
    pub(super) async fn update_task(
        &self,
        who: &Who,
        able: Option<&ClientCapabilities>,
        id: &str,
        responses: &InputResponses,
    ) -> Result<(), ErrorData> {
        let sent = self.task_of(who, id).await?;
        let mut wrong = HashMap::new();
        for asking in self.questions(sent.submission.root, &Handled::default(), &wrong.clone()).await {
            self.answer(&asking, able, responses, &mut wrong).await;
        }
        match wrong.into_values().next() {
            Some(why) => Err(ErrorData::invalid_params(why, None)),
            None => Ok(()),
        }
    }

    /// Cancels a task. One that has ended stays as it is.
    pub(super) async fn cancel_task(&self, who: &Who, id: &str) -> Result<(), ErrorData> {
        let sent = self.task_of(who, id).await?;
        if !sent.ended {
            self.cancel(who, sent.submission.root).await;
        }
        Ok(())
    }

    async fn task_of(&self, who: &Who, id: &str) -> Result<Sent, ErrorData> {
        let sent = match id.parse() {
            Ok(id) => self.app.sent(&who.client, id).await.map_err(unreadable)?,
            Err(_) => None,
        };
        sent.ok_or_else(|| {
            let why = "there is no such task of this client, or it was forgotten: its time is that of ended work in the journal";
            ErrorData::invalid_params(why, Some(json!({ "taskId": id })))
        })
    }
}

fn as_object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}
