//! The organism as a server of the Model Context Protocol, for hosts: revisions 2026-07-28 (stateless) and 2025-11-25
//! (sessions), over HTTP at `/mcp` and as a stream of lines.
//!
//! - A tool is a payload that the client calls, to one listener. A call is a submission of the gateway: judged as all are,
//!   durable before it is told, and once for each key.
//! - For a client that declares tasks, a call is a task, whose id is that of its message; its state is that of the journal, so a
//!   restart of either side changes nothing.
//! - A question of the organism to the caller (`human: { people: [caller] }`) is a request for input, and its answer goes to the
//!   thread that waits.
//! - Skills tell a model how to use the tools: files of the settings, and one that is made of the contracts.
//! - Each request has a principal: that of the token over HTTP, and the client of the stream otherwise.
//!
//! Not here: the authentication, which is the gateway's, and the framing of the protocol, which is the crate `rmcp`'s.

mod answer;
mod call;
mod directory;
mod handler;
mod http;
mod question;
mod skill;
mod stdio;
mod stream;
mod task;
mod tools;
mod written;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rmcp::model::RequestStateCodec;
use systole_core::core::Version;
use systole_core::question::Answerer;
use systole_core::vocab::{Name, ThreadId};

use crate::gateway::Gateway;
use crate::gateway::facade::AppState;
use crate::listeners::human::CALLER;
use crate::settings::McpSettings;
use skill::Served;
pub use stdio::{LineStream, serve_stdio};
pub use stream::{StreamError, open_stream};
use tools::Tools;

/// The server of an organism.
pub struct Server {
    settings: McpSettings,
    face: OnceLock<Arc<Face>>,
    http: OnceLock<http::Http>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Server {
    /// Makes a server with these settings.
    pub fn new(settings: McpSettings) -> Arc<Self> {
        Arc::new(Self { settings, face: OnceLock::new(), http: OnceLock::new() })
    }

    /// Serves hosts by way of a gateway, at `/mcp`.
    pub fn serve(self: &Arc<Self>, gateway: Gateway) -> Gateway {
        gateway.with_calls(http::calls(), self.clone())
    }

    /// The state for an organism that runs.
    fn face(&self, app: &Arc<AppState>) -> &Arc<Face> {
        self.face.get_or_init(|| {
            let face = Arc::new(Face::new(app.clone(), self.settings.clone()));
            if face.caller.is_some() {
                tokio::spawn(face.clone().end_abandoned());
            }
            face
        })
    }
}

/// A running organism, as hosts see it.
struct Face {
    app: Arc<AppState>,
    settings: McpSettings,
    /// The skills of the settings.
    skills: Vec<Served>,
    /// The tools of each client that has asked, in the version of the organism that was present then.
    tools: Mutex<HashMap<Name, (Version, Arc<Tools>)>>,
    /// Seals the state of a call that its client hands back.
    codec: RequestStateCodec,
    /// The party as which a caller answers; none if no listener asks callers.
    caller: Option<Answerer>,
    /// The clients of the conversations that have asked their caller something.
    asking: Mutex<HashMap<ThreadId, Name>>,
}

impl Face {
    fn new(app: Arc<AppState>, settings: McpSettings) -> Self {
        let secret = app.secret("systole mcp 2026 request state");
        let codec = RequestStateCodec::try_new(secret).expect("a key of 32 bytes is long enough");
        let caller = Name::parse(CALLER).ok().filter(|name| app.organism().people().knows(name));
        let caller = caller.map(|name| Answerer { name, is_operator: false });
        let skills = settings.skills.iter().map(Served::of).collect();
        Self { app, settings, skills, tools: Mutex::default(), codec, caller, asking: Mutex::default() }
    }

    fn tools(&self, client: &Name) -> Arc<Tools> {
        let present = self.app.organism().blueprint().version();
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        match tools.get(client) {
            Some((version, known)) if *version == present => known.clone(),
            _ => {
                let made = Arc::new(Tools::of(self.app.organism(), &self.settings, client));
                tools.insert(client.clone(), (present, made.clone()));
                made
            }
        }
    }
}
