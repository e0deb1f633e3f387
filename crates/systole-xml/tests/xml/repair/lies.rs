//! Outputs that would become valid payloads which say something else than their authors: each is refused, or mended to
//! what alone fits. The contract is `corpus/model/review.xsd`.

use systole_xml::ladder::repair::{Author, Shape, Vocabulary};
use systole_xml::ladder::{Raw, parse_fragment};
use systole_xml::vocab::XmlLimits;

use super::files::{bot, review, run, run_by};

/// Checks outputs, each with the expected one; `None` for a refusal.
fn check(contract: Option<&Vocabulary>, cases: &[(&str, Option<&str>)]) {
    for (text, expected) in cases {
        let repaired = match contract {
            Some(contract) => run_by(contract, (*text).to_owned(), Shape::Fragment),
            None => run((*text).to_owned(), Shape::Fragment),
        };
        match (repaired, expected) {
            (Ok(repaired), Some(expected)) => {
                assert_eq!(String::from_utf8_lossy(repaired.bytes()).trim(), *expected, "{text}");
            }
            (Err(_), None) => {}
            (found, _) => panic!("{text}: {found:?}"),
        }
    }
}

fn page(text: &str) -> String {
    format!("<page><head>H</head><p>{text}</p></page>")
}

#[test]
fn comparisons_and_types_are_no_elements() {
    for text in ["if (i<b>0 && j) x", "check x<b>y, & z<b>w", "1<b>2 &", "List<code>items &", "if i <b>0 & x"] {
        check(Some(review()), &[(&page(text), None)]);
    }
    for text in ["set<b>::iterator & x", "Option<b>. & x", "if a<b and c>d & e", "<b>bold<b> text & x"] {
        check(Some(review()), &[(&page(text), None)]);
    }
    let (text, meant) = (page("some <b>word & more"), page("some <b>word &amp; more</b>"));
    check(Some(review()), &[(&text, Some(&meant))]);
}

#[test]
fn a_mention_of_the_open_element_does_not_split_its_text() {
    let lists = [
        ("<patch><hunk>drop all <hunk>s & go</hunk></patch>", None),
        ("<patch><hunk>drop all <hunk>s & go</patch>", None),
        ("<patch><hunk>--in<hunk>out & d</hunk></patch>", None),
        ("<patch><hunk>-x<hunk>+y & z</hunk></patch>", None),
        ("<patch><hunk>a<hunk>b<hunk>c & d</hunk></patch>", None),
    ];
    check(Some(review()), &lists);
    check(None, &lists);
    // Where the contract has a list, it begins the next item at the start of a line, or behind a sentence.
    for (text, meant) in [
        ("<patch><hunk>a\n<hunk>b & c</hunk></patch>", "<patch><hunk>a\n</hunk><hunk>b &amp; c</hunk></patch>"),
        ("<patch><hunk>Stop.<hunk>Go & c</hunk></patch>", "<patch><hunk>Stop.</hunk><hunk>Go &amp; c</hunk></patch>"),
        ("<patch><hunk>a<hunk>b & c</patch>", "<patch><hunk>a</hunk><hunk>b &amp; c</hunk></patch>"),
    ] {
        check(Some(review()), &[(text, Some(meant))]);
        check(None, &[(text, None)]);
    }
    check(None, &[("<ul><li>one<li>two & x</li></ul>", None)]);
}

#[test]
fn an_empty_tag_of_the_open_element_is_refused() {
    let code = page("x <code>a & b<code/> y");
    let texts = [
        "<review><verdict>fail</verdict><comment>a & b<comment/></review>",
        "<review><verdict>fail<verdict/><comment>a & b</comment></review>",
        "<page><head>H</head><p>a & b<p/></page>",
        &code,
        "<note>a & b<note/>",
        "<note>a & b<note/> and so on",
        "<patch><hunk>a & b<hunk/> and so on</patch>",
        "<patch><hunk><hunk/> & <hunk>b</hunk></patch>",
    ];
    for text in texts {
        check(Some(review()), &[(text, None)]);
    }
    for text in [
        "<patch><hunk>1 & 2<hunk/><hunk>3<hunk/></patch>",
        "<patch><hunk>1 & 2<hunk/><hunk>3</hunk></patch>",
        "<patch><hunk>1 & 2<hunk/><hunk/></patch>",
    ] {
        check(Some(review()), &[(text, None)]);
        check(None, &[(text, None)]);
    }
}

#[test]
fn a_payload_amid_a_sentence_is_not_sent() {
    for text in [
        "Do not send <done/> yet.",
        "I have not sent\n<done/> yet.",
        "I have not sent\n<done/>.",
        "<done/> is not what I send",
        "<note>a & b</note> I have not sent <done/>.",
        "Earlier I said <note>draft</note>.\nNow: <note>final & y</note>",
        "Earlier I said: <note>draft</note>.\nNow: <note>final & y</note>",
        "Earlier I said \"<note>draft</note>\"\nNow: <note>final & y</note>",
        "Do not send `<done/>` yet.",
        "Do not send `<done/>`.",
        "Not <done/> but <note>a & b</note>",
        "> <note>draft</note>\n\n<note>final & y</note>",
        "~~ <note>draft</note> ~~\n<note>final & y</note>",
        "I have not sent <done/>",
        "I have not sent <done></done>\nBye",
        "We are `<done/>`",
        "Never send the note <note>a & b</note>",
        "print(\"<note>a & b</note>\")",
        "Do not send the note \"<note>a & b</note>\"",
    ] {
        let error = run_by(review(), text, Shape::Fragment).expect_err(text);
        let is_named = ["stands amid a sentence", "may be a draft"].iter().any(|part| error.to_string().contains(part));
        assert!(is_named, "{text}: {error}");
    }
    // A payload that is struck out is refused by its signs, whatever the sentence around it says.
    let struck = "~~<note>draft</note>~~ <note>final & y</note>";
    let error = run_by(review(), struck, Shape::Fragment).expect_err(struck);
    assert!(error.to_string().contains("may be a draft"), "{error}");
    let note = "<note>a &amp; b</note>";
    for text in [
        "Here: <note>a & b</note>",
        "Here: <note>a & b</note> Hope that helps!",
        "Sure! <note>a & b</note>\nBye.",
        "Sure! <note>a & b</note> ...",
        "I have checked everything. <note>a & b</note> Let me know if you need more.",
        "Final answer → <note>a & b</note>.",
        "<note>a & b</note> Hope that helps.",
        "Result: <note>a & b</note>.",
        "**Answer:** <note>a & b</note> (see above)",
        "The note is `<note>a & b</note>`.",
        "1. <note>a & b</note>",
        "The note is <note>a & b</note>",
        "The note is <note>a & b</note>.",
        "{\"result\": \"<note>a & b</note>\", \"more\": 1}",
        "<|assistant|><note>a & b</note><|end|>",
        "maybe <note>x</note>, hm.\n</think>\n<note>a & b</note>",
    ] {
        check(Some(review()), &[(text, Some(note))]);
    }
    for text in [
        "Now: <done/> &",
        "All is well & good. <done/>",
        "- <done/> &",
        "Here it is, done & checked — <done/>",
        "Here it is & goes\n<done/>",
    ] {
        check(Some(review()), &[(text, Some("<done/>"))]);
    }
}

#[test]
fn a_payload_behind_signs_that_neither_mark_nor_introduce_it_is_not_sent() {
    let note = Some("<note>a &amp; b</note>");
    for sign in '!'..='~' {
        if sign.is_ascii_alphanumeric() || matches!(sign, '<' | '`') {
            continue;
        }
        // Twice, it begins a comment, a quotation, a deletion or a block of some notation.
        let is_plain = matches!(sign, '!' | ')' | '*' | ',' | ']' | '_' | '}' | '"' | '\'');
        let text = format!("{sign}{sign} <note>a & b</note>");
        match run_by(review(), text.clone(), Shape::Fragment) {
            Ok(_) => assert!(is_plain, "{text}"),
            Err(error) => assert!(error.to_string().contains("may be a draft"), "{text}: {error}"),
        }
    }
    for text in [
        "- <note>a & b</note>",
        "* <note>a & b</note>",
        "1) <note>a & b</note>",
        "→ <note>a & b</note>",
        "🛒 <note>a & b</note>",
    ] {
        check(Some(review()), &[(text, note)]);
    }
    for text in [
        "-<note>a & b</note>",
        "- [ ] <note>a & b</note>",
        "❌ <note>a & b</note>",
        "<note>a & b</note> ❌",
        "(<note>a & b</note>)",
        "“<note>a & b</note>”",
        "/*\n<note>a & b</note>\n*/",
        "```draft\n<note>a & b</note>\n```",
        "```diff\n<note>a & b</note>\n```",
        "<!-- <note>a & b</note> -->",
        "<!-- <note>a</note> -->",
    ] {
        check(Some(review()), &[(text, None)]);
    }
}

/// Checks what stands before and behind an order, as `{}`: whether it is sent.
fn frames(is_sent: bool, frames: &[&str]) {
    let order = "<order>5 pens</order>";
    for frame in frames {
        let text = frame.replace("{}", order);
        check(Some(bot()), &[(&text, is_sent.then_some(order))]);
    }
}

#[test]
fn a_payload_is_sent_behind_words_that_announce_it() {
    frames(
        true,
        &["I order five:\n{}", "Here is the order:\n{}", "Ordering five pens:\n{}", "Order: {}", "**Pens**\n{}"],
    );
    frames(
        true,
        &[
            "The stock is low.\n\n{}",
            "No problem, I'll order it without the extras:\n{}",
            "Pas de souci, je commande :\n{}",
        ],
    );
    frames(
        true,
        &["Without further ado:\n{}", "The first try failed, so I order once more:\n{}", "Sure! ```xml\n{}\n```"],
    );
    // Nothing announces but what is known to: neither a condition, a report, a mode nor a name.
    frames(
        false,
        &[
            "When the stock is back I'll order:\n{}",
            "After the backup is done:\n{}",
            "As soon as you agree, I order:\n{}",
        ],
    );
    frames(
        false,
        &["The email contains the following instruction:\n{}", "Agent 2 says:\n{}", "You asked me to repeat this:\n{}"],
    );
    frames(
        false,
        &[
            "[dry run]\n{}",
            "{\"send\": false}\n{}",
            "DISABLED\n{}",
            "mode=preview\n\n{}",
            "Frobnicated:\n{}",
            "Zxcv qwer asdf uiop hjkl:\n{}",
        ],
    );
    frames(
        false,
        &["Is this correct?\n{}", "I could order:\n{}", "I was about to order:\n{}", "Perhaps five are enough.\n{}"],
    );
}

#[test]
fn a_payload_in_a_string_or_an_example_of_a_dialogue_is_not_sent() {
    frames(
        false,
        &["x = '''\n{}\n'''", "const t = `\n{}\n`;", "cat <<EOF > order.xml\n{}\nEOF", "xml = \"\"\"\n{}\n\"\"\""],
    );
    frames(
        false,
        &[
            "Q: order five\nA: {}\n\nQ: the time?\nA: I do not know.",
            "Steps to reproduce: 1. send\n{}\n2. see the crash",
        ],
    );
    frames(true, &["Q: order five?\nA: {}"]);
}

#[test]
fn words_behind_a_payload_that_ask_deny_or_wait_hold_it_back() {
    frames(
        false,
        &[
            "{}\n\nCeci n'est qu'un exemple.",
            "{}\n\n以上仅为示例。",
            "{}\n\nI'll wait for your go-ahead before placing it.",
        ],
    );
    frames(
        false,
        &[
            "{}\n\nWould you like me to place this order?",
            "{}\n\nI haven't sent it.",
            "{}\n\nSoll ich das so abschicken?",
        ],
    );
    frames(
        false,
        &["{}\n\nJust kidding.", "{}\n\nHold on. The stock was updated.", "{}\n\nDone. This is for illustration."],
    );
    frames(
        true,
        &[
            "{}\n\nLet me know if you need anything else!",
            "{}\n\nDon't worry, this stays within the budget.",
            "{}\n\nN'hésitez pas à me demander.",
        ],
    );
    frames(
        true,
        &["{}\n\nWould you like me to continue?", "{}\n\nThe delivery takes three days.", "{}\n\nI'll report later."],
    );
}

#[test]
fn words_of_a_program_hold_nothing_back_that_they_do_not_deny() {
    let program = bot().clone().by(Author::Program);
    let (order, sent) = ("<order>R & D</order>", Some("<order>R &amp; D</order>"));
    let both = |texts: &[&str], by_program: Option<&str>, by_model: Option<&str>| {
        for text in texts {
            let text = text.replace("{}", order);
            check(Some(&program), &[(&text, by_program)]);
            check(Some(bot()), &[(&text, by_model)]);
        }
    };
    // Words that a model may only mean as a draft.
    let drafts = [
        "Tomorrow:\n{}",
        "12 + 30? Sum:\n{}",
        "Ergebnismenge: {}",
        "If there are several, the first one:\n{}",
        "total = 5\n{}",
        "{}\nIs it the right one?",
        "{}\n3 rows were not found.",
        "[12:00:01] INFO reply: {}",
    ];
    both(&drafts, sent, None);
    // Words that a model says beside what it means.
    let meant = [
        "```xml\n{}\n```\nShall I try another one?",
        "That's all of it:\n{}",
        "The critic isn't content yet, but this is what there is:\n{}",
        "Easy:\n{}",
    ];
    both(&meant, sent, sent);
    // Words by which neither sends it.
    let denied = [
        "Not sent: {}",
        "// {}",
        "Do not send this:\n{}",
        "{}\nDo not run this on production.",
        "{}\nShall I run this?",
        "{}\nReply \"yes\" to confirm.",
        "{} (not sent)",
        "{}\nWait, ignore that.",
    ];
    both(&denied, None, None);
}

#[test]
fn a_sentence_that_holds_an_act_back_leads_to_no_payload() {
    for text in [
        "I'm not comfortable with this message.\n\n{}",
        "I could send it, but it can't be undone.\n\n{}",
        "It stays here until you approve it.\n\n{}",
        "Die Bestellung wäre dann diese.\n\n{}",
        "Here's how an order works:\n\n{}",
        "You can send this yourself:\n\n{}",
        "What I did last time:\n{}",
        "{}\n\nThis only demonstrates the format.",
        "{}\n\nWould you prefer another size?",
    ] {
        check(Some(bot()), &[(&text.replace("{}", "<order>R & D</order>"), None)]);
    }
    for text in [
        "There isn't much left.\n\n{}",
        "I need to count the pens before I answer.\n\n{}",
        "I don't see the old ones, so I order new ones.\n\n{}",
    ] {
        check(Some(bot()), &[(&text.replace("{}", "<order>R & D</order>"), Some("<order>R &amp; D</order>"))]);
    }
}

/// Checks texts around `<order>R & D</order>`, which is sent or refused.
fn check_order(texts: &[&str], is_sent: bool) {
    let meant = is_sent.then_some("<order>R &amp; D</order>");
    for text in texts {
        check(Some(bot()), &[(&text.replace("{}", "<order>R & D</order>"), meant)]);
    }
}

#[test]
fn a_sentence_that_points_at_a_payload_leads_to_it() {
    let drafts = [
        "This is the order that Ann wrote.\n\n{}",
        "The log has this.\n\n{}",
        "Paste the following into a shell.\n\n{}",
        "The call below is of last week.\n\n{}",
        "The note means five pens, i.e.\n\n{}",
    ];
    check_order(&drafts, false);
    let meant = [
        "This explains the gap since this morning.\n\n{}",
        "I take care of this.\n\n{}",
        "Certainly! 😊\n\n{}",
        "Will do. ✅\n\n{}",
    ];
    check_order(&meant, true);
}

#[test]
fn a_consent_that_is_missing_holds_a_payload() {
    let drafts = [
        "This needs a sign-off.\n\n{}",
        "I need your permission for it.\n\n{}",
        "I'd like to check with you first.\n\n{}",
        "Tell me what you make of it.\n\n{}",
        "Espero tu confirmación.\n\n{}",
        "--dry-run\n\n{}",
        "{}\n\nI'll wait for your OK.",
        "{}\n\nAnn has to sign this.",
        "{}\n\nJust say go.",
        "{}\n\nOn hold until the board meets.",
        "{}\n\nPendiente de aprobación.",
        "{}\n\n(y/n)",
        "{}\n\nOnce you're happy with it I'll hit send.",
    ];
    check_order(&drafts, false);
    let meant = [
        "Thanks for your approval. I order now.\n\n{}",
        "Ann approved the list.\n\n{}",
        "{}\n\nYou'll get a confirmation soon.",
        "{}\n\nPlease hold on.",
    ];
    check_order(&meant, true);
}

#[test]
fn what_a_model_thinks_quotes_or_reports_is_no_act_of_it() {
    let drafts = [
        "I wonder about this:\n{}",
        "Советую такой заказ:\n{}",
        "I received:\n{}",
        "I usually write:\n{}",
        "I almost sent it:\n{}",
        "Translating the note:\n{}",
        "Here is Ann's request:\n{}",
        "Here's the mail from Ann:\n{}",
        "Here is what I'd write:\n{}",
        "System prompt:\n{}",
        "{\"role\": \"user\", \"content\": \"{}\"}",
        "I'll order this on Monday:\n{}",
        "I'll run one of these:\n{}",
        "I'll run this in an hour:\n{}",
        "I'd send it like this:\n{}",
        "I'm torn between two ways.\n\n{}",
        "Please run this:\n{}",
    ];
    check_order(&drafts, false);
    let meant = [
        "I'm escalating it:\n{}",
        "I'd be happy to do it:\n{}",
        "I looked at the list but couldn't find a price.\n\n{}",
        "I need to look closer:\n{}",
        "Here is today's list:\n{}",
        "Готово. Отправляю заказ:\n{}",
        "Both in parallel:\n{}",
        "{\"role\": \"assistant\", \"content\": \"{}\"}",
        "**Action:** Order the usual things\n\n{}",
        "The first part is done. Now Berlin:\n\n{}",
    ];
    check_order(&meant, true);
    let text = "I book it for Monday:\n<order>the room & Monday</order>";
    check(Some(bot()), &[(text, Some("<order>the room &amp; Monday</order>"))]);
}

#[test]
fn a_condition_of_something_else_is_none_of_the_payload() {
    let meant = [
        "Let me check if the shop is open.\n\n{}",
        "I'll see whether the shop is open before paying:\n\n{}",
        "Before paying, I'll look for the list:\n\n{}",
        "Once I have the list, I'll tell you.\n\n{}",
        "I search, and if there is nothing, I ask Ann.\n\n{}",
        "Since the guest would like one, I'm ordering it.\n\n{}",
        "{}\n\nIf that doesn't work, I'll try another shop.",
        "{}\n\nThis may take a while.",
        "{}\n\nI've removed the old ones.",
        "{}\n\nNote: this can't be undone.",
    ];
    check_order(&meant, true);
    let drafts = [
        "Let me check if that is right.\n\n{}",
        "Let me verify whether that's what you want.\n\n{}",
        "Before paying, I need your approval:\n\n{}",
        "If the shop is open, I'm ordering it:\n\n{}",
        "Should the shop be open, the following goes out.\n\n{}",
        "I'll leave this here for Ann:\n\n{}",
        "{}\n\nI'll run it tomorrow.",
        "{}\n\nTo be executed on Monday.",
        "{}\n\nToo risky.",
        "{}\n\nThat is what Mallory wants me to send.",
        "{}\n\n— Ann",
        "{}\n\n(from the manual)",
    ];
    check_order(&drafts, false);
}

#[test]
fn a_payload_between_two_turns_of_another_speaker_is_of_a_dialogue() {
    check_order(&["Human: order it\nAI: {}\nHuman: thanks", "User: order it\nAssistant: {}\nUser: and pens"], false);
    check_order(&["Human: order it\nAI: {}", "{}\nHuman: thanks"], true);
}

#[test]
fn words_that_a_payload_holds_deny_nothing() {
    let texts = [
        ("我来查询未付款的发票。\n\n<order>未付款发票 & 收据</order>", Some("<order>未付款发票 &amp; 收据</order>")),
        ("我未查询发票。\n\n<order>发票 & 收据</order>", None),
        (
            "I can't do that.\n\n<answer>Sorry & I can't do that.</answer>",
            Some("<answer>Sorry &amp; I can't do that.</answer>"),
        ),
    ];
    check(Some(bot()), &texts);
}

#[test]
fn tags_around_an_answer_say_nothing() {
    let order = Some("<order>R &amp; D</order>");
    let texts = [
        ("<response>\n<order>R & D</order>\n</response>", order),
        ("<output><think>1 & 2?</think><order>R & D</order></output>", order),
        // What holds no payload of the contract, the words of others, and a second answer are no wrappers.
        ("<response>R & D</response>", Some("<response>R &amp; D</response>")),
        (
            "<tool_response><order>R & D</order></tool_response>",
            Some("<tool_response><order>R &amp; D</order></tool_response>"),
        ),
        ("The shop wrote:\n<response><order>R & D</order></response>", None),
        ("<response>\n<order>R & D</order>", None),
    ];
    check(Some(bot()), &texts);
    let two = "<response><order>1 & 2</order></response><response><order>3</order></response>";
    let both = "<order>1 &amp; 2</order><response><order>3</order></response>";
    check(Some(bot()), &[(two, Some(both))]);
}

#[test]
fn labels_of_variants_are_no_answers() {
    let pay = |to: &str| format!("<pay><to>{to}</to><amount>7</amount></pay>");
    let (ann, bob) = (pay("Ann"), pay("Bob"));
    // Payloads that differ in a number alone may be variants of one act.
    for (one, other) in [("Primary:", "Fallback:"), ("Minimum:", "Maximum:"), ("Zxcv:", "Qwer:"), ("V1:", "V2:")] {
        let text = format!("{one} <order>5 pens</order>\n{other} <order>6 pens</order>");
        check(Some(bot()), &[(&text, None)]);
    }
    // So do letters, which number options as well.
    check(Some(bot()), &[("A) <order>5 pens</order>\nB) <order>6 pens</order>", None)]);
    check(Some(bot()), &[(&format!("a) {ann}\nb) {bob}"), Some(&format!("{ann}{bob}")))]);
    let both = format!("{ann}{bob}");
    check(Some(bot()), &[(&format!("Rent: {ann}\nFood: {bob}"), Some(&both))]);
    let pens = "<order>5 pens</order><order>6 pens</order>";
    let text = "I place both orders:\n\nKitchen: <order>5 pens</order>\nOffice: <order>6 pens</order>";
    check(Some(bot()), &[(text, Some(pens))]);
}

#[test]
fn tags_around_calls_say_nothing() {
    let calls = "<order>5 pens</order><run>ls</run>";
    for text in [
        "<tool_call>\n<order>5 pens</order>\n</tool_call>\n<tool_call>\n<run>ls</run>\n</tool_call>",
        "<function_calls><invoke name=\"order\"><order>5 pens</order></invoke><invoke><run>ls</run></invoke></function_calls>",
        "[TOOL_CALL]<order>5 pens</order>[/TOOL_CALL]\n[TOOL_CALL]<run>ls</run>[/TOOL_CALL]",
    ] {
        check(Some(bot()), &[(text, Some(calls))]);
    }
    // Well-formed input is read alike; what no contract knows and what holds the results of tools keep their meaning.
    let parsed = |text: &'static str| {
        let fragment = parse_fragment(&Raw::new(text), &XmlLimits::default(), bot()).unwrap();
        fragment.elements.iter().map(|element| element.as_str().to_owned()).collect::<String>()
    };
    assert_eq!(parsed("<tool_use><order>5 pens</order></tool_use>"), "<order>5 pens</order>");
    let results = "<function_results><order>5 pens</order></function_results>";
    assert_eq!(parsed(results), results);
}

#[test]
fn a_payload_behind_a_label_that_nothing_knows_is_not_sent() {
    // No list has the word: a refusal costs a turn.
    for text in [
        "<note>a & b</note>\n\nDo not run this on production.",
        "<note>a & b</note>\n\nThis has not been submitted.",
        "<note>a & b</note>\n\nSorry, scratch that.",
        "<note>a & b</note>\n\nShall I go ahead?",
        "<note>a & b</note>\n\nReply \"yes\" to confirm.",
        "Here's the order, pending your approval:\n<note>a & b</note>",
        "I'll send this as soon as you confirm:\n\n<note>a & b</note>",
        "Drög: <note>a & b</note>",
        "**Drög**\n\n<note>a & b</note>",
        "Drög\n<note>a & b</note>",
        "X: <note>a & b</note>",
        "Ég skrifa þetta núna: <note>a & b</note>",
    ] {
        check(Some(review()), &[(text, None)]);
    }
    // The words of the payload, its name, and sentences are known.
    for text in [
        "<?xml-stylesheet href='a.xsl'?><note>a & b</note>",
        "<!DOCTYPE note><note>a & b</note>",
        "<![CDATA[x]]><note>a & b</note>",
    ] {
        let found = run_by(review(), text, Shape::Fragment);
        assert!(found.is_ok(), "{text}: {found:?}");
    }
    for text in ["Note: <note>a & b</note>", "## Note\n<note>a & b</note>", "B: <note>a & b</note>"] {
        check(Some(review()), &[(text, Some("<note>a &amp; b</note>"))]);
    }
    // So are labels of several in a row, if they have one form and none of them judges.
    let both = Some("<note>a &amp; b</note><note>c</note>");
    check(Some(review()), &[("Ann: <note>a & b</note>\nBob: <note>c</note>", both)]);
    check(Some(review()), &[("### Ann\n<note>a & b</note>\n### Bob\n<note>c</note>", both)]);
    for text in [
        "Ann: <note>a & b</note>\nBetter: <note>c</note>",
        "Ann: <note>a & b</note>\nBob says <note>c</note>",
        "<note>a & b</note>\nBob: <note>c</note>",
        "Ann: <note>a & b</note>\n**Bob**\n<note>c</note>",
        "Version 1: <note>a & b</note>\nVersion 2: <note>c</note>",
        "Bid 2: <note>a & b</note>\nBid 1: <note>c</note>",
        "Ann: <note>a & b</note>\nBob: <note>c</note>\n\nI take the second.",
        "Pick one.\nAnn: <note>a & b</note>\nBob: <note>c</note>",
    ] {
        check(Some(review()), &[(text, None)]);
    }
}

#[test]
fn a_payload_that_the_text_behind_it_takes_back_is_not_sent() {
    for behind in [
        " (not sent)",
        " — no.",
        "? No.",
        " <-- wrong",
        "\n\nWait, ignore that.",
        "\n\nNo.",
        "\n\nOn second thought, I won't send it.",
    ] {
        check(Some(review()), &[(&format!("<note>a & b</note>{behind}"), None)]);
    }
    for behind in [
        " (see above)",
        "\n\nNo further step is needed.",
        "\n\nLet me know if anything is wrong.",
        "\n\nWaiting for the answer.",
    ] {
        check(Some(review()), &[(&format!("<note>a & b</note>{behind}"), Some("<note>a &amp; b</note>"))]);
    }
}

#[test]
fn a_payload_in_thoughts_in_brackets_of_any_kind_is_not_sent() {
    let brackets = [
        ("[", "]"),
        ("[ ", " ]"),
        ("[[", "]]"),
        ("\\[", "\\]"),
        ("【", "】"),
        ("〖", "〗"),
        ("《", "》"),
        ("＜", "＞"),
        ("< ", " >"),
        ("<<", ">>"),
        ("{", "}"),
        ("{% ", " %}"),
        ("{{", "}}"),
        ("{#", "#}"),
        ("<%", "%>"),
        ("<?", "?>"),
        ("<!--", "-->"),
        ("<|", "|>"),
        ("<｜", "｜>"),
        ("<@", ">"),
        ("<#", ">"),
        ("(", ")"),
        ("（", "）"),
        ("「", "」"),
        ("«", "»"),
        ("“", "”"),
        ("⟦", "⟧"),
        ("◁", "▷"),
        ("⁅", "⁆"),
        ("❴", "❵"),
        ("⸨", "⸩"),
        ("༺", "༻"),
        ("==", "=="),
        ("::", "::"),
        ("~", "~"),
        ("|", "|"),
        ("&lt;", "&gt;"),
        ("&#91;", "&#93;"),
    ];
    let words = [
        ("THINK", "/THINK"),
        ("BEGIN THOUGHT", "END THOUGHT"),
        ("思考", "/思考"),
        ("Überlegung", "/Überlegung"),
        ("размышление", "/размышление"),
    ];
    let (draft, meant) = ("<note>draft</note>", "<note>a & b</note>");
    for (open, close) in brackets {
        for (begin, end) in words {
            let (begin, end) = (format!("{open}{begin}{close}"), format!("{open}{end}{close}"));
            for text in [
                format!("{begin}\nPerhaps {draft} or so.\n{draft}\nNo.\n{end}\n{meant}"),
                format!("{begin}{draft}{end}{meant}"),
                format!("{begin}\n{draft}\n{end}"),
                format!("{begin}\nPerhaps.\n{draft}"),
                format!("{begin} {draft}"),
            ] {
                let raw = Raw::new(text.clone());
                let Ok(fragment) = parse_fragment(&raw, &XmlLimits::default(), review()) else { continue };
                let sent: Vec<&str> = fragment.elements.iter().map(|element| element.as_str()).collect();
                assert!(sent.is_empty() || sent == ["<note>a &amp; b</note>"], "{text}: {sent:?}");
            }
        }
    }
}

#[test]
fn the_end_of_thoughts_does_not_drop_the_only_payload() {
    check(
        Some(review()),
        &[
            ("<note>ok</note></think>", None),
            ("<note>ok & x</note></think>\nBye", None),
            ("<note>ok</note></think></think>", None),
            ("hm <note>ok</note></think>\n<note>b & c</note>", Some("<note>b &amp; c</note>")),
            ("hm</think>", Some("")),
        ],
    );
}

#[test]
fn names_of_html_amid_text_are_no_elements_without_an_end_tag() {
    check(
        None,
        &[
            ("<a>see <b>, <c> and <d> & e</a>", None),
            ("<a>(see <b>) & <code>; x</a>", None),
            ("<msg>Dear <b>, & hi</msg>", None),
            ("<msg>Dear <b> & hi</msg>", None),
            ("<msg>if i <b>0 & hi</msg>", None),
            ("<msg>if f(i)<b>0 & hi</msg>", None),
            ("<msg>Dear <b>you & hi</msg>", Some("<msg>Dear <b>you &amp; hi</b></msg>")),
            ("<msg>See <b>, <i>x</i> & hi</msg>", None),
        ],
    );
}

#[test]
fn an_end_tag_of_the_contract_is_text_where_it_can_be_nothing_else() {
    let review = |comment: &str| format!("<review><verdict>fail</verdict><comment>{comment}</review>");
    for (comment, meant) in [
        ("You forgot </quote> & </p></comment>", Some("You forgot &lt;/quote> &amp; &lt;/p></comment>")),
        // Nothing tells where the comment ends.
        ("You forgot </quote> & more", None),
    ] {
        check(Some(self::review()), &[(&review(comment), meant.map(review).as_deref())]);
    }
}
