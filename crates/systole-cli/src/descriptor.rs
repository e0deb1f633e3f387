//! Descriptors that this program shares with others: of a pipe, a terminal, a socket that it inherited.
//!
//! Another process may have made them non-blocking, for itself and for all that hold them. Always: a read or a write of
//! a [`Patient`] waits as if it blocked.
//!
//! Not here: which thread may wait. [`Outlet`](super::outlet::Outlet) has threads that do nothing else.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::fstat;
use rustix::io::Errno;

/// A descriptor whose reads and writes wait, even if it is non-blocking. It has no buffer of its own.
#[derive(Debug)]
pub(super) struct Patient<T>(pub(super) T);

impl<T: AsFd> Read for Patient<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.insist(PollFlags::IN, |fd| rustix::io::read(fd, &mut *bytes))
    }
}

impl<T: AsFd> Write for Patient<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.insist(PollFlags::OUT, |fd| rustix::io::write(fd, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<T: AsFd> Patient<T> {
    fn insist(&self, ready: PollFlags, mut call: impl FnMut(&T) -> Result<usize, Errno>) -> io::Result<usize> {
        loop {
            match call(&self.0) {
                Err(Errno::AGAIN) => {
                    poll(&mut [PollFd::new(&self.0, ready)], None)?;
                }
                done => return Ok(done?),
            }
        }
    }
}

/// Checks whether two descriptors are of the same pipe, terminal or file.
pub(super) fn are_same(one: impl AsFd, other: impl AsFd) -> bool {
    match (fstat(one), fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{OFlags, fcntl_setfl};

    use super::*;

    #[test]
    fn a_descriptor_that_others_made_non_blocking_is_waited_for() {
        let (reader, writer) = io::pipe().unwrap();
        [reader.as_fd(), writer.as_fd()].into_iter().for_each(|fd| fcntl_setfl(fd, OFlags::NONBLOCK).unwrap());
        let sent: Vec<u8> = (0..1_000_000_u32).map(|number| number as u8).collect();
        let told = sent.clone();
        let teller = std::thread::spawn(move || Patient(writer).write_all(&told));
        let mut read = Vec::new();
        Patient(reader).read_to_end(&mut read).unwrap();
        teller.join().unwrap().unwrap();
        assert!(read == sent);
    }

    #[test]
    fn a_pipe_is_the_same_at_both_ends() {
        let ((reader, writer), (other, _)) = (io::pipe().unwrap(), io::pipe().unwrap());
        assert!(are_same(&reader, &writer) && !are_same(&reader, &other));
    }
}
