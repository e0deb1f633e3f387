//! A run of a handler: delivers the message to a process, answers its calls, and takes its answer.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use systole_core::core::{Answer, Failure, HandlerOutcome, Message};
use systole_core::vocab::Fault;
use systole_xml::schema::Draft;

use super::calls::Calls;
use super::connection::{Connection, MessageHandle};
use super::exchange::LineEffect;
use super::records::Records;
use super::{Workers, line};
use crate::listeners::fleet::{ProcessEnd, Seat, failed};
use crate::process::Subject;
use crate::runtime::RunContext;

/// The end of a run.
pub(super) enum Run {
    /// The handler has ended.
    Done(HandlerOutcome),
    /// The process has ended.
    Lost(Rc<ProcessEnd>),
}

/// The next event of a run.
enum Step {
    /// A line of the process, or the reason of its end.
    Line(Result<LineEffect, Rc<ProcessEnd>>),
    /// An answer to a call.
    Answered(String, Result<Answer, Fault>),
    /// A value is durable: its label and its name.
    Recorded(String, String),
}

/// Runs the handler of a message.
///
/// # Cancel safety
/// Dropping the future cancels the message in its process.
pub(super) async fn run_message(
    (connection, seat): (Rc<Connection>, &Seat<Workers>),
    message: &Message,
    context: &RunContext,
    calls: &mut Calls,
    records: &mut Records,
) -> Run {
    let history = context.contract().context.then(|| context.thread().history());
    let json = connection.json();
    let json = json.as_deref();
    let line = line::work(message, history, records.all(), json);
    let mut handle = connection.open(Subject::of(message), context.thread().clone(), records.all());
    handle.delivered = connection.send(&line).await;
    drop(line);
    if handle.delivered {
        seat.read();
    }
    let mut faults = Faults::new(context.limits().xml.message_bytes);
    loop {
        seat.awaits(calls.are_open());
        match next(&handle, calls, records, context).await {
            Step::Line(Err(end)) => return Run::Lost(end),
            Step::Line(Ok(LineEffect::Wrote(Ok(output)))) => return Run::Done(output.into()),
            Step::Line(Ok(LineEffect::Wrote(Err(fault)) | LineEffect::Overdrawn(fault))) => {
                return Run::Done(HandlerOutcome::Failed(Failure::passing(fault)));
            }
            Step::Line(Ok(LineEffect::Failed { text, passes })) => {
                let fault = passes.and_then(|label| faults.take(&label));
                context.thread().said(handle.said());
                let failure = fault.map_or_else(|| Failure::new(text), Failure::passing);
                return Run::Done(HandlerOutcome::Failed(failure));
            }
            Step::Line(Ok(LineEffect::Called { label, call: Err(fault), .. })) => {
                connection.answer(message.id, &label, &line::answer(message.id, &label, Err(&fault), json)).await;
                faults.keep(label, fault);
            }
            Step::Line(Ok(LineEffect::Called { label, call: Ok(call), text })) => {
                if let Draft::Canonical(payload) = &call.payload {
                    context.thread().repaired(payload.repairs(), text);
                }
                if !calls.make(label, call, context) {
                    return Run::Done(HandlerOutcome::Failed(diverged()));
                }
            }
            Step::Line(Ok(LineEffect::Recorded { label, name, value })) => {
                if let Err(fault) = records.make(label, name, value, context) {
                    return Run::Done(HandlerOutcome::Failed(Failure::passing(fault)));
                }
            }
            Step::Line(Ok(LineEffect::Progressed(text))) => context.thread().progress(text),
            Step::Line(Ok(LineEffect::Used(answer))) => context.thread().used(answer),
            // The connection has taken it.
            Step::Line(Ok(LineEffect::Drafted { .. })) => {}
            Step::Answered(label, outcome) => {
                let answer = outcome.as_ref().map(|answer| answer.payload.payload());
                connection.answer(message.id, &label, &line::answer(message.id, &label, answer, json)).await;
                if let Err(fault) = outcome {
                    faults.keep(label, fault);
                }
            }
            Step::Recorded(label, name) => {
                connection.answer(message.id, &label, &line::recorded(message.id, &label, &name)).await;
            }
        }
    }
}

/// The faults that answered calls of a run, by the labels of the calls: the last ones of `most` bytes together.
struct Faults {
    kept: VecDeque<(String, Fault)>,
    bytes: usize,
    most: usize,
}

impl Faults {
    /// Bytes that a fault counts besides its texts.
    const ENTRY: usize = 64;

    fn new(most: usize) -> Self {
        Self { kept: VecDeque::new(), bytes: 0, most }
    }

    fn keep(&mut self, label: String, fault: Fault) {
        self.bytes += Self::bytes_of(&label, &fault);
        self.kept.push_front((label, fault));
        while self.bytes > self.most
            && let Some((label, fault)) = self.kept.pop_back()
        {
            self.bytes -= Self::bytes_of(&label, &fault);
        }
    }

    /// Takes the last fault that answered a call with that label.
    fn take(&mut self, label: &str) -> Option<Fault> {
        let at = self.kept.iter().position(|(known, _)| known == label)?;
        let (label, fault) = self.kept.remove(at)?;
        self.bytes -= Self::bytes_of(&label, &fault);
        Some(fault)
    }

    fn bytes_of(label: &str, fault: &Fault) -> usize {
        let rule = fault
            .rule
            .as_ref()
            .map_or(0, |broken| broken.rule.len() + broken.example.as_ref().map_or(0, |example| example.len()));
        label.len() + fault.message.len() + rule + Self::ENTRY
    }
}

async fn next(handle: &MessageHandle, calls: &mut Calls, records: &mut Records, context: &RunContext) -> Step {
    poll_fn(|cx| {
        if let Poll::Ready(line) = handle.poll(cx) {
            return Poll::Ready(Step::Line(line));
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

#[cfg(test)]
mod tests {
    use systole_core::vocab::FaultCode;

    use super::*;

    #[test]
    fn each_of_many_faults_can_be_passed_on_and_the_oldest_are_dropped_by_their_bytes() {
        let fault = |n: usize| Fault::new(FaultCode::Failed, format!("fault {n}"));
        let mut faults = Faults::new(1 << 20);
        (0..256).for_each(|n| faults.keep(n.to_string(), fault(n)));
        for n in [0, 31, 32, 255] {
            assert_eq!(faults.take(&n.to_string()), Some(fault(n)));
        }
        assert_eq!(faults.take("0"), None);
        let mut few = Faults::new(3 * (Faults::ENTRY + "0fault 0".len()));
        (0..5).for_each(|n| few.keep(n.to_string(), fault(n)));
        assert_eq!((few.take("1"), few.take("2"), few.take("4")), (None, Some(fault(2)), Some(fault(4))));
    }
}
