//! The second opinion on schemas: libxml2 judges them in a process of its own, which may hang or die.

use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use systole::config::Advice;
use systole_xml::schema::{Opinion, XsdDocument, second_opinion};

use super::failure::Failure;
use super::print;

/// Name of the command that gives the opinion.
pub(super) const COMMAND: &str = "second-opinion";
/// Time limit of the process.
const PATIENCE: Duration = Duration::from_secs(5);
/// Memory that the process may take besides that of the program at its start: 1 GiB.
const MEMORY: u64 = 1 << 30;

/// Asks a process of this program for the verdict of libxml2 on schema documents.
pub(super) fn ask(documents: &[XsdDocument]) -> Advice {
    match try_ask(documents) {
        Ok(Some(opinion)) => Advice::Opinion(opinion),
        Ok(None) => Advice::Unasked,
        Err(error) => Advice::Silent(error.to_string()),
    }
}

fn try_ask(documents: &[XsdDocument]) -> io::Result<Option<Opinion>> {
    let question = serde_json::to_vec(documents)?;
    // The file of this process, even if an update has replaced it: its path leads to another one then, or to none.
    let mut command = Command::new("/proc/self/exe");
    command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let said = listen(&mut child, question).recv_timeout(PATIENCE);
    if said.is_err() {
        // The process may have ended just now.
        let _ = child.kill();
    }
    let status = child.wait()?;
    match said {
        Ok(said) if status.success() => Ok(serde_json::from_slice(&said?)?),
        Ok(_) => Err(io::Error::other(format!("it died: {status}"))),
        Err(_) => Err(io::Error::other(format!("it did not end within {} seconds", PATIENCE.as_secs()))),
    }
}

/// Hands a process its input and takes its output, on a thread that ends with it.
fn listen(child: &mut Child, input: Vec<u8>) -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let talk = || {
            // A process that died reads nothing; its status tells.
            let _ = stdin.map(|mut stdin| stdin.write_all(&input));
            let mut said = Vec::new();
            stdout.map(|mut stdout| stdout.read_to_end(&mut said)).transpose()?;
            Ok(said)
        };
        // The receiver is gone once the process has taken too long.
        let _ = tell.send(talk());
    });
    told
}

/// The address space of this process, in bytes: an allocator reserves much of it that it never uses.
fn own_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix(" kB")?.parse().ok());
    size.map_or(0, |kib: u64| kib << 10)
}

/// `systole second-opinion`: schema documents on standard input, the verdict of libxml2 on standard output.
pub(super) fn give() -> Result<ExitCode, Failure> {
    let bound = |resource, most| {
        let most = Some(most);
        // Where the limit can't be set, the time limit of the asking process holds.
        let _ = setrlimit(resource, Rlimit { current: most, maximum: most });
    };
    bound(Resource::As, own_memory() + MEMORY);
    bound(Resource::Cpu, 2 * PATIENCE.as_secs());
    let mut question = Vec::new();
    io::stdin().read_to_end(&mut question).map_err(Failure::System)?;
    let documents: Vec<XsdDocument> =
        serde_json::from_slice(&question).map_err(|error| Failure::unusable(error.to_string()))?;
    let opinion = serde_json::to_value(second_opinion(&documents)).map_err(|error| Failure::System(error.into()))?;
    print::json(&opinion)?;
    Ok(ExitCode::SUCCESS)
}
