//! The log of the program: records of `tracing` through the one [`Screen`].

use std::backtrace::{Backtrace, BacktraceStatus};
use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

use super::screen::Screen;
use systole::process::STDERR_TARGET;

/// Sends the log, and words of panics, to a screen from now on. `SYSTOLE_LOG` sets its levels, as `warn` or `info,systole::gateway=debug`; without
/// it, `level` does. Then lines that programs write on standard error, which `warn` would leave out, are held, and
/// shown before a warning about their listener.
pub(super) fn start(screen: &Arc<Screen>, level: Level) {
    // The crate of MCP tells of each request at info, and of each refusal as a warning.
    let by_default = || {
        let levels = Targets::new().with_default(level).with_target(STDERR_TARGET, Level::INFO);
        levels.with_target("rmcp", Level::ERROR)
    };
    let mut held = (level == Level::WARN).then(Mutex::default);
    let (filter, refused) = match std::env::var("SYSTOLE_LOG").ok().filter(|wanted| !wanted.is_empty()) {
        None => (by_default(), None),
        Some(wanted) => match filter(&wanted) {
            Ok(filter) => {
                held = None;
                (filter, None)
            }
            Err(why) => (by_default(), Some(format!("SYSTOLE_LOG={wanted}: {why}"))),
        },
    };
    let log = Log { screen: screen.clone(), held };
    // The hook of the standard library would wait for standard error.
    let shown = screen.clone();
    std::panic::set_hook(Box::new(move |info| {
        let thread = std::thread::current();
        let trace = Backtrace::capture();
        let trace = if trace.status() == BacktraceStatus::Captured { format!(" {trace}") } else { String::new() };
        shown.panicked(&format!("error thread '{}' {info}{trace}", thread.name().unwrap_or("without a name")));
    }));
    // A second start in one process fails, and the log goes on as before.
    let (filter, handle) = reload::Layer::new(filter);
    if tracing_subscriber::registry().with(filter).with(log).try_init().is_ok() {
        let _ = FILTER.set(handle);
    }
    if let Some(refused) = refused {
        tracing::warn!("{refused}: the log is as with {}", level.as_str().to_ascii_lowercase());
    }
}

/// The filter of the log, once it has started.
static FILTER: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();

/// Sets the levels of the log from now on.
pub(super) fn set(levels: &str) -> Result<(), String> {
    let filter = filter(levels)?;
    let handle = FILTER.get().ok_or("the log of this program is not its own")?;
    handle.reload(filter).map_err(|error| error.to_string())
}

/// Parses a filter. A single word that is no level would be the name of a module, and let nothing in.
fn filter(wanted: &str) -> Result<Targets, String> {
    let is_word = wanted.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_level = wanted.parse::<LevelFilter>().is_ok();
    if is_word && !is_level {
        return Err("there is no such level: write error, warn, info, debug or trace".to_owned());
    }
    wanted.parse::<Targets>().map_err(|error| error.to_string())
}

struct Log {
    screen: Arc<Screen>,
    /// The last lines of programs, where they are held.
    held: Option<Mutex<VecDeque<Line>>>,
}

/// Lines that are held.
const HELD: usize = 100;

/// A line that a program wrote.
struct Line {
    listener: String,
    text: String,
    details: Value,
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let meta = event.metadata();
        let text = fields.text(*meta.level(), meta.target());
        let listener = fields.listener().map(str::to_owned);
        let mut details = Map::new();
        details.insert("event".into(), "log".into());
        details.insert("level".into(), meta.level().as_str().to_ascii_lowercase().into());
        details.insert("target".into(), meta.target().into());
        details.insert("message".into(), fields.message.into());
        details.extend(fields.others.into_iter().map(|(name, value)| (name.to_owned(), value.into())));
        let is_of_program = meta.target() == STDERR_TARGET && *meta.level() == Level::INFO;
        if let (Some(held), Some(listener)) = (&self.held, listener) {
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            if is_of_program {
                held.push_back(Line { listener, text, details: Value::Object(details) });
                if held.len() > HELD {
                    held.pop_front();
                }
                return;
            }
            let about: VecDeque<Line>;
            (about, *held) = std::mem::take(&mut *held).into_iter().partition(|line| line.listener == listener);
            about.into_iter().for_each(|line| self.screen.log(&line.text, line.details));
        }
        self.screen.log(&text, Value::Object(details));
    }
}

#[derive(Debug, Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, String)>,
}

impl Fields {
    fn listener(&self) -> Option<&str> {
        self.of("listener")
    }

    fn of(&self, field: &str) -> Option<&str> {
        self.others.iter().find(|(name, _)| *name == field).map(|(_, value)| value.as_str())
    }

    /// Formats `listener| line` for a line of a program, with the end of the id of its thread, if it is about one, else `level
    /// message field=value`.
    fn text(&self, level: Level, target: &str) -> String {
        let message = &self.message;
        if target == STDERR_TARGET && level == Level::INFO {
            let thread = self.of("thread").and_then(|thread| thread.get(thread.len().saturating_sub(8)..));
            let thread = thread.map_or_else(String::new, |thread| format!(" {thread}"));
            return format!("{}{thread}| {message}", self.listener().unwrap_or_default());
        }
        let mut text = format!("{} {message}", level.as_str().to_ascii_lowercase());
        // A person finds both by the thread.
        let others = self.others.iter().filter(|(name, _)| !matches!(*name, "message_id" | "trace"));
        for (name, value) in others {
            let _ = write!(text, " {name}={value}");
        }
        text
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            self.others.push((field.name(), value.to_owned()));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_write_names_them() {
        let fields = Fields { message: "a".into(), others: vec![("listener", "calc".into()), ("n", "1".into())] };
        assert_eq!(fields.text(Level::INFO, STDERR_TARGET), "calc| a");
        let thread = ("thread", "67e55044-10b1-426f-9247-bb680e5fe0c8".into());
        let about = Fields { message: "a".into(), others: vec![("listener", "calc".into()), thread] };
        assert_eq!(about.text(Level::INFO, STDERR_TARGET), "calc 0e5fe0c8| a");
        let others = vec![("thread", "t".into()), ("message_id", "m".into()), ("trace", "r".into())];
        let failed = Fields { message: "a".into(), others };
        assert_eq!(failed.text(Level::WARN, "systole"), "warn a thread=t");
        assert_eq!(fields.text(Level::WARN, "systole"), "warn a listener=calc n=1");
    }
}
