//! Tables on standard output.

use systole::terminal::Escaped;
use systole_core::vocab::Time;

use super::print::Page;

/// Prints rows below their headings, each column as wide as its widest cell; the last one is as long as it is.
pub(super) fn print<const COLUMNS: usize>(
    headings: [&str; COLUMNS],
    rows: &[[String; COLUMNS]],
) -> std::io::Result<()> {
    let cell = |cell: &str| Escaped::line(cell).to_string();
    let rows: Vec<[String; COLUMNS]> = rows.iter().map(|row| row.each_ref().map(|text| cell(text))).collect();
    let headings = headings.map(str::to_owned);
    let lines = || std::iter::once(&headings).chain(&rows);
    let width = |column: usize| lines().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS - 1).map(width).chain([0]).collect();
    let mut page = Page::new();
    for line in lines() {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}", width = *width)).collect();
        page.line(cells.join("  ").trim_end())?;
    }
    page.finish()
}

/// The date and time of a record to the second; another text as it is.
pub(super) fn moment(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), date_time)
}

/// A date and time to the second.
pub(super) fn date_time(time: Time) -> String {
    Time::from_nanos(time.as_nanos() / 1_000_000_000 * 1_000_000_000).to_string()
}
