//! Organisms as listeners: a message to such a listener is a message of a client to another organism, over its gateway.
//!
//! The contract is imported once ([`import`]) and held to by its hash (`listeners::organism`): a message says which contract its
//! sender holds to, and an organism that has another one refuses it. Nothing that the other organism says reaches a listener
//! but through the ladder and the validator.
//!
//! Invariants: a message has one effect there, however often one of the two processes is killed and started again: its key is
//! the id of the message, and the bytes of the request are in the journal before they are sent. A message that is cancelled
//! here, or takes too long, cancels its conversation there; one that the end of the organism leaves to its next start does
//! not. What the budget here has left is reserved while it is the bound of the conversation there.
//!
//! Calls go by the [link](crate::remote) of agents elsewhere, and so by the client of [`outbound`](crate::outbound).
//! `docs/federation.md` describes all of it for operators.

mod exchange;
mod import;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use systole_core::core::{HandlerOutcome, Message};
use systole_core::vocab::Limits;

use crate::identity::Identity;
use crate::listeners::organism::OrganismListenerSettings;
use crate::outbound::Guard;
use crate::remote::CallOptions;
use crate::remote::link::Link;
use crate::runtime::{LocalBoxFuture, RawListener, RunContext};
use crate::settings::{read_regular, read_secret_text};
use exchange::Exchange;
pub use import::{Imported, import};

/// Bytes of a file of certificates, at most.
const MOST_ROOTS: u64 = 4 << 20;
/// Bytes of an answer beside its envelope, at most.
const AROUND: usize = 128 << 10;

/// A listener that is another organism.
pub struct OrganismListener {
    settings: OrganismListenerSettings,
    /// The keys that sign what is sent, if the organism has some.
    identity: Option<Arc<Identity>>,
    /// The way there, with the token as it was read.
    link: RefCell<Option<Arc<Link>>>,
}

impl OrganismListener {
    /// Makes a listener whose requests are signed, if the organism has an identity.
    pub fn new(settings: OrganismListenerSettings, identity: Option<Arc<Identity>>) -> Self {
        Self { settings, identity, link: RefCell::default() }
    }

    fn link(&self, limits: &Limits) -> Result<Arc<Link>, String> {
        if let Some(link) = &*self.link.borrow() {
            return Ok(link.clone());
        }
        let OrganismListenerSettings { url, token, certificates, .. } = &self.settings;
        // An envelope is there twice, and JSON writes a quote as two characters.
        let answer = limits.xml.message_bytes.saturating_mul(4).saturating_add(AROUND);
        let link = open(url, token, certificates.as_deref(), CallOptions::default().answer(answer))?;
        *self.link.borrow_mut() = Some(link.clone());
        Ok(link)
    }

    /// Forgets the way there: the token file is read again for the next message.
    fn forget_token(&self) {
        self.link.take();
    }
}

impl RawListener for OrganismListener {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(async move {
            let ended = Exchange::run(&self, &message, &context).await;
            ended.unwrap_or_else(HandlerOutcome::Failed)
        })
    }
}

/// Opens the way to an organism.
///
/// # Errors
/// The reason why its URL, its token or its certificates can't be used.
fn open(url: &str, token: &Path, certificates: Option<&Path>, options: CallOptions) -> Result<Arc<Link>, String> {
    let unusable =
        |what: &str, file: &Path, why: &std::io::Error| format!("the {what} {} can't be used: {why}", file.display());
    let secret = read_secret_text(token).map_err(|error| unusable("token file", token, &error))?;
    let certificates = match certificates {
        Some(file) => read_regular(file, MOST_ROOTS).map_err(|error| unusable("file of certificates", file, &error))?,
        None => Vec::new(),
    };
    // The file's author has chosen the address: private networks are allowed, and link-local ones are not.
    let link = Link::guarded(url, &secret, options.certificates(certificates), Some(Guard::private()));
    link.map_err(|error| error.to_string())
}
