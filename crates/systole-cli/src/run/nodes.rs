//! `systole run` as a node: it stands by until the organism is its own, and again when it is not any more.

use std::env::var;
use std::process::ExitCode;
use std::time::Duration;

use systole::cluster::Node;
use systole::process::signals::Signals;
use systole::runtime::Breakdown;
use systole_core::vocab::Name;

use super::launch::{Launched, Stage};
use super::{Run, is_fenced};
use crate::failure::Failure;

/// The node of this process, if its organism has nodes.
pub(super) type NodeOf = Option<Node>;

/// Rest behind a start that failed: another node may have more success.
const REST: Duration = Duration::from_secs(5);

/// The variables with the name of this node, and with its URL.
const VARIABLES: [&str; 2] = ["SYSTOLE_NODE", "SYSTOLE_NODE_URL"];

/// Makes this process a node, if its organism has nodes.
pub(super) fn join(stage: &mut Stage, args: &Run) -> Result<NodeOf, Failure> {
    let Some(config) = stage.next_config().filter(|config| config.cluster.is_some()) else {
        return match args.node.is_some() || args.node_url.is_some() {
            true => Err(Failure::unusable(
                "--node and --node-url are for an organism with nodes: write cluster: {} in its organism.yaml",
            )),
            false => Ok(None),
        };
    };
    let [name, url] = VARIABLES.map(|variable| var(variable).ok().filter(|value| !value.is_empty()));
    let name = name.map(|name| {
        let wrong = |error| Failure::unusable(format!("SYSTOLE_NODE can't be the name of a node: {error}"));
        Name::parse(&name).map_err(wrong)
    });
    let name = match &args.node {
        Some(name) => Some(name.clone()),
        None => name.transpose()?,
    };
    let node = config.join(name, args.node_url.clone().or(url));
    node.map(Some).map_err(|error| Failure::unusable(error.to_string()))
}

/// Returns whether no other process can run the organism.
pub(super) fn is_alone(node: &NodeOf) -> bool {
    node.is_none()
}

/// Starts the organism, as a node once that has the lease; none if the program is stopped before.
pub(super) async fn launch(
    stage: &mut Stage,
    args: &Run,
    node: &NodeOf,
    signals: &mut Signals,
) -> Result<Option<Launched>, Failure> {
    let Some(node) = node else { return stage.launch(args).map(Some) };
    loop {
        stage.screen.note(&format!("node {}: stands by", node.name()));
        let tenure = tokio::select! {
            biased;
            () = signals.stop() => return Ok(None),
            tenure = node.stand_by() => tenure,
        };
        let failure = match stage.launch_as(args, |config| config.placed(node, &tenure)) {
            Ok(launched) => {
                stage.screen.note(&format!("node {}: runs the organism", node.name()));
                return Ok(Some(launched));
            }
            Err(failure) => failure,
        };
        stage.screen.note(&format!("node {}: the organism can't start here: {failure}", node.name()));
        node.rest(REST);
        node.release().await;
        if let Failure::Config(_) = failure {
            // It is not the fault of the moment.
            return Err(failure);
        }
    }
}

/// Returns whether a node whose organism broke down stands by again, instead of ending: it has lost the lease, or is to restart.
pub(super) fn stands_by_again(node: &NodeOf, why: &Breakdown, restarts: bool) -> bool {
    node.is_some() && (restarts || is_fenced(why) || matches!(why, Breakdown::Lapsed))
}

/// Stands by again; none if the program is stopped before.
pub(super) async fn again(
    stage: &mut Stage,
    args: &Run,
    node: &NodeOf,
    signals: &mut Signals,
    why: &Breakdown,
) -> Result<Option<Launched>, Failure> {
    stage.screen.note(&format!("{why}: the node stands by again"));
    if let Some(node) = node {
        if !(is_fenced(why) || matches!(why, Breakdown::Lapsed)) {
            node.rest(REST);
        }
        node.release().await;
    }
    launch(stage, args, node, signals).await
}

/// Gives the lease up, if there is one.
pub(super) async fn release(node: &NodeOf) {
    if let Some(node) = node {
        node.release().await;
    }
}

/// Ends the node in order, and returns the exit code.
pub(super) async fn leave(node: NodeOf, code: ExitCode) -> ExitCode {
    if let Some(node) = node {
        node.release().await;
        node.close().await;
    }
    code
}
