//! The listener of a person: asks, writes what becomes of a question, and sends the answer.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;
use systole_core::core::{Answered, AttachmentEnd, Body, Contract, Failure, HandlerOutcome, Message};
use systole_core::protocol::boot_qname;
use systole_core::question::{Answerer, Done, QuestionAct, QuestionNote};
use systole_core::vocab::{Fault, FaultCode, Name, Time};
use systole_xml::ladder::{Meta, Raw, write_envelope};
use systole_xml::schema::{Catalog, PayloadSchema, Validator};

use super::console::{Console, OpenQuestion};
use super::judge::{judge, refusal};
use super::people::{Asked, AskedQuestion, Call, Change, Judged, People};
use super::questions::{Heard, PersonEntry};
use crate::process::About;
use crate::runtime::{LocalBoxFuture, RawListener, RunContext, call_to};
use crate::terminal::quote;

/// The reason why a question fails at the end of an organism without a journal.
const UNKEPT: &str = "the organism ended before the person answered, and has no journal that keeps the question";
/// The name of the notes of questions.
pub(crate) const NOTE: &str = "question";

/// A listener whose handler is a person.
///
/// A message is a question, which one of those who may answer it answers, at the terminal or elsewhere ([`People`]). An entry
/// may be a reply, which closes the question, or calls, whose answers are shown below it. A listener that accepts `<boot>`
/// prompts at the terminal for calls for as long as the organism runs.
///
/// A question waits for its person, whatever happens to the keyboard: for its deadline and its caller, where the organism
/// is durable also for the next start. Once nobody can answer it at the terminal, it no longer keeps the organism from being idle.
///
/// The end of an organism in order waits for no person: a contract that [outlives](Contract::outlives) the process leaves the
/// question to the journal; without a journal the question fails.
#[derive(Debug, Clone)]
pub struct HumanListener {
    people: People,
    console: Option<Console>,
}

impl HumanListener {
    /// Makes a listener for people at that console and elsewhere; several may share it. Operators answer, unless
    /// [`People::address`] names others.
    pub fn new(console: Console) -> Self {
        console.listen();
        Self { people: console.people().clone(), console: Some(console) }
    }

    /// Makes a listener for people elsewhere alone.
    pub fn elsewhere(people: &People) -> Self {
        Self { people: people.clone(), console: None }
    }

    /// Prompts for calls at the terminal.
    async fn prompt(&self, context: &RunContext, to: Answered) -> HandlerOutcome {
        let contract = context.contract();
        let Some(console) = self.console.as_ref().filter(|_| !contract.calls.is_empty()) else {
            return HandlerOutcome::Emitted(Vec::new());
        };
        let title = format!("{} is ready", contract.name);
        let offers = offers(contract, context.catalog(), true);
        let mut terminal = console.ask(title, String::new(), offers, context.limits().xml.clone(), false);
        let mut validator = Validator::new(context.catalog.clone());
        loop {
            let heard = tokio::select! {
                biased;
                heard = terminal.heard() => heard,
                () = context.ends_unkept() => return failed(UNKEPT),
            };
            let entry = match heard {
                Heard::Entry(entry) => entry,
                Heard::Shown => continue,
                Heard::Unattended => {
                    terminal.end(String::new());
                    return HandlerOutcome::Emitted(Vec::new());
                }
            };
            let is_of_question = entry.declines().is_some() || entry.takes();
            let PersonEntry { text, reviewed } = entry;
            let judged = judge(Raw::new(text.clone()), to, context.listener, &context.blueprint, &mut validator);
            match judged {
                _ if is_of_question => terminal.tell(NO_CALLER),
                Ok((Judged::Calls(..), shown)) if !reviewed => terminal.review(text, shown),
                Ok((Judged::Calls(read, calls), _)) => {
                    context.thread().repaired(&read.repairs, read.raw);
                    terminal.tell(&call(calls, context).await);
                }
                Ok((Judged::Reply(_), _)) => terminal.tell(NO_CALLER),
                Err(fault) => terminal.tell(&refusal(&fault)),
            }
        }
    }

    /// Waits for the answer to a question.
    async fn ask(&self, message: &Message, context: &RunContext, to: Answered) -> Result<HandlerOutcome, Fault> {
        let (contract, thread) = (context.contract(), context.thread());
        let addressees = self.people.addressees(&contract.name);
        let validator = Validator::new(context.catalog.clone());
        let clock = thread.clock().map_err(|failure| Fault::new(FaultCode::Failed, failure.message))?;
        let before = notes(context)?;
        let text = message.body.written().as_str().to_owned();
        let offers = offers(contract, context.catalog(), false);
        let payload = match &message.body {
            Body::Payload { payload, .. } => Some(payload.payload().root().clone()),
            _ => None,
        };
        let asked = Asked {
            id: message.id,
            number: message.number,
            listener: contract.name.clone(),
            contract: context.listener,
            from: message.from.clone(),
            thread: message.thread,
            conversation: message.root,
            since: clock.now(),
            deadline: message.deadline.filter(|deadline| *deadline < Time::MAX),
            payload,
            text: text.clone(),
            offers: offers.clone(),
            addressees: addressees.clone(),
            envelope: envelope(message, &contract.name),
            about: About::of(message),
        };
        // First of all places, since the end of the program asks here which questions are open.
        let asked = self.people.ask(asked, &before);
        let terminal = self.console.as_ref().filter(|_| addressees.operators).map(|console| {
            let title = format!("{} asks {}", message.from, contract.name);
            console.ask(title, text, offers, context.limits().xml.clone(), true)
        });
        if terminal.is_none() {
            context.unattended();
        }
        let desk = Desk { people: &self.people, context, to, now: &|| clock.now() };
        desk.wait(asked, terminal, validator).await
    }
}

/// The wait of a handler for the end of its question.
struct Desk<'a> {
    people: &'a People,
    context: &'a RunContext,
    to: Answered,
    now: &'a dyn Fn() -> Time,
}

impl Desk<'_> {
    async fn wait(
        &self,
        mut asked: AskedQuestion,
        mut terminal: Option<OpenQuestion>,
        mut validator: Validator,
    ) -> Result<HandlerOutcome, Fault> {
        let context = self.context;
        let mut calls: VecDeque<Vec<Call>> = VecDeque::new();
        let mut calling: Option<LocalBoxFuture<String>> = None;
        loop {
            if calling.is_none()
                && let Some(next) = calls.pop_front()
            {
                let context = context.clone();
                calling = Some(Box::pin(async move { call(next, &context).await }));
            }
            tokio::select! {
                biased;
                change = asked.change() => {
                    let Change { note, judged } = change;
                    match (note, judged) {
                        (Some(note @ QuestionNote { done: Done::Answered { .. }, .. }), Some(Judged::Reply(read))) => {
                            conclude(context, asked, terminal, note, "answered")?;
                            return Ok(HandlerOutcome::Read(read));
                        }
                        (Some(note @ QuestionNote { done: Done::Declined { .. }, .. }), _) => {
                            let Done::Declined { reason } = &note.done else { unreachable!("matched above") };
                            let outcome = refused(reason);
                            conclude(context, asked, terminal, note, "declined")?;
                            return Ok(outcome);
                        }
                        (note, judged) => {
                            if let Some(note) = &note {
                                write(context, note).await?;
                            }
                            asked.holds();
                            if let Some(Judged::Calls(read, wanted)) = judged {
                                context.thread().repaired(&read.repairs, read.raw);
                                calls.push_back(wanted);
                            }
                        }
                    }
                }
                told = pending_or(&mut calling) => {
                    calling = None;
                    if let Some(terminal) = &terminal {
                        terminal.tell(&told);
                    }
                    asked.told(told);
                }
                heard = heard(&mut terminal) => match heard {
                    Heard::Entry(entry) => self.typed(entry, &asked, terminal.as_ref(), &mut validator),
                    Heard::Shown => {
                        // Who may see it may always look.
                        let _ = self.people.see(asked.asked.id, &operator(), (self.now)());
                    }
                    Heard::Unattended => context.unattended(),
                },
                () = context.ends_unkept() => {
                    asked.cut();
                    return Ok(failed(UNKEPT));
                }
            }
        }
    }

    /// Acts on an entry at the terminal, as everybody elsewhere does.
    fn typed(
        &self,
        entry: PersonEntry,
        asked: &AskedQuestion,
        terminal: Option<&OpenQuestion>,
        validator: &mut Validator,
    ) {
        let Some(terminal) = terminal else { return };
        let act = |act, judged| self.people.act_here(asked.asked.id, &operator(), act, judged, (self.now)());
        if let Some(reason) = entry.declines() {
            if let Err(error) = act(QuestionAct::Decline { reason: reason.into() }, None) {
                terminal.tell(&error.to_string());
            }
            return;
        }
        if entry.takes() {
            return terminal.tell(&match act(QuestionAct::Claim { over: true }, None) {
                Ok(()) => "You have taken the question on.".to_owned(),
                Err(error) => error.to_string(),
            });
        }
        let PersonEntry { text, reviewed } = entry;
        let entry = Raw::new(text.clone());
        let done = match judge(entry, self.to, self.context.listener, &self.context.blueprint, validator) {
            Err(fault) => return terminal.tell(&refusal(&fault)),
            Ok((_, shown)) if !reviewed => return terminal.review(text, shown),
            Ok((judged @ Judged::Reply(_), _)) => act(QuestionAct::Answer { text: text.into() }, Some(judged)),
            // Calls belong to who works on it.
            Ok((judged @ Judged::Calls(..), _)) => act(QuestionAct::Claim { over: false }, Some(judged)),
        };
        if let Err(error) = done {
            terminal.tell(&error.to_string());
        }
    }
}

const NO_CALLER: &str = "No caller waits for an answer here: write a call.";

/// Returns the party at the terminal.
fn operator() -> Answerer {
    Answerer::operator(Name::system())
}

/// Ends a question by the word of a party, as soon as that is the answer of the thread: then the party learns that it counts,
/// and the question closes on the terminal. The handler must end next.
fn conclude(
    context: &RunContext,
    asked: AskedQuestion,
    terminal: Option<OpenQuestion>,
    note: QuestionNote,
    how: &'static str,
) -> Result<(), Fault> {
    let value = value(&note)?;
    context.thread().conclude(NOTE, &value, move |end| {
        asked.close(end);
        if let Some(terminal) = terminal
            && end == AttachmentEnd::Effective
        {
            let here = note.by == Name::system();
            terminal.end(if here { String::new() } else { format!("{how} by {}: no answer is taken", note.by) });
        }
    })
}

async fn heard(terminal: &mut Option<OpenQuestion>) -> Heard {
    match terminal {
        Some(terminal) => terminal.heard().await,
        None => std::future::pending().await,
    }
}

async fn pending_or<T>(future: &mut Option<LocalBoxFuture<T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

impl RawListener for HumanListener {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(async move {
            let to = Answered { message: message.id, thread: message.thread };
            let boots =
                matches!(&message.body, Body::Payload { payload, .. } if *payload.payload().root() == boot_qname());
            if boots {
                return self.prompt(&context, to).await;
            }
            match self.ask(&message, &context, to).await {
                Ok(outcome) => outcome,
                Err(fault) => HandlerOutcome::Failed(Failure { message: fault.message.clone(), fault: Some(fault) }),
            }
        })
    }
}

/// The envelope of a message, as a remote listener would get it.
fn envelope(message: &Message, to: &Name) -> Bytes {
    let meta = Meta {
        from: message.from.clone(),
        to: Some(to.clone()),
        thread: message.thread,
        id: message.id,
        in_reply_to: message.in_reply_to.map(|id| id.to_string()),
        deadline: message.deadline.filter(|deadline| *deadline < Time::MAX),
        traceparent: message.traceparent.map(|traceparent| traceparent.to_string()),
    };
    write_envelope(&meta, &message.body.written())
}

/// The changes of a question before a restart.
fn notes(context: &RunContext) -> Result<Vec<QuestionNote>, Fault> {
    let notes = context.thread().notes()?;
    let ours = notes.into_iter().filter(|(name, _)| name == NOTE);
    Ok(ours.filter_map(|(_, value)| serde_json::from_str(value.get()).ok()).collect())
}

/// Writes a change, and waits until it is durable.
async fn write(context: &RunContext, note: &QuestionNote) -> Result<(), Fault> {
    let index = context.thread().send_note(NOTE, &value(note)?)?;
    std::future::poll_fn(|cx| context.thread().poll_note(index, cx)).await;
    Ok(())
}

fn value(note: &QuestionNote) -> Result<Box<RawValue>, Fault> {
    serde_json::value::to_raw_value(note).map_err(|error| Fault::new(FaultCode::Internal, error.to_string()))
}

/// Makes calls one after the other, and returns the answers as a person reads them.
async fn call(calls: Vec<Call>, context: &RunContext) -> String {
    let mut shown = Vec::new();
    for Call { to, payload } in calls {
        let answer = match &to {
            Some(to) => context.thread().call_any(call_to(to.as_str(), payload)).await,
            None => context.thread().call_any(payload).await,
        };
        shown.push(match answer {
            Ok(answer) => format!("{} answers:\n{}", answer.from, quote(answer.payload.payload().as_str())),
            Err(fault) => format!("The answer is a fault:\n{}", quote(&fault.to_string())),
        });
    }
    shown.join("\n")
}

fn refused(reason: &str) -> HandlerOutcome {
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    failed(&format!("the person declined to answer{reason}"))
}

fn failed(message: &str) -> HandlerOutcome {
    HandlerOutcome::Failed(Failure { message: message.into(), fault: None })
}

fn offers(contract: &Contract, catalog: &Catalog, boots: bool) -> Arc<[PayloadSchema]> {
    let replies = contract.replies.iter().filter(|_| !boots);
    replies.chain(&contract.calls).filter_map(|payload| catalog.get(payload).cloned()).collect()
}
