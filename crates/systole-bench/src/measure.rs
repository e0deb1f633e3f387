//! Measurement of loads and stages. Rounds of compared cases take turns, and a figure is the median of the rounds, so
//! that other load of the machine affects both sides and no single round decides.

use std::process::ExitCode;

use super::apart;
use super::cases::{self, By, Case, Group};
use super::latency::Latencies;
use super::load::{Load, LoadError, Scale};
use super::memory;
use super::report::{CaseFigures, Ratio, SpecimenFigures, StageFigures};
use super::stages::{Specimen, Stage};
use super::stopwatch::{Stopwatch, thread_cpu};

/// The number of batches of each stage, and the least duration of a batch.
const BATCHES: usize = 25;
const BATCH: std::time::Duration = std::time::Duration::from_millis(2);

/// Measures a group in this process.
pub(super) fn group(group: &Group, scale: Scale) -> Result<Vec<CaseFigures>, LoadError> {
    let rounds = if scale == Scale::Smoke { 1 } else { group.rounds };
    let mut runs = group.cases.iter().map(|case| Run::start(case, scale)).collect::<Result<Vec<_>, _>>()?;
    if scale == Scale::Full {
        // The first round also grows memory that later rounds reuse, so it is not measured.
        for run in &mut runs {
            run.load.round(&mut Latencies::default())?;
        }
    }
    for _ in 0..rounds {
        for run in &mut runs {
            run.round()?;
        }
    }
    let mut figures: Vec<_> = runs.into_iter().map(|run| run.figures(group, scale)).collect();
    compare(&mut figures, group.by);
    Ok(figures)
}

/// Measures a group in a process of its own.
pub(super) fn group_apart(group: &Group) -> Result<Vec<CaseFigures>, LoadError> {
    let name = group.cases[0].name;
    let figures: Vec<CaseFigures> = apart::run(name, &["--group-run", name])?;
    let named = group.cases.iter().zip(figures);
    let mut figures: Vec<_> =
        named.map(|(case, figures)| CaseFigures { name: case.name, what: case.what, ..figures }).collect();
    compare(&mut figures, group.by);
    Ok(figures)
}

/// Measures the group whose first case has that name, and prints the figures for [`group_apart`].
pub(super) fn run_here(name: &str) -> ExitCode {
    match cases::groups().iter().find(|group| group.cases[0].name == name) {
        Some(found) => apart::print(group(found, Scale::Full)),
        None => {
            eprintln!("error: --group-run takes the name of the first case of a group");
            ExitCode::from(2)
        }
    }
}

/// Measures the stages of one message.
pub(super) fn specimen(specimen: &Specimen, scale: Scale) -> Result<SpecimenFigures, LoadError> {
    let mut stages = specimen.stages()?;
    let counts: Vec<u32> = stages.iter_mut().map(|stage| calibrate(stage, scale)).collect();
    let batches = if scale == Scale::Smoke { 1 } else { BATCHES };
    let mut nanos = vec![Vec::with_capacity(batches); stages.len()];
    for _ in 0..batches {
        for ((stage, &count), nanos) in stages.iter_mut().zip(&counts).zip(&mut nanos) {
            nanos.push(batch(stage, count).as_nanos() as f64 / f64::from(count));
        }
    }
    let figures = stages.iter().zip(nanos).map(|(stage, nanos)| StageFigures {
        name: stage.name,
        side: stage.side,
        nanos: median(nanos),
    });
    Ok(SpecimenFigures { name: specimen.name, stages: figures.collect() })
}

/// The number of runs of a stage in one batch.
fn calibrate(stage: &mut Stage, scale: Scale) -> u32 {
    let mut count = 1;
    while scale == Scale::Full && batch(stage, count) < BATCH {
        count *= 2;
    }
    count
}

fn batch(stage: &mut Stage, count: u32) -> std::time::Duration {
    let start = thread_cpu();
    for _ in 0..count {
        stage.run();
    }
    thread_cpu() - start
}

/// A case in progress.
struct Run<'a> {
    case: &'a Case,
    load: Box<dyn Load>,
    deliveries: u64,
    per_second: Vec<f64>,
    cpu_micros: Vec<f64>,
    latencies: Latencies,
    peak: Option<u64>,
    grown: Option<u64>,
}

impl<'a> Run<'a> {
    fn start(case: &'a Case, scale: Scale) -> Result<Self, LoadError> {
        Ok(Self {
            load: case.start(scale)?,
            case,
            deliveries: 0,
            per_second: Vec::new(),
            cpu_micros: Vec::new(),
            latencies: Latencies::default(),
            peak: None,
            grown: None,
        })
    }

    fn round(&mut self) -> Result<(), LoadError> {
        let before = memory::resident();
        memory::forget_peak();
        let watch = Stopwatch::start();
        let deliveries = self.load.round(&mut self.latencies)?;
        let lap = watch.lap();
        self.grown = memory::resident().zip(before).map(|(after, before)| after.saturating_sub(before));
        self.peak = self.peak.max(memory::peak());
        self.deliveries = deliveries;
        self.per_second.push(deliveries as f64 / lap.wall.as_secs_f64());
        self.cpu_micros.push(lap.cpu.as_secs_f64() * 1e6 / deliveries as f64);
        Ok(())
    }

    fn figures(mut self, group: &Group, scale: Scale) -> CaseFigures {
        let threads = match group.by {
            By::Memory { threads } => Some(scale.of(threads)),
            By::Cpu | By::P99 => None,
        };
        CaseFigures {
            letter: group.letter,
            name: self.case.name,
            what: self.case.what,
            rounds: u32::try_from(self.per_second.len()).unwrap_or(u32::MAX),
            deliveries: self.deliveries,
            per_second: median(self.per_second),
            cpu_micros: median(self.cpu_micros),
            p50_micros: self.latencies.percentile(0.5),
            p99_micros: self.latencies.percentile(0.99),
            peak_rss: self.peak,
            bytes_of_thread: threads.zip(self.grown).map(|(threads, grown)| grown as f64 / threads as f64),
            ratio: None,
        }
    }
}

/// Compares all cases with the second, which is the reference.
fn compare(figures: &mut [CaseFigures], by: By) {
    let of = |figures: &CaseFigures| match by {
        By::Cpu => Some(figures.cpu_micros),
        By::P99 => figures.p99_micros,
        By::Memory { .. } => None,
    };
    let what = if by == By::P99 { "p99" } else { "CPU" };
    let Some((to, Some(base))) = figures.get(1).map(|reference| (reference.name, of(reference))) else { return };
    for case in figures.iter_mut().filter(|case| case.name != to) {
        case.ratio = of(case).map(|own| Ratio { to, of: what, times: own / base });
    }
}

/// The median; for an even number, the mean of the middle two figures.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    match figures.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => figures[len / 2],
        len => f64::midpoint(figures[len / 2 - 1], figures[len / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
