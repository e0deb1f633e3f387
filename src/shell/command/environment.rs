use std::ffi::OsString;
use std::path::Path;

use super::Variable;
use crate::core::Message;

const PASSED_ON: [&str; 3] = ["PATH", "HOME", "LANG"];

/// The whole environment of a process: later entries win, and `SYSTOLE_*` come last.
pub(super) fn variables(listed: &[Variable], message: &Message, history: Option<&Path>) -> Vec<(OsString, OsString)> {
    let mut all = Vec::with_capacity(PASSED_ON.len() + listed.len() + 9);
    let inherit = |name: &str| std::env::var_os(name).map(|value| (OsString::from(name), value));
    all.extend(PASSED_ON.iter().filter_map(|name| inherit(name)));
    for variable in listed {
        match variable {
            Variable::Inherited(name) => all.extend(inherit(name)),
            Variable::Set(name, value) => all.push((name.into(), value.into())),
        }
    }
    all.extend(described(message).into_iter().map(|(name, value)| (name.into(), value.into())));
    all.extend(history.map(|path| ("SYSTOLE_HISTORY".into(), path.into())));
    all
}

fn described(message: &Message) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("SYSTOLE_FROM", message.from.to_string()),
        ("SYSTOLE_THREAD", message.thread.to_string()),
        ("SYSTOLE_MESSAGE_ID", message.id.to_string()),
    ];
    all.extend(message.in_reply_to.map(|id| ("SYSTOLE_IN_REPLY_TO", id.to_string())));
    if let Some(join) = message.join {
        all.push(("SYSTOLE_INDEX", join.index.to_string()));
        all.push(("SYSTOLE_TOTAL", join.total.to_string()));
        all.push(("SYSTOLE_REMAINING", join.remaining.to_string()));
    }
    all.extend(message.deadline.map(|deadline| ("SYSTOLE_DEADLINE", deadline.to_string())));
    all
}
