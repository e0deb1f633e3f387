//! The judgement of an entry: the meaning of what a person wrote, by the pump's own rules, so that mistakes are corrected where
//! they are made.

use std::fmt::Write as _;

use systole_core::core::{Answered, Blueprint, ListenerId, precheck_answer, read_answer};
use systole_core::vocab::{BrokenRule, Fault, FaultCode, Name, Position, QName, near, ns};
use systole_xml::ladder::Raw;
use systole_xml::schema::{Catalog, Draft, Validator, infer_namespace};

use super::people::{Call, Judged};

/// Judges an entry. Returns its meaning, and the payloads to send, as a text.
///
/// # Errors
/// A fault with the rule, the place and an example.
pub(crate) fn judge(
    entry: Raw,
    to: Answered,
    listener: ListenerId,
    blueprint: &Blueprint,
    validator: &mut Validator,
) -> Result<(Judged, String), Fault> {
    let contract = &blueprint[listener];
    let sendable = || contract.replies.iter().chain(&contract.calls);
    let mut read = read_answer(entry.clone(), contract, &blueprint.limits.xml, validator.catalog())
        .map_err(|fault| with_example(fault, validator.catalog(), sendable()))?;
    let mut calls = Vec::new();
    let mut replies = 0;
    let mut shown = String::new();
    for repair in &read.repairs {
        let _ = writeln!(shown, "repaired: {} {}", repair.at, repair.kind);
    }
    let refuse = |code, rule: String, at: Option<Position>, catalog: &Catalog, of: Option<&QName>| {
        let fault = Fault::new(code, rule.clone());
        let fault = Fault { rule: Some(Box::new(BrokenRule { rule, at, example: None })), ..fault };
        match of {
            Some(of) => with_example(fault, catalog, std::iter::once(of).chain(sendable())),
            None => with_example(fault, catalog, sendable()),
        }
    };
    for part in &mut read.parts {
        let payload = match &part.payload {
            Draft::NoEnvelope(error) => {
                let rule = error.to_string();
                return Err(refuse(FaultCode::Envelope, rule, None, validator.catalog(), None));
            }
            payload => payload.clone().into_payload(),
        };
        let Some(payload) = payload else { continue };
        let payload = infer_namespace(payload, sendable(), validator.catalog());
        let to = part.claims.as_ref().and_then(|claims| claims.to.as_deref());
        let to = to
            .map(Name::parse)
            .transpose()
            .map_err(|error| refuse(FaultCode::Envelope, format!("<to>: {error}"), None, validator.catalog(), None))?;
        let root = payload.root();
        if to.is_none() && contract.replies.contains(root) {
            replies += 1;
        } else if to.is_some() && contract.replies.contains(root) && !contract.calls.contains(root) {
            let rule = "a reply goes to the caller: leave <to> out".to_owned();
            return Err(refuse(FaultCode::Route, rule, None, validator.catalog(), Some(root)));
        } else if !contract.calls.contains(root) && root.namespace() != ns::META {
            let near = near::payload(root, sendable());
            let hint = near.map_or_else(String::new, |near| format!(": did you mean {near}?"));
            let rule = format!("{root} is neither a reply nor a call of {}{hint}", contract.name);
            return Err(refuse(FaultCode::Route, rule, None, validator.catalog(), near));
        }
        if root.namespace() != ns::META {
            match validator.validate(payload.clone()) {
                Ok(proof) => part.payload = Draft::Proved(proof),
                Err(error) => {
                    let rule = error.to_string();
                    return Err(refuse(FaultCode::Payload, rule, error.at, validator.catalog(), Some(root)));
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
        (0, true) => {
            let rule = "there is no element in this".to_owned();
            Err(refuse(FaultCode::Malformed, rule, None, validator.catalog(), None))
        }
        (0, false) => Ok((Judged::Calls(Box::new(read), calls), shown)),
        _ => {
            // What the pump would still refuse, such as an envelope that answers another message.
            precheck_answer(entry, to, listener, blueprint, validator)
                .map_err(|fault| with_example(fault, validator.catalog(), sendable()))?;
            Ok((Judged::Reply(Box::new(read)), shown))
        }
    }
}

/// Adds the first example that there is to a fault without one.
fn with_example<'a>(fault: Fault, catalog: &Catalog, of: impl IntoIterator<Item = &'a QName>) -> Fault {
    let Fault { rule, message, .. } = &fault;
    if rule.as_ref().is_some_and(|rule| rule.example.is_some()) {
        return fault;
    }
    let example = of.into_iter().find_map(|payload| Some(catalog.get(payload)?.example()?.as_str().to_owned()));
    let rule = match rule {
        Some(rule) => BrokenRule { example, ..(**rule).clone() },
        None => BrokenRule { rule: message.to_string(), at: None, example },
    };
    Fault { rule: Some(Box::new(rule)), ..fault }
}

/// The reason of a refusal, for a person: place, rule and example.
pub(crate) fn refusal(fault: &Fault) -> String {
    let Some(BrokenRule { rule, at, example }) = fault.rule.as_deref() else { return fault.message.to_string() };
    let at = at.map_or_else(String::new, |at| format!("{at}: "));
    let example = example.as_ref().map_or_else(String::new, |example| format!("\nWrite it as in {example}"));
    format!("{at}{rule}{example}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use systole_core::core::Contract;
    use systole_core::vocab::{MessageId, ThreadId};
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
        let blueprint = Blueprint::new("a", vec![contract], Vec::new());
        let to = Answered {
            message: MessageId::from_uuid(uuid::Uuid::nil()),
            thread: ThreadId::from_uuid(uuid::Uuid::nil()),
        };
        match judge(Raw::new(entry.to_owned()), to, ListenerId(0), &blueprint, &mut validator) {
            Ok((Judged::Calls(_, calls), _)) => format!("{} calls", calls.len()),
            Ok((Judged::Reply(_), shown)) => format!("Reply {shown}"),
            Err(fault) => {
                assert!(fault.rule.as_ref().is_some_and(|rule| rule.example.is_some()), "{entry}: {fault:?}");
                refusal(&fault)
            }
        }
    }

    #[test]
    fn an_entry_is_a_reply_or_calls_or_refused_with_rule_and_example() {
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
        let misspelt = verdict("<asc/>");
        assert!(
            misspelt.starts_with("asc is neither a reply nor a call of ada: did you mean {urn:a}ask?\n"),
            "{misspelt}"
        );
        assert!(misspelt.ends_with("Write it as in <ask xmlns=\"urn:a\">text</ask>"), "{misspelt}");
        assert_eq!(verdict("<a:ask xmlns:a='urn:a'/><ask/>"), "2 calls");
        assert_eq!(verdict("<list-capabilities xmlns='https://xml-pipeline.org/ns/meta/v1'/>"), "1 calls");
        assert!(verdict("<no/>").starts_with("no is neither a reply nor a call of ada\n"), "{}", verdict("<no/>"));
        assert!(verdict("<ask/>\n<yes>maybe</yes>").starts_with("2:6: "), "{}", verdict("<ask/>\n<yes>maybe</yes>"));
        assert!(verdict("  ").starts_with("there is no element in this"));
    }
}
