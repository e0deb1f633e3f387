//! Random schemas, with random payloads and mutations of their JSON. Python's `jsonschema` judges the schemas, and Python's
//! `xmlschema` has an opinion of its own on the form.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use systole_xml::ladder::Canonical;
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::{Catalog, PayloadSchema, Validator};
use systole_xml::vocab::XmlLimits;

use super::judges::{self, Case};
use crate::random_schemas::tree::Dice;

/// Simple types: each with literals that JSON carries as they are, and with others.
const SIMPLE: [(&str, &[&str], &[&str]); 16] = [
    ("xs:string", &["", "a <b> & c", " x ", "two\nlines\ttabs", "\"quoted\" \\", "é\u{1F600}"], &[]),
    ("xs:int", &["0", "-7", "12", "2147483647"], &["+12", "007", " 7 ", "-0"]),
    ("xs:boolean", &["true", "false"], &["1", "0", " true "]),
    ("xs:unsignedByte", &["0", "255"], &["+0", "0255"]),
    ("xs:double", &["1.5", "-0.25", "1e3", "INF", "NaN"], &[".5", "+1", "1.", " 2 "]),
    ("xs:long", &["9007199254740991", "-9223372036854775808", "9007199254740993", "3"], &["+3"]),
    ("xs:integer", &["123456789012345678901234567890", "-5"], &["05"]),
    ("xs:decimal", &["1.50", "-3", "0.1000000000000000000001", "12345678901234567.5"], &["+1.5", ".5", "5."]),
    ("size", &["small", "big"], &[]),
    ("short", &["ab", "abc"], &[]),
    ("few", &["0", "5"], &["+5"]),
    ("ints", &["", "1", "1 2 3"], &["1  2", " 1", "+1 2"]),
    ("either", &["12", "none"], &["+12"]),
    ("code", &["A-1", "ZZ-12"], &[]),
    ("xs:date", &["2026-01-31"], &[" 2026-01-31 "]),
    ("xs:token", &["a b"], &[" a  b "]),
];

const TYPES: &str = "<xs:simpleType name='size'><xs:restriction base='xs:string'><xs:enumeration value='small'/>\
    <xs:enumeration value='big'/></xs:restriction></xs:simpleType>\
    <xs:simpleType name='short'><xs:restriction base='xs:string'><xs:minLength value='2'/><xs:maxLength value='3'/>\
    </xs:restriction></xs:simpleType>\
    <xs:simpleType name='few'><xs:restriction base='xs:int'><xs:minInclusive value='0'/><xs:maxExclusive value='6'/>\
    </xs:restriction></xs:simpleType>\
    <xs:simpleType name='ints'><xs:list itemType='xs:int'/></xs:simpleType>\
    <xs:simpleType name='either'><xs:union memberTypes='xs:int size2'/></xs:simpleType>\
    <xs:simpleType name='size2'><xs:restriction base='xs:string'><xs:enumeration value='none'/></xs:restriction>\
    </xs:simpleType>\
    <xs:simpleType name='code'><xs:restriction base='xs:string'><xs:pattern value='[A-Z]+-[0-9]{1,2}'/></xs:restriction>\
    </xs:simpleType>";

/// The number of types at the begin of [`SIMPLE`] that keywords tell whole.
const TOLD: [usize; 11] = [0, 1, 2, 3, 4, 6, 8, 9, 10, 12, 13];

#[derive(Debug)]
enum Type {
    Simple(usize),
    Complex { attributes: Vec<(String, usize, bool)>, content: Content },
}

#[derive(Debug)]
enum Content {
    Empty,
    Text(usize),
    All(Vec<Particle>),
    Children { group: Box<Particle>, mixed: bool },
}

#[derive(Debug)]
enum Particle {
    Element { name: String, ty: Type, min: usize, max: usize, nillable: bool },
    Group { choice: bool, parts: Vec<Particle>, min: usize, max: usize },
    Any { min: usize, max: usize },
}

/// The kind of schema to make.
#[derive(Clone, Copy)]
struct Style {
    /// Keywords tell all rules, so that each value which the schema takes is valid.
    told: bool,
    /// `xmlschema` has the same form.
    common: bool,
}

struct Generator<'d> {
    dice: &'d mut Dice,
    style: Style,
    names: usize,
}

impl Generator<'_> {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("e{}", self.names)
    }

    fn simple(&mut self) -> usize {
        if self.style.told { self.dice.pick(&TOLD) } else { self.dice.roll(SIMPLE.len()) }
    }

    fn ty(&mut self, depth: usize) -> Type {
        if depth == 0 || self.dice.roll(3) > 0 {
            return Type::Simple(self.simple());
        }
        self.complex(depth)
    }

    fn complex(&mut self, depth: usize) -> Type {
        let attributes = (0..self.dice.roll(3))
            .map(|number| (format!("k{number}"), self.simple(), self.style.common || self.dice.roll(2) == 0))
            .collect();
        let content = match self.dice.roll(8) {
            0 if !self.style.common => Content::Empty,
            1 => Content::Text(self.simple()),
            2 => Content::All((0..=self.dice.roll(3)).map(|_| self.element(depth - 1, 1)).collect()),
            3 if !self.style.told && !self.style.common => {
                Content::Children { group: self.group(depth - 1, 2, true).into(), mixed: true }
            }
            _ => {
                let repeats = !self.style.told && !self.style.common;
                Content::Children { group: self.group(depth - 1, 2, repeats).into(), mixed: false }
            }
        };
        Type::Complex { attributes, content }
    }

    fn element(&mut self, depth: usize, most: usize) -> Particle {
        let max = if most == 1 { 1 } else { self.dice.pick(&[1, 1, 1, 2, 3, 9]) };
        let nillable = !self.style.common && self.dice.roll(5) == 0;
        Particle::Element { name: self.name(), ty: self.ty(depth), min: self.dice.roll(2), max, nillable }
    }

    fn group(&mut self, depth: usize, deeper: usize, repeats: bool) -> Particle {
        let choice = self.dice.roll(3) == 0;
        let mut parts: Vec<Particle> = Vec::new();
        for _ in 0..=self.dice.roll(4) {
            let part = match self.dice.roll(8) {
                0 | 1 if deeper > 0 => self.group(depth, deeper - 1, repeats),
                2 if !self.style.told && !self.style.common => {
                    Particle::Any { min: self.dice.roll(2), max: 1 + self.dice.roll(2) }
                }
                3 if repeats && !choice => {
                    // Two elements of one name, with another one between them.
                    let (name, ty) = (self.name(), self.simple());
                    let same = || Particle::Element {
                        name: name.clone(),
                        ty: Type::Simple(ty),
                        min: 1,
                        max: 1,
                        nillable: false,
                    };
                    parts.push(same());
                    let Particle::Element { name, ty, max, nillable, .. } = self.element(depth, 3) else {
                        unreachable!()
                    };
                    parts.push(Particle::Element { name, ty, min: 1, max, nillable });
                    same()
                }
                _ => self.element(depth, 3),
            };
            let many_wildcards =
                matches!(part, Particle::Any { .. }) && parts.iter().any(|part| matches!(part, Particle::Any { .. }));
            if !many_wildcards {
                parts.push(part);
            }
        }
        let max = if repeats && self.dice.roll(4) == 0 { 2 } else { 1 };
        // A wildcard, or a part that may be left out, next to itself is ambiguous.
        Particle::Group { choice, parts, min: self.dice.roll(2), max }
    }
}

fn write_type(out: &mut String, ty: &Type) {
    let Type::Complex { attributes, content } = ty else { return };
    let mixed = matches!(content, Content::Children { mixed: true, .. });
    let _ = write!(out, "<xs:complexType{}>", if mixed { " mixed='true'" } else { "" });
    match content {
        Content::Empty => {}
        Content::Text(simple) => {
            let _ = write!(out, "<xs:simpleContent><xs:extension base='{}'>", SIMPLE[*simple].0);
        }
        Content::All(parts) => {
            out.push_str("<xs:all>");
            parts.iter().for_each(|part| write_particle(out, part));
            out.push_str("</xs:all>");
        }
        Content::Children { group, .. } => write_particle(out, group),
    }
    for (name, simple, required) in attributes {
        let required = if *required { " use='required'" } else { "" };
        let _ = write!(out, "<xs:attribute name='{name}' type='{}'{required}/>", SIMPLE[*simple].0);
    }
    if matches!(content, Content::Text(_)) {
        out.push_str("</xs:extension></xs:simpleContent>");
    }
    out.push_str("</xs:complexType>");
}

fn write_particle(out: &mut String, particle: &Particle) {
    match particle {
        Particle::Element { name, ty, min, max, nillable } => {
            let _ = write!(out, "<xs:element name='{name}' minOccurs='{min}' maxOccurs='{max}'");
            if *nillable {
                out.push_str(" nillable='true'");
            }
            match ty {
                Type::Simple(simple) => {
                    let _ = write!(out, " type='{}'/>", SIMPLE[*simple].0);
                }
                complex => {
                    out.push('>');
                    write_type(out, complex);
                    out.push_str("</xs:element>");
                }
            }
        }
        Particle::Group { choice, parts, min, max } => {
            let tag = if *choice { "choice" } else { "sequence" };
            let _ = write!(out, "<xs:{tag} minOccurs='{min}' maxOccurs='{max}'>");
            parts.iter().for_each(|part| write_particle(out, part));
            let _ = write!(out, "</xs:{tag}>");
        }
        Particle::Any { min, max } => {
            let _ =
                write!(out, "<xs:any namespace='##other' processContents='skip' minOccurs='{min}' maxOccurs='{max}'/>");
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\r', "&#xD;")
}

/// A writer of random payloads, as the encoders of the pump would write them.
struct Instance<'d> {
    dice: &'d mut Dice,
    /// Literals that JSON carries as they are.
    plain: bool,
    out: String,
}

impl Instance<'_> {
    fn literal(&mut self, simple: usize) -> &'static str {
        let (_, plain, others) = SIMPLE[simple];
        if !self.plain && !others.is_empty() && self.dice.roll(3) == 0 {
            self.dice.pick(others)
        } else {
            self.dice.pick(plain)
        }
    }

    fn element(&mut self, name: &str, declarations: &str, ty: &Type, nillable: bool) {
        let nil = nillable && self.dice.roll(2) == 0;
        let _ = write!(self.out, "<{name}{declarations}");
        if nil {
            self.out.push_str(" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"");
        }
        if let Type::Complex { attributes, .. } = ty {
            for (name, simple, required) in attributes {
                if *required || self.dice.roll(2) == 0 {
                    let value = self.literal(*simple);
                    let value = value.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
                    let value = value.replace('\n', "&#xA;").replace('\t', "&#x9;");
                    let _ = write!(self.out, " {name}=\"{value}\"");
                }
            }
        }
        if nil {
            self.out.push_str(" xsi:nil=\"true\"");
        }
        self.out.push('>');
        if !nil {
            match ty {
                Type::Simple(simple) | Type::Complex { content: Content::Text(simple), .. } => {
                    let text = self.literal(*simple);
                    self.out.push_str(&escaped(text));
                }
                Type::Complex { content: Content::Empty, .. } => {}
                Type::Complex { content: Content::All(parts), .. } => {
                    let mut order: Vec<&Particle> = parts.iter().collect();
                    self.dice.shuffle(&mut order);
                    order.into_iter().for_each(|part| self.particle(part, false));
                }
                Type::Complex { content: Content::Children { group, mixed }, .. } => {
                    self.text(*mixed);
                    self.particle(group, *mixed);
                }
            }
        }
        let _ = write!(self.out, "</{name}>");
    }

    fn text(&mut self, mixed: bool) {
        if mixed && self.dice.roll(2) == 0 {
            let text = self.dice.pick(&["some ", " words\n", "&amp;", "  "]);
            self.out.push_str(text);
        }
    }

    fn particle(&mut self, particle: &Particle, mixed: bool) {
        let (min, max) = match particle {
            Particle::Element { min, max, .. } | Particle::Group { min, max, .. } | Particle::Any { min, max } => {
                (*min, *max)
            }
        };
        for _ in 0..min + self.dice.roll((max - min).min(2) + 1) {
            match particle {
                Particle::Element { name, ty, nillable, .. } => {
                    self.element(name, "", ty, *nillable);
                    self.text(mixed);
                }
                Particle::Any { .. } => {
                    let any = match self.out.starts_with("<p:") {
                        false => [
                            "<o xmlns=\"urn:o\"></o>",
                            "<o xmlns=\"urn:o\">text</o>",
                            "<o xmlns=\"urn:o\" k=\"1\"> <i xmlns=\"\">a</i><o>b</o>c</o>",
                        ],
                        true => [
                            "<p:o xmlns:p=\"urn:o\"></p:o>",
                            "<p:o xmlns:p=\"urn:o\">text</p:o>",
                            "<p:o xmlns:p=\"urn:o\" k=\"1\"> <i>a</i><p:o>b</p:o>c</p:o>",
                        ],
                    };
                    let any = self.dice.pick(&any);
                    self.out.push_str(any);
                    self.text(mixed);
                }
                Particle::Group { choice: true, parts, .. } => {
                    let part = self.dice.roll(parts.len());
                    self.particle(&parts[part], mixed);
                }
                Particle::Group { parts, .. } => parts.iter().for_each(|part| self.particle(part, mixed)),
            }
        }
    }
}

/// A random schema with some valid payloads.
struct Sample {
    xsd: String,
    schema: PayloadSchema,
    payloads: Vec<Canonical>,
}

fn sample(dice: &mut Dice, style: Style, plain: bool) -> Option<Sample> {
    let qualified = style.common || dice.roll(3) > 0;
    let mut generator = Generator { dice, style, names: 0 };
    let root = if generator.dice.roll(8) == 0 && !style.common {
        Type::Simple(generator.simple())
    } else {
        generator.complex(3)
    };
    let form = if qualified { " elementFormDefault='qualified'" } else { "" };
    let mut xsd = format!(
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:t' xmlns='urn:t'{form}>{TYPES}\
         <xs:element name='root'"
    );
    match &root {
        Type::Simple(simple) => {
            let _ = write!(xsd, " type='{}'/>", SIMPLE[*simple].0);
        }
        complex => {
            xsd.push('>');
            write_type(&mut xsd, complex);
            xsd.push_str("</xs:element>");
        }
    }
    xsd.push_str("</xs:schema>");
    // Some random content models are ambiguous, which the Recommendation forbids.
    let schema = PayloadSchema::from_xsd("random.xsd", &xsd).ok()?.into_iter().next()?;
    let (name, declarations) =
        if schema.is_qualified() { ("root", " xmlns=\"urn:t\"") } else { ("p:root", " xmlns:p=\"urn:t\"") };
    let mut payloads = Vec::new();
    for _ in 0..4 {
        let mut instance = Instance { dice, plain, out: String::new() };
        instance.element(name, declarations, &root, false);
        let payload = canonicalize(&instance.out.clone().into(), &XmlLimits::default()).unwrap();
        assert_eq!(payload.as_str(), instance.out, "it is canonical");
        if let Err(error) = validator(&schema).validate(payload.clone()) {
            // A choice with an empty branch, repeated, may take less than it has to.
            assert!(error.rule.contains("missing") || error.rule.contains("expected"), "{error}\n{xsd}\n{payload:?}");
            continue;
        }
        payloads.push(payload);
    }
    Some(Sample { xsd, schema, payloads })
}

fn validator(schema: &PayloadSchema) -> Validator {
    Validator::new(Catalog::only([schema.clone()]).into())
}

/// Reads JSON as a payload, and validates it.
fn accept(schema: &PayloadSchema, json: &str) -> Result<Canonical, String> {
    let limits = XmlLimits::default();
    let read = schema.from_json(json, &limits).map_err(|error| error.to_string())?;
    let payload = canonicalize(&read.xml().to_owned().into(), &limits).map_err(|error| error.to_string())?;
    match validator(schema).validate(payload.clone()) {
        Ok(_) => Ok(payload),
        Err(error) => Err(format!("{}: {error}", read.pointers(&error)[0])),
    }
}

fn cases() -> u64 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300)
}

#[test]
fn valid_payloads_come_back_from_json_byte_for_byte() {
    let mut compared = 0;
    for seed in 0..cases() {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let Some(sample) = sample(&mut dice, Style { told: false, common: false }, false) else { continue };
        for payload in &sample.payloads {
            let told = |json: &str| format!("seed {seed}\n{}\n{payload:?}\n{json}", sample.xsd);
            let json = sample.schema.to_json(payload);
            let parsed: Value = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {}", told(&json)));
            let back = accept(&sample.schema, &json).unwrap_or_else(|error| panic!("{error}: {}", told(&json)));
            assert_eq!(back.as_str(), payload.as_str(), "{}", told(&json));
            // The order of properties doesn't matter where the schema knows it, and the form is one only.
            let named = Catalog::only([sample.schema.clone()]);
            let with_name = named.to_named_json(payload).unwrap();
            let read = named.from_named_json(&with_name, |_| true, &XmlLimits::default()).unwrap();
            let again = canonicalize(&read.into_xml().into(), &XmlLimits::default()).unwrap();
            assert_eq!(again.as_str(), payload.as_str(), "{}", told(&with_name));
            if !sample.xsd.contains("<xs:all>") {
                let sorted = serde_json::to_string(&sorted(&parsed)).unwrap();
                if !sorted.contains('.') && !sorted.contains("e+") {
                    let back =
                        accept(&sample.schema, &sorted).unwrap_or_else(|error| panic!("{error}: {}", told(&sorted)));
                    assert_eq!(back.as_str(), payload.as_str(), "{}", told(&sorted));
                }
            }
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared} payloads");
}

/// A value whose properties are in another order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, &Value> = fields.iter().collect();
            Value::Object(fields.into_iter().rev().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// The values that a mutation puts in the place of others.
fn replacements() -> Vec<Value> {
    let values = json!([12, 1.5, "text", true, null, [], {}, "12", [1], -1, 300, 1e3, 3_000_000_000_u64, "", "small", "1.5", { "$": [] }]);
    values.as_array().unwrap().clone()
}

/// Changes one part of a value.
fn mutate(value: &mut Value, dice: &mut Dice) {
    match value {
        Value::Object(fields) if !fields.is_empty() && dice.roll(6) > 0 => {
            let keys: Vec<String> = fields.keys().cloned().collect();
            let key = dice.pick(&keys);
            match dice.roll(6) {
                0 => drop(fields.shift_remove(&key)),
                1 => {
                    let known = dice.pick(&["e1", "e2", "e3", "e4", "k0", "@k0", "$", "$any", "@xsi:nil"]);
                    fields.insert(known.to_owned(), dice.pick(&replacements()));
                }
                _ => mutate(fields.get_mut(&key).unwrap(), dice),
            }
        }
        Value::Array(items) if dice.roll(3) > 0 => match (dice.roll(4), items.len()) {
            (_, 0) => items.push(dice.pick(&replacements())),
            (0, count) => drop(items.remove(dice.roll(count))),
            (1, count) => {
                let item = items[dice.roll(count)].clone();
                items.push(item);
            }
            (_, count) => mutate(&mut items[dice.roll(count)], dice),
        },
        value => *value = dice.pick(&replacements()),
    }
}

/// Numbers and truth values in the spellings of XML that JSON doesn't have are read, though no schema tells them; so is an array
/// of the content where properties have names.
fn is_exact_form(json: &Value) -> bool {
    match json {
        Value::Object(fields) => fields
            .iter()
            .any(|(key, value)| key == "$" && value.is_array() || key.starts_with("@xsi:") || is_exact_form(value)),
        Value::Array(items) => items.iter().any(is_exact_form),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[test]
fn a_schema_takes_the_json_of_valid_payloads_and_no_other() {
    let (mut cases_made, mut expected) = (Vec::new(), Vec::new());
    for seed in 0..cases() {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x55);
        let told = dice.roll(2) == 0;
        let Some(sample) = sample(&mut dice, Style { told, common: false }, true) else { continue };
        let schema = sample.schema.json_schema();
        let is_whole = !schema.to_string().contains("\"description\"");
        let mut values = Vec::new();
        for payload in &sample.payloads {
            let json: Value = serde_json::from_str(&sample.schema.to_json(payload)).unwrap();
            for _ in 0..4 {
                let mut changed = json.clone();
                for _ in 0..=dice.roll(2) {
                    mutate(&mut changed, &mut dice);
                }
                values.push((changed, None));
            }
            values.push((json, Some(true)));
        }
        let read: Vec<_> = values
            .into_iter()
            .map(|(value, known)| {
                let accepted = accept(&sample.schema, &value.to_string());
                (value, known, accepted)
            })
            .collect();
        cases_made.push(Case::Schema {
            schema: schema.clone(),
            values: read.iter().map(|(value, ..)| value.clone()).collect(),
        });
        expected.push((seed, sample, is_whole, read));
    }
    let (mut taken, mut refused) = (0, 0);
    let rust = cases_made.iter().map(|case| {
        let Case::Schema { schema, values } = case else { unreachable!() };
        values.iter().map(|value| super::checker::check(schema, value).is_ok()).collect::<Vec<bool>>()
    });
    let mut judges = vec![("the checker", rust.collect::<Vec<_>>())];
    judges.extend(judges::python(&cases_made).map(|told| ("jsonschema", told)));
    for (judge, told) in judges {
        for ((seed, sample, is_whole, read), told) in expected.iter().zip(told) {
            for ((value, known, accepted), takes) in read.iter().zip(told) {
                let context = || {
                    let schema = sample.schema.json_schema();
                    let why = super::checker::check(schema, value);
                    format!("{judge}, seed {seed}\n{}\n{schema}\n{value}\n{why:?}\n{accepted:?}", sample.xsd)
                };
                if known.is_some() {
                    assert!(takes && accepted.is_ok(), "a valid payload is refused: {}", context());
                } else if takes {
                    taken += 1;
                    assert!(accepted.is_ok() || !is_whole, "the schema takes what is not valid: {}", context());
                } else {
                    refused += 1;
                    assert!(
                        accepted.is_err() || is_exact_form(value),
                        "the schema refuses what is valid: {}",
                        context()
                    );
                }
            }
        }
    }
    assert!(taken > 100 && refused > 500, "{taken} taken, {refused} refused");
}

#[test]
fn the_form_is_that_of_xmlschema_where_both_have_one() {
    let mut cases_made = Vec::new();
    for seed in 0..cases() / 4 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xAA);
        let Some(sample) = sample(&mut dice, Style { told: true, common: true }, true) else { continue };
        let with_json = |payload: &Canonical| {
            (payload.as_str().to_owned(), serde_json::from_str(&sample.schema.to_json(payload)).unwrap())
        };
        cases_made
            .push(Case::Form { xsd: sample.xsd.clone(), payloads: sample.payloads.iter().map(with_json).collect() });
    }
    assert!(cases_made.len() > 20, "{} schemas", cases_made.len());
    let Some(told) = judges::python(&cases_made) else { return };
    for (case, told) in cases_made.iter().zip(told) {
        let Case::Form { xsd, payloads } = case else { unreachable!() };
        for ((xml, json), same) in payloads.iter().zip(told) {
            assert!(same, "{xsd}\n{xml}\n{json:#}");
        }
    }
}
