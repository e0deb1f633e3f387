//! Search for the program of a command listener.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Mistake;

const SCRIPTS: [&str; 7] = ["py", "sh", "js", "mjs", "ts", "rb", "pl"];

/// The program of a command: relative to `directory` if it has a `/`, else the first on `PATH`.
pub(super) fn find(program: &str, directory: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(directory.join(program)).filter(|path| is_executable(path));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|entry| entry.is_absolute())
        .map(|entry| entry.join(program))
        .find(|path| is_executable(path))
}

/// The reason why a program can't be run, as far as can be seen without running it.
pub(super) fn mistake(program: &str, directory: &Path) -> Option<Mistake> {
    let Some(path) = find(program, directory) else {
        let (on_path, file) = (!program.contains('/'), directory.join(program));
        return Some(match (on_path, file.is_file()) {
            (false, true) => Mistake::NotExecutable { program: program.to_owned() },
            (_, beside) => Mistake::NoProgram { program: program.to_owned(), on_path, beside },
        });
    };
    let interpreter = missing_interpreter(&path)?;
    Some(Mistake::NoInterpreter { program: program.to_owned(), interpreter })
}

/// The interpreter in the first line of a script, if it is missing: `#!PATH`, or `#!/usr/bin/env NAME`.
fn missing_interpreter(script: &Path) -> Option<String> {
    // Linux reads no more of the line.
    const LINE: u64 = 255;
    let mut start = Vec::new();
    File::open(script).ok()?.take(LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.trim_matches([' ', '\t']).split([' ', '\t']).filter(|word| !word.is_empty());
    let interpreter = words.next()?;
    let is_there = interpreter.starts_with('/') && Path::new(interpreter).exists();
    if !is_there {
        return Some(interpreter.to_owned());
    }
    let by_env = Path::new(interpreter).file_name().is_some_and(|name| name == "env");
    let named = words.next().filter(|word| by_env && !word.starts_with('-') && !word.contains(['=', '/']))?;
    find(named, Path::new("/")).is_none().then(|| named.to_owned())
}

/// Checks for an argument that looks like a script for the program, and is missing.
pub(super) fn is_missing_script(argument: &str, directory: &Path) -> bool {
    let extension = Path::new(argument).extension().and_then(|extension| extension.to_str());
    !argument.starts_with('-')
        && extension.is_some_and(|extension| SCRIPTS.contains(&extension))
        && !directory.join(argument).exists()
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
