//! The terminal that all people of an organism share.

use std::fmt;
use std::io::BufRead;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use systole_core::vocab::XmlLimits;
use systole_xml::schema::PayloadSchema;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::questions::{PersonEntry, Question, Questions};

/// Prints text for the person at the terminal; the text may end in the middle of a line. An empty text means that a
/// line was typed.
pub type PrintText = Arc<dyn Fn(&str) + Send + Sync>;

/// The keyboard and screen that all people of an organism share.
///
/// A thread of its own reads the keyboard, but only while a question is open: lines that are there before the first
/// question (from a pipe) are not lost.
#[derive(Clone)]
pub struct Console {
    shared: Arc<Shared>,
}

struct Shared {
    questions: Mutex<State>,
    asked: Condvar,
    print: PrintText,
}

#[derive(Default)]
struct State {
    questions: Questions,
    input_ended: bool,
}

/// An open question. Dropping it cancels the question on the screen.
#[derive(Debug)]
pub(super) struct OpenQuestion {
    console: Console,
    id: u64,
    entries: UnboundedReceiver<PersonEntry>,
    answered: bool,
}

impl Console {
    /// Starts reading a keyboard. `interactive`: a person types at this moment, so a line whose question was cancelled
    /// meanwhile is dropped rather than kept for the next question.
    pub fn start(keyboard: impl BufRead + Send + 'static, interactive: bool, print: PrintText) -> Self {
        let shared = Arc::new(Shared { questions: Mutex::default(), asked: Condvar::new(), print });
        let reader = shared.clone();
        // Detached: a read from a terminal can't be interrupted, and ends with the process.
        std::thread::spawn(move || reader.read(keyboard, interactive));
        Self { shared }
    }

    /// Shows the open question again, after other text has been printed.
    pub fn redraw(&self) {
        let state = self.shared.lock();
        let show = state.questions.redraw();
        self.shared.show(state, &show);
    }

    /// Asks a question at the terminal.
    pub(super) fn ask(
        &self,
        title: String,
        text: String,
        offers: Arc<[PayloadSchema]>,
        limits: XmlLimits,
        urgent: bool,
    ) -> OpenQuestion {
        let (sender, entries) = unbounded_channel();
        let mut state = self.shared.lock();
        let mut id = 0;
        // Without a keyboard the sender is dropped, so that the caller's `entry` returns `None`.
        if !state.input_ended {
            let (given, show) = state.questions.ask(Question { title, text, offers, limits, urgent, entries: sender });
            id = given;
            self.shared.show(state, &show);
        }
        OpenQuestion { console: self.clone(), id, entries, answered: false }
    }
}

impl OpenQuestion {
    /// Waits for the next entry; `None` once the keyboard is closed.
    pub(super) async fn entry(&mut self) -> Option<PersonEntry> {
        self.entries.recv().await
    }

    /// Comments on the last entry, and takes another one.
    pub(super) fn tell(&self, text: &str) {
        let mut state = self.console.shared.lock();
        let show = state.questions.tell(self.id, text);
        self.console.shared.show(state, &show);
    }

    /// Shows an entry as it would be sent, and asks for confirmation; a confirmed entry is returned again.
    pub(super) fn review(&self, entry: String, shown: String) {
        let mut state = self.console.shared.lock();
        let show = state.questions.review(self.id, entry, shown);
        self.console.shared.show(state, &show);
    }

    /// Closes the question as answered.
    pub(super) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let mut state = self.console.shared.lock();
        let show = state.questions.close(self.id, self.answered);
        self.console.shared.show(state, &show);
    }
}

impl Shared {
    fn read(&self, mut keyboard: impl BufRead, interactive: bool) {
        let mut line = String::new();
        loop {
            self.until_asked().questions.was_cancelled();
            line.clear();
            if !keyboard.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                let mut state = self.lock();
                state.input_ended = true;
                let show = state.questions.end_input();
                self.show(state, &show);
                return;
            }
            let mut state = if interactive { self.lock() } else { self.until_asked() };
            let show = if interactive && state.questions.was_cancelled() {
                state.questions.again("The question of this line was cancelled.")
            } else {
                state.questions.line(line.trim_end_matches(['\n', '\r']))
            };
            (self.print)(&show);
        }
    }

    /// Prints under the lock, and wakes the keyboard's thread, as a line may be wanted now.
    fn show(&self, state: MutexGuard<'_, State>, text: &str) {
        if !text.is_empty() {
            (self.print)(text);
        }
        drop(state);
        self.asked.notify_one();
    }

    fn until_asked(&self) -> MutexGuard<'_, State> {
        let state = self.lock();
        self.asked.wait_while(state, |state| !state.questions.wants_line()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state; a panic under the lock leaves it between two steps at worst.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Console(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, PipeReader, PipeWriter, Write};

    use super::*;

    fn console(interactive: bool) -> (Console, PipeWriter, Arc<Mutex<String>>) {
        let (keyboard, typist): (PipeReader, _) = std::io::pipe().unwrap();
        let screen = Arc::<Mutex<String>>::default();
        let print = screen.clone();
        let console = Console::start(
            BufReader::new(keyboard),
            interactive,
            Arc::new(move |text| {
                print.lock().unwrap().push_str(text);
            }),
        );
        (console, typist, screen)
    }

    fn ask(console: &Console, title: &str) -> OpenQuestion {
        console.ask(title.into(), String::new(), Arc::new([]), XmlLimits::default(), true)
    }

    #[tokio::test]
    async fn lines_that_were_there_before_the_questions_answer_them_in_order() {
        let (console, mut typist, _) = console(false);
        typist.write_all(b"<a/>\n<b/>\n").unwrap();
        let (mut one, mut two) = (ask(&console, "one"), ask(&console, "two"));
        assert_eq!(two.entry().await.unwrap().text, "<b/>");
        assert_eq!(one.entry().await.unwrap().text, "<a/>");
    }

    #[tokio::test]
    async fn a_question_that_is_told_of_a_mistake_takes_another_entry() {
        let (console, mut typist, screen) = console(false);
        let mut one = ask(&console, "one");
        typist.write_all(b"<a/>\n<b/>\n").unwrap();
        assert_eq!(one.entry().await.unwrap().text, "<a/>");
        one.tell("no\u{7}");
        assert_eq!(one.entry().await.unwrap().text, "<b/>");
        one.answered();
        assert!(screen.lock().unwrap().ends_with("no\\u{7}\n> "), "{screen:?}");
    }

    #[tokio::test]
    async fn everybody_learns_that_the_keyboard_is_gone() {
        let (console, typist, _) = console(false);
        let mut one = ask(&console, "one");
        drop(typist);
        assert_eq!(one.entry().await, None);
        assert_eq!(ask(&console, "two").entry().await, None);
    }
}
