//! The second opinion on the schemas of an organism. It advises; the engine decides.

use systole_core::vocab::Position;
use systole_xml::schema::{Objection, Opinion};

use super::mistake::Mistake;
use super::reader::Reader;
use super::schemas::{Listed, note};

/// The second opinion on the schemas of an organism.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// The validator was not asked.
    Unasked,
    /// The validator's verdict.
    Opinion(Opinion),
    /// The validator gave no verdict, for this reason.
    Silent(String),
}

/// Reports where the advice differs from the verdict of the engine.
pub(super) fn report(reader: &mut Reader, listed: &[Listed], accepted: bool, advice: Advice) {
    let Some(first) = listed.first() else { return };
    match advice {
        Advice::Opinion(opinion) if accepted => {
            let Opinion { by, objections } = opinion;
            objections.into_iter().for_each(|objection| object(reader, listed, &by, objection));
        }
        Advice::Opinion(Opinion { by, objections }) if objections.is_empty() => {
            reader.report(Mistake::Lenient { by }, first.by.span);
        }
        // Both refuse, or there is no opinion.
        Advice::Opinion(_) | Advice::Unasked => {}
        Advice::Silent(why) => reader.report(Mistake::NoOpinion { why }, first.by.span),
    }
}

fn object(reader: &mut Reader, listed: &[Listed], by: &str, objection: Objection) {
    let Objection { document, line, example, message } = objection;
    let what = example.map_or("this schema".to_owned(), |payload| format!("the example of {payload}"));
    let mistake = Mistake::Objection { by: by.to_owned(), what, message };
    let named = document.and_then(|name| listed.iter().find(|file| file.document.name == name));
    match named {
        Some(file) => note(reader, file, Position { line: line.max(1), column: 1 }, mistake),
        None => reader.report(mistake, listed[0].by.span),
    }
}

#[cfg(test)]
mod tests {
    use systole_core::vocab::Span;
    use systole_xml::schema::XsdDocument;

    use super::super::finding::{ConfigFinding, File};
    use super::super::reader::At;
    use super::super::short_form::Prefixes;
    use super::*;

    const ORGANISM: &str = "schemas: [a.xsd, b.xsd]";

    fn listed(name: &str, text: &str) -> Listed {
        let start = ORGANISM.find(name).unwrap();
        let by = At { value: name.to_owned(), span: Span { start, end: start + name.len() } };
        Listed { by, document: XsdDocument { name: name.to_owned(), text: text.to_owned() } }
    }

    fn reader() -> Reader {
        Reader {
            file: File::new("o.yaml", ORGANISM),
            base: "o".into(),
            directory: "o".into(),
            prefixes: Prefixes::default(),
            findings: Vec::new(),
            files: Vec::new(),
        }
    }

    /// The findings on two files, each with its place and the text there.
    fn reported(accepted: bool, advice: Advice) -> Vec<String> {
        let mut reader = reader();
        let files = [listed("a.xsd", "<a>\n  <b/>\n</a>"), listed("b.xsd", "<c/>")];
        report(&mut reader, &files, accepted, advice);
        reader.findings.iter().map(told).collect()
    }

    fn told(finding: &ConfigFinding) -> String {
        assert!(finding.mistake().is_warning(), "{finding}");
        let (name, at) = finding.place().unwrap();
        let (text, span) = finding.source().unwrap();
        format!("{name}:{at} {}: {finding}", &text[span.start..span.end])
    }

    fn objection(document: Option<&str>, line: u32, example: Option<&str>) -> Objection {
        let [document, example] = [document, example].map(|text| text.map(str::to_owned));
        Objection { document, line, example, message: "no".to_owned() }
    }

    fn opinion(objections: Vec<Objection>) -> Advice {
        Advice::Opinion(Opinion { by: "J 1".to_owned(), objections })
    }

    #[test]
    fn agreement_and_a_validator_that_was_not_asked_are_silent() {
        for (accepted, advice) in [
            (true, opinion(Vec::new())),
            (false, opinion(vec![objection(Some("a.xsd"), 2, None)])),
            (true, Advice::Unasked),
            (false, Advice::Unasked),
        ] {
            assert_eq!(reported(accepted, advice.clone()), [""; 0], "{advice:?}");
        }
    }

    #[test]
    fn a_refused_schema_is_pointed_at_in_its_file() {
        let objections = vec![objection(Some("a.xsd"), 2, None), objection(Some("b.xsd"), 0, None)];
        assert_eq!(
            reported(true, opinion(objections)),
            [
                "o/a.xsd:2:3 <b/>: J 1 refuses this schema, which the engine accepts: no",
                "o/b.xsd:1:1 <c/>: J 1 refuses this schema, which the engine accepts: no"
            ]
        );
    }

    #[test]
    fn a_refusal_without_a_known_file_is_pointed_at_where_the_first_one_is_listed() {
        for document in [None, Some("c.xsd")] {
            assert_eq!(
                reported(true, opinion(vec![objection(document, 2, None)])),
                ["o.yaml:1:11 a.xsd: J 1 refuses this schema, which the engine accepts: no"]
            );
        }
    }

    #[test]
    fn a_refused_example_is_named_by_its_payload() {
        let objections = vec![objection(None, 0, Some("{urn:o}r")), objection(None, 0, Some("s"))];
        assert_eq!(
            reported(true, opinion(objections)),
            [
                "o.yaml:1:11 a.xsd: J 1 refuses the example of {urn:o}r, which the engine accepts: no",
                "o.yaml:1:11 a.xsd: J 1 refuses the example of s, which the engine accepts: no"
            ]
        );
    }

    #[test]
    fn an_acceptance_against_the_engine_is_one_warning() {
        assert_eq!(
            reported(false, opinion(Vec::new())),
            ["o.yaml:1:11 a.xsd: J 1 accepts the schemas that the engine refuses"]
        );
    }

    #[test]
    fn a_missing_verdict_is_told_whatever_the_engine_says() {
        for accepted in [true, false] {
            assert_eq!(
                reported(accepted, Advice::Silent("it died".to_owned())),
                ["o.yaml:1:11 a.xsd: libxml2 gives no second opinion on the schemas: it died"]
            );
        }
    }

    #[test]
    fn an_organism_without_schemas_has_no_advice() {
        let mut reader = reader();
        report(&mut reader, &[], false, Advice::Silent("it died".to_owned()));
        assert!(reader.findings.is_empty());
    }
}
