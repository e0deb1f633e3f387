//! The payloads that the listeners of the tests speak: all of one shape, `<n>` and maybe `<text>`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_core::core::{Emission, EmissionKind};
use systole_core::vocab::{Name, QName, ThreadId, XmlLimits};
use systole_xml::ladder::{Canonical, Raw, parse};
use systole_xml::schema::{Catalog, Draft, Payload, PayloadSchema};

pub(crate) const NS: &str = "urn:test";

macro_rules! payloads {
    ($($name:ident $root:literal)*) => {
        $(
            /// A payload of the tests.
            #[derive(Serialize, Deserialize, JsonSchema)]
            struct $name {
                /// A number.
                n: i64,
                /// A text.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                text: Option<String>,
            }

            impl Payload for $name {
                const NAMESPACE: &'static str = NS;
                const ROOT: &'static str = $root;
            }
        )*

        /// The schemas of all of them.
        pub(crate) fn catalog() -> Arc<Catalog> {
            let mut catalog = Catalog::new();
            $(catalog.add(PayloadSchema::of::<$name>().unwrap()).unwrap();)*
            Arc::new(catalog)
        }
    };
}

payloads! {
    Ask "ask" Told "told" Ping "ping" Pong "pong" Job "job" Done "done" Tick "tick" Note "note"
    Q0 "q0" Q1 "q1" Q2 "q2" Q3 "q3" Q4 "q4" A0 "a0" A1 "a1" A2 "a2" A3 "a3" A4 "a4"
}

/// The name `{urn:test}local`, or the one that is written in Clark notation.
pub(crate) fn qname(local: &str) -> QName {
    if local.starts_with('{') { local.parse().unwrap() } else { QName::new(NS, local).unwrap() }
}

pub(crate) fn qnames(locals: &[&str]) -> Vec<QName> {
    locals.iter().map(|local| qname(local)).collect()
}

/// `<local>` with a number in it.
pub(crate) fn xml(local: &str, n: i64) -> String {
    format!("<{local} xmlns=\"{NS}\"><n>{n}</n></{local}>")
}

pub(crate) fn canonical(text: &str) -> Canonical {
    parse(&Raw::new(text.to_owned()), &XmlLimits::default()).unwrap()
}

/// Describes a payload in short: `told 7`.
pub(crate) fn short(payload: &Canonical) -> String {
    let text = payload.as_str();
    let n = text.split_once("<n>").and_then(|(_, rest)| rest.split_once("</n>"));
    match n {
        Some((n, _)) => format!("{} {n}", payload.root().local()),
        None => payload.root().local().to_owned(),
    }
}

/// The id in a `<thread-spawned>`.
pub(crate) fn spawned_id(payload: &Canonical) -> ThreadId {
    let text = payload.as_str();
    let (_, rest) = text.split_once('>').unwrap();
    rest.split_once('<').unwrap().0.parse().unwrap_or_else(|_| panic!("no id in {text}"))
}

/// The number in a payload.
pub(crate) fn number(payload: &Canonical) -> i64 {
    short(payload).split_once(' ').map_or(-1, |(_, n)| n.parse().unwrap())
}

pub(crate) fn reply(local: &str, n: i64) -> Emission {
    emission(EmissionKind::Reply, &xml(local, n))
}

pub(crate) fn call(local: &str, n: i64) -> Emission {
    call_xml(&xml(local, n))
}

pub(crate) fn call_xml(text: &str) -> Emission {
    emission(EmissionKind::Call, text)
}

/// A request to the core.
pub(crate) fn meta(element: &str) -> Emission {
    let (name, rest) =
        element.split_once(' ').map_or((element, String::new()), |(name, rest)| (name, format!(" {rest}")));
    call_xml(&format!("<{name} xmlns=\"{}\"{rest}/>", systole_core::vocab::ns::META))
}

/// `<spawn-thread>` around a first payload.
pub(crate) fn spawn(local: &str, n: i64) -> Emission {
    spawn_xml(local, &xml(local, n))
}

pub(crate) fn spawn_xml(local: &str, first: &str) -> Emission {
    let meta = systole_core::vocab::ns::META;
    call_xml(&format!("<spawn-thread xmlns=\"{meta}\" payload=\"{{{NS}}}{local}\">{first}</spawn-thread>"))
}

pub(crate) fn to(name: &str, emission: Emission) -> Emission {
    Emission { to: Some(Name::parse(name).unwrap()), ..emission }
}

pub(crate) fn on(thread: ThreadId, emission: Emission) -> Emission {
    Emission { thread: Some(thread), ..emission }
}

pub(crate) fn emission(kind: EmissionKind, text: &str) -> Emission {
    Emission { kind, to: None, thread: None, payload: Draft::Canonical(canonical(text)) }
}
