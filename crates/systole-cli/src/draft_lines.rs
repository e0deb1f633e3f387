//! Drafts as lines for people: a bar stands in front of each line of a draft, since it is text of others, and may imitate the
//! lines of the program.

use std::collections::BTreeMap;
use std::fmt::Write;

use systole::drafts::{DraftEnd, DraftName, DraftNews};
use systole::terminal::Escaped;

/// The drafts that are shown.
#[derive(Debug, Default)]
pub(super) struct DraftLines {
    /// The end of each draft, as far as it was shown.
    ends: BTreeMap<u64, u64>,
    /// The draft that was shown last.
    current: Option<u64>,
    /// True if its text ended in the middle of a line.
    mid_line: bool,
}

impl DraftLines {
    /// Notes that other text follows; true if a line has to be ended before.
    pub(super) fn tear(&mut self) -> bool {
        std::mem::take(&mut self.mid_line)
    }

    /// The text that shows a piece of news; it may end in the middle of a line.
    pub(super) fn show(&mut self, news: &DraftNews) -> String {
        let mut out = String::new();
        match news {
            DraftNews::Text { of, from, text } => {
                if self.current != Some(of.draft) {
                    let again = if of.attempt > 1 { format!(" (attempt {})", of.attempt) } else { String::new() };
                    self.line(&mut out, of, &format!("writes{again}:"));
                    self.current = Some(of.draft);
                }
                if self.ends.insert(of.draft, from + text.len() as u64).unwrap_or(0) < *from {
                    self.text(&mut out, "[…]");
                }
                self.text(&mut out, text);
            }
            DraftNews::Gone { of, why } => {
                let was_shown = self.ends.remove(&of.draft).is_some();
                self.current = self.current.filter(|current| *current != of.draft);
                let said = match why {
                    DraftEnd::Answered => None,
                    DraftEnd::Refused => Some("what it wrote was refused"),
                    DraftEnd::Retried => Some("what it wrote broke off"),
                    _ => Some("what it wrote came to nothing"),
                };
                match said.filter(|_| was_shown) {
                    Some(said) => self.line(&mut out, of, said),
                    None if was_shown && self.tear() => out.push('\n'),
                    None => {}
                }
            }
            _ => {
                (self.ends, self.current) = (BTreeMap::new(), None);
                if self.tear() {
                    out.push('\n');
                }
            }
        }
        out
    }

    /// A line of the program about a draft.
    fn line(&mut self, out: &mut String, of: &DraftName, said: &str) {
        if self.tear() {
            out.push('\n');
        }
        // A string takes all.
        let _ = writeln!(out, "{}: {said}", Escaped::line(&of.listener));
    }

    fn text(&mut self, out: &mut String, text: &str) {
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                out.push('\n');
                self.mid_line = false;
            }
            if !(self.mid_line || line.is_empty() && at > 0) {
                out.push_str("│ ");
            }
            self.mid_line |= !line.is_empty();
            let _ = write!(out, "{}", Escaped::line(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn news(draft: u64, attempt: u32, rest: serde_json::Value) -> DraftNews {
        let mut all = json!({
            "draft": draft, "conversation": "c", "thread": "t", "listener": "planner", "message": "m", "attempt": attempt,
        });
        all.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    fn text(draft: u64, from: u64, text: &str) -> DraftNews {
        news(draft, 1, json!({ "what": "text", "from": from, "text": text }))
    }

    #[test]
    fn each_line_of_a_draft_has_a_bar_whatever_stands_in_it() {
        let mut lines = DraftLines::default();
        assert_eq!(lines.show(&text(1, 0, "a\u{1b}[2J")), "planner: writes:\n│ a\\u{1b}[2J");
        assert_eq!(lines.show(&text(1, 5, "\nplanner: what it")), "\n│ planner: what it");
        assert!(lines.tear(), "a line of the log comes between");
        assert_eq!(lines.show(&text(1, 22, " wrote\n\n")), "│  wrote\n\n");
        assert_eq!(lines.show(&text(1, 30, "b")), "│ b");
        assert_eq!(lines.show(&text(1, 99, "c")), "[…]c", "what fell out is told");
        assert_eq!(lines.show(&text(2, 0, "d")), "\nplanner: writes:\n│ d");
        assert_eq!(
            lines.show(&news(2, 1, json!({ "what": "gone", "why": "refused" }))),
            "\nplanner: what it wrote was refused\n"
        );
        assert_eq!(
            lines.show(&news(3, 2, json!({ "what": "text", "from": 0, "text": "e" }))),
            "planner: writes (attempt 2):\n│ e"
        );
        assert_eq!(lines.show(&news(3, 2, json!({ "what": "gone", "why": "answered" }))), "\n");
        assert_eq!(lines.show(&news(9, 1, json!({ "what": "gone", "why": "ended" }))), "", "it was never shown");
        assert_eq!(lines.show(&news(1, 1, json!({ "what": "lost" }))), "");
    }
}
