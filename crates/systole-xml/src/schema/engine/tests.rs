//! The engine compared with libxml2 on schemas and instances that are made, where both agree; those that are written are in
//! `tests/corpus/xsd`.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Components, Grammar, Judge, Violation, compile};
use crate::ladder::Canonical;
use crate::ladder::scan::{ScanToken, Scanner};
use crate::ladder::strict::canonicalize;
use crate::schema::libxml2::Compiled;
use crate::schema::source::BrokenSchemaRule;
use crate::schema::source::documents::Documents;
use crate::schema::source::read::Reader;
use crate::schema::{PayloadSchema, XsdDocument};
use crate::vocab::{XmlLimits, ns};

/// A schema compiled by the engine and by libxml2.
struct Both {
    grammar: Arc<Grammar>,
    libxml: Compiled,
    judge: Judge,
}

fn documents(texts: &[&str]) -> Documents {
    let named = |(number, text): (usize, &&str)| {
        let head = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:t='urn:t'";
        let text = if text.starts_with("<xs:schema") {
            text.replacen("<xs:schema", head, 1)
        } else {
            format!("{head} targetNamespace='urn:t' elementFormDefault='qualified'>{text}</xs:schema>")
        };
        XsdDocument { name: format!("{number}.xsd"), text }
    };
    crate::schema::xsd::documents(&texts.iter().enumerate().map(named).collect::<Vec<_>>()).unwrap()
}

fn whole(documents: &Documents) -> Result<Arc<Grammar>, BrokenSchemaRule> {
    compile(&Reader::new(documents)).map(Components::into_grammar)
}

fn refused(text: &str) -> String {
    let documents = documents(&[text]);
    whole(&documents).map(|_| ()).expect_err("it is refused").rule
}

fn canonical(text: &str) -> Canonical {
    let limits = XmlLimits { message_bytes: 64 << 20, ..XmlLimits::default() };
    canonicalize(&text.to_owned().into(), &limits).unwrap()
}

impl Both {
    fn new(texts: &[&str]) -> Self {
        Self::of(&documents(texts))
    }

    fn of(documents: &Documents) -> Self {
        let (main, others) = documents.sources(&[0]);
        let libxml = Compiled::new(&main, &others).unwrap();
        let grammar = whole(documents).unwrap();
        Self { grammar, libxml, judge: Judge::default() }
    }

    fn violations(&mut self, payload: &Canonical) -> Vec<Violation> {
        let root = self.grammar.element(payload.root().namespace(), payload.root().local()).unwrap();
        self.judge.judge(&self.grammar, Some(root), payload, 8)
    }

    fn rules(&mut self, text: &str) -> Vec<String> {
        self.violations(&canonical(text)).into_iter().map(|violation| violation.rule).collect()
    }

    /// The verdict of both, which is the same.
    fn accept(&mut self, text: &str) -> bool {
        let payload = canonical(text);
        let violations = self.violations(&payload);
        assert_eq!(violations.is_empty(), self.libxml.validate(payload.as_str()).is_ok(), "{text}: {violations:?}");
        violations.is_empty()
    }
}

/// A root element in the namespace of the tests.
fn root(inside: &str) -> String {
    format!("<r xmlns='urn:t'>{inside}</r>")
}

/// Checks a content model against words of one-letter elements, each with `true` if the model accepts it.
fn model(particle: &str, words: &[(&str, bool)]) {
    let xsd = format!("<xs:element name='r'><xs:complexType>{particle}</xs:complexType></xs:element>");
    let mut both = Both::new(&[&xsd]);
    for (word, accepted) in words {
        let inside: String = word.chars().map(|letter| format!("<{letter}/>")).collect();
        let text = root(&inside);
        assert_eq!(both.accept(&text), *accepted, "{word} by {particle}: {:?}", both.rules(&text));
    }
}

fn el(name: &str, occurs: &str) -> String {
    format!("<xs:element name='{name}' {occurs}/>")
}

#[test]
fn bounds_are_kept_whether_unrolled_or_counted() {
    for (min, max) in [(0, 3), (2, 3), (2, 2), (0, 40), (3, 40), (20, 20), (20, 40)] {
        let particle = format!(
            "<xs:sequence>{}{}</xs:sequence>",
            el("a", &format!("minOccurs='{min}' maxOccurs='{max}'")),
            el("b", "")
        );
        let words: Vec<(String, bool)> =
            (0..45).map(|count| (format!("{}b", "a".repeat(count)), (min..=max).contains(&count))).collect();
        let words: Vec<(&str, bool)> = words.iter().map(|(word, accepted)| (word.as_str(), *accepted)).collect();
        model(&particle, &words);
        let unbounded =
            format!("<xs:sequence>{}</xs:sequence>", el("a", &format!("minOccurs='{max}' maxOccurs='unbounded'")));
        model(
            &unbounded,
            &[
                (&"a".repeat(max), true),
                (&"a".repeat(max + 50), true),
                (&"a".repeat(max.saturating_sub(1)), false),
                (&format!("{}b", "a".repeat(max)), false),
            ],
        );
    }
    // A fixed count may precede the same name, and may occur in a loop.
    let before =
        format!("<xs:sequence>{}{}</xs:sequence>", el("a", "minOccurs='20' maxOccurs='20'"), el("a", "minOccurs='0'"));
    model(
        &before,
        &[(&"a".repeat(19), false), (&"a".repeat(20), true), (&"a".repeat(21), true), (&"a".repeat(22), false)],
    );
    let looped = format!(
        "<xs:sequence maxOccurs='unbounded'>{}{}</xs:sequence>",
        el("a", "minOccurs='20' maxOccurs='20'"),
        el("b", "minOccurs='0'")
    );
    let twenty = "a".repeat(20);
    model(
        &looped,
        &[
            (&twenty, true),
            (&format!("{twenty}b{twenty}"), true),
            (&format!("{twenty}{twenty}"), true),
            (&format!("{twenty}a"), false),
        ],
    );
    let groups =
        format!("<xs:sequence minOccurs='2' maxOccurs='3'>{}{}</xs:sequence>", el("a", ""), el("b", "minOccurs='0'"));
    model(
        &groups,
        &[("a", false), ("ab", false), ("aa", true), ("abab", true), ("aba", true), ("ababab", true), ("aaaa", false)],
    );
}

#[test]
fn a_repeated_group_of_counted_copies_is_exact() {
    // Until the end, an element could belong to either copy: four are two and two.
    let particle = format!(
        "<xs:choice minOccurs='0' maxOccurs='unbounded'>{}</xs:choice>",
        el("a", "minOccurs='2' maxOccurs='3'")
    );
    let xsd = format!("<xs:element name='r'><xs:complexType>{particle}</xs:complexType></xs:element>");
    let documents = documents(&[&xsd]);
    let grammar = whole(&documents).unwrap();
    let mut judge = Judge::default();
    for count in 0..12 {
        let payload = canonical(&root(&"<a/>".repeat(count)));
        let root = grammar.element("urn:t", "r").unwrap();
        assert_eq!(judge.judge(&grammar, Some(root), &payload, 8).is_empty(), count != 1, "{count}");
    }
}

#[test]
fn hostile_schemas_end_in_a_sentence() {
    // Groups that refer to the previous one twice: 2^40 particles.
    let groups: String = (1..40)
        .map(|n| format!("<xs:group name='g{n}'><xs:sequence><xs:group ref='t:g{0}'/><xs:group ref='t:g{0}'/></xs:sequence></xs:group>", n - 1))
        .collect();
    let bomb = format!(
        "<xs:group name='g0'><xs:sequence><xs:element name='a'/></xs:sequence></xs:group>{groups}<xs:element name='r'><xs:complexType><xs:group ref='t:g39'/></xs:complexType></xs:element>"
    );
    assert!(refused(&bomb).contains("particles"));
    // The same without particles, with bounds that multiply.
    let nested = (0..30).fold("<xs:element name='a' minOccurs='0'/>".to_owned(), |inside, n| {
        format!("<xs:sequence minOccurs='0' maxOccurs='9'>{inside}<xs:element name='b{n}'/></xs:sequence>")
    });
    let nested = format!("<xs:element name='r'><xs:complexType>{nested}</xs:complexType></xs:element>");
    assert!(refused(&nested).contains("particles") || refused(&nested).contains("too large"));
    let twice = |inside: &str| format!("{inside}{inside}");
    let nothing = (0..6).fold("<xs:sequence/>".to_owned(), |inside, _| {
        format!("<xs:sequence maxOccurs='4000000'>{}</xs:sequence>", twice(&inside))
    });
    let nothing = format!("<xs:element name='r'><xs:complexType>{nothing}</xs:complexType></xs:element>");
    assert!(refused(&nothing).contains("too large"));
    // Bounds that multiply are one range if their groups hold nothing else.
    let single = (0..30).fold("<xs:element name='a' minOccurs='0'/>".to_owned(), |inside, _| {
        format!("<xs:sequence minOccurs='0' maxOccurs='9'>{inside}</xs:sequence>")
    });
    let single = format!("<xs:element name='r'><xs:complexType>{single}</xs:complexType></xs:element>");
    assert!(whole(&documents(&[&single])).is_ok());
    // Optional elements in a row: each may follow each.
    let wide: String = (0..10_000).map(|n| format!("<xs:element name='e{n}' minOccurs='0'/>")).collect();
    let wide =
        format!("<xs:element name='r'><xs:complexType><xs:sequence>{wide}</xs:sequence></xs:complexType></xs:element>");
    assert!(refused(&wide).contains("too large"));
    // A large choice compiles.
    let choice: String = (0..2_000).map(|n| format!("<xs:element name='e{n}'/>")).collect();
    let choice = format!(
        "<xs:element name='r'><xs:complexType><xs:choice maxOccurs='unbounded'>{choice}</xs:choice></xs:complexType></xs:element>"
    );
    let documents = documents(&[&choice]);
    let grammar = whole(&documents).unwrap();
    let payload = canonical(&root(&(0..2_000).map(|n| format!("<e{n}/>")).collect::<String>()));
    assert_eq!(Judge::default().judge(&grammar, grammar.element("urn:t", "r"), &payload, 8), []);
}

#[test]
fn sentences_tell_what_was_found_and_what_was_expected() {
    let mut both = Both::new(&["
        <xs:element name='r'><xs:complexType><xs:sequence>
          <xs:element name='a' type='xs:int'/><xs:element name='b' minOccurs='0' maxOccurs='30'/><xs:any namespace='urn:o' minOccurs='0' processContents='skip'/>
        </xs:sequence><xs:attribute name='k' type='xs:int'/></xs:complexType></xs:element>"]);
    for (text, rules) in [
        ("<r xmlns='urn:t'/>", vec!["<r>: ends too early; expected <a>"]),
        ("<r xmlns='urn:t'><a>x</a></r>", vec!["<a>: found 'x', expected whole number"]),
        (
            "<r xmlns='urn:t'><b/><a>x</a></r>",
            vec!["<b>: not expected here; expected <a>", "<a>: found 'x', expected whole number"],
        ),
        (
            "<r xmlns='urn:t'><a>1</a><c/><b/></r>",
            vec!["<c>: not expected here; expected one of <b>, any element in namespace urn:o"],
        ),
        ("<r xmlns='urn:t'><a xmlns=''>1</a></r>", vec!["<a>: not expected here; expected <a> in namespace urn:t"]),
        (
            "<r xmlns='urn:t'><a>1</a><x xmlns='urn:o'/><x xmlns='urn:o'/></r>",
            vec!["<{urn:o}x>: not expected here; expected the end of <r>"],
        ),
        (
            "<r xmlns='urn:t' k='x' l=''><a>1</a></r>",
            vec![
                "attribute 'k' of <r>: found 'x', expected whole number",
                "attribute 'l' of <r>: not allowed; expected 'k'",
            ],
        ),
        (
            "<r xmlns='urn:t'>t<a>1<z/></a>u</r>",
            vec![
                "<r>: text is not allowed between its elements",
                "<a>: elements are not allowed in it, only text: write &lt; for each <, or <![CDATA[ … ]]> around the text",
            ],
        ),
    ] {
        let found = both.rules(text);
        assert_eq!(found.len(), rules.len(), "{found:?}");
        found.iter().zip(rules).for_each(|(found, rule)| assert!(found.starts_with(rule), "{found}\n{rule}"));
    }
}

/// A node of an instance, for mutations.
#[derive(Debug, Clone)]
enum Item {
    Text(String),
    Element { name: String, attributes: Vec<(String, String)>, items: Vec<Item> },
}

fn tree(text: &str) -> Item {
    let mut open: Vec<Item> = Vec::new();
    for token in Scanner::new(text) {
        let done = match token {
            ScanToken::Start(tag) => {
                let attributes = tag.attributes().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                open.push(Item::Element { name: tag.name().to_owned(), attributes, items: Vec::new() });
                continue;
            }
            ScanToken::Text(written) => Item::Text(written.to_owned()),
            ScanToken::End => open.pop().unwrap(),
        };
        match open.last_mut() {
            Some(Item::Element { items, .. }) => items.push(done),
            _ => return done,
        }
    }
    unreachable!("an example ends")
}

impl Item {
    fn write(&self, out: &mut String) {
        match self {
            Self::Text(text) => out.push_str(text),
            Self::Element { name, attributes, items } => {
                *out += &format!("<{name}");
                attributes.iter().for_each(|(name, value)| *out += &format!(" {name}=\"{value}\""));
                out.push('>');
                items.iter().for_each(|item| item.write(out));
                *out += &format!("</{name}>");
            }
        }
    }

    fn all<'i>(&'i self, found: &mut Vec<&'i Self>) {
        found.push(self);
        if let Self::Element { items, .. } = self {
            items.iter().for_each(|item| item.all(found));
        }
    }

    /// The node of a number, in document order.
    fn nth(&mut self, number: &mut usize) -> Option<&mut Self> {
        if *number == 0 {
            return Some(self);
        }
        *number -= 1;
        let Self::Element { items, .. } = self else { return None };
        items.iter_mut().find_map(|item| item.nth(number))
    }
}

const VALUES: [&str; 10] =
    ["", "x", "5", "-1", "1.5", "true", "2026-01-31", "two words", "a-b", "99999999999999999999"];

/// Mutates an instance at one node. Inserted nodes are copies from the instance itself.
fn change(root: &mut Item, at: usize, kind: usize, pick: usize) {
    let mut all = Vec::new();
    root.all(&mut all);
    let (other, mut at) = (all[pick % all.len()].clone(), at % all.len());
    let value = VALUES[pick % VALUES.len()].to_owned();
    match root.nth(&mut at) {
        Some(Item::Text(text)) => *text = value,
        Some(Item::Element { name, attributes, items }) => {
            let place = if items.is_empty() { 0 } else { pick % items.len() };
            let own: Vec<usize> = (0..attributes.len()).filter(|n| !attributes[*n].0.starts_with("xmlns")).collect();
            match kind {
                0 if !items.is_empty() => drop(items.remove(place)),
                1 if !items.is_empty() => items.insert(place, items[place].clone()),
                2 if items.len() > 1 => {
                    let next = (place + 1) % items.len();
                    items.swap(place, next);
                }
                3 => items.push(other),
                4 => items.insert(place, Item::Text(value)),
                5 if !own.is_empty() => drop(attributes.remove(own[pick % own.len()])),
                6 if !own.is_empty() => attributes[own[pick % own.len()]].1 = value,
                7 => attributes.push(("strange".to_owned(), value)),
                8 => {
                    if let Item::Element { name: other, .. } = other
                        && !other.contains(':')
                    {
                        *name = other;
                    }
                }
                _ => items.clear(),
            }
        }
        None => {}
    }
}

/// An envelope. Its schema leaves the payload open, so it has no example.
const ENVELOPE: &str = "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from>a</from><to/><id xmlns='urn:systole:meta:v1'>1</id></meta><x/></message>";

/// The schemas, each with valid instances of its payloads.
fn samples() -> Vec<(Both, Vec<Canonical>)> {
    let texts = [
        include_str!("../../../tests/golden/schema/library.xsd"),
        include_str!("../../../schemas/envelope.xsd"),
        include_str!("../../../schemas/core.xsd"),
        include_str!("../../../schemas/meta.xsd"),
        include_str!("../../../schemas/task.xsd"),
    ];
    let of = |text: &str| {
        let document = XsdDocument { name: "s.xsd".to_owned(), text: text.to_owned() };
        let schemas = PayloadSchema::from_xsd(&document.name, text).unwrap();
        let mut examples: Vec<Canonical> = schemas.iter().filter_map(|schema| schema.example().cloned()).collect();
        let is_envelope = schemas.iter().any(|schema| schema.qname().namespace() == ns::ENVELOPE);
        examples.extend(is_envelope.then(|| canonical(ENVELOPE)));
        assert!(!examples.is_empty());
        (Both::of(&crate::schema::xsd::documents(&[document]).unwrap()), examples)
    };
    texts.into_iter().map(of).collect()
}

thread_local! {
    static SAMPLES: std::cell::RefCell<Vec<(Both, Vec<Canonical>)>> = std::cell::RefCell::new(samples());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn changed_instances_are_judged_alike(
        schema in 0usize..5,
        payload in any::<usize>(),
        changes in prop::collection::vec((any::<usize>(), 0usize..10, any::<usize>()), 0..4),
    ) {
        SAMPLES.with_borrow_mut(|samples| {
            let (both, examples) = &mut samples[schema];
            let example = &examples[payload % examples.len()];
            let mut instance = tree(example.as_str());
            for (at, kind, pick) in &changes {
                change(&mut instance, *at, *kind, *pick);
            }
            let mut text = String::new();
            instance.write(&mut text);
            let Ok(payload) = canonicalize(&text.clone().into(), &XmlLimits::default()) else { return Ok(()) };
            if payload.root() != example.root() {
                return Ok(());
            }
            // libxml2 reads no more of a decimal.
            const DIGITS: usize = 24;
            if text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > DIGITS) {
                return Ok(());
            }
            let is_valid = both.accept(payload.as_str());
            prop_assert!(is_valid || !changes.is_empty(), "{}", text);
            Ok(())
        })?;
    }
}

#[test]
fn attributes_are_found_however_many_a_type_has() {
    let uses: String = (0..40)
        .rev()
        .map(|i| {
            let (ty, used) = if i % 2 == 0 { ("xs:int", "required") } else { ("xs:boolean", "optional") };
            format!("<xs:attribute name='a{i}' type='{ty}' use='{used}'/><xs:attribute name='a{i}' type='xs:date' form='qualified'/>")
        })
        .collect();
    let schema = format!("<xs:element name='r'><xs:complexType>{uses}</xs:complexType></xs:element>");
    let grammar = whole(&documents(&[&schema])).unwrap();
    let root = grammar.element("urn:t", "r");
    let required: String = (0..40).step_by(2).map(|i| format!(" a{i}='{i}'")).collect();
    for (more, violations) in [
        ("", 0),
        (" a1='true' a39='0' p:a0='2000-01-01' p:a1='2000-01-01'", 0),
        (" a1='2' p:a2='2' a40='1' p:b='1'", 4),
    ] {
        let payload = canonical(&format!("<p:r xmlns:p='urn:t'{required}{more}/>"));
        let found = Judge::default().judge(&grammar, root, &payload, 10);
        assert_eq!(found.len(), violations, "{more}: {found:?}");
    }
    // The number of violations is limited as requested.
    let empty = canonical("<p:r xmlns:p='urn:t'/>");
    assert_eq!(Judge::default().judge(&grammar, root, &empty, 10).len(), 10);
    assert_eq!(Judge::default().judge(&grammar, root, &empty, 100).len(), 20);
}
