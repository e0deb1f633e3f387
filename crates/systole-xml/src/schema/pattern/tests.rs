//! Tests of patterns.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::*;

fn xsd(pattern: &str) -> String {
    Pattern::from_rust(pattern).unwrap().xsd
}

impl Pattern {
    /// Returns whether a text matches; true if the pattern has no tree.
    fn matches(&self, text: &str) -> bool {
        self.tree.as_ref().is_none_or(|tree| Automaton::new(tree.clone()).unwrap().is_match(text))
    }
}

#[test]
fn anchors_disappear_and_their_absence_shows() {
    assert_eq!(xsd("^[a-z]{2,3}$"), "[a-z]{2,3}");
    assert_eq!(xsd("^a"), "a[\\s\\S]*");
    assert_eq!(xsd("b"), "[\\s\\S]*b[\\s\\S]*");
    assert_eq!(xsd("^(?:ab|c)+x?$"), "(ab|c)+(x)?");
    assert_eq!(xsd("^a$|^bc$"), "(a|bc)");
    assert_eq!(xsd("^a|b$"), "(a[\\s\\S]*|[\\s\\S]*b)");
    assert_eq!(xsd("(^a|b)c$"), "(a|[\\s\\S]*b)c");
}

#[test]
fn what_xsd_reads_otherwise_is_escaped() {
    assert_eq!(xsd(r"^\d+\.\d$"), r"\d+\.\d");
    assert_eq!(xsd(r"^[^\n]*$"), r"[^\n]*");
    assert_eq!(xsd(r"^.$"), r"[^\n]");
    assert_eq!(xsd(r"^a\^\$$"), r"a\^$");
    assert_eq!(xsd(r"^(?s).$"), r"[\s\S]");
}

#[test]
fn characters_beside_the_surrogates_are_no_letters() {
    // The class is written negated, so that both lie in ranges of it that end and begin at the surrogates.
    for written in [xsd(r"^[\p{L}\s]$"), "[^\u{D7FC}-\u{D7FF}\u{E000}-\u{F8FF}]".to_owned()] {
        let read = Pattern::from_xsd(&[&written]);
        for c in ["\u{D7FC}", "\u{D7FF}", "\u{E000}", "\u{F8FF}"] {
            assert!(!read.matches(c), "{written} takes U+{:X}", u32::from(c.chars().next().unwrap()));
        }
        assert!(read.matches("\u{D7FB}") && read.matches("\u{F900}"), "{written}");
    }
    let all = ClassUnicode::new(
        [('\0', '\u{D7FF}'), ('\u{E000}', char::MAX)].map(|(low, high)| ClassUnicodeRange::new(low, high)),
    );
    assert!(class::not(all).ranges().is_empty());
}

#[test]
fn what_xsd_can_not_say_is_refused() {
    for pattern in [r"\bword\b", "a^b", "(?m)^a$", "(", r"(?-u:\xff)"] {
        assert!(Pattern::from_rust(pattern).is_err(), "{pattern}");
    }
}

#[test]
fn samples_match_and_differ() {
    for pattern in ["^[A-Z]{3}-[0-9]{4}$", "x+[yz]*z?", "^(red|green)$", r"^\w+@\w+\.org$", r"^[^a-z]$"] {
        let pattern = Pattern::from_rust(pattern).unwrap();
        let [first, second] = [0, 1].map(|variant| pattern.samples(variant, None).next().unwrap());
        assert!(pattern.matches(&first) && pattern.matches(&second), "{first} {second}");
        assert_ne!(first, second);
    }
}

#[test]
fn patterns_of_xsd_are_understood() {
    for (pattern, yes, no) in [
        (r"[a-z-[aeiou]]+", "xyz", "abc"),
        (r"\i\c*", "a-1", "1a"),
        (r"a^b$", "a^b$", "ab"),
        (r"\d{2}", "12", "1"),
        (r"[&~]x", "&x", "ax"),
        (r"\p{Lu}", "A", "a"),
    ] {
        let pattern = Pattern::from_xsd(&[pattern]);
        assert!(pattern.tree.is_some(), "{pattern:?}");
        assert!(pattern.matches(yes) && !pattern.matches(no), "{pattern:?}");
        assert!(pattern.samples(0, None).next().is_some_and(|sample| pattern.matches(&sample)), "{pattern:?}");
    }
    assert!(Pattern::from_xsd(&[r"\p{IsKlingon}"]).matches("anything"));
}

/// Returns whether a pattern of XSD matches a whole text; an error if it is no pattern.
fn matches(pattern: &str, text: &str) -> Result<bool, Flaw> {
    alternatives(&[pattern]).map(|regex| regex.is_match(text))
}

#[test]
fn classes_are_exact() {
    for (pattern, all, none) in [
        (r"\p{IsGreek}", "αΩ\u{370}\u{3FF}", "aя\u{36F}\u{400}"),
        (r"\P{IsGreek}", "a", "α"),
        (r"\p{IsPrivateUse}", "\u{E000}\u{F8FF}\u{F0000}\u{10FFFD}", "a"),
        (r"\p{IsSpecials}", "\u{FEFF}\u{FFFD}", "\u{FFEF}"),
        (r"\p{IsBasicLatin}", "a\u{7F}", "\u{80}"),
        (r"\i", "a_:é", "1-. \u{B7}\u{D7}"),
        (r"\I", "1-. ", "a_:é"),
        (r"\c", "a_:1-.\u{B7}é", " +\u{D7}"),
        (r"\C", " +", "a-"),
        (r"[^\I:]", "ab_", ":1 "),
        (r"[\i-[:]]", "ab_é", ":1"),
        (r"[\c-[\d.]]", "a-", "1.٣"),
        (r"\d", "0٣९", "a½"),
        (r"[\D]", "a½", "0٣"),
        (r"\w", "aé1+$^~", " .!_-\t\u{A0}"),
        (r"\W", " .!_-", "aé1+$"),
        (r"[\W\d]", " .3", "a"),
        (r"[^\W\d]", "a", " .3"),
        (r"\s", " \t\n\r", "a\u{A0}\u{B}\u{85}\u{2028}"),
        (r"\S", "a\u{A0}\u{B}\u{85}", " \t\n\r"),
        (r".", "a \t\u{85}\u{2028}\0", "\n\r"),
        (r"[.]", ".", "a"),
        (r"\p{Lu}", "AÉ", "a"),
        (r"[\p{Lu}\P{L}]", "A1", "a"),
        (r"\p{C}", "\u{1}\u{378}\u{E000}", "a"),
        (r"[a-z-[aeiou]]", "bz", "aeA-"),
        (r"[a-z-[b-y-[m]]]", "amz", "bny"),
        (r"[^a-z-[A-Z]]", "1 ", "aA"),
        (r"[a--[a]]", "-", "a"),
        (r"[-a]", "-a", "b"),
        (r"[a-]", "-a", "b"),
        (r"[^-a]", "b", "-a"),
        (r"[a\-z]", "a-z", "b"),
        (r"[+\-*/]", "+-*/", ","),
        (r"[&&&~~~]", "&~", "a"),
        (r"[a^]", "a^", "b"),
        (r"[\^a]", "a^", "b"),
        (r"[\[\]]", "[]", "a"),
        (r"[a-a]", "a", "b-"),
        (r"[!-\-]", "!#-", "a"),
        (r"\^|$|#|&|-|/|,|:", "^$#&-/,:", "a "),
        (r"\\|\||\.|\?|\*|\+|\(|\)|\{|\}|\-|\[|\]", "\\|.?*+(){}-[]", "a"),
        (r"\n|\r|\t", "\n\r\t", "nrt"),
        (r"[a-[a]]|b", "b", "a"),
    ] {
        for text in all.chars().map(String::from) {
            assert_eq!(matches(pattern, &text), Ok(true), "{pattern} {text:?}");
        }
        for text in none.chars().map(String::from) {
            assert_eq!(matches(pattern, &text), Ok(false), "{pattern} {text:?}");
        }
    }
}

#[test]
fn branches_and_quantifiers_mean_the_same() {
    for (pattern, yes, no) in [
        ("", "", "a"),
        ("a|", "", "b"),
        ("()", "", "a"),
        ("(a|b)c", "bc", "a"),
        ("a|bc", "bc", "ac"),
        ("^a$", "^a$", "a"),
        ("a{2}", "aa", "aaa"),
        ("a{0}", "", "a"),
        ("a{2,}", "aaaa", "a"),
        ("a{1,2}b", "aab", "aaab"),
        ("(a{2}){2}", "aaaa", "aaa"),
        ("(((a)))?b+", "bb", "a"),
        ("a b", "a b", "ab"),
        ("x{2,2}", "xx", "x"),
        ("#a", "#a", "a"),
        (r"\.\d{2}", ".07", "a07"),
    ] {
        assert_eq!(matches(pattern, yes), Ok(true), "{pattern}");
        assert_eq!(matches(pattern, no), Ok(false), "{pattern}");
    }
}

#[test]
fn what_xsd_forbids_has_no_other_meaning() {
    for pattern in [
        "(",
        ")",
        "a)",
        "(a",
        "[",
        "]",
        "[]",
        "[a",
        "[a-",
        "a]",
        "{",
        "}",
        "a{",
        "a{}",
        "a{,2}",
        "a{2,1}",
        "a{1,2",
        "a{-1}",
        "a{1,2,3}",
        "a{a}",
        "a{ 1}",
        "*",
        "?",
        "+a",
        "a**",
        "a+?",
        "a??",
        "a{2}{3}",
        "a{1}?",
        "(*a)",
        "(?:a)",
        "(?i)a",
        "(?<n>a)",
        "|*",
        "(|+a)",
        "\\",
        "\\a",
        "\\b",
        "\\A",
        "\\z",
        "\\1",
        "\\x41",
        "\\u0041",
        "\\$",
        "\\/",
        "\\p",
        "\\pL",
        "\\p{",
        "\\p{Foo}",
        "\\p{Greek}",
        "\\p{IsFoo}",
        "\\p{Cs}",
        "\\p{^Lu}",
        "\\p{lu}",
        "\\p{}",
        "\\p{IsGreekandCoptic}",
        "[a-c-e]",
        "[--z]",
        "[z-a]",
        "[a-\\d]",
        "[[a]]",
        "[a[b]]",
        "[[:alpha:]]",
        "[^]",
        "[]a]",
        "[a-z-[aeiou]b]",
        "[a-[b]",
        "[-[a]]",
        "[\\d-z]",
        "[a-z-9]",
    ] {
        assert!(matches(pattern, "").is_err(), "{pattern} is no pattern of XSD");
    }
}

#[test]
fn large_patterns_are_bounded() {
    assert!(matches(r"(\w{1,1000}){1,1000}", "").is_err());
    let deep = matches(&format!("{}a{}", "(".repeat(1000), ")".repeat(1000)), "").unwrap_err();
    assert!(deep.at == Some(101) && deep.why.contains("100 deep"), "{deep:?}");
    assert_eq!(matches(r"\i\c{0,254}", &"a".repeat(255)), Ok(true));
}

/// Classes with many repeated, unordered and deeply subtracted parts equal the sum of their parts.
#[test]
fn classes_of_many_parts_are_what_their_parts_are() {
    let scattered: String = (0..2_000).map(|i| char::from_u32(0x4E00 + 2 * ((i * 7) % 2_000)).unwrap()).collect();
    for (class, members, others) in [
        (format!("[{scattered}]"), "\u{4E00}\u{4E02}\u{5D9E}", "\u{4E01}\u{5D9F}a"),
        (format!("[^{scattered}]"), "\u{4E01}\u{5D9F}a", "\u{4E00}\u{4E02}\u{5D9E}"),
        (format!("[{}b1]", r"\p{Lu}\P{L}".repeat(500)), "Ab1 ", "ac"),
        (format!("{}[b]{}", r"[\p{L}-".repeat(200), "]".repeat(200)), "b", "ac1"),
        (format!("{}[b]{}", r"[\p{L}-".repeat(201), "]".repeat(201)), "ac", "b1"),
    ] {
        for (text, expected) in [(members, true), (others, false)] {
            for c in text.chars() {
                assert_eq!(matches(&class, &c.to_string()), Ok(expected), "{c:?}");
            }
        }
    }
}

#[test]
fn names_of_xml_are_the_same_in_patterns_and_in_documents() {
    use crate::vocab::{is_name_char, is_name_start};
    let check = |class: regex_syntax::hir::ClassUnicode, is: fn(char) -> bool| {
        let mut ranges = class.iter().peekable();
        for c in '\0'..=char::MAX {
            while ranges.next_if(|range| range.end() < c).is_some() {}
            assert_eq!(ranges.peek().is_some_and(|range| range.start() <= c), is(c), "{c:?}");
        }
    };
    check(class::name_start(), is_name_start);
    check(class::name_char(), is_name_char);
}

/// A pattern is refused before its classes are written out as ranges of more than some megabytes.
#[test]
fn patterns_of_many_classes_are_refused_early() {
    let flaw = matches(&r"\p{L}".repeat(20_000), "").unwrap_err();
    assert!(flaw.why == TOO_LARGE && flaw.at.is_some_and(|at| at < 10_000), "{flaw:?}");
}

/// A pattern over its own alphabet matches the same texts as over characters.
#[test]
fn the_alphabet_of_a_pattern_changes_no_verdict() {
    let patterns = [
        r"\p{L}{1,4}",
        r"[a-c]{2}-\p{Nd}+|é*",
        r"(\p{Lu}\p{Ll}?){0,3}\s[^x\p{P}]*",
        r"\i\c{0,5}",
        r"(ab|\P{L}){1,3}.?",
        r"[\p{IsGreek}-[α-γ]]{0,2}Ω?",
        r"\S{3}|()",
    ];
    let pool: Vec<char> = "aAbcxX-_.:! 0189é\n\u{3A9}αβγδ\u{E000}\u{FFFD}𝒜𝟎漢\u{10FFFF}٣".chars().collect();
    let mut seed = 1u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for pattern in patterns {
        let tree = tree(&[pattern]).unwrap();
        let plain = Automaton::compiled(regex(&tree).unwrap(), None, 1);
        let (alphabet, tree) = alphabet::reduced(&tree).unwrap();
        let reduced = Automaton::compiled(regex(&tree).unwrap(), Some(Box::new(alphabet)), 1);
        for _ in 0..4_000 {
            let length = next(7);
            let text: String = (0..length).map(|_| pool[next(pool.len())]).collect();
            assert_eq!(reduced.is_match(&text), plain.is_match(&text), "{pattern} {text:?}");
        }
    }
}

#[test]
fn patterns_that_part_a_text_in_many_ways_take_more_steps() {
    let cost = |pattern: &str| alternatives(&[pattern]).unwrap().cost_per_byte;
    let words: Vec<String> = (0..5_000).map(|n| format!("w{n}")).collect();
    for few in
        [".{0,4000}", r"[A-Z]{2}\d{1,30}", r"\c{1,64}@\c{1,60}", r"[A-Z].{0,999}\.", "(ab){1,900}", &words.join("|")]
    {
        assert_eq!(cost(few), 1, "{few}");
    }
    for (many, most) in [
        ("((((a{0,9}){0,9}){0,9}){0,9}){0,9}", 59_049),
        (".*a.{200}", 202),
        (".{0,100}x.{0,100}", 102),
        ("(a?b?){3000}c", 6_001),
        ("(a|bc){100}", 300),
    ] {
        assert_eq!(cost(many), most, "{many}");
    }
}

#[test]
fn large_counts_of_large_classes_are_exact() {
    let pattern = Pattern::from_xsd(&[r"\p{L}{1,400}"]);
    assert!(states(&pattern.xsd) < 6_000);
    assert!(pattern.matches("é") && pattern.matches(&"漢".repeat(400)));
    assert!(!pattern.matches("") && !pattern.matches(&"漢".repeat(401)) && !pattern.matches(&"é1".repeat(9)));
    assert!(pattern.samples(0, None).next().is_some_and(|sample| pattern.matches(&sample)));
    let pattern = Pattern::from_xsd(&[r"[A-Z](\p{L}|\p{N}| ){0,999}\."]);
    let text = |count: usize| format!("A{}.", "ß7 ".repeat(count));
    assert!(pattern.matches(&text(333)) && !pattern.matches(&text(334)) && !pattern.matches("A-."));
    // Counts inside of counts cost as much as before.
    assert!(states(r"(\p{L}{0,999}x){0,999}") > 250_000);
}

#[test]
fn patterns_of_json_schema_match_the_same_texts() {
    let texts = [
        "", "a", "b", "ab", "abc", "aab", "^", "$", "a$", "-", "\\", "x-1", "A-12", "A-1", "a\nb", "\t", "/", "é", "0",
        "٣", "[a]", "a|b",
    ];
    for pattern in [
        "a",
        "a|b",
        "a*b",
        "(a|b){2}",
        "(ab|c)?",
        "[a-c]+",
        "[^a]*",
        "^|$",
        r"a[$]|\-",
        r"[\-\\\^\]]",
        "[A-Z]-[0-9]{1,2}",
        "a{2,}b?",
        r"[\s\S]+",
        r"\s",
        r"\n|a.b",
        "/",
        "é|[à-ü]",
        "[a-z-[bc]]+",
        r"\[a\]",
        "((a)|(b))*",
        "",
        "[𐀀-𐄀a]+",
        ".",
    ] {
        let emitted = Pattern::from_xsd(&[pattern]).ecma().unwrap_or_else(|| panic!("{pattern} has no form"));
        let found = Regex::new(&emitted).unwrap_or_else(|error| panic!("{pattern} became {emitted}: {error}"));
        let automaton = alternatives(&[pattern]).unwrap();
        for text in texts {
            assert_eq!(found.is_match(text), automaton.is_match(text), "'{text}' by {pattern}, which became {emitted}");
        }
    }
    for (pattern, emitted) in [("^[a-c]{2}$", "^[a-c]{2}$"), ("b|cd", "(?:b|cd)"), ("^(a|b)+x", "^(?:[a-b])+x")] {
        assert_eq!(Pattern::from_rust(pattern).unwrap().ecma().as_deref(), Some(emitted), "found anywhere, as in Rust");
    }
}

#[test]
fn patterns_with_the_letters_of_all_scripts_have_no_form_in_json_schema() {
    for pattern in [r"\d{4}", r"\w+", r"\p{L}", r"\P{Lu}"] {
        assert_eq!(Pattern::from_xsd(&[pattern]).ecma(), None, "{pattern}");
    }
    assert_eq!(Pattern::from_xsd(&["("]).ecma(), None, "no pattern");
}

#[test]
fn the_largest_patterns_that_are_compiled_late_have_room() {
    for unit in
        ["a", ".", r"\p{L}", r"\i", r"[\i-[:]]?", "(ab|cd)", "(a?b){0,9}", r"(\w|\d|-){0,3}", "([a-z]|[α-ω]|[^#])*"]
    {
        let of = |count: u32| tree(&[&unit.repeat(1 << count)]).unwrap();
        let tree = (0..).map(of).take_while(|tree| cost::cost(tree) <= LARGE).last().unwrap();
        let config = Regex::config().nfa_size_limit(Some(BYTES / 4)).auto_prefilter(false);
        assert!(Regex::builder().configure(config).build_from_hir(&tree).is_ok(), "{unit}");
    }
}
