//! Packed files: the same states, over the unpacked stream.

use std::fs::File;
use std::io::{BufRead, Read};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::state::{HEAD, State};
use crate::shutdown::Shutdown;
use demi_formats::read::decompress::unpack;
use demi_formats::read::names;

/// What a packed file is.
pub(super) enum Identity {
    /// It holds what was read of the known file of that number.
    Known(usize, Box<State>),
    /// None of the known ones.
    Unknown,
    /// It ends before that can be told.
    CutOff,
}

/// Most bytes that are read at once: when the daemon stops, what they become is all that is unpacked yet.
const PIECE: usize = 16 << 10;

/// A file that ends with an error when the daemon stops. Few bytes can become very many, or none at all.
struct Stopping {
    file: File,
    stop: Shutdown,
}

impl Read for Stopping {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.stop.is_thrown() {
            return Err(std::io::Error::other("the daemon stops"));
        }
        let most = into.len().min(PIECE);
        self.file.read(&mut into[..most])
    }
}

/// The unpacked stream of a file.
fn stream(path: &Path, stop: &Shutdown) -> std::io::Result<Box<dyn BufRead + Send>> {
    let file = Stopping { file: File::open(path)?, stop: stop.clone() };
    let name = names::text(path);
    unpack(&name, Box::new(file)).map_err(|e| std::io::Error::other(e.to_string()))
}

/// A packed file being read.
pub(super) struct Unpacked {
    stream: Box<dyn BufRead + Send>,
    /// The last bytes before the place reached.
    pub before: Vec<u8>,
    /// Bytes unpacked and not handed over yet.
    pub ready: Vec<u8>,
    /// Whether the stream was read to its end.
    pub ended: bool,
}

impl Unpacked {
    /// Opens the file at `offset` of the unpacked stream.
    pub(super) fn open(path: &Path, offset: u64, stop: &Shutdown) -> std::io::Result<Self> {
        let mut stream = stream(path, stop)?;
        let skip = offset.saturating_sub(HEAD as u64);
        let skipped = std::io::copy(&mut (&mut stream).take(skip), &mut std::io::sink())?;
        let mut before = Vec::with_capacity(HEAD);
        (&mut stream).take(offset - skip).read_to_end(&mut before)?;
        if skipped + before.len() as u64 != offset {
            return Err(std::io::Error::other("it ends before the place that was reached earlier"));
        }
        Ok(Unpacked { stream, before, ready: Vec::new(), ended: false })
    }

    /// Unpacks more, up to `most` bytes in all. What came before an error is ready.
    pub(super) fn fill(&mut self, most: usize) -> std::io::Result<()> {
        let wanted = most.saturating_sub(self.ready.len());
        if wanted > 0 && !self.ended {
            let got = (&mut self.stream).take(wanted as u64).read_to_end(&mut self.ready)?;
            self.ended = got < wanted;
        }
        Ok(())
    }

    /// Moves on by `n` of the bytes that are ready.
    pub(super) fn consume(&mut self, n: usize) {
        self.before.extend_from_slice(&self.ready[..n]);
        self.before.drain(..self.before.len().saturating_sub(HEAD));
        self.ready.drain(..n);
    }
}

/// Finds the state whose bytes the packed file holds, the one that was read furthest if there are several.
pub(super) fn identify(path: &Path, states: &[&State], stop: &Shutdown) -> std::io::Result<Identity> {
    let mut reader = stream(path, stop)?;
    let mut start = Vec::with_capacity(HEAD);
    if (&mut reader).take(HEAD as u64).read_to_end(&mut start).is_err() {
        return Ok(Identity::CutOff);
    }
    let mut candidates: Vec<(usize, &&State)> =
        states.iter().enumerate().filter(|(_, s)| s.offset > 0 && s.begins(&start)).collect();
    candidates.sort_by_key(|(_, s)| s.offset);
    let mut best = Identity::Unknown;
    let mut at = start.len() as u64;
    let mut last = start;
    for (number, state) in candidates {
        while at < state.offset {
            let Ok(buffer) = reader.fill_buf() else { return Ok(known_or(best, Identity::CutOff)) };
            if buffer.is_empty() {
                return Ok(best);
            }
            let n = buffer.len().min(usize::try_from(state.offset - at).unwrap_or(usize::MAX));
            last.extend_from_slice(&buffer[..n]);
            last.drain(..last.len().saturating_sub(2 * HEAD));
            reader.consume(n);
            at += n as u64;
        }
        // `last` ends at `at`, which is the state's place, except where that lies within the beginning.
        let end = last.len() - usize::try_from(at - state.offset).unwrap_or(last.len()).min(last.len());
        let from = end.saturating_sub(state.tail_len());
        if end - from == state.tail_len() && xxh3_64(&last[from..end]) == state.tail {
            best = Identity::Known(number, Box::new((*state).clone()));
        }
    }
    Ok(best)
}

fn known_or(best: Identity, other: Identity) -> Identity {
    if matches!(best, Identity::Known(..)) { best } else { other }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Whatever a packed file becomes, very much or nothing at all: it is read no further when the daemon stops.
    #[test]
    fn nothing_more_is_read_when_the_daemon_stops() {
        let gzip = |bytes: &[u8]| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            gzip.write_all(bytes).unwrap();
            gzip.finish().unwrap()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gz");
        for member in [gzip(b""), gzip(&[b'x'; 100_000])] {
            std::fs::write(&path, [gzip(b"first\n"), member.repeat(1 << 20 >> 6)].concat()).unwrap();
            let stop = Shutdown::new();
            let mut unpacked = Unpacked::open(&path, 3, &stop).unwrap();
            assert_eq!(unpacked.before, b"fir");
            unpacked.fill(2).unwrap();
            assert_eq!(unpacked.ready, b"st");
            stop.throw();
            // What was read before is unpacked yet, and no more.
            let mut rest = 0;
            while unpacked.fill(1 << 20).is_ok() {
                assert!(!unpacked.ended);
                rest += unpacked.ready.len();
                unpacked.ready.clear();
            }
            let ratio = 100_000 / member.len() + 1;
            assert!(rest + unpacked.ready.len() <= (PIECE + 8) * ratio, "{rest} bytes");
            assert!(Unpacked::open(&path, 3, &stop).is_err());
            assert!(
                identify(&path, &[], &stop).is_err()
                    || matches!(identify(&path, &[], &stop), Ok(Identity::CutOff))
            );
        }
    }
}
