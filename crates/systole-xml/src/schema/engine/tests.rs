//! The engine compared with libxml2 on the same schemas: both must agree, except where the Recommendation decides for
//! the engine.

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

/// The expected verdict. Where libxml2 differs, the Recommendation decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Valid,
    Invalid,
    /// Invalid, but libxml2 accepts the instance.
    InvalidHere,
    /// Valid, but libxml2 refuses the instance.
    ValidHere,
}
use Verdict::{Invalid, InvalidHere, Valid, ValidHere};

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

    fn libxml_accepts(&self, payload: &Canonical) -> bool {
        self.libxml.validate(payload.as_str()).is_ok()
    }

    fn verdict(&mut self, text: &str) -> Verdict {
        let payload = canonical(text);
        match (self.violations(&payload).is_empty(), self.libxml_accepts(&payload)) {
            (true, true) => Valid,
            (false, false) => Invalid,
            (false, true) => InvalidHere,
            (true, false) => ValidHere,
        }
    }

    fn judges(&mut self, cases: &[(&str, Verdict)]) {
        let wrong: Vec<_> = cases
            .iter()
            .map(|(text, verdict)| (text, verdict, self.verdict(text), self.rules(text)))
            .filter(|(_, verdict, found, _)| *verdict != found)
            .map(|(text, verdict, found, rules)| format!("{text}\n  expected {verdict:?}, found {found:?}: {rules:?}"))
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
        let expected = if *accepted { Valid } else { Invalid };
        let text = root(&inside);
        assert_eq!(both.verdict(&text), expected, "{word} by {particle}: {:?}", both.rules(&text));
    }
}

fn el(name: &str, occurs: &str) -> String {
    format!("<xs:element name='{name}' {occurs}/>")
}

#[test]
fn sequences_and_choices_take_their_words() {
    let abc = format!(
        "<xs:sequence>{}{}{}</xs:sequence>",
        el("a", ""),
        el("b", "minOccurs='0'"),
        el("c", "maxOccurs='unbounded'")
    );
    model(
        &abc,
        &[
            ("ac", true),
            ("abc", true),
            ("accc", true),
            ("a", false),
            ("bc", false),
            ("abbc", false),
            ("acb", false),
            ("", false),
        ],
    );
    let choice = format!("<xs:choice minOccurs='0' maxOccurs='unbounded'>{}{}</xs:choice>", el("a", ""), el("b", ""));
    model(&choice, &[("", true), ("abba", true), ("c", false), ("ac", false)]);
    let nested = format!(
        "<xs:sequence maxOccurs='2'>{}<xs:choice minOccurs='0'>{}<xs:sequence>{}{}</xs:sequence></xs:choice></xs:sequence>",
        el("a", ""),
        el("b", ""),
        el("c", ""),
        el("d", "")
    );
    model(
        &nested,
        &[
            ("a", true),
            ("ab", true),
            ("acd", true),
            ("abacd", true),
            ("aa", true),
            ("aaa", false),
            ("ac", false),
            ("acda", true),
            ("acdad", false),
        ],
    );
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
fn all_groups_take_any_order() {
    let all = format!("<xs:all>{}{}{}</xs:all>", el("a", ""), el("b", "minOccurs='0'"), el("c", ""));
    model(
        &all,
        &[("ac", true), ("cab", true), ("bca", true), ("a", false), ("aca", false), ("acd", false), ("", false)],
    );
    let optional = format!("<xs:all minOccurs='0'>{}{}</xs:all>", el("a", ""), el("b", ""));
    model(&optional, &[("", true), ("ba", true), ("a", false)]);
    let many: String = (0..70).map(|number| el(&format!("e{number}"), "")).collect();
    let mut both = Both::new(&[&format!(
        "<xs:element name='r'><xs:complexType><xs:all>{many}</xs:all></xs:complexType></xs:element>"
    )]);
    let all: Vec<String> = (0..70).rev().map(|number| format!("<e{number}/>")).collect();
    both.judges(&[(&root(&all.concat()), Valid), (&root(&all[1..].concat()), Invalid)]);
}

#[test]
fn empty_groups_are_what_the_recommendation_says() {
    model("", &[("", true), ("a", false)]);
    model("<xs:sequence/>", &[("", true), ("a", false)]);
    model("<xs:choice minOccurs='0'/>", &[("", true), ("a", false)]);
    model(
        &format!("<xs:sequence>{}{}</xs:sequence>", el("a", "minOccurs='0' maxOccurs='0'"), el("b", "")),
        &[("b", true), ("ab", false)],
    );
}

#[test]
fn text_stands_where_it_may() {
    let mut both = Both::new(&["
        <xs:element name='r'><xs:complexType><xs:choice maxOccurs='unbounded'>
          <xs:element name='empty'><xs:complexType/></xs:element>
          <xs:element name='mixed'><xs:complexType mixed='true'><xs:sequence><xs:element name='b' minOccurs='0' maxOccurs='2' type='xs:string'/></xs:sequence></xs:complexType></xs:element>
          <xs:element name='onlymixed'><xs:complexType mixed='true'/></xs:element>
          <xs:element name='deep'><xs:complexType><xs:sequence><xs:element name='b' minOccurs='0' type='xs:int'/></xs:sequence></xs:complexType></xs:element>
          <xs:element name='text'><xs:complexType><xs:simpleContent><xs:extension base='xs:int'><xs:attribute name='u'/></xs:extension></xs:simpleContent></xs:complexType></xs:element>
        </xs:choice></xs:complexType></xs:element>"]);
    both.judges(&[
        (&root("<empty/>"), Valid),
        (&root("<empty><?pi x?></empty>"), Valid),
        (&root("<empty>x</empty>"), Invalid),
        (&root("<empty><x/></empty>"), Invalid),
        (&root("<empty a=''/>"), Invalid),
        (&root("<mixed>x<b>y</b>z<b/></mixed>"), Valid),
        (&root("<mixed>x<b/><b/><b/></mixed>"), Invalid),
        (&root("<mixed>x<c/></mixed>"), Invalid),
        (&root("<onlymixed>x</onlymixed>"), Valid),
        (&root("<onlymixed>x<b/></onlymixed>"), Invalid),
        (&root("<deep> \n\t<b>1</b>&#xD;</deep>"), Valid),
        (&root("<deep>x<b>1</b></deep>"), Invalid),
        (&root("<deep><b>1</b>&amp;</deep>"), Invalid),
        (&root("<deep><b>x</b></deep>"), Invalid),
        (&root("<deep><b>1<c/></b></deep>"), Invalid),
        (&root("<text u='x'>5</text>"), Valid),
        (&root("<text>5<?pi?>6</text>"), Valid),
        (&root("<text>5<b/></text>"), Invalid),
        (&root("<text/>"), Invalid),
        (&root("<text v=''>5</text>"), Invalid),
    ]);
}

#[test]
fn attributes_are_judged_one_by_one() {
    let mut both = Both::new(&["
        <xs:attribute name='g' type='xs:int'/>
        <xs:attributeGroup name='both'><xs:attribute name='p' type='xs:int' use='required'/><xs:attributeGroup ref='t:more'/></xs:attributeGroup>
        <xs:attributeGroup name='more'><xs:attribute name='q' form='qualified' type='xs:boolean'/></xs:attributeGroup>
        <xs:element name='r'><xs:complexType>
          <xs:attributeGroup ref='t:both'/><xs:attribute ref='t:g'/><xs:attribute name='f' type='xs:decimal' fixed='1.0'/><xs:attribute name='d' default='x'/>
        </xs:complexType></xs:element>
        <xs:element name='any'><xs:complexType><xs:anyAttribute namespace='##other' processContents='lax'/></xs:complexType></xs:element>
        <xs:element name='own'><xs:complexType><xs:attribute name='g'/><xs:anyAttribute namespace='##targetNamespace ##local urn:o' processContents='strict'/></xs:complexType></xs:element>
        <xs:element name='skip'><xs:complexType><xs:anyAttribute processContents='skip'/></xs:complexType></xs:element>"]);
    let head = "xmlns='urn:t' xmlns:t='urn:t' xmlns:o='urn:o'";
    let cases: Vec<(String, Verdict)> = [
        ("r", "p='1'", Valid),
        ("r", "", Invalid),
        ("r", "p='x'", Invalid),
        ("r", "p='1' q='true'", Invalid),
        ("r", "p='1' t:q='true'", Valid),
        ("r", "p='1' t:q='maybe'", Invalid),
        ("r", "p='1' t:p='1'", Invalid),
        ("r", "t:p='1'", Invalid),
        ("r", "p='1' t:g='5'", Valid),
        ("r", "p='1' g='5'", Invalid),
        ("r", "p='1' f='1.0'", Valid),
        ("r", "p='1' f='01'", Valid),
        ("r", "p='1' f='2'", Invalid),
        ("r", "p='1' d=''", Valid),
        ("r", "p='1' xml:lang='en'", Invalid),
        ("r", "p='1' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:schemaLocation='a b' xsi:noNamespaceSchemaLocation='c'", Valid),
        ("any", "o:x='1' xml:lang='anything'", Valid),
        ("any", "t:g='1'", Invalid),
        ("any", "g='1'", Invalid),
        ("own", "t:g='1' g='x'", Valid),
        ("own", "t:g='x'", Invalid),
        ("own", "t:h='x'", Invalid),
        ("own", "o:h='x'", Invalid),
        ("skip", "o:h='x' t:g='x' g='x'", Valid),
    ]
    .map(|(element, attributes, verdict)| (format!("<{element} {head} {attributes}/>"), verdict))
    .into();
    for (text, verdict) in &cases {
        both.judges(&[(text, *verdict)]);
    }
}

#[test]
fn wildcards_are_strict_lax_or_skip() {
    let any = |name: &str, attributes: &str| {
        format!(
            "<xs:element name='{name}'><xs:complexType><xs:sequence><xs:any {attributes}/></xs:sequence></xs:complexType></xs:element>"
        )
    };
    let xsd = [
        "<xs:element name='int' type='xs:int'/>".to_owned(),
        any("strict", "namespace='##any'"),
        any("lax", "processContents='lax'"),
        any("skip", "processContents='skip'"),
        any("other", "namespace='##other' processContents='skip'"),
        any("local", "namespace='##local' processContents='skip'"),
        any("several", "namespace='##targetNamespace urn:o' processContents='skip' minOccurs='0' maxOccurs='30'"),
    ]
    .concat();
    let mut both = Both::new(&[&xsd]);
    // The canonical form keeps a declaration only where a name uses it, so the element is in that namespace too.
    let typed = |value: &str| {
        let namespaces =
            "xmlns='http://www.w3.org/2001/XMLSchema' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'";
        format!("<o {namespaces} xsi:type='int'>{value}</o>")
    };
    let cases = [
        ("strict", "<int>1</int>".to_owned(), Valid),
        ("strict", "<int>x</int>".to_owned(), Invalid),
        ("strict", "<unknown/>".to_owned(), Invalid),
        ("strict", "<o xmlns='urn:o'/>".to_owned(), Invalid),
        // libxml2 requires a declaration, but by section 3.10.1 an xsi:type is enough.
        ("strict", typed("1"), ValidHere),
        ("strict", typed("x"), Invalid),
        ("strict", "<int>1</int><int>2</int>".to_owned(), Invalid),
        ("lax", "<int>1</int>".to_owned(), Valid),
        ("lax", "<int>x</int>".to_owned(), Invalid),
        ("lax", "<unknown a='1'>text<int>1</int></unknown>".to_owned(), Valid),
        ("lax", "<unknown>text<int>x</int></unknown>".to_owned(), Invalid),
        ("lax", typed("1"), Valid),
        ("lax", typed("x"), Invalid),
        ("skip", "<unknown><int>x</int></unknown>".to_owned(), Valid),
        ("skip", "".to_owned(), Invalid),
        ("other", "<o xmlns='urn:o'/>".to_owned(), Valid),
        ("other", "<o xmlns=''/>".to_owned(), Invalid),
        ("other", "<o/>".to_owned(), Invalid),
        ("local", "<o xmlns=''/>".to_owned(), Valid),
        ("local", "<o/>".to_owned(), Invalid),
        ("several", "<x/><x xmlns='urn:o'/><y/>".to_owned(), Valid),
        ("several", "<x xmlns=''/>".to_owned(), Invalid),
        ("several", "<x/>".repeat(31), Invalid),
    ];
    for (element, inside, verdict) in cases {
        both.judges(&[(&format!("<{element} xmlns='urn:t'>{inside}</{element}>"), verdict)]);
    }
}

/// Types that extend and restrict each other, with elements that test their substitution.
const DERIVED: &str = "
    <xs:complexType name='A'><xs:sequence><xs:element name='a' type='xs:int'/></xs:sequence><xs:attribute name='x' type='xs:int'/></xs:complexType>
    <xs:complexType name='E'><xs:complexContent><xs:extension base='t:A'><xs:sequence><xs:element name='b' type='xs:int' minOccurs='0'/></xs:sequence><xs:attribute name='y' use='required'/></xs:extension></xs:complexContent></xs:complexType>
    <xs:complexType name='R'><xs:complexContent><xs:restriction base='t:E'><xs:sequence><xs:element name='a' type='xs:int'/></xs:sequence><xs:attribute name='x' use='prohibited'/></xs:restriction></xs:complexContent></xs:complexType>
    <xs:complexType name='Abstract' abstract='true'><xs:sequence/></xs:complexType>
    <xs:complexType name='Concrete'><xs:complexContent><xs:extension base='t:Abstract'/></xs:complexContent></xs:complexType>
    <xs:complexType name='NoExtension' block='extension'><xs:sequence/></xs:complexType>
    <xs:complexType name='Extended'><xs:complexContent><xs:extension base='t:NoExtension'/></xs:complexContent></xs:complexType>
    <xs:simpleType name='Small'><xs:restriction base='xs:int'><xs:maxInclusive value='9'/></xs:restriction></xs:simpleType>
    <xs:complexType name='Priced'><xs:simpleContent><xs:extension base='xs:int'><xs:attribute name='unit'/></xs:extension></xs:simpleContent></xs:complexType>
    <xs:complexType name='Cheap'><xs:simpleContent><xs:restriction base='t:Priced'><xs:maxInclusive value='9'/><xs:attribute name='unit' use='required'/></xs:restriction></xs:simpleContent></xs:complexType>
    <xs:element name='a' type='t:A'/><xs:element name='e' type='t:E'/><xs:element name='res' type='t:R'/>
    <xs:element name='noext' type='t:A' block='extension'/><xs:element name='nores' type='t:E' block='restriction'/>
    <xs:element name='abs' type='t:Abstract'/><xs:element name='n' type='t:NoExtension'/>
    <xs:element name='int' type='xs:int'/><xs:element name='decimal' type='xs:decimal'/><xs:element name='anything'/>
    <xs:element name='cheap' type='t:Cheap'/>";

#[test]
fn derived_types_have_what_their_bases_have() {
    let mut both = Both::new(&[DERIVED]);
    let element =
        |name: &str, attributes: &str, inside: &str| format!("<{name} xmlns='urn:t' {attributes}>{inside}</{name}>");
    for (text, verdict) in [
        (element("e", "y='' x='1'", "<a>1</a><b>2</b>"), Valid),
        (element("e", "y=''", "<a>1</a>"), Valid),
        (element("e", "x='1'", "<a>1</a>"), Invalid),
        (element("e", "y=''", "<b>2</b>"), Invalid),
        (element("res", "y=''", "<a>1</a>"), Valid),
        (element("res", "y='' x='1'", "<a>1</a>"), Invalid),
        (element("res", "", "<a>1</a>"), Invalid),
        (element("res", "y=''", "<a>1</a><b>1</b>"), Invalid),
        (element("cheap", "unit=''", "9"), Valid),
        (element("cheap", "unit=''", "10"), Invalid),
        (element("cheap", "", "9"), Invalid),
        (element("abs", "", ""), Invalid),
        (element("anything", "z='1'", "text<int>1</int><unknown/>"), Valid),
        (element("anything", "", "<int>x</int>"), Invalid),
    ] {
        both.judges(&[(&text, verdict)]);
    }
}

#[test]
fn xsi_type_may_name_what_is_derived_and_not_blocked() {
    let mut both = Both::new(&[DERIVED]);
    let typed = |name: &str, ty: &str, more: &str, inside: &str| {
        format!(
            "<{name} xmlns='urn:t' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:type='{ty}' {more}>{inside}</{name}>"
        )
    };
    let built_in = |name: &str, ty: &str, inside: &str| {
        format!(
            "<p:{name} xmlns:p='urn:t' xmlns='http://www.w3.org/2001/XMLSchema' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:type='{ty}'>{inside}</p:{name}>"
        )
    };
    // A canonical payload keeps the default namespace only where an element uses it, so these elements are inside of
    // one.
    let inside =
        |name: &str, ty: &str, text: &str| format!("<anything xmlns='urn:t'>{}</anything>", built_in(name, ty, text));
    for (text, verdict) in [
        (typed("a", "E", "y=''", "<a>1</a><b>2</b>"), Valid),
        (typed("a", "R", "y=''", "<a>1</a>"), Valid),
        // libxml2 doesn't collapse the white space of a QName here.
        (typed("a", " R\n", "y=''", "<a>1</a>"), ValidHere),
        (typed("a", "A", "", "<a>1</a>"), Valid),
        (typed("a", "Nothing", "", "<a>1</a>"), Invalid),
        (typed("a", "p:E", "y=''", "<a>1</a>"), Invalid),
        (typed("e", "A", "", "<a>1</a>"), Invalid),
        (typed("noext", "E", "y=''", "<a>1</a>"), Invalid),
        (typed("noext", "A", "", "<a>1</a>"), Valid),
        (typed("nores", "R", "y=''", "<a>1</a>"), Invalid),
        (typed("nores", "E", "y=''", "<a>1</a>"), Valid),
        (typed("abs", "Concrete", "", ""), Valid),
        (typed("abs", "Abstract", "", ""), Invalid),
        (typed("n", "Extended", "", ""), Invalid),
        (typed("n", "NoExtension", "", ""), Valid),
        (typed("int", "Small", "", "9"), Valid),
        (typed("int", "Small", "", "10"), Invalid),
        (typed("decimal", "Small", "", "9"), Valid),
        (typed("int", "Priced", "unit=''", "9"), Valid),
        (typed("int", "Cheap", "unit=''", "9"), Valid),
        (typed("int", "Cheap", "", "9"), Invalid),
        (typed("anything", "Small", "", "9"), Valid),
        (typed("anything", "Small", "", "10"), Invalid),
        (typed("anything", "A", "", "<a>1</a>"), Valid),
        (inside("decimal", "int", "1"), Invalid),
    ] {
        both.judges(&[(&text, verdict)]);
    }
    let mut plain =
        Both::new(&["<xs:schema><xs:element name='d' type='xs:decimal'/><xs:element name='r'/></xs:schema>"]);
    let xsd = "xmlns:q='http://www.w3.org/2001/XMLSchema' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'";
    for (ty, value, verdict) in
        [("q:int", "1", Valid), ("q:int", "1.5", Invalid), ("q:string", "1", Invalid), ("q:decimal", "1.5", Valid)]
    {
        // The canonical form keeps the prefix because an attribute uses it, too.
        plain.judges(&[(&format!("<r {xsd} q:a=''><d xsi:type='{ty}'>{value}</d></r>"), verdict)]);
    }
}

#[test]
fn nil_elements_are_empty() {
    let mut both = Both::new(&["
        <xs:element name='n' type='xs:int' nillable='true'/><xs:element name='i' type='xs:int'/>
        <xs:element name='c' nillable='true'><xs:complexType><xs:sequence><xs:element name='a'/></xs:sequence><xs:attribute name='k' use='required'/></xs:complexType></xs:element>
        <xs:element name='f' type='xs:int' nillable='true' fixed='1'/>"]);
    let nil = |name: &str, value: &str, more: &str, inside: &str| {
        format!(
            "<{name} xmlns='urn:t' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:nil='{value}' {more}>{inside}</{name}>"
        )
    };
    for (text, verdict) in [
        (nil("n", "true", "", ""), Valid),
        (nil("n", " 1 ", "", ""), Valid),
        (nil("n", "true", "", "5"), Invalid),
        (nil("n", "false", "", "5"), Valid),
        (nil("n", "false", "", ""), Invalid),
        (nil("n", "yes", "", "5"), Invalid),
        (nil("i", "true", "", ""), Invalid),
        (nil("i", "false", "", "5"), Invalid),
        (nil("c", "true", "k=''", ""), Valid),
        (nil("c", "true", "", ""), Invalid),
        (nil("c", "true", "k=''", "<a/>"), Invalid),
        (nil("c", "false", "k=''", "<a/>"), Valid),
        (nil("f", "true", "", ""), Invalid),
    ] {
        both.judges(&[(&text, verdict)]);
    }
}

#[test]
fn values_that_the_schema_gives_stand_for_empty_elements() {
    let mut both = Both::new(&["
        <xs:simpleType name='Small'><xs:restriction base='xs:decimal'><xs:maxInclusive value='9'/></xs:restriction></xs:simpleType>
        <xs:element name='d' type='xs:int' default='5'/><xs:element name='f' type='xs:decimal' fixed='10'/>
        <xs:element name='mf' fixed='a b'><xs:complexType mixed='true'><xs:sequence><xs:element name='a' minOccurs='0'/></xs:sequence></xs:complexType></xs:element>
        <xs:element name='m' default='text'><xs:complexType mixed='true'><xs:sequence><xs:element name='a' minOccurs='0'/></xs:sequence></xs:complexType></xs:element>"]);
    both.judges(&[
        ("<d xmlns='urn:t'/>", Valid),
        ("<d xmlns='urn:t'>7</d>", Valid),
        ("<d xmlns='urn:t'>x</d>", Invalid),
        ("<d xmlns='urn:t'> </d>", Invalid),
        ("<f xmlns='urn:t'/>", Valid),
        // libxml2 compares the literals.
        ("<f xmlns='urn:t'>10.0</f>", ValidHere),
        ("<f xmlns='urn:t'>11</f>", Invalid),
        ("<mf xmlns='urn:t'/>", Valid),
        ("<mf xmlns='urn:t'>a<?pi?> b</mf>", Valid),
        ("<mf xmlns='urn:t'>ab</mf>", Invalid),
        // libxml2 compares the text alone.
        ("<mf xmlns='urn:t'>a b<a/></mf>", InvalidHere),
        ("<m xmlns='urn:t'/>", Valid),
        ("<m xmlns='urn:t'>other<a/></m>", Valid),
    ]);
}

#[test]
fn members_of_substitution_groups_stand_for_their_heads() {
    let mut both = Both::new(&["
        <xs:complexType name='T'><xs:sequence/></xs:complexType>
        <xs:complexType name='X'><xs:complexContent><xs:extension base='t:T'><xs:attribute name='x'/></xs:extension></xs:complexContent></xs:complexType>
        <xs:element name='head' type='t:T' abstract='true'/>
        <xs:element name='one' substitutionGroup='t:head'/>
        <xs:element name='two' type='t:X' substitutionGroup='t:one'/>
        <xs:element name='hidden' type='t:X' substitutionGroup='t:head' abstract='true'/>
        <xs:element name='blocked' type='t:T' block='substitution'/><xs:element name='b1' substitutionGroup='t:blocked'/>
        <xs:element name='noext' type='t:T' block='extension'/><xs:element name='n1' substitutionGroup='t:noext'/><xs:element name='n2' type='t:X' substitutionGroup='t:noext'/>
        <xs:element name='r'><xs:complexType><xs:sequence><xs:element ref='t:head' maxOccurs='20'/></xs:sequence></xs:complexType></xs:element>
        <xs:element name='s'><xs:complexType><xs:sequence><xs:element ref='t:blocked' minOccurs='0'/><xs:element ref='t:noext' minOccurs='0'/></xs:sequence></xs:complexType></xs:element>
        <xs:element name='u'><xs:complexType><xs:all><xs:element ref='t:head'/></xs:all></xs:complexType></xs:element>"]);
    let s = |inside: &str| format!("<s xmlns='urn:t'>{inside}</s>");
    for (text, verdict) in [
        (root("<one/>"), Valid),
        (root("<two x='1'/><one/>"), Valid),
        (root("<one x='1'/>"), Invalid),
        (root("<head/>"), Invalid),
        (root("<hidden/>"), Invalid),
        (root("<blocked/>"), Invalid),
        (s("<blocked/><noext/>"), Valid),
        (s("<b1/>"), Invalid),
        (s("<n1/>"), Valid),
        (s("<n2/>"), Invalid),
        ("<u xmlns='urn:t'><two/></u>".to_owned(), Valid),
        ("<u xmlns='urn:t'><two/><one/></u>".to_owned(), Invalid),
        ("<head xmlns='urn:t'/>".to_owned(), Invalid),
    ] {
        both.judges(&[(&text, verdict)]);
    }
}

#[test]
fn names_are_qualified_as_their_documents_say() {
    let mut both = Both::new(&[
        "<xs:schema targetNamespace='urn:t'><xs:include schemaLocation='1.xsd'/><xs:import namespace='urn:o' schemaLocation='2.xsd'/>
           <xs:element name='r'><xs:complexType><xs:sequence><xs:element name='u' type='xs:int'/><xs:element name='q' form='qualified' type='t:Chameleon'/>
           <xs:group ref='t:group'/><xs:element ref='o:foreign' xmlns:o='urn:o'/></xs:sequence></xs:complexType></xs:element></xs:schema>",
        "<xs:schema elementFormDefault='qualified'><xs:simpleType name='Small'><xs:restriction base='xs:int'><xs:maxInclusive value='9'/></xs:restriction></xs:simpleType>
           <xs:complexType name='Chameleon'><xs:sequence><xs:element name='s' type='Small'/></xs:sequence></xs:complexType>
           <xs:group name='group'><xs:choice><xs:element name='g' type='Small'/><xs:element ref='global'/></xs:choice></xs:group><xs:element name='global'/></xs:schema>",
        "<xs:schema targetNamespace='urn:o'><xs:element name='foreign'><xs:complexType><xs:sequence><xs:element name='l' type='xs:int'/></xs:sequence></xs:complexType></xs:element></xs:schema>",
    ]);
    let foreign = "<o:foreign xmlns:o='urn:o'><l>1</l></o:foreign>";
    let wrap = |inside: &str| format!("<t:r xmlns:t='urn:t'>{inside}</t:r>");
    for (text, verdict) in [
        (wrap(&format!("<u>1</u><t:q><t:s>1</t:s></t:q><t:g>1</t:g>{foreign}")), Valid),
        (wrap(&format!("<u>1</u><t:q><t:s>1</t:s></t:q><t:global>1</t:global>{foreign}")), Valid),
        (wrap(&format!("<t:u>1</t:u><t:q><t:s>1</t:s></t:q><t:g>1</t:g>{foreign}")), Invalid),
        (wrap(&format!("<u>1</u><q><t:s>1</t:s></q><t:g>1</t:g>{foreign}")), Invalid),
        (wrap(&format!("<u>1</u><t:q><s>1</s></t:q><t:g>1</t:g>{foreign}")), Invalid),
        (wrap(&format!("<u>1</u><t:q><t:s>10</t:s></t:q><t:g>1</t:g>{foreign}")), Invalid),
        (
            wrap("<u>1</u><t:q><t:s>1</t:s></t:q><t:g>1</t:g><o:foreign xmlns:o='urn:o'><o:l>1</o:l></o:foreign>"),
            Invalid,
        ),
    ] {
        both.judges(&[(&text, verdict)]);
    }
}

#[test]
fn ids_are_unique_and_references_lead_somewhere() {
    let mut both = Both::new(&["
        <xs:element name='r'><xs:complexType><xs:sequence><xs:element name='e' maxOccurs='unbounded'><xs:complexType>
          <xs:attribute name='id' type='xs:ID'/><xs:attribute name='ref' type='xs:IDREF'/><xs:attribute name='refs' type='xs:IDREFS'/>
        </xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element>"]);
    both.judges(&[
        (&root("<e id='a'/><e ref='a'/><e refs='b a'/><e id=' b '/>"), Valid),
        (&root("<e id='a'/><e id='a'/>"), Invalid),
        // libxml2 doesn't check references.
        (&root("<e ref='a'/>"), InvalidHere),
        (&root("<e id='b'/><e refs='b a'/>"), InvalidHere),
        (&root("<e id='1'/>"), Invalid),
    ]);
}

#[test]
fn what_breaks_a_rule_is_said() {
    let element = |inside: &str| format!("<xs:element name='r'><xs:complexType>{inside}</xs:complexType></xs:element>");
    for (xsd, reason) in [
        (element(&format!("<xs:sequence>{}{}</xs:sequence>", el("a", "minOccurs='0'"), el("a", ""))), "an element <a> fits both this declaration and the one at "),
        (element(&format!("<xs:sequence><xs:any minOccurs='0'/>{}</xs:sequence>", el("a", ""))), "an element <a> fits both this declaration and the xs:any at "),
        (element("<xs:sequence><xs:any minOccurs='0'/><xs:any namespace='urn:o'/></xs:sequence>"), "an element fits both this xs:any and the one at "),
        (element(&format!("<xs:sequence maxOccurs='100000'>{}{}</xs:sequence>", el("a", ""), el("b", "minOccurs='0'"))), "particles"),
        ("<xs:element name='r' type='t:missing'/>".to_owned(), "no type"),
        ("<xs:complexType name='L'><xs:complexContent><xs:extension base='t:L'/></xs:complexContent></xs:complexType><xs:element name='r' type='t:L'/>".to_owned(), "derived from itself"),
        ("<xs:group name='g'><xs:sequence><xs:group ref='t:g'/></xs:sequence></xs:group><xs:element name='r'><xs:complexType><xs:group ref='t:g'/></xs:complexType></xs:element>".to_owned(), "contains itself"),
    ] {
        let found = refused(&xsd);
        assert!(found.contains(reason), "{found} for {xsd}");
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
            let verdict = both.verdict(payload.as_str());
            prop_assert!(matches!(verdict, Valid | Invalid), "{:?}: {} {:?}", verdict, text, both.rules(&text));
            prop_assert!(!changes.is_empty() || verdict == Valid, "{}", text);
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
