//! The clocks of the benchmarks: the only place here that reads one.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Wall time and the CPU time of the whole process, from its start on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stopwatch {
    wall: Duration,
    cpu: Duration,
}

/// What passed on a [`Stopwatch`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Lap {
    pub(super) wall: Duration,
    /// Of all threads of the process together.
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

/// The CPU time of this thread alone: what other processes on the machine do doesn't count.
pub(super) fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).expect("these clocks start at zero or above")
}
