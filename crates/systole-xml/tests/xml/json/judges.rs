//! Judges in Python: `jsonschema` for schemas, `xmlschema` for the form of payloads.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// A question to the judges, with an answer for each value or payload.
pub(super) enum Case {
    /// Whether the schema takes the values.
    Schema { schema: Value, values: Vec<Value> },
    /// Whether the payloads of a schema document have this JSON.
    Form { xsd: String, payloads: Vec<(String, Value)> },
}

/// The answers; `None`, with a word about it, if the packages can't be had.
pub(super) fn python(cases: &[Case]) -> Option<Vec<Vec<bool>>> {
    let python = interpreter()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/xml/json/judges.py");
    let mut child = Command::new(python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines: Vec<String> = cases
        .iter()
        .map(|case| match case {
            Case::Schema { schema, values } => json!({ "schema": schema, "values": values }).to_string(),
            Case::Form { xsd, payloads } => json!({ "xsd": xsd, "payloads": payloads }).to_string(),
        })
        .collect();
    let writer = std::thread::spawn(move || lines.iter().try_for_each(|line| writeln!(stdin, "{line}")));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "the judges failed");
    let answers: Vec<Vec<bool>> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), cases.len());
    Some(answers)
}

/// A Python that has the packages: the one of the system, or one beside the build with them from PyPI.
fn interpreter() -> Option<PathBuf> {
    let has_them = |python: &Path| {
        let found = Command::new(python).args(["-c", "import jsonschema, xmlschema"]).stderr(Stdio::null()).status();
        found.is_ok_and(|status| status.success())
    };
    let system = PathBuf::from("python3");
    if has_them(&system) {
        return Some(system);
    }
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("json-judges");
    let own = environment.join("bin/python");
    if !has_them(&own) {
        let made = Command::new(&system).args(["-m", "venv"]).arg(&environment).status();
        let packages = ["jsonschema==4.26.0", "xmlschema==4.3.2"];
        let _ = made.and_then(|_| Command::new(&own).args(["-m", "pip", "install", "--quiet"]).args(packages).status());
    }
    if has_them(&own) {
        return Some(own);
    }
    eprintln!("SKIPPED: Python's jsonschema and xmlschema can't be installed, so they judge nothing in this run");
    None
}
