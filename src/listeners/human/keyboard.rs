//! The keyboard of a console: a terminal, or the lines of a pipe or a file.

use std::io::{self, BufRead, Read};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::getpgrp;
use rustix::termios::{InputModes, LocalModes, OptionalActions, tcgetattr, tcgetpgrp, tcsetattr};

/// Bytes of a line, without its line feed, that a terminal passes on: it drops what follows (`termios`, canonical mode).
const WHOLE_LINE: usize = 4095;
/// Most bytes of a line of a pipe or a file: no person writes a longer one, and no message is as long.
const LONGEST: u64 = 64 << 20;
/// Interval of looks for the terminal while another process has it.
const LOOK: Duration = Duration::from_millis(200);

/// A keyboard.
pub struct Keyboard {
    lines: Box<dyn BufRead + Send>,
    terminal: Option<OwnedFd>,
}

/// A line of a keyboard.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The text, without its end.
    Text(String),
    /// Bytes that can't be taken, and the reason.
    Unusable(String),
    /// The person at a terminal has typed the end of input (Ctrl-D), after which they may type on.
    Nothing,
    /// No line comes any more.
    End,
}

impl Keyboard {
    /// Reads the lines of a pipe or a file. Its end is the end of the keyboard.
    pub fn lines(lines: impl BufRead + Send + 'static) -> Self {
        Self { lines: Box::new(lines), terminal: None }
    }

    /// Reads a terminal, of which `terminal` is a descriptor. The end of input (Ctrl-D) ends nothing there; the end of the
    /// terminal does.
    ///
    /// From now on the terminal deletes whole characters, also those of several bytes (`IUTF8`).
    pub fn terminal(lines: impl BufRead + Send + 'static, terminal: OwnedFd) -> Self {
        // A process in the background would be stopped by the attempt.
        let keyboard = Self { lines: Box::new(lines), terminal: Some(terminal) };
        if let Some(terminal) = &keyboard.terminal
            && !keyboard.is_in_background()
            && let Ok(mut modes) = tcgetattr(terminal)
        {
            modes.input_modes |= InputModes::IUTF8;
            // Where it is refused, invalid lines are.
            let _ = tcsetattr(terminal, OptionalActions::Now, &modes);
        }
        keyboard
    }

    /// Returns whether a person types at this moment.
    pub(super) fn is_interactive(&self) -> bool {
        self.terminal.is_some()
    }

    /// Returns whether the terminal is that of this process, which another one has at the moment.
    fn is_in_background(&self) -> bool {
        let group = self.terminal.as_ref().and_then(|terminal| tcgetpgrp(terminal).ok());
        group.is_some_and(|group| group != getpgrp())
    }

    /// Returns whether a terminal is there that gathers lines: then the end of input is a key (Ctrl-D).
    fn reads_lines(&self) -> bool {
        let modes = self.terminal.as_ref().and_then(|terminal| tcgetattr(terminal).ok());
        modes.is_some_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
    }

    /// Waits for the next line.
    pub(super) fn read(&mut self) -> Line {
        // A process in the background would be stopped by the attempt, with all that it does.
        while self.is_in_background() {
            std::thread::sleep(LOOK);
        }
        let mut bytes = Vec::new();
        let read = loop {
            let left = LONGEST - bytes.len() as u64;
            match (&mut self.lines).take(left).read_until(b'\n', &mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        match read {
            Ok(0) if self.reads_lines() => return Line::Nothing,
            Ok(0) | Err(_) => return Line::End,
            // An endless line, as of a device.
            Ok(_) if bytes.len() as u64 == LONGEST => return Line::End,
            Ok(_) => {}
        }
        let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
        bytes.truncate(end);
        if self.is_interactive() && bytes.len() >= WHOLE_LINE {
            return Line::Unusable(format!(
                "A terminal passes on {WHOLE_LINE} bytes of a line at most, so the end of this one is lost. Nothing of the entry was \
                 taken. Write XML in several lines, or text in a form between two lines of \"\"\"."
            ));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Line::Text(text),
            Err(error) => Line::Unusable(format!(
                "This line is no UTF-8 text: byte {} is wrong. Nothing of the entry was taken: type it again.",
                error.utf8_error().valid_up_to() + 1
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_whole_or_refused_with_the_reason() {
        let long = "x".repeat(WHOLE_LINE);
        let mut keyboard = Keyboard::lines(io::Cursor::new(format!("a\r\n\n{long}\nb").into_bytes()));
        let text = |text: &str| Line::Text(text.to_owned());
        assert_eq!([keyboard.read(), keyboard.read()], [text("a"), text("")]);
        assert_eq!([keyboard.read(), keyboard.read(), keyboard.read()], [text(&long), text("b"), Line::End]);
        let mut keyboard = Keyboard::lines(io::Cursor::new(b"caf\xc3e\n<a/>\n".to_vec()));
        let Line::Unusable(why) = keyboard.read() else { panic!("it is no UTF-8") };
        assert!(why.contains("byte 4 is wrong"), "{why}");
        assert_eq!(keyboard.read(), text("<a/>"));
    }
}
