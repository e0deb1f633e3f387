//! The questions that wait for a person, and what is typed for them: a state machine that a test
//! can drive. It never waits and never prints: each step returns the text to show.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc::UnboundedSender;

use crate::ladder::strict;
use crate::schema::{Form, PayloadSchema, Turn};
use crate::shell::terminal::{Escaped, shorten};
use crate::vocab::XmlLimits;

/// A question that waits.
#[derive(Debug)]
pub(super) struct Question {
    /// Who asks whom, in one line.
    pub(super) title: String,
    /// What is asked; foreign text.
    pub(super) text: String,
    /// The payloads that a form is there for.
    pub(super) offers: Arc<[PayloadSchema]>,
    /// The bounds of what is typed.
    pub(super) limits: XmlLimits,
    /// Whether it goes before those that are not: the prompt of a boot handler can wait.
    pub(super) urgent: bool,
    /// Takes the entries.
    pub(super) entries: UnboundedSender<String>,
}

#[derive(Debug, Default)]
pub(super) struct Questions {
    waiting: VecDeque<Waiting>,
    /// The question that stands on the screen, maybe answered by now.
    shown: Option<u64>,
    entry: Entry,
    last: u64,
    struck: bool,
}

#[derive(Debug)]
struct Waiting {
    id: u64,
    question: Question,
    /// Whether an entry is being judged.
    busy: bool,
}

/// What was typed so far.
#[derive(Debug, Default)]
enum Entry {
    #[default]
    Nothing,
    Xml(String),
    Form(Box<Form>),
}

/// What a line leads to.
enum Step {
    /// More is to come.
    More(Entry, String),
    /// The entry is whole.
    Whole(String),
}

impl Questions {
    /// Takes a question; its number and what to show.
    pub(super) fn ask(&mut self, question: Question) -> (u64, String) {
        self.last += 1;
        self.waiting.push_back(Waiting { id: self.last, question, busy: false });
        (self.last, self.turn())
    }

    /// Whether a line has somebody to go to.
    pub(super) fn wants_line(&self) -> bool {
        self.waiting.iter().any(|waiting| Some(waiting.id) == self.shown && !waiting.busy)
    }

    /// Whether the question on the screen was struck out since this was asked last.
    pub(super) fn was_struck(&mut self) -> bool {
        std::mem::take(&mut self.struck)
    }

    /// Takes a line, without its line feed.
    pub(super) fn line(&mut self, line: &str) -> String {
        let Some(waiting) = self.waiting.iter_mut().find(|waiting| Some(waiting.id) == self.shown) else {
            return String::new();
        };
        let question = &waiting.question;
        let step = match std::mem::take(&mut self.entry) {
            Entry::Nothing => begin(question, line.trim()),
            Entry::Xml(text) => go_on(&question.limits, text + "\n" + line, line.trim().is_empty()),
            Entry::Form(mut form) => {
                let turn = form.line(line);
                filled(question, form, turn)
            }
        };
        match step {
            Step::More(entry, show) => {
                self.entry = entry;
                show
            }
            Step::Whole(entry) => {
                waiting.busy = true;
                // Whoever asked is about to close the question if nobody receives this.
                let _ = question.entries.send(entry);
                self.turn()
            }
        }
    }

    /// Says what came of the last entry, and waits for another one.
    pub(super) fn tell(&mut self, id: u64, text: &str) -> String {
        let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.id == id) else { return String::new() };
        waiting.busy = false;
        let before = self.shown;
        let turn = self.turn();
        let prompt = if before == Some(id) && turn.is_empty() { PROMPT } else { "" };
        format!("{}\n{turn}{prompt}", Escaped::text(text))
    }

    /// Says something and prompts again, if there is a question to prompt for.
    pub(super) fn again(&mut self, text: &str) -> String {
        format!("{text}\n{}", if self.wants_line() { PROMPT } else { "" })
    }

    /// Takes a question away: answered, or cancelled and struck out.
    pub(super) fn close(&mut self, id: u64, answered: bool) -> String {
        let Some(at) = self.waiting.iter().position(|waiting| waiting.id == id) else { return String::new() };
        let mut show = String::new();
        if let Some(gone) = self.waiting.remove(at)
            && self.shown == Some(id)
        {
            self.shown = None;
            self.entry = Entry::Nothing;
            if !answered {
                self.struck = true;
                let _ = writeln!(show, "\n--- {} --- cancelled, no answer is taken", gone.question.title);
            }
        }
        show + &self.turn()
    }

    /// The end of input: drops the senders, so that all who ask know. An entry that was begun is lost.
    pub(super) fn hang_up(&mut self) -> String {
        let begun = !matches!(std::mem::take(&mut self.entry), Entry::Nothing);
        let shown = self.shown.take();
        let cut = self
            .waiting
            .drain(..)
            .find(|waiting| Some(waiting.id) == shown && !waiting.busy && (begun || waiting.question.urgent));
        match cut {
            Some(cut) => format!("\n--- {} --- cancelled by the end of input, nothing was sent\n", cut.question.title),
            None => String::new(),
        }
    }

    /// Shows the question whose turn it is, unless it stands there already.
    fn turn(&mut self) -> String {
        let mut free = self.waiting.iter().filter(|waiting| !waiting.busy);
        let shown = free.clone().find(|waiting| Some(waiting.id) == self.shown);
        let stays = shown.filter(|waiting| waiting.question.urgent || !matches!(self.entry, Entry::Nothing));
        let next = stays.or(free.clone().find(|waiting| waiting.question.urgent)).or(shown).or(free.next());
        match next {
            Some(next) if self.shown != Some(next.id) => {
                self.shown = Some(next.id);
                show(&next.question)
            }
            _ => String::new(),
        }
    }
}

const PROMPT: &str = "> ";

fn show(question: &Question) -> String {
    let mut text = format!("\n--- {} ---\n", question.title);
    if !question.text.is_empty() {
        let _ = writeln!(text, "{}", Escaped::text(&question.text));
    }
    text.push_str(match question.offers.len() {
        0 => "Type XML (an empty line ends it); - declines.\n",
        _ => "Type XML (an empty line ends it), or a number to be asked for each part; - declines.\n",
    });
    for (number, offer) in (1..).zip(question.offers.iter()) {
        // Long ones are no help on a terminal.
        const LONGEST: usize = 300;
        let example = offer.example().map(|example| shorten(example.as_str(), LONGEST));
        let shown = example.map_or_else(|| offer.qname().to_string(), |example| format!("such as {example}"));
        let _ = writeln!(text, "  {number}  {}", Escaped::line(&shown));
    }
    text + PROMPT
}

fn begin(question: &Question, line: &str) -> Step {
    if line.starts_with('<') {
        return go_on(&question.limits, line.to_owned(), false);
    }
    if line == DECLINE {
        return Step::Whole(line.to_owned());
    }
    match line.parse::<usize>() {
        Ok(number) if (1..=question.offers.len()).contains(&number) => {
            let (form, turn) = Form::new(question.offers[number - 1].clone(), question.limits.clone());
            filled(question, Box::new(form), turn)
        }
        _ if line.is_empty() => Step::More(Entry::Nothing, PROMPT.to_owned()),
        _ => Step::More(Entry::Nothing, format!("This is neither XML nor a number of the list.\n{PROMPT}")),
    }
}

/// An entry of this text declines to answer.
pub(super) const DECLINE: &str = "-";

fn go_on(limits: &XmlLimits, text: String, ended: bool) -> Step {
    let whole = || strict::canonicalize_fragment(&Bytes::copy_from_slice(text.as_bytes()), limits);
    // What is larger than a message is refused as such.
    if ended || text.len() > limits.message_bytes || whole().is_ok_and(|elements| !elements.is_empty()) {
        Step::Whole(text)
    } else {
        Step::More(Entry::Xml(text), String::new())
    }
}

fn filled(question: &Question, form: Box<Form>, turn: Turn) -> Step {
    match turn {
        Turn::Ask(text) => Step::More(Entry::Form(form), Escaped::text(&text).to_string()),
        Turn::Send(payload) => Step::Whole(payload),
        Turn::Cancelled(why) => Step::More(Entry::Nothing, format!("{}\n{}", Escaped::text(&why), show(question))),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    const SCHEMA: &str = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='verdict'>
        <xs:complexType><xs:sequence><xs:element name='ok' type='xs:string'/></xs:sequence></xs:complexType>
        </xs:element></xs:schema>";

    fn question(title: &str, urgent: bool) -> (Question, UnboundedReceiver<String>) {
        let (entries, receiver) = unbounded_channel();
        let offers = PayloadSchema::from_xsd("verdict.xsd", SCHEMA).unwrap();
        let (text, limits) = ("<q>\u{1b}</q>".to_owned(), XmlLimits::default());
        (Question { title: title.into(), text, offers: offers.into(), limits, urgent, entries }, receiver)
    }

    #[test]
    fn a_question_shows_its_text_escaped_and_its_examples() {
        let (_, shown) = Questions::default().ask(question("one", true).0);
        assert_eq!(
            shown,
            "\n--- one ---\n<q>\\u{1b}</q>\nType XML (an empty line ends it), or a number to be asked for each \
             part; - declines.\n  1  such as <verdict><ok>text</ok></verdict>\n> "
        );
    }

    #[test]
    fn a_form_asks_for_each_part_and_sends_what_was_shown() {
        let mut questions = Questions::default();
        let (asked, mut entries) = question("one", true);
        questions.ask(asked);
        assert!(questions.line("1").ends_with("verdict/ok, text: "));
        assert!(questions.line("a & \u{202e}").starts_with("<verdict><ok>a &amp; \\u{202e}</ok></verdict>\nSend it?"));
        assert_eq!(questions.line("y"), "");
        assert_eq!(entries.try_recv().unwrap(), "<verdict><ok>a &amp; \u{202e}</ok></verdict>");
    }

    #[test]
    fn a_form_that_is_left_sends_nothing_and_the_question_stands() {
        let mut questions = Questions::default();
        let (asked, mut entries) = question("one", true);
        questions.ask(asked);
        questions.line("1");
        assert!(questions.line(":quit").starts_with("nothing was sent.\n\n--- one ---\n"));
        assert!(questions.wants_line() && entries.try_recv().is_err());
        questions.line("1");
        assert_eq!(questions.hang_up(), "\n--- one --- cancelled by the end of input, nothing was sent\n");
    }

    #[test]
    fn a_question_takes_one_entry_until_it_is_told_what_came_of_it() {
        let mut questions = Questions::default();
        let (one, mut first) = question("one", true);
        let (two, mut second) = question("two", true);
        let (id, _) = questions.ask(one);
        assert_eq!(questions.ask(two).1, "", "the second waits");
        assert!(questions.line("-").starts_with("\n--- two ---"));
        questions.line("-");
        assert!(!questions.wants_line());
        assert_eq!((first.try_recv().unwrap(), second.try_recv().unwrap()), ("-".into(), "-".into()));
        assert!(questions.tell(id, "again").starts_with("again\n\n--- one ---"));
        assert!(questions.wants_line());
    }

    #[test]
    fn a_cancelled_question_is_struck_out_and_takes_no_line() {
        let mut questions = Questions::default();
        let (one, mut first) = question("one", true);
        let (id, _) = questions.ask(one);
        questions.line("1");
        let struck = questions.close(id, false);
        assert_eq!(struck, "\n--- one --- cancelled, no answer is taken\n");
        assert!(questions.was_struck() && !questions.was_struck() && !questions.wants_line());
        assert_eq!(questions.line("false"), "");
        assert!(first.try_recv().is_err());
    }

    #[test]
    fn the_prompt_of_a_boot_handler_gives_way_to_questions_and_comes_back() {
        let mut questions = Questions::default();
        let (boot, mut typed) = question("boot", false);
        questions.ask(boot);
        let (one, _entries) = question("one", true);
        let (id, shown) = questions.ask(one);
        assert!(shown.starts_with("\n--- one ---"));
        assert!(questions.close(id, true).starts_with("\n--- boot ---"));
        questions.line("-");
        assert_eq!(typed.try_recv().unwrap(), "-");
    }

    #[test]
    fn questions_end_when_nobody_types_any_more() {
        let mut questions = Questions::default();
        let (one, mut entries) = question("one", true);
        questions.ask(one);
        questions.hang_up();
        assert_eq!(entries.try_recv(), Err(tokio::sync::mpsc::error::TryRecvError::Disconnected));
    }
}
