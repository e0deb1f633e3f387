//! Listeners that think: a model speaks for them.
//!
//! [`Llm`] asks models: it has backends, each a [`Provider`] with limits, and the strategy by which one of them is asked.
//! [`ModelListener`] is the loop of a listener: it asks with the contract as system prompt, judges the answer as the pump
//! will, and feeds a refusal back. `docs/model.md` says what is sent.
//!
//! Invariants: an answer that the provider cut is refused, however well-formed; an answer is durable before
//! anything follows from it, so no run of a message asks the same twice; keys are in no log, journal, prompt or error;
//! one backend never has more requests in flight, or more tokens a minute, than its settings say; where a budget bounds
//! the thread, each attempt of a request is reserved before it is sent, and charged, with an answer or without; an answer
//! ends with its stream, whatever its provider said before.
//!
//! [`ModelServer`] is the other side: a script answers clients of providers' protocols.
//!
//! Not here: tools in a wire form of a provider. Calls are XML, for every model.

mod allowance;
mod anthropic;
mod bucket;
mod build;
mod chat;
mod conceal;
mod end;
mod error;
mod feedback;
mod growth;
mod http;
mod json;
mod listener;
mod mark;
mod ollama;
mod openai;
mod part;
mod prompt;
mod reply;
mod router;
mod scripted;
mod server;
mod summary;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use build::AsModel;
pub use growth::Growth;
#[cfg(feature = "yaml")]
pub(crate) use http::{judge_certificates, judge_header, judge_proxy, judge_url};
pub use listener::ModelListener;
pub use prompt::{ModelPrompt, Role, Turn};
pub use router::Llm;
pub use server::ModelServer;

use crate::runtime::LocalBoxFuture;
use systole_core::core::Usage;
use systole_core::vocab::Name;

/// Asks one model. An instance is made for each listener, on the thread of its shard.
pub trait Provider: 'static {
    /// Sends a request, and reads the answer to its end. A provider whose answers grow shows them meanwhile by `growth`: an
    /// attempt of which nothing is shown for the time of its backend is dropped, and counts as failed.
    ///
    /// # Errors
    /// A [`Setback`], which says whether the same request may succeed later.
    ///
    /// # Cancel safety
    /// Dropping the future ends the request; the provider may have counted it.
    fn ask(&self, prompt: &ModelPrompt, growth: &Growth) -> LocalBoxFuture<Result<Completion, Setback>>;
}

impl<P: Provider + ?Sized> Provider for Box<P> {
    fn ask(&self, prompt: &ModelPrompt, growth: &Growth) -> LocalBoxFuture<Result<Completion, Setback>> {
        (**self).ask(prompt, growth)
    }
}

/// An answer of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text, without the parts that the provider marks as reasoning.
    pub text: String,
    /// The way it ended.
    pub finish: Finish,
    /// The model, as the provider names it.
    pub model: String,
    /// Tokens; the router adds the cost.
    pub usage: Usage,
}

/// The end of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// The model ended the answer.
    Whole,
    /// The provider did not say why it ended. It counts if its text is whole as it stands: an end tag that is missing at its end may
    /// be that of an answer that was cut.
    Unsaid,
    /// A limit of tokens cut it.
    Cut,
    /// The provider or the model held it back, for this reason.
    Withheld(String),
}

/// A request that got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setback {
    /// A few words for the caller of the listener.
    pub message: String,
    /// The message with the provider's words, for the log; never a key.
    pub detail: String,
    /// The chance of another attempt.
    pub again: Again,
    /// The use that the provider may bill all the same.
    pub billed: Billed,
}

/// The use of a request without an answer, which its provider may bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Billed {
    /// None: the provider refused the request, or never had it.
    Nothing,
    /// The tokens that the provider reported so far. A count of 0 is unknown.
    Used(Usage),
    /// Unknown: all that was reserved for the request counts.
    Unknown,
}

/// The chance of another attempt after one without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Again {
    /// Another attempt after back-off, and not before the time that the provider gave, if any.
    Later(Option<Duration>),
    /// No other attempt at this backend.
    Never,
}

/// The reason why models can't be asked.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LlmError {
    /// The variable of an API key is not set.
    #[error("the backend '{backend}' has its key in the environment variable {variable}, which is not set")]
    Unset {
        /// The backend.
        backend: Name,
        /// The variable.
        variable: String,
    },
    /// The file of an API key can't be used.
    #[error("the key of the backend '{backend}' can't be read from {}: {why}", .file.display())]
    KeyFile {
        /// The backend.
        backend: Name,
        /// The file.
        file: PathBuf,
        /// The reason.
        why: String,
    },
    /// A key that no header can hold.
    #[error("the key of the backend '{backend}' is empty, or has characters that an HTTP header can't hold")]
    Key {
        /// The backend.
        backend: Name,
    },
    /// A URL that is none.
    #[error("the URL of the backend '{backend}' {problem}")]
    Url {
        /// The backend.
        backend: Name,
        /// The end of a sentence about it.
        problem: String,
    },
    /// A header that can't be sent.
    #[error("the header '{name}' of the backend '{backend}' {problem}")]
    Header {
        /// The backend.
        backend: Name,
        /// The header.
        name: String,
        /// The end of a sentence about it.
        problem: String,
    },
    /// A file of certificates that can't be used.
    #[error("the certificates of the backend '{backend}' can't be read from {}: {why}", .file.display())]
    Certificates {
        /// The backend.
        backend: Name,
        /// The file.
        file: PathBuf,
        /// The reason.
        why: String,
    },
}

systole_core::vocab::debug_is_display!(LlmError);

impl Setback {
    /// A setback of which the caller may know all, of a request that may be billed.
    pub fn new(message: impl Into<String>, again: Again) -> Self {
        let message = message.into();
        Self { detail: message.clone(), message, again, billed: Billed::Unknown }
    }

    /// The same for a request that is not billed.
    #[must_use]
    pub fn unbilled(self) -> Self {
        Self { billed: Billed::Nothing, ..self }
    }
}

impl fmt::Display for Setback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
