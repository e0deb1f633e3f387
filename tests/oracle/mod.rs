//! Questions, and a listener that answers them by a closure, for several test programs.

use systole::actor::*;
use systole::prelude::*;

pub(crate) const NAMESPACE: &str = "urn:example:test:v1";

/// Asks for something, in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Question {
    pub(crate) text: String,
}

impl Payload for Question {
    const NAMESPACE: &'static str = NAMESPACE;
    const ROOT: &'static str = "question";
}

impl Request for Question {
    type Reply = Answered;
}

/// Says something, in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Answered {
    pub(crate) text: String,
}

impl Payload for Answered {
    const NAMESPACE: &'static str = NAMESPACE;
    const ROOT: &'static str = "answered";
}

pub(crate) fn question(text: impl Into<String>) -> Question {
    Question { text: text.into() }
}

pub(crate) fn answered(text: impl Into<String>) -> Answered {
    Answered { text: text.into() }
}

/// A listener that answers questions by a closure.
pub(crate) struct Oracle<F>(pub(crate) F);

impl<F: Unpin + 'static> Actor for Oracle<F> {
    type Context = Context<Self>;
}

impl<F, R> Handler<Delivery<Question>> for Oracle<F>
where
    F: Fn(Delivery<Question>) -> R + Unpin + 'static,
    R: Future<Output = Response> + 'static,
{
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, question: Delivery<Question>, _: &mut Context<Self>) -> Self::Result {
        Box::pin((self.0)(question))
    }
}
