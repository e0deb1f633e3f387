use super::*;

fn xsd(pattern: &str) -> String {
    Pattern::from_rust(pattern).unwrap().xsd
}

#[test]
fn anchors_disappear_and_their_absence_shows() {
    assert_eq!(xsd("^[a-z]{2,3}$"), "[a-z]{2,3}");
    assert_eq!(xsd("^a"), "a[\\s\\S]*");
    assert_eq!(xsd("b"), "[\\s\\S]*b[\\s\\S]*");
    assert_eq!(xsd("^(?:ab|c)+x?$"), "(ab|c)+(x)?");
    assert_eq!(xsd("^a$|^bc$"), "(a|bc)");
    assert_eq!(xsd("^a|b$"), "(a[\\s\\S]*|[\\s\\S]*b)");
    assert_eq!(xsd("(^a|b)c$"), "(a|[\\s\\S]*b)c");
}

#[test]
fn what_xsd_reads_otherwise_is_escaped() {
    assert_eq!(xsd(r"^\d+\.\d$"), r"\d+\.\d");
    assert_eq!(xsd(r"^[^\n]*$"), r"[^\n]*");
    assert_eq!(xsd(r"^.$"), r"[^\n]");
    assert_eq!(xsd(r"^a\^\$$"), r"a\^$");
    assert_eq!(xsd(r"^(?s).$"), r"[\s\S]");
}

#[test]
fn what_xsd_can_not_say_is_refused() {
    for pattern in [r"\bword\b", "a^b", "(?m)^a$", "(", r"(?-u:\xff)"] {
        assert!(Pattern::from_rust(pattern).is_err(), "{pattern}");
    }
}

#[test]
fn samples_match_and_differ() {
    for pattern in ["^[A-Z]{3}-[0-9]{4}$", "x+[yz]*z?", "^(red|green)$", r"^\w+@\w+\.org$", r"^[^a-z]$"] {
        let pattern = Pattern::from_rust(pattern).unwrap();
        let [first, second] = [0, 1].map(|variant| pattern.samples(variant).next().unwrap());
        assert!(pattern.matches(&first) && pattern.matches(&second), "{first} {second}");
        assert_ne!(first, second);
    }
}

#[test]
fn patterns_of_xsd_are_understood() {
    for (pattern, yes, no) in [
        (r"[a-z-[aeiou]]+", "xyz", "abc"),
        (r"\i\c*", "a-1", "1a"),
        (r"a^b$", "a^b$", "ab"),
        (r"\d{2}", "12", "1"),
        (r"[&~]x", "&x", "ax"),
        (r"\p{Lu}", "A", "a"),
    ] {
        let pattern = Pattern::from_xsd(pattern);
        assert!(pattern.tree.is_some(), "{pattern:?}");
        assert!(pattern.matches(yes) && !pattern.matches(no), "{pattern:?}");
        assert!(pattern.samples(0).next().is_some_and(|sample| pattern.matches(&sample)), "{pattern:?}");
    }
    assert!(Pattern::from_xsd(r"\p{IsKlingon}").matches("anything"));
}
