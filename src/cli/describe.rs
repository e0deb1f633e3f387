use std::path::Path;
use std::process::ExitCode;

use super::failure::Failure;
use super::print;
use crate::ladder::Canonical;
use crate::schema::PayloadSchema;
use crate::shell::config::Config;
use crate::vocab::QName;

/// What is printed of a payload.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Schema,
    Example,
    Prompt,
}

/// `systole schema|example|prompt`: of one payload, or of all that the organism knows, each once.
pub(super) fn describe(organism: &Path, payload: Option<&QName>, part: Part) -> Result<ExitCode, Failure> {
    let config = Config::load(organism).map_err(Failure::Config)?;
    let mut shown: Vec<&str> = Vec::new();
    match payload {
        Some(payload) => {
            let schema = config.catalog.get(payload).ok_or_else(|| unknown(payload, &config))?;
            shown
                .push(text(schema, part).ok_or_else(|| Failure::no(format!("no example of {payload} could be made")))?);
        }
        None => {
            for text in config.payloads().filter_map(|schema| text(schema, part)) {
                // Payloads of one document share it.
                if !shown.contains(&text) {
                    shown.push(text);
                }
            }
        }
    }
    let mut all = String::new();
    for (index, text) in shown.into_iter().enumerate() {
        if index > 0 && matches!(part, Part::Prompt) {
            all.push('\n');
        }
        all.push_str(text.trim_end_matches('\n'));
        all.push('\n');
    }
    print::document(all.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Only an example may be missing: some schemas leave no way to find one.
fn text(schema: &PayloadSchema, part: Part) -> Option<&str> {
    match part {
        Part::Schema => Some(schema.document()),
        Part::Example => schema.example().map(Canonical::as_str),
        Part::Prompt => Some(schema.prompt()),
    }
}

fn unknown(payload: &QName, config: &Config) -> Failure {
    let known: Vec<String> = config.payloads().map(|schema| format!("  {}", schema.qname())).collect();
    Failure::no(format!("no schema declares {payload}; declared are\n{}", known.join("\n")))
}
