//! The second opinion on the schemas of an organism. It advises; the engine decides.

use systole_core::vocab::Position;
use systole_xml::schema::{Objection, Opinion};

use super::mistake::Mistake;
use super::reader::Reader;
use super::schemas::{Listed, note};

/// The second opinion on the schemas of an organism.
#[derive(Debug, Clone, PartialEq, Eq)]
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
