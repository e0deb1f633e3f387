//! Random instances of random schemas: the engine must agree with a naive reference model, and libxml2 too, except for
//! the kinds of schemas that it is known to get wrong.

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use systole_xml::ladder::Canonical;
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::oracle::Judges;
use systole_xml::schema::{PayloadSchema, XsdDocument};
use systole_xml::vocab::XmlLimits;

/// A simple type with valid and invalid literals.
struct Literals {
    definition: &'static str,
    valid: &'static [&'static str],
    invalid: &'static [&'static str],
}

const TYPES: [Literals; 9] = [
    Literals {
        definition: "<xs:restriction base='xs:int'><xs:minInclusive value='-5'/><xs:maxExclusive value='10'/></xs:restriction>",
        valid: &["0", "-5", "+09"],
        invalid: &["10", "-6", "", "1.0", "a"],
    },
    Literals {
        definition: "<xs:restriction base='xs:boolean'/>",
        valid: &["true", "0", "1"],
        invalid: &["", "TRUE", "2"],
    },
    Literals {
        definition: "<xs:restriction base='xs:decimal'><xs:totalDigits value='4'/><xs:fractionDigits value='2'/></xs:restriction>",
        valid: &["12.34", "-0.50", "1"],
        invalid: &["12345", "1.234", "1e1", "."],
    },
    Literals {
        definition: "<xs:restriction base='xs:token'><xs:enumeration value='red'/><xs:enumeration value='dark red'/></xs:restriction>",
        valid: &["red", "  dark  red "],
        invalid: &["Red", "", "dark", "redd"],
    },
    Literals {
        definition: "<xs:restriction base='xs:string'><xs:pattern value='[a-c]{1,3}'/><xs:pattern value='\\d+'/></xs:restriction>",
        valid: &["a", "cab", "2026"],
        invalid: &["", "abcd", "a1", " a"],
    },
    Literals {
        definition: "<xs:restriction base='xs:date'/>",
        valid: &["2000-02-29", "1999-12-31Z"],
        invalid: &["1999-02-29", "", "99-01-01"],
    },
    Literals {
        definition: "<xs:list itemType='xs:byte'/>",
        valid: &["", "1", " 1\t2 -3 "],
        invalid: &["128", "1,2", "a 1"],
    },
    Literals {
        definition: "<xs:union memberTypes='xs:boolean xs:date'/>",
        valid: &["true", "2000-01-01"],
        invalid: &["", "yes", "2000-01-32"],
    },
    Literals {
        definition: "<xs:restriction base='xs:string'><xs:minLength value='1'/><xs:maxLength value='3'/></xs:restriction>",
        valid: &["a", "äöü", "  "],
        invalid: &["", "abcd", "a\n\n\n"],
    },
];

#[derive(Debug, Clone)]
struct Particle {
    min: usize,
    max: Option<usize>,
    term: Term,
}

#[derive(Debug, Clone)]
enum Term {
    /// An element called `e` and its number. Names are unique, so every model is deterministic.
    Element {
        number: usize,
        ty: usize,
    },
    Sequence(Vec<Particle>),
    Choice(Vec<Particle>),
}

#[derive(Debug, Clone)]
struct Attribute {
    ty: usize,
    required: bool,
}

/// The content and attributes of the root element.
#[derive(Debug, Clone)]
struct Schema {
    content: Particle,
    attributes: Vec<Attribute>,
    /// The type of each element, by its number.
    types: Vec<usize>,
}

/// A choice of a literal: `true` for a valid one, and its index.
type Chosen = (bool, usize);

/// A mutation of a valid instance.
#[derive(Debug, Clone)]
enum Change {
    Drop(usize),
    Repeat(usize),
    Swap(usize, usize),
    Rename(usize, usize),
}

/// The random choices that derive an instance from a schema.
#[derive(Debug, Clone)]
struct Recipe {
    choices: Vec<u8>,
    changes: Vec<Change>,
    values: Vec<Chosen>,
    attributes: Vec<Option<Chosen>>,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn judges_agree(schema in schema(), recipes in prop::collection::vec(recipe(), 8)) {
        let text = schema.document();
        let documents = [XsdDocument { name: "random.xsd".to_owned(), text: text.clone() }];
        let mut judges = Judges::new(&documents).expect("random schemas are documents");
        prop_assert_eq!(judges.unsupported(), None, "{}", text);
        let known = schema.libxml_is_known_to_be_wrong();
        for recipe in recipes {
            let instance = schema.instance(&recipe);
            let expected = schema.allows(&instance);
            let payload = payload(&instance.document());
            let engine = judges.engine(&payload);
            prop_assert_eq!(engine.is_ok(), expected, "the engine: {:?}\n{}\n{}", engine, text, payload.as_str());
            if !known {
                let libxml = judges.libxml(&payload);
                prop_assert_eq!(libxml.is_ok(), expected, "libxml2: {:?}\n{}\n{}", libxml, text, payload.as_str());
            }
        }
    }

    /// Each random schema has instances, so an example must be found.
    #[test]
    fn each_schema_has_an_example(schema in schema()) {
        let text = schema.document();
        let schemas = PayloadSchema::from_xsd("random.xsd", &text).expect("random schemas are documents");
        prop_assert!(schemas[0].example().is_some(), "{}", text);
    }
}

fn payload(text: &str) -> Canonical {
    canonicalize(&Bytes::from(text.to_owned()), &XmlLimits::default()).expect("instances are well-formed")
}

fn schema() -> impl Strategy<Value = Schema> {
    let attribute = (0..TYPES.len(), any::<bool>()).prop_map(|(ty, required)| Attribute { ty, required });
    (prop::collection::vec(particle(), 1..4), occurs(), prop::collection::vec(attribute, 0..3)).prop_map(
        |(parts, (min, max), attributes)| {
            let mut content = Particle { min, max, term: Term::Sequence(parts) };
            let mut types = Vec::new();
            number(&mut content, &mut types);
            Schema { content, attributes, types }
        },
    )
}

fn particle() -> impl Strategy<Value = Particle> {
    let term = (0..TYPES.len()).prop_map(|ty| Term::Element { number: 0, ty });
    let leaf = (occurs(), term).prop_map(|((min, max), term)| Particle { min, max, term });
    leaf.prop_recursive(2, 8, 3, |inner| {
        (occurs(), any::<bool>(), prop::collection::vec(inner, 1..4)).prop_map(|((min, max), choice, parts)| {
            let term = if choice { Term::Choice(parts) } else { Term::Sequence(parts) };
            Particle { min, max, term }
        })
    })
}

fn occurs() -> impl Strategy<Value = (usize, Option<usize>)> {
    prop_oneof![
        4 => Just((1, Some(1))),
        2 => Just((0, Some(1))),
        1 => Just((0, None)),
        1 => Just((1, None)),
        1 => (0..3usize, 0..3usize).prop_map(|(min, more)| (min, Some((min + more).max(1)))),
        1 => Just((2, None)),
    ]
}

fn number(particle: &mut Particle, types: &mut Vec<usize>) {
    match &mut particle.term {
        Term::Element { number, ty } => {
            *number = types.len();
            types.push(*ty);
        }
        Term::Sequence(parts) | Term::Choice(parts) => parts.iter_mut().for_each(|part| number(part, types)),
    }
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let change = prop_oneof![
        any::<usize>().prop_map(Change::Drop),
        any::<usize>().prop_map(Change::Repeat),
        any::<(usize, usize)>().prop_map(|(a, b)| Change::Swap(a, b)),
        any::<(usize, usize)>().prop_map(|(a, b)| Change::Rename(a, b)),
    ];
    let chosen = || (prop::bool::weighted(0.97), any::<usize>());
    (
        prop::collection::vec(any::<u8>(), 32),
        prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(change, 1..3)],
        prop::collection::vec(chosen(), 64),
        prop::collection::vec(prop::option::weighted(0.9, chosen()), 3),
    )
        .prop_map(|(choices, changes, values, attributes)| Recipe { choices, changes, values, attributes })
}

/// The children by number and value, and the attributes by value, each with `true` if the value is valid.
struct Instance {
    children: Vec<(usize, &'static str, bool)>,
    attributes: Vec<Option<(&'static str, bool)>>,
}

impl Instance {
    fn document(&self) -> String {
        let attributes = self.attributes.iter().enumerate();
        let attributes: String =
            attributes.filter_map(|(at, value)| value.map(|(text, _)| format!(" k{at}=\"{text}\""))).collect();
        let children: String =
            self.children.iter().map(|(number, text, _)| format!("<e{number}>{text}</e{number}>")).collect();
        format!("<r{attributes}>{children}</r>")
    }
}

impl Schema {
    fn document(&self) -> String {
        let mut content = String::new();
        write(&mut content, &self.content);
        let attributes: String = self
            .attributes
            .iter()
            .enumerate()
            .map(|(at, attribute)| {
                let required = if attribute.required { " use='required'" } else { "" };
                let definition = TYPES[attribute.ty].definition;
                format!(
                    "<xs:attribute name='k{at}'{required}><xs:simpleType>{definition}</xs:simpleType></xs:attribute>"
                )
            })
            .collect();
        format!(
            "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>\
             <xs:element name='r'><xs:complexType>{content}{attributes}</xs:complexType></xs:element></xs:schema>"
        )
    }

    fn instance(&self, recipe: &Recipe) -> Instance {
        let mut names = Vec::new();
        let mut choices = recipe.choices.iter().copied();
        walk(&mut names, &self.content, &mut choices);
        names.truncate(recipe.values.len());
        for change in &recipe.changes {
            if names.is_empty() {
                break;
            }
            let count = names.len();
            match *change {
                Change::Drop(at) => drop(names.remove(at % count)),
                Change::Repeat(at) => names.insert(at % count, names[at % count]),
                Change::Swap(a, b) => names.swap(a % count, b % count),
                Change::Rename(at, to) => names[at % count] = to % self.types.len(),
            }
        }
        let children = names.into_iter().zip(&recipe.values);
        let attributes = self.attributes.iter().zip(&recipe.attributes);
        Instance {
            children: children
                .map(|(number, chosen)| {
                    let (text, valid) = literal(self.types[number], chosen);
                    (number, text, valid)
                })
                .collect(),
            attributes: attributes
                .map(|(attribute, chosen)| {
                    // A parser turns line ends in attributes into spaces, which would change the value.
                    let chosen = chosen.as_ref().map(|chosen| literal(attribute.ty, chosen));
                    chosen.filter(|(text, _)| !text.contains(['\n', '\t']))
                })
                .collect(),
        }
    }

    /// Reports whether an instance is valid, by the definitions of the Recommendation.
    fn allows(&self, instance: &Instance) -> bool {
        let names: Vec<usize> = instance.children.iter().map(|(number, ..)| *number).collect();
        let attributes = self.attributes.iter().zip(&instance.attributes);
        instance.children.iter().all(|(.., valid)| *valid)
            && attributes.into_iter().all(|(attribute, value)| value.map_or(!attribute.required, |(_, valid)| valid))
            && ends(&self.content, &names, &BTreeSet::from([0])).contains(&names.len())
    }

    /// Reports whether libxml2 is known to count wrong or to take exponential time: where a group is counted, and where
    /// a repeated group contains a part that is optional or repeated, such as `(a*|b){1,3}` and `((a?,b*)*,c?)*`.
    fn libxml_is_known_to_be_wrong(&self) -> bool {
        fn nested(particle: &Particle, repeats: bool) -> bool {
            let counted = particle.min > 1 || particle.max.is_some_and(|max| max > 1);
            let varies = repeats && (particle.min, particle.max) != (1, Some(1));
            match &particle.term {
                Term::Element { .. } => varies,
                Term::Sequence(parts) | Term::Choice(parts) => {
                    let repeats = repeats || particle.max != Some(1);
                    counted || varies || parts.iter().any(|part| nested(part, repeats))
                }
            }
        }
        nested(&self.content, false)
    }
}

fn write(out: &mut String, particle: &Particle) {
    let Particle { min, max, term } = particle;
    let max = max.map_or_else(|| "unbounded".to_owned(), |max| max.to_string());
    let occurs = format!("minOccurs='{min}' maxOccurs='{max}'");
    let (tag, parts) = match term {
        Term::Element { number, ty } => {
            let definition = TYPES[*ty].definition;
            let element = format!(
                "<xs:element name='e{number}' {occurs}><xs:simpleType>{definition}</xs:simpleType></xs:element>"
            );
            out.push_str(&element);
            return;
        }
        Term::Sequence(parts) => ("sequence", parts),
        Term::Choice(parts) => ("choice", parts),
    };
    out.push_str(&format!("<xs:{tag} {occurs}>"));
    parts.iter().for_each(|part| write(out, part));
    out.push_str(&format!("</xs:{tag}>"));
}

/// Collects a random sequence of names that a particle allows.
fn walk(names: &mut Vec<usize>, particle: &Particle, choices: &mut impl Iterator<Item = u8>) {
    let mut choose = |most: usize| usize::from(choices.next().unwrap_or(0)) % (most + 1);
    let times = particle.min + choose(particle.max.map_or(2, |max| max - particle.min));
    for _ in 0..times {
        match &particle.term {
            Term::Element { number, .. } => names.push(*number),
            Term::Sequence(parts) => parts.iter().for_each(|part| walk(names, part, choices)),
            Term::Choice(parts) => {
                let chosen = usize::from(choices.next().unwrap_or(0)) % parts.len();
                walk(names, &parts[chosen], choices);
            }
        }
    }
}

/// The positions where a particle can end that starts at any of `starts`: a literal transcription of the definition of
/// its language.
fn ends(particle: &Particle, names: &[usize], starts: &BTreeSet<usize>) -> BTreeSet<usize> {
    let once = |starts: &BTreeSet<usize>| -> BTreeSet<usize> {
        match &particle.term {
            Term::Element { number, .. } => {
                starts.iter().filter(|at| names.get(**at) == Some(number)).map(|at| at + 1).collect()
            }
            Term::Sequence(parts) => parts.iter().fold(starts.clone(), |starts, part| ends(part, names, &starts)),
            Term::Choice(parts) => parts.iter().flat_map(|part| ends(part, names, starts)).collect(),
        }
    };
    let mut at = starts.clone();
    for _ in 0..particle.min {
        at = once(&at);
    }
    let mut all = at.clone();
    let more = particle.max.map_or(names.len() + 1, |max| max - particle.min);
    for _ in 0..more {
        at = once(&at);
        all.extend(&at);
    }
    all
}

fn literal(ty: usize, &(valid, index): &Chosen) -> (&'static str, bool) {
    let Literals { valid: right, invalid: wrong, .. } = &TYPES[ty];
    let texts = if valid { right } else { wrong };
    (texts[index % texts.len()], valid)
}
