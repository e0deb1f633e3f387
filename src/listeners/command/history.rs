//! The history of a thread as a file for a command.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use systole_core::core::{Place, Remembered};

use crate::listeners::json::{JsonPayloads, Past};
use crate::process::memory::sealed;

/// The history of a thread as a sealed file in memory, which a command inherits.
///
/// With payloads as XML:
/// `<history><message from="name" number="3" answers="2">payload</message>…</history>`, oldest first, without the message
/// that is being answered. `number` is the place among all messages of the thread, `answers` that of the call which the
/// message answers. With payloads as JSON: `[{"from":"name","payload":{…},"number":3,"answers":2}]`.
#[derive(Debug)]
pub(super) struct History {
    file: Arc<File>,
}

impl History {
    pub(super) fn new(messages: &[Remembered], json: Option<&JsonPayloads>) -> io::Result<Self> {
        let file = match json {
            None => sealed("systole-history", |out| write(out, messages))?,
            Some(json) => {
                let past: Vec<Past<'_>> = messages.iter().map(|message| Past::of(message, Some(json))).collect();
                sealed("systole-history", |out| {
                    serde_json::to_writer(&mut *out, &past)?;
                    out.write_all(b"\n")
                })?
            }
        };
        Ok(Self { file: Arc::new(file) })
    }

    /// Returns the path of the file for a process that inherits it: each `open` reads the file from its start.
    pub(super) fn path(&self) -> PathBuf {
        format!("/dev/fd/{}", self.file.as_raw_fd()).into()
    }

    /// Returns the file that the process inherits.
    pub(super) fn into_file(self) -> Arc<File> {
        self.file
    }
}

/// Writes the history. Names need no escaping: they are ASCII letters, digits, `_`, `-` and `.`.
fn write(out: &mut impl Write, messages: &[Remembered]) -> io::Result<()> {
    out.write_all(b"<history>")?;
    for Remembered { from, payload, place: Place { number, answers } } in messages {
        write!(out, "<message from=\"{from}\"")?;
        // Journals of earlier programs know no places.
        if *number > 0 {
            write!(out, " number=\"{number}\"")?;
        }
        if let Some(call) = answers {
            write!(out, " answers=\"{call}\"")?;
        }
        out.write_all(b">")?;
        out.write_all(payload.bytes())?;
        out.write_all(b"</message>")?;
    }
    out.write_all(b"</history>\n")
}
