//! Programs in Python, as far as can be seen without running them: their syntax, and the modules that they import.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::Mistake;
use crate::process::Variable;
use crate::process::environment::passed_on;

/// Longest time for the interpreter to look.
const PATIENCE: Duration = Duration::from_secs(10);

/// Prints the kind of a mistake and its text. It imports nothing that the program names: a module is sought, not run.
const LOOK: &str = r#"
import ast, importlib.util, os, sys

path = sys.argv[1]
sys.path[0] = os.path.dirname(os.path.abspath(path))
try:
    with open(path, "rb") as file:
        text = file.read()
    tree = ast.parse(text, path)
    compile(tree, path, "exec")
except (SyntaxError, ValueError) as error:
    print(f"syntax line {getattr(error, 'lineno', None) or 1}: {getattr(error, 'msg', error)}")
    sys.exit()
if b"sys.path" in text or b"meta_path" in text:
    sys.exit()  # The program says by itself where its modules are.
for node in tree.body:
    names = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        names = [node.module]
    for name in names:
        top = name.partition(".")[0]
        if top not in sys.modules and importlib.util.find_spec(top) is None:
            print(f"import line {node.lineno}: there is no module named '{top}'")
            sys.exit()
"#;

/// The script that a command runs in Python.
pub(super) fn script<'a>(program: &str, arguments: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = Path::new(program).file_name()?.to_str()?;
    if !name.starts_with("python") {
        return None;
    }
    // Options with values of their own are those of programs that are no files: -m, -c.
    let first =
        arguments.into_iter().find(|argument| !matches!(*argument, "-u" | "-B" | "-E" | "-s" | "-O" | "-OO"))?;
    (!first.starts_with('-')).then_some(first)
}

/// The mistake in a script, if its interpreter can look.
pub(super) fn mistake(interpreter: &Path, script: &str, directory: &Path, env: &[Variable]) -> Option<Mistake> {
    let mut command = Command::new(interpreter);
    command.args(["-c", LOOK, script]).current_dir(directory).env_clear().envs(passed_on(env));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().ok()?;
    let pid = Pid::from_child(&child);
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(child.wait_with_output()));
    let Ok(output) = told.recv_timeout(PATIENCE) else {
        // The thread reaps it.
        let _ = kill_process(pid, Signal::KILL);
        return None;
    };
    let said = String::from_utf8(output.ok()?.stdout).ok()?;
    let (kind, why) = said.trim().split_once(' ')?;
    let (script, why) = (script.to_owned(), why.to_owned());
    match kind {
        "syntax" => Some(Mistake::Syntax { script, why }),
        "import" => Some(Mistake::Import { script, why }),
        _ => None,
    }
}
