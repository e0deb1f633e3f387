use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use super::failure::Failure;
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
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{}: ok (listeners: {listeners}, clients: {clients}, payloads: {payloads}{paths})",
        crate::shell::terminal::Escaped::line(&blueprint.organism),
    )?;
    for (payload, reason) in slow {
        let line = format!("{payload} is judged by libxml, up to 64 KiB: {reason}");
        writeln!(out, "  {}", crate::shell::terminal::Escaped::line(&line))?;
    }
    Ok(ExitCode::SUCCESS)
}
