//! `cluster:`: several nodes of one organism, which take over from each other.

use super::document::Node;
use super::keys::{Named, Text, Time, mapping};
use super::mistake::Mistake;
use super::organism::Organism;
use super::reader::{At, Reader};
use crate::journal::is_url;
use crate::settings::{ClusterSettings, check_node_url, read_regular};

/// Most bytes of a file of certificates.
pub(super) const CERTIFICATES: u64 = 1 << 20;

mapping! {
    /// Nodes of the organism, one of which runs it while the others stand by.
    ClusterKeys: Cluster {
        /// Name of this node; `--node` of `systole run`, or SYSTOLE_NODE, says it where the nodes share one file.
        node: Named;
        /// URL by which the other nodes reach this one's gateway, such as `http://10.0.0.7:8420`; or `--node-url`, or
        /// SYSTOLE_NODE_URL.
        url: Text;
        /// Time for which a node has the organism, unless it asks for more; another takes over when it is over.
        lease: Time<2000> = "10s";
        /// File of certificates that are trusted beside those of the system, in PEM, where the nodes' gateways have TLS.
        ca_file: Text;
    }
}

pub(super) fn read(reader: &mut Reader, node: &Node) -> Option<At<ClusterSettings>> {
    let keys = ClusterKeys::open(reader, node)?;
    let mut cluster = ClusterSettings { node: keys.node.read(reader).map(|name| name.value), ..Default::default() };
    cluster.url = keys.url.read(reader).map(str::to_owned);
    if let Some((url, span)) = cluster.url.as_ref().zip(keys.url.span())
        && let Err(problem) = check_node_url(url)
    {
        reader.report(
            Mistake::Cluster {
                problem: format!("the URL {problem}"),
                help: "write http://HOST:PORT, or https://HOST:PORT",
            },
            span,
        );
    }
    keys.lease.set(reader, &mut cluster.lease);
    if let Some((file, span)) = keys.ca_file.read(reader).zip(keys.ca_file.span()) {
        let path = reader.directory.join(file);
        reader.files.push(path.clone());
        if let Err(error) = read_regular(&path, CERTIFICATES) {
            reader.report(
                Mistake::File { what: "file of certificates", path: file.into(), why: error.to_string() },
                span,
            );
        }
        cluster.ca_file = Some(path);
    }
    if cfg!(not(all(feature = "gateway", feature = "postgres"))) {
        reader.report(Mistake::NotBuilt { key: "cluster", feature: "postgres" }, node.span);
        return None;
    }
    Some(At { value: cluster, span: keys.own.span })
}

/// Reports nodes that would have nothing to share, or no way to reach each other.
pub(super) fn check(reader: &mut Reader, organism: &Organism) {
    let Some(At { span, .. }) = &organism.cluster else { return };
    if organism.gateway.is_none() {
        let problem = "nodes reach each other by their gateways, and there is none".to_owned();
        reader.report(Mistake::Cluster { problem, help: "add gateway: { listen: \"0.0.0.0:8420\" }" }, *span);
    }
    if !organism.journal.as_ref().is_some_and(|journal| is_url(&journal.file.value)) {
        let problem = "nodes share a journal in PostgreSQL, and this one is a file, or missing".to_owned();
        reader.report(
            Mistake::Cluster { problem, help: "write journal: postgres://USER@HOST/DATABASE (docs/postgres.md)" },
            *span,
        );
    }
}
