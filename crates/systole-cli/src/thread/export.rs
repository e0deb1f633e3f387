//! `systole thread export`: old conversations as traces.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use systole::telemetry::{PastError, Traces};

use super::{Journal, Only, conversations};
use crate::failure::Failure;
use crate::print;
use crate::sought::Sought;

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Send traces to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names
    #[arg(long, required = true)]
    otlp: bool,
    /// The conversations, or threads in them; the last digits of an id are enough. Without one, all that meet the conditions
    ids: Vec<Sought>,
    #[command(flatten)]
    only: Only,
    #[command(flatten)]
    of: Journal,
}

pub(super) fn export(args: &Export) -> Result<ExitCode, Failure> {
    let traces = Traces::from_environment().map_err(|error| Failure::unusable(error.to_string()))?;
    let none = "there is no collector to send to: set OTEL_EXPORTER_OTLP_ENDPOINT, as in http://localhost:4318";
    let traces = traces.ok_or_else(|| Failure::unusable(none))?;
    let reader = args.of.of.journal()?.read().map_err(Failure::store)?;
    let blueprint = args.of.of.blueprint()?;
    let organism = reader.stat().map_err(Failure::store)?.organism;
    let organism = organism.unwrap_or_else(|| "systole".to_owned());
    let wanted = match args.ids.is_empty() {
        // An id of a record is one.
        true => conversations(&args.of.past()?, args.only.wanted())?
            .iter()
            .filter_map(|found| found.conversation.parse().ok())
            .collect(),
        false => args.ids.iter().map(|id| id.find(&*reader)).collect::<Result<Vec<_>, Failure>>()?,
    };
    let mut past = traces.past(&organism, blueprint.as_ref()).map_err(|error| Failure::unusable(error.to_string()))?;
    let mut spans = 0;
    for conversation in &wanted {
        spans += past.send(&*reader, *conversation).map_err(|error| match error {
            PastError::Journal(error) => Failure::store(error),
            error => Failure::no(error.to_string()),
        })?;
    }
    match args.of.json {
        true => print::json(&json!({ "conversations": wanted.len(), "spans": spans }))?,
        false => print::line(format_args!("{} conversations, {spans} spans", wanted.len()))?,
    }
    Ok(ExitCode::SUCCESS)
}
