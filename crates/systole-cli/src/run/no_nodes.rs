//! `systole run` of a program that was built without its gateway: it is no node of any organism.

use std::process::ExitCode;

use systole::process::signals::Signals;
use systole::runtime::Breakdown;

use super::Run;
use super::launch::{Launched, Stage};
use crate::failure::Failure;

/// No node.
pub(super) struct NodeOf;

pub(super) fn join(_: &mut Stage, args: &Run) -> Result<NodeOf, Failure> {
    match args.node.is_some() || args.node_url.is_some() {
        true => {
            Err(Failure::unusable("this systole was built without its gateway: build it with the feature 'gateway'"))
        }
        false => Ok(NodeOf),
    }
}

pub(super) fn is_alone(_: &NodeOf) -> bool {
    true
}

/// Starts the organism.
pub(super) async fn launch(
    stage: &mut Stage,
    args: &Run,
    _: &NodeOf,
    _: &mut Signals,
) -> Result<Option<Launched>, Failure> {
    stage.launch(args).map(Some)
}

pub(super) fn stands_by_again(_: &NodeOf, _: &Breakdown, _: bool) -> bool {
    false
}

pub(super) async fn again(
    _: &mut Stage,
    _: &Run,
    _: &NodeOf,
    _: &mut Signals,
    _: &Breakdown,
) -> Result<Option<Launched>, Failure> {
    Ok(None)
}

pub(super) async fn release(_: &NodeOf) {}

pub(super) async fn leave(_: NodeOf, code: ExitCode) -> ExitCode {
    code
}
