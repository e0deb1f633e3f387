//! The progress bar of a run.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar on standard error, shown on a terminal only.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Starts a bar of `steps` steps.
    pub(super) fn new(steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:32} {pos}/{len} {elapsed} {msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows the name of the running benchmark.
    pub(super) fn now(&self, name: &'static str) {
        self.0.set_message(name);
        self.0.tick();
    }

    /// Counts a finished step.
    pub(super) fn step(&self) {
        self.0.inc(1);
    }

    /// Removes the bar.
    pub(super) fn end(self) {
        self.0.finish_and_clear();
    }
}
