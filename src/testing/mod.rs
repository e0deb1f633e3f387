//! A test kit for organisms: a simulated clock, listeners that a test controls, and the tree of threads.
//!
//! The organism runs on the test's own thread, only while the test calls the kit, and in the same way on each run: ids
//! are counted, time passes when nothing else can happen, blocking listeners run inline. Handlers may use the timers of
//! tokio and actix, which follow the simulated clock, too. What it sends over HTTP goes over the network in memory of its
//! [`World`]: an agent elsewhere is a task of the same test.
//!
//! ```
//! use std::time::Duration;
//!
//! use systole::prelude::*;
//! use systole::testing::{Kit, Probe};
//!
//! # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
//! # #[payload(namespace = "urn:example:calculator:v1", reply = Sum)]
//! # struct Add { a: i64, b: i64 }
//! # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
//! # #[payload(namespace = "urn:example:calculator:v1")]
//! # struct Sum { value: i64 }
//! let calculator = Probe::<Add>::new();
//! let mut kit = Kit::start(
//!     Organism::builder("tested")
//!         .listener("calculator", calculator.factory(), |c| c.answers::<Add>())
//!         .client("cli", |c| c.calls::<Add>()),
//! )?;
//! kit.client("cli").tell(Add { a: 1, b: 2 })?;
//! kit.settle();
//! assert_eq!(calculator.received(), [Add { a: 1, b: 2 }]);
//! assert_eq!(kit.tree(), "root\n  calculator\n");
//!
//! // No answer comes: the handler's timeout passes.
//! kit.advance(Duration::from_secs(30));
//! let fault = kit.client("cli").try_receive().and_then(|egress| egress.fault);
//! assert_eq!(fault.map(|fault| fault.code), Some(FaultCode::Timeout));
//!
//! calculator.reply_with(|add| Sum { value: add.a + add.b });
//! assert_eq!(kit.ask("cli", Add { a: 1, b: 2 })?, Sum { value: 3 });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod kit;
mod probe;
mod simulation;
mod stores;
mod world;

pub use kit::Kit;
pub use probe::{Held, Probe, ProbeActor};
pub use stores::{Failure, Interrupted, RemoteJournal, RemoteServer, check_journal, check_store};
pub use world::World;

pub use crate::network::{Network, NetworkListener, NetworkStream};
