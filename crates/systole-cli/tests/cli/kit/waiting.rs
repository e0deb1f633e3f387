//! Waits for processes, with a deadline whose failure names the condition.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Time limit of a wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `done` gives a value.
pub(crate) fn until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Checks whether a process runs: a zombie that waits for its parent, which may not be the test, doesn't.
pub(crate) fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

/// The lines that a process writes.
pub(crate) struct Lines(Receiver<String>);

impl Lines {
    /// Reads on until the process closes the pipe, whether or not a line is waited for.
    pub(crate) fn of(pipe: impl Read + Send + 'static) -> Self {
        let (tell, told) = channel();
        std::thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = String::new();
            while pipe.read_line(&mut line).is_ok_and(|read| read > 0) {
                if tell.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Self(told)
    }

    /// Waits for the next line, with its end.
    pub(crate) fn next(&self) -> Result<String, RecvTimeoutError> {
        self.0.recv_timeout(PATIENCE)
    }

    /// Reads on up to a line that is wanted, and returns it.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut is_wanted: impl FnMut(&str) -> bool) -> String {
        let begun = Instant::now();
        let mut all = String::new();
        loop {
            let line = self.next().unwrap_or_else(|error| panic!("no '{what}': {error}: {all}"));
            if is_wanted(&line) {
                return line;
            }
            all += &line;
            assert!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} for '{what}': {all}");
        }
    }

    /// Waits for the rest of the lines, up to the end.
    pub(crate) fn rest(&self) -> String {
        let mut rest = String::new();
        loop {
            match self.next() {
                Ok(line) => rest += &line,
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("waited {PATIENCE:?} for the end of the output: {rest}"),
            }
        }
    }
}
