//! The judgement of one emission: its kind, its receivers, and whether it keeps its contract.
//! Nothing takes effect here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foldhash::{HashMap, HashMapExt};
use systole_xml::ladder::Canonical;
use systole_xml::schema::{self, Catalog, DecodeFn, Draft, Element, SchemaError, Validated, Validator};

use super::blueprint::{Blueprint, ListenerId, Party, Version};
use super::catch_panic::{Value, catch_panic};
use super::contract::{Access, Contract};
use super::event::Misroute;
use super::faults;
use super::io::{Body, Emission, EmissionKind, OrganismVersion};
use super::key::ThreadKey;
use super::queued::Content;
use super::records::stored;
use crate::protocol::{MetaAnswer, MetaError, MetaProblem, MetaRequest};
use crate::vocab::{Fault, Name, QName, ThreadId, ns};

/// The one judge of payloads: of their kinds, their receivers, and whether they keep their contracts. The core asks it, and
/// so do entrances that judge a message before the core does.
pub(super) struct Judge<'a> {
    pub blueprint: &'a Blueprint,
    pub validator: &'a mut Validator,
}

/// The payloads of a core: judged, proved and decoded, by the version of the organism that their conversation keeps.
pub(super) struct Payloads {
    decoders: Arc<Decoders>,
    /// The versions with open conversations, and the newest one, which is the last.
    versions: Vec<OfVersion>,
}

/// The judge of the payloads of a version, with what a new core needs of it.
struct OfVersion {
    number: Version,
    blueprint: Arc<Blueprint>,
    catalog: Arc<Catalog>,
    validator: Validator,
}

/// The decoder of each payload that a listener takes; by listener, so that a look-up makes no key.
#[derive(Clone, Default)]
pub struct Decoders(Vec<HashMap<QName, DecodeFn>>);

/// The party that asks.
pub(super) struct Asker<'a> {
    pub calls: &'a [QName],
    pub replies: &'a [QName],
    pub admin: bool,
    pub remote: bool,
}

/// The effect that an emission is to have.
pub(super) enum Verdict {
    Reply(Validated<Element>),
    Continue {
        payload: Validated<Element>,
        after: Duration,
    },
    Call {
        first: ListenerId,
        others: Vec<ListenerId>,
        payload: Validated<Element>,
    },
    /// A call on a spawned thread.
    Addressed {
        thread: ThreadKey,
        payload: Validated<Element>,
    },
    /// The end of a spawned thread.
    CloseThread {
        thread: ThreadKey,
        payload: Canonical,
    },
    Core {
        request: MetaRequest,
        payload: Canonical,
    },
    Spawn {
        target: ListenerId,
        first: Validated<Element>,
        payload: Canonical,
    },
    Refused(Refusal),
}

/// An emission without an effect, with the fault for its sender.
pub(super) struct Refusal {
    /// The listener that it named.
    pub to: Option<Name>,
    pub payload: Option<Canonical>,
    pub fault: Fault,
    /// The mistake behind a fault of the route. Only operators learn it.
    pub misroute: Option<Misroute>,
    /// Indices of the fan-out that it holds.
    pub width: usize,
}

/// A payload that is XML, at least.
pub(super) enum ParsedPayload {
    Unproved(Canonical),
    Proved(Validated<Element>),
}

/// The listeners that a payload goes to, in the order of registration.
pub(super) struct Targets {
    pub first: ListenerId,
    pub others: Vec<ListenerId>,
}

impl Verdict {
    /// The payload that it is about, as far as there is one.
    pub(super) fn into_payload(self) -> Option<Canonical> {
        match self {
            Self::Reply(payload)
            | Self::Continue { payload, .. }
            | Self::Call { payload, .. }
            | Self::Addressed { payload, .. } => Some(payload.payload().clone()),
            Self::CloseThread { payload, .. } | Self::Core { payload, .. } | Self::Spawn { payload, .. } => {
                Some(payload)
            }
            Self::Refused(refusal) => refusal.payload,
        }
    }

    /// The fault that refuses it.
    pub(super) fn refusal(&self) -> Option<&Fault> {
        match self {
            Self::Refused(refusal) => Some(&refusal.fault),
            _ => None,
        }
    }

    /// Returns whether its thread goes on with it, rather than to answer or to end something.
    pub(super) fn goes_on(&self) -> bool {
        match self {
            Self::Reply(_) | Self::CloseThread { .. } | Self::Refused(_) => false,
            Self::Call { .. }
            | Self::Continue { .. }
            | Self::Addressed { .. }
            | Self::Core { .. }
            | Self::Spawn { .. } => true,
        }
    }

    /// The one listener that it is for.
    pub(super) fn addressee(&self, blueprint: &Blueprint) -> Option<Name> {
        match self {
            Self::Call { first, others, .. } if others.is_empty() => Some(blueprint[*first].name.clone()),
            Self::Refused(refusal) => refusal.to.clone(),
            Self::Call { .. }
            | Self::Reply(_)
            | Self::Continue { .. }
            | Self::Addressed { .. }
            | Self::CloseThread { .. }
            | Self::Core { .. }
            | Self::Spawn { .. } => None,
        }
    }

    /// Indices of the fan-out that it takes.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Reply(_) | Self::Continue { .. } => 0,
            Self::Call { others, .. } => 1 + others.len(),
            Self::Addressed { .. } | Self::CloseThread { .. } | Self::Core { .. } => 1,
            Self::Spawn { .. } => SPAWN_WIDTH,
            Self::Refused(refusal) => refusal.width,
        }
    }
}

/// The indices for `<thread-spawned>` and for the answer to the first payload.
const SPAWN_WIDTH: usize = 2;

impl Judge<'_> {
    /// Judges an emission of a listener. `owned`: the spawned thread of that id, if it belongs to the emitting thread.
    pub(super) fn emission(
        &mut self,
        listener: ListenerId,
        emission: &Emission,
        owned: impl FnOnce(ThreadId) -> Option<(ThreadKey, ListenerId)>,
    ) -> Verdict {
        let Emission { kind, to, thread: address, payload } = emission;
        let contract = &self.blueprint[listener];
        let draft = match payload {
            Draft::Unencodable(error) => {
                let is_call = matches!(kind, EmissionKind::Call | EmissionKind::Inferred);
                return refuse(None, faults::unencodable(error), usize::from(is_call));
            }
            Draft::NoEnvelope(error) => {
                let sends = contract.replies.iter().chain(&contract.calls);
                return refuse(None, faults::envelope(error, &contract.name, sends, self.validator.catalog()), 1);
            }
            Draft::Canonical(payload) => {
                let known = contract.replies.iter().chain(&contract.calls);
                ParsedPayload::Unproved(schema::infer_namespace(payload.clone(), known, self.validator.catalog()))
            }
            Draft::Proved(payload) => self.trusted(payload.clone()),
        };
        let own = (&*contract.replies, Misroute::NotInReplies);
        match *kind {
            EmissionKind::Continue { after } => {
                let own = (&*contract.accepts, Misroute::NotContinued);
                self.own(draft, own, |payload| Verdict::Continue { payload, after })
            }
            EmissionKind::Reply => self.own(draft, own, Verdict::Reply),
            EmissionKind::Inferred if to.is_none() && address.is_none() && contract.replies.contains(draft.root()) => {
                self.own(draft, own, Verdict::Reply)
            }
            EmissionKind::Call | EmissionKind::Inferred => match address {
                Some(id) => match owned(*id) {
                    Some(child) => self.addressed(child, contract, draft),
                    None => refuse_route(draft, Misroute::UnknownThread),
                },
                None => self.call(to.as_ref(), Some(Party::Listener(listener)), draft),
            },
        }
    }

    /// Refuses requests to the core of a listener that does not take their answers. Only calls that a handler awaits have
    /// their answers otherwise.
    pub(super) fn refuse_untaken(&self, listener: ListenerId, verdicts: &mut [Verdict]) {
        for verdict in verdicts {
            let (Verdict::Core { payload, .. } | Verdict::Spawn { payload, .. }) = &*verdict else { continue };
            if let Some(fault) = self.untaken_answer(listener, payload) {
                *verdict = refuse(Some(payload.clone()), fault, verdict.width());
            }
        }
    }

    /// The fault of a request to the core whose answer the contract of its sender does not take: that answer would end the
    /// thread.
    pub(super) fn untaken_answer(&self, listener: ListenerId, payload: &Canonical) -> Option<Fault> {
        let request = MetaRequest::read(payload).ok().filter(|_| payload.root().namespace() == ns::META)?;
        let (answer, contract) = (request.answer()?, &self.blueprint[listener]);
        (!contract.returns.contains(&answer)).then(|| faults::untaken(payload.root(), &answer, contract))
    }

    /// Judges a request of a caller.
    pub(super) fn call(&mut self, to: Option<&Name>, caller: Option<Party>, draft: ParsedPayload) -> Verdict {
        let qname = draft.root().clone();
        if qname.namespace() == ns::META {
            return self.meta(caller, draft);
        }
        match self.targets(&qname, to, caller) {
            Err(misroute) => match refuse_route(draft, misroute) {
                Verdict::Refused(refusal) => Verdict::Refused(Refusal { to: to.cloned(), ..refusal }),
                other => other,
            },
            Ok(Targets { first, others }) => self.prove(draft, 1, |payload| Verdict::Call { first, others, payload }),
        }
    }

    fn meta(&mut self, caller: Option<Party>, draft: ParsedPayload) -> Verdict {
        let payload = draft.into_canonical();
        let request = match MetaRequest::read(&payload) {
            Ok(request) => request,
            Err(error) => return refuse_meta(payload, &error),
        };
        let MetaRequest::SpawnThread { first } = request else { return Verdict::Core { request, payload } };
        if first.root().namespace() == ns::META {
            return refuse_spawn(payload, first.root(), Misroute::NoRequest);
        }
        let asked = first.root().clone();
        match self.call(None, caller, ParsedPayload::Unproved(first)) {
            Verdict::Call { first: target, others, payload: first } if others.is_empty() => {
                Verdict::Spawn { target, first, payload }
            }
            Verdict::Refused(refusal) => {
                Verdict::Refused(Refusal { payload: Some(payload), width: SPAWN_WIDTH, ..refusal })
            }
            // A thread has one listener, and a broadcast several.
            _ => refuse_spawn(payload, &asked, Misroute::ManyListeners),
        }
    }

    fn addressed(
        &mut self,
        (child, target): (ThreadKey, ListenerId),
        contract: &Contract,
        draft: ParsedPayload,
    ) -> Verdict {
        let qname = draft.root().clone();
        if qname.namespace() == ns::META {
            let payload = draft.into_canonical();
            return match MetaRequest::read(&payload) {
                Ok(MetaRequest::CloseThread) => Verdict::CloseThread { thread: child, payload },
                Ok(_) => refuse_route(ParsedPayload::Unproved(payload), Misroute::NoRequest),
                Err(error) => refuse_meta(payload, &error),
            };
        }
        let target = &self.blueprint[target];
        if !target.accepts.contains(&qname) {
            let misroute = Misroute::NotAcceptedBy(target.name.clone());
            return refuse_route(draft, misroute);
        }
        if !contract.calls.contains(&qname) {
            return refuse_route(draft, Misroute::NotInCalls);
        }
        self.prove(draft, 1, |payload| Verdict::Addressed { thread: child, payload })
    }

    /// Judges a payload that goes no further than its own thread or its parent.
    fn own(
        &mut self,
        draft: ParsedPayload,
        (allowed, otherwise): (&[QName], Misroute),
        verdict: impl FnOnce(Validated<Element>) -> Verdict,
    ) -> Verdict {
        if !allowed.contains(draft.root()) {
            return refuse_misrouted(draft.into_canonical(), otherwise, 0);
        }
        self.prove(draft, 0, verdict)
    }

    /// The verdict on a payload that keeps its schema; a refusal of that width for one that breaks it.
    fn prove(
        &mut self,
        draft: ParsedPayload,
        width: usize,
        verdict: impl FnOnce(Validated<Element>) -> Verdict,
    ) -> Verdict {
        let payload = match &draft {
            ParsedPayload::Proved(_) => None,
            ParsedPayload::Unproved(payload) => Some(payload.clone()),
        };
        match self.proof(draft) {
            Ok(payload) => verdict(payload),
            Err(fault) => refuse(payload, fault, width),
        }
    }

    /// Proves that a payload keeps its schema.
    pub(super) fn proof_of(&mut self, payload: &Canonical) -> Result<Validated<Element>, Fault> {
        let proof = self.validator.validate(payload.clone());
        proof.map_err(|error| faults::payload(payload.root(), &error, self.validator.catalog()))
    }

    /// The proof of a payload, made where it has none.
    pub(super) fn proof(&mut self, draft: ParsedPayload) -> Result<Validated<Element>, Fault> {
        match draft {
            ParsedPayload::Proved(proof) => Ok(proof),
            ParsedPayload::Unproved(payload) => self.proof_of(&payload),
        }
    }

    /// Takes a proof from outside, if it is one of the schema that the organism has of that name.
    pub(super) fn trusted(&self, proof: Validated<Element>) -> ParsedPayload {
        if proof.holds_in(self.validator.catalog()) {
            ParsedPayload::Proved(proof)
        } else {
            ParsedPayload::Unproved(proof.payload().clone())
        }
    }

    /// Finds the listeners that get a payload.
    fn targets(&self, qname: &QName, to: Option<&Name>, caller: Option<Party>) -> Result<Targets, Misroute> {
        let blueprint = self.blueprint;
        let ends = blueprint.ends(qname);
        let targets = match to {
            Some(name) => match blueprint.party(name.as_str()) {
                Some(Party::Listener(listener)) if ends.has_acceptor(listener) => {
                    Ok(Targets { first: listener, others: Vec::new() })
                }
                Some(Party::Listener(_)) => Err(Misroute::NotAcceptedBy(name.clone())),
                None if *name == Name::root() => Err(Misroute::NoName),
                Some(Party::Client(_)) | None => Err(Misroute::UnknownListener(name.clone())),
            },
            None => {
                let otherwise = if ends.accepting.is_empty() { Misroute::NotAccepted } else { Misroute::NotAddressed };
                let targets = ends.routed.split_first();
                targets.map(|(&first, others)| Targets { first, others: others.to_vec() }).ok_or(otherwise)
            }
        };
        targets.and_then(|targets| {
            let allowed = caller.is_some_and(|caller| ends.has_caller(caller)) && qname.namespace() != ns::CORE;
            if allowed { Ok(targets) } else { Err(Misroute::NotInCalls) }
        })
    }

    /// Answers a question.
    pub(super) fn knowledge(&self, asker: &Asker<'_>, request: MetaRequest) -> Result<MetaAnswer, Fault> {
        let flags = &self.blueprint.meta;
        let access = match &request {
            MetaRequest::ListCapabilities => flags.list_capabilities,
            MetaRequest::RequestSchema { .. } => flags.request_schema,
            MetaRequest::RequestExample { .. } => flags.request_example,
            MetaRequest::RequestPrompt { .. } => flags.request_prompt,
            MetaRequest::SpawnThread { .. } | MetaRequest::ClearContext | MetaRequest::CloseThread => Access::None,
        };
        let refused = || faults::route(&request.qname());
        if (asker.remote && !flags.remote) || access == Access::None || (access == Access::Admin && !asker.admin) {
            return Err(refused());
        }
        let everything = access != Access::Peers;
        let known = |payload: &QName| everything || asker.calls.contains(payload) || asker.replies.contains(payload);
        let schema =
            |payload: &QName| self.validator.catalog().get(payload).filter(|_| known(payload)).ok_or_else(refused);
        match &request {
            MetaRequest::ListCapabilities => Ok(MetaAnswer::Capabilities(self.capabilities(asker, everything))),
            MetaRequest::RequestSchema { payload } => {
                let document = schema(payload)?.embeddable_document().ok_or_else(refused)?.clone();
                Ok(MetaAnswer::Schema { payload: payload.clone(), document })
            }
            MetaRequest::RequestExample { payload } => {
                let instance = schema(payload)?.example().ok_or_else(refused)?.clone();
                Ok(MetaAnswer::Example { payload: payload.clone(), instance })
            }
            MetaRequest::RequestPrompt { payload: Some(payload) } => {
                Ok(MetaAnswer::Prompt(schema(payload)?.prompt().to_owned()))
            }
            MetaRequest::RequestPrompt { payload: None } => {
                let capabilities = self.capabilities(asker, everything);
                let prompts = capabilities
                    .iter()
                    .filter_map(|(payload, _)| Some(self.validator.catalog().get(payload)?.prompt()));
                Ok(MetaAnswer::Prompt(prompts.collect::<Vec<_>>().join("\n\n")))
            }
            MetaRequest::SpawnThread { .. } | MetaRequest::ClearContext | MetaRequest::CloseThread => Err(refused()),
        }
    }

    /// The payloads that the asker may call and a listener accepts, with the descriptions of those listeners.
    fn capabilities(&self, asker: &Asker<'_>, everything: bool) -> Vec<(QName, String)> {
        let mut capabilities: Vec<(QName, String)> = Vec::new();
        for (_, contract) in self.blueprint.listeners() {
            let payloads = contract.accepts.iter().filter(|payload| payload.namespace() != ns::CORE);
            for payload in payloads.filter(|payload| everything || asker.calls.contains(payload)) {
                if !capabilities.iter().any(|(known, _)| known == payload) {
                    capabilities.push((payload.clone(), contract.description.clone()));
                }
            }
        }
        capabilities
    }
}

/// The choice of payloads of one response that are judged, one after the other: the argument says whether a payload may be the
/// answer. Where there are more than a fan-out of them, only those are judged that may be, and no more than a fan-out of
/// them: the rest comes to nothing in any case.
pub(super) fn selection(found: usize, blueprint: &Blueprint) -> impl FnMut(&dyn Fn() -> bool) -> bool + use<> {
    let mut left = blueprint.limits.fanout;
    let is_crowded = found > left;
    move |may_answer| {
        let is_judged = !is_crowded || left > 0 && may_answer();
        left -= usize::from(is_crowded && is_judged);
        is_judged
    }
}

impl Decoders {
    /// Adds the decoders of a later version, whose listeners count from 0, behind those of so many listeners.
    #[must_use]
    pub fn with(&self, listeners: usize, later: &Self) -> Self {
        let mut all = self.0.clone();
        all.resize_with(listeners, HashMap::new);
        all.extend(later.0.iter().cloned());
        Self(all)
    }

    /// Sets the decoder of a payload for a listener.
    pub fn insert(&mut self, listener: ListenerId, payload: QName, decode: DecodeFn) {
        let listener = listener.0 as usize;
        if self.0.len() <= listener {
            self.0.resize_with(listener + 1, HashMap::new);
        }
        self.0[listener].insert(payload, decode);
    }
}

impl Payloads {
    /// Compiles the schemas of the first version.
    pub(super) fn new(first: &OrganismVersion) -> Self {
        let mut payloads = Self { decoders: first.decoders.clone(), versions: Vec::new() };
        payloads.add(first);
        payloads
    }

    /// Compiles the schemas of a further version. Its decoders are those of the listeners of all versions.
    pub(super) fn add(&mut self, version: &OrganismVersion) {
        let OrganismVersion { blueprint, catalog, decoders } = version.clone();
        self.decoders = decoders;
        let (number, validator) = (blueprint.version(), Validator::new(catalog.clone()));
        self.versions.push(OfVersion { number, blueprint, catalog, validator });
    }

    /// Forgets a version without conversations.
    pub(super) fn forget(&mut self, version: Version) {
        self.versions.retain(|known| known.number != version);
    }

    /// The judge of the payloads of a version.
    pub(super) fn judge(&mut self, version: Version) -> Judge<'_> {
        let at = self.place(version);
        let OfVersion { blueprint, validator, .. } = &mut self.versions[at];
        Judge { blueprint, validator }
    }

    /// A version.
    pub(super) fn version(&self, version: Version) -> OrganismVersion {
        let OfVersion { blueprint, catalog, .. } = &self.versions[self.place(version)];
        OrganismVersion { blueprint: blueprint.clone(), catalog: catalog.clone(), decoders: self.decoders.clone() }
    }

    /// The place of a version: it is there as long as a conversation keeps it.
    fn place(&self, version: Version) -> usize {
        let at = self.versions.iter().rposition(|known| known.number == version);
        at.unwrap_or(self.versions.len() - 1)
    }

    /// Proves that a payload keeps its schema.
    pub(super) fn validate(&mut self, version: Version, payload: Canonical) -> Result<Validated<Element>, SchemaError> {
        self.judge(version).validator.validate(payload)
    }

    /// Decodes a payload for a listener. A panic of its type is the listener's failure.
    pub(super) fn decode(&self, listener: ListenerId, payload: Validated<Element>) -> Result<Body, Fault> {
        let of_listener = self.decoders.0.get(listener.0 as usize);
        let Some(decode) = of_listener.and_then(|decoders| decoders.get(payload.payload().root())) else {
            return Err(faults::undecodable(&"no decoder is registered for it"));
        };
        let decoded = catch_panic(|| decode(&payload)).map_err(|_| faults::panicked())?;
        let value = Value(Some(decoded.map_err(|error| faults::undecodable(&error))?));
        Ok(Body::Payload { payload, value })
    }

    /// Decodes a payload that the pump wrote itself for a listener.
    pub(super) fn own_payload(
        &mut self,
        version: Version,
        listener: ListenerId,
        payload: Canonical,
    ) -> Result<Body, Fault> {
        let payload = self.validate(version, payload).map_err(|error| faults::internal(&error))?;
        self.decode(listener, payload)
    }

    /// An answer as the listener takes it, or the end of a thread that takes no such answer.
    pub(super) fn returned(&self, listener: ListenerId, contract: &Contract, payload: Validated<Element>) -> Content {
        let qname = payload.payload().root();
        if !contract.returns.contains(qname) {
            return Content::Fatal(faults::unreturned(qname));
        }
        match self.decode(listener, payload) {
            Ok(body) => Content::Body(body),
            Err(fault) => Content::Body(Body::Fault(fault)),
        }
    }

    /// A payload of the journal, as its listener takes it. Schemas may have changed since it was written.
    pub(super) fn restore(&mut self, version: Version, listener: ListenerId, payload: Bytes) -> Result<Body, Fault> {
        let payload = self.prove_stored(version, payload)?;
        self.decode(listener, payload)
    }

    /// Proves that a payload of the journal keeps its schema.
    pub(super) fn prove_stored(&mut self, version: Version, payload: Bytes) -> Result<Validated<Element>, Fault> {
        self.judge(version).proof_of(&stored(payload)?)
    }
}

impl ParsedPayload {
    fn root(&self) -> &QName {
        match self {
            Self::Unproved(payload) => payload.root(),
            Self::Proved(payload) => payload.payload().root(),
        }
    }

    fn into_canonical(self) -> Canonical {
        match self {
            Self::Unproved(payload) => payload,
            Self::Proved(payload) => payload.payload().clone(),
        }
    }
}

fn refuse(payload: Option<Canonical>, fault: Fault, width: usize) -> Verdict {
    Verdict::Refused(Refusal { to: None, payload, fault, misroute: None, width })
}

fn refuse_route(draft: ParsedPayload, misroute: Misroute) -> Verdict {
    refuse_misrouted(draft.into_canonical(), misroute, 1)
}

fn refuse_misrouted(payload: Canonical, misroute: Misroute, width: usize) -> Verdict {
    let fault = match misroute {
        Misroute::NotInReplies => faults::reply(payload.root()),
        _ => faults::route(payload.root()),
    };
    Verdict::Refused(Refusal { to: None, payload: Some(payload), fault, misroute: Some(misroute), width })
}

/// Refuses a request for a thread whose first payload has no target there.
fn refuse_spawn(request: Canonical, first: &QName, misroute: Misroute) -> Verdict {
    let (payload, fault) = (Some(request), faults::route(first));
    Verdict::Refused(Refusal { to: None, payload, fault, misroute: Some(misroute), width: SPAWN_WIDTH })
}

/// Refuses a request that the core doesn't know: like any payload without a target.
fn refuse_meta(payload: Canonical, error: &MetaError) -> Verdict {
    match error.problem {
        MetaProblem::Unknown { .. } => refuse_route(ParsedPayload::Unproved(payload), Misroute::NoRequest),
        MetaProblem::NoName { .. }
        | MetaProblem::BadName { .. }
        | MetaProblem::OtherName { .. }
        | MetaProblem::Shape(_) => refuse(Some(payload), faults::meta(error), 1),
    }
}

/// Returns whether a request to the core makes sense only on a thread of a listener.
pub(super) fn is_for_threads(request: &QName) -> bool {
    request.namespace() == ns::META && matches!(request.local(), "spawn-thread" | "close-thread" | "clear-context")
}
