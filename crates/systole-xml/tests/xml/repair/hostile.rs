//! Inputs made to make repair slow, large or wrong. None of them is timed: a quadratic step would make the tests take
//! minutes. The properties, which run repair a dozen times, are checked on short ones.

use systole_xml::ladder::repair::{RepairError, Shape, Vocabulary, repair, repair_by};
use systole_xml::ladder::{Raw, properties};
use systole_xml::vocab::XmlLimits;

fn fill(open: &str, piece: &str, size: usize) -> String {
    let mut input = open.to_owned();
    while input.len() + piece.len() <= size {
        input.push_str(piece);
    }
    input
}

/// Repairs a document without a contract, and a fragment by one.
fn ends(input: String) {
    let (raw, limits) = (Raw::new(input), XmlLimits::default());
    let mut contract = Vocabulary::default();
    contract.place("a", "b", false);
    contract.declare("b", true, false);
    let _ = repair(&raw, Shape::Document, &limits);
    let _ = repair_by(&contract, &raw, Shape::Fragment, &limits);
}

#[test]
fn much_of_the_same_ends_at_once() {
    for open in ["", "<r>"] {
        for piece in ["<", "<a ", "<a b=\"", "&", "]]>", "<!--", "```", "\0", "</a>", "1 < 2 ", "<a b=“c "] {
            ends(fill(open, piece, 1 << 16));
        }
    }
}

#[test]
fn many_markers_of_chat_templates_end_at_once() {
    for open in ["", "<r>", "<|channel|>final<|message|>"] {
        for piece in [
            "[THINK]",
            "[/THINK]",
            "[THINK]<a b></a>[/THINK]<a>& ",
            "[THINK]<a>[/THINK]<a>&</a>",
            "[PLAN]",
            "[/PLAN]",
            "[PLAN][/PLAN]",
            "[INST]<a>[/INST]",
            "<|channel|>",
            "<|channel|>final",
            "<|message|>",
            "<|user|>",
            "<|im_start|>",
            "<|im_start|>user ",
            "◁think▷",
            "◁/think▷<a/>",
            "<|",
            "[",
            "<a|>",
            "【",
            "```thinking\n",
            "assistantfinal",
            "Here is my thought process:",
            "\nThinking: ",
            "\nThinking: <a></a>",
            "\nAnswer: ",
            "\nThinking:\nAnswer: <a>&",
            "\nHuman: ",
            "\nSystem: ",
            "\nAssistant: <a/>",
            "[Thinking: ",
            "[Thinking: <a/>",
            "{thinking: {",
            "(Thought: ",
            "\"thinking\": \"",
            "\"thinking\": [",
            "\"type\": \"thinking\"",
            "{'thoughts': '",
            "~~<a/>",
            "~~<a/>~~",
            "`<think>`<a/>",
            "&lt;think&gt;<a/>&lt;/think&gt;",
            "«think»<a/>«/think»",
            "<!-- thinking -->",
            "\\end{think}",
            "〖",
            "&lt;",
        ] {
            ends(fill(open, piece, 1 << 14));
        }
    }
}

#[test]
fn long_runs_of_anything_end_at_once() {
    let open = ["", "<r>", "prose ", "```xml\n"];
    let pieces = [
        "<",
        "<a ",
        "<a b=\"",
        "<a b='",
        "<a b=“c ",
        "<a b=“c> ",
        "<a b=`c",
        "<a b=\\\"c ",
        "&",
        "&#",
        "&#1",
        "&a;",
        "]]>",
        "<!--",
        "-->",
        "<![CDATA[",
        "<?a ",
        "<?a?>",
        "<!DOCTYPE a '",
        "<!DOCTYPE a \"",
        "```",
        "```python\n",
        "~~~~ json\n",
        "`",
        "``",
        "` ",
        "`<a>` ",
        "`a",
        "</a>",
        "</a ",
        "</a",
        "< ",
        "1 < 2 ",
        "a<b and c>d ",
        "x <b c> ",
        "<br>",
        "</",
        "<a>",
        "<a/>",
        "<a/><b></c>",
        "'\"",
        "<a b=\"c\" b='d'",
        "<a b c=d e=\"f\"> ",
        "<a b=\"c <d e='f <g h=“i <",
        "=\"<a ",
        "a=\"<b c=\"d ",
        "\u{0}",
        "\u{FFFE}x",
        "\n",
        " ",
        "\r\n\t",
        "<x> y <x> ",
        "a <x> b ",
        "<a\n",
        "<a xmlns:p='urn:x'>",
        "<p:a",
        "“",
        "é<é ",
        "<?xml version='1.0'?>",
        "&lt;",
        "<a>b</a",
        "----",
        "<a b=\"<a b='",
        "b=\"<a c='",
        "<x>y</x> ",
        "<a b=\" ",
        "<a \n",
        "`` ` ",
        "<!DOCTYPE a>",
        "a\n",
        "```\n",
        "' \" ",
    ];
    for open in open {
        for piece in pieces {
            properties::repair(fill(open, piece, 1 << 11).as_bytes());
            ends(fill(open, piece, 1 << 14));
        }
    }
}

#[test]
fn a_million_comparisons_keep_their_text() {
    let limits = XmlLimits::default().message_bytes(64 << 20);
    let input = format!("<a>{}</a>", "1 < ".repeat(1_000_000));
    let repaired = repair(&Raw::new(input), Shape::Document, &limits).expect("text in an element");
    assert_eq!(repaired.repairs().len(), 1_000_000);
    assert!(repaired.bytes().starts_with(b"<a>1 &lt; 1 &lt; "));
}

#[test]
fn a_hundred_thousand_open_tags_pass_the_limit() {
    for shape in [Shape::Document, Shape::Fragment] {
        let error = repair(&Raw::new("<a>".repeat(100_000)), shape, &XmlLimits::default()).unwrap_err();
        assert!(matches!(error, RepairError::TooDeep { limit: 256, .. }) && error.is_limit(), "{error}");
    }
    let limits = XmlLimits::default().depth(usize::MAX).message_bytes(1 << 30);
    let fenced = format!("```\n{}\n```", "<a>".repeat(100_000));
    let deep = repair(&Raw::new(fenced), Shape::Document, &limits).expect("no limit on depth");
    assert_eq!(deep.bytes().len(), 100_000 * 7 + 1);
}

#[test]
fn each_limit_has_an_error_of_its_own() {
    let limits = XmlLimits::default()
        .message_bytes(100)
        .depth(2)
        .attributes(2)
        .namespaces(1)
        .name_bytes(8)
        .value_bytes(9)
        .comment_bytes(4)
        .instruction_bytes(5)
        .relative_namespaces(false);
    let refusal = |input: &str| {
        let error = repair(&Raw::new(input.to_owned()), Shape::Document, &limits).unwrap_err();
        assert!(error.is_limit(), "{error}");
        error.to_string()
    };
    assert_eq!(refusal(&" ".repeat(101)), "1:101: 101 bytes are more than the 100 that a message may have");
    assert_eq!(
        refusal(&format!("<a>{}</a>", "&".repeat(30))),
        "1:24: repaired up to here, the message has more than the 100 bytes that it may have"
    );
    assert_eq!(refusal("<a><a>\n<a>"), "2:1: more than 2 elements inside each other");
    assert_eq!(refusal("<a b='' b='' b=''>"), "1:1: 3 attributes and namespace declarations in one tag: 2 are allowed");
    assert_eq!(refusal("<a xmlns='u:1'><b xmlns:c='u:2'/>"), "1:19: more than 1 namespace declarations in scope");
    assert_eq!(refusal("<a><bbbbbbbbb/>"), "1:5: a name of 9 bytes: names may have 8");
    assert_eq!(refusal("<a bbbbbbbbb>"), "1:4: a name of 9 bytes: names may have 8");
    assert_eq!(refusal("<a xmlns='urn:12345'>"), "1:4: a name of 9 bytes: names may have 8");
    assert_eq!(refusal("<a><?bbbbbbbbb?>"), "1:6: a name of 9 bytes: names may have 8");
    assert_eq!(refusal("<a b='1' c='0123456789'/>"), "1:10: the value of 'c' has 10 bytes: values may have 9");
    assert_eq!(refusal("<a b='a < b < c'/>"), "1:4: the value of 'b' has 15 bytes: values may have 9");
    assert_eq!(refusal("<a><!--12345--></a>"), "1:4: a comment of 5 bytes: comments may have 4");
    assert_eq!(refusal("<a><!-------></a>"), "1:4: a comment of 6 bytes: comments may have 4");
    assert_eq!(refusal("<?p 1234 ?><a/>"), "1:1: a processing instruction of 6 bytes: instructions may have 5");
}

#[test]
fn many_distinct_names_stay_linear() {
    let mut input = String::from("<r>");
    for number in 0..20_000 {
        input.push_str(&format!("</e{number}>\n<e{number}/>"));
    }
    ends(input);
    let declarations: String = (0..200).map(|number| format!(" xmlns:p{number}='urn:{number}'")).collect();
    ends(format!("<r{declarations}>{}", "<p0:a p1:b='' p2:b=''/>".repeat(10_000)));
}
