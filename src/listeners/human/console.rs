//! The terminal that all people of an organism share.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use systole_core::vocab::XmlLimits;
use systole_xml::schema::PayloadSchema;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::keyboard::{Keyboard, Line};
use super::people::People;
use super::questions::{Heard, Question, Questions, WITHDRAWN};

/// Prints text for the person at the terminal; the text may end in the middle of a line. An empty text means that a
/// line was typed.
pub type PrintText = Arc<dyn Fn(&str) + Send + Sync>;

/// The keyboard and screen that all people of an organism share.
///
/// A thread of its own reads the keyboard, a terminal only while a question is open. Lines of a pipe that are there before
/// the first question are kept for it.
///
/// The end of the keyboard is no answer: questions that are open stay so, and so do later ones.
#[derive(Clone)]
pub struct Console {
    shared: Arc<Shared>,
}

struct Shared {
    /// The keyboard, until a person listens.
    keyboard: Mutex<Option<Keyboard>>,
    questions: Mutex<Questions>,
    asked: Condvar,
    print: PrintText,
    people: People,
}

/// An open question. Dropping it cancels the question on the screen.
#[derive(Debug)]
#[doc(hidden)]
pub struct OpenQuestion {
    console: Console,
    id: u64,
    entries: UnboundedReceiver<Heard>,
    /// The way in which it ended, in words; empty where the person at this console ended it, none while it is open.
    end: Option<String>,
}

impl Console {
    /// Makes a console of a keyboard, which is read once there is a [`HumanListener`](super::HumanListener). At a terminal, a
    /// line whose question was cancelled meanwhile is dropped rather than kept for the next question.
    pub fn new(keyboard: Keyboard, print: PrintText) -> Self {
        let (keyboard, questions) = (Mutex::new(Some(keyboard)), Mutex::default());
        let people = People::default();
        Self { shared: Arc::new(Shared { keyboard, questions, asked: Condvar::new(), print, people }) }
    }

    /// The questions of the listeners at this console, which people elsewhere may answer, too.
    pub fn people(&self) -> &People {
        &self.shared.people
    }

    /// Reads the keyboard from now on.
    #[doc(hidden)]
    pub fn listen(&self) {
        let keyboard = self.shared.keyboard.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(keyboard) = keyboard {
            let reader = self.shared.clone();
            // Detached: a read from a terminal can't be interrupted, and ends with the process.
            std::thread::spawn(move || reader.read(keyboard));
        }
    }

    /// Shows the open question again, after other text has been printed.
    pub fn redraw(&self) {
        let questions = self.shared.lock();
        let show = questions.redraw();
        self.shared.show(questions, &show);
    }

    /// Asks a question at the terminal: `systole inbox` does that for an organism elsewhere.
    #[doc(hidden)]
    pub fn ask(
        &self,
        title: String,
        text: String,
        offers: Arc<[PayloadSchema]>,
        limits: XmlLimits,
        urgent: bool,
    ) -> OpenQuestion {
        let (sender, entries) = unbounded_channel();
        let mut questions = self.shared.lock();
        let (id, show) = questions.ask(Question { title, text, offers, limits, urgent, entries: sender });
        self.shared.show(questions, &show);
        OpenQuestion { console: self.clone(), id, entries, end: None }
    }
}

impl OpenQuestion {
    /// Waits for the next entry, or for the end of the keyboard, once.
    pub async fn heard(&mut self) -> Heard {
        match self.entries.recv().await {
            Some(heard) => heard,
            // The console holds the sender until this is dropped.
            None => std::future::pending().await,
        }
    }

    /// Comments on the last entry, and takes another one.
    pub fn tell(&self, text: &str) {
        let mut questions = self.console.shared.lock();
        let show = questions.tell(self.id, text);
        self.console.shared.show(questions, &show);
    }

    /// Shows an entry as it would be sent, and asks for confirmation; a confirmed entry is returned again.
    pub fn review(&self, entry: String, shown: String) {
        let mut questions = self.console.shared.lock();
        let show = questions.review(self.id, entry, shown);
        self.console.shared.show(questions, &show);
    }

    /// Closes the question. The screen shows the end, if it has words.
    pub fn end(mut self, how: String) {
        self.end = Some(how);
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let mut questions = self.console.shared.lock();
        let show = questions.close(self.id, self.end.as_deref().unwrap_or(WITHDRAWN));
        self.console.shared.show(questions, &show);
    }
}

impl Shared {
    fn read(&self, mut keyboard: Keyboard) {
        let interactive = keyboard.is_interactive();
        loop {
            if interactive {
                self.until_asked().was_cancelled();
            }
            let line = keyboard.read();
            let mut questions = if interactive || line == Line::End { self.lock() } else { self.until_asked() };
            let show = match line {
                Line::End => {
                    let show = questions.end_input();
                    return self.show(questions, &show);
                }
                Line::Nothing => questions.refuse("The end of input ends no question: - declines to answer."),
                Line::Unusable(why) => questions.refuse(&why),
                Line::Text(_) if interactive && questions.was_cancelled() => {
                    questions.again("The question of this line was cancelled.")
                }
                Line::Text(line) => questions.line(&line),
            };
            (self.print)(&show);
        }
    }

    /// Prints under the lock, and wakes the keyboard's thread, as a line may be wanted now.
    fn show(&self, questions: MutexGuard<'_, Questions>, text: &str) {
        if !text.is_empty() {
            (self.print)(text);
        }
        drop(questions);
        self.asked.notify_one();
    }

    fn until_asked(&self) -> MutexGuard<'_, Questions> {
        let questions = self.lock();
        self.asked.wait_while(questions, |questions| !questions.wants_line()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state; a panic under the lock leaves it between two steps at worst.
    fn lock(&self) -> MutexGuard<'_, Questions> {
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

    fn console() -> (Console, PipeWriter, Arc<Mutex<String>>) {
        let (keyboard, typist): (PipeReader, _) = std::io::pipe().unwrap();
        let screen = Arc::<Mutex<String>>::default();
        let print = screen.clone();
        let console = Console::new(
            Keyboard::lines(BufReader::new(keyboard)),
            Arc::new(move |text| {
                print.lock().unwrap().push_str(text);
            }),
        );
        console.listen();
        (console, typist, screen)
    }

    /// The next news but that the question is on the screen.
    async fn heard(question: &mut OpenQuestion) -> Heard {
        loop {
            let heard = question.heard().await;
            if heard != Heard::Shown {
                return heard;
            }
        }
    }

    async fn entry(question: &mut OpenQuestion) -> String {
        match heard(question).await {
            Heard::Entry(entry) => entry.text,
            other => panic!("no entry, but {other:?}"),
        }
    }

    fn ask(console: &Console, title: &str) -> OpenQuestion {
        console.ask(title.into(), String::new(), Arc::new([]), XmlLimits::default(), true)
    }

    #[tokio::test]
    async fn lines_that_were_there_before_the_questions_answer_them_in_order() {
        let (console, mut typist, _) = console();
        typist.write_all(b"<a/>\ny\n<b/>\ny\n").unwrap();
        let (mut one, mut two) = (ask(&console, "one"), ask(&console, "two"));
        for (question, text) in [(&mut one, "<a/>"), (&mut two, "<b/>")] {
            assert_eq!(entry(question).await, text);
            question.review(text.into(), text.into());
            assert_eq!(entry(question).await, text, "it is confirmed by the line behind it");
        }
    }

    #[tokio::test]
    async fn a_question_that_is_told_of_a_mistake_takes_another_entry() {
        let (console, mut typist, screen) = console();
        let mut one = ask(&console, "one");
        typist.write_all(b"<a/>\n<b/>\n").unwrap();
        assert_eq!(entry(&mut one).await, "<a/>");
        one.tell("no\u{7}");
        assert_eq!(entry(&mut one).await, "<b/>");
        one.end(String::new());
        assert!(screen.lock().unwrap().ends_with("no\\u{7}\n> "), "{screen:?}");
    }

    #[tokio::test]
    async fn questions_stay_open_behind_the_end_of_the_keyboard() {
        let (console, mut typist, screen) = console();
        let mut one = ask(&console, "one");
        typist.write_all(b"\xff\n").unwrap();
        drop(typist);
        assert_eq!(heard(&mut one).await, Heard::Unattended);
        let mut two = ask(&console, "two");
        assert_eq!(heard(&mut two).await, Heard::Unattended);
        let shown = screen.lock().unwrap();
        assert!(shown.contains("This line is no UTF-8 text: byte 1 is wrong."), "{shown}");
        assert!(shown.contains("The keyboard is closed."), "{shown}");
    }
}
