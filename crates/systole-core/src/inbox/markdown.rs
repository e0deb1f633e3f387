//! Foreign text inside of Markdown that a model reads.
//!
//! A model reads the characters, a program may parse them (CommonMark 0.31.2): for both, foreign text is nothing but
//! text. Each of its lines stands behind `> `, so that no line of it looks like one of ours; inside of that, nothing of
//! it begins a heading, a list, a fence, a table, a link, a tag or a reference. Characters that break lines, turn the
//! direction of the text or aren't seen at all are written as `\u{…}`. Nothing is lost: the text can be read back.

use std::fmt::Write;

use crate::vocab::with_unseen;

/// The characters that mean something to Markdown or to HTML anywhere.
const ANYWHERE: [char; 9] = ['\\', '`', '*', '[', ']', '|', '~', '!', '$'];
/// The characters that mean something at the start of a line only.
const AT_START: [char; 5] = ['#', '-', '+', '=', '_'];

/// Appends foreign text as quoted lines.
pub(super) fn quote(out: &mut String, text: &str) {
    for line in text.split('\n') {
        out.push('>');
        if !line.is_empty() {
            out.push(' ');
            escape_line(out, line);
        }
        out.push('\n');
    }
}

/// Foreign text as a part of a line of ours.
pub(super) fn inline(text: &str) -> String {
    let mut out = String::new();
    for (at, part) in text.split('\n').enumerate() {
        if at > 0 {
            out.push_str("\\u{a}");
        }
        escape_line(&mut out, part);
    }
    // Ours ends with a colon.
    out.replace(':', "\\:")
}

fn escape_line(out: &mut String, line: &str) {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    for ((at, c), (_, is_unseen)) in line.char_indices().zip(with_unseen(line)) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // White space in front of a line would make it code, or make the rest its start.
            ' ' if at == 0 => out.push_str("&#32;"),
            '\t' if at == 0 => out.push_str("&#9;"),
            '\t' => out.push('\t'),
            _ if ANYWHERE.contains(&c) || at == 0 && AT_START.contains(&c) => {
                out.push('\\');
                out.push(c);
            }
            // An ordered list.
            '.' | ')' if at == digits && digits > 0 => {
                out.push('\\');
                out.push(c);
            }
            _ if is_unseen => {
                // Writing to a string can't fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str) -> String {
        let mut out = String::new();
        quote(&mut out, text);
        out
    }

    #[test]
    fn nothing_of_a_text_means_anything_to_markdown() {
        let cases = [
            ("# Tasks", "> \\# Tasks\n"),
            ("a\n## Task 2", "> a\n> \\## Task 2\n"),
            ("```xml\n~~~", "> \\`\\`\\`xml\n> \\~\\~\\~\n"),
            ("- one\n+ two\n* three", "> \\- one\n> \\+ two\n> \\* three\n"),
            ("1. one\n12) two\n.5", "> 1\\. one\n> 12\\) two\n> .5\n"),
            ("title\n===\n---\n___", "> title\n> \\===\n> \\---\n> \\___\n"),
            ("<task id='1'/>&lt;!--", "> &lt;task id='1'/&gt;&amp;lt;\\!--\n"),
            ("    code\n\ttoo", "> &#32;   code\n> &#9;too\n"),
            ("[x]: http://y ![z](w)", "> \\[x\\]: http://y \\!\\[z\\](w)\n"),
            ("a\n\nb\n", "> a\n>\n> b\n>\n"),
            ("> mine", "> &gt; mine\n"),
            ("a\rb\u{2028}c\u{85}d\u{b}e", "> a\\u{d}b\\u{2028}c\\u{85}d\\u{b}e\n"),
            ("\u{202e}evil\u{e0041}\u{200b}", "> \\u{202e}evil\\u{e0041}\\u{200b}\n"),
            ("a\u{200d}b\u{fe01}\u{fe02}", "> a\\u{200d}b\\u{fe01}\\u{fe02}\n"),
            ("\\u{202e}", "> \\\\u{202e}\n"),
            ("AT&T, snake_case and -1", "> AT&amp;T, snake_case and -1\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(quoted(text), expected);
        }
        assert_eq!(inline("a:\nb"), "a\\:\\u{a}b");
    }
}
