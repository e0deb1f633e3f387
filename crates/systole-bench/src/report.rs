use serde::Serialize;

use super::stages::Side;

/// Everything that a run found out.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Where it ran.
    pub machine: Machine,
    /// Whether it only showed that everything works: the figures mean nothing.
    pub smoke: bool,
    /// The figures of each case, by letter.
    pub cases: Vec<CaseFigures>,
    /// The figures of the stages, by message.
    pub stages: Vec<SpecimenFigures>,
    /// The figures of the hostile documents.
    pub hostile: Vec<HostileFigures>,
    /// What the specification asks for, and what was found.
    pub bars: Vec<Verdict>,
}

/// What a run ran on.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// Processors that it could use.
    pub cores: usize,
    /// Of what kind.
    pub arch: &'static str,
    /// Under which system.
    pub os: &'static str,
    /// Whether the program was built for speed.
    pub optimized: bool,
}

/// What a case came to.
#[derive(Debug, Serialize)]
pub struct CaseFigures {
    /// The letter of its group.
    pub letter: char,
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// Rounds that were measured; a figure is the median of theirs.
    pub rounds: u32,
    /// Deliveries of one round.
    pub deliveries: u64,
    /// Deliveries in a second of wall time.
    pub per_second: f64,
    /// CPU time of the whole process for one delivery, in microseconds.
    pub cpu_micros: f64,
    /// The latency that half of all stay within, in microseconds.
    pub p50_micros: Option<f64>,
    /// The latency that 99 of 100 stay within, in microseconds.
    pub p99_micros: Option<f64>,
    /// The most memory that was resident in a round, in bytes: of the whole process.
    pub peak_rss: Option<u64>,
    /// What one idle thread holds, in bytes: the growth of resident memory in a round, shared out.
    pub bytes_of_thread: Option<f64>,
    /// Its figure as a multiple of that of the case it is compared with.
    pub ratio: Option<Ratio>,
}

/// A comparison with another case of the same run.
#[derive(Debug, Serialize)]
pub struct Ratio {
    /// The name of the other case.
    pub to: &'static str,
    /// What is compared.
    pub of: &'static str,
    /// How many times as much.
    pub times: f64,
}

/// What the stages came to with one message.
#[derive(Debug, Serialize)]
pub struct SpecimenFigures {
    /// Its name.
    pub name: &'static str,
    /// The stages.
    pub stages: Vec<StageFigures>,
}

/// What a stage came to.
#[derive(Debug, Serialize)]
pub struct StageFigures {
    /// What it does.
    pub name: &'static str,
    /// Who does it.
    pub side: Side,
    /// CPU time of one message, in nanoseconds: the median of all rounds.
    pub nanos: f64,
}

/// What a hostile document came to: CPU time in milliseconds, of one run.
#[derive(Debug, Serialize)]
pub struct HostileFigures {
    /// Its name.
    pub name: &'static str,
    /// Its length.
    pub bytes: usize,
    /// Whether all limits were lifted.
    pub lifted: bool,
    /// The strict pass with C14N.
    pub strict_ms: f64,
    /// Repair by itself.
    pub repair_ms: f64,
    /// As the emission of a listener: the strict pass, repair, and the strict pass again, of a fragment.
    pub emission_ms: f64,
    /// As a stream at an entrance: split, and up the ladder piece by piece.
    pub entrance_ms: f64,
    /// The most memory that was resident meanwhile, in bytes: of the whole process, the document included.
    pub peak_rss: Option<u64>,
    /// What the ladder says to it as a document.
    pub verdict: String,
}

impl HostileFigures {
    /// The slowest of its stages.
    pub(super) fn worst_ms(&self) -> f64 {
        self.strict_ms.max(self.repair_ms).max(self.emission_ms).max(self.entrance_ms)
    }
}

/// A bar and what was found.
#[derive(Debug, Serialize)]
pub struct Verdict {
    /// What is asked for: at most so much.
    pub what: &'static str,
    /// What was found.
    pub measured: f64,
    /// What it must not pass.
    pub must: Option<f64>,
    /// What it should not pass.
    pub aim: Option<f64>,
    /// Whether it is within what it must.
    pub met: bool,
}

impl SpecimenFigures {
    /// The nanoseconds of one stage.
    pub(super) fn nanos(&self, side: Side, name: &str) -> Option<f64> {
        self.stages.iter().find(|stage| stage.side == side && stage.name == name).map(|stage| stage.nanos)
    }
}

impl Verdict {
    pub(super) fn new(what: &'static str, measured: f64, must: Option<f64>, aim: Option<f64>) -> Self {
        Self { what, measured, must, aim, met: must.or(aim).is_none_or(|most| measured <= most) }
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
