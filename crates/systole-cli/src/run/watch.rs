//! `systole run --watch`: the files that make an organism, and their changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use systole::config::{Config, Survey};

use super::launch::has_people;
use tokio::time::{Instant, sleep_until};

use crate::report;
use crate::screen::Screen;
use crate::second_opinion;

/// Interval of looks at the files.
const LOOK: Duration = Duration::from_millis(250);

/// Time of the last change, size and identity of a file; `None` if it is not there.
type Stamp = Option<(i64, i64, u64, u64)>;

/// The files of an organism.
pub(super) struct Watch {
    organism: PathBuf,
    /// Files of messages.
    messages: Vec<PathBuf>,
    /// True if people type at the terminal.
    people: bool,
    seen: BTreeMap<PathBuf, Stamp>,
    /// The last file that changed, until nothing has changed for one look: an editor may write it in pieces.
    changed: Option<PathBuf>,
    /// Time of the next look.
    due: Instant,
}

impl Watch {
    /// Watches the files of an organism, as they were just read.
    pub(super) fn new(organism: &Path, messages: &[PathBuf], people: bool, files: Vec<PathBuf>) -> Self {
        let messages = messages.iter().filter(|file| *file != Path::new("-")).cloned().collect();
        let (organism, seen, due) = (organism.to_owned(), BTreeMap::new(), Instant::now());
        let mut watch = Self { organism, messages, people, seen, changed: None, due };
        watch.add(files);
        watch
    }

    /// Watches these files and those of messages; what is known of a file stays.
    fn add(&mut self, files: Vec<PathBuf>) {
        for file in files.into_iter().chain(self.messages.clone()) {
            let stamp = stamp(&file);
            self.seen.entry(file).or_insert(stamp);
        }
    }

    /// Waits until a file has changed and the change is whole; returns the file.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    async fn changed(&mut self) -> PathBuf {
        loop {
            sleep_until(self.due).await;
            self.due = Instant::now() + LOOK;
            let mut is_quiet = true;
            for (file, seen) in &mut self.seen {
                let now = stamp(file);
                if std::mem::replace(seen, now) != now {
                    (is_quiet, self.changed) = (false, Some(file.clone()));
                }
            }
            if is_quiet && let Some(file) = self.changed.take() {
                return file;
            }
        }
    }

    /// Waits for a change with which the organism can run; what is wrong with others is shown.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    pub(super) async fn next(&mut self, screen: &Screen) -> (PathBuf, Config) {
        loop {
            let file = self.changed().await;
            let Survey { config, files } = Config::survey(&self.organism, &second_opinion::ask);
            let is_right = config.is_ok();
            if is_right {
                self.seen.retain(|known, _| files.contains(known));
            }
            self.add(files);
            let file = short(file);
            let name = file.display();
            match config {
                Ok(config) if has_people(&config) == self.people => return (file, config),
                Ok(_) => screen.note(&format!(
                    "{name} changed: start the program again, since the first listener came that people at the terminal answer for, or the last one went"
                )),
                Err(findings) => {
                    screen.note(&format!("{name} changed: the organism goes on unchanged until these mistakes are corrected"));
                    report::text(&findings).lines().for_each(|line| screen.note(line));
                }
            }
        }
    }
}

/// Waits for a change as [`Watch::next`]; for ever without a watch.
pub(super) async fn next(watch: &mut Option<Watch>, screen: &Screen) -> (PathBuf, Config) {
    match watch {
        Some(watch) => watch.next(screen).await,
        None => std::future::pending().await,
    }
}

/// A path as a person would write it: relative to the current directory, if it is below that.
fn short(file: PathBuf) -> PathBuf {
    let below = std::env::current_dir().ok().and_then(|here| Some(file.strip_prefix(here).ok()?.to_owned()));
    below.unwrap_or(file)
}

fn stamp(file: &Path) -> Stamp {
    let meta = fs::metadata(file).ok()?;
    Some((meta.mtime(), meta.mtime_nsec(), meta.size(), meta.ino()))
}
