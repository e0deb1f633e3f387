//! A program that runs, with its standard output. It is killed when the test drops it.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout};

pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) out: BufReader<ChildStdout>,
}

impl Running {
    /// Takes a program whose standard output is a pipe.
    pub(crate) fn of(mut child: Child) -> Self {
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    /// Waits for the next line of output.
    pub(crate) fn receive(&mut self) -> String {
        let mut line = String::new();
        assert!(self.out.read_line(&mut line).unwrap() > 0, "it ended without an answer");
        line
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
