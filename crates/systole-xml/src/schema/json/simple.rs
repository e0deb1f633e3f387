//! The schemas of simple types.

use serde_json::Value;

use super::content::{array, one_of};
use super::mapping::Value as MappedValue;
use super::shapes::Shape;
use super::sketch::Sketch;
use super::{Object, Writer, literal};
use crate::schema::model::{Bound, Enumerator, Facets, Simple, Variety};
use crate::schema::pattern::Pattern;
use crate::schema::simple::{Kind, NoPrefixes, SimpleType, XsdType};

/// Keywords, and whether they tell all rules of the type.
struct Rules {
    keywords: Object,
    all: bool,
}

impl Rules {
    fn add(&mut self, keyword: &str, value: impl Into<Value>) {
        self.keywords.insert(keyword.to_owned(), value.into());
    }

    fn of_type(name: &str) -> Self {
        Self { keywords: Sketch::with("type", name).keywords, all: true }
    }
}

impl<'m> Writer<'m> {
    pub(super) fn simple(&mut self, simple: &'m Simple) -> Sketch {
        let mut rules = match &simple.variety {
            Variety::Atomic(xsd_type) => match xsd_type.item() {
                Some(item) => {
                    let min = simple.facets.min_length.unwrap_or(0).max(1);
                    let rules = atomic(item, &Facets::default());
                    let words = (!rules.all).then(|| format!("xs:{}: {}", item.name, item.words()));
                    let item =
                        Sketch { keywords: rules.keywords, words: words.into_iter().collect(), ..Sketch::default() };
                    list(word(item), min, &simple.facets)
                }
                None => atomic(xsd_type, &simple.facets),
            },
            Variety::List(item) => {
                let item = self.shape(Shape::plain(*item), "item");
                list(word(item), simple.facets.min_length.unwrap_or(0), &simple.facets)
            }
            Variety::Union(members) => {
                let members = members.iter().map(|member| self.shape(Shape::plain(*member), "member").finish().into());
                let members: Vec<Value> = members.collect();
                Rules { keywords: one_of(members, "anyOf").keywords, all: simple.facets.patterns.is_empty() }
            }
        };
        if let (Variety::Atomic(xsd_type), Some(definition)) = (&simple.variety, &simple.definition)
            && matches!(xsd_type.kind(), Kind::Boolean)
            && !simple.facets.patterns.is_empty()
        {
            rules = truth_values(definition).unwrap_or(rules);
        }
        if !simple.facets.values.is_empty() {
            rules = self.enumeration(simple, rules);
        }
        rules.all &= !simple.definition.as_ref().is_some_and(SimpleType::has_digits);
        let words = if rules.all { Vec::new() } else { vec![words(simple)] };
        Sketch { keywords: rules.keywords, doc: simple.doc.clone(), words }
    }

    /// The values of an enumeration that are valid and that JSON has. They keep the other facets.
    fn enumeration(&self, simple: &Simple, rules: Rules) -> Rules {
        let is_valid = |value: &&Enumerator| {
            let Some(definition) = &simple.definition else { return true };
            definition.has_prefixes() || definition.check(&value.value, &NoPrefixes).is_ok()
        };
        let valid: Vec<&Enumerator> = simple.facets.values.iter().filter(is_valid).collect();
        let known: Vec<(Value, &str)> = valid
            .iter()
            .filter_map(|known| Some((literal::value(self.model, simple, &known.value)?, known.doc.trim())))
            .collect();
        if known.is_empty() {
            return Rules { all: false, ..rules };
        }
        let all = known.len() == valid.len();
        let ty = rules.keywords.get("type").cloned();
        let mut rules = Rules { keywords: Object::new(), all };
        ty.into_iter().for_each(|ty| rules.add("type", ty));
        if known.iter().all(|(_, doc)| doc.is_empty()) {
            rules.add("enum", known.into_iter().map(|(value, _)| value).collect::<Vec<_>>());
        } else {
            let option = |(value, doc): (Value, &str)| Sketch::with("const", value).documented(doc).finish().into();
            rules.add("oneOf", known.into_iter().map(option).collect::<Vec<Value>>());
        }
        rules
    }
}

/// The truth values that the patterns of a type allow: those of JSON, and `"1"` and `"0"` as texts; `None` if there is none.
fn truth_values(definition: &SimpleType) -> Option<Rules> {
    let spelled: [(&str, Value); 4] =
        [("true", true.into()), ("false", false.into()), ("1", "1".into()), ("0", "0".into())];
    let valid = spelled.into_iter().filter(|(literal, _)| definition.check(literal, &NoPrefixes).is_ok());
    let valid: Vec<Value> = valid.map(|(_, value)| value).collect();
    (!valid.is_empty()).then(|| Rules { keywords: Sketch::with("enum", valid).keywords, all: true })
}

/// The rules of a type in words.
fn words(simple: &Simple) -> String {
    let definition = simple.definition.as_ref();
    let limits = definition.map(SimpleType::limits).unwrap_or_default();
    let noun = |xsd_type: &XsdType| definition.map_or(xsd_type.words(), SimpleType::noun).to_owned();
    match &simple.variety {
        Variety::Atomic(xsd_type) => format!("xs:{}: {}{limits}", xsd_type.name, noun(xsd_type)),
        Variety::List(_) | Variety::Union(_) => {
            format!("in XML: {}{limits}", definition.map(SimpleType::noun).unwrap_or_default())
        }
    }
}

/// The item of a list. A text is a word, without white space.
fn word(mut item: Sketch) -> Sketch {
    let is_open = ["enum", "oneOf", "pattern", "$ref"].iter().all(|keyword| !item.keywords.contains_key(*keyword));
    if is_open && item.keywords.get("type").is_some_and(|ty| ty == "string") {
        item.keywords.insert("pattern".to_owned(), r"^[^ \t\n\r]+$".into());
    }
    item
}

fn list(item: Sketch, min: u64, facets: &Facets) -> Rules {
    Rules { keywords: array(item.finish(), min, facets.max_length).keywords, all: facets.patterns.is_empty() }
}

/// The rules of a built-in type with facets.
fn atomic(xsd_type: &'static XsdType, facets: &Facets) -> Rules {
    match xsd_type.kind() {
        Kind::Boolean => Rules { all: facets.patterns.is_empty(), ..Rules::of_type("boolean") },
        Kind::Integer(min, max) => numeric("integer", xsd_type, facets, (min, max)),
        Kind::Decimal | Kind::Float => numeric("number", xsd_type, facets, (None, None)),
        Kind::Text | Kind::Form => textual(xsd_type, facets),
    }
}

/// Bounds that say of numbers only that they are some.
const WIDEST: [&str; 2] = ["-1.7976931348623157E308", "1.7976931348623157E308"];

/// The rules of a type of numbers; `known` are the least and the greatest of the built-in type.
fn numeric(name: &str, xsd_type: &XsdType, facets: &Facets, known: (Option<i128>, Option<i128>)) -> Rules {
    let mut rules = Rules::of_type(name);
    let ends =
        [("minimum", "exclusiveMinimum", &facets.min, known.0), ("maximum", "exclusiveMaximum", &facets.max, known.1)];
    for (inclusive, exclusive, bound, known) in ends {
        if bound.as_ref().is_some_and(|bound| !bound.exclusive && WIDEST.contains(&bound.value.as_str())) {
            continue;
        }
        let (keyword, number) = match bound {
            Some(Bound { value, exclusive: true }) => (exclusive, literal::number(xsd_type, value)),
            Some(Bound { value, .. }) => (inclusive, literal::number(xsd_type, value)),
            None => (inclusive, known.and_then(literal::integer)),
        };
        match number {
            Some(number) => rules.add(keyword, number),
            None => rules.all &= bound.is_none(),
        }
    }
    rules.all &= facets.patterns.is_empty();
    // Numbers that not each reader of JSON keeps are strings, in all the forms that XML has for them.
    let literals = match MappedValue::atomic(xsd_type, facets) {
        MappedValue::Integer { is_large: true } => r"^[ \t\n\r]*[+-]?[0-9]+[ \t\n\r]*$",
        MappedValue::Decimal => r"^[ \t\n\r]*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[ \t\n\r]*$",
        // Both bounds leave numbers alone.
        MappedValue::Float if facets.min.is_some() && facets.max.is_some() => return rules,
        MappedValue::Float => "^(?:-?INF|NaN)$",
        _ => return rules,
    };
    let bounded = facets.min.is_some() || facets.max.is_some() || known.0.is_some() || known.1.is_some();
    rules.all &= !bounded;
    rules.add("type", vec![name, "string"]);
    rules.add("pattern", literals);
    rules
}

fn textual(xsd_type: &XsdType, facets: &Facets) -> Rules {
    let mut rules = Rules::of_type("string");
    rules.all = matches!(xsd_type.name, "anySimpleType" | "string" | "normalizedString" | "token");
    // The lengths of binary values count bytes; qualified names of any length are valid.
    let unit = match xsd_type.name {
        "QName" | "NOTATION" | "base64Binary" => None,
        "hexBinary" => Some(2),
        _ => Some(1),
    };
    let lengths = [("minLength", facets.min_length.filter(|min| *min > 0)), ("maxLength", facets.max_length)];
    for (keyword, length) in lengths {
        if let Some((length, unit)) = length.zip(unit) {
            rules.add(keyword, length.saturating_mul(unit));
        }
    }
    let patterns: Vec<Option<String>> = facets.patterns.iter().map(Pattern::ecma).collect();
    rules.all &= patterns.iter().all(Option::is_some);
    let mut patterns = patterns.into_iter().flatten();
    if let Some(first) = patterns.next() {
        rules.add("pattern", first);
    }
    let others: Vec<Value> = patterns.map(|pattern| Sketch::with("pattern", pattern).finish().into()).collect();
    if !others.is_empty() {
        rules.add("allOf", others);
    }
    rules
}
