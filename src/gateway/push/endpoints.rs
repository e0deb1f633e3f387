//! Endpoints of the listeners that messages are pushed to, with their formats and secrets.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use systole_core::journal::Registration;
use systole_core::vocab::{Name, Traceparent, XmlLimits};
use systole_xml::ladder::{Envelope, strict};

use super::format::PushFormat;
use crate::gateway::service::MailboxService;
use crate::identity::Identity;
use crate::journal::StoredMail;
use crate::outbound::retry::Policy;
use crate::outbound::{DeliveryOptions, Guard, OutboundDelivery, OutboundError, Secret, check_url, is_below};
use crate::settings::{Format, Mode, Push};

/// Reason why messages can't be pushed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The secret of a listener can't be read.
    #[error("the secret of {listener}, {why}")]
    Secret {
        /// The listener.
        listener: Name,
        /// The file or variable of the secret, and its problem.
        why: String,
    },
    /// No gateway format fits the declaration of a listener.
    #[error(
        "{listener} is declared with 'format: molecule', and this gateway has no such format: serve Molecule's agents"
    )]
    Format {
        /// The listener.
        listener: Name,
    },
    /// The engine that sends can't start.
    #[error(transparent)]
    Outbound(#[from] OutboundError),
}

systole_core::vocab::debug_is_display!(PushError);

/// Endpoints of all listeners that messages are pushed to.
#[derive(Debug)]
pub(in crate::gateway) struct Endpoints(HashMap<Name, Endpoint>);

#[derive(Debug)]
struct Endpoint {
    declared: Push,
    secret: Option<Secret>,
    /// The format; `None` where the envelope is sent as it is.
    format: Option<Arc<dyn PushFormat>>,
}

/// Next step for a message of a listener.
#[derive(Debug)]
pub(super) enum Next {
    /// Send the delivery.
    Send(OutboundDelivery),
    /// Fail the message: the format of the listener can't carry it.
    Unsendable,
    /// Wait until the listener registers a URL.
    Wait,
}

/// The addresses at which a listener may be.
fn guard(push: &Push) -> Guard {
    if push.allow_private { Guard::private() } else { Guard::new() }
}

/// The run of the handler that waits for a message, in its trace, as the envelope says.
fn caller(envelope: &Bytes) -> Option<Traceparent> {
    // Most envelopes have none, and are not read for it.
    memchr::memmem::find(envelope, b"<traceparent")?;
    let envelope = Envelope::open(strict::canonicalize(envelope, &XmlLimits::UNLIMITED).ok()?).ok()?;
    Traceparent::parse(envelope.claims().traceparent.as_deref()?)
}

/// Checks whether a listener may register a URL; the error ends a sentence that begins with the URL.
pub(in crate::gateway) fn may_register(push: &Push, url: &str) -> Result<(), String> {
    check_url(url, &guard(push))?;
    let is_allowed = |allowed: &Vec<String>| allowed.iter().any(|above| is_below(url, above));
    if push.allowed.as_ref().is_none_or(is_allowed) {
        return Ok(());
    }
    Err("is below none that 'allowed' in organism.yaml lists for this listener".to_owned())
}

impl Endpoints {
    /// Reads the declared endpoints, with their secrets; `None` if there are none.
    pub(in crate::gateway) fn declared(mailboxes: &MailboxService) -> Result<Option<Self>, PushError> {
        let mut endpoints = HashMap::new();
        for (name, mode) in mailboxes.modes() {
            let Mode::Push(push) = mode else { continue };
            let refused = |why| PushError::Secret { listener: name.clone(), why };
            let secret = push.read_secret().map_err(refused)?.map(|secret| Secret::new(&secret));
            endpoints.insert(name.clone(), Endpoint { declared: push.clone(), secret, format: None });
        }
        Ok((!endpoints.is_empty()).then_some(Self(endpoints)))
    }

    /// Gives the listeners that want it the format of a façade.
    pub(in crate::gateway) fn with_format(mut self, molecule: Option<&Arc<dyn PushFormat>>) -> Result<Self, PushError> {
        for (name, place) in &mut self.0 {
            place.format = match place.declared.format {
                Format::Envelope => None,
                Format::Molecule => {
                    Some(molecule.cloned().ok_or_else(|| PushError::Format { listener: name.clone() })?)
                }
            };
        }
        Ok(self)
    }

    /// The format of a listener; none where the envelope is sent as it is.
    pub(super) fn format(&self, name: &Name) -> Option<&dyn PushFormat> {
        self.0.get(name)?.format.as_deref()
    }

    /// Next step for a message of a listener, whose envelope `sign` signs. A URL that was registered since the present declaration
    /// comes before the declared one.
    pub(super) fn next(
        &self,
        name: &Name,
        registered: Option<&Registration>,
        mail: StoredMail,
        sign: impl Fn(&Bytes) -> Bytes,
    ) -> Next {
        let Some(Endpoint { declared, secret, format }) = self.0.get(name) else { return Next::Wait };
        let known = registered.filter(|known| known.declared.as_deref() == Some(declared.declared()));
        // The configuration may have narrowed the allowed URLs since.
        let url = known.and_then(|known| known.url.as_deref()).filter(|url| may_register(declared, url).is_ok());
        let Some(url) = url.or(declared.url.as_deref()) else { return Next::Wait };
        let id = mail.record.id;
        let caller = caller(&mail.record.envelope);
        let (body, mut headers) = match format {
            None => (sign(&mail.record.envelope), Vec::new()),
            Some(format) => match format.write(&mail) {
                Some(body) => (body, vec![("Content-Type".to_owned(), format.media_type().to_owned())]),
                None => return Next::Unsendable,
            },
        };
        headers.extend(caller.map(|caller| ("traceparent".to_owned(), caller.to_string())));
        Next::Send(OutboundDelivery {
            signed: secret.is_some(),
            headers,
            ..OutboundDelivery::new(id, name.clone(), url, body)
        })
    }

    /// Options of deliveries that the identity signs, with answers of at most `answer` bytes.
    pub(super) fn options(&self, answer: usize, identity: Option<Arc<Identity>>) -> DeliveryOptions {
        let secrets = self.0.iter().filter_map(|(name, place)| Some((name.clone(), place.secret.clone()?)));
        let guards = self.0.iter().map(|(name, place)| (name.clone(), guard(&place.declared)));
        DeliveryOptions {
            answer: Some(answer),
            // A listener that is full or about to end says so by `Retry-After`.
            policy: Policy { retry_after: true, ..Policy::default() },
            // The server of a listener takes one connection after the other.
            // An answer that comes too late on a connection would be taken for the answer to the next message.
            unpooled: self.0.keys().cloned().collect(),
            guards: guards.filter(|(name, _)| self.0[name].declared.allow_private).collect(),
            secrets: secrets.collect(),
            identity,
            ..DeliveryOptions::default()
        }
    }
}
