//! Data files that are compared with their digests as they are read.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::panics::caught;
use crate::regular;
use crate::sums::{Digester, Digests};

/// Bytes of a data file with one digest: a fraction of what a page takes to read, and 8 bytes of digests for 256 KiB.
pub const STRETCH: usize = 256 << 10;

/// What is said of a file that is not as it was written.
pub const DAMAGED: &str = "its content is not what was written: the file is damaged";

/// What a reader of data files is asked for. Files that somebody changed, with the digests that belong to them, can make such a reader panic.
///
/// # Errors
/// When it panics.
pub fn contained<T>(read: impl FnOnce() -> T) -> Result<T, ParquetError> {
    caught(read).map_err(|said| ParquetError::General(format!("it cannot be read: {said}")))
}

/// What a reader of data files gives, one after the other; a panic of it is an error, and the end.
pub struct Contained<I>(Option<I>);

impl<I> From<I> for Contained<I> {
    fn from(reader: I) -> Self {
        Contained(Some(reader))
    }
}

impl<T, E: From<ParquetError>, I: Iterator<Item = Result<T, E>>> Iterator for Contained<I> {
    type Item = Result<T, E>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.0.as_mut()?;
        contained(|| reader.next()).unwrap_or_else(|error| {
            self.0 = None;
            Some(Err(error.into()))
        })
    }
}

/// A file, and the digests of what was written to it, where they are known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SealedFile {
    path: PathBuf,
    sums: Option<Arc<Digests>>,
}

impl From<PathBuf> for SealedFile {
    /// A file without digests: what is read of it is taken as it is.
    fn from(path: PathBuf) -> Self {
        SealedFile { path, sums: None }
    }
}

impl AsRef<Path> for SealedFile {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl SealedFile {
    /// A file with the digests of what was written to it.
    #[must_use]
    pub fn new(path: PathBuf, sums: Option<Digests>) -> Self {
        SealedFile { path, sums: sums.map(Arc::new) }
    }

    /// A file whose digests stand beside it, as [`SealedWriter::finish`] writes them. Without such a file it has none.
    ///
    /// # Errors
    /// When the digests are damaged or are not of a file of this length.
    pub fn beside(path: &Path) -> io::Result<Self> {
        let bytes = match regular::read(&sums_of(path)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path.to_owned().into()),
            Err(error) => return Err(error),
        };
        let length = std::fs::metadata(path)?.len();
        let sums = Digests::from_bytes(&bytes, STRETCH as u64, length).ok_or_else(damaged)?;
        Ok(SealedFile::new(path.to_owned(), Some(sums)))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One digest of all that was written to it, where its digests are known.
    #[must_use]
    pub fn digest(&self) -> Option<u64> {
        self.sums.as_ref().map(|sums| sums.digest())
    }

    /// Opens it for reading in any order.
    ///
    /// # Errors
    /// When it cannot be opened, or is shorter or longer than what was written.
    pub fn open(&self) -> io::Result<VerifiedFile> {
        let file = regular::open(&self.path)?;
        let length = file.metadata()?.len();
        if self.sums.as_ref().is_some_and(|sums| sums.length() != length) {
            return Err(damaged());
        }
        Ok(VerifiedFile { file: Arc::new(file), length, sums: self.sums.clone(), last: Arc::default() })
    }

    /// Compares all of it with its digests.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    pub fn verify(&self) -> io::Result<()> {
        let opened = self.open()?;
        if opened.sums.is_some() {
            io::copy(&mut opened.from(0), &mut io::sink())?;
        }
        Ok(())
    }

    /// Writes its digests beside a file of the same content, where it has such as [`SealedFile::beside`] reads.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write_sums(&self, path: &Path) -> io::Result<()> {
        match self.sums.as_ref().filter(|sums| sums.stretch() == STRETCH as u64) {
            Some(sums) => std::fs::write(sums_of(path), sums.to_bytes()),
            None => Ok(()),
        }
    }

    /// All of it as text.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or is not UTF-8.
    pub fn read_to_string(&self) -> io::Result<String> {
        let mut text = String::new();
        self.open()?.from(0).read_to_string(&mut text)?;
        Ok(text)
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, DAMAGED)
}

/// A file that is open, each stretch of which is compared before it is handed on.
#[derive(Clone, Debug)]
pub struct VerifiedFile {
    file: Arc<File>,
    length: u64,
    sums: Option<Arc<Digests>>,
    /// The stretch that was read last: headers of pages are read one after the other.
    last: Arc<Mutex<(u64, Bytes)>>,
}

impl VerifiedFile {
    /// Reads from a place on.
    #[must_use]
    pub fn from(&self, start: u64) -> VerifiedReader {
        VerifiedReader { verified: self.clone(), at: start }
    }

    /// Bytes from a place on, compared with the digests.
    ///
    /// # Errors
    /// When they cannot be read, are not there, or are damaged.
    pub fn read(&self, start: u64, length: usize) -> io::Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.length);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let Some(sums) = &self.sums else { return self.read_range(start, end) };
        let stretch = sums.stretch();
        let first = start / stretch * stretch;
        let last = end.div_ceil(stretch).saturating_mul(stretch).min(self.length);
        let of = |whole: &Bytes| whole.slice((start - first) as usize..(end - first) as usize);
        {
            let kept = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.0 == first && first + kept.1.len() as u64 >= end && !kept.1.is_empty() {
                return Ok(of(&kept.1));
            }
        }
        let whole = self.read_range(first, last)?;
        if !sums.match_at(first, &whole) {
            return Err(damaged());
        }
        let found = of(&whole);
        if last - first <= stretch {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = (first, whole);
        }
        Ok(found)
    }

    fn read_range(&self, start: u64, end: u64) -> io::Result<Bytes> {
        let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(usize::MAX)];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

impl Length for VerifiedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for VerifiedFile {
    type T = BufReader<VerifiedReader>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(self.from(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        Ok(self.read(start, length)?)
    }
}

/// A file read from a place on.
#[derive(Debug)]
pub struct VerifiedReader {
    verified: VerifiedFile,
    at: u64,
}

impl Read for VerifiedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Up to the end of a stretch, so that it is read once.
        let stretch = self.verified.sums.as_ref().map_or(STRETCH as u64, |sums| sums.stretch());
        let end = (self.at / stretch + 1).saturating_mul(stretch).min(self.verified.length);
        let length = buffer.len().min(usize::try_from(end.saturating_sub(self.at)).unwrap_or(usize::MAX));
        let bytes = self.verified.read(self.at, length)?;
        buffer[..length].copy_from_slice(&bytes);
        self.at += length as u64;
        Ok(length)
    }
}

/// Writes a whole file, and its digests beside it.
///
/// # Errors
/// When one of them cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut out = SealedWriter::new(File::create(path)?);
    out.write_all(bytes)?;
    out.finish(path)
}

/// Where the digests of a file stand that are kept beside it.
#[must_use]
pub fn sums_of(path: &Path) -> PathBuf {
    path.with_extension("sum")
}

/// Writes a file, and its digests beside it.
pub struct SealedWriter<W> {
    out: W,
    sums: Digester,
}

impl<W: Write> SealedWriter<W> {
    /// Writes to `out`, which is at its beginning.
    pub fn new(out: W) -> Self {
        SealedWriter { out, sums: Digester::new(STRETCH) }
    }

    /// Writes the digests of the file, which is whole.
    ///
    /// # Errors
    /// When something cannot be written.
    pub fn finish(mut self, path: &Path) -> io::Result<()> {
        self.out.flush()?;
        std::fs::write(sums_of(path), self.sums.finish().to_bytes())
    }
}

impl<W: Write> Write for SealedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.sums.put(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
