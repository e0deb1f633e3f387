//! Settings of the entrance over HTTP, of the listeners that are reached through it, and of models: plain values, which a
//! program without the feature `gateway` may hold, too.

mod cluster;
mod gateway;
mod mcp;
mod model;
mod regular_file;
mod remote;
mod tls;

pub use cluster::{ClusterSettings, check_node_url};
pub use gateway::GatewaySettings;
pub use mcp::{McpPrompt, McpResource, McpSettings, McpSkill, McpSkillFile, McpTask, McpTool};
pub use model::{
    Backend, Dialect, Endpoint, HeaderText, KeySource, LlmSettings, ModelSettings, Price, ProviderSettings, Rule,
    Script, Strategy, SummarySettings, ToolCall,
};
pub use regular_file::{open_regular, read_regular};
#[cfg(feature = "yaml")]
pub(crate) use remote::REPORTED;
pub use remote::{Format, Mode, Push, read_secret, read_secret_env, read_secret_text};
pub use tls::Tls;
#[cfg(feature = "gateway")]
pub use tls::TlsProblem;
