//! Changes to content models, references and identity constraints, each of which breaks one rule.

use super::mutations::{Mutation, dice_word, element, insert, refer};
use super::tree::{Node, node};

pub(super) const MODELS: &[Mutation] = &[
    Mutation {
        rule: "mg-props-correct.2",
        said: "a group contains itself",
        mutate: |schema, dice| {
            let first = schema.reference(dice, "first group");
            let inner = schema.one(dice, "last group").child("sequence");
            inner.children.push(node("group").with("ref", first));
        },
    },
    Mutation {
        rule: "cos-all-limited.1.2",
        said: "xs:all must be the whole content of its type: it can't be inside of another group",
        mutate: |schema, dice| {
            let reference = schema.one(dice, "all").children.remove(0);
            let tag = dice.pick(&["sequence", "choice"]);
            schema.one(dice, "all").children.insert(0, node(tag).of([reference]));
        },
    },
    Mutation {
        rule: "cos-all-limited.1.2",
        said: "xs:all is inside of another group",
        mutate: |schema, dice| {
            schema.one(dice, "reference to all").set("maxOccurs", "2");
        },
    },
    Mutation {
        rule: "cos-all-limited.1.2",
        said: "neither it nor its base can be extended",
        mutate: |schema, dice| {
            let extension = schema.one(dice, "extension of all").child("complexContent").child("extension");
            extension.children.insert(0, node("sequence").of([element("more")]));
        },
    },
    Mutation {
        rule: "cos-all-limited.2",
        said: "in xs:all an element stands once at most",
        mutate: |schema, dice| {
            schema.any(dice, |node| matches!(node.role, "part of all")).set("maxOccurs", "2");
        },
    },
    Mutation {
        rule: "cos-element-consistent",
        said: "and elements of one name in one content model have one type",
        mutate: |schema, dice| {
            let at = schema.one(dice, "open sequence");
            insert(at, dice, [element("x"), element("y"), element("x").with("type", "xs:short")]);
        },
    },
    Mutation {
        rule: "cos-nonambig",
        said: "(Unique Particle Attribution)",
        mutate: |schema, dice| {
            let at = schema.one(dice, "open sequence");
            insert(at, dice, [element("x").with("minOccurs", "0"), element("x")]);
        },
    },
    Mutation {
        rule: "cos-nonambig",
        said: "(Unique Particle Attribution)",
        mutate: |schema, dice| {
            let at = schema.one(dice, "open sequence");
            insert(at, dice, [element("x").with("maxOccurs", "2"), element("x")]);
        },
    },
    Mutation {
        rule: "cos-nonambig",
        said: "(Unique Particle Attribution)",
        mutate: |schema, dice| {
            let at = schema.one(dice, "open sequence");
            insert(
                at,
                dice,
                [element("x").with("maxOccurs", "unbounded"), element("y").with("minOccurs", "0"), element("x")],
            );
        },
    },
    Mutation {
        rule: "cos-nonambig",
        said: "(Unique Particle Attribution)",
        mutate: |schema, dice| {
            let at = schema.one(dice, "open sequence");
            insert(at, dice, [node("choice").of([element("x"), element("x")])]);
        },
    },
    Mutation {
        rule: "cos-nonambig",
        said: "(Unique Particle Attribution)",
        mutate: |schema, dice| {
            let at = schema.one(dice, "open sequence");
            insert(at, dice, [node("choice").of([node("sequence").of([element("x"), element("y")]), element("x")])]);
        },
    },
    Mutation {
        rule: "cos-nonambig",
        said: "(Unique Particle Attribution)",
        mutate: |schema, dice| {
            let at = schema.one(dice, "open sequence");
            insert(
                at,
                dice,
                [
                    element("x").with("form", "unqualified").with("minOccurs", "0"),
                    node("any").with("namespace", "##local"),
                ],
            );
        },
    },
    Mutation {
        rule: "cos-nonambig",
        said: "(Unique Particle Attribution)",
        mutate: |schema, dice| {
            let at = schema.one(dice, "open sequence");
            insert(
                at,
                dice,
                [node("choice").of([node("any").with("namespace", "##any"), node("any").with("namespace", "urn:o")])],
            );
        },
    },
    Mutation {
        rule: "cos-nonambig",
        said: "is in the substitutionGroup of",
        mutate: |schema, dice| {
            let [head, member] =
                ["head", "member"].map(|role| node("element").with("ref", schema.reference(dice, role)));
            let at = schema.one(dice, "open sequence");
            insert(at, dice, [node("choice").of([head, member])]);
        },
    },
    Mutation {
        rule: "cos-nonambig",
        said: "(Unique Particle Attribution)",
        mutate: |schema, dice| {
            schema.one(dice, "extended sequence").children.push(element("x").with("minOccurs", "0"));
            schema.one(dice, "extension sequence").children.insert(0, element("x"));
        },
    },
    Mutation {
        rule: "p-props-correct.2.1",
        said: "minOccurs is more than maxOccurs",
        mutate: |schema, dice| {
            const ROLES: [&str; 5] = ["open sequence", "open choice", "wildcard", "element reference", "counted"];
            let counted = |node: &Node| node.get("minOccurs").is_some() && ROLES.contains(&node.role);
            let particle = schema.any(dice, counted);
            particle.set("minOccurs", "3");
            particle.set("maxOccurs", dice_word(dice, &["1", "2"]));
        },
    },
    Mutation {
        rule: "w-props-correct",
        said: "found '##any urn:o'",
        mutate: |schema, dice| {
            schema.one(dice, "wildcard").set("namespace", "##any urn:o");
        },
    },
    Mutation {
        rule: "src-resolve",
        said: "there is no ",
        mutate: |schema, dice| {
            let (name, node) = refer(schema, dice);
            node.set(name, "t:nowhere");
        },
    },
    Mutation {
        rule: "src-resolve.4",
        said: "which this document doesn't import",
        mutate: |schema, dice| {
            let (name, node) = refer(schema, dice);
            node.set(name, "o:x");
        },
    },
    Mutation {
        rule: "c-props-correct.2",
        said: "the xs:keyref has 1 fields",
        mutate: |schema, dice| {
            drop(schema.one(dice, "keyref").children.pop());
        },
    },
    Mutation {
        rule: "c-selector-xpath",
        said: "is more than an identity constraint may have",
        mutate: |schema, dice| {
            schema.one(dice, "selector").set("xpath", "t:x/@p");
        },
    },
    Mutation {
        rule: "c-selector-xpath",
        said: "is more than an identity constraint may have",
        mutate: |schema, dice| {
            schema.one(dice, "selector").set("xpath", "t:x//t:y");
        },
    },
    Mutation {
        rule: "c-selector-xpath",
        said: "is more than an identity constraint may have",
        mutate: |schema, dice| {
            schema.one(dice, "selector").set("xpath", "/t:x");
        },
    },
    Mutation {
        rule: "c-selector-xpath",
        said: "the prefix of 'q:x' is not bound",
        mutate: |schema, dice| {
            schema.any(dice, |node| matches!(node.role, "selector" | "field")).set("xpath", "q:x");
        },
    },
    Mutation {
        rule: "c-fields-xpaths",
        said: "is more than an identity constraint may have",
        mutate: |schema, dice| {
            schema.one(dice, "field").set("xpath", "@p/y");
        },
    },
    Mutation {
        rule: "c-fields-xpaths",
        said: "is not a path for an identity constraint",
        mutate: |schema, dice| {
            schema.one(dice, "field").set("xpath", "text()");
        },
    },
    Mutation {
        rule: "n-props-correct",
        said: "the notation '{urn:t}",
        mutate: |schema, dice| {
            let twice = schema.one(dice, "notation").clone();
            schema.children.push(twice);
        },
    },
];
