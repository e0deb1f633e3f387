//! `systole check`.

use std::path::Path;
use std::process::ExitCode;

use super::failure::Failure;
use super::print::Page;
use super::{report, second_opinion};
use systole::config::{Config, ListenerKind};
use systole_core::core::Blueprint;
use systole_core::vocab::QName;

/// `systole check`: if the organism can run, a line on standard output and the contracts written out, as YAML; else exit
/// code 1.
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
    backends(&mut page, &config)?;
    contracts(&mut page, blueprint)?;
    people(&mut page, &config)?;
    page.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the backends of models, and which are left out.
fn backends(page: &mut Page, config: &Config) -> Result<(), Failure> {
    let Some(llm) = &config.llm else { return Ok(()) };
    page.line("backends:")?;
    for (backend, _) in &llm.backends {
        let left_out = backend.left_out().map(|why| format!("  # left out: {why}")).unwrap_or_default();
        page.line(format_args!("  - name: {}{left_out}", backend.name))?;
    }
    Ok(())
}

/// Prints where people answer.
fn people(page: &mut Page, config: &Config) -> Result<(), Failure> {
    let listeners = config.blueprint.listeners().zip(&config.kinds);
    for ((_, contract), kind) in listeners {
        let ListenerKind::Human(human) = kind else { continue };
        let to = &human.to;
        let people: Vec<_> = to.people.iter().map(ToString::to_string).collect();
        let operator = "at the terminal, or the standard input, of systole run, or by systole inbox";
        match (people.is_empty(), to.operators) {
            (true, _) => page.line(format_args!("# '{}' answers {operator}", contract.name))?,
            (false, true) => {
                page.line(format_args!(
                    "# {} answer for '{}', or an operator {operator}",
                    people.join(", "),
                    contract.name
                ))?;
            }
            (false, false) => page.line(format_args!("# {} answer for '{}'", people.join(", "), contract.name))?,
        }
    }
    Ok(())
}

/// Prints the permissions: every payload by its whole name, also where the file has short forms.
fn contracts(page: &mut Page, blueprint: &Blueprint) -> Result<(), Failure> {
    if blueprint.clients().next().is_some() {
        page.line("clients:")?;
    }
    for (_, client) in blueprint.clients() {
        page.line(format_args!("  - name: {}", client.name))?;
        payloads(page, "calls", &client.calls)?;
    }
    page.line("listeners:")?;
    for (_, listener) in blueprint.listeners() {
        page.line(format_args!("  - name: {}", listener.name))?;
        if !listener.description.is_empty() {
            page.line(format_args!("    description: {}", quoted(&listener.description)))?;
        }
        for (key, list) in [
            ("accepts", &listener.accepts),
            ("replies", &listener.replies),
            ("calls", &listener.calls),
            ("returns", &listener.returns),
        ] {
            payloads(page, key, list)?;
        }
    }
    Ok(())
}

fn payloads(page: &mut Page, key: &str, payloads: &[QName]) -> Result<(), Failure> {
    if payloads.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = payloads.iter().map(|payload| quoted(&payload.to_string())).collect();
    Ok(page.line(format_args!("    {key}: [{}]", names.join(", ")))?)
}

/// A text in double quotes of YAML.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
