//! The environment of commands and workers.

use std::ffi::OsString;
use std::path::Path;

use super::{About, Variable};

const PASSED_ON: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Lists the environment of a process for one message: later entries win, and `SYSTOLE_*` come last.
pub(super) fn variables(listed: &[Variable], about: &About, history: Option<&Path>) -> Vec<(OsString, OsString)> {
    let mut all = passed_on(listed);
    all.extend(described(about).into_iter().map(|(name, value)| (name.into(), value.into())));
    all.extend(history.map(|path| ("SYSTOLE_HISTORY".into(), path.into())));
    all
}

/// Lists the variables that every process gets: later entries win.
pub(in crate::runtime) fn passed_on(listed: &[Variable]) -> Vec<(OsString, OsString)> {
    let mut all = Vec::with_capacity(PASSED_ON.len() + listed.len() + 9);
    let inherit = |name: &str| std::env::var_os(name).map(|value| (OsString::from(name), value));
    all.extend(PASSED_ON.iter().filter_map(|name| inherit(name)));
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
    if let Some(join) = about.join {
        all.push(("SYSTOLE_INDEX", join.index.to_string()));
        all.push(("SYSTOLE_TOTAL", join.total.to_string()));
        all.push(("SYSTOLE_REMAINING", join.remaining.to_string()));
    }
    all.extend(about.deadline.map(|deadline| ("SYSTOLE_DEADLINE", deadline.to_string())));
    all
}
