use std::io::{self, IsTerminal, Write};

use miette::{GraphicalReportHandler, GraphicalTheme};

use crate::shell::config::Finding;

/// Prints findings on standard error, each underlined in its file, and how many there are.
pub(super) fn print(findings: &[Finding]) {
    let mut out = io::stderr().lock();
    // Nobody is left to tell if standard error is closed.
    let _ = out.write_all(render(findings, colour()).as_bytes());
}

/// The findings as text; the last line counts them.
fn render(findings: &[Finding], colour: bool) -> String {
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(110).with_links(false).with_context_lines(1);
    let mut text = String::new();
    for finding in findings {
        // Writing to a string fails for no reason that a finding can have.
        let _ = handler.render_report(&mut text, finding);
        text.push('\n');
    }
    let warnings = findings.iter().filter(|finding| finding.mistake().is_warning()).count();
    text + &format!("{}, {}\n", count(findings.len() - warnings, "error"), count(warnings, "warning"))
}

/// Whether standard error shows colours.
pub(super) fn colour() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
