//! Lines that come in one order and are written in another, in bounded memory.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::LineageError;

/// Ranks per temporary file: about a hundred megabytes of lines of usual length.
const CHUNK: u64 = 512 * 1024;
const FILES: u64 = 256;

/// How hard temporary files are compressed: the least that spares the disk, because lines are much alike.
const LEVEL: i32 = 1;

/// A compressed temporary file with the lines of a range of ranks.
type RankFile = zstd::Encoder<'static, BufWriter<File>>;

/// Lines by rank, spread over temporary files.
pub(crate) struct Lines {
    scratch: PathBuf,
    chunk: u64,
    files: Vec<Option<RankFile>>,
}

impl Lines {
    /// For ranks from 1 to `ranks`, with temporary files in `scratch`.
    pub(crate) fn new(scratch: &Path, ranks: u64) -> Lines {
        Lines::with_chunk(scratch, ranks, CHUNK.max(ranks.div_ceil(FILES)))
    }

    /// With so many ranks in a file.
    fn with_chunk(scratch: &Path, ranks: u64, chunk: u64) -> Lines {
        let files = (0..=ranks / chunk).map(|_| None).collect();
        Lines { scratch: scratch.to_owned(), chunk, files }
    }

    fn path(&self, range: usize) -> PathBuf {
        self.scratch.join(format!("lines-{range}"))
    }

    /// Takes a line.
    pub(crate) fn add(&mut self, rank: u64, line: &[u8]) -> Result<(), LineageError> {
        let range = (rank / self.chunk) as usize;
        let path = self.path(range);
        let begin = || zstd::Encoder::new(BufWriter::with_capacity(1 << 16, File::create(&path)?), LEVEL);
        let file = match &mut self.files[range] {
            Some(file) => file,
            none => none.insert(begin().map_err(LineageError::io(&path))?),
        };
        let write = |file: &mut RankFile| {
            file.write_all(&rank.to_le_bytes())?;
            file.write_all(&(line.len() as u64).to_le_bytes())?;
            file.write_all(line)
        };
        write(file).map_err(LineageError::io(&path))
    }

    /// Writes all lines in the order of their ranks.
    pub(crate) fn write(mut self, out: &mut impl Write, out_path: &Path) -> Result<(), LineageError> {
        let files = std::mem::take(&mut self.files);
        let mut bytes = Vec::new();
        for (range, file) in files.into_iter().enumerate() {
            let Some(file) = file else { continue };
            let path = self.path(range);
            let finish = |file: RankFile| file.finish()?.flush();
            finish(file).map_err(LineageError::io(&path))?;
            bytes.clear();
            let file = File::open(&path).map_err(LineageError::io(&path))?;
            let read = |bytes: &mut Vec<u8>| zstd::Decoder::new(file)?.read_to_end(bytes);
            read(&mut bytes).map_err(LineageError::io(&path))?;
            std::fs::remove_file(&path).map_err(LineageError::io(&path))?;
            let mut lines = Vec::new();
            let mut rest = bytes.as_slice();
            while let Some((rank, after)) = rest.split_first_chunk::<8>() {
                let Some((length, after)) = after.split_first_chunk::<8>() else { break };
                let (line, after) = after.split_at(u64::from_le_bytes(*length) as usize);
                lines.push((u64::from_le_bytes(*rank), line));
                rest = after;
            }
            lines.sort_unstable_by_key(|l| l.0);
            for (_, line) in lines {
                out.write_all(line).map_err(LineageError::io(out_path))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_the_order_of_their_ranks_from_any_number_of_files() {
        let ranks = 211_u64;
        let line = |rank: u64| format!("line {rank}{}\n", "x".repeat((rank % 5) as usize));
        // Some ranks have no line.
        let there = |rank: &u64| rank % 11 != 3;
        let expected: String = (1..=ranks).filter(there).map(line).collect();
        for chunk in [1, 7, 64, 210, 211, 1000] {
            let dir = tempfile::tempdir().unwrap();
            let mut lines = Lines::with_chunk(dir.path(), ranks, chunk);
            for i in 0..ranks {
                let rank = (i * 97 + 5) % ranks + 1;
                if there(&rank) {
                    lines.add(rank, line(rank).as_bytes()).unwrap();
                }
            }
            let mut out = Vec::new();
            lines.write(&mut out, dir.path()).unwrap();
            assert!(out == expected.as_bytes(), "{chunk} ranks in a file");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "temporary files are removed");
        }
    }
}
