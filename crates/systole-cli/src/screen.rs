//! The terminal of `systole run`.
//!
//! Always: printing never waits for a reader. Events and the log are missed beyond a bound; answers are kept, and those
//! who print them wait for [room](Screen::room). Text for one file keeps its order, whichever stream it is for.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use serde_json::{Value, json};
use systole::drafts::DraftNews;
use systole::runtime::Observed;
use systole::runtime::clock::Clock;
use systole::terminal::{Escaped, quote};
use systole_core::core::{Event, EventKind};
use systole_core::vocab::Time;

use super::descriptor::{Patient, are_same};
use super::draft_lines::DraftLines;
use super::event_line::EventLine;
use super::outlet::{Outlet, Progress, TellMissed};
use super::tree::Tree;

/// Standard error, and standard output where it is the same terminal: all that `run` prints goes through the screen, so
/// that no text overwrites another.
pub(super) struct Screen {
    state: Mutex<State>,
    /// Standard output.
    out: Arc<Outlet>,
    /// Standard error.
    err: Arc<Outlet>,
}

/// Style in which events are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// A tree of the open threads, redrawn in place; errors stay above it.
    Tree,
    /// A line per event.
    Lines,
    /// A JSON object per event and per line of the log, each on a line.
    Json,
}

/// The terminal where people type, if there is one.
pub(super) enum PeopleTerminal {
    /// No terminal, or a pipe: text for people goes to standard error.
    None,
    /// The terminal of standard error.
    Standard,
    /// Another terminal.
    Terminal(File),
}

/// The outlet to such a terminal; none if text for people goes to standard error.
struct Desk {
    /// True if people type at a terminal.
    is_there: bool,
    own: Option<Arc<Outlet>>,
}

struct State {
    style: Style,
    /// True if events are shown.
    events: bool,
    /// True if lines have the time and whole ids: lines that a file keeps, not those that a terminal shows.
    dated: bool,
    desk: Desk,
    /// Byte behind each envelope for programs.
    ending: u8,
    /// True if the last text for a person ended in the middle of a line.
    mid_line: bool,
    torn: Option<Torn>,
    drafts: DraftLines,
    err: Arc<Outlet>,
    /// True if standard output is shown on the same screen.
    shared: bool,
    size: fn() -> (usize, usize),
    /// Text for `err` that is written at the end of a call.
    unwritten: String,
    tree: Tree,
    /// Lines of the tree that are on the screen.
    drawn: usize,
    stale: bool,
}

/// Other text that came onto the terminal of people since the last text for a person.
#[derive(Debug, Clone, Copy, Default)]
struct Torn {
    /// True if some came since the last tick.
    goes_on: bool,
    ticks: u32,
}

/// Ticks after which a question is redrawn, though other text still comes.
const PATIENCE: u32 = 10;

impl Screen {
    /// Makes a screen of the standard streams, and the terminal where people type.
    pub(super) fn standard(style: Style, people: PeopleTerminal) -> Self {
        let shared = io::stdout().is_terminal();
        let dated = !io::stderr().is_terminal();
        let err = Outlet::new(Patient(io::stderr()), tell_missed(style, dated));
        let (is_there, own) = match people {
            PeopleTerminal::None => (false, None),
            PeopleTerminal::Standard => (true, None),
            PeopleTerminal::Terminal(file) => {
                (true, Some(Outlet::new(Patient(file), tell_missed(Style::Lines, false))))
            }
        };
        let out = match &own {
            _ if are_same(io::stdout(), io::stderr()) => err.clone(),
            Some(own) if shared => own.clone(),
            _ => Outlet::new(Patient(io::stdout()), Box::new(|_| String::new())),
        };
        let screen = Self::new(style, Desk { is_there, own }, out, err, shared, terminal_size);
        screen.lock().dated = dated;
        screen
    }

    fn new(
        style: Style,
        desk: Desk,
        out: Arc<Outlet>,
        err: Arc<Outlet>,
        shared: bool,
        size: fn() -> (usize, usize),
    ) -> Self {
        let (unwritten, tree) = (String::new(), Tree::default());
        let (mid_line, torn) = (false, None);
        let (drawn, stale) = (0, false);
        let state = State {
            style,
            events: true,
            dated: false,
            desk,
            ending: b'\n',
            mid_line,
            torn,
            drafts: DraftLines::default(),
            err: err.clone(),
            shared,
            size,
            unwritten,
            tree,
            drawn,
            stale,
        };
        Self { state: Mutex::new(state), out, err }
    }

    /// Shows events and lines, with one write.
    pub(super) fn observed(&self, observed: impl Iterator<Item = Observed>) {
        self.show(|state| {
            for observed in observed {
                match observed {
                    _ if !state.events => {}
                    Observed::Event(event) => state.event(&event),
                    Observed::Missed(count) => state.log(
                        &format!("{count} events are not shown: they came too fast"),
                        json!({ "event": "missed", "count": count }),
                    ),
                }
            }
        });
    }

    /// Shows a record of the log: `text` for people, `details` for programs.
    pub(super) fn log(&self, text: &str, details: Value) {
        self.show(|state| state.log(text, details));
    }

    /// Shows a note about the run itself.
    pub(super) fn note(&self, text: &str) {
        self.log(text, json!({ "event": "note", "message": text }));
    }

    /// Shows news on drafts, which may end in the middle of a line.
    pub(super) fn draft(&self, news: &DraftNews) {
        self.show(|state| {
            state.erase();
            let text = state.drafts.show(news);
            state.unwritten.push_str(&text);
        });
    }

    /// Prints text for a person, which may end in the middle of a line. Without text it notes that the person has typed
    /// a line.
    pub(super) fn converse(&self, text: &str) {
        self.show(|state| {
            match (&state.desk.own, state.style) {
                (Some(own), _) => own.offer(Escaped::text(text).to_string()),
                _ if text.is_empty() => {}
                (_, Style::Json) => state.json(json!({ "event": "terminal", "text": text })),
                (_, Style::Lines | Style::Tree) => {
                    state.erase();
                    state.print(Escaped::text(text));
                }
            }
            state.torn = state.torn.filter(|_| text.is_empty());
            state.mid_line = !text.is_empty() && !text.ends_with('\n');
        });
    }

    /// Checks whether people type at a terminal.
    pub(super) fn has_desk(&self) -> bool {
        self.lock().desk.is_there
    }

    /// Checks whether to redraw a question: other text came onto its terminal, and no more comes.
    pub(super) fn is_torn(&self) -> bool {
        let mut state = self.lock();
        let Some(torn) = &mut state.torn else { return false };
        torn.ticks += 1;
        let is_over = !std::mem::take(&mut torn.goes_on) || torn.ticks >= PATIENCE;
        if is_over {
            state.torn = None;
        }
        is_over
    }

    /// Shows no events.
    pub(super) fn without_events(self) -> Self {
        self.lock().events = false;
        self
    }

    /// Ends envelopes for programs with another byte than a line feed.
    pub(super) fn ending(self, ending: u8) -> Self {
        self.lock().ending = ending;
        self
    }

    /// Prints an envelope and its ending on standard output; `taken` is called once that has all of it.
    pub(super) fn envelope(&self, envelope: &[u8], taken: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        let mut bytes = Vec::with_capacity(envelope.len() + 1);
        if state.shared {
            state.end_draft_line();
            state.erase();
            state.write();
            // Standard output is on the terminal where people type, wherever standard error goes.
            if state.desk.is_there && state.cut_in() {
                bytes.push(b'\n');
            }
            let text = String::from_utf8_lossy(envelope);
            // The start tag is the pump's; what stands on further lines may imitate its lines.
            match text.split_once('\n') {
                None => bytes.extend_from_slice(Escaped::line(&text).to_string().as_bytes()),
                Some((first, rest)) => {
                    bytes.extend_from_slice(format!("{}\n{}", Escaped::line(first), quote(rest)).as_bytes());
                }
            }
            bytes.push(b'\n');
        } else {
            bytes.extend_from_slice(envelope);
            bytes.push(state.ending);
        }
        self.out.keep(bytes, taken);
    }

    /// Waits until standard output has room for an envelope.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub(super) async fn room(&self) {
        self.out.room().await;
    }

    /// Waits until all envelopes are written.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub(super) async fn written(&self) {
        self.out.written().await;
    }

    /// Returns how far standard output is.
    pub(super) fn progress(&self) -> Progress {
        self.out.progress()
    }

    /// Waits until standard output has taken more than so many bytes.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub(super) async fn took_more_than(&self, bytes: u64) {
        self.out.took_more_than(bytes).await;
    }

    /// Waits for the error of a standard output that is closed or full.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub(super) async fn failed(&self) -> io::Error {
        self.out.failed().await
    }

    /// Waits until standard error has room for events.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub(super) async fn event_room(&self) {
        self.err.line_room().await;
    }

    /// Waits on this thread until standard error has all that was printed, so long at most.
    pub(super) fn flush(&self, most: Duration) {
        self.err.flush(most);
    }

    /// Notes a panic. Its thread may have been printing.
    pub(super) fn panicked(&self, text: &str) {
        let details = || json!({ "event": "log", "level": "error", "message": text });
        match self.state.try_lock() {
            Ok(mut state) => state.log_now(text, details()),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().log_now(text, details()),
            Err(TryLockError::WouldBlock) => self.err.offer(format!("{}\n", Escaped::line(text))),
        }
    }

    /// Checks whether a tree is drawn.
    pub(super) fn draws(&self) -> bool {
        self.lock().style == Style::Tree
    }

    /// Redraws the tree, if it has changed.
    pub(super) fn refresh(&self) {
        self.show(State::refresh);
    }

    /// Erases the tree for good.
    pub(super) fn finish(&self) {
        self.show(|state| {
            state.erase();
            state.stale = false;
        });
    }

    fn show(&self, show: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        show(&mut state);
        state.write();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All printed text is escaped here, but for the sequences that erase the tree.
impl State {
    fn event(&mut self, event: &Event) {
        match self.style {
            // Lines stay: the text is there when it is whole.
            Style::Lines if matches!(event.kind, EventKind::ModelWrites { .. } | EventKind::Handled { .. }) => {}
            Style::Lines if self.dated => self.line(&format_args!("{:#}", EventLine(event))),
            Style::Lines => self.line(&EventLine(event)),
            Style::Json => self.json(serde_json::to_value(event).unwrap_or_default()),
            Style::Tree => {
                self.tree.apply(event);
                self.stale = true;
                if went_wrong(&event.kind) {
                    self.line(&EventLine(event));
                }
            }
        }
    }

    fn log_now(&mut self, text: &str, details: Value) {
        self.log(text, details);
        self.write();
    }

    fn log(&mut self, text: &str, details: Value) {
        match self.style {
            Style::Json => self.json(details),
            Style::Lines | Style::Tree => self.line(&text),
        }
    }

    fn line(&mut self, line: &dyn Display) {
        self.tear();
        self.erase();
        self.unwritten.push_str(&line_text(line, self.dated));
    }

    /// Prints an object, with the time, unless it has one of its own.
    fn json(&mut self, value: Value) {
        self.tear();
        self.erase();
        self.unwritten.push_str(&json_text(value));
    }

    /// Ends the line of a draft: other text begins on a line of its own, and so does the rest of the draft.
    fn end_draft_line(&mut self) {
        if self.drafts.tear() {
            self.unwritten.push('\n');
        }
    }

    /// Prepares for other text on the terminal where people type: it begins on a line of its own.
    fn tear(&mut self) {
        self.end_draft_line();
        if self.desk.is_there && self.desk.own.is_none() && self.cut_in() {
            self.unwritten.push('\n');
        }
    }

    /// Notes that other text comes onto the terminal of people; true if it comes in the middle of a line.
    fn cut_in(&mut self) -> bool {
        self.torn.get_or_insert_default().goes_on = true;
        std::mem::take(&mut self.mid_line)
    }

    fn print(&mut self, text: Escaped<'_>) {
        self.unwritten.push_str(&text.to_string());
    }

    fn refresh(&mut self) {
        // A terminal that takes nothing at the moment gets no frames that nobody would see.
        if self.stale && !self.err.progress().is_behind() {
            self.erase();
            let (rows, columns) = (self.size)();
            let lines = self.tree.render(rows.saturating_sub(2).max(1), columns);
            self.drawn = lines.len();
            self.stale = false;
            if !lines.is_empty() {
                self.print(Escaped::text(&(lines.join("\n") + "\n")));
            }
        }
    }

    fn erase(&mut self) {
        if self.drawn > 0 {
            self.unwritten.push_str(&format!("\x1b[{}A\x1b[J", self.drawn));
            self.drawn = 0;
            self.stale = true;
        }
    }

    fn write(&mut self) {
        if !self.unwritten.is_empty() {
            self.err.offer(std::mem::take(&mut self.unwritten));
        }
    }
}

/// A line of text, escaped, with its end.
fn line_text(line: &dyn Display, dated: bool) -> String {
    let line = if dated { format!("{} {line}", now()) } else { line.to_string() };
    format!("{}\n", Escaped::line(&line))
}

/// An object on a line, with the time, unless it has one of its own.
fn json_text(mut value: Value) -> String {
    if let Value::Object(fields) = &mut value {
        fields.entry("at").or_insert_with(|| Clock::real().now().to_string().into());
    }
    format!("{}\n", Escaped::json(&value.to_string()))
}

/// Tells of lines that were missed as other lines are shown.
fn tell_missed(style: Style, dated: bool) -> TellMissed {
    Box::new(move |count| match style {
        Style::Json => json_text(json!({ "event": "missed", "count": count, "of": "lines" })),
        Style::Lines | Style::Tree => line_text(
            &format_args!("{count} lines are not shown: standard error was not read, or could not be written"),
            dated,
        ),
    })
}

/// The time, to the millisecond.
fn now() -> Time {
    Time::from_nanos(Clock::real().now().as_nanos() / 1_000_000 * 1_000_000)
}

/// Checks whether an event stays on the screen above the tree.
fn went_wrong(kind: &EventKind) -> bool {
    match kind {
        EventKind::Repaired { .. }
        | EventKind::Forged { .. }
        | EventKind::Refused { .. }
        | EventKind::Faulted { .. }
        | EventKind::DeadLetter { .. }
        | EventKind::LetterDropped { .. }
        | EventKind::Unattended { .. }
        | EventKind::Operated { .. }
        | EventKind::Fenced { .. }
        | EventKind::Blocked { .. }
        | EventKind::Released { .. } => true,
        EventKind::Injected { claimed, .. } => claimed.is_some(),
        _ => false,
    }
}

/// Rows and columns of the terminal at standard error.
fn terminal_size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (size.ws_row.into(), size.ws_col.into()),
        _ => (24, 80),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::iter::once;

    use systole_core::core::Usage;
    use systole_core::vocab::{
        BrokenRule, Fault, FaultCode, MessageId, Name, Position, QName, Span, ThreadId, ThreadPath,
    };
    use systole_xml::ladder::{Repair, RepairKind};
    use uuid::Uuid;

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A file that shows what was printed.
    struct Shown {
        sink: Sink,
        outlet: Arc<Outlet>,
    }

    impl Shown {
        fn new() -> Self {
            let sink = Sink::default();
            Self { outlet: Outlet::new(sink.clone(), tell_missed(Style::Lines, false)), sink }
        }

        fn take(&self) -> String {
            assert!(self.outlet.flush(Duration::from_secs(60)));
            String::from_utf8(std::mem::take(&mut self.sink.0.lock().unwrap())).unwrap()
        }
    }

    const NOBODY: Desk = Desk { is_there: false, own: None };

    fn at(terminal: &Shown) -> Desk {
        Desk { is_there: true, own: Some(terminal.outlet.clone()) }
    }

    fn new(style: Style, desk: Desk, out: &Shown, err: &Shown, shared: bool) -> Screen {
        Screen::new(style, desk, out.outlet.clone(), err.outlet.clone(), shared, || (10, 40))
    }

    fn screen(style: Style, shared: bool) -> (Screen, Shown) {
        let shown = Shown::new();
        (new(style, NOBODY, &shown, &shown, shared), shown)
    }

    #[test]
    fn a_question_goes_to_the_terminal_of_its_person_and_events_to_standard_error() {
        for style in [Style::Lines, Style::Json] {
            let (err, terminal) = (Shown::new(), Shown::new());
            let screen = new(style, at(&terminal), &Shown::new(), &err, false);
            screen.converse("well?\u{1b}\n> ");
            screen.observed(once(Observed::Event(opened().into())));
            assert_eq!(terminal.take(), "well?\\u{1b}\n> ");
            assert_eq!(err.take().lines().count(), 1);
            assert!(!screen.is_torn(), "they are apart");
        }
    }

    #[test]
    fn answers_on_the_terminal_of_a_person_begin_a_line_though_events_go_elsewhere() {
        let terminal = Shown::new();
        let screen = new(Style::Lines, at(&terminal), &terminal, &Shown::new(), true);
        screen.converse("> ");
        screen.envelope(b"<a/>", || {});
        assert_eq!(terminal.take(), "> \n<a/>\n");
        assert!(!screen.is_torn() && screen.is_torn(), "the question is drawn again");
    }

    #[test]
    fn events_on_the_terminal_of_a_person_begin_a_line_and_have_the_question_drawn_again() {
        let terminal = Shown::new();
        let screen = new(Style::Lines, Desk { is_there: true, own: None }, &Shown::new(), &terminal, false);
        screen.converse("> ");
        screen.observed([opened(), opened()].into_iter().map(|event| Observed::Event(event.into())));
        assert_eq!(terminal.take(), "> \n00000000 root/echo opened\n00000000 root/echo opened\n");
        assert!(!screen.is_torn(), "more may come");
        assert!(screen.is_torn() && !screen.is_torn(), "once it is quiet");
        screen.converse("> ");
        screen.converse("");
        screen.note("a line was typed");
        assert_eq!(terminal.take(), "> a line was typed\n");
        screen.converse("next> ");
        assert!(!screen.is_torn() && !screen.is_torn(), "the question stands");
        for _ in 1..PATIENCE {
            screen.note("more");
            assert!(!screen.is_torn());
        }
        screen.note("more");
        assert!(screen.is_torn(), "it may never be quiet");
    }

    fn event(kind: EventKind) -> Event {
        let path = ThreadPath::new(vec![(Name::parse("echo").unwrap(), 1)]);
        let nil = ThreadId::from_uuid(Uuid::nil());
        Event::new((nil, nil), path, Time::default(), kind)
    }

    fn opened() -> Event {
        event(EventKind::Opened { parent: None })
    }

    #[test]
    fn the_tree_is_taken_away_before_anything_else_is_printed() {
        let (screen, sink) = screen(Style::Tree, true);
        screen.observed(once(Observed::Event(opened().into())));
        assert_eq!(sink.take(), "");
        screen.refresh();
        assert_eq!(sink.take(), "00000000\n└ echo\n");
        screen.refresh();
        assert_eq!(sink.take(), "", "nothing has changed");
        screen.envelope(b"<a>\x1b</a>", || {});
        assert_eq!(sink.take(), "\x1b[2A\x1b[J<a>\\u{1b}</a>\n");
        screen.refresh();
        sink.take();
        let dead = event(EventKind::DeadLetter { payload: None, reason: FaultCode::Route });
        screen.observed(once(Observed::Event(dead.into())));
        assert_eq!(sink.take(), "\x1b[2A\x1b[J00000000 root/echo dead letter: route\n");
        screen.refresh();
        screen.finish();
        assert_eq!(sink.take(), "00000000\n└ echo\n\x1b[2A\x1b[J");
    }

    /// Text with characters that terminals interpret: C0, C1, a forged line, directions.
    const HOSTILE: &str = "a\u{1b}[2J\u{9b}31m\u{7f}\nb\u{202e}\u{2066}\u{feff}\u{2028}c";

    /// An event of each kind, with hostile text in each field that may hold foreign text.
    fn hostile() -> Vec<Event> {
        let payload: QName = format!("{{urn:{HOSTILE}}}add").parse().unwrap();
        let (by, from) = (Name::parse("by").unwrap(), Name::parse("from").unwrap());
        let message = MessageId::from_uuid(Uuid::nil());
        let claim = || Some(HOSTILE.to_owned());
        let rule = BrokenRule { rule: HOSTILE.into(), at: None, example: Some(HOSTILE.into()) };
        let fault = Fault { rule: Some(Box::new(rule)), ..Fault::new(FaultCode::Payload, HOSTILE) };
        let repairs = vec![Repair {
            span: Span { start: 0, end: 0 },
            at: Position { line: 1, column: 1 },
            kind: RepairKind::Prose,
        }];
        let usage = Usage::default();
        [
            EventKind::Injected { message, from: from.clone(), claimed: claim() },
            EventKind::Delivered {
                message,
                from,
                in_reply_to: None,
                payload: Some(payload.clone()),
                attempts: Some(1),
            },
            EventKind::Emitted { payload: payload.clone() },
            EventKind::Repaired { by: by.clone(), repairs, message, text: HOSTILE.into(), bytes: HOSTILE.len() },
            EventKind::Forged { by: by.clone(), claimed: claim(), thread: claim() },
            EventKind::Refused { by: by.clone(), output: HOSTILE.into(), fault: fault.clone() },
            EventKind::Unattended { by: by.clone() },
            EventKind::Progress { by: by.clone(), text: HOSTILE.into() },
            EventKind::ProgramSaid { by: by.clone(), text: HOSTILE.into() },
            EventKind::ModelWrites { by: by.clone(), text: HOSTILE.into() },
            EventKind::ModelFailed {
                by: by.clone(),
                message,
                backend: HOSTILE.into(),
                attempt: 1,
                error: HOSTILE.into(),
                usage,
                took: Duration::ZERO,
            },
            EventKind::ModelAnswered {
                note: None,
                by,
                message,
                backend: HOSTILE.into(),
                model: HOSTILE.into(),
                usage,
                took: Duration::ZERO,
                text: HOSTILE.into(),
            },
            EventKind::Faulted { fault, misroute: None },
            EventKind::Opened { parent: None },
            EventKind::Closed { cancelled: 1 },
            EventKind::Left { message, in_reply_to: Some(HOSTILE.into()), payload: payload.clone(), fault: None },
            EventKind::DeadLetter { payload: Some(payload), reason: FaultCode::Route },
        ]
        .map(event)
        .into()
    }

    #[test]
    fn foreign_text_commands_no_terminal_in_any_style() {
        for style in [Style::Tree, Style::Lines, Style::Json] {
            let (screen, sink) = screen(style, true);
            let lines = hostile().len();
            screen.observed(hostile().into_iter().map(|event| Observed::Event(event.into())));
            screen.log(HOSTILE, json!({ "event": "log", "message": HOSTILE }));
            screen.note(HOSTILE);
            let said = sink.take();
            assert!(said.chars().all(|c| c == '\n' || !Escaped::is_needed(c)), "{style:?}: {said:?}");
            match style {
                Style::Tree => {}
                Style::Lines => {
                    assert_eq!(said.lines().count(), lines + 1, "one line each, but for a growing text: {said}")
                }
                Style::Json => {
                    assert!(said.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{said}");
                }
            }
            screen.converse(HOSTILE);
            screen.envelope(HOSTILE.as_bytes(), || {});
            screen.refresh();
            let said = sink.take().replace("\x1b[2A\x1b[J", "");
            assert!(said.chars().all(|c| c == '\n' || !Escaped::is_needed(c)), "{style:?}: {said:?}");
        }
    }

    #[test]
    fn bytes_for_programs_are_not_escaped() {
        let (screen, sink) = screen(Style::Lines, false);
        screen.envelope("<a>\u{202e}</a>".as_bytes(), || {});
        assert_eq!(sink.take(), "<a>\u{202e}</a>\n");
    }

    #[test]
    fn every_line_of_json_style_is_json() {
        let (screen, sink) = screen(Style::Json, false);
        screen.observed(once(Observed::Event(opened().into())));
        screen.log("text", json!({ "event": "log" }));
        screen.converse("> ");
        let lines = sink.take();
        assert_eq!(lines.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count(), 3, "{lines}");
    }
}
