//! Every failure is an answer: panic, error, silence, timeout, a forbidden call and an unknown payload each end as a
//! fault at the caller.

use std::time::Duration;

use systole::actor::*;
use systole::prelude::*;

/// Tells the stuntman what to do.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:faults:v1", reply = Applause)]
struct Stunt {
    /// The stunt.
    what: String,
}

/// Praises a stunt that went well.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:faults:v1")]
struct Applause {
    /// The stunt that went well.
    what: String,
}

/// Opens the vault. Only the banker may be asked, and not by the stuntman.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:faults:v1", reply = Applause)]
struct OpenVault {
    /// The things to bring out.
    what: String,
}

/// A payload that no listener accepts.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:faults:v1")]
struct Gibberish {
    /// Any text.
    what: String,
}

struct Stuntman;

impl Actor for Stuntman {
    type Context = Context<Self>;
}

impl Handler<Delivery<Stunt>> for Stuntman {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, stunt: Delivery<Stunt>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            match stunt.what.as_str() {
                "panic" => panic!("the stuntman fell"),
                "error" => Err("ten".parse::<u8>().unwrap_err().into()),
                "silence" => Ok(none()),
                "timeout" => std::future::pending().await,
                "forbidden" => Ok(stunt.reply(stunt.thread().call(OpenVault { what: "gold".into() }).await?)),
                _ => Ok(stunt.reply(Applause { what: stunt.what.clone() })),
            }
        })
    }
}

struct Banker;

impl Actor for Banker {
    type Context = Context<Self>;
}

impl Handler<Delivery<OpenVault>> for Banker {
    type Result = Response;

    fn handle(&mut self, _: Delivery<OpenVault>, _: &mut Context<Self>) -> Response {
        unreachable!("nobody may ask the banker")
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    std::panic::set_hook(Box::new(|panic| println!("  (a handler panics: {panic})")));
    let organism = Organism::builder("faults")
        .listener("stuntman", || Stuntman, |c| c.answers::<Stunt>().timeout(Duration::from_millis(100)))
        .listener("banker", || Banker, |c| c.answers::<OpenVault>())
        .client("audience", |c| c.calls::<Stunt>())
        .start()?;
    let audience = organism.client("audience")?;

    println!("{:<10} {:<10} {:<16} message", "stunt", "from", "code");
    for (what, code) in [
        ("panic", FaultCode::ListenerFailed),
        ("error", FaultCode::Failed),
        ("silence", FaultCode::Silent),
        ("timeout", FaultCode::Timeout),
        ("forbidden", FaultCode::Route),
    ] {
        expect(&audience, what, Stunt { what: what.into() }, "stuntman", code)?;
    }
    expect(&audience, "unknown", Gibberish { what: "?".into() }, "system", FaultCode::Route)?;

    let applause = block_on(audience.ask(Stunt { what: "a simple one".into() }))?;
    println!("and after all that: {applause:?}");
    Ok(())
}

/// Sends a request; the answer has to be a fault of that code, from that sender.
fn expect(
    audience: &Client,
    what: &str,
    request: impl Payload,
    from: &str,
    code: FaultCode,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut conversation = audience.converse();
    conversation.send(request)?;
    let answer = block_on(conversation.receive()).ok_or("the conversation closed without an answer")?;
    let fault = answer.fault.ok_or_else(|| format!("{what}: no fault, but {}", answer.payload.as_str()))?;
    println!("{what:<10} {:<10} {:<16} {}", answer.from.as_str(), fault.code.as_str(), fault.message);
    assert_eq!((answer.from.as_str(), fault.code), (from, code), "{what}");
    Ok(())
}
