use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error while the benchmarks run; on a terminal only.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// A bar of so many steps.
    pub(super) fn new(steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:32} {pos}/{len} {elapsed} {msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Says what runs now.
    pub(super) fn now(&self, name: &'static str) {
        self.0.set_message(name);
        self.0.tick();
    }

    /// One step is done.
    pub(super) fn step(&self) {
        self.0.inc(1);
    }

    /// Takes the bar away.
    pub(super) fn end(self) {
        self.0.finish_and_clear();
    }
}
