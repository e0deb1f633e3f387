//! The shape of the whole file.

#[cfg(not(feature = "gateway"))]
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

#[cfg(not(feature = "gateway"))]
use systole_core::core::CheckSignature;
use systole_core::core::{Access, ClientContract, MetaFlags, Scheduling, Signatures};
use systole_core::vocab::{Budget, Limits, Name, QName, Span};
#[cfg(not(feature = "gateway"))]
use systole_xml::ladder::{Canonical, Raw};

use super::budget::{self, BudgetKeys};
use super::cluster::{self, ClusterKeys};
use super::correction::{Items, Shape};
use super::document::Node;
use super::gateway::{self, GatewayKeys};
use super::human::{self, Teams, TeamsKey};
use super::keys::{Call, Flag, List, Named, Namespaces, NonEmpty, OneOf, Size, Text, Texts, Time, Word, mapping};
use super::limits::{self, LimitKeys};
use super::listener::{self, Listener, ListenerKeys};
use super::llm::{self, Llm, LlmKeys};
use super::mcp::{self, Mcp, McpKeys};
use super::reader::{At, Reader};
use super::schedule::{self, SchedulesKey};
use super::short_form::{self, Called, Prefixes};
use super::{Mistake, molecule};
#[cfg(feature = "gateway")]
use crate::identity::{Identity, KeyFile, PublicKeys};
use crate::journal::{Durability, Retention, is_url};
use crate::runtime::{Keep, Then};
use crate::settings::{ClusterSettings, GatewaySettings};

/// An organism as the file describes it.
#[derive(Debug)]
pub(super) struct Organism {
    pub(super) name: String,
    pub(super) scheduling: Scheduling,
    pub(super) limits: Limits,
    pub(super) budget: Budget,
    pub(super) meta: MetaFlags,
    pub(super) journal: Option<JournalKeys>,
    pub(super) drain: Option<Duration>,
    pub(super) keep: Keep,
    #[cfg(feature = "gateway")]
    pub(super) identity: Option<Arc<Identity>>,
    pub(super) gateway: Option<At<GatewaySettings>>,
    pub(super) cluster: Option<At<ClusterSettings>>,
    pub(super) mcp: Option<Mcp>,
    pub(super) llm: Option<Llm>,
    pub(super) clients: Vec<Speaker>,
    pub(super) listeners: Vec<Listener>,
    pub(super) teams: Teams,
    pub(super) schedules: Vec<schedule::Written>,
    /// True if each listener could be read: else no missing listener is reported.
    pub(super) complete: bool,
}

/// A client as the file describes it.
#[derive(Debug)]
pub(super) struct Speaker {
    pub(super) name: At<Name>,
    /// `calls` as it is written; `calls` once they are written out.
    pub(super) called: Vec<At<Called>>,
    pub(super) calls: Vec<At<QName>>,
    pub(super) admin: bool,
    pub(super) budget: Budget,
    /// The remote listener whose mailbox belongs to the client.
    pub(super) mailbox: Option<At<Name>>,
    /// The check of the signatures that its messages must have.
    pub(super) signatures: Option<Signatures>,
}

impl Speaker {
    pub(super) fn client(&self) -> ClientContract {
        let calls = self.calls.iter().map(|call| call.value.clone()).collect();
        ClientContract::new(self.name.value.clone())
            .calls(calls)
            .admin(self.admin)
            .budget(self.budget)
            .signatures(self.signatures.clone())
    }
}

mapping! {
    /// An organism of systole; `systole reference` prints all keys with their defaults.
    RootKeys: Root {
        /// The organism.
        organism: OrganismKeys<'static>, of "the file";
        /// Prefixes of payload names: with `calc`, `calc:add` is `add` in its namespace.
        prefixes: Namespaces;
        /// Order of dispatch.
        scheduling: OneOf<Scheduling> = "breadth-first";
        /// Bounds, each with a fault that names it.
        limits: LimitKeys<'static>;
        /// The most that each conversation may use (docs/budgets.md).
        budget: BudgetKeys<'static>;
        /// Parties that may make each kind of request to the core.
        meta: MetaKeys<'static>;
        /// Event that the organism survives: none, `kill -9`, or the loss of power (docs/journal.md); of a database always the last.
        durability: OneOf<Option<Durability>> = "off";
        /// File of a durable organism, or `postgres://USER@HOST/DATABASE` (docs/postgres.md).
        journal: Text = "systole.journal";
        /// Bounds on ended work in the journal.
        retention: RetentionKeys<'static>;
        /// Time for work in flight when the organism ends in order; with a gateway 5s by default.
        drain: Time<0> = "60s";
        /// Open conversations of an organism that changes while it runs (docs/reload.md).
        reload: ReloadKeys<'static>;
        /// File of the keys that sign what leaves the organism, by `systole key new` (docs/signatures.md).
        identity: Text;
        /// Entrance over HTTP (docs/gateway.md); needs `durability: process` or `power`.
        gateway: GatewayKeys<'static>;
        /// Nodes of the organism, one of which runs it (docs/cluster.md); needs a gateway, and a journal in PostgreSQL.
        cluster: ClusterKeys<'static>;
        /// Hosts of the Model Context Protocol (docs/mcp.md); needs `durability: process` or `power`.
        mcp: McpKeys<'static>;
        /// Backends of models (docs/model.md).
        llm: LlmKeys<'static>;
        /// Clients, which send messages from outside.
        clients: List<ClientKeys<'static>>;
        /// Messages that clients send at times (docs/schedules.md).
        schedules: SchedulesKey<'static>;
        /// Names for several people in lists of people (docs/people.md).
        teams: TeamsKey;
        /// Listeners, which accept messages.
        listeners: NonEmpty<ListenerKeys<'static>>, of "the file";
    }
}

mapping! {
    /// The organism.
    OrganismKeys: Organism {
        /// Name of the organism.
        name: Text, of "an organism";
    }
}

mapping! {
    /// Bounds on ended work in the journal.
    RetentionKeys: Retention {
        /// Time that ended work is kept.
        age: Time<0> = "168h";
        /// Bytes of ended work that are kept, and of what each client of the gateway is promised.
        bytes: Size<1, { u64::MAX }> = "1GiB";
    }
}

mapping! {
    /// Open conversations of an organism that changes while it runs.
    ReloadKeys: Reload {
        /// Time for which they keep the organism that they began with.
        keep: Time<0> = "24h";
        /// Their fate when it is over: they are cancelled, or go on until they end.
        then: OneOf<Then> = "cancel";
    }
}

mapping! {
    /// Parties that may make each kind of request to the core.
    MetaKeys: Meta {
        /// Requests for the payloads that the sender may call.
        list_capabilities: OneOf<Access> = "peers";
        /// Requests for a schema.
        request_schema: OneOf<Access> = "peers";
        /// Requests for an example.
        request_example: OneOf<Access> = "peers";
        /// Requests for a prompt.
        request_prompt: OneOf<Access> = "peers";
        /// Requests for a thread of the sender's own.
        spawn_thread: OneOf<Access> = "peers";
        /// Requests to clear the context of the sender's thread.
        clear_context: OneOf<Access> = "peers";
        /// True if clients of the gateway may make requests to the core.
        remote: Flag = false;
    }
}

mapping! {
    /// A client, which sends messages from outside.
    ClientKeys: Client {
        /// Name; `systole run` speaks as `cli`.
        name: Named, of "a client";
        /// Payloads that it may send; a listener stands for all that it accepts.
        calls: List<Call> = [];
        /// True if the client is an administrator.
        admin: Flag = false;
        /// The most that each conversation of the client may use, if less than the organism's.
        budget: BudgetKeys<'static>;
        /// Remote listener whose mailbox rides on the client's responses (docs/notices.md).
        mailbox: Named;
        /// Files of public keys, one of which must sign each message of the client (docs/signatures.md).
        keys: Texts;
    }
}

impl Word for Scheduling {
    const WORDS: &'static [(&'static str, Self)] =
        &[("breadth-first", Self::BreadthFirst), ("depth-first", Self::DepthFirst)];
}

impl Word for Then {
    const WORDS: &'static [(&'static str, Self)] = &[("cancel", Self::Cancel), ("wait", Self::Wait)];
}

impl Word for Access {
    const WORDS: &'static [(&'static str, Self)] =
        &[("none", Self::None), ("peers", Self::Peers), ("authenticated", Self::Authenticated), ("admin", Self::Admin)];
}

impl Word for Option<Durability> {
    const WORDS: &'static [(&'static str, Self)] =
        &[("off", None), ("process", Some(Durability::Process)), ("power", Some(Durability::Power))];
}

pub(super) fn read(reader: &mut Reader, root: &Node) -> Option<Organism> {
    let keys = RootKeys::open(reader, root)?;
    let name = keys.organism.node.and_then(|node| organism(reader, node));
    reader.prefixes = keys.prefixes.node.map(|node| Prefixes::read(reader, node)).unwrap_or_default();
    let scheduling = keys.scheduling.read(reader).unwrap_or_default();
    let limits = keys.limits.node.map(|node| limits::read(reader, node)).unwrap_or_default();
    let budget = budget::read(reader, keys.budget);
    let meta = keys.meta.node.map(|node| meta(reader, node)).unwrap_or_default();
    let journal = journal(reader, &keys);
    let drain = keys.drain.read(reader);
    let keep = keys.reload.node.map(|node| keep(reader, node)).unwrap_or_default();
    #[cfg_attr(not(feature = "gateway"), expect(unused_variables, reason = "its mistake is reported"))]
    let identity =
        keys.identity.read(reader).zip(keys.identity.span()).and_then(|(file, span)| identity(reader, file, span));
    let gateway = keys.gateway.node.and_then(|node| gateway::read(reader, node));
    let cluster = keys.cluster.node.and_then(|node| cluster::read(reader, node));
    let mcp = keys.mcp.node.and_then(|node| mcp::read(reader, node));
    let llm = keys.llm.node.and_then(|node| llm::read(reader, node));
    let entries = Items::Maps { shape: Shape::Client, lead: "name" };
    let clients = keys.clients.node.and_then(|node| reader.items(node, entries)).unwrap_or_default();
    let mut clients: Vec<_> = clients.iter().filter_map(|node| speaker(reader, node)).collect();
    let teams = keys.teams.node.map(|node| human::teams(reader, node)).unwrap_or_default();
    let schedules = keys.schedules.node.map(|node| schedule::read(reader, node, &limits)).unwrap_or_default();
    let node = keys.listeners.node;
    let entries = node.and_then(|node| reader.items(node, Items::Maps { shape: Shape::Listener, lead: "name" }));
    if let (Some([]), Some(node)) = (entries, node) {
        reader.report(Mistake::NoListener, node.span);
    }
    let mut listeners: Vec<_> =
        entries.unwrap_or_default().iter().filter_map(|node| listener::read(reader, node, &limits)).collect();
    short_form::expand(reader, &mut listeners, &mut clients);
    if gateway.as_ref().is_some_and(|gateway| gateway.value.molecule) {
        clients.extend(molecule::voices(reader, &listeners));
    }
    let complete = entries.is_some_and(|entries| entries.len() == listeners.len());
    let name = name.unwrap_or_default();
    Some(Organism {
        name,
        scheduling,
        limits,
        budget,
        meta,
        journal,
        drain,
        keep,
        #[cfg(feature = "gateway")]
        identity,
        gateway,
        cluster,
        mcp,
        llm,
        clients,
        listeners,
        teams,
        schedules,
        complete,
    })
}

/// The declaration of the journal, with its path as written.
#[derive(Debug, Clone)]
pub(super) struct JournalKeys {
    pub(super) durability: Durability,
    pub(super) file: At<String>,
    pub(super) retention: Retention,
}

fn journal(reader: &mut Reader, keys: &RootKeys<'_>) -> Option<JournalKeys> {
    let durability = keys.durability.read(reader).flatten();
    let file = keys.journal.read(reader).zip(keys.journal.span());
    let (file, span) = file.unwrap_or(("systole.journal", keys.durability.span().unwrap_or(keys.own.span)));
    let durability = match (is_url(file), keys.durability.span()) {
        (true, None) => Some(Durability::Power),
        (true, Some(span)) if durability == Some(Durability::Process) => {
            let why = "a database has its own durability: leave `durability` out, or write `durability: power`";
            reader.report(Mistake::File { what: "journal", path: "postgres://".into(), why: why.to_owned() }, span);
            durability
        }
        _ => durability,
    };
    let file = At { value: file.to_owned(), span };
    let mut retention = Retention::default();
    if let Some(kept) = keys.retention.node.and_then(|node| RetentionKeys::open(reader, node)) {
        kept.age.set(reader, &mut retention.age);
        kept.bytes.set(reader, &mut retention.bytes);
    }
    Some(JournalKeys { durability: durability?, file, retention })
}

fn organism(reader: &mut Reader, node: &Node) -> Option<String> {
    let key = OrganismKeys::open(reader, node)?.name;
    let name = key.read(reader)?;
    if let Some(span) = key.span().filter(|_| name.trim().is_empty()) {
        reader.report(Mistake::Name(systole_core::vocab::NameError::Empty), span);
    }
    Some(name.to_owned())
}

fn keep(reader: &mut Reader, node: &Node) -> Keep {
    let mut keep = Keep::default();
    let Some(keys) = ReloadKeys::open(reader, node) else { return keep };
    keys.keep.set(reader, &mut keep.time);
    keys.then.set(reader, &mut keep.then);
    keep
}

fn meta(reader: &mut Reader, node: &Node) -> MetaFlags {
    let mut flags = MetaFlags::default();
    let Some(keys) = MetaKeys::open(reader, node) else { return flags };
    keys.list_capabilities.set(reader, &mut flags.list_capabilities);
    keys.request_schema.set(reader, &mut flags.request_schema);
    keys.request_example.set(reader, &mut flags.request_example);
    keys.request_prompt.set(reader, &mut flags.request_prompt);
    keys.spawn_thread.set(reader, &mut flags.spawn_thread);
    keys.clear_context.set(reader, &mut flags.clear_context);
    keys.remote.set(reader, &mut flags.remote);
    flags
}

fn speaker(reader: &mut Reader, node: &Node) -> Option<Speaker> {
    let keys = ClientKeys::open(reader, node)?;
    let name = keys.name.read(reader);
    let called = keys.calls.read(reader).unwrap_or_default();
    let admin = keys.admin.read(reader).unwrap_or_default();
    let budget = budget::read(reader, keys.budget);
    let mailbox = keys.mailbox.read(reader);
    let signatures = keys.keys.read(reader).map(|files| signatures(reader, files));
    Some(Speaker { name: name?, called, calls: Vec::new(), admin, budget, mailbox, signatures })
}

/// The identity in a file of keys.
#[cfg(feature = "gateway")]
fn identity(reader: &mut Reader, file: &str, span: Span) -> Option<Arc<Identity>> {
    let path = reader.directory.join(file);
    // A wrong one, too: the change that corrects it is looked for.
    reader.files.push(path.clone());
    match KeyFile::load(&path).and_then(KeyFile::identity) {
        Ok(identity) => Some(Arc::new(identity)),
        Err(error) => {
            reader.report(Mistake::File { what: "file of keys", path: file.into(), why: error.to_string() }, span);
            None
        }
    }
}

/// A program that was built without its gateway signs nothing.
#[cfg(not(feature = "gateway"))]
fn identity(reader: &mut Reader, file: &str, span: Span) -> Option<Infallible> {
    let why = "this systole was built without the feature 'gateway', which signs".to_owned();
    reader.report(Mistake::File { what: "file of keys", path: file.into(), why }, span);
    None
}

/// The check of signatures by the public keys in some files. Without a key no message passes it.
#[cfg(feature = "gateway")]
fn signatures(reader: &mut Reader, files: &[Node]) -> Signatures {
    Signatures::new(public_keys(reader, files))
}

/// The public keys in some files.
#[cfg(feature = "gateway")]
pub(super) fn public_keys(reader: &mut Reader, files: &[Node]) -> PublicKeys {
    let mut keys = PublicKeys::default();
    for node in files {
        let Some(file) = reader.text(node) else { continue };
        let path = reader.directory.join(file);
        reader.files.push(path.clone());
        match PublicKeys::load(&path) {
            Ok(read) => keys.extend(read),
            Err(error) => {
                let mistake = Mistake::File { what: "file of public keys", path: file.into(), why: error.to_string() };
                reader.report(mistake, node.span);
            }
        }
    }
    keys
}

/// A program that was built without its gateway verifies no signature, and takes no message that must have one.
#[cfg(not(feature = "gateway"))]
fn signatures(_: &mut Reader, _: &[Node]) -> Signatures {
    struct Refused;
    impl CheckSignature for Refused {
        fn check(&self, _: &Raw, _: &Canonical) -> Result<(), Arc<str>> {
            Err("this systole was built without the feature 'gateway', which verifies signatures".into())
        }
    }
    Signatures::new(Refused)
}
