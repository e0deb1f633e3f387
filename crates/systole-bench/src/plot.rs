//! The report as a chart: bars of CPU time, Systole's beside those of the references.

use std::io;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::{
    Color, DrawingArea, DrawingAreaErrorKind, IntoDrawingArea, IntoFont, RGBColor, Rectangle, SVGBackend, Text,
    TextStyle, WHITE,
};

use super::report::{CaseFigures, Report, SpecimenFigures};
use super::stages::{ALL, Side, TOKENS};

const OURS: RGBColor = RGBColor(0x1f, 0x6f, 0xb4);
const THEIRS: RGBColor = RGBColor(0xb0, 0xb4, 0xba);
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);

const WIDTH: u32 = 960;
const ROW: i32 = 22;
/// The left edge of the bars, and the length of the longest, in pixels.
const LEFT: i32 = 250;
const LONGEST: f64 = 560.0;

/// The reason why there is no chart.
pub(super) type PlotError = DrawingAreaErrorKind<io::Error>;

/// A group of bars on one scale, with a title.
struct Panel {
    title: String,
    bars: Vec<Bar>,
}

struct Bar {
    label: String,
    micros: f64,
    ours: bool,
}

/// Draws a report into an SVG file.
///
/// # Errors
/// [`PlotError`] if the file can't be written.
pub(super) fn draw(report: &Report, path: &Path) -> Result<(), PlotError> {
    let mut panels = vec![by_case(&report.cases), by_message(&report.stages)];
    panels.extend(report.stages.iter().filter(|specimen| specimen.name == "945 B").map(by_stage));
    panels.retain(|panel| !panel.bars.is_empty());
    let height: i32 = panels.iter().map(Panel::height).sum::<i32>() + ROW;
    let area = SVGBackend::new(path, (WIDTH, height.unsigned_abs())).into_drawing_area();
    area.fill(&WHITE)?;
    let mut top = ROW;
    for panel in &panels {
        panel.paint(&area, top)?;
        top += panel.height();
    }
    area.present()
}

fn by_case(cases: &[CaseFigures]) -> Panel {
    let shown = cases.iter().filter(|case| matches!(case.letter, 'a'..='e'));
    let bars = shown.map(|case| Bar {
        label: case.name.to_owned(),
        micros: case.cpu_micros,
        ours: !case.name.starts_with("actix") && !case.name.starts_with("tokio"),
    });
    Panel { title: "CPU microseconds for one delivery".to_owned(), bars: bars.collect() }
}

fn by_message(specimens: &[SpecimenFigures]) -> Panel {
    let bars = specimens.iter().flat_map(|specimen| {
        [
            (Side::Systole, ALL, "systole"),
            (Side::Reference, ALL, "libxml2 and serde"),
            (Side::Reference, TOKENS, TOKENS),
        ]
        .into_iter()
        .filter_map(|(side, stage, who)| {
            let micros = specimen.nanos(side, stage)? / 1000.0;
            Some(Bar { label: format!("{}: {who}", specimen.name), micros, ours: side == Side::Systole })
        })
    });
    Panel { title: "CPU microseconds for the XML of one message".to_owned(), bars: bars.collect() }
}

fn by_stage(specimen: &SpecimenFigures) -> Panel {
    let bars = specimen.stages.iter().filter(|stage| stage.name != ALL).map(|stage| Bar {
        label: stage.name.to_owned(),
        micros: stage.nanos / 1000.0,
        ours: stage.side == Side::Systole,
    });
    Panel { title: format!("CPU microseconds of each stage, {}", specimen.name), bars: bars.collect() }
}

impl Panel {
    fn height(&self) -> i32 {
        ROW * (i32::try_from(self.bars.len()).unwrap_or(i32::MAX) + 2)
    }

    fn paint(&self, area: &DrawingArea<SVGBackend<'_>, Shift>, top: i32) -> Result<(), PlotError> {
        let title = TextStyle::from(("sans-serif", 16).into_font()).color(&INK);
        let label = TextStyle::from(("sans-serif", 13).into_font()).color(&INK);
        area.draw(&Text::new(self.title.clone(), (16, top), title))?;
        let longest = self.bars.iter().map(|bar| bar.micros).fold(f64::MIN_POSITIVE, f64::max);
        for (row, bar) in (1..).zip(&self.bars) {
            let y = top + ROW * row + 4;
            let right = LEFT + (bar.micros / longest * LONGEST) as i32;
            let color = if bar.ours { OURS } else { THEIRS };
            area.draw(&Text::new(bar.label.clone(), (24, y), label.clone()))?;
            area.draw(&Rectangle::new([(LEFT, y - 1), (right.max(LEFT + 1), y + ROW - 7)], color.filled()))?;
            area.draw(&Text::new(format!("{:.2}", bar.micros), (right + 8, y), label.clone()))?;
        }
        Ok(())
    }
}
