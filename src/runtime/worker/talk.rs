//! The handler of one message: delivers it to a process, answers its calls, and takes its answer.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use systole_core::core::{Answer, Emission, EmissionKind, Failure, Message, Outcome};
use systole_core::vocab::{BrokenRule, Fault, FaultCode, MessageId, Name, XmlLimits};
use systole_xml::ladder::{Raw, parse};
use systole_xml::schema::Draft;

use super::connection::{Connection, Ticket, clipped};
use super::failed;
use super::line::{self, Said};
use crate::runtime::RunContext;
use crate::runtime::calling::Calling;
use crate::runtime::response::Emit;

/// The longest sentence of a failure that the caller gets, in bytes.
const SENTENCE: usize = 4096;

/// The next event of a handler.
enum Step {
    /// A line of the process; `None` if it has ended or opened too many calls.
    Said(Option<Said>),
    /// An answer to a call.
    Answered(String, Result<Answer, Fault>),
}

/// Runs the handler of a message.
///
/// # Cancel safety
/// Dropping the future cancels the message in its process, and its calls.
pub(super) async fn talk(connection: Rc<Connection>, message: &Message, context: &RunContext) -> Outcome {
    let limits = context.limits();
    let history = context.contract().context.then(|| context.thread().history());
    let line = line::work(message, history);
    let mut ticket = connection.open(message.id, limits.fanout);
    if connection.send(&line).await {
        ticket.told = true;
        let mut calls: Vec<(String, Calling<Answer>)> = Vec::new();
        drop(line);
        loop {
            match next(&mut ticket, &mut calls).await {
                Step::Said(Some(Said::Payloads(payloads))) => return wrote(&payloads, limits.xml.message_bytes),
                Step::Said(Some(Said::Error(text))) => {
                    return Outcome::Failed(Failure::new(clipped(&text, SENTENCE)));
                }
                Step::Said(Some(Said::Call { xml, to, label })) => {
                    if calls.len() >= limits.fanout || calls.iter().any(|(open, _)| *open == label) {
                        return Outcome::Failed(too_many(limits.fanout));
                    }
                    match emission(xml, to, &limits.xml) {
                        Ok(emission) => calls.push((label, context.thread().call_any(Emit::from(emission)))),
                        Err(fault) => drop(connection.send(&line::answer(message.id, &label, Err(&fault))).await),
                    }
                }
                Step::Said(None) => match connection.why() {
                    Some(why) => return Outcome::Failed(failed(&*why, true)),
                    None => return Outcome::Failed(too_many(limits.fanout)),
                },
                Step::Answered(label, outcome) => answer(&connection, message.id, &label, outcome).await,
            }
        }
    }
    let why = connection.why();
    Outcome::Failed(failed(why.as_deref().unwrap_or("the listener ended"), true))
}

async fn next(ticket: &mut Ticket, calls: &mut Vec<(String, Calling<Answer>)>) -> Step {
    poll_fn(|cx| {
        if let Poll::Ready(said) = ticket.said.poll_recv(cx) {
            return Poll::Ready(Step::Said(said));
        }
        // In the order of the calls, by which a durable organism recognizes them after a start.
        for at in 0..calls.len() {
            if let Poll::Ready(outcome) = Pin::new(&mut calls[at].1).poll(cx) {
                return Poll::Ready(Step::Answered(calls.remove(at).0, outcome));
            }
        }
        Poll::Pending
    })
    .await
}

async fn answer(connection: &Connection, id: MessageId, label: &str, outcome: Result<Answer, Fault>) {
    let outcome = outcome.as_ref().map(|answer| answer.payload.payload().as_str());
    // If the process has ended, the next step reports that.
    connection.send(&line::answer(id, label, outcome)).await;
}

/// Parses a call into an emission.
fn emission(xml: String, to: Option<String>, limits: &XmlLimits) -> Result<Emission, Fault> {
    let to = to.map(|to| Name::parse(&to)).transpose();
    let to = to.map_err(|error| Fault::new(FaultCode::Route, format!("\"to\": {error}")))?;
    let payload = parse(&Raw::new(xml), limits).map_err(|error| {
        let code = if error.is_limit() { FaultCode::Limit } else { FaultCode::Malformed };
        let rule = BrokenRule { rule: error.to_string(), at: error.position(), example: None };
        Fault { rule: Some(Box::new(rule)), ..Fault::new(code, "a message can't be read as XML") }
    })?;
    Ok(Emission { kind: EmissionKind::Call, to, thread: None, payload: Draft::Canonical(payload) })
}

/// Joins the payloads into one output.
fn wrote(payloads: &[String], most: usize) -> Outcome {
    if payloads.iter().map(String::len).sum::<usize>() > most {
        let fault = Fault::new(FaultCode::Limit, format!("the listener wrote more than {most} bytes"));
        return Outcome::Failed(Failure { message: fault.message.clone(), fault: Some(fault) });
    }
    Outcome::Wrote(Raw::new(payloads.join("\n")))
}

fn too_many(most: usize) -> Failure {
    let text = format!("the listener awaits more than {most} answers at once, or two under one \"as\"");
    let fault = Fault::new(FaultCode::Limit, text);
    Failure { message: fault.message.clone(), fault: Some(fault) }
}
