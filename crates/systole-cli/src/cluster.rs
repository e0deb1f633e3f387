//! `systole cluster`: the nodes of an organism, and its lease.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use systole::journal::{ClusterState, SeenNode};
use systole::terminal::Escaped;

use super::failure::Failure;
use super::journal;
use super::print::{self, Page};

#[derive(Debug, Args)]
pub(super) struct Cluster {
    /// Print the nodes as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: journal::Named,
}

pub(super) fn run(args: &Cluster) -> Result<ExitCode, Failure> {
    let state = args.of.journal()?.cluster().map_err(Failure::store)?;
    if args.json {
        print::json(&value(&state))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Page::new();
    match &state.lease {
        None => page.line(format_args!("no node has run the organism yet"))?,
        Some(lease) => {
            let (holder, since) = (&lease.holder, seconds(lease.since));
            let name = Escaped::line(&holder.node);
            let term = format_args!("term {}, epoch {}", holder.term, lease.epoch).to_string();
            match (holder.is_there(), holder.handed_over) {
                (true, _) => page.line(format_args!(
                    "active  {name} {} since {since}, {} left of its lease, {term}",
                    Escaped::line(&holder.url),
                    seconds(holder.left)
                ))?,
                (false, true) => {
                    page.line(format_args!("active  none: {name} has handed the organism over, {term}"))?
                }
                (false, false) => page.line(format_args!("active  none: the lease of {name} has ended, {term}"))?,
            }
        }
    }
    for node in &state.nodes {
        let (role, name, url) = (role(&state, node), Escaped::line(&node.name), Escaped::line(&node.url));
        page.line(format_args!("node    {name} {role} {url} last asked {} ago", seconds(node.ago)))?;
    }
    page.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Time without a question after which a node counts as silent, if no node has the lease.
const SILENT: Duration = Duration::from_secs(30);

fn role(state: &ClusterState, node: &SeenNode) -> &'static str {
    let holder = state.lease.as_ref().map(|lease| &lease.holder).filter(|holder| holder.is_there());
    let is_active = |of: &&SeenNode| holder.is_some_and(|holder| holder.process == of.process.as_u128());
    // The lease had its whole length when its node last asked; each node asks three times in that.
    let active = state.nodes.iter().find(is_active);
    let length = holder.zip(active).map_or(SILENT, |(holder, active)| holder.left + active.ago);
    match () {
        () if is_active(&node) => "active",
        () if node.ago > length => "silent",
        () => "standby",
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn value(state: &ClusterState) -> serde_json::Value {
    let lease = state.lease.as_ref().map(|lease| {
        json!({
            "node": lease.holder.node, "url": lease.holder.url, "term": lease.holder.term, "epoch": lease.epoch,
            "held": lease.holder.is_there(), "handed_over": lease.holder.handed_over,
            "since_seconds": lease.since.as_secs_f64(), "left_seconds": lease.holder.left.as_secs_f64(),
        })
    });
    let node = |node: &SeenNode| {
        json!({
            "name": node.name, "url": node.url, "role": role(state, node), "last_asked_seconds": node.ago.as_secs_f64(),
        })
    };
    json!({ "lease": lease, "nodes": state.nodes.iter().map(node).collect::<Vec<_>>() })
}
