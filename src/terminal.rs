//! Escapes for the terminal: foreign text can't command it, and hides nothing, because control characters and those that
//! nobody sees are written as escapes. Payloads, messages of faults and the standard error of commands are all foreign
//! text. Where it has lines of its own, a bar in front of each tells them from the lines of the pump ([`quote`]).
//!
//! Not here: colours and layout, which are added around escaped text.

use std::fmt;

use systole_core::vocab::is_invisible;

/// Foreign text, safe to print.
///
/// Escapes look like those of Rust: `\u{1b}`, `\t`, `\u{202e}`. A backslash stays as it is: the result is for people to
/// read, not for programs to parse.
#[derive(Debug, Clone, Copy)]
pub struct Escaped<'a> {
    text: &'a str,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Line,
    Text,
    Json,
}

impl<'a> Escaped<'a> {
    /// Escapes text for one line, including line feeds and tabs.
    pub const fn line(text: &'a str) -> Self {
        Self { text, form: Form::Line }
    }

    /// Returns whether a character is escaped in text for one line.
    pub const fn is_needed(c: char) -> bool {
        is_unsafe(c)
    }

    /// Escapes text that may have several lines: line feeds and tabs stay.
    pub const fn text(text: &'a str) -> Self {
        Self { text, form: Form::Text }
    }

    /// Escapes a JSON document, which stays valid: its strings get JSON escapes.
    pub const fn json(text: &'a str) -> Self {
        Self { text, form: Form::Json }
    }

    /// The first character of a text that is escaped in this form, with its place.
    fn first_unsafe(self, text: &str) -> Option<(usize, char)> {
        // Most texts are printable ASCII to their end.
        let printable = text.bytes().position(|byte| !matches!(byte, b' '..=b'~'))?;
        let is_here = |c: char| is_unsafe(c) && !(self.form != Form::Line && matches!(c, '\n' | '\t'));
        text[printable..].char_indices().find(|&(_, c)| is_here(c)).map(|(at, c)| (printable + at, c))
    }
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.text;
        while let Some((at, found)) = self.first_unsafe(rest) {
            f.write_str(&rest[..at])?;
            match found {
                _ if self.form == Form::Json => {
                    found.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(f, "\\u{unit:04x}"))?
                }
                '\n' | '\t' | '\r' => write!(f, "{}", found.escape_default())?,
                _ => write!(f, "{}", found.escape_unicode())?,
            }
            rest = &rest[at + found.len_utf8()..];
        }
        f.write_str(rest)
    }
}

/// Replaces each unsafe character by a harmless one of the same length in bytes, so that spans into the text stay
/// right. Line feeds, carriage returns and tabs stay.
#[cfg(feature = "yaml")]
pub(crate) fn defuse(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) && !matches!(c, '\n' | '\r' | '\t') {
            out.push_str(["?", "\u{bf}", "\u{fffd}", "\u{fffd}?"][c.len_utf8() - 1]);
        } else {
            out.push(c);
        }
    }
    out
}

/// Writes foreign text of one or several lines with a bar in front of each, escaped; without a line feed at the end.
pub fn quote(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(|line| format!("│ {}", Escaped::line(line))).collect();
    lines.join("\n")
}

/// Cuts text to at most `max` characters; the last of them is `…` if it was cut.
pub fn shorten(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}

/// Returns whether a character is a control character (C0, DEL, C1) or invisible ([`is_invisible`]). On a terminal joiners and
/// selectors count everywhere: which of them have an effect differs from one to the next.
const fn is_unsafe(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}') || is_invisible(c)
}

/// Makes a text from outside printable: its first 300 characters on one line, without commands for a terminal.
pub fn readable(text: &str) -> String {
    Escaped::line(&shorten(text.trim(), 300)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_to_the_terminal_and_bidirectional_overrides_are_escaped() {
        let hostile = "a\u{1b}[2Jb\u{9b}31m\u{7}\u{202e}c\rd";
        assert_eq!(Escaped::line(hostile).to_string(), r"a\u{1b}[2Jb\u{9b}31m\u{7}\u{202e}c\rd");
    }

    #[test]
    fn characters_that_nobody_sees_are_escaped() {
        let hidden = "a\u{200b}b\u{2060}c\u{ad}d\u{3164}e\u{fe0f}f\u{e0041}\u{e007f}g\u{e0100}\u{13430}";
        let shown = r"a\u{200b}b\u{2060}c\u{ad}d\u{3164}e\u{fe0f}f\u{e0041}\u{e007f}g\u{e0100}\u{13430}";
        assert_eq!(Escaped::line(hidden).to_string(), shown);
        let value = serde_json::json!(hidden);
        let escaped = Escaped::json(&value.to_string()).to_string();
        assert!(escaped.is_ascii(), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        assert_eq!(defuse(hidden).len(), hidden.len());
    }

    #[test]
    fn each_line_of_foreign_text_has_a_bar() {
        assert_eq!(quote("a\n\u{1b}--- b\n"), "│ a\n│ \\u{1b}--- b\n│ ");
    }

    #[test]
    fn line_feeds_and_tabs_stay_only_where_lines_may() {
        assert_eq!(Escaped::line("a\n\tb").to_string(), r"a\n\tb");
        assert_eq!(Escaped::text("a\n\tb\r").to_string(), "a\n\tb\\r");
    }

    #[test]
    fn json_stays_json() {
        let value = serde_json::json!({ "a\u{9b}": "b\u{202e}\u{7f}\u{1b}[2J\u{feff}\nc" });
        for text in [value.to_string(), format!("{value:#}")] {
            let escaped = Escaped::json(&text).to_string();
            assert!(!escaped.chars().any(|c| is_unsafe(c) && c != '\n'), "{escaped:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        }
    }

    #[test]
    fn what_is_escaped_stays_so() {
        let hostile = "a\u{1b}[2J\u{9b}\u{202e}\n\t\\";
        for once in [Escaped::line(hostile).to_string(), Escaped::text(hostile).to_string()] {
            assert_eq!(Escaped::text(&once).to_string(), once);
        }
    }

    #[test]
    fn other_text_is_untouched() {
        let text = "AT&T \\ ünïcödé שלום 🦀";
        assert_eq!(Escaped::line(text).to_string(), text);
        assert_eq!(defuse(text), text);
    }

    #[test]
    fn defused_text_keeps_its_offsets() {
        let hostile = "a\u{1b}\u{85}\u{202e}\u{61c}b";
        let defused = defuse(hostile);
        assert_eq!(defused, "a?\u{bf}\u{fffd}\u{bf}b");
        assert_eq!(defused.len(), hostile.len());
    }

    #[test]
    fn cuts_count_characters() {
        assert_eq!(shorten("éé", 2), "éé");
        assert_eq!(shorten("ééé", 2), "é…");
    }

    #[test]
    fn what_peers_say_is_cut_and_can_not_move_the_cursor() {
        assert_eq!(readable("a\u{1b}[2J\u{202e}b\n"), "a\\u{1b}[2J\\u{202e}b");
        assert_eq!(readable(&"é".repeat(400)), "é".repeat(299) + "…");
    }
}
