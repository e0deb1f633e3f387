//! Case (i): hostile documents on each stage that outside bytes can reach.

mod documents;

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

pub use documents::{DOCUMENTS, Document};

use super::apart;
use super::load::{LoadError, Scale};
use super::memory;
use super::messages::Order;
use super::report::{BarVerdict, HostileFigures};
use super::stopwatch::thread_cpu;
use systole_core::vocab::XmlLimits;
use systole_xml::ladder::repair::{Shape, Vocabulary, repair};
use systole_xml::ladder::split::{Piece, Splitter};
use systole_xml::ladder::strict::canonicalize;
use systole_xml::ladder::{Envelope, LadderError, Raw, parse, parse_fragment};
use systole_xml::schema::{Catalog, PayloadSchema, Validator, decode};

/// The sizes of the small and the large documents, and of those of the smoke run, in bytes.
const SMALL: usize = 1 << 20;
const LARGE: usize = 16 << 20;
const SMOKE: usize = 1 << 14;

/// No limits, so that the work itself is measured, except one on the size: the canonical form of one document would be a
/// hundred times as long as the document.
fn unlimited() -> XmlLimits {
    XmlLimits::UNLIMITED.message_bytes(8 * LARGE)
}

/// The runs of each document: its size in bytes, and `true` if the limits are lifted.
pub(super) fn runs(scale: Scale) -> Vec<(usize, bool)> {
    match scale {
        Scale::Full => vec![(SMALL, false), (SMALL, true), (LARGE, false), (LARGE, true)],
        Scale::Smoke => vec![(SMOKE, false), (SMOKE, true)],
    }
}

/// Runs every stage on one document.
///
/// # Errors
/// [`LoadError`] if the payload of the benchmarks is no contract.
pub(super) fn figures(document: &Document, bytes: usize, lifted: bool) -> Result<HostileFigures, LoadError> {
    let raw = Raw::new(document.of(bytes));
    let limits = if lifted { unlimited() } else { XmlLimits::default() };
    let mut catalog = Catalog::new();
    catalog.add(PayloadSchema::of::<Order>()?)?;
    let mut validator = Validator::new(Arc::new(catalog));
    memory::forget_peak();
    Ok(HostileFigures {
        name: document.name,
        bytes: raw.bytes().len(),
        lifted,
        strict_ms: timed(|| drop(black_box(canonicalize(raw.bytes(), &limits)))),
        repair_ms: timed(|| drop(black_box(repair(&raw, Shape::Document, &limits)))),
        emission_ms: timed(|| drop(black_box(parse_fragment(&raw, &limits, &Vocabulary::default())))),
        entrance_ms: timed(|| enter(&raw, &limits, &mut validator, lifted)),
        peak_rss: memory::peak(),
        verdict: verdict(&raw, &limits),
    })
}

/// Runs every stage on one document in a process of its own.
///
/// # Errors
/// [`LoadError`] if the process fails.
pub(super) fn figures_apart(document: &Document, bytes: usize, lifted: bool) -> Result<HostileFigures, LoadError> {
    let name = document.name;
    let figures = apart::run(name, &["--hostile-run", name, &bytes.to_string(), &lifted.to_string()])?;
    Ok(HostileFigures { name, ..figures })
}

/// Runs every stage on the document that the arguments of [`figures_apart`] name, and prints the figures.
pub(super) fn run_here(arguments: &[String]) -> ExitCode {
    let parsed = || {
        let [name, bytes, lifted] = arguments else { return None };
        let document = DOCUMENTS.iter().find(|document| document.name == name)?;
        Some((document, bytes.parse().ok()?, lifted.parse().ok()?))
    };
    let Some((document, bytes, lifted)) = parsed() else {
        eprintln!("error: --hostile-run takes the name of a document, its size in bytes, and true or false");
        return ExitCode::from(2);
    };
    apart::print(figures(document, bytes, lifted))
}

/// Processes a stream as an entrance and the pump do. Validation applies the limits, as in the pump.
fn enter(stream: &Raw, limits: &XmlLimits, validator: &mut Validator, lifted: bool) {
    let mut splitter = Splitter::new(limits);
    for chunk in stream.bytes().chunks(1 << 16) {
        splitter.push(chunk);
        while let Some(piece) = splitter.next() {
            take(piece, limits, validator, lifted);
        }
    }
    while let Some(piece) = splitter.finish() {
        take(piece, limits, validator, lifted);
    }
}

fn take(piece: Piece, limits: &XmlLimits, validator: &mut Validator, lifted: bool) {
    let Piece::Message(bytes) = piece else { return };
    let Some(message) = parse(&Raw::new(bytes), limits).ok() else { return };
    let Some(envelope) = Envelope::open(message).ok() else { return };
    if !lifted && let Ok(valid) = validator.validate(envelope.into_parts().1) {
        drop(black_box(decode::<Order>(&valid)));
    }
}

/// The verdict of the ladder on a document as a whole: the error kind, or the number of repairs.
pub fn verdict(raw: &Raw, limits: &XmlLimits) -> String {
    let variant = |debug: String| debug.split([' ', '(']).next().unwrap_or_default().to_owned();
    match parse(raw, limits) {
        Ok(canonical) if canonical.repairs().is_empty() => "taken".to_owned(),
        Ok(canonical) => format!("repaired, {}", canonical.repairs().len()),
        Err(LadderError::Strict(error)) => variant(format!("{:?}", error.kind())),
        Err(LadderError::Repair(error)) => variant(format!("{error:?}")),
        Err(LadderError::Beyond { repaired, .. }) => format!("beyond, {}", variant(format!("{:?}", repaired.kind()))),
        Err(other) => variant(format!("{other:?}")),
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = thread_cpu();
    work();
    let spent: Duration = thread_cpu() - start;
    spent.as_secs_f64() * 1e3
}

/// The bars of the specification, over all documents that were run within the limits, as in the pump. The costs without
/// limits only show the growth of the stages.
pub(super) fn bars(figures: &[HostileFigures]) -> Vec<BarVerdict> {
    let (small, large): (Vec<_>, Vec<_>) =
        figures.iter().filter(|figures| !figures.lifted).partition(|figures| figures.bytes <= SMALL);
    let worst = |values: &mut dyn Iterator<Item = f64>| values.max_by(f64::total_cmp);
    let small_ms = worst(&mut small.iter().map(|figures| figures.worst_ms()));
    let peak = worst(&mut small.iter().filter_map(|figures| Some(figures.peak_rss? as f64 / 1e6)));
    let large_ms = worst(&mut large.iter().map(|figures| figures.worst_ms()));
    let bar = |what, measured: Option<f64>, must| measured.map(|measured| BarVerdict::new(what, measured, must));
    [
        bar("hostile document of up to 1 MiB, CPU ms of the slowest stage", small_ms, 50.0),
        bar("hostile document of up to 1 MiB, MB resident in the process", peak, 64.0),
        bar("hostile document of 16 MiB, CPU ms of the slowest stage", large_ms, 500.0),
    ]
    .into_iter()
    .flatten()
    .collect()
}
