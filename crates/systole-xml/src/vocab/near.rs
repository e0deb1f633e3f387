//! "Did you mean": the known word nearest to a written one.

use super::{QName, ns};

/// The nearest of the known words, if it differs by at most one slip in three characters.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = written.chars().count();
    let bound = (length / 3).max(1);
    known
        .into_iter()
        .filter(|word| word.chars().count().abs_diff(length) <= bound)
        .map(|word| (distance(written, word), word))
        .filter(|&(slips, word)| slips <= bound && slips < word.chars().count())
        .min_by_key(|&(slips, _)| slips)
        .map(|(_, word)| word)
}

/// The known key that a writer may have meant: the nearest, or the only one that shares a word with the written key
/// (`timeout` for `handler_timeout`).
pub fn key(written: &str, known: &[&'static str]) -> Option<&'static str> {
    let words = |key: &str| key.split(['_', '-']).map(str::to_ascii_lowercase).collect::<Vec<_>>();
    let (own, wanted) = (words(written), [written.to_ascii_lowercase()]);
    let holds = |outer: &[String], inner: &[String]| inner.iter().all(|word| outer.contains(word));
    let sharing = || known.iter().filter(|key| holds(&own, &words(key)) || holds(&words(key), &wanted)).copied();
    nearest(written, known.iter().copied()).or_else(|| sharing().next().filter(|_| sharing().count() == 1))
}

/// The known payload that a writer may have meant: one of the same namespace with a similar local name, or one of the
/// same local name in a similar namespace, in no namespace, or in any namespace if `written` has none or that of the
/// envelope (a default namespace that it inherited).
pub fn payload<'a>(written: &QName, known: impl Iterator<Item = &'a QName> + Clone) -> Option<&'a QName> {
    let siblings = || known.clone().filter(|other| other.namespace() == written.namespace());
    if let Some(local) = nearest(written.local(), siblings().map(QName::local)) {
        return siblings().find(|other| other.local() == local);
    }
    let namesakes = || known.clone().filter(|other| other.local() == written.local());
    if matches!(written.namespace(), "" | ns::ENVELOPE) {
        let slip = || nearest(written.local(), known.clone().map(QName::local));
        return namesakes().next().or_else(|| known.clone().find(|other| Some(other.local()) == slip()));
    }
    match nearest(written.namespace(), namesakes().map(QName::namespace)) {
        Some(namespace) => namesakes().find(|other| other.namespace() == namespace),
        None => namesakes().find(|other| other.namespace().is_empty()),
    }
}

/// The edit distance of two words (optimal string alignment: insertions, deletions, replacements and swaps of
/// neighbours), regardless of case and of `-` for `_`.
fn distance(a: &str, b: &str) -> usize {
    let fold = |text: &str| -> Vec<char> {
        text.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
    };
    let (a, b) = (fold(a), fold(b));
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_shares_a_word_may_be_meant() {
        let known = ["timeout", "max_attempts", "queue", "queue_bytes", "threads"];
        for (written, meant) in [
            ("handler_timeout", Some("timeout")),
            ("attempts", Some("max_attempts")),
            ("bytes", Some("queue_bytes")),
            ("colour", None),
        ] {
            assert_eq!(key(written, &known), meant, "{written}");
        }
    }

    const KEYS: [&str; 5] = ["name", "command", "accepts", "accepts_faults", "returns"];

    #[test]
    fn slips_of_the_hand_find_their_word() {
        for (written, meant) in [
            ("nmae", "name"),
            ("comand", "command"),
            ("accept", "accepts"),
            ("Accepts-Faults", "accepts_faults"),
            ("retruns", "returns"),
        ] {
            assert_eq!(nearest(written, KEYS), Some(meant), "{written}");
        }
    }

    #[test]
    fn a_payload_may_be_meant_with_another_namespace_or_a_slip() {
        let known: Vec<QName> =
            ["{urn:bakery:v1}order", "{urn:bakery:v1}receipt", "plain"].map(|name| name.parse().unwrap()).into();
        for (written, meant) in [
            ("{urn:bakery:v1}ordr", Some("{urn:bakery:v1}order")),
            ("order", Some("{urn:bakery:v1}order")),
            ("recept", Some("{urn:bakery:v1}receipt")),
            ("{https://xml-pipeline.org/ns/envelope/v1}order", Some("{urn:bakery:v1}order")),
            ("{urn:bakery:v2}order", Some("{urn:bakery:v1}order")),
            ("{urn:x}plain", Some("plain")),
            ("{urn:bakery:v1}zebra", None),
            ("{urn:other}order", None),
        ] {
            let near = payload(&written.parse().unwrap(), known.iter()).map(QName::to_string);
            assert_eq!(near.as_deref(), meant, "{written}");
        }
    }

    #[test]
    fn other_words_find_none() {
        for written in ["", "x", "zebra", "concurrency"] {
            assert_eq!(nearest(written, KEYS), None, "{written}");
        }
    }
}
