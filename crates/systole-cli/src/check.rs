//! `systole check`.

use std::path::Path;
use std::process::ExitCode;

use super::failure::Failure;
use super::print::Page;
use super::{report, second_opinion};
use systole::config::Config;

/// `systole check`: one line on standard output if the organism can run, else exit code 1.
pub(super) fn check(organism: &Path) -> Result<ExitCode, Failure> {
    let config = match Config::check(organism, &second_opinion::ask) {
        Ok(config) => config,
        Err(findings) => {
            report::print(&findings);
            return Ok(ExitCode::FAILURE);
        }
    };
    if !config.warnings.is_empty() {
        report::print(&config.warnings);
    }
    let blueprint = &config.blueprint;
    let (listeners, clients) = (blueprint.listeners().count(), blueprint.clients().count());
    let payloads = config.payloads().count();
    let mut page = Page::new();
    page.line(format_args!(
        "{}: ok (listeners: {listeners}, clients: {clients}, payloads: {payloads})",
        blueprint.organism
    ))?;
    page.finish()?;
    Ok(ExitCode::SUCCESS)
}
