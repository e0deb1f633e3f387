//! The other side of the gateway: the parts of a program that is an agent of an organism elsewhere.
//!
//! A remote listener has a mailbox at its organism's gateway. Its agent takes the messages in one of four ways, each an
//! [`InboundDelivery`], handles them by a [`Handler`], and [`run_agent_loop`] keeps it alive until the gateway tells it
//! to end:
//!
//! | delivery | for |
//! |---|---|
//! | [`PollDelivery`] | one agent that reads in order, with a cursor in a file |
//! | [`StreamDelivery`] | the same, over one connection |
//! | [`LeaseDelivery`] | several workers on one mailbox, at least once |
//! | [`PushDelivery`] | an agent that can be called: its own HTTP endpoint, with signatures |
//!
//! ```no_run
//! use systole::remote::{CallOptions, Failed, Inbound, LoopOptions, Mailbox, PollDelivery, run_agent_loop};
//!
//! # async fn agent(token: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let mailbox = Mailbox::new("http://127.0.0.1:8420", "shouter".parse()?, token, CallOptions::default())?;
//! let mut delivery = PollDelivery::new(mailbox.clone()).cursor_file("shouter.cursor".as_ref())?;
//! let shout = |message: Inbound| async move { Ok::<_, Failed>(message.payload.to_uppercase()) };
//! let end = run_agent_loop(&mut delivery, &shout, &mailbox, LoopOptions::default()).await;
//! # Ok(())
//! # }
//! ```
//!
//! `docs/remote.md` has the promises of each of them. Requests go by the same client of HTTP, with the same TLS and the
//! same back-off, as those of [`outbound`](crate::outbound); but nothing here is part of an organism: an agent
//! elsewhere is a program of its own, and keeps nothing.
//!
//! # A delivery of your own
//!
//! A program with messages in another place, a folder for example, brings them in by a delivery of its own:
//!
//! ```
//! use std::path::PathBuf;
//! use std::time::Duration;
//!
//! use systole::remote::{BoxFuture, Failed, Handled, Handler, Inbound, InboundDelivery, RemoteError};
//! use systole::vocab::XmlLimits;
//!
//! /// Each file of a folder is a message; its reply is a file beside it.
//! struct Folder(PathBuf);
//!
//! impl InboundDelivery for Folder {
//!     fn run_once<'a>(&'a mut self, handler: &'a dyn Handler) -> BoxFuture<'a, Result<usize, RemoteError>> {
//!         Box::pin(async move {
//!             let mut handled = 0;
//!             for entry in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
//!                 let file = entry.path();
//!                 let Some("xml") = file.extension().and_then(|ending| ending.to_str()) else { continue };
//!                 let text = std::fs::read_to_string(&file).unwrap_or_default();
//!                 let reply = match Inbound::read(&text, None, &XmlLimits::default()) {
//!                     Ok(message) => match handler.handle(message).await {
//!                         Ok(Handled::Reply(reply)) => reply,
//!                         // The handler's program writes the file later.
//!                         Ok(Handled::Later) => continue,
//!                         Err(failed) => failed.why,
//!                     },
//!                     Err(broken) => broken.to_string(),
//!                 };
//!                 let _ = std::fs::write(file.with_extension("reply"), reply);
//!                 let _ = std::fs::remove_file(&file);
//!                 handled += 1;
//!             }
//!             Ok(handled)
//!         })
//!     }
//!
//!     fn stop(&mut self) -> BoxFuture<'_, ()> {
//!         Box::pin(std::future::ready(()))
//!     }
//!
//!     fn interval(&self) -> Duration {
//!         Duration::from_secs(1)
//!     }
//! }
//!
//! # let folder = std::env::temp_dir().join(format!("systole-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let envelope = "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from>ada</from>\
//! #     <id xmlns='urn:systole:meta:v1'>00000000-0000-4000-8000-000000000001</id></meta><a/></message>";
//! # std::fs::write(folder.join("one.xml"), envelope)?;
//! let mut delivery: Box<dyn InboundDelivery> = Box::new(Folder(folder.clone()));
//! let greet = |message: Inbound| async move { Ok::<_, Failed>(format!("<hello to='{}'/>", message.from)) };
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! assert_eq!(delivery.run_once(&greet).await?, 1);
//! # Ok::<_, RemoteError>(()) })?;
//! assert_eq!(std::fs::read_to_string(folder.join("one.reply"))?, "<hello to='ada'/>");
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod agent_loop;
mod backoff;
mod cursor;
mod delivery;
mod dispatch;
mod endpoint;
mod error;
mod forward;
mod handler;
mod inbound;
mod lease;
pub(crate) mod link;
mod mailbox;
mod poll;
mod presence;
mod program;
mod push;
pub mod source;
pub(crate) mod sse;
mod stream;

pub use agent_loop::{LoopEnd, LoopOptions, RoundTasks, run_agent_loop};
pub use delivery::InboundDelivery;
pub use error::RemoteError;
pub use forward::ForwardHandler;
pub use handler::{Failed, Handled, Handler};
pub use inbound::{BrokenInbound, Inbound};
pub use lease::LeaseDelivery;
pub use link::CallOptions;
pub use mailbox::{LONGEST_WAIT, Mailbox};
pub use poll::PollDelivery;
pub use presence::{AgentState, Presence};
pub use program::ProgramHandler;
pub use push::{PushDelivery, PushOptions};
pub use source::{Source, SourceKind, Transport, UnknownSource};
pub use stream::StreamDelivery;

pub use crate::runtime::BoxFuture;
