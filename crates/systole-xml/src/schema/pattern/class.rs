//! The classes of characters in patterns of XSD (XSD 1.0 part 2, appendix F.1.1).

use std::sync::{LazyLock, OnceLock};

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use crate::vocab::{NAME_REST, NAME_START};

/// Any character except line feed and carriage return: `.`.
pub(super) fn dot() -> ClassUnicode {
    not(of(&[('\n', '\n'), ('\r', '\r')]))
}

/// White space of XML: `\s`.
pub(super) fn space() -> ClassUnicode {
    of(&[('\t', '\n'), ('\r', '\r'), (' ', ' ')])
}

/// Characters that start a name of XML: `\i`.
pub(super) fn name_start() -> ClassUnicode {
    of(NAME_START)
}

/// Characters of a name of XML: `\c`.
pub(super) fn name_char() -> ClassUnicode {
    of(&[NAME_START, NAME_REST].concat())
}

/// All but punctuation, separators and others: `\w`.
pub(super) fn word() -> ClassUnicode {
    static CLASS: LazyLock<ClassUnicode> = LazyLock::new(|| {
        let mut class = ClassUnicode::empty();
        ["P", "Z", "C"].iter().filter_map(|name| known(name)).for_each(|other| class.union(&other));
        not(class)
    });
    CLASS.clone()
}

/// A general category of Unicode, by the names that XSD gives: `\p{Lu}`.
///
/// # Errors
/// The error text for a category that XSD doesn't have.
pub(super) fn category(name: &str) -> Result<ClassUnicode, &'static str> {
    const NAMES: [&str; 36] = [
        "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps", "Pe",
        "Pi", "Pf", "Po", "Z", "Zs", "Zl", "Zp", "S", "Sm", "Sc", "Sk", "So", "C", "Cc", "Cf", "Co", "Cn",
    ];
    match name {
        "Zl" => return Ok(of(&[('\u{2028}', '\u{2028}')])),
        "Zp" => return Ok(of(&[('\u{2029}', '\u{2029}')])),
        _ => {}
    }
    static CLASSES: [OnceLock<Option<ClassUnicode>>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
    let number = NAMES.iter().position(|known| *known == name);
    let number = number.ok_or("\\p names no category of Unicode that XSD knows")?;
    let class = CLASSES[number].get_or_init(|| known(name)).clone();
    class.ok_or("this category is not in the tables of the regex crate")
}

/// A block of Unicode: `\p{IsGreek}` without its `Is`.
///
/// # Errors
/// The error text for a block that XSD 1.0 doesn't have.
pub(super) fn block(name: &str) -> Result<ClassUnicode, &'static str> {
    // Surrogates are no characters, and none can stand in a document.
    if matches!(name, "HighSurrogates" | "HighPrivateUseSurrogates" | "LowSurrogates") {
        return Ok(ClassUnicode::empty());
    }
    let mut found = BLOCKS.iter().filter(|(known, ..)| *known == name).map(|&(_, low, high)| (low, high)).peekable();
    found.peek().ok_or("\\p names no block of Unicode that XSD 1.0 knows")?;
    Ok(of(&found.collect::<Vec<_>>()))
}

/// All other characters.
pub(super) fn not(mut class: ClassUnicode) -> ClassUnicode {
    // For the crate, the last character before the surrogates and the first one behind them are no neighbours when it joins
    // ranges, but they are when it negates: the gap between them would become a range of both.
    let has = |c: char| class.iter().any(|range| range.start() <= c && c <= range.end());
    if has('\u{D7FF}') && has('\u{E000}') {
        class.push(ClassUnicodeRange::new('\u{D7FF}', '\u{E000}'));
    }
    class.negate();
    class
}

fn of(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(low, high)| ClassUnicodeRange::new(low, high)))
}

/// A category, from the tables of the regex crate.
fn known(name: &str) -> Option<ClassUnicode> {
    match regex_syntax::parse(&format!("\\p{{{name}}}")).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        _ => None,
    }
}

/// The blocks that XSD 1.0 names (second edition, appendix F.1.1), which are those of Unicode 3.1.
#[rustfmt::skip]
static BLOCKS: [(&str, char, char); 96] = [
    ("BasicLatin", '\0', '\u{7F}'),
    ("Latin-1Supplement", '\u{80}', '\u{FF}'),
    ("LatinExtended-A", '\u{100}', '\u{17F}'),
    ("LatinExtended-B", '\u{180}', '\u{24F}'),
    ("IPAExtensions", '\u{250}', '\u{2AF}'),
    ("SpacingModifierLetters", '\u{2B0}', '\u{2FF}'),
    ("CombiningDiacriticalMarks", '\u{300}', '\u{36F}'),
    ("Greek", '\u{370}', '\u{3FF}'),
    ("Cyrillic", '\u{400}', '\u{4FF}'),
    ("Armenian", '\u{530}', '\u{58F}'),
    ("Hebrew", '\u{590}', '\u{5FF}'),
    ("Arabic", '\u{600}', '\u{6FF}'),
    ("Syriac", '\u{700}', '\u{74F}'),
    ("Thaana", '\u{780}', '\u{7BF}'),
    ("Devanagari", '\u{900}', '\u{97F}'),
    ("Bengali", '\u{980}', '\u{9FF}'),
    ("Gurmukhi", '\u{A00}', '\u{A7F}'),
    ("Gujarati", '\u{A80}', '\u{AFF}'),
    ("Oriya", '\u{B00}', '\u{B7F}'),
    ("Tamil", '\u{B80}', '\u{BFF}'),
    ("Telugu", '\u{C00}', '\u{C7F}'),
    ("Kannada", '\u{C80}', '\u{CFF}'),
    ("Malayalam", '\u{D00}', '\u{D7F}'),
    ("Sinhala", '\u{D80}', '\u{DFF}'),
    ("Thai", '\u{E00}', '\u{E7F}'),
    ("Lao", '\u{E80}', '\u{EFF}'),
    ("Tibetan", '\u{F00}', '\u{FFF}'),
    ("Myanmar", '\u{1000}', '\u{109F}'),
    ("Georgian", '\u{10A0}', '\u{10FF}'),
    ("HangulJamo", '\u{1100}', '\u{11FF}'),
    ("Ethiopic", '\u{1200}', '\u{137F}'),
    ("Cherokee", '\u{13A0}', '\u{13FF}'),
    ("UnifiedCanadianAboriginalSyllabics", '\u{1400}', '\u{167F}'),
    ("Ogham", '\u{1680}', '\u{169F}'),
    ("Runic", '\u{16A0}', '\u{16FF}'),
    ("Khmer", '\u{1780}', '\u{17FF}'),
    ("Mongolian", '\u{1800}', '\u{18AF}'),
    ("LatinExtendedAdditional", '\u{1E00}', '\u{1EFF}'),
    ("GreekExtended", '\u{1F00}', '\u{1FFF}'),
    ("GeneralPunctuation", '\u{2000}', '\u{206F}'),
    ("SuperscriptsandSubscripts", '\u{2070}', '\u{209F}'),
    ("CurrencySymbols", '\u{20A0}', '\u{20CF}'),
    ("CombiningMarksforSymbols", '\u{20D0}', '\u{20FF}'),
    ("LetterlikeSymbols", '\u{2100}', '\u{214F}'),
    ("NumberForms", '\u{2150}', '\u{218F}'),
    ("Arrows", '\u{2190}', '\u{21FF}'),
    ("MathematicalOperators", '\u{2200}', '\u{22FF}'),
    ("MiscellaneousTechnical", '\u{2300}', '\u{23FF}'),
    ("ControlPictures", '\u{2400}', '\u{243F}'),
    ("OpticalCharacterRecognition", '\u{2440}', '\u{245F}'),
    ("EnclosedAlphanumerics", '\u{2460}', '\u{24FF}'),
    ("BoxDrawing", '\u{2500}', '\u{257F}'),
    ("BlockElements", '\u{2580}', '\u{259F}'),
    ("GeometricShapes", '\u{25A0}', '\u{25FF}'),
    ("MiscellaneousSymbols", '\u{2600}', '\u{26FF}'),
    ("Dingbats", '\u{2700}', '\u{27BF}'),
    ("BraillePatterns", '\u{2800}', '\u{28FF}'),
    ("CJKRadicalsSupplement", '\u{2E80}', '\u{2EFF}'),
    ("KangxiRadicals", '\u{2F00}', '\u{2FDF}'),
    ("IdeographicDescriptionCharacters", '\u{2FF0}', '\u{2FFF}'),
    ("CJKSymbolsandPunctuation", '\u{3000}', '\u{303F}'),
    ("Hiragana", '\u{3040}', '\u{309F}'),
    ("Katakana", '\u{30A0}', '\u{30FF}'),
    ("Bopomofo", '\u{3100}', '\u{312F}'),
    ("HangulCompatibilityJamo", '\u{3130}', '\u{318F}'),
    ("Kanbun", '\u{3190}', '\u{319F}'),
    ("BopomofoExtended", '\u{31A0}', '\u{31BF}'),
    ("EnclosedCJKLettersandMonths", '\u{3200}', '\u{32FF}'),
    ("CJKCompatibility", '\u{3300}', '\u{33FF}'),
    ("CJKUnifiedIdeographsExtensionA", '\u{3400}', '\u{4DB5}'),
    ("CJKUnifiedIdeographs", '\u{4E00}', '\u{9FFF}'),
    ("YiSyllables", '\u{A000}', '\u{A48F}'),
    ("YiRadicals", '\u{A490}', '\u{A4CF}'),
    ("HangulSyllables", '\u{AC00}', '\u{D7A3}'),
    ("Tags", '\u{E0000}', '\u{E007F}'),
    ("PrivateUse", '\u{E000}', '\u{F8FF}'),
    ("PrivateUse", '\u{F0000}', '\u{FFFFD}'),
    ("PrivateUse", '\u{100000}', '\u{10FFFD}'),
    ("CJKCompatibilityIdeographs", '\u{F900}', '\u{FAFF}'),
    ("AlphabeticPresentationForms", '\u{FB00}', '\u{FB4F}'),
    ("ArabicPresentationForms-A", '\u{FB50}', '\u{FDFF}'),
    ("CombiningHalfMarks", '\u{FE20}', '\u{FE2F}'),
    ("CJKCompatibilityForms", '\u{FE30}', '\u{FE4F}'),
    ("SmallFormVariants", '\u{FE50}', '\u{FE6F}'),
    ("ArabicPresentationForms-B", '\u{FE70}', '\u{FEFE}'),
    ("Specials", '\u{FEFF}', '\u{FEFF}'),
    ("Specials", '\u{FFF0}', '\u{FFFD}'),
    ("HalfwidthandFullwidthForms", '\u{FF00}', '\u{FFEF}'),
    ("OldItalic", '\u{10300}', '\u{1032F}'),
    ("Gothic", '\u{10330}', '\u{1034F}'),
    ("Deseret", '\u{10400}', '\u{1044F}'),
    ("ByzantineMusicalSymbols", '\u{1D000}', '\u{1D0FF}'),
    ("MusicalSymbols", '\u{1D100}', '\u{1D1FF}'),
    ("MathematicalAlphanumericSymbols", '\u{1D400}', '\u{1D7FF}'),
    ("CJKUnifiedIdeographsExtensionB", '\u{20000}', '\u{2A6D6}'),
    ("CJKCompatibilityIdeographsSupplement", '\u{2F800}', '\u{2FA1F}'),
];
