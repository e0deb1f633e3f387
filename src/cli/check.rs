use std::path::Path;
use std::process::ExitCode;

use super::failure::Failure;
use super::print::Page;
use super::report;
use crate::shell::config::Config;

/// `systole check`: one line on standard output if the organism can run, else exit code 1.
pub(super) fn check(organism: &Path) -> Result<ExitCode, Failure> {
    let config = match Config::load(organism) {
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
    let slow = config.payloads().filter_map(|schema| Some((schema.qname(), schema.libxml_reason()?)));
    let (slow, payloads): (Vec<_>, _) = (slow.collect(), config.payloads().count());
    let paths = match slow.len() {
        0 => String::new(),
        libxml => format!("; by the engine: {}, by libxml: {libxml}", payloads - libxml),
    };
    let mut page = Page::new();
    page.line(format_args!(
        "{}: ok (listeners: {listeners}, clients: {clients}, payloads: {payloads}{paths})",
        blueprint.organism
    ))?;
    for (payload, reason) in slow {
        page.line(format_args!("  {payload} is judged by libxml, up to 64 KiB: {reason}"))?;
    }
    page.finish()?;
    Ok(ExitCode::SUCCESS)
}
