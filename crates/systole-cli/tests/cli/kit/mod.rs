//! Helpers of the tests of the program.

use std::fs;
use std::io::Write;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) mod running;
pub(crate) mod waiting;
pub(crate) mod worker;

/// A path in the temporary folder that no other test has, with `name` in it.
pub(crate) fn fresh(name: &str) -> PathBuf {
    static PATHS: AtomicUsize = AtomicUsize::new(0);
    let (process, number) = (std::process::id(), PATHS.fetch_add(1, Ordering::Relaxed));
    std::env::temp_dir().join(format!("systole-{process}-{number}-{name}"))
}

/// Checks that a text has these parts.
#[track_caller]
pub(crate) fn has(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "no {part} in {text}"));
}

/// Runs the program, and returns exit code, standard output and standard error.
pub(crate) fn said(directory: &Path, args: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_systole"))
        .args(args)
        .current_dir(directory)
        .env_remove("SYSTOLE_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads no standard input may have ended.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A folder of a test, removed when the test drops it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes a folder that no other test has, with `name` in its path.
    pub(crate) fn new(name: &str) -> Self {
        let path = fresh(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A command of the program here, with its own level of the log, and without input.
    pub(crate) fn systole(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
        command.args(args).current_dir(self).env_remove("SYSTOLE_LOG").stdin(Stdio::null());
        command
    }

    /// Runs a command.
    pub(crate) fn command(&self, args: &[&str]) -> Output {
        self.systole(args).output().unwrap()
    }

    /// Runs a command that succeeds; what it prints.
    #[track_caller]
    pub(crate) fn done(&self, args: &[&str]) -> String {
        let output = self.command(args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
