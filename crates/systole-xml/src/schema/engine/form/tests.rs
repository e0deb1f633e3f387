//! Golden transcripts over `tests/golden/form/NAME.xsd` with the input lines of `NAME.in` (`UPDATE_GOLDEN=1` writes
//! `NAME.out` anew), and forms over random schemas: the payloads are valid, and answers derived from an instance
//! reproduce it.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use roxmltree::{Document, Node};

use super::question::{Child, Kind, Step};
use super::*;
use crate::ladder::strict::c14n_subtree;
use crate::schema::PayloadSchema;
use crate::schema::engine::grammar::Content;

fn schema(text: &str) -> Result<PayloadSchema, String> {
    let schemas = PayloadSchema::from_xsd("form.xsd", text).map_err(|error| error.to_string())?;
    schemas.into_iter().find(|schema| schema.qname().local() == "root").ok_or_else(|| "no <root>".to_owned())
}

fn transcript(schema: PayloadSchema, typed: &str) -> String {
    let (mut form, mut turn) = schema.form(XmlLimits { depth: 20, ..XmlLimits::default() });
    let mut out = String::new();
    let mut lines = typed.lines();
    loop {
        match turn {
            FormStep::Ask(text) => out += &text,
            FormStep::Send(payload) => return format!("{out}SENT {payload}\n"),
            FormStep::Cancelled(why) => return format!("{out}CANCELLED {why}\n"),
        }
        let Some(line) = lines.next() else { return format!("{out}<end of input>\n") };
        out += &format!("{line}\n");
        turn = form.line(line);
    }
}

#[test]
fn transcripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/form");
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "xsd"))
        .collect();
    names.sort();
    assert!(names.len() >= 12, "{names:?}");
    for path in names {
        let read = |extension: &str| fs::read_to_string(path.with_extension(extension)).unwrap();
        let said = transcript(schema(&read("xsd")).unwrap(), &read("in"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(path.with_extension("out"), &said).unwrap();
        }
        assert_eq!(said, read("out"), "{}", path.display());
    }
}

#[test]
fn a_payload_never_grows_past_a_message() {
    let text = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='root'><xs:complexType>
        <xs:sequence><xs:element name='a' type='xs:string'/>
        <xs:element name='b' minOccurs='0'><xs:complexType><xs:sequence>
        <xs:element name='c' minOccurs='100' maxOccurs='100'><xs:complexType/></xs:element></xs:sequence></xs:complexType>
        </xs:element></xs:sequence></xs:complexType></xs:element></xs:schema>";
    let limits = XmlLimits { message_bytes: 200, ..XmlLimits::default() };
    let (mut form, _) = schema(text).unwrap().form(limits);
    let told = "the payload would be larger than 200 bytes, the limit of a message\nroot";
    for line in [&*"x".repeat(200), "y"] {
        let FormStep::Ask(said) = form.line(line) else { panic!("it asks") };
        if line == "y" {
            assert!(said.starts_with("root may have <b>"), "{said}");
        } else {
            assert!(said.starts_with(told), "{said}");
        }
    }
    let FormStep::Ask(said) = form.line("y") else { panic!("it asks") };
    assert!(said.starts_with(&format!("{told} may have <b>")), "{said}");
    assert!(matches!(form.line("n"), FormStep::Ask(said) if said.starts_with("<root><a>y</a></root>\nSend it?")));
    assert_eq!(form.line("y"), FormStep::Send("<root><a>y</a></root>".into()));
}

/// A deterministic source of choices.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

/// Simple types with valid values of each.
const TYPES: [(&str, &[&str]); 8] = [
    ("xs:string", &["", "a <b> & c", " x ", "two\nlines", ":quit", "-", "y"]),
    ("xs:int", &["0", "-7", "+12"]),
    ("xs:boolean", &["true", "false", "1", "0"]),
    ("xs:date", &["2026-01-31"]),
    ("xs:decimal", &["1.50", "-3"]),
    ("size", &["small", "big"]),
    ("xs:anyURI", &["urn:x", ""]),
    ("short", &["ab", "abc"]),
];

/// A random schema of a few types. Element names differ within a type, so most content models are deterministic.
fn random_schema(dice: &mut Dice) -> String {
    let mut out = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'".to_owned();
    out += dice.pick(&["", " targetNamespace='urn:t' xmlns='urn:t'"]);
    out += dice.pick(&["", " elementFormDefault='qualified'"]);
    out += "><xs:simpleType name='size'><xs:restriction base='xs:string'><xs:enumeration value='small'/>
        <xs:enumeration value='big'/></xs:restriction></xs:simpleType><xs:simpleType name='short'>
        <xs:restriction base='xs:string'><xs:minLength value='2'/><xs:maxLength value='3'/></xs:restriction>
        </xs:simpleType>";
    out += "<xs:element name='root' type='t0'/>";
    for ty in 0..4 {
        out += &format!("<xs:complexType name='t{ty}'>");
        let simple = ty > 0 && dice.roll(4) == 0;
        if simple {
            out += &format!("<xs:simpleContent><xs:extension base='{}'>", TYPES[dice.roll(TYPES.len())].0);
        } else if dice.roll(5) == 0 {
            out += "<xs:all>";
            for name in ["p", "q", "r"] {
                let least = dice.roll(2);
                out += &format!("<xs:element name='{name}' type='{}' minOccurs='{least}'/>", TYPES[dice.roll(8)].0);
            }
            out += "</xs:all>";
        } else {
            let mut names = 0;
            group(dice, &mut out, &mut names, 2);
        }
        for name in ["k", "l", "m"].iter().take(dice.roll(4)) {
            let way = dice.pick(&["use='required'", "", "use='optional'", "default='D'", "fixed='F'"]);
            let ty = if way.contains('\'') && !way.starts_with("use") { "xs:string" } else { TYPES[dice.roll(8)].0 };
            out += &format!("<xs:attribute name='{name}' type='{ty}' {way}/>");
        }
        out += if simple { "</xs:extension></xs:simpleContent>" } else { "" };
        out += "</xs:complexType>";
    }
    out + "</xs:schema>"
}

fn group(dice: &mut Dice, out: &mut String, names: &mut usize, deeper: usize) {
    let order = dice.pick(&["sequence", "choice"]);
    let (min, max) = (dice.roll(2), ["2", "3", "5", "unbounded"][dice.roll(4)]);
    *out += &format!("<xs:{order} minOccurs='{min}' maxOccurs='{max}'>");
    for _ in 0..=dice.roll(3) {
        if deeper > 0 && dice.roll(3) == 0 {
            group(dice, out, names, deeper - 1);
            continue;
        }
        *names += 1;
        let complex = format!("t{}", 1 + dice.roll(3));
        // A complex type may contain itself only as an optional child.
        let (ty, min) = if dice.roll(3) == 0 {
            (&*complex, 0)
        } else {
            (TYPES[dice.roll(8)].0, dice.roll(2 + usize::from(deeper == 2)))
        };
        let nil = dice.pick(&["", "", " nillable='true'"]);
        let max = ["2", "3", "unbounded"][dice.roll(3)];
        *out += &format!("<xs:element name='e{names}' type='{ty}' minOccurs='{min}' maxOccurs='{max}'{nil}/>");
    }
    *out += &format!("</xs:{order}>");
}

/// Answers a form by a function of its questions, with the lines as a person would type them. Returns the payload that
/// was sent.
fn fill(schema: &PayloadSchema, mut answer: impl FnMut(&Form, usize) -> String) -> String {
    let (mut form, mut turn) = schema.form(XmlLimits::default());
    for number in 0..100_000 {
        let typed = match &form.stage {
            Stage::Review(judged) => {
                assert!(judged.is_ok(), "{judged:?}");
                "y".to_owned()
            }
            _ => answer(&form, number),
        };
        let is_text = matches!(form.filling.asked.as_ref().map(|asked| &asked.kind), Some(Kind::Value { .. }))
            && (typed.contains('\n') || typed.starts_with(':'));
        turn = match is_text {
            false => form.line(&typed),
            true => {
                form.line(QUOTES);
                typed.split('\n').for_each(|line| drop(form.line(line)));
                form.line(QUOTES)
            }
        };
        match turn {
            FormStep::Ask(_) => {}
            FormStep::Send(payload) => return payload,
            FormStep::Cancelled(why) => panic!("{why}"),
        }
    }
    panic!("the form does not end: {turn:?}")
}

/// A random answer that the question accepts; after many questions, an answer that ends the form soon.
fn at_random(dice: &mut Dice, form: &Form, number: usize) -> String {
    let ends = number > 100;
    match &form.filling.asked.as_ref().unwrap().kind {
        Kind::Nil | Kind::Attribute { .. } | Kind::Others => if ends { "n" } else { dice.pick(&["y", "n"]) }.to_owned(),
        Kind::Value { ty, choices, .. } if choices.is_empty() => {
            let words = ty.words().to_owned();
            let has = |name: &str| match name.strip_prefix("xs:") {
                Some(local) => crate::schema::simple::SimpleType::xsd_type(local).unwrap().words() == words,
                None => name == "short",
            };
            let values = TYPES.iter().find(|(name, _)| has(name)).unwrap().1;
            dice.pick(values).to_owned()
        }
        Kind::Value { choices, .. } => (1 + dice.roll(choices.len())).to_string(),
        Kind::Next { steps, end: true, .. } if steps.len() == 1 => {
            if ends { "n" } else { dice.pick(&["y", "n"]) }.to_owned()
        }
        Kind::Next { end: true, .. } if ends => "0".to_owned(),
        // Rarely deeper: a pass that exceeds the limits is repeated at each of its questions.
        Kind::Next { steps, .. } if ends && dice.roll(4) > 0 && steps.iter().any(|step| is_flat(form, step)) => {
            let flat: Vec<usize> = (0..steps.len()).filter(|place| is_flat(form, &steps[*place])).collect();
            (1 + flat[dice.roll(flat.len())]).to_string()
        }
        Kind::Next { steps, end, .. } => (usize::from(!end) + dice.roll(steps.len() + usize::from(*end))).to_string(),
        Kind::Xml(_) => panic!("no such part is in the schema"),
    }
}

/// Reports whether a step leads to an element without children.
fn is_flat(form: &Form, step: &Step) -> bool {
    let grammar = &*form.grammar;
    let Child::Element(id) = step.child else { return false };
    let ty = grammar.elements[id.index()].ty;
    !matches!(grammar.types[ty.index()].content, Content::Sequence { .. } | Content::All { .. })
}

/// The element at a path such as `root/item[2]`.
fn at<'d>(document: &'d Document<'d>, path: &str) -> Node<'d, 'd> {
    path.split('/').skip(1).fold(document.root_element(), |node, part| {
        let (name, number) = part.trim_end_matches(']').split_once('[').unwrap_or((part, "1"));
        let named = |child: &Node| child.is_element() && child.tag_name().name() == name;
        node.children().filter(named).nth(number.parse::<usize>().unwrap() - 1).unwrap()
    })
}

/// The answer that reproduces an instance.
fn read_off(instance: &str, form: &Form) -> String {
    let document = Document::parse(instance).unwrap();
    let asked = form.filling.asked.as_ref().unwrap();
    let node = at(&document, &asked.element);
    let grammar = &*form.grammar;
    let attribute = || {
        let names = node.attributes().filter(|attribute| attribute.namespace().is_none());
        let path = asked.key.trim_end_matches(['=', '?']).rsplit('@').next().unwrap();
        names.into_iter().find(|attribute| attribute.name() == path).map(|attribute| attribute.value().to_owned())
    };
    let yes = |yes: bool| if yes { "y" } else { "n" }.to_owned();
    match &asked.kind {
        Kind::Nil => yes(node.attribute((crate::vocab::ns::XSI, "nil")) == Some("true")),
        Kind::Attribute { .. } => yes(attribute().is_some()),
        Kind::Others => yes(false),
        Kind::Value { attribute: Some(_), choices, .. } => numbered(choices, attribute().unwrap()),
        Kind::Value { choices, .. } => numbered(choices, node.text().unwrap_or_default().to_owned()),
        Kind::Next { steps, end, .. } => {
            let written: usize = asked.key.rsplit(' ').next().unwrap().parse().unwrap();
            let next = node.children().filter(Node::is_element).nth(written);
            let takes = |step: &Step, next: Node| match step.child {
                Child::Element(id) => grammar.element_local(id) == next.tag_name().name(),
                Child::Wildcard(_) => false,
            };
            let place = next.map(|next| 1 + steps.iter().position(|step| takes(step, next)).unwrap());
            if steps.len() == 1 && *end { yes(place.is_some()) } else { place.unwrap_or(0).to_string() }
        }
        Kind::Xml(_) => {
            let number = document.descendants().filter(Node::is_element).position(|other| other == node).unwrap();
            let form = crate::ladder::strict::CanonicalOptions::default();
            let bytes = c14n_subtree(instance.as_bytes(), number, form, &XmlLimits::default()).unwrap().unwrap();
            String::from_utf8(bytes).unwrap()
        }
    }
}

fn numbered(choices: &[String], value: String) -> String {
    choices.iter().position(|choice| *choice == value).map_or(value, |at| (at + 1).to_string())
}

impl crate::schema::engine::Grammar {
    fn element_local(&self, id: crate::schema::engine::ElementId) -> &str {
        &self.name(self.elements[id.index()].name).local
    }
}

/// Validates a payload from its bytes, in the way that messages take.
fn assert_valid(schema: &PayloadSchema, payload: &str) {
    let canonical = canonicalize(&payload.to_owned().into(), &XmlLimits::default()).unwrap();
    assert_eq!(canonical.as_str(), payload, "it is canonical");
    let (grammar, root) = schema.grammar();
    verdict(grammar, Some(root), &mut Judge::default(), &canonical).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn what_a_form_yields_is_valid_and_answers_read_off_it_make_it_again(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let text = random_schema(&mut dice);
        // Some random content models are ambiguous, which the Recommendation forbids.
        let Ok(schema) = schema(&text) else { return Ok(()) };
        let mut answers = HashMap::new();
        let payload = fill(&schema, |form, number| {
            let answer = at_random(&mut dice, form, number);
            answers.insert(form.filling.asked.as_ref().unwrap().key.clone(), answer.clone());
            answer
        });
        assert_valid(&schema, &payload);
        // A page with the same answers makes the same payload; with one less it is refused, or makes another valid one.
        prop_assert_eq!(schema.form_page(&XmlLimits::default(), &answers).payload, Some(Ok(payload.clone())), "{}", text);
        let mut keys: Vec<_> = answers.keys().cloned().collect();
        keys.sort_unstable();
        if !keys.is_empty() {
            answers.remove(&keys[dice.roll(keys.len())]);
            if let Some(Ok(other)) = schema.form_page(&XmlLimits::default(), &answers).payload {
                assert_valid(&schema, &other);
            }
        }
        prop_assert_eq!(&fill(&schema, |form, _| read_off(&payload, form)), &payload, "{}", text);
        if let Some(example) = schema.example() {
            let again = fill(&schema, |form, _| read_off(example.as_str(), form));
            assert_valid(&schema, &again);
            prop_assert_eq!(meaning(&again), meaning(example.as_str()), "{}", text);
        }
    }
}

/// The names, attributes and texts of a document, without its prefixes.
fn meaning(text: &str) -> Vec<String> {
    let document = Document::parse(text).unwrap();
    let told = |node: Node| {
        let mut attributes: Vec<String> = node
            .attributes()
            .map(|attribute| format!("{:?}{}={:?}", attribute.namespace(), attribute.name(), attribute.value()))
            .collect();
        attributes.sort();
        format!("{:?}{:?}{:?}", node.tag_name(), attributes, node.text())
    };
    document.descendants().map(told).collect()
}

const ORDER: &str = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='root'><xs:complexType>
    <xs:sequence><xs:element name='who' type='xs:string'/><xs:element name='count' type='xs:int'/>
    <xs:element name='note' type='xs:string' minOccurs='0'/>
    <xs:choice><xs:element name='card' type='xs:string'/><xs:element name='cash'><xs:complexType/></xs:element></xs:choice>
    </xs:sequence><xs:attribute name='kind' use='required'><xs:simpleType><xs:restriction base='xs:string'>
    <xs:enumeration value='new'/><xs:enumeration value='old'/></xs:restriction></xs:simpleType></xs:attribute>
    </xs:complexType></xs:element></xs:schema>";

/// Each field of a page with these answers: key, answer and error.
fn fields(answers: &[(&str, &str)]) -> (Vec<String>, Option<Result<String, String>>) {
    let answers = answers.iter().map(|(key, answer)| ((*key).to_owned(), (*answer).to_owned())).collect();
    let page = schema(ORDER).unwrap().form_page(&XmlLimits::default(), &answers);
    let told = |field: &FormField| {
        format!("{} {} {}", field.key, field.answer.as_deref().unwrap_or("?"), field.error.as_deref().unwrap_or("-"))
    };
    (page.fields.iter().map(told).collect(), page.payload)
}

#[test]
fn a_page_asks_for_all_that_an_open_question_does_not_decide() {
    let (asked, payload) = fields(&[]);
    assert_eq!(asked, ["root/@kind= ? -", "root/who= ? -", "root/count= ? -", "root 2 ? -"]);
    assert_eq!(payload, None);
    let first = [("root/@kind=", "new"), ("root/who=", "Ada"), ("root 2", "1"), ("root/note=", "R&D"), ("root 3", "2")];
    let (asked, payload) = fields(&[first.as_slice(), &[("root/count=", "many")]].concat());
    assert!(asked[2].starts_with("root/count= many found 'many', expected whole number"), "{asked:?}");
    assert_eq!((asked.len(), payload), (6, None));
    let (_, payload) = fields(&[first.as_slice(), &[("root/count=", " 7 ")]].concat());
    let whole = "<root kind=\"new\"><who>Ada</who><count> 7 </count><note>R&amp;D</note><cash></cash></root>";
    assert_eq!(payload, Some(Ok(whole.to_owned())));
    let (asked, payload) = fields(&[("root/@kind=", "new"), ("root/who=", "\u{1}"), ("root 2", "9")]);
    assert!(asked[1].ends_with("XML can't carry the character U+0001"), "{asked:?}");
    assert!(asked[3].contains("expected a number from 1 to 3") && payload.is_none(), "{asked:?}");
}

#[test]
fn most_schemas_at_random_are_taken() {
    let taken = (0..30).filter(|seed| schema(&random_schema(&mut Dice(*seed))).is_ok()).count();
    assert!(taken > 10, "{taken} of 30");
}
