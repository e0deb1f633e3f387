//! A program that runs, with its standard output. It is killed when the test drops it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::waiting::Lines;

pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) out: Lines,
}

impl Running {
    /// Takes a program whose standard output is a pipe.
    pub(crate) fn of(mut child: Child) -> Self {
        let out = Lines::of(child.stdout.take().unwrap());
        Self { child, out }
    }

    /// Runs the organism of a folder; its file `log` gets standard error.
    pub(crate) fn organism(folder: &Path, args: &[&str]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_systole"))
            .args(["run", "organism.yaml"])
            .args(args)
            .current_dir(folder)
            .env_remove("SYSTOLE_LOG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        Self::of(child)
    }

    /// Waits for the next line of output.
    #[track_caller]
    pub(crate) fn receive(&mut self) -> String {
        self.out.next().unwrap_or_else(|error| panic!("no line of output: {error}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
