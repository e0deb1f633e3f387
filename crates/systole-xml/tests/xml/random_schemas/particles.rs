//! Changes to restricted content models, each of which breaks one rule.

use super::mutations::{Mutation, dice_word};

pub(super) const PARTICLES: &[Mutation] = &[
    Mutation {
        rule: "rcase-NameAndTypeOK.1",
        said: "> is in the place of <",
        mutate: |schema, dice| {
            schema
                .any(dice, |node| matches!(node.role, "narrowed fixed element" | "narrowed blocking element"))
                .set("name", "other");
        },
    },
    Mutation {
        rule: "rcase-NameAndTypeOK.2",
        said: "is nillable, and in the base it isn't",
        mutate: |schema, dice| {
            schema.one(dice, "narrowed element").set("nillable", "true");
        },
    },
    Mutation {
        rule: "rcase-NameAndTypeOK.3",
        said: "times, and in the base 1 to ",
        mutate: |schema, dice| {
            schema.one(dice, "narrowed element").set("maxOccurs", dice_word(dice, &["4", "unbounded"]));
        },
    },
    Mutation {
        rule: "rcase-NameAndTypeOK.4",
        said: "> has the fixed value '1' in the base",
        mutate: |schema, dice| {
            schema.one(dice, "narrowed fixed element").unset("fixed");
        },
    },
    Mutation {
        rule: "rcase-NameAndTypeOK.6",
        said: "> blocks less than in the base",
        mutate: |schema, dice| {
            schema.one(dice, "narrowed blocking element").set("block", dice_word(dice, &["", "restriction"]));
        },
    },
    Mutation {
        rule: "rcase-NameAndTypeOK.7",
        said: "doesn't restrict the one that it has in the base",
        mutate: |schema, dice| {
            schema.one(dice, "narrowed element").set("type", "xs:anyType");
        },
    },
    Mutation {
        rule: "rcase-NSCompat.1",
        said: "the base doesn't allow the namespace of <",
        mutate: |schema, dice| {
            schema.one(dice, "element for a wildcard").set("form", "unqualified");
        },
    },
    Mutation {
        rule: "rcase-NSCompat.2",
        said: "> may stand 1 to ",
        mutate: |schema, dice| {
            schema.one(dice, "element for a wildcard").set("maxOccurs", dice_word(dice, &["5", "unbounded"]));
        },
    },
    Mutation {
        rule: "rcase-NSSubset.2",
        said: "its xs:any allows namespaces that the one of the base doesn't",
        mutate: |schema, dice| {
            schema
                .one(dice, "narrowed wildcard")
                .set("namespace", dice_word(dice, &["##any", "##other", "urn:o urn:p"]));
        },
    },
    Mutation {
        rule: "rcase-NSSubset.3",
        said: "its xs:any checks less than that of the base",
        mutate: |schema, dice| {
            schema.one(dice, "narrowed wildcard").set("processContents", "skip");
        },
    },
    Mutation {
        rule: "rcase-NSRecurseCheckCardinality.1",
        said: "the base doesn't allow the namespace of <",
        mutate: |schema, dice| {
            schema.one(dice, "part for a wildcard").set("form", "unqualified");
        },
    },
    Mutation {
        rule: "rcase-NSRecurseCheckCardinality.2",
        said: "a group may stand ",
        mutate: |schema, dice| {
            schema.one(dice, "part for a wildcard").set("maxOccurs", "4");
        },
    },
    Mutation {
        rule: "rcase-Recurse.2.1",
        said: "> is in the place of <",
        mutate: |schema, dice| {
            let at = schema.one(dice, "narrowed sequence");
            at.children.swap(1, 2);
        },
    },
    Mutation {
        rule: "rcase-Recurse.2.2",
        said: "> of the base is missing",
        mutate: |schema, dice| {
            drop(schema.one(dice, "narrowed sequence").children.pop());
        },
    },
    Mutation {
        rule: "rcase-Recurse",
        said: "> of the base is missing",
        mutate: |schema, dice| {
            drop(schema.one(dice, "narrowed all").children.pop());
        },
    },
    Mutation {
        rule: "rcase-RecurseUnordered.2.1",
        said: "is in the xs:all of the base, but once only",
        mutate: |schema, dice| {
            schema.one(dice, "ordered element").set("maxOccurs", "2");
        },
    },
    Mutation {
        rule: "rcase-RecurseUnordered.2.3",
        said: "> of the base is missing",
        mutate: |schema, dice| {
            let at = schema.one(dice, "ordered sequence");
            at.children.remove(dice.roll(3));
        },
    },
    Mutation {
        rule: "rcase-RecurseLax.2",
        said: "is not part of the choice of the base, or in another order",
        mutate: |schema, dice| {
            schema.one(dice, "chosen element").set("name", "other");
        },
    },
    Mutation {
        rule: "rcase-RecurseLax.2",
        said: "is not part of the choice of the base, or in another order",
        mutate: |schema, dice| {
            schema.one(dice, "narrowed choice").children.reverse();
        },
    },
    Mutation {
        rule: "rcase-RecurseLax.1",
        said: "a group may stand ",
        mutate: |schema, dice| {
            schema.one(dice, "narrowed choice").set("maxOccurs", dice_word(dice, &["4", "unbounded"]));
        },
    },
    Mutation {
        rule: "rcase-MapAndSum.2",
        said: "a group may stand ",
        mutate: |schema, dice| {
            schema.one(dice, "summed choice").set("maxOccurs", dice_word(dice, &["1", "2"]));
        },
    },
    Mutation {
        rule: "rcase-MapAndSum.1",
        said: "is not part of the choice of the base",
        mutate: |schema, dice| {
            schema.one(dice, "summed element").set("name", "other");
        },
    },
    Mutation {
        rule: "cos-particle-restrict.2",
        said: "it is an xs:all, and the base isn't",
        mutate: |schema, dice| {
            schema.one(dice, "summed sequence").tag = "all";
        },
    },
    Mutation {
        rule: "cos-particle-restrict.2",
        said: "it is a choice, and the base isn't",
        mutate: |schema, dice| {
            schema.one(dice, "optional parts").tag = "choice";
        },
    },
];
