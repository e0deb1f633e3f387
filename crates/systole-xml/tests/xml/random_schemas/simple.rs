//! Changes to simple types, each of which breaks one rule.

use super::mutations::{Mutation, change, dice_word, facet};
use super::tree::{Node, node};

pub(super) const SIMPLE: &[Mutation] = &[
    Mutation {
        rule: "src-simple-type.2",
        said: "there is either a base or an xs:simpleType inside, not both",
        mutate: |schema, dice| {
            schema.one(dice, "inline restriction").child("restriction").set("base", "xs:int");
        },
    },
    Mutation {
        rule: "src-simple-type.2",
        said: "a simple type has no base",
        mutate: |schema, dice| {
            schema.one(dice, "inline restriction").child("restriction").children.clear();
        },
    },
    Mutation {
        rule: "src-simple-type.3",
        said: "there is either a itemType or an xs:simpleType inside, not both",
        mutate: |schema, dice| {
            schema.one(dice, "inline list").child("list").set("itemType", "xs:int");
        },
    },
    Mutation {
        rule: "src-simple-type.4",
        said: "a type is derived from itself",
        mutate: |schema, dice| {
            let union = schema.reference(dice, "union restricted");
            schema.one(dice, "union").child("union").set("memberTypes", format!("xs:int {union}"));
        },
    },
    Mutation {
        rule: "src-union-memberTypes-or-simpleTypes",
        said: "a union has types",
        mutate: |schema, dice| {
            schema.one(dice, "union").child("union").unset("memberTypes");
        },
    },
    Mutation {
        rule: "st-props-correct.2",
        said: "a type is derived from itself",
        mutate: |schema, dice| {
            let (base, own) = dice.pick(&[
                ("bounds base", "bounds"),
                ("lengths base", "lengths"),
                ("item", "list"),
                ("words base", "words"),
            ]);
            let own = schema.reference(dice, own);
            let base = schema.one(dice, base).child("restriction");
            base.children.clear();
            base.set("base", own);
        },
    },
    Mutation {
        rule: "st-props-correct.3",
        said: "the 'final' of the base forbids restriction",
        mutate: |schema, dice| {
            let base = schema.any(dice, |node| node.tag == "simpleType" && node.role.ends_with(" base"));
            base.set("final", dice_word(dice, &["restriction", "#all", "list restriction"]));
        },
    },
    Mutation {
        rule: "cos-st-restricts.2.1",
        said: "the items of a list are lists themselves",
        mutate: |schema, dice| {
            schema.one(dice, "item").child("restriction").set("base", dice_word(dice, &["xs:NMTOKENS", "xs:IDREFS"]));
        },
    },
    Mutation {
        rule: "cos-st-restricts.2.1",
        said: "the items of a list are lists themselves",
        mutate: |schema, dice| {
            let item = schema.one(dice, "item");
            item.children = vec![node("union").with("memberTypes", "xs:int xs:NMTOKENS")];
        },
    },
    Mutation {
        rule: "cos-st-restricts.2.3.1.1",
        said: "the 'final' of the item type forbids lists",
        mutate: |schema, dice| {
            schema.one(dice, "item").set("final", dice_word(dice, &["list", "list union"]));
        },
    },
    Mutation {
        rule: "cos-st-restricts.3.3.1",
        said: "the 'final' of a member type forbids unions",
        mutate: |schema, dice| {
            schema.one(dice, "member type").set("final", dice_word(dice, &["union", "list union"]));
        },
    },
    Mutation {
        rule: "cos-st-restricts.1.3.1",
        said: "has no such facet",
        mutate: |schema, dice| {
            facet(schema, dice, "bounds", "length", &["2"]);
        },
    },
    Mutation {
        rule: "cos-st-restricts.1.3.1",
        said: "has no such facet",
        mutate: |schema, dice| {
            facet(schema, dice, "lengths", "totalDigits", &["2"]);
        },
    },
    Mutation {
        rule: "cos-st-restricts.2.3.2.4",
        said: "has no such facet",
        mutate: |schema, dice| {
            facet(schema, dice, "list restricted", "minInclusive", &["2"]);
        },
    },
    Mutation {
        rule: "cos-st-restricts.3.3.2.4",
        said: "has no such facet",
        mutate: |schema, dice| {
            facet(schema, dice, "union restricted", "maxInclusive", &["2"]);
        },
    },
    Mutation {
        rule: "src-single-facet-value",
        said: "is given twice: keep one of them",
        mutate: |schema, dice| {
            let single = |node: &Node| {
                matches!(
                    node.role,
                    "bounds"
                        | "bounds base"
                        | "lengths"
                        | "lengths base"
                        | "digits"
                        | "digits base"
                        | "open"
                        | "tokens"
                )
            };
            let restriction = schema.any(dice, single).child("restriction");
            let twice = dice.pick(&restriction.children);
            restriction.children.push(twice);
        },
    },
    Mutation {
        rule: "length-minLength-maxLength",
        said: "length already bounds the length: remove minLength and maxLength",
        mutate: |schema, dice| {
            let name = dice.pick(&["minLength", "maxLength"]);
            facet(schema, dice, "length base", name, &["3"]);
        },
    },
    Mutation {
        rule: "length-minLength-maxLength",
        said: "length already bounds the length: remove minLength and maxLength",
        mutate: |schema, dice| {
            let name = dice.pick(&["minLength", "maxLength"]);
            let base = schema.one(dice, "length base").child("restriction");
            let same = base.child("length").get("value").expect("it has one").to_owned();
            let facet = node(name).with("value", same);
            schema.one(dice, "length").child("restriction").children.push(facet);
        },
    },
    Mutation {
        rule: "length-valid-restriction",
        said: "which a restriction can't widen",
        mutate: |schema, dice| {
            facet(schema, dice, "length", "length", &["1", "9"]);
        },
    },
    Mutation {
        rule: "minLength-valid-restriction",
        said: "which a restriction can't widen",
        mutate: |schema, dice| {
            change(schema, dice, "lengths", "minLength", &["1"]);
        },
    },
    Mutation {
        rule: "maxLength-valid-restriction",
        said: "which a restriction can't widen",
        mutate: |schema, dice| {
            change(schema, dice, "lengths", "maxLength", &["99"]);
        },
    },
    Mutation {
        rule: "minLength of NMTOKENS",
        said: "xs:NMTOKENS has 1, which a restriction can't widen",
        mutate: |schema, dice| {
            change(schema, dice, "tokens", "minLength", &["0"]);
        },
    },
    Mutation {
        rule: "whiteSpace-valid-restriction",
        said: "already normalizes more white space",
        mutate: |schema, dice| {
            change(schema, dice, "space", "whiteSpace", &["preserve", "replace"]);
        },
    },
];
