//! Cleanup of commands when the process that started them ends, however it ends.
//!
//! A process that is killed by `kill -9` can't end its children, and a signal on the death of a parent
//! (`PR_SET_PDEATHSIG`) reaches the child alone, not its descendants, and comes when the *thread* that started it ends.
//! So a small shell, the guard, reads from a pipe which process groups run; at the end of the pipe, which is the end of
//! this process, it kills those that are left.
//!
//! Invariant: the guard knows a group before its program begins. The child itself reports the group between `fork` and
//! `exec`, while it holds the pipe open; from then on it is killed.
//!
//! Not covered: a process that leaves its group (`setsid`).
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::{FdFlags, fcntl_setfd, write};
use rustix::process::{Pid, Signal, getpid, kill_process_group};
use tokio::process::{Child, Command};

use super::run::is_short;

/// Script of the guard: `+ N` reports that a group runs, `- N` that it has ended.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
live=
while read -r what group; do
    case $what in
        +) live="$live $group" ;;
        -)
            left=
            for one in $live; do [ "$one" = "$group" ] || left="$left $one"; done
            live=$left
            ;;
    esac
done
for group in $live; do kill -s KILL -- "-$group"; done 2>/dev/null
"#;

/// The groups that run, and the guard that kills them if this process can't.
struct Live {
    groups: BTreeSet<i32>,
    guard: Option<Guard>,
}

struct Guard {
    shell: std::process::Child,
    orders: Arc<PipeWriter>,
}

static LIVE: Mutex<Live> = Mutex::new(Live { groups: BTreeSet::new(), guard: None });

/// Starts a process in a group of its own, which ends with this process at the latest. It inherits `kept`.
///
/// # Errors
/// The system's error if the process or the guard can't be started.
pub(crate) fn spawn(mut command: Command, kept: Option<Arc<File>>) -> io::Result<(Child, Option<Group>)> {
    let orders = live().orders()?;
    let told = orders.clone();
    let prepare = move || {
        let (line, length) = order(b'+', getpid());
        write(&*told, &line[..length])?;
        if let Some(kept) = &kept {
            fcntl_setfd(&**kept, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between `fork` and `exec` only async-signal-safe functions may be called. `prepare` makes three system
    // calls and neither allocates nor takes a lock; its captures are dropped with the command, in this process.
    unsafe { command.process_group(0).pre_exec(prepare) };
    let child = command.spawn()?;
    let leader = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    Ok((child, leader.map(|leader| Group::began(leader, &orders))))
}

/// Kills the processes of all command listeners, of all organisms of this process, when there is no time left to end
/// them in order.
pub fn kill_all() {
    let groups = std::mem::take(&mut live().groups);
    groups.into_iter().filter_map(Pid::from_raw).for_each(kill);
}

/// A process and all its descendants in the same group. Dropping it kills them.
pub(crate) struct Group(Pid);

impl Group {
    fn began(leader: Pid, told: &Arc<PipeWriter>) -> Self {
        let mut live = live();
        live.groups.insert(leader.as_raw_pid());
        // The guard that the child reported to has been replaced in the meantime.
        if live.guard.as_ref().is_some_and(|guard| !Arc::ptr_eq(&guard.orders, told)) {
            live.tell(b'+', leader);
        }
        Self(leader)
    }
}

impl Group {
    /// Asks the processes to end.
    pub(super) fn terminate(&self) {
        // The only possible error is that no process of the group is left.
        let _ = kill_process_group(self.0, Signal::TERM);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        kill(self.0);
        let mut live = live();
        live.groups.remove(&self.0.as_raw_pid());
        live.tell(b'-', self.0);
    }
}

impl Live {
    /// Returns the pipe to the guard; a guard that was killed is replaced.
    fn orders(&mut self) -> io::Result<Arc<PipeWriter>> {
        if let Some(guard) = &mut self.guard
            && guard.shell.try_wait()?.is_none()
        {
            return Ok(guard.orders.clone());
        }
        let guard = Guard::start()?;
        let orders = guard.orders.clone();
        self.guard = Some(guard);
        self.groups.iter().filter_map(|&group| Pid::from_raw(group)).for_each(|group| self.tell(b'+', group));
        Ok(orders)
    }

    fn tell(&self, what: u8, group: Pid) {
        if let Some(guard) = &self.guard {
            let (line, length) = order(what, group);
            // A guard that has ended is replaced before the next command.
            let _ = (&*guard.orders).write_all(&line[..length]);
        }
    }
}

impl Guard {
    fn start() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let shell = std::process::Command::new("/bin/sh")
            .args(["-c", SCRIPT, "systole-guard"])
            .env_clear()
            .current_dir("/")
            .stdin(reader)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| match is_short(&error) {
                true => error,
                false => io::Error::new(error.kind(), format!("/bin/sh, which guards commands: {error}")),
            })?;
        Ok(Self { shell, orders: Arc::new(writer) })
    }
}

/// Formats a line for the guard without allocating; returns it with its length. A pipe takes so few bytes in one piece.
fn order(what: u8, group: Pid) -> ([u8; 16], usize) {
    let mut line = [0; 16];
    let mut at = line.len() - 1;
    line[at] = b'\n';
    let mut number = group.as_raw_pid().unsigned_abs();
    loop {
        at -= 1;
        line[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line[at - 1] = b' ';
    line[at - 2] = what;
    line.copy_within(at - 2.., 0);
    (line, 16 - (at - 2))
}

fn live() -> MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kill(leader: Pid) {
    // The only possible error is that no process of the group is left.
    let _ = kill_process_group(leader, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_a_line() {
        let text = |what, group| {
            let (line, length) = order(what, Pid::from_raw(group).unwrap());
            String::from_utf8(line[..length].to_vec()).unwrap()
        };
        assert_eq!(text(b'+', 7), "+ 7\n");
        assert_eq!(text(b'-', i32::MAX), "- 2147483647\n");
    }
}
