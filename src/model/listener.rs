//! The loop of a listener that a model speaks for.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use systole_core::core::Silence;
use systole_core::core::{
    Answered as To, DraftEnd, Failure, HandlerOutcome, Message, ModelAnswer, PrecheckedAnswer, ReadAnswer, Remembered,
    Usage, precheck_answer, precheck_read,
};
use systole_core::vocab::{Fault, FaultCode, Time};
use systole_xml::ladder::{Raw, Repair, RepairKind};
use systole_xml::schema::Validator;
use tokio::time::timeout;

use super::allowance::Allowance;
use super::chat::Chat;
use super::feedback::{
    beside_a_reply, explained, feedback, gave_up, may_be_cut, nothing_said, said, several_replies, unfinished,
};
use super::mark::Mark;
use super::prompt::ModelPrompt;
use super::router::{Answered, Asking, Llm, NoAnswer, Unanswered};
use super::summary::{Piece, summary_in};
use super::{Completion, Finish, Growth, Provider, json};
use crate::listeners::json::JsonPayloads;
use crate::process::Subject;
use crate::runtime::{LocalBoxFuture, RawListener, RunContext};
use crate::settings::ModelSettings;

/// The name under which answers stand in the journal.
const NOTE: &str = "model";
/// The name under which answers to requests for summaries stand there.
const SUMMARY_NOTE: &str = "summary";

/// A listener that a model speaks for. Another listener can hold one, and let it [run](RawListener::run) messages that
/// it doesn't handle itself.
pub struct ModelListener {
    llm: Llm,
    settings: ModelSettings,
    providers: Vec<Box<dyn Provider>>,
    system: OnceCell<String>,
    validator: RefCell<Option<Validator>>,
    /// The payloads as JSON, and the schema of all answers; `None` if payloads are XML.
    json: OnceCell<Option<Json>>,
}

/// The means of a model that reads and writes JSON.
struct Json {
    payloads: JsonPayloads,
    answer_schema: Option<Arc<Value>>,
}

/// A request and its answer, as the journal keeps them. The system prompt and the turns before are known without it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Exchange {
    backend: String,
    model: String,
    usage: Usage,
    /// The last turn of the request.
    asked: String,
    answer: String,
    /// Empty for an answer that is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unfinished: Option<Unfinished>,
    /// Time of the attempt that got it, in milliseconds.
    #[serde(default)]
    ms: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Unfinished {
    Unsaid,
    Cut,
    Withheld(String),
}

impl ModelListener {
    /// A listener that asks these models.
    pub fn new(llm: &Llm, settings: ModelSettings) -> Self {
        let providers = llm.providers();
        Self {
            llm: llm.clone(),
            settings,
            providers,
            system: OnceCell::new(),
            validator: RefCell::default(),
            json: OnceCell::new(),
        }
    }

    fn json(&self, context: &RunContext) -> Option<&Json> {
        let make = || {
            let (contract, catalog) = (context.contract(), context.catalog());
            self.settings.json.then(|| Json {
                payloads: JsonPayloads::new(contract, catalog.clone(), &context.limits().xml),
                answer_schema: json::answer_schema(contract, catalog).map(Arc::new),
            })
        };
        self.json.get_or_init(make).as_ref()
    }

    async fn answer(&self, message: &Message, context: &RunContext) -> HandlerOutcome {
        // The model is asked once for all answers to calls that were made together.
        if message.join.is_some_and(|join| join.remaining > 0) {
            return HandlerOutcome::Emitted(Vec::new());
        }
        match self.converse(message, context).await {
            Ok(answer) => HandlerOutcome::Read(Box::new(answer)),
            Err(failure) => HandlerOutcome::Failed(failure),
        }
    }

    /// Asks until an answer keeps the contract.
    async fn converse(&self, message: &Message, context: &RunContext) -> Result<ReadAnswer, Failure> {
        let ModelSettings { temperature, max_tokens, tries, .. } = self.settings;
        let own = &context.contract().name;
        let until = deadline(context)?;
        let condensed = self.condensed(message, until, context).await?;
        let json = self.json(context);
        let history = condensed.as_deref().unwrap_or(context.thread().history());
        let mut chat = Chat::of(own, history, message, json.map(|json| &json.payloads));
        let mut tried = 0;
        loop {
            tried += 1;
            let mark = chat.mark(context.thread().secret_of(chat.opening())?);
            let (system, turns) = (self.system_prompt(context).to_owned(), chat.turns(&mark));
            let prompt = ModelPrompt {
                listener: own.clone(),
                system,
                turns,
                temperature,
                max_tokens,
                answer_schema: json.and_then(|json| json.answer_schema.clone()),
                is_summary: false,
                traceparent: message.traceparent,
            };
            let key = prompt.key();
            // Unset where the journal has the answer.
            let verdict = Cell::new(None);
            let asking = self.ask((prompt, &mark), until, message, context, &verdict);
            let exchange: Exchange = context.thread().record_answer(NOTE, &key, asking).await?;
            let completion = exchange.completion();
            let verdict = verdict.take().unwrap_or_else(|| self.judge(&completion, message, context));
            let fault = match verdict {
                Ok(read) => return Ok(read),
                Err(fault) => fault,
            };
            context.thread().give_draft_up(DraftEnd::Refused);
            if tried >= tries.max(1) {
                return Err(gave_up(tried, &fault));
            }
            chat.say(said(&completion), json.is_some());
            chat.tell(&feedback(&fault, completion.finish == Finish::Cut));
        }
    }

    /// The history of the thread with a summary in place of its oldest messages, if it is too long: the core keeps that
    /// history from then on. A summary that fails is none, and fails nothing.
    async fn condensed(
        &self,
        message: &Message,
        until: Time,
        context: &RunContext,
    ) -> Result<Option<Vec<Remembered>>, Failure> {
        let Some(settings) = &self.settings.summary else { return Ok(None) };
        let (own, thread) = (&context.contract().name, context.thread());
        let size = message.body.written().bytes().len();
        let Some(piece) = Piece::of(own, thread.history(), size, context.limits()) else { return Ok(None) };
        let chat = piece.chat(self.json(context).map(|json| &json.payloads));
        let mark = chat.mark(thread.secret_of(chat.opening())?);
        let prompt = ModelPrompt { traceparent: message.traceparent, ..piece.prompt(own, &chat, &mark, settings) };
        let key = prompt.key();
        let asking = self.summarize(prompt, piece.messages(), until, (message, context));
        let summary = match thread.record_answer::<Exchange, _>(SUMMARY_NOTE, &key, asking).await {
            Ok(exchange) => summary_in(&exchange.completion(), settings),
            Err(failure) => Err(failure.fault.map_or(failure.message, |fault| fault.message)),
        };
        let entry = summary.map(|text| piece.entry(&text));
        let subject = Subject::of(message);
        if let Err(why) = &entry {
            let (Subject { thread, id, .. }, trace) = (subject, subject.trace());
            tracing::warn!(listener = %own, %thread, message_id = %id, trace, "messages of a conversation are left out without a summary: {why}");
        }
        thread.condense(piece.until(), entry.clone());
        Ok(Some(piece.condensed(entry.ok())))
    }

    /// Asks for a summary of so many messages, in half of the time that is left.
    async fn summarize(
        &self,
        prompt: ModelPrompt,
        messages: usize,
        until: Time,
        (message, context): (&Message, &RunContext),
    ) -> Result<(Exchange, ModelAnswer), Failure> {
        let clock = context.thread().clock()?.steady();
        let now = clock.now();
        let until = now.after(until.since(now) / 2);
        let own = self.settings.summary.as_ref().and_then(|summary| summary.backend.as_ref());
        let asking = Asking {
            providers: &self.providers,
            prompt: &prompt,
            only: own.or(self.settings.backend.as_ref()),
            subject: Subject::of(message),
            allowance: Allowance::of_whole(context.thread()),
            until,
            growth: Growth::of(context.thread(), &clock, false),
            clock: clock.clone(),
        };
        let late = |_| Failure::new("the summary took longer than half of the time that was left");
        let answered = timeout(clock.until(until), self.llm.ask(asking)).await.map_err(late)?;
        let Answered { backend, completion, took, .. } = answered.map_err(no_answer)?;
        let report = ModelAnswer {
            backend: backend.as_str().into(),
            model: completion.model.as_str().into(),
            usage: completion.usage,
            took,
            text: Arc::from(&*completion.text),
            fault: None,
        };
        let exchange = Exchange::new(backend.as_str(), &format!("a summary of {messages} messages"), completion, took);
        Ok((exchange, report))
    }

    async fn ask(
        &self,
        (prompt, mark): (ModelPrompt, &Mark),
        until: Time,
        message: &Message,
        context: &RunContext,
        verdict: &Cell<Option<Result<ReadAnswer, Fault>>>,
    ) -> Result<(Exchange, ModelAnswer), Failure> {
        let clock = context.thread().clock()?.steady();
        let asking = Asking {
            providers: &self.providers,
            prompt: &prompt,
            only: self.settings.backend.as_ref(),
            subject: Subject::of(message),
            allowance: Allowance::of(context.thread(), mark),
            until,
            growth: Growth::of(context.thread(), &clock, true),
            clock,
        };
        let Answered { backend, asked, completion, took } = self.llm.ask(asking).await.map_err(no_answer)?;
        let judged = self.judge(&completion, message, context);
        let report = ModelAnswer {
            backend: backend.as_str().into(),
            model: completion.model.as_str().into(),
            usage: completion.usage,
            took,
            text: Arc::from(&*completion.text),
            fault: judged.as_ref().err().cloned(),
        };
        verdict.set(Some(judged));
        Ok((Exchange::new(backend.as_str(), asked.last(), completion, took), report))
    }

    fn system_prompt(&self, context: &RunContext) -> &str {
        self.system.get_or_init(|| {
            let (blueprint, listener) = context.place();
            self.settings.system_prompt(listener, blueprint, context.catalog())
        })
    }

    /// Judges an answer as the pump will, but for its being whole, which the pump can't know.
    fn judge(&self, completion: &Completion, message: &Message, context: &RunContext) -> Result<ReadAnswer, Fault> {
        let contract = context.contract();
        let sendable = contract.replies.iter().chain(&contract.calls);
        let judged = self.read(completion, message, context);
        judged.map_err(|fault| match completion.finish {
            Finish::Whole | Finish::Unsaid if self.settings.json => json::explained(fault, contract, context.catalog()),
            Finish::Whole | Finish::Unsaid => explained(fault, &completion.text, sendable, context.catalog()),
            Finish::Cut | Finish::Withheld(_) => fault,
        })
    }

    fn read(&self, completion: &Completion, message: &Message, context: &RunContext) -> Result<ReadAnswer, Fault> {
        if let Some(fault) = unfinished(&completion.finish, self.settings.max_tokens) {
            return Err(fault);
        }
        let (blueprint, listener) = context.place();
        let mut validator = self.validator.borrow_mut();
        let validator = validator.get_or_insert_with(|| Validator::new(context.catalog().clone()));
        let to = To { message: message.id, thread: message.thread };
        let raw = Raw::new(completion.text.clone());
        let PrecheckedAnswer { replies, read, .. } = match self.json(context) {
            None => precheck_answer(raw, to, listener, blueprint, validator)?,
            Some(json) => {
                let payloads = json.payloads.read(json::json_in(&completion.text)?.as_bytes())?;
                precheck_read(ReadAnswer::of_valid(raw, payloads), to, listener, blueprint, validator)?
            }
        };
        // JSON without its end is none.
        if completion.finish == Finish::Unsaid && lacks_end(&completion.text, &read.repairs) {
            return Err(may_be_cut());
        }
        match (replies, read.parts.len()) {
            (_, 0) if context.contract().silence == Silence::Error => Err(nothing_said(self.settings.json)),
            // A draft, an example, or what the model advises against may stand before the one that is meant.
            (replies, _) if replies > 1 => Err(several_replies(replies)),
            // The pump would take the reply, and drop the others without a word to the model.
            (1, payloads) if payloads > 1 => Err(beside_a_reply(payloads - 1)),
            _ => Ok(read),
        }
    }
}

impl RawListener for ModelListener {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(async move { self.answer(&message, &context).await })
    }
}

impl Exchange {
    fn new(backend: &str, asked: &str, completion: Completion, took: Duration) -> Self {
        let Completion { text, finish, model, usage } = completion;
        let unfinished = match finish {
            Finish::Whole => None,
            Finish::Unsaid => Some(Unfinished::Unsaid),
            Finish::Cut => Some(Unfinished::Cut),
            Finish::Withheld(why) => Some(Unfinished::Withheld(why)),
        };
        let (backend, asked) = (backend.to_owned(), asked.to_owned());
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        Self { backend, model, usage, asked, answer: text, unfinished, ms }
    }

    fn completion(self) -> Completion {
        let finish = match self.unfinished {
            None => Finish::Whole,
            Some(Unfinished::Unsaid) => Finish::Unsaid,
            Some(Unfinished::Cut) => Finish::Cut,
            Some(Unfinished::Withheld(why)) => Finish::Withheld(why),
        };
        Completion { text: self.answer, finish, model: self.model, usage: self.usage }
    }
}

/// Tests whether repair supplied an end tag behind all tags of a text, where a cut would have taken it.
fn lacks_end(text: &str, repairs: &[Repair]) -> bool {
    let supplied = repairs.iter().filter(|repair| repair.kind == RepairKind::MissingEndTag);
    supplied.filter_map(|repair| text.get(repair.span.end..)).any(|rest| !rest.contains('<'))
}

/// The end of the time of a handler that begins now, on the steady clock.
fn deadline(context: &RunContext) -> Result<Time, Failure> {
    let clock = context.thread().clock()?;
    let left = context.thread().deadline().map(|deadline| clock.until(deadline));
    let left = [context.contract().timeout, left].into_iter().flatten().min();
    Ok(left.map_or(Time::MAX, |left| clock.steady().now().after(left)))
}

fn no_answer(end: NoAnswer) -> Failure {
    match end {
        NoAnswer::Failed(unanswered) => failure(&unanswered),
        NoAnswer::Refused(failure) => failure,
    }
}

/// The failure for the caller; the log has more.
fn failure(unanswered: &Unanswered) -> Failure {
    let fault = Fault::new(FaultCode::ListenerFailed, unanswered.to_string());
    let fault = Fault { retryable: unanswered.is_passing, ..fault };
    Failure::passing(fault)
}
