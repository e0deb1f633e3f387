//! Settings of the entrance over HTTP and of the listeners that are reached through it: plain values, which a program
//! without the feature `gateway` may hold, too.

mod gateway;
mod remote;
mod tls;

pub use gateway::GatewaySettings;
#[cfg(feature = "yaml")]
pub(crate) use remote::REPORTED;
pub use remote::{Format, Mode, Push, read_secret};
pub use tls::Tls;
#[cfg(feature = "gateway")]
pub use tls::TlsProblem;
