//! Changes to bounds, digits, enumerations and patterns, each of which breaks one rule.

use super::mutations::{Mutation, change, dice_word, facet};
use super::tree::node;

pub(super) const BOUNDS: &[Mutation] = &[
    Mutation {
        rule: "minInclusive-less-than-equal-to-maxInclusive",
        said: "the lower bound lies above the upper one",
        mutate: |schema, dice| {
            change(schema, dice, "bounds", "minInclusive", &["2"]);
            change(schema, dice, "bounds", "maxInclusive", &["1"]);
        },
    },
    Mutation {
        rule: "minInclusive-less-than-maxExclusive",
        said: "the lower bound lies above the upper one",
        mutate: |schema, dice| {
            let restriction = schema.one(dice, "bounds").child("restriction");
            restriction.children =
                vec![node("minInclusive").with("value", "2"), node("maxExclusive").with("value", "2")];
        },
    },
    Mutation {
        rule: "minExclusive-less-than-maxInclusive",
        said: "the lower bound lies above the upper one",
        mutate: |schema, dice| {
            let restriction = schema.one(dice, "open").child("restriction");
            restriction.children =
                vec![node("minExclusive").with("value", "2"), node("maxInclusive").with("value", "2.0")];
        },
    },
    Mutation {
        rule: "minInclusive-minExclusive",
        said: "a bound is either inclusive or exclusive, not both",
        mutate: |schema, dice| {
            facet(schema, dice, "bounds", "minExclusive", &["0"]);
        },
    },
    Mutation {
        rule: "maxInclusive-maxExclusive",
        said: "a bound is either inclusive or exclusive, not both",
        mutate: |schema, dice| {
            facet(schema, dice, "bounds", "maxExclusive", &["3"]);
        },
    },
    Mutation {
        rule: "minInclusive-valid-restriction",
        said: "it lies outside of",
        mutate: |schema, dice| {
            change(schema, dice, "bounds", "minInclusive", &["-999"]);
        },
    },
    Mutation {
        rule: "maxInclusive-valid-restriction",
        said: "it lies outside of",
        mutate: |schema, dice| {
            change(schema, dice, "bounds", "maxInclusive", &["999"]);
        },
    },
    Mutation {
        rule: "minInclusive is a value of the base",
        said: "it is no value of",
        mutate: |schema, dice| {
            change(schema, dice, "numbers", "minInclusive", &["2", "4"]);
        },
    },
    Mutation {
        rule: "maxExclusive is a value of the base",
        said: "it is no value of",
        mutate: |schema, dice| {
            let restriction = schema.one(dice, "numbers").child("restriction");
            restriction.children = vec![node("maxExclusive").with("value", dice_word(dice, &["2", "4"]))];
        },
    },
    Mutation {
        rule: "maxInclusive is a value of the base",
        said: "it is no value of",
        mutate: |schema, dice| {
            let restriction = schema.one(dice, "numbers").child("restriction");
            restriction.children = vec![node("maxInclusive").with("value", dice_word(dice, &["2", "4"]))];
        },
    },
    Mutation {
        rule: "minExclusive is a value of the base",
        said: "it is no value of",
        mutate: |schema, dice| {
            let restriction = schema.one(dice, "digits").child("restriction");
            restriction.children.push(node("minExclusive").with("value", "1.255"));
        },
    },
    Mutation {
        rule: "minExclusive is a value of the base, or excludes the same",
        said: "it lies outside of",
        mutate: |schema, dice| {
            change(schema, dice, "open", "minExclusive", &["-9.1", "-10"]);
        },
    },
    Mutation {
        rule: "totalDigits-valid-restriction",
        said: "which a restriction can't widen",
        mutate: |schema, dice| {
            change(schema, dice, "digits", "totalDigits", &["99"]);
        },
    },
    Mutation {
        rule: "fractionDigits-totalDigits",
        said: "fractionDigits is more than totalDigits",
        mutate: |schema, dice| {
            change(schema, dice, "digits", "totalDigits", &["1"]);
            change(schema, dice, "digits", "fractionDigits", &["2"]);
        },
    },
    Mutation {
        rule: "fractionDigits-valid-restriction",
        said: "a whole number has no digits behind the point",
        mutate: |schema, dice| {
            change(schema, dice, "integers", "fractionDigits", &["1"]);
        },
    },
    Mutation {
        rule: "totalDigits is positive",
        said: "expected whole number, at least 1",
        mutate: |schema, dice| {
            let role = dice.pick(&["digits", "digits base", "integers"]);
            change(schema, dice, role, "totalDigits", &["0"]);
        },
    },
    Mutation {
        rule: "enumeration-valid-restriction",
        said: "is no value of",
        mutate: |schema, dice| {
            facet(schema, dice, "numbers base", "enumeration", &["x"]);
        },
    },
    Mutation {
        rule: "enumeration-valid-restriction",
        said: "is no value of t:",
        mutate: |schema, dice| {
            facet(schema, dice, "words", "enumeration", &["w"]);
        },
    },
    Mutation {
        rule: "enumeration-required-notation",
        said: "xs:NOTATION can't be the type of",
        mutate: |schema, dice| {
            let user = schema
                .any(dice, |node| matches!(node.role, "notation attribute" | "notation element" | "needed attribute"));
            user.set("type", "xs:NOTATION");
        },
    },
    Mutation {
        rule: "enumeration-required-notation",
        said: "xs:NOTATION can't be the type of",
        mutate: |schema, dice| {
            let restriction = schema.one(dice, "notations").child("restriction");
            restriction.children = vec![node("pattern").with("value", ".*")];
        },
    },
    Mutation {
        rule: "enumeration of an undeclared notation",
        said: "there is no notation",
        mutate: |schema, dice| {
            change(schema, dice, "notations", "enumeration", &["t:nothing"]);
        },
    },
    Mutation {
        rule: "pattern",
        said: "the pattern '",
        mutate: |schema, dice| {
            let role = dice.pick(&["pattern", "length", "words base"]);
            let broken = ["[b-a]", "a{2,1}", "\\b", "\\p{IsNowhere}", "a(b", "[a", "a**", "(?i)a"];
            facet(schema, dice, role, "pattern", &broken);
        },
    },
];
