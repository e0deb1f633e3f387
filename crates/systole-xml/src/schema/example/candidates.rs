//! Texts that may be values of an atomic type. Some are not: the engine judges each.

use std::ops::ControlFlow;

use crate::ladder::encode::float_text;
use crate::schema::model::{Bound, Facets};
use crate::schema::pattern::{self, Lengths};
use crate::schema::simple::{Kind, XsdType};

/// Takes a candidate; breaks once no further one is wanted.
pub(super) type Offer<'o> = dyn FnMut(&str) -> ControlFlow<()> + 'o;

/// Offers texts for a built-in type with facets, simple ones first. `turn` chooses one of two samples. Texts that are made
/// to a length have at most `most` bytes.
pub(super) fn atomic(base: &XsdType, facets: &Facets, turn: usize, most: usize, offer: &mut Offer) -> ControlFlow<()> {
    let samples = [base.samples[turn % 2], base.samples[(turn + 1) % 2]];
    // Only with a plain value does a date stay a date.
    if !facets.patterns.is_empty() || base.kind() != Kind::Text {
        offer(samples[0])?;
    }
    match base.kind() {
        Kind::Text => samples.iter().try_for_each(|sample| {
            if let Some(words) = words(sample, facets).filter(|_| is_list(base)) {
                offer(&words)?;
            }
            fitted(sample, facets, most).map_or(ControlFlow::Continue(()), |text| offer(&text))
        })?,
        Kind::Boolean => {}
        Kind::Integer(min, max) => {
            if let Some(value) = samples[0].parse().ok().and_then(|wanted| integer(facets, min, max, wanted, turn)) {
                offer(&value)?;
            }
        }
        Kind::Decimal | Kind::Float => numbers(facets, samples[0]).try_for_each(|value| offer(&value))?,
        Kind::Form => {
            octets(base, facets, most).into_iter().try_for_each(|value| offer(&value))?;
            days_between(facets).into_iter().try_for_each(|value| offer(&value))?;
        }
    }
    patterned(facets, turn, offer)?;
    offer(samples[1])?;
    let bounds = || [&facets.min, &facets.max].into_iter().flatten().map(|bound| &*bound.value);
    bounds().try_for_each(|bound| neighbours(bound, offer))?;
    ["0", "INF", "PT0S", ""].into_iter().try_for_each(&mut *offer)?;
    let mut wholes: Vec<String> = match base.kind() {
        Kind::Text => Vec::new(),
        _ => bounds().chain(samples).map(str::to_owned).collect(),
    };
    if !facets.patterns.is_empty() {
        const LONGEST: usize = 40;
        let mut keep = |text: &str| {
            wholes.push(text.to_owned());
            ControlFlow::Continue(())
        };
        bounds().filter(|bound| bound.len() <= LONGEST).try_for_each(|bound| neighbours(bound, &mut keep))?;
    }
    combined(facets, wholes, offer)
}

fn is_list(base: &XsdType) -> bool {
    matches!(base.name, "NMTOKENS" | "IDREFS" | "ENTITIES")
}

/// Offers texts that match a pattern of the type, and as many of them as the least length asks for, as words of a list.
pub(super) fn patterned(facets: &Facets, turn: usize, offer: &mut Offer) -> ControlFlow<()> {
    let length = facets.min_length.or(facets.max_length.filter(|max| *max < 64));
    facets.patterns.iter().flat_map(|pattern| pattern.samples(turn, length)).try_for_each(|text| {
        offer(&text)?;
        match words(&text, facets).filter(|_| text.len() < 8) {
            Some(words) => offer(&words),
            None => ControlFlow::Continue(()),
        }
    })
}

/// Offers texts that may match several patterns, or a pattern and the form of the type: a match of one with a match of
/// another at its start or its end.
fn combined(facets: &Facets, mut wholes: Vec<String>, offer: &mut Offer) -> ControlFlow<()> {
    const EACH: usize = 8;
    let samples = || facets.patterns.iter().flat_map(|pattern| pattern.samples(0, None).take(EACH));
    let parts: Vec<String> = samples().filter(|part| part.is_ascii() && !part.is_empty()).collect();
    wholes.extend(samples());
    for whole in wholes.iter().filter(|whole| whole.is_ascii()) {
        for part in &parts {
            offer(&format!("{whole}{part}"))?;
            offer(&format!("{part}{whole}"))?;
            if let Some(rest) = whole.len().checked_sub(part.len()) {
                offer(&format!("{part}{}", &whole[part.len()..]))?;
                offer(&format!("{}{part}", &whole[..rest]))?;
            }
        }
    }
    ControlFlow::Continue(())
}

/// Offers the shortest texts that all patterns and the form of the type have in common. `spend` takes steps, and ends the
/// search by `false`.
pub(super) fn of_all_patterns(
    base: &XsdType,
    facets: &Facets,
    spend: &dyn Fn(usize) -> bool,
    offer: &mut Offer,
) -> ControlFlow<()> {
    if facets.patterns.is_empty() {
        return ControlFlow::Continue(());
    }
    // A byte is written as two characters in hexadecimal; lengths count words of a list.
    let each = match base.name {
        "hexBinary" => 2,
        "base64Binary" => 0,
        _ if is_list(base) => 0,
        _ => 1,
    };
    let length = |length: Option<u64>| length.and_then(|length| usize::try_from(length.saturating_mul(each)).ok());
    let is_bounded = each > 0 && (facets.min_length.is_some() || facets.max_length.is_some());
    let lengths = is_bounded.then(|| Lengths {
        min: length(facets.min_length).unwrap_or(0),
        max: length(facets.max_length).unwrap_or(usize::MAX),
    });
    let texts = pattern::shortest_of_all(&facets.patterns, form(base), lengths, spend);
    texts.iter().try_for_each(|text| offer(text))
}

/// A pattern for plain literals of a type.
fn form(base: &XsdType) -> Option<&'static str> {
    Some(match base.kind() {
        Kind::Integer(..) => r"[+\-]?[0-9]{1,18}",
        Kind::Decimal => r"[+\-]?[0-9]+(\.[0-9]+)?",
        Kind::Float => r"[+\-]?[0-9]+(\.[0-9]+)?(E[+\-]?[0-9]{1,2})?",
        Kind::Boolean => "true|false|1|0",
        Kind::Form => match base.name {
            "hexBinary" => "([0-9A-F]{2})*",
            "base64Binary" => "([0-9A-Za-z]{4})*",
            "date" => r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])(Z|\+0[0-9]:00)?",
            "dateTime" => {
                r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T(0[0-9]|1[0-9]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(Z|[+\-]0[0-9]:00)?"
            }
            "time" => r"(0[0-9]|1[0-9]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(Z|[+\-]0[0-9]:00)?",
            _ => return None,
        },
        Kind::Text => match base.name {
            "string" | "normalizedString" | "anySimpleType" => return None,
            "language" => "[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*",
            "NMTOKEN" => r"[a-zA-Z0-9_.\-]+",
            "NMTOKENS" => r"[a-zA-Z0-9_.\-]+( [a-zA-Z0-9_.\-]+)*",
            "Name" | "NCName" | "ID" | "IDREF" | "QName" => r"[a-zA-Z_][a-zA-Z0-9_.\-]*",
            _ => "([!-~]+( [!-~]+)*)?",
        },
    })
}

/// The text, cut or repeated to an allowed number of characters; `None` if they are more than `most`.
fn fitted(text: &str, facets: &Facets, most: usize) -> Option<String> {
    const LONGEST: usize = 1 << 16;
    let length = text.chars().count() as u64;
    let wanted = usize::try_from(fit(length, facets)).ok().filter(|wanted| *wanted <= most.min(LONGEST))?;
    if wanted as u64 == length {
        return Some(text.to_owned());
    }
    // Spaces are left out, because some types don't allow them at an end.
    Some(text.chars().filter(|c| *c != ' ').cycle().take(wanted).collect())
}

/// The word, repeated to an allowed number of words; `None` for one.
fn words(word: &str, facets: &Facets) -> Option<String> {
    const MOST: u64 = 1 << 12;
    let count = fit(1, facets);
    (2..=MOST).contains(&count).then(|| vec![word; usize::try_from(count).unwrap_or(1)].join(" "))
}

/// Octets of an allowed length, in hexadecimal or base64; `None` if the text has more than `most` bytes.
fn octets(base: &XsdType, facets: &Facets, most: usize) -> Option<String> {
    const LONGEST: usize = 1 << 16;
    let count = |usual| usize::try_from(fit(usual, facets)).ok().filter(|count| *count <= most.min(LONGEST) / 2);
    match base.name {
        "hexBinary" => Some("CA".repeat(count(2)?)),
        "base64Binary" => {
            let count = count(7)?;
            let rest = ["", "cw==", "c3k="][count % 3];
            Some("c3lz".repeat(count / 3) + rest)
        }
        _ => None,
    }
}

/// The allowed length that is next to a usual one.
fn fit(usual: u64, facets: &Facets) -> u64 {
    usual.min(facets.max_length.unwrap_or(u64::MAX)).max(facets.min_length.unwrap_or(0))
}

fn integer(facets: &Facets, min: Option<i128>, max: Option<i128>, wanted: i128, turn: usize) -> Option<String> {
    let end = |bound: &Option<Bound>, inward: i128| {
        let bound = bound.as_ref()?;
        let value: i128 = bound.value.parse().ok()?;
        Some(if bound.exclusive { value.saturating_add(inward) } else { value })
    };
    let min = end(&facets.min, 1).max(min);
    let max = end(&facets.max, -1).into_iter().chain(max).min();
    let shift = i128::try_from(turn % 2).unwrap_or(0);
    let value = match (min, max) {
        (Some(min), _) if wanted < min.saturating_add(shift) => min.saturating_add(shift).min(max.unwrap_or(i128::MAX)),
        (_, Some(max)) if wanted > max => max.saturating_sub(shift).max(min.unwrap_or(i128::MIN)),
        _ => wanted,
    };
    (min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)).then(|| value.to_string())
}

/// Numbers near the bounds and between them, with a fraction and without.
fn numbers(facets: &Facets, sample: &str) -> impl Iterator<Item = String> {
    let end = |bound: &Option<Bound>| bound.as_ref().and_then(|bound| bound.value.parse::<f64>().ok());
    let (min, max) = (end(&facets.min), end(&facets.max));
    let middle = min.zip(max).map(|(min, max)| min + (max - min) / 2.0);
    let near = [sample.parse().ok(), middle, min.map(|min| min + 1.0), max.map(|max| max - 1.0), min, max];
    let exact: Vec<f64> = near.into_iter().flatten().collect();
    // Whole numbers, and those with up to four digits behind the point.
    let rounded = |scale: f64| move |value: &f64| [(value * scale).ceil() / scale, (value * scale).floor() / scale];
    let scales = [1.0, 10.0, 100.0, 1000.0, 10_000.0];
    let whole: Vec<f64> = scales.into_iter().flat_map(|scale| exact.iter().flat_map(rounded(scale))).collect();
    exact.into_iter().chain(whole).filter(|value| value.is_finite()).map(float_text)
}

/// A number of days between two durations: a month has 30 days or 31, so that `P40D` is between `P1M` and `P2M`.
fn days_between(facets: &Facets) -> Option<String> {
    let days = |bound: &Option<Bound>| {
        let value = bound.as_ref()?.value.strip_prefix('P')?;
        let mut days = 0.0;
        let mut rest = value.split('T').next().unwrap_or_default();
        while let Some(at) = rest.find(['Y', 'M', 'D']) {
            let unit = match &rest[at..=at] {
                "Y" => 365.25,
                "M" => 30.4,
                _ => 1.0,
            };
            days += rest[..at].parse::<f64>().ok()? * unit;
            rest = &rest[at + 1..];
        }
        Some(days)
    };
    let (min, max) = (days(&facets.min)?, days(&facets.max)?);
    let middle = min + (max - min) / 2.0;
    (1.0..1e9).contains(&middle).then(|| format!("P{middle:.0}D"))
}

/// A pattern for lists of `count` plain literals of a type, or of that many and more.
pub(super) fn list_form(base: &XsdType, count: usize, is_exact: bool) -> Option<String> {
    const MOST: usize = 64;
    let item = form(base).filter(|_| (1..=MOST).contains(&count))?;
    let others = count - 1;
    Some(format!("({item})( ({item})){{{others},{}}}", if is_exact { others.to_string() } else { String::new() }))
}

/// Offers the texts that differ from a bound by one in one digit, and those with one digit more: for `2026-12-31` these
/// are `2027-12-31`, `2026-12-30` and others that no calendar has.
fn neighbours(bound: &str, offer: &mut Offer) -> ControlFlow<()> {
    offer(bound)?;
    let runs = || {
        let mut end = bound.len();
        std::iter::from_fn(move || {
            end = bound[..end].rfind(|c: char| c.is_ascii_digit())? + 1;
            let start = bound[..end]
                .rfind(|c: char| !c.is_ascii_digit())
                .map_or(0, |before| before + bound[before..].chars().next().map_or(1, char::len_utf8));
            let run = (start, end);
            end = start;
            Some(run)
        })
    };
    for (start, end) in runs() {
        for place in (start..end).rev() {
            for up in [true, false] {
                if let Some(run) = stepped(&bound[start..end], place - start, up) {
                    offer(&format!("{}{run}{}", &bound[..start], &bound[end..]))?;
                }
            }
        }
    }
    for (start, end) in runs() {
        let (before, behind) = (&bound[..end], &bound[end..]);
        let is_fraction = bound[..start].ends_with('.');
        let more: &[&str] =
            if is_fraction { &["5", "1", "9", "05", "001"] } else { &[".5", ".1", ".9", ".05", ".001"] };
        for digits in more {
            offer(&format!("{before}{digits}{behind}"))?;
            if let Some(less) = stepped(&bound[start..end], end - start - 1, false) {
                offer(&format!("{}{less}{digits}{behind}", &bound[..start]))?;
            }
        }
    }
    ControlFlow::Continue(())
}

/// A run of digits, one more or one less at a place.
fn stepped(run: &str, place: usize, up: bool) -> Option<String> {
    let mut digits = run.as_bytes().to_vec();
    let (wrapped, turned) = if up { (b'9', b'0') } else { (b'0', b'9') };
    for digit in digits[..=place].iter_mut().rev() {
        if *digit != wrapped {
            *digit = if up { *digit + 1 } else { *digit - 1 };
            return String::from_utf8(digits).ok();
        }
        *digit = turned;
    }
    up.then(|| format!("1{}", String::from_utf8_lossy(&digits)))
}
