//! Open questions for a person, and entries for them: a state machine that a test can drive. It never waits and never
//! prints: each step returns the text to show.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use systole_core::vocab::XmlLimits;
use systole_xml::ladder::strict;
use systole_xml::schema::{Form, FormStep, PayloadSchema};
use tokio::sync::mpsc::UnboundedSender;

use crate::terminal::{Escaped, quote, shorten};

/// An open question.
#[derive(Debug)]
pub(super) struct Question {
    /// Sender and listener, in one line.
    pub(super) title: String,
    /// The message; foreign text.
    pub(super) text: String,
    /// The payloads that can be written with a form.
    pub(super) offers: Arc<[PayloadSchema]>,
    /// The limits of entries.
    pub(super) limits: XmlLimits,
    /// True if it precedes questions that are not urgent; the prompt of a boot handler is not.
    pub(super) urgent: bool,
    /// Receives the entries.
    pub(super) entries: UnboundedSender<Heard>,
}

/// News of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[doc(hidden)]
pub enum Heard {
    /// An entry.
    Entry(PersonEntry),
    /// The question is on the screen, in front of a keyboard.
    Shown,
    /// The keyboard is closed: the question waits.
    Unattended,
}

/// An entry that a person has made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(hidden)]
pub struct PersonEntry {
    /// The text.
    pub text: String,
    /// True if the person has confirmed the entry as it is sent.
    pub reviewed: bool,
}

impl PersonEntry {
    /// The reason, if the entry declines to answer.
    pub fn declines(&self) -> Option<&str> {
        declined(&self.text)
    }

    /// Returns whether the entry takes the question on from another party.
    pub fn takes(&self) -> bool {
        self.text == TAKE
    }
}

#[derive(Debug, Default)]
pub(super) struct Questions {
    waiting: VecDeque<Waiting>,
    /// The question on the screen, which may be answered by now.
    shown: Option<u64>,
    entry: Entry,
    last: u64,
    cancelled: bool,
    /// True once the keyboard is closed.
    ended: bool,
}

#[derive(Debug)]
struct Waiting {
    id: u64,
    question: Question,
    stage: Stage,
    review: Option<Review>,
}

/// The entry of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It takes lines.
    Open,
    /// An entry is judged, which is over at once: no line is taken, because the next one may confirm that entry.
    Judged,
    /// An entry that needs no confirmation, or has it, is on its way.
    Sent,
}

/// An entry that is shown before it is sent.
#[derive(Debug)]
struct Review {
    entry: String,
    shown: String,
}

/// The entry typed so far.
#[derive(Debug, Default)]
enum Entry {
    #[default]
    Nothing,
    Xml(String),
    /// A form, and the lines on the screen since its last question.
    Form(Box<Form>, String),
}

/// Result of a line.
enum Step {
    /// The entry goes on.
    More(Entry, String),
    /// The entry is complete.
    Whole(PersonEntry),
    /// The entry is complete, and needs a confirmation.
    Review(Review),
    /// The entry is dropped, and the question shown again behind this text.
    Again(String),
    /// Another question is wanted: the one of that number, or the next.
    Other(Option<usize>),
}

impl Questions {
    /// Adds a question; returns its number and the text to show.
    pub(super) fn ask(&mut self, question: Question) -> (u64, String) {
        self.last += 1;
        if self.ended {
            // A receiver that is gone will close the question itself.
            let _ = question.entries.send(Heard::Unattended);
        }
        self.waiting.push_back(Waiting { id: self.last, question, stage: Stage::Open, review: None });
        (self.last, self.turn())
    }

    /// Returns whether an open question takes a line.
    pub(super) fn wants_line(&self) -> bool {
        let takes = |waiting: &Waiting| Some(waiting.id) == self.shown && waiting.stage == Stage::Open;
        self.waiting.iter().any(takes)
    }

    /// Returns whether the question on the screen was cancelled since the last call of this method.
    pub(super) fn was_cancelled(&mut self) -> bool {
        std::mem::take(&mut self.cancelled)
    }

    /// Takes a line, without its line feed.
    pub(super) fn line(&mut self, line: &str) -> String {
        let Some(waiting) = self.waiting.iter_mut().find(|waiting| Some(waiting.id) == self.shown) else {
            return String::new();
        };
        let question = &waiting.question;
        let step = match (waiting.review.take(), std::mem::take(&mut self.entry)) {
            (Some(review), entry) => match line.trim() {
                "y" | "yes" => Step::Whole(PersonEntry { text: review.entry, reviewed: true }),
                "n" | "no" | ":quit" => Step::Again("nothing was sent.\n".to_owned()),
                found => {
                    waiting.review = Some(review);
                    // The person may have typed an empty line after the one that completed the XML.
                    let wrong =
                        if found.is_empty() { String::new() } else { format!("found '{found}', expected y or n\n") };
                    Step::More(entry, Escaped::text(&wrong).to_string() + SEND)
                }
            },
            (None, Entry::Nothing) => begin(question, line.trim()),
            (None, Entry::Xml(text)) => go_on(&question.limits, text + "\n" + line, line.trim().is_empty()),
            (None, Entry::Form(mut form, shown)) => {
                let turn = form.line(line);
                filled(form, turn, shown + line + "\n")
            }
        };
        match step {
            Step::More(entry, show) => {
                self.entry = entry;
                show
            }
            Step::Whole(entry) => {
                waiting.stage = if entry.reviewed { Stage::Sent } else { Stage::Judged };
                // A receiver that is gone will close the question itself.
                let _ = question.entries.send(Heard::Entry(entry));
                self.turn()
            }
            Step::Review(review) => {
                let text = review_text(&review.shown);
                waiting.review = Some(review);
                text
            }
            Step::Again(before) => before + &self.redraw(),
            Step::Other(number) => self.other(number),
        }
    }

    /// Shows another question that callers have asked.
    fn other(&mut self, number: Option<usize>) -> String {
        let asked: Vec<_> =
            self.waiting.iter().filter(|waiting| waiting.question.urgent && waiting.stage == Stage::Open).collect();
        let at = asked.iter().position(|waiting| Some(waiting.id) == self.shown);
        let wanted =
            number.map_or_else(|| at.map_or(0, |at| at + 1) % asked.len().max(1), |number| number.wrapping_sub(1));
        let Some(other) = asked.get(wanted).map(|waiting| waiting.id) else {
            return self.again(&format!("There are {} questions.", asked.len()));
        };
        self.shown = Some(other);
        let Some(other) = self.waiting.iter().find(|waiting| waiting.id == other) else { return String::new() };
        // A receiver that is gone will close the question itself.
        let _ = other.question.entries.send(Heard::Shown);
        self.present(other)
    }

    /// Comments on the last entry, and waits for another one.
    pub(super) fn tell(&mut self, id: u64, text: &str) -> String {
        let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.id == id) else { return String::new() };
        waiting.stage = Stage::Open;
        let before = self.shown;
        let turn = self.turn();
        let prompt = if before == Some(id) && turn.is_empty() { PROMPT } else { "" };
        let prompt = if self.ended { "" } else { prompt };
        format!("{}\n{turn}{prompt}", Escaped::text(text))
    }

    /// Shows an entry as it would be sent, and asks for confirmation.
    pub(super) fn review(&mut self, id: u64, entry: String, shown: String) -> String {
        let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.id == id) else { return String::new() };
        waiting.stage = Stage::Open;
        let text = review_text(&shown);
        waiting.review = Some(Review { entry, shown });
        let before = self.shown;
        let turn = self.turn();
        if before == Some(id) && turn.is_empty() { text } else { turn }
    }

    /// Shows the question on the screen again with the entry so far, after other text has been printed.
    pub(super) fn redraw(&self) -> String {
        let Some(waiting) =
            self.waiting.iter().find(|waiting| Some(waiting.id) == self.shown && waiting.stage == Stage::Open)
        else {
            return String::new();
        };
        match &self.entry {
            Entry::Nothing => self.present(waiting),
            Entry::Xml(text) => format!("{}{}\n", self.present(waiting), Escaped::text(text)),
            Entry::Form(_, shown) => self.head(waiting) + &Escaped::text(shown).to_string(),
        }
    }

    /// Shows a text, and the prompt if a question is open.
    pub(super) fn again(&mut self, text: &str) -> String {
        format!("{text}\n{}", if self.wants_line() { PROMPT } else { "" })
    }

    /// Refuses a line, and with it the entry that it belongs to.
    pub(super) fn refuse(&mut self, why: &str) -> String {
        self.entry = Entry::Nothing;
        format!("{why}\n{}", self.redraw())
    }

    /// Closes a question. `how` has words where no line of this keyboard ended it.
    pub(super) fn close(&mut self, id: u64, how: &str) -> String {
        let Some(at) = self.waiting.iter().position(|waiting| waiting.id == id) else { return String::new() };
        let mut show = String::new();
        if let Some(gone) = self.waiting.remove(at)
            && self.shown == Some(id)
        {
            self.shown = None;
            self.entry = Entry::Nothing;
            if !how.is_empty() {
                self.cancelled = true;
                let _ = writeln!(show, "\n--- {} --- {how}", gone.question.title);
            }
        }
        show + &self.turn()
    }

    /// Handles the end of input: no question is answered by it, so all stay open. An entry that was begun is lost.
    pub(super) fn end_input(&mut self) -> String {
        self.ended = true;
        let begun = !matches!(std::mem::take(&mut self.entry), Entry::Nothing);
        for waiting in &mut self.waiting {
            waiting.review = None;
            // A receiver that is gone will close the question itself.
            let _ = waiting.question.entries.send(Heard::Unattended);
        }
        let lost = if begun { " The unfinished entry was not sent." } else { "" };
        format!("\nThe keyboard is closed. Questions wait.{lost}\n")
    }

    /// Shows the question whose turn it is, unless it is on the screen already.
    fn turn(&mut self) -> String {
        // The next line may confirm an entry that is judged now: it belongs to no other question.
        if self.waiting.iter().any(|waiting| waiting.stage == Stage::Judged) {
            return String::new();
        }
        let mut free = self.waiting.iter().filter(|waiting| waiting.stage == Stage::Open);
        let shown = free.clone().find(|waiting| Some(waiting.id) == self.shown);
        let has_begun = |waiting: &Waiting| waiting.review.is_some() || !matches!(self.entry, Entry::Nothing);
        let stays = shown.filter(|waiting| waiting.question.urgent || has_begun(waiting));
        let next = stays.or(free.clone().find(|waiting| waiting.question.urgent)).or(shown).or(free.next());
        match next {
            Some(next) if self.shown != Some(next.id) => {
                self.shown = Some(next.id);
                if !self.ended {
                    // A receiver that is gone will close the question itself.
                    let _ = next.question.entries.send(Heard::Shown);
                }
                self.present(next)
            }
            _ => String::new(),
        }
    }

    /// Renders the head of a question: its title, behind its number where several wait.
    fn head(&self, of: &Waiting) -> String {
        let asked = self.waiting.iter().filter(|waiting| waiting.question.urgent && waiting.stage != Stage::Sent);
        let count = asked.clone().count();
        let number = asked.map(|waiting| waiting.id).position(|id| id == of.id);
        match number.filter(|_| count > 1) {
            Some(number) => format!("\n--- {} of {count}: {} ---\n", number + 1, of.question.title),
            None => format!("\n--- {} ---\n", of.question.title),
        }
    }

    /// Renders a question, or the entry that waits for confirmation.
    fn present(&self, waiting: &Waiting) -> String {
        let text = match &waiting.review {
            Some(review) => review_text(&review.shown),
            None => show(&waiting.question),
        };
        self.head(waiting) + &text
    }
}

const PROMPT: &str = "> ";
const SEND: &str = "Send it? (y sends it, n sends nothing): ";

fn review_text(shown: &str) -> String {
    format!("{}\n{SEND}", quote(shown))
}

fn show(question: &Question) -> String {
    let mut text = String::new();
    if !question.text.is_empty() {
        let _ = writeln!(text, "{}", quote(&question.text));
    }
    let declines = if question.urgent { "; - declines" } else { "" };
    let number = if question.offers.is_empty() { "" } else { ", or a number to be asked for each part" };
    let _ = writeln!(text, "Type XML (an empty line ends it){number}{declines}.");
    for (number, offer) in (1..).zip(question.offers.iter()) {
        // Long examples are no help on a terminal.
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
    // A keyboard may be a file that is no person's, and lists have such lines.
    if let Some(reason) = declined(line) {
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        return Step::Review(Review { entry: line.to_owned(), shown: format!("decline to answer{reason}") });
    }
    if line == TAKE {
        return Step::Whole(PersonEntry { text: line.to_owned(), reviewed: true });
    }
    match line {
        ":help" | "?" => return Step::Again(String::new()),
        ":next" => return Step::Other(None),
        _ => {}
    }
    if let Some(number) = line.strip_prefix(':').and_then(|number| number.parse().ok()) {
        return Step::Other(Some(number));
    }
    match line.parse::<usize>() {
        Ok(number) if (1..=question.offers.len()).contains(&number) => {
            let (form, turn) = question.offers[number - 1].form(question.limits.clone());
            filled(Box::new(form), turn, String::new())
        }
        _ if line.is_empty() => Step::More(Entry::Nothing, PROMPT.to_owned()),
        _ => {
            let declines = if question.urgent { "; - declines to answer" } else { "" };
            let why =
                format!("This is neither XML nor a number of the list{declines}, :help shows the question again.\n");
            Step::More(Entry::Nothing, why + PROMPT)
        }
    }
}

/// Entry that takes a question on that another party has claimed.
pub(super) const TAKE: &str = ":take";
/// End of a question whose caller has given up.
pub(super) const WITHDRAWN: &str = "withdrawn: no answer is taken";

/// The reason of an entry that declines to answer: `-`, or `- reason`.
pub(super) fn declined(entry: &str) -> Option<&str> {
    let reason = entry.strip_prefix('-')?;
    (reason.is_empty() || reason.starts_with(' ')).then(|| reason.trim())
}

fn go_on(limits: &XmlLimits, text: String, ended: bool) -> Step {
    let whole = || strict::canonicalize_fragment(&Bytes::copy_from_slice(text.as_bytes()), limits);
    // An entry that is larger than a message is refused as such later.
    if ended || text.len() > limits.message_bytes || whole().is_ok_and(|elements| !elements.is_empty()) {
        Step::Whole(PersonEntry { text, reviewed: false })
    } else {
        Step::More(Entry::Xml(text), String::new())
    }
}

/// Converts a turn of a form to a step; `lines` were on the screen since its last question.
fn filled(form: Box<Form>, turn: FormStep, lines: String) -> Step {
    match turn {
        // A text of several lines is incomplete.
        FormStep::Ask(text) if text.is_empty() => Step::More(Entry::Form(form, lines), text),
        FormStep::Ask(text) => Step::More(Entry::Form(form, text.clone()), Escaped::text(&text).to_string()),
        FormStep::Send(payload) => Step::Whole(PersonEntry { text: payload, reviewed: true }),
        FormStep::Cancelled(why) => Step::Again(format!("{}\n", Escaped::text(&why))),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::error::TryRecvError;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    const SCHEMA: &str = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='verdict'>
        <xs:complexType><xs:sequence><xs:element name='ok' type='xs:string'/></xs:sequence></xs:complexType>
        </xs:element></xs:schema>";

    fn question(title: &str, urgent: bool) -> (Question, UnboundedReceiver<Heard>) {
        let (entries, receiver) = unbounded_channel();
        let offers = PayloadSchema::from_xsd("verdict.xsd", SCHEMA).unwrap();
        let (text, limits) = ("<q>\u{1b}</q>".to_owned(), XmlLimits::default());
        (Question { title: title.into(), text, offers: offers.into(), limits, urgent, entries }, receiver)
    }

    /// The next news but that the question is on the screen.
    fn heard(entries: &mut UnboundedReceiver<Heard>) -> Result<Heard, TryRecvError> {
        loop {
            match entries.try_recv() {
                Ok(Heard::Shown) => {}
                other => return other,
            }
        }
    }

    fn entry(entries: &mut UnboundedReceiver<Heard>) -> PersonEntry {
        match heard(entries) {
            Ok(Heard::Entry(entry)) => entry,
            other => panic!("no entry, but {other:?}"),
        }
    }

    #[test]
    fn a_question_shows_its_text_escaped_and_its_examples() {
        let (_, shown) = Questions::default().ask(question("one", true).0);
        assert_eq!(
            shown,
            "\n--- one ---\n│ <q>\\u{1b}</q>\nType XML (an empty line ends it), or a number to be asked for each \
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
        let text = "<verdict><ok>a &amp; \u{202e}</ok></verdict>".to_owned();
        assert_eq!(entry(&mut entries), PersonEntry { text, reviewed: true });
    }

    #[test]
    fn xml_is_shown_before_it_is_sent() {
        let mut questions = Questions::default();
        let (asked, mut entries) = question("one", true);
        let (id, _) = questions.ask(asked);
        let typed = |reviewed| PersonEntry { text: "<a>\u{1b}</a>".to_owned(), reviewed };
        let review = |questions: &mut Questions| questions.review(id, typed(false).text, "<b>\u{1b}</b>".into());
        assert_eq!(questions.line("<a>\u{1b}</a>"), "");
        assert_eq!(heard(&mut entries).unwrap_err(), TryRecvError::Empty, "it goes on");
        assert_eq!(questions.line(""), "");
        assert_eq!(entry(&mut entries).text, "<a>\u{1b}</a>\n");
        assert_eq!(review(&mut questions), format!("│ <b>\\u{{1b}}</b>\n{SEND}"));
        assert!(questions.wants_line());
        assert_eq!(questions.line(""), SEND, "an empty line behind XML is no answer");
        assert_eq!(questions.line("why"), format!("found 'why', expected y or n\n{SEND}"));
        assert!(questions.line("n").starts_with("nothing was sent.\n\n--- one ---\n"));
        assert!(heard(&mut entries).is_err());
        questions.line("<a/>");
        assert!(!entry(&mut entries).reviewed);
        review(&mut questions);
        assert_eq!(questions.line("y"), "");
        assert_eq!(entry(&mut entries), typed(true));
        assert!(!questions.wants_line());
    }

    #[test]
    fn a_question_is_drawn_again_as_far_as_it_has_got() {
        let mut questions = Questions::default();
        assert_eq!(questions.redraw(), "");
        let (asked, _entries) = question("one", true);
        let (id, shown) = questions.ask(asked);
        assert_eq!(questions.redraw(), shown);
        assert_eq!(questions.line(":help"), shown);
        questions.line("<verdict>");
        assert_eq!(questions.redraw(), format!("{shown}<verdict>\n"));
        questions.line("");
        assert_eq!(questions.redraw(), "", "it is being judged");
        questions.tell(id, "no");
        assert!(questions.line(":quit").starts_with("This is neither XML nor a number of the list; - declines"));
        questions.line("1");
        let asked = questions.redraw();
        assert!(asked.starts_with("\n--- one ---\n") && asked.ends_with("\nverdict/ok, text: "), "{asked}");
        questions.line("\"\"\"");
        questions.line("a \u{202e}");
        assert_eq!(questions.redraw(), asked + "\"\"\"\na \\u{202e}\n");
        questions.line("\"\"\"");
        assert!(questions.redraw().ends_with("e changes an answer): "));
        questions.line("n");
        questions.line("<verdict><ok/></verdict>");
        questions.review(id, "<a/>".into(), "<a/>".into());
        assert_eq!(questions.redraw(), format!("\n--- one ---\n│ <a/>\n{SEND}"));
    }

    #[test]
    fn a_form_that_is_left_sends_nothing_and_the_question_stands() {
        let mut questions = Questions::default();
        let (asked, mut entries) = question("one", true);
        questions.ask(asked);
        questions.line("1");
        assert!(questions.line(":quit").starts_with("nothing was sent.\n\n--- one ---\n"));
        assert!(questions.wants_line() && heard(&mut entries).is_err());
        questions.line("1");
        assert!(questions.end_input().ends_with("The unfinished entry was not sent.\n"));
        assert_eq!(heard(&mut entries), Ok(Heard::Unattended));
    }

    #[test]
    fn a_question_takes_one_entry_until_it_is_told_what_came_of_it() {
        let mut questions = Questions::default();
        let (one, mut first) = question("one", true);
        let (two, mut second) = question("two", true);
        let (id, _) = questions.ask(one);
        assert_eq!(questions.ask(two).1, "", "the second waits");
        assert_eq!(questions.line(":next"), questions.redraw());
        assert!(questions.line(":1").starts_with("\n--- 1 of 2: one ---"));
        assert!(questions.line(":3").starts_with("There are 2 questions.\n"));
        assert_eq!(questions.line("- no time"), format!("│ decline to answer: no time\n{SEND}"));
        assert_eq!(
            questions.line("- beta"),
            format!("found '- beta', expected y or n\n{SEND}"),
            "a list declines nothing"
        );
        assert!(questions.line("n").starts_with("nothing was sent.\n\n--- 1 of 2: one ---"));
        questions.line("-");
        assert!(questions.line("y").starts_with("\n--- two ---"));
        questions.line("-");
        questions.line("y");
        assert!(!questions.wants_line());
        assert_eq!((entry(&mut first).text, entry(&mut second).text), ("-".into(), "-".into()));
        assert!(questions.tell(id, "again").starts_with("again\n\n--- one ---"));
        assert!(questions.wants_line());
    }

    #[test]
    fn a_line_behind_an_entry_confirms_that_entry_alone() {
        let mut questions = Questions::default();
        let (one, mut first) = question("one", true);
        let (two, mut second) = question("two", true);
        let (id, _) = questions.ask(one);
        questions.ask(two);
        assert_eq!(questions.line("<a/>"), "", "the second question is not on the screen before the first is judged");
        assert!(!questions.wants_line(), "no line is taken meanwhile");
        assert_eq!(entry(&mut first).text, "<a/>");
        assert_eq!(questions.review(id, "<a/>".into(), "<a/>".into()), format!("│ <a/>\n{SEND}"));
        assert!(questions.line("y").starts_with("\n--- two ---"));
        let confirmed = entry(&mut first);
        assert!(confirmed.reviewed && confirmed.text == "<a/>");
        questions.line("<b/>");
        // One that is withdrawn amid its judgement gives the keyboard back.
        let (three, _third) = question("three", true);
        questions.ask(three);
        assert_eq!(entry(&mut second).text, "<b/>");
        let two = questions.shown.unwrap();
        assert!(questions.close(two, WITHDRAWN).contains("\n--- three ---") && questions.wants_line());
    }

    #[test]
    fn a_cancelled_question_is_struck_out_and_takes_no_line() {
        let mut questions = Questions::default();
        let (one, mut first) = question("one", true);
        let (id, _) = questions.ask(one);
        questions.line("1");
        let cancelled = questions.close(id, WITHDRAWN);
        assert_eq!(cancelled, "\n--- one --- withdrawn: no answer is taken\n");
        assert!(questions.was_cancelled() && !questions.was_cancelled() && !questions.wants_line());
        assert_eq!(questions.line("false"), "");
        assert!(heard(&mut first).is_err());
    }

    #[test]
    fn the_prompt_of_a_boot_handler_gives_way_to_questions_and_comes_back() {
        let mut questions = Questions::default();
        let (boot, mut typed) = question("boot", false);
        questions.ask(boot);
        let (one, _entries) = question("one", true);
        let (id, shown) = questions.ask(one);
        assert!(shown.starts_with("\n--- one ---"));
        assert!(questions.close(id, "").starts_with("\n--- boot ---"));
        questions.line("-");
        questions.line("y");
        assert_eq!(entry(&mut typed).text, "-");
    }

    #[test]
    fn questions_outlast_the_keyboard() {
        let mut questions = Questions::default();
        let (one, mut entries) = question("one", true);
        questions.ask(one);
        assert_eq!(questions.end_input(), "\nThe keyboard is closed. Questions wait.\n");
        let (two, mut later) = question("two", true);
        questions.ask(two);
        for entries in [&mut entries, &mut later] {
            assert_eq!(heard(entries), Ok(Heard::Unattended));
        }
    }

    #[test]
    fn a_line_that_is_refused_takes_the_entry_along() {
        let mut questions = Questions::default();
        let (one, mut entries) = question("one", true);
        let (_, shown) = questions.ask(one);
        questions.line("<verdict>");
        assert_eq!(questions.refuse("Why."), format!("Why.\n{shown}"));
        questions.line("</verdict>");
        questions.line("");
        assert_eq!(entry(&mut entries).text, "</verdict>\n", "it doesn't end what was refused");
    }
}
