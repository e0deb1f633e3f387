//! Processes of commands: start, streams, end.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustix::io::Errno;
use systole_core::vocab::Name;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::runtime::Handle;

use super::ending::{self, Ends};
use super::guard::{self, Group};
use super::memory::sealed;
use super::{CommandSpec, Subject, streams};
use systole_store::clock::instant;

/// A run of a program.
pub(crate) struct Invocation<'a> {
    pub(crate) spec: &'a CommandSpec,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) input: Bytes,
    /// A file that the process inherits under the same descriptor number.
    pub(crate) inherited: Option<Arc<File>>,
    pub(crate) max_output: usize,
    /// Counts the process while it has to end and has not.
    pub(crate) ends: Option<&'a Arc<Ends>>,
}

/// The wait of a run for a process while the system has no room for one.
pub(crate) struct Wait<F> {
    /// Time limit.
    pub(crate) longest: Option<Duration>,
    /// Called before it with true, and after it with false.
    pub(crate) stalls: F,
}

impl Wait<fn(bool)> {
    /// Waits for as long as the caller does.
    pub(crate) const ENDLESS: Self = Self { longest: None, stalls: drop };
}

/// Failure of a process to give output.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("the listener can't be started{}", shortage(.0))]
    Start(#[source] io::Error),
    #[error("the listener wrote more than {max} bytes")]
    TooMuch { max: usize },
    #[error("{}", exit(*.0))]
    Exit(ExitStatus),
    #[error("the output of the listener can't be read")]
    Stream(#[source] io::Error),
}

/// Time limit for a descendant outside the group to keep the streams open after the process ended.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// Pause between attempts to start a process while the system has no room for one.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs a process to its end and returns its output; `said` gets the end of its standard error, whose lines are logged with the
/// name and the message.
pub(crate) async fn run(
    (name, subject): (&Name, Option<Subject>),
    invocation: Invocation<'_>,
    wait: Wait<impl Fn(bool)>,
    said: &mut String,
) -> Result<Bytes, CommandError> {
    let max_output = invocation.max_output;
    let mut process = Process::begin(&invocation, wait).await.map_err(CommandError::Start)?;
    drop(invocation);
    let Streams { stdout, stderr, .. } = process.take_streams();
    let mut output = Vec::new();
    let status = {
        let mut streams = pin!(async {
            tokio::try_join!(
                streams::collect(stdout, &mut output, max_output),
                streams::log_lines(stderr, (name, subject), said),
            )
        });
        tokio::select! {
            done = &mut streams => {
                done?;
                process.wait().await.map_err(CommandError::Stream)?
            }
            status = process.wait() => {
                process.kill();
                if let Ok(done) = tokio::time::timeout(LINGER, streams).await {
                    done?;
                }
                status.map_err(CommandError::Stream)?
            }
        }
    };
    if status.success() { Ok(output.into()) } else { Err(CommandError::Exit(status)) }
}

impl CommandError {
    /// Describes the failure for the log, with the system's error.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::Start(cause) | Self::Stream(cause) => format!("{self}: {cause}"),
            Self::TooMuch { .. } | Self::Exit(_) => self.to_string(),
        }
    }

    /// Returns whether another attempt may succeed soon.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self, Self::Start(cause) if is_short(cause))
    }
}

/// Returns whether the system has no room for another process at the moment: no descriptors, no memory, too many
/// processes of the user.
pub(crate) fn is_short(error: &io::Error) -> bool {
    let short = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE];
    Errno::from_io_error(error).is_some_and(|error| short.contains(&error))
}

/// The room that the system has not for another process, as a part of a sentence; nothing for other errors.
fn shortage(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE) => ": the organism has no free descriptors (ulimit -n)",
        Some(Errno::NFILE) => ": the system has no free descriptors",
        Some(Errno::AGAIN) => ": the user of the organism may have no further process (ulimit -u)",
        Some(Errno::NOMEM) => ": the system has no free memory",
        _ => "",
    }
}

fn exit(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the listener exited with status {code}"),
        (None, Some(signal)) => format!("the listener was killed by signal {signal}"),
        (None, None) => "the listener ended".to_owned(),
    }
}

/// The streams of a process.
#[derive(Default)]
pub(crate) struct Streams {
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
}

/// The outputs of a process, once more; without the ones that the system has no descriptor for.
fn outputs(child: &Child) -> Vec<OwnedFd> {
    let stdout = child.stdout.as_ref().map(|stream| stream.as_fd().try_clone_to_owned());
    let stderr = child.stderr.as_ref().map(|stream| stream.as_fd().try_clone_to_owned());
    [stdout, stderr].into_iter().filter_map(|output| output?.ok()).collect()
}

/// A process with its descendants in the same group. Dropping it [ends](ending) them.
pub(crate) struct Process {
    child: Option<Child>,
    group: Option<Group>,
    /// Its standard input has ended by then: it gets time before the signal.
    is_patient: bool,
    /// Its outputs: while they are open here, it may still write when it ends.
    outputs: Vec<OwnedFd>,
    ends: Option<Arc<Ends>>,
}

impl Process {
    /// Wraps a process that was started in that group, and that ends with its standard input.
    pub(crate) fn new(child: Child, group: Option<Group>) -> Self {
        let outputs = outputs(&child);
        Self { child: Some(child), group, is_patient: true, outputs, ends: None }
    }

    /// Takes the streams of the process.
    pub(crate) fn take_streams(&mut self) -> Streams {
        let Some(child) = &mut self.child else { return Streams::default() };
        Streams { stdin: child.stdin.take(), stdout: child.stdout.take(), stderr: child.stderr.take() }
    }

    /// Starts a process as soon as the system has room for it.
    async fn begin(invocation: &Invocation<'_>, wait: Wait<impl Fn(bool)>) -> io::Result<Self> {
        let Wait { longest, stalls } = wait;
        let mut begun = Self::spawn(invocation);
        if begun.as_ref().is_err_and(is_short) {
            stalls(true);
            let since = instant();
            while begun.as_ref().is_err_and(is_short) && longest.is_none_or(|longest| since.elapsed() < longest) {
                tokio::time::sleep(PAUSE).await;
                begun = Self::spawn(invocation);
            }
            stalls(false);
        }
        begun
    }

    fn spawn(invocation: &Invocation<'_>) -> io::Result<Self> {
        let Invocation { spec, environment, input, inherited, ends, .. } = invocation;
        let input = sealed("systole-payload", |out| out.write_all(input))?;
        let mut command = spec.command(environment.iter().map(|(key, value)| (key, value)));
        command.stdin(input);
        let (child, group) = guard::spawn(command, inherited.clone())?;
        let mut process = Self::new(child, group);
        (process.is_patient, process.ends) = (false, ends.cloned());
        Ok(process)
    }

    /// Ends the process: SIGTERM to its group, and SIGKILL behind [`GRACE`](ending::GRACE), or as soon as the process has
    /// ended itself.
    pub(crate) async fn end(&mut self) {
        self.is_patient = false;
        self.group.iter().for_each(Group::terminate);
        let _ = tokio::time::timeout(ending::GRACE, self.wait()).await;
        self.kill();
        let _ = self.wait().await;
    }

    /// Waits for the process alone, and reaps it.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let child = self.child.as_mut().ok_or_else(|| io::Error::other("the process was reaped before"))?;
        let status = child.wait().await?;
        self.child = None;
        Ok(status)
    }

    /// Kills the rest of the group: while a member lives, the system doesn't assign the group's id again.
    pub(crate) fn kill(&mut self) {
        self.group = None;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        match (self.child.take(), self.group.take()) {
            (Some(child), Some(group)) => {
                let outputs = std::mem::take(&mut self.outputs);
                ending::end(child, (group, outputs), self.is_patient, self.ends.as_ref());
            }
            (Some(mut child), None) => {
                if let Ok(runtime) = Handle::try_current() {
                    runtime.spawn(async move { child.wait().await });
                }
            }
            (None, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::process::Variable;

    const MAX: usize = 1 << 20;

    fn shell(script: &str) -> CommandSpec {
        CommandSpec {
            program: PathBuf::from("/bin/sh"),
            arguments: vec!["-c".into(), script.into()],
            env: Vec::<Variable>::new(),
            directory: std::env::temp_dir(),
        }
    }

    async fn run_shell(script: &str, input: impl Into<Bytes>, max_output: usize) -> Result<Bytes, CommandError> {
        let environment = vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())];
        let spec = shell(script);
        let name = Name::parse("test").unwrap();
        run(
            (&name, None),
            Invocation { spec: &spec, environment, input: input.into(), inherited: None, max_output, ends: None },
            Wait::ENDLESS,
            &mut String::new(),
        )
        .await
    }

    /// Returns whether a process still runs and is not a zombie, whose parent may be another process.
    fn runs(pid: &str) -> bool {
        let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
    }

    async fn until(done: impl Fn() -> bool) {
        while !done() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn input_comes_back_whole_through_a_slow_pipe() {
        let input: Bytes = vec![b'x'; 300_000].into();
        assert_eq!(run_shell("cat", input.clone(), MAX).await.unwrap(), input);
    }

    #[tokio::test]
    async fn a_process_that_reads_nothing_is_not_waited_for() {
        let output = run_shell("echo done", vec![b'x'; 1 << 20], MAX).await.unwrap();
        assert_eq!(&output[..], b"done\n");
    }

    #[tokio::test]
    async fn a_process_may_close_its_streams_and_go_on() {
        let output = run_shell("echo a; exec >&- 2>&- <&-; sleep 0.01", vec![b'x'; 1 << 20], MAX).await.unwrap();
        assert_eq!(&output[..], b"a\n");
    }

    #[tokio::test]
    async fn output_counts_at_exit_0_only() {
        let error = run_shell("echo '<a/>'; exit 3", "", MAX).await.unwrap_err();
        assert_eq!(error.to_string(), "the listener exited with status 3");
        let error = run_shell("kill -9 $$", "", MAX).await.unwrap_err();
        assert_eq!(error.to_string(), "the listener was killed by signal 9");
    }

    #[tokio::test]
    async fn output_over_the_limit_kills() {
        let error = run_shell("cat /dev/zero", "", 1000).await.unwrap_err();
        assert!(matches!(error, CommandError::TooMuch { max: 1000 }), "{error:?}");
        let exact = run_shell("printf 1234", "", 4).await.unwrap();
        assert_eq!(&exact[..], b"1234");
    }

    #[tokio::test]
    async fn standard_error_without_end_holds_nothing_up() {
        let script = "head -c 3000000 /dev/zero >&2; yes | head -n 5000 >&2; echo ok";
        assert_eq!(&run_shell(script, "", MAX).await.unwrap()[..], b"ok\n");
    }

    #[tokio::test]
    async fn what_the_process_left_behind_is_killed() {
        let output = run_shell("sleep 1000 & echo $!", "", MAX).await.unwrap();
        until(|| !runs(std::str::from_utf8(&output).unwrap().trim())).await;
    }

    #[tokio::test]
    async fn dropping_the_future_kills_the_group_and_reaps_the_process() {
        let file = std::env::temp_dir().join(format!("systole-test-{}-pids", std::process::id()));
        let script = format!("sleep 1000 & echo $$ $! > {0}.new; mv {0}.new {0}; wait", file.display());
        let mut running = Box::pin(run_shell(&script, "", MAX));
        tokio::select! {
            _ = &mut running => panic!("the script doesn't end by itself"),
            () = until(|| file.exists()) => {}
        }
        let pids = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let (leader, descendant) = pids.trim().split_once(' ').unwrap();
        assert!(runs(leader) && runs(descendant));
        drop(running);
        until(|| !Path::new("/proc").join(leader).exists() && !runs(descendant)).await;
    }

    #[tokio::test]
    async fn a_missing_program_is_an_error_of_its_start() {
        let spec = CommandSpec { program: "/nonexistent".into(), ..shell("") };
        let name = Name::parse("test").unwrap();
        let invocation = Invocation {
            spec: &spec,
            environment: Vec::new(),
            input: Bytes::new(),
            inherited: None,
            max_output: MAX,
            ends: None,
        };
        let error = run((&name, None), invocation, Wait::ENDLESS, &mut String::new()).await.unwrap_err();
        assert_eq!(error.to_string(), "the listener can't be started");
        assert!(error.detail().contains("No such file"), "{}", error.detail());
        assert!(!error.is_temporary());
    }

    #[tokio::test]
    async fn the_environment_holds_what_was_given_and_nothing_else() {
        let output = run_shell("env", "", MAX).await.unwrap();
        let names: Vec<_> =
            std::str::from_utf8(&output).unwrap().lines().filter_map(|line| line.split('=').next()).collect();
        // `PWD`, `SHLVL` and `_` are the shell's own.
        assert!(names.iter().all(|name| ["PATH", "PWD", "SHLVL", "_", "OLDPWD"].contains(name)), "{names:?}");
    }
}
