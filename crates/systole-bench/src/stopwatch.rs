//! The clocks of the benchmarks. No other module here reads a clock.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The wall time and the CPU time of the whole process at a start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stopwatch {
    wall: Duration,
    cpu: Duration,
}

/// The time that passed since a [`Stopwatch`] started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lap {
    pub(super) wall: Duration,
    /// The CPU time of all threads of the process together.
    pub(super) cpu: Duration,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        Self { wall: read(ClockId::Monotonic), cpu: read(ClockId::ProcessCPUTime) }
    }

    pub(super) fn lap(&self) -> Lap {
        Lap { wall: wall() - self.wall, cpu: read(ClockId::ProcessCPUTime) - self.cpu }
    }
}

/// A point in time, to be subtracted from another one.
pub(super) fn wall() -> Duration {
    read(ClockId::Monotonic)
}

/// The CPU time of this OS thread alone, which other processes on the machine don't affect.
pub(super) fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).expect("these clocks start at zero or above")
}
