//! Packed files: the same states, over the unpacked stream.

use std::fs::File;
use std::io::{BufRead, Read};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::state::{HEAD, State};
use crate::read::decompress::unpack;
use crate::read::names;

/// What a packed file is.
pub(super) enum Identity {
    /// It holds what was read of the known file of that number.
    Known(usize, Box<State>),
    /// None of the known ones.
    Unknown,
    /// It ends before that can be told.
    CutOff,
}

/// The unpacked stream of a file.
pub(super) fn stream(path: &Path) -> std::io::Result<Box<dyn BufRead + Send>> {
    let file = File::open(path)?;
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
    pub(super) fn open(path: &Path, offset: u64) -> std::io::Result<Self> {
        let mut stream = stream(path)?;
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
pub(super) fn identify(path: &Path, states: &[&State]) -> std::io::Result<Identity> {
    let mut reader = stream(path)?;
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
