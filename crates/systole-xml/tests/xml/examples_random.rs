//! Random simple types that have a value by construction: each must have an example.

use systole_xml::schema::PayloadSchema;

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed >> 33) % end.max(1) as u64).unwrap()
    }

    fn often(&mut self) -> bool {
        self.below(2) == 0
    }

    fn digits(&mut self, most: usize) -> String {
        let length = 1 + self.below(most);
        let first = ['1', '2', '5', '9'][self.below(4)];
        std::iter::once(first).chain((1..length).map(|_| char::from(b'0' + self.below(10) as u8))).collect()
    }

    fn letters(&mut self, most: usize) -> String {
        (0..1 + self.below(most)).map(|_| ['a', 'k', 'Z', '7', '-', '.'][self.below(6)]).collect()
    }
}

/// A pattern that a text of ASCII matches, more general than the text.
fn pattern(dice: &mut Dice, text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let class = match c {
            '0'..='9' => ["\\d", "[0-9]", "[0-9]{1}", "[0-9]+"][dice.below(4)].to_owned(),
            'a'..='z' => ["[a-z]", "[a-z]+", "\\i", "[a-zA-Z]"][dice.below(4)].to_owned(),
            'A'..='Z' => ["[A-Z]", "\\p{Lu}", "[A-Za-z]"][dice.below(3)].to_owned(),
            c => format!("\\{c}"),
        };
        let literal = if c.is_ascii_alphanumeric() { c.to_string() } else { format!("\\{c}") };
        out += &match dice.below(6) {
            0 => literal,
            1 => format!("({literal}|{class})"),
            2 => format!("(x?{class})"),
            _ => class,
        };
    }
    match dice.below(4) {
        0 => format!("(NO|{out})"),
        _ => out,
    }
}

/// A base type with facets that a value keeps.
fn restriction(dice: &mut Dice) -> (&'static str, Vec<(&'static str, String)>, String) {
    let mut facets: Vec<(&str, String)> = Vec::new();
    let (base, value) = match dice.below(7) {
        0 => ("xs:string", dice.letters(12)),
        1 => ("xs:int", dice.digits(8)),
        2 => ("xs:decimal", format!("{}.{}", dice.digits(4), dice.digits(3).replace('0', "1"))),
        3 => ("xs:hexBinary", "A7".repeat(1 + dice.below(9))),
        4 => {
            let (year, month, day) = (1000 + dice.below(2000), 1 + dice.below(12), 1 + dice.below(28));
            ("xs:date", format!("{year:04}-{month:02}-{day:02}"))
        }
        5 => ("xs:token", dice.letters(6)),
        _ => ("xs:long", format!("-{}", dice.digits(6))),
    };
    match base {
        "xs:string" | "xs:token" | "xs:hexBinary" => {
            let length = if base == "xs:hexBinary" { value.len() / 2 } else { value.len() };
            match dice.below(4) {
                0 => facets.push(("length", length.to_string())),
                1 => facets.push(("minLength", length.to_string())),
                2 => facets.push(("maxLength", (length + dice.below(3)).to_string())),
                _ => {}
            }
        }
        _ => {
            if dice.often() {
                facets.push(("minInclusive", value.clone()));
            }
            if dice.often() {
                facets.push(("maxInclusive", value.clone()));
            }
            if base == "xs:decimal" && dice.often() {
                let fraction = value.len() - value.find('.').unwrap() - 1;
                facets.push(("fractionDigits", fraction.to_string()));
                facets.push(("totalDigits", (value.len() - 1).to_string()));
            }
        }
    }
    if dice.often() {
        let pattern = pattern(dice, &value);
        facets.push(("pattern", pattern));
    }
    (base, facets, value)
}

fn written(name: &str, base: &str, facets: &[(&str, String)]) -> String {
    let facets: String = facets.iter().map(|(name, value)| format!("<xs:{name} value='{value}'/>")).collect();
    format!("<xs:simpleType name='{name}'><xs:restriction base='{base}'>{facets}</xs:restriction></xs:simpleType>")
}

#[test]
fn random_types_with_a_value_have_an_example() {
    let mut dice = Dice(7);
    let mut without = Vec::new();
    let mut compiled = 0;
    for _ in 0..4_000 {
        let (base, facets, value) = restriction(&mut dice);
        let mut types = written("t", base, &facets);
        if dice.below(3) == 0 {
            let again = [("pattern", pattern(&mut dice, &value))];
            types = written("b", base, &facets) + &written("t", "b", &again);
        }
        let text = format!(
            "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\">{types}<xs:element name='r' type='t'/></xs:schema>"
        );
        let Ok(schemas) = PayloadSchema::from_xsd("t.xsd", &text) else { continue };
        compiled += 1;
        if schemas[0].example().is_none() {
            without.push(format!("{value}: {types}"));
        }
    }
    println!("{} of {compiled} random types have no example", without.len());
    without.iter().take(40).for_each(|one| println!("{one}"));
    assert!(compiled > 3_500, "{compiled}");
    assert!(without.is_empty(), "{} of {compiled}", without.len());
}
