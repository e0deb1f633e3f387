use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::core::Remembered;
use crate::vocab::MessageId;

/// The history of a thread as a file that only we and our processes can read; removed when dropped.
///
/// `<history><message from="name">payload</message>…</history>`, oldest first, without the message
/// that is being answered.
#[derive(Debug)]
pub(super) struct History {
    path: PathBuf,
}

impl History {
    pub(super) fn write(message: MessageId, messages: &[Remembered]) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let unique = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("systole-{}-{message}-{unique}.xml", std::process::id());
        let path = std::env::temp_dir().join(name);
        // `create_new` follows no link that somebody may have laid in a shared directory.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let history = Self { path };
        let mut out = BufWriter::new(file);
        write(&mut out, messages)?;
        out.flush()?;
        Ok(history)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Names need no escaping: they are ASCII letters, digits, `_`, `-` and `.`.
fn write(out: &mut impl Write, messages: &[Remembered]) -> io::Result<()> {
    out.write_all(b"<history>")?;
    for Remembered { from, payload } in messages {
        write!(out, "<message from=\"{from}\">")?;
        out.write_all(payload.bytes())?;
        out.write_all(b"</message>")?;
    }
    out.write_all(b"</history>\n")
}

impl Drop for History {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "can't remove a history file");
        }
    }
}
