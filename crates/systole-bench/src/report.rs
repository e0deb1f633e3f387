//! The figures of a run, as `systole-bench --json` prints them.

use serde::{Deserialize, Serialize};

use super::stages::Side;

/// The figures of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The machine that the run used.
    pub machine: Machine,
    /// Set for a smoke run, which only shows that everything works: its figures mean nothing.
    pub smoke: bool,
    /// The figures of each case, by letter.
    pub cases: Vec<CaseFigures>,
    /// The figures of the stages, by message.
    pub stages: Vec<SpecimenFigures>,
    /// The figures of the hostile documents.
    pub hostile: Vec<HostileFigures>,
    /// The bars of the specification, with the measured figures.
    pub bars: Vec<BarVerdict>,
}

/// The machine and build of a run.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// The number of processors available to the process.
    pub cores: usize,
    /// The processor architecture.
    pub arch: &'static str,
    /// The operating system.
    pub os: &'static str,
    /// Set for a build with optimization.
    pub optimized: bool,
}

/// The figures of a case.
#[derive(Debug, Serialize, Deserialize)]
pub struct CaseFigures {
    /// The letter of its group.
    pub letter: char,
    /// The name of the case.
    #[serde(skip_deserializing)]
    pub name: &'static str,
    /// The description of the case.
    #[serde(skip_deserializing)]
    pub what: &'static str,
    /// The number of measured rounds; a figure is the median of theirs.
    pub rounds: u32,
    /// The number of deliveries of one round.
    pub deliveries: u64,
    /// The number of deliveries per second of wall time.
    pub per_second: f64,
    /// The CPU time of the whole process per delivery, in microseconds.
    pub cpu_micros: f64,
    /// The median latency, in microseconds.
    pub p50_micros: Option<f64>,
    /// The 99th percentile of the latency, in microseconds.
    pub p99_micros: Option<f64>,
    /// The peak resident memory of the whole process in a round, in bytes.
    pub peak_rss: Option<u64>,
    /// The memory of one idle thread, in bytes: the growth of resident memory in a round, divided by the threads.
    pub bytes_of_thread: Option<f64>,
    /// The ratio of the figure to that of the reference case.
    #[serde(skip_deserializing)]
    pub ratio: Option<Ratio>,
}

/// A comparison with another case of the same run.
#[derive(Debug, Serialize)]
pub struct Ratio {
    /// The name of the other case.
    pub to: &'static str,
    /// The name of the compared figure.
    pub of: &'static str,
    /// The ratio.
    pub times: f64,
}

/// The figures of the stages for one message.
#[derive(Debug, Serialize)]
pub struct SpecimenFigures {
    /// The name of the message.
    pub name: &'static str,
    /// The stages.
    pub stages: Vec<StageFigures>,
}

/// The figure of a stage.
#[derive(Debug, Serialize)]
pub struct StageFigures {
    /// The name of the stage.
    pub name: &'static str,
    /// The side that does the work.
    pub side: Side,
    /// The CPU time for one message, in nanoseconds: the median of all batches.
    pub nanos: f64,
}

/// The figures of a hostile document: CPU time in milliseconds, of one run.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostileFigures {
    /// The name of the document.
    #[serde(skip_deserializing)]
    pub name: &'static str,
    /// The length in bytes.
    pub bytes: usize,
    /// Set if all limits were lifted.
    pub lifted: bool,
    /// The time of the strict pass with C14N.
    pub strict_ms: f64,
    /// The time of repair alone.
    pub repair_ms: f64,
    /// The time as an emission of a listener: the strict pass, repair, and the strict pass again, of a fragment.
    pub emission_ms: f64,
    /// The time as a stream at an entrance: splitting, and the ladder for each piece.
    pub entrance_ms: f64,
    /// The peak resident memory of the whole process meanwhile, in bytes, including the document.
    pub peak_rss: Option<u64>,
    /// The verdict of the ladder on the whole document.
    pub verdict: String,
}

impl HostileFigures {
    /// The time of the slowest stage.
    pub(super) fn worst_ms(&self) -> f64 {
        self.strict_ms.max(self.repair_ms).max(self.emission_ms).max(self.entrance_ms)
    }
}

/// A bar with the measured figure.
#[derive(Debug, Serialize)]
pub struct BarVerdict {
    /// The description of the bar, which is an upper bound.
    pub what: &'static str,
    /// The measured figure.
    pub measured: f64,
    /// The required upper bound.
    pub must: f64,
    /// Set if the figure is within the required bound.
    pub met: bool,
}

impl SpecimenFigures {
    /// The nanoseconds of one stage, if it was measured.
    pub(super) fn nanos(&self, side: Side, name: &str) -> Option<f64> {
        self.stages.iter().find(|stage| stage.side == side && stage.name == name).map(|stage| stage.nanos)
    }
}

impl BarVerdict {
    pub(super) fn new(what: &'static str, measured: f64, must: f64) -> Self {
        Self { what, measured, must, met: measured <= must }
    }
}

impl Machine {
    pub(super) fn here() -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            arch: std::env::consts::ARCH,
            os: std::env::consts::OS,
            optimized: !cfg!(debug_assertions),
        }
    }
}
