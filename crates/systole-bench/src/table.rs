//! The report as tables for people.

use std::fmt::{self, Write};

use super::report::{BarVerdict, CaseFigures, HostileFigures, Report, SpecimenFigures};
use super::stages::Side;

/// Shows a report as tables.
pub(super) struct Tables<'a>(pub(super) &'a Report);

impl fmt::Display for Tables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { machine, smoke, cases, stages, hostile, bars } = self.0;
        let build = if machine.optimized { "release" } else { "debug" };
        writeln!(f, "{} cores, {} {}, {build} build", machine.cores, machine.arch, machine.os)?;
        if *smoke || !machine.optimized {
            writeln!(f, "these figures mean nothing: only a full run of a release build measures")?;
        }
        if !cases.is_empty() {
            writeln!(f)?;
            Table::new(&["", "", "deliveries/s", "CPU \u{b5}s", "p50 \u{b5}s", "p99 \u{b5}s", "peak MiB", ""])
                .rows(cases.iter().map(case))
                .fmt(f)?;
        }
        if !stages.is_empty() {
            writeln!(f, "\ng  the stages, CPU ns for one message")?;
            of_stages(stages).fmt(f)?;
        }
        if !hostile.is_empty() {
            writeln!(f, "\ni  hostile documents, CPU ms; * without limits")?;
            Table::new(&["", "KiB", "strict", "repair", "emission", "entrance", "peak MB", ""])
                .rows(hostile.iter().map(document))
                .fmt(f)?;
        }
        if !bars.is_empty() {
            writeln!(f)?;
            Table::new(&["bar", "measured", "must", ""]).rows(bars.iter().map(verdict)).fmt(f)?;
        }
        Ok(())
    }
}

fn case(case: &CaseFigures) -> Vec<String> {
    let micros = |figure: Option<f64>| figure.map_or_else(String::new, number);
    let remark = match (&case.ratio, case.bytes_of_thread) {
        (Some(ratio), _) => format!("{} {}: {:.2} x {}", case.what, ratio.of, ratio.times, ratio.to),
        (None, Some(bytes)) => format!("{}: {} bytes each", case.what, number(bytes)),
        (None, None) => case.what.to_owned(),
    };
    vec![
        case.letter.to_string(),
        case.name.to_owned(),
        number(case.per_second),
        number(case.cpu_micros),
        micros(case.p50_micros),
        micros(case.p99_micros),
        case.peak_rss.map_or_else(String::new, |bytes| (bytes >> 20).to_string()),
        remark,
    ]
}

fn of_stages(specimens: &[SpecimenFigures]) -> Table {
    let mut head = vec!["", ""];
    head.extend(specimens.iter().map(|specimen| specimen.name));
    let rows = specimens[0].stages.iter().map(|stage| {
        let side = match stage.side {
            Side::Systole => "systole",
            Side::Reference => "reference",
        };
        let figures = specimens.iter().map(|specimen| specimen.nanos(stage.side, stage.name));
        let figures = figures.map(|nanos| nanos.map_or_else(String::new, number));
        [side.to_owned(), stage.name.to_owned()].into_iter().chain(figures).collect()
    });
    Table::new(&head).rows(rows)
}

fn document(document: &HostileFigures) -> Vec<String> {
    let limits = if document.lifted { " *" } else { "" };
    vec![
        format!("{}{limits}", document.name),
        grouped((document.bytes >> 10) as i64),
        number(document.strict_ms),
        number(document.repair_ms),
        number(document.emission_ms),
        number(document.entrance_ms),
        document.peak_rss.map_or_else(String::new, |bytes| number(bytes as f64 / 1e6)),
        document.verdict.clone(),
    ]
}

fn verdict(verdict: &BarVerdict) -> Vec<String> {
    let word = if verdict.met { "met" } else { "NOT met" };
    vec![verdict.what.to_owned(), number(verdict.measured), number(verdict.must), word.to_owned()]
}

/// A figure with at least three significant digits.
fn number(figure: f64) -> String {
    if !figure.is_finite() {
        return "-".to_owned();
    }
    match figure.abs() {
        ..10.0 => format!("{figure:.2}"),
        10.0..100.0 => format!("{figure:.1}"),
        _ => grouped(figure.round() as i64),
    }
}

/// A number with a comma between groups of three digits.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A table with columns as wide as their longest cell: names aligned left, numbers right.
struct Table(Vec<Vec<String>>);

impl Table {
    fn new(head: &[&str]) -> Self {
        Self(vec![head.iter().map(|&cell| cell.to_owned()).collect()])
    }

    fn rows(mut self, rows: impl Iterator<Item = Vec<String>>) -> Self {
        self.0.extend(rows);
        self
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.0.first().map_or(0, Vec::len);
        let width = |column: usize| self.0.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let numeric: Vec<bool> = (0..columns)
            .map(|column| self.0.iter().skip(1).all(|row| !row[column].contains(|c: char| c.is_alphabetic())))
            .collect();
        for row in &self.0 {
            let mut line = String::new();
            for ((cell, &width), &numeric) in row.iter().zip(&widths).zip(&numeric) {
                match numeric {
                    true => write!(line, "{cell:>width$}  ")?,
                    false => write!(line, "{cell:<width$}  ")?,
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits_and_get_commas() {
        let shown = [0.5, 12.345, 123.4, 1234.0, 1_234_567.0, f64::NAN].map(number);
        assert_eq!(shown, ["0.50", "12.3", "123", "1,234", "1,234,567", "-"]);
    }

    #[test]
    fn columns_line_up() {
        let table =
            Table::new(&["", "n"]).rows([vec!["a".into(), "1".into()], vec!["bcd".into(), "22".into()]].into_iter());
        assert_eq!(table.to_string(), "      n\na     1\nbcd  22\n");
    }
}
