//! The environment of commands and workers.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::{About, Variable};

/// Returns whether every process gets a variable of this one: the path, the home, and the locale as a whole.
fn is_passed_on(name: &OsStr) -> bool {
    ["PATH", "HOME", "LANG", "LANGUAGE"].iter().any(|known| name == *known)
        || name.as_encoded_bytes().starts_with(b"LC_")
}

/// Lists the environment of a process for one message: later entries win, and those about the message come last.
pub(crate) fn variables(listed: &[Variable], about: &About, history: Option<&Path>) -> Vec<(OsString, OsString)> {
    let mut all = passed_on(listed);
    all.extend(described(about).into_iter().map(|(name, value)| (name.into(), value.into())));
    all.extend(history.map(|path| ("SYSTOLE_HISTORY".into(), path.into())));
    all
}

/// Lists the variables that every process gets: later entries win.
pub(crate) fn passed_on(listed: &[Variable]) -> Vec<(OsString, OsString)> {
    let inherit = |name: &str| std::env::var_os(name).map(|value| (OsString::from(name), value));
    let mut all: Vec<_> = std::env::vars_os().filter(|(name, _)| is_passed_on(name)).collect();
    for variable in listed {
        match variable {
            Variable::Inherited(name) => all.extend(inherit(name)),
            Variable::Set(name, value) => all.push((name.into(), value.into())),
        }
    }
    all
}

fn described(about: &About) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("SYSTOLE_FROM", about.from.clone()),
        ("SYSTOLE_THREAD", about.thread.to_string()),
        ("SYSTOLE_MESSAGE_ID", about.id.to_string()),
    ];
    all.extend(about.in_reply_to.map(|id| ("SYSTOLE_IN_REPLY_TO", id.to_string())));
    all.extend(about.answers.map(|call| ("SYSTOLE_ANSWERS", call.to_string())));
    if let Some(join) = about.join {
        all.push(("SYSTOLE_INDEX", join.index.to_string()));
        all.push(("SYSTOLE_TOTAL", join.total.to_string()));
        all.push(("SYSTOLE_REMAINING", join.remaining.to_string()));
    }
    all.extend(about.deadline.map(|deadline| ("SYSTOLE_DEADLINE", deadline.to_string())));
    // The name that OpenTelemetry's environment carriers share.
    all.extend(about.traceparent.map(|traceparent| ("TRACEPARENT", traceparent.to_string())));
    all
}
