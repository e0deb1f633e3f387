//! Tests of `systole check` on each `tests/golden/check/NAME.yaml`: its output is in `NAME.err`.
//!
//! `UPDATE_GOLDEN=1 cargo test --test cli check` writes the files anew.

use std::path::Path;
use std::process::{Command, Output};

use crate::kit::{Scratch, fresh};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/check");

fn check(file: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_systole"))
        .args(["check", file])
        .current_dir(DIRECTORY)
        .output()
        .expect("the program starts")
}

#[test]
fn each_mistake_is_told_with_its_place() {
    let mut names: Vec<String> = std::fs::read_dir(DIRECTORY)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().unwrap().strip_suffix(".yaml").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() > 5, "the golden files are there");
    let mut wrong = Vec::new();
    for name in names {
        let output = check(&format!("{name}.yaml"));
        let found = String::from_utf8(output.stderr).unwrap();
        let golden = Path::new(DIRECTORY).join(format!("{name}.err"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&golden, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if found != expected {
            wrong.push(format!("=== {name}: expected\n{expected}=== found\n{found}"));
        }
        let errors = !found.is_empty() && !found.contains("\n0 errors, ");
        assert_eq!(output.status.code(), Some(i32::from(errors)), "{name}");
        assert_eq!(output.stdout.is_empty(), errors, "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn of_many_mistakes_the_first_are_shown_and_all_are_counted() {
    let directory = Scratch::new("many-mistakes");
    let keys: String = (0..5000).map(|n| format!("    key{n}: 1\n")).collect();
    let file = directory.join("organism.yaml");
    std::fs::write(&file, format!("organism: {{ name: a }}\nlisteners:\n  - name: a\n{keys}    echo: true\n")).unwrap();
    let output = check(file.to_str().unwrap());
    let found = String::from_utf8(output.stderr).unwrap();
    assert_eq!(found.matches("× unknown key").count(), 100, "{found}");
    assert!(found.contains(":103:5]\n 102 │     key98: 1\n 103 │     key99: 1\n     ·     ─────\n 104 │"), "{found}");
    assert!(
        found.ends_with("\n\n4900 more are not shown: correct these first\n\n5000 errors, 0 warnings\n"),
        "{found}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let output = check("no-such-file.yaml");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("can't read no-such-file.yaml: No such file"));
}

#[test]
fn short_forms_are_printed_written_out() {
    let output = check("../config/short.yaml");
    let expected = "\
short: ok (listeners: 5, clients: 1, payloads: 3)
clients:
  - name: cli
    calls: [\"{urn:t}ask\", \"{urn:t}note\"]
listeners:
  - name: asker
    description: \"Asks something.\"
    accepts: [\"{urn:t}ask\", \"{https://xml-pipeline.org/ns/core/v1}boot\"]
    replies: [\"{urn:t}answer\"]
    calls: [\"{urn:t}note\", \"{urn:t}ask\"]
    returns: [\"{urn:t}note\", \"{urn:t}answer\"]
";
    let found = String::from_utf8(output.stdout).unwrap();
    assert!(found.starts_with(expected), "{found}");
}

#[test]
fn identity_constraints_are_judged_like_all_else() {
    let output = check("keys.yaml");
    let found = String::from_utf8(output.stdout).unwrap();
    assert_eq!(found.lines().next(), Some("shop: ok (listeners: 1, clients: 1, payloads: 3)"));
}

/// `check` of an organism with one listener that has this schema and accepts its `{urn:o}r`.
fn checked(name: &str, declared: &str) -> (Option<i32>, String) {
    let directory = Scratch::new(&format!("opinion-{name}"));
    let schema = format!(
        "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" targetNamespace=\"urn:o\" xmlns=\"urn:o\" elementFormDefault=\"unqualified\">\n{declared}\n</xs:schema>"
    );
    std::fs::write(directory.join("o.xsd"), schema).unwrap();
    let organism = "organism: { name: o }\nclients: [{ name: cli, calls: ['{urn:o}r'] }]\nlisteners:\n  - name: o\n    \
                    description: Takes r.\n    accepts: ['{urn:o}r']\n    replies: ['{urn:o}r']\n    echo: true\n    \
                    schemas: [o.xsd]\n";
    std::fs::write(directory.join("o.yaml"), organism).unwrap();
    let output = check(directory.join("o.yaml").to_str().unwrap());
    (output.status.code(), String::from_utf8(output.stderr).unwrap().split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(feature = "libxml")]
#[test]
fn a_second_opinion_is_told_where_it_differs_and_decides_nothing() {
    let (code, said) = checked("agrees", "<xs:element name='r' type='xs:int'/>");
    assert_eq!((code, said.as_str()), (Some(0), ""));
    // A union with a member of one of its types: libxml2 2.9.14 never ends with it, later ones may accept it.
    let (code, said) = checked(
        "hangs",
        "<xs:simpleType name='u'><xs:union memberTypes='xs:int xs:date'/></xs:simpleType>
         <xs:element name='head' type='u'/><xs:element name='m' type='xs:int' substitutionGroup='head'/>
         <xs:element name='r'><xs:complexType><xs:sequence><xs:element ref='head'/></xs:sequence></xs:complexType></xs:element>",
    );
    assert_eq!(code, Some(0), "{said}");
    assert!(said.is_empty() || said.contains("libxml2 gives no second opinion"), "{said}");
    // The part of a schema that libxml2 does not judge: the particles of a restriction.
    let (code, said) = checked(
        "refused",
        "<xs:complexType name='b'><xs:sequence><xs:element name='x'/></xs:sequence></xs:complexType>
         <xs:complexType name='d'><xs:complexContent><xs:restriction base='b'><xs:sequence><xs:element name='y'/>
         </xs:sequence></xs:restriction></xs:complexContent></xs:complexType><xs:element name='r' type='d'/>",
    );
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("accepts the schemas that the engine refuses") && said.contains("1 error, 1 warning"),
        "{said}"
    );
    // The error comes first.
    assert!(said.find('×') < said.find('⚠'), "{said}");
    // A bound of more digits than libxml2 2.9.14 reads; later ones do.
    let huge = "9".repeat(40);
    let (code, said) = checked(
        "refuses",
        &format!(
            "<xs:element name='r'><xs:simpleType><xs:restriction base='xs:decimal'><xs:maxInclusive value='{huge}'/></xs:restriction></xs:simpleType></xs:element>"
        ),
    );
    assert_eq!(code, Some(0), "{said}");
    let told = said.contains("refuses this schema, which the engine accepts") && said.contains("o.xsd:2:1");
    assert!(said.is_empty() || told, "{said}");
}

#[test]
fn an_address_that_can_not_be_had_is_told() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Scratch::new("address");
    let said = |listen: &str| {
        let organism = format!(
            "organism: {{ name: a }}\ndurability: process\ngateway: {{ listen: \"{listen}\" }}\nlisteners:\n  \
             - {{ name: a, echo: true, schemas: [{DIRECTORY}/calculator.xsd], accepts: ['{{urn:calc}}add'] }}\n"
        );
        std::fs::write(folder.join("organism.yaml"), organism).unwrap();
        let path = folder.join("organism.yaml");
        let output = check(path.to_str().unwrap());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let address = other.local_addr().unwrap().to_string();
    let (code, taken) = said(&address);
    assert!(code == Some(0) && taken.contains(&format!("another process listens at {address}")), "{taken}");
    assert!(taken.contains("this organism does, if it runs; else write another port"), "{taken}");
    let run =
        Command::new(env!("CARGO_BIN_EXE_systole")).arg("run").arg(folder.join("organism.yaml")).output().unwrap();
    let run = String::from_utf8(run.stderr).unwrap();
    assert!(run.contains("end the other program if it is this organism, or write another port, or 0"), "{run}");
    // An address that is kept for documents.
    let (code, foreign) = said("192.0.2.1:8420");
    assert!(code == Some(1) && foreign.contains("nothing can listen at 192.0.2.1:8420: "), "{foreign}");
    drop(other);
    assert_eq!(said(&address), (Some(0), String::new()), "check lets it go again");
}

#[cfg(feature = "libxml")]
#[test]
fn a_program_that_was_replaced_meanwhile_asks_itself_for_the_second_opinion() {
    let copy = fresh("replaced");
    std::fs::copy(env!("CARGO_BIN_EXE_systole"), &copy).unwrap();
    let organism = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/swarm/organism.yaml");
    // The shell starts the program from an open file whose name is gone.
    let script = r#"exec 3<"$1"; rm "$1"; exec /proc/self/fd/3 check "$2""#;
    let output = Command::new("sh").args(["-c", script, "sh"]).arg(&copy).arg(organism).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && !said.contains("no second opinion"), "{said}");
}

#[test]
fn of_long_lines_the_part_around_the_mistake_is_shown() {
    for (name, letter) in [("spaces", "x"), ("umlauts", "\u{e4}")] {
        for (before, behind) in [(70_000, 0), (70_000, 70_000), (0, 70_000), (300, 300)] {
            let before = letter.repeat(before);
            let declared =
                format!("<!--{before}--><xs:element name='r' type='xs:strin'/><!--{}-->", letter.repeat(behind));
            let (code, said) = checked(&format!("{name}-{}-{behind}", before.len()), &declared);
            let start = said.chars().take(2_000).collect::<String>();
            assert_eq!(code, Some(1), "{start}");
            let column = format!("o.xsd:2:{}]", "<!----><xs:element name='r' ".len() + before.chars().count() + 1);
            assert!(said.contains(&column) && said.contains("type='xs:strin'"), "{column} in {start}");
            assert!(said.len() < 8_000, "{} bytes: {start}", said.len());
        }
    }
}
