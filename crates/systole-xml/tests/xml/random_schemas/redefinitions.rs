//! Redefinitions (section 4.2.2) of random components, beside the same schema with its restrictions and extensions
//! written by hand.

use proptest::prelude::*;
use systole_xml::schema::XsdDocument;
use systole_xml::schema::oracle::Whole;

use super::config;
use super::tree::{Dice, Node, node};

/// A component that is redefined, what redefines it, and the same by hand: the component under another name, the
/// derived one, and whatever else checks it.
struct Redefined {
    original: Node,
    redefinition: Node,
    by_hand: Vec<Node>,
}

const XS: &str = "http://www.w3.org/2001/XMLSchema";

fn facets(dice: &mut Dice, base: &str, low: &[&str], high: &[&str]) -> Node {
    let least = node("minInclusive").with("value", dice.pick(low));
    let most = node("maxInclusive").with("value", dice.pick(high));
    node("simpleType").of([node("restriction").with("base", base).of([least, most])])
}

fn simple(dice: &mut Dice) -> Redefined {
    let original = facets(dice, "xs:int", &["1", "2"], &["8", "9"]);
    let redefinition = |dice: &mut Dice, base: &str| facets(dice, base, &["1", "2", "4"], &["6", "9"]);
    let seed = dice.0;
    let own = redefinition(dice, "n").with("name", "n");
    dice.0 = seed;
    let by_hand = vec![original.clone().with("name", "n0"), redefinition(dice, "n0").with("name", "n")];
    Redefined { original: original.with("name", "n"), redefinition: own, by_hand }
}

fn element(name: &str, min: usize, max: usize) -> Node {
    let element = node("element").with("name", name).with("type", "n");
    element.with("minOccurs", min.to_string()).with("maxOccurs", max.to_string())
}

fn attribute(dice: &mut Dice, name: &str) -> Node {
    let attribute = node("attribute").with("name", name).with("type", dice.pick(&["n", "xs:int"]));
    attribute.with("use", dice.pick(&["optional", "required"]))
}

/// A sequence, and one that may restrict it.
fn contents(dice: &mut Dice, names: [&str; 2]) -> (Node, Node) {
    let mut parts = |narrow: bool| {
        let part = |name| {
            let (min, max) = if narrow { (dice.roll(3), 1 + dice.roll(3)) } else { (dice.roll(2), 1 + dice.roll(3)) };
            element(name, min.min(max), max)
        };
        node("sequence").of(names.map(part))
    };
    (parts(false), parts(true))
}

fn derived(how: &'static str, base: &str, inside: &[Node]) -> Node {
    let derived = node(how).with("base", base).of(inside.to_vec());
    node("complexType").of([node("complexContent").of([derived])])
}

fn complex(dice: &mut Dice) -> Redefined {
    let (content, narrower) = contents(dice, ["a", "b"]);
    let own = attribute(dice, "p");
    let original = node("complexType").of([content, own]);
    let (how, inside) = match dice.roll(2) {
        0 => ("restriction", vec![narrower, attribute(dice, "p")]),
        _ => ("extension", vec![node("sequence").of([element("c", dice.roll(2), 1)]), attribute(dice, "q")]),
    };
    Redefined {
        original: original.clone().with("name", "c"),
        redefinition: derived(how, "c", &inside).with("name", "c"),
        by_hand: vec![original.with("name", "c0"), derived(how, "c0", &inside).with("name", "c")],
    }
}

fn group(dice: &mut Dice) -> Redefined {
    let (content, narrower) = contents(dice, ["d", "e"]);
    let original = node("group").of([content.clone()]);
    let named = |inside: Node| node("group").with("name", "g").of([inside]);
    if dice.roll(2) == 0 {
        let more = element("f", dice.roll(2), 1);
        let around = |name: &str| node("sequence").of([more.clone(), node("group").with("ref", name)]);
        return Redefined {
            original: original.clone().with("name", "g"),
            redefinition: named(around("g")),
            by_hand: vec![original.with("name", "g0"), named(around("g0"))],
        };
    }
    let base = node("complexType").with("name", "base").of([content]);
    let restriction = derived("restriction", "base", std::slice::from_ref(&narrower)).with("name", "restriction");
    Redefined {
        original: original.with("name", "g"),
        redefinition: named(narrower.clone()),
        by_hand: vec![named(narrower), base, restriction],
    }
}

fn attributes(dice: &mut Dice) -> Redefined {
    let own = [attribute(dice, "s"), attribute(dice, "t")];
    let named = |name: &str, inside: &[Node]| node("attributeGroup").with("name", name).of(inside.to_vec());
    if dice.roll(2) == 0 {
        let more = attribute(dice, "u");
        let around = |name: &str| [more.clone(), node("attributeGroup").with("ref", name)];
        return Redefined {
            original: named("h", &own),
            redefinition: named("h", &around("h")),
            by_hand: vec![named("h0", &own), named("h", &around("h0"))],
        };
    }
    let narrower = [attribute(dice, "s"), attribute(dice, "t")];
    let base = node("complexType").with("name", "open").of(own.clone());
    let restriction = derived("restriction", "open", &narrower).with("name", "closed");
    Redefined {
        original: named("h", &own),
        redefinition: named("h", &narrower),
        by_hand: vec![named("h", &narrower), base, restriction],
    }
}

/// The schema with a redefinition, and that by hand.
fn schemas(dice: &mut Dice) -> [Vec<XsdDocument>; 2] {
    let schema = |inside: Vec<Node>| node("schema").with("xmlns:xs", XS).of(inside);
    let document = |name: &str, schema: Node| XsdDocument { name: name.to_owned(), text: schema.text() };
    let parts = node("sequence").of([
        node("element").with("name", "n").with("type", "n"),
        node("element").with("name", "c").with("type", "c"),
        node("group").with("ref", "g"),
    ]);
    let ty = node("complexType").of([parts, node("attributeGroup").with("ref", "h")]);
    let root = node("element").with("name", "r").of([ty]);
    let (mut originals, mut redefinitions, mut by_hand) = (vec![root.clone()], Vec::new(), vec![root]);
    for make in [simple, complex, group, attributes] {
        let Redefined { original, redefinition, by_hand: hand } = make(dice);
        // What is not redefined is the original in both.
        if dice.roll(3) > 0 {
            redefinitions.push(redefinition);
            by_hand.extend(hand);
        } else {
            by_hand.push(original.clone());
        }
        originals.push(original);
    }
    dice.shuffle(&mut originals);
    dice.shuffle(&mut redefinitions);
    dice.shuffle(&mut by_hand);
    let redefine = node("redefine").with("schemaLocation", "a.xsd").of(redefinitions);
    [
        vec![document("b.xsd", schema(vec![redefine])), document("a.xsd", schema(originals))],
        vec![document("c.xsd", schema(by_hand))],
    ]
}

fn instance(dice: &mut Dice) -> String {
    let count = dice.pick(&[1, 1, 2]);
    // Half of the documents have all parts, the same number of each.
    let is_even = dice.roll(2) == 0;
    let value = |dice: &mut Dice| {
        if is_even { "5" } else { dice.pick(&["1", "2", "4", "5", "5", "5", "6", "9"]) }
    };
    let attributes = |dice: &mut Dice, names: &[&str]| -> String {
        let mut out = String::new();
        for name in names {
            if is_even || dice.roll(3) > 0 {
                out.push_str(&format!(" {name}=\"{}\"", value(dice)));
            }
        }
        out
    };
    let children = |dice: &mut Dice, names: &[&str]| -> String {
        let mut out = String::new();
        for name in names {
            let count = if is_even { count } else { dice.pick(&[1, 1, 0, 2, 3]) };
            (0..count).for_each(|_| out.push_str(&format!("<{name}>{}</{name}>", value(dice))));
        }
        out
    };
    let mut maybe = |names: &'static [&'static str]| if dice.roll(2) == 0 { names } else { &[] };
    let [u, q, c, f] = [maybe(&["u"]), maybe(&["q"]), maybe(&["c"]), maybe(&["f"])];
    let own = attributes(dice, &["s", "t"]) + &attributes(dice, u);
    let inner = attributes(dice, &["p"]) + &attributes(dice, q);
    let one = |dice: &mut Dice, names: &[&str]| -> String {
        names.iter().map(|name| format!("<{name}>{}</{name}>", value(dice))).collect()
    };
    let content = children(dice, &["a", "b"]) + &one(dice, c);
    let group = one(dice, f) + &children(dice, &["d", "e"]);
    format!("<r{own}><n>{}</n><c{inner}>{content}</c>{group}</r>", value(dice))
}

/// The verdicts by both schemas, each as that on the schema and those on documents; and the texts.
fn verdicts(seed: u64) -> ([Option<Vec<bool>>; 2], String) {
    let mut dice = Dice(seed);
    let schemas = schemas(&mut dice);
    let instances: Vec<String> = (0..24).map(|_| instance(&mut dice)).collect();
    let texts = schemas.iter().flatten().map(|document| document.text.as_str());
    let text = format!("{}{}", texts.collect::<String>(), instances.join("\n"));
    let judged = schemas.map(|documents| {
        let mut whole = Whole::new(&documents).ok()?;
        Some(instances.iter().map(|instance| whole.judge(instance).is_ok()).collect())
    });
    (judged, text)
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn a_redefinition_is_what_is_written_by_hand(seed in any::<u64>()) {
        let ([redefined, by_hand], text) = verdicts(seed);
        prop_assert_eq!(redefined, by_hand, "{}", text);
    }
}

#[test]
fn random_redefinitions_are_of_all_kinds() {
    let judged: Vec<Option<Vec<bool>>> = (0..60).map(|seed| verdicts(seed).0[1].clone()).collect();
    let accepted = judged.iter().flatten().count();
    assert!((15..50).contains(&accepted), "{accepted} of {} schemas", judged.len());
    let verdicts: Vec<bool> = judged.into_iter().flatten().flatten().collect();
    let valid = verdicts.iter().filter(|valid| **valid).count();
    assert!(valid > verdicts.len() / 50 && valid < verdicts.len() / 2, "{valid} of {} documents", verdicts.len());
}
