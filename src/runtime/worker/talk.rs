//! One run of a handler: delivers the message to a process, answers its calls, and takes its answer.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use systole_core::core::{Answer, Failure, Message, Outcome};
use systole_core::vocab::{Fault, MessageId};

use super::calls::Calls;
use super::connection::{Connection, Ticket};
use super::exchange::Said;
use super::{failed, line};
use crate::runtime::RunContext;

/// The end of a run.
pub(super) enum Run {
    /// The handler has ended.
    Done(Outcome),
    /// The process has ended.
    Lost {
        /// The reason.
        why: Rc<str>,
        /// Whether the process had the message.
        told: bool,
    },
}

/// The next event of a run.
enum Step {
    /// A line of the process, or the reason of its end.
    Said(Result<Said, Rc<str>>),
    /// An answer to a call.
    Answered(String, Result<Answer, Fault>),
}

/// Runs the handler of a message.
///
/// # Cancel safety
/// Dropping the future cancels the message in its process.
pub(super) async fn talk(
    connection: Rc<Connection>,
    message: &Message,
    context: &RunContext,
    calls: &mut Calls,
) -> Run {
    let history = context.contract().context.then(|| context.thread().history());
    let line = line::work(message, history);
    let mut ticket = connection.open(message.id);
    ticket.told = connection.send(&line).await;
    drop(line);
    loop {
        match next(&ticket, calls).await {
            Step::Said(Err(why)) => return Run::Lost { why, told: ticket.told },
            Step::Said(Ok(Said::Wrote(Ok(output)))) => return Run::Done(Outcome::Wrote(output)),
            Step::Said(Ok(Said::Wrote(Err(fault)) | Said::Overdrawn(fault))) => {
                return Run::Done(Outcome::Failed(Failure { message: fault.message.clone(), fault: Some(fault) }));
            }
            Step::Said(Ok(Said::Failed(text))) => return Run::Done(Outcome::Failed(Failure::new(text))),
            Step::Said(Ok(Said::Called { label, call: Err(fault) })) => {
                connection.answer(message.id, &label, Err(&fault)).await;
            }
            Step::Said(Ok(Said::Called { label, call: Ok(call) })) => {
                if !calls.make(label, call, context) {
                    return Run::Done(Outcome::Failed(diverged()));
                }
            }
            Step::Answered(label, outcome) => answer(&connection, message.id, &label, outcome).await,
        }
    }
}

async fn next(ticket: &Ticket, calls: &mut Calls) -> Step {
    poll_fn(|cx| match ticket.poll(cx) {
        Poll::Ready(said) => Poll::Ready(Step::Said(said)),
        Poll::Pending => calls.poll(cx).map(|(label, outcome)| Step::Answered(label, outcome)),
    })
    .await
}

async fn answer(connection: &Connection, id: MessageId, label: &str, outcome: Result<Answer, Fault>) {
    let outcome = outcome.as_ref().map(|answer| answer.payload.payload().as_str());
    connection.answer(id, label, outcome).await;
}

/// The failure of a message whose process ended, and which then made another call than before.
fn diverged() -> Failure {
    failed("the listener, run again after the end of its process, made other calls than before", true)
}
