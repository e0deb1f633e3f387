//! A PostgreSQL server of a test, in a folder of its own, reached by a socket there.

use std::fs;
use std::io::Write;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use systole::journal::{Postgres, Store};

/// A user who may run a server where the tests run as root, which it refuses.
const NOBODY: u32 = 65534;

/// The last lines of the server's log that a failure tells.
const TOLD: usize = 20;

/// A server, ended and deleted with this value.
pub(crate) struct Server {
    folder: PathBuf,
    child: Option<Child>,
}

impl Server {
    /// Starts a server with a database `work`.
    pub(crate) fn start() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("pg-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let mut server = Self { folder, child: None };
        let data = server.folder.join("data");
        let mut make = server.command("initdb");
        make.args(["-A", "trust", "-U", "systole", "-N", "-E", "UTF8", "--locale=C", "-D"]).arg(data);
        let made = make.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        server.run();
        server.wait_for_it("postgres");
        server.sql("postgres", "CREATE DATABASE work");
        server
    }

    /// A command of the server's, as the user that runs it.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(found(program));
        command.current_dir(&self.folder).env_remove("PGPASSWORD");
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn run(&mut self) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.folder.join("log")).unwrap();
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.folder.join("data")).arg("-k").arg(&self.folder).args(["-c", "listen_addresses="]);
        // What the system has outlives the server.
        command.args(["-c", "fsync=off", "-c", "max_connections=40", "-c", "shared_buffers=16MB"]);
        self.child = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    }

    fn wait_for_it(&self, database: &str) {
        // It tries for some seconds.
        let checked = Postgres::new(&self.url(database), None).unwrap().check();
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let last: Vec<_> = log.lines().rev().take(TOLD).collect();
        assert_eq!(checked, Ok(()), "the server does not answer; its log: {}", last.join("; "));
    }

    /// The URL of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        self.url_by(database, &self.folder)
    }

    /// The URL of a database by a socket in another folder.
    pub(crate) fn url_by(&self, database: &str, folder: &Path) -> String {
        format!("postgres:///{database}?host={}&user=systole", folder.display())
    }

    /// The journal in the database `work`.
    pub(crate) fn journal(&self) -> Postgres {
        Postgres::new(&self.url("work"), None).unwrap()
    }

    /// The socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn psql(&self, database: &str) -> Command {
        let mut command = Command::new(found("psql"));
        command.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", &self.url(database)]);
        command
    }

    /// Runs a statement, and returns its rows as text.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let done = self.psql(database).args(["-c", sql]).output().unwrap();
        assert!(done.status.success(), "{sql}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    /// Opens a session that holds a snapshot of this moment until it is dropped.
    pub(crate) fn snapshot(&self) -> Session {
        let mut child = self.psql("work").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM systole.log;\n").unwrap();
        let held =
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND backend_xmin IS NOT NULL";
        while self.sql("work", held) == "0" {}
        Session { child, _input: input }
    }

    /// Ends all connections to the database.
    pub(crate) fn disconnect_all(&self) {
        let mut end = self.psql("postgres");
        end.args(["-c", "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = 'work'"]);
        // The server may be on its way down or up.
        let _ = end.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }

    /// Ends the server at once, as after a crash, and starts it again, which recovers it.
    pub(crate) fn crash(&mut self) {
        self.stop();
        let _ = fs::remove_file(self.folder.join("data/postmaster.pid"));
        self.run();
    }

    fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // SIGQUIT is its immediate shutdown.
        let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::QUIT).unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A session of `psql`.
pub(crate) struct Session {
    child: Child,
    _input: std::process::ChildStdin,
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Finds a program of PostgreSQL: Debian has those of the server in a folder of their version.
fn found(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions =
        fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path().join("bin"));
    let mut places: Vec<_> = std::env::split_paths(&path).collect();
    places.extend(versions);
    let found = places.into_iter().map(|place| place.join(program)).find(|file| file.exists());
    found.unwrap_or_else(|| panic!("there is no {program}: install Debian's package postgresql (scripts/setup)"))
}
