//! Layer 4, the benchmarks: the costs of the pump, compared with those of other software for the same work in the same
//! run.
//!
//! Figures are CPU time of this process where possible, because wall time depends on the load of the machine; and
//! ratios within one run rather than figures across runs. Compared cases take turns.
//!
//! The program `systole-bench` and `benches/` run the same loads and stages.

mod apart;
mod bare;
mod beside;
mod cases;
mod dispatch;
mod fan_out;
pub mod hostile;
mod idle;
mod latency;
#[cfg(feature = "libxml")]
mod libxml2;
mod load;
mod measure;
mod memory;
mod messages;
#[cfg(feature = "peers")]
mod peers;
mod ping_pong;
mod plot;
mod progress;
mod reference;
mod report;
mod stages;
mod stopwatch;
mod table;
mod two_hop;
mod under_way;

use std::path::PathBuf;
use std::process::ExitCode;

pub use cases::{Case, Group, groups};
pub use latency::Latencies;
pub use load::{Load, LoadError, Scale};
pub use report::{BarVerdict, CaseFigures, HostileFigures, Machine, Ratio, Report, SpecimenFigures, StageFigures};
pub use stages::{ALL, JSON, SERDE_JSON, Side, Specimen, Stage, TOKENS, specimens};

use cases::{Bar, Figure};
use progress::Progress;
use table::Tables;

/// The benchmarks of Systole: the costs of the pump on this machine, beside those of other software.
#[derive(Debug, clap::Parser)]
#[command(version)]
pub struct Options {
    /// Print the figures as one JSON document
    #[arg(long)]
    json: bool,
    /// Run only the cases, messages and documents with NAME in their name
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,
    /// Run everything at the smallest scale, to see that it works
    #[arg(long)]
    smoke: bool,
    /// File to write the chart to, as SVG
    #[arg(long, value_name = "FILE", default_value = "target/bench.svg")]
    svg: PathBuf,
    /// Measure one run of one hostile document, in this process, and print its figures
    #[arg(long, hide = true, num_args = 3, value_names = ["DOCUMENT", "BYTES", "LIFTED"])]
    hostile_run: Vec<String>,
    /// Measure the group whose first case has that name, in this process, and print its figures
    #[arg(long, hide = true, value_name = "NAME")]
    group_run: Option<String>,
}

/// Runs the benchmarks and prints the figures. Unmet bars don't make it fail.
pub fn main(options: &Options) -> ExitCode {
    if !options.hostile_run.is_empty() {
        return hostile::run_here(&options.hostile_run);
    }
    if let Some(name) = &options.group_run {
        return measure::run_here(name);
    }
    let report = match run(options) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    if report.cases.is_empty() && report.stages.is_empty() && report.hostile.is_empty() {
        eprintln!(
            "error: no case, message or document has '{}' in its name",
            options.filter.as_deref().unwrap_or_default()
        );
        return ExitCode::from(2);
    }
    if let Err(error) = draw(&report, &options.svg) {
        eprintln!("warning: the chart was not written to {}: {error}", options.svg.display());
    }
    let text = if options.json {
        serde_json::to_string_pretty(&report).expect("a report has only names and numbers") + "\n"
    } else {
        Tables(&report).to_string()
    };
    // A closed standard output is not an error.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
    ExitCode::SUCCESS
}

/// Runs the benchmarks that the options select.
///
/// # Errors
/// [`LoadError`] if an organism fails.
pub fn run(options: &Options) -> Result<Report, LoadError> {
    let scale = if options.smoke { Scale::Smoke } else { Scale::Full };
    let wanted = |name: &str| options.filter.as_deref().is_none_or(|filter| name.contains(filter));
    let mut groups = groups();
    groups.retain(|group| group.cases.iter().any(|case| wanted(case.name)));
    let specimens = specimens().into_iter().filter(|specimen| wanted("stages") || wanted(specimen.name));
    let specimens: Vec<_> = specimens.collect();
    let documents = hostile::DOCUMENTS.iter().filter(|document| wanted("hostile") || wanted(document.name));
    let runs: Vec<_> = hostile::runs(scale)
        .into_iter()
        .flat_map(|run| documents.clone().map(move |document| (document, run)))
        .collect();
    let progress = Progress::new((groups.len() + specimens.len() + runs.len()) as u64);
    let mut report = Report {
        machine: Machine::here(),
        smoke: options.smoke,
        cases: vec![],
        stages: vec![],
        hostile: vec![],
        bars: vec![],
    };
    for group in &groups {
        progress.now(group.cases[0].name);
        let figures = match scale {
            Scale::Full => measure::group_apart(group)?,
            Scale::Smoke => measure::group(group, scale)?,
        };
        progress.step();
        report.bars.extend(group.bar.and_then(|bar| judge(&bar, &figures[0])));
        report.cases.extend(figures);
    }
    for specimen in &specimens {
        progress.now(specimen.name);
        report.stages.push(measure::specimen(specimen, scale)?);
        progress.step();
    }
    for (document, (bytes, lifted)) in runs {
        progress.now(document.name);
        report.hostile.push(match scale {
            Scale::Full => hostile::figures_apart(document, bytes, lifted)?,
            Scale::Smoke => hostile::figures(document, bytes, lifted)?,
        });
        progress.step();
    }
    report.bars.extend(hostile::bars(&report.hostile));
    progress.end();
    report.cases.sort_by_key(|case| case.letter);
    report.bars.splice(
        0..0,
        report
            .stages
            .iter()
            .find(|specimen| specimen.name == "945 B")
            .into_iter()
            .flat_map(xml_bars)
            .collect::<Vec<_>>(),
    );
    Ok(report)
}

fn judge(bar: &Bar, figures: &CaseFigures) -> Option<BarVerdict> {
    let measured = match bar.of {
        Figure::CpuMicros => figures.cpu_micros,
        Figure::RatioToNext => figures.ratio.as_ref()?.times,
        Figure::BytesOfThread => figures.bytes_of_thread?,
    };
    Some(BarVerdict::new(bar.what, measured, bar.must))
}

fn xml_bars(specimen: &SpecimenFigures) -> Vec<BarVerdict> {
    let Some(own) = specimen.nanos(Side::Systole, ALL) else { return Vec::new() };
    let against = |stage| specimen.nanos(Side::Reference, stage).map(|nanos| own / nanos);
    let reference =
        against(ALL).map(|ratio| BarVerdict::new("XML of 945 B, multiple of libxml2 and serde", ratio, 0.15));
    let tokens = against(TOKENS).map(|ratio| BarVerdict::new("XML of 945 B, multiple of quick-xml tokens", ratio, 1.5));
    let json = specimen.nanos(Side::Systole, JSON).zip(specimen.nanos(Side::Reference, SERDE_JSON));
    let json =
        json.map(|(own, other)| BarVerdict::new("JSON of 945 B and back, multiple of serde_json", own / other, 2.0));
    reference.into_iter().chain(tokens).chain(json).collect()
}

fn draw(report: &Report, path: &std::path::Path) -> Result<(), plot::PlotError> {
    if let Some(folder) = path.parent() {
        // If this fails, so does the picture, and says why.
        let _ = std::fs::create_dir_all(folder);
    }
    plot::draw(report, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_runs_and_is_reported() {
        let options = Options {
            json: false,
            filter: None,
            smoke: true,
            svg: PathBuf::new(),
            hostile_run: vec![],
            group_run: None,
        };
        let report = run(&options).unwrap();
        assert_eq!(report.bars.len(), 10, "{:?}", report.bars);
        assert_eq!(report.stages.len(), specimens().len());
        assert!(report.cases.iter().all(|case| case.deliveries > 0));
        let text = Tables(&report).to_string();
        for name in groups().iter().flat_map(|group| &group.cases).map(|case| case.name) {
            assert!(text.contains(name), "{name} is missing in\n{text}");
        }
        assert!(serde_json::to_string(&report).unwrap().contains("\"must\":2.8"));
    }

    #[test]
    fn a_conversation_of_two_hops_has_four_deliveries() {
        let groups = groups();
        let case = groups.iter().flat_map(|group| &group.cases).find(|case| case.name == "two-hop-alone").unwrap();
        let mut load = case.start(Scale::Smoke).unwrap();
        let mut latencies = Latencies::default();
        let deliveries = load.round(&mut latencies).unwrap();
        assert_eq!(deliveries, 4 * Scale::Smoke.of(1000));
    }

    #[test]
    fn no_limit_is_below_the_number_of_conversations_that_a_load_leaves_open() {
        let limits = dispatch::wide(0);
        let bounds =
            [limits.queue, limits.egress, limits.conversation_threads, limits.conversation_messages, limits.threads];
        assert!(bounds.iter().all(|&bound| bound as u64 > cases::THREADS), "{bounds:?}");
    }

    #[test]
    fn a_picture_is_drawn() {
        let options = Options {
            json: false,
            filter: Some("171 B".into()),
            smoke: true,
            svg: PathBuf::new(),
            hostile_run: vec![],
            group_run: None,
        };
        let path = std::env::temp_dir().join(format!("systole-bench-{}.svg", std::process::id()));
        draw(&run(&options).unwrap(), &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(svg.contains("171 B: systole") && svg.ends_with("</svg>\n"));
    }
}
