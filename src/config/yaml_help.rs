//! Causes of errors of the YAML scanner, and the text to write instead, by the lines around the place where the scanner
//! stopped. At most [`LINES`] lines before it are examined, and no line longer than [`WIDTH`].

/// Lines before the stop that are examined.
const LINES: usize = 64;
/// Longest line that is examined, in bytes.
const WIDTH: usize = 1000;
/// Longest text that a help repeats, in bytes.
const SHOWN: usize = 80;

/// Names the slip that stopped the scanner at the byte `at`, and the text to write instead.
pub(super) fn help(source: &str, at: usize) -> Option<String> {
    let start = source[..at].rfind('\n').map_or(0, |end| end + 1);
    let mut rest = source[start..].lines();
    let line = rest.next().unwrap_or_default();
    let next = rest.next().unwrap_or_default();
    let mut before: Vec<&str> = source[..start].lines().rev().take(LINES).collect();
    before.reverse();
    if [line, next].into_iter().chain(before.iter().copied()).any(|line| line.len() > WIDTH) {
        return None;
    }
    let first = source[..start].lines().count() + 1 - before.len();
    tab(line)
        .or_else(|| tab(next))
        .or_else(|| curly(line))
        .or_else(|| braces(line))
        .or_else(|| brackets(&before, line, first))
        .or_else(|| reserved(&source[at..]))
        .or_else(|| colon(line))
        .or_else(|| indentation(&before, line))
}

fn tab(line: &str) -> Option<String> {
    let indent = &line[..line.len() - line.trim_start().len()];
    indent.contains('\t').then(|| "indent with blanks: YAML takes no tabs there".into())
}

/// Quotes of a word processor where a value begins.
fn curly(line: &str) -> Option<String> {
    let is_curly = |c: &char| matches!(c, '\u{2018}'..='\u{201F}' | '\u{AB}' | '\u{BB}');
    let (_, quote) = line.char_indices().find(|(at, c)| is_curly(c) && begins_value(&line[..*at]))?;
    Some(format!("{quote} is no quote of YAML: write \" or '"))
}

/// A qualified name without quotes, which YAML takes for a mapping with something behind it.
fn braces(line: &str) -> Option<String> {
    let name = line.match_indices('{').find_map(|(at, _)| {
        let end = at + line[at..].find('}')? + 1;
        let inner = &line[at + 1..end - 1];
        let local = line[end..].find([',', ']', '}', ' ', '\t', '#']).map_or(line.len(), |len| end + len);
        let is_name = local > end && !inner.contains([' ', '{', '"', '\'']) && begins_value(&line[..at]);
        is_name.then_some(&line[at..local])
    })?;
    Some(match shown(name) {
        Some(name) => format!("a name with {{…}} needs quotes: \"{name}\""),
        None => "a name with {…} needs quotes".into(),
    })
}

/// Brackets and quotes that are open where the scanner stopped, a closing bracket too many, and text behind a quoted
/// value.
fn brackets(before: &[&str], line: &str, first: usize) -> Option<String> {
    let mut open: Vec<(char, usize)> = Vec::new();
    for (number, line) in (first..).zip(before.iter().chain([&line]).copied()) {
        let is_near = number + 2 > first + before.len();
        let mut characters = line.char_indices();
        while let Some((at, c)) = characters.next() {
            let begins = begins_value(&line[..at]);
            match c {
                '#' if line[..at].is_empty() || line[..at].ends_with([' ', '\t']) => break,
                '"' | '\'' if begins => {
                    let Some(end) = closing(&line[at + 1..], c).map(|len| at + 1 + len) else {
                        if is_near {
                            return Some(format!("the {c} in line {number} has no end: write {c} behind the value"));
                        }
                        break;
                    };
                    let behind = line[end + 1..].trim_start();
                    if is_near && !(behind.is_empty() || behind.starts_with([',', ']', '}', ':', '#'])) {
                        return Some(format!("put the whole value between {c} and {c}, or leave the quotes out"));
                    }
                    characters.find(|(at, _)| *at == end);
                }
                '[' if begins => open.push((']', number)),
                '{' if begins => open.push(('}', number)),
                ']' | '}' if open.last().is_some_and(|(closes, _)| *closes == c) => drop(open.pop()),
                ']' | '}' if is_near && (!open.is_empty() || begins_closed(&line[..at])) => {
                    return Some(match open.last() {
                        Some((closes, line)) => format!("write {closes} before {c}: line {line} opens what it closes"),
                        None => format!("remove this {c}: nothing is open that it closes"),
                    });
                }
                _ => {}
            }
        }
    }
    let (closes, number) = open.pop()?;
    Some(format!("write {closes} behind the last entry of what line {number} opens"))
}

/// A value that begins with a character which means something to YAML.
fn reserved(rest: &str) -> Option<String> {
    let c = rest.chars().next().filter(|c| "@`%*&!|>".contains(*c))?;
    Some(format!("a value that begins with {c} needs quotes"))
}

/// A key without its colon or without the blank behind it, and a text with a colon.
fn colon(line: &str) -> Option<String> {
    let entry = &line[key_column(line)..];
    let entry = entry.trim_end();
    let word = entry.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).unwrap_or(entry.len());
    let (key, rest) = entry.split_at(word);
    if key.is_empty() {
        return None;
    }
    let repaired = |text: String| shown(&text).map_or_else(String::new, |text| format!(": {text}"));
    match rest.strip_prefix(':') {
        Some(value) if value.starts_with(' ') => {
            let value = value.trim_start();
            let is_plain = !value.starts_with(['"', '\'', '[', '{', '|', '>', '#']);
            let is_split = value.contains(": ") || value.ends_with(':');
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let write = || format!("a text with ': ' needs quotes{}", repaired(format!("{key}: \"{quoted}\"")));
            (is_plain && is_split).then(write)
        }
        Some("") => None,
        Some(value) => Some(format!("write a blank behind ':'{}", repaired(format!("{key}: {value}")))),
        None => {
            let value = rest.trim_start();
            let write = || format!("write ':' and a blank behind the key{}", repaired(format!("{key}: {value}")));
            (!value.is_empty() && !value.starts_with(':')).then(write)
        }
    }
}

/// A line whose key is indented like no key above it.
fn indentation(before: &[&str], line: &str) -> Option<String> {
    let above = before.iter().rev().find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))?;
    let (own, wanted) = (key_column(line), key_column(above));
    let opens = above.trim_end().ends_with(':');
    let known = before.iter().any(|line| key_column(line) == own || line.len() - line.trim_start().len() == own);
    let is_slip = if own > wanted { !opens } else { own < wanted && !known };
    let key = above[wanted..].split(':').next().and_then(shown)?;
    is_slip.then(|| format!("indent it by {wanted} blanks, as '{key}' above, or by those of a key further up"))
}

/// The column of the key of a line: behind the blanks and the dashes of lists.
fn key_column(line: &str) -> usize {
    let mut rest = line.trim_start_matches(' ');
    while let Some(entry) = rest.strip_prefix("- ") {
        rest = entry.trim_start_matches(' ');
    }
    line.len() - rest.len()
}

/// Checks whether a value begins behind this part of a line.
fn begins_value(before: &str) -> bool {
    let trimmed = before.trim_end();
    let apart = trimmed.len() < before.len();
    trimmed.is_empty() || trimmed.ends_with(['[', '{', ',']) || apart && trimmed.ends_with([':', '-'])
}

/// Checks whether a bracket behind this part of a line closes one more than are open.
fn begins_closed(before: &str) -> bool {
    before.trim_end().ends_with([']', '}'])
}

/// The byte of the quote that ends a value.
fn closing(value: &str, quote: char) -> Option<usize> {
    let mut characters = value.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' if quote == '"' => drop(characters.next()),
            '\'' if c == quote && characters.next_if(|(_, c)| *c == '\'').is_some() => {}
            _ if c == quote => return Some(at),
            _ => {}
        }
    }
    None
}

fn shown(text: &str) -> Option<&str> {
    (text.len() <= SHOWN).then_some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::document;

    const HEAD: &str = "organism: { name: s }\nlisteners:\n  - name: shop\n";

    fn told(listener: &str) -> String {
        document::parse(&format!("{HEAD}{listener}    human: true\n")).unwrap_err().help.unwrap_or_default()
    }

    #[test]
    fn each_slip_is_named() {
        for (listener, expected) in [
            ("\tdescription: b\n", "indent with blanks: YAML takes no tabs there"),
            ("    limits:\n\tdescription: b\n", "indent with blanks: YAML takes no tabs there"),
            ("    description:Takes orders\n", "write a blank behind ':': description: Takes orders"),
            ("    description Takes orders\n", "write ':' and a blank behind the key: description: Takes orders"),
            (
                "    description: Takes orders: fast\n",
                "a text with ': ' needs quotes: description: \"Takes orders: fast\"",
            ),
            ("    description: a \"b\": c\n", r#"a text with ': ' needs quotes: description: "a \"b\": c""#),
            ("    accepts: [{urn:o:v1}order, x]\n", "a name with {…} needs quotes: \"{urn:o:v1}order\""),
            ("    accepts: {urn:o:v1}order\n", "a name with {…} needs quotes: \"{urn:o:v1}order\""),
            ("    accepts:\n      - {urn:o:v1}order\n", "a name with {…} needs quotes: \"{urn:o:v1}order\""),
            ("    accepts: [“{urn:o:v1}order”]\n", "“ is no quote of YAML: write \" or '"),
            ("    description: “Takes: all”\n", "“ is no quote of YAML: write \" or '"),
            ("    accepts: [a\n    replies: []\n", "write ] behind the last entry of what line 4 opens"),
            (
                "    accepts: [\n      a,\n      b\n    replies: []\n",
                "write ] behind the last entry of what line 4 opens",
            ),
            ("    remote: { mode: poll\n", "write } behind the last entry of what line 4 opens"),
            ("    accepts: [a]]\n", "remove this ]: nothing is open that it closes"),
            ("    accepts: [\"a]\n", "the \" in line 4 has no end: write \" behind the value"),
            ("    description: \"Takes\" orders\n", "put the whole value between \" and \", or leave the quotes out"),
            ("    description: @home\n", "a value that begins with @ needs quotes"),
            ("    description: *all* orders\n", "a value that begins with * needs quotes"),
            ("      description: Takes\n", "indent it by 4 blanks, as 'name' above, or by those of a key further up"),
            ("   description: Takes\n", "indent it by 4 blanks, as 'name' above, or by those of a key further up"),
        ] {
            assert_eq!(told(listener), expected, "{listener}");
        }
    }

    #[test]
    fn long_lines_are_not_looked_at() {
        assert_eq!(told(&format!("    description: a: {}\n", "b".repeat(WIDTH))), "");
        let long = format!("    description: a: {}\n", "b".repeat(SHOWN));
        assert_eq!(told(&long), "a text with ': ' needs quotes");
    }

    proptest! {
        #[test]
        fn any_place_of_any_text_is_looked_at_without_a_panic(source in "[ \\-:{}\\[\\]\"'#&*!|>@a-eé“\t\n]{0,200}", at in 0..200usize) {
            let at = (0..=at.min(source.len())).rev().find(|&at| source.is_char_boundary(at)).unwrap_or(0);
            help(&source, at);
        }
    }
}
