//! Streaming: the gateway sends each message as it comes, over one connection.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, timeout, timeout_at};

use super::BoxFuture;
use super::backoff::Backoff;
use super::cursor::Cursor;
use super::delivery::InboundDelivery;
use super::dispatch::Dispatcher;
use super::error::RemoteError;
use super::handler::Handler;
use super::mailbox::Mailbox;
use super::sse::{Event, Parser};
use crate::outbound::http::Response;
use crate::outbound::{AttemptFailure, FailureKind, unanswered};

/// Time for which a batch waits for a message.
const WAIT: Duration = Duration::from_secs(20);
/// Longest silence of a connection: the gateway sends a sign of life every 15 s.
const SILENCE: Duration = Duration::from_secs(45);
/// Name of the call, in errors.
const WHAT: &str = "the stream of the mailbox";

/// Reads a mailbox as server-sent events. The contract is that of [`PollDelivery`](super::PollDelivery); an ended
/// connection is opened again, behind the last message (`Last-Event-ID`), after a back-off.
#[derive(Debug)]
pub struct StreamDelivery {
    dispatcher: Dispatcher,
    connection: Option<Connection>,
    backoff: Backoff,
    wait: Duration,
}

#[derive(Debug)]
struct Connection {
    response: Response,
    parser: Parser,
    /// Time at which the last bytes came.
    heard: Instant,
}

impl StreamDelivery {
    /// Reads from the oldest message on; a batch waits 20 s for a message.
    pub fn new(mailbox: Mailbox) -> Self {
        let backoff = Backoff::new(mailbox.options().policy.clone());
        let dispatcher = Dispatcher::new(mailbox, Cursor::in_memory());
        Self { dispatcher, connection: None, backoff, wait: WAIT }
    }

    /// Continues at the cursor in a file, which is replaced after each message.
    ///
    /// # Errors
    /// [`RemoteError::Cursor`] if the file can't be read, or holds something else.
    pub fn cursor_file(mut self, file: &Path) -> Result<Self, RemoteError> {
        self.dispatcher.cursor = Cursor::open(file)?;
        Ok(self)
    }

    async fn batch(&mut self, handler: &dyn Handler) -> Result<usize, RemoteError> {
        self.dispatcher.catch_up().await?;
        let events = match self.events().await {
            Err(error) if error.status() == Some(410) => {
                self.dispatcher.begin_anew().await?;
                return Ok(0);
            }
            Err(error) => {
                self.connection = None;
                return Err(error);
            }
            Ok(events) => events,
        };
        let mut handled = 0;
        for event in events.into_iter().filter(|event| event.kind == "message") {
            // If the rest of these events fails, the next connection starts behind the last one that was handled.
            let connection = self.connection.take();
            handled += usize::from(self.dispatcher.dispatch(&item(event), handler).await?);
            self.connection = connection;
        }
        Ok(handled)
    }

    /// The next events; none if nothing comes for a while.
    async fn events(&mut self) -> Result<Vec<Event>, RemoteError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let mailbox = &self.dispatcher.mailbox;
                let response = mailbox.stream(self.dispatcher.cursor.place()).await?;
                let parser = Parser::new(mailbox.options().answer);
                none.insert(Connection { response, parser, heard: Instant::now() })
            }
        };
        match timeout(self.wait, connection.next()).await {
            Ok(events) => events,
            Err(_) => Ok(Vec::new()),
        }
    }
}

impl Connection {
    async fn next(&mut self) -> Result<Vec<Event>, RemoteError> {
        loop {
            let Ok(piece) = timeout_at(self.heard + SILENCE, self.response.chunk()).await else {
                return Err(broken(AttemptFailure::new(
                    FailureKind::ReadTimeout,
                    format!("nothing came for {SILENCE:?}"),
                )));
            };
            let piece = piece.map_err(|error| broken(unanswered(&error)))?;
            let piece =
                piece.ok_or_else(|| broken(AttemptFailure::new(FailureKind::Closed, "the gateway ended it")))?;
            self.heard = Instant::now();
            let too_long = |_| {
                broken(AttemptFailure::new(FailureKind::AnswerTooLarge, "an event is longer than an answer may be"))
            };
            let events = self.parser.push(&piece).map_err(too_long)?;
            if !events.is_empty() {
                return Ok(events);
            }
        }
    }
}

impl InboundDelivery for StreamDelivery {
    fn run_once<'a>(&'a mut self, handler: &'a dyn Handler) -> BoxFuture<'a, Result<usize, RemoteError>> {
        Box::pin(async move {
            let batch = self.batch(handler).await;
            self.backoff.note(batch)
        })
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        self.connection = None;
        Box::pin(std::future::ready(()))
    }

    fn interval(&self) -> Duration {
        self.backoff.wait(Duration::ZERO)
    }
}

/// Makes an item of an event, whose id is the cursor behind it.
fn item(event: Event) -> Value {
    let mut fields = match serde_json::from_str(&event.data) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    };
    if let Some(id) = event.id {
        fields.insert("cursor".to_owned(), id.into());
    }
    Value::Object(fields)
}

fn broken(failure: AttemptFailure) -> RemoteError {
    RemoteError::Unanswered { what: WHAT.to_owned(), failure }
}
