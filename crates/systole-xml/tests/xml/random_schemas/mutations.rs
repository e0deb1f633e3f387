//! The form of a change that breaks one rule, and its parts.

use super::tree::{Dice, Node, node};

/// A change to a random schema that breaks one rule.
pub(super) struct Mutation {
    /// The rule, as the tables of rules name it.
    pub(super) rule: &'static str,
    /// A part of the error text for the rule.
    pub(super) said: &'static str,
    pub(super) mutate: fn(&mut Node, &mut Dice),
}

pub(super) fn dice_word(dice: &mut Dice, words: &[&'static str]) -> &'static str {
    dice.pick(words)
}

/// A type inside of its user.
pub(super) fn inline() -> Node {
    node("simpleType").of([node("restriction").with("base", "xs:int")])
}

pub(super) fn id(name: &str) -> Node {
    node("attribute").with("name", name).with("type", "xs:ID")
}

pub(super) fn element(name: &str) -> Node {
    node("element").with("name", name).with("type", "xs:int")
}

pub(super) fn is_attribute(node: &Node) -> bool {
    node.tag == "attribute" && node.get("name").is_some() && node.get("use") != Some("prohibited")
}

/// Inserts particles in a row at a random place of a group.
pub(super) fn insert<const N: usize>(group: &mut Node, dice: &mut Dice, particles: [Node; N]) {
    let at = dice.roll(group.children.len() + 1);
    group.children.splice(at..at, particles);
}

/// A random reference to a component: the name of the attribute, and its element.
pub(super) fn refer<'s>(schema: &'s mut Node, dice: &mut Dice) -> (&'static str, &'s mut Node) {
    const NAMES: [&str; 6] = ["type", "base", "ref", "itemType", "substitutionGroup", "refer"];
    let name = |node: &Node| NAMES.into_iter().find(|name| node.get(name).is_some_and(|to| to.starts_with("t:")));
    let node = schema.any(dice, |node| name(node).is_some());
    (name(node).expect("it has one"), node)
}

/// Adds a facet, of one of some values, to the type of a role.
pub(super) fn facet(schema: &mut Node, dice: &mut Dice, role: &str, facet: &'static str, values: &[&'static str]) {
    let value = dice.pick(values);
    schema.one(dice, role).child("restriction").children.push(node(facet).with("value", value));
}

/// Changes a facet of the type of a role to one of some values.
pub(super) fn change(schema: &mut Node, dice: &mut Dice, role: &str, facet: &str, values: &[&'static str]) {
    let value = dice.pick(values);
    schema.one(dice, role).child("restriction").child(facet).set("value", value);
}
