//! Standard output, for what a command writes piece by piece.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use demi_common::text::printable_lines;

/// Standard output. What would steer a terminal is escaped if it is one; files and pipes get every byte as it is.
///
/// Flush it at the end: what cannot be written then is an error like others.
pub fn stdout() -> Box<dyn Write> {
    let out = io::stdout();
    match out.is_terminal() {
        true => Box::new(Escaped { out, line: Vec::new() }),
        false => Box::new(BufWriter::with_capacity(1 << 16, Watched(out))),
    }
}

/// Whether whoever reads standard output has read enough.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether whoever reads standard output has read enough, as `head` does. The error that ends the work then is none.
#[must_use]
pub fn nobody_reads() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Standard output that remembers that nobody reads it any more.
struct Watched<W>(W);

fn watched<T>(done: io::Result<T>) -> io::Result<T> {
    done.inspect_err(|error| {
        if is_closed(error) {
            CLOSED.store(true, Ordering::Relaxed);
        }
    })
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        watched(self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        watched(self.0.flush())
    }
}

/// Whether an error of writing says that nobody reads any more, which is none.
#[must_use]
pub fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Text for a terminal, a line at a time.
struct Escaped<W: Write> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> Escaped<W> {
    fn give(&mut self) -> io::Result<()> {
        let text = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        self.out.write_all(printable_lines(&text).as_bytes())
    }
}

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(line);
            if line.ends_with(b"\n") {
                self.give()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.give()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_is_written_in_pieces() {
        let mut out = Escaped { out: Vec::new(), line: Vec::new() };
        for byte in "w\u{f6}rker\ta\u{1b}[31m\nb\u{202e}c".as_bytes() {
            out.write_all(&[*byte]).unwrap();
        }
        out.flush().unwrap();
        assert_eq!(String::from_utf8(out.out).unwrap(), "w\u{f6}rker\ta\\u{1b}[31m\nb\\u{202e}c");
    }
}
