//! The listener of a person: judges what the person types, and sends it.

use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use systole_core::core::{Body, Contract, Failure, HandlerOutcome, Message, ReadAnswer, read_answer};
use systole_core::protocol::boot_qname;
use systole_core::vocab::{Name, XmlLimits, near, ns};
use systole_xml::ladder::Raw;
use systole_xml::schema::{Catalog, Draft, PayloadSchema, Validator, infer_namespace};

use super::console::{Console, OpenQuestion};
use super::questions::{DECLINE, Heard, PersonEntry};
use crate::runtime::{LocalBoxFuture, RawListener, RunContext, call_to};
use crate::terminal::quote;

/// The reason why a question fails at the end of an organism without a journal.
const UNKEPT: &str = "the organism ended before the person answered, and has no journal that keeps the question";

/// A listener whose handler is a person.
///
/// A message is shown as a question. An entry may be a reply, which closes the question, or calls, whose answers are
/// shown below it. A listener that accepts `<boot>` prompts for calls for as long as the organism runs.
///
/// A question waits for its person, whatever happens to the keyboard: for its deadline and its caller, where the organism
/// is durable also for the next start. Once nobody can answer it here, it no longer keeps the organism from being idle.
///
/// The end of an organism in order waits for no person: a contract that [outlives](Contract::outlives) the process leaves the
/// question to the journal; without a journal the question fails.
#[derive(Debug, Clone)]
pub struct HumanListener {
    console: Console,
}

impl HumanListener {
    /// Makes a listener for a person at that console; several people may share it.
    pub fn new(console: Console) -> Self {
        console.listen();
        Self { console }
    }

    async fn answer(&self, message: Message, context: &RunContext) -> HandlerOutcome {
        let contract = context.contract();
        let boots = matches!(&message.body, Body::Payload { payload, .. } if *payload.payload().root() == boot_qname());
        if boots && contract.calls.is_empty() {
            return HandlerOutcome::Emitted(Vec::new());
        }
        let mut asked = self.console.ask(
            if boots {
                format!("{} is ready", contract.name)
            } else {
                format!("{} asks {}", message.from, contract.name)
            },
            if boots { String::new() } else { message.body.written().as_str().to_owned() },
            offers(contract, context.catalog(), boots),
            context.limits().xml.clone(),
            !boots,
        );
        let mut validator = Validator::new(context.catalog.clone());
        loop {
            let heard = tokio::select! {
                biased;
                heard = asked.heard() => heard,
                () = context.ends_unkept() => return failed(UNKEPT),
            };
            let PersonEntry { text, reviewed } = match heard {
                Heard::Entry(entry) => entry,
                Heard::Unattended if boots => {
                    asked.answered();
                    return HandlerOutcome::Emitted(Vec::new());
                }
                Heard::Unattended => {
                    context.unattended();
                    continue;
                }
            };
            match judge(text.clone(), contract, &context.limits().xml, &mut validator) {
                Verdict::Reply(_, shown) if !boots && !reviewed => asked.review(text, shown),
                Verdict::Calls(.., shown) if !reviewed => asked.review(text, shown),
                Verdict::Reply(read, _) if !boots => {
                    asked.answered();
                    return HandlerOutcome::Read(read);
                }
                Verdict::Decline if !boots => {
                    asked.answered();
                    return failed("the person declined to answer");
                }
                Verdict::Calls(read, calls, _) => {
                    context.thread().repaired(&read.repairs, read.raw);
                    call(calls, context, &asked).await;
                }
                Verdict::Refused(why) => asked.tell(&why),
                Verdict::Reply(..) | Verdict::Decline => {
                    asked.tell("No caller waits for an answer here: write a call.")
                }
            }
        }
    }
}

impl RawListener for HumanListener {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(async move { self.answer(message, &context).await })
    }
}

/// Makes calls one after the other, and shows the answers.
async fn call(calls: Vec<Call>, context: &RunContext, asked: &OpenQuestion) {
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
    asked.tell(&shown.join("\n"));
}

fn failed(message: &str) -> HandlerOutcome {
    HandlerOutcome::Failed(Failure { message: message.into(), fault: None })
}

fn offers(contract: &Contract, catalog: &Catalog, boots: bool) -> Arc<[PayloadSchema]> {
    let replies = contract.replies.iter().filter(|_| !boots);
    replies.chain(&contract.calls).filter_map(|payload| catalog.get(payload).cloned()).collect()
}

/// Meaning of an entry. The texts show the payloads to send.
#[derive(Debug)]
enum Verdict {
    Reply(Box<ReadAnswer>, String),
    Decline,
    Calls(Box<ReadAnswer>, Vec<Call>, String),
    Refused(String),
}

/// A call, and the listener that it names, if any.
#[derive(Debug)]
struct Call {
    to: Option<Name>,
    payload: Draft,
}

/// Prechecks an entry by the pump's rules, so that the person can correct mistakes before the pump judges it.
fn judge(entry: String, contract: &Contract, limits: &XmlLimits, validator: &mut Validator) -> Verdict {
    if entry == DECLINE {
        return Verdict::Decline;
    }
    let mut read = match read_answer(Raw::new(entry), contract, limits, validator.catalog()) {
        Ok(read) => read,
        Err(fault) => return Verdict::Refused(fault.to_string()),
    };
    let mut calls = Vec::new();
    let mut replies = 0;
    let mut shown = String::new();
    for repair in &read.repairs {
        let _ = writeln!(shown, "repaired: {} {}", repair.at, repair.kind);
    }
    for part in &mut read.parts {
        let payload = match &part.payload {
            Draft::NoEnvelope(error) => return Verdict::Refused(error.to_string()),
            payload => payload.clone().into_payload(),
        };
        let Some(payload) = payload else { continue };
        let payload = infer_namespace(payload, contract.replies.iter().chain(&contract.calls), validator.catalog());
        let to = part.claims.as_ref().and_then(|claims| claims.to.as_deref());
        let to = match to.map(Name::parse).transpose() {
            Ok(to) => to,
            Err(error) => return Verdict::Refused(format!("<to>: {error}")),
        };
        let root = payload.root();
        if to.is_none() && contract.replies.contains(root) {
            replies += 1;
        } else if to.is_some() && contract.replies.contains(root) && !contract.calls.contains(root) {
            return Verdict::Refused("a reply goes to the caller: leave <to> out".to_owned());
        } else if !contract.calls.contains(root) && root.namespace() != ns::META {
            let near = near::payload(root, contract.replies.iter().chain(&contract.calls));
            let near = near.map_or_else(String::new, |near| format!(": did you mean {near}?"));
            return Verdict::Refused(format!("{root} is neither a reply nor a call of {}{near}", contract.name));
        }
        if root.namespace() != ns::META {
            match validator.validate(payload.clone()) {
                Ok(proof) => part.payload = Draft::Proved(proof),
                Err(error) => {
                    let at = error.at.map_or_else(String::new, |at| format!("{at}: "));
                    return Verdict::Refused(format!("{at}{error}"));
                }
            }
        }
        if !shown.is_empty() && !shown.ends_with('\n') {
            shown.push('\n');
        }
        if let Some(to) = &to {
            let _ = write!(shown, "to {to}: ");
        }
        shown.push_str(payload.as_str());
        calls.push(Call { to, payload: part.payload.clone() });
    }
    match (replies, calls.is_empty()) {
        (0, true) => Verdict::Refused("There is no element in this.".to_owned()),
        (0, false) => Verdict::Calls(Box::new(read), calls, shown),
        _ => Verdict::Reply(Box::new(read), shown),
    }
}

#[cfg(test)]
mod tests {
    use systole_core::vocab::Name;
    use systole_xml::schema::PayloadSchema;

    use super::*;

    const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:a">
        <xs:element name="yes" type="xs:int"/><xs:element name="ask" type="xs:string"/>
        </xs:schema>"#;

    fn verdict(entry: &str) -> String {
        let mut contract = Contract::new(Name::parse("ada").unwrap());
        contract.replies = vec!["{urn:a}yes".parse().unwrap()];
        contract.calls = vec!["{urn:a}ask".parse().unwrap()];
        let mut catalog = Catalog::new();
        for schema in PayloadSchema::from_xsd("a.xsd", SCHEMA).unwrap() {
            catalog.add(schema).unwrap();
        }
        let mut validator = Validator::new(Arc::new(catalog));
        match judge(entry.to_owned(), &contract, &XmlLimits::default(), &mut validator) {
            Verdict::Calls(_, calls, _) => format!("{} calls", calls.len()),
            Verdict::Refused(why) => why,
            Verdict::Reply(_, shown) => format!("Reply {shown}"),
            Verdict::Decline => "Decline".to_owned(),
        }
    }

    #[test]
    fn what_was_typed_is_a_reply_or_calls_or_refused_with_a_reason() {
        let shown = "<yes xmlns=\"urn:a\">1</yes>";
        assert_eq!(verdict("<yes xmlns='urn:a'>1</yes>"), format!("Reply {shown}"));
        assert_eq!(verdict("<ask/><yes>1</yes>"), format!("Reply <ask xmlns=\"urn:a\"></ask>\n{shown}"));
        let repaired = verdict("```xml\n<yes>1</yes>\n```");
        assert!(
            repaired.starts_with("Reply repaired: 1:1 ") && repaired.ends_with(&format!("\n{shown}")),
            "{repaired}"
        );
        let envelope =
            |meta: &str| format!("<message xmlns='{}'>{meta}<yes xmlns='urn:a'>1</yes></message>", ns::ENVELOPE);
        assert_eq!(verdict(&envelope("")), format!("Reply {shown}"));
        assert!(verdict(&envelope("<meta><to>bob</to></meta>")).starts_with("a reply goes to the caller"));
        assert_eq!(verdict("<asc/>"), "asc is neither a reply nor a call of ada: did you mean {urn:a}ask?");
        assert_eq!(verdict("<a:ask xmlns:a='urn:a'/><ask/>"), "2 calls");
        assert_eq!(verdict("<list-capabilities xmlns='https://xml-pipeline.org/ns/meta/v1'/>"), "1 calls");
        assert_eq!(verdict("-"), "Decline");
        assert_eq!(verdict("<no/>"), "no is neither a reply nor a call of ada");
        assert!(verdict("<ask/>\n<yes>maybe</yes>").starts_with("2:6: "), "{}", verdict("<ask/>\n<yes>maybe</yes>"));
    }
}
