//! The built-in types of XSD 1.0 (part 2, section 3) as far as examples and prompts need them.

/// One built-in simple type.
#[derive(Debug)]
pub(crate) struct Builtin {
    /// The local name in the namespace of XML Schema.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Two different values in canonical form.
    pub(crate) samples: [&'static str; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text whose length counts characters.
    Text,
    Boolean,
    /// Whole numbers from and to a bound, where the type has one.
    Integer(Option<i128>, Option<i128>),
    Decimal,
    Float,
    /// Dates, times, durations, binary: a fixed form of text.
    Form,
}

impl Builtin {
    /// The type of a local name; `string` for one that XSD doesn't have.
    pub(crate) fn named(name: &str) -> &'static Self {
        BUILTINS.iter().find(|builtin| builtin.name == name).unwrap_or(&BUILTINS[0])
    }

    /// What a value is, for people and models.
    pub(crate) fn words(&self) -> &'static str {
        match self.kind {
            Kind::Text => match self.name {
                "anyURI" => "URI",
                "language" => "language tag",
                "Name" | "NCName" | "NMTOKEN" | "ID" | "IDREF" | "QName" => "name",
                _ => "text",
            },
            Kind::Boolean => "true or false",
            Kind::Integer(..) => "whole number",
            Kind::Decimal | Kind::Float => "number",
            Kind::Form => match self.name {
                "dateTime" => "date and time",
                "hexBinary" => "bytes in hexadecimal",
                "base64Binary" => "bytes in base64",
                name => name,
            },
        }
    }
}

const fn text(name: &'static str, samples: [&'static str; 2]) -> Builtin {
    Builtin { name, kind: Kind::Text, samples }
}

const fn form(name: &'static str, samples: [&'static str; 2]) -> Builtin {
    Builtin { name, kind: Kind::Form, samples }
}

const fn integer(name: &'static str, min: Option<i128>, max: Option<i128>) -> Builtin {
    let samples = match max {
        Some(max) if max < 1 => ["-1", "-2"],
        _ => ["1", "2"],
    };
    Builtin { name, kind: Kind::Integer(min, max), samples }
}

const TEXTS: [&str; 2] = ["text", "other text"];
const NAMES: [&str; 2] = ["name", "other"];

static BUILTINS: [Builtin; 45] = [
    text("string", TEXTS),
    text("normalizedString", TEXTS),
    text("token", TEXTS),
    text("anySimpleType", TEXTS),
    text("language", ["en", "de"]),
    text("Name", NAMES),
    text("NCName", NAMES),
    text("NMTOKEN", NAMES),
    text("NMTOKENS", NAMES),
    text("ID", NAMES),
    text("IDREF", NAMES),
    text("IDREFS", NAMES),
    text("ENTITY", NAMES),
    text("ENTITIES", NAMES),
    text("QName", NAMES),
    text("NOTATION", NAMES),
    text("anyURI", ["https://example.org/", "https://example.org/other"]),
    Builtin { name: "boolean", kind: Kind::Boolean, samples: ["true", "false"] },
    Builtin { name: "decimal", kind: Kind::Decimal, samples: ["1.5", "2.5"] },
    Builtin { name: "float", kind: Kind::Float, samples: ["1.5", "2.5"] },
    Builtin { name: "double", kind: Kind::Float, samples: ["1.5", "2.5"] },
    integer("integer", None, None),
    integer("nonPositiveInteger", None, Some(0)),
    integer("negativeInteger", None, Some(-1)),
    integer("nonNegativeInteger", Some(0), None),
    integer("positiveInteger", Some(1), None),
    integer("long", Some(i64::MIN as i128), Some(i64::MAX as i128)),
    integer("int", Some(i32::MIN as i128), Some(i32::MAX as i128)),
    integer("short", Some(i16::MIN as i128), Some(i16::MAX as i128)),
    integer("byte", Some(i8::MIN as i128), Some(i8::MAX as i128)),
    integer("unsignedLong", Some(0), Some(u64::MAX as i128)),
    integer("unsignedInt", Some(0), Some(u32::MAX as i128)),
    integer("unsignedShort", Some(0), Some(u16::MAX as i128)),
    integer("unsignedByte", Some(0), Some(u8::MAX as i128)),
    form("dateTime", ["2026-01-31T12:00:00Z", "2026-02-28T18:30:00Z"]),
    form("date", ["2026-01-31", "2026-02-28"]),
    form("time", ["12:00:00", "18:30:00"]),
    form("duration", ["PT30S", "P1D"]),
    form("gYear", ["2026", "2027"]),
    form("gYearMonth", ["2026-01", "2026-02"]),
    form("gMonth", ["--01", "--02"]),
    form("gMonthDay", ["--01-31", "--02-28"]),
    form("gDay", ["---31", "---28"]),
    form("hexBinary", ["CAFE", "BEEF"]),
    form("base64Binary", ["c3lzdG9sZQ==", "cHVtcA=="]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_unknown_ones_are_text() {
        assert_eq!(Builtin::named("unsignedByte").kind, Kind::Integer(Some(0), Some(255)));
        assert_eq!(Builtin::named("nonsense").name, "string");
    }
}
