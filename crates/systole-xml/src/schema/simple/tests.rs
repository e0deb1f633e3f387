//! Tests of simple types: literals, facets, lists, unions and equality.

use super::members::Members;
use super::mismatch::Rule;
use super::*;

struct Declared;

impl Prefixes for Declared {
    fn namespace(&self, prefix: &str) -> Option<&str> {
        match prefix {
            "" => Some("urn:default"),
            "p" | "q" => Some("urn:p"),
            _ => None,
        }
    }
}

fn xsd_type(name: &str) -> SimpleType {
    SimpleType::xsd_type(name).unwrap_or_else(|| panic!("{name} is built in"))
}

fn restricted(base: &SimpleType, facets: &[(&str, &str)]) -> SimpleType {
    let facets: Vec<Facet> =
        facets.iter().map(|&(name, value)| Facet { name, value, fixed: false, prefixes: &Declared }).collect();
    base.restrict("its base", &facets).unwrap()
}

/// Checks that the first values are valid for a type and the others are not.
fn judges(what: &str, ty: &SimpleType, valid: &[&str], invalid: &[&str]) {
    for value in valid {
        assert_eq!(ty.check(value, &Declared), Ok(()), "{what}: {value:?}");
        assert!(ty.definition.value(value, &Declared, false).is_ok(), "{what}: {value:?}");
    }
    for value in invalid {
        assert!(ty.check(value, &Declared).is_err(), "{what}: {value:?} is invalid");
    }
}

#[test]
fn literals_of_the_built_in_types() {
    for (name, valid, invalid) in LITERALS {
        judges(name, &xsd_type(name), valid, invalid);
    }
}

#[rustfmt::skip]
const LITERALS: [(&str, &[&str], &[&str]); 45] = [
    ("anySimpleType", &["", " a\n"], &[]),
    ("string", &["", " \t\n a  b", "\u{10FFFF}"], &[]),
    ("normalizedString", &["", " a  b ", "a\nb"], &[]),
    ("token", &["", "a b", "  a  b\n"], &[]),
    ("boolean", &["true", "false", "1", "0", " true\n"], &["", "TRUE", "True", "2", "yes", "tr ue", "00"]),
    ("decimal",
        &["0", "-0", "+1", "1.", ".5", "-.5", "01.500", " 12678967.543233 ", "123456789012345678901234567890.1"],
        &["", ".", "+", "-", "1e5", "1,5", "INF", "NaN", "1 0", "--1", "+-1", "1.2.3", "١", "0x1"]),
    ("integer", &["0", "-0", "+007", "-12678967543233", "123456789012345678901234567890123456789012345"],
        &["", "1.", "1.0", ".0", "1e2", "+", "1 2"]),
    ("nonPositiveInteger", &["0", "-0", "+0", "-1"], &["1", "+1"]),
    ("negativeInteger", &["-1", "-00001"], &["0", "-0", "1"]),
    ("nonNegativeInteger", &["0", "-0", "18446744073709551616"], &["-1"]),
    ("positiveInteger", &["1", "+01"], &["0", "-0", "+0", "-1"]),
    ("long", &["9223372036854775807", "-9223372036854775808", "0000000000000000000000001"],
        &["9223372036854775808", "-9223372036854775809", "99999999999999999999"]),
    ("int", &["2147483647", "-2147483648"], &["2147483648", "-2147483649"]),
    ("short", &["32767", "-32768"], &["32768", "-32769"]),
    ("byte", &["127", "-128", "+127"], &["128", "-129"]),
    ("unsignedLong", &["0", "18446744073709551615", "-0"], &["18446744073709551616", "-1"]),
    ("unsignedInt", &["4294967295"], &["4294967296", "-1"]),
    ("unsignedShort", &["65535"], &["65536", "-1"]),
    ("unsignedByte", &["255", "+0"], &["256", "-1"]),
    ("float",
        &["-1E4", "1267.43233E12", "12.78e-2", "12", "INF", "-INF", "NaN", "-0", "0", "1e400", ".5", "5.", "+1", "1E+5", "1e-999"],
        &["", "+INF", "inf", "Infinity", "nan", "-NaN", "1e", "e5", "1e1.5", "1 e5", ".", ".e1", "1f", "0x1p3", "1e5e5"]),
    ("double", &["-1E4", "INF", "-INF", "NaN", "1e400", "1E-5"], &["+INF", "1d", "infinity", "1E", "E1", "--1"]),
    ("duration",
        &["P1Y2M3DT10H30M", "-P120D", "P1347Y", "P1347M", "P1Y2MT2H", "P0Y1347M", "P0Y1347M0D", "-P1347M", "PT0S",
          "P0Y", "PT1.5S", "PT0.0000000000000000000000001S", "P0001Y", "PT1M", "P1M", "P1DT1S"],
        &["", "P", "PT", "P1YT", "P-1347M", "P1Y2MT", "1Y", "-P", "P1", "PT1", "P1S", "PT1Y", "P1M1Y", "P1.5Y", "PT1.S",
          "PT.5S", "P1Y1Y", "+P1Y", "p1y", "P1D1H", "P 1Y", "PT1S1M", "PT1.5M", "P1W", "P1HT"]),
    ("dateTime",
        &["1999-05-31T13:20:00-05:00", "2002-10-10T12:00:00.5", "2002-10-10T12:00:00Z", "2004-02-29T00:00:00",
          "2000-02-29T00:00:00", "12345-01-01T00:00:00", "-0001-01-01T00:00:00", "2001-12-31T24:00:00",
          "2001-12-31T24:00:00.000", "2000-01-01T00:00:00+14:00", "2000-01-01T00:00:00-14:00",
          "2000-01-01T23:59:59.999999999999999999999", "2000-01-01T00:00:00-00:00", " 2000-01-01T00:00:00\n"],
        &["", "2000-01-01", "2000-01-01T", "2000-01-01 00:00:00", "0000-01-01T00:00:00", "-0000-01-01T00:00:00",
          "02000-01-01T00:00:00", "200-01-01T00:00:00", "+2000-01-01T00:00:00", "2001-02-29T00:00:00",
          "1900-02-29T00:00:00", "2000-04-31T00:00:00", "2000-13-01T00:00:00", "2000-00-01T00:00:00",
          "2000-01-00T00:00:00", "2000-01-32T00:00:00", "2000-01-01T24:00:01", "2000-01-01T24:01:00",
          "2000-01-01T24:00:00.1", "2000-01-01T25:00:00", "2000-01-01T23:60:00", "2000-01-01T23:59:60",
          "2000-01-01T00:00", "2000-01-01T00:00:00.", "2000-01-01T00:00:00+14:01", "2000-01-01T00:00:00+15:00",
          "2000-01-01T00:00:00+1:00", "2000-01-01T00:00:00z", "2000-01-01t00:00:00", "2000-01-01T00:00:00+00:60",
          "2000-1-1T00:00:00", "2000-01-01T0:00:00", "2000-01-01T00:00:00 Z", "2000-01-01T00:00:00é"]),
    ("time", &["13:20:00-05:00", "00:00:00", "24:00:00", "23:59:59.9Z", "24:00:00.0Z"],
        &["", "24:00:01", "24:30:00", "1:00:00", "13:20", "13:20:60", "13:20:00.", "T13:20:00", "-13:20:00"]),
    ("date", &["1999-05-31", "1999-05-31Z", "1999-05-31-05:00", "2004-02-29", "10000-01-01", "-0044-03-15"],
        &["", "1999-5-31", "1999-05", "1999-02-29", "0000-01-01", "99-01-01", "1999-05-31T", "1999-05-31T00:00:00", "19990531"]),
    ("gYearMonth", &["1999-05", "1999-05Z", "-0001-12+14:00", "12345-01"], &["1999", "1999-13", "1999-00", "1999-5", "1999-05-01", "0000-01"]),
    ("gYear", &["1999", "-1999", "12345", "1999Z", "1999+01:00"], &["", "99", "0000", "01999", "+1999", "1999-", "1999-05"]),
    ("gMonthDay", &["--05-31", "--02-29", "--12-31Z"], &["--02-30", "--04-31", "--13-01", "-05-31", "--5-31", "05-31", "--05-31-"]),
    ("gDay", &["---31", "---01Z", "---15-05:00"], &["---32", "---00", "--15", "---1", "15"]),
    ("gMonth", &["--05", "--12Z", "--01+14:00"], &["--13", "--00", "--5", "--05--", "05", "---05"]),
    ("hexBinary", &["", "0FB7", "0fb7", " ab\n"], &["0FB", "0G", "0F B7", "0x0F"]),
    ("base64Binary",
        &["", "AAAA", "AA==", "AAE=", "A A A A", "AAAA AA = =", "AAAA\n  BBBB", "+/+/", "YQ==", "YWI="],
        &["A", "AA", "AAA", "AAA==", "A===", "====", "=", "AAAA=", "AB==", "AAB=", "AA==AAAA", "A-_A", "AAéA", "AAAAAA==="]),
    ("anyURI",
        &["", "http://www.example.com/a?b#c", "../a b", "#x", "?q", "urn:isbn:1", "a%20b", "http://[::1]:80/", "mailto:a@b",
          "http://例え/é", "a/b:c", "//host", "http://a:80b/", "{x}", "file:///c:/x", "a|b", "http://"],
        &["%", "a%2", "a%zz", "a#b#c", ":a", "1a:b", "http:", "a[b]", "http://[::1", "http://[x]/", "%é1"]),
    ("QName", &["a", "p:a", "xml:a", " p:a "], &["", "x:a", ":a", "p:", "p:a:b", "1a", "p:1", "p: a"]),
    ("NOTATION", &["p:a", "a"], &["", "x:a", "1"]),
    ("language", &["en", "en-US", "x-klingon", "i-navajo", "de-1996", " en "], &["", "en_US", "e1", "en-", "-en", "abcdefghi", "en-abcdefghi", "en--us"]),
    ("NMTOKEN", &["a", "1", "-", ".a:b", "é", " a "], &["", "a b", "a,b", "é+"]),
    ("NMTOKENS", &["a", "1 2  3", " a\n"], &["", " ", "a ,"]),
    ("Name", &["a", ":a", "_", "a:b", "é1"], &["", "1a", "-a", ".a", "a b"]),
    ("NCName", &["a", "_a.b-c", "é·"], &["", "a:b", "1", ":"]),
    ("ID", &["a"], &["", "1", "a b", "a:b"]),
    ("IDREF", &["a"], &["", "1", "a b"]),
    ("IDREFS", &["a", " a  b "], &["", "a 1"]),
    ("ENTITY", &[], &["", "a", "1"]),
    ("ENTITIES", &[], &["", "a", "a b"]),
];

/// A base type, the facets of one step, valid values, invalid values.
type Restriction =
    (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str], &'static [&'static str]);

#[test]
fn facets_restrict_in_the_value_space() {
    for (base, facets, valid, invalid) in RESTRICTIONS {
        judges(&format!("{base} {facets:?}"), &restricted(&xsd_type(base), facets), valid, invalid);
    }
}

/// Checks the representation for many values with enumerations of few.
#[test]
fn an_enumeration_has_the_same_values_however_long_it_is() {
    for (base, facets, valid, invalid) in RESTRICTIONS {
        if facets.iter().any(|(name, _)| *name == "enumeration") {
            let (values, others): (Vec<_>, Vec<_>) =
                facets.iter().copied().partition(|(name, _)| *name == "enumeration");
            let long = [others, values.repeat(20)].concat();
            judges(&format!("{base} {facets:?}, 20 times"), &restricted(&xsd_type(base), &long), valid, invalid);
        }
    }
    let either = SimpleType::union(vec![xsd_type("int"), xsd_type("token")]).unwrap();
    let values: Vec<String> = (0..40).map(|i| if i < 20 { format!("v{i}") } else { i.to_string() }).collect();
    let facets: Vec<_> = values.iter().map(|value| ("enumeration", value.as_str())).collect();
    judges("union", &restricted(&either, &facets), &["v0", " v19 ", "020", "39"], &["v20", "19", "v", "40", ""]);
}

#[rustfmt::skip]
const RESTRICTIONS: [Restriction; 49] = [
    ("string", &[("length", "2")], &["ab", "éé", "\u{10000}\u{10000}", "  "], &["", "a", "abc"]),
    ("token", &[("minLength", "1"), ("maxLength", "3")], &["a", "  abc  ", "a  b"], &["", "   ", "abcd"]),
    ("string", &[("maxLength", "99999999999999999999999999")], &["abc"], &[]),
    ("string", &[("minLength", "99999999999999999999999999")], &[], &["abc"]),
    ("hexBinary", &[("length", "2")], &["0fb7", " 0FB7 "], &["0f", "0fb7aa", ""]),
    ("base64Binary", &[("length", "2")], &["AAE=", "A A E ="], &["AAAA", "AA==", ""]),
    ("base64Binary", &[("maxLength", "3")], &["", "AA==", "AAAA"], &["AAAAAA=="]),
    ("anyURI", &[("maxLength", "4")], &["é/é"], &["urn:a"]),
    ("QName", &[("length", "1")], &["p:abc", "a"], &[]),
    ("NMTOKENS", &[("maxLength", "2")], &["a", " a   b "], &["a b c", ""]),
    ("IDREFS", &[("length", "2")], &["a b"], &["a", "a b c"]),
    ("string", &[("pattern", "a"), ("pattern", "b+")], &["a", "bb"], &["ab", "", "A"]),
    ("token", &[("pattern", "a b")], &["a   b", " a\nb"], &["ab"]),
    ("string", &[("pattern", "a b")], &["a b"], &["a  b", " a b", "a\nb"]),
    ("integer", &[("pattern", "[0-9]{3}")], &["007", " 100 "], &["7", "+07"]),
    ("boolean", &[("pattern", "true|false")], &["true"], &["1", "0"]),
    ("NMTOKENS", &[("pattern", "a b")], &[" a  b "], &["a", "b a"]),
    ("string", &[("enumeration", "m"), ("enumeration", " km")], &["m", " km"], &["km", " m", "", "M"]),
    ("token", &[("enumeration", " a  b ")], &["a b", "  a b"], &["ab"]),
    ("decimal", &[("enumeration", "1.0"), ("enumeration", "-0")], &["1", "01.00", "0", "+0.0"], &["1.01", "10"]),
    ("integer", &[("enumeration", "7")], &["007", "+7"], &["-7", "70"]),
    ("double", &[("enumeration", "NaN"), ("enumeration", "1e3"), ("enumeration", "0")],
        &["NaN", "1000", "1.0E+3", "-0"], &["INF", "100"]),
    ("float", &[("enumeration", "0.1")], &["0.1", "0.10000000149"], &["0.10001"]),
    ("dateTime", &[("enumeration", "2000-01-01T00:00:00Z")],
        &["2000-01-01T01:00:00+01:00", "1999-12-31T24:00:00Z", "2000-01-01T00:00:00.000Z"],
        &["2000-01-01T00:00:00", "2000-01-01T00:00:00.001Z"]),
    ("time", &[("enumeration", "00:00:00")], &["24:00:00", "00:00:00.0"], &["00:00:00Z", "12:00:00"]),
    ("time", &[("enumeration", "00:00:00Z")], &["24:00:00Z", "01:00:00+01:00"], &["23:00:00-01:00"]),
    ("date", &[("enumeration", "2000-01-01+13:00")], &["1999-12-31-11:00"], &["2000-01-01", "2000-01-01Z"]),
    ("duration", &[("enumeration", "P1Y"), ("enumeration", "PT36H")], &["P12M", "P1DT12H", "PT129600.0S"], &["P365D", "-P1Y", "P366D"]),
    ("hexBinary", &[("enumeration", "0fb7")], &["0FB7"], &["0fb8", ""]),
    ("base64Binary", &[("enumeration", "YQ==")], &["Y Q = ="], &["Yg=="]),
    ("QName", &[("enumeration", "p:a")], &["q:a", "p:a"], &["a", "p:b"]),
    ("NMTOKENS", &[("enumeration", "a b"), ("enumeration", "c")], &["a   b", "c"], &["a", "a b c", "b a", "c c"]),
    ("integer", &[("minInclusive", "0"), ("maxExclusive", "10")], &["0", "-0", "009"], &["-1", "10", "10000000000000000000000000000000000000000"]),
    ("integer", &[("maxInclusive", "170141183460469231731687303715884105728")],
        &["170141183460469231731687303715884105728"], &["170141183460469231731687303715884105729"]),
    ("decimal", &[("minExclusive", "-1.5"), ("maxInclusive", "1.25")], &["-1.49", "1.250", "0"], &["-1.5", "-1.50", "1.2501", "-10"]),
    ("double", &[("minInclusive", "0"), ("maxExclusive", "1e300")], &["0", "-0", "1e299"], &["NaN", "-1e-300", "1e300", "INF", "-INF"]),
    ("float", &[("maxInclusive", "INF")], &["INF", "-INF", "3"], &["NaN"]),
    ("dateTime", &[("minInclusive", "2000-01-01T12:00:00Z")],
        &["2000-01-01T12:00:00Z", "2000-01-01T13:00:00+01:00", "2000-01-02T02:00:01", "2000-01-01T12:00:00.0000001Z"],
        &["2000-01-01T12:00:00+01:00", "2000-01-02T02:00:00", "2000-01-01T12:00:00", "1999-12-31T21:59:59"]),
    ("dateTime", &[("maxExclusive", "2000-01-01T12:00:00")],
        &["2000-01-01T11:59:59", "1999-12-31T21:59:59Z", "-9999-01-01T00:00:00"], &["1999-12-31T22:00:00Z", "2000-01-01T12:00:00Z", "2000-01-01T12:00:00"]),
    ("date", &[("minInclusive", "-0001-12-31")], &["0001-01-01", "-0001-12-31"], &["-0001-12-30", "-0002-12-31"]),
    ("gYear", &[("maxInclusive", "10000")], &["9999", "10000", "9999Z"], &["10001", "20000", "10000Z"]),
    ("duration", &[("minExclusive", "P1M")], &["P32D", "P1Y", "P1MT0.1S"], &["P1M", "P30D", "P31D", "-P1Y", "P28D"]),
    ("duration", &[("maxInclusive", "P365D")], &["P365D", "P364D", "P11M", "-P1Y"], &["P1Y", "P366D", "PT31536000.1S"]),
    ("duration", &[("maxInclusive", "-PT0.5S")], &["-PT0.5S", "-PT0.51S", "-PT1S", "-PT0.50S"], &["-PT0.49S", "PT0S", "-PT0.4S"]),
    ("duration", &[("minInclusive", "P400Y")], &["P146097D", "P400Y", "P4800M"], &["P146096D", "P399Y"]),
    ("decimal", &[("totalDigits", "3")], &["123", "0123", "12.30", "0.123", "-1.2"], &["1234", "12.34", "0.1234", "0.0123"]),
    ("decimal", &[("fractionDigits", "2")], &["1.25", "1.250", "1", "123456789.1"], &["1.255", "0.001"]),
    ("string", &[("whiteSpace", "collapse"), ("length", "3")], &["  a  b ", "a\tb"], &["a", "abcd"]),
    ("string", &[("whiteSpace", "replace"), ("enumeration", "a b")], &["a b", "a\nb"], &[" a b"]),
];

#[test]
fn steps_of_restriction_add_up() {
    let first = restricted(&xsd_type("token"), &[("pattern", "[a-z]+"), ("pattern", "[0-9]+"), ("maxLength", "5")]);
    let second = restricted(&first, &[("pattern", ".{2}"), ("pattern", ".{7}")]);
    judges("both steps", &second, &["ab", "12", " ab "], &["abcdefg", "a1", "a"]);
    let percent = restricted(&xsd_type("unsignedByte"), &[("maxInclusive", "100")]);
    judges("percent", &percent, &["0", "100"], &["-1", "101", "1.0"]);
    let above = restricted(&restricted(&xsd_type("decimal"), &[("minExclusive", "5")]), &[("minExclusive", "5")]);
    judges("more than five", &above, &["5.1"], &["5"]);
    let narrowed = restricted(
        &restricted(&xsd_type("token"), &[("enumeration", "a"), ("enumeration", "b")]),
        &[("enumeration", "b")],
    );
    judges("b", &narrowed, &["b"], &["a"]);
}

#[test]
fn lists_and_unions() {
    let sizes = SimpleType::list(&xsd_type("integer")).unwrap();
    judges("list", &sizes, &["", "1", " 1\n 2\t3 "], &["a", "1,2", "1 2 x"]);
    let pairs = restricted(&sizes, &[("length", "2"), ("enumeration", "1 2"), ("enumeration", "03 4")]);
    judges("pairs", &pairs, &["1 2", " 01  +2 ", "3 4"], &["2 1", "1", "1 2 3", ""]);

    let word = restricted(&xsd_type("string"), &[("enumeration", " unbounded ")]);
    let occurs = SimpleType::union(vec![xsd_type("nonNegativeInteger"), word]).unwrap();
    judges("union", &occurs, &["1", "  1 ", " unbounded "], &["unbounded", "-1", ""]);
    // The white space facet is that of the member that the value is valid for.
    let patterned = restricted(&occurs, &[("pattern", "[0-9 ]+")]);
    judges("patterned union", &patterned, &[" 12 "], &[" unbounded "]);
    let enumerated = restricted(&occurs, &[("enumeration", "1"), ("enumeration", " unbounded ")]);
    judges("enumerated union", &enumerated, &["01", " unbounded "], &["2", "unbounded"]);
    // The first member that a literal is valid for decides its value.
    let texts = SimpleType::union(vec![xsd_type("string"), xsd_type("integer")]).unwrap();
    judges("texts", &restricted(&texts, &[("enumeration", "1")]), &["1"], &["01"]);

    let of_unions =
        SimpleType::list(&SimpleType::union(vec![xsd_type("integer"), xsd_type("boolean")]).unwrap()).unwrap();
    judges("list of unions", &of_unions, &["1 true 7"], &["yes"]);
    let of_lists = SimpleType::union(vec![sizes.clone(), xsd_type("NCName")]).unwrap();
    judges("union of lists", &of_lists, &["1 2", "a"], &["a b"]);
    assert!(SimpleType::list(&of_lists).is_err());
    assert!(SimpleType::list(&sizes).is_err());
}

#[test]
fn equality_is_of_values() {
    for (ty, a, b, equal) in [
        ("integer", "1", " +01 ", true),
        ("decimal", "1.10", "1.1", true),
        ("string", "a", " a", false),
        ("token", "a  b", " a b", true),
        ("boolean", "1", "true", true),
        ("double", "NaN", "NaN", true),
        ("double", "0", "-0", true),
        ("dateTime", "2000-01-01T00:00:00Z", "2000-01-01T02:00:00+02:00", true),
        ("dateTime", "2000-01-01T00:00:00Z", "2000-01-01T00:00:00", false),
        ("QName", "p:a", "q:a", true),
        ("NMTOKENS", "a b", " a  b", true),
        ("NMTOKENS", "a b", "a b c", false),
        ("anySimpleType", "a", "a", true),
        ("hexBinary", "aB", "Ab", true),
    ] {
        assert_eq!(xsd_type(ty).equal(a, b, &Declared), Ok(equal), "{ty}: {a} {b}");
    }
    let either = SimpleType::union(vec![xsd_type("integer"), xsd_type("string")]).unwrap();
    assert_eq!([either.equal("1", "01", &Declared), either.equal("1", "1a", &Declared)], [Ok(true), Ok(false)]);
}

#[test]
fn what_is_no_restriction_is_left_to_libxml() {
    for (base, facet) in [
        ("decimal", ("length", "1")),
        ("string", ("minInclusive", "a")),
        ("boolean", ("enumeration", "true")),
        ("integer", ("minInclusive", "x")),
        ("unsignedByte", ("maxInclusive", "256")),
        ("token", ("whiteSpace", "preserve")),
        ("string", ("pattern", "[")),
        ("string", ("pattern", "(((a{1000}){1000}){1000})")),
        ("integer", ("enumeration", "1.5")),
        ("string", ("length", "-1")),
        ("string", ("explicitTimezone", "required")),
        ("anySimpleType", ("maxLength", "1")),
    ] {
        let facet = Facet { name: facet.0, value: facet.1, fixed: false, prefixes: &Declared };
        assert!(xsd_type(base).restrict("its base", &[facet]).is_err(), "{base} {}", facet.name);
    }
}

#[test]
fn derivations_are_bounded() {
    let deep = |ty: &SimpleType| ty.restrict("its base", &[]).ok();
    assert!(std::iter::successors(deep(&xsd_type("byte")), deep).count() < 300);
    assert!(SimpleType::xsd_type("dateTimeStamp").is_none() && SimpleType::xsd_type("").is_none());
}

#[test]
fn ids_are_found() {
    for (name, identity) in [
        ("ID", Identity::Id),
        ("IDREF", Identity::Idref),
        ("IDREFS", Identity::Idrefs),
        ("NCName", Identity::None),
        ("NMTOKENS", Identity::None),
    ] {
        assert_eq!(xsd_type(name).identity(), identity, "{name}");
    }
    assert_eq!(restricted(&xsd_type("ID"), &[("maxLength", "3")]).identity(), Identity::Id);
    assert_eq!(SimpleType::union(vec![xsd_type("string"), xsd_type("ID")]).unwrap().identity(), Identity::Mixed);
    assert_eq!(SimpleType::list(&xsd_type("ID")).unwrap().identity(), Identity::Mixed);
}

/// Compares a union with its members tried one by one: order, white space and other facets of the members.
#[test]
fn a_union_takes_the_first_member_that_has_a_value() {
    let one = |base: &str, values: &[&str]| {
        let facets: Vec<_> = values.iter().map(|value| ("enumeration", *value)).collect();
        restricted(&xsd_type(base), &facets)
    };
    let pattern = restricted(&one("string", &["a", "b"]), &[("pattern", "b")]);
    let types = vec![
        one("string", &[" a", "x\ty"]),
        one("token", &["a", "m n"]),
        one("int", &["7"]),
        one("normalizedString", &["x y"]),
        pattern,
        SimpleType::list(&xsd_type("int")).unwrap(),
        one("string", &["v1", "v2", "v3", "v4", "v5"]),
        SimpleType::union(vec![one("token", &["u"]), xsd_type("boolean")]).unwrap(),
        one("token", &["m n", "7"]),
    ];
    let union = SimpleType::union(types.clone()).unwrap();
    let key = |ty: &SimpleType, text: &str| {
        let mut key = String::new();
        ty.key(&mut key, text, &Declared).map(|()| key)
    };
    let texts =
        ["a", " a", "  a ", "x\ty", "x y", "m  n", "7", " 7", "b", "1 2", "v3", "v6", "u", "true", "1", "", "c"];
    for text in texts {
        let first = types.iter().find(|ty| ty.check(text, &Declared).is_ok());
        assert_eq!(union.check(text, &Declared).is_ok(), first.is_some(), "'{text}'");
        assert_eq!(key(&union, text).ok(), first.and_then(|ty| key(ty, text).ok()), "'{text}'");
    }
}

/// A union of 2,000 members with one text each: a value of the last one is checked against that member only.
#[test]
fn a_value_of_a_union_is_not_tried_by_enumerations_of_other_texts() {
    let member = |number: usize| restricted(&xsd_type("token"), &[("enumeration", &format!("v{number}"))]);
    let members = Members::new((0..2_000).map(member).collect());
    for text in ["v0", " v1999 ", "v2000"] {
        assert!(members.candidates(text).count() <= 2, "{text}");
    }
    let words: Vec<&str> = members.candidates("v1999").map(SimpleType::words).collect();
    assert!(words.contains(&"'v1999'"), "{words:?}");
}

#[test]
fn mismatches_say_what_was_found_and_what_is_expected() {
    let size = restricted(&xsd_type("integer"), &[("minInclusive", "0"), ("maxInclusive", "99")]);
    let unit = restricted(&xsd_type("string"), &[("enumeration", "m"), ("enumeration", "km")]);
    let sizes = SimpleType::list(&size).unwrap();
    let either = SimpleType::union(vec![size.clone(), unit.clone()]).unwrap();
    let code = restricted(&xsd_type("token"), &[("pattern", "[A-Z]{3}")]);
    let short = restricted(&xsd_type("string"), &[("maxLength", "1")]);
    for (ty, value, sentence) in [
        (&size, "100", "found '100', expected whole number from 0 to 99"),
        (&unit, "mile", "found 'mile', expected one of 'm', 'km'"),
        (&sizes, "1 2 x 3", "found 'x', expected any number of values between spaces, each: whole number from 0 to 99"),
        (&either, "x", "found 'x', expected whole number from 0 to 99; or one of 'm', 'km'"),
        (&code, "abc", "found 'abc', expected text, matching [A-Z]{3}"),
        (&short, "abc", "found 'abc', expected text, at most 1 character"),
        (&xsd_type("long"), "x", "found 'x', expected whole number"),
        (
            &xsd_type("long"),
            "9223372036854775808",
            "found '9223372036854775808', expected whole number from -9223372036854775808 to 9223372036854775807",
        ),
        (
            &xsd_type("unsignedLong"),
            "18446744073709551616",
            "found '18446744073709551616', expected whole number from 0 to 18446744073709551615",
        ),
        (&xsd_type("unsignedLong"), "-1", "found '-1', expected whole number from 0 to 18446744073709551615"),
        (&xsd_type("nonNegativeInteger"), "-1", "found '-1', expected whole number, at least 0"),
        (&xsd_type("byte"), "300", "found '300', expected whole number from -128 to 127"),
        (&xsd_type("QName"), "x:a", "found 'x:a', whose prefix is not declared; expected name"),
        (&xsd_type("ENTITY"), "a", "found 'a', the name of an entity, but a message declares no entities"),
    ] {
        assert_eq!(ty.check(value, &Declared).unwrap_err().to_string(), sentence);
    }
    let rule = |ty: &SimpleType, value: &str| ty.check(value, &Declared).unwrap_err().rule;
    assert_eq!(rule(&size, "100"), Rule::Most);
    assert_eq!(rule(&unit, "mile"), Rule::Enumeration);
    assert_eq!(rule(&either, "x"), Rule::Member);
    assert_eq!(rule(&xsd_type("gYear"), "123456789012"), Rule::Limit);
    assert_eq!(rule(&xsd_type("duration"), "P1234567890123456Y"), Rule::Limit);
}

#[test]
fn long_values_are_judged() {
    let digits = "7".repeat(1 << 18);
    let bounded = restricted(&xsd_type("integer"), &[("maxInclusive", &digits)]);
    judges("integer", &bounded, &[&digits, &digits[1..]], &[&format!("{digits}0")]);
    judges("decimal", &xsd_type("decimal"), &[&format!("-{digits}.{digits}")], &[&format!("{digits}.{digits}.")]);
    judges("double", &xsd_type("double"), &[&digits, &format!("1e{digits}")], &[&format!("{digits}x")]);
    judges("dateTime", &xsd_type("dateTime"), &[&format!("2000-01-01T00:00:00.{digits}Z")], &[&digits]);
    judges("duration", &xsd_type("duration"), &[&format!("PT0.{digits}S")], &[&format!("P{digits}Y")]);
    let backtracking = restricted(&xsd_type("string"), &[("pattern", "((a*)*b*)*(a|aa)+c")]);
    let run = "a".repeat(1 << 18);
    judges("pattern", &backtracking, &[&format!("{run}c")], &[&run]);
    let items = "1 ".repeat(1 << 17);
    let list = SimpleType::list(&xsd_type("boolean")).unwrap();
    judges("list", &list, &[&items], &[&format!("{items}2")]);
    judges("enumerated list", &restricted(&list, &[("enumeration", "1 0")]), &["1 0"], &[&items]);
    let spaces = " ".repeat(1 << 18);
    judges("token", &xsd_type("token"), &[&spaces, &format!("a{spaces}b")], &[]);
    judges("base64Binary", &xsd_type("base64Binary"), &[&"AAAA".repeat(1 << 16)], &[&"A".repeat((1 << 18) + 1)]);
    judges("anyURI", &xsd_type("anyURI"), &[&run, &"%20".repeat(1 << 16)], &[&"%".repeat(1 << 18)]);
}

/// Reports whether `a` is at least `b`, by a facet.
fn at_least(ty: &str, a: &str, b: &str) -> bool {
    restricted(&xsd_type(ty), &[("minInclusive", b)]).check(a, &Declared).is_ok()
}

proptest::proptest! {
    #[test]
    fn whole_numbers_have_their_order(a: i128, b: i128, close in -3..4i128) {
        for (a, b) in [(a, b), (a, a.saturating_add(close)), (a >> 64, b >> 64)] {
            let (a_text, b_text) = (a.to_string(), b.to_string());
            proptest::prop_assert_eq!(at_least("integer", &a_text, &b_text), a >= b);
            let below = restricted(&xsd_type("integer"), &[("maxExclusive", &b_text)]);
            proptest::prop_assert_eq!(below.check(&a_text, &Declared).is_ok(), a < b);
        }
    }

    #[test]
    fn fractions_have_their_order(a in -99_999..99_999i32, b in -99_999..99_999i32, digits in 0..5u32) {
        let scale = 10f64.powi(digits.cast_signed());
        let text = |number: i32| format!("{:.*}", digits as usize, f64::from(number) / scale);
        proptest::prop_assert_eq!(at_least("decimal", &text(a), &text(b)), a >= b, "{} {}", text(a), text(b));
    }

    #[test]
    fn moments_with_zones_have_their_order(
        // From the year 1000 to the year 9999.
        a in -30_600_000_000..253_300_000_000i64,
        b in -30_600_000_000..253_300_000_000i64,
        close in -60..60i64,
        zones in (-14 * 60..=14 * 60i32, -14 * 60..=14 * 60i32),
    ) {
        let text = |second: i64, zone: i32| {
            let offset = jiff::tz::Offset::from_seconds(60 * zone).unwrap();
            let moment = jiff::Timestamp::from_second(second).unwrap().to_zoned(jiff::tz::TimeZone::fixed(offset));
            moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
        };
        for (a, b) in [(a, b), (a, a + close)] {
            let (one, other) = (text(a, zones.0), text(b, zones.1));
            proptest::prop_assert_eq!(at_least("dateTime", &one, &other), a >= b, "{} {}", one, other);
        }
    }
}
