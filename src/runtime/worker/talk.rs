//! One run of a handler: delivers the message to a process, answers its calls, and takes its answer.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use systole_core::core::{Answer, Failure, HandlerOutcome, Message};
use systole_core::vocab::Fault;

use super::calls::Calls;
use super::connection::{Connection, Ticket};
use super::exchange::LineEffect;
use super::records::Records;
use super::{failed, line};
use crate::runtime::RunContext;

/// The end of a run.
pub(super) enum Run {
    /// The handler has ended.
    Done(HandlerOutcome),
    /// The process has ended.
    Lost {
        /// The reason.
        why: Rc<str>,
        /// True if the process had the message.
        told: bool,
    },
}

/// The next event of a run.
enum Step {
    /// A line of the process, or the reason of its end.
    Said(Result<LineEffect, Rc<str>>),
    /// An answer to a call.
    Answered(String, Result<Answer, Fault>),
    /// A value is durable: its label and its name.
    Recorded(String, String),
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
    records: &mut Records,
) -> Run {
    let history = context.contract().context.then(|| context.thread().history());
    let line = line::work(message, history, records.all());
    let mut ticket = connection.open(message.id, records.all());
    ticket.told = connection.send(&line).await;
    drop(line);
    loop {
        match next(&ticket, calls, records, context).await {
            Step::Said(Err(why)) => return Run::Lost { why, told: ticket.told },
            Step::Said(Ok(LineEffect::Wrote(Ok(output)))) => return Run::Done(HandlerOutcome::Wrote(output)),
            Step::Said(Ok(LineEffect::Wrote(Err(fault)) | LineEffect::Overdrawn(fault))) => {
                return Run::Done(HandlerOutcome::Failed(Failure {
                    message: fault.message.clone(),
                    fault: Some(fault),
                }));
            }
            Step::Said(Ok(LineEffect::Failed(text))) => return Run::Done(HandlerOutcome::Failed(Failure::new(text))),
            Step::Said(Ok(LineEffect::Called { label, call: Err(fault) })) => {
                connection.answer(message.id, &label, &line::answer(message.id, &label, Err(&fault))).await;
            }
            Step::Said(Ok(LineEffect::Called { label, call: Ok(call) })) => {
                if !calls.make(label, call, context) {
                    return Run::Done(HandlerOutcome::Failed(diverged()));
                }
            }
            Step::Said(Ok(LineEffect::Recorded { label, name, value })) => {
                if let Err(fault) = records.make(label, name, value, context) {
                    return Run::Done(HandlerOutcome::Failed(Failure {
                        message: fault.message.clone(),
                        fault: Some(fault),
                    }));
                }
            }
            Step::Said(Ok(LineEffect::Progressed(text))) => context.thread().progress(text),
            Step::Answered(label, outcome) => {
                let outcome = outcome.as_ref().map(|answer| answer.payload.payload().as_str());
                connection.answer(message.id, &label, &line::answer(message.id, &label, outcome)).await;
            }
            Step::Recorded(label, name) => {
                connection.answer(message.id, &label, &line::recorded(message.id, &label, &name)).await;
            }
        }
    }
}

async fn next(ticket: &Ticket, calls: &mut Calls, records: &mut Records, context: &RunContext) -> Step {
    poll_fn(|cx| {
        if let Poll::Ready(said) = ticket.poll(cx) {
            return Poll::Ready(Step::Said(said));
        }
        if let Poll::Ready((label, name)) = records.poll(context, cx) {
            return Poll::Ready(Step::Recorded(label, name));
        }
        calls.poll(cx).map(|(label, outcome)| Step::Answered(label, outcome))
    })
    .await
}

/// The failure of a message whose process ended, and which then made another call than before.
fn diverged() -> Failure {
    failed("the listener, run again after the end of its process, made other calls than before", true)
}
