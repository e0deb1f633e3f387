//! The reader of patterns of JSON Schema, which are those of ECMA-262 (JSON Schema core 2020-12, section 6.4): it writes each in the
//! syntax of the regex crate, for the same texts.
//!
//! The two share most of their syntax. They differ in classes: those of digits, words and spaces, the dot, and the signs that
//! have a meaning inside of brackets, where the regex crate knows sets (`&&`, `--`, `~~`, a class in a class). So each class is
//! read, and written anew.

/// Spaces and ends of lines (ECMA-262, section 22.2.2.9, WhiteSpace and LineTerminator).
const SPACE: &str = r"\t-\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}";
const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
/// All but the ends of lines.
const DOT: &str = r"[^\n\r\x{2028}\x{2029}]";
const ANY: &str = r"[\s\S]";
const NONE: &str = r"[^\s\S]";

/// A pattern of ECMA-262 in the syntax of the regex crate.
///
/// # Errors
/// The reason why there is none.
pub(in crate::schema) fn of_ecma(pattern: &str) -> Result<String, &'static str> {
    let mut reader = Reader { rest: pattern };
    let mut out = String::with_capacity(pattern.len() + 16);
    // Set behind a quantifier: whether a '?' may follow, which makes it a lazy one.
    let mut quantified: Option<bool> = None;
    while let Some(c) = reader.next() {
        let before = quantified.take();
        if let Some(length) = quantifier(c, reader.rest) {
            quantified = match before {
                None => Some(true),
                Some(true) if c == '?' => Some(false),
                Some(_) => return Err("a quantifier stands behind a quantifier, which ECMA-262 doesn't have"),
            };
            out.push(c);
            out.push_str(&reader.rest[..length]);
            reader.rest = &reader.rest[length..];
            continue;
        }
        match c {
            '(' => {
                out.push('(');
                if reader.takes("?") {
                    if ![":", "=", "!", "<", "i:", "-i:"].iter().any(|kind| reader.rest.starts_with(kind)) {
                        return Err(
                            "a group begins otherwise than those of ECMA-262, which are (…), (?:…) and (?<name>…); for both cases of a letter write [Aa]",
                        );
                    }
                    out.push('?');
                }
            }
            '.' => out.push_str(DOT),
            '[' => reader.class(&mut out)?,
            '\\' => match reader.escape(false)? {
                Atom::One(c) => push(&mut out, c),
                Atom::Set { ranges, is_negated } => push_set(&mut out, ranges, is_negated),
                Atom::Written(text) => out.push_str(&text),
            },
            c => out.push(c),
        }
    }
    Ok(out)
}

/// Values of the property General_Category, by both of their names (ECMA-262, table 69).
const CATEGORIES: &str = "L Letter LC Cased_Letter Lu Uppercase_Letter Ll Lowercase_Letter Lt Titlecase_Letter \
    Lm Modifier_Letter Lo Other_Letter M Mark Combining_Mark Mn Nonspacing_Mark Mc Spacing_Mark Me Enclosing_Mark \
    N Number Nd Decimal_Number digit Nl Letter_Number No Other_Number P Punctuation punct Pc Connector_Punctuation \
    Pd Dash_Punctuation Ps Open_Punctuation Pe Close_Punctuation Pi Initial_Punctuation Pf Final_Punctuation \
    Po Other_Punctuation S Symbol Sm Math_Symbol Sc Currency_Symbol Sk Modifier_Symbol So Other_Symbol Z Separator \
    Zs Space_Separator Zl Line_Separator Zp Paragraph_Separator C Other Cc Control cntrl Cf Format Cs Surrogate \
    Co Private_Use Cn Unassigned";

/// Binary properties, by both of their names (ECMA-262, table 68).
const BINARY: &str = "ASCII AHex ASCII_Hex_Digit Alpha Alphabetic Any Assigned Bidi_C Bidi_Control Bidi_M Bidi_Mirrored CI \
    Case_Ignorable Cased CWCF Changes_When_Casefolded CWCM Changes_When_Casemapped CWKCF \
    Changes_When_NFKC_Casefolded CWL Changes_When_Lowercased CWT Changes_When_Titlecased CWU \
    Changes_When_Uppercased Dash DI Default_Ignorable_Code_Point Dep Deprecated Dia Diacritic Emoji EComp \
    Emoji_Component EMod Emoji_Modifier EBase Emoji_Modifier_Base EPres Emoji_Presentation ExtPict \
    Extended_Pictographic Ext Extender Gr_Base Grapheme_Base Gr_Ext Grapheme_Extend Hex Hex_Digit IDSB \
    IDS_Binary_Operator IDST IDS_Trinary_Operator IDC ID_Continue IDS ID_Start Ideo Ideographic Join_C Join_Control \
    LOE Logical_Order_Exception Lower Lowercase Math NChar Noncharacter_Code_Point Pat_Syn Pattern_Syntax Pat_WS \
    Pattern_White_Space QMark Quotation_Mark Radical RI Regional_Indicator STerm Sentence_Terminal SD Soft_Dotted \
    Term Terminal_Punctuation UIdeo Unified_Ideograph Upper Uppercase VS Variation_Selector space White_Space XIDC \
    XID_Continue XIDS XID_Start";

/// Returns whether ECMA-262 has a property of Unicode with this name, spelt so (section 22.2.1): the regex crate takes more
/// spellings, and scripts without `Script=`.
fn is_property(name: &str) -> bool {
    let is_in = |names: &str, name: &str| names.split_ascii_whitespace().any(|known| known == name);
    // Each word of a script's name begins with a capital; of one it is the second, too.
    let is_capital = |word: &str| {
        let mut letters = word.bytes();
        letters.next().is_some_and(|first| first.is_ascii_uppercase())
            && letters.all(|letter| letter.is_ascii_lowercase())
    };
    match name.split_once('=') {
        None => is_in(CATEGORIES, name) || is_in(BINARY, name),
        Some(("General_Category" | "gc", value)) => is_in(CATEGORIES, value),
        Some(("Script" | "sc" | "Script_Extensions" | "scx", script)) => {
            script == "SignWriting" || script.split('_').all(is_capital)
        }
        Some(_) => false,
    }
}

/// The length of the quantifier that begins with a character, behind it; `None` if it begins none.
fn quantifier(c: char, rest: &str) -> Option<usize> {
    match c {
        '*' | '+' | '?' => Some(0),
        '{' => {
            let end = rest.find('}')?;
            let (least, most) = rest[..end].split_once(',').unwrap_or((&rest[..end], ""));
            let is_count = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
            (!least.is_empty() && is_count(least) && is_count(most)).then_some(end + 1)
        }
        _ => None,
    }
}

/// A character or a class.
enum Atom {
    One(char),
    Set {
        ranges: &'static str,
        is_negated: bool,
    },
    /// In the syntax of the regex crate.
    Written(String),
}

struct Reader<'p> {
    rest: &'p str,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// Takes a text if it is next.
    fn takes(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads a class behind its bracket.
    fn class(&mut self, out: &mut String) -> Result<(), &'static str> {
        const UNCLOSED: &str = "a '[' is never closed";
        let is_negated = self.takes("^");
        // In ECMA-262 a bracket right behind the first one closes the class.
        if self.takes("]") {
            out.push_str(if is_negated { ANY } else { NONE });
            return Ok(());
        }
        out.push_str(if is_negated { "[^" } else { "[" });
        loop {
            let name = self.rest.strip_prefix("[:").and_then(|rest| rest.split_once(":]"));
            if name.is_some_and(|(name, _)| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase())) {
                return Err(
                    "ECMA-262 has no classes such as [:alpha:]: write \\p{L} for letters, \\d for digits, \\s for white space",
                );
            }
            if self.takes("]") {
                out.push(']');
                return Ok(());
            }
            let low = self.atom()?.ok_or(UNCLOSED)?;
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]") && self.rest.len() > 1;
            if !is_range {
                push_within(out, low);
                continue;
            }
            self.takes("-");
            let high = self.atom()?.ok_or(UNCLOSED)?;
            match (low, high) {
                (Atom::One(low), Atom::One(high)) if low > high => {
                    return Err("a range of a class has its end before its start");
                }
                (Atom::One(low), Atom::One(high)) => {
                    push(out, low);
                    out.push('-');
                    push(out, high);
                }
                // A range to a class is none: the hyphen is one (ECMA-262, annex B.1.2.6).
                (low, high) => {
                    push_within(out, low);
                    out.push_str("\\-");
                    push_within(out, high);
                }
            }
        }
    }

    fn atom(&mut self) -> Result<Option<Atom>, &'static str> {
        match self.next() {
            Some('\\') => self.escape(true).map(Some),
            other => Ok(other.map(Atom::One)),
        }
    }

    /// Reads an escape behind its backslash.
    fn escape(&mut self, in_class: bool) -> Result<Atom, &'static str> {
        let set = |ranges, is_negated| Ok(Atom::Set { ranges, is_negated });
        let written = |text: &str| Ok(Atom::Written(text.to_owned()));
        let Some(c) = self.next() else { return Err("it ends with a backslash") };
        match c {
            'd' => set(DIGIT, false),
            'D' => set(DIGIT, true),
            'w' => set(WORD, false),
            'W' => set(WORD, true),
            's' => set(SPACE, false),
            'S' => set(SPACE, true),
            't' => Ok(Atom::One('\t')),
            'n' => Ok(Atom::One('\n')),
            'r' => Ok(Atom::One('\r')),
            'v' => Ok(Atom::One('\u{b}')),
            'f' => Ok(Atom::One('\u{c}')),
            'b' if in_class => Ok(Atom::One('\u{8}')),
            // Letters of words are those of ASCII.
            'b' => written("(?-u:\\b)"),
            '0' if !self.rest.starts_with(|c: char| c.is_ascii_digit()) => Ok(Atom::One('\0')),
            '0'..='9' | 'k' => Err("a back reference stands in it"),
            'c' => match self.next() {
                Some(c) if c.is_ascii_alphabetic() => Ok(Atom::One(char::from(c as u8 % 32))),
                _ => Err("a letter stands behind \\c"),
            },
            'x' => self.code(2),
            'u' => self.unicode(),
            'p' | 'P' => {
                let end = self.rest.starts_with('{').then(|| self.rest.find('}')).flatten();
                let end = end.ok_or("a property stands behind \\p in braces, as in \\p{L}")?;
                let name = &self.rest[1..end];
                if !is_property(name) {
                    return Err(
                        "\\p names no property of ECMA-262, such as \\p{L} or \\p{Script=Greek}: capitals matter in their names",
                    );
                }
                let text = format!("\\{c}{}", &self.rest[..=end]);
                self.rest = &self.rest[end + 1..];
                Ok(Atom::Written(text))
            }
            'B' => Err("\\B is not supported in patterns: write what stands around it"),
            c if c.is_ascii_alphanumeric() => {
                Err("a backslash stands before a letter that has no such meaning in ECMA-262")
            }
            c => Ok(Atom::One(c)),
        }
    }

    /// Reads a code of so many hexadecimal digits.
    fn code(&mut self, digits: usize) -> Result<Atom, &'static str> {
        let code = self.digits(digits)?;
        char::from_u32(code).map(Atom::One).ok_or("half a surrogate pair stands in it")
    }

    fn digits(&mut self, digits: usize) -> Result<u32, &'static str> {
        const NONE: &str = "hexadecimal digits stand behind \\x and \\u: two, four, or some in braces";
        let text = self.rest.get(..digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = u32::from_str_radix(text.ok_or(NONE)?, 16).map_err(|_| NONE)?;
        self.rest = &self.rest[digits..];
        Ok(code)
    }

    fn unicode(&mut self) -> Result<Atom, &'static str> {
        if self.takes("{") {
            let end = self.rest.find('}').filter(|end| (1..=8).contains(end));
            let code = self.code(end.ok_or("a code of 1 to 8 digits stands behind \\u in braces")?)?;
            return if self.takes("}") { Ok(code) } else { Err("a brace stands behind the code of \\u") };
        }
        let high = self.digits(4)?;
        if (0xd800..0xdc00).contains(&high) && self.takes("\\u") {
            let low = self.digits(4)?;
            let pair = char::decode_utf16([high as u16, low as u16]).next();
            return pair.and_then(Result::ok).map(Atom::One).ok_or("half a surrogate pair stands in it");
        }
        char::from_u32(high).map(Atom::One).ok_or("half a surrogate pair stands in it")
    }
}

/// Appends a character that stands for itself, outside of a class and in it.
fn push(out: &mut String, c: char) {
    match c {
        c if c.is_ascii_alphanumeric()
            || matches!(
                c,
                '_' | ' ' | '<' | '>' | '/' | '"' | '\'' | ',' | ':' | ';' | '=' | '@' | '!' | '%' | '`'
            ) =>
        {
            out.push(c)
        }
        c if c.is_ascii_graphic() => out.extend(['\\', c]),
        c if c.is_ascii() => out.push_str(&format!("\\x{{{:X}}}", u32::from(c))),
        c => out.push(c),
    }
}

fn push_set(out: &mut String, ranges: &str, is_negated: bool) {
    out.push_str(if is_negated { "[^" } else { "[" });
    out.push_str(ranges);
    out.push(']');
}

/// Appends a part of a class.
fn push_within(out: &mut String, atom: Atom) {
    match atom {
        Atom::One(c) => push(out, c),
        Atom::Set { ranges, is_negated: false } => out.push_str(ranges),
        Atom::Set { ranges, is_negated: true } => push_set(out, ranges, true),
        Atom::Written(text) => out.push_str(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::pattern::search;

    /// Returns whether a pattern of ECMA-262 is found in a text.
    fn is_found(pattern: &str, text: &str) -> bool {
        let written = of_ecma(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
        search(&written).unwrap_or_else(|why| panic!("{pattern} as {written}: {why}")).is_match(text)
    }

    #[test]
    fn signs_of_sets_are_plain_characters_in_a_class() {
        for (pattern, found, others) in [
            ("^[a&&b]+$", "ab&", "c"),
            ("^[a~~b]+$", "ab~", "c"),
            ("^[+--]+$", "+,-", "."),
            ("^[a-c--]+$", "abc-", "d"),
            ("^[--/]+$", "-./", "0"),
            ("^[[]+$", "[", "]"),
            ("^[a[b]+$", "a[b", "]"),
            (r"^[\w-.]+$", "a_9-.", ","),
            (r"^[.-\d]+$", ".-7", "x"),
            ("^[-a]+$", "-a", "b"),
            ("^[a-]+$", "a-", "b"),
            (r"^[\]\\^]+$", r"]\^", "["),
            ("^[^&&]+$", "ab", "&"),
            ("^[#$*|(){}?+.]+$", "#$*|(){}?+.", "a"),
        ] {
            for c in found.chars() {
                assert!(is_found(pattern, &c.to_string()), "{pattern} {c}");
            }
            for c in others.chars() {
                assert!(!is_found(pattern, &c.to_string()), "{pattern} {c}");
            }
        }
        assert!(!is_found("[]", "a") && is_found("^[^]$", "\n") && !is_found("[]a]", "a]"));
    }

    #[test]
    fn classes_have_the_characters_of_ecma() {
        for c in ['\u{2028}', '\u{2029}', '\r', '\n'] {
            assert!(!is_found("^.$", &c.to_string()), "{c:?}");
        }
        assert!(is_found("^.$", "\u{85}") && is_found("^.$", "\u{feff}"));
        for c in
            [' ', '\t', '\u{b}', '\u{a0}', '\u{1680}', '\u{200a}', '\u{2028}', '\u{2029}', '\u{3000}', '\u{feff}', '\r']
        {
            assert!(is_found(r"^\s$", &c.to_string()) && !is_found(r"^\S$", &c.to_string()), "{c:?}");
            assert!(is_found(r"^[a\s]$", &c.to_string()) && !is_found(r"^[\S]$", &c.to_string()), "{c:?}");
        }
        for c in ['\u{85}', '\u{180e}', '\u{200b}'] {
            assert!(!is_found(r"\s", &c.to_string()) && is_found(r"^[\S]$", &c.to_string()), "{c:?}");
        }
        assert!(
            !is_found(r"\d", "٣") && is_found(r"^\D[\D]$", "٣٣") && !is_found(r"\w", "é") && is_found(r"^[\W]$", "é")
        );
        assert!(is_found(r"a\b", "aé") && !is_found(r"a\b", "ab"));
    }

    #[test]
    fn escapes_are_those_of_ecma() {
        for (pattern, text) in [
            (r"^\/\-\<\>\x41\u0042\u{1F600}\uD83D\uDE00\cJ\0$", "/-<>AB😀😀\n\0"),
            (r"^[\b\t\x41-\x43]+$", "\u{8}\tABC"),
            (r"^\p{Lu}\P{L}$", "É1"),
            (r"^(?:a|b){2,3}?(?<name>c)$", "abc"),
            (r"^a+?b*?(?:c??)?\+*[[:]$", "abc++:"),
            (r"^\p{Script=Greek}(?i:a)$", "αA"),
            (r"^[\p{Lowercase_Letter}\p{gc=Nd}]\p{scx=Old_Italic}\P{White_Space}$", "a\u{10300}x"),
        ] {
            assert!(is_found(pattern, text), "{pattern}");
        }
        for (pattern, why) in [
            (r"(a)\1", "back reference"),
            (r"\A", "no such meaning"),
            (r"a\", "ends with a backslash"),
            ("[a", "never closed"),
            ("[b-a]", "end before its start"),
            (r"\uD83D", "surrogate"),
            (r"\x4", "hexadecimal"),
            (r"\u{}", "1 to 8 digits"),
            (r"\pL", "in braces"),
            (r"a\Bb", r"\B is not supported"),
            ("(?i)a", "a group begins otherwise"),
            ("(?P<x>a)", "a group begins otherwise"),
            ("a++", "a quantifier stands behind"),
            ("a**", "a quantifier stands behind"),
            ("a{2}{3}", "a quantifier stands behind"),
            ("a+??", "a quantifier stands behind"),
            ("[[:alpha:]]", "[:alpha:]"),
            ("[^a[:digit:]]", "[:alpha:]"),
            (r"\p{IsGreek}", "no property"),
            (r"[\p{^L}]", "no property"),
            (r"\p{lu}", "no property"),
            (r"\p{Greek}", "no property"),
            (r"\p{Script=greek}", "no property"),
            (r"\p{script=Greek}", "no property"),
            (r"\p{White Space}", "no property"),
        ] {
            assert!(of_ecma(pattern).unwrap_err().contains(why), "{pattern}");
        }
    }
}
