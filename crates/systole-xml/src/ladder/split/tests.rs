//! Tests of the splitter.

use proptest::prelude::*;

use super::*;
use crate::vocab::ns;

const E: &str = ns::ENVELOPE;

fn limits(message_bytes: usize) -> XmlLimits {
    XmlLimits { message_bytes, ..XmlLimits::default() }
}

/// The pieces of a stream that comes in chunks of these sizes, repeated.
fn split_in(stream: &[u8], message_bytes: usize, sizes: &[usize]) -> Vec<Piece> {
    let mut splitter = Splitter::new(&limits(message_bytes));
    let mut pieces = Vec::new();
    let mut rest = stream;
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, more) = rest.split_at(size.clamp(1, rest.len()));
        splitter.push(chunk);
        pieces.extend(std::iter::from_fn(|| splitter.next()));
        rest = more;
    }
    pieces.extend(std::iter::from_fn(|| splitter.finish()));
    pieces
}

fn split(stream: &str) -> Vec<String> {
    split_limited(stream, 1 << 20)
}

fn split_limited(stream: &str, message_bytes: usize) -> Vec<String> {
    let text = |piece| match piece {
        Piece::Message(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        Piece::TooLarge { at, bytes } => format!("too large: {bytes} at {at}"),
    };
    split_in(stream.as_bytes(), message_bytes, &[usize::MAX]).into_iter().map(text).collect()
}

/// A message whose payload is `payload`.
fn message(payload: &str) -> String {
    format!("<message xmlns=\"{E}\"><meta><from>a</from></meta>{payload}</message>")
}

#[test]
fn messages_end_at_their_end_tags() {
    let messages = [
        message("<a/>"),
        format!("<e:message xmlns:e='{E}'><e:meta><e:from/></e:meta><message>text</message></e:message>"),
        message("<message xmlns='urn:chat'><message/></message>"),
        message("<a b='</message>' c=\">\"><!--</message>--><![CDATA[</message>]]><?p </message>?></a >"),
        message("1 < 2 & a<b <3 </message "),
        format!("<message xmlns='{E}'/>"),
    ];
    assert_eq!(split(&messages.concat()), messages);
    assert_eq!(split(&messages.join(" \n")), messages);
}

#[test]
fn an_envelope_inside_of_an_envelope_is_part_of_it() {
    let inner = message("<a/>");
    for whole in [
        message(&inner),
        message(&format!("<forward>{inner}{inner}</forward>")),
        message(&format!("<forward>{}</forward>", message(&message("<x/>")))),
        message(&format!("<quote><![CDATA[{inner}{inner}]]></quote>")),
        message(&format!("<quote><!--{inner}-->{}</quote>", inner.replace('<', "&lt;"))),
    ] {
        assert_eq!(split(&format!("{whole}\n{whole}")), [&whole[..], &whole]);
    }
}

#[test]
fn a_message_without_meta_that_lacks_its_end_tag_swallows_none() {
    let good = message("<a/>");
    let short = format!("<message xmlns='{E}'><a/></message>");
    let cut = short.strip_suffix("</message>").unwrap();
    assert_eq!(split(&format!("{cut}{good}{short}{cut}{short}")), [cut, &good, &short, cut, &short]);
}

#[test]
fn a_missing_end_tag_costs_one_message() {
    let good = message("<a>1</a>");
    let without_end = good.strip_suffix("</message>").unwrap();
    for (broken, left) in [
        (without_end.to_owned(), without_end.to_owned()),
        (format!("<message xmlns='{E}'>"), format!("<message xmlns='{E}'>")),
        (format!("{without_end}</b>\n```\n"), format!("{without_end}</b>\n```\n")),
    ] {
        let mut splitter = Splitter::new(&limits(1 << 20));
        splitter.push(format!("{broken}{good}").as_bytes());
        assert_eq!(splitter.next(), Some(Piece::Message(left.into())), "{broken}");
        assert_eq!(splitter.next(), Some(Piece::Message(good.clone().into())), "{broken}");
        assert_eq!(splitter.finish(), None);
    }
}

#[test]
fn messages_behind_a_cut_one_come_out_at_the_end() {
    let (one, two) = (message("<a>1</a>"), message("<b/>"));
    let cut = &one[..one.len() - "</a></message>".len()];
    assert_eq!(split(&format!("{cut}{one} text {two}")), [cut, &one, &format!("text {two}")]);
    assert_eq!(split(&format!("{cut}{one}<x/>{two}{cut}{two}<!--")), [cut, &one, "<x/>", &two, cut, &two, "<!--"]);
}

#[test]
fn messages_behind_a_cut_one_wait_for_one_limit_at_most() {
    let good = message("<a>1</a>");
    let cut = &good[..good.len() - "</a></message>".len()];
    let mut splitter = Splitter::new(&limits(1000));
    splitter.push(cut.as_bytes());
    for _ in 0..20 {
        splitter.push(good.as_bytes());
    }
    assert_eq!(splitter.next(), Some(Piece::Message(cut.to_owned().into())));
    assert!(splitter.pieces.len() > 5, "only {} of 20 came out", splitter.pieces.len());
}

#[test]
fn what_stands_around_messages_is_not_lost() {
    let one = message("<a/>");
    let fenced = format!("\u{FEFF}Here <-- it's:\n```xml\n<?xml version='1.0'?><!-- <b> -->{one}");
    assert_eq!(split(&format!("{fenced}\n```\n")), [&fenced[..]]);
    assert_eq!(split(&format!("{one}\n<!--c--><?p?>")), [&one[..]]);
    assert_eq!(split(&format!("{one} rest")), [&one[..], "rest"]);
    assert_eq!(split(&format!("{one}<![CDATA[x]]>")), [&one[..], "<![CDATA[x]]>"]);
    assert_eq!(split(&format!("<p>1</p>{one}</p>{one}")), ["<p>1</p>", &one, "</p>", &one]);
    assert_eq!(split(&format!("a<br>b {one}")), ["a<br>b ", &one]);
    assert_eq!(split(&format!("<messages>{one}{one}</messages>")), ["<messages>", &one, &one, "</messages>"]);
    assert_eq!(split(&format!("<message>no namespace {one}")), ["<message>no namespace ", &one]);
    assert_eq!(split("  \n "), Vec::<String>::new());
    assert_eq!(split("no message at all"), ["no message at all"]);
}

#[test]
fn unbalanced_quotes_end_at_the_next_message() {
    let one = message("<a/>");
    assert_eq!(split(&format!("it isn't a<b c='x {one}")), [format!("it isn't a<b c='x {one}")]);
    assert_eq!(split(&format!("don't <b c='x> {one}")), ["don't <b c='x> ", &one]);
    let broken = format!("<message xmlns='{E}'><meta/><a b=\"></a></message>");
    assert_eq!(split(&format!("{broken}{one}")), [&broken[..], &one]);
}

#[test]
fn envelopes_are_known_by_the_namespace_that_they_declare() {
    for (tag, is_envelope) in [
        (format!("<message xmlns=\"{E}\">"), true),
        (format!("<message\n xmlns = '{E}' a='b'>"), true),
        (format!("<message xmlns={E}>"), true),
        (format!("<e:message xmlns='urn:x' xmlns:e='{E}'>"), true),
        (format!("<e:message xmlns='{E}'>"), false),
        (format!("<message xmlns:e='{E}'>"), false),
        (format!("<message a='{E}'>"), false),
        (format!("<message myxmlns='{E}'>"), false),
        (format!("<message xmlns='{E}/2'>"), true),
        (format!("<message xmlns='{E}2'>"), false),
    ] {
        assert_eq!(declares_envelope(tag.as_bytes(), name_of(tag.as_bytes())), is_envelope, "{tag}");
    }
}

#[test]
fn a_message_over_the_limit_faults_alone() {
    let one = message("<a/>");
    let limit = one.len();
    let large = message("<ab/>");
    let too_large = format!("too large: {} at 2:1", large.len());
    assert_eq!(split_limited(&format!("{one}\n{large}\n{one}"), limit), [&one[..], &too_large, &one]);
    let quoting = message(&format!("<q>{}</q>", one.repeat(5)));
    let nested = split_limited(&quoting, quoting.len());
    assert_eq!(nested, [quoting]);
}

#[test]
fn prose_does_not_make_a_message_too_large() {
    let one = message("<a/>");
    let prose = "x".repeat(one.len() - 10);
    assert_eq!(split_limited(&format!("{prose}{one}{one}"), one.len()), [&prose[..], &one, &one]);
    let much = "é".repeat(3 * one.len());
    let large = format!("too large: {} at 1:1", much.len());
    assert_eq!(split_limited(&format!("{much}{one}"), one.len()), [&large[..], &one]);
}

#[test]
fn a_stream_without_an_end_is_not_kept() {
    let mut splitter = Splitter::new(&limits(1000));
    splitter.push(format!("<message xmlns='{E}'><![CDATA[").as_bytes());
    for _ in 0..100 {
        splitter.push(&[b'x'; 500]);
        assert!(splitter.stream.end() < 100_000);
    }
    splitter.push(format!("]]><x></x></y>{}", message("<a/>")).as_bytes());
    assert!(matches!(splitter.next(), Some(Piece::TooLarge { bytes: 50_000.., .. })), "{splitter:?}");
    assert_eq!(splitter.next(), Some(Piece::Message(message("<a/>").into())));
}

#[test]
fn hostile_streams_take_linear_time() {
    let envelope = format!("<message xmlns='{E}'>");
    let pieces = [
        "<a>".to_owned(),
        "<a b='".to_owned(),
        "<!--".to_owned(),
        "<!".to_owned(),
        "<".to_owned(),
        "</x>".to_owned(),
        " ' = \"".to_owned(),
        envelope.clone(),
        format!("{envelope}<meta/><a>"),
        format!("{envelope}<meta/>{envelope}<!--"),
        format!("{envelope}<meta/><a b='"),
    ];
    for piece in pieces {
        let stream = piece.repeat((1 << 20) / piece.len());
        for size in [37, 1 << 20] {
            let found = split_in(stream.as_bytes(), 1 << 16, &[size]);
            assert!(!found.is_empty(), "{piece}");
        }
    }
}

/// Parts that a dirty stream is made of.
fn part() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "<a>",
        "</a>",
        "<a/>",
        "</message>",
        "</e:message>",
        "<meta>",
        "</meta>",
        "<meta/>",
        "<message>",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?",
        "?>",
        "<!DOCTYPE ",
        "[",
        "]",
        ">",
        "<",
        "/>",
        "'",
        "\"",
        "=",
        " ",
        "\n",
        "text",
        "é",
        "```",
        "<a b='",
        "<a b=\"</message>\">",
        "&amp;",
        "\u{FEFF}",
    ])
    .prop_map(str::to_owned);
    let start = prop::sample::select(vec![
        format!("<message xmlns='{E}'>"),
        format!("<e:message xmlns:e=\"{E}\">"),
        format!("<message xmlns='{E}'><meta><from/></meta>"),
    ]);
    prop_oneof![4 => fixed, 1 => start, 1 => Just(message("<a/>"))]
}

proptest! {
    #[test]
    fn chunks_never_change_the_pieces(
        parts in prop::collection::vec(part(), 0..40),
        sizes in prop::collection::vec(1usize..40, 1..8),
        limit in prop::sample::select(vec![1usize, 60, 150, 400, 1 << 20]),
    ) {
        let stream = parts.concat();
        let whole = split_in(stream.as_bytes(), limit, &[usize::MAX]);
        prop_assert_eq!(&split_in(stream.as_bytes(), limit, &sizes), &whole);
        prop_assert_eq!(&split_in(stream.as_bytes(), limit, &[1]), &whole);
    }

    #[test]
    fn nothing_is_lost_or_over_the_limit(
        parts in prop::collection::vec(part(), 0..40),
        limit in prop::sample::select(vec![60usize, 400, 1 << 20]),
    ) {
        let stream = parts.concat();
        let mut rest = stream.as_str();
        for piece in split_in(stream.as_bytes(), limit, &[usize::MAX]) {
            let length = match &piece {
                Piece::Message(bytes) => {
                    prop_assert!(bytes.len() <= limit);
                    let text = std::str::from_utf8(bytes).unwrap();
                    let at = rest.find(text).unwrap();
                    prop_assert!(rest[..at].trim_ascii().is_empty(), "lost {:?}", &rest[..at]);
                    at + text.len()
                }
                Piece::TooLarge { bytes, .. } => {
                    let start = rest.len() - rest.trim_ascii_start().len();
                    start + usize::try_from(*bytes).unwrap()
                }
            };
            rest = &rest[length..];
        }
        prop_assert!(is_noise(rest.as_bytes()), "lost {:?}", rest);
    }

    #[test]
    fn well_formed_messages_come_out_as_they_are(payloads in prop::collection::vec("(<a( b='[^<&']*')?>[^<&]{0,5}(<message><b/></message>|<!--([^-])*-->)?</a>)", 0..5)) {
        let messages: Vec<_> = payloads.iter().map(|payload| message(payload)).collect();
        prop_assert_eq!(split(&messages.concat()), messages);
    }
}
