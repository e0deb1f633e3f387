//! Changes to declarations, attributes and derivations, each of which breaks one rule.

use super::mutations::{Mutation, dice_word, id, inline, is_attribute};
use super::tree::node;

pub(super) const DECLARATIONS: &[Mutation] = &[
    Mutation {
        rule: "sch-props-correct.2",
        said: "is declared twice: keep one of them",
        mutate: |schema, dice| {
            let twice = dice.pick(&schema.children);
            schema.children.push(twice);
        },
    },
    Mutation {
        rule: "sch-props-correct.2",
        said: "the identity constraint '{urn:t}",
        mutate: |schema, dice| {
            let twice = schema.any(dice, |node| matches!(node.tag, "key" | "unique" | "keyref")).clone();
            schema.one(dice, "keyed").children.push(twice);
        },
    },
    Mutation {
        rule: "src-element.1",
        said: "an element has either default or fixed, not both",
        mutate: |schema, dice| {
            schema.one(dice, "default element").set("fixed", "7");
        },
    },
    Mutation {
        rule: "src-element.2.1",
        said: "an element with a ref has no name of its own",
        mutate: |schema, dice| {
            schema.one(dice, "element reference").set("name", "x");
        },
    },
    Mutation {
        rule: "src-element.2.2",
        said: "an element with a ref has no nillable of its own",
        mutate: |schema, dice| {
            schema.one(dice, "element reference").set("nillable", "true");
        },
    },
    Mutation {
        rule: "src-element.3",
        said: "an element has either a type or one inside of it, not both",
        mutate: |schema, dice| {
            schema.any(dice, |node| node.tag == "element" && node.get("type").is_some()).children.push(inline());
        },
    },
    Mutation {
        rule: "e-props-correct.2",
        said: "of the element <",
        mutate: |schema, dice| {
            schema.one(dice, "default element").set("default", "x");
        },
    },
    Mutation {
        rule: "e-props-correct.4",
        said: "the type of a member of a substitution group must be derived",
        mutate: |schema, dice| {
            schema.one(dice, "member").set("type", "xs:string");
        },
    },
    Mutation {
        rule: "e-props-correct.4",
        said: "the 'final' of the head of the substitution group forbids",
        mutate: |schema, dice| {
            schema.one(dice, "head").set("final", "restriction");
        },
    },
    Mutation {
        rule: "e-props-correct.5",
        said: "an element that is an ID can't have a default or fixed value",
        mutate: |schema, dice| {
            let element = schema.one(dice, "default element");
            element.set("type", "xs:ID");
            element.set("default", "x");
        },
    },
    Mutation {
        rule: "e-props-correct.6",
        said: "a substitution group contains its own head",
        mutate: |schema, dice| {
            let member = schema.reference(dice, "untyped member");
            schema.one(dice, "untyped head").set("substitutionGroup", member);
        },
    },
    Mutation {
        rule: "cos-valid-default.2.1",
        said: "but its type must have elements: only text can be given",
        mutate: |schema, dice| {
            schema.one(dice, "mixed content").set("mixed", "false");
        },
    },
    Mutation {
        rule: "cos-valid-default.2.2.2",
        said: "but its type must have elements: only text can be given",
        mutate: |schema, dice| {
            schema.one(dice, "emptiable part").set("minOccurs", "1");
        },
    },
    Mutation {
        rule: "src-attribute.1",
        said: "an attribute has either default or fixed, not both",
        mutate: |schema, dice| {
            let attribute = schema.any(dice, |node| node.tag == "attribute" && node.get("default").is_some());
            attribute.set("fixed", "7");
        },
    },
    Mutation {
        rule: "src-attribute.3.2",
        said: "an attribute with a ref has no type of its own",
        mutate: |schema, dice| {
            schema.one(dice, "fixed reference").set("type", "xs:decimal");
        },
    },
    Mutation {
        rule: "src-attribute.4",
        said: "an attribute has either a type or an xs:simpleType inside, not both",
        mutate: |schema, dice| {
            schema.any(dice, |node| node.tag == "attribute" && node.get("type").is_some()).children.push(inline());
        },
    },
    Mutation {
        rule: "a-props-correct.2",
        said: "of the attribute '",
        mutate: |schema, dice| {
            schema.one(dice, "default attribute").set("default", "x");
        },
    },
    Mutation {
        rule: "a-props-correct.3",
        said: "an attribute that is an ID can't have a default or fixed value",
        mutate: |schema, dice| {
            let attribute = schema.one(dice, "default attribute");
            attribute.set("type", "xs:ID");
            attribute.set("default", "x");
        },
    },
    Mutation {
        rule: "au-props-correct.2",
        said: "which its use can't change",
        mutate: |schema, dice| {
            let attribute = schema.one(dice, "fixed reference");
            attribute.set("fixed", "2");
        },
    },
    Mutation {
        rule: "au-props-correct.2",
        said: "which its use can't change",
        mutate: |schema, dice| {
            let attribute = schema.one(dice, "fixed reference");
            attribute.unset("fixed");
            attribute.set("default", "1");
        },
    },
    Mutation {
        rule: "no-xmlns",
        said: "no attribute can be called xmlns",
        mutate: |schema, dice| {
            schema
                .any(dice, |node| {
                    node.tag == "attribute" && node.get("name").is_some() && !node.role.ends_with("attribute")
                })
                .set("name", "xmlns");
        },
    },
    Mutation {
        rule: "ct-props-correct.3",
        said: "a type is derived from itself",
        mutate: |schema, dice| {
            let last = schema.reference(dice, "last of a circle");
            schema.one(dice, "first of a circle").child("complexContent").child("extension").set("base", last);
        },
    },
    Mutation {
        rule: "ct-props-correct.4",
        said: "is declared twice: keep one of them",
        mutate: |schema, dice| {
            let holder =
                schema.any(dice, |node| node.role != "restricted base" && node.children.iter().any(is_attribute));
            let twice = holder.children.iter().find(|child| is_attribute(child)).expect("it has one").clone();
            holder.declare(twice);
        },
    },
    Mutation {
        rule: "ct-props-correct.5",
        said: "two attributes of one element can't both be IDs",
        mutate: |schema, dice| {
            let ty = schema.any(dice, |node| matches!(node.role, "complex" | "attributed"));
            ty.declare(id("x"));
            ty.declare(id("y"));
        },
    },
    Mutation {
        rule: "ag-props-correct.3",
        said: "two attributes of one element can't both be IDs",
        mutate: |schema, dice| {
            let group = schema.any(dice, |node| node.tag == "attributeGroup" && node.get("name").is_some());
            group.declare(id("x"));
            group.declare(id("y"));
        },
    },
    Mutation {
        rule: "src-attribute_group.3",
        said: "an attribute group contains itself",
        mutate: |schema, dice| {
            let first = schema.reference(dice, "first attribute group");
            schema.one(dice, "last attribute group").declare(node("attributeGroup").with("ref", first));
        },
    },
    Mutation {
        rule: "src-ct.1",
        said: "complex content can't be derived from a simple type",
        mutate: |schema, dice| {
            schema.one(dice, "extension").child("complexContent").child("extension").set("base", "xs:int");
        },
    },
    Mutation {
        rule: "src-ct.2",
        said: "simple content can't restrict a simple type",
        mutate: |schema, dice| {
            schema
                .one(dice, "simple content restricted")
                .child("simpleContent")
                .child("restriction")
                .set("base", "xs:int");
        },
    },
    Mutation {
        rule: "src-ct.2",
        said: "the content of a restriction is of another kind than that of its base",
        mutate: |schema, dice| {
            schema.one(dice, "part of mixed").set("minOccurs", "1");
        },
    },
    Mutation {
        rule: "cos-ct-extends.1.1",
        said: "the 'final' of the base forbids this derivation",
        mutate: |schema, dice| {
            schema.one(dice, "extended").set("final", dice_word(dice, &["extension", "#all"]));
        },
    },
    Mutation {
        rule: "cos-ct-extends.1.4.2.2.2.2.1",
        said: "an extension is mixed if its base is, and only then",
        mutate: |schema, dice| {
            let role = dice.pick(&["extended", "extension"]);
            schema.one(dice, role).set("mixed", "true");
        },
    },
    Mutation {
        rule: "cos-ct-extends.2.2",
        said: "the 'final' of the base forbids this derivation",
        mutate: |schema, dice| {
            schema.one(dice, "text").set("final", "#all");
        },
    },
    Mutation {
        rule: "derivation-ok-restriction.1",
        said: "the 'final' of the base forbids this derivation",
        mutate: |schema, dice| {
            schema.one(dice, "restricted base").set("final", "restriction");
        },
    },
    Mutation {
        rule: "derivation-ok-restriction.2.1.1",
        said: "is required in the base: a restriction can't make it optional",
        mutate: |schema, dice| {
            schema.one(dice, "needed attribute").set("use", "optional");
        },
    },
    Mutation {
        rule: "derivation-ok-restriction.2.1.2",
        said: "is not derived from its type in the base",
        mutate: |schema, dice| {
            schema.one(dice, "typed attribute").set("type", "xs:string");
        },
    },
    Mutation {
        rule: "derivation-ok-restriction.2.1.3",
        said: "has the fixed value '1' in the base, which a restriction keeps",
        mutate: |schema, dice| {
            schema.one(dice, "attribute of a fixed value").set("fixed", "2");
        },
    },
    Mutation {
        rule: "derivation-ok-restriction.2.2",
        said: "which its base doesn't allow",
        mutate: |schema, dice| {
            let restriction = schema.one(dice, "restriction").child("complexContent").child("restriction");
            restriction.declare(node("attribute").with("name", "more"));
        },
    },
    Mutation {
        rule: "derivation-ok-restriction.3",
        said: "is required in the base, so a restriction can't prohibit it",
        mutate: |schema, dice| {
            schema.one(dice, "needed attribute").set("use", "prohibited");
        },
    },
    Mutation {
        rule: "derivation-ok-restriction.4.1",
        said: "a restriction has xs:anyAttribute, which its base doesn't have",
        mutate: |schema, dice| {
            let restriction = schema.one(dice, "closed restriction").child("complexContent").child("restriction");
            restriction.children.push(node("anyAttribute"));
        },
    },
    Mutation {
        rule: "derivation-ok-restriction.4.2",
        said: "allows namespaces that the one of its base doesn't",
        mutate: |schema, dice| {
            schema
                .one(dice, "narrowed wildcard of attributes")
                .set("namespace", dice_word(dice, &["##any", "##other", "urn:o urn:q", "##local"]));
        },
    },
    Mutation {
        rule: "derivation-ok-restriction.4.3",
        said: "checks less than the one of its base: see processContents",
        mutate: |schema, dice| {
            schema.one(dice, "narrowed wildcard of attributes").set("processContents", "skip");
        },
    },
    Mutation {
        rule: "derivation-ok-restriction.5.4.1",
        said: "a restriction can't be mixed if its base isn't",
        mutate: |schema, dice| {
            schema.one(dice, "restriction of a sequence").set("mixed", "true");
        },
    },
    Mutation {
        rule: "derivation-ok-restriction.5.3",
        said: "a restriction is empty, but its base must have content",
        mutate: |schema, dice| {
            schema.one(dice, "restriction of a sequence").child("complexContent").child("restriction").children.clear();
        },
    },
];
